#!/usr/bin/env python3
"""SimCLR (Chen et al., 2020): a network learns features without labels;
two views of the same picture shall have similar ones.

    python simclr.py                                          # generated pictures of eight patterns
    python simclr.py --data out/train --device cuda           # a data set of shardify's

Both views are made on the device of one stored sample, which crosses the link once. Prints the loss of each
epoch, and before and after how often a label agrees with those of the 20 nearest neighbours among the
features. Needs torch.
"""

import argparse
import tempfile

import torch
from torch import nn

import patterns
import shardloader as sl
from support import Encoder, features_of, k_nearest


def options():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", help="a data set; without it, one is generated")
    parser.add_argument("--count", type=int, default=2000, help="generated pictures")
    parser.add_argument("--size", type=int, help="of a view; default: 0.8 of the stored size")
    parser.add_argument("--width", type=int, default=32, help="channels of the network's first layer")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--temperature", type=float, default=0.2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() and sl.has_cuda else "cpu")
    return parser.parse_args()


def nt_xent(first, second, temperature):
    """The normalised, temperature-scaled cross entropy: of all other views in the batch,
    the partner shall be the most similar one."""
    both = nn.functional.normalize(torch.cat([first, second]).float(), dim=1)
    similar = both @ both.T / temperature
    similar.fill_diagonal_(float("-inf"))  # a view is no partner of itself
    partners = torch.arange(len(both), device=both.device).roll(len(first))
    return nn.functional.cross_entropy(similar, partners)


def view(size):
    """The paper's: crop, flip, colour jitter of strength 0.5 as for small pictures, grayscale, and blur."""
    kernel = max(3, size // 10 | 1)
    return sl.Augment(
        random_resized_crop=size,
        scale=(0.2, 1),
        flip=0.5,
        color_jitter=(0.8, 0.8, 0.8, 0.2),
        color_jitter_p=0.8,
        grayscale=0.2,
        gaussian_blur=min(kernel, 23),
        gaussian_blur_p=0.5,
        dtype="float32",
    )


def main():
    args = options()
    torch.manual_seed(args.seed)
    with tempfile.TemporaryDirectory() as folder:
        data = sl.Dataset(args.data) if args.data else patterns.make(f"{folder}/patterns", args.count, 40)
        size = args.size or int(0.8 * min(data.shape[:2]))
        loader = sl.Loader(
            data,
            batch_size=args.batch_size,
            device=args.device,
            framework="torch",
            seed=args.seed,
            views=[view(size)] * 2,
        )
        device = torch.device(loader.device)
        net = Encoder(args.width).to(device, memory_format=torch.channels_last)
        head = nn.Sequential(
            nn.Linear(net.features, net.features), nn.ReLU(), nn.Linear(net.features, 64)
        ).to(device)
        parameters = [*net.parameters(), *head.parameters()]
        optimizer = torch.optim.AdamW(parameters, args.lr, weight_decay=1e-4)
        schedule = torch.optim.lr_scheduler.OneCycleLR(
            optimizer, args.lr, total_steps=args.epochs * len(loader)
        )
        print(
            f"before: {100 * k_nearest(*features_of(net, data, size, device)):.1f} % of labels as their "
            "neighbours'",
            flush=True,
        )
        for epoch in range(args.epochs):
            total = torch.zeros((), device=device)
            for batch in loader.epoch(epoch):
                with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
                    first, second = head(net(torch.cat(batch.views))).chunk(2)
                loss = nt_xent(first, second, args.temperature)
                optimizer.zero_grad(set_to_none=True)
                loss.backward()
                optimizer.step()
                schedule.step()
                total += loss.detach()
            print(f"epoch {epoch}: loss {total.item() / len(loader):.4f}", flush=True)
        print(
            f"after: {100 * k_nearest(*features_of(net, data, size, device)):.1f} % of labels as their "
            "neighbours'"
        )


if __name__ == "__main__":
    main()
