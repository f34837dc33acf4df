#!/usr/bin/env python3
"""Reads every #include of the tree and checks that each folder includes only what lies below it:

    base <- remote <- format <- image <- convert <- tools
    base <- jpeg <- libjpeg <- format, image
    jpeg <- loader
    base, format <- loader
    loader, convert <- bench, loader/python

Private headers of the loader stay in the loader. Programs, benchmarks and the Python core include no private
headers of libshard but those of base. Examples see what is installed and nothing else. A public header that
says which errors it throws includes shard/error.hpp.

    includes.py [ROOT]     exit code 1 and a line for each include that breaks an arrow
"""

import re
import sys
from pathlib import Path

# Folder: (its name, the names it may include besides itself). The longest path that fits counts.
ROOMS = {
    "libshard/src/base": ("base", ""),
    "libshard/include/shard/error.hpp": ("base", ""),
    "libshard/include/shard/host_device.hpp": ("base", ""),
    "libshard/include/shard/jpeg_file.hpp": ("base", ""),
    "libshard/include/shard/keys.hpp": ("base", ""),
    "libshard/include/shard/schema.hpp": ("base", ""),
    "libshard/src/jpeg": ("jpeg", "base"),
    "libshard/src/libjpeg": ("libjpeg", "base jpeg"),
    "libshard/src/remote": ("remote", "base"),
    "libshard/include/shard/cache.hpp": ("remote", "base"),
    "libshard/include/shard/remote.hpp": ("remote", "base"),
    "libshard/include/shard/remote_copy.hpp": ("remote", "base"),
    "libshard/src/format": ("format", "base jpeg libjpeg remote"),
    "libshard/include/shard": ("format", "base remote"),
    "libshard/src/image": ("image", "base jpeg libjpeg format"),
    "libshard/include/shard/image": ("image", "base format"),
    "libshard/src/convert": ("convert", "base remote format image"),
    "libshard/include/shard/convert": ("convert", "base remote format image"),
    "loader/include": ("loader", "base remote format"),
    "loader/src": ("loader/src", "base jpeg remote format loader"),
    "loader/src/decode": ("decode", "base jpeg format image loader loader/src"),
    "tools/cli": ("cli", "base remote format"),
    "tools/shardify": ("shardify", "base remote format image convert cli"),
    "tools/shardctl": ("shardctl", "base remote format image convert loader cli"),
    "tools/one": ("one", "shardify shardctl bench"),
    "bench": ("bench", "base remote format image convert cli loader"),
    "loader/python": ("python", "base remote format image convert loader"),
    "docs/examples": ("examples", "base remote format image convert loader"),
    "tests": (
        "tests",
        "base jpeg libjpeg remote format image convert loader loader/src decode cli shardctl bench",
    ),
}
# The rooms inside a folder, from below: a room includes those of earlier rows and itself. "." is the folder.
INNER = {
    "libshard/src/base": (".", "text digest", "system", "files"),
    "libshard/src/remote": ("cache http", "s3/credentials", "s3"),
    "libshard/src/format": ("codec", "shard", "dataset"),
    "libshard/src/image": ("metadata resample", "pixels", "codecs", "decode", "preprocess"),
    "libshard/src/convert": (
        "archives",
        "sources",
        "annotations",
        "plan",
        "publish",
        "engine",
        "revise",
        "transfer",
        ".",
    ),
    "loader/src": (
        "codec",
        "transform direct",
        "slot",
        "fields",
        "order",
        "device cuda setup",
        "prefetch transport",
        "engine",
        ".",
        "decode",
    ),
    "tools/shardctl": ("dataset", "draw", "duplicates", "page show", "."),
}
PUBLIC_ONLY = ("docs/examples", "libshard/include", "loader/include")  # may include installed headers only
PUBLIC = ("libshard/include/", "loader/include/")
# May include no private headers of libshard but base, which is everyone's.
OUTSIDE = ("tools", "bench", "loader/python")
PRIVATE = "libshard/src/"
# Where the text of an include is looked up, in this order; then beside the file.
ROOTS = (
    "libshard/include",
    "loader/include",
    "libshard/src",
    "loader/src",
    "tools",
    "bench",
    "tests",
)
SAYS_ERRORS = re.compile(r"//.*\b(?:[Tt]hrows|Errors:)")
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)


def room_of(path):
    fits = [folder for folder in ROOMS if path == folder or path.startswith(folder + "/")]
    return ROOMS[max(fits, key=len)] if fits else None


def found(root, file, text):
    """The file that an include names, as a path below root; None: not ours."""
    if (root / file).parent.joinpath(text).is_file():
        return (root / file).parent.joinpath(text).resolve().relative_to(root).as_posix()
    for folder in ROOTS:
        if (root / folder / text).is_file():
            return f"{folder}/{text}"
    return None


def inner_room(path):
    """(folder, rank of the room, its name) of a file in a folder with rooms; None: it lies in none."""
    for folder, rows in INNER.items():
        if path.startswith(folder + "/"):
            inside = Path(path).relative_to(folder).parent.as_posix()
            fits = [
                (len(room), rank, room)
                for rank, row in enumerate(rows)
                for room in row.split()
                if inside == room or inside.startswith(room + "/")
            ]
            return (folder, *max(fits)[1:]) if fits else (folder, None, inside)
    return None


def broken_inside(file, target):
    """An include that goes up from room to room, or sideways."""
    mine, other = inner_room(file), inner_room(target)
    if mine is None or other is None or mine[0] != other[0] or mine[2] == other[2]:
        return None
    if mine[1] is None or other[1] is None:
        return f"{file}: room {mine[2] if mine[1] is None else other[2]} is in no row of INNER"
    if other[1] >= mine[1]:
        return f"{file}: room {mine[2]} may not include {target}: {other[2]} is not below it"
    return None


def broken(root, file, text):
    target = found(root, file, text)
    if target is None:
        return f'{file}: "{text}" is not found; foreign headers are included with <>'
    name, below = room_of(file)
    target_name, _ = room_of(target)
    if target_name != name and target_name not in below.split():
        return f"{file}: {name} may not include {target} ({target_name}); allowed: {below or 'itself'}"
    if (
        file.startswith(PUBLIC_ONLY)
        and not target.startswith(PUBLIC)
        and Path(target).parent != Path(file).parent
    ):
        return f"{file}: {target} is not installed"
    if file.startswith(OUTSIDE) and target.startswith(PRIVATE) and target_name != "base":
        return f"{file}: {target} is private to {target_name}; what programs need is in {PUBLIC[0]}"
    return broken_inside(file, target)


def check(root):
    files = [
        path
        for folder in ("libshard", "loader", "tools", "bench", "tests", "docs")
        for path in (root / folder).rglob("*")
        if path.suffix in (".hpp", ".cpp", ".cu", ".cuh")
    ]
    lines = []
    for path in sorted(files):
        file = path.relative_to(root).as_posix()
        if room_of(file) is None:
            lines.append(f"{file}: lies in no folder of the list in tests/structure/includes.py")
            continue
        content = path.read_text(errors="replace")
        includes = INCLUDE.findall(content)
        lines += filter(None, (broken(root, file, text) for text in includes))
        if (
            file.startswith(PUBLIC)
            and SAYS_ERRORS.search(content)
            and "shard/error.hpp" not in includes
            and path.name != "error.hpp"
        ):
            lines.append(f"{file}: says what it throws and does not include shard/error.hpp")
    return len(files), lines


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[2]).resolve()
    count, lines = check(root)
    print("\n".join(lines) if lines else f"{count} files: every include follows the arrows")
    return 1 if lines or count < 100 else 0


if __name__ == "__main__":
    sys.exit(main())
