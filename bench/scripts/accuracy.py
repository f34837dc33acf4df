#!/usr/bin/env python3
"""Whether augmentation here trains as well as torchvision's: the same network, data and operations,
several seeds, test accuracies.

  bench/scripts/accuracy.py [--policy rand_augment] [--seeds 5] [--device cuda] [--workers 15] [--json FILE]
  bench/scripts/accuracy.py --data out/train --test out/val --side 64 ...   # data sets of shardify, u8 images

Without --data it generates shapes of ten outlines, which lie anywhere, in any colours, on stripes and noise.
torchvision gets them as uint8 tensors in memory and transforms each sample in workers of a DataLoader; ours
is `sl.Augment.from_torchvision` of the same Compose. "none" trains without augmentation, to show what
augmentation is worth. Each way starts from the same weights for a seed. Prints accuracies, their mean and the
95 % interval of the mean (Student's t). Exit code 1: the intervals of torchvision and ours do not overlap.
Needs torch, torchvision and the package shardloader.
"""

import argparse
import json
import math
import platform
import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
import torchvision
from torch import nn
from torchvision.transforms import v2

import shardloader as sl

# Inside of the outline of radius 1? x, y: coordinates, r: distance from the centre, a: angle.
OUTLINES = (
    lambda x, y, r, a: r < 0.85,
    lambda x, y, r, a: (r > 0.6) & (r < 0.95),
    lambda x, y, r, a: np.maximum(abs(x), abs(y)) < 0.75,
    lambda x, y, r, a: (np.maximum(abs(x), abs(y)) > 0.5) & (np.maximum(abs(x), abs(y)) < 0.8),
    lambda x, y, r, a: r * np.cos(a % (2 * np.pi / 3) - np.pi / 3) < 0.55,
    lambda x, y, r, a: r < 0.6 + 0.4 * np.cos(5 * a),
    lambda x, y, r, a: r < 0.7 + 0.3 * np.cos(4 * a),
    lambda x, y, r, a: r * np.cos(a % (2 * np.pi / 5) - np.pi / 5) < 0.75,
    lambda x, y, r, a: (r < 1) & (np.hypot(x - 0.5, y) > 0.8),
    lambda x, y, r, a: r < 0.7 + 0.3 * np.cos(3 * a),
)
# Of Student's t distribution with 1, 2, ... degrees of freedom: 95 % are within.
T95 = (
    12.706,
    4.303,
    3.182,
    2.776,
    2.571,
    2.447,
    2.365,
    2.306,
    2.262,
    2.228,
    2.201,
    2.179,
    2.160,
    2.145,
    2.131,
    2.120,
    2.110,
    2.101,
    2.093,
)


def stripes(x, y, random):
    """[row, column, 3], about 0."""
    return np.sin(x * random.uniform(-30, 30) + y * random.uniform(-30, 30))[..., None] * random.uniform(
        -25, 25, 3
    )


def shape(label, side, random):
    """uint8 [side, side, 3]."""
    y, x = (np.mgrid[:side, :side] + 0.5) / side * 2 - 1
    angle, radius = random.uniform(0, 2 * np.pi), random.uniform(0.35, 0.7)
    left, top = random.uniform(-0.25, 0.25, 2)
    u = ((x - left) * np.cos(angle) + (y - top) * np.sin(angle)) / radius
    v = ((y - top) * np.cos(angle) - (x - left) * np.sin(angle)) / radius
    inside = OUTLINES[label](u, v, np.hypot(u, v), np.arctan2(v, u))[..., None]
    dark, light = random.uniform(0, 120, 3), random.uniform(135, 255, 3)
    back, front = (dark, light) if random.random() < 0.5 else (light, dark)
    picture = np.where(inside, front + stripes(x, y, random), back + stripes(x, y, random))
    return np.clip(picture + random.normal(0, 15, (side, side, 3)), 0, 255).astype(np.uint8)


def generated(out, count, side, seed):
    random = np.random.default_rng(seed)
    with sl.Writer(
        out, preset="train", resize=side, crop=side, classes=list(map(str, range(len(OUTLINES))))
    ) as writer:
        for i in range(count):
            writer.add(f"{i:06}", shape(i % len(OUTLINES), side, random), i % len(OUTLINES))
    return sl.Dataset(out)


class Network(nn.Sequential):
    def __init__(self, width, classes):
        widths = [3, width, width, 2 * width, 4 * width, 8 * width]
        layers = [
            layer
            for stage, (i, o) in enumerate(zip(widths, widths[1:]))
            for layer in (nn.Conv2d(i, o, 3, 2 if stage else 1, 1, bias=False), nn.BatchNorm2d(o), nn.ReLU())
        ]
        super().__init__(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(widths[-1], classes))


class InMemory(torch.utils.data.Dataset):
    """uint8 tensors [channel, row, column], each transformed when it is taken."""

    def __init__(self, data, transform):
        self.images = (
            torch.from_numpy(np.stack([image for image, _ in data])).permute(0, 3, 1, 2).contiguous()
        )
        self.labels, self.transform = torch.tensor([int(label) for _, label in data]), transform

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return self.transform(self.images[i]), self.labels[i]


class Ways:
    """Each gives, for a seed, a function of the epoch: its batches of normalised float32 [sample, channel,
    row, column] and labels."""

    def __init__(self, given, data):
        self.given, self.data, self.device = given, data, torch.device(given.device)
        changes = {
            "rand_augment": [v2.RandAugment(2, 9)],
            "trivial_augment": [v2.TrivialAugmentWide()],
            "jitter": [v2.ColorJitter(0.4, 0.4, 0.4, 0.1), v2.RandomGrayscale(0.2)],
        }[given.policy]
        self.steps = [
            v2.RandomResizedCrop(given.side, scale=(0.5, 1), antialias=True),
            v2.RandomHorizontalFlip(),
            *changes,
        ]
        self.in_memory = InMemory(data, v2.Compose(self.steps))
        self.options = {
            "batch_size": given.batch_size,
            "framework": "torch",
            "dtype": "float32",
            "mean": data.mean,
            "std": data.std,
        }

    def ours(self, seed):
        augment = sl.Augment.from_torchvision(v2.Compose(self.steps))
        return sl.Loader(self.data, device=self.device, seed=seed, augment=augment, **self.options).epoch

    def none(self, seed):
        return sl.Loader(
            self.data, device=self.device, seed=seed, center_crop=self.given.side, **self.options
        ).epoch

    def torchvision(self, seed):
        loader = torch.utils.data.DataLoader(
            self.in_memory,
            self.given.batch_size,
            shuffle=True,
            drop_last=True,
            num_workers=self.given.workers,
            persistent_workers=self.given.workers > 0,
            pin_memory=self.device.type == "cuda",
            generator=torch.Generator().manual_seed(seed),
        )
        normalize = v2.Compose(
            [v2.ToDtype(torch.float32, scale=True), v2.Normalize(list(self.data.mean), list(self.data.std))]
        )

        def epoch(_):
            for images, labels in loader:
                yield (
                    normalize(images.to(self.device, non_blocking=True)),
                    labels.to(self.device, non_blocking=True),
                )

        return epoch


def accuracy(net, test, given, data):
    loader = sl.Loader(
        test,
        batch_size=500,
        device=given.device,
        framework="torch",
        shuffle=False,
        tail="short",
        center_crop=given.side,
        dtype="float32",
        mean=data.mean,
        std=data.std,
    )
    net.eval()
    with torch.no_grad():
        right = sum((net(images).argmax(1) == labels).sum() for images, labels in loader)
    return 100 * right.item() / len(test)


def trained(epoch_of, seed, test, given, data):
    """Test accuracy in percent."""
    device = torch.device(given.device)
    torch.manual_seed(seed)
    net = Network(given.width, len(data.classes)).to(device, memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(net.parameters(), given.lr, momentum=0.9, weight_decay=5e-4, nesterov=True)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, given.lr, total_steps=given.epochs * (len(data) // given.batch_size)
    )
    for epoch in range(given.epochs):
        for images, labels in epoch_of(epoch):
            with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
                loss = nn.functional.cross_entropy(
                    net(images.contiguous(memory_format=torch.channels_last)), labels
                )
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            schedule.step()
    return accuracy(net, test, given, data)


def interval(values):
    half = T95[len(values) - 2] * statistics.stdev(values) / math.sqrt(len(values))
    return statistics.mean(values) - half, statistics.mean(values) + half


def options():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", help="a data set; without it, one is generated")
    parser.add_argument("--test", help="the test set that belongs to --data")
    parser.add_argument(
        "--count", type=int, default=4000, help="generated samples to train with; half as many are tested"
    )
    parser.add_argument(
        "--side",
        type=int,
        default=64,
        help="of what the network gets; generated samples are a quarter larger",
    )
    parser.add_argument(
        "--policy", choices=["rand_augment", "trivial_augment", "jitter"], default="rand_augment"
    )
    parser.add_argument("--ways", default="torchvision,ours,none")
    parser.add_argument("--seeds", type=int, default=5, help=f"2 to {len(T95) + 1}")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--width", type=int, default=32)
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--workers", type=int, default=15, help="of torchvision's DataLoader")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() and sl.has_cuda else "cpu")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    if not 2 <= given.seeds <= len(T95) + 1:
        parser.error(f"--seeds {given.seeds}: give 2 to {len(T95) + 1}")
    if (given.data is None) != (given.test is None):
        parser.error("--data and --test go together")
    return given


def main():
    given = options()
    found = {
        "options": {
            name: str(value) if isinstance(value, Path) else value for name, value in vars(given).items()
        },
        "torch": torch.__version__,
        "torchvision": torchvision.__version__,
        "shardloader": sl.__version__,
        "machine": torch.cuda.get_device_name() if given.device.startswith("cuda") else platform.machine(),
        "ways": {},
    }
    with tempfile.TemporaryDirectory() as folder:
        if given.data:
            data, test = sl.Dataset(given.data), sl.Dataset(given.test)
        else:
            data, test = (
                generated(f"{folder}/{seed}", given.count // (1 + seed), given.side * 5 // 4, seed)
                for seed in (0, 1)
            )
        ways = Ways(given, data)
        for way in given.ways.split(","):
            begin, values = time.perf_counter(), []
            for seed in range(given.seeds):
                values.append(accuracy_of := trained(getattr(ways, way)(seed), seed, test, given, data))
                print(f"{way} seed {seed}: {accuracy_of:.2f} %", flush=True)
            low, high = interval(values)
            found["ways"][way] = {
                "accuracies": values,
                "mean": statistics.mean(values),
                "interval": [low, high],
                "seconds_per_run": (time.perf_counter() - begin) / given.seeds,
            }
    for way, of in found["ways"].items():
        print(
            f"{way}: {of['mean']:.2f} % (95 % interval {of['interval'][0]:.2f} to {of['interval'][1]:.2f}), "
            f"{of['seconds_per_run']:.1f} s per run"
        )
    if {"ours", "torchvision"} <= found["ways"].keys():
        (low, high), (other_low, other_high) = (
            found["ways"][way]["interval"] for way in ("ours", "torchvision")
        )
        found["overlap"] = low <= other_high and other_low <= high
        print(f"the intervals of torchvision and ours {'overlap' if found['overlap'] else 'do not overlap'}")
    if given.json:
        given.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return 0 if found.get("overlap", True) else 1


if __name__ == "__main__":
    sys.exit(main())
