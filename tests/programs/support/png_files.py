"""PNG files of any depth, colour type and orientation, made of rows of numbers."""

import struct
import zlib

GRAY, PALETTE, RGB = 0, 3, 2


def png_of(rows, depth=8, color=GRAY, orientation=None):
    """A PNG file of rows of numbers, as its palette's indices or gray values."""

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    data = b""
    for row in rows:
        bits = "".join(format(value, f"0{depth}b") for value in row)
        bits += "0" * (-len(bits) % 8)
        data += b"\0" + bytes(int(bits[i : i + 8], 2) for i in range(0, len(bits), 8))
    header = struct.pack(
        ">IIBBBBB", len(rows[0]) // (3 if color == RGB else 1), len(rows), depth, color, 0, 0, 0
    )
    chunks = chunk(b"IHDR", header)
    if color == PALETTE:  # colours that say nothing of the index
        chunks += chunk(b"PLTE", bytes((i * 77 + c * 31) % 256 for i in range(1 << depth) for c in range(3)))
    if orientation is not None:
        chunks += chunk(
            b"eXIf",
            b"MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01"
            + struct.pack(">HH", orientation, 0)
            + b"\0\0\0\0",
        )
    return b"\x89PNG\r\n\x1a\n" + chunks + chunk(b"IDAT", zlib.compress(data, 1)) + chunk(b"IEND", b"")
