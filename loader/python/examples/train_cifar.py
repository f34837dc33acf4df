#!/usr/bin/env python3
"""A small network on CIFAR-10: CPU against GPU, and what batches of different sizes spend on moving tensors.

    python train_cifar.py                             # generated pictures of ten colours and shapes
    python train_cifar.py cifar-10-batches-bin        # the binary version of CIFAR-10 (data_batch_1.bin, ...)

The pictures become a data set once (--out). Without augmentation they are moved and normalised by the loader;
Move is the share of an epoch in which the device had nothing to do because a batch was not there. Needs
torch; logs to TensorBoard (--log) where it is installed.
"""

import argparse
import struct
import tempfile
import time
import zlib
from pathlib import Path

import numpy as np
import torch
from torch import nn

import shardloader as sl
from support import Starved, small_cnn

CLASSES = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]


def png(image):
    """uint8 [row, column, channel] as a file."""

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = np.concatenate([np.zeros((len(image), 1), np.uint8), image.reshape(len(image), -1)], 1).tobytes()
    header = struct.pack(">IIBBBBB", image.shape[1], image.shape[0], 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(rows, 1))
        + chunk(b"IEND", b"")
    )


def cifar(folder):
    """Images and labels of the binary files: a byte of label, then 32x32 red, green, blue."""
    for path in sorted(Path(folder).glob("data_batch_*.bin")):
        records = np.fromfile(path, np.uint8).reshape(-1, 1 + 3 * 32 * 32)
        yield from zip(records[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1), records[:, 0].tolist())


def stand_in(count, seed=0):
    """Noisy discs whose place and colour depend on the class."""
    random = np.random.default_rng(seed)
    y, x = np.mgrid[:32, :32]
    for i in range(count):
        label = i % 10
        angle = 2 * np.pi * label / 10 + random.normal(0, 0.1)
        disc = (x - 16 - 8 * np.cos(angle)) ** 2 + (y - 16 - 8 * np.sin(angle)) ** 2 < random.uniform(20, 50)
        colour = 128 + 100 * np.array([np.cos(angle), np.sin(angle), np.cos(2 * angle)])
        yield (
            np.clip(np.where(disc[..., None], colour, 90) + random.normal(0, 40, (32, 32, 3)), 0, 255).astype(
                np.uint8
            ),
            label,
        )


def make_data(pictures, out):
    with tempfile.TemporaryDirectory() as folder:
        for name in CLASSES:
            Path(folder, name).mkdir()
        for i, (image, label) in enumerate(pictures):
            Path(folder, CLASSES[label], f"{i:06}.png").write_bytes(png(image))
        sl.convert(folder, out, preset="train", resize=32, crop=32, progress=True)


def train(data, device, batch_size, epochs, log):
    """Prints a line an epoch; returns seconds, without the first batch."""
    loader = sl.Loader(
        data, batch_size=batch_size, device=device, framework="torch", dtype="float32", layout="nchw"
    )
    net = small_cnn(device, 10)
    optimizer = torch.optim.SGD(net.parameters(), 0.05 * min(1, batch_size / 64), momentum=0.9)
    starved, seconds = Starved(device), 0.0
    for epoch in range(epochs):
        begin = time.perf_counter()
        total = torch.zeros(2, device=device)  # loss and right answers: read once an epoch
        for images, labels in loader.epoch(epoch):
            starved.batch_is_there()
            answers = net(images)
            loss = nn.functional.cross_entropy(answers, labels)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            total += torch.stack([loss.detach(), (answers.argmax(1) == labels).float().mean()])
            starved.step_is_queued()
        waited = starved.take()
        took = time.perf_counter() - begin
        seconds += took
        loss, right = (total / len(loader)).tolist()
        print(
            f"{str(device):8}{batch_size:6}{epoch:6}{loss:9.4f}{100 * right:9.1f} %{took:9.3f} "
            f"s{100 * waited / took:8.2f} %",
            flush=True,
        )
        if log:
            for name, value in (("loss", loss), ("accuracy", right), ("move_share", waited / took)):
                log.add_scalar(f"{name}/{device}/batch{batch_size}", value, epoch)
    return seconds


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("cifar", nargs="?", help="folder of CIFAR-10's binary files")
    parser.add_argument("--out", default="out/cifar", help="the data set; made where it is not")
    parser.add_argument("--count", type=int, default=20000, help="pictures of the stand-in")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-sizes", default="32,64,128,256,512,1024")
    parser.add_argument("--log", help="folder for TensorBoard")
    args = parser.parse_args()
    if not Path(args.out, "dataset.json").exists():
        make_data(cifar(args.cifar) if args.cifar else stand_in(args.count), args.out)
    data = sl.Dataset(args.out)
    log = None
    if args.log:
        from torch.utils.tensorboard import SummaryWriter

        log = SummaryWriter(args.log)
    devices = [torch.device("cpu")] + (
        [torch.device("cuda", 0)] if torch.cuda.is_available() and sl.has_cuda else []
    )
    print(f"{'device':8}{'batch':>6}{'epoch':>6}{'loss':>9}{'accuracy':>11}{'time':>11}{'Move':>10}")
    seconds = {
        (device, batch): train(data, device, batch, args.epochs, log)
        for batch in map(int, args.batch_sizes.split(","))
        for device in devices
    }
    if len(devices) > 1:
        for batch in map(int, args.batch_sizes.split(",")):
            print(
                f"batches of {batch}: the GPU takes "
                f"{seconds[devices[0], batch] / seconds[devices[1], batch]:.1f} times less time than the CPU"
            )
    if log:
        log.close()


if __name__ == "__main__":
    main()
