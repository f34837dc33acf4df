"""Augments of torchvision's Compose: recipes that people train with, and what is refused by name."""

import numpy as np
import pytest

import shardloader as sl

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
v2 = pytest.importorskip("torchvision.transforms.v2", reason="torchvision is not installed")
v1 = pytest.importorskip("torchvision.transforms")

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
BILINEAR, BICUBIC = v2.InterpolationMode.BILINEAR, v2.InterpolationMode.BICUBIC


def crop(size, **more):
    return [v2.RandomResizedCrop(size, antialias=True, **more), v2.RandomHorizontalFlip()]


def end(normalize=True):
    return [
        v2.ToImage(),
        v2.ToDtype(torch.float32, scale=True),
        *([v2.Normalize(MEAN, STD)] if normalize else []),
    ]


def ssl(strength, blur, solarize=0.0):
    jitter = v2.ColorJitter(0.8 * strength, 0.8 * strength, 0.4 * strength, 0.2 * strength)
    return [
        v2.RandomApply([jitter], p=0.8),
        v2.RandomGrayscale(0.2),
        v2.RandomApply([v2.GaussianBlur(5, (0.1, 2.0))], p=blur),
        v2.RandomSolarize(128, p=solarize),
    ]


RECIPES = {
    "references, basic": ([v2.PILToTensor(), *crop(24), *end(), v2.ToPureTensor()], []),
    "references, TrivialAugment": (
        [*crop(24), v2.TrivialAugmentWide(interpolation=BILINEAR), *end(), v2.RandomErasing(0.1)],
        ["trivial_augment", "erasing"],
    ),
    "references, RandAugment": (
        [*crop(24), v2.RandAugment(magnitude=9, interpolation=BILINEAR, fill=[124, 116, 104]), *end()],
        ["rand_augment"],
    ),
    "references, AutoAugment": (
        [*crop(24), v2.AutoAugment(v2.AutoAugmentPolicy.IMAGENET), *end()],
        ["auto_augment"],
    ),
    "references, AugMix": ([*crop(24), v2.AugMix(severity=3), *end()], ["aug_mix"]),
    "references, evaluation": ([v2.Resize(32), v2.CenterCrop(28), *end()], []),
    "torchvision's first transforms": (
        [
            v1.RandomResizedCrop(24),
            v1.ColorJitter(0.4),
            v1.RandAugment(),
            v1.ToTensor(),
            v1.Normalize(MEAN, STD),
            v1.RandomErasing(),
        ],
        ["color_jitter", "rand_augment", "erasing"],
    ),
    "SimCLR": ([*crop(24), *ssl(1, 0.5)[:3], *end(False)], ["color_jitter", "grayscale", "gaussian_blur"]),
    "BYOL": (
        [*crop(24), *ssl(0.5, 0.1, 0.2), *end()],
        ["color_jitter", "grayscale", "gaussian_blur", "solarize"],
    ),
    "DINO, small view": (
        [v2.Compose([*crop(12, scale=(0.05, 0.4))]), v2.Compose(ssl(0.5, 0.5)), v2.Compose(end())],
        ["color_jitter", "grayscale", "gaussian_blur", "solarize"],
    ),
    "DeiT III": (
        [
            *crop(24),
            v2.RandomChoice([v2.Grayscale(3), v2.RandomSolarize(128, p=1.0), v2.GaussianBlur(13)]),
            v2.ColorJitter(0.3, 0.3, 0.3),
            *end(),
        ],
        ["three_augment", "color_jitter"],
    ),
    "CIFAR-10": ([v2.RandomHorizontalFlip(), v2.RandomCrop(32, padding=4), *end()], ["padded_crop"]),
    "CIFAR-10, reflected, AutoAugment": (
        [
            v2.RandomCrop(32, padding=[4], padding_mode="reflect"),
            v2.AutoAugment(v2.AutoAugmentPolicy.CIFAR10),
            *end(),
            v2.RandomErasing(),
        ],
        ["padded_crop", "auto_augment", "erasing"],
    ),
    "timm": (
        [
            *crop(24),
            v2.RandomVerticalFlip(0.1),
            v2.ColorJitter(0.4, 0.4, 0.4),
            v2.ToTensor(),
            v2.Normalize(torch.tensor(MEAN), torch.tensor(STD)),
            v2.RandomErasing(0.25),
        ],
        ["vertical_flip", "color_jitter", "erasing"],
    ),
    "geometry": (
        [
            v2.CenterCrop(28),
            v2.RandomAffine(10, (0.1, 0.1), (0.9, 1.1), (-5, 5, -5, 5)),
            v2.RandomRotation((90, 90)),
            v2.RandomPerspective(),
            *end(),
        ],
        ["affine", "rotation", "perspective"],
    ),
    "tables": (
        [
            v2.RandomPosterize(4),
            v2.RandomAdjustSharpness(2),
            v2.RandomAutocontrast(),
            v2.RandomEqualize(),
            v2.RandomInvert(),
            v2.RandomChannelPermutation(),
            *end(),
        ],
        ["posterize", "sharpness", "auto_contrast", "equalize", "invert", "permute"],
    ),
}


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_becomes_an_augment_that_a_loader_takes(data, name):
    transforms, operations = RECIPES[name]
    augment = sl.Augment.from_torchvision(v2.Compose(transforms), size=32)
    assert [one.name for one in augment.operations] == operations
    assert augment.geometry["dtype"] == "float32"
    batch = next(iter(sl.Loader(data, framework="numpy", augment=augment, batch_size=20).epoch(0)))
    assert batch.images.dtype == np.float32 and np.isfinite(batch.images).all()


def test_parameters_are_those_of_the_compose():
    compose = v2.Compose(
        [
            v2.ToImage(),
            v2.RandomResizedCrop(16, scale=(0.3, 1), antialias=True),
            v2.RandomHorizontalFlip(0.3),
            v2.RandomApply([v2.ColorJitter(0.4, 0.4, 0.4, 0.1)], p=0.8),
            v2.ToDtype(torch.float32, scale=True),
            v2.Normalize((0.5, 0.5, 0.5), (0.25, 0.25, 0.25)),
            v2.RandomErasing(0.5),
        ]
    )
    augment = sl.Augment.from_torchvision(compose)
    assert augment.operations[0].parameters["p"] == 0.8 and augment.operations[0].parameters["contrast"] == (
        0.6,
        1.4,
    )
    assert augment.operations[-1].parameters["value"] == [127.5] * 3
    assert augment.geometry == {
        "random_resized_crop": (16, 16),
        "scale": (0.3, 1),
        "ratio": (0.75, 4 / 3),
        "flip": 0.3,
        "dtype": "float32",
        "mean": (0.5,) * 3,
        "std": (0.25,) * 3,
    }
    assert sl.Augment.from_torchvision(v2.RandomApply([v2.RandomHorizontalFlip(0.5)], p=0.5)).geometry == {
        "flip": 0.25
    }
    assert (
        sl.Augment.from_torchvision(v2.RandomApply([v2.Compose([v2.RandomInvert(0.5)])], p=0.5))
        .operations[0]
        .parameters["p"]
        == 0.25
    )


@pytest.mark.parametrize(
    "transforms",
    [
        [v2.ToDtype(torch.float32, scale=True)],
        [v2.ToDtype(torch.float32)],
        [v2.ToDtype(torch.float32), v2.Normalize((127.0,) * 3, (60.0, 61.0, 62.0))],
        [
            v2.CenterCrop(20),
            v2.RandomInvert(1.0),
            v2.ToDtype(torch.float32, scale=True),
            v2.Normalize(MEAN, STD),
        ],
        [v2.ToDtype(torch.float32, scale=True), v2.RandomSolarize(0.5, p=1.0)],
        [v2.ToDtype(torch.float32, scale=True), v2.RandomRotation((20, 20), fill=0.2)],
        [
            v2.RandomRotation((20, 20), fill=[255, 128, 0]),
            v2.ToDtype(torch.float32, scale=True),
            v2.Normalize(MEAN, STD),
        ],
    ],
)
def test_values_are_those_of_torchvision_where_nothing_is_drawn(data, transforms):
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
    for image, sample in zip(batch.images, batch.ids):
        expected = compose(torch.tensor(data[int(sample)][0]).permute(2, 0, 1).contiguous())
        torch.testing.assert_close(image, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "transforms, message",
    [
        ([v2.ElasticTransform(), v2.RandomIoUCrop()], "ElasticTransform, RandomIoUCrop have no counterpart"),
        ([v2.RandomInvert(), v2.CenterCrop(8)], "CenterCrop after invert"),
        ([v2.CenterCrop(8), v2.RandomCrop(4)], "RandomCrop is a second crop"),
        ([v2.RandomRotation(5, expand=True)], "expand=True"),
        ([v2.RandomAffine(5, center=(0, 0))], "center"),
        ([v2.RandomAffine(5, interpolation=BICUBIC)], "interpolation 'bicubic'; only nearest and bilinear"),
        ([v2.GaussianBlur((3, 5))], "only square kernels"),
        (
            [v2.RandomCrop(8, padding=2)],
            r"RandomCrop of \[8, 8\] with padding: .* size=. Here it is \(32, 32\)",
        ),
        ([v2.RandomCrop(32, padding=(1, 2))], "the same on all sides"),
        ([v2.RandomCrop(32, padding=2, padding_mode="edge")], "mode 'edge'"),
        ([v2.RandomCrop(8, pad_if_needed=True)], "pad_if_needed"),
        ([v2.Resize(24)], r"Resize to \[24\]: samples are stored as \[32, 32\]"),
        (
            [v2.RandomResizedCrop(8, interpolation=BICUBIC)],
            "RandomResizedCrop: interpolation 'bicubic'.*only bilinear with antialias",
        ),
        ([v2.RandomHorizontalFlip(), v2.RandomHorizontalFlip()], "a second RandomHorizontalFlip"),
        (
            [v2.RandomApply([v2.ColorJitter(0.4), v2.RandomGrayscale()])],
            "RandomApply of ColorJitter, RandomGrayscale has no counterpart",
        ),
        (
            [v2.RandomChoice([v2.RandomInvert(), v2.RandomEqualize()])],
            "RandomChoice of RandomInvert, RandomEqualize",
        ),
        ([v2.Grayscale(1)], "Grayscale to 1 channel"),
        ([v2.Lambda(abs)], "Lambda has no counterpart"),
        ([v2.MixUp(num_classes=3)], "MixUp has no counterpart"),
        ([v2.ToDtype(torch.float64)], "dtype is torch.float64"),
        ([v2.ToDtype(torch.float32), v2.ColorJitter(0.4)], "ColorJitter after a dtype without scale=True"),
        ([*end(), v2.ColorJitter(0.4)], "ColorJitter after Normalize"),
        ([*end(), v2.Normalize(MEAN, STD)], "a second Normalize"),
        (
            [*end(), v2.RandomErasing(value=5)],
            r"RandomErasing: value \[5.0\] is .* in bytes; it must be 0 to 255",
        ),
        ([*end(), v2.RandomErasing(value="random")], "normal values there and uniform bytes here"),
        ([v1.ToTensor(), v1.RandomErasing(value="random")], "normal values there and uniform bytes here"),
        ([v2.RandomRotation(5, fill={torch.Tensor: 3})], "a fill by type"),
    ],
)
def test_what_has_no_counterpart_is_refused_by_name(transforms, message):
    with pytest.raises(sl.InvalidArgumentError, match=message):
        sl.Augment.from_torchvision(v2.Compose(transforms), size=32)


@pytest.mark.parametrize("given", [None, "simclr", 3, [v2.RandomInvert()]])
def test_what_is_no_transform_is_refused(given):
    with pytest.raises(sl.InvalidArgumentError, match="has no counterpart"):
        sl.Augment.from_torchvision(given)
