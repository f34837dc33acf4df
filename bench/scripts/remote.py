#!/usr/bin/env python3
"""The table of data sets on servers in docs/benchmarks.md: nginx on the loopback interface, started here,
against `curl` and a local folder.

    python3 bench/scripts/remote.py FOLDER [--samples 4000] [--json FILE]

Needs shardloader, numpy, nginx and curl. FOLDER receives a data set (codec packed, kept), caches and nginx's
files; it should be in memory or on a quick disk. Every case has a process of its own. What is compared runs
one after the other on the same machine, server included.

    curl       32 ranges of the shards at a time to /dev/null, by one `curl --parallel`: bytes per second
    fetch      all shards into an empty cache, compared with their digests and not decoded: bytes per second
    decode     epochs from the local folder in the page cache: stored bytes per second
    first      the first epoch, windowed, with an empty cache, host device: bytes fetched per second
    transit    the second epoch without a cache, through a transit area of two windows: bytes fetched per
               second
    cpu        CPU seconds per GB of the server, curl, fetch, decode and first. Where all of them share the
               cores, first can not be faster than cores / (server + fetch + decode) allow
    half       4 epochs with a cache of half of the data: bytes fetched in epochs 2 to 4, as a share of all
    cached     epochs with everything in the cache: samples per second, and those of the local folder
    ranks      8 processes on one cache at once: how often the body of a shard was fetched
    memory     the most resident memory of `first` that is not of files, less that of the local folder
"""

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # of numpy: its idle threads take a third of a core

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "programs" / "support"))


def make(folder, samples, codec="packed"):
    import numpy as np

    import shardloader as sl

    if (folder / "dataset.json").exists():
        return
    rng = np.random.default_rng(0)
    y, x = np.mgrid[:256, :256].astype(np.float32)
    pictures = []
    for _ in range(32):
        waves = sum(
            np.sin(x * rng.uniform(0.01, 0.1) + y * rng.uniform(0.01, 0.1) + rng.uniform(0, 6))
            for _ in range(3)
        )
        pictures.append(
            np.clip(
                128 + 35 * waves[..., None] * rng.uniform(0.4, 1, 3) + rng.normal(0, 4, (256, 256, 3)), 0, 255
            ).astype(np.uint8)
        )
    with sl.Writer(
        str(folder), squash=(256, 256), dtype="uint8", layout="nhwc", codec=codec, shard_bytes=12 << 20
    ) as writer:
        for number in range(samples):
            writer.add(f"{number}", np.roll(pictures[number % 32], number * 7 % 256, 0), number % 10)


def cpu_of(server):
    """CPU seconds of the server's processes so far."""
    seconds = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if server.processes[0].pid in (int(stat.parent.name), int(fields[1])):
            seconds += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return seconds


def fetch(path, cache, shards):
    """In a process of its own: brings every shard into the cache,
    while one batch of a global shuffle is made."""
    import numpy  # noqa: F401  which the first batch would import

    import shardloader as sl

    begin, started = time.perf_counter(), sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
    loader = sl.Loader(
        path,
        batch_size=1,
        device="cpu",
        framework="numpy",
        shuffle=True,
        prefetch=1,
        remote=sl.RemoteOptions(cache=cache),
    )
    next(iter(loader.epoch(0)))
    while sum(name.endswith(".safetensors") for name in os.listdir(cache)) < shards:
        time.sleep(0.002)
    print(
        json.dumps(
            {
                "seconds": time.perf_counter() - begin,
                "cpu": sum(resource.getrusage(resource.RUSAGE_SELF)[:2]) - started,
            }
        )
    )


def load(path, epochs, cache, cache_bytes):
    """In a process of its own: a line of JSON."""
    import numpy  # noqa: F401  which the first batch would import

    import shardloader as sl

    options = {"remote": sl.RemoteOptions(cache=cache, cache_bytes=cache_bytes)} if cache else {}
    started = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
    begin = time.perf_counter()
    loader = sl.Loader(
        path, batch_size=64, device="cpu", framework="numpy", window_shards=2, drop_last=False, **options
    )
    found, before, first = [], 0, None
    for epoch in range(epochs):
        start, count = time.perf_counter(), 0
        for images, _ in loader.epoch(epoch):
            first = first or time.perf_counter() - begin
            count += len(images)
        stats = loader.stats()
        found.append(
            {
                "seconds": time.perf_counter() - start,
                "samples": count,
                "fetched": stats.fetched_bytes - before,
            }
        )
        before = stats.fetched_bytes
    anonymous = [
        int(line.split()[1])
        for line in Path("/proc/self/status").read_text().splitlines()
        if line.startswith("RssAnon")
    ]
    print(
        json.dumps(
            {
                "epochs": found,
                "first_batch": first,
                "transport": stats.transport,
                "anonymous_kb": anonymous[0],
                "retries": stats.retries,
                "cpu": sum(resource.getrusage(resource.RUSAGE_SELF)[:2]) - started,
            }
        )
    )


def child(path, epochs=1, cache="", cache_bytes=0, what="--load"):
    return subprocess.Popen(
        [sys.executable, __file__, what, str(path), str(epochs), str(cache), str(cache_bytes)],
        stdout=subprocess.PIPE,
        text=True,
    )


def result(process):
    out, _ = process.communicate(timeout=600)
    assert process.returncode == 0
    return json.loads(out)


def curl(url, files, work, enter=()):
    """32 requests at a time, of 8 MiB each. `enter`: what the command begins with."""
    lines = []
    for file in files:
        for begin in range(0, file.stat().st_size, 8 << 20):
            lines.append(
                f'url = "{url}/{file.name}"\nrange = "{begin}-{begin + (8 << 20) - 1}"\noutput = '
                '"/dev/null"\n'
            )
    (work / "curl.conf").write_text("next\n".join(lines))
    start, before = time.perf_counter(), sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])
    subprocess.run(
        [
            *enter,
            "curl",
            "--parallel",
            "--parallel-max",
            "32",
            "--parallel-immediate",
            "-s",
            "-K",
            str(work / "curl.conf"),
        ],
        check=True,
        timeout=600,
        stderr=subprocess.DEVNULL,
    )
    seconds = time.perf_counter() - start
    return sum(file.stat().st_size for file in files) / seconds, sum(
        resource.getrusage(resource.RUSAGE_CHILDREN)[:2]
    ) - before


def one_round(server, url, data, files, work, turn):
    """What is compared, one after the other."""
    size = sum(file.stat().st_size for file in files)
    caches = [work / f"{what}-{turn}" for what in ("fetch", "first")]
    server_cpu = cpu_of(server)
    limit, curl_cpu = curl(url, files, work)
    server_cpu = cpu_of(server) - server_cpu
    bare = result(child(url, 0, caches[0], len(files), "--fetch"))
    first = result(child(url, 1, caches[1]))
    local = result(child(data, 2))
    passing = result(child(url, 2))
    found = {
        "curl": limit / 1e6,
        "fetch": size / bare["seconds"] / 1e6,
        "decode": size / local["epochs"][1]["seconds"] / 1e6,
        "first": first["epochs"][0]["fetched"] / first["epochs"][0]["seconds"] / 1e6,
        "transit": size / passing["epochs"][1]["seconds"] / 1e6,
        "cpu": {
            "server": server_cpu,
            "curl": curl_cpu,
            "fetch": bare["cpu"],
            "decode": local["cpu"] / 2,
            "first": first["cpu"],
        },
        "first_batch": first["first_batch"],
        "anonymous_kb": first["anonymous_kb"],
    }
    for cache in caches:
        shutil.rmtree(cache)
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--samples", type=int, default=4000)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    from remote_servers import Nginx

    work = options.folder / "work"
    data = options.folder / "sets" / "packed"
    data.parent.mkdir(parents=True, exist_ok=True)
    make(data, options.samples)
    files = sorted(data.glob("*.safetensors"))
    size = sum(file.stat().st_size for file in files)
    found = {"bytes": size, "shards": len(files)}
    shutil.rmtree(work, ignore_errors=True)
    with Nginx(data.parent, work / "nginx") as server:
        url = f"{server.url}/packed"
        rounds = []
        for turn in range(3):
            rounds.append(one_round(server, url, data, files, work, turn))
        for what in "curl", "fetch", "decode", "first", "transit":
            found[f"{what}_mb_s"] = max(one[what] for one in rounds)
        best = max(rounds, key=lambda one: one["first"])
        found["cpu_s_per_gb"] = {
            what: min(one["cpu"][what] for one in rounds) / size * 1e9 for what in best["cpu"]
        }
        cpu = found["cpu_s_per_gb"]
        found["first_mb_s_at_most"] = (
            len(os.sched_getaffinity(0)) / (cpu["server"] + cpu["fetch"] + cpu["decode"]) * 1e3
        )
        found["first_batch_seconds"] = best["first_batch"]
        half = result(child(url, 4, work / "half", size // 2))
        found["half"] = [epoch["fetched"] / size for epoch in half["epochs"]]
        result(child(url, 1, work / "all"))
        local = [result(child(data, 3)) for _ in range(2)]
        cached = [result(child(url, 3, work / "all")) for _ in range(2)]

        def rate(runs):
            return max(epoch["samples"] / epoch["seconds"] for run in runs for epoch in run["epochs"][1:])

        found["cached_samples_s"], found["local_samples_s"], found["cached_transport"] = (
            rate(cached),
            rate(local),
            cached[0]["transport"],
        )
        found["memory_mb"] = (best["anonymous_kb"] - local[0]["anonymous_kb"]) / 1e3
        before = len(server.requests())
        ranks = [child(url, 1, work / "ranks") for _ in range(8)]
        for rank in ranks:
            result(rank)
        bodies = sum(
            int(line.split('" ')[1].split()[1])
            for line in server.requests()[before:]
            if ".safetensors" in line
        )
        found["ranks_bytes"] = bodies / size
    print(json.dumps(found, indent=1))
    if options.json:
        options.json.write_text(json.dumps(found))


if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1] == "--fetch":
        fetch(sys.argv[2], sys.argv[4], int(sys.argv[5]))
    elif len(sys.argv) > 1 and sys.argv[1] == "--load":
        load(sys.argv[2], int(sys.argv[3]), sys.argv[4], int(sys.argv[5]))
    else:
        main()
