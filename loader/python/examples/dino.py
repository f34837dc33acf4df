#!/usr/bin/env python3
"""DINO (Caron et al., 2021): a student learns, from small and large views,
what a slow average of itself says of the large ones.

    python dino.py                                            # generated pictures of eight patterns
    python dino.py --data out/train --device cuda             # a data set of shardify's

Two large and six small views are made on the device of one stored sample, which crosses the link once. Prints
the loss of each epoch, and before and after how often a label agrees with those of the 20 nearest neighbours
among the teacher's features. Needs torch.
"""

import argparse
import copy
import math
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
    parser.add_argument("--size", type=int, help="of a large view; default: 0.8 of the stored size")
    parser.add_argument("--small-size", type=int, help="of a small view; default: half of a large one")
    parser.add_argument("--small-views", type=int, default=6)
    parser.add_argument("--width", type=int, default=32, help="channels of the network's first layer")
    parser.add_argument("--outputs", type=int, default=256, help="of the head")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--teacher-momentum", type=float, default=0.95, help="at first; it goes to 1")
    parser.add_argument("--teacher-temperature", type=float, default=0.05)
    parser.add_argument("--student-temperature", type=float, default=0.1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() and sl.has_cuda else "cpu")
    return parser.parse_args()


class Network(nn.Module):
    """Features, and the head: two layers, and directions whose cosines are the outputs."""

    def __init__(self, width, outputs):
        super().__init__()
        self.encoder = Encoder(width)
        features = self.encoder.features
        self.head = nn.Sequential(nn.Linear(features, features), nn.GELU(), nn.Linear(features, 64))
        self.directions = nn.Parameter(torch.randn(outputs, 64))

    def forward(self, *views):
        """Views of one size are computed together: outputs of all of them, [view * sample, output]."""
        found = self.head(torch.cat([self.encoder(torch.cat(part)) for part in views]))
        return (
            nn.functional.normalize(found, dim=1) @ nn.functional.normalize(self.directions, dim=1).T
        ).float()


class Loss:
    """The cross entropy of the student's views with each of the teacher's large ones, but not of a view with
    itself. What the teacher says is sharpened by its temperature and centred by a slow mean: together they
    keep it from saying the same of everything."""

    def __init__(self, args, device):
        self.args, self.centre = args, torch.zeros(args.outputs, device=device)

    def __call__(self, student, teacher, large=2):
        count = len(teacher) // large
        targets = ((teacher - self.centre) / self.args.teacher_temperature).softmax(1).split(count)
        said = (student / self.args.student_temperature).log_softmax(1).split(count)
        self.centre.lerp_(teacher.mean(0), 0.1)
        losses = [
            -(target * view).sum(1).mean()
            for i, target in enumerate(targets)
            for j, view in enumerate(said)
            if i != j
        ]
        return sum(losses) / len(losses)


def views(size, small_size, small_views):
    """The paper's: blur always, seldom (with solarize), and in every second small view."""

    def view(side, scale, blur, solarize=0.0):
        return sl.Augment(
            random_resized_crop=side,
            scale=scale,
            flip=0.5,
            color_jitter=(0.4, 0.4, 0.2, 0.1),
            color_jitter_p=0.8,
            grayscale=0.2,
            gaussian_blur=min(max(3, side // 10 | 1), 23),
            gaussian_blur_p=blur,
            solarize=128,
            solarize_p=solarize,
            dtype="float32",
        )

    return [
        view(size, (0.4, 1), 1.0),
        view(size, (0.4, 1), 0.1, 0.2),
        *[view(small_size, (0.1, 0.4), 0.5)] * small_views,
    ]


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
            views=views(size, args.small_size or size // 2, args.small_views),
        )
        device = torch.device(loader.device)
        student = Network(args.width, args.outputs).to(device, memory_format=torch.channels_last)
        teacher = copy.deepcopy(student).requires_grad_(False)
        optimizer = torch.optim.AdamW(student.parameters(), args.lr, weight_decay=0.04)
        steps, step, loss_of = args.epochs * len(loader), 0, Loss(args, device)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, args.lr, total_steps=steps)
        print(
            f"before: {100 * k_nearest(*features_of(teacher.encoder, data, size, device)):.1f} % of labels "
            "as their neighbours'",
            flush=True,
        )
        for epoch in range(args.epochs):
            total = torch.zeros((), device=device)
            for batch in loader.epoch(epoch):
                large, small = batch.views[:2], batch.views[2:]
                with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
                    with torch.no_grad():
                        wanted = teacher(large)
                    loss = loss_of(student(*filter(len, (large, small))), wanted)
                optimizer.zero_grad(set_to_none=True)
                loss.backward()
                optimizer.step()
                schedule.step()
                momentum = 1 - (1 - args.teacher_momentum) * (1 + math.cos(math.pi * step / steps)) / 2
                with torch.no_grad():
                    for slow, fast in zip(teacher.parameters(), student.parameters()):
                        slow.lerp_(fast, 1 - momentum)
                total, step = total + loss.detach(), step + 1
            print(f"epoch {epoch}: loss {total.item() / len(loader):.4f}", flush=True)
        print(
            f"after: {100 * k_nearest(*features_of(teacher.encoder, data, size, device)):.1f} % of labels as "
            "their neighbours'"
        )


if __name__ == "__main__":
    main()
