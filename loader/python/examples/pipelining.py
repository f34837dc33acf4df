#!/usr/bin/env python3
"""One small network, fed in six ways: where the time of a batch goes.

    python pipelining.py out/train --images images/train --workers 16 --chart ways.png
    python pipelining.py out/train --images images/train --bench [--shardbench build/release/bin/shardbench]

DATA is a data set of shardify's, uint8 NHWC, codec none. The DataLoader ways decode --images (torchvision:
JPEG, resized to the data set's size), or read samples of DATA where that is not given. Load: the loop waits
for a batch. Transfer: its copy to the device. Train: the step. (Transfer and Train by events in the stream,
so they overlap with Load.) Total: of all, by the clock. --bench: no network; samples/s into the device for
batches of 256 and 32, also as normalised float16 and from a data set with codec packed (--packed), and the
C++ figure beside each (--shardbench). Needs torch.
"""

import argparse
import json
import subprocess
import time

import numpy as np
import torch
from torch import nn

import shardloader as sl
from feeding import shard_ways, ways
from support import Clock, small_cnn


def measure(batches, device, steps, train):
    """Milliseconds a batch: load, transfer, train, total. The first batch is not counted."""
    clock, load, marks, begin = Clock(device), 0.0, [], time.perf_counter()
    for step in range(steps + 1):
        if step == 1:
            clock.wait()
            load, marks, begin = 0.0, [], time.perf_counter()
        asked = time.perf_counter()
        images, labels = next(batches)
        load += time.perf_counter() - asked
        a = clock.mark()
        images, labels = images.to(device, non_blocking=True), labels.to(device, non_blocking=True)
        b = clock.mark()
        train(images, labels)
        marks.append((a, b, clock.mark()))
    clock.wait()
    total = time.perf_counter() - begin
    parts = [sum(clock.ms(m[i], m[i + 1]) for m in marks) for i in range(2)]
    return [1e3 * load / steps, parts[0] / steps, parts[1] / steps, 1e3 * total / steps]


def rate(batches, device, warm, seconds):
    """samples/s into the device for so many seconds, after `warm` batches."""

    def into_device():
        images, labels = next(batches)
        images, labels = images.to(device, non_blocking=True), labels.to(device, non_blocking=True)
        return len(labels)

    clock = Clock(device)
    for _ in range(warm):
        into_device()
    clock.wait()
    samples, begin = 0, time.perf_counter()
    while time.perf_counter() < begin + seconds:
        samples += into_device()
    clock.wait()
    return samples / (time.perf_counter() - begin)


def trainer(device, classes):
    net = small_cnn(device, classes)
    optimizer = torch.optim.SGD(net.parameters(), 0.01)

    def train(images, labels):
        loss = nn.functional.cross_entropy(net(images.permute(0, 3, 1, 2).float().div(255)), labels)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()

    return train


def cpp_rate(args, device, batch, what):
    name = str(device) if device.type == "cuda" else "host"
    done = subprocess.run(
        [args.shardbench, "load", *what, "--device", name, "--batch-size", str(batch), "--json", "-"],
        check=True,
        stdout=subprocess.PIPE,
    )
    return float(np.median([sample["samples_per_second"] for sample in json.loads(done.stdout)["samples"]]))


def bench(args, device, batch, samples):
    """Name -> samples/s."""
    rates, ours = {}, shard_ways(args, device, batch)
    for name, begin in {**ways(args, device, batch), **{name: way[0] for name, way in ours.items()}}.items():
        warm = samples // batch if name == "numpy.memmap" else 4 * args.workers
        rates[name] = rate(begin(), device, warm, args.seconds)
        print(f"{name:36}{rates[name]:12.0f} samples/s", end="", flush=True)
        if args.shardbench and name in ours:
            rates[f"{name}, C++"] = cpp_rate(args, device, batch, ours[name][1])
            print(f", {rates[name] / rates[name + ', C++']:.2f} of C++", end="")
        print()
    most, slowest = rates["shardloader"], {name: r for name, r in rates.items() if "shardloader" not in name}
    print(
        "shardloader is " + ", ".join(f"{most / r:.1f} times {name.strip()}" for name, r in slowest.items())
    )
    return rates


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data")
    parser.add_argument("--images", help="folder of classes of JPEG files, to decode")
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--device", default="cuda:0" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--bench", action="store_true")
    parser.add_argument("--seconds", type=float, default=5, help="of each way of --bench")
    parser.add_argument("--batch-sizes", default="256,32", help="of --bench")
    parser.add_argument("--packed", help="of --bench: a data set of the same images with codec packed")
    parser.add_argument("--shardbench", help="of --bench: the program")
    parser.add_argument("--chart", help="a picture (matplotlib)")
    parser.add_argument("--json")
    args = parser.parse_args()
    device, results = torch.device(args.device), {}
    sizes = [int(size) for size in args.batch_sizes.split(",")] if args.bench else [args.batch_size]
    data = sl.Dataset(args.data)
    classes, samples = max(2, int(data.labels.max()) + 1), len(data)
    for batch in sizes:
        if args.bench:
            print(f"batches of {batch}")
            results.update(
                {
                    f"{batch} {name.strip()}": [0, 0, 0, 0, r]
                    for name, r in bench(args, device, batch, samples).items()
                }
            )
            continue
        print(
            f"batches of {batch}, ms a "
            f"batch{'':12}{'Load':>9}{'Transfer':>10}{'Train':>9}{'Total':>9}{'samples/s':>12}"
        )
        for name, begin in ways(args, device, batch).items():
            times = measure(begin(), device, args.steps, trainer(device, classes))
            results[f"{batch} {name.strip()}"] = times + [1e3 * batch / times[3]]
            print(
                f"{name:36}"
                + "".join(f"{t:{w}.3f}" for t, w in zip(times, (9, 10, 9, 9)))
                + f"{1e3 * batch / times[3]:12.0f}",
                flush=True,
            )
    most = max(times[4] for times in results.values())
    for name, times in results.items():
        print(f"{name:40} {'#' * max(1, round(40 * times[4] / most))} {times[4]:.0f}")
    if args.json:
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump(results, file, indent=1)
    if args.chart:
        import matplotlib.pyplot as plt

        plt.barh(list(results), [times[4] for times in results.values()])
        plt.xlabel("samples/s")
        plt.tight_layout()
        plt.savefig(args.chart)


if __name__ == "__main__":
    main()
