#!/usr/bin/env python3
"""Nothing wrong in silence: arrays of images."""

import io
import json
import struct
import sys
import zipfile

from silence_support import SIDE, Silence, main, pixels, shardctl, shardify, write

try:
    import numpy as np
except ImportError:
    print("numpy is not installed")
    sys.exit(77)


def images(*numbers):
    """uint8 [image, row, column, RGB]"""
    return np.frombuffer(b"".join(pixels(number) for number in numbers), np.uint8).reshape(-1, SIDE, SIDE, 3)


def npy(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def idx(array):
    return bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


def cifar(*records):
    """(label bytes, number of the image)"""
    return b"".join(
        bytes(label) + images(number)[0].transpose(2, 0, 1).tobytes() for label, number in records
    )


class Arrays(Silence):
    def npy(self, name, array):
        return write(self.path / name, npy(array))

    def npz(self, name, *members):
        with zipfile.ZipFile(self.path / name, "w") as file:
            for member, array in members:
                file.writestr(f"{member}.npy", npy(array))
        return self.path / name

    def parts(self, names, each=2):
        """Arrays of `each` images; the images and labels that belong to their keys.
        Labels count in the order of the names."""
        samples, labels = {}, {}
        for i, name in enumerate(names):
            self.npy(f"{name}.npy", images(*range(each * i, each * i + each)))
            for k in range(each):
                samples[f"{name}.npy/{k:06}"] = each * i + k
                labels[f"{name}.npy/{k:06}"] = 100 + each * i + k
        return samples, labels, self.npy("y.npy", np.arange(100, 100 + each * len(names)))

    # --- the order of positions -----------------------------------------------------------------------------

    def test_labels_follow_the_numbers_of_the_pattern(self):
        samples, labels, y = self.parts([f"x{i}" for i in range(12)])
        self.expect_stored([self.path / "x{0..11}.npy", "--labels", y], samples, labels)

    def test_labels_follow_a_list_that_is_not_sorted(self):
        samples, labels, y = self.parts(["b", "c", "a"])
        self.expect_stored([self.path / "{b,c,a}.npy", "--labels", y], samples, labels)

    def test_labels_follow_two_braces_from_left_to_right(self):
        samples, labels, y = self.parts([f"{a}{b}" for a in "zy" for b in (9, 10)])
        self.expect_stored([self.path / "{z,y}{9..10}.npy", "--labels", y], samples, labels)

    def test_labels_follow_numbers_with_leading_zeros(self):
        samples, labels, y = self.parts([f"x{i:02}" for i in range(8, 12)])
        self.expect_stored([self.path / "x{08..11}.npy", "--labels", y], samples, labels)

    def test_arrays_of_other_lengths(self):
        self.npy("x9.npy", images(0))
        self.npy("x10.npy", images(1, 2, 3))
        y = self.npy("y.npy", np.array([5, 6, 7, 8]))
        keys = ["x9.npy/000000", "x10.npy/000000", "x10.npy/000001", "x10.npy/000002"]
        self.expect_stored(
            [self.path / "x{9..10}.npy", "--labels", y],
            dict(zip(keys, range(4))),
            dict(zip(keys, range(5, 9))),
        )

    def test_labels_in_as_many_files(self):
        samples, labels, _ = self.parts(["x9", "x10"])
        self.npy("y9.npy", np.array([100, 101]))
        self.npy("y10.npy", np.array([102, 103]))
        self.expect_stored(
            [self.path / "x{9..10}.npy", "--labels", self.path / "y{9..10}.npy"], samples, labels
        )

    def test_labels_in_as_many_files_of_other_lengths(self):
        self.parts(["x9", "x10"])
        self.npy("y9.npy", np.array([100, 101, 102]))
        self.npy("y10.npy", np.array([103]))
        self.expect_refused(
            [self.path / "x{9..10}.npy", "--labels", self.path / "y{9..10}.npy"],
            "y9.npy",
            "3 labels for the 2 images of",
            "x9.npy",
        )

    def test_too_few_and_too_many_labels(self):
        self.parts(["x9", "x10"])
        for count in (3, 5, 0):
            y = self.npy("z.npy", np.arange(count))
            self.expect_refused([self.path / "x{9..10}.npy", "--labels", y], "z.npy")

    def test_labels_when_masks_leave_some_images_out(self):
        samples, labels, y = self.parts(["x9", "x10"])
        left = "x10.npy/000000"
        write(self.path / "masks" / f"{left}.png", self.mask())
        self.expect_stored(
            [
                self.path / "x{9..10}.npy",
                "--labels",
                y,
                "--mask",
                self.path / "masks",
                "--missing",
                "skip",
            ],
            {left: samples[left]},
            {left: labels[left]},
        )

    @staticmethod
    def mask():
        import zlib

        def chunk(kind, data):
            return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

        header = struct.pack(">IIBBBBB", SIDE, SIDE, 8, 0, 0, 0, 0)
        return (
            b"\x89PNG\r\n\x1a\n"
            + chunk(b"IHDR", header)
            + chunk(b"IDAT", zlib.compress((b"\0" + bytes(SIDE)) * SIDE))
            + chunk(b"IEND", b"")
        )

    def test_arrays_of_one_name_in_two_folders(self):
        for i, folder in enumerate("ba"):
            self.npy(f"{folder}/x.npy", images(i))
        y = self.npy("y.npy", np.array([7, 8]))
        keys = [f"{self.path}/{folder}/x.npy/000000"[1:] for folder in "ba"]
        self.expect_stored(
            [f"{self.path}/{{b,a}}/x.npy", "--labels", y], dict(zip(keys, (0, 1))), dict(zip(keys, (7, 8)))
        )

    def test_an_array_that_is_named_twice(self):
        self.npy("x.npy", images(1))
        self.expect_refused([self.path / "{x,x}.npy"], "listed twice")

    def test_positions_in_a_folder_of_several_files(self):
        for i in (1, 2, 10):
            write(self.path / "in" / f"data_batch_{i}.bin", cifar(([i % 10], i)))
        y = self.npy("y.npy", np.arange(3))
        self.expect_refused(
            [self.path / "in", "--labels", y], "the files of a folder have no order", "pattern"
        )
        keys = {f"data_batch_{i}.bin/000000": i for i in (1, 2, 10)}
        self.expect_stored([self.path / "in"], keys, {key: i % 10 for key, i in keys.items()})

    def test_positions_in_a_folder_of_one_file(self):
        write(self.path / "in" / "data_batch_1.bin", cifar(([1], 1), ([2], 2)))
        y = self.npy("y.npy", np.array([8, 9]))
        self.expect_stored(
            [self.path / "in", "--labels", y],
            {"data_batch_1.bin/000000": 1, "data_batch_1.bin/000001": 2},
            {"data_batch_1.bin/000000": 8, "data_batch_1.bin/000001": 9},
        )

    # --- .npz -----------------------------------------------------------------------------------------------

    def test_two_members_of_one_name(self):
        import warnings

        for i, name in enumerate(("images", "labels", "other")):
            self.out = self.path / f"out{i}"
            rest = [("images", images(1, 2)), ("labels", np.array([3, 4])), ("other", np.zeros(2))]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                path = self.npz(
                    "x.npz", (name, images(5, 6) if name == "images" else np.array([7, 8])), *rest
                )
            self.expect_refused([path], "x.npz", f'two members "{name}.npy"')

    def test_several_arrays_that_may_be_the_images(self):
        path = self.npz("x.npz", ("x", images(1, 2)), ("data", images(3, 4)), ("y", np.array([3, 4])))
        self.expect_refused([path], "x.npz", '"x" and "data"', "cannot be told")

    def test_several_arrays_that_may_be_the_labels(self):
        path = self.npz("x.npz", ("x", images(1, 2)), ("labels", np.array([1, 2])), ("y", np.array([3, 4])))
        self.expect_refused([path], "x.npz", '"labels" and "y"', "cannot be told")

    def test_arrays_of_train_and_test(self):
        path = self.npz(
            "x.npz",
            ("x_train", images(1, 2)),
            ("y_train", np.array([1, 2])),
            ("x_test", images(3)),
            ("y_test", np.array([3])),
        )
        self.expect_refused([path], "x.npz", "must be named images")

    def test_members_in_any_order(self):
        path = self.npz("x.npz", ("y", np.array([5, 6])), ("z", np.zeros(1)), ("x", images(1, 2)))
        self.expect_stored(
            [path], {"x.npz/000000": 1, "x.npz/000001": 2}, {"x.npz/000000": 5, "x.npz/000001": 6}
        )

    def test_labels_of_another_name(self):
        for name, values in (
            ("target", np.array([5, 6])),
            ("classes", np.array([5, 6])),
            ("fine_labels", np.array([[5], [6]])),
            ("names", np.array(["a", "b"])),
        ):
            path = self.npz("x.npz", ("x", images(1, 2)), ("z", np.zeros(3)), (name, values))
            self.expect_refused(
                [path], "x.npz", f'has the array "{name}" with an entry for each of the 2 images', "--labels"
            )
        labels = self.npy("y.npy", np.array([5, 6]))
        self.expect_stored(
            [path, "--labels", labels],
            {"x.npz/000000": 1, "x.npz/000001": 2},
            {"x.npz/000000": 5, "x.npz/000001": 6},
        )
        self.out = self.path / "none"
        path = self.npz("x.npz", ("x", images(1, 2)), ("z", np.zeros(3)))
        self.expect_stored([path], {"x.npz/000000": 1, "x.npz/000001": 2})
        told = shardify(path, self.path / "told", "--resize", str(SIDE), "--crop", str(SIDE))
        self.assertIn("every label is 0 (no labels come with the images", self.assert_code(told, 0).out)

    def test_labels_that_are_too_few_or_no_whole_numbers(self):
        for i, labels in enumerate(
            (
                np.array([1]),
                np.array([1.5, 2.5]),
                np.array([[1, 0], [0, 1]]),
                np.array(["a", "b"]),
                np.array([2**63, 1], np.uint64),
                np.array([True, False]),
            )
        ):
            self.out = self.path / f"out{i}"
            self.expect_refused([self.npz("x.npz", ("x", images(1, 2)), ("y", labels))], "x.npz", "label")

    def test_one_of_two_files_has_labels(self):
        self.npz("a.npz", ("x", images(1)), ("y", np.array([5])))
        self.npz("b.npz", ("x", images(2)))
        self.expect_stored(
            [self.path / "{a,b}.npz"],
            {"a.npz/000000": 1},
            {"a.npz/000000": 5},
            {"b.npz/000000": "has no label"},
        )

    # --- headers and sizes ----------------------------------------------------------------------------------

    def test_two_arrays_in_one_file(self):
        path = write(self.path / "x.npy", npy(images(1, 2)) + npy(images(3)))
        self.expect_refused([path], "x.npy", "bytes behind its array")

    def test_two_label_arrays_in_one_file(self):
        self.npy("x.npy", images(1, 2))
        y = write(self.path / "y.npy", npy(np.array([1, 2])) + npy(np.array([3, 4])))
        self.expect_refused([self.path / "x.npy", "--labels", y], "y.npy", "bytes behind its array")

    def test_a_cut_array(self):
        whole = npy(images(1, 2))
        for cut in (1, 3072, len(whole) - 128):
            self.expect_refused([write(self.path / "x.npy", whole[:-cut])], "x.npy")

    def test_an_array_in_another_order_of_bytes(self):
        y = self.npy("y.npy", np.array([258, 1], ">i8"))
        self.npy("x.npy", images(1, 2))
        self.expect_stored(
            [self.path / "x.npy", "--labels", y],
            {"x.npy/000000": 1, "x.npy/000001": 2},
            {"x.npy/000000": 258, "x.npy/000001": 1},
        )

    def test_fortran_order(self):
        self.expect_refused([self.npy("x.npy", np.asfortranarray(images(1, 2)))], "Fortran order")
        self.npy("z.npy", images(1, 2))
        self.expect_refused(
            [
                self.path / "z.npy",
                "--labels",
                self.npy("y.npy", np.asfortranarray(np.array([[1, 2], [3, 4]]))),
            ],
            "y.npy",
        )

    def test_planes(self):
        self.expect_stored(
            [self.npy("x.npy", np.ascontiguousarray(images(1, 2).transpose(0, 3, 1, 2)))],
            {"x.npy/000000": 1, "x.npy/000001": 2},
        )

    def test_a_layout_that_cannot_be_told(self):
        self.expect_refused([self.npy("x.npy", np.zeros((2, 3, 32, 3), np.uint8))], "--array-layout")

    def test_one_image_without_its_axis(self):
        self.expect_refused([self.npy("x.npy", images(1)[0])], "may be one image")

    def test_no_image(self):
        self.expect_refused([self.npy("x.npy", images(1)[:0])], "holds no image")

    def test_other_types(self):
        for i, dtype in enumerate((np.uint32, np.int64, bool, np.complex64)):
            self.out = self.path / f"out{i}"
            self.expect_refused([self.npy("x.npy", images(1).astype(dtype))], "x.npy", "dtype")

    # --- IDX and CIFAR --------------------------------------------------------------------------------------

    def gray(self, *numbers):
        return np.frombuffer(b"".join(pixels(number)[: SIDE * SIDE] for number in numbers), np.uint8).reshape(
            -1, SIDE, SIDE
        )

    def gray_samples(self, name, *numbers):
        return {
            f"{name}/{i:06}": bytes(value for value in pixels(number)[: SIDE * SIDE] for _ in range(3))
            for i, number in enumerate(numbers)
        }

    def test_idx_with_its_labels(self):
        write(self.path / "train-images-idx3-ubyte", idx(self.gray(1, 2)))
        write(self.path / "train-labels-idx1-ubyte", idx(np.array([9, 8], np.uint8)))
        name = "train-images-idx3-ubyte"
        self.expect_stored(
            [self.path / name], self.gray_samples(name, 1, 2), {f"{name}/000000": 9, f"{name}/000001": 8}
        )

    def test_idx_with_labels_of_another_file(self):
        write(self.path / "train-images-idx3-ubyte", idx(self.gray(1, 2)))
        write(self.path / "train-labels-idx1-ubyte", idx(np.array([9, 8, 7], np.uint8)))
        self.expect_refused([self.path / "train-images-idx3-ubyte"], "3 labels for 2 images")

    def test_idx_with_bytes_behind_it(self):
        write(self.path / "a-images-idx3-ubyte", idx(self.gray(1, 2)) + b"\0")
        self.expect_refused([self.path / "a-images-idx3-ubyte"], "1 bytes behind its array")

    def test_only_one_of_two_idx_files_has_labels(self):
        write(self.path / "a-images-idx3-ubyte", idx(self.gray(1)))
        write(self.path / "a-labels-idx1-ubyte", idx(np.array([9], np.uint8)))
        write(self.path / "b-images-idx3-ubyte", idx(self.gray(2)))
        self.expect_stored(
            [self.path / "{a,b}-images-idx3-ubyte"],
            self.gray_samples("a-images-idx3-ubyte", 1),
            {"a-images-idx3-ubyte/000000": 9},
            {"b-images-idx3-ubyte/000000": "has no label"},
        )

    def test_a_label_that_cifar_does_not_have(self):
        for i, (name, label, why) in enumerate(
            (
                ("data_batch_1.bin", [10], "0 to 9"),
                ("train.bin", [0, 100], "0 to 99"),
                ("train.bin", [20, 0], "CIFAR-100"),
            )
        ):
            self.out = self.path / f"out{i}"
            good = [0] * len(label)
            self.expect_refused(
                [write(self.path / name, cifar((good, 1), (label, 2)))], name, "record 1", why
            )

    def test_fine_labels_of_cifar_100(self):
        path = write(self.path / "train.bin", cifar(([19, 99], 1), ([3, 4], 2)))
        self.expect_stored(
            [path],
            {"train.bin/000000": 1, "train.bin/000001": 2},
            {"train.bin/000000": 99, "train.bin/000001": 4},
        )

    def test_a_table_for_arrays(self):
        self.parts(["x9", "x10"])
        table = write(
            self.path / "l.csv", b"x10.npy/000001,4\nx9.npy/000000,1\nx10.npy/000000,3\nx9.npy/000001,2\n"
        )
        keys = ["x9.npy/000000", "x9.npy/000001", "x10.npy/000000", "x10.npy/000001"]
        self.expect_stored(
            [self.path / "x{9..10}.npy", "--labels", table],
            dict(zip(keys, range(4))),
            dict(zip(keys, range(1, 5))),
        )

    def test_labels_as_an_array_for_files(self):
        write(self.path / "in" / "a.png", b"")
        self.expect_refused(
            [self.path / "in", "--labels", self.npy("y.npy", np.arange(1))], "give a CSV table"
        )

    def test_stats_of_what_is_no_bytes_are_those_of_the_values(self):
        random = np.random.default_rng(0)
        deep = random.integers(0, 300, (6, 40, 50, 3)).astype(np.uint16)
        floats = random.normal(5, 2, (6, 40, 50, 3)).astype(np.float32)
        for name, array, unit in (("deep", deep, 65535), ("floats", floats, 1)):
            with self.subTest(name):
                file, out = write(self.path / f"{name}.npy", npy(array)), self.path / name
                self.assert_code(shardify(file, out, "--size", "original"), 0)
                found = json.loads(self.assert_code(shardctl("stats", "--json", out), 0).out)
                values = array.astype(np.float64) / unit
                np.testing.assert_allclose(found["mean"], values.mean((0, 1, 2)), rtol=1e-6)
                np.testing.assert_allclose(found["std"], values.std((0, 1, 2)), rtol=1e-6)
                self.assertEqual(found["packed_samples"], 0)


if __name__ == "__main__":
    main()
