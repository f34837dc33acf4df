#!/usr/bin/env python3
"""Data sets on servers over a line: 10 ms in each direction and 125 MB/s,
by tests/programs/support/tcp_link.cpp before nginx on the loopback interface.

    python3 bench/scripts/remote_line.py FOLDER build/dev/bin/tcp_link [--samples 3000] [--runs 3]
    python3 bench/scripts/remote_line.py FOLDER build/dev/bin/ip_link [--loss 0.01] [--congestion reno] ...

The second form has the kernel's own TCP between two network namespaces (tests/programs/support/ip_link.cpp),
where packets are lost; of 125 MB/s, packets of 1,500 bytes have 120.7 for data. It needs root.

Needs what remote.py needs, and uses its data set in FOLDER. Every case has a process, a line and an empty
cache of its own. Prints JSON with all runs:

    curl             32 ranges of the shards at a time to /dev/null, by one `curl --parallel`: MB/s
    first_8          an epoch with window_shards=8 and a cache, host device: bytes fetched per second of the
                     epoch, in MB
    first_2          the same with window_shards=2
    batch_windowed   the first batch of 64 of a set of 1,000 shards with window_shards=8 and a cache: seconds
                     from the address to the batch
    batch_shuffled   the same with a shuffle of everything and no cache: 64 samples of almost as many shards
"""

import argparse
import contextlib
import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

import remote


def make_many(folder):
    """1,000 shards of 16 samples."""
    import numpy as np

    import shardloader as sl

    if (folder / "dataset.json").exists():
        return
    rng = np.random.default_rng(1)
    with sl.Writer(
        str(folder), squash=(64, 64), dtype="uint8", layout="nhwc", codec="none", samples_per_shard=16
    ) as writer:
        for number in range(16_000):
            writer.add(f"{number}", rng.integers(0, 256, (64, 64, 3), dtype=np.uint8), number % 10)


def load(url, window, cache, whole):
    """In a process of its own: one batch or a whole epoch."""
    import shardloader as sl

    options = {
        **({"window_shards": int(window)} if window != "0" else {}),
        **({"remote": sl.RemoteOptions(cache=cache)} if cache else {}),
    }
    begin = time.perf_counter()
    loader = sl.Loader(url, batch_size=64, device="cpu", framework="numpy", drop_last=False, **options)
    start = time.perf_counter()
    for _ in loader.epoch(0):
        if not whole:
            break
    end = time.perf_counter()
    print(
        json.dumps({"first_batch": end - begin, "mb_s": loader.stats().fetched_bytes / (end - start) / 1e6})
    )


def child(url, window, cache="", whole="", enter=()):
    done = subprocess.run(
        [*enter, sys.executable, __file__, "--load", url, str(window), str(cache), whole],
        stdout=subprocess.PIPE,
        text=True,
        timeout=600,
        check=True,
    )
    return json.loads(done.stdout)


@contextlib.contextmanager
def line(options, sets, work):
    """The address of nginx behind a line, and what a command begins with that goes over it."""
    from remote_servers import Hosts, Link, Nginx

    if options.link.name == "tcp_link":
        with (
            Nginx(sets, work / "nginx") as server,
            Link(options.link, server.url, latency_ms=10, mb_per_s=125) as link,
        ):
            yield link.url, []
        return
    more = {"congestion": options.congestion} if options.congestion else {}
    with (
        Hosts(options.link, latency_ms=10, mbit_per_s=1000, loss=options.loss, **more) as hosts,
        Nginx(sets, work / "nginx", there=hosts.far) as server,
    ):
        yield server.url, hosts.near[1]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("link", type=Path)
    parser.add_argument("--loss", type=float, default=0)
    parser.add_argument("--congestion", default="")
    parser.add_argument("--samples", type=int, default=3000)
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    work, sets = options.folder / "work", options.folder / "sets"
    sets.mkdir(parents=True, exist_ok=True)
    remote.make(sets / "packed", options.samples)
    make_many(sets / "many")
    files = sorted((sets / "packed").glob("*.safetensors"))
    shutil.rmtree(work, ignore_errors=True)
    found = {"curl": [], "first_8": [], "first_2": [], "batch_windowed": [], "batch_shuffled": []}
    for turn in range(options.runs):
        with line(options, sets, work) as (url, enter):
            found["curl"].append(remote.curl(f"{url}/packed", files, work, enter)[0] / 1e6)
        for window in 8, 2:
            with line(options, sets, work) as (url, enter):
                found[f"first_{window}"].append(
                    child(f"{url}/packed", window, work / "first", "whole", enter)["mb_s"]
                )
            shutil.rmtree(work / "first")
        with line(options, sets, work) as (url, enter):
            found["batch_windowed"].append(
                child(f"{url}/many", 8, work / f"many-{turn}", "", enter)["first_batch"]
            )
        with line(options, sets, work) as (url, enter):
            found["batch_shuffled"].append(child(f"{url}/many", 0, "", "", enter)["first_batch"])
    print(
        json.dumps(
            {"bytes": sum(file.stat().st_size for file in files), "shards": len(files), **found}, indent=1
        )
    )


if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1] == "--load":
        load(*sys.argv[2:6])
    else:
        main()
