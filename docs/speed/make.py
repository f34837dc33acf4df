#!/usr/bin/env python3
"""Draws the picture of README.md, light.svg and dark.svg beside this file, from the tables of
docs/benchmarks.md.

    make.py            writes both, and the text of the picture in README.md
    make.py --check    exit code 1, and what to do, if one of them is not what would be written

A bar names the section, the row and the column of its figure; a cell of several figures has ";" between them.
"""

import re
import sys
from html import escape
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
TABLES = ROOT / "docs" / "benchmarks.md"
README = ROOT / "README.md"

WIDTH = 880
LEFT = 304  # where bars begin
FULL = 430  # pixels of the longest bar
ROW = 24
THEMES = {
    "light": dict(
        text="#1f2328", muted="#59636e", ours="#2a78d6", other="#a9b1ba", wait="#e08a2e", line="#d1d9e0"
    ),
    "dark": dict(
        text="#e6edf3", muted="#9198a1", ours="#4c94ee", other="#848d97", wait="#d98a3d", line="#3d444d"
    ),
}


class Figure(NamedTuple):
    label: str
    section: str
    row: str  # what its first cell starts with
    column: int
    part: int = 0  # of the cell, between ";"
    ours: bool = False


SPEED = (
    Figure("shardify, codec jpeg", "JPEG files", "originals, mapped, batches of 256", 2, ours=True),
    Figure(
        "shardify, a tar archive, not converted", "JPEG files", "files that are not converted", 2, 1, True
    ),
    Figure("shardify, the folder, not converted", "JPEG files", "files that are not converted", 2, ours=True),
    Figure("DALI 2.4, hardware decoder", "Other loaders", "DALI, JPEG files of 256x256; the original", 2, 1),
    Figure("nvJPEG, hardware engine, decoding alone", "JPEG files", "nvJPEG, hardware engine, alone", 1),
    Figure("FFCV 1.0.2, files reduced to 256x256", "Other loaders", "FFCV, JPEG 256x256", 2),
    Figure("torchvision, DataLoader", "Other loaders", "torchvision, JPEG 256x256; the original", 2, 1),
)
TRAINING = (
    Figure("ImageFolder, 16 workers", "Python", "ImageFolder, 16 workers", 1),
    Figure("shardify", "Python", "shardify", 1, ours=True),
)
WAITS = 2  # the column of TRAINING beside the rate


def cell(figure, column):
    """The text of a figure in its table."""
    text = TABLES.read_text()
    section = re.search(rf"^## {re.escape(figure.section)}\n(.*?)(?=^## |\Z)", text, re.DOTALL | re.MULTILINE)
    rows = [
        [cell.strip().replace("*", "") for cell in line.split("|")[1:-1]]
        for line in (section.group(1) if section else "").splitlines()
        if line.startswith("|")
    ]
    found = [row for row in rows if row[0].startswith(figure.row)]
    if not found:
        sys.exit(f'{TABLES}: section "{figure.section}" has no row "{figure.row}": correct it in {__file__}')
    return found[0][column].split(";")[figure.part].strip()


def rates(figure):
    """(lowest, highest) of "16,600 to 18,200 (5.0)"."""
    text = re.match(r"([\d,]+)(?: to ([\d,]+))?", cell(figure, figure.column))
    if text is None:
        sys.exit(f"{TABLES}: {cell(figure, figure.column)!r} of {figure.row!r} begins with no number")
    low, high = (int((part or text.group(1)).replace(",", "")) for part in text.groups())
    return low, high


def waiting(figure):
    """Percent."""
    return float(re.match(r"[\d.]+", cell(figure, WAITS)).group())


def words(low, high):
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def percent(value):
    return f"{value:g} %"


def description():
    """The picture in words."""
    speed = ", ".join(f"{figure.label} {words(*rates(figure))}" for figure in SPEED)
    train = ", ".join(
        f"{figure.label} {words(*rates(figure))} samples/s and {percent(waiting(figure))}"
        for figure in TRAINING
    )
    return (
        f"Original photographs per second on one GPU: {speed}. "
        f"Training ResNet-18, and how long the GPU waits: {train}"
    )


def drawing(colors):
    def text(x, y, words, color="text", size=13, anchor="start", weight=400):
        style = f' font-size="{size}"' if size != 13 else ""
        style += f' text-anchor="{anchor}"' if anchor != "start" else ""
        style += f' font-weight="{weight}"' if weight != 400 else ""
        out.append(f'<text x="{x:g}" y="{y:g}" fill="{colors[color]}"{style}>{escape(words)}</text>')

    def bar(x, y, width, color, opacity=1.0):
        more = f' fill-opacity="{opacity}"' if opacity != 1 else ""
        out.append(
            f'<rect x="{x:g}" y="{y:g}" width="{max(width, 1):g}" height="16" fill="{colors[color]}"{more}/>'
        )

    out = []
    y = 28
    text(16, y, "Original photographs per second on one GPU", size=16, weight=600)
    text(16, y + 19, "decoded, cropped at random to 224x224, flipped, float16", "muted")
    y += 34
    top = max(rates(figure)[1] for figure in SPEED)
    for figure in SPEED:
        low, high = rates(figure)
        color = "ours" if figure.ours else "other"
        text(LEFT - 10, y + 13, figure.label, anchor="end", weight=600 if figure.ours else 400)
        start, end = (round(FULL * rate / top, 1) for rate in (low, high))
        bar(LEFT, y, start, color)
        if high > low:
            bar(LEFT + start, y, end - start, color, 0.5)
        text(LEFT + max(end, 1) + 8, y + 13, words(low, high), weight=600 if figure.ours else 400)
        y += ROW
    y += 34
    text(16, y, "Training ResNet-18: the GPU computes, or waits for images", size=16, weight=600)
    y += 15
    for figure in TRAINING:
        share = waiting(figure)
        computing = round(FULL * (1 - share / 100), 1)
        text(LEFT - 10, y + 13, figure.label, anchor="end", weight=600 if figure.ours else 400)
        bar(LEFT, y, computing, "ours" if figure.ours else "other")
        bar(LEFT + computing, y, round(FULL - computing, 1), "wait")
        text(LEFT + FULL + 8, y + 13, f"waits {percent(share)}", weight=600 if figure.ours else 400)
        text(LEFT + 8, y + 12.5, f"{words(*rates(figure))} samples/s", "inside", 12)
        y += ROW
    y += 20
    text(
        16,
        y,
        "First bar: one H100. All others: one H200. 16 cores each; docs/benchmarks.md has every command.",
        "muted",
        12,
    )
    height = y + 14
    fonts = "-apple-system, 'Segoe UI', Helvetica, Arial, sans-serif"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height:g}" '
        f'viewBox="0 0 {WIDTH} {height:g}" font-family="{fonts}" '
        f'font-size="13" role="img">\n<title>{escape(description())}</title>\n'
        + "\n".join(out)
        + "\n</svg>\n"
    )


def wanted():
    """{file: its text}"""
    files = {
        HERE / f"{name}.svg": drawing({"inside": "#0d1117", **colors}) for name, colors in THEMES.items()
    }
    readme = README.read_text()
    picture, count = re.subn(
        r'(<img src="docs/speed/light\.svg" alt=")[^"]*(")', rf"\g<1>{description()}\g<2>", readme
    )
    if count != 1:
        sys.exit(f"{README}: shows docs/speed/light.svg {count} times; expected once")
    return {**files, README: picture}


def main():
    check = sys.argv[1:] == ["--check"]
    if sys.argv[1:] and not check:
        sys.exit(__doc__)
    stale = []
    for path, text in wanted().items():
        if path.exists() and path.read_text() == text:
            continue
        stale.append(path.relative_to(ROOT).as_posix())
        if not check:
            path.write_text(text)
    if check and stale:
        sys.exit(f"{', '.join(stale)}: not what docs/benchmarks.md says: run docs/speed/make.py")
    print(
        f"{len(SPEED)} bars and {len(TRAINING)} of training"
        + ("" if check else f": wrote {stale or 'nothing'}")
    )


if __name__ == "__main__":
    main()
