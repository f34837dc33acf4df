#!/usr/bin/env python3
"""Memory and start of shardify with many inputs. Not a test of CTest: it takes minutes,
and disk for 200,000 names.

    tests/programs/shardify/scale_check.py PHOTOS [--bin build/release/bin] [--counts 2000,200000]
        [--work FOLDER] [-- further options]

PHOTOS is a folder of some photos (its folders are the classes); it is copied to WORK once. For each count a
folder of hard links to the copies is made and converted with --resize 32 --crop 32 --fast-decode (many images
in a short time). Printed are

    inputs, samples, shards, seconds from the start to the first decode, images/s, CPU seconds,
    peak resident memory

The exit code is 1 when the peak is above 256 MiB plus two shards in flight, when a larger count needs over 16
MiB more than the smallest, apart from 200 bytes for each further input (its name, its label), or when up to
200,000 inputs take 2 s or more to the first decode (the links have just been made: the file system is warm).
"""

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

MIB = 1 << 20
SHARD_MIB = 64
BYTES_AN_INPUT = 200


def make_links(photos, folder, count):
    files = sorted(p for p in photos.rglob("*") if p.is_file() and p.parent != photos)
    if not files:
        sys.exit(f"no photos in the folders of '{photos}'")
    for i in range(count):
        source = files[i % len(files)]
        target = folder / source.parent.name / f"{i // len(files):06}-{source.name}"
        target.parent.mkdir(parents=True, exist_ok=True)
        os.link(source, target)


def peak_of(command):
    """Runs a command in a child of its own, so that ru_maxrss is that of the command alone.
    Returns (stdout, bytes, seconds of CPU)."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        run = subprocess.run(command, stdout=subprocess.PIPE, check=False)
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        with os.fdopen(writer, "w") as file:
            json.dump(
                {
                    "code": run.returncode,
                    "out": run.stdout.decode(),
                    "peak": usage.ru_maxrss * 1024,
                    "cpu": usage.ru_utime + usage.ru_stime,
                },
                file,
            )
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as file:
        result = json.load(file)
    os.waitpid(pid, 0)
    if result["code"] not in (0, 1):
        sys.exit(f"{' '.join(command)}: exit code {result['code']}")
    return result["out"], result["peak"], result["cpu"]


def measure(arguments, work, photos, count, failed):
    images = work / f"in{count}"
    make_links(photos, images, count)
    command = [
        str(arguments.bin / "shardify"),
        str(images),
        str(work / "out"),
        "--resize",
        "32",
        "--crop",
        "32",
        "--fast-decode",
        "--dtype",
        "u8",
        "--shard-bytes",
        f"{SHARD_MIB}MiB",
        "--json",
        "--quiet",
        *arguments.options,
    ]
    out, peak, cpu = peak_of(command)
    run = json.loads(out)
    shutil.rmtree(work / "out")
    shutil.rmtree(images)
    print(
        f"{count:8} {run['samples']:8} {run['shards']:6} {run['scan_seconds']:8.3f} "
        f"{run['images_per_second']:9.0f} {cpu:7.1f} "
        f"{peak / MIB:9.1f}",
        flush=True,
    )
    if run["samples"] + run["rejects"] != count:
        failed.append(f"{count} inputs became {run['samples']} samples and {run['rejects']} rejects")
    if peak > (256 + 2 * SHARD_MIB) * MIB:
        failed.append(
            f"{count} inputs: peak of {peak / MIB:.1f} MiB is above 256 MiB + 2 shards of {SHARD_MIB} MiB"
        )
    if count <= 200_000 and run["scan_seconds"] >= 2:
        failed.append(f"{count} inputs: {run['scan_seconds']:.2f} s to the first decode")
    return peak


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("photos", type=Path)
    parser.add_argument("--bin", type=Path, default=Path(__file__).resolve().parents[3] / "build/release/bin")
    parser.add_argument("--counts", default="2000,200000")
    parser.add_argument("--work", type=Path, help="default: the system's folder for temporary files")
    parser.add_argument("options", nargs="*", help="further options of shardify, after --")
    arguments = parser.parse_args()
    work = Path(tempfile.mkdtemp(prefix="shard-scale.", dir=arguments.work))
    failed = []
    try:
        photos = work / "photos"
        shutil.copytree(arguments.photos, photos)
        print(
            f"{'inputs':>8} {'samples':>8} {'shards':>6} {'start s':>8} {'images/s':>9} {'CPU s':>7} "
            f"{'peak MiB':>9}"
        )
        counts = [int(count) for count in arguments.counts.split(",")]
        peaks = [measure(arguments, work, photos, count, failed) for count in counts]
        for count, peak in zip(counts, peaks):
            if peak - peaks[0] > 16 * MIB + BYTES_AN_INPUT * (count - counts[0]):
                failed.append(f"the peak grows with the inputs: {[round(p / MIB, 1) for p in peaks]} MiB")
    finally:
        shutil.rmtree(work, ignore_errors=True)
    for text in failed:
        print("FAILED:", text)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
