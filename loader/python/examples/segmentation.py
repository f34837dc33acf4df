#!/usr/bin/env python3
"""Segmentation: a small U-Net learns which pixel is a disc, a square, a triangle or none of them.

    python segmentation.py [--device cuda:0] [--epochs 10]

The masks follow crop, flip and rotation of the images, nearest. What operations bring in from outside
is 255, which the loss ignores. Prints the intersection over union of each class in scenes that were
held out. Needs torch.
"""

import argparse

import torch
from torch import nn

import shardloader as sl
from networks import UNet
from shapes import CLASSES, loaders, options

IGNORED = 255


def measure(net, loader):
    """Intersection over union by class."""
    counts = torch.zeros(len(CLASSES), len(CLASSES))
    net.eval()
    with torch.no_grad():
        for batch in loader.epoch(0):
            found, mask = net(batch.images).argmax(1).flatten(), batch.field("mask").flatten().long()
            counts += (
                torch.bincount(mask * len(CLASSES) + found, minlength=counts.numel())
                .reshape(counts.shape)
                .cpu()
            )
    return counts.diag() / (counts.sum(0) + counts.sum(1) - counts.diag())


def main():
    args = options(
        argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ).parse_args()
    torch.manual_seed(0)
    train, held_out = loaders(args, {"mask": sl.Pixels("nearest", fill=IGNORED)}, [sl.ops.rotation(30)])
    net = UNet(len(CLASSES), width=args.width).to(args.device)
    optimizer = torch.optim.AdamW(net.parameters(), 3e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-2, total_steps=args.epochs * len(train))
    for epoch in range(args.epochs):
        net.train()
        total = torch.zeros((), device=args.device)
        for batch in train.epoch(epoch):
            loss = nn.functional.cross_entropy(
                net(batch.images), batch.field("mask").long(), ignore_index=IGNORED
            )
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            schedule.step()
            total += loss.detach()
        shares = measure(net, held_out)
        each = ", ".join(f"{name} {share:.3f}" for name, share in zip(CLASSES, shares.tolist()))
        print(
            f"epoch {epoch}: loss {total.item() / len(train):.4f}, mean IoU {shares.mean():.3f} ({each})",
            flush=True,
        )


if __name__ == "__main__":
    main()
