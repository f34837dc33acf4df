#!/usr/bin/env python3
"""shardify on arrays: .npy, .npz, IDX, CIFAR's binary files. Samples are those of the same pixels as PNG;
damaged files are refused."""

import gzip
import json
import struct
import sys
import zlib

try:
    import numpy as np
except ImportError:
    print("no numpy")
    sys.exit(77)

from shardify_support import (
    SMALL,
    TestCase,
    all_keys,
    all_labels,
    digests,
    environment,
    main,
    shardctl,
    shardify,
    stored_samples,
    write,
)


def png_of(pixels):
    """[row, column] or [row, column, channel] of uint8."""
    pixels = pixels.reshape(*pixels.shape[:2], -1)
    height, width, channels = pixels.shape

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, {1: 0, 3: 2, 4: 6}[channels], 0, 0, 0)
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(rows))
        + chunk(b"IEND", b"")
    )


def idx(array):
    return bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


class Arrays(TestCase):
    def setUp(self):
        super().setUp()
        self.random = np.random.default_rng(5)

    def images(self, *shape):
        return self.random.integers(0, 256, shape, dtype=np.uint8)

    def expect_samples_of(self, out, images):
        """images: [image, row, column(, channel)]"""
        folder = self.path / f"{out.name}-png"
        for i, image in enumerate(images):
            write(folder / f"{i:06}.png", png_of(image))
        expected = self.path / f"{out.name}-expected"
        self.assert_code(shardify(folder, expected, *SMALL), 0)
        self.assertEqual(list(stored_samples(out).values()), list(stored_samples(expected).values()))

    def test_stacks_give_the_samples_of_their_images(self):
        for name, images in (
            ("gray", self.images(5, 20, 30)),
            ("gray1", self.images(5, 20, 30, 1)),
            ("rgb", self.images(5, 20, 30, 3)),
            ("rgba", self.images(5, 20, 30, 4)),
        ):
            np.save(self.path / f"{name}.npy", images)
            out = self.path / name
            self.assert_code(shardify(self.path / f"{name}.npy", out, *SMALL), 0)
            self.assertEqual(all_keys(out), [f"{name}.npy/{i:06}" for i in range(5)])
            self.assertEqual(set(all_labels(out)), {0})
            self.expect_samples_of(out, images)
            self.assert_code(shardctl("compare", out, self.path / f"{name}.npy"), 0)
            if images.ndim == 4:
                np.save(self.path / f"{name}-chw.npy", np.ascontiguousarray(images.transpose(0, 3, 1, 2)))
                chw = self.path / f"{name}-chw"
                self.assert_code(shardify(self.path / f"{name}-chw.npy", chw, *SMALL), 0)
                self.assertEqual(list(stored_samples(chw).values()), list(stored_samples(out).values()))

    def test_an_ambiguous_layout_is_asked_for(self):
        images = self.images(4, 3, 20, 3)
        np.save(self.path / "x.npy", images)
        self.assert_refused(
            shardify(self.path / "x.npy", self.out, *SMALL), "[4, 3, 20, 3]", "--array-layout nchw or nhwc"
        )
        for layout, same in (("nhwc", images), ("nchw", images.transpose(0, 2, 3, 1))):
            out = self.path / layout
            self.assert_code(shardify(self.path / "x.npy", out, *SMALL, "--array-layout", layout), 0)
            self.expect_samples_of(out, same)
            self.assert_code(shardctl("compare", out, self.path / "x.npy", "--array-layout", layout), 0)
            self.assertEqual(
                shardctl(
                    "compare",
                    out,
                    self.path / "x.npy",
                    "--array-layout",
                    "nhwc" if layout == "nchw" else "nchw",
                ).code,
                1,
            )
        # A run that goes on with the other layout would mix them.
        self.assert_refused(
            shardify(self.path / "x.npy", self.path / "nhwc", *SMALL, "--array-layout", "nchw")
        )
        self.assert_refused(
            shardify(self.path / "x.npy", self.out, *SMALL, "--array-layout", "hcw"),
            "expected nhwc, nchw, hw, hwc or chw",
        )

    def test_labels_come_from_an_array_or_a_table(self):
        np.save(self.path / "x.npy", self.images(6, 20, 30, 3))
        for dtype in ("<i8", ">i4", "|u1", "<u2", ">i2"):
            labels = np.array([3, 1, 2, 0, 5, 4], dtype)
            np.save(self.path / "y.npy", labels)
            out = self.path / f"out{dtype[1:]}"
            self.assert_code(shardify(self.path / "x.npy", out, *SMALL, "--labels", self.path / "y.npy"), 0)
            self.assertEqual(all_labels(out), [3, 1, 2, 0, 5, 4])
        np.save(self.path / "y.npy", np.arange(5))
        self.assert_refused(
            shardify(self.path / "x.npy", self.out, *SMALL, "--labels", self.path / "y.npy"),
            "5 labels for 6 images",
        )
        np.save(self.path / "y.npy", np.arange(6.0))
        self.assert_refused(
            shardify(self.path / "x.npy", self.out, *SMALL, "--labels", self.path / "y.npy"), "whole numbers"
        )
        write(
            self.path / "y.csv",
            "".join(f"x.npy/{i:06},{'cat' if i % 2 else 'dog'}\n" for i in range(6)).encode(),
        )
        self.assert_code(
            shardify(self.path / "x.npy", self.path / "csv", *SMALL, "--labels", self.path / "y.csv"), 0
        )
        self.assertEqual(all_labels(self.path / "csv"), [1, 0, 1, 0, 1, 0])
        images = self.path / "folder"
        write(images / "a.png", png_of(self.images(4, 4)))
        self.assert_refused(
            shardify(images, self.path / "no", *SMALL, "--labels", self.path / "y.npy"), "give a CSV table"
        )

    def test_npz(self):
        images, labels = self.images(5, 20, 30, 3), np.array([4, 0, 1, 3, 2])
        np.savez(self.path / "a.npz", images=images, labels=labels, other=np.zeros(3))
        np.savez(self.path / "b.npz", x=images, y=labels)
        np.savez(self.path / "c.npz", images, labels)
        np.savez(self.path / "d.npz", whatever=images)
        for name in "abcd":
            out = self.path / name
            self.assert_code(shardify(self.path / f"{name}.npz", out, *SMALL), 0)
            self.assertEqual(all_labels(out), [0] * 5 if name == "d" else labels.tolist())
            self.expect_samples_of(out, images)
        np.savez(self.path / "e.npz", p=images, q=labels)
        self.assert_refused(shardify(self.path / "e.npz", self.out, *SMALL), '"p", "q"', "must be named")

    def test_compressed_arrays_are_those_they_unpack_to(self):
        images, labels = self.images(9, 20, 30, 3), np.arange(9) % 4
        np.savez(self.path / "a.npz", images=images, labels=labels)
        plain = self.path / "plain"
        self.assert_code(shardify(self.path / "a.npz", plain, *SMALL), 0)
        np.savez_compressed(self.path / "a.npz", images=images, other=np.array([{}], object), labels=labels)
        packed = self.path / "packed"
        self.assert_code(shardify(self.path / "a.npz", packed, *SMALL, "--jobs", "2"), 0)
        self.assertEqual(digests(packed), digests(plain))
        self.assert_code(shardctl("compare", packed, self.path / "a.npz"), 0)

        write(self.path / "train-images-idx3-ubyte", idx(images[..., 0]))
        write(self.path / "train-labels-idx1-ubyte", idx(labels.astype(np.uint8)))
        mnist = self.path / "mnist"
        self.assert_code(shardify(self.path / "train-images-idx3-ubyte", mnist, *SMALL), 0)
        for name in "train-images-idx3-ubyte", "train-labels-idx1-ubyte":
            data = (self.path / name).read_bytes()
            (self.path / name).unlink()
            half = len(data) // 2
            write(
                self.path / f"{name}.gz", gzip.compress(data[:half]) + gzip.compress(data[half:]) + bytes(700)
            )
        out = self.path / "mnist-gz"
        self.assert_code(shardify(self.path / "train-images-idx3-ubyte.gz", out, *SMALL), 0)
        self.assertEqual(digests(out), digests(mnist))

        np.save(self.path / "x.npy", images)
        np.save(self.path / "y.npy", labels)
        for name in "xy":
            write(self.path / f"{name}.npy.gz", gzip.compress((self.path / f"{name}.npy").read_bytes()))
        for kind in "npy", "npy.gz":
            self.assert_code(
                shardify(
                    self.path / f"x.{kind}",
                    self.path / f"out-{kind}",
                    *SMALL,
                    "--labels",
                    self.path / f"y.{kind}",
                ),
                0,
            )
        self.assertEqual(digests(self.path / "out-npy.gz"), digests(self.path / "out-npy"))
        self.assertEqual(all_labels(self.path / "out-npy"), labels.tolist())

    def test_compressed_arrays_of_every_dtype_are_those_that_they_pack(self):
        whole = self.images(5, 20, 30, 3)
        for dtype in "<u2", ">i2", "|i1", "<f2", "<f4", ">f4", "<f8":
            with self.subTest(dtype):
                name = dtype.translate({ord("<"): "little-", ord(">"): "big-", ord("|"): "byte-"})
                plain, packed = self.path / f"{name}.npy", self.path / f"{name}.npy.gz"
                np.save(plain, (whole // 2).astype(dtype))
                write(packed, gzip.compress(plain.read_bytes()))
                for source in plain, packed:
                    out = self.path / f"out-{source.name}"
                    self.assert_code(
                        shardify(source, out, "--squash", "30x20", "--dtype", "f32", "--quiet"), 0
                    )
                self.assertEqual(
                    digests(self.path / f"out-{packed.name}"), digests(self.path / f"out-{plain.name}")
                )

    def test_damaged_compressed_arrays_are_refused_and_leave_no_files(self):
        images = self.images(9, 20, 30, 3)
        np.save(self.path / "x.npy", images)
        good = (self.path / "x.npy").read_bytes()
        packed = gzip.compress(good, mtime=0)
        flipped = bytearray(packed)
        flipped[-6] ^= 1
        header = good[:128].replace(b"(9, 20, 30, 3)", b"(9999999, 90, 90, 3)")[:128]
        for name, data, words in (
            ("cut", packed[:-100], "cut off"),
            ("cut-trailer", packed[:-4], "cut off"),
            ("checksum", bytes(flipped), "is damaged"),
            ("garbage", packed + b"garbage", "is damaged"),
            ("no-gzip", good, "is damaged"),
            ("empty", b"", "cut off"),
            ("short", gzip.compress(good[:-1]), "fewer than the"),
            ("long", gzip.compress(good + b"1"), "more than the"),
            ("bomb-header", gzip.compress(header), "too few"),
            ("bomb", gzip.compress(good + bytes(1 << 26)), "more than the"),
        ):
            write(self.path / f"{name}.npy.gz", data)
            with self.subTest(name):
                self.assert_refused(
                    shardify(self.path / f"{name}.npy.gz", self.out, *SMALL), words, f"{name}.npy.gz"
                )
        np.savez_compressed(self.path / "z.npz", images=images)
        whole = (self.path / "z.npz").read_bytes()
        directory = whole.rindex(b"PK\1\2")
        member = whole.index(b"\x93") if b"\x93" in whole[:60] else 60

        def changed(at, data):
            return whole[:at] + data + whole[at + len(data) :]

        for name, data, words in (
            ("bytes", changed(member + 1000, b"\0\1\2\3" * 8), "is damaged"),
            ("sum", changed(directory + 16, b"\0\1\2\3"), "its checksum"),
            ("large", changed(directory + 24, struct.pack("<I", len(good) + 5)), "fewer than the"),
            ("small", changed(directory + 24, struct.pack("<I", len(good) - 5)), "more than the"),
            ("huge", changed(directory + 24, struct.pack("<I", 0xFFFFFFF0)), "cannot have"),
            ("method", changed(directory + 10, b"\x0e"), "numpy does not use (14)"),
            ("encrypted", changed(directory + 8, b"\1"), "encrypted"),
        ):
            write(self.path / f"{name}.npz", data)
            with self.subTest(name):
                self.assert_refused(
                    shardify(self.path / f"{name}.npz", self.out, *SMALL), words, f"{name}.npz"
                )
        temporary = self.path / "temporary"
        temporary.mkdir()
        self.assert_code(
            shardify(self.path / "z.npz", self.path / "z", *SMALL, env=environment(TMPDIR=str(temporary))), 0
        )
        self.assertEqual(list(temporary.iterdir()), [])

    def test_idx_and_cifar(self):
        images, labels = self.images(7, 28, 28), self.random.integers(0, 10, 7).astype(np.uint8)
        write(self.path / "train-images-idx3-ubyte", idx(images))
        write(self.path / "train-labels-idx1-ubyte", idx(labels))
        mnist = self.path / "mnist"
        self.assert_code(shardify(self.path / "train-images-idx3-ubyte", mnist, *SMALL), 0)
        self.assertEqual(all_labels(mnist), labels.tolist())
        self.expect_samples_of(mnist, images)
        write(self.path / "t10k.npz.gz", b"\x1f\x8b")
        self.assert_refused(shardify(self.path / "t10k.npz.gz", self.out, *SMALL), "unpack it first")

        folder = self.path / "cifar"
        images = self.images(8, 3, 32, 32)
        for batch in range(2):
            records = b"".join(bytes([i % 10]) + images[i].tobytes() for i in range(4 * batch, 4 * batch + 4))
            write(folder / f"data_batch_{batch + 1}.bin", records)
        write(folder / "readme.html", b"<html>")
        for source in (folder, folder / "data_batch_{1..2}.bin"):
            out = self.path / f"cifar{len(str(source))}"
            self.assert_code(shardify(source, out, *SMALL), 0)
            self.assertEqual(all_labels(out), list(range(8)))
            self.assertEqual(all_keys(out)[4], "data_batch_2.bin/000000")
            self.expect_samples_of(out, images.transpose(0, 2, 3, 1))
            self.assert_code(shardctl("compare", out, source), 0)
        write(self.path / "train.bin", b"".join(bytes([1, 50 + i]) + images[i].tobytes() for i in range(8)))
        self.assert_code(shardify(self.path / "train.bin", self.path / "cifar100", *SMALL), 0)
        self.assertEqual(all_labels(self.path / "cifar100"), list(range(50, 58)))
        write(folder / "data_batch_2.bin", b"x" * 100)
        self.assert_refused(shardify(folder, self.out, *SMALL), "no whole records")

    def test_jobs_ranks_and_refresh_give_the_same_bytes(self):
        images = self.images(40, 20, 30, 3)
        np.save(self.path / "x.npy", images)
        whole = self.path / "whole"
        self.assert_code(shardify(self.path / "x.npy", whole, *SMALL, "--jobs", "3"), 0)
        ranks = self.path / "ranks"
        for rank in (1, 0):
            shardify(self.path / "x.npy", ranks, *SMALL, "--rank", str(rank), "--world-size", "2")
        self.assertEqual(digests(ranks), digests(whole))
        again = self.assert_code(shardify(self.path / "x.npy", whole, *SMALL, "--json"), 0)
        self.assertEqual(json.loads(again.out)["converted"], 0)
        images[9] = 255 - images[9]
        np.save(self.path / "x.npy", images)
        done = self.assert_code(shardify(self.path / "x.npy", whole, *SMALL, "--refresh", "--json"), 0)
        self.assertEqual(json.loads(done.out)["converted"], 4)
        self.expect_samples_of(whole, images)

    def test_what_is_no_stack_of_bytes_is_refused(self):
        def refused(name, array, *words, **options):
            np.save(self.path / name, array, **options)
            self.assert_refused(shardify(self.path / name, self.out, *SMALL), name, *words)

        refused("float.npy", np.zeros((2, 20, 24, 3), np.complex64), "<c8", "uint8")
        refused("u32.npy", np.zeros((2, 20, 24, 3), ">u4"), ">u4")
        refused("objects.npy", np.array([{}, {}], object), "pickled", allow_pickle=True)
        refused("fortran.npy", np.asfortranarray(self.images(2, 4, 5, 3)), "Fortran order")
        refused("struct.npy", np.zeros(3, [("a", "u1")]), "structures")
        refused("one.npy", self.images(8, 8, 3), "may be one image")
        refused("flat.npy", self.images(8, 3072), "expected [images, rows, columns]")
        refused("bands.npy", self.images(3, 8, 8, 8), "its second or its last axis")
        refused("none.npy", np.zeros((0, 8, 8, 3), np.uint8), "holds no image")
        np.save(self.path / "good.npy", self.images(3, 8, 8, 3))
        good = (self.path / "good.npy").read_bytes()
        for cut in (0, 5, 9, 60, 127, 128, len(good) - 1):
            write(self.path / "cut.npy", good[:cut])
            self.assert_refused(shardify(self.path / "cut.npy", self.out, *SMALL), "cut.npy")
        huge = good.replace(b"(3, 8, 8, 3), }", b"(18446744073709551615, 8, 8, 3), }")
        write(self.path / "huge.npy", huge)
        self.assert_refused(shardify(self.path / "huge.npy", self.out, *SMALL), "huge.npy")
        write(self.path / "negative.npy", good.replace(b"(3, 8, 8, 3)", b"(-3, 8, 8,3)"))
        self.assert_refused(shardify(self.path / "negative.npy", self.out, *SMALL), "whole numbers")
        write(self.path / "big-images-idx3-ubyte", bytes([0, 0, 8, 3]) + b"\xff" * 12 + bytes(100))
        self.assert_refused(shardify(self.path / "big-images-idx3-ubyte", self.out, *SMALL), "has the shape")


if __name__ == "__main__":
    main()
