#!/usr/bin/env python3
"""shardify: what it writes, read by others: numpy at the offset that shardctl prints,
and the safetensors package."""

import json
import pathlib
import sys
import unittest

from shardify_support import (
    SMALL,
    TestCase,
    main,
    make_images,
    make_photos,
    read_shard,
    run,
    shardctl,
    shardify,
    shards,
)

try:
    import numpy
except ImportError:
    numpy = None
try:
    import safetensors.numpy
except ImportError:
    safetensors = None

NUMPY_TYPES = {"U8": "u1", "U64": "<u8", "I64": "<i8", "F16": "<f2", "F32": "<f4"}


def arrays(path):
    return {
        name: numpy.frombuffer(data, NUMPY_TYPES[dtype]).reshape(shape)
        for name, (dtype, shape, data) in read_shard(path)[1].items()
    }


def images_of(printed):
    (shard,) = printed["shards"]
    return next(tensor for tensor in shard["tensors"] if tensor["name"] == "images")


class Readers(TestCase):
    def setUp(self):
        super().setUp()
        self.images = make_images(self.path / "in", ("a", "b"), each=5)
        make_photos(self.images / "photos", 3)


class Numpy(Readers):
    @unittest.skipIf(numpy is None, "python3-numpy is not installed")
    def test_numpy_maps_images_at_the_offset_that_shardctl_prints(self):
        for dtype in ("u8", "f16", "f32"):
            out = self.path / dtype
            self.assert_code(
                shardify(
                    self.images,
                    out,
                    "--resize",
                    "32",
                    "--crop",
                    "32",
                    "--dtype",
                    dtype,
                    "--samples-per-shard",
                    "4",
                    "--quiet",
                ),
                0,
            )
            for path in shards(out):
                printed = json.loads(self.assert_code(shardctl("info", "--json", path), 0).out)
                expected = arrays(path)["images"]
                offset = images_of(printed)["offset"]
                self.assertEqual(offset % 4096, 0)
                mapped = numpy.memmap(path, expected.dtype, "r", offset, expected.shape)
                self.assertTrue(numpy.array_equal(mapped.view("u1"), expected.view("u1")))
                self.assertGreater(float(mapped.astype("f8").std()), 0.1)


class Packed(Readers):
    @unittest.skipIf(numpy is None, "numpy is not installed")
    def test_the_numpy_decoder_of_the_documents_gives_what_shardctl_exports(self):
        example = pathlib.Path(__file__).parents[3] / "docs" / "examples" / "read_packed" / "read_packed.py"
        self.assertLess(len(example.read_text().splitlines()), 60)
        images = make_photos(self.path / "photos", 1)
        for name, options in {
            "gray": ["--dtype", "u8", "--resize", "32", "--crop", "8"],
            "wide": ["--dtype", "u8", "--layout", "nhwc", "--squash", "77x33", "--crop", "none"],
            "float": ["--dtype", "f16", "--resize", "65", "--crop", "65"],
            "single": ["--dtype", "f32", "--layout", "nhwc", "--resize", "40", "--crop", "33"],
        }.items():
            out, found = self.path / name, self.path / f"{name}.npy"
            self.assert_code(shardify(images, out, "--codec", "packed", "--quiet", *options), 0)
            self.assert_code(shardctl("export", out, "--npy", self.path / f"{name}-npy"), 0)
            expected = numpy.load(self.path / f"{name}-npy" / "images.npy")
            for index in range(len(expected)):
                self.assert_code(run([sys.executable, example, shards(out)[0], str(index), found]), 0)
                self.assertEqual(numpy.load(found).dtype, expected.dtype)
                self.assertEqual(numpy.load(found).tobytes(), expected[index].tobytes(), f"{name} {index}")


class Reference(Readers):
    @unittest.skipIf(numpy is None or safetensors is None, "the Python package safetensors is not installed")
    def test_the_reference_implementation_reads_equal_tensors(self):
        for options in (["--codec", "none"], ["--codec", "zstd"], ["--codec", "packed"]):
            out = self.path / options[1]
            self.assert_code(shardify(self.images, out, *SMALL, *options), 0)
            for path in shards(out):
                expected = arrays(path)
                found = safetensors.numpy.load_file(path)
                self.assertEqual(sorted(found), sorted(expected))
                for name, array in expected.items():
                    self.assertEqual(found[name].dtype, array.dtype)
                    self.assertTrue(numpy.array_equal(found[name], array), name)


if __name__ == "__main__":
    main()
