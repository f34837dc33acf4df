#!/usr/bin/env python3
"""Trains a small U-Net on generated scenes, fed by shardloader and by torchvision v2,
with several seeds each, and compares what they reach.

    python3 bench/scripts/segmentation_iou.py FOLDER [--seeds 5] [--epochs 6] [--device cpu]

Network, optimizer, schedule, scenes and transforms are the same: random-resized-crop, flip, color jitter,
rotation with masks (255 outside, which the loss ignores). Prints the mean intersection over union of each run
in scenes that were held out, and the 95 % interval of the mean of each feed (Student's t). Fails if the
intervals do not overlap. Needs torch and torchvision.
"""

import argparse
import os
import statistics
import sys
from pathlib import Path

import torch
from torch import nn
from torchvision import tv_tensors
from torchvision.transforms import v2

import shardloader as sl

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "loader/python/examples"))
from networks import UNet
from segmentation import IGNORED, measure
from shapes import CLASSES, make

T95 = {2: 12.71, 3: 4.30, 4: 3.18, 5: 2.78, 6: 2.57, 8: 2.36, 10: 2.26}


class Torchvision:
    """Images and masks of an epoch, from memory."""

    def __init__(self, data, side, batch_size, seed):
        rows = [data.fields[index] for index in range(len(data))]
        self.rows = [
            (
                tv_tensors.Image(torch.from_numpy(row["image"].copy()).permute(2, 0, 1)),
                tv_tensors.Mask(torch.from_numpy(row["mask"][..., 0].copy())),
            )
            for row in rows
        ]
        self.batch_size, self.generator = batch_size, torch.Generator().manual_seed(seed)
        self.transform = v2.Compose(
            [
                v2.RandomResizedCrop(side, scale=(0.6, 1), antialias=True),
                v2.RandomHorizontalFlip(0.5),
                v2.ColorJitter(0.2, 0.2, 0.2, 0.02),
                v2.RandomRotation(30, fill={tv_tensors.Image: 0, tv_tensors.Mask: IGNORED}),
                v2.ToDtype({tv_tensors.Image: torch.float32, tv_tensors.Mask: torch.int64}, scale=True),
                v2.Normalize([0.45] * 3, [0.25] * 3),
            ]
        )

    def epoch(self, _):
        order = torch.randperm(len(self.rows), generator=self.generator).tolist()
        for begin in range(0, len(order) - self.batch_size + 1, self.batch_size):
            made = [self.transform(*self.rows[index]) for index in order[begin : begin + self.batch_size]]
            yield torch.stack([image for image, _ in made]), torch.stack([mask for _, mask in made])


class Shards:
    def __init__(self, data, side, batch_size, seed, device):
        augment = sl.Augment(
            flip=0.5,
            color_jitter=(0.2, 0.2, 0.2, 0.02),
            ops=[sl.ops.rotation(30)],
            random_resized_crop=side,
            scale=(0.6, 1),
        )
        self.loader = sl.Loader(
            data,
            batch_size=batch_size,
            device=device,
            framework="torch",
            dtype="float32",
            layout="nchw",
            seed=seed,
            augment=augment,
            threads=2,
            fields={"mask": sl.Pixels("nearest", fill=IGNORED)},
        )

    def epoch(self, number):
        for batch in self.loader.epoch(number):
            yield batch.images, batch.field("mask").long()


def train(feed, batches, held_out, arguments, seed):
    torch.manual_seed(seed)
    net = UNet(len(CLASSES), width=arguments.width).to(arguments.device)
    optimizer = torch.optim.AdamW(net.parameters(), 3e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-2, total_steps=arguments.epochs * batches)
    for epoch in range(arguments.epochs):
        net.train()
        for images, mask in feed.epoch(epoch):
            loss = nn.functional.cross_entropy(
                net(images.to(arguments.device)), mask.to(arguments.device), ignore_index=IGNORED
            )
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            schedule.step()
    return float(measure(net, held_out).mean())


def interval(results):
    mean = statistics.mean(results)
    half = T95[max(n for n in T95 if n <= len(results))] * statistics.stdev(results) / len(results) ** 0.5
    return mean - half, mean + half


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--count", type=int, default=384)
    parser.add_argument("--side", type=int, default=48)
    parser.add_argument("--width", type=int, default=8)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--device", default="cpu")
    arguments = parser.parse_args()
    data = make(os.path.join(arguments.folder, "train"), arguments.count, arguments.side, 0)
    val = make(os.path.join(arguments.folder, "val"), 128, arguments.side, 1)
    held_out = sl.Loader(
        val,
        batch_size=arguments.batch_size,
        device=arguments.device,
        framework="torch",
        dtype="float32",
        layout="nchw",
        shuffle=False,
        drop_last=False,
        fields={"mask": "nearest"},
    )
    results = {"shardloader": [], "torchvision": []}
    for seed in range(arguments.seeds):
        for name, feed in (
            ("shardloader", Shards(data, arguments.side, arguments.batch_size, seed, arguments.device)),
            ("torchvision", Torchvision(data, arguments.side, arguments.batch_size, seed)),
        ):
            torch.manual_seed(seed)
            results[name].append(
                train(feed, arguments.count // arguments.batch_size, held_out, arguments, seed)
            )
        print(
            f"seed {seed}: " + ", ".join(f"{name} {values[-1]:.4f}" for name, values in results.items()),
            flush=True,
        )
    between = {name: interval(values) for name, values in results.items()}
    for name, (low, high) in between.items():
        print(f"{name}: mean IoU {low:.4f} to {high:.4f}")
    (a, b), (c, d) = between.values()
    if max(a, c) > min(b, d):
        sys.exit("the intervals do not overlap")


if __name__ == "__main__":
    main()
