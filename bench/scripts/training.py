#!/usr/bin/env python3
"""What a loader takes from training on the same GPU: images/s of compiled networks, float16.

    training.py PLAIN JPEG [--folder IMAGES] [--models NAME,...] [--seconds S] [--rounds N] [--json FILE]

PLAIN: images of 224 pixels as they are (`shardify --size 224 --codec none`), flipped at random. JPEG: whole
files (`shardify --size original --codec jpeg`), random resized crops of 224 and flips; with --folder the
files themselves, too, not converted. "one batch" trains on one batch again and again. The data take turns in
each round; the table has medians, and what each has of the images/s of PLAIN. Prints JSON.
"""

import argparse
import json
import statistics
import time

import torch
import torchvision

import shardloader as sl

BATCH = 256
CROPS = {"random_resized_crop": 224, "flip": True}


def make_step(name):
    model = getattr(torchvision.models, name)(num_classes=1000)
    network = torch.compile(model.cuda().to(memory_format=torch.channels_last))
    optimizer = torch.optim.SGD(network.parameters(), 0.01, momentum=0.9)
    scaler = torch.amp.GradScaler("cuda")

    def step(images, labels):
        with torch.autocast("cuda", torch.float16):
            loss = torch.nn.functional.cross_entropy(network(images), labels)
        optimizer.zero_grad(set_to_none=True)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()

    return step


class Epochs:
    """Batches of a loader without end."""

    def __init__(self, data, **options):
        options = {"dtype": "float16", "layout": "nhwc", "framework": "torch", **options}
        self.loader = sl.Loader(data, BATCH, device="cuda:0", **options)
        self.batches = self.all()

    def all(self):
        while True:
            yield from self.loader

    def __next__(self):
        images, labels = next(self.batches)
        return images.permute(0, 3, 1, 2), labels  # channels_last


class OneBatch:
    def __init__(self, batch):
        self.batch = tuple(part.clone(memory_format=torch.preserve_format) for part in batch)

    def __next__(self):
        return self.batch


def images_a_second(step, batches, seconds):
    for _ in range(5):
        step(*next(batches))
    torch.cuda.synchronize()
    begin, steps = time.perf_counter(), 0
    while time.perf_counter() - begin < seconds:
        for _ in range(10):
            step(*next(batches))
        steps += 10
        torch.cuda.synchronize()
    return steps * BATCH / (time.perf_counter() - begin)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("plain")
    parser.add_argument("jpeg")
    parser.add_argument("--folder")
    parser.add_argument("--models", default="resnet18,resnet50")
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json")
    given = parser.parse_args()
    data = {
        "plain": Epochs(sl.Dataset(given.plain), flip=True),
        "jpeg": Epochs(sl.Dataset(given.jpeg), **CROPS),
    }
    if given.folder:
        data["folder"] = Epochs(sl.Source(given.folder, size="original"), prefetch=8, **CROPS)
    data["one batch"] = OneBatch(next(data["plain"]))
    rows = []
    for name in given.models.split(","):
        step = make_step(name)
        rates = {kind: [] for kind in data}
        for batches in data.values():
            images_a_second(step, batches, 1)
        for _ in range(given.rounds):
            for kind, batches in data.items():
                rates[kind].append(images_a_second(step, batches, given.seconds))
        plain = rates["plain"]
        for kind, all_rates in rates.items():
            shares = sorted(rate / base for rate, base in zip(all_rates, plain, strict=True))
            row = {"model": name, "data": kind, "images_per_s": round(statistics.median(all_rates))}
            row["of_plain"] = [round(statistics.median(shares), 4), round(shares[0], 4), round(shares[-1], 4)]
            rows.append(row)
            print(json.dumps(row), flush=True)
    if given.json:
        with open(given.json, "w") as file:
            json.dump({"device": torch.cuda.get_device_name(), "rows": rows}, file, indent=1)


if __name__ == "__main__":
    main()
