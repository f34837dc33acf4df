#!/usr/bin/env python3
"""check_decoders_with_pillow.py SHARDIFY [--seed N] [--variants N]: good and damaged files,
against the installed Pillow.

Makes variants of the files in tests/golden/images (tables, segments and chunks taken out, doubled and swapped
between files, other restart intervals and Adobe markers, EXIF and ICC put in, bytes changed, cut off),
converts all of them with one thread under two sets of random names, and holds each against Pillow:

  stored:  Pillow opens the file, and its pixels are the same bit for bit; the same under both names
  reject:  Pillow refuses it too, or the reason is a documented one: damage that Pillow passes over in silence

With --on-warning accept what is stored is held against ImageFile.LOAD_TRUNCATED_IMAGES, JPEG files alone and
not those of which Pillow gets less when they are cut off. Pillow then opens also what libjpeg gives up on;
here that stays a reject.
Exit code 0: all as it should be; 1: a difference, named and kept in the folder that is printed; 2: shardify
failed. A damaged TIFF has no checksum to find it by: only that it depends on nothing else is checked.
Needs Pillow and numpy. Rules that older Pillows lack are left out:
orientation in XMP of JPEG and WebP (11.0), black behind a palette (10.1).
"""

import argparse
import contextlib
import csv
import io
import pathlib
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import warnings

import numpy as np
import PIL
from PIL import Image, ImageFile, ImageOps

from check_with_pillow import samples
from make_images import adobe, assemble, exif, segments

SIDE = 24
GOLDEN = pathlib.Path(__file__).resolve().parent / "images"
PILLOW = tuple(int(part) for part in PIL.__version__.split(".")[:2])

# Why a file may be a reject that Pillow opens.
DOCUMENTED = (
    "bad Huffman code",
    "premature end of data segment",
    "Premature end of JPEG file",
    "bad arithmetic code",
    "progression",
    "instead of RST",
    "after the image data",  # docs/pixels.md, warnings of the JPEG decoder
    "PNG: ",  # checksums, chunks out of order and what is cut off: libspng is strict to the end of the file
    "WebP: ",  # likewise
    "GIF: ",  # damaged LZW codes, which Pillow passes over
    "TIFF: ",  # and libtiff, of which Pillow uses only parts
    "BMP: ",
    "PNM: ",  # kinds that TurboJPEG does not read, and damaged headers
    "64 scans",
    "colour components",
    "exceed the bound",
)


def png_chunks(png):
    at, found = 8, []
    while at + 12 <= len(png):
        size = struct.unpack(">I", png[at : at + 4])[0]
        found.append(png[at : at + 12 + size])
        at += 12 + size
    return found


def webp_chunks(webp):
    at, found = 12, []
    while at + 8 <= len(webp):
        size = struct.unpack("<I", webp[at + 4 : at + 8])[0]
        found.append(webp[at : at + 8 + size + size % 2])
        at += 8 + size + size % 2
    return found


def vary_jpeg(data, other, rng):
    found, rest = segments(data)
    others, other_rest = segments(other)

    def drop(*markers):
        return assemble([s for s in found if s[0] not in markers], rest)

    at = rng.randrange(len(found) + 1)

    def put(*new):
        return assemble(found[:at] + list(new) + found[at:], rest)

    return rng.choice(
        (
            lambda: drop(0xDB),
            lambda: drop(0xC4),
            lambda: drop(0xDB, 0xC4),
            lambda: drop(rng.choice(found)[0]),
            lambda: assemble(others, rest),
            lambda: assemble([rng.choice(others) if s[0] == 0xDB else s for s in found], rest),
            lambda: put((0xDD, struct.pack(">H", rng.choice((0, 1, 3))))),
            lambda: put(adobe(rng.choice((0, 1, 2, 7)))),
            lambda: put((0xE1, b"Exif\0\0" + exif(rng.randrange(10), rng.choice("<>")))),
            lambda: put((0xE2, b"ICC_PROFILE\0\1\1" + rng.randbytes(40))),
            lambda: data[:-2] + bytes(rng.randrange(1, 90)) + data[-2:],
            lambda: assemble(found[:at], b"") + b" " * rng.randrange(1, 9) + assemble(found[at:], rest)[2:],
            lambda: data[:11] + b"\x07" + data[12:],
        )
    )()


def vary_chunks(head, chunks, others, rng):
    chunks = list(chunks)
    at = rng.randrange(len(chunks))
    change = rng.randrange(4)
    if change == 0:
        del chunks[at]
    elif change == 1:
        chunks.insert(at, rng.choice(chunks))
    elif change == 2 and others:
        chunks[at] = rng.choice(others)
    else:
        other = rng.randrange(len(chunks))
        chunks[at], chunks[other] = chunks[other], chunks[at]
    return head + b"".join(chunks)


def vary_tiff(data, rng):
    """A field of the directory changed: the value, the type or the tag."""
    order = "<" if data[:2] == b"II" else ">"
    if data[2:4] not in (b"*\0", b"\0*"):
        return data
    at = struct.unpack(order + "I", data[4:8])[0]
    count = struct.unpack(order + "H", data[at : at + 2])[0]
    entry = at + 2 + 12 * rng.randrange(count) + rng.choice((0, 2, 4, 8, 8, 8, 8))
    return (
        data[:entry]
        + struct.pack(order + "H", rng.choice((0, 1, 2, 3, 4, 5, 6, 7, 8, 16, 257, 5, 32773)))
        + data[entry + 2 :]
    )


def vary(data, other, rng):
    kind = rng.randrange(5)
    if kind == 0:
        return data[: rng.randrange(1, len(data))]
    if kind == 1:
        damaged = bytearray(data)
        for _ in range(rng.randrange(1, 4)):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        return bytes(damaged)
    if data[:2] == b"\xff\xd8":
        return vary_jpeg(data, other, rng)
    if data[:3] == b"GIF":
        at = rng.randrange(6, 90)
        return data[:at] + rng.randbytes(rng.randrange(3)) + data[at:]
    if data[:2] in (b"II", b"MM"):
        return vary_tiff(data, rng)
    if data[:2] == b"BM" or data[:1] == b"P":
        at = rng.randrange(2, 60)
        return (
            data[:at]
            + rng.choice((b"", b"\0", b" ", b"#", b"\n", b"1", bytes([rng.randrange(256)])))
            + data[at + rng.randrange(2) :]
        )
    if data[:4] == b"RIFF":
        body = vary_chunks(b"", webp_chunks(data), webp_chunks(other), rng)
        return b"RIFF" + struct.pack("<I", len(body) + 4) + b"WEBP" + body
    return vary_chunks(data[:8], png_chunks(data), png_chunks(other), rng)


def pillow_pixels(data):
    """SIDE x SIDE pixels, or what Pillow says instead."""
    try:
        image = Image.open(io.BytesIO(data), formats=("JPEG", "PNG", "WEBP", "TIFF", "GIF", "BMP", "PPM"))
        image.load()
        with contextlib.suppress(Exception):  # damaged EXIF: Pillow gives up on it, we take it for absent
            image = ImageOps.exif_transpose(image)
        sixteen_bits = image.mode.startswith("I")
        image = image.convert("RGB")
        return (
            "left out: gray of 16 bits"
            if sixteen_bits
            else np.asarray(image.resize((SIDE, SIDE), Image.BILINEAR))
        )
    except Exception as error:  # whatever it is, it is no image
        return f"refused: {type(error).__name__}: {error}"


def left_out(path):
    name = path.name
    if name.startswith(
        "tiff_"
    ):  # Pillow refuses these, or mixes up planes of 16 bits; 9.4 does not turn TIFF upright
        return (
            "16" in name
            and "separate" in name
            or "associated_separate" in name
            or "unspecified_separate" in name
            or "gray_associated" in name
            or "gray_alpha_16" in name
            or "bigtiff_big" in name
            or (PILLOW < (11, 0) and "orientation" in name)
        )
    return (PILLOW < (11, 0) and "_xmp_" in name and not name.endswith(".png")) or (
        PILLOW < (10, 1) and "palette" in name and "index" in name
    )


def convert(shardify, folder, out, options):
    done = subprocess.run(
        [
            shardify,
            str(folder),
            str(out),
            "--quiet",
            "--codec",
            "none",
            "--dtype",
            "u8",
            "--layout",
            "nhwc",
            "--jobs",
            "1",
            "--squash",
            f"{SIDE}x{SIDE}",
            *options,
        ],
        stderr=subprocess.PIPE,
        check=False,
    )
    if done.returncode not in (0, 1):
        sys.stderr.write(done.stderr.decode(errors="replace"))
        sys.exit(2)
    stored = {key.decode(): np.array(image) for key, image, _ in samples(out)}
    with open(out / "rejects.csv", newline="", encoding="utf-8") as file:
        return stored, dict(list(csv.reader(file))[1:])


def critical_only(png):
    """Without the chunks that say nothing about pixels: Pillow refuses a file for a damaged tRNS,
    libpng and libspng pass over it."""
    return png[:8] + b"".join(c for c in png_chunks(png) if c[4:8] in (b"IHDR", b"PLTE", b"IDAT", b"IEND"))


def comparable_when_cut(data):
    """Pillow hands libjpeg a cut file piece by piece: where a table or an arithmetic code is cut,
    it gets less out of it."""
    if data[:3] != b"\xff\xd8\xff" or any(bytes((0xFF, marker, 0)) in data for marker in (0xC9, 0xCA)):
        return False
    return b"\xff\xd9" in data or (b"\xff\xc0\0" in data and b"\xff\xda\0" in data)


def check(files, results, documented, originals):
    failed, counts = [], {"equal": 0, "refused by both": 0, "reject of a documented kind": 0, "left out": 0}
    for i, data in enumerate(files):
        first, second = (stored.get(names[i], rejects.get(names[i])) for names, stored, rejects in results)
        expected = pillow_pixels(data)
        if isinstance(expected, str) and not isinstance(first, str) and data[1:4] == b"PNG":
            expected = pillow_pixels(critical_only(data))
        if first is None or second is None:
            failed.append((i, "neither stored nor a reject"))
        elif isinstance(first, str) != isinstance(second, str) or not np.array_equal(first, second):
            failed.append((i, f"depends on its name or the files before: {first!r} and {second!r}"))
        elif isinstance(expected, str) and (
            expected.startswith("left out") or (documented is None and "Truncated File Read" in expected)
        ):
            counts["left out"] += 1
        elif (
            data[:2] in (b"II", b"MM")
            and data not in originals
            and not isinstance(first, str)
            and (isinstance(expected, str) or not np.array_equal(first, expected))
        ):
            counts["left out"] += (
                1  # a changed directory: Pillow and libtiff do not make the same of contradictions
            )
        elif data[:2] == b"BM" and isinstance(expected, str) and "Unsupported BMP header type (5" in expected:
            counts["left out"] += 1  # 52 and 56 bytes, which old Pillows lack
        elif (
            data[:3] == b"GIF"
            and PILLOW < (10, 1)
            and not isinstance(first, str)
            and not isinstance(expected, str)
        ):
            counts["equal" if data not in originals or np.array_equal(first, expected) else "left out"] += (
                1  # indices behind a palette
            )
        elif isinstance(first, str):
            if isinstance(expected, str):
                counts["refused by both"] += 1
            elif documented is None or any(reason in first for reason in documented):
                counts["reject of a documented kind"] += 1
            else:
                failed.append((i, f"Pillow opens it; reject: {first}"))
        elif isinstance(expected, str):
            failed.append((i, f"stored; Pillow: {expected}"))
        elif not np.array_equal(first, expected):
            failed.append((i, f"other pixels, by up to {np.abs(first.astype(int) - expected).max()}"))
        else:
            counts["equal"] += 1
    return failed, counts


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("shardify")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--variants", type=int, default=1500)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    Image.init()
    rng = random.Random(options.seed)
    originals = [p.read_bytes() for p in sorted(GOLDEN.iterdir()) if p.suffix != ".ppm" and not left_out(p)]
    kin = {
        head: [data for data in originals if data[:2] == head] for head in {data[:2] for data in originals}
    }
    files = originals + [
        vary(data, rng.choice(kin[data[:2]]), rng) for data in rng.choices(originals, k=options.variants)
    ]
    if (
        ", BMP, PNM"
        in subprocess.run([options.shardify, "--version"], stdout=subprocess.PIPE, check=True).stdout.decode()
    ):
        more = [
            p.read_bytes()
            for p in sorted((GOLDEN.parent / "optional").iterdir())
            if p.suffix in (".bmp", ".pgm", ".ppm_file")
        ]
        other = random.Random(options.seed)
        files += more + [vary(data, data, other) for data in other.choices(more, k=options.variants // 4)]
    failures = 0
    for policy, documented in ("harmless", DOCUMENTED), ("accept", None):
        ImageFile.LOAD_TRUNCATED_IMAGES = policy == "accept"
        chosen = files if policy == "harmless" else [data for data in files if comparable_when_cut(data)]
        workdir = pathlib.Path(tempfile.mkdtemp(prefix="check-decoders-"))
        results = []
        for turn in range(2):
            folder = workdir / f"in{turn}"
            folder.mkdir()
            numbers = rng.sample(range(10**8), len(chosen))
            names = [f"{number:08}.jpg" for number in numbers]
            for name, data in zip(names, chosen):
                (folder / name).write_bytes(data)
            results.append(
                (names, *convert(options.shardify, folder, workdir / f"out{turn}", ["--on-warning", policy]))
            )
        failed, counts = check(chosen, results, documented, originals)
        print(
            f"--on-warning {policy}, Pillow {PIL.__version__}, seed {options.seed}: {len(chosen)} files, "
            + ", ".join(f"{count} {what}" for what, count in counts.items())
            + f", {len(failed)} wrong",
            flush=True,
        )
        for i, what in failed[:20]:
            print(f"    {workdir / 'in0' / results[0][0][i]}: {what}")
        failures += len(failed)
        if not failed:
            shutil.rmtree(workdir)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
