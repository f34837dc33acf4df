#!/usr/bin/env python3
"""Checks that a folder can be taken in at a glance: none has more than 30 files, beside its CMakeLists.txt.
Larger ones are divided into rooms. Folders of data are excepted, and a file of code in one is an error.

    folders.py [ROOT]     exit code 1 and a line for each folder that has too many files
"""

import subprocess
import sys
from collections import Counter
from pathlib import Path, PurePosixPath

MOST_FILES = 30
# Files of data, with all folders below: a program reads each whole folder, nobody looks for one of its files.
DATA = {
    "docs/results": "what shardbench measured, one file per run: docs/benchmarks.md says which",
    "tests/fuzz/corpus": "seeds and what fuzzing found, under the digests of their bytes or short names",
    "tests/golden/images": "image files of every kind, each beside the pixels that Pillow gives",
    "tests/golden/optional": "the same of formats whose libraries may be missing",
    "tests/golden/optional-refused": "the same, refused",
    "tests/golden/refused": "image files that are refused",
    "tests/golden/shards": "shards of each version, which every later one must read",
}
CODE = {".py", ".pyi", ".cpp", ".hpp", ".cu", ".cuh", ".c", ".h", ".cmake", ".sh", ".md"}
NOT_OURS = {"build", "dist", "__pycache__", ".git"}  # where there is no git to ask: an unpacked archive


def files_of(root):
    """What git has or would take, as paths below root."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root,
        capture_output=True,
        text=True,
    )
    if (root / ".git").exists() and listed.returncode == 0:
        return sorted({file for file in listed.stdout.split("\0") if file and (root / file).is_file()})
    paths = (path.relative_to(root) for path in root.rglob("*") if path.is_file())
    return sorted(path.as_posix() for path in paths if not NOT_OURS & set(path.parts))


def data_folder(file):
    return next((folder for folder in DATA if file.startswith(folder + "/")), None)


def problems(files):
    counts = Counter(
        str(PurePosixPath(file).parent)
        for file in files
        if not data_folder(file) and PurePosixPath(file).name != "CMakeLists.txt"
    )
    for folder, count in sorted(counts.items()):
        if count > MOST_FILES:
            yield f"{folder}: {count} files; a folder has at most {MOST_FILES}: make rooms"
    for file in files:
        if data_folder(file) and PurePosixPath(file).suffix in CODE:
            yield f"{file}: is no data: put it elsewhere, or take {data_folder(file)} out of DATA"
    for folder in sorted(DATA.keys() - set(map(data_folder, files))):
        yield f"{folder}: is in DATA, and has no files"


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[2]).resolve()
    files = files_of(root)
    lines = list(problems(files))
    folders = len({PurePosixPath(file).parent for file in files})
    print("\n".join(lines) if lines else f"{folders} folders, none of code with more than {MOST_FILES} files")
    return 1 if lines or folders < 100 else 0


if __name__ == "__main__":
    sys.exit(main())
