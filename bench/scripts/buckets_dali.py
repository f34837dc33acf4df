#!/usr/bin/env python3
"""Aspect-ratio buckets by DALI, from JPEG files in memory to float16 batches on a GPU: samples/s.

    buckets_dali.py IMAGES [THREADS] [SECONDS]

The batches of buckets_pytorch.py, each from one bucket, come to DALI by its external source, as it has no
buckets of its own: the bytes of the files, the size of the smallest image that covers the bucket, and the
bucket. It decodes in the GPU's hardware, resizes with antialiasing and cuts out the middle. Also prints how
far its pixels are from Pillow's, which shardify delivers.
"""

import pathlib
import sys
import time

import numpy as np
from nvidia.dali import fn, pipeline_def, types
from PIL import Image

from buckets_pytorch import BATCH, batches, buckets


def covering(rows, columns, bucket):
    scale = max(bucket[0] / rows, bucket[1] / columns)
    return [max(bucket[0], round(rows * scale)), max(bucket[1], round(columns * scale))]


def made(source, threads, dtype, batch_size):
    """A pipeline of what `source` yields: lists of bytes, sizes and buckets."""

    @pipeline_def(batch_size=batch_size, num_threads=threads, device_id=0, prefetch_queue_depth=4)
    def pipeline():
        files, size, bucket = fn.external_source(
            source, num_outputs=3, batch=True, dtype=[types.UINT8, types.FLOAT, types.FLOAT], ndim=[1, 1, 1]
        )
        images = fn.decoders.image(files, device="mixed", output_type=types.RGB, hw_decoder_load=1.0)
        images = fn.resize(images, size=size, interp_type=types.INTERP_LINEAR, antialias=True)
        scale = 1.0 if dtype == types.UINT8 else 255.0
        return fn.crop_mirror_normalize(
            images, crop=bucket, dtype=dtype, output_layout="CHW", mean=[0.0], std=[scale]
        )

    built = pipeline()
    built.build()
    return built


def items(members, files, sizes):
    return (
        [files[number] for number, _ in members],
        [np.float32(covering(*sizes[number], bucket)) for number, bucket in members],
        [np.float32(bucket) for _, bucket in members],
    )


def main():
    folder, threads, seconds = sys.argv[1], *(sys.argv[2:4] + ["16", "10"][len(sys.argv[2:4]) :])
    by_file, files, sizes = {}, [], []
    paths = sorted(str(path) for path in pathlib.Path(folder).rglob("*.jpg"))
    for path in paths:
        file = pathlib.Path(path).stat().st_ino  # links have the bytes of their file
        if file not in by_file:
            with Image.open(path) as image:
                by_file[file] = np.fromfile(path, np.uint8), image.size[::-1]
        files.append(by_file[file][0])
        sizes.append(by_file[file][1])
    all_buckets = buckets()

    def source():
        for seed in range(1000):
            for members in batches(sizes, all_buckets, seed):
                yield items(members, files, sizes)

    pipeline = made(source(), int(threads), types.FLOAT16, BATCH)
    for _ in range(20):
        pipeline.run()
    start, count = time.perf_counter(), 0
    while time.perf_counter() - start < float(seconds):
        count += len(pipeline.run()[0].as_tensor())
    rate = count / (time.perf_counter() - start)
    print(f"{len(all_buckets)} buckets, {threads} threads: {rate:.0f}/s")

    some = list(range(0, len(files), max(1, len(files) // 100)))[:100]
    square = [(number, (256, 256)) for number in some]
    check = made(iter([items(square, files, sizes)]), int(threads), types.UINT8, len(some))
    theirs = check.run()[0].as_cpu()
    differences = []
    for place, number in enumerate(some):
        with Image.open(paths[number]) as image:
            whole = image.convert("RGB")
        height, width = covering(*sizes[number], (256, 256))
        resized = np.asarray(whole.resize((width, height), Image.BILINEAR), np.int16)
        top, left = round((height - 256) / 2), round((width - 256) / 2)
        ours = resized[top : top + 256, left : left + 256].transpose(2, 0, 1)
        differences.append(np.abs(ours - np.asarray(theirs.at(place)).astype(np.int16)))
    found = np.stack(differences)
    print(f"pixels: mean difference {found.mean():.3f} levels, at most {found.max()}")


if __name__ == "__main__":
    main()
