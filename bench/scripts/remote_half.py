#!/usr/bin/env python3
"""Epochs of data sets on a server with a cache of half of the data, over a line of limited rate,
with a consumer that takes time.

    python3 bench/scripts/remote_half.py FOLDER build/dev/bin/tcp_link [--epochs 10] [--rate 100]

Needs what remote.py needs. nginx on the loopback interface behind tests/programs/support/tcp_link.cpp, which
lets through RATE MB/s for all connections together. FOLDER receives three data sets (kept): 63 shards of 8.8
MB, 200 of 0.9 MB, and 80 of uneven size. For each, with window_shards 2 and 8, a process loads EPOCHS
epochs. A batch takes the consumer (a pause) as long as its share of the time that the line needs for half of
the data, times PACE: 0.5 (the line is slower), 1 and 2 (the consumer is slower). Prints JSON lines:

    share    mean of the bytes fetched in epochs 2 and later, as a share of all; with it the lowest and the
             highest epoch
    time     the seconds of these epochs, divided by the longer one of what the consumer and what the line
             (its bytes / RATE) need
    waited   share of these seconds in which a batch waited for shards (stats().fetch_seconds)
"""

import argparse
import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

import remote

PACES = 0.5, 1.0, 2.0


def make(folder, shards, samples, uneven):
    """Shards of `samples` images of 96x96; uneven: of noise that differs from shard to shard, so that codec
    packed makes them of 1 to 8 bits per value."""
    import numpy as np

    import shardloader as sl

    if (folder / "dataset.json").exists():
        return
    rng = np.random.default_rng(2)
    with sl.Writer(
        str(folder), squash=(96, 96), dtype="uint8", layout="nhwc", codec="packed", samples_per_shard=samples
    ) as writer:
        for number in range(shards * samples):
            if number % samples == 0:
                levels = int(2 ** rng.uniform(1, 8)) if uneven else 256
            writer.add(f"{number}", rng.integers(0, levels, (96, 96, 3), dtype=np.uint8), 0)


def load(url, window, cache, cache_bytes, epochs, seconds):
    """In a process of its own. `seconds`: what the consumer takes for an epoch."""
    import numpy  # noqa: F401  which the first batch would import

    import shardloader as sl

    loader = sl.Loader(
        url,
        batch_size=64,
        device="cpu",
        framework="numpy",
        window_shards=window,
        drop_last=False,
        remote=sl.RemoteOptions(cache=cache, cache_bytes=cache_bytes),
    )
    pause = seconds / len(loader)
    found = []
    for epoch in range(epochs):
        before, begin = loader.stats(), time.perf_counter()
        due = begin
        for _ in loader.epoch(epoch):
            due = max(due, time.perf_counter()) + pause
            time.sleep(max(0, due - time.perf_counter()))
        stats = loader.stats()
        found.append(
            [
                time.perf_counter() - begin,
                stats.fetched_bytes - before.fetched_bytes,
                stats.fetch_seconds - before.fetch_seconds,
            ]
        )
    print(json.dumps(found))


def child(*words):
    return remote.result(
        subprocess.Popen(
            [sys.executable, __file__, "--load", *map(str, words)], stdout=subprocess.PIPE, text=True
        )
    )


def measure(url, size, window, pace, cache, options):
    wire = size / 2 / options.rate / 1e6
    epochs = child(url, window, cache, size // 2, options.epochs, wire * pace)[1:]
    seconds, fetched, waited = (sum(values) for values in zip(*epochs))
    shares = [epoch[1] / size for epoch in epochs]
    longer = max(wire * pace * len(epochs), fetched / options.rate / 1e6)
    return {
        "share": [round(value, 3) for value in (sum(shares) / len(shares), min(shares), max(shares))],
        "time": round(seconds / longer, 3),
        "waited": round(waited / seconds, 3),
    }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("tcp_link", type=Path)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--rate", type=int, default=100)
    options = parser.parse_args()
    from remote_servers import Link, Nginx

    work, sets = options.folder / "work", options.folder / "half"
    sets.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(work, ignore_errors=True)
    with (
        Nginx(sets, work / "nginx") as server,
        Link(options.tcp_link, server.url, mb_per_s=options.rate) as link,
    ):
        for shards, samples in (63, 320), (200, 32), (80, 320):
            data = sets / f"{shards}"
            make(data, shards, samples, shards == 80)
            size = sum(file.stat().st_size for file in data.glob("*.safetensors"))
            for window in 2, 8:
                for pace in PACES:
                    found = measure(f"{link.url}/{shards}", size, window, pace, work / "cache", options)
                    print(
                        json.dumps(
                            {"shards": shards, "bytes": size, "window": window, "pace": pace, **found}
                        ),
                        flush=True,
                    )
                    shutil.rmtree(work / "cache")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--load"]:
        load(
            sys.argv[2], int(sys.argv[3]), sys.argv[4], int(sys.argv[5]), int(sys.argv[6]), float(sys.argv[7])
        )
    else:
        main()
