"""Files of pictures whose pixels are known, written by their specifications,
and what Pillow makes of files."""

import io
import random
import struct
import unittest
import zlib

try:
    import PIL
    from PIL import Image
except ImportError:
    PIL = None


def need_pillow(least=(0, 0)):
    """Or the test is skipped, visibly."""
    if PIL is None:
        raise unittest.SkipTest("Pillow is not installed (python3-pil)")
    if tuple(map(int, PIL.__version__.split(".")[:2])) < least:
        raise unittest.SkipTest(f"Pillow {PIL.__version__} is older than {'.'.join(map(str, least))}")


def by_pillow(data, orientation=1):
    """What an image must become, RGB of 8 bits: as stored, and turned as EXIF's orientation says (versions of
    Pillow differ in which files they turn themselves)."""
    image = Image.open(io.BytesIO(data))
    rgb = image.convert("RGB")
    turn = {
        2: "FLIP_LEFT_RIGHT",
        3: "ROTATE_180",
        4: "FLIP_TOP_BOTTOM",
        5: "TRANSPOSE",
        6: "ROTATE_270",
        7: "TRANSVERSE",
        8: "ROTATE_90",
    }
    return (rgb.transpose(getattr(Image.Transpose, turn[orientation])) if orientation != 1 else rgb).tobytes()


def of_pillow(mode, size, pixels):
    return Image.frombytes(mode, size, pixels)


def saved(image, kind, **options):
    out = io.BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()


def noise(seed, size):
    return random.Random(seed).randbytes(size)


def png(side, depth, color, rows, palette=None, more=b"", behind=b""):
    """rows: the samples of each row, packed as PNG has them. more: chunks before the pixels."""
    header = struct.pack(">IIBBBBB", side, side, depth, color, 0, 0, 0)
    colors = chunk(b"PLTE", palette) if palette else b""
    pixels = zlib.compress(b"".join(b"\0" + row for row in rows), 1)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + colors
        + more
        + chunk(b"IDAT", pixels)
        + chunk(b"IEND", b"")
        + behind
    )


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def rows_of(data, count):
    size = len(data) // count
    return [data[i * size : (i + 1) * size] for i in range(count)]


def page(side, data, bits, photometric, palette=None, more=None):
    """A page of tiff(). bits: of each sample. data: as the file has it, rows of whole bytes.
    palette: [(red, green, blue)].
    more: {tag: (type, values)}, for instance {254: (4, [1])} for a preview."""
    fields = {
        254: (4, [0]),
        256: (4, [side]),
        257: (4, [side]),
        258: (3, bits),
        259: (3, [1]),
        262: (3, [photometric]),
        277: (3, [len(bits)]),
        278: (4, [side]),
    }
    if palette is not None:
        fields[320] = (3, [257 * color[c] for c in range(3) for color in palette])
    fields.update(more or {})
    return fields, data


def tiff(*pages, order="<", big=False):
    """Bytes of a TIFF file of pages that page() made."""
    mark = b"II" if order == "<" else b"MM"
    out = bytearray(
        mark + (struct.pack(order + "HHHQ", 43, 8, 0, 0) if big else struct.pack(order + "HI", 42, 0))
    )
    link, word = (8, "Q") if big else (4, "I")
    for fields, data in pages:
        fields = dict(fields)
        fields[273], fields[279] = (4, [len(out)]), (4, [len(data)])
        out += data + b"\0" * (len(data) % 2)
        entries = b""
        for tag, (kind, values) in sorted(fields.items()):
            raw = struct.pack(f"{order}{len(values)}{'H' if kind == 3 else 'I'}", *values)
            if len(raw) > struct.calcsize(word):
                raw, place = struct.pack(order + word, len(out)), raw
                out += place + b"\0" * (len(place) % 2)
            entries += struct.pack(order + "HH" + word, tag, kind, len(values)) + raw.ljust(
                struct.calcsize(word), b"\0"
            )
        struct.pack_into(order + word, out, link, len(out))
        out += struct.pack(order + ("Q" if big else "H"), len(fields)) + entries
        link = len(out)
        out += bytes(struct.calcsize(word))
    return bytes(out)


def bmp(side, indices, palette, header=40, entry=None, stated=None):
    """8 bits with a palette. header: 12 (OS/2) or 40 and more. entry: bytes of a colour in the file.
    stated: the number of colours."""
    entry = entry or (3 if header == 12 else 4)
    colors = b"".join(bytes(color[::-1]) + bytes(entry - 3) for color in palette)
    rows = b"".join(reversed(rows_of(indices, side)))
    begin = 14 + header + len(colors)
    if header == 12:
        info = struct.pack("<IHHHH", 12, side, side, 1, 8)
    else:
        info = struct.pack(
            "<IiiHHIIiiII",
            header,
            side,
            side,
            1,
            8,
            0,
            0,
            0,
            0,
            len(palette) if stated is None else stated,
            0,
        ).ljust(header, b"\0")
    return b"BM" + struct.pack("<IHHI", begin + len(rows), 0, 0, begin) + info + colors + rows
