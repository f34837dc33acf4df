#!/usr/bin/env python3
"""shardify --size original, --longest, --shortest, --area, --multiple: samples of any size are Pillow's,
and all that a rigid data set can do."""

import json
import math
import signal
import subprocess
import sys
import time

try:
    import numpy as np
    from PIL import Image
except ImportError:
    print("no numpy and Pillow")
    sys.exit(77)

from free_samples import free_samples
from shardify_support import (
    SHARDIFY,
    TestCase,
    digests,
    environment,
    info,
    keys_of,
    main,
    make_photos,
    read_shard,
    rejects,
    shardctl,
    shardify,
    shards,
    write,
)

SIZES = [(48, 40), (1, 1), (300, 7), (7, 300), (64, 64), (33, 90), (200, 131)]


def resized(image, bound, most):
    """Pillow's image by the rules of docs/sizes.md."""
    width, height = image.size
    if bound == "area":
        if width * height <= most:
            return image
        scale = math.sqrt(most / (width * height))
        width, height = max(1, int(width * scale)), max(1, int(height * scale))
        # A side of 1 stays, so the long one has what the area allows.
        size = (min(width, most // height), height) if width > height else (width, min(height, most // width))
        return image.resize(size, Image.BILINEAR)
    side = max(width, height) if bound == "longest" else min(width, height)
    if side <= most:
        return image
    if side == height:
        size = (max(1, width * most // height), most)
    else:
        size = (most, max(1, height * most // width))
    return image.resize(size, Image.BILINEAR)


def center_crop(image, multiple):
    width, height = (side // multiple * multiple for side in image.size)
    left = round((image.width - width) / 2)
    top = round((image.height - height) / 2)
    return image.crop((left, top, left + width, top + height))


class Sizes(TestCase):
    def setUp(self):
        super().setUp()
        draw = np.random.default_rng(3)
        self.images = self.path / "images"
        self.pictures = {}
        for i, (width, height) in enumerate(SIZES):
            key = f"{'ab'[i % 2]}/{i}.png"
            picture = Image.fromarray(draw.integers(0, 256, (height, width, 3), np.uint8))
            (self.images / key).parent.mkdir(parents=True, exist_ok=True)
            picture.save(self.images / key)
            self.pictures[key] = picture

    def convert(self, *options, code=0, out=None):
        return self.assert_code(
            shardify(self.images, out or self.out, "--samples-per-shard", "3", "--quiet", *options), code
        )

    def assert_pixels(self, found, expected):
        self.assertEqual(sorted(found), sorted(expected))
        for key, picture in expected.items():
            np.testing.assert_array_equal(found[key], np.asarray(picture), key)

    def test_original_sizes_are_the_files_pixels(self):
        self.convert("--size", "original")
        self.assert_pixels(free_samples(self.out), self.pictures)
        found = info(self.out)
        self.assertEqual((found["version"], found["shape"], found["dtype"]), (3, [0, 0, 3], "u8"))
        self.assertEqual(found["pipeline"]["resize"], "original")
        sizes = [self.pictures[key].size for key in keys_of(shards(self.out)[0])]
        most = max(width * height * 3 for width, height in sizes)
        self.assertEqual(
            found["shards"][0]["largest"], [[max(h for _, h in sizes), max(w for w, _ in sizes), most, most]]
        )
        self.assert_code(shardctl("verify", self.out), 0)

    def test_bounds_resize_as_pillow_does_and_never_enlarge(self):
        for bound, most in (("longest", 64), ("shortest", 40), ("area", 2000), ("longest", 1000)):
            with self.subTest(bound=bound, most=most):
                out = self.path / f"{bound}-{most}"
                self.convert(f"--{bound}", str(most), out=out)
                expected = {key: resized(image, bound, most) for key, image in self.pictures.items()}
                self.assert_pixels(free_samples(out), expected)
                self.assertEqual(info(out)["pipeline"]["resize"], f"{bound} {most}")

    def test_multiples_are_centre_crops_and_what_is_too_small_is_rejected(self):
        self.convert("--size", "original", "--multiple", "8", code=1)
        small = {key for key, image in self.pictures.items() if min(image.size) < 8}
        self.assertEqual(set(rejects(self.out)), small)
        for reason in rejects(self.out).values():
            self.assertIn("each side must have at least 8", reason)
        self.assert_pixels(
            free_samples(self.out),
            {key: center_crop(image, 8) for key, image in self.pictures.items() if key not in small},
        )

    def test_photos_with_orientation_are_upright(self):
        photos = make_photos(self.path / "photos", 6)
        files = sorted(photos.rglob("*.jpg"))
        for turn, path in enumerate(files, start=3):
            exif = Image.Exif()
            exif[0x0112] = turn
            Image.open(path).save(path, quality=90, exif=exif)
        out = self.path / "turned"
        self.assert_code(shardify(photos, out, "--size", "original", "--quiet"), 0)
        from PIL import ImageOps

        for key, found in free_samples(out).items():
            expected = np.asarray(ImageOps.exif_transpose(Image.open(photos / key)).convert("RGB"))
            np.testing.assert_array_equal(found, expected, key)

    def test_every_codec_dtype_and_layout_gives_the_same_samples(self):
        self.convert("--size", "original")
        for options in (
            ["--codec", "packed"],
            ["--codec", "zstd:3"],
            ["--dtype", "f16", "--layout", "nchw", "--codec", "packed"],
            ["--dtype", "f32", "--layout", "nchw"],
        ):
            with self.subTest(options=options):
                out = self.path / "-".join(options).replace(":", "")
                self.convert("--size", "original", *options, out=out)
                self.assert_code(shardctl("verify", out), 0)
                compared = self.assert_code(shardctl("compare", out, self.images, "--json"), 0)
                self.assertEqual(json.loads(compared.out)["samples_identical"], len(SIZES))

    def test_wide_images_keep_their_bits(self):
        draw = np.random.default_rng(4)
        folder = self.path / "deep"
        folder.mkdir()
        expected = {}
        for i, (width, height) in enumerate(SIZES):
            expected[f"{i}.png"] = draw.integers(0, 65536, (height, width), np.uint16)
            Image.fromarray(expected[f"{i}.png"]).save(folder / f"{i}.png")
        self.assert_code(shardify(folder, self.out, "--size", "original", "--channels", "keep", "--quiet"), 0)
        found = free_samples(self.out)
        for key, values in expected.items():
            np.testing.assert_array_equal(found[key][:, :, 0], values, key)

    def test_masks_and_pairs_have_their_images_sizes(self):
        draw = np.random.default_rng(5)
        masks, depths = self.path / "masks", self.path / "depths"
        stored = {"mask": {}, "depth": {}}
        for key, picture in self.pictures.items():
            for name, folder in (("mask", masks), ("depth", depths)):
                path = folder / key
                path.parent.mkdir(parents=True, exist_ok=True)
                shape = (picture.height, picture.width)
                values = draw.integers(0, 20, shape, np.uint8)
                if name == "depth":
                    values = draw.integers(0, 65536, shape, np.uint16)
                if name == "depth" and key.endswith("4.png"):  # it has none: zeros
                    values[:] = 0
                else:
                    Image.fromarray(values).save(path)
                stored[name][key] = values
        self.convert(
            *("--size", "original", "--mask", f"{masks},classes=20", "--pair", f"depth={depths},codec=none"),
        )
        for key, values in stored["depth"].items():
            np.testing.assert_array_equal(free_samples(self.out, "depth")[key][:, :, 0], values, key)
        self.assert_code(shardctl("verify", self.out), 0)
        compared = self.assert_code(shardctl("compare", self.out, self.images, "--mask", masks, "--json"), 0)
        self.assertEqual(json.loads(compared.out)["fields_different"], {"mask": 0})
        # A mask of another size is a reject, as in a set of one size.
        Image.fromarray(np.zeros((5, 5), np.uint8)).save(masks / "a/0.png")
        self.convert("--size", "original", "--mask", f"{masks},classes=20", code=1, out=self.path / "other")
        self.assertIn("it has 5x5 pixels, its image 48x40", rejects(self.path / "other")["a/0.png"])

    def test_boxes_are_in_pixels_of_each_sample(self):
        annotations = {
            "images": [
                {"id": i, "file_name": key, "width": image.width, "height": image.height}
                for i, (key, image) in enumerate(self.pictures.items())
            ],
            "categories": [{"id": 1, "name": "thing"}],
            "annotations": [
                {
                    "id": i,
                    "image_id": i,
                    "category_id": 1,
                    "iscrowd": 0,
                    "bbox": [0, 0, image.width, image.height],
                    "area": image.width * image.height,
                }
                for i, image in enumerate(self.pictures.values())
            ],
        }
        write(self.path / "coco.json", json.dumps(annotations).encode())
        self.convert("--longest", "50", "--coco", str(self.path / "coco.json"))
        for path in shards(self.out):
            tensors = read_shard(path)[1]
            sizes = np.frombuffer(tensors["shapes"][2], "<u4").reshape(-1, 2)
            boxes = np.frombuffer(tensors["boxes"][2], "<f4").reshape(-1, 4)
            np.testing.assert_array_equal(boxes[:, 2:], sizes[:, ::-1].astype(np.float32))

    def test_append_and_join_keep_each_shards_largest(self):
        self.convert("--size", "original")
        more = self.path / "more"
        (more / "a").mkdir(parents=True)
        Image.new("RGB", (500, 3), "red").save(more / "a/wide.png")
        self.assert_code(
            shardify(
                more,
                self.path / "second",
                "--size",
                "original",
                "--quiet",
                "--samples-per-shard",
                "3",
                "--classes",
                self.out,
            ),
            0,
        )
        self.assert_code(shardctl("join", self.path / "joined", self.out, self.path / "second"), 0)
        self.assert_code(
            shardify(more, self.out, "--size", "original", "--quiet", "--append", "--samples-per-shard", "3"),
            0,
        )
        for out in (self.out, self.path / "joined"):
            self.assertEqual(info(out)["shards"][-1]["largest"], [[3, 500, 4500, 4500]])
            self.assert_code(shardctl("verify", out), 0)
            self.assertEqual(free_samples(out)["a/wide.png"].shape, (3, 500, 3))
        # Another rule of sizes is another data set.
        refused = shardify(
            more, self.out, "--longest", "90", "--quiet", "--append", "--samples-per-shard", "3"
        )
        self.assert_refused(refused, "original", "longest 90")

    def test_kills_jobs_and_claims_leave_the_same_bytes(self):
        for i in range(30):
            Image.effect_noise((20 + 7 * i, 50 + 3 * i % 40), 50).convert("RGB").save(
                self.images / f"a/more{i}.png"
            )
        options = ["--size", "original", "--samples-per-shard", "3", "--quiet", "--codec", "packed"]
        self.convert("--size", "original", "--codec", "packed", "--jobs", "1")
        expected = digests(self.out)
        other = self.path / "other"
        for delay in (0.01, 0.03, 0.06, 0.1):
            with subprocess.Popen(
                [SHARDIFY, str(self.images), str(other), *options], env=environment()
            ) as run:
                time.sleep(delay)
                run.send_signal(signal.SIGKILL)
        running = [
            subprocess.Popen([SHARDIFY, str(self.images), str(other), *options, "--claim"], env=environment())
            for _ in range(3)
        ]
        for run in running:
            self.assertEqual(run.wait(100), 0)
        self.assertEqual(digests(other), expected)

    def test_options_that_exclude_each_other_are_named(self):
        for options, words in (
            (["--size", "original", "--longest", "9"], ["--size", "--longest"]),
            (["--longest", "9", "--area", "1M"], ["--longest", "--area"]),
            (["--size", "original", "--crop", "9"], ["--size", "--crop"]),
            (["--shortest", "9", "--squash", "9x9"], ["--shortest", "--squash"]),
            (["--multiple", "16"], ["--multiple", "--size original"]),
            (["--size", "big"], ["--size", '"big"', "original"]),
            (["--longest", "0"], ["--longest", "1 to 65535"]),
            (["--longest", "70000"], ["--longest", "1 to 65535"]),
            (["--longest", "9", "--multiple", "16"], ["--longest", "9", "--multiple", "16"]),
            (["--area", "0"], ["--area", "pixels"]),
            (["--area", "5G"], ["--area", "pixels"]),
            (["--area", "4294967297"], ["--area", "4294967296"]),
            (["--size", "original", "--multiple", "0"], ["--multiple", "1 to 4096"]),
            (["--size", "original", "--fast-decode"], ["--fast-decode"]),
        ):
            with self.subTest(options=options):
                result = shardify(self.images, self.out, *options)
                self.assert_refused(result, *words)
                self.assertFalse(self.out.exists())

    def test_size_n_is_a_square_and_the_dry_run_knows_the_mean(self):
        self.convert("--size", "32")
        self.convert("--resize", "32", "--crop", "32", out=self.path / "same")
        self.assertEqual(
            [path.read_bytes() for path in shards(self.out)],
            [path.read_bytes() for path in shards(self.path / "same")],
        )
        planned = self.assert_code(
            shardify(self.images, self.path / "plan", "--size", "original", "--dry-run", "--json"), 0
        )
        total = sum(image.width * image.height * 3 for image in self.pictures.values())
        plan = json.loads(planned.out)
        self.assertAlmostEqual(plan["bytes_before_codec"] / len(SIZES), total / len(SIZES), delta=1)


class Arrays(TestCase):
    """.npy files of one image each, of different shapes."""

    def setUp(self):
        super().setUp()
        self.arrays = self.path / "arrays"
        self.random = np.random.default_rng(11)

    def make(self, dtype, channels, axes="hwc", name="{}/{}.npy"):
        """{key: [row, column, channel]}"""
        made = {}
        for i, (height, width) in enumerate(SIZES):
            values = self.random.integers(0, 60000, (height, width, channels)).astype(dtype)
            key = name.format("ant" if i % 2 else "bee", i)
            (self.arrays / key).parent.mkdir(parents=True, exist_ok=True)
            stored = {"hw": values[..., 0], "hwc": values, "chw": values.transpose(2, 0, 1)}[axes]
            np.save(self.arrays / key, np.ascontiguousarray(stored))
            made[key] = values
        return made

    def convert(self, layout, *more, out=None, source=None, code=0):
        options = ["--size", "original", "--codec", "none", "--layout", "nhwc", "--array-layout", layout]
        result = shardify(source or self.arrays, out or self.out, *options, *more)
        return self.assert_code(result, code)

    def test_all_shapes_dtypes_and_layouts_are_stored_as_they_are(self):
        for dtype, channels, layout in (
            ("|u1", 3, "hwc"),
            ("|u1", 1, "hw"),
            ("|u1", 13, "hwc"),
            ("<u2", 3, "chw"),
            (">u2", 13, "chw"),
            ("<f4", 1, "hw"),
            ("<f2", 5, "hwc"),
            (">f4", 4, "chw"),
        ):
            with self.subTest(dtype=dtype, channels=channels, layout=layout):
                made = self.make(dtype, channels, layout)
                out = self.path / f"{dtype[1:]}{channels}{layout}"
                self.convert(layout, "--channels", "keep", "--samples-per-shard", "3", "--jobs", "4", out=out)
                found = free_samples(out)
                self.assertEqual(sorted(found), sorted(made))
                for key, values in made.items():
                    np.testing.assert_array_equal(found[key], values, key)
                self.assertEqual(list(info(out)["classes"]), ["ant", "bee"])
                self.assert_code(shardctl("verify", out), 0)
                self.assert_code(shardctl("compare", out, self.arrays, "--array-layout", layout), 0)

    def test_a_pattern_is_the_same_and_labels_come_from_an_array(self):
        made = self.make("|u1", 3, name="{1}.npy")
        np.save(self.path / "y.npy", np.arange(len(SIZES)) * 10)
        pattern = self.arrays / f"{{0..{len(SIZES) - 1}}}.npy"
        self.convert("hwc", "--labels", self.path / "y.npy", source=pattern)
        found = free_samples(self.out)
        for key, values in made.items():
            np.testing.assert_array_equal(found[key], values, key)

    def test_arrays_that_are_no_samples_are_rejects_that_say_why(self):
        self.make("|u1", 3)
        for name, array in (
            ("axes", np.zeros((4, 5), np.uint8)),
            ("none", np.zeros((0, 5, 3), np.uint8)),
            ("wide", np.zeros((1, 70000, 3), np.uint8)),
            ("two", np.zeros((4, 5, 2), np.uint8)),
            ("deep", np.zeros((4, 5, 3), np.uint16)),
            ("text", np.zeros((4, 5, 3), "U4")),
            ("fortran", np.asfortranarray(np.zeros((4, 5, 3), np.uint8))),
        ):
            np.save(self.arrays / "bee" / f"{name}.npy", array)
        cut = (self.arrays / "bee/0.npy").read_bytes()
        write(self.arrays / "bee/cut.npy", cut[:-1])
        write(self.arrays / "bee/more.npy", cut + b"x")
        write(self.arrays / "bee/photo.jpg", b"no array")
        self.convert("hwc", code=1)
        found = rejects(self.out)
        for name, reason in (
            ("axes", "has the shape [4, 5]: --array-layout hwc says that it is one image"),
            ("none", "has the shape [0, 5, 3]: it holds no image"),
            ("wide", "70000x1"),
            ("two", "an array of u8 with 2 channels, but the samples are RGB of 8 bits"),
            ("deep", "an array of u16 with 3 channels, but the samples are RGB of 8 bits"),
            ("text", "has the dtype"),
            ("fortran", "Fortran"),
            ("cut", "too few: it is cut off"),
            ("more", "has 1 bytes behind its array"),
        ):
            self.assertIn(reason.replace("--array-layout", "`array_layout`"), found[f"bee/{name}.npy"])
        self.assertEqual(len(found), 9)
        self.assertEqual(len(free_samples(self.out)), len(SIZES))
        out = self.path / "bands"
        np.save(self.arrays / "bee/two.npy", np.zeros((4, 5, 2), np.uint8))
        self.convert("hwc", "--channels", "3", out=out, code=1)
        self.assertIn("channel", rejects(out)["bee/two.npy"])

    def test_arrays_of_many_images_are_not_taken_for_one(self):
        np.savez(self.path / "x.npz", x=np.zeros((2, 5, 6, 3), np.uint8))
        options = ["--size", "original", "--array-layout", "hwc"]
        self.assert_refused(
            shardify(self.path / "x.npz", self.out, *options), "is for .npy files of one image each"
        )
        np.save(self.path / "y.npy", np.zeros((2, 5, 6, 3), np.uint8))
        self.assert_refused(
            shardify(self.path / "y.npy", self.out, *options), "[2, 5, 6, 3]", "[rows, columns, channels]"
        )
        np.save(self.path / "z.npy", np.zeros((5, 6, 3), np.uint8))
        self.assert_refused(shardify(self.path / "z.npy", self.out, *options[:2]), "--array-layout hwc")


if __name__ == "__main__":
    main()
