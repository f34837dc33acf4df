"""Boxes in the pixels of the stored pictures, for the tests of annotations."""

import math
import shutil
import struct

from shardify_support import keys_of, read_shard, shardify, shards
from silence_support import AS_THEY_ARE, SIDE, Silence

CODES = {"F32": "f", "I64": "q", "U8": "B"}


def float_tiff(seed, bands=1, width=SIDE):
    """A TIFF file of float32 [row, column, band], 32 rows: RGB cannot hold it."""
    data = struct.pack("<f", seed + 0.5) * (width * SIDE * bands)
    tags = [
        (256, 3, 1, width),
        (257, 3, 1, SIDE),
        (258, 3, 1, 32),
        (259, 3, 1, 1),
        (262, 3, 1, 1),
        (273, 4, 1, 8),
        (277, 3, 1, bands),
        (278, 3, 1, SIDE),
        (279, 4, 1, len(data)),
        (339, 3, 1, 3),
    ]
    at = 8 + len(data)
    after = at + 2 + 12 * len(tags) + 4
    more = b""
    entries = b""
    for tag, kind, count, value in tags:
        if tag in (258, 339) and bands > 2:
            entries += struct.pack("<HHII", tag, kind, bands, after + len(more))
            more += struct.pack("<H", value) * bands
        elif tag in (258, 339):
            entries += struct.pack("<HHIHH", tag, kind, bands, value, value if bands == 2 else 0)
        else:
            entries += struct.pack("<HHII" if kind == 4 else "<HHIHxx", tag, kind, count, value)
    return b"II*\0" + struct.pack("<I", at) + data + struct.pack("<H", len(tags)) + entries + b"\0" * 4 + more


class Targets(Silence):
    def convert(self, *arguments, **options):
        return shardify(
            *arguments, self.out, *(option for option in AS_THEY_ARE if option != "--quiet"), **options
        )

    def ragged(self, name):
        """{key: bytes} of a ragged or text column; {} without such a column."""
        found = {}
        for path in shards(self.out):
            tensors = read_shard(path)[1]
            if name not in tensors:
                return {}
            _, shape, data = tensors[name]
            offsets = [v for (v,) in struct.iter_unpack("<Q", tensors[name + "_offsets"][2])]
            size = len(data) // shape[0] if shape[0] else 0
            for i, key in enumerate(keys_of(path)):
                found[key] = data[offsets[i] * size : offsets[i + 1] * size]
        return found

    def objects(self):
        """{key: [(box, label, area, crowd)]}."""
        columns = [self.ragged(name) for name in ("boxes", "box_labels", "areas", "crowd")]
        found = {}
        for key in columns[0]:
            boxes, labels, areas, crowd = (
                struct.unpack(f"<{len(column[key]) // struct.calcsize(code)}{code}", column[key])
                for column, code in zip(columns, "fqfB")
            )
            found[key] = [
                (list(boxes[4 * i : 4 * i + 4]), labels[i], areas[i], crowd[i]) for i in range(len(labels))
            ]
        return found

    def expect_boxes(self, arguments, objects, told=(), code=0, **options):
        result = self.assert_code(self.convert(*arguments, **options), code)
        found = self.objects()
        self.assertEqual(sorted(found), sorted(objects), result)
        for key, expected in objects.items():
            self.assertEqual(len(found[key]), len(expected), (key, found[key], expected, result))
            for (box, label, area, crowd), (its_box, its_label, its_area, its_crowd) in zip(
                found[key], expected
            ):
                self.assertEqual((label, crowd), (its_label, its_crowd), (key, result))
                for a, b in zip([*box, area], [*its_box, its_area]):
                    self.assertTrue(
                        math.isclose(a, b, rel_tol=1e-5, abs_tol=1e-4), (key, box, area, its_box, its_area)
                    )
        for words in told:
            self.assertIn(words, result.out, result)
        return result

    def expect_objects(self, arguments, samples, objects, labels=None, rejected=None, told=(), **options):
        """Pixels, labels and objects, and what the summary says."""
        result = self.expect_stored(arguments, samples, labels, rejected, **options)
        for words in told:
            self.assertIn(words, result.out, result)
        shutil.rmtree(self.out)
        return self.expect_boxes(arguments, objects, told, 1 if rejected else 0, **options)
