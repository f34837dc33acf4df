#!/usr/bin/env python3
"""shardify --mask and --pair: what is stored of masks and second images, which are rejects, and what
several processes, kills and changed files make of them."""

import json
import os
import random
import struct
import subprocess
import time
import zlib

from png_files import GRAY, PALETTE, RGB, png_of
from shardify_support import (
    SHARDIFY,
    SMALL,
    TestCase,
    all_keys,
    digests,
    info,
    keys_of,
    main,
    png,
    read_shard,
    rejects,
    run,
    shardctl,
    shardify,
    shards,
    state,
    write,
)

RESIZE, CROP = 32, 24
GEOMETRY = [
    "--resize",
    str(RESIZE),
    "--crop",
    str(CROP),
    "--dtype",
    "u8",
    "--layout",
    "nhwc",
    "--samples-per-shard",
    "4",
    "--quiet",
]


def mask_rows(seed, width, height, values):
    draw = random.Random(seed)
    return [[draw.randrange(values) for _ in range(width)] for _ in range(height)]


def nearest(source, resized):
    """Pillow's NEAREST along one axis: a running sum of the centres."""
    scale = source / resized
    center, found = scale * 0.5, []
    for _ in range(resized):
        found.append(min(int(center), source - 1))
        center += scale
    return found


def stored_mask(rows):
    """Resize(32) and CenterCrop(24) with nearest."""
    height, width = len(rows), len(rows[0])
    short, long = min(width, height), max(width, height)
    other = int(RESIZE * long / short)
    resized = (RESIZE, other) if width <= height else (other, RESIZE)
    left, top = (round((side - CROP) / 2) for side in resized)
    columns = nearest(width, resized[0])[left : left + CROP]
    lines = nearest(height, resized[1])[top : top + CROP]
    return [rows[y][x] for y in lines for x in columns]


def field_of(out, name, code="B"):
    """{key: values} of a field with codec none."""
    found = {}
    for path in shards(out):
        tensors = read_shard(path)[1]
        values = [value for (value,) in struct.iter_unpack("<" + code, tensors[name][2])]
        keys = keys_of(path)
        size = len(values) // len(keys)
        for i, key in enumerate(keys):
            found[key] = values[i * size : (i + 1) * size]
    return found


class PairCase(TestCase):
    def setUp(self):
        super().setUp()
        self.images, self.masks = self.path / "images", self.path / "masks"

    def add(self, name, rows, width=None, height=None, suffix=".png", **how):
        write(self.images / name, png(zlib.crc32(name.encode()), width or len(rows[0]), height or len(rows)))
        return write((self.masks / name).with_suffix(suffix), png_of(rows, **how))

    def convert(self, *more, out=None, masks="", options=GEOMETRY):
        """masks: settings behind the folder of masks; None: without it."""
        masks = [] if masks is None else ["--mask", f"{self.masks}{masks}"]
        return shardify(self.images, out or self.out, *options, *masks, *more)

    def fill(self, count=11, values=5):
        self.rows = {}
        for i in range(count):
            name = f"{'ant' if i % 2 else 'bee'}/{i:02}.png"
            self.rows[name] = mask_rows(i, 30 + 7 * (i % 3), 44 - i, values)
            self.add(name, self.rows[name], color=PALETTE)


class Stored(PairCase):
    def test_masks_hold_the_number_in_the_file_resized_with_nearest_as_the_image(self):
        kinds = {
            "1": (1, GRAY),
            "2": (2, GRAY),
            "4": (4, GRAY),
            "8": (8, GRAY),
            "p1": (1, PALETTE),
            "p2": (2, PALETTE),
            "p4": (4, PALETTE),
            "p8": (8, PALETTE),
        }
        expected = {}
        for i, (name, (depth, color)) in enumerate(kinds.items()):
            rows = mask_rows(name, 31 + 9 * i, 90 - 7 * i, 1 << depth)
            self.add(f"x/{name}.png", rows, depth=depth, color=color)
            expected[f"x/{name}.png"] = stored_mask(rows)
        self.assert_code(self.convert("--pair", f"again={self.masks},role=mask,codec=none"), 0)
        self.assertEqual(field_of(self.out, "again"), expected)
        field, again = info(self.out)["fields"]
        self.assertEqual(
            (field["name"], field["role"], field["dtype"], field["shape"]),
            ("mask", "mask", "u8", [CROP, CROP, 1]),
        )
        self.assertEqual((again["codec"], info(self.out)["version"]), ("none", 2))
        self.assert_code(shardctl("verify", self.out), 0)
        repacked = self.path / "repacked"
        self.assert_code(shardctl("repack", self.out, repacked, "--codec", "zstd", "--quiet"), 0)
        self.assert_code(shardctl("verify", repacked), 0)

    def test_sixteen_bits_and_the_bounds_on_values(self):
        rows = mask_rows(1, 40, 40, 60000)
        self.add("a.png", rows, depth=16)
        self.assert_code(self.convert("--pair", f"raw={self.masks},role=mask,codec=none"), 0)
        self.assertEqual([field["dtype"] for field in info(self.out)["fields"]], ["u16", "u16"])
        self.assertEqual(info(self.out)["fields"][0]["codec"], "zstd:3")
        self.assertEqual(field_of(self.out, "raw", "H"), {"a.png": stored_mask(rows)})

    def test_a_value_beyond_the_classes_is_a_reject_that_says_where(self):
        good, bad, ignored = (
            [[0, 1, 2, 0]] * 3,
            [[0, 1, 2, 0], [0, 0, 21, 0], [0] * 4],
            [[255, 1, 2, 0]] * 3,
        )
        for name, rows in (("good.png", good), ("bad.png", bad), ("ignored.png", ignored)):
            self.add(name, rows, color=PALETTE)
        self.assert_code(self.convert(masks=",classes=21"), 1)
        self.assertEqual(set(rejects(self.out)), {"bad.png", "ignored.png"})
        self.assertEqual(
            rejects(self.out)["bad.png"],
            'mask "bad.png": value 21 at column 2, row 1: there are 21 classes, 0 to 20',
        )
        self.assert_code(self.convert(masks=",classes=21,ignore=255", out=self.path / "b"), 1)
        self.assertEqual(set(rejects(self.path / "b")), {"bad.png"})
        self.assert_refused(
            self.convert("--on-error", "fail", masks=",classes=21,ignore=255", out=self.path / "c"),
            "bad.png",
            "value 21",
            "--on-error fail",
        )
        # 16 bits of a data set of 8: values that fit are taken.
        self.add("wide.png", [[0, 1, 2, 20]] * 3, depth=16)
        self.assert_code(self.convert(masks=",classes=21", out=self.path / "d"), 1)
        self.assertNotIn("wide.png", rejects(self.path / "d"))

    def test_the_mask_of_a_turned_image_is_upright(self):
        rows = mask_rows(3, 50, 30, 9)  # of the upright image
        for orientation in range(1, 9):
            turned = orientation >= 5
            pixels = [[7] * 3 * (30 if turned else 50)] * (50 if turned else 30)
            write(self.images / f"{orientation}.png", png_of(pixels, color=RGB, orientation=orientation))
            write(self.masks / f"{orientation}.png", png_of(rows))
        write(self.images / "stored.png", png_of([[7] * 3 * 30] * 50, color=RGB, orientation=6))
        write(self.masks / "stored.png", png_of(mask_rows(3, 30, 50, 9)))
        write(self.images / "tagged.png", png_of([[7] * 3 * 30] * 50, color=RGB, orientation=6))
        write(self.masks / "tagged.png", png_of([list(row) for row in zip(*rows)][::1], orientation=5))
        self.assert_code(self.convert("--pair", f"m={self.masks},role=mask,codec=none", masks=None), 1)
        self.assertEqual(
            rejects(self.out),
            {
                "stored.png": 'm "stored.png": it has 30x50 pixels, its image 50x30 (upright, '
                "as its EXIF data "
                "say: turn this file too)"
            },
        )
        self.assertEqual(
            field_of(self.out, "m"), {f"{i}.png": stored_mask(rows) for i in [*range(1, 9), "tagged"]}
        )

    def test_depth_of_16_bits_by_its_own_filter(self):
        rows = [[(x * 700 + y * 300) % 65536 for x in range(64)] for y in range(64)]
        self.add("a.png", [[0] * 64] * 64)
        write(self.path / "depth" / "a.png", png_of(rows, depth=16))
        self.assert_code(
            self.convert(
                "--pair",
                f"near={self.path / 'depth'},filter=nearest",
                "--pair",
                f"depth={self.path / 'depth'}",
                "--pair",
                f"metre={self.path / 'depth'},dtype=f32,filter=nearest",
            ),
            0,
        )
        fields = {field["name"]: field for field in info(self.out)["fields"]}
        self.assertEqual(
            {name: (field["role"], field["dtype"]) for name, field in fields.items()},
            {
                "mask": ("mask", "u8"),
                "near": ("image", "u16"),
                "depth": ("image", "u16"),
                "metre": ("image", "f32"),
            },
        )
        near = field_of(self.out, "near", "H")["a.png"]
        self.assertEqual(near, stored_mask(rows))
        # Halved: the antialiased filter weighs four neighbours, and the plane stays a plane.
        depth = field_of(self.out, "depth", "H")["a.png"]
        for y in range(4, 12):
            for x in range(4, 12):
                exact = (2 * (x + 4) + 0.5) * 700 + (2 * (y + 4) + 0.5) * 300
                self.assertTrue(
                    abs(depth[y * CROP + x] - exact) <= 0.5 or exact > 60000,
                    (x, y, depth[y * CROP + x], exact),
                )
        for value, whole in zip(field_of(self.out, "metre", "f")["a.png"], near):
            self.assertAlmostEqual(value, whole / 65535, places=6)
        self.assertEqual(
            info(self.out)["pipeline"]["further_images"],
            "mask nearest; near nearest; depth bilinear; metre nearest",
        )

    def test_floats_that_no_byte_gives_are_zstd_beside_packed_images(self):
        rows = [[(x * 700 + y * 300) % 65536 for x in range(64)] for y in range(64)]
        self.add("a.png", [[0] * 64] * 64)
        write(self.path / "depth" / "a.png", png_of(rows, depth=16))
        write(self.path / "near" / "a.png", png_of([[value >> 8 for value in row] for row in rows]))
        depth = ["--pair", f"depth={self.path / 'depth'},dtype=f32,filter=nearest"]
        near = ["--pair", f"near={self.path / 'near'},dtype=f16,filter=nearest"]
        self.assert_code(self.convert(*depth, *near, "--codec", "packed", masks=None), 0)
        codecs = {field["name"]: field["codec"] for field in info(self.out)["fields"]}
        self.assertEqual(codecs, {"depth": "zstd:3", "near": "packed"})
        self.assert_code(shardctl("repack", self.out, self.path / "plain", "--codec", "none", "--quiet"), 0)
        self.assert_code(
            shardctl("compare", self.out, self.images, *depth[:1], f"depth={self.path / 'depth'}"), 0
        )

    def test_the_first_file_does_not_say_whether_all_floats_were_bytes(self):
        rows = [[(x * 700 + y * 300) % 65536 for x in range(64)] for y in range(64)]
        for name in ("a.png", "b.png"):
            self.add(name, [[0] * 64] * 64)
        write(self.path / "depth" / "a.png", png_of([[value >> 8 for value in row] for row in rows]))
        write(self.path / "depth" / "b.png", png_of(rows, depth=16))
        depth = f"depth={self.path / 'depth'},dtype=f32"
        sizes = GEOMETRY[GEOMETRY.index("--dtype") :]
        for number, geometry in enumerate((GEOMETRY, [*sizes, "--size", "original"])):
            for codec in ("packed", "jpeg"):
                out = self.path / f"{codec}{number}"
                with self.subTest(codec=codec, geometry=geometry):
                    made = self.convert(
                        "--pair", depth, "--codec", codec, masks=None, out=out, options=geometry
                    )
                    self.assert_code(made, 0)
                    self.assertEqual([field["codec"] for field in info(out)["fields"]], ["zstd:3"])
                    compared = shardctl("compare", out, self.images, "--pair", depth.partition(",")[0])
                    self.assert_code(compared, 0)

    def test_floats_that_packed_cannot_hold_are_rejects_where_it_is_asked_for(self):
        for name in ("a.png", "b.png"):
            self.add(name, [[0] * 64] * 64)
        write(self.path / "depth" / "a.png", png_of([[7] * 64] * 64))
        write(self.path / "depth" / "b.png", png_of([[700] * 64] * 64, depth=16))
        depth = f"depth={self.path / 'depth'},dtype=f32,codec=packed"
        self.assert_code(self.convert("--pair", depth, masks=None), 1)
        self.assertEqual(all_keys(self.out), ["a.png"])
        self.assertEqual(
            rejects(self.out)["b.png"],
            'depth "b.png": its values are u16, and codec packed holds f32 of 8-bit files only: give this '
            "field codec=zstd",
        )

    def test_a_second_camera_of_another_size_where_it_is_asked_for(self):
        self.add("a.png", [[0] * 64] * 64)
        write(self.path / "right" / "a.png", png(4, 90, 70))
        self.assert_refused(
            self.convert("--pair", f"right={self.path / 'right'}", out=self.path / "no"),
            "none of the 1 inputs could be stored",
        )
        self.assertEqual(
            rejects(self.path / "no")["a.png"], 'right "a.png": it has 90x70 pixels, its image 64x64'
        )
        self.assert_code(self.convert("--pair", f"right={self.path / 'right'},size=any"), 0)
        alone = self.path / "alone"
        self.assert_code(shardify(self.path / "right", alone, *GEOMETRY), 0)
        self.assertEqual(
            read_shard(shards(self.out)[0])[1]["right"][2], read_shard(shards(alone)[0])[1]["images"][2]
        )

    def test_masks_of_other_kinds_are_rejects(self):
        self.add("good.png", [[1, 2], [3, 4]])
        files = {
            "color.png": (
                png(1, 2, 2),
                "it is PNG with 3 channels of u8, and a mask has one whole number for each pixel",
            ),
            "cut.png": (png_of([[1, 2], [3, 4]])[:-20], "PNG: "),
            "empty.png": (b"", "the file is empty"),
            "size.png": (png_of([[1]]), "it has 1x1 pixels, its image 2x2"),
        }
        for name, (data, _) in files.items():
            write(self.images / name, png(5, 2, 2))
            write(self.masks / name, data)
        self.assert_code(self.convert(), 1)
        found = rejects(self.out)
        self.assertEqual(set(found), set(files))
        for name, (_, reason) in files.items():
            self.assertTrue(found[name].startswith(f'mask "{name}": '), found[name])
            self.assertIn(reason, found[name])
        self.assertEqual(all_keys(self.out), ["good.png"])


class Found(PairCase):
    def test_missing_masks_are_zeros_or_left_out_or_the_end(self):
        self.fill(6)
        (self.masks / "bee" / "02.png").unlink()
        write(self.masks / "bee" / "unused.png", png_of([[1]]))
        options = [o for o in GEOMETRY if o != "--quiet"]
        pair = ["--pair", f"m={self.masks},role=mask,codec=none"]
        result = self.assert_code(self.convert(*pair, masks=None, options=options), 0)
        self.assertIn('1 images without, zeros stored: "bee/02.png" has no m', result.out)
        self.assertIn('1 files without their image: "bee/unused.png"', result.out)
        stored = field_of(self.out, "m")
        self.assertEqual(stored.pop("bee/02.png"), [0] * CROP * CROP)
        self.assertEqual(
            stored, {key: stored_mask(rows) for key, rows in self.rows.items() if key != "bee/02.png"}
        )
        out = self.path / "skip"
        self.assertIn(
            "1 images without, left out",
            self.assert_code(self.convert("--missing", "skip", out=out, options=options), 0).out,
        )
        self.assertEqual(all_keys(out), sorted(set(self.rows) - {"bee/02.png"}))
        self.assert_refused(
            self.convert("--missing", "fail", out=self.path / "fail"),
            '"bee/02.png" has no mask',
            "--missing fail",
        )
        self.assertFalse((self.path / "fail").exists())

    def test_the_same_path_counts_before_the_same_name_and_two_are_too_many(self):
        self.add("a.png", [[1, 1], [1, 1]])
        write(self.masks / "a.tif", b"never read")
        self.assert_code(self.convert(), 0)  # a.png is there by its whole name
        (self.images / "a.png").rename(self.images / "a.jpg")
        self.assert_refused(self.convert(out=self.path / "b"), 'several files there have the name of "a.jpg"')
        (self.masks / "a.tif").unlink()
        self.assert_code(self.convert(out=self.path / "b"), 0)

    def test_a_mask_of_two_images_is_of_neither_unless_it_has_the_whole_name_of_one(self):
        self.fill(4)
        for name in ("bee/02", "ant/01"):
            write(self.images / f"{name}.gif", (self.images / f"{name}.png").read_bytes())
        self.assert_code(self.convert(), 1)
        why = 'mask "{0}.png": it belongs to the image "{0}.png", and none there is for "{0}.gif" alone'
        found = rejects(self.out)
        self.assertEqual(sorted(found), ["ant/01.gif", "bee/02.gif"])
        for name, reason in found.items():
            self.assertIn(why.format(name[:-4]), reason)
        for path in self.masks.rglob("*.png"):
            path.rename(path.with_name(path.stem + "_l.png"))
        out = self.path / "b"
        self.assert_code(self.convert(masks=",suffix=_l", out=out), 1)
        found = rejects(out)
        self.assertEqual(sorted(found), ["ant/01.gif", "ant/01.png", "bee/02.gif", "bee/02.png"])
        for name, reason in found.items():
            self.assertIn(
                'mask "{0}_l.png": it belongs to "{0}.gif" and "{0}.png", and which'.format(name[:-4]), reason
            )
        self.assert_refused(
            self.convert("--on-error", "fail", masks=",suffix=_l", out=self.path / "c"), "on-error fail"
        )

    def test_a_file_that_cannot_be_read_is_not_taken_as_missing(self):
        self.fill(4)
        path = self.masks / "bee" / "02.png"
        path.unlink()
        path.symlink_to("nowhere")
        (self.masks / "loop").symlink_to(".")
        self.assert_code(self.convert(), 1)
        self.assertEqual(
            rejects(self.out), {"bee/02.png": 'mask "bee/02.png": cannot open: No such file or directory'}
        )
        self.assert_code(self.convert(), 1)  # and it stays so

    def test_names_may_end_in_a_suffix(self):
        self.fill(4)
        expected = self.assert_code(
            self.convert("--pair", f"m={self.masks},role=mask,codec=none"), 0
        ) and field_of(self.out, "m")
        for name in self.rows:
            path = self.masks / name
            path.rename(path.with_name(path.stem + "_l.png"))
        self.assert_refused(self.convert(out=self.path / "no"), "none of its 4 files")
        out = self.path / "b"
        self.assert_code(
            self.convert(
                "--pair",
                f"m={self.masks},suffix=_l,role=mask,codec=none",
                masks=",suffix=_l",
                out=out,
            ),
            0,
        )
        self.assertEqual(field_of(out, "m"), expected)
        self.assert_code(shardctl("compare", out, self.images, "--pair", f"m={self.masks},suffix=_l"), 0)

    def test_a_folder_that_fits_nothing_is_a_mistake(self):
        self.fill(3)
        self.assert_refused(
            shardify(self.images, self.out, *SMALL, "--mask", self.path / "nowhere"), "not a folder"
        )
        write(self.path / "other" / "else.png", png_of([[1]]))
        self.assert_refused(
            shardify(self.images, self.out, *SMALL, "--mask", self.path / "other"),
            "none of its 1 files has the name of one of the 3 inputs",
            "else.png",
            "ant/01.png",
        )
        (self.path / "void").mkdir()
        self.assert_refused(
            shardify(self.images, self.out, *SMALL, "--mask", self.path / "void"), "no images in it"
        )
        write(self.path / "arrays" / "0.npy", b"\x93NUMPY")
        self.assert_refused(
            shardify(self.images, self.out, *SMALL, "--mask", self.path / "arrays"),
            "no images in it",
            "not of arrays",
        )

    def test_options_that_do_not_fit_are_refused(self):
        self.fill(2)
        for words, *given in (
            ("expected NAME=DIR", "--pair", "nonsense"),
            ("expected NAME=DIR", "--pair", "=x"),
            ("twice", "--pair", f"mask={self.masks}"),
            ("letters, digits", "--pair", f"a b={self.masks}"),
            ("for masks only", "--pair", f"d={self.masks},classes=3"),
            ("expected image or mask", "--pair", f"d={self.masks},role=x"),
            ("packed holds images of 8 bits", "--pair", f"d={self.masks},dtype=u16,codec=packed"),
            ("masks are u8 or u16", "--pair", f"d={self.masks},role=mask,dtype=f32"),
            ("expected bilinear", "--pair", f"d={self.masks},filter=x"),
            ("reserved", "--pair", f"images={self.masks}"),
            ("--pages together with", "--pages"),
        ):
            with self.subTest(given=given):
                result = self.convert(*given)
                self.assert_code(result, 2)
                self.assertTrue(
                    words in result.err or (words == "reserved" and "another tensor" in result.err), result
                )
        for words, masks in (
            ("1 to 65536", ",classes=0"),
            ("--mask ignore", ",ignore=x"),
            ("without classes", ",ignore=3"),
        ):
            self.assert_refused(self.convert(masks=masks), words)


class Guarantees(PairCase):
    """The same as for images."""

    def setUp(self):
        super().setUp()
        self.fill(30)
        for name in self.rows:
            write(
                self.path / "depth" / name,
                png_of(mask_rows(name, len(self.rows[name][0]), len(self.rows[name]), 5000), depth=16),
            )
        self.pairs = ["--pair", f"depth={self.path / 'depth'}"]
        self.assert_code(self.convert(*self.pairs), 0)
        self.expected = digests(self.out)

    def test_the_bytes_do_not_depend_on_threads_and_processes(self):
        for name, more in (("one", ["--jobs", "1"]), ("many", ["--jobs", "7"])):
            self.assert_code(self.convert(*self.pairs, *more, out=self.path / name), 0)
            self.assertEqual(digests(self.path / name), self.expected)
        ranks = self.path / "ranks"
        self.assert_code(self.convert(*self.pairs, "--rank", "1", "--world-size", "2", out=ranks), 3)
        self.assert_code(self.convert(*self.pairs, "--rank", "0", "--world-size", "2", out=ranks), 0)
        self.assertEqual(digests(ranks), self.expected)
        claims = self.path / "claims"
        command = [
            SHARDIFY,
            self.images,
            claims,
            *GEOMETRY,
            "--mask",
            self.masks,
            *self.pairs,
            "--claim",
            "--jobs",
            "1",
        ]
        workers = [subprocess.Popen(command, stderr=subprocess.PIPE) for _ in range(3)]
        for worker in workers:
            _, error = worker.communicate(timeout=100)
            self.assertEqual(worker.returncode, 0, error)
        self.assertEqual(digests(claims), self.expected)

    def test_a_killed_run_is_continued_with_the_same_bytes(self):
        draw = random.Random(3)
        for attempt in range(8):
            out = self.path / f"killed{attempt % 2}"
            command = [
                SHARDIFY,
                self.images,
                out,
                *GEOMETRY,
                "--mask",
                self.masks,
                *self.pairs,
                "--jobs",
                "1",
            ]
            with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
                time.sleep(draw.uniform(0.005, 0.08))
                process.kill()
            self.assert_visible_is_sound(out)
        for attempt in range(2):
            out = self.path / f"killed{attempt}"
            self.assert_code(self.convert(*self.pairs, out=out), 0)
            self.assertEqual(digests(out), self.expected)

    def test_a_changed_file_is_noticed_and_refreshed(self):
        name = "bee/10.png"
        times = {path.name: path.stat().st_mtime_ns for path in shards(self.out)}
        self.assert_code(self.convert(*self.pairs, "--refresh"), 0)
        self.assertEqual({path.name: path.stat().st_mtime_ns for path in shards(self.out)}, times)
        for folder, depth in (("masks", 8), ("depth", 16)):
            changed = [[(value + 1) % 5 for value in row] for row in self.rows[name]]
            write(self.path / folder / name, png_of(changed, depth=depth))
            self.assert_code(self.convert(*self.pairs, "--refresh"), 0)
            fresh = self.path / f"fresh-{folder}"
            self.assert_code(self.convert(*self.pairs, out=fresh), 0)
            self.assertEqual(digests(self.out), digests(fresh))
            self.assertNotEqual(digests(self.out), self.expected)
        # Another size: also without --refresh it is not the same conversion any more.
        write(self.masks / name, png_of(self.rows[name]) + b"more")
        self.assert_refused(self.convert(*self.pairs), "bee/10.png", "bytes then")
        (self.masks / name).unlink()
        self.assert_refused(self.convert(*self.pairs), "bee/10.png")
        self.assert_code(self.convert(*self.pairs, "--refresh"), 0)

    def test_compare_makes_the_fields_again(self):
        fields = ["--mask", self.masks, "--pair", f"depth={self.path / 'depth'}"]
        result = self.assert_code(shardctl("compare", self.out, self.images, *fields), 0)
        self.assertIn("mask: none of them differ\n", result.out)
        self.assertIn("depth: none of them differ\n", result.out)
        name = "bee/10.png"
        write(self.masks / name, png_of([[(value + 1) % 5 for value in row] for row in self.rows[name]]))
        self.assertIn(
            "mask: 1 of them differ\n",
            self.assert_code(shardctl("compare", self.out, self.images, *fields), 1).out,
        )
        self.assert_code(shardctl("compare", self.out, self.images), 0)
        found = json.loads(shardctl("compare", self.out, self.images, *fields, "--json").out)
        self.assertEqual((found["identical"], found["fields_different"]), (False, {"depth": 0, "mask": 1}))
        (self.masks / name).unlink()
        self.assertIn(
            "mask: 1 of them differ\n",
            self.assert_code(shardctl("compare", self.out, self.images, *fields), 1).out,
        )
        for words, *given in (
            ("has no such field", "--pair", f"deep={self.masks}"),
            ("not a folder", "--mask", self.path / "no"),
        ):
            self.assertIn(words, self.assert_code(shardctl("compare", self.out, self.images, *given), 2).err)

    def test_other_pairs_are_another_conversion(self):
        for more in (
            [],
            [*self.pairs, "--pair", f"more={self.masks},role=mask,classes=6"],
            ["--pair", f"depth={self.path / 'depth'},filter=nearest"],
            ["--pair", f"depth={self.path / 'depth'},codec=zstd:4"],
            ["--pair", f"deep={self.path / 'depth'}"],
        ):
            self.assert_refused(self.convert(*more), "other options")

    def test_appended_and_joined_sets_have_the_fields(self):
        first, more = self.path / "first", self.path / "more"
        for folder, names in ((first, list(self.rows)[:13]), (more, list(self.rows)[13:])):
            for name in names:
                for kind in ("images", "masks", "depth"):
                    write(folder / kind / name, (self.path / kind / name).read_bytes())

        def convert(folder, out, *options):
            return shardify(
                folder / "images",
                out,
                *GEOMETRY,
                "--mask",
                folder / "masks",
                "--pair",
                f"depth={folder / 'depth'}",
                *options,
            )

        parts = [self.path / "part0", self.path / "part1"]
        for folder, out in zip((first, more), parts):
            self.assert_code(convert(folder, out), 0)
        joined, appended = self.path / "joined", self.path / "appended"
        self.assert_code(shardctl("join", joined, *parts, "--quiet"), 0)
        self.assert_code(convert(first, appended), 0)
        self.assert_code(convert(more, appended, "--append"), 0)
        self.assertEqual(digests(joined), digests(appended))
        self.assert_code(shardctl("verify", joined), 0)
        self.assertEqual(field_of(joined, "depth", "H"), field_of(self.out, "depth", "H"))

    def test_pairs_of_tars_and_arrays_go_by_the_path_in_them(self):
        tar = self.path / "images.tar"
        run(["tar", "-cf", os.fspath(tar), "-C", os.fspath(self.images), "ant", "bee"])
        out = self.path / "tar"
        self.assert_code(shardify(tar, out, *GEOMETRY, "--mask", self.masks, *self.pairs), 0)
        self.assertEqual(field_of(out, "depth", "H"), field_of(self.out, "depth", "H"))

    def test_a_dry_run_counts_the_fields(self):
        plain = shardify(self.images, self.path / "x", *GEOMETRY, "--dry-run", "--json")
        pairs = self.convert(
            *self.pairs,
            "--pair",
            f"m={self.masks},role=mask,codec=none",
            "--dry-run",
            "--json",
            out=self.path / "x",
            masks=None,
        )
        pixels = CROP * CROP
        self.assertEqual(
            [json.loads(result.out)["bytes"] for result in (plain, pairs)],
            [30 * 3 * pixels, 30 * (3 + 1 + 2) * pixels],
        )
        self.assertEqual(state(self.path / "x"), "absent")


if __name__ == "__main__":
    main()
