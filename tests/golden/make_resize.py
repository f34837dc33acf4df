#!/usr/bin/env python3
"""Writes tests/golden/resize: small images and what Pillow makes of them.

sources.npy, expected.npy: uint8, all arrays one after the other, [row, column, channel].
cases.txt, a line each:
  source WIDTH HEIGHT
  case SOURCE FILTER RESIZE SQUASH_W SQUASH_H CROP_W CROP_H     (0: not given; SOURCE counts from 0)
Run with Pillow 9.4 or later and numpy; the result does not depend on their versions.
"""

import pathlib

import numpy as np
from PIL import Image

FILTERS = {"box": Image.BOX, "bilinear": Image.BILINEAR, "bicubic": Image.BICUBIC, "lanczos": Image.LANCZOS}
SIZES = [(67, 45), (31, 64), (1, 1), (3, 200), (150, 2), (40, 40)]
# (resize, squash, crop)
GEOMETRIES = [
    (16, None, (16, 16)),
    (19, None, (12, 17)),  # differences that are odd: round half to even
    (45, None, (20, 11)),
    (90, None, (33, 8)),
    (0, (23, 9), None),
    (0, (20, 35), (13, 30)),
]


def make_source(index, width, height):
    random = np.random.RandomState(index)
    if index % 2:  # extremes: the largest overshoot
        return (random.randint(0, 2, (height, width, 3)) * 255).astype(np.uint8)
    y, x = np.mgrid[0:height, 0:width]
    smooth = 128 + 90 * np.sin(x / 5.0 + y / 9.0)[..., None] * np.array([1.0, -0.7, 0.4])
    return np.clip(smooth + random.normal(0, 25, (height, width, 3)), 0, 255).astype(np.uint8)


def resized_size(width, height, short):
    """torchvision.transforms.functional.resize: _compute_resized_output_size."""
    if width <= height:
        return short, int(short * height / width)
    return int(short * width / height), short


def center_crop(image, width, height):
    """torchvision.transforms.functional.center_crop."""
    top = int(round((image.height - height) / 2.0))
    left = int(round((image.width - width) / 2.0))
    return image.crop((left, top, left + width, top + height))


def main():
    folder = pathlib.Path(__file__).parent / "resize"
    folder.mkdir(exist_ok=True)
    lines, sources, expected = [], [], []
    for index, (width, height) in enumerate(SIZES):
        array = make_source(index, width, height)
        sources.append(array.ravel())
        lines.append(f"source {width} {height}")
    for index, (width, height) in enumerate(SIZES):
        image = Image.fromarray(sources[index].reshape(height, width, 3))
        for name, method in FILTERS.items():
            for resize, squash, crop in GEOMETRIES:
                out = image.resize(squash or resized_size(width, height, resize), method)
                if crop:
                    out = center_crop(out, *crop)
                expected.append(np.asarray(out).ravel())
                sizes = [*(squash or (0, 0)), *(crop or (0, 0))]
                lines.append(f"case {index} {name} {resize} " + " ".join(map(str, sizes)))
    np.save(folder / "sources.npy", np.concatenate(sources))
    np.save(folder / "expected.npy", np.concatenate(expected))
    (folder / "cases.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
