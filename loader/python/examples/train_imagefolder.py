#!/usr/bin/env python3
"""ResNet on images, from a data set of shardify's or from the folder of JPEG files, by a flag.

    python train_imagefolder.py out/train                        # made by sl.convert(..., preset="train")
    python train_imagefolder.py images/train --loader imagefolder --workers 16   # torchvision's ImageFolder
    torchrun --nproc-per-node 8 train_imagefolder.py out/train   # DDP; --batch-size is each GPU's
    python train_imagefolder.py out/train --checkpoint run.pt    # the same command again goes on where it was
    python train_imagefolder.py out/train --policy rand_augment --mixup --cutmix --label-smoothing
        --repeated-augmentation

The options of the last line take numbers: 0.2, 1.0, 0.1 and 3 if there are none. Both loaders augment the
same way, but torchvision mixes whole batches by one share, and has no repeated augmentation. bfloat16
(autocast) and channels_last on a GPU. Prints samples/s, and the share of the time in which the device had
nothing to do because the next batch was not there ("starved": on a GPU between two events in its stream, else
the wait of the loop). Needs torch and torchvision.
"""

import argparse
import os
import time

import torch
import torchvision
from torch import nn

from support import Folder, Starved


def options():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data")
    parser.add_argument("--loader", choices=["shardloader", "imagefolder"], default="shardloader")
    parser.add_argument("--arch", default="resnet18", help="a function of torchvision.models")
    parser.add_argument("--epochs", type=int, default=90)
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--workers", type=int, default=16, help="processes (imagefolder)")
    parser.add_argument("--lr", type=float, default=0.1, help="for a global batch of 256")
    parser.add_argument(
        "--policy",
        choices=["rand_augment", "trivial_augment", "auto_augment", "aug_mix"],
        help="changes the pixels of each sample",
    )
    for name, off, number in (
        ("mixup", 0.0, 0.2),
        ("cutmix", 0.0, 1.0),
        ("label-smoothing", 0.0, 0.1),
        ("repeated-augmentation", 1, 4),
    ):
        parser.add_argument(
            f"--{name}", type=type(number), nargs="?", const=number, default=off, metavar=str(number)
        )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--checkpoint", help="written each --save-every steps and at the end")
    parser.add_argument("--save-every", type=int, default=1000)
    parser.add_argument("--print-every", type=int, default=100)
    parser.add_argument("--stop-after", type=int, help="steps of this run")
    return parser.parse_args()


class Shards:
    """Batches from a data set of shardify's. The state says where in the epoch it stands."""

    def __init__(self, args, device):
        import shardloader as sl

        self.mix = args.mixup > 0 or args.cutmix > 0
        self.loader = sl.Loader(
            args.data,
            batch_size=args.batch_size,
            device=device,
            seed=args.seed,
            framework="torch",
            augment=sl.Augment(random_resized_crop=args.size, flip=0.5, policy=args.policy),
            mixup=args.mixup,
            cutmix=args.cutmix,
            repeats=args.repeated_augmentation,
            layout="nhwc",
            dtype="bfloat16" if device.type == "cuda" else "float32",
        )
        self.classes = len(self.loader.data.classes)
        self.length = len(self.loader)
        self.state, self.load_state = self.loader.state_dict, self.loader.load_state_dict

    def epoch(self, epoch):
        """Images, and as targets the labels, or with mixup and cutmix the probability of each class."""
        for batch in self.loader.epoch(epoch):
            images = batch.images.permute(
                0, 3, 1, 2
            )  # rows of channels, seen as NCHW: channels_last, without a copy
            yield images, batch.soft_labels(self.classes) if self.mix else batch.labels


def resume(checkpoint, parts, data, device):
    """Returns the epoch to begin with."""
    if not checkpoint or not os.path.exists(checkpoint):
        return 0
    saved = torch.load(checkpoint, map_location=device, weights_only=True)
    for name, part in parts.items():
        part.load_state_dict(saved[name])
    data.load_state(saved["loader"])
    return saved["loader"]["epoch"]


def main():
    args = options()
    distributed = "LOCAL_RANK" in os.environ
    device = torch.device(args.device)
    if distributed:
        if device.type == "cuda":
            device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
            torch.cuda.set_device(device)
        torch.distributed.init_process_group("nccl" if device.type == "cuda" else "gloo")
    elif args.device == "cuda":
        device = torch.device("cuda", 0)
    first = not distributed or torch.distributed.get_rank() == 0
    world = torch.distributed.get_world_size() if distributed else 1
    data = (Shards if args.loader == "shardloader" else Folder)(args, device)

    torch.manual_seed(args.seed)
    model = getattr(torchvision.models, args.arch)(num_classes=data.classes).to(
        device, memory_format=torch.channels_last
    )
    optimizer = torch.optim.SGD(
        model.parameters(), args.lr * args.batch_size * world / 256, momentum=0.9, weight_decay=1e-4
    )
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, args.epochs * data.length)
    parts = {"model": model, "optimizer": optimizer, "schedule": schedule}
    begin = resume(args.checkpoint, parts, data, device)
    net = (
        nn.parallel.DistributedDataParallel(
            model, device_ids=[device.index] if device.type == "cuda" else None
        )
        if distributed
        else model
    )
    net = torch.compile(net) if args.compile else net

    def save():
        if not (args.checkpoint and first):
            return
        states = {name: part.state_dict() for name, part in parts.items()}
        torch.save(states | {"loader": data.state()}, args.checkpoint + ".new")
        os.replace(args.checkpoint + ".new", args.checkpoint)

    starved, steps, since, clock = Starved(device), 0, 0, time.perf_counter()
    for epoch in range(begin, args.epochs):
        for images, targets in data.epoch(epoch):
            starved.batch_is_there()
            with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
                loss = nn.functional.cross_entropy(net(images), targets, label_smoothing=args.label_smoothing)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            schedule.step()
            starved.step_is_queued()
            steps, since = steps + 1, since + 1
            stop = args.stop_after is not None and steps >= args.stop_after
            if first and (since == args.print_every or stop):
                waited, now = starved.take(), time.perf_counter()
                print(
                    f"epoch {epoch} step {steps}: loss {loss.item():.6f}, "
                    f"{since * args.batch_size * world / (now - clock):.0f} samples/s, "
                    f"starved {100 * waited / (now - clock):.2f} %",
                    flush=True,
                )
                since, clock = 0, time.perf_counter()
            if stop or steps % args.save_every == 0:
                save()
            if stop:
                break
        else:
            continue
        break
    else:
        save()
    if distributed:
        torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
