#!/usr/bin/env python3
"""shardctl with samples of any size: each subcommand, and the report of shardify."""

import csv
import io
import json
import os
import re
import shlex
import statistics
import sys
import tarfile

try:
    import numpy as np
    from PIL import Image
except ImportError:
    print("no numpy and Pillow")
    sys.exit(77)

from free_samples import free_samples
from shardify_support import SHARDIFY, TestCase, main, run, shardctl, shardify, shards, write

# Width and height. The sixth has the size of the fourth, and the last one is too large for a sheet.
SIZES = [(1, 1), (300, 7), (200, 131), (48, 40), (7, 90), (48, 40), (700, 900)]
GAP, LETTER = 4, (6, 8)


def draw(seed, width, height, channels=3, dtype=np.uint8):
    """A smooth picture with a little noise, so that codecs, JPEG and hashes have something to do."""
    random = np.random.default_rng(seed)
    planes = []
    for _ in range(channels):
        coarse = Image.fromarray(random.uniform(0, 0.95, (5, 5)).astype(np.float32))
        planes.append(np.asarray(coarse.resize((width, height), Image.BICUBIC)))
    values = np.clip(np.stack(planes, axis=2) + random.uniform(0, 0.05, (height, width, channels)), 0, 1)
    values = (values * np.iinfo(dtype).max).astype(dtype)
    return values[:, :, 0] if channels == 1 else values


def colors_of(number):
    """Pascal VOC's colour of a class."""
    color = [0, 0, 0]
    for bit in range(7, -1, -1):
        for channel in range(3):
            color[channel] |= (number >> channel & 1) << bit
        number >>= 3
    return np.array(color)


class Sized(TestCase):
    """Images of seven sizes in two classes, and what `convert` makes of them."""

    def setUp(self):
        super().setUp()
        self.images = self.path / "images"
        self.pictures = {}
        for i, (width, height) in enumerate(SIZES):
            self.add(self.images, f"{'ab'[i % 2]}/{i}.png", draw(i, width, height))
        self.pictures = dict(sorted(self.pictures.items()))
        self.keys = list(self.pictures)

    def add(self, folder, key, values):
        (folder / key).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(values).save(folder / key)
        if folder == self.images:
            self.pictures[key] = values

    def convert(self, *options, out=None, images=None):
        out = out or self.out
        result = shardify(
            images or self.images, out, "--size", "original", "--samples-per-shard", "3", "--quiet", *options
        )
        self.assert_code(result, 0)
        return out

    def further_images(self):
        """Folders of masks of ten classes and of maps of depth, and what is in them."""
        stored = {"mask": {}, "depth": {}}
        for i, (key, picture) in enumerate(self.pictures.items()):
            height, width = picture.shape[:2]
            mask = np.random.default_rng(i).integers(0, 10, (height, width)).astype(np.uint8)
            stored["mask"][key] = mask
            stored["depth"][key] = draw(i, width, height, 1, np.uint16)
            for name in stored:
                self.add(self.path / name, key, stored[name][key])
        masks, depth = self.path / "mask", self.path / "depth"
        return ["--mask", f"{masks},classes=10", "--pair", f"depth={depth},codec=none"], stored

    def info(self, path=None):
        return json.loads(self.assert_code(shardctl("info", path or self.out, "--json"), 0).out)


class Info(Sized):
    def expected_sizes(self, keys, channels=3, bytes_of_a_value=1):
        shapes = [self.pictures[key].shape[:2] for key in keys]
        of_samples = [h * w * channels * bytes_of_a_value for h, w in shapes]
        sides = {"height": [h for h, _ in shapes], "width": [w for _, w in shapes]}
        return {
            name: {"min": min(of), "median": statistics.median_low(of), "max": max(of)}
            for name, of in sides.items()
        } | {"sample_bytes": {"mean": sum(of_samples) / len(of_samples), "max": max(of_samples)}}

    def assert_sizes(self, found, expected):
        self.assertEqual(
            {name: found[name] for name in ("height", "width")},
            {name: expected[name] for name in ("height", "width")},
        )
        self.assertAlmostEqual(found["sample_bytes"]["mean"], expected["sample_bytes"]["mean"])
        self.assertEqual(found["sample_bytes"]["max"], expected["sample_bytes"]["max"])

    def test_the_distribution_of_sizes(self):
        self.convert()
        found = self.info()
        self.assertEqual(
            {name: found["spec"][name] for name in ("channels", "height", "width", "shape", "sample_bytes")},
            {"channels": 3, "height": 0, "width": 0, "shape": [0, 0, 3], "sample_bytes": None},
        )
        self.assert_sizes(found["sizes"], self.expected_sizes(self.keys))
        self.assertEqual(found["sizes"]["different"], 6)
        self.assertEqual(
            found["sizes"]["frequent"][:2],
            [{"height": 40, "width": 48, "samples": 2}, {"height": 1, "width": 1, "samples": 1}],
        )
        self.assertEqual([one["samples"] for one in found["sizes"]["aspect_ratios"]], [1, 1, 3, 1, 1])
        self.assertEqual(found["bits_per_value"], 8)

    def test_bits_per_value_are_of_all_values(self):
        self.convert("--codec", "packed")
        frames = sum(b - a for path in shards(self.out) for a, b in self.image_ranges(path))
        values = sum(picture.size for picture in self.pictures.values())
        self.assertAlmostEqual(self.info()["bits_per_value"], 8 * frames / values)
        self.assertIn(f"packed, {8 * frames / values:.2f} bits per value", shardctl("info", self.out).out)

    def image_ranges(self, path):
        tensors = json.loads(shardctl("info", path, "--json").out)["shards"][0]["tensors"]
        return [(t["offset"], t["offset"] + t["size_bytes"]) for t in tensors if t["name"] == "image_frames"]

    def test_the_text_says_it_and_how_to_read_a_sample(self):
        self.convert()
        text = self.assert_code(shardctl("info", self.out), 0).out
        expected = self.expected_sizes(self.keys)
        for words in (
            r"sample +u8 nhwc, 3 channels, any size\n",
            rf"height +1 to 900 rows, median {expected['height']['median']}\n",
            rf"width +1 to 700 columns, median {expected['width']['median']}\n",
            rf"sample bytes +{expected['sample_bytes']['mean']:,.0f} on average, 1,890,000 the largest\n",
            r"codec +none\n",
            r"6 sizes:\n +height +width +samples\n +40 +48 +2\n",
            r"4:5 to 5:4 +3\n",
            re.escape(f'image, label = sl.Dataset("{self.out}")[0]'),
        ):
            self.assertRegex(text, words)
        self.assertNotIn("memmap", text)

    def test_further_fields_have_their_own(self):
        options, _ = self.further_images()
        self.convert(*options)
        found = self.info()
        for field, bytes_of_a_value in zip(found["fields"], (1, 2)):
            self.assertEqual(field["shape"], [0, 0, 1])
            self.assert_sizes(field["sizes"], self.expected_sizes(self.keys, 1, bytes_of_a_value))
        text = shardctl("info", self.out).out
        self.assertRegex(
            text,
            r"field mask +mask u8 nhwc, 1 channel, any size, codec \S+; "
            r"at most 900 rows, 700 columns, 630,000 bytes\n",
        )

    def test_a_part_and_a_shard_count_their_own_samples(self):
        self.convert()
        first = shards(self.out)[0]
        self.assert_sizes(self.info(first)["sizes"], self.expected_sizes(self.keys[:3]))
        self.assert_code(shardctl("split", self.out, "--fractions", "0.5,0.5"), 0)
        for name in ("train", "val"):
            part = f"{self.out}#{name}"
            keys = [row["key"] for row in json.loads(shardctl("ls", part, "--json").out)]
            self.assertNotEqual(keys, [])
            self.assert_sizes(self.info(part)["sizes"], self.expected_sizes(keys))

    def test_no_sample_is_read(self):
        self.convert()
        before = shardctl("info", self.out).out
        for path in shards(self.out):
            [(begin, end)] = self.image_ranges(path)
            data = bytearray(path.read_bytes())
            data[begin:end] = bytes(end - begin)
            path.write_bytes(data)
        self.assertEqual(self.assert_code(shardctl("info", self.out), 0).out, before)
        self.assert_code(shardctl("verify", self.out, "--quiet"), 1)


class List(Sized):
    def test_each_sample_has_its_size(self):
        self.convert()
        lines = self.assert_code(shardctl("ls", self.out), 0).out.splitlines()
        rows = list(csv.DictReader(io.StringIO(self.assert_code(shardctl("ls", self.out, "--csv"), 0).out)))
        objects = json.loads(self.assert_code(shardctl("ls", self.out, "--json"), 0).out)
        for key, line, row, found in zip(self.keys, lines, rows, objects, strict=True):
            height, width = self.pictures[key].shape[:2]
            self.assertEqual(line.split()[2:], [f"{width}x{height}", key])
            self.assertEqual((row["key"], row["height"], row["width"]), (key, str(height), str(width)))
            self.assertEqual((found["key"], found["height"], found["width"]), (key, height, width))

    def test_samples_of_one_size_are_listed_as_before(self):
        self.assert_code(shardify(self.images, self.out, "--squash", "8x8", "--quiet"), 0)
        self.assertEqual(
            shardctl("ls", self.out, "--csv").out.splitlines()[:2],
            ["index,label,class,key", f"0,0,a,{self.keys[0]}"],
        )
        self.assertEqual(shardctl("ls", self.out).out.splitlines()[0], f"0  a  {self.keys[0]}")


class Verify(Sized):
    def test_every_flipped_byte_of_sizes_and_frames_is_found(self):
        self.convert("--codec", "zstd:3")
        self.assert_code(shardctl("verify", self.out), 0)
        path = shards(self.out)[1]
        whole = path.read_bytes()
        tensors = {t["name"]: t for t in self.info(path)["shards"][0]["tensors"]}
        spots = [tensors["shapes"]["offset"] + i for i in range(0, tensors["shapes"]["size_bytes"], 3)]
        spots += [tensors["image_frames"]["offset"] + i for i in (0, 5)]
        for spot in spots:
            path.write_bytes(whole[:spot] + bytes([whole[spot] ^ 1]) + whole[spot + 1 :])
            found = self.assert_code(shardctl("verify", self.out), 1)
            self.assertIn(path.name, found.out)


class Show(Sized):
    def sheet(self, *options, out=None):
        picture = self.path / "sheet.png"
        self.assert_code(shardctl("show", out or self.out, *options, "-o", picture), 0)
        return np.asarray(Image.open(picture))

    def tiles(self, sheet, cell, sizes, columns):
        """The pictures of a sheet: those of these sizes (width, height), in cells that have `cell`."""
        across = max(cell[0], 8 * LETTER[0]) + GAP
        down = cell[1] + 2 * GAP + LETTER[1] * (2 if cell[0] >= 320 else 1)
        rows = -(-len(sizes) // columns)
        self.assertEqual(sheet.shape, (rows * down + GAP, columns * across + GAP, 3))
        for i, (width, height) in enumerate(sizes):
            left, top = GAP + i % columns * across, GAP + i // columns * down
            beside = sheet[top : top + cell[1], left + width : left + across - GAP]
            self.assertTrue((beside == 255).all(), "nothing is drawn beside a tile")
            yield sheet[top : top + height, left : left + width]

    def test_tiles_have_the_pixels_and_the_sizes_of_their_samples(self):
        chosen = [i for i, key in enumerate(self.keys) if self.pictures[key].shape[0] < 500]
        expected = [self.pictures[self.keys[i]] for i in chosen]
        sizes = [picture.shape[1::-1] for picture in expected]
        for options in (
            [],
            ["--codec", "packed"],
            ["--codec", "zstd"],
            ["--dtype", "f16", "--layout", "nchw"],
            ["--dtype", "bf16", "--codec", "packed"],
            ["--dtype", "f32", "--layout", "nchw", "--codec", "zstd"],
        ):
            with self.subTest(options=options):
                out = self.convert(*options, out=self.path / "-".join(["out", *options]))
                sheet = self.sheet(*map(str, chosen), out=out)
                for picture, tile in zip(expected, self.tiles(sheet, (300, 131), sizes, 3), strict=True):
                    np.testing.assert_array_equal(tile, picture)

    def test_large_samples_become_smaller(self):
        self.convert()
        large = self.keys.index("a/6.png")
        sheet = self.sheet(str(large), "0")
        size = (700 * 512 // 900, 512)
        expected = Image.fromarray(self.pictures["a/6.png"]).resize(size, Image.BILINEAR)
        small = self.pictures[self.keys[0]]
        found = list(self.tiles(sheet, size, [size, small.shape[1::-1]], 2))
        np.testing.assert_array_equal(found[0], np.asarray(expected))
        np.testing.assert_array_equal(found[1], small)

    def test_masks_lie_over_their_images_and_further_images_beside(self):
        options, stored = self.further_images()
        self.convert(*options)
        chosen = [0, self.keys.index("a/2.png"), self.keys.index("b/1.png")]
        sizes = [self.pictures[self.keys[i]].shape[1::-1] for i in chosen for _ in range(2)]
        found = list(self.tiles(self.sheet(*map(str, chosen)), (300, 131), sizes, 2))
        colors = np.array([colors_of(number) for number in range(10)])
        for at, index in enumerate(chosen):
            key = self.keys[index]
            picture, mask = self.pictures[key].astype(int), stored["mask"][key]
            mixed = (picture + colors[mask] + 1) // 2
            np.testing.assert_array_equal(found[2 * at], np.where(mask[:, :, None] == 0, picture, mixed))
            depth = stored["depth"][key].astype(float)
            low, high = depth[depth > 0].min(), depth.max()
            gray = 32 + 223 * (depth - low) / (high - low) if high > low else np.full(depth.shape, 255.0)
            gray = np.where(depth == 0, 0, np.floor(gray + 0.5))
            np.testing.assert_array_equal(found[2 * at + 1], np.repeat(gray[:, :, None], 3, axis=2))
        plain = list(self.tiles(self.sheet(*map(str, chosen), "--no-targets"), (300, 131), sizes[::2], 2))
        np.testing.assert_array_equal(plain[1], self.pictures[self.keys[chosen[1]]])

    def test_boxes_are_in_pixels_of_each_sample(self):
        boxes = self.path / "boxes"
        for key in self.keys:
            write((boxes / key).with_suffix(".txt"), b"0 0.5 0.5 0.5 0.5\n")
        out = self.convert("--yolo", str(boxes))
        index = self.keys.index("a/2.png")  # 200 x 131: the box is from 50, 32.75 to 150, 98.25
        [tile] = self.tiles(self.sheet(str(index), out=out), (200, 131), [(200, 131)], 1)
        expected = self.pictures["a/2.png"].copy()
        red = colors_of(1)
        expected[32:99, [50, 149]] = red
        expected[[32, 98], 50:150] = red
        np.testing.assert_array_equal(tile, expected)
        # In a picture that becomes smaller the lines are still there: two thick ones of four.
        large = self.keys.index("a/6.png")
        size = (700 * 512 // 900, 512)
        [tile] = self.tiles(self.sheet(str(large), out=out), size, [size], 1)
        self.assertTrue((tile[256, 100] == red).all(), tile[256, 95:105])

    def test_deep_images_and_captions(self):
        folder, out = self.path / "deep", self.path / "deep-out"
        for i, (width, height) in enumerate([(1, 1), (300, 7), (200, 131)]):
            self.add(folder, f"{i}.png", draw(i, width, height, 1, np.uint16))
        self.convert("--channels", "keep", images=folder, out=out)
        sheet = self.sheet("0..3", out=out)
        for i, tile in enumerate(self.tiles(sheet, (300, 131), [(1, 1), (300, 7), (200, 131)], 2)):
            values = np.asarray(Image.open(folder / f"{i}.png")).astype(int)
            np.testing.assert_array_equal(tile[:, :, 0], (values + 128) // 257)
        # The caption of the second tile: "#1 0 300x7", which is ten letters, the last at 9 x 6.
        caption = sheet[GAP + 131 + GAP :][:8, 2 * GAP + 300 :]
        self.assertTrue((caption[:, 54:59] == 0).any() and (caption[:, 60:] == 255).all())

    def test_augment_says_that_it_needs_one_size(self):
        self.convert()
        for command in (
            ["show", self.out, "0", "-o", self.path / "no.png"],
            ["page", self.out, self.path / "p"],
        ):
            refused = self.assert_code(shardctl(*command, "--augment", "crop"), 2)
            self.assertIn("samples of one size", refused.err)
            self.assertIn("--resize", refused.err)
            self.assertFalse(os.path.exists(command[-1]))


class Page(Sized):
    def page(self, *options, out=None):
        folder = self.path / "page"
        self.assert_code(shardctl("page", out or self.out, folder, *options), 0)
        text = (folder / "index.html").read_text(encoding="utf-8")
        data = re.search(r'<script id="data" type="application/json">(.*?)</script>', text, re.DOTALL)
        return json.loads(data.group(1)), folder / "pictures"

    def test_pictures_channels_and_sizes(self):
        self.convert("--dtype", "f16", "--layout", "nchw", "--codec", "packed")
        data, pictures = self.page("--no-targets")
        self.assertEqual({s["key"] for s in data["samples"]}, set(self.keys))
        for sample in data["samples"]:
            picture = Image.fromarray(self.pictures[sample["key"]])
            if max(picture.size) > 512:
                picture = picture.resize((700 * 512 // 900, 512), Image.BILINEAR)
            self.assertEqual((sample["width"], sample["height"]), picture.size)
            found = Image.open(pictures / f"{sample['index']}.jpg")
            self.assertEqual(found.size, picture.size)
            # No more is lost than in Pillow's JPEG, which has colours in half as many rows and columns, too.
            other = io.BytesIO()
            picture.save(other, "JPEG", quality=88, subsampling=2 if max(picture.size) > 128 else 0)
            lost, allowed = (
                np.abs(np.asarray(one).astype(int) - np.asarray(picture).astype(int)).mean()
                for one in (found, Image.open(other))
            )
            self.assertLess(lost, allowed + 0.5, sample["key"])
        for c, channel in enumerate(data["channels"]):
            values = np.concatenate([picture[:, :, c].ravel() for picture in self.pictures.values()])
            self.assertAlmostEqual(channel["mean"], values.mean(), places=6)
            self.assertAlmostEqual(channel["std"], values.std(), places=6)
            self.assertEqual(sum(channel["histogram"]), values.size)
        facts = dict(data["facts"])
        self.assertEqual(facts["Sample"], "f16 nchw, 3 channels, any size")
        self.assertEqual(facts["Height"], "1 to 900 rows, median 40")
        self.assertEqual(facts["Width"], "1 to 700 columns, median 48")
        self.assertIn("48x40: 2", facts["Sizes"])
        self.assertIn("4:5 to 5:4: 3", facts["Width : height"])
        self.assertNotIn("width", data)

    def test_masks_and_duplicates(self):
        options, stored = self.further_images()
        self.add(self.images, "a/7.png", self.pictures["a/2.png"])
        self.add(self.path / "mask", "a/7.png", stored["mask"]["a/2.png"])
        self.add(self.path / "depth", "a/7.png", stored["depth"]["a/2.png"])
        self.convert(*options)
        data, pictures = self.page("--duplicates")
        [group] = data["duplicates"]
        self.assertEqual([s["key"] for s in group["samples"]], ["a/2.png", "a/7.png"])
        self.assertEqual((group["samples"][0]["width"], group["samples"][0]["height"]), (200, 131))
        colors = np.array([colors_of(number) for number in range(10)])
        mask = stored["mask"]["a/2.png"]
        mixed = (self.pictures["a/2.png"].astype(int) + colors[mask] + 1) // 2
        expected = np.where(mask[:, :, None] == 0, self.pictures["a/2.png"], mixed)
        found = np.asarray(Image.open(pictures / f"{group['samples'][0]['index']}.jpg")).astype(int)
        # JPEG blurs the colours of noise. The mean of parts of the picture stays.
        blocks = [v[:128, :192].reshape(8, 16, 12, 16, 3).mean(axis=(1, 3)) for v in (found, expected)]
        np.testing.assert_allclose(*blocks, atol=6)


class Stats(Sized):
    def test_mean_std_and_packed_are_of_all_values(self):
        for options in ([], ["--dtype", "f16", "--layout", "nchw", "--codec", "packed"]):
            with self.subTest(options=options):
                out = self.convert(*options, out=self.path / "-".join(["out", *options]))
                found = json.loads(self.assert_code(shardctl("stats", out, "--json"), 0).out)
                values = np.concatenate([picture.reshape(-1, 3) for picture in self.pictures.values()]) / 255
                np.testing.assert_allclose(found["mean"], values.mean(axis=0), atol=1e-9)
                np.testing.assert_allclose(found["std"], values.std(axis=0), atol=1e-9)
                self.assertEqual(found["pixels"], len(values))
                # The frames of a set with codec packed are what was measured.
                packed = self.convert("--codec", "packed", out=self.path / f"packed{len(options)}")
                self.assertAlmostEqual(found["packed_bits_per_value"], self.info(packed)["bits_per_value"])
                self.assertEqual(found["packed_samples"], len(SIZES))

    def test_deep_images(self):
        folder, out = self.path / "deep", self.path / "deep-out"
        values = [draw(i, width, height, 1, np.uint16) for i, (width, height) in enumerate(SIZES[:4])]
        for i, one in enumerate(values):
            self.add(folder, f"{i}.png", one)
        self.convert("--channels", "keep", images=folder, out=out)
        found = json.loads(self.assert_code(shardctl("stats", out, "--json"), 0).out)
        stored = np.concatenate([one.ravel() for one in values]) / 65535
        np.testing.assert_allclose(
            (found["mean"][0], found["std"][0]), (stored.mean(), stored.std()), rtol=1e-9
        )
        self.assertEqual((found["packed_samples"], found["packed_bits_per_value"]), (0, 0))


class Duplicates(Sized):
    def groups(self, *options, code=1):
        result = self.assert_code(shardctl("duplicates", *options, "--json"), code)
        return [
            [(s["set"], s["key"]) for s in group["samples"]] for group in json.loads(result.out)["groups"]
        ]

    def test_equal_bytes_of_another_size_are_no_duplicate(self):
        for key, size in (
            ("a/x.png", (6, 4)),
            ("a/y.png", (4, 6)),
            ("b/z.png", (4, 6)),
            ("b/w.png", (24, 1)),
        ):
            self.add(self.images, key, np.full((size[1], size[0], 3), 77, np.uint8))
        self.convert()
        for options in ([], ["--no-verify"], ["--near", "0"]):
            self.assertEqual(self.groups(self.out, *options), [[(0, "a/y.png"), (0, "b/z.png")]], options)

    def test_sets_of_another_kind(self):
        # The samples of one set all have one size, which two of the other one have.
        self.convert("--codec", "packed")
        for key in ("b/3.png", "b/5.png"):
            self.add(self.path / "some", key, self.pictures[key])
        rigid = self.path / "rigid"
        self.assert_code(
            shardify(
                self.path / "some", rigid, "--squash", "48x40", "--dtype", "u8", "--layout", "nhwc", "--quiet"
            ),
            0,
        )
        both = [[(0, "b/3.png"), (1, "b/3.png")], [(0, "b/5.png"), (1, "b/5.png")]]
        self.assertEqual(self.groups(self.out, rigid, "--across"), both)
        # Any dtype and size by how they look.
        other = self.path / "other"
        self.assert_code(
            shardify(self.images, other, "--longest", "300", "--dtype", "f16", "--layout", "nchw", "--quiet"),
            0,
        )
        refused = self.assert_code(shardctl("duplicates", self.out, other), 2)
        self.assertIn("u8 nhwc, 3 channels, any size", refused.err)
        self.assertIn("--near 0", refused.err)
        groups = self.groups(self.out, other, "--near", "4", "--across")
        for key in ("a/2.png", "a/6.png", "b/3.png"):
            self.assertTrue(any({(0, key), (1, key)} <= set(group) for group in groups), (key, groups))

    def test_damaged_samples_are_named(self):
        self.add(self.images, "a/7.png", self.pictures["a/2.png"])
        self.convert()
        path = shards(self.out)[0]
        data = bytearray(path.read_bytes())
        data[-1] ^= 1
        path.write_bytes(data)
        result = self.assert_code(shardctl("duplicates", self.out, "--json", "--near", "2"), 1)
        self.assertIn("damaged", result.err)


class Compare(Sized):
    def sets(self, a, b, code):
        return json.loads(self.assert_code(shardctl("compare", a, b, "--json"), code).out)

    def test_with_the_images(self):
        options, stored = self.further_images()
        self.convert(*options)
        compare = [
            "compare",
            self.out,
            self.images,
            "--mask",
            self.path / "mask",
            "--pair",
            f"depth={self.path / 'depth'}",
            "--json",
        ]
        found = json.loads(self.assert_code(shardctl(*compare), 0).out)
        self.assertEqual(
            (found["samples_identical"], found["fields_different"]), (7, {"mask": 0, "depth": 0})
        )
        # The same number of pixels, turned: another picture.
        self.add(self.images, "b/3.png", np.ascontiguousarray(self.pictures["b/3.png"].transpose(1, 0, 2)))
        found = json.loads(self.assert_code(shardctl("compare", self.out, self.images, "--json"), 1).out)
        self.assertEqual((found["sources_missing"], found["samples_identical"]), (1, 6))
        text = self.assert_code(shardctl("compare", self.out, self.images), 1).out
        self.assertIn("b/3.png: is 48 x 40 now, not 40 x 48", text)

    def test_two_sets(self):
        options, _ = self.further_images()
        self.convert(*options)
        same = self.convert(*options, "--codec", "packed", out=self.path / "same")
        found = self.sets(self.out, same, 0)
        self.assertEqual((found["identical"], found["samples_compared"]), (True, 7))
        changed = self.pictures["a/2.png"].copy()
        changed[130, 199, 2] ^= 1
        self.add(self.images, "a/2.png", changed)
        self.add(self.images, "b/1.png", draw(1, 150, 3))
        for name in ("mask", "depth"):
            values = draw(9, 150, 3, 1, np.uint16 if name == "depth" else np.uint8) % 10
            self.add(self.path / name, "b/1.png", values)
        other = self.convert(*options, out=self.path / "other")
        found = self.sets(self.out, other, 1)
        self.assertEqual(found["forms"], [])
        self.assertEqual(
            {name: one["samples"] for name, one in found["differences"].items()},
            {"images": 2, "mask": 1, "depth": 1},
        )
        self.assertIn("other pixels", found["differences"]["images"]["first"])
        self.assertIn("300x7 and 150x3 pixels", found["differences"]["mask"]["first"])

    def test_a_set_of_one_size(self):
        self.convert()
        rigid = self.path / "rigid"
        self.assert_code(
            shardify(self.images, rigid, "--squash", "48x40", "--dtype", "u8", "--layout", "nhwc", "--quiet"),
            0,
        )
        found = self.sets(self.out, rigid, 1)
        self.assertEqual(found["forms"], ["samples: u8 nhwc, 3 channels, any size and u8 nhwc [40, 48, 3]"])
        self.assertEqual(found["differences"]["images"]["samples"], 5)
        self.assertIn("1x1 and 48x40 pixels", found["differences"]["images"]["first"])


class Export(Sized):
    def tar(self, out, name="all.tar"):
        result = self.assert_code(shardctl("export", out, "--format", "tar", "-o", self.path / name), 0)
        with tarfile.open(self.path / name) as archive:
            return {m.name: archive.extractfile(m).read() for m in archive}, result.out

    def test_one_array_needs_one_size(self):
        self.convert()
        for words in (["--npy", self.path / "npy"], ["-o", self.path / "npy"]):
            refused = self.assert_code(shardctl("export", self.out, *words), 2)
            self.assertIn("--format tar", refused.err)
            self.assertFalse((self.path / "npy").exists())

    def test_the_archive_has_the_pixels_and_gives_the_samples_back(self):
        for options in (
            [],
            ["--codec", "packed"],
            ["--dtype", "f16", "--layout", "nchw", "--codec", "zstd:3"],
        ):
            with self.subTest(options=options):
                name = "-".join(["set", *options]).replace(":", "")
                out = self.convert(*options, out=self.path / name)
                members, text = self.tar(out, name + ".tar")
                for key, picture in self.pictures.items():
                    found = Image.open(io.BytesIO(members[key]))
                    np.testing.assert_array_equal(np.asarray(found), picture)
                self.assertEqual(len([m for m in members if m.endswith(".png")]), len(SIZES))
                way_back = re.search(r"as a data set again: (.*)", text).group(1)
                again = self.path / f"again-{name}"
                words = [str(again) if word == "OUT" else word for word in shlex.split(way_back)]
                self.assertIn("--size original", way_back)
                self.assert_code(run([SHARDIFY, *words[1:], "--quiet"]), 0)
                compared = json.loads(shardctl("compare", out, again, "--json").out)
                self.assertEqual(
                    (compared["forms"], compared["differences"], compared["samples_compared"]),
                    ([], {}, len(SIZES)),
                )
                self.assertEqual(self.info(again)["codec"], self.info(out)["codec"])

    def test_further_images_and_deep_ones_are_arrays(self):
        options, stored = self.further_images()
        self.convert(*options)
        members, _ = self.tar(self.out)
        for key, picture in self.pictures.items():
            name = key.removesuffix(".png")
            for field in ("mask", "depth"):
                found = np.load(io.BytesIO(members[f"{name}.{field}.npy"]))
                np.testing.assert_array_equal(found[:, :, 0], stored[field][key])
            np.testing.assert_array_equal(np.asarray(Image.open(io.BytesIO(members[key]))), picture)
        folder, out = self.path / "depth", self.path / "deep-out"
        self.convert("--channels", "keep", images=folder, out=out)
        members, _ = self.tar(out, "deep.tar")
        for key in self.keys:
            found = np.load(io.BytesIO(members[key.removesuffix(".png") + ".npy"]))
            np.testing.assert_array_equal(found[:, :, 0], stored["depth"][key])


class Copies(Sized):
    """repack, copy, join and split keep every sample."""

    def assert_same(self, out, expected=None):
        expected = expected or self.pictures
        self.assert_code(shardctl("verify", out, "--quiet"), 0)
        found = free_samples(out)
        self.assertEqual(sorted(found), sorted(expected))
        for key, picture in expected.items():
            np.testing.assert_array_equal(found[key], picture, key)

    def test_repack(self):
        options, stored = self.further_images()
        self.convert(*options)
        there = self.out
        for codec in ("packed", "zstd:5", "none"):
            self.assert_code(shardctl("repack", there, self.path / codec, "--codec", codec, "--quiet"), 0)
            there = self.path / codec
            self.assert_code(shardctl("verify", there, "--quiet"), 0)
        self.assert_same(there)
        for key, mask in stored["depth"].items():
            np.testing.assert_array_equal(free_samples(there, "depth")[key][:, :, 0], mask)
        # A stopped one goes on, and finds what is there.
        (there / "dataset.json").unlink()
        shards(there)[2].unlink()
        self.assert_code(shardctl("repack", self.path / "zstd:5", there, "--codec", "none", "--quiet"), 0)
        self.assert_same(there)
        (there / "dataset.json").unlink()
        floats = self.path / "floats"
        self.assert_code(shardify(self.images, floats, "--preset", "eval", "--quiet"), 0)
        refused = shardctl("repack", floats, self.path / "refused", "--codec", "jpeg", "--quiet")
        self.assertIn("codec jpeg holds images of u8", self.assert_code(refused, 2).err)
        self.assertFalse((self.path / "refused").exists())
        refused = self.assert_code(shardctl("repack", self.out, there, "--codec", "zstd", "--quiet"), 2)
        self.assertIn("holds other samples, or these with another codec", refused.err)

    def test_copy(self):
        self.convert()
        self.assert_code(shardctl("copy", self.out, self.path / "copied", "--quiet"), 0)
        self.assert_same(self.path / "copied")

    def test_join_with_other_classes(self):
        self.convert("--codec", "packed")
        self.add(self.path / "images-2", "c/0.png", draw(20, 9, 400))
        self.add(self.path / "images-2", "b/extra.png", draw(21, 31, 2))
        more = self.convert("--codec", "packed", out=self.path / "more", images=self.path / "images-2")
        joined = self.path / "joined"
        result = self.assert_code(shardctl("join", joined, self.out, more), 0)
        self.assertIn("copied with other labels", result.out)
        self.assert_code(shardctl("verify", joined, "--quiet"), 0)
        self.assert_code(shardctl("repack", joined, self.path / "plain", "--codec", "none", "--quiet"), 0)
        self.assert_same(
            self.path / "plain",
            {**self.pictures, "c/0.png": draw(20, 9, 400), "b/extra.png": draw(21, 31, 2)},
        )
        found = {row["key"]: row["class"] for row in json.loads(shardctl("ls", joined, "--json").out)}
        self.assertEqual((found["c/0.png"], found["b/extra.png"], found["a/2.png"]), ("c", "b", "a"))
        self.assertEqual(self.info(joined)["sizes"]["height"]["max"], 900)

    def test_parts_are_shown_exported_and_compared(self):
        self.convert()
        self.assert_code(shardctl("split", self.out, "--fractions", "0.6,0.4", "--quiet"), 0)
        seen = []
        for name in ("train", "val"):
            part = f"{self.out}#{name}"
            self.assert_code(shardctl("verify", part, "--quiet"), 0)
            self.assert_code(shardctl("export", part, "--format", "tar", "-o", self.path / f"{name}.tar"), 0)
            with tarfile.open(self.path / f"{name}.tar") as archive:
                for member in archive:
                    if member.name.endswith(".png"):
                        seen.append(member.name)
                        found = np.asarray(Image.open(archive.extractfile(member)))
                        np.testing.assert_array_equal(found, self.pictures[member.name])
            self.assert_code(shardctl("compare", part, self.images), 0)
        self.assertEqual(sorted(seen), self.keys)


class Report(Sized):
    """What shardify prints before and after a conversion."""

    def test_the_dry_run(self):
        options, _ = self.further_images()
        plan = ["--size", "original", "--dry-run"]
        result = self.assert_code(shardify(self.images, self.out, *plan, "--codec", "zstd"), 0)
        mean = sum(picture.size for picture in self.pictures.values()) / len(SIZES)
        self.assertIn(
            f"sample: u8 nhwc, 3 channels, any size, about {mean / 1024:.0f} KiB on average, codec zstd",
            result.out,
        )
        self.assertRegex(result.out, r"size: [0-9.]+ [KM]iB \(estimated\)")
        bits = re.search(r"with --codec packed: about .*, ([0-9.]+) bits per value", result.out).group(1)
        packed = self.convert("--codec", "packed", out=self.path / "packed")
        self.assertAlmostEqual(float(bits), self.info(packed)["bits_per_value"], delta=0.011)
        # Further images count for the size, and not for the bits of a value.
        found = json.loads(
            self.assert_code(shardify(self.images, self.out, *plan, *options, "--json"), 0).out
        )
        self.assertAlmostEqual(found["sample_bytes"], mean / 3 * (3 + 1 + 2), delta=1)
        self.assertEqual(found["options"]["shape"], [0, 0, 3])
        self.assertIsNone(found["options"]["sample_bytes"])
        with_masks = self.assert_code(shardify(self.images, self.out, *plan, *options), 0).out
        self.assertIn(f"{bits} bits per value", with_masks)

    def test_nothing_can_be_sampled(self):
        folder = self.path / "broken"
        for i in range(3):
            write(folder / f"{i}.png", b"\x89PNG\r\n\x1a\n" + bytes(40))
        result = self.assert_code(shardify(folder, self.out, "--size", "original", "--dry-run"), 0)
        self.assertIn("sample: u8 nhwc, 3 channels, any size, codec none", result.out)
        self.assertNotRegex(result.out, r"\b(nan|inf)\b")
        found = json.loads(shardify(folder, self.out, "--size", "original", "--dry-run", "--json").out)
        self.assertIsNone(found["sample_bytes"])
        self.assertEqual(found["sampled_rejects"], 3)

    def test_the_summary(self):
        result = self.assert_code(shardify(self.images, self.out, "--size", "original"), 0)
        self.assertIn("sample: u8 nhwc, 3 channels, any size, codec none\n", result.out)
        again = self.assert_code(shardify(self.images, self.out, "--size", "original", "--json"), 0)
        self.assertIsNone(json.loads(again.out)["options"]["sample_bytes"])


if __name__ == "__main__":
    main()
