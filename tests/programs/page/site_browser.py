#!/usr/bin/env python3
"""The site that tools/site makes, in a real browser: every page in light and dark, 400 and 1,400 pixels wide.

    site_browser.py HTML [SHOTS]     HTML: build/site/html. SHOTS: a folder that gets a picture of each

No page is wider than the screen or asks for anything that is not in the folder, none has an error, and the
search finds what the reference says. Pages of source files are looked at with SHOTS only. Exit code 77: there
is no browser.
"""

import base64
import sys
import unittest
from pathlib import Path

import browser

WIDTHS = (400, 1400)
MOST_PIXELS = 16000  # of a picture's height
WIDER = """(() => {
    const wide = document.documentElement.scrollWidth, screen = document.documentElement.clientWidth;
    if (wide <= screen) return "";
    const all = [...document.querySelectorAll("article *")];
    const worst = all.filter((e) => e.getBoundingClientRect().right > screen + 1).slice(0, 3);
    return `${wide} pixels: ` + worst.map((e) => e.outerHTML.slice(0, 100)).join(" ... ");
})()"""


def check(page, html, shots):
    """What is wrong with the pages."""
    wrong = []
    for path in sorted(html.rglob("*.html")):
        name = path.relative_to(html).as_posix()
        if name.startswith(("_", "search")) or (name.startswith("files") and shots is None):
            continue
        page.open(path.as_uri())
        page.wait_for("[...document.images].every((i) => i.complete)")
        for width in WIDTHS:
            for dark in (False, True):
                page.resize(width, 900, dark)
                where = f"{name}, {width} pixels, {'dark' if dark else 'light'}"
                if page.value(WIDER):
                    wrong.append(f"{where}: wider than the screen: {page.value(WIDER)}")
                broken = "[...document.images].filter((i) => !i.naturalWidth).map((i) => i.src.slice(0, 100))"
                wrong += [f"{where}: no picture {source}" for source in page.value(broken)]
                ground = page.value(
                    "getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)"
                )
                if (sum(ground[:3]) < 384) != dark:
                    wrong.append(f"{where}: the background is {ground}")
                if shots is not None:
                    height = min(page.value("document.documentElement.scrollHeight"), MOST_PIXELS)
                    clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
                    shot = page.call("Page.captureScreenshot", clip=clip, captureBeyondViewport=True)["data"]
                    kind = f"{width}-{'dark' if dark else 'light'}"
                    (shots / f"{name.replace('/', '_')}-{kind}.png").write_bytes(base64.b64decode(shot))
    return wrong


def check_search(page, html):
    page.resize(1400, 900)
    page.open((html / "search.html").as_uri() + "?q=random_resized_crop")
    try:
        page.wait_for("document.querySelectorAll('#search-results li a').length > 2")
    except TimeoutError:
        return ["the search finds nothing about random_resized_crop"]
    return []


def main():
    html, *shots = (Path(name).resolve() for name in sys.argv[1:])
    for folder in shots:
        folder.mkdir(parents=True, exist_ok=True)
    try:
        page = browser.Browser()
    except unittest.SkipTest as reason:
        print(f"skipped: {reason}")
        sys.exit(77)
    try:
        wrong = check(page, html, shots[0] if shots else None) + check_search(page, html)
        wrong += [f"an error in a page: {problem}" for problem in sorted(set(page.problems))]
        asked = {url[:100] for url in page.requests if not url.startswith(("file:", "data:", "blob:"))}
        wrong += [f"asks for {url}" for url in sorted(asked)]
    finally:
        page.close()
    print("\n".join(wrong) or "every page fits, in light and dark, and the search finds")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
