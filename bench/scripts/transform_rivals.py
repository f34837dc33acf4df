#!/usr/bin/env python3
"""torchvision's transforms (v2), and kornia's if it is installed,
beside `shardbench transform`, on the same GPU.

    shardbench transform --device cuda --json transform.json
    transform_rivals.py transform.json [--seconds 2] [--json rivals.json]

A user who wants parameters of its own for each sample calls torchvision sample by sample; kornia draws
them for each sample of a batch. Both work on uint8 pictures (kornia: on their floats) that lie in the
GPU's memory, and deliver what shardbench's cases do: a random-resized-crop, a flip, the operations,
and normalised float16.
"""

import argparse
import json
import time
from collections.abc import Callable

import torch
from torchvision.transforms import v2

MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


def torchvision_operations() -> dict[str, list[torch.nn.Module]]:
    """By the name of shardbench's case, with its parameters."""
    colors = [
        v2.RandomApply([v2.ColorJitter(0.4, 0.4, 0.4, 0.1)], p=0.8),
        v2.RandomGrayscale(0.2),
    ]
    blurred = [*colors, v2.RandomApply([v2.GaussianBlur(23, (0.1, 2.0))], p=0.5)]
    return {
        "no operation": [],
        "color_jitter (hue)": [v2.ColorJitter(hue=0.5)],
        "gaussian_blur": [v2.GaussianBlur(23, (0.1, 2.0))],
        "equalize": [v2.RandomEqualize(1)],
        "affine (bilinear)": [
            v2.RandomAffine(
                30,
                (0.1, 0.1),
                (0.8, 1.2),
                (-10, 10),
                interpolation=v2.InterpolationMode.BILINEAR,
            )
        ],
        "rand_augment": [v2.RandAugment()],
        "trivial_augment_wide": [v2.TrivialAugmentWide()],
        "auto_augment": [v2.AutoAugment()],
        "aug_mix": [v2.AugMix()],
        "color_jitter 0.8, grayscale 0.2": colors,
        "the same, gaussian_blur 0.5": blurred,
        "the same, solarize 0.2": [*blurred, v2.RandomSolarize(128, 0.2)],
    }


def kornia_operations() -> dict[str, list[torch.nn.Module]]:
    """Those that mean the same; empty if kornia is not installed."""
    try:
        from kornia import augmentation
    except ImportError:
        return {}
    jitter = augmentation.ColorJitter(0.4, 0.4, 0.4, 0.1, p=0.8)
    colors = [jitter, augmentation.RandomGrayscale(p=0.2)]
    blur = augmentation.RandomGaussianBlur((23, 23), (0.1, 2.0), p=0.5)
    return {
        "no operation": [],
        "color_jitter 0.8, grayscale 0.2": colors,
        "the same, gaussian_blur 0.5": [*colors, blur],
    }


def rate(work: Callable[[], int], seconds: float) -> float:
    """Samples a second; `work` returns how many it made."""
    work()
    torch.cuda.synchronize()
    made = 0
    start = time.perf_counter()
    while time.perf_counter() < start + seconds:
        made += work()
        torch.cuda.synchronize()
    return made / (time.perf_counter() - start)


def time_torchvision(
    operations: list[torch.nn.Module], pictures: torch.Tensor, size: int, seconds: float
) -> float:
    pipeline = v2.Compose(
        [
            v2.RandomResizedCrop(size, antialias=True),
            v2.RandomHorizontalFlip(),
            *operations,
            v2.ToDtype(torch.float16, scale=True),
            v2.Normalize(MEAN, STD),
        ]
    )

    def work() -> int:
        torch.stack([pipeline(picture) for picture in pictures])
        return len(pictures)

    return rate(work, seconds)


def time_kornia(
    operations: list[torch.nn.Module], pictures: torch.Tensor, size: int, seconds: float
) -> float:
    from kornia import augmentation

    pipeline = torch.nn.Sequential(
        augmentation.RandomResizedCrop((size, size)),
        augmentation.RandomHorizontalFlip(),
        *operations,
        augmentation.Normalize(torch.tensor(MEAN), torch.tensor(STD)),
    ).to(pictures.device)

    def work() -> int:
        pipeline(pictures.float() / 255).half()
        return len(pictures)

    return rate(work, seconds)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("report", help="of shardbench transform --json")
    parser.add_argument("--seconds", type=float, default=2.0, help="of each figure")
    parser.add_argument("--json", help="write the figures here")
    arguments = parser.parse_args()
    with open(arguments.report) as file:
        report = json.load(file)
    side, size = report["side"], report["size"]
    generator = torch.Generator().manual_seed(1)
    coarse = torch.rand((64, 3, side // 16, side // 16), generator=generator)
    smooth = torch.nn.functional.interpolate(coarse, side, mode="bilinear")
    pictures = (smooth * 255).to(torch.uint8).cuda()
    rivals = {
        "torchvision": (torchvision_operations(), time_torchvision),
        "kornia": (kornia_operations(), time_kornia),
    }
    figures = []
    for case in report["cases"]:
        rates = case.get("samples_per_second")
        if not rates:
            continue
        figure = {"name": case["name"], "shardify": sorted(rates)[len(rates) // 2]}
        for rival, (operations, time_it) in rivals.items():
            if case["name"] in operations:
                figure[rival] = time_it(operations[case["name"]], pictures, size, arguments.seconds)
        if len(figure) == 2:
            continue
        others = ", ".join(
            f"{name} {figure[name]:,.0f} ({figure['shardify'] / figure[name]:.0f} times slower)"
            for name in rivals
            if name in figure
        )
        print(f"{case['name']:34} {figure['shardify']:12,.0f} samples/s; {others}", flush=True)
        figures.append(figure)
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump({"device": torch.cuda.get_device_name(), "cases": figures}, file, indent=1)


if __name__ == "__main__":
    main()
