"""What the examples share: clocks, a small network, and torchvision's way to feed one."""

import os
import time

import torch
from torch import nn


class Clock:
    """Points in the work of a device: events of its current stream,
    or the time of day where the loop does the work."""

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

    def wait(self):
        if self.cuda:
            torch.cuda.synchronize()


class Starved:
    """How long the device waits for batches: it is idle from the end of a step until the
    next batch is there."""

    def __init__(self, device):
        self.clock, self.pairs, self.last = Clock(device), [], None

    def batch_is_there(self):
        if self.last is not None:
            self.pairs.append((self.last, self.clock.mark()))

    def step_is_queued(self):
        self.last = self.clock.mark()

    def take(self):
        """Seconds since it was taken last; waits for the device."""
        self.clock.wait()
        pairs, self.pairs = self.pairs, []
        return sum(self.clock.ms(a, b) for a, b in pairs) / 1e3


class Folder:
    """The same from files, by torchvision. It cannot go on inside an epoch."""

    def __init__(self, args, device):
        import torchvision
        from torchvision.transforms import v2

        if args.repeated_augmentation != 1:
            raise SystemExit("--repeated-augmentation: torchvision has none; use --loader shardloader")
        policies = {
            None: v2.Identity,
            "rand_augment": v2.RandAugment,
            "trivial_augment": v2.TrivialAugmentWide,
            "auto_augment": v2.AutoAugment,
            "aug_mix": v2.AugMix,
        }
        normalize = v2.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
        steps = [
            v2.RandomResizedCrop(args.size),
            v2.RandomHorizontalFlip(),
            v2.PILToTensor(),
            policies[args.policy](),
            v2.ToDtype(torch.float32, True),
            normalize,
        ]
        data = torchvision.datasets.ImageFolder(args.data, v2.Compose(steps))
        world = int(os.environ.get("WORLD_SIZE", 1))
        self.sampler = torch.utils.data.DistributedSampler(
            data, world, int(os.environ.get("RANK", 0)), seed=args.seed, drop_last=True
        )
        self.loader = torch.utils.data.DataLoader(
            data,
            args.batch_size,
            sampler=self.sampler,
            num_workers=args.workers,
            drop_last=True,
            pin_memory=device.type == "cuda",
            persistent_workers=args.workers > 0,
        )
        self.device, self.classes, self.length, self.begun = device, len(data.classes), len(self.loader), 0
        mixes = [
            kind(alpha=alpha, num_classes=self.classes)
            for kind, alpha in ((v2.MixUp, args.mixup), (v2.CutMix, args.cutmix))
            if alpha
        ]
        self.mix = v2.RandomChoice(mixes) if mixes else lambda *batch: batch

    def state(self):
        return {"epoch": self.begun}

    def load_state(self, state):
        self.begun = state["epoch"]

    def epoch(self, epoch):
        self.begun = epoch
        self.sampler.set_epoch(epoch)
        for images, labels in self.loader:
            yield self.mix(
                images.to(self.device, non_blocking=True, memory_format=torch.channels_last),
                labels.to(self.device, non_blocking=True),
            )


def small_cnn(device, classes):
    """Three convolutions; the same weights each time."""
    torch.manual_seed(0)
    layers = [
        layer for i, o in ((3, 16), (16, 32), (32, 64)) for layer in (nn.Conv2d(i, o, 3, 2, 1), nn.ReLU())
    ]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, classes)).to(device)


class Encoder(nn.Sequential):
    """Four convolutions of stride 2, of `width`, 2, 4 and 8 times as many channels,
    and the mean over the picture: any size of pictures."""

    def __init__(self, width):
        widths = [3, width, 2 * width, 4 * width, 8 * width]
        layers = [
            layer
            for i, o in zip(widths, widths[1:])
            for layer in (nn.Conv2d(i, o, 3, 2, 1, bias=False), nn.BatchNorm2d(o), nn.ReLU())
        ]
        super().__init__(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.features = widths[-1]


@torch.no_grad()
def features_of(net, data, size, device):
    """Features of length 1, and labels, of up to 5,000 samples: each once, without augmentation."""
    import shardloader as sl

    loader = sl.Loader(
        data,
        batch_size=250,
        device=device,
        framework="torch",
        shuffle=False,
        tail="short",
        center_crop=size,
        dtype="float32",
    )
    net.eval()
    parts = [
        (nn.functional.normalize(net(images).float(), dim=1), labels)
        for _, (images, labels) in zip(range(20), loader)
    ]
    net.train()
    return tuple(map(torch.cat, zip(*parts)))


def k_nearest(features, labels, k=20):
    """How often the label of a sample is the most frequent one of its k nearest neighbours."""
    similar = features @ features.T
    similar.fill_diagonal_(-2)  # a sample is no neighbour of itself
    neighbours = labels[similar.topk(min(k, len(labels) - 1)).indices]
    return (neighbours.mode().values == labels).float().mean().item()
