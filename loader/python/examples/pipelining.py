#!/usr/bin/env python3
"""One small network, fed in six ways: where the time of a batch goes.

    python pipelining.py out/train --images images/train --workers 16 --chart ways.png
    python pipelining.py out/train --images images/train --bench [--shardbench build/release/bin/shardbench]

DATA is a data set of shardify's, uint8 NHWC, codec none. The DataLoader ways decode --images (torchvision: JPEG, resized to the
data set's size), or read samples of DATA where that is not given. Load: the loop waits for a batch. Transfer: its copy to the
device. Train: the step. (Transfer and Train by events in the stream, so they overlap with Load.) Total: of all, by the clock.
--bench: no network; samples/s into the device for batches of 256 and 32, and the C++ figure beside it. Needs torch.
"""
import argparse
import json
import subprocess
import time
import warnings

import numpy as np
import torch
from torch import nn

import shardloader as sl

warnings.filterwarnings("ignore", message="The given NumPy array is not writable")


class Samples(torch.utils.data.Dataset):
    """Samples of a data set through numpy's views of the mapping."""

    def __init__(self, path):
        self.data = sl.Dataset(path)

    def __len__(self):
        return len(self.data)

    def __getitem__(self, index):
        image, label = self.data[index]
        return torch.from_numpy(image), label


def decoded(folder, shape):
    """torchvision's fastest way: its JPEG decoder and uint8 transforms."""
    import torchvision
    from torchvision.transforms import v2

    steps = v2.Compose([v2.Resize(max(shape[:2]), antialias=True), v2.CenterCrop(shape[:2])])
    rgb = torchvision.io.ImageReadMode.RGB
    return torchvision.datasets.ImageFolder(
        folder, loader=lambda path: steps(torchvision.io.decode_image(torchvision.io.read_file(path), rgb)).permute(1, 2, 0).contiguous())


def data_loader(source, batch, workers):
    more = {"num_workers": workers, "prefetch_factor": 4, "persistent_workers": True} if workers else {}
    loader = torch.utils.data.DataLoader(source, batch, shuffle=True, drop_last=True, pin_memory=bool(workers) and torch.cuda.is_available(), **more)
    while True:
        yield from loader


def memmapped(path, batch):
    """One process gathers each batch from the mapping, and has no other thread."""
    data = sl.Dataset(path)
    shards = [data.shard_images(s) for s in range(len(data.info["shards"]))]
    first, labels = np.cumsum([0] + [len(shard) for shard in shards]), data.labels
    while True:
        order = np.random.permutation(len(data))
        for at in range(0, len(data) - batch + 1, batch):
            ids = order[at : at + batch]
            place = np.searchsorted(first, ids, "right") - 1
            yield torch.from_numpy(np.stack([shards[s][i - first[s]] for s, i in zip(place, ids)])), torch.from_numpy(labels[ids])


def prefetched(batches, device):
    """The next batch is copied in a stream of its own while this one is used."""
    if device.type != "cuda":
        yield from batches
        return
    side, ahead = torch.cuda.Stream(), None
    for images, labels in batches:
        with torch.cuda.stream(side):
            coming = images.to(device, non_blocking=True), labels.to(device, non_blocking=True)
        if ahead is not None:
            yield ahead
        torch.cuda.current_stream().wait_stream(side)
        for tensor in coming:
            tensor.record_stream(torch.cuda.current_stream())
        ahead = coming


def sharded(path, batch, device):
    loader = sl.Loader(path, batch_size=batch, device=device, framework="torch")
    while True:
        yield from loader


def ways(args, device, batch):
    """Name -> a function that begins it. Contenders come in the order of the effort they take."""
    source = decoded(args.images, sl.Dataset(args.data).shape) if args.images else Samples(args.data)
    what = "decoding" if args.images else "samples"
    n = args.workers
    return {
        f"DataLoader {what}, 0 workers": lambda: data_loader(source, batch, 0),
        f"DataLoader {what}, {n} workers": lambda: data_loader(source, batch, n),
        f"  and a prefetching stream": lambda: prefetched(data_loader(source, batch, n), device),
        f"memmap + DataLoader, {n} workers": lambda: data_loader(Samples(args.data), batch, n),
        "numpy.memmap": lambda: memmapped(args.data, batch),
        "shardloader": lambda: sharded(args.data, batch, device),
    }


class Clock:
    def __init__(self, device):
        self.cuda = device.type == "cuda"

    def mark(self):
        if not self.cuda:
            return time.perf_counter()
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def ms(self, a, b):
        return a.elapsed_time(b) if self.cuda else 1e3 * (b - a)


def measure(batches, device, steps, train):
    """Milliseconds a batch: load, transfer, train, total. The first batch is not counted."""
    clock, load, marks, begin = Clock(device), 0.0, [], 0.0
    for step in range(steps + 1):
        if step == 1:
            if device.type == "cuda":
                torch.cuda.synchronize()
            load, marks, begin = 0.0, [], time.perf_counter()
        asked = time.perf_counter()
        images, labels = next(batches)
        load += time.perf_counter() - asked
        a = clock.mark()
        images, labels = images.to(device, non_blocking=True), labels.to(device, non_blocking=True)
        b = clock.mark()
        train(images, labels)
        marks.append((a, b, clock.mark()))
    if device.type == "cuda":
        torch.cuda.synchronize()
    total = time.perf_counter() - begin
    parts = [sum(clock.ms(m[i], m[i + 1]) for m in marks) for i in range(2)]
    return [1e3 * load / steps, parts[0] / steps, parts[1] / steps, 1e3 * total / steps]


def network(device, classes):
    torch.manual_seed(0)
    layers = [layer for i, o in ((3, 16), (16, 32), (32, 64)) for layer in (nn.Conv2d(i, o, 3, 2, 1), nn.ReLU())]
    net = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, classes)).to(device)
    optimizer = torch.optim.SGD(net.parameters(), 0.01)

    def train(images, labels):
        loss = nn.functional.cross_entropy(net(images.permute(0, 3, 1, 2).float().div(255)), labels)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()

    return train


def cpp_rate(args, device, batch):
    name = str(device) if device.type == "cuda" else "host"
    done = subprocess.run([args.shardbench, "load", args.data, "--device", name, "--batch-size", str(batch), "--json", "-"],
                          check=True, stdout=subprocess.PIPE)
    return float(np.median([sample["samples_per_second"] for sample in json.loads(done.stdout)["samples"]]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("--images", help="folder of classes of JPEG files, to decode")
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--device", default="cuda:0" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--bench", action="store_true")
    parser.add_argument("--batch-sizes", default="256,32", help="of --bench")
    parser.add_argument("--shardbench")
    parser.add_argument("--chart", help="a picture (matplotlib)")
    parser.add_argument("--json")
    args = parser.parse_args()
    device, results = torch.device(args.device), {}
    sizes = [int(size) for size in args.batch_sizes.split(",")] if args.bench else [args.batch_size]
    classes = max(2, int(sl.Dataset(args.data).labels.max()) + 1)
    for batch in sizes:
        print(f"batches of {batch}, ms a batch{'':12}{'Load':>9}{'Transfer':>10}{'Train':>9}{'Total':>9}{'samples/s':>12}")
        for name, begin in ways(args, device, batch).items():
            steps = args.steps * (10 if args.bench and "DataLoader" not in name and name[0] != " " else 1)
            times = measure(begin(), device, steps, (lambda *_: None) if args.bench else network(device, classes))
            results[f"{batch} {name.strip()}"] = times + [1e3 * batch / times[3]]
            print(f"{name:36}" + "".join(f"{t:{w}.3f}" for t, w in zip(times, (9, 10, 9, 9))) + f"{1e3 * batch / times[3]:12.0f}", flush=True)
        if args.shardbench:
            results[f"{batch} C++"] = [0, 0, 0, 0, cpp_rate(args, device, batch)]
            ours = results[f"{batch} shardloader"][4]
            print(f"{'C++':73}{results[f'{batch} C++'][4]:12.0f}   Python has {ours / results[f'{batch} C++'][4]:.2f} of it")
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
