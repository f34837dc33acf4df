#!/usr/bin/env python3
"""A cache that is filled while images are used, compared with a conversion and an epoch of it.

    source_cache.py IMAGES WORK [--processes 4] [--rounds 3] [--preset train] [--codec none]

Each round, in new processes: convert; an epoch of the converted data set; two epochs with an empty cache; the
same by several processes that share the threads. The folders `converted` and `cache` in WORK are made again.
Prints seconds, CPU seconds and decoded images of each, and fails if the two folders differ. Needs the package
shardloader.
"""

import argparse
import os
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path

BATCHES = {"batch_size": 64, "framework": "numpy", "random_resized_crop": 96, "flip": True, "seed": 1}


def use(data, epochs, **how):
    import shardloader as sl

    loader = sl.Loader(data, tail="short", **{**BATCHES, **how})
    for epoch in range(epochs):
        for _ in loader.epoch(epoch):
            pass


def cached(images, folder, options, rank, world):
    """Seconds until the two epochs end and until the folder is finished, and how many images were decoded."""
    import shardloader as sl

    begin = time.monotonic()
    source = sl.Source(images, cache=folder, **options)
    threads = max(1, len(os.sched_getaffinity(0)) // world)
    use(source, 2, rank=rank, world_size=world, threads=threads, batch_size=max(1, 64 // world))
    epochs = time.monotonic() - begin
    while source.cache and not source.cache.progress().complete:
        time.sleep(0.01)
    now = source.cache.progress() if source.cache else None
    decoded = now.decoded + now.decoded_for_shards if now else 0
    return epochs, time.monotonic() - begin, decoded


def step(name, images, work, options, rank, world):
    import shardloader as sl

    begin = time.monotonic()
    decoded = 0
    epochs = 0.0
    if name == "convert":
        sl.convert(images, work / "converted", **options)
    elif name == "epoch":
        use(work / "converted", 1)
    else:
        epochs, _, decoded = cached(images, work / "cache", options, rank, world)
    used = resource.getrusage(resource.RUSAGE_SELF)
    print(epochs, time.monotonic() - begin, used.ru_utime + used.ru_stime, decoded)


def run(name, arguments, world=1):
    commands = [
        [sys.executable, "-W", "ignore", __file__, *arguments, "--step", name, str(rank), str(world)]
        for rank in range(world)
    ]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for command in commands]
    rows = [list(map(float, one.communicate()[0].split())) for one in running]
    if any(one.returncode for one in running):
        raise SystemExit(f"{name} failed")
    epochs, seconds = (max(row[i] for row in rows) for i in (0, 1))
    cpu, decoded = (sum(row[i] for row in rows) for i in (2, 3))
    print(
        f"{name:8} {world} processes: two epochs {epochs:6.2f} s, all {seconds:6.2f} s, CPU {cpu:6.2f} s, "
        f"{decoded:.0f} decoded",
        flush=True,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("images")
    parser.add_argument("work", type=Path)
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--preset", default="train")
    parser.add_argument("--codec", default="none")
    parser.add_argument("--samples-per-shard", type=int, default=128)
    parser.add_argument("--step", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    options = {
        "preset": given.preset,
        "codec": given.codec,
        "samples_per_shard": given.samples_per_shard,
    }
    if given.step:
        name, rank, world = given.step
        return step(name, given.images, given.work, options, int(rank), int(world))
    for _ in range(given.rounds):
        for world in (1, given.processes):
            for folder in ("converted", "cache"):
                shutil.rmtree(given.work / folder, ignore_errors=True)
            if world == 1:
                run("convert", sys.argv[1:])
                run("epoch", sys.argv[1:])
                converted = {path.name: path.read_bytes() for path in (given.work / "converted").iterdir()}
            run("cache", sys.argv[1:], world)
            if {path.name: path.read_bytes() for path in (given.work / "cache").iterdir()} != converted:
                raise SystemExit("the finished cache is not the converted data set")


if __name__ == "__main__":
    main()
