#!/usr/bin/env python3
"""sl.Writer, fed with bytes by one Python thread, against the conversion of the same files with the same
jobs: images/s, in pairs.

  bench/scripts/writer.py IMAGES [--copies 10] [--pairs 7] [--jobs 0] [--preset train] [--codec none]
    [--json FILE]

IMAGES: a folder of photographs, for example from `shardbench synth photos --count 240`. They are hard-linked
--copies times into a folder that is removed afterwards. The writer's rate includes reading the files, in
Python. Shards must have the same bytes. Needs the package shardloader.
"""

import argparse
import filecmp
import json
import os
import shutil
import statistics
import tempfile
import time
from pathlib import Path

import shardloader as sl


def linked(images, copies, folder):
    files = sorted(path for path in images.rglob("*") if path.is_file())
    for copy in range(copies):
        target = folder / f"{copy:03}"
        target.mkdir(parents=True)
        for number, path in enumerate(files):
            os.link(path, target / f"{number:06}{path.suffix}")
    return folder


def by_convert(images, out, options):
    begin = time.perf_counter()
    result = sl.convert(images, out, **options)
    return result.samples / (time.perf_counter() - begin)


def by_writer(images, out, options):
    begin = time.perf_counter()
    with sl.Writer(out, **options) as writer:
        for label, folder in enumerate(sorted(os.listdir(images))):
            for name in sorted(os.listdir(images / folder)):
                with open(images / folder / name, "rb") as file:
                    writer.add(f"{folder}/{name}", file.read(), label)
    return writer.close().samples / (time.perf_counter() - begin)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("images", type=Path)
    parser.add_argument("--copies", type=int, default=10)
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--jobs", type=int, default=0)
    parser.add_argument("--preset", default="train")
    parser.add_argument("--codec", default="none")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    options = {
        "preset": arguments.preset,
        "codec": arguments.codec,
        "samples_per_shard": 1000,
        "jobs": arguments.jobs or None,
    }
    with tempfile.TemporaryDirectory(dir=arguments.images.parent) as folder:
        images = linked(arguments.images, arguments.copies, Path(folder) / "in")
        ways = {"convert": by_convert, "writer": by_writer}
        rates = {name: [] for name in ways}
        for pair in range(-1, arguments.pairs):  # the first one warms up
            for name in sorted(ways, reverse=pair % 2 == 1):
                out = Path(folder) / name
                shutil.rmtree(out, ignore_errors=True)
                rate = ways[name](images, out, options)
                if pair >= 0:
                    rates[name].append(rate)
            names = [name for name in os.listdir(Path(folder) / "convert") if name.startswith("shard-")]
            assert filecmp.cmpfiles(Path(folder) / "convert", Path(folder) / "writer", names, False)[1:] == (
                [],
                [],
            ), "other bytes"
    ratios = [writer / convert for writer, convert in zip(rates["writer"], rates["convert"])]
    found = {
        "images_per_second": rates,
        "ratios": ratios,
        "median_ratio": statistics.median(ratios),
        "options": options,
    }
    for name, values in rates.items():
        print(f"{name}: {statistics.median(values):.0f} images/s ({min(values):.0f} to {max(values):.0f})")
    print(
        f"writer over convert: {statistics.median(ratios):.3f} (pairs: "
        f"{', '.join(f'{ratio:.3f}' for ratio in sorted(ratios))})"
    )
    if arguments.json:
        arguments.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
