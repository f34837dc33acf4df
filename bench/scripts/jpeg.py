#!/usr/bin/env python3
"""Original JPEGs from shards to batches on a GPU, in Python: photographs/s and cores, and rivals beside them.

    jpeg.py FOLDER [--seconds S] [--cases NAME,...] [--json FILE]

FOLDER has data sets made by shardify: originals (--size original --codec jpeg), and if they are to be
measured small (--size 256 --codec jpeg --quality 90) and plain (--size 224 --codec none), and a folder files
of the JPEG files. Every case runs for S seconds three times; the median counts. Cores: CPU seconds of the
process per second. Rivals decode the same files: torchvision on the GPU (nvJPEG) and on the processor.
"""

import argparse
import io
import itertools
import json
import pathlib
import random
import statistics
import threading
import time

import numpy as np
import torch
from PIL import Image

import shardloader as sl

CROP = {"random_resized_crop": 224, "flip": True, "dtype": "float16", "layout": "nchw"}


def measure(step, seconds):
    """step() -> photographs. The median of three runs: (photographs/s, cores)."""
    runs = []
    for _ in range(3):
        torch.cuda.synchronize()
        begin, cpu, done = time.perf_counter(), time.process_time(), 0
        while time.perf_counter() - begin < seconds:
            done += step()
        torch.cuda.synchronize()
        wall = time.perf_counter() - begin
        runs.append((done / wall, (time.process_time() - cpu) / wall))
    return statistics.median(rate for rate, _ in runs), statistics.median(cores for _, cores in runs)


def loader_case(data, batch_size, seconds, epochs=3, **options):
    loader = sl.Loader(data, batch_size=batch_size, device="cuda:0", tail="drop", **options)
    for _ in range(epochs):  # registers shards, fills resident memory
        for _ in loader:
            pass

    batches = iter(())

    def step():
        nonlocal batches
        batch = next(batches, None)
        if batch is None:
            batches = iter(loader)
            batch = next(batches)
        return batch_size

    result = measure(step, seconds)
    stats = loader.stats()
    loader.close()
    return *result, stats.device_bytes


def in_threads(threads, work):
    """Runs work(thread) over and over in threads; a step is what they did since the last one."""
    done, stop = [0] * threads, threading.Event()

    def run(number):
        while not stop.is_set():
            done[number] += work(number)

    workers = [threading.Thread(target=run, args=(i,)) for i in range(threads)]
    for worker in workers:
        worker.start()
    before = 0

    def step():
        nonlocal before
        time.sleep(0.05)
        total = sum(done)
        before, new = total, total - before
        return new

    def close():
        stop.set()
        for worker in workers:
            worker.join()

    return step, close


def crop_boxes(sizes, draw):
    """Boxes of torchvision's RandomResizedCrop, without its way back."""
    for width, height in sizes:
        while True:
            area, ratio = (
                draw.uniform(0.08, 1) * width * height,
                np.exp(draw.uniform(np.log(3 / 4), np.log(4 / 3))),
            )
            w, h = round((area * ratio) ** 0.5), round((area / ratio) ** 0.5)
            if 0 < w <= width and 0 < h <= height:
                left, top = draw.randint(0, width - w), draw.randint(0, height - h)
                yield left, top, left + w, top + h
                break


def decode_case(files, threads, batch_size, cropped, seconds):
    pinned = [torch.frombuffer(bytearray(data), dtype=torch.uint8).pin_memory().numpy() for data, _ in files]

    draw = random.Random(1)
    calls = []  # drawn before: that takes longer than a call
    for _ in range(64):
        chosen = [draw.randrange(len(files)) for _ in range(batch_size)]
        boxes = list(crop_boxes((files[i][1] for i in chosen), draw)) if cropped else None
        calls.append(([pinned[i] for i in chosen], boxes))
    turn = itertools.count()

    def work(_):
        chosen, boxes = calls[next(turn) % len(calls)]
        images = sl.decode_jpeg(chosen, "cuda:0", size=224, crop=boxes, dtype="float16", layout="nchw")
        return len(images.images)

    step, close = in_threads(threads, work)
    try:
        return measure(step, seconds)
    finally:
        close()


def torchvision_case(files, device, threads, seconds):
    from torchvision.io import ImageReadMode, decode_jpeg

    tensors = [torch.frombuffer(bytearray(data), dtype=torch.uint8) for data, _ in files]

    def work(number):
        draw = random.Random(number + int(time.perf_counter() * 1e6))
        chosen = [tensors[draw.randrange(len(tensors))] for _ in range(64)]
        if device == "cpu":
            for data in chosen:
                decode_jpeg(data, mode=ImageReadMode.RGB)
        else:
            decode_jpeg(chosen, mode=ImageReadMode.RGB, device=device)
        return len(chosen)

    step, close = in_threads(threads, work)
    try:
        return measure(step, seconds)
    finally:
        close()


def differences(files):
    """Of all values, those that are not Pillow's, and by how much: of decode_jpeg and of torchvision."""
    from torchvision.io import ImageReadMode, decode_jpeg

    totals = {"shardloader": [0, 0, 0], "torchvision cuda": [0, 0, 0]}
    ours = sl.decode_jpeg([data for data, _ in files], "cuda:0").images
    for (data, _), image in zip(files, ours, strict=True):
        right = np.asarray(Image.open(io.BytesIO(data)).convert("RGB")).astype(np.int16)
        theirs = decode_jpeg(
            torch.frombuffer(bytearray(data), dtype=torch.uint8), mode=ImageReadMode.RGB, device="cuda"
        )
        for name, values in (
            ("shardloader", image.cpu().numpy()),
            ("torchvision cuda", theirs.permute(1, 2, 0).cpu().numpy()),
        ):
            off = np.abs(values.astype(np.int16) - right)
            total = totals[name]
            total[0] += off.size
            total[1] += int((off > 0).sum())
            total[2] = max(total[2], int(off.max()))
    return totals


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--cases", default="")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    originals, small, plain = (str(options.folder / name) for name in ("originals", "small", "plain"))
    simclr = [sl.Augment(random_resized_crop=224, flip=0.5), sl.Augment(random_resized_crop=224, flip=0.5)]
    view = {"dtype": "float16", "layout": "nchw"}
    recipe = sl.Augment(random_resized_crop=224, flip=0.5, ops=[sl.ops.rand_augment()])

    def load(data, size, **more):
        return lambda: loader_case(data, size, options.seconds, **more)

    cases = {
        "originals, 256": load(originals, 256, **CROP),
        "originals, 64": load(originals, 64, **CROP),
        "originals, 32": load(originals, 32, **CROP),
        "originals, resident": load(originals, 256, transport="resident", **CROP),
        "originals, staged": load(originals, 256, transport="staged", **CROP),
        "originals, two views": load(originals, 256, views=simclr, **view),
        "originals, RandAugment": load(originals, 256, augment=recipe, **view),
        "small, 256": load(small, 256, **CROP),
        "small, resident": load(small, 256, transport="resident", **CROP),
        "plain, 256": load(plain, 256, flip=True, **view),
    }
    folder = options.folder / "files"
    if folder.is_dir():
        files = []
        for path in sorted(folder.rglob("*.jpg"))[:480]:
            files.append((path.read_bytes(), Image.open(path).size))
        for threads in (1, 4, 8):
            cases[f"decode_jpeg, {threads} threads"] = lambda t=threads: decode_case(
                files, t, 256, False, options.seconds
            )
            cases[f"decode_jpeg, crop, {threads} threads"] = lambda t=threads: decode_case(
                files, t, 256, True, options.seconds
            )
        cases["torchvision, GPU"] = lambda: torchvision_case(files, "cuda", 4, options.seconds)
        cases["torchvision, 16 threads"] = lambda: torchvision_case(files, "cpu", 16, options.seconds)
    wanted = [name.strip() for name in options.cases.split(",") if name.strip()] if options.cases else None
    results = {"device": torch.cuda.get_device_name(0)}
    for name, run in cases.items():
        if wanted and not any(name.replace(",", "").startswith(each) for each in wanted):
            continue
        try:
            rate, cores, *memory = run()
        except (sl.Error, FileNotFoundError, RuntimeError) as error:
            print(f"{name:28} {error}", flush=True)
            continue
        results[name] = {"photographs/s": round(rate), "cores": round(cores, 2)}
        note = f", {memory[0] / 2**30:.2f} GiB on the device" if memory else ""
        if memory:
            results[name]["device_bytes"] = memory[0]
        print(f"{name:28} {rate:11,.0f} photographs/s, {cores:5.2f} cores{note}", flush=True)
    if folder.is_dir() and (not wanted or "differences" in wanted):
        results["differences from Pillow [values, different, most]"] = differences(files[:240])
        print(results["differences from Pillow [values, different, most]"])
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
