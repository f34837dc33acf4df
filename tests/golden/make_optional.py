#!/usr/bin/env python3
"""Writes tests/golden/optional: small files of the formats that a build may lack (BMP, PNM, AVIF, HEIC, JPEG
XL), and beside each the RGB that it must decode to, as .ppm; and tests/golden/optional-refused: files that
must not decode, each named by the error code that it gets.

The expectation is Pillow's `ImageOps.exif_transpose(Image.open(f)).convert("RGB")`: exactly for BMP and PNM,
within 2 steps for the others, whose decoders differ by a rounding from version to version. Made with Pillow
13.0 (libavif 1.4.2), pillow-heif 1.8.1 and pillow-jxl-plugin 1.3.8 (pip install pillow pillow-heif
pillow-jxl-plugin numpy), and cjxl 0.7.0 (libjxl-tools).
"""

import io
import pathlib
import struct
import subprocess
import tempfile

import numpy as np
import pillow_heif
import pillow_jxl  # noqa: F401, registers the format
from PIL import Image, ImageOps

OUT = pathlib.Path(__file__).resolve().parent / "optional"
REFUSED = OUT.parent / "optional-refused"
RANDOM = np.random.default_rng(16)


def picture(width=33, height=20):
    y, x = np.mgrid[0:height, 0:width]
    planes = [np.where(x + y * (c + 1) > width, 220 - 5 * y, 7 * x * (c + 1) / 2 % 256) for c in range(3)]
    return np.clip(np.stack(planes, axis=-1) + RANDOM.normal(0, 4, (height, width, 3)), 0, 255).astype(
        np.uint8
    )


def keep(name, data, expected=None):
    (OUT / name).write_bytes(data)
    if expected is None:
        expected = np.asarray(ImageOps.exif_transpose(Image.open(io.BytesIO(data))).convert("RGB"))
    height, width, _ = expected.shape
    (OUT / (name + ".ppm")).write_bytes(b"P6\n%d %d\n255\n" % (width, height) + expected.tobytes())


def save(image, format, **options):
    out = io.BytesIO()
    image.save(out, format, **options)
    return out.getvalue()


def cjxl(png):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder)
        (path / "a.png").write_bytes(png)
        subprocess.run(["cjxl", "-q", "100", path / "a.png", path / "a.jxl"], check=True, capture_output=True)
        return (path / "a.jxl").read_bytes()


# grid.avif: made by avifEncoderAddImageGrid() of libavif 0.11.1, two tiles of 64 x 64 pixels, because Pillow
# writes no grids. Its .ppm is what Pillow reads.


def refuse(name, data):
    (REFUSED / name).write_bytes(data)


def rows_of(image, bits):
    """BGR rows from the bottom, of 4-byte multiples."""
    array = np.asarray(image)
    if bits == 32:
        array = np.concatenate([array, np.full_like(array[..., :1], 9)], axis=-1)
    order = [2, 1, 0, 3][: bits // 8]
    return [row[:, order].tobytes() + bytes(-len(row) * bits // 8 % 4) for row in array[::-1]]


def bmp(
    rows, width, height, bits, header=40, compression=0, colors=b"", masks=b"", gap=0, count=None, offset=None
):
    if header == 12:
        info = struct.pack("<IHHHH", 12, width, height, 1, bits)
    else:
        entry = 4
        info = struct.pack(
            "<IiiHHIIiiII",
            header,
            width,
            height,
            1,
            bits,
            compression,
            0,
            0,
            0,
            len(colors) // entry if count is None else count,
            0,
        )
        info += masks + bytes(max(0, header - 40 - len(masks)))
    begin = 14 + len(info) + len(colors) + gap if offset is None else offset
    body = info + colors + bytes(gap) + b"".join(rows)
    return b"BM" + struct.pack("<IHHI", 14 + len(body), 0, 0, begin) + body


def make_bmp():
    image = Image.fromarray(picture())
    w, h = image.size
    keep("rgb.bmp", save(image, "BMP"))
    keep("gray.bmp", save(image.convert("L"), "BMP"))
    keep("palette.bmp", save(image.quantize(17), "BMP"))
    keep("alpha.bmp", save(image.convert("RGBA"), "BMP"))
    keep("from_top.bmp", bmp(rows_of(image, 24)[::-1], w, -h, 24))
    keep("os2.bmp", bmp(rows_of(image, 24), w, h, 24, header=12))
    for header in (40, 52, 56, 64, 108, 124):
        keep(f"header_{header}.bmp", bmp(rows_of(image, 24), w, h, 24, header=header))
    keep("bits_32.bmp", bmp(rows_of(image, 32), w, h, 32))
    masks = struct.pack("<III", 0xFF0000, 0xFF00, 0xFF)
    keep("masks_40.bmp", bmp(rows_of(image, 32), w, h, 32, compression=3, masks=masks, header=40))
    keep(
        "masks_124.bmp", bmp(rows_of(image, 32), w, h, 32, compression=3, masks=masks + bytes(4), header=124)
    )
    keep("gap.bmp", bmp(rows_of(image, 24), w, h, 24, gap=10))
    keep("1x1.bmp", save(image.crop((0, 0, 1, 1)), "BMP"))
    keep("behind_the_end.bmp", save(image, "BMP") + b"more")

    good = save(image, "BMP")
    refuse("corrupt-cut.bmp", good[:-200])
    refuse("corrupt-header-only.bmp", good[:30])
    refuse("corrupt-no-pixels.bmp", good[:18] + struct.pack("<ii", 0, 20) + good[26:])
    refuse("corrupt-no-rows.bmp", good[:18] + struct.pack("<ii", 33, 0) + good[26:])
    refuse("corrupt-offset-behind-the-end.bmp", bmp(rows_of(image, 24), w, h, 24, offset=1 << 30))
    refuse("corrupt-offset-in-the-header.bmp", bmp(rows_of(image, 24), w, h, 24, offset=20))
    refuse("corrupt-index-behind-palette.bmp", bmp([bytes([7] * 8)] * 4, 8, 4, 8, colors=bytes(8)))
    refuse("corrupt-palette-of-millions.bmp", bmp([bytes(8)] * 4, 8, 4, 8, count=1 << 30))
    refuse("resource-bomb.bmp", bmp([], 1 << 30, 1 << 30, 24))
    refuse("resource-most-negative.bmp", bmp([], 1 << 30, -(1 << 31), 24))
    refuse("corrupt-taller-than-its-data.bmp", bmp(rows_of(image, 24), w, 20000, 24))
    refuse("unsupported-1-bit.bmp", save(image.convert("1"), "BMP"))
    refuse("unsupported-4-bits.bmp", bmp([bytes(4)] * 4, 8, 4, 4, colors=bytes(64)))
    refuse("unsupported-16-bits.bmp", bmp([bytes(16)] * 4, 8, 4, 16))
    refuse("unsupported-run-lengths.bmp", bmp([bytes(16)] * 4, 8, 4, 8, compression=1, colors=bytes(1024)))
    refuse(
        "unsupported-masks.bmp",
        bmp(rows_of(image, 32), w, h, 32, compression=3, masks=struct.pack("<III", 0xFF, 0xFF00, 0xFF0000)),
    )
    refuse("unsupported-long-row.bmp", bmp([], 70000, 1, 24))


def make_pnm():
    image = Image.fromarray(picture())
    array = np.asarray(image)
    keep("rgb.ppm_file", save(image, "PPM"))
    keep("gray.pgm", save(image.convert("L"), "PPM"))
    keep(
        "text.ppm_file",
        b"P3\n# a comment\n33 20\n255\n"
        + b"\n".join(b" ".join(b"%d" % v for v in row.ravel()) for row in array),
    )
    keep("text.pgm", b"P2 33\t20 #c\n255 " + b" ".join(b"%d" % v for v in array[..., 0].ravel()))
    keep("comments.pgm", b"P5\n# one\n33 # two\n#three\n20\n255\n" + array[..., 1].tobytes())
    keep("behind_the_end.pgm", b"P5 33 20 255\n" + array[..., 1].tobytes() + b"more")

    gray = array[..., 0].tobytes()
    refuse("corrupt-cut.pgm", b"P5 33 20 255\n" + gray[:-1])
    refuse("corrupt-cut.ppm_file", b"P6 33 20 255\n" + array.tobytes()[:-1])
    refuse("corrupt-header-only.pgm", b"P5 33 20")
    refuse("corrupt-no-number.pgm", b"P5 33 2x 255\n" + gray)
    refuse("corrupt-negative.pgm", b"P5 33 -20 255\n" + gray)
    refuse("corrupt-no-pixels.pgm", b"P5 0 20 255\n" + gray)
    refuse("corrupt-text-cut.pgm", b"P2 33 20 255\n" + b"1 " * 600)
    refuse("corrupt-text-too-large.pgm", b"P2 3 2 255\n1 2 3 4 5 256 1 1 1 1")
    refuse("corrupt-text-no-number.pgm", b"P2 3 2 255\n1 2 3 4 x 6 1 1 1 1")
    refuse("corrupt-text-other-bytes.pgm", b"P2 3 2 255\n1 2 3\xd24 5 6\n")
    refuse("corrupt-huge-number.pgm", b"P5 99999999999999999999 2 255\n" + gray)
    refuse("resource-bomb.pgm", b"P5 4000000000 4000000000 255\n")
    refuse("corrupt-taller-than-its-data.ppm_file", b"P6 33 20000 255\n" + array.tobytes())
    refuse("unsupported-bits.pbm", save(image.convert("1"), "PPM"))
    refuse("unsupported-text-bits.pbm", b"P1 2 2\n1 0 0 1\n")
    refuse("unsupported-16-bits.pgm", b"P5 33 20 65535\n" + bytes(33 * 20 * 2))
    refuse("unsupported-100-steps.pgm", b"P5 33 20 100\n" + bytes(33 * 20))


def sequence(width, height):
    """A box of HEVC's decoder configuration with a sequence parameter set up to its width and height."""

    def golomb(value):
        return bin(value + 1)[2:].zfill(2 * (value + 1).bit_length() - 1)

    bits = "0" * 8 + "01" * 48 + golomb(0) + golomb(1) + golomb(width) + golomb(height)
    bits += "0" * (-len(bits) % 8)
    raw = bytes(int(bits[at : at + 8], 2) for at in range(0, len(bits), 8)).replace(b"\0\0\0", b"\0\0\3\0")
    nal = b"\x42\x01" + raw
    body = b"hvcC" + bytes(22) + b"\1" + b"\x21" + struct.pack(">HH", 1, len(nal)) + nal
    return struct.pack(">I", 8 + 4 + len(body)) + b"free" + struct.pack(">I", len(body) + 4) + body


def make_modern():
    image = Image.fromarray(picture())
    alpha = image.convert("RGBA")
    alpha.putalpha(Image.fromarray(np.tile(np.arange(33, dtype=np.uint8) * 7, (20, 1))))
    pillow_heif.register_heif_opener()
    for format, name, best in (
        ("AVIF", "avif", {"quality": 95}),
        ("HEIF", "heic", {"quality": 90}),
        ("JXL", "jxl", {"lossless": True}),
    ):
        keep(f"rgb.{name}", save(image, format, **best))
        keep(f"gray.{name}", save(image.convert("L"), format, **best))
        keep(f"alpha.{name}", save(alpha, format, **best))
        for orientation in 2, 3, 5, 6, 7, 8:
            exif = Image.Exif()
            exif[0x0112] = orientation
            if (
                name == "jxl"
            ):  # the plugin leaves the orientation to EXIF, where JPEG XL has it only to be ignored
                png = ImageOps.exif_transpose(Image.open(io.BytesIO(save(image, "PNG", exif=exif))))
                keep(f"orientation_{orientation}.jxl", cjxl(save(image, "PNG", exif=exif)), np.asarray(png))
            else:
                keep(f"orientation_{orientation}.{name}", save(image, format, exif=exif, **best))
    keep("subsampled.avif", save(image, "AVIF", quality=90, subsampling="4:2:0"))
    keep("animated.avif", save(image, "AVIF", save_all=True, append_images=[image.rotate(180)], quality=95))
    keep("lossy.jxl", save(image, "JXL", quality=90))

    for name, data in (
        ("avif", (OUT / "rgb.avif").read_bytes()),
        ("heic", (OUT / "rgb.heic").read_bytes()),
        ("jxl", (OUT / "rgb.jxl").read_bytes()),
    ):
        refuse(f"corrupt-cut.{name}", data[: len(data) * 3 // 4])
    heic = bytearray((OUT / "rgb.heic").read_bytes())
    at = heic.index(b"ispe") + 8
    heic[at : at + 8] = struct.pack(">II", 60000, 60000)
    refuse("resource-bomb.heic", bytes(heic))
    avif = bytearray((OUT / "rgb.avif").read_bytes())
    at = avif.index(b"ispe") + 8
    avif[at : at + 8] = struct.pack(">II", 16384, 16000)
    refuse("resource-bomb.avif", bytes(avif))
    keep("sequence_behind.heic", (OUT / "rgb.heic").read_bytes() + sequence(64, 64))
    refuse("resource-sequence-bomb.heic", (OUT / "rgb.heic").read_bytes() + sequence(70000, 70000))
    refuse("corrupt-brand-only.heic", b"\0\0\0\x18ftypheic\0\0\0\0mif1heic")
    refuse("corrupt-brand-only.avif", b"\0\0\0\x1cftypavif\0\0\0\0mif1avifmiaf")
    refuse("corrupt-signature-only.jxl", b"\xff\x0a\xfa\x1f")


def main():
    for folder in OUT, REFUSED:
        folder.mkdir(exist_ok=True)
        for file in folder.iterdir():
            file.unlink()
    make_bmp()
    make_pnm()
    make_modern()
    print(f"{len(list(OUT.iterdir())) // 2} images, {len(list(REFUSED.iterdir()))} refused")


if __name__ == "__main__":
    main()
