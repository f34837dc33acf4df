#!/usr/bin/env python3
"""The tables of augmentation in docs/benchmarks.md: pipelines on a GPU against its link, several views, a
training step, and the host against torchvision.

    python3 bench/scripts/augmentation.py FOLDER [--packed DATASET] [--cases NAME,...] [--gigabytes 3]
        [--seconds 2] [--json FILE]

Needs shardloader and PyTorch, and torchvision for `step-...`. FOLDER receives the data sets (kept, so that a
second run is quick). --packed names a data set of photographs (shardify IMAGES OUT --resize 256 --crop 256
--dtype u8 --layout nhwc --codec packed) for the cases packed-...; without it they run on generated pictures,
which pack less well. The link's limit is measured in the same process: copies of 2 GiB of pinned memory, the
best of 5. Every case runs epochs first, until no shard was registered for 2 s. Samples are u8 256x256,
batches 256, delivered as float16 NCHW after random-resized-crop 224 and flip; shares are of the link that
carries samples as they are.

    nothing, jitter, blur, rand-augment, trivial, mix      one view
    packed-nothing, packed-jitter, packed-rand-augment     from packed shards
    simclr, dino                                           2 x 224; 2 x 224 + 8 x 96: views a second
    step                                                   ResNet-18, bfloat16: a step without operations,
                                                           with RandAugment, and with RandAugment and mixup
    host                                                   needs no GPU: colour jitter (p 0.8) on the host
                                                           with 2 threads, float32 normalised NCHW, beside
                                                           torchvision v2 in 2 workers of a DataLoader, of
                                                           Pillow images and of tensors, whose samples are
                                                           decoded and in memory before it starts
"""

import argparse
import json
import os
import sys
import time

import numpy as np

import shardloader as sl
from shardloader import ops
from targets import dataloader_rate, link_limit, make, measure, settle

JITTER = [ops.color_jitter(0.4, 0.4, 0.4, 0.1, p=0.8), ops.grayscale(0.2)]
SAMPLE = 256 * 256 * 3
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def crop(*operations, size=224, **options):
    return sl.Augment(random_resized_crop=size, flip=0.5, ops=list(operations), **options)


def blur(kernel):
    return ops.gaussian_blur(kernel, p=0.5)


RAND_AUGMENT = sl.Augment.rand_augment(2, 9, random_resized_crop=224, flip=0.5)
MIX = {"mixup": 0.2, "cutmix": 1.0}
LARGE = crop(*JITTER, blur(23), scale=(0.25, 1))
SMALL = crop(*JITTER, blur(23), size=96, scale=(0.05, 0.25))

# name: options, views of a sample, (what is wanted, unit)
CASES = {
    "nothing": ({"augment": crop()}, 1, None),
    "jitter": ({"augment": crop(*JITTER)}, 1, (0.90, "share")),
    "blur": ({"augment": crop(*JITTER, blur(23), ops.solarize(128, p=0.2))}, 1, (150e3, "views_per_s")),
    "rand-augment": ({"augment": RAND_AUGMENT}, 1, (200e3, "views_per_s")),
    "trivial": (
        {"augment": sl.Augment.trivial_augment(random_resized_crop=224, flip=0.5)},
        1,
        (200e3, "views_per_s"),
    ),
    "mix": ({"augment": crop(), **MIX}, 1, (0.95, "of_nothing")),
    "packed-nothing": ({"augment": crop()}, 1, None),
    "packed-jitter": ({"augment": crop(*JITTER)}, 1, (1.4, "share")),
    "packed-rand-augment": ({"augment": RAND_AUGMENT}, 1, None),
    "simclr": ({"views": [crop(*JITTER, blur(23))] * 2}, 2, (250e3, "views_per_s")),
    "dino": ({"views": [LARGE] * 2 + [SMALL] * 8}, 10, (600e3, "views_per_s")),
}
STEPS = {
    "step-nothing": {"augment": crop()},
    "step-rand-augment": {"augment": RAND_AUGMENT},
    "step-rand-augment-mixup": {"augment": RAND_AUGMENT, "mixup": 0.2},
}


def loader_of(data, dtype, options):
    return sl.Loader(
        data, batch_size=256, device="cuda:0", framework="torch", layout="nchw", dtype=dtype, **options
    )


def pipeline(data, name, seconds, limit):
    options, views, wanted = CASES[name]
    loader = loader_of(data, "float16", options)
    result = measure(loader, seconds)
    loader.close()
    rate = result["samples_per_s"]
    return {
        "case": name,
        **result,
        "views_per_s": rate * views,
        "share": rate * SAMPLE / limit,
        "wanted": wanted,
    }


def step(data, name, seconds):
    """Samples a second that a network trains on."""
    import torch
    import torchvision

    net = torchvision.models.resnet18(num_classes=10).to("cuda", memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(net.parameters(), 0.01)

    def train(batch):
        images = batch.images.contiguous(memory_format=torch.channels_last)
        with torch.autocast("cuda", torch.bfloat16):
            loss = torch.nn.functional.cross_entropy(net(images), batch.soft_labels(10))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()

    loader = loader_of(data, "bfloat16", STEPS[name])
    epoch = settle(loader)
    for batch in loader.epoch(epoch):
        train(batch)
    torch.cuda.synchronize()
    before, begin, samples = loader.stats(), time.perf_counter(), 0
    while time.perf_counter() - begin < seconds:
        epoch += 1
        for batch in loader.epoch(epoch):
            train(batch)
            samples += loader.batch_size
    torch.cuda.synchronize()
    took, after = time.perf_counter() - begin, loader.stats()
    loader.close()
    return {
        "case": name,
        "samples_per_s": samples / took,
        "starved": (after.starved_seconds - before.starved_seconds) / took,
        "wanted": (0.95, "of_nothing"),
    }


def torchvision_rate(data, seconds, form, workers=2):
    """Samples a second of torchvision v2 in a DataLoader.
    form: "pillow" or "tensor", what the transforms get."""
    import torch
    from PIL import Image
    from torchvision.transforms import v2

    pixels = [torch.from_numpy(np.array(data[index][0])) for index in range(len(data))]

    class Samples(torch.utils.data.Dataset):
        transform = v2.Compose(
            [
                *([] if form == "pillow" else [v2.ToImage()]),
                v2.RandomResizedCrop(224, antialias=True),
                v2.RandomHorizontalFlip(0.5),
                v2.RandomApply([v2.ColorJitter(0.4, 0.4, 0.4, 0.1)], p=0.8),
                v2.ToImage(),
                v2.ToDtype(torch.float32, scale=True),
                v2.Normalize(MEAN, STD),
            ]
        )

        def __len__(self):
            return len(pixels)

        def __getitem__(self, index):
            row = pixels[index]
            return self.transform(Image.fromarray(row.numpy()) if form == "pillow" else row.permute(2, 0, 1))

    torch.set_num_threads(1)
    torch.multiprocessing.set_sharing_strategy("file_system")
    loader = torch.utils.data.DataLoader(
        Samples(), 64, shuffle=True, num_workers=workers, persistent_workers=True, drop_last=True
    )
    return dataloader_rate(loader, seconds)


def host(data, seconds):
    """The host device beside torchvision."""
    augment = sl.Augment(random_resized_crop=224, flip=0.5, ops=[ops.color_jitter(0.4, 0.4, 0.4, 0.1, p=0.8)])
    loader = sl.Loader(
        data,
        batch_size=64,
        device="cpu",
        framework="torch",
        layout="nchw",
        dtype="float32",
        mean=MEAN,
        std=STD,
        threads=2,
        augment=augment,
    )
    result = measure(loader, seconds)
    loader.close()
    rivals = {
        f"torchvision_{form}_samples_per_s": torchvision_rate(data, seconds, form)
        for form in ("pillow", "tensor")
    }
    return {
        "case": "host",
        **result,
        **rivals,
        "times": result["samples_per_s"] / max(rivals.values()),
        "wanted": (5, "times"),
    }


def judge(report, rates):
    """Adds what the case is compared with, and whether it reached what is wanted.
    rates: samples a second of the cases before."""
    of = (
        "step-nothing"
        if report["case"].startswith("step-")
        else "nothing"
        if report["case"] == "mix"
        else None
    )
    if of in rates:
        report["of_nothing"] = report["samples_per_s"] / rates[of]
    wanted = report.get("wanted")
    if wanted and wanted[1] in report:
        report["met"] = report[wanted[1]] >= wanted[0] and (
            not report["case"].startswith("step-") or report["starved"] < 0.01
        )


def show(report):
    wanted = report.get("wanted")
    verdict = (
        ""
        if "met" not in report
        else f"wanted {wanted[0]:g} {wanted[1]} {'met' if report['met'] else 'MISSED'}"
    )
    numbers = ", ".join(
        f"{key} {report[key]:.4g}"
        for key in (
            "share",
            "of_nothing",
            "times",
            "torchvision_pillow_samples_per_s",
            "torchvision_tensor_samples_per_s",
            "starved",
        )
        if key in report
    )
    print(
        f"{report['case']:24} {report['samples_per_s']:10.0f} samples/s "
        f"{report.get('views_per_s', report['samples_per_s']):11.0f} views/s; {numbers}; {verdict}",
        flush=True,
    )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder")
    parser.add_argument("--packed", help="data set of packed photographs, u8 256x256")
    parser.add_argument("--cases", default="", help="default: all")
    parser.add_argument("--gigabytes", type=float, default=3, help="of a data set, before packing")
    parser.add_argument("--seconds", type=float, default=2, help="of a measurement")
    parser.add_argument("--json")
    arguments = parser.parse_args()
    gpu = sl.has_cuda and sl.cuda_device_count() > 0
    chosen = arguments.cases.split(",") if arguments.cases else [*CASES, "step", "host"] if gpu else ["host"]
    samples = int(arguments.gigabytes * 1e9 / (256 * 256 * 4))
    plain = chosen != ["host"] and make(os.path.join(arguments.folder, "plain-256"), 256, samples)
    packed = None
    if any(name.startswith("packed-") for name in chosen):
        packed = (
            sl.Dataset(arguments.packed)
            if arguments.packed
            else make(os.path.join(arguments.folder, "packed-256"), 256, samples, codec="packed")
        )
    limit = link_limit() if gpu and chosen != ["host"] else 0
    if limit:
        print(f"link: {limit / 1e9:.2f} GB/s, {limit / SAMPLE:.0f} samples/s")
    reports = []
    for name in chosen:
        for one in STEPS if name == "step" else (name,):
            if name == "host":
                report = host(
                    make(os.path.join(arguments.folder, "host-256"), 256, 2048, boxes=20), arguments.seconds
                )
            elif name == "step":
                report = step(plain, one, max(arguments.seconds, 4))
            else:
                report = pipeline(
                    packed if name.startswith("packed-") else plain, name, arguments.seconds, limit
                )
            judge(report, {before["case"]: before["samples_per_s"] for before in reports})
            show(report)
            reports.append(report)
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump({"link_bytes_per_s": limit, "cases": reports}, file, indent=1)
    sys.exit(0 if all(report.get("met", True) for report in reports) else 1)


if __name__ == "__main__":
    main()
