"""python -m shardloader info OUT: what a data set is, from its dataset.json.

    python -m shardloader info OUT [--json]           the same facts as `shardctl info`, briefly
    python -m shardloader export OUT --parquet FILE   all of it as one Parquet file (needs pyarrow)
    python -m shardloader prefix                      the folder for CMAKE_PREFIX_PATH, where the wheel has
                                                      headers and archives

Exit codes are those of shardctl: 2 if something cannot be read or the usage was wrong.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence

from . import Dataset, ShardError, __version__, cuda_device_count, has_cuda, to_parquet

_LISTED = 10  # classes; --json has all


def _bytes(count: int) -> str:
    value, unit = float(count), "B"
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if value < 1000 or unit == "TB":
            break
        value /= 1000
    return f"{count} B" if unit == "B" else f"{value:.1f} {unit}"


def _facts(data: Dataset) -> dict[str, str]:
    info = data.info
    stored = sum(os.path.getsize(os.path.join(info["folder"], file)) for file, _ in info["shards"])
    classes = ", ".join(ascii(name)[1:-1] for name in data.classes[:_LISTED])
    if len(data.classes) > _LISTED:
        classes += ", ..."
    return {
        "data set": data.path,
        "samples": f"{len(data)} of {info['inputs']} inputs, {info['rejects']} rejects",
        "shards": f"{len(info['shards'])}, {_bytes(stored)}",
        "sample": f"{data.dtype} {list(data.shape)} {data.layout}, codec {data.codec}",
        "mean, std": f"{', '.join(f'{v:g}' for v in data.mean)}; {', '.join(f'{v:g}' for v in data.std)}",
        "labels": f"{len(data.classes)} classes: {classes}" if data.classes else "a table of numbers",
        "columns": ", ".join(data.columns),
        "fingerprint": info["fingerprint"],
        "pipeline": "; ".join(f"{name}={value}" for name, value in info["pipeline"].items()),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m shardloader", description="Look at data sets of shardify."
    )
    devices = f"{cuda_device_count()} CUDA devices" if has_cuda else "built without CUDA"
    parser.add_argument("--version", action="version", version=f"shardloader {__version__}, {devices}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="info | export | prefix")
    info = commands.add_parser(
        "info", help="what a data set is", description="Prints what dataset.json says, one fact a line."
    )
    info.add_argument("out", metavar="OUT", help="the folder that shardify made")
    info.add_argument("--json", action="store_true", help="all of it as JSON")
    export = commands.add_parser(
        "export",
        help="write a Parquet file",
        description="Writes the samples, labels and columns as one Parquet file.",
    )
    export.add_argument(
        "out", metavar="OUT", help="the folder that shardify made, or a part of it: FOLDER#NAME"
    )
    export.add_argument(
        "--parquet",
        metavar="FILE",
        required=True,
        help="the file to write; it must not exist, and appears when it is complete",
    )
    export.add_argument(
        "--batch-size",
        metavar="N",
        type=int,
        default=256,
        help="samples in memory, and of a row group (default: 256)",
    )
    commands.add_parser(
        "prefix",
        help="the folder for CMAKE_PREFIX_PATH",
        description="Prints where find_package(shard) finds the library.",
    )
    given = parser.parse_args(arguments)

    if given.command == "prefix":
        prefix = os.path.dirname(os.path.abspath(__file__))
        if not os.path.exists(os.path.join(prefix, "lib", "cmake", "shard", "shard-config.cmake")):
            print(
                "this installation has no headers and archives: a wheel of tools/wheel has them",
                file=sys.stderr,
            )
            return 2
        print(prefix)
        return 0
    try:
        data = Dataset(given.out)
        if given.command == "export":
            to_parquet(data, given.parquet, batch_size=given.batch_size)
            print(f"{given.parquet}: {len(data)} samples")
            return 0
        facts = _facts(data)
    except (ShardError, OSError, ImportError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    if given.json:
        print(json.dumps(data.info, indent=1))
    else:
        width = max(map(len, facts))
        for name, value in facts.items():
            print(f"{name:<{width}}  {value}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
