"""Random pipelines through a Loader against torchvision v2 with the parameters that were drawn: odd sizes, 1,
3 and 4 channels, all dtypes.

Each operation is compared on the pixels that the ones before it gave here, so that a level of
difference, where docs/augment.md allows one, does not grow. SHARD_TEST_ROUNDS=N and SHARD_TEST_SEED=N:
more rounds, and other ones.
"""

import os
import random

import numpy as np
import pytest

import shardloader as sl
from shardloader import ops

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("torchvision", reason="torchvision is not installed")
from torchvision.transforms import v2  # noqa: E402
from torchvision.transforms.v2 import functional as F  # noqa: E402
from torchvision.transforms.v2.functional import _geometry as G  # noqa: E402

ROUNDS = int(os.environ.get("SHARD_TEST_ROUNDS", "40"))
SEED = int(os.environ.get("SHARD_TEST_SEED", "1"))
SAMPLES = 6
SHAPES = [(1, 1), (1, 9), (9, 1), (2, 3), (8, 8), (31, 17), (64, 48)]
CLOSE = {"blur", "hue", "perspective"}  # and bilinear geometry: at most one level


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """A data set of noise, ramps and flat pictures of this shape; each is made once."""
    folder = tmp_path_factory.mktemp("stored")

    def make(rows, columns, channels, codec):
        out = folder / f"{rows}x{columns}x{channels}-{codec}"
        if not out.exists():
            dice = np.random.default_rng(rows * columns + channels)
            pictures = dice.integers(0, 256, (SAMPLES, rows, columns, channels), dtype=np.uint8)
            y, x, c = np.mgrid[:rows, :columns, :channels]
            pictures[1] = (x * 5 + y * 3 + c * 40) % 256
            pictures[2] = 77
            pictures[3] //= 100
            np.save(out.with_suffix(".npy"), pictures)
            recorded = {"mean": (0.5, 0.25, 0.75, 0.125)[:channels], "std": (0.25, 0.5, 0.2, 0.3)[:channels]}
            sl.convert(
                out.with_suffix(".npy"),
                out,
                array_layout="nhwc",
                squash=(rows, columns),
                dtype="uint8",
                layout="nhwc",
                channels=channels,
                codec=codec,
                **recorded,
            )
        return out

    return make


def a_range(dice, low, high):
    return tuple(sorted((dice.uniform(low, high), dice.uniform(low, high))))


def random_operation(dice, rows, columns, channels):
    mode, fill = dice.choice(["nearest", "bilinear"]), dice.choice([None, 0, 255, 77])
    kinds = {
        "solarize": lambda: ops.solarize(dice.choice([0, 128, 255, dice.uniform(0, 255)]), p=0.9),
        "posterize": lambda: ops.posterize(dice.randint(0, 8), p=0.9),
        "equalize": lambda: ops.equalize(p=0.9),
        "invert": lambda: ops.invert(p=0.9),
        "permute": lambda: ops.permute(dice.choice([None, dice.sample(range(channels), channels)]), p=0.9),
        "affine": lambda: ops.affine(
            a_range(dice, -180, 180),
            (dice.random(), dice.random()),
            a_range(dice, 0.2, 3),
            a_range(dice, -60, 60),
            interpolation=mode,
            fill=fill,
        ),
        "rotation": lambda: ops.rotation(a_range(dice, -360, 360), interpolation=mode, fill=fill),
        "perspective": lambda: ops.perspective(dice.uniform(0, 0.9), interpolation=mode, fill=fill, p=0.9),
        "erasing": lambda: ops.erasing(p=0.9, value=[9, 99, 199, 255][:channels]),
        "vertical_flip": lambda: ops.vertical_flip(p=0.9),
    }
    most = min(rows, columns)
    if most > 1:
        kinds["gaussian_blur"] = lambda: ops.gaussian_blur(
            2 * dice.randint(0, min(most - 1, 15)) + 1, a_range(dice, 0.1, 4), p=0.9
        )
        kinds["padded_crop"] = lambda: ops.padded_crop(
            dice.randint(0, most - 1), reflect=dice.random() < 0.5, fill=dice.choice([0, 200])
        )
    if rows == columns:
        kinds["turns"] = lambda: ops.turns(dice.choice([None, 0, 1, 2, 3]))
    if channels in (1, 3):
        low, high = a_range(dice, 0, 3)
        kinds.update(
            jitter=lambda: ops.color_jitter(
                (low, high), a_range(dice, 0, 3), a_range(dice, 0, 3), a_range(dice, -0.5, 0.5), p=0.9
            ),
            grayscale=lambda: ops.grayscale(p=0.9),
            sharpness=lambda: ops.sharpness(a_range(dice, 0, 4), p=0.9),
            auto_contrast=lambda: ops.auto_contrast(p=0.9),
            rand_augment=lambda: ops.rand_augment(
                dice.randint(1, 3), dice.randint(0, 30), interpolation=mode, fill=fill
            ),
            trivial_augment=lambda: ops.trivial_augment(interpolation=mode, fill=fill),
            auto_augment=lambda: ops.auto_augment(
                dice.choice(["imagenet", "cifar10", "svhn"]), interpolation=mode, fill=fill
            ),
        )
    return kinds[dice.choice(sorted(kinds))]()


def blend_factor(real):
    """The double whose float32 is real[0], and whose 1 - factor is real[1] as float32:
    policies have a factor of 1 + magnitude."""
    return float(real[0]) if np.float32(1.0 - real[0]) == np.float32(real[1]) else 1.0 - real[1]


def by_torchvision(one, image):
    """One instruction on a tensor [channel, row, column]."""
    name, whole, real = one
    channels, height, width = image.shape
    bilinear = bool(whole[0])
    if name in ("affine", "perspective"):
        fill = (
            list(real[6 : 6 + channels] if name == "affine" else real[8 : 8 + channels]) if whole[1] else None
        )
        mode = "bilinear" if bilinear else "nearest"
        if name == "affine":  # the matrix was divided by half of the size; a size of 2 undoes it
            return G._apply_grid_transform(
                image,
                G._affine_grid(torch.tensor(real[:6]).reshape(1, 2, 3), w=2, h=2, ow=width, oh=height),
                mode,
                fill,
            )
        f32 = np.array(real[:8], np.float32)
        coefficients = [
            float(v)
            for v in np.concatenate(
                [f32[:3] * np.float32(width / 2), f32[3:6] * np.float32(height / 2), f32[6:]]
            )
        ]
        return F.perspective(
            image,
            None,
            None,
            interpolation=v2.InterpolationMode(mode),
            fill=fill,
            coefficients=coefficients,
        )
    if name == "blur":
        half = whole[0] // 2
        row = torch.tensor([real[abs(d)] for d in range(-half, half + 1)], dtype=torch.float64)
        padded = torch.nn.functional.pad(image.double()[None], [half] * 4, mode="reflect")
        kernel = torch.outer(row, row).expand(channels, 1, -1, -1)
        return (
            torch.nn.functional.conv2d(padded, kernel, groups=channels)[0]
            .round()
            .clamp(0, 255)
            .to(torch.uint8)
        )
    if name == "shift":
        down, right, reflect = whole[:3]
        padding = max(abs(down), abs(right))
        if padding == 0:
            return image
        padded = F.pad(
            image,
            [padding] * 4,
            **({"padding_mode": "reflect"} if reflect else {"fill": list(real[:channels])}),
        )
        return F.crop(padded, padding - down, padding - right, height, width)
    return {
        "brightness": lambda: F.adjust_brightness(image, real[0]),
        "contrast": lambda: F.adjust_contrast(image, blend_factor(real)),
        "saturation": lambda: F.adjust_saturation(image, blend_factor(real)),
        "hue": lambda: F.adjust_hue(image, real[0]),
        "grayscale": lambda: F.rgb_to_grayscale(image, num_output_channels=channels),
        "sharpness": lambda: F.adjust_sharpness(image, 1.0 - real[0]),
        "autocontrast": lambda: F.autocontrast(image),
        "equalize": lambda: F.equalize(image),
        "posterize": lambda: F.posterize(image, bin(whole[0]).count("1")),
        "solarize": lambda: F.solarize(image, real[0]),
        "invert": lambda: F.invert(image),
        "permute": lambda: image[list(whole[:channels])],
        "flip_rows": lambda: F.vertical_flip(image),
        "quarter_turns": lambda: torch.rot90(image, k=whole[0], dims=(-2, -1)),
        "erase": lambda: F.erase(image, *whole[:4], torch.tensor(real[:channels])[:, None, None]),
    }[name]()


def check_operations(operations, image, sample, epoch):
    """Steps through the operations of one sample. Returns the pixels after the last one."""
    before = image
    for count in range(1, len(operations) + 1):
        earlier, so_far = sl.Augment(ops=operations[: count - 1]), sl.Augment(ops=operations[:count])
        known = earlier.draw(image.shape, sample, epoch=epoch)
        program = so_far.draw(image.shape, sample, epoch=epoch)
        assert program[: len(known)] == known
        steps = program[len(known) :]
        theirs = torch.from_numpy(before.copy()).permute(2, 0, 1)
        for one in steps:
            theirs = by_torchvision(one, theirs)
        after = so_far.apply(image, sample, epoch=epoch)
        gap = np.abs(after.astype(int) - theirs.permute(1, 2, 0).numpy().astype(int))
        close = any(one.opcode in CLOSE or (one.opcode == "affine" and one.whole[0]) for one in steps)
        # In images of a few values torch blends with and without a fused multiply-add,
        # so that equal values get different results.
        close = close or (image.size < 32 and any(one.opcode in ("contrast", "saturation") for one in steps))
        # A level of difference may grow in the later instructions of one policy.
        grows = close and len(steps) > 1
        most = 255 if grows else int(close)
        where = (operations[count - 1], steps, image.shape)
        # Nearest geometry: a place half-way between two pixels goes one way or the other (docs/augment.md).
        ties = any(one.opcode in ("affine", "perspective") for one in steps)
        assert gap.max() <= most or (ties and (gap > most).sum() <= max(1, gap.size // 1000)), (
            gap.max(),
            where,
        )
        assert grows or image.size < 32 or (gap > 0).sum() <= max(2, gap.size // 200), (
            (gap > 0).mean(),
            where,
        )
        before = after
    return before


ACTS = (
    "Identity",
    "ShearX",
    "ShearY",
    "TranslateX",
    "TranslateY",
    "Rotate",
    "Brightness",
    "Color",
    "Contrast",
    "Sharpness",
    "Posterize",
    "Solarize",
    "AutoContrast",
    "Equalize",
)


@pytest.mark.parametrize(
    "policy, bins",
    [("RandAugment", 31), ("RandAugment", 10), ("TrivialAugmentWide", 31), ("TrivialAugmentWide", 33)],
)
def test_an_act_of_a_policy_is_the_one_of_torchvisions_own_policy(policy, bins):
    """What is drawn is one of all results of torchvision's policy, bit for bit,
    and almost all of these are drawn."""
    image = np.random.default_rng(1).integers(0, 256, (31, 45, 3), np.uint8)
    theirs = torch.from_numpy(image).permute(2, 0, 1)
    transform = getattr(v2, policy)()
    results = {}
    for act in ACTS:
        values, signed = transform._AUGMENTATION_SPACE[act]
        values = values(bins, *image.shape[:2])
        for at in range(bins if values is not None else 1):
            for sign in (1, -1) if signed else (1,):
                magnitude = sign * float(values[at]) if values is not None else 0.0
                out = transform._apply_image_or_video_transform(
                    theirs,
                    act,
                    magnitude,
                    interpolation=v2.InterpolationMode.NEAREST,
                    fill={torch.Tensor: None, object: None},
                )
                results.setdefault(out.permute(1, 2, 0).numpy().tobytes(), (act, at))
    seen = set()
    for magnitude in range(0, bins, 3) if policy == "RandAugment" else (0,):
        one = (
            ops.rand_augment(1, magnitude, bins=bins)
            if policy == "RandAugment"
            else ops.trivial_augment(bins=bins)
        )
        augment = sl.Augment(ops=[one])
        for sample in range(150 if policy == "RandAugment" else 3000):
            ours = augment.apply(image, sample).tobytes()
            # Nearest geometry: a place half-way between two pixels goes one way or the other,
            # as torch's processor has it.
            ties = (
                any(step.opcode == "affine" for step in augment.draw(image.shape, sample))
                and ours not in results
            )
            assert ours in results or ties, (magnitude, sample, augment.draw(image.shape, sample))
            if not ties:
                seen.add(results[ours])
    assert {act for act, _ in seen} == {act for act, _ in results.values()}


@pytest.mark.parametrize("round_", range(ROUNDS))
def test_a_random_pipeline_is_torchvisions(stored, round_):
    dice = random.Random(SEED * 1_000_003 + round_)
    rows, columns = dice.choice(SHAPES) if round_ % 10 else (512, 384)
    channels, codec = dice.choice([1, 3, 3, 4]), dice.choice(["none", "packed", "zstd:1"])
    data = sl.Dataset(stored(rows, columns, channels, codec))
    crop = dice.choice([None, "center_crop", "random_crop", "random_resized_crop"])
    size = (dice.randint(1, rows), dice.randint(1, columns))
    if crop == "random_resized_crop":  # also larger than what is stored
        size = dice.choice([size, (dice.randint(1, 70), dice.randint(1, 70)), (rows * 2 + 1, columns + 3)])
        size = (
            max(size[0], -(-rows // 32)),
            max(size[1], -(-columns // 32)),
        )  # the most that a loader shrinks
    view = dict(flip=0.5) if crop is None else {crop: size, "flip": 0.5}
    out = size if crop else (rows, columns)
    operations = [random_operation(dice, *out, channels) for _ in range(dice.randint(1, 6))]
    dtype, layout = dice.choice(["uint8", "float16", "bfloat16", "float32"]), dice.choice(["nchw", "nhwc"])
    options = {"batch_size": SAMPLES, "framework": "torch", "drop_last": False}
    plain = sl.Loader(data, augment=sl.Augment(dtype="uint8", layout="nhwc", **view), **options)
    changed = sl.Loader(
        data, augment=sl.Augment(dtype=dtype, layout=layout, ops=operations, **view), **options
    )
    mean, std = (torch.tensor(v[:channels]).reshape(-1, 1, 1) for v in (data.mean, data.std))
    epoch = dice.randint(0, 5)
    for before, after in zip(plain.epoch(epoch), changed.epoch(epoch)):
        for number, sample in enumerate(before.ids.tolist()):
            pixels = before.images[number].numpy()
            box = plain.geometry(sample, epoch=epoch)
            whole = (
                torch.from_numpy(np.array(data[sample][0])).reshape(rows, columns, channels).permute(2, 0, 1)
            )
            cut = (
                F.resized_crop(whole, *box.crop, list(out), antialias=True)
                if crop == "random_resized_crop"
                else F.crop(whole, *box.crop)
            )
            cut = F.horizontal_flip(cut) if box.flip else cut
            gap = np.abs(pixels.astype(int) - cut.permute(1, 2, 0).numpy().astype(int))
            assert gap.max() <= (crop == "random_resized_crop"), (gap.max(), box, out)
            expected = torch.from_numpy(check_operations(operations, pixels, sample, epoch)).permute(2, 0, 1)
            delivered = after.images[number] if layout == "nchw" else after.images[number].permute(2, 0, 1)
            if dtype == "uint8":
                assert torch.equal(delivered, expected)
            else:
                scaled = (expected.double() / 255 - mean) / std
                assert delivered.dtype == getattr(torch, dtype)
                torch.testing.assert_close(
                    delivered.double(),
                    scaled,
                    rtol={"float32": 1e-6, "float16": 6e-4, "bfloat16": 4e-3}[dtype],
                    atol=1e-6,
                )
