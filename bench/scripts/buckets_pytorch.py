#!/usr/bin/env python3
"""Aspect-ratio buckets by PyTorch's DataLoader, from JPEG files to float16 batches on a GPU: samples/s.

    buckets_pytorch.py IMAGES [WORKERS] [SECONDS]

Decodes and resizes with torchvision (antialias, bilinear) to the bucket of the nearest aspect ratio, the
middle of it, in batches of 256 from one bucket each. The buckets have the area, the step and the aspect ratio
of `shardbench load --buckets 65536:16:2.6`. Also prints how far its pixels are from Pillow's, which shardify
delivers.
"""

import math
import pathlib
import random
import sys
import time

import numpy as np
import torch
from PIL import Image
from torchvision.io import ImageReadMode, decode_jpeg, read_file
from torchvision.transforms.v2 import functional as F

BATCH = 256


def buckets(area=65536, step=16, most=2.6):
    """The highest and the widest multiple of step for each side: at most area pixels."""
    found = set()
    for height in range(step, area // step + 1, step):
        width = area // height // step * step
        if width and max(height / width, width / height) <= most:
            found.add((height, width))
    return sorted(found)


class Files(torch.utils.data.Dataset):
    def __init__(self, paths):
        self.paths = paths

    def __getitem__(self, item):
        number, (height, width) = item
        image = decode_jpeg(read_file(self.paths[number]), mode=ImageReadMode.RGB)
        return cover(image, height, width)


def cover(image, height, width):
    rows, columns = image.shape[-2:]
    scale = max(height / rows, width / columns)
    size = [max(height, round(rows * scale)), max(width, round(columns * scale))]
    return F.center_crop(F.resize(image, size, antialias=True), [height, width])


def batches(sizes, all_buckets, seed):
    draw = random.Random(seed)
    lists = [[] for _ in all_buckets]
    for number, (rows, columns) in enumerate(sizes):
        nearest = min(
            range(len(all_buckets)),
            key=lambda i: abs(math.log(all_buckets[i][0] / all_buckets[i][1] * columns / rows)),
        )
        lists[nearest].append(number)
    result = []
    for members, size in zip(lists, all_buckets):
        draw.shuffle(members)
        result += [
            [(n, size) for n in members[i : i + BATCH]] for i in range(0, len(members) - BATCH + 1, BATCH)
        ]
    draw.shuffle(result)
    return result


def main():
    folder, workers, seconds = sys.argv[1], *(sys.argv[2:4] + ["16", "20"][len(sys.argv[2:4]) :])
    paths = sorted(str(path) for path in pathlib.Path(folder).rglob("*.jpg"))
    by_file = {}
    sizes = []
    for path in paths:
        file = pathlib.Path(path).stat().st_ino  # links have the size of their file
        if file not in by_file:
            with Image.open(path) as image:
                by_file[file] = image.size[::-1]
        sizes.append(by_file[file])
    all_buckets = buckets()
    loader = torch.utils.data.DataLoader(
        Files(paths), batch_sampler=batches(sizes, all_buckets, 1), num_workers=int(workers), pin_memory=True,
        prefetch_factor=4,
    )  # fmt: skip
    start, count, first = time.perf_counter(), 0, None
    for batch in loader:
        images = batch.to("cuda", non_blocking=True).to(torch.float16) / 255
        torch.cuda.current_stream().synchronize()
        if first is None:
            first, start = time.perf_counter() - start, time.perf_counter()
            continue
        count += len(images)
        if time.perf_counter() - start > float(seconds):
            break
    rate = count / (time.perf_counter() - start)
    print(f"{len(all_buckets)} buckets, {workers} workers: {rate:.0f}/s, first batch after {first:.2f} s")
    differences = []
    for path in paths[:: max(1, len(paths) // 100)]:
        with Image.open(path) as image:
            whole = image.convert("RGB")
        rows, columns = whole.height, whole.width
        scale = max(256 / rows, 256 / columns)
        size = (max(256, round(columns * scale)), max(256, round(rows * scale)))
        ours = F.center_crop(
            torch.from_numpy(np.array(whole.resize(size, Image.BILINEAR))).permute(2, 0, 1), [256, 256]
        )
        theirs = cover(decode_jpeg(read_file(path), mode=ImageReadMode.RGB), 256, 256)
        differences.append((ours.int() - theirs.int()).abs())
    found = torch.stack(differences).float()
    print(f"pixels: mean difference {found.mean():.3f} levels, at most {found.max():.0f}")


if __name__ == "__main__":
    main()
