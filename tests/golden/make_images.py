#!/usr/bin/env python3
"""Writes tests/golden/images: tiny image files of every kind, and beside each the RGB that it must decode to,
as .ppm; and tests/golden/refused: files that must not decode, each named by the error code that it gets.

The expectation is Pillow's `ImageOps.exif_transpose(Image.open(f)).convert("RGB")`, except for 16-bit gray
PNG, where Pillow clips and the contract keeps the high byte. Made with Pillow 9.4 on libjpeg-turbo 2.1.5,
libwebp 1.2.4 and libtiff 4.5.0; needs numpy, `cjpeg` (libjpeg-turbo-progs) and `tiffcp` (libtiff-tools) for
what Pillow does not write. Every run writes the same.
"""

import io
import pathlib
import struct
import subprocess
import tempfile
import zlib

import numpy as np
from PIL import Image, ImageOps

OUT = pathlib.Path(__file__).resolve().parent / "images"
REFUSED = OUT.parent / "refused"
RANDOM = np.random.default_rng(20240607)


def picture(width, height, channels=3):
    """Gradients, an edge, and noise."""
    y, x = np.mgrid[0:height, 0:width]
    planes = []
    for c in range(channels):
        plane = 255 * (x * (c + 1) / width / 2 + y / height / 2) % 256
        plane = np.where(x + y * (c + 1) > width, 255 - plane, plane)
        planes.append(plane + RANDOM.normal(0, 12, plane.shape))
    return np.clip(np.stack(planes, axis=-1), 0, 255).astype(np.uint8)


def keep(name, data, expected=None):
    (OUT / name).write_bytes(data)
    if expected is None:
        image = ImageOps.exif_transpose(Image.open(io.BytesIO(data))).convert("RGB")
        expected = np.asarray(image)
    height, width, _ = expected.shape
    header = b"P6\n%d %d\n255\n" % (width, height)
    (OUT / (name + ".ppm")).write_bytes(header + expected.tobytes())


# --- JPEG ---------------------------------------------------------------------------------------------------


def cjpeg(array, *options):
    height, width, _ = array.shape
    ppm = b"P6\n%d %d\n255\n" % (width, height) + array.tobytes()
    return subprocess.run(
        ["cjpeg", "-quality", "80", *options], input=ppm, stdout=subprocess.PIPE, check=True
    ).stdout


def pillow(array, format, mode=None, **options):
    out = io.BytesIO()
    Image.fromarray(array, mode).save(out, format, **options)
    return out.getvalue()


def segments(jpeg):
    """(marker, payload) up to the first scan, and the rest."""
    found, at = [], 2
    while jpeg[at + 1] != 0xDA:
        size = struct.unpack(">H", jpeg[at + 2 : at + 4])[0]
        found.append((jpeg[at + 1], jpeg[at + 4 : at + 2 + size]))
        at += 2 + size
    return found, jpeg[at:]


def assemble(found, rest):
    return b"\xff\xd8" + b"".join(struct.pack(">BBH", 0xFF, m, len(p) + 2) + p for m, p in found) + rest


def adobe(transform):
    return (0xEE, b"Adobe" + struct.pack(">HHHB", 100, 0, 0, transform))


def without(found, *markers):
    return [s for s in found if s[0] not in markers]


def exif(orientation, order="<", kind=3):
    """A TIFF structure of one entry before the orientation and one behind it."""
    head = (b"II" if order == "<" else b"MM") + struct.pack(order + "HI", 42, 8)
    value = struct.pack(order + ("H2x" if kind == 3 else "I"), orientation)
    entries = [
        struct.pack(order + "HHII", 0x0100, 4, 1, 7),
        struct.pack(order + "HHI", 0x0112, kind, 1) + value,
        struct.pack(order + "HHI", 0x0128, 3, 1) + struct.pack(order + "H2x", 2),
    ]
    return head + struct.pack(order + "H", len(entries)) + b"".join(entries) + struct.pack(order + "I", 0)


def with_exif(jpeg, payload):
    found, rest = segments(jpeg)
    return assemble(found[:1] + [(0xE1, b"Exif\0\0" + payload)] + found[1:], rest)


def make_jpegs():
    for width, height in (17, 13), (33, 20), (1, 1), (8, 8):
        array = picture(width, height)
        for sampling in "1x1", "2x1", "2x2", "1x2", "4x1":
            label = {"1x1": "444", "2x1": "422", "2x2": "420", "1x2": "440", "4x1": "411"}[sampling]
            keep(f"jpeg_{label}_{width}x{height}.jpg", cjpeg(array, "-sample", sampling))
    array = picture(33, 20)
    scans = OUT / "scans.tmp"
    scans.write_text("0;\n1;\n2;\n")
    for name, options in {
        "progressive_420": ["-progressive", "-sample", "2x2"],
        "progressive_444": ["-progressive", "-sample", "1x1"],
        "arithmetic": ["-arithmetic"],
        "arithmetic_progressive": ["-arithmetic", "-progressive"],
        "restart_each_block": ["-restart", "1B"],
        "restart_each_row": ["-restart", "1"],
        "progressive_restart": ["-progressive", "-restart", "2B"],
        "optimized": ["-optimize"],
        "separate_scans": ["-scans", str(scans)],
        "gray_cjpeg": ["-grayscale"],
        "sampling_4x2": ["-sample", "4x2"],
        "sampling_2x4": ["-sample", "2x4"],
        "sampling_mixed": ["-sample", "2x2,2x1,1x1"],
    }.items():
        keep(f"jpeg_{name}.jpg", cjpeg(array, *options))
    # A progressive file that ends before its last bits: libjpeg smooths it.
    scans.write_text("0 1 2: 0 0 0 1;\n0: 1 5 0 2;\n")
    keep("jpeg_progressive_smoothed.jpg", cjpeg(picture(65, 50), "-scans", str(scans)))
    scans.unlink()
    keep("jpeg_gray.jpg", pillow(picture(17, 13)[..., 0], "JPEG", quality=85))
    keep("jpeg_gray_progressive.jpg", pillow(picture(17, 13)[..., 0], "JPEG", quality=85, progressive=True))

    found, rest = segments(cjpeg(array, "-rgb"))
    keep("jpeg_rgb_by_component_ids.jpg", assemble(without(found, 0xE0, 0xEE), rest))
    found, rest = segments(cjpeg(array, "-sample", "1x1"))
    keep("jpeg_rgb_by_adobe.jpg", assemble([adobe(0)] + without(found, 0xE0, 0xEE), rest))
    keep("jpeg_ycc_by_adobe.jpg", assemble([adobe(1)] + without(found, 0xE0, 0xEE), rest))
    keep("jpeg_no_marker.jpg", assemble(without(found, 0xE0, 0xEE), rest))

    for subsampling in 0, 2:
        cmyk = pillow(picture(33, 20, 4), "JPEG", "CMYK", quality=90, subsampling=subsampling)
        found, rest = segments(cmyk)
        found = without(found, 0xEE)
        keep(f"jpeg_cmyk_adobe_{subsampling}.jpg", assemble([adobe(0)] + found, rest))
        keep(f"jpeg_cmyk_no_adobe_{subsampling}.jpg", assemble(found, rest))
        keep(f"jpeg_ycck_{subsampling}.jpg", assemble([adobe(2)] + found, rest))
    keep(
        "jpeg_cmyk_progressive.jpg", pillow(picture(17, 13, 4), "JPEG", "CMYK", quality=90, progressive=True)
    )

    plain = cjpeg(picture(33, 20))
    for orientation in range(1, 9):
        keep(f"jpeg_orientation_{orientation}.jpg", with_exif(plain, exif(orientation)))
    keep("jpeg_orientation_6_big_endian.jpg", with_exif(plain, exif(6, ">")))
    keep("jpeg_orientation_8_long.jpg", with_exif(plain, exif(8, ">", kind=4)))
    keep("jpeg_orientation_0.jpg", with_exif(plain, exif(0)))
    keep("jpeg_orientation_9.jpg", with_exif(plain, exif(9)))
    keep("jpeg_bytes_behind_the_end.jpg", plain + b"\0" * 20 + b"trailing")


# --- PNG ----------------------------------------------------------------------------------------------------

CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
ADAM7 = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def pack_rows(samples, depth):
    """[row, column, channel] -> the bytes of each row."""
    rows = samples.reshape(samples.shape[0], -1)
    if depth == 16:
        return [r.astype(">u2").tobytes() for r in rows]
    if depth == 8:
        return [r.astype(np.uint8).tobytes() for r in rows]
    bits = (rows[..., None] >> np.arange(depth - 1, -1, -1)) & 1
    return [np.packbits(b.reshape(-1).astype(np.uint8)).tobytes() for b in bits]


def filtered(rows, step):
    """The five filters of PNG in turn."""
    out, above = b"", bytes(len(rows[0])) if rows else b""
    for number, row in enumerate(rows):
        kind = number % 5
        line = bytearray()
        for i, value in enumerate(row):
            a, b, c = row[i - step] if i >= step else 0, above[i], above[i - step] if i >= step else 0
            p = a + b - c
            near = min((abs(p - a), 0, a), (abs(p - b), 1, b), (abs(p - c), 2, c))[2]
            line.append((value - (0, a, b, (a + b) // 2, near)[kind]) & 255)
        out, above = out + bytes([kind]) + bytes(line), row
    return out


def png(samples, depth, color_type, interlaced, before=b"", behind=b""):
    height, width = samples.shape[:2]
    step = max(1, CHANNELS[color_type] * depth // 8)
    if interlaced:
        parts = [samples[y::dy, x::dx] for x, y, dx, dy in ADAM7]
        data = b"".join(filtered(pack_rows(p, depth), step) for p in parts if p.size)
    else:
        data = filtered(pack_rows(samples, depth), step)
    packed = zlib.compress(data, 9)
    half = len(packed) // 2  # two IDAT chunks
    header = struct.pack(">IIBBBBB", width, height, depth, color_type, 0, 0, int(interlaced))
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + before
        + chunk(b"IDAT", packed[:half])
        + chunk(b"IDAT", packed[half:])
        + behind
        + chunk(b"IEND", b"")
    )


def png_samples(width, height, depth, color_type):
    channels = CHANNELS[color_type]
    array = picture(width, height, channels).astype(np.uint32)
    if depth == 16:
        return (array << 8) | RANDOM.integers(0, 256, array.shape, dtype=np.uint32)
    return array >> (8 - depth)


def make_pngs():
    for color_type, depths in {
        0: (1, 2, 4, 8, 16),
        2: (8, 16),
        3: (1, 2, 4, 8),
        4: (8, 16),
        6: (8, 16),
    }.items():
        for depth in depths:
            for interlaced in False, True:
                samples = png_samples(21, 14, depth, color_type)
                before = b""
                if color_type == 3:
                    entries = picture(1 << depth, 1).reshape(-1, 3)
                    before = chunk(b"PLTE", entries.tobytes())
                data = png(samples, depth, color_type, interlaced, before)
                high_byte = None
                if (color_type, depth) == (0, 16):
                    high_byte = np.repeat((samples >> 8).astype(np.uint8), 3, axis=2)
                label = {0: "gray", 2: "rgb", 3: "palette", 4: "gray_alpha", 6: "rgba"}[color_type]
                keep(f"png_{label}_{depth}{'_interlaced' if interlaced else ''}.png", data, high_byte)
    for width, height in (1, 1), (3, 5), (9, 1):
        keep(f"png_rgb_8_{width}x{height}_interlaced.png", png(png_samples(width, height, 8, 2), 8, 2, True))
    entries = chunk(b"PLTE", picture(16, 1).tobytes())
    samples = png_samples(21, 14, 4, 3)
    keep(
        "png_palette_transparent_entry.png",
        png(samples, 4, 3, False, entries + chunk(b"tRNS", b"\xff\x00\xff")),
    )
    keep(
        "png_palette_alpha.png", png(samples, 4, 3, True, entries + chunk(b"tRNS", bytes(range(0, 160, 10))))
    )
    keep("png_gray_transparent.png", png(png_samples(21, 14, 8, 0), 8, 0, False, chunk(b"tRNS", b"\0\x40")))
    keep(
        "png_rgb_transparent.png",
        png(png_samples(21, 14, 8, 2), 8, 2, False, chunk(b"tRNS", b"\0\1\0\2\0\3")),
    )
    keep("png_orientation_6.png", png(png_samples(21, 14, 8, 2), 8, 2, False, chunk(b"eXIf", exif(6, ">"))))
    keep(
        "png_orientation_5_behind.png",
        png(png_samples(21, 14, 8, 2), 8, 2, False, b"", chunk(b"eXIf", exif(5))),
    )
    control = struct.pack(">IIIIIHHBB", 0, 21, 14, 0, 0, 1, 10, 0, 0)
    keep(
        "png_animated.png",
        png(
            png_samples(21, 14, 8, 2),
            8,
            2,
            False,
            chunk(b"acTL", struct.pack(">II", 1, 0)) + chunk(b"fcTL", control),
        ),
    )


# --- WebP ---------------------------------------------------------------------------------------------------


def riff(*chunks):
    body = b"".join(k + struct.pack("<I", len(d)) + d + b"\0" * (len(d) % 2) for k, d in chunks)
    return b"RIFF" + struct.pack("<I", len(body) + 4) + b"WEBP" + body


def u24(value):
    return struct.pack("<I", value)[:3]


def make_webps():
    for width, height in (33, 20), (17, 13), (1, 1):
        array = picture(width, height)
        keep(f"webp_lossy_{width}x{height}.webp", pillow(array, "WEBP", quality=80))
        keep(f"webp_lossless_{width}x{height}.webp", pillow(array, "WEBP", lossless=True))
    alpha = picture(33, 20, 4)
    alpha[:7, :9, 3] = 0  # transparent pixels keep their colour or not: as the decoder says
    keep("webp_lossy_alpha.webp", pillow(alpha, "WEBP", quality=80))
    keep("webp_lossless_alpha.webp", pillow(alpha, "WEBP", lossless=True, exact=True))
    for orientation in 3, 6:
        data = pillow(picture(33, 20), "WEBP", quality=80, exif=b"Exif\0\0" + exif(orientation))
        keep(f"webp_orientation_{orientation}.webp", data)
    frames = [Image.fromarray(picture(33, 20)) for _ in range(3)]
    out = io.BytesIO()
    frames[0].save(out, "WEBP", save_all=True, append_images=frames[1:], duration=100, quality=70)
    keep("webp_animated.webp", out.getvalue())
    out = io.BytesIO()
    frames = [Image.fromarray(picture(33, 20, 4), "RGBA") for _ in range(2)]
    frames[0].save(out, "WEBP", save_all=True, append_images=frames[1:], duration=100, lossless=True)
    keep("webp_animated_alpha.webp", out.getvalue())
    # A first frame that covers part of its canvas.
    for label, flags, channels in ("", 0x02, 3), ("_alpha", 0x12, 4):
        still = pillow(picture(17, 13, channels), "WEBP", lossless=True, exact=True)
        image = still[still.index(b"VP8L") :]
        frame = u24(3) + u24(2) + u24(16) + u24(12) + u24(100) + b"\0" + image
        keep(
            f"webp_animated_part{label}.webp",
            riff(
                (b"VP8X", bytes([flags, 0, 0, 0]) + u24(32) + u24(19)),
                (b"ANIM", b"\x10\x20\x30\xff\0\0"),
                (b"ANMF", frame),
            ),
        )


# --- refused ------------------------------------------------------------------------------------------------


def frame_header(jpeg, **changes):
    """The JPEG with fields of its frame header (SOF) replaced."""
    found, rest = segments(jpeg)
    for i, (marker, payload) in enumerate(found):
        if marker in (0xC0, 0xC1, 0xC2):
            precision, height, width, components = struct.unpack(">BHHB", payload[:6])
            fields = dict(
                marker=marker, precision=precision, height=height, width=width, components=components
            )
            fields.update(changes)
            table = payload[6 : 6 + 3 * fields["components"]]
            found[i] = (
                fields["marker"],
                struct.pack(
                    ">BHHB", fields["precision"], fields["height"], fields["width"], fields["components"]
                )
                + table,
            )
    return assemble(found, rest)


def make_refused():
    def refuse(name, data):
        (REFUSED / name).write_bytes(data)

    jpeg = cjpeg(picture(33, 20))
    refuse("resource-jpeg-bomb.jpg", frame_header(jpeg, width=65500, height=65500))
    refuse("corrupt-jpeg-taller-than-its-data.jpg", frame_header(jpeg, height=60))
    refuse("corrupt-jpeg-no-rows.jpg", frame_header(jpeg, height=0))
    refuse("unsupported-jpeg-12-bits.jpg", frame_header(jpeg, precision=12))
    refuse("unsupported-jpeg-lossless.jpg", frame_header(jpeg, marker=0xC3))
    found, rest = segments(frame_header(jpeg, components=2))
    scan_header = b"\xff\xda\0\x0a\2" + rest[5:9] + b"\0\x3f\0"
    refuse("unsupported-jpeg-2-components.jpg", assemble(found, scan_header + rest[14:]))
    refuse("corrupt-jpeg-no-end.jpg", jpeg[:-2])
    refuse("corrupt-jpeg-tables-only.jpg", jpeg[:2] + jpeg[-2:])
    at = len(jpeg) - 60
    refuse("corrupt-jpeg-early-marker.jpg", jpeg[:at] + b"\xff\xd9" + jpeg[at + 2 :])
    restarts = cjpeg(picture(33, 20), "-restart", "1B")
    at = restarts.index(b"\xff\xd2")
    refuse("corrupt-jpeg-restart-out-of-turn.jpg", restarts[:at] + b"\xff\xd5" + restarts[at + 2 :])
    # Valid, but each scan is cheap to write and dear to decode: one coefficient of every block, one bit.
    scans = REFUSED / "scans.tmp"
    scans.write_text(
        "0: 0 0 0 0;\n"
        + "".join(f"0: {k} {k} 0 1;\n" for k in range(1, 64))
        + "".join(f"0: {k} {k} 1 0;\n" for k in range(1, 31))
    )
    refuse("resource-jpeg-94-scans.jpg", cjpeg(picture(33, 20), "-grayscale", "-scans", str(scans)))
    scans.unlink()

    samples = png_samples(21, 14, 8, 2)
    good = png(samples, 8, 2, False)
    body = good[33:]
    for name, width, height in ("bomb", 0x7FFFFFFF, 0x7FFFFFFF), ("bomb-narrow", 1, 0x7FFFFFFF):
        header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
        refuse(f"resource-png-{name}.png", good[:8] + chunk(b"IHDR", header) + body)
    at = good.index(b"IDAT") + 20
    refuse("corrupt-png-checksum-of-pixels.png", good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :])
    refuse("corrupt-png-checksum-of-header.png", good[:29] + bytes([good[29] ^ 1]) + good[30:])
    exif_chunk = chunk(b"eXIf", exif(6))
    refuse(
        "corrupt-png-checksum-of-exif.png",
        png(samples, 8, 2, False, exif_chunk[:-1] + bytes([exif_chunk[-1] ^ 1])),
    )
    refuse("corrupt-png-no-end.png", good[:-12])
    refuse("corrupt-png-no-palette.png", png(png_samples(21, 14, 8, 3), 8, 3, False))
    # Here, so that the random numbers of the files behind it stay. Black since Pillow 10.1, as with libpng.
    indexes, colours = png_samples(21, 14, 4, 3), picture(3, 1)
    data = png(indexes, 4, 3, False, chunk(b"PLTE", colours.tobytes()))
    palette = np.zeros((16, 3), np.uint8)
    palette[:3] = colours[0]
    image = Image.open(io.BytesIO(data))
    keep("png_index_behind_palette.png", data, palette[np.asarray(image)])
    header = struct.pack(">IIBBBBB", 21, 40, 8, 2, 0, 0, 0)
    refuse("corrupt-png-taller-than-its-data.png", good[:8] + chunk(b"IHDR", header) + body)

    webp = pillow(picture(33, 20), "WEBP", lossless=True)
    image = webp[webp.index(b"VP8L") :]
    at = image.index(b"VP8L") + 9  # 14 bits width - 1, 14 bits height - 1
    huge = image[:at] + struct.pack("<I", 0x0FFFFFFF) + image[at + 4 :]
    refuse(
        "resource-webp-bomb.webp", riff((b"VP8X", b"\0\0\0\0" + u24(16383) + u24(16383)), (b"VP8L", huge[8:]))
    )
    refuse("corrupt-webp-cut.webp", webp[:-40])
    refuse("corrupt-webp-header-only.webp", webp[:12])
    refuse("unsupported-photoshop.jpg", b"8BPS\0\1" + bytes(20))
    refuse("unsupported-text.png", b"not an image\n")
    refuse("unsupported-riff-wave.webp", b"RIFF\x10\0\0\0WAVEfmt ")
    refuse("corrupt-empty.jpg", b"")


# --- orientation in XMP and in text -------------------------------------------------------------------------


def xmp(orientation, element=False):
    said = (
        f"><tiff:Orientation>{orientation}</tiff:Orientation>"
        if element
        else f' tiff:Orientation="{orientation}">'
    )
    return (
        '<?xpacket begin="" id="W5M0MpCehiHzreSzNTczkc9d"?><x:xmpmeta '
        'xmlns:x="adobe:ns:meta/"><rdf:Description'
        f'{said}</rdf:Description></x:xmpmeta><?xpacket end="w"?>'
    ).encode()


def itxt(text, compressed=False):
    return chunk(
        b"iTXt",
        b"XML:com.adobe.xmp\0" + bytes([compressed, 0, 0, 0]) + (zlib.compress(text) if compressed else text),
    )


def raw_profile(kind, orientation):
    data = b"Exif\0\0" + exif(orientation)
    digits = data.hex()
    lines = "\n".join(digits[i : i + 72] for i in range(0, len(digits), 72))
    text = f"\nexif\n{len(data):8}\n{lines}\n".encode()
    return chunk(
        kind, b"Raw profile type exif\0" + (b"\0" + zlib.compress(text) if kind == b"zTXt" else text)
    )


TURNS = {3: Image.ROTATE_180, 6: Image.ROTATE_270, 8: Image.ROTATE_90}


def keep_turned(name, data, orientation):
    """Pillow reads XMP of JPEG and WebP since 11.0: with older ones the expectation is turned here."""
    image = Image.open(io.BytesIO(data)).convert("RGB")
    keep(name, data, np.asarray(image.transpose(TURNS[orientation])))


def make_orientations():
    samples = png_samples(21, 14, 8, 2)
    for name, before, behind in (
        ("xmp_6", itxt(xmp(6)), b""),
        ("xmp_element_8", itxt(xmp(8, element=True)), b""),
        ("xmp_compressed_3", itxt(xmp(3), compressed=True), b""),
        ("xmp_behind_5", b"", itxt(xmp(5), compressed=True)),
        ("xmp_9", itxt(xmp(9)), b""),
        ("raw_profile_7", raw_profile(b"zTXt", 7), b""),
        ("raw_profile_text_6", raw_profile(b"tEXt", 6), b""),
        ("exif_1_xmp_6", chunk(b"eXIf", exif(1)) + itxt(xmp(6)), b""),
        ("exif_3_raw_profile_6", chunk(b"eXIf", exif(3)) + raw_profile(b"zTXt", 6), b""),
        ("raw_profile_8_xmp_6", raw_profile(b"zTXt", 8) + itxt(xmp(6)), b""),
    ):
        keep(f"png_orientation_{name}.png", png(samples, 8, 2, False, before, behind))
    jpeg = cjpeg(picture(33, 20))
    found, rest = segments(jpeg)
    app1 = (0xE1, b"http://ns.adobe.com/xap/1.0/\0" + xmp(6))
    keep_turned("jpeg_orientation_xmp_6.jpg", assemble(found[:1] + [app1] + found[1:], rest), 6)
    eight = (0xE1, b"http://ns.adobe.com/xap/1.0/\0" + xmp(8, element=True))
    keep_turned("jpeg_orientation_xmp_6_then_8.jpg", assemble(found[:1] + [app1, eight] + found[1:], rest), 8)
    exif_3 = (0xE1, b"Exif\0\0" + exif(3))
    keep("jpeg_orientation_exif_3_xmp_6.jpg", assemble(found[:1] + [app1, exif_3] + found[1:], rest))
    webp = pillow(picture(33, 20), "WEBP", quality=80, xmp=xmp(8))
    keep_turned("webp_orientation_xmp_8.webp", webp, 8)
    keep(
        "webp_orientation_exif_3_xmp_8.webp",
        pillow(picture(33, 20), "WEBP", quality=80, xmp=xmp(8), exif=b"Exif\0\0" + exif(3)),
    )


# --- TIFF ---------------------------------------------------------------------------------------------------

TYPE_OF = {1: "B", 2: "s", 3: "H", 4: "I", 16: "Q"}


def tiff_ifd(entries, order, big, at):
    """The directory at `at`, the values behind it."""
    count, entry = (8, 20) if big else (2, 12)
    values_at = at + count + entry * len(entries) + (8 if big else 4)
    rows, values = b"", b""
    for tag, kind, numbers in sorted(entries):
        data = numbers if kind in (1, 2, 7) else struct.pack(order + TYPE_OF[kind] * len(numbers), *numbers)
        room = 8 if big else 4
        if len(data) <= room:
            field = data.ljust(room, b"\0")
        else:
            field = struct.pack(order + ("Q" if big else "I"), values_at + len(values))
            values += data + b"\0" * (len(data) % 2)
        number = len(numbers)
        rows += struct.pack(order + "HH" + ("Q" if big else "I"), tag, kind, number) + field
    head = struct.pack(order + ("Q" if big else "H"), len(entries))
    return head + rows + bytes(8 if big else 4) + values


def tiff(
    samples,
    bits,
    photometric,
    order="<",
    separate=False,
    tile=None,
    rows=None,
    deflate=False,
    predictor=False,
    extra=(),
    orientation=None,
    palette=None,
    big=False,
    xmp_packet=None,
    sample_format=None,
    directory_first=False,
    more=(),
):
    """A TIFF file. samples: [row, column, band]; tile: (width, height); rows: of a strip."""
    height, width, bands = samples.shape
    block_w, block_h = tile or (width, rows or height)
    planes = [samples[..., b : b + 1] for b in range(bands)] if separate else [samples]
    blocks = []
    for plane in planes:
        for y in range(0, height, block_h):
            for x in range(0, width, block_w):
                block = plane[y : y + block_h, x : x + block_w]
                if tile:
                    block = np.pad(
                        block,
                        ((0, block_h - block.shape[0]), (0, block_w - block.shape[1]), (0, 0)),
                        mode="edge",
                    )
                if predictor:
                    block = np.concatenate([block[:, :1], block[:, 1:] - block[:, :-1]], axis=1) & (
                        (1 << bits) - 1
                    )
                if bits == 16:
                    data = block.astype(order + "u2").tobytes()
                else:
                    data = b"".join(pack_rows(block, bits))
                blocks.append(zlib.compress(data, 9) if deflate else data)
    count = len(planes[0][0, 0]) * len(planes)
    entries = [
        (256, 4, [width]),
        (257, 4, [height]),
        (258, 3, [bits] * count),
        (259, 3, [8 if deflate else 1]),
        (262, 3, [photometric]),
        (277, 3, [count]),
        (284, 3, [2 if separate else 1]),
        *more,
    ]
    if extra:
        entries.append((338, 3, list(extra)))
    if predictor:
        entries.append((317, 3, [2]))
    if orientation is not None:
        entries.append((274, 3, [orientation]))
    if palette is not None:
        entries.append((320, 3, [int(v) for v in palette.T.reshape(-1)]))
    if xmp_packet is not None:
        entries.append((700, 1, xmp_packet))
    if sample_format is not None:
        entries.append((339, 3, [sample_format] * count))
    where, size = (324, 325) if tile else (273, 279)
    entries += [(322, 4, [tile[0]]), (323, 4, [tile[1]])] if tile else [(278, 4, [block_h])]
    offset_type = 16 if big else 4
    head_bytes = 16 if big else 8

    def with_offsets(first):
        offsets = [first + sum(len(b) + len(b) % 2 for b in blocks[:i]) for i in range(len(blocks))]
        return entries + [(where, offset_type, offsets), (size, offset_type, [len(b) for b in blocks])]

    data = b"".join(b + b"\0" * (len(b) % 2) for b in blocks)
    if directory_first:
        first = head_bytes + len(tiff_ifd(with_offsets(0), order, big, head_bytes))
        body = tiff_ifd(with_offsets(first), order, big, head_bytes) + data
        ifd_at = head_bytes
    else:
        ifd_at = head_bytes + len(data)
        body = data + tiff_ifd(with_offsets(head_bytes), order, big, ifd_at)
    mark = b"II" if order == "<" else b"MM"
    if big:
        return mark + struct.pack(order + "HHHQ", 43, 8, 0, ifd_at) + body
    return mark + struct.pack(order + "HI", 42, ifd_at) + body


def tiffcp(data, *options):
    """The same image as libtiff writes it: other compression, strips or tiles."""
    with tempfile.TemporaryDirectory() as folder:
        source, target = pathlib.Path(folder) / "a.tif", pathlib.Path(folder) / "b.tif"
        source.write_bytes(data)
        subprocess.run(["tiffcp", *options, source, target], check=True)
        return target.read_bytes()


def replicated(gray):
    return np.repeat(gray.astype(np.uint8), 3, axis=2)


def tiff_samples(width, height, bits, bands):
    array = picture(width, height, bands).astype(np.uint32)
    if bits == 16:
        return (array << 8) | RANDOM.integers(0, 256, array.shape, dtype=np.uint32)
    return array >> (8 - bits)


def divided(samples):
    """Associated alpha divided out, as Pillow does."""
    color, alpha = samples[..., :-1].astype(np.uint32), samples[..., -1:].astype(np.uint32)
    return np.where(alpha == 0, 0, np.minimum(color * 255 // np.maximum(alpha, 1), 255)).astype(np.uint8)


def make_tiffs():
    # Layouts, with RGB of 8 bits.
    rgb = tiff_samples(21, 14, 8, 3)
    for name, options in {
        "strips": dict(rows=4),
        "one_strip": {},
        "tiles": dict(tile=(16, 16)),
        "separate": dict(separate=True, rows=4),
        "separate_tiles": dict(separate=True, tile=(16, 16)),
        "big_endian": dict(order=">", rows=5),
        "bigtiff": dict(big=True, rows=5),
        "bigtiff_big_endian": dict(big=True, order=">"),
        "deflate": dict(deflate=True, rows=5),
        "deflate_predictor": dict(deflate=True, predictor=True, rows=5),
        "deflate_separate_tiles": dict(deflate=True, predictor=True, separate=True, tile=(16, 16)),
        "directory_first": dict(directory_first=True, rows=5),
    }.items():
        data = tiff(rgb, 8, 2, **options)
        keep(f"tiff_rgb_8_{name}.tif", data, rgb.astype(np.uint8))
    keep("tiff_rgb_8_1x1.tif", tiff(tiff_samples(1, 1, 8, 3), 8, 2))
    # Samples.
    for bits in 1, 2, 4, 8, 16:
        gray = tiff_samples(21, 14, bits, 1)
        eight = gray >> 8 if bits == 16 else gray * (255 // ((1 << bits) - 1))
        for photometric, label, expected in (1, "gray", eight), (0, "inverted", 255 - eight):
            keep(f"tiff_{label}_{bits}.tif", tiff(gray, bits, photometric, rows=5), replicated(expected))
            keep(
                f"tiff_{label}_{bits}_tiles.tif",
                tiff(gray, bits, photometric, tile=(16, 16), deflate=True),
                replicated(expected),
            )
    for bits in 1, 2, 4, 8:
        entries = picture(1 << bits, 1)[0].astype(np.uint32) * 257
        data = tiff(tiff_samples(21, 14, bits, 1), bits, 3, palette=entries, rows=5)
        keep(f"tiff_palette_{bits}.tif", data)
    for bits in 8, 16:
        shift = bits - 8
        for order, ends in ("<", ""), (">", "_big_endian"):
            array = tiff_samples(21, 14, bits, 3)
            keep(
                f"tiff_rgb_{bits}{ends}_rows.tif",
                tiff(array, bits, 2, order=order, rows=3),
                (array >> shift).astype(np.uint8),
            )
        for extra, label in ((0, "unspecified"), (1, "associated"), (2, "unassociated")):
            array = tiff_samples(21, 14, bits, 4)
            array[:5, :7, 3] = 0
            array[5:8, :7, 3] = (1 << bits) - 1
            high = (array >> shift).astype(np.uint8)
            expected = divided(high) if extra == 1 else high[..., :3]
            for separate in False, True:
                name = f"tiff_rgba_{bits}_{label}{'_separate' if separate else ''}.tif"
                keep(name, tiff(array, bits, 2, extra=(extra,), separate=separate, rows=5), expected)
        array = tiff_samples(21, 14, bits, 2)
        high = (array >> shift).astype(np.uint8)
        keep(f"tiff_gray_alpha_{bits}.tif", tiff(array, bits, 1, extra=(2,)), replicated(high[..., :1]))
        keep(f"tiff_gray_associated_{bits}.tif", tiff(array, bits, 1, extra=(1,)), replicated(divided(high)))
        array = tiff_samples(21, 14, bits, 4)
        high = (array >> shift).astype(np.uint8)
        expected = np.asarray(Image.fromarray(high, "CMYK").convert("RGB"))
        for separate in False, True:
            keep(
                f"tiff_cmyk_{bits}{'_separate' if separate else ''}.tif",
                tiff(array, bits, 5, separate=separate, rows=5),
                expected,
            )
    array = tiff_samples(21, 14, 8, 4)
    keep("tiff_rgba_8_no_extra_tag.tif", tiff(array, 8, 2), array[..., :3].astype(np.uint8))
    # What libtiff's own writer makes of them.
    gray, deep = tiff(tiff_samples(33, 20, 8, 1), 8, 1), tiff(tiff_samples(33, 20, 16, 3), 16, 2)
    color, bilevel = tiff(tiff_samples(33, 20, 8, 3), 8, 2), tiff(tiff_samples(33, 20, 1, 1), 1, 0)
    for name, data, options in (
        ("gray_8_lzw", gray, ["-c", "lzw:2", "-r", "6"]),
        ("gray_8_packbits", gray, ["-c", "packbits", "-r", "6"]),
        ("gray_8_jpeg", gray, ["-c", "jpeg:80", "-r", "8"]),
        ("rgb_8_lzw", color, ["-c", "lzw", "-r", "6"]),
        ("rgb_8_lzw_predictor_tiles", color, ["-c", "lzw:2", "-t", "-w", "16", "-l", "16"]),
        ("rgb_8_packbits_separate", color, ["-c", "packbits", "-p", "separate", "-r", "7"]),
        ("rgb_8_zip_predictor", color, ["-c", "zip:2", "-r", "7"]),
        ("rgb_8_zstd", color, ["-c", "zstd:2", "-r", "7"]),
        ("rgb_8_jpeg_strips", color, ["-c", "jpeg:80", "-r", "16"]),
        ("rgb_8_jpeg_tiles", color, ["-c", "jpeg:80", "-t", "-w", "16", "-l", "16"]),
        ("rgb_8_jpeg_as_rgb", color, ["-c", "jpeg:r:80", "-r", "16"]),
        ("bilevel_g3", bilevel, ["-c", "g3", "-r", "6"]),
        ("bilevel_g3_2d", bilevel, ["-c", "g3:2d", "-r", "6"]),
        ("bilevel_g4", bilevel, ["-c", "g4", "-r", "6"]),
        ("bilevel_g4_least_bit_first", bilevel, ["-c", "g4", "-f", "lsb2msb"]),
        ("bilevel_none_least_bit_first", bilevel, ["-c", "none", "-f", "lsb2msb"]),
        ("rgb_16_zip_predictor", deep, ["-c", "zip:2", "-r", "7"]),
        ("rgb_16_lzw_tiles", deep, ["-c", "lzw", "-t", "-w", "16", "-l", "16"]),
        ("rgb_16_big_endian_zip_predictor", deep, ["-B", "-c", "zip:2"]),
    ):
        keep(f"tiff_{name}.tif", tiffcp(data, *options))
    # Orientation.
    for orientation in range(1, 9):
        keep_upright(
            f"tiff_orientation_{orientation}.tif", tiff(rgb, 8, 2, orientation=orientation), rgb, orientation
        )
    keep_upright(
        "tiff_orientation_6_tiles.tif", tiff(rgb, 8, 2, orientation=6, tile=(16, 16), big=True), rgb, 6
    )
    keep_upright("tiff_orientation_xmp_6.tif", tiff(rgb, 8, 2, xmp_packet=xmp(6)), rgb, 6)
    keep_upright("tiff_orientation_3_xmp_6.tif", tiff(rgb, 8, 2, orientation=3, xmp_packet=xmp(6)), rgb, 3)
    # The first of two pages.
    with io.BytesIO() as out:
        pages = [Image.fromarray(picture(17, 13)) for _ in range(2)]
        pages[0].save(out, "TIFF", save_all=True, append_images=pages[1:], compression="tiff_lzw")
        keep("tiff_two_pages.tif", out.getvalue(), np.asarray(pages[0]))

    def refuse(name, data):
        (REFUSED / name).write_bytes(data)

    refuse(
        "unsupported-tiff-float.tif", tiff(np.zeros((3, 4, 2), np.uint32), 16, 1, extra=(0,), sample_format=3)
    )
    refuse("unsupported-tiff-signed.tif", tiff(np.zeros((3, 4, 1), np.uint32), 16, 1, sample_format=2))
    refuse("unsupported-tiff-5-bands.tif", tiff(np.zeros((3, 4, 5), np.uint32), 8, 1, extra=(0, 0, 0, 0)))
    refuse("unsupported-tiff-lab.tif", tiff(rgb, 8, 8))
    refuse("unsupported-tiff-ycbcr.tif", tiff(rgb, 8, 6))
    refuse("unsupported-tiff-preview.tif", tiff(rgb, 8, 2, more=[(254, 4, [1])]))
    refuse("unsupported-tiff-dng.tif", tiff(rgb, 8, 2, more=[(50706, 1, b"\1\4\0\0")]))
    refuse("unsupported-tiff-lzma.tif", tiffcp(color, "-c", "lzma"))
    refuse("unsupported-tiff-4-bits-rgb.tif", tiff(rgb >> 4, 4, 2))
    refuse("corrupt-tiff-header-only.tif", color[:8])
    refuse("corrupt-tiff-no-palette.tif", tiff(tiff_samples(21, 14, 4, 1), 4, 3))
    refuse("corrupt-tiff-no-palette-8.tif", tiff(np.zeros((3, 4, 1), np.uint32), 8, 3))
    good = tiff(rgb, 8, 2, directory_first=True, rows=0x7FFFFFFF)
    refuse("corrupt-tiff-cut.tif", good[:-40])
    at = good.index(struct.pack("<HHII", 257, 4, 1, 14))
    refuse("resource-tiff-bomb.tif", good[: at + 8] + struct.pack("<I", 0x7FFFFFFF) + good[at + 12 :])
    refuse("corrupt-tiff-taller-than-its-data.tif", good[: at + 8] + struct.pack("<I", 40) + good[at + 12 :])
    tiles = tiff(rgb, 8, 2, directory_first=True, tile=(16, 16))
    at = tiles.index(struct.pack("<HHII", 322, 4, 1, 16))
    refuse("resource-tiff-tile-bomb.tif", tiles[: at + 8] + struct.pack("<I", 0x10000000) + tiles[at + 12 :])


def keep_upright(name, data, samples, orientation):
    """What turns it upright is Pillow's; the samples are known."""
    turn = {
        2: Image.FLIP_LEFT_RIGHT,
        3: Image.ROTATE_180,
        4: Image.FLIP_TOP_BOTTOM,
        5: Image.TRANSPOSE,
        6: Image.ROTATE_270,
        7: Image.TRANSVERSE,
        8: Image.ROTATE_90,
    }.get(orientation)
    image = Image.fromarray(samples.astype(np.uint8))
    keep(name, data, np.asarray(image if turn is None else image.transpose(turn)))


# --- GIF ----------------------------------------------------------------------------------------------------


def gif_codes(indices, bits):
    """LZW without a table: a clear code before the codes grow."""
    clear, size = 1 << bits, bits + 1
    codes, room = [], 0
    for index in indices:
        if room == 0:
            codes.append(clear)
            room = clear - 2
        codes.append(index)
        room -= 1
    number, at = 0, 0
    for code in codes + [clear + 1]:
        number |= code << at
        at += size
    data = number.to_bytes((at + 7) // 8, "little")
    blocks = [data[i : i + 255] for i in range(0, len(data), 255)]
    return bytes([bits]) + b"".join(bytes([len(b)]) + b for b in blocks) + b"\0"


def gif_colors(entries):
    return entries.astype(np.uint8).tobytes()


def gif(
    indices,
    screen,
    at=(0, 0),
    colors=None,
    local=None,
    transparent=None,
    interlaced=False,
    bits=8,
    between=b"",
    last=b";",
):
    height, width = indices.shape

    def count(entries):
        return 0x80 | (len(entries).bit_length() - 2)

    rows = (
        [r for first, step in ((0, 8), (4, 8), (2, 4), (1, 2)) for r in range(first, height, step)]
        if interlaced
        else range(height)
    )
    out = b"GIF89a" + struct.pack("<HHBBB", *screen, count(colors) if colors is not None else 0, 0, 0)
    out += gif_colors(colors) if colors is not None else b""
    if transparent is not None:
        out += b"!\xf9\4" + bytes([1, 0, 0, transparent]) + b"\0"
    out += (
        between
        + b","
        + struct.pack(
            "<HHHHB", *at, width, height, (count(local) if local is not None else 0) | 0x40 * interlaced
        )
    )
    out += gif_colors(local) if local is not None else b""
    return out + gif_codes([int(i) for r in rows for i in indices[r]], bits) + last


def make_gifs():
    indices = picture(21, 14, 1)[..., 0] >> 4
    colors, other = picture(16, 1)[0], picture(16, 1)[0]
    keep("gif_global.gif", gif(indices, (21, 14), colors=colors))
    keep("gif_local.gif", gif(indices, (21, 14), colors=colors, local=other))
    keep("gif_interlaced.gif", gif(indices, (21, 14), colors=colors, interlaced=True))
    keep("gif_no_palette.gif", gif(picture(21, 14, 1)[..., 0], (21, 14)))
    keep("gif_transparent.gif", gif(indices, (21, 14), colors=colors, transparent=3))
    keep("gif_part.gif", gif(indices, (40, 30), at=(7, 5), colors=colors))
    keep(
        "gif_part_transparent.gif",
        gif(indices, (40, 30), at=(7, 5), colors=colors, transparent=3, interlaced=True),
    )
    keep("gif_beyond_screen.gif", gif(indices, (10, 9), at=(3, 2), colors=colors))
    keep(
        "gif_comment_and_bytes_between.gif",
        gif(indices, (21, 14), colors=colors, between=b"!\xfe\5hello\0\0\0"),
    )
    keep("gif_no_trailer.gif", gif(indices, (21, 14), colors=colors, last=b""))
    entries = np.zeros((256, 3), np.uint8)
    entries[:16] = colors
    behind = picture(21, 14, 1)[..., 0]
    keep("gif_index_behind_palette.gif", gif(behind, (21, 14), colors=colors), entries[behind])
    keep("gif_1x1.gif", gif(np.zeros((1, 1), int), (1, 1), colors=colors))
    for interlace in 0, 1:
        keep(f"gif_pillow_{interlace}.gif", pillow(picture(33, 20)[..., 0], "GIF", interlace=interlace))
    frames = [Image.fromarray(picture(33, 20)).quantize(64) for _ in range(3)]
    out = io.BytesIO()
    frames[0].save(out, "GIF", save_all=True, append_images=frames[1:], duration=100, disposal=2)
    keep("gif_animated.gif", out.getvalue())

    def refuse(name, data):
        (REFUSED / name).write_bytes(data)

    good = gif(indices, (21, 14), colors=colors)
    refuse("corrupt-gif-header-only.gif", good[:13])
    refuse("corrupt-gif-no-image.gif", good[:13] + good[13 : 13 + 48] + b";")
    refuse("corrupt-gif-cut.gif", good[:-40])
    refuse("corrupt-gif-no-pixels.gif", good[:66] + b"\0\0" + good[68:])
    refuse("resource-gif-screen-bomb.gif", good[:6] + b"\xff\xff\xff\xff" + good[10:])
    refuse("resource-gif-frame-bomb.gif", good[:66] + b"\xff\xff\xff\xff" + good[70:])


if __name__ == "__main__":
    for folder in OUT, REFUSED:
        folder.mkdir(exist_ok=True)
        for old in folder.iterdir():
            old.unlink()
    make_jpegs()
    make_pngs()
    make_webps()
    make_refused()
    make_orientations()
    make_tiffs()
    make_gifs()
    written = list(OUT.iterdir()) + list(REFUSED.iterdir())
    print(f"{len(written)} files, {sum(f.stat().st_size for f in written)} bytes in {OUT} and {REFUSED}")
