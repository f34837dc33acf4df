#!/usr/bin/env python3
"""Checks that the tests of a source are where its reader looks for them: those of ROOM/NAME.cpp are in
tests/unit/LAYER/ROOM/NAME_test.cpp, or several NAME_TOPIC_test.cpp. A header without a source is one too. The
tests of a public header have the name of its implementation.

    unit_tests.py [ROOT]     exit code 1 and a line for each test that is elsewhere, or that no program has
"""

import re
import sys
from pathlib import Path

TESTS = "tests/unit"
LAYERS = {
    "base": "libshard/src/base",
    "jpeg": "libshard/src/jpeg",
    "libjpeg": "libshard/src/libjpeg",
    "remote": "libshard/src/remote",
    "format": "libshard/src/format",
    "image": "libshard/src/image",
    "convert": "libshard/src/convert",
    "loader": "loader/src",
    "cli": "tools/cli",
    "shardctl": "tools/shardctl",
    "bench": "bench",
}
SOURCES = (".cpp", ".hpp", ".cu", ".cuh")


def sources_in(folder):
    return {path.stem for path in folder.iterdir() if path.suffix in SOURCES} if folder.is_dir() else set()


def subjects(test):
    """The names of sources that a test may be of, longest first: memory_plan_test -> memory_plan, memory."""
    words = test.stem.removesuffix("_test").split("_")
    return ["_".join(words[:count]) for count in range(len(words), 0, -1)]


def misplaced(root, test):
    """What is wrong with the place or the name of a test, and how to mend it; None: nothing."""
    layer, *room = test.relative_to(root / TESTS).parent.parts
    if layer not in LAYERS:
        return f"there is no layer {layer}; the layers are {', '.join(LAYERS)}"
    top = root / LAYERS[layer]
    here = top.joinpath(*room)
    inside = sources_in(here)
    if any(name in inside for name in subjects(test)):
        return None
    elsewhere = [path for path in sorted(top.rglob(f"{subjects(test)[0]}.*")) if path.suffix in SOURCES]
    if elsewhere:
        right = root / TESTS / layer / elsewhere[0].parent.relative_to(top)
        return f"its source is {elsewhere[0].relative_to(root)}: move it to {right.relative_to(root)}/"
    if not inside:
        return f"{here.relative_to(root)} has no sources: put it into the folder of its source's room"
    return (
        f"{here.relative_to(root)} has no source {subjects(test)[0]}: name it after the source that it "
        f"tests, SOURCE_test.cpp or SOURCE_TOPIC_test.cpp; there are {', '.join(sorted(inside))}"
    )


def unbuilt(root, test):
    """Says so if the CMakeLists.txt of the layer does not name the room, so that no program has the test."""
    layer, *room = test.relative_to(root / TESTS).parent.parts
    cmake = root / TESTS / layer / "CMakeLists.txt"
    word = re.escape(room[0] if room else ".")
    if cmake.is_file() and re.search(rf"(?<![\w./]){word}(?![\w./])", cmake.read_text()):
        return None
    return f"no program has it: add room {room[0] if room else '.'} to {cmake.relative_to(root)}"


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[2]).resolve()
    tests = sorted((root / TESTS).rglob("*.cpp"))
    lines = []
    for test in tests:
        if not test.stem.endswith("_test"):
            lines.append(
                f"{test.relative_to(root)}: ends in no _test.cpp: what tests share is in tests/support"
            )
            continue
        wrong = misplaced(root, test) or unbuilt(root, test)
        if wrong:
            lines.append(f"{test.relative_to(root)}: {wrong}")
    print(
        "\n".join(lines)
        if lines
        else f"{len(tests)} unit tests: each is where its source's room is, under its name"
    )
    return 1 if lines or len(tests) < 100 else 0


if __name__ == "__main__":
    sys.exit(main())
