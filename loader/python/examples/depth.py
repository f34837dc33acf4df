#!/usr/bin/env python3
"""Monocular depth: a small U-Net learns how far away each pixel is.

    python depth.py [--device cuda:0] [--epochs 10]

The maps of depth are u16 and are delivered as float32, value / 65535. They follow crop and flip of the
images, bilinear. Prints the mean error in scenes that were held out, and that of the answer that is the same
everywhere. Needs torch.
"""

import argparse

import torch
from torch import nn

import shardloader as sl
from networks import UNet
from shapes import METRES, loaders, options


def measure(net, loader):
    """Mean error in metres, and that of the mean depth."""
    errors = torch.zeros(2)
    net.eval()
    with torch.no_grad():
        for batch in loader.epoch(0):
            depth = batch.field("depth") * METRES
            errors += torch.stack(
                [(net(batch.images).exp() - depth).abs().mean(), (depth.mean() - depth).abs().mean()]
            ).cpu() * len(depth)
    return (errors / len(loader.data)).tolist()


def main():
    args = options(
        argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ).parse_args()
    torch.manual_seed(0)
    train, held_out = loaders(args, {"depth": sl.Pixels("bilinear", dtype="float32")}, [])
    net = UNet(1, width=args.width).to(args.device)
    nn.init.constant_(net.last.bias, 2.5)
    optimizer = torch.optim.AdamW(net.parameters(), 3e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-2, total_steps=args.epochs * len(train))
    for epoch in range(args.epochs):
        net.train()
        total = torch.zeros((), device=args.device)
        for batch in train.epoch(epoch):
            loss = nn.functional.l1_loss(
                net(batch.images), (batch.field("depth") * METRES).clamp(min=1e-2).log()
            )
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            schedule.step()
            total += loss.detach()
        error, constant = measure(net, held_out)
        print(
            f"epoch {epoch}: loss {total.item() / len(train):.4f}, error {error:.3f} m, "
            f"constant {constant:.3f} m",
            flush=True,
        )


if __name__ == "__main__":
    main()
