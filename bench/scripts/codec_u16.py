#!/usr/bin/env python3
"""What codecs make of images of 16 bits: bits per value, and how fast zstd gives the bytes back
(without the filter).

  bench/scripts/codec_u16.py PHOTOS [--count 24]

PHOTOS: a folder of photographs. They are decoded to 16 bits: to linear light, scaled to 0.83 of their size,
and back. "8 bits x 257": the same photographs of 8 bits, as `shardify --dtype u16` stores them. "depth":
synthetic depth maps, with noise and holes. Needs numpy, Pillow and zstandard.
"""

import argparse
import time
from pathlib import Path

import numpy as np
import zstandard
from PIL import Image


def photo(path):
    image = np.asarray(Image.open(path).convert("RGB")).astype(np.float64) / 255
    linear = np.where(image <= 0.04045, image / 12.92, ((image + 0.055) / 1.055) ** 2.4)
    height, width = linear.shape[:2]
    size = (round(width * 0.83), round(height * 0.83))
    planes = [
        Image.fromarray(linear[..., c].astype(np.float32)).resize(size, Image.BILINEAR) for c in range(3)
    ]
    linear = np.clip(np.stack([np.asarray(plane) for plane in planes], -1).astype(float)[:256, :256], 0, 1)
    gamma = np.where(linear <= 0.0031308, linear * 12.92, 1.055 * linear ** (1 / 2.4) - 0.055)
    return np.clip(np.rint(gamma * 65535), 0, 65535).astype(np.uint16)


def depth(seed):
    random = np.random.default_rng(seed)
    y, x = np.mgrid[0:256, 0:256].astype(float)
    metres = 2000 + 8 * y + 3 * x * np.sin(seed)
    for _ in range(12):
        left, top, near, radius = (
            random.uniform(0, 256),
            random.uniform(0, 256),
            random.uniform(500, 9000),
            random.uniform(10, 60),
        )
        square = (x - left) ** 2 + (y - top) ** 2
        metres = np.where(square < radius * radius, near + 0.02 * square, metres)
    metres += random.normal(0, 2, metres.shape)
    metres[random.random(metres.shape) < 0.01] = 0
    return np.clip(np.rint(metres), 0, 65535).astype(np.uint16)[..., None]


def left(image):
    out = image.copy()
    out[:, 1:] -= image[:, :-1]
    return out


def fold(image):
    signed = image.astype(np.int16).astype(np.int32)
    return ((signed << 1) ^ (signed >> 15)).astype(np.uint16)


def shuffled(image):
    pairs = np.ascontiguousarray(image).view(np.uint8).reshape(-1, 2)
    return np.concatenate([pairs[:, 0], pairs[:, 1]]).tobytes()


def median(image):
    a = image.astype(np.int64)
    west, north, corner = np.zeros_like(a), np.zeros_like(a), np.zeros_like(a)
    west[:, 1:], north[1:], corner[1:, 1:] = a[:, :-1], a[:-1], a[:-1, :-1]
    low, high = np.minimum(west, north), np.maximum(west, north)
    guess = np.where(corner >= high, low, np.where(corner <= low, high, west + north - corner))
    return ((a - guess) & 0xFFFF).astype(np.uint16)


def packed_bits(image):
    """Of codec packed with residuals of 16 bits: groups of 8 x 2, each with one width,
    and half a byte for it."""
    residuals = median(image).astype(np.int16).astype(np.int64)
    height, width, channels = residuals.shape
    residuals = residuals[: height // 2 * 2, : width // 8 * 8]
    groups = (
        residuals.reshape(height // 2, 2, width // 8, 8, channels).transpose(0, 2, 4, 1, 3).reshape(-1, 16)
    )
    most = np.maximum(groups.max(1), -groups.min(1) - 1)
    bits = np.where((groups == 0).all(1), 0, np.ceil(np.log2(np.maximum(most, 0) + 1)).astype(int) + 1)
    return (16 * bits + 5).sum() / groups.size


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("photos", type=Path)
    parser.add_argument("--count", type=int, default=24)
    given = parser.parse_args()
    paths = sorted(given.photos.rglob("*.jpg"))[: given.count]
    sets = {
        "photographs": [photo(path) for path in paths],
        "8 bits x 257": [
            np.asarray(Image.open(path).convert("RGB"))[:256, :256].astype(np.uint16) * 257 for path in paths
        ],
        "depth": [depth(seed) for seed in range(given.count)],
    }
    filters = {
        "as it is": lambda image: image.tobytes(),
        "shuffle": shuffled,
        "left, shuffle": lambda image: shuffled(left(image)),
        "left, fold, shuffle": lambda image: shuffled(fold(left(image))),
        "median, fold, shuffle": lambda image: shuffled(fold(median(image))),
    }
    for name, images in sets.items():
        values = sum(image.size for image in images)
        for level in (1, 3):
            for what, apply in filters.items():
                frames = [zstandard.ZstdCompressor(level=level).compress(apply(image)) for image in images]
                back = zstandard.ZstdDecompressor()
                begin = time.process_time()
                for frame in frames:
                    back.decompress(frame)
                seconds = time.process_time() - begin
                print(
                    f"{name:13} zstd:{level} {what:22} {8 * sum(map(len, frames)) / values:6.2f} bits per "
                    f"value, {2 * values / seconds / 1e9:.2f} GB/s"
                )
        print(
            f"{name:13} packed, 16 bits {'':18} {np.mean([packed_bits(image) for image in images]):6.2f} "
            "bits per value"
        )


if __name__ == "__main__":
    main()
