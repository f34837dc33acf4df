#!/usr/bin/env python3
"""Compares each operation of shardloader's augmentation with torchvision.transforms.v2 on uint8 tensors,
with the same parameters.

    PYTHONPATH=build/dev/python python3 tests/golden/check_augment_with_torchvision.py [--photo FILE]
        [--device cpu]

Needs torch and torchvision >= 0.15. Prints one line per operation: values compared, values that differ, the
largest difference. Fails if table operations, blends, flips, turns or nearest geometry differ at all, or
others by more than 1 level or in more than 0.1 % of the values. Policies: every instruction of drawn programs
is repeated by torchvision, one after the other. --photo: a picture beside those that are made.
"""

import argparse
import random
import sys

import numpy as np
import torch
from torchvision.transforms import InterpolationMode
from torchvision.transforms.v2 import functional as F

import shardloader as sl
from shardloader import ops

failures = 0


def pictures(photo):
    """Noise, ramps with all 256 values, smooth shapes, nearly constant and constant
    pictures; square and not."""
    rng = np.random.default_rng(0)
    for height, width in ((224, 224), (96, 128), (33, 57)):
        yield "noise", rng.integers(0, 256, (height, width, 3), dtype=np.uint8)
        y, x = np.mgrid[:height, :width]
        smooth = np.stack([np.sin(x / 23 + c) * np.cos(y / (17 + 5 * c)) * 127 + 128 for c in range(3)], -1)
        yield "smooth", np.clip(smooth + rng.normal(0, 3, smooth.shape), 0, 255).astype(np.uint8)
        yield "ramps", np.stack([(x * 7 + y * (c + 3)) % 256 for c in range(3)], -1).astype(np.uint8)
        yield "dark", rng.integers(0, 3, (height, width, 3), dtype=np.uint8)
        gray = rng.integers(0, 256, (height, width, 1), dtype=np.uint8)
        yield "gray", np.repeat(gray, 3, -1)
    yield "constant", np.full((64, 64, 3), 77, np.uint8)
    yield (
        "all colours",
        rng.permutation(
            np.stack(np.meshgrid(*[np.arange(0, 256, 5)] * 3), -1)
            .reshape(-1, 3)[: 364 * 364]
            .astype(np.uint8)
        ).reshape(364, 364, 3),
    )
    if photo:
        from PIL import Image

        yield "photo", np.asarray(Image.open(photo).convert("RGB"))


class Case:
    """Sums over pictures and parameters. ties: this share of the values may differ by anything: nearest
    geometry where a place is half-way between two pixels, which torch's matrix product rounds one way or the
    other, depending on the processor."""

    def __init__(self, name, exact=True, levels=1, ties=0):
        self.ties = ties
        self.name, self.exact, self.levels, self.values, self.differ, self.most = name, exact, levels, 0, 0, 0

    def add(self, ours, theirs, what):
        gap = np.abs(ours.astype(int) - theirs.astype(int))
        self.values += gap.size
        self.differ += int((gap > 0).sum())
        if gap.max() > self.most:
            self.most, self.worst = int(gap.max()), what

    def end(self):
        global failures
        bad = (
            self.differ > self.ties * self.values
            if self.exact
            else self.most > self.levels or self.differ > 1e-3 * self.values
        )
        failures += bad
        worst = f"   worst: {self.worst}" if self.most else ""
        print(
            f"{'FAIL' if bad else 'ok  '} {self.name:34s} {self.values:12d} values {self.differ:8d} differ, "
            f"at most by {self.most}{worst}"
        )


def tensor(image, device):
    return torch.from_numpy(image.copy()).permute(2, 0, 1).to(device)


def numpy(image):
    return image.permute(1, 2, 0).cpu().numpy()


def f32(value):
    return float(np.float32(value))


def compare(name, images, device, parameters, ours, theirs, exact=True, ties=0):
    case = Case(name, exact, ties=ties)
    for kind, image in images:
        for value in parameters:
            got = sl.Augment(ops=[ours(value)]).apply(image)
            case.add(got, numpy(theirs(tensor(image, device), value)), (kind, image.shape, value))
    case.end()


def blend_factor(real):
    """The double whose float32 is real[0], and whose 1 - factor is real[1] as float32:
    policies have a factor of 1 + magnitude."""
    return float(real[0]) if np.float32(1.0 - real[0]) == np.float32(real[1]) else 1.0 - real[1]


def repeat(instruction, image):
    """What torchvision's parts give for one instruction."""
    from torchvision.transforms.v2.functional import _geometry as G

    name, whole, real = instruction
    height, width = image.shape[-2:]
    fill = list(real[6:9]) if name == "affine" else list(real[8:11])
    fill = fill if name in ("affine", "perspective") and whole[1] else None
    mode = "bilinear" if whole[0] else "nearest"
    if name == "affine":
        # The matrix was divided by half of the size; the division is undone by a size of 2.
        theta = torch.tensor(real[:6], dtype=torch.float32, device=image.device).reshape(1, 2, 3)
        grid = G._affine_grid(theta, w=2, h=2, ow=width, oh=height)
        return G._apply_grid_transform(image, grid, mode, fill)
    if name == "quarter_turns":
        return torch.rot90(image, k=whole[0], dims=(-2, -1))
    return {
        "brightness": lambda: F.adjust_brightness(image, real[0]),
        "posterize": lambda: F.posterize(image, bin(whole[0]).count("1")),
        "solarize": lambda: F.solarize(image, real[0]),
        "invert": lambda: F.invert(image),
        "contrast": lambda: F.adjust_contrast(image, blend_factor(real)),
        "autocontrast": lambda: F.autocontrast(image),
        "equalize": lambda: F.equalize(image),
        "saturation": lambda: F.adjust_saturation(image, blend_factor(real)),
        "hue": lambda: F.adjust_hue(image, real[0]),
        "grayscale": lambda: F.rgb_to_grayscale(image, num_output_channels=3),
        "sharpness": lambda: F.adjust_sharpness(image, 1.0 - real[0]),
    }[name]()


def policies(images, device):
    """RandAugment, TrivialAugmentWide and AutoAugment: drawn programs, repeated by torchvision."""
    small = [(kind, image) for kind, image in images if kind in ("smooth", "noise")][:4]
    for name, augment in (
        ("rand_augment(2, 9)", sl.Augment.rand_augment(2, 9)),
        ("rand_augment(3, 20), bilinear", sl.Augment.rand_augment(3, 20, interpolation="bilinear", fill=128)),
        ("trivial_augment()", sl.Augment.trivial_augment()),
        ("auto_augment(imagenet)", sl.Augment.auto_augment("imagenet")),
        ("auto_augment(cifar10)", sl.Augment.auto_augment("cifar10")),
        ("auto_augment(svhn)", sl.Augment.auto_augment("svhn")),
    ):
        # A level of difference may grow in what follows, so that only the number of values counts.
        case = Case(name, exact="bilinear" not in name, levels=255)
        for kind, image in small:
            for sample in range(60):
                program = augment.draw(image.shape, sample)
                theirs = tensor(image, device)
                for instruction in program:
                    theirs = repeat(instruction, theirs)
                case.add(augment.apply(image, sample), numpy(theirs), (kind, image.shape, program))
        case.end()


def magnitudes():
    """RandAugment's, TrivialAugmentWide's strengths for all sizes and bins are torch's:
    translations cut to whole pixels."""
    from torchvision.transforms import v2

    case = Case("translations of policies")
    for size in list(range(32, 257)) + [384, 512]:
        space = v2.RandAugment._AUGMENTATION_SPACE["TranslateX"][0]
        theirs = [int(float(m)) for m in space(31, size, size)]
        ours = []
        for magnitude in range(31):
            augment = sl.Augment.rand_augment(1, magnitude)
            found = 0
            for sample in range(400):
                for one in augment.draw((size, size, 3), sample):
                    moved = (
                        one.opcode == "affine"
                        and abs(one.real[0] - 2 / size) < 1e-7
                        and abs(one.real[4] - 2 / size) < 1e-7
                        and abs(one.real[1]) + abs(one.real[3]) + abs(one.real[5]) < 1e-9
                    )
                    if moved:
                        found = round(abs(one.real[2]) * size / 2)
                if found:
                    break
            ours.append(found)
        if size in (32, 97, 224, 225, 512):
            case.add(np.array(ours), np.array(theirs), size)
    case.end()


def aug_mix(images, device):
    """The sum of chains, from a drawn program."""
    case = Case("aug_mix()", exact=False, levels=255)
    augment = sl.Augment.aug_mix(3, 3)
    for kind, image in [one for one in images if one[0] in ("smooth", "noise")][:4]:
        for sample in range(20):
            original = tensor(image, device)
            now, total = original, None
            for instruction in augment.draw(image.shape, sample):
                name, weight = instruction.opcode, instruction.real[0]
                if name == "keep":
                    pass
                elif name == "restore":
                    now = original
                elif name == "mix_set":
                    total = weight * now
                elif name == "mix_add":
                    total.add_(weight * now)
                elif name == "mix_end":
                    now = total.to(torch.uint8)
                else:
                    now = repeat(instruction, now)
            case.add(augment.apply(image, sample), numpy(now), (kind, image.shape, sample))
    case.end()


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--photo")
    parser.add_argument("--device", default="cpu")
    args = parser.parse_args()
    torch.set_num_threads(1)
    images, device = list(pictures(args.photo)), args.device
    dice = random.Random(0)
    factors = [0.0, 0.1, 0.3, 0.6, 0.9, 1.1, 1.4, 1.9, 3.0, 10.0] + [
        f32(dice.uniform(0, 2)) for _ in range(10)
    ]
    factors = [f32(v) for v in factors]

    compare(
        "brightness",
        images,
        device,
        factors,
        lambda v: ops.color_jitter(brightness=(v, v)),
        F.adjust_brightness,
    )
    compare(
        "contrast", images, device, factors, lambda v: ops.color_jitter(contrast=(v, v)), F.adjust_contrast
    )
    compare(
        "saturation",
        images,
        device,
        factors,
        lambda v: ops.color_jitter(saturation=(v, v)),
        F.adjust_saturation,
    )
    hues = [f32(v) for v in (-0.5, -0.25, -0.1, 0.02, 0.1, 1 / 3, 0.5)] + [
        f32(dice.uniform(-0.5, 0.5)) for _ in range(6)
    ]
    compare("hue", images, device, hues, lambda v: ops.color_jitter(hue=(v, v)), F.adjust_hue, exact=False)
    compare(
        "grayscale",
        images,
        device,
        [None],
        lambda _: ops.grayscale(),
        lambda t, _: F.rgb_to_grayscale(t, num_output_channels=3),
    )
    compare("solarize", images, device, [0, 1, 77.5, 128, 200, 255], lambda v: ops.solarize(v), F.solarize)
    compare("posterize", images, device, range(9), lambda v: ops.posterize(v), F.posterize)
    compare("equalize", images, device, [None], lambda _: ops.equalize(), lambda t, _: F.equalize(t))
    compare(
        "auto_contrast", images, device, [None], lambda _: ops.auto_contrast(), lambda t, _: F.autocontrast(t)
    )
    compare("invert", images, device, [None], lambda _: ops.invert(), lambda t, _: F.invert(t))
    compare("sharpness", images, device, factors, lambda v: ops.sharpness(v), F.adjust_sharpness)
    compare("permute", images, device, [[2, 0, 1], [1, 0, 2]], lambda v: ops.permute(v), lambda t, v: t[v])
    compare(
        "vertical_flip",
        images,
        device,
        [None],
        lambda _: ops.vertical_flip(p=1),
        lambda t, _: F.vertical_flip(t),
    )
    blurs = [(3, 0.1), (3, 2.0), (5, 0.7), (13, 1.3), (23, 0.1), (23, 0.5), (23, 2.0), (31, 5.0)]
    compare(
        "gaussian_blur",
        images,
        device,
        blurs,
        lambda v: ops.gaussian_blur(*v),
        lambda t, v: F.gaussian_blur(t, [v[0], v[0]], [v[1], v[1]]),
        exact=False,
    )
    square = [(kind, image) for kind, image in images if image.shape[0] == image.shape[1]]
    compare(
        "turns",
        square,
        device,
        [1, 2, 3],
        lambda v: ops.turns(v),
        lambda t, v: torch.rot90(t, k=v, dims=(-2, -1)),
    )
    angles = [-720, -90, -31.7, -1, 0, 0.3, 17, 45, 90, 133.3, 180, 270]
    for mode in ("nearest", "bilinear"):
        for fill in (None, 0, [124, 116, 104]):
            compare(
                f"rotation, {mode}, fill {fill}",
                images,
                device,
                angles,
                lambda v: ops.rotation((v, v), interpolation=mode, fill=fill),
                lambda t, v: F.rotate(t, v, interpolation=InterpolationMode(mode), fill=fill),
                exact=mode == "nearest",
                ties=2e-6,
            )
            affines = [
                (0, 1.0, (0.0, 0.0)),
                (13.3, 1.1, (7.0, 3.0)),
                (-77, 0.7, (-20.0, 0.0)),
                (5, 2.3, (0.0, 31.0)),
            ]
            compare(
                f"affine, {mode}, fill {fill}",
                images,
                device,
                affines,
                lambda v: ops.affine(
                    (v[0], v[0]),
                    scale=v[1],
                    shear_x=(v[2][0], v[2][0]),
                    shear_y=(v[2][1], v[2][1]),
                    interpolation=mode,
                    fill=fill,
                ),
                lambda t, v: F.affine(
                    t, v[0], [0, 0], v[1], list(v[2]), interpolation=InterpolationMode(mode), fill=fill
                ),
                exact=mode == "nearest",
                ties=2e-6,
            )
    perspective(images, device)
    erasing(images, device)
    padded_crop(images, device)
    policies(images, device)
    aug_mix(images, device)
    magnitudes()
    return 1 if failures else 0


def perspective(images, device):
    """The drawn coefficients, undivided, go to torchvision."""
    for mode in ("nearest", "bilinear"):
        case = Case(f"perspective, {mode}", exact=False)
        for kind, image in images:
            height, width = image.shape[:2]
            for sample in range(4):
                augment = sl.Augment(ops=[ops.perspective(0.6, interpolation=mode, fill=9, p=1)])
                for one in augment.draw(image.shape, sample):
                    real = np.array(one.real[:8], np.float32)
                    coefficients = [
                        float(v)
                        for v in np.concatenate(
                            [real[:3] * np.float32(width / 2), real[3:6] * np.float32(height / 2), real[6:]]
                        )
                    ]
                    theirs = F.perspective(
                        tensor(image, device),
                        None,
                        None,
                        interpolation=InterpolationMode(mode),
                        fill=9,
                        coefficients=coefficients,
                    )
                    case.add(augment.apply(image, sample), numpy(theirs), (kind, image.shape, sample))
        case.end()


def erasing(images, device):
    case = Case("erasing")
    augment = sl.Augment(ops=[ops.erasing(value=[7, 99, 255], p=1)])
    for kind, image in images:
        for sample in range(10):
            for one in augment.draw(image.shape, sample):
                value = torch.tensor(one.real[:3])[:, None, None]
                theirs = F.erase(tensor(image, device), *one.whole[:4], value)
                case.add(augment.apply(image, sample), numpy(theirs), (kind, image.shape, sample))
    case.end()


def padded_crop(images, device):
    for reflect in (False, True):
        case = Case(f"padded_crop, {'reflect' if reflect else 'constant'}")
        augment = sl.Augment(ops=[ops.padded_crop(4, reflect=reflect, fill=33)])
        for kind, image in images:
            for sample in range(10):
                for one in augment.draw(image.shape, sample):
                    down, right = one.whole[:2]
                    mode = {"padding_mode": "reflect"} if reflect else {"fill": 33}
                    padded = F.pad(tensor(image, device), [4, 4, 4, 4], **mode)
                    theirs = F.crop(padded, 4 - down, 4 - right, image.shape[0], image.shape[1])
                    case.add(augment.apply(image, sample), numpy(theirs), (kind, image.shape, sample))
        case.end()


if __name__ == "__main__":
    sys.exit(main())
