"""What augmentation refuses: parameters out of range, views that do not fit,
data that an operation is not defined for."""

import math
import random

import numpy as np
import pytest

import shardloader as sl
from shardloader import ops
from shardloader._operations import DECLARED

WHOLE, SPAN = "whole", "span"
KINDS = {
    "whole": WHOLE,
    "whole or none": WHOLE,
    "span": SPAN,
    "span or none": SPAN,
    "number": float,
    "fill": float,
    "fill or none": float,
}
# operation: {parameter: (kind, low, high)}. Values below and above are refused.
BOUNDS = {
    name: {
        one.name: (KINDS[one.kind], one.low, one.high)
        for one in parameters
        if one.kind in KINDS and one.name != "p"
    }
    for name, parameters in DECLARED.items()
}
NEEDED = {"posterize": {"bits": 4}, "affine": {"degrees": 1}, "rotation": {"degrees": 1}}
EVERY = [name for name in vars(ops) if not name.startswith("_")]


def refused(data, view, number, operation, message):
    """The operation is refused as number `number` of view `view`."""
    views = [sl.Augment()] * view + [sl.Augment(ops=[ops.invert()] * number + [operation])]
    with pytest.raises(
        ValueError, match=rf"^view {view}, operation {number} \({operation.name}\): {message}"
    ):
        sl.Loader(data, batch_size=4, views=views)


@pytest.mark.parametrize(
    "name, parameter", [(name, parameter) for name, all_of in BOUNDS.items() for parameter in all_of]
)
def test_a_parameter_out_of_range_is_refused_with_view_operation_and_bounds(data, name, parameter):
    kind, low, high = BOUNDS[name][parameter]
    draws = random.Random(f"{name} {parameter}")
    for _ in range(20):
        beyond = draws.choice([1, 3, 1e4]) * draws.random() + 1e-3
        value = draws.choice(
            [low - beyond, high + beyond, *([] if kind is WHOLE else [math.nan, math.inf, -math.inf])]
        )
        if kind is WHOLE:
            value = math.floor(value) if value < low else math.ceil(value)
        if kind is SPAN:
            value = draws.choice([(value, value), (value, high), (low, value), (high, low)])
        one = getattr(ops, name)(**{**NEEDED.get(name, {}), parameter: value})
        refused(data, draws.randrange(3), draws.randrange(3), one, f"{parameter} is .*(must be|expected)")


@pytest.mark.parametrize("name", EVERY)
def test_a_probability_out_of_range_and_an_unknown_parameter_are_refused(data, name):
    good = getattr(ops, name)(**NEEDED.get(name, {}))
    for p in (-0.1, 1.5, math.nan):
        refused(
            data,
            1,
            0,
            getattr(ops, name)(**NEEDED.get(name, {}), p=p),
            f"p is {p}; it must be 0 to 1",
        )
    refused(
        data,
        0,
        2,
        sl.types.Operation(name, {**good.parameters, "p": "often"}),
        "p is 'often'; expected a number",
    )
    refused(data, 0, 1, sl.types.Operation(name, {**good.parameters, "q": 1}), "there is no parameter q")
    sl.Loader(data, batch_size=4, augment=sl.Augment(ops=[good]))


@pytest.mark.parametrize(
    "operation, message",
    [
        (ops.permute([1, 0]), "order has channel 4 at 2; it must have each of 0 to 2 once"),
        (ops.permute([]), "order has 0 channels; it takes 1 to 4"),
        (ops.permute([0, 0, 1]), "order has channel 0 at 1"),
        (ops.turns(4), "turns is 4; it must be 0 to 3"),
        (ops.gaussian_blur(4), "kernel_size is 4; it must be odd, 1 to 31"),
        (ops.affine(0, (0, 2)), "translate is 2; it must be 0 to 1"),
        (ops.affine(0, (0,)), r"translate is \(0,\); expected two numbers"),
        (ops.affine(0, shear_x=90), r"shear_x is \[-90, 90\]; it must be -89.9 <= low"),
        (ops.affine(0, fill=[1] * 5), "fill has 5 numbers"),
        (ops.affine(0, fill="red"), "fill is 'red'; expected a number"),
        (ops.erasing(value=[0, 0, -1]), "value is -1; it must be 0 to 255"),
        (
            ops.padded_crop(32, reflect=True),
            "padding is 32; it must be less than rows and columns, which are 32 x 32",
        ),
        (ops.auto_augment("mnist"), 'policy is "mnist"; expected "imagenet", "cifar10" or "svhn"'),
        (ops.rand_augment(2, 9, bins=9), "magnitude is 9; it must be 0 to 8"),
        (ops.posterize(2.5), "bits is 2.5; expected a whole number from 0 to 8"),
        (ops.posterize(None), "bits is None; expected a whole number"),
        (ops.invert(p=None), "p is None; expected a number"),
        (sl.types.Operation("cutout", {}), "there is no operation of this name"),
    ],
)
def test_values_of_other_kinds_are_refused(data, operation, message):
    refused(data, 2, 1, operation, message)


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: ops.color_jitter(-0.1), "color_jitter: brightness is -0.1; expected a number from 0 on"),
        (
            lambda: ops.color_jitter(hue=(1, 2, 3)),
            r"color_jitter: hue is \(1, 2, 3\); expected a number, or \(low, high\)",
        ),
        (lambda: ops.gaussian_blur(3, None), "gaussian_blur: sigma is None"),
        (lambda: ops.affine(0, shear_x=(1, 2, 3)), "affine: shear_x is"),
        (lambda: ops.erasing(value="noise"), "erasing: value is 'noise'"),
        (
            lambda: sl.Augment(ops=["invert"]),
            "operation 0 is 'invert'; expected what a function of shardloader.ops returns",
        ),
        (lambda: sl.Augment(ops=ops.invert()), "expected a list of operations"),
        (lambda: sl.Augment(ops=None), "ops is None"),
        (lambda: sl.Augment(random_resized_crop=0), "random_resized_crop is 0; expected a size from 1 on"),
        (lambda: sl.Augment(color_jitter=0.4), "color_jitter is 0.4; expected one to four"),
        (lambda: sl.Augment.rand_augment(ops=[ops.invert]), "operation 1 is <function"),
        (lambda: sl.Augment(invert=1).draw((8, 8, 3), -1), "sample is -1; expected a whole number from 0"),
        (lambda: sl.Augment(invert=1).draw((8, 8, 3), 0, seed=2**64), "seed is 18446744073709551616"),
        (lambda: sl.Augment(invert=1).apply(np.zeros((0, 8, 3), np.uint8)), "sample height is 0"),
        (lambda: sl.Augment(invert=1).draw((2**31, 2**31, 3), 0), "shape's number of rows is 2147483648"),
    ],
)
def test_what_cannot_be_made_is_refused_at_once(make, message):
    with pytest.raises(sl.InvalidArgumentError, match=message):
        make()


@pytest.mark.parametrize(
    "view, message",
    [
        (sl.Augment(center_crop=33), "the crop of 33 x 33 is larger than the stored samples of 32 x 32"),
        (sl.Augment(random_crop=(8, 40)), "the crop of 8 x 40 is larger"),
        (sl.Augment(random_resized_crop=10**5), "the crop of 100000 x 100000 exceeds 8192 x 8192"),
        (sl.Augment(center_crop=8, random_crop=8), "exclude each other"),
        (
            sl.Augment(random_resized_crop=8, scale=(0.5, 2)),
            r"scale is \[0.5, 2\]; it must be 0 < low <= high <= 1",
        ),
        (sl.Augment(flip=1.5), "flip is 1.5; it must be 0 to 1"),
        (sl.Augment(dtype="int8"), "dtype is 'int8'; expected one of"),
        (sl.Augment(layout="chw"), "layout is 'chw'; expected"),
        (sl.Augment(mean=(0, 0, 0)), "mean and std of an Augment go together"),
        (
            sl.Augment(dtype="float32", mean=(0, 0), std=(1, 1)),
            "2 means and 2 stds, but the samples have 3 channels",
        ),
        (sl.Augment(dtype="float32", mean=0, std=0), "mean 0 and std 0 in channel 0"),
        (
            sl.Augment(random_resized_crop=8, gaussian_blur=23),
            (
                r"operation 0 \(gaussian_blur\): half of kernel_size is 11; it must be less than rows and "
                r"columns, which are 8 x 8"
            ),
        ),
        (
            sl.Augment(random_resized_crop=(8, 9), ops=[ops.turns()]),
            r"operation 0 \(turns\): a quarter turn of 8 x 9",
        ),
        ("simclr", "is 'simclr'; expected an Augment"),
    ],
)
def test_a_view_that_does_not_fit_is_refused_by_its_number(data, view, message):
    for number in (0, 1):
        views = [sl.Augment()] * number + [view, sl.Augment()]
        with pytest.raises(ValueError, match=rf"^view {number}\b.*{message}"):
            sl.Loader(data, batch_size=4, views=views)
        loader = sl.Loader(data, batch_size=4, views=[sl.Augment(center_crop=8)])
        with pytest.raises(ValueError, match=rf"^view {number}\b.*{message}"):
            loader.set_augment(*views)
        assert loader.shape == (3, 8, 8) or loader.shape == (8, 8, 3)  # the views are as they were
        next(iter(loader.epoch(0)))


@pytest.fixture(scope="module")
def bands(tmp_path_factory):
    """13 bands of uint8, then of uint16; and images stored as float16 of codec none."""
    folder = tmp_path_factory.mktemp("bands")
    for dtype in ("uint8", "uint16"):
        np.save(
            folder / f"{dtype}.npy", np.random.default_rng(0).integers(0, 256, (8, 16, 16, 13)).astype(dtype)
        )
        sl.convert(
            folder / f"{dtype}.npy",
            folder / dtype,
            squash=(16, 16),
            layout="nhwc",
            mean=(0.5,) * 13,
            std=(0.25,) * 13,
        )
    return folder


ONE_OR_THREE = (
    "color_jitter",
    "grayscale",
    "auto_contrast",
    "sharpness",
    "rand_augment",
    "trivial_augment",
    "auto_augment",
    "aug_mix",
    "three_augment",
)


@pytest.mark.parametrize("name", EVERY)
def test_operations_on_13_bands(bands, name):
    operation = getattr(ops, name)(**NEEDED.get(name, {}))
    if name == "gaussian_blur":
        operation = ops.gaussian_blur(5)
    if name == "color_jitter":
        operation = ops.color_jitter(hue=0.1)
    if name in ONE_OR_THREE:
        refused(bands / "uint8", 1, 1, operation, "the samples have 13 channels; it is defined for 1 or 3")
    elif name in ("equalize", "permute"):
        refused(bands / "uint8", 1, 1, operation, "the samples have 13 channels; it takes 1 to 4")
    else:
        batch = next(
            iter(
                sl.Loader(
                    bands / "uint8", framework="numpy", batch_size=4, augment=sl.Augment(ops=[operation])
                ).epoch(0)
            )
        )
        assert batch.images.shape[1:] in ((13, 16, 16), (16, 16, 13))


@pytest.mark.parametrize("name", EVERY)
def test_operations_need_bytes(bands, make, name):
    operation = getattr(ops, name)(**NEEDED.get(name, {}))
    for path, dtype in ((bands / "uint16", "uint16"), (make(dtype="float16", layout="nchw"), "float16")):
        with pytest.raises(
            ValueError,
            match=rf"view 1, operation 0 \({name}\): operations are defined for samples stored as uint8 "
            rf".*not as {dtype}",
        ):
            sl.Loader(path, batch_size=4, views=[sl.Augment(), sl.Augment(ops=[operation])])


@pytest.mark.parametrize(
    "options, message",
    [
        ({"batch_size": 5}, "mixup and cutmix: batch_size is 5; it must be even"),
        ({"drop_last": False}, "mixup and cutmix: .*tail is"),
        ({"views": [sl.Augment(), sl.Augment()]}, "it is for one view"),
        ({"mixup": math.nan}, "mixup is nan; it must be 0 to"),
        ({"mixup": 0.2, "mix_probability": 2}, "mix_probability is 2; it must be 0 to 1"),
        (
            {"mixup": 0.2, "cutmix": 1, "cutmix_probability": -1},
            "cutmix_probability is -1; it must be 0 to 1",
        ),
        ({"mixup": "a"}, "mixup is 'a'; expected a number"),
        ({"mixup": True}, "mixup is True; expected a number"),
        (
            {"mixup": 0, "mix_probability": 0.5},
            "mix_probability is 0.5, but neither mixup nor cutmix is given",
        ),
        ({"mixup": 0, "cutmix_probability": 1}, "give one of them, as mixup=0.2"),
    ],
)
def test_mixing_that_is_not_possible_is_refused(data, options, message):
    with pytest.raises(ValueError, match=message):
        sl.Loader(data, framework="numpy", **{"batch_size": 4, "mixup": 0.2, **options})


def test_soft_labels_refuse_classes_that_are_too_few(data):
    batch = next(iter(sl.Loader(data, framework="numpy", batch_size=30, mixup=0.2).epoch(0)))
    assert batch.soft_labels(3).shape == (30, 3)
    for classes, smoothing, message in (
        (2, 0, "labels from 0 to 2; they must be 0 to 1"),
        (0, 0, "classes is 0"),
        (3, 1.5, "smoothing 1.5"),
    ):
        with pytest.raises(sl.InvalidArgumentError, match=message):
            batch.soft_labels(classes, smoothing)


@pytest.mark.parametrize(
    "make, message",
    [
        (
            lambda: sl.Augment(solarize=0.2),
            r"solarize is 0.2; expected a threshold of bytes.*give 128 and solarize_p",
        ),
        (lambda: sl.Augment(solarize=True), "solarize is True; expected a threshold of bytes"),
        (lambda: sl.Augment(solarize_p=0.2), "solarize_p is 0.2, but solarize is not given"),
        (lambda: sl.Augment(color_jitter_p=0.8), "color_jitter_p is 0.8, but color_jitter is not given"),
        (lambda: sl.Augment(gaussian_blur_p=0), "gaussian_blur_p is 0, but gaussian_blur is not given"),
        (
            lambda: sl.Augment(gaussian_blur_sigma=1),
            "gaussian_blur_sigma is 1, but gaussian_blur is not given",
        ),
        *[
            (lambda name=name: sl.Augment(**{name: True}), f"{name} is True; expected a probability")
            for name in ("grayscale", "equalize", "auto_contrast", "invert", "erasing")
        ],
        (lambda: sl.Augment(invert="often"), "invert is 'often'; expected a probability"),
        (lambda: sl.Augment(grayscale=1.5), "grayscale is 1.5; expected a probability, 0 to 1"),
    ],
)
def test_a_keyword_that_would_mean_something_else_is_refused(make, message):
    with pytest.raises(sl.InvalidArgumentError, match=message):
        make()


def test_vertical_flip_true_is_half_of_the_samples_as_for_flip():
    assert sl.Augment(vertical_flip=True).operations == (ops.vertical_flip(0.5),)
    assert sl.Augment(vertical_flip=False).operations == ()
    assert sl.Augment(vertical_flip=0.1).operations == (ops.vertical_flip(0.1),)


@pytest.mark.parametrize(
    "options, message",
    [
        (
            {"random_resized_crop": 24, "augment": sl.Augment(center_crop=24)},
            "random_resized_crop is given to the Loader, but its augment has a crop or resize of its own",
        ),
        (
            {"center_crop": 24, "views": [sl.Augment(center_crop=24), sl.Augment(random_crop=8)]},
            "center_crop is given to the Loader, but each of its views has a crop",
        ),
        (
            {"flip": True, "augment": sl.Augment(flip=0.3)},
            "flip is True for the Loader and 0.3 for its augment: give it once",
        ),
        (
            {"dtype": "float16", "augment": sl.Augment(dtype="float32")},
            "dtype is 'float16' for the Loader and 'float32' for its augment",
        ),
        (
            {
                "mean": (0.5,) * 3,
                "std": (0.5,) * 3,
                "dtype": "float32",
                "augment": sl.Augment(mean=0.4, std=0.5),
            },
            r"mean is \(0.5, 0.5, 0.5\) for the Loader and 0.4",
        ),
        (
            {"scale": (0.5, 1), "augment": sl.Augment(center_crop=8)},
            r"scale is \(0.5, 1\), but it belongs to random_resized_crop, which is not given",
        ),
        ({"scale": (0.5, 1)}, r"scale is \(0.5, 1\), but it belongs to random_resized_crop"),
        ({"augment": sl.Augment(ratio=(1, 1))}, r"ratio is \(1, 1\), but it belongs to random_resized_crop"),
        (
            {"views": [sl.Augment(random_resized_crop=8), sl.Augment(ratio=(1, 1))]},
            r"view 1: ratio is \(1, 1\), but it belongs to random_resized_crop",
        ),
    ],
)
def test_what_is_given_twice_or_to_nothing_is_refused(data, options, message):
    with pytest.raises(sl.InvalidArgumentError, match=message):
        sl.Loader(data, batch_size=4, **options)


def test_options_of_the_loader_are_the_views_defaults(data):
    for options in (
        {"random_resized_crop": 24, "scale": (0.5, 1), "augment": sl.Augment(invert=1)},
        {
            "random_resized_crop": 24,
            "views": [sl.Augment(), sl.Augment(random_resized_crop=8, scale=(0.1, 0.2))],
        },
        {
            "dtype": "float16",
            "flip": True,
            "augment": sl.Augment(dtype=np.float16, flip=True, random_resized_crop=24),
            "scale": (0.5, 1),
        },
    ):
        loader = sl.Loader(data, batch_size=4, **options)
        assert loader.shape[0:2] == (24, 24) or loader.shape[1:3] == (24, 24)
    growing = sl.Loader(data, batch_size=4, random_resized_crop=24)
    growing.set_augment(sl.Augment(random_resized_crop=8))
    assert 8 in growing.shape


@pytest.mark.parametrize(
    "dtype, mean, std",
    [
        ("float32", (123.7, 116.3, 103.5), (58.4, 57.1, 57.4)),
        ("float16", (0, 0, 0), (255, 255, 255)),
        ("bfloat16", (-2, 0, 0), (1, 1, 1)),
    ],
)
def test_a_normalisation_that_counts_in_bytes_is_refused(data, dtype, mean, std):
    with pytest.raises(
        sl.InvalidArgumentError, match=r"mean .* and std .* in channel 0.*values are 0 to 1 before .*divide"
    ):
        sl.Loader(data, batch_size=4, dtype=dtype, mean=mean, std=std)
    with pytest.raises(sl.InvalidArgumentError, match="values are 0 to 1 before"):
        sl.Loader(data, batch_size=4, augment=sl.Augment(dtype=dtype, mean=mean, std=std))


@pytest.mark.parametrize(
    "name", ["seed", "prefetch", "threads", "verify", "transport", "partition", "repeats"]
)
def test_none_is_no_value_of_an_option_that_needs_one(data, name):
    with pytest.raises(ValueError, match=f"^{name} is None; expected"):
        sl.Loader(data, batch_size=4, **{name: None})
