#!/usr/bin/env python3
"""JPEG files that are not converted, from a folder and a tar archive to a GPU: photographs/s and cores.

    folder.py IMAGES [--converted DATASET] [--tar FILE] [--seconds S] [--threads N] [--torchvision]

Random resized crop of 224, flip, float16. Each loader runs three epochs first, that of the archive for at
least 8 seconds, in which it is registered; then epochs for S seconds. With --converted (IMAGES by `shardify
IMAGES DATASET --size original --codec jpeg`) the converted set is timed, too, also after 8 seconds, and every
value of an epoch is compared. Bytes are those of the loader's device memory.
--torchvision: ImageFolder with 16 workers beside it. Prints JSON.
"""

import argparse
import json
import time

import torch

import shardloader as sl

VIEW = {"device": "cuda:0", "random_resized_crop": 224, "flip": True, "dtype": "float16"}


def rate_of(data, seconds, warm=0, **options):
    """Photographs/s, cores and bytes of device memory."""
    loader = sl.Loader(data, **{**VIEW, "batch_size": 256, **options})
    begin, epoch = time.perf_counter(), 0
    while epoch < 3 or time.perf_counter() - begin < warm:
        for _ in loader.epoch(epoch):
            pass
        epoch += 1
    torch.cuda.synchronize()
    begin, cpu, done = time.perf_counter(), time.process_time(), 0
    while time.perf_counter() - begin < seconds:
        for images, _ in loader.epoch(epoch):
            done += images.shape[0]
        epoch += 1
    torch.cuda.synchronize()
    wall = time.perf_counter() - begin
    cores = round((time.process_time() - cpu) / wall, 2)
    return {"rate": round(done / wall), "cores": cores, "device_bytes": loader.stats().device_bytes}


def differences(data, converted, threads):
    """Of an epoch: values that differ, and values."""
    loaders = [
        sl.Loader(of, batch_size=256, **VIEW, **more)
        for of, more in ((data, {"threads": threads}), (converted, {}))
    ]
    differ = values = 0
    for (a, labels), (b, others) in zip(*(loader.epoch(3) for loader in loaders), strict=True):
        a, b = torch.as_tensor(a), torch.as_tensor(b)
        differ += int((a.view(torch.int16) != b.view(torch.int16)).sum())
        values += a.numel()
        if not bool((torch.as_tensor(labels) == torch.as_tensor(others)).all()):
            raise SystemExit("labels differ")
    return differ, values


def image_folder(images, seconds):
    """torchvision's ImageFolder with 16 workers, to the GPU."""
    import torchvision
    from torchvision import transforms

    view = [transforms.RandomResizedCrop(224), transforms.RandomHorizontalFlip(), transforms.ToTensor()]
    data = torchvision.datasets.ImageFolder(images, transforms.Compose(view))
    batches = iter(torch.utils.data.DataLoader(data, 256, True, num_workers=16, pin_memory=True))
    next(batches)
    begin, done = time.perf_counter(), 0
    for batch, _ in batches:
        done += batch.cuda(non_blocking=True).shape[0]
        if time.perf_counter() - begin > seconds:
            break
    torch.cuda.synchronize()
    return round(done / (time.perf_counter() - begin))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("images")
    parser.add_argument("--converted")
    parser.add_argument("--tar")
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--threads", type=int, default=15)
    parser.add_argument("--torchvision", action="store_true")
    given = parser.parse_args()
    found = {"device": torch.cuda.get_device_name(), "threads": given.threads}
    folder = sl.Source(given.images, size="original")
    sources = {"folder": folder}
    if given.tar:
        sources["tar"] = sl.Source(given.tar, size="original")
    for name, data in sources.items():
        warm = 8 if name == "tar" else 0
        found[name] = rate_of(data, given.seconds, warm, threads=given.threads)
        found[f"{name}, 4 threads"] = rate_of(data, given.seconds, warm, threads=4)
    for size in (64, 32):
        found[f"folder, batches of {size}"] = rate_of(
            folder, given.seconds, threads=given.threads, batch_size=size
        )
        if given.tar:
            found[f"tar, batches of {size}"] = rate_of(sources["tar"], given.seconds, 8, batch_size=size)
    found["folder, resident"] = rate_of(folder, given.seconds, threads=given.threads, transport="resident")
    if given.converted:
        data = sl.Dataset(given.converted)
        found["converted"] = rate_of(data, given.seconds, warm=8)
        found["converted, resident"] = rate_of(data, given.seconds, transport="resident")
        found["values that differ, values"] = differences(folder, data, given.threads)
    if given.torchvision:
        found["ImageFolder, 16 workers"] = image_folder(given.images, given.seconds)
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
