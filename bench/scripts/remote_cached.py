#!/usr/bin/env python3
"""A data set on a server with every shard in the cache, against the same data set in a folder.

    python3 bench/scripts/remote_cached.py FOLDER [--samples 4000] [--pairs 40] [--starts 15] [--json FILE]

Needs what remote.py needs. FOLDER receives two data sets (codecs packed and none, kept), a cache and nginx's
files. The files of both sides are in the same file system and in the page cache. The host device, batches of
256, window_shards=2. Prints JSON, for each codec:

    epochs   one process has a loader for the address and one for the folder, and takes epochs (0.3 s of them)
             of each in turn, as ABBA ABBA ... In between it waits until the loader, which goes on into the
             next epoch, is idle. Samples per second, and per second of CPU time, which other programs on the
             machine disturb less. `ratio`: the median of address / folder of each pair, and the interval in
             which the true median lies with a probability of at least 0.95 (by ranks, without an assumption
             about the distribution)
    files    the same, with a folder of symbolic links to the files of the cache instead of FOLDER's: what is
             left is not where pages lie in memory
    start    processes in the same turns: from `import shardloader` to the first batch, in seconds, and the
             CPU seconds of the process
"""

import argparse
import json
import math
import os
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path

import remote

SIDES = "address", "folder"
IDLE_SECONDS = 0.05
TURN_SECONDS = 0.3


def cpu_seconds():
    return sum(resource.getrusage(resource.RUSAGE_SELF)[:2])


def median_interval(values):
    """The median, and the ranks around it that hold the true one with a probability of at
    least 0.95 (binomial)."""
    values, n = sorted(values), len(values)
    rank, outside = 0, 0.0
    while (outside := outside + math.comb(n, rank) / 2**n) <= 0.025:
        rank += 1
    middle = (values[(n - 1) // 2] + values[n // 2]) / 2
    return [round(value, 4) for value in (middle, values[max(rank - 1, 0)], values[n - max(rank, 1)])]


def turns(count):
    """ABBA ABBA ..., as pairs of the two sides."""
    return [SIDES if number % 2 == 0 else SIDES[::-1] for number in range(count)]


def open_loader(path, cache, started=None):
    import shardloader as sl

    options = {"remote": sl.RemoteOptions(cache=cache)} if cache else {}
    return sl.Loader(
        path, batch_size=256, device="cpu", framework="numpy", window_shards=2, drop_last=False, **options
    )


def epochs(address, folder, cache, pairs):
    """In a process of its own."""
    loaders = {"address": open_loader(address, cache), "folder": open_loader(folder, "")}
    epoch = dict.fromkeys(SIDES, 0)

    def run(side):
        """Whole epochs for at least TURN_SECONDS."""
        time.sleep(IDLE_SECONDS)
        count, begin, cpu = 0, time.perf_counter(), cpu_seconds()
        while not count or time.perf_counter() - begin < TURN_SECONDS:
            for images, _ in loaders[side].epoch(epoch[side]):
                count += len(images)
            epoch[side] += 1
        return {
            "rate": count / (time.perf_counter() - begin),
            "per_cpu_second": count / (cpu_seconds() - cpu),
        }

    for pair in turns(3):  # pages are mapped, threads settle
        for side in pair:
            run(side)
    rates = [{side: run(side) for side in pair} for pair in turns(pairs)]
    stats = {side: loaders[side].stats() for side in SIDES}
    print(
        json.dumps(
            {
                "rates": rates,
                "transports": {side: stats[side].transport for side in SIDES},
                "fetched": stats["address"].fetched_bytes,
            }
        )
    )


def start(path, cache):
    """In a process of its own: what it takes until the first batch is there."""
    begin = time.perf_counter()
    next(iter(open_loader(path, cache).epoch(0)))
    print(json.dumps({"seconds": time.perf_counter() - begin, "cpu_seconds": cpu_seconds()}))


def child(*words):
    return remote.result(
        subprocess.Popen([sys.executable, __file__, *map(str, words)], stdout=subprocess.PIPE, text=True)
    )


def link(folder, cache, links):
    """The data set of `folder`, of the files in the cache."""

    def head(file):
        return file.read_bytes()[: 1 << 16]

    cached = {head(file): file for file in cache.glob("*.safetensors")}
    shutil.rmtree(links, ignore_errors=True)
    links.mkdir()
    shutil.copy(folder / "dataset.json", links)
    for file in folder.glob("*.safetensors"):
        os.symlink(cached[head(file)].absolute(), links / file.name)


def compare(address, folder, cache, options):
    found = child("--epochs", address, folder, cache, options.pairs)
    rates = found["rates"]
    summary = {}
    for what in "rate", "per_cpu_second":
        summary[what] = {
            side: round(median_interval([pair[side][what] for pair in rates])[0]) for side in SIDES
        }
        summary[what]["ratio"] = median_interval(
            [pair["address"][what] / pair["folder"][what] for pair in rates]
        )
    summary.update(transports=found["transports"], fetched=found["fetched"])
    return summary, rates


def measure(address, folder, cache, options):
    remote.result(remote.child(address, 1, cache))  # fills the cache
    summary, rates = compare(address, folder, cache, options)
    links = cache.with_name(f"{cache.name}-links")
    link(folder, cache, links)
    files, file_rates = compare(address, links, cache, options)
    shutil.rmtree(links)
    words = {"address": (address, cache), "folder": (folder, "")}
    starts = [{side: child("--start", *words[side]) for side in pair} for pair in turns(options.starts)]
    first = {}
    for what in "seconds", "cpu_seconds":
        first[what] = {side: median_interval([pair[side][what] for pair in starts])[0] for side in SIDES}
        first[what]["ratio"] = median_interval(
            [pair["address"][what] / pair["folder"][what] for pair in starts]
        )
    return {
        "epochs": summary,
        "files": files,
        "start": first,
        "raw": {"rates": rates, "file_rates": file_rates, "starts": starts},
    }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--samples", type=int, default=4000)
    parser.add_argument("--pairs", type=int, default=40)
    parser.add_argument("--starts", type=int, default=15)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    from remote_servers import Nginx

    work, sets = options.folder / "work", options.folder / "sets"
    sets.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(work, ignore_errors=True)
    found = {}
    with Nginx(sets, work / "nginx") as server:
        for codec in "packed", "none":
            remote.make(sets / codec, options.samples, codec)
            found[codec] = measure(f"{server.url}/{codec}", sets / codec, work / f"cache-{codec}", options)
            shutil.rmtree(work / f"cache-{codec}")
    print(
        json.dumps(
            {
                codec: {key: value for key, value in one.items() if key != "raw"}
                for codec, one in found.items()
            },
            indent=1,
        )
    )
    if options.json:
        options.json.write_text(json.dumps(found))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--epochs"]:
        epochs(*sys.argv[2:5], int(sys.argv[5]))
    elif sys.argv[1:2] == ["--start"]:
        start(*sys.argv[2:4])
    else:
        main()
