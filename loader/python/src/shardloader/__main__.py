"""python -m shardloader info OUT: what a data set is, from its dataset.json.

    python -m shardloader info OUT [--json]           the same facts as `shardctl info`, briefly
    python -m shardloader export OUT --parquet FILE   all of it as one Parquet file (needs pyarrow)
    python -m shardloader prefix                      the folder for CMAKE_PREFIX_PATH, where the wheel has
                                                      headers and archives
    python -m shardloader doctor [SCRIPT ...]         this machine, and whether the loops of SCRIPT wait for
                                                      their data

Exit codes are those of shardctl: 2 if something cannot be read or the usage was wrong, and 1 if doctor has
found something that should be looked at. With a SCRIPT it is the script's.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from typing import Any

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


def _add_doctor(commands: Any) -> None:
    doctor = commands.add_parser(
        "doctor",
        help="this machine, and whether a script waits for its data",
        description="Compares this machine with what conversion and loading need. If a SCRIPT is given, runs "
        "it as python does, and prints how long its loops over a DataLoader or a shardloader.Loader wait for "
        "data. shardloader.doctor(loader, step) measures the same more exactly, by replaying a batch.",
    )
    doctor.add_argument(
        "--folder", metavar="DIR", default=".", help="a folder on the disk where the data are (default: .)"
    )
    doctor.add_argument(
        "--seconds",
        metavar="S",
        type=float,
        default=60.0,
        help="end the script S seconds after its first batch; 0: let it come to its end (default: 60)",
    )
    doctor.add_argument("script", metavar="SCRIPT", nargs="?", help="a training script")
    doctor.add_argument(
        "arguments", metavar="...", nargs=argparse.REMAINDER, help="the script's own arguments"
    )


def _doctor(given: argparse.Namespace) -> int:
    from ._doctor import machine, script

    if given.script is not None and not os.path.isfile(given.script):
        print(
            f"error: SCRIPT is {given.script!r}, which is not a file; expected a Python program",
            file=sys.stderr,
        )
        return 2
    checks = machine.machine_checks(given.folder)
    print(machine.text_of(checks), flush=True)
    if given.script is None:
        return 1 if any(check.advice for check in checks) else 0
    code, found = script.run(given.script, given.arguments, given.seconds)
    for diagnosis in found:
        print(f"\n{diagnosis}")
    if not found:
        print(
            "\nno loop over a torch DataLoader or a shardloader.Loader with two batches was seen: for "
            "another loader, call shardloader.doctor(loader, step)"
        )
    return code


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m shardloader",
        description="Look at data sets of shardify, and at what training waits for.",
    )
    devices = f"{cuda_device_count()} CUDA devices" if has_cuda else "built without CUDA"
    parser.add_argument("--version", action="version", version=f"shardloader {__version__}, {devices}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="info | export | prefix | doctor")
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
    _add_doctor(commands)
    given = parser.parse_args(arguments)

    if given.command == "doctor":
        return _doctor(given)
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


def _told(arguments: Sequence[str] | None = None) -> int:
    """main(), and what it prints is written. As of the programs: 141 where the reader has gone, and one line
    and 2 where standard output cannot be written."""
    try:
        code = main(arguments)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        code = 141
    except OSError as error:
        print(
            f"error: cannot write to standard output: {error.strerror}; the output is incomplete",
            file=sys.stderr,
        )
        code = 2
    # What is left in the buffer is not tried again when Python ends.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return code


if __name__ == "__main__":
    sys.exit(_told())
