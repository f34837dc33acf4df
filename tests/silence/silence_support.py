"""Nothing is stored or delivered wrong in silence: small sets with one oddity each.

The only results that a test here may allow are the right data, or a reject or an error that names what is
odd. The pictures are 32x32 and stored as they are, so what a sample must hold is known without a decoder.
"""

import random
import struct
import sys
import zlib
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "programs" / "support"))

from shardify_support import (
    SANITIZED,
    TestCase,
    info,
    keys_of,
    labels_of,
    main,
    read_shard,
    rejects,
    shardctl,
    shardify,
    shards,
    state,
    stored_samples,
    write,
)

__all__ = [
    "SANITIZED",
    "SIDE",
    "Silence",
    "info",
    "main",
    "picture",
    "pixels",
    "rejects",
    "shardctl",
    "shardify",
    "state",
    "write",
]

SIDE = 32
AS_THEY_ARE = [
    "--preset",
    "train",
    "--resize",
    str(SIDE),
    "--crop",
    str(SIDE),
    "--samples-per-shard",
    "3",
    "--quiet",
]


def pixels(seed):
    """uint8 [row, column, RGB] of the picture with this number, as bytes."""
    return random.Random(seed).randbytes(SIDE * SIDE * 3)


def picture(seed):
    """The same as a PNG file."""

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    values, width = pixels(seed), SIDE * 3
    rows = b"".join(b"\0" + values[y * width : (y + 1) * width] for y in range(SIDE))
    header = struct.pack(">IIBBBBB", SIDE, SIDE, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(rows, 1))
        + chunk(b"IEND", b"")
    )


class Silence(TestCase):
    """expect_stored and expect_refused are the two results that are allowed."""

    def convert(self, *arguments, **options):
        return shardify(*arguments, self.out, *AS_THEY_ARE, **options)

    def labels(self):
        """{key: label}."""
        return {key: label for path in shards(self.out) for key, label in zip(keys_of(path), labels_of(path))}

    def column(self, name):
        """{key: bytes of its row} of a column of fixed size."""
        found = {}
        for path in shards(self.out):
            _, shape, data = read_shard(path)[1][name]
            size = len(data) // shape[0]
            found.update((key, data[i * size : (i + 1) * size]) for i, key in enumerate(keys_of(path)))
        return found

    def expect_stored(self, arguments, samples, labels=None, rejected=None, **options):
        """arguments: of shardify, without OUT. samples: {key: number of its picture,
        or its pixels}. labels: {key: label}.
        rejected: {path: a piece of the reason}; with rejects the exit code is 1."""
        result = self.convert(*arguments, **options)
        self.assert_code(result, 1 if rejected else 0)
        expected = {
            key: value if isinstance(value, bytes) else pixels(value) for key, value in samples.items()
        }
        stored = stored_samples(self.out)
        self.assertEqual(sorted(stored), sorted(expected), result)
        for key, value in expected.items():
            self.assertTrue(
                stored[key] == value, f"the pixels of {key} are not those of its picture: {result}"
            )
        if labels is not None:
            self.assertEqual(self.labels(), labels, result)
        found = (
            rejects(self.out) if state(self.out) == "complete" and (self.out / "rejects.csv").exists() else {}
        )
        self.assertEqual(sorted(found), sorted(rejected or {}), result)
        for path, piece in (rejected or {}).items():
            self.assertIn(piece, found[path])
        self.assert_visible_is_sound(self.out)
        return result

    def expect_refused(self, arguments, *words, **options):
        """Exit code 2, one message with the words, and no data set."""
        result = self.assert_refused(self.convert(*arguments, **options), *words)
        self.assertNotEqual(state(self.out), "complete", result)
        return result
