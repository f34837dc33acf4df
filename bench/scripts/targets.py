#!/usr/bin/env python3
"""The table of targets in docs/benchmarks.md: what masks and boxes cost beside images,
on a GPU against its link, on the host against torchvision.

    python3 bench/scripts/targets.py FOLDER [--cases NAME,...] [--gigabytes 4] [--seconds 8] [--json FILE]

Needs shardloader and PyTorch, and torchvision for `host`. FOLDER receives the data sets (kept, so that a
second run is quick); it should be in memory or on a quick disk. The link's limit is measured in the same
process: copies of 2 GiB of pinned memory, the best of 5. Every case runs epochs first, until no shard
was registered for 2 s.

    crop-u8, crop-f16   256x256 image + u8 mask -> random crop 224 + flip, batches of 256: bytes against the
                        link
    rand-augment        packed image + packed mask, random-resized-crop 224 + RandAugment, batches of 256:
                        rate against that of the image alone
    boxes               512x512 image + mask + 100 boxes, random crop 448 + flip, batches of 16: bytes against
                        the link
    host                256x256 image + mask + boxes, random-resized-crop 224 + flip, batches of 64, host
                        device with 2 threads: rate against torchvision v2 in 2 workers of a DataLoader, with
                        the same transforms and SanitizeBoundingBoxes
"""

import argparse
import json
import os
import sys
import time

import numpy as np

import shardloader as sl

SAMPLE = 256 * 256 * 4


def shapes(rng, side):
    """A picture with shadings and noise like a photograph's, and a mask of rectangles."""
    y, x = np.mgrid[:side, :side].astype(np.float32)
    waves = sum(
        np.sin(x * rng.uniform(0.01, 0.1) + y * rng.uniform(0.01, 0.1) + rng.uniform(0, 6)) for _ in range(3)
    )
    image = 128 + 35 * waves[..., None] * rng.uniform(0.4, 1, 3) + rng.normal(0, 4, (side, side, 3))
    mask = np.zeros((side, side, 1), np.uint8)
    for label in range(1, 9):
        top, left = rng.integers(0, side * 3 // 4, 2)
        height, width = rng.integers(side // 16, side // 3, 2)
        mask[top : top + height, left : left + width] = label
        image[top : top + height, left : left + width] += rng.uniform(-60, 60, 3)
    return np.clip(image, 0, 255).astype(np.uint8), mask


def make(folder, side, samples, codec="none", boxes=0, pictures=32):
    """Samples of a few pictures, each shifted by another number of rows: different bytes, quickly made."""
    if os.path.exists(os.path.join(folder, "dataset.json")):
        return sl.Dataset(folder)
    rng = np.random.default_rng(0)
    some = [shapes(rng, side) for _ in range(pictures)]
    columns = {"mask": sl.ImageField("uint8", side, side, 1, role="mask", codec=codec)}
    if boxes:
        columns.update({"boxes": sl.Ragged("float32", 4), "box_labels": sl.Ragged("int64")})
    with sl.Writer(
        folder,
        columns=columns,
        squash=(side, side),
        dtype="uint8",
        layout="nhwc",
        codec=codec,
        shard_bytes=256 << 20,
    ) as writer:
        for number in range(samples):
            image, mask = (np.roll(one, number * 7 % side, 0) for one in some[number % pictures])
            row = {"mask": mask}
            if boxes:
                corner = rng.uniform(0, side - 40, (boxes, 2))
                row["boxes"] = np.concatenate([corner, corner + rng.uniform(8, 40, (boxes, 2))], 1).astype(
                    np.float32
                )
                row["box_labels"] = rng.integers(0, 80, boxes)
            writer.add(f"{number}", image, number % 10, **row)
    return sl.Dataset(folder)


def link_limit():
    """Bytes per second."""
    import torch

    host = torch.empty(2 << 30, dtype=torch.uint8, pin_memory=True)
    device = torch.empty(2 << 30, dtype=torch.uint8, device="cuda")
    best = 0.0
    for _ in range(6):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        device.copy_(host, non_blocking=True)
        end.record()
        end.synchronize()
        best = max(best, host.numel() / (start.elapsed_time(end) / 1e3))
    return best


def settle(loader, read=lambda batch: None, quiet_s=2):
    """Runs epochs until no shard was registered for `quiet_s`: one may take longer than a short epoch.
    Returns the next epoch's number."""
    registered, epoch, since = -1, 0, time.perf_counter()
    while time.perf_counter() - since < quiet_s:
        for batch in loader.epoch(epoch):
            read(batch)
        epoch += 1
        if loader.stats().registered_bytes != registered:
            registered, since = loader.stats().registered_bytes, time.perf_counter()
    return epoch


def measure(loader, seconds, read=lambda batch: None):
    """Samples and bytes per second, once all shards are registered,
    and the share of the time in which the consumer waited."""
    epoch = settle(loader, read)
    before, begin, samples = loader.stats(), time.perf_counter(), 0
    while time.perf_counter() - begin < seconds:
        for batch in loader.epoch(epoch):
            read(batch)
            samples += loader.batch_size  # the last, incomplete batch is left out
            if time.perf_counter() - begin >= seconds:
                break
        epoch += 1
    took, after = time.perf_counter() - begin, loader.stats()
    return {
        "samples_per_s": samples / took,
        "bytes_per_s": (after.bytes - before.bytes) / took,
        "starved": (after.starved_seconds - before.starved_seconds) / took,
        "transport": after.transport,
    }


def on_gpu(data, seconds, **options):
    loader = sl.Loader(data, device="cuda:0", framework=None, **options)
    try:
        return measure(loader, seconds)
    finally:
        loader.close()


def crop_case(arguments, dtype):
    data = make(os.path.join(arguments.folder, "plain-256"), 256, int(arguments.gigabytes * 1e9 / SAMPLE))
    options = {
        "batch_size": 256,
        "random_crop": 224,
        "flip": True,
        "dtype": dtype,
        "layout": "nchw" if dtype != "uint8" else "nhwc",
    }
    alone = on_gpu(data, arguments.seconds, **options)
    result = on_gpu(data, arguments.seconds, fields={"mask": "nearest"}, **options)
    return {
        **result,
        "image_alone_bytes_per_s": alone["bytes_per_s"],
        "share": result["bytes_per_s"] / arguments.limit,
        "wanted": 0.95,
    }


def augment_case(arguments):
    data = make(
        os.path.join(arguments.folder, "packed-256"),
        256,
        int(arguments.gigabytes * 1e9 / SAMPLE),
        codec="packed",
    )
    options = {
        "batch_size": 256,
        "augment": sl.Augment.rand_augment(2, 9, random_resized_crop=224, flip=True),
        "dtype": "float16",
        "layout": "nchw",
    }
    alone = on_gpu(data, arguments.seconds, **options)
    result = on_gpu(data, arguments.seconds, fields={"mask": "nearest"}, **options)
    return {
        **result,
        "image_alone_samples_per_s": alone["samples_per_s"],
        "share": result["samples_per_s"] / alone["samples_per_s"],
        "wanted": 0.9,
    }


def boxes_case(arguments):
    data = make(
        os.path.join(arguments.folder, "boxes-512"),
        512,
        int(arguments.gigabytes * 1e9 / SAMPLE / 4),
        boxes=100,
    )
    options = {"batch_size": 16, "random_crop": 448, "flip": True}
    alone = on_gpu(data, arguments.seconds, **options)
    result = on_gpu(
        data,
        arguments.seconds,
        fields={"mask": "nearest", "boxes": sl.Boxes(format="cxcywh", min_visibility=0.1)},
        **options,
    )
    return {
        **result,
        "image_alone_bytes_per_s": alone["bytes_per_s"],
        "share": result["bytes_per_s"] / arguments.limit,
        "wanted": 0.93,
    }


def dataloader_rate(loader, seconds):
    """Samples a second of a DataLoader of torch whose batches all have its batch size, after four of them."""
    iterator = iter(loader)
    for _ in range(4):
        next(iterator)
    begin, samples = time.perf_counter(), 0
    while time.perf_counter() - begin < seconds:
        if next(iterator, None) is None:
            iterator = iter(loader)
        else:
            samples += loader.batch_size
    return samples / (time.perf_counter() - begin)


def torchvision_rate(data, seconds, batch_size, workers=2):
    import torch
    from torchvision import tv_tensors
    from torchvision.transforms import v2

    # In memory before the workers start: they only transform and collate.
    stored = [data.fields[index] for index in range(len(data))]
    rows = [
        {
            "image": torch.from_numpy(np.array(sample["image"])).permute(2, 0, 1),
            "mask": torch.from_numpy(np.array(sample["mask"][..., 0])),
            "boxes": torch.from_numpy(np.array(sample["boxes"])),
            "labels": torch.from_numpy(np.array(sample["box_labels"])),
        }
        for sample in stored
    ]

    class Samples(torch.utils.data.Dataset):
        transform = v2.Compose(
            [
                v2.RandomResizedCrop(224, antialias=True),
                v2.RandomHorizontalFlip(0.5),
                v2.SanitizeBoundingBoxes(),
            ]
        )

        def __len__(self):
            return len(data)

        def __getitem__(self, index):
            row = rows[index]
            return self.transform(
                {
                    "image": tv_tensors.Image(row["image"]),
                    "mask": tv_tensors.Mask(row["mask"]),
                    "boxes": tv_tensors.BoundingBoxes(row["boxes"], format="XYXY", canvas_size=(256, 256)),
                    "labels": row["labels"],
                }
            )

    def collate(batch):
        return (
            torch.stack([row["image"] for row in batch]),
            torch.stack([row["mask"] for row in batch]),
            [(row["boxes"], row["labels"]) for row in batch],
        )

    torch.set_num_threads(1)
    torch.multiprocessing.set_sharing_strategy("file_system")
    loader = torch.utils.data.DataLoader(
        Samples(),
        batch_size,
        shuffle=True,
        num_workers=workers,
        collate_fn=collate,
        persistent_workers=True,
        drop_last=True,
    )
    return dataloader_rate(loader, seconds)


def host_case(arguments):
    data = make(os.path.join(arguments.folder, "host-256"), 256, 2048, boxes=20)
    options = {"batch_size": 64, "random_resized_crop": 224, "flip": True, "threads": 2}
    fields = {"mask": "nearest", "boxes": sl.Boxes()}
    loader = sl.Loader(data, device="cpu", framework="torch", fields=fields, **options)
    result = measure(loader, arguments.seconds, lambda batch: batch.targets())
    loader.close()
    rate = torchvision_rate(data, arguments.seconds, 64)
    return {**result, "torchvision_samples_per_s": rate, "share": result["samples_per_s"] / rate, "wanted": 5}


CASES = {
    "crop-u8": lambda arguments: crop_case(arguments, "uint8"),
    "crop-f16": lambda arguments: crop_case(arguments, "float16"),
    "rand-augment": augment_case,
    "boxes": boxes_case,
    "host": host_case,
}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder")
    parser.add_argument("--cases", default="", help="default: all of the GPU, if there is one, and host")
    parser.add_argument("--gigabytes", type=float, default=4, help="of a data set, before packing")
    parser.add_argument("--seconds", type=float, default=8, help="of a measurement")
    parser.add_argument("--json")
    arguments = parser.parse_args()
    gpu = sl.has_cuda and sl.cuda_device_count() > 0
    chosen = (
        arguments.cases.split(",") if arguments.cases else [name for name in CASES if gpu or name == "host"]
    )
    arguments.limit = link_limit() if gpu and chosen != ["host"] else 0
    if arguments.limit:
        print(f"link: {arguments.limit / 1e9:.2f} GB/s")
    reports, missed = [], False
    for name in chosen:
        report = {"case": name, **CASES[name](arguments)}
        reports.append(report)
        met = report["share"] >= report["wanted"]
        missed = missed or not met
        print(
            f"{name:13} {report['share']:7.3f} wanted {report['wanted']:<5} "
            f"{'met   ' if met else 'MISSED'} "
            f"{report['samples_per_s']:10.0f} samples/s {report['bytes_per_s'] / 1e9:7.2f} GB/s, "
            f"{report['transport']}, starved {report['starved']:.2f}; "
            + ", ".join(
                f"{key} {value:.4g}"
                for key, value in report.items()
                if key.startswith(("image_alone", "torchvision"))
            ),
            flush=True,
        )
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump({"link_bytes_per_s": arguments.limit, "cases": reports}, file, indent=1)
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
