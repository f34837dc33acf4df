#!/usr/bin/env python3
"""Batches of every size from Python on one GPU, samples that are tiny, and the change of epochs.

    batch_sizes.py SHARDIFY FOLDER --images IMAGES [--photos 12000] [--seconds 0.4] [--rounds 3] [--json FILE]

FOLDER receives the data sets (kept). A loop takes each batch and, unless the row says otherwise, starts one
small kernel on it. Rounds alternate over all cases. Rates are medians of the rounds, with their lowest and
highest; shares are of the link: blocks of 256 MiB from pinned memory, in turn with the cases of each round.
    sweep     224x224, mapped: plain and packed; u8, f16 (NCHW) and random-resized crop with flip, f16;
              batches of 8 to 1,024
    idle      f16 of 32, in a loop that touches nothing
    tiny      50,000 samples of 32x32: random crop with a padding of 4, flip, f16, batches of 2,000
    resident  224x224 to f16, batches of 256
    epochs    of a resident set, of 4 batches: microseconds of an epoch beyond those of its batches
"""

import argparse
import json
import os
import statistics
import subprocess
import time

import torch

import shardloader as sl

SIZES = 8, 16, 32, 64, 128, 256, 512, 1024
F16 = {"dtype": "float16", "layout": "nchw"}
VIEWS = {"u8": {}, "f16": F16, "rrc": {**F16, "random_resized_crop": 224, "flip": True}}


def converted(shardify, folder, images, photos, codec):
    """A data set of so many samples, the images under many names."""
    out = os.path.join(folder, f"photos-{codec}")
    if os.path.exists(os.path.join(out, "dataset.json")):
        return out
    sources = [
        os.path.join(at, file)
        for at, _, files in os.walk(images)
        for file in files
        if file.lower().endswith((".jpg", ".jpeg"))
    ]
    for number in range(photos):
        link = os.path.join(folder, "images", str(number % 10), f"{number}.jpg")
        os.makedirs(os.path.dirname(link), exist_ok=True)
        if not os.path.lexists(link):
            os.symlink(os.path.abspath(sources[number % len(sources)]), link)
    size = ["--resize", "256", "--crop", "224", "--dtype", "u8", "--layout", "nhwc", "--codec", codec]
    subprocess.run([shardify, os.path.join(folder, "images"), out, *size, "--quiet"], check=True)
    return out


def tiny_set(folder):
    """50,000 random samples of 32x32."""
    out = os.path.join(folder, "tiny")
    if not os.path.exists(os.path.join(out, "dataset.json")):
        generator = torch.Generator().manual_seed(0)
        with sl.Writer(out, size=32) as writer:
            for number in range(50_000):
                image = torch.randint(0, 256, (32, 32, 3), dtype=torch.uint8, generator=generator)
                writer.add(str(number), image.numpy(), number % 10)
    return out


def is_registered(loader):
    """Whether the device reads all shards where they are, or has all samples."""
    folder = loader.data.path
    shards = [os.path.getsize(os.path.join(folder, name)) for name in os.listdir(folder) if "shard-" in name]
    return loader.stats().transport == "resident" or loader.stats().registered_bytes >= 0.98 * sum(shards)


class Case:
    """A loader that lives for one round, and what it gave in each."""

    def __init__(self, name, data, touches=True, **options):
        self.name, self.data, self.touches, self.options = name, data, touches, options
        self.rates, self.link = [], []

    def run(self, seconds, sample_bytes, link):
        """Adds the samples/s of about so many seconds, after epochs that warm up."""
        loader = sl.Loader(self.data, device="cuda:0", **self.options)
        epoch, began = 0, time.perf_counter()
        while epoch < 2 or not (is_registered(loader) or time.perf_counter() - began > 15):
            self.epoch(loader, epoch)
            epoch += 1
        torch.cuda.synchronize()
        began, done = time.perf_counter(), 0
        while time.perf_counter() - began < seconds:
            done += self.epoch(loader, epoch)
            epoch += 1
        torch.cuda.synchronize()
        self.rates.append(done / (time.perf_counter() - began))
        self.link.append(self.rates[-1] * sample_bytes / link)

    def epoch(self, loader, number):
        """Samples of one epoch."""
        done = 0
        for images, _ in loader.epoch(number):
            if self.touches:
                images.zero_()
            done += len(images)
        return done

    def report(self):
        """Median, lowest and highest."""
        rates, link = sorted(self.rates), sorted(self.link)
        return {
            "samples/s": round(statistics.median(rates)),
            "from": round(rates[0]),
            "to": round(rates[-1]),
            "link": round(statistics.median(link), 3),
        }


def link_rate(seconds=0.3):
    """Bytes/s of large copies to the GPU."""
    host = torch.empty(256 << 20, dtype=torch.uint8, pin_memory=True)
    device = torch.empty_like(host, device="cuda:0")
    torch.cuda.synchronize()
    began, done = time.perf_counter(), 0
    while time.perf_counter() - began < seconds:
        device.copy_(host, non_blocking=True)
        torch.cuda.synchronize()
        done += host.numel()
    return done / (time.perf_counter() - began)


def epoch_change(data, seconds=0.5):
    """Microseconds of an epoch of 4 batches beyond what as many batches of a long epoch take."""
    took = {}
    for name, length in (("short", 4), ("long", 40)):
        loader = sl.Loader(
            data, 256, device="cuda:0", transport="resident", samples_per_epoch=length * 256, **F16
        )
        epoch, batches, warm, began = 0, 0, False, time.perf_counter()
        while not warm or time.perf_counter() - began < seconds:
            if not warm and time.perf_counter() - began > 2:  # each sample was drawn, and stays on the GPU
                torch.cuda.synchronize()
                warm, batches, began = True, 0, time.perf_counter()
            for _ in loader.epoch(epoch):
                batches += 1
            epoch += 1
        torch.cuda.synchronize()
        took[name] = (time.perf_counter() - began) / batches
    return {
        "us": round((took["short"] - took["long"]) * 4e6, 1),
        "us of a batch": round(took["long"] * 1e6, 1),
    }


def cases_of(options):
    """All cases, with the bytes of a sample."""
    plain, packed = (
        sl.Dataset(converted(options.shardify, options.folder, options.images, options.photos, codec))
        for codec in ("none", "packed")
    )
    tiny = sl.Dataset(tiny_set(options.folder))
    mapped = {"transport": "mapped", "together": options.together}
    cases = [
        (Case(f"{stored} {view} {size}", data, batch_size=size, **mapped, **how), 224 * 224 * 3)
        for stored, data in (("plain", plain), ("packed", packed))
        for view, how in VIEWS.items()
        for size in SIZES
    ]
    cases.append((Case("plain f16 32 idle", plain, False, batch_size=32, **mapped, **F16), 150528))
    shifted = sl.Augment(ops=[sl.ops.padded_crop(4)], flip=True, **F16)
    crops = {"augment": shifted, "batch_size": 2000}
    for transport in ("resident", "mapped"):
        cases.append((Case(f"tiny {transport}", tiny, transport=transport, **crops), 3072))
    for name, data in (("plain", plain), ("packed", packed)):
        how = {"batch_size": 256, "transport": "resident", **F16}
        cases.append((Case(f"resident {name}", data, **how), 150528))
    return cases, plain


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("shardify")
    parser.add_argument("folder")
    parser.add_argument("--images", required=True)
    parser.add_argument("--photos", type=int, default=12000)
    parser.add_argument("--seconds", type=float, default=0.4)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--together", type=int, default=0, help="batches that are made as one")
    parser.add_argument(
        "--cases", default="", help="only those whose names begin with one of these, by commas"
    )
    parser.add_argument("--json")
    options = parser.parse_args()
    os.makedirs(options.folder, exist_ok=True)
    cases, plain = cases_of(options)
    wanted = [name for name in options.cases.split(",") if name]
    cases = [case for case in cases if not wanted or any(case[0].name.startswith(name) for name in wanted)]
    found = {"device": torch.cuda.get_device_name(), "cases": {}, "link": []}
    for _ in range(options.rounds):
        for number, (case, sample_bytes) in enumerate(cases):
            if number % 8 == 0:
                found["link"].append(link_rate())
            case.run(options.seconds, sample_bytes, found["link"][-1])
    for case, _ in cases:
        found["cases"][case.name] = case.report()
        print(f"{case.name:22}", *(f"{value:>12}" for value in case.report().values()), flush=True)
    found["epoch change"] = epoch_change(plain)
    print(found["epoch change"], [round(rate / 1e9, 2) for rate in found["link"]])
    if options.json:
        with open(options.json, "w", encoding="utf-8") as out:
            json.dump(found, out, indent=1)


if __name__ == "__main__":
    main()
