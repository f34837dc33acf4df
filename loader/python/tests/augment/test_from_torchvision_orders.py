"""Augment.from_torchvision of every order of the usual transforms:
what torchvision makes with the parameters that were drawn here, or a refusal.

Each accepted order is repeated by torchvision's functionals, step by step in its own order and in the
values that it has there (bytes, 0 to 1, normalised), so that a fill, a threshold or a flip that was
moved wrongly shows.
"""

import itertools
import math
import os
import random

import pytest

import shardloader as sl
from shardloader import ops

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
v2 = pytest.importorskip("torchvision.transforms.v2", reason="torchvision is not installed")
from torchvision.transforms.v2 import functional as F  # noqa: E402

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
SIDE = 32
ROUNDS = int(os.environ.get("SHARD_TEST_ROUNDS", "60"))
SEED = int(os.environ.get("SHARD_TEST_SEED", "1"))
# The value of a fill or an erased rectangle, in each kind of values;
# nothing that is 0 or the mean in any of them.
FILL = {"bytes": 201.0, "unit": 0.8, "normalised": 1.25}


def made(names, scale=True, degrees=(-20, 20)):
    """The transforms of an order, with the values that the one before them leaves."""
    kind, transforms = "bytes", []
    for name in names:
        transforms.append(
            {
                "dtype": lambda: v2.ToDtype(torch.float32, scale=scale),
                "normalize": lambda: v2.Normalize(MEAN, STD),
                "crop": lambda: v2.RandomCrop(SIDE, padding=4, fill=FILL[kind]),
                "flip": lambda: v2.RandomHorizontalFlip(0.5),
                "rotation": lambda: v2.RandomRotation(degrees, fill=FILL[kind]),
                "jitter": lambda: v2.ColorJitter((1.3, 1.3), (0.8, 0.8), (1.2, 1.2)),
                "erasing": lambda: v2.RandomErasing(p=1.0, value=FILL[kind]),
            }[name]()
        )
        if name == "dtype":
            kind = "unit"
        if name == "normalize":
            kind = "normalised"
    return transforms


def steps_of(program):
    """The drawn instructions by the transform that they came from."""
    found = {"crop": None, "rotation": None, "jitter": [], "erasing": None}
    for one in program:
        name = {"shift": "crop", "affine": "rotation", "erase": "erasing"}.get(one.opcode)
        if name is None:
            found["jitter"].append(one)
        else:
            found[name] = one
    return found


def rotated(image, one, fill):
    (cosine, sine), scale = one.real[:2], 1.0
    angle = math.degrees(math.atan2(sine * scale, cosine))
    return F.rotate(image, -angle, fill=fill)


def by_torchvision(names, transforms, image, box, program):
    """The sample, by torchvision in its own order. A transform that stands before the flip is mirrored,
    because here the flip came first."""
    drawn = steps_of(program)
    flip_at = names.index("flip") if "flip" in names else -1
    for at, (name, transform) in enumerate(zip(names, transforms)):
        mirrored = at < flip_at and box.flip
        image = F.horizontal_flip(image) if mirrored else image
        if name in ("dtype", "normalize"):
            image = transform(image)
        elif name == "flip":
            image = F.horizontal_flip(image) if box.flip else image
        elif name == "crop" and drawn["crop"] is not None:
            down, right = drawn["crop"].whole[:2]
            image = F.crop(F.pad(image, [4] * 4, fill=transform.fill), 4 - down, 4 - right, SIDE, SIDE)
        elif name == "rotation" and drawn["rotation"] is not None:
            image = rotated(image, drawn["rotation"], transform.fill)
        elif name == "jitter":
            for one in drawn["jitter"]:
                image = getattr(F, f"adjust_{one.opcode}")(image, one.real[0])
        elif name == "erasing":
            top, left, height, width = drawn["erasing"].whole[:4]
            image = F.erase(
                image,
                top,
                left,
                height,
                width,
                torch.tensor(transform.value, dtype=torch.float64).reshape(-1, 1, 1).to(image.dtype),
            )
        image = F.horizontal_flip(image) if mirrored else image
    return image


ALL = ("dtype", "normalize", "crop", "flip", "rotation", "jitter", "erasing")


def refusal(names):
    """A piece of the message for an order that is none of ours; "": it is taken."""
    if names.index("normalize") < names.index("dtype"):
        return "Normalize of bytes|after Normalize|RandomCrop: fill|RandomErasing: value"
    return (
        "after Normalize"
        if names.index("normalize") < max(names.index("jitter"), names.index("rotation"))
        else ""
    )


def test_every_order_is_taken_or_refused_by_name():
    taken = 0
    for names in itertools.permutations(ALL):
        compose = v2.Compose([v2.ToImage(), *made(names)])
        if refusal(names):
            with pytest.raises(sl.InvalidArgumentError, match=refusal(names)):
                sl.Augment.from_torchvision(compose, size=SIDE)
        else:
            sl.Augment.from_torchvision(compose, size=SIDE)
            taken += 1
    assert taken == math.factorial(len(ALL)) // 4  # normalize is the last of four


def test_an_order_that_is_taken_gives_what_torchvision_gives(folder):
    data, flipped = sl.Dataset(folder), 0
    stored = {number: torch.from_numpy(data[number][0].copy()).permute(2, 0, 1) for number in range(4)}
    orders = [names for names in itertools.permutations(ALL) if not refusal(names)]
    for names in random.Random(SEED).sample(orders, ROUNDS):
        transforms = made(names)
        augment = sl.Augment.from_torchvision(v2.Compose([v2.ToImage(), *transforms]), size=SIDE)
        loader = sl.Loader(
            data,
            framework="torch",
            augment=augment,
            batch_size=4,
            layout="nchw",
            shuffle=False,
            threads=1,
            prefetch=1,
        )
        batch = next(iter(loader.epoch(0)))
        for image, sample in zip(batch.images, batch.ids.tolist()):
            box = loader.geometry(sample, epoch=0)
            program = augment.draw((SIDE, SIDE, 3), sample)
            expected = by_torchvision(names, transforms, stored[sample], box, program)
            gap = (image - expected).abs() * torch.tensor(STD)[:, None, None] * 255
            assert gap.max() < 4.5, (names, sample, box.flip, float(gap.max()))
            flipped += box.flip
    assert flipped > ROUNDS


@pytest.mark.parametrize(
    "transforms, values",
    [
        ([v2.ToDtype(torch.float32, scale=True), v2.ToDtype(torch.float16)], (0, 1)),
        ([v2.ToDtype(torch.float32), v2.ToDtype(torch.float16, scale=True)], (0, 255)),
        ([v2.ToDtype(torch.float32, scale=True), v2.ToDtype(torch.uint8, scale=True)], (0, 255)),
        ([v2.ToDtype(torch.float32), v2.ToDtype(torch.uint8)], (0, 255)),
        ([v2.ToDtype({torch.Tensor: torch.float32, "others": None}, scale=True)], (0, 1)),
        (
            [
                v2.ToDtype(torch.float32, scale=True),
                v2.ToDtype(torch.uint8, scale=True),
                v2.ToDtype(torch.float32),
            ],
            (0, 255),
        ),
    ],
)
def test_a_second_dtype_scales_as_torchvision_does(data, transforms, values):
    compose = v2.Compose(transforms)
    batch = next(
        iter(
            sl.Loader(
                data,
                framework="torch",
                augment=sl.Augment.from_torchvision(compose),
                batch_size=20,
                layout="nchw",
            ).epoch(0)
        )
    )
    for image, sample in zip(batch.images, batch.ids.tolist()):
        expected = compose(torch.tensor(data[sample][0]).permute(2, 0, 1).contiguous())
        torch.testing.assert_close(image, expected, rtol=1e-3, atol=1e-5)
    assert values[1] / 2 < float(batch.images.max()) <= values[1] and float(batch.images.min()) >= values[0]


def test_the_dtype_of_images_counts_where_other_kinds_have_one_too():
    from torchvision import tv_tensors

    by_kind = v2.ToDtype(
        {tv_tensors.Mask: torch.uint8, tv_tensors.Image: torch.float32, "others": None}, scale=True
    )
    assert sl.Augment.from_torchvision(by_kind).geometry["dtype"] == "float32"
    assert (
        sl.Augment.from_torchvision(v2.ToDtype({tv_tensors.Mask: torch.float32, "others": None})).geometry
        == {}
    )


SCALED = v2.ToDtype(torch.float32, scale=True)
UNIT = [SCALED, v2.Normalize(MEAN, STD)]


@pytest.mark.parametrize(
    "transforms, message",
    [
        (
            [v2.RandomRotation((10, 30)), v2.RandomHorizontalFlip()],
            r"RandomHorizontalFlip after rotation with degrees of \(10, 30\)",
        ),
        (
            [v2.RandomAffine(0, shear=(0, 20)), v2.RandomHorizontalFlip()],
            r"RandomHorizontalFlip after affine with shear_x of \(0, 20\)",
        ),
        (
            [
                v2.RandomApply([v2.RandomRotation((90, 90))], p=0.5),
                v2.RandomApply([v2.RandomHorizontalFlip()]),
            ],
            "after rotation with degrees of",
        ),
        (
            [v2.RandomHorizontalFlip(), v2.CenterCrop(15)],
            r"CenterCrop of \[15, 15\] after RandomHorizontalFlip",
        ),
        ([v2.Normalize(MEAN, STD)], "Normalize of bytes"),
        (
            [*UNIT, v2.RandomCrop(SIDE, padding=2, fill=3.0)],
            r"RandomCrop: fill \[3.0\] is .* in bytes; it must be 0 to 255",
        ),
        ([SCALED, v2.RandomCrop(SIDE, padding=2, fill=128)], "RandomCrop: fill"),
        ([v2.RandomResizedCrop(24, antialias=True), v2.Resize(SIDE)], r"Resize to \[32\]"),
        (
            [v2.RandomResizedCrop(24, antialias=True), v2.RandomCrop(SIDE, padding=2)],
            r"RandomCrop of \[32, 32\] with padding.*Here it is \(24, 24\)",
        ),
        (
            [*UNIT, v2.ToDtype(torch.uint8, scale=True)],
            "to uint8 with scale=True of values that are normalised",
        ),
        ([SCALED, v2.ToDtype(torch.uint8)], "to uint8 with scale=False of values that are 0 to 1"),
        ([SCALED, v2.ToPILImage()], "ToPILImage after a float dtype"),
        (
            [SCALED, v2.RandomChoice([v2.Grayscale(3), v2.RandomSolarize(128, p=1.0), v2.GaussianBlur(13)])],
            "threshold 128 of values that are 0 to 1",
        ),
    ],
)
def test_an_order_that_would_be_another_distribution_is_refused(transforms, message):
    with pytest.raises(sl.InvalidArgumentError, match=message):
        sl.Augment.from_torchvision(v2.Compose(transforms), size=SIDE)


def test_a_crop_of_its_own_size_with_padding_may_stand_anywhere():
    made_of = sl.Augment.from_torchvision(
        v2.Compose([v2.CenterCrop(24), v2.RandomInvert(), v2.RandomCrop(24, padding=2), *UNIT]), size=SIDE
    )
    assert [one.name for one in made_of.operations] == ["invert", "padded_crop"]
    behind = sl.Augment.from_torchvision(v2.Compose([*UNIT, v2.RandomCrop(SIDE, padding=2)]), size=SIDE)
    assert behind.operations[0].parameters["fill"] == pytest.approx([255 * mean for mean in MEAN])


class RandomErasing:
    """A class of another library with the name of one of torchvision's."""


def test_a_class_of_another_library_is_refused_by_its_whole_name():
    with pytest.raises(
        sl.InvalidArgumentError, match=r"test_from_torchvision_orders\.RandomErasing has no counterpart"
    ):
        sl.Augment.from_torchvision(v2.Compose([v2.RandomHorizontalFlip(), RandomErasing()]))


def test_a_transform_with_other_members_is_refused_by_name():
    strange = v2.RandomErasing()
    del strange.ratio
    with pytest.raises(
        sl.InvalidArgumentError, match="torchvision's RandomErasing is not understood .*ratio"
    ):
        sl.Augment.from_torchvision(v2.Compose([strange]))


def test_what_timm_makes_for_training_and_evaluation_is_taken_or_refused_by_name():
    create_transform = pytest.importorskip("timm.data", reason="timm is not installed").create_transform
    plain = sl.Augment.from_torchvision(create_transform(24, is_training=True, interpolation="bilinear"))
    assert plain.geometry["random_resized_crop"] == (24, 24) and [one.name for one in plain.operations] == [
        "color_jitter"
    ]
    assert sl.Augment.from_torchvision(
        create_transform(28, interpolation="bilinear", crop_pct=28 / 32), size=32
    ).geometry["center_crop"] == (28, 28)
    for options, message in (
        ({"interpolation": "random"}, "RandomResizedCropAndInterpolation: interpolation"),
        (
            {"interpolation": "bilinear", "auto_augment": "rand-m9-mstd0.5"},
            r"timm\.data\.auto_augment\.RandAugment has no counterpart",
        ),
        (
            {"interpolation": "bilinear", "re_prob": 0.25},
            r"timm\.data\.random_erasing\.RandomErasing has no counterpart",
        ),
    ):
        with pytest.raises(sl.InvalidArgumentError, match=message):
            sl.Augment.from_torchvision(create_transform(24, is_training=True, **options))


def test_ops_solarize_takes_any_threshold_of_bytes():
    assert ops.solarize(0.5).parameters["threshold"] == 0.5
