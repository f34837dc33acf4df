#!/usr/bin/env python3
"""Draws batches-light.svg and batches-dark.svg beside this file: what batches of each size get of the link,
from the report of bench/scripts/batch_sizes.py in docs/results.

    batches.py            writes both
    batches.py --check    exit code 1, and what to do, if one of them is not what would be written
"""

import json
import math
import statistics
import sys
from html import escape

from make import HERE, ROOT, THEMES

REPORT = ROOT / "docs" / "results" / "2026-11-29-batch-sizes-h200.json"
SAMPLE_BYTES = 224 * 224 * 3
SIZES = 8, 16, 32, 64, 128, 256, 512, 1024
VIEWS = {"u8": "", "f16": "6 3", "rrc": "2 3"}  # how their lines are dashed
WIDTH, LEFT, TOP, RIGHT, HIGH = 880, 60, 60, 620, 260  # of the drawing; of the axes
MOST = 2.2  # of the link, at the top


def shares():
    """{(stored, view): share of the link by size}"""
    report = json.loads(REPORT.read_text(encoding="utf-8"))
    link = statistics.median(report["link"]) / SAMPLE_BYTES
    return {
        (stored, view): [report["cases"][f"{stored} {view} {size}"]["samples/s"] / link for size in SIZES]
        for stored in ("plain", "packed")
        for view in VIEWS
    }


def place(size, share):
    x = LEFT + (RIGHT - LEFT) * math.log2(size / SIZES[0]) / math.log2(SIZES[-1] / SIZES[0])
    return f"{x:.1f},{TOP + HIGH * (1 - share / MOST):.1f}"


def drawing(colors):
    out = []

    def text(x, y, words, color="text", anchor="start", size=13, weight=400):
        out.append(
            f'<text x="{x:g}" y="{y:g}" fill="{colors[color]}" font-size="{size}" font-weight="{weight}" '
            f'text-anchor="{anchor}">{escape(words)}</text>'
        )

    found = shares()
    text(16, 26, "Batches of each size from Python, one H200", size=16, weight=600)
    text(16, 45, "share of the link by decoded bytes; each batch starts a kernel", "muted")
    for share in (0, 0.5, 1, 1.5, 2):
        x, y = place(SIZES[0], share).split(",")
        out.append(f'<path d="M{x},{y}H{RIGHT}" stroke="{colors["line"]}"/>')
        text(LEFT - 8, float(y) + 4, f"{share:g}", "muted", "end")
    for size in SIZES:
        text(float(place(size, 0).split(",")[0]), TOP + HIGH + 18, str(size), "muted", "middle")
    text((LEFT + RIGHT) / 2, TOP + HIGH + 36, "samples in a batch", "muted", "middle")
    names = {"u8": "uint8", "f16": "float16", "rrc": "random-resized crop, float16"}
    for row, ((stored, view), values) in enumerate(found.items()):
        color = colors["ours" if stored == "packed" else "other"]
        line = f'stroke="{color}" stroke-width="2" stroke-dasharray="{VIEWS[view]}" fill="none"'
        points = " ".join(place(size, share) for size, share in zip(SIZES, values))
        out.append(f'<polyline points="{points}" {line}/>')
        y = TOP + 120 + row * 20 - (130 if stored == "packed" else 0)
        out.append(f'<path d="M{RIGHT + 14},{y - 4}h26" {line}/>')
        text(RIGHT + 46, y, f"{stored}, {names[view]}", size=12)
    height = TOP + HIGH + 48
    words = "; ".join(
        f"{stored} {names[view]} " + ", ".join(f"{share:.2f}" for share in values)
        for (stored, view), values in found.items()
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
        f'viewBox="0 0 {WIDTH} {height}" '
        "font-family=\"-apple-system, 'Segoe UI', Helvetica, Arial, sans-serif\" "
        f'role="img">\n<title>Of the link, batches of {", ".join(map(str, SIZES))}: {words}</title>\n'
        + "\n".join(out)
        + "\n</svg>\n"
    )


def main():
    check = sys.argv[1:] == ["--check"]
    if sys.argv[1:] and not check:
        sys.exit(__doc__)
    wanted = {HERE / f"batches-{name}.svg": drawing(colors) for name, colors in THEMES.items()}
    stale = [path for path, text in wanted.items() if not path.exists() or path.read_text() != text]
    if check and stale:
        names = ", ".join(path.name for path in stale)
        sys.exit(f"{names}: not what {REPORT.name} says: run docs/speed/batches.py")
    for path in stale:
        path.write_text(wanted[path])
    print(f"{len(SIZES)} sizes: wrote {[path.name for path in stale] or 'nothing'}")


if __name__ == "__main__":
    main()
