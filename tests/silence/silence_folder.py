#!/usr/bin/env python3
"""Nothing wrong in silence: folders."""

import json
import os
import shutil
import struct
import unittest
from pathlib import Path

import pictures
from pictures import bmp, by_pillow, chunk, need_pillow, noise, of_pillow, page, png, rows_of, saved, tiff
from silence_support import SIDE, Silence, info, main, picture, pixels, shardctl, shardify, write

PIXELS = SIDE * SIDE
# Made by a version before this test with --pages: the samples x.tif#0 to #2 are all the first page of x.tif.
WRONG_PAGES = Path(__file__).resolve().parents[1] / "golden" / "dataset-wrong-pages"
LOUD = ["--preset", "train", "--resize", str(SIDE), "--crop", str(SIDE), "--samples-per-shard", "3"]
COLORS = [(17 * i, 255 - 16 * i, (53 * i) % 256) for i in range(16)]


def looked_up(indices, palette):
    return b"".join(bytes(palette[i]) for i in indices)


def gray_of(values):
    return b"".join(bytes((v, v, v)) for v in values)


def bits_of(packed):
    """1-bit pixels, packed, as bytes of 0 and 255."""
    return bytes(255 * (byte >> (7 - bit) & 1) for byte in packed for bit in range(8))


def rgb_page(seed, **more):
    return page(SIDE, pixels(seed), [8, 8, 8], 2, **more)


def reads(extension):
    """Whether this build decodes the format."""
    return f" {extension.upper()}," in shardify("--version").out.replace(" (", ",")


class Names(Silence):
    def put(self, **files):
        """{path below in/, with / written as __: number of its picture}."""
        for name, seed in files.items():
            write(self.path / "in" / name.replace("__", "/"), picture(seed))

    def images(self):
        return [self.path / "in"]

    def test_each_picture_has_the_class_of_its_folder(self):
        for i, name in enumerate(("b", "a", "B")):
            write(self.path / "in" / name / "x.png", picture(i))
        self.expect_stored(
            [self.path / "in"],
            {"b/x.png": 0, "a/x.png": 1, "B/x.png": 2},
            {"B/x.png": 0, "a/x.png": 1, "b/x.png": 2},
        )

    def test_names_of_classes_may_be_any_text(self):
        names = [
            "-x",
            " lead",
            "a,b",
            'q"q',
            "back\\slash",
            "line\nbreak",
            "tab\there",
            "#0",
            "ä",
            "日本",
            "%41",
            "@list",
            "~",
        ]
        for i, name in enumerate(names):
            write(self.path / "in" / name / "x.png", picture(i))
        shown = {
            "back\\slash": "back\\x5cslash",
            "line\nbreak": "line\\x0abreak",
            "tab\there": "tab\\x09here",
        }
        order = sorted(names, key=lambda name: name.encode())
        keys = {name: shown.get(name, name) + "/x.png" for name in names}
        self.expect_stored(
            self.images(),
            {keys[name]: i for i, name in enumerate(names)},
            {keys[name]: order.index(name) for name in names},
        )
        self.assertEqual(info(self.out)["classes"], [shown.get(name, name) for name in order])

    def test_names_that_are_no_utf_8(self):
        write(os.fsencode(self.path).decode() + "/in/a/x.png", picture(1))
        folder = os.fsencode(self.path / "in") + b"/\xff\xfe"
        os.mkdir(folder)
        with open(folder + b"/\xe9.png", "wb") as file:
            file.write(picture(2))
        self.expect_stored(
            self.images(),
            {"a/x.png": 1, "\\xff\\xfe/\\xe9.png": 2},
            {"a/x.png": 0, "\\xff\\xfe/\\xe9.png": 1},
        )

    def test_numbers_as_names_of_classes_are_sorted_as_text(self):
        for name in ("0", "1", "2", "10", "02"):
            write(self.path / "in" / name / "x.png", picture(int(name) + 100 * len(name)))
        self.expect_stored(
            self.images(),
            {f"{n}/x.png": int(n) + 100 * len(n) for n in ("0", "1", "2", "10", "02")},
            {"0/x.png": 0, "02/x.png": 1, "1/x.png": 2, "10/x.png": 3, "2/x.png": 4},
        )
        self.assertEqual(info(self.out)["classes"], ["0", "02", "1", "10", "2"])

    def test_names_in_other_case_are_other_images(self):
        self.put(A__x_png=0)
        for i, name in enumerate(("a/x.png", "a/X.png", "a/x.PNG", "A/x.png")):
            write(self.path / "in" / name, picture(i))
        (self.path / "in" / "A" / "x_png").unlink()
        self.expect_stored(
            self.images(),
            {"a/x.png": 0, "a/X.png": 1, "a/x.PNG": 2, "A/x.png": 3},
            {"a/x.png": 1, "a/X.png": 1, "a/x.PNG": 1, "A/x.png": 0},
        )

    def test_one_name_in_several_classes_and_with_several_extensions(self):
        for i, name in enumerate(("a/1.png", "b/1.png", "b/1.jpg", "b/1.png.png")):
            write(self.path / "in" / name, picture(i))
        self.expect_stored(
            self.images(),
            {"a/1.png": 0, "b/1.png": 1, "b/1.jpg": 2, "b/1.png.png": 3},
            {"a/1.png": 0, "b/1.png": 1, "b/1.jpg": 1, "b/1.png.png": 1},
        )

    def test_nested_folders_have_the_class_of_the_first(self):
        for i, name in enumerate(("a/b/c/1.png", "a/1.png", "b/a/1.png", "b/c/a/2.png")):
            write(self.path / "in" / name, picture(i))
        self.expect_stored(
            self.images(),
            {"a/b/c/1.png": 0, "a/1.png": 1, "b/a/1.png": 2, "b/c/a/2.png": 3},
            {"a/b/c/1.png": 0, "a/1.png": 0, "b/a/1.png": 1, "b/c/a/2.png": 1},
        )

    def test_a_picture_beside_the_class_folders_has_no_class(self):
        write(self.path / "in" / "a" / "1.png", picture(1))
        write(self.path / "in" / "lost.png", picture(2))
        self.expect_stored(
            self.images(), {"a/1.png": 1}, {"a/1.png": 0}, rejected={"lost.png": "has no class"}
        )

    def test_without_folders_every_label_is_0(self):
        for i in range(4):
            write(self.path / "in" / f"{i}.png", picture(i))
        self.expect_stored(
            self.images(), {f"{i}.png": i for i in range(4)}, {f"{i}.png": 0 for i in range(4)}
        )

    def test_a_folder_without_images_is_no_class(self):
        (self.path / "in" / "a").mkdir(parents=True)
        write(self.path / "in" / "b" / "readme.txt", b"no picture")
        write(self.path / "in" / "c" / "1.png", picture(1))
        self.expect_stored(self.images(), {"c/1.png": 1}, {"c/1.png": 0})

    def test_a_class_whose_only_image_is_bad_keeps_its_number(self):
        write(self.path / "in" / "a" / "1.png", b"\x89PNG\r\n\x1a\n")
        write(self.path / "in" / "b" / "1.png", picture(1))
        self.expect_stored(self.images(), {"b/1.png": 1}, {"b/1.png": 1}, rejected={"a/1.png": ""})

    def test_hidden_names_and_what_systems_leave_are_skipped(self):
        for name in (
            ".git/1.png",
            "a/.hidden.png",
            "a/._1.png",
            "__MACOSX/a/1.png",
            "a/Thumbs.db",
            "@eaDir/1.png",
            "a/.cache/2.png",
        ):
            write(self.path / "in" / name, picture(7))
        write(self.path / "in" / "a" / "1.png", picture(1))
        self.expect_stored(self.images(), {"a/1.png": 1}, {"a/1.png": 0})

    def test_with_strict_what_is_skipped_is_a_reject(self):
        write(self.path / "in" / "a" / ".hidden.png", picture(7))
        write(self.path / "in" / "a" / "1.png", picture(1))
        self.expect_stored(
            [*self.images(), "--strict"],
            {"a/1.png": 1},
            {"a/1.png": 0},
            rejected={"a/.hidden.png": "hidden name"},
        )

    def test_links_to_files_and_folders(self):
        write(self.path / "elsewhere" / "1.png", picture(1))
        write(self.path / "in" / "a" / "2.png", picture(2))
        os.symlink(self.path / "elsewhere" / "1.png", self.path / "in" / "a" / "linked.png")
        os.symlink(self.path / "elsewhere", self.path / "in" / "b")
        os.symlink("../a", self.path / "in" / "a" / "up")
        self.expect_stored(
            self.images(),
            {"a/2.png": 2, "a/linked.png": 1, "b/1.png": 1},
            {"a/2.png": 0, "a/linked.png": 0, "b/1.png": 1},
            rejected={"a/up": "loop"},
        )

    def test_a_dangling_link_is_a_reject(self):
        write(self.path / "in" / "a" / "1.png", picture(1))
        os.symlink("nowhere.png", self.path / "in" / "a" / "2.png")
        self.expect_stored(self.images(), {"a/1.png": 1}, {"a/1.png": 0}, rejected={"a/2.png": ""})

    def test_a_pipe_and_a_folder_with_the_name_of_an_image(self):
        write(self.path / "in" / "a" / "1.png", picture(1))
        write(self.path / "in" / "a" / "2.png" / "3.png", picture(3))
        os.mkfifo(self.path / "in" / "a" / "4.png")
        self.expect_stored(
            self.images(),
            {"a/1.png": 1, "a/2.png/3.png": 3},
            {"a/1.png": 0, "a/2.png/3.png": 0},
            rejected={"a/4.png": "not a regular file"},
        )

    def test_the_longest_names(self):
        name = "n" * 251 + ".png"
        write(self.path / "in" / ("f" * 255) / name, picture(1))
        write(self.path / "in" / "a" / "1.png", picture(2))
        self.expect_stored(
            self.images(),
            {"f" * 255 + "/" + name: 1, "a/1.png": 2},
            {"f" * 255 + "/" + name: 1, "a/1.png": 0},
        )


class Contents(Silence):
    def put(self, name, data):
        return write(self.path / "in" / name, data)

    def expect_one(self, data, expected, *arguments, name="x.png"):
        """The file beside a plain picture. expected: its pixels,
        or a piece of the reason why it is a reject."""
        self.put("0.png", picture(0))
        self.put(name, data)
        if isinstance(expected, str):
            return self.expect_stored([self.path / "in", *arguments], {"0.png": 0}, rejected={name: expected})
        return self.expect_stored([self.path / "in", *arguments], {"0.png": 0, name: expected})

    def test_an_extension_that_lies_does_not_matter(self):
        self.expect_one(picture(5), pixels(5), name="x.jpg")

    def test_no_extension_at_all(self):
        self.expect_one(picture(5), pixels(5), name="x")

    def test_text_that_calls_itself_an_image(self):
        self.expect_one(b"<html><body>404</body></html>", "an HTML page", name="x.jpg")

    def test_a_pointer_of_git_lfs(self):
        self.expect_one(
            b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 3\n", "Git LFS", name="x.jpg"
        )

    def test_an_empty_file(self):
        self.expect_one(b"", "the file is empty")

    def test_a_png_that_is_cut_off_anywhere(self):
        whole = picture(5)
        for i, cut in enumerate((9, 40, len(whole) // 2, len(whole) - 13, len(whole) - 1)):
            self.put(f"{i}.png", whole[:cut])
        self.put("whole.png", whole)
        self.expect_stored(
            [self.path / "in"], {"whole.png": 5}, rejected={f"{i}.png": "PNG" for i in range(5)}
        )

    def test_a_png_with_a_flipped_bit(self):
        whole = bytearray(picture(5))
        whole[len(whole) // 2] ^= 4
        self.expect_one(bytes(whole), "PNG")

    def test_bytes_behind_a_png(self):
        self.expect_one(picture(5) + picture(6), pixels(5))

    def test_a_jpeg_that_is_cut_off(self):
        need_pillow()
        whole = saved(of_pillow("RGB", (SIDE, SIDE), pixels(5)), "JPEG", quality=95)
        self.expect_one(whole[: len(whole) * 2 // 3], "JPEG", name="x.jpg")

    def test_two_jpegs_in_one_file(self):
        need_pillow()
        first, second = (saved(of_pillow("RGB", (SIDE, SIDE), pixels(i)), "JPEG", quality=95) for i in (5, 6))
        self.expect_one(first + second, by_pillow(first), name="x.jpg")

    def test_jpegs_of_gray_and_cmyk(self):
        need_pillow()
        for mode, data in (("L", noise(1, PIXELS)), ("CMYK", noise(2, 4 * PIXELS))):
            with self.subTest(mode=mode):
                self.out = self.path / mode
                file = saved(of_pillow(mode, (SIDE, SIDE), data), "JPEG", quality=90)
                self.expect_one(file, by_pillow(file), name="x.jpg")

    def test_every_orientation_of_jpeg_png_and_tiff(self):
        need_pillow()
        expected = {}
        for number in range(1, 9):
            image = of_pillow("RGB", (SIDE, SIDE), pixels(number))
            exif = (
                b"Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0" + bytes((number, 0, 0, 0)) + bytes(4)
            )
            files = {
                f"{number}.jpg": saved(image, "JPEG", quality=95, exif=exif),
                f"{number}.png": saved(image, "PNG", exif=exif),
                f"{number}.tif": tiff(rgb_page(number, more={274: (3, [number])})),
            }
            for name, data in files.items():
                self.put(name, data)
            plain = saved(image, "JPEG", quality=95)
            expected[f"{number}.jpg"] = by_pillow(plain, number)
            expected[f"{number}.png"] = expected[f"{number}.tif"] = by_pillow(saved(image, "PNG"), number)
        self.expect_stored([self.path / "in"], expected)

    def test_of_an_animation_the_first_picture(self):
        need_pillow()
        frames = [of_pillow("RGB", (SIDE, SIDE), pixels(i)) for i in range(3)]
        expected = {}
        for name, kind, options in (
            ("x.gif", "GIF", {}),
            ("x.webp", "WEBP", {"lossless": True}),
            ("x.png", "PNG", {}),
            ("y.tif", "TIFF", {}),
        ):
            data = saved(frames[0], kind, save_all=True, append_images=frames[1:], **options)
            self.put(name, data)
            expected[name] = by_pillow(data)
        self.assertEqual(expected["y.tif"], pixels(0))
        self.expect_stored([self.path / "in"], expected)

    def test_png_of_1_bit(self):
        packed = noise(1, PIXELS // 8)
        self.expect_one(png(SIDE, 1, 0, rows_of(packed, SIDE)), gray_of(bits_of(packed)))

    def test_png_of_gray_and_alpha(self):
        data = noise(1, 2 * PIXELS)
        self.expect_one(png(SIDE, 8, 4, rows_of(data, SIDE)), gray_of(data[::2]))

    def test_png_with_a_palette_and_alpha(self):
        indices = bytes(v % 16 for v in noise(1, PIXELS))
        palette = b"".join(bytes(color) for color in COLORS)
        data = png(SIDE, 8, 3, rows_of(indices, SIDE), palette, more=chunk(b"tRNS", bytes(range(0, 160, 10))))
        self.expect_one(data, looked_up(indices, COLORS))

    def test_png_of_16_bits_keeps_the_high_byte(self):
        data = noise(1, 6 * PIXELS)
        result = self.expect_one(png(SIDE, 16, 2, rows_of(data, SIDE)), data[::2])
        self.assertNotIn("few_bits", result.out)

    def test_1_bit_palette_and_cmyk_of_tiff(self):
        need_pillow()
        packed, indices, inks = (
            noise(1, PIXELS // 8),
            bytes(v % 16 for v in noise(2, PIXELS)),
            noise(3, 4 * PIXELS),
        )
        palette = COLORS + [(0, 0, 0)] * 240
        self.put("bits.tif", tiff(page(SIDE, packed, [1], 1)))
        self.put("white.tif", tiff(page(SIDE, packed, [1], 0)))
        self.put("palette.tif", tiff(page(SIDE, indices, [8], 3, palette)))
        self.put("cmyk.tif", tiff(page(SIDE, inks, [8] * 4, 5)))
        self.put("big.tif", tiff(rgb_page(9), big=True, order=">"))
        cmyk = of_pillow("CMYK", (SIDE, SIDE), inks).convert("RGB").tobytes()
        self.expect_stored(
            [self.path / "in"],
            {
                "bits.tif": gray_of(bits_of(packed)),
                "white.tif": gray_of(bytes(255 - v for v in bits_of(packed))),
                "palette.tif": looked_up(indices, COLORS),
                "cmyk.tif": cmyk,
                "big.tif": pixels(9),
            },
        )

    def test_a_palette_that_is_missing(self):
        for kept in ([], ["--channels", "keep"]):
            with self.subTest(kept=kept):
                self.out = self.path / f"out-{len(kept)}"
                self.expect_one(tiff(page(SIDE, noise(1, PIXELS), [8], 3)), "palette", *kept, name="x.tif")

    def test_undefined_samples_of_tiff_are_unsigned(self):
        data = noise(1, PIXELS)
        self.expect_one(tiff(page(SIDE, data, [8], 1, more={339: (3, [4])})), gray_of(data), name="x.tif")

    def test_signed_and_floating_samples_beside_rgb(self):
        self.put("signed.tif", tiff(page(SIDE, noise(1, PIXELS), [8], 1, more={339: (3, [2])})))
        self.put(
            "zfloat.tif", tiff(page(SIDE, struct.pack("<f", 0.5) * PIXELS, [32], 1, more={339: (3, [3])}))
        )
        self.put("0.png", picture(0))
        self.expect_stored(
            [self.path / "in"],
            {"0.png": 0},
            rejected={"signed.tif": "signed", "zfloat.tif": "floating-point"},
        )

    def test_a_preview_and_a_camera_raw_file_are_no_images(self):
        self.put("preview.tif", tiff(rgb_page(1, more={254: (4, [1])})))
        self.put("raw.tif", tiff(rgb_page(2, more={50708: (2, [65, 0])}), rgb_page(3)))
        self.put("0.png", picture(0))
        for i, options in enumerate(([], ["--channels", "keep"], ["--pages"])):
            with self.subTest(options=options):
                self.out = self.path / f"out-{i}"
                self.expect_stored(
                    [self.path / "in", *options],
                    {"0.png": 0},
                    rejected={"preview.tif": "preview", "raw.tif": "DNG"},
                )

    def test_palettes_of_bmp(self):
        if not reads("BMP"):
            raise unittest.SkipTest("this build reads no BMP")
        indices = bytes(v % 16 for v in noise(1, PIXELS))
        all_colors = COLORS + [(1, 2, 3)] * 240
        right = {
            "os2-256": bmp(SIDE, indices, all_colors, 12),
            "os2-16": bmp(SIDE, indices, COLORS, 12),
            "os2-64": bmp(SIDE, indices, COLORS, 64),
            "windows": bmp(SIDE, indices, COLORS),
            "not-stated": bmp(SIDE, indices, COLORS, stated=0),
        }
        odd = {
            "os2-of-4": bmp(SIDE, indices, all_colors, 12, entry=4),
            "os2-16-of-4": bmp(SIDE, indices, COLORS, 12, entry=4),
            "not-stated-of-3": bmp(SIDE, indices, COLORS, 40, entry=3, stated=0),
            "of-3": bmp(SIDE, indices, COLORS, 40, entry=3),
        }
        for name, data in {**right, **odd}.items():
            self.put(name + ".bmp", data)
        self.expect_stored(
            [self.path / "in"],
            {name + ".bmp": looked_up(indices, COLORS) for name in right},
            rejected={name + ".bmp": "BMP" for name in odd},
        )


class Pages(Silence):
    def setUp(self):
        super().setUp()
        self.images = self.path / "in"

    def kinds(self):
        """Pages of every kind, and what they are as RGB."""
        packed, indices, inks = (
            noise(1, PIXELS // 8),
            bytes(v % 16 for v in noise(2, PIXELS)),
            noise(3, 4 * PIXELS),
        )
        gray, deep = noise(4, PIXELS), noise(5, 2 * PIXELS)
        pages = [
            rgb_page(1),
            page(SIDE, gray, [8], 1),
            page(SIDE, indices, [8], 3, COLORS + [(0, 0, 0)] * 240),
            page(SIDE, packed, [1], 1),
            page(SIDE, deep, [16], 1),
            rgb_page(2),
            page(SIDE, inks, [8] * 4, 5),
        ]
        expected = [
            pixels(1),
            gray_of(gray),
            looked_up(indices, COLORS),
            gray_of(bits_of(packed)),
            gray_of(deep[1::2]),
            pixels(2),
        ]
        if pictures.PIL is not None:
            expected.append(of_pillow("CMYK", (SIDE, SIDE), inks).convert("RGB").tobytes())
        return pages[: len(expected)], expected

    def test_each_page_has_its_own_pixels(self):
        pages, expected = self.kinds()
        write(self.images / "a" / "x.tif", tiff(*pages))
        write(self.images / "b" / "y.png", picture(9))
        samples = {f"a/x.tif#{i}": value for i, value in enumerate(expected)}
        labels = dict.fromkeys(samples, 0)
        self.expect_stored([self.images, "--pages"], {**samples, "b/y.png": 9}, {**labels, "b/y.png": 1})
        self.assert_code(shardctl("compare", self.out, self.images), 0)

    def test_each_page_has_its_own_pixels_where_it_stays_as_it_is(self):
        grays = [noise(i, PIXELS) for i in range(3)]
        write(self.images / "x.tif", tiff(*[page(SIDE, gray, [8], 1) for gray in grays]))
        self.expect_stored(
            [self.images, "--pages", "--channels", "keep"],
            {f"x.tif#{i}": gray for i, gray in enumerate(grays)},
        )
        self.assert_code(shardctl("compare", self.out, self.images), 0)

    def test_without_the_option_the_first_page_alone(self):
        pages, expected = self.kinds()
        write(self.images / "x.tif", tiff(*pages))
        self.expect_stored([self.images], {"x.tif": expected[0]})

    def test_a_page_that_is_kept_by_no_data_set_becomes_rgb_or_a_reject(self):
        pages, expected = self.kinds()
        write(self.images / "x.tif", tiff(*pages[:4]))  # RGB first: gray is replicated, the others become RGB
        self.expect_stored(
            [self.images, "--pages", "--channels", "keep"], {f"x.tif#{i}": expected[i] for i in range(4)}
        )
        self.out = self.path / "gray"
        write(self.images / "x.tif", tiff(pages[1], *pages[2:4], pages[1]))  # gray first
        gray = noise(4, PIXELS)
        self.expect_stored(
            [self.images, "--pages", "--channels", "keep"],
            {"x.tif#0": gray, "x.tif#3": gray},
            rejected={f"x.tif#{i}": "it has 3 channels, the samples have 1" for i in (1, 2)},
        )

    def test_previews_and_masks_are_left_out(self):
        write(
            self.images / "x.tif",
            tiff(
                rgb_page(0), rgb_page(1, more={254: (4, [1])}), rgb_page(2, more={254: (4, [4])}), rgb_page(3)
            ),
        )
        self.expect_stored([self.images, "--pages"], {"x.tif#0": 0, "x.tif#3": 3})

    def test_a_page_that_is_cut_off_is_a_reject_alone(self):
        pages = [rgb_page(0), rgb_page(1), rgb_page(2)]
        fields, data = pages[1]
        whole = tiff(*pages)
        broken = whole.replace(
            struct.pack("<HHII", 279, 4, 1, len(data)), struct.pack("<HHII", 279, 4, 1, len(data) // 2)
        )
        self.assertNotEqual(whole, broken)
        one = whole.index(data)
        at = whole.index(struct.pack("<HHII", 273, 4, 1, one)) + 8
        moved = whole[:at] + struct.pack("<I", len(whole) - 100) + whole[at + 4 :]
        write(self.images / "x.tif", moved)
        self.expect_stored(
            [self.images, "--pages"], {"x.tif#0": 0, "x.tif#2": 2}, rejected={"x.tif#1": "TIFF"}
        )

    def test_a_page_whose_palette_is_cut_off_is_a_reject(self):
        whole = tiff(rgb_page(0), page(SIDE, noise(1, PIXELS), [8], 3, COLORS + [(0, 0, 0)] * 240))
        at = whole.index(struct.pack("<HHI", 320, 3, 768)) + 8
        write(self.images / "x.tif", whole[:at] + struct.pack("<I", len(whole) - 8) + whole[at + 4 :])
        self.expect_stored([self.images, "--pages"], {"x.tif#0": 0}, rejected={"x.tif#1": "TIFF"})

    def test_a_file_whose_list_of_pages_is_damaged_is_a_reject(self):
        whole = tiff(rgb_page(0), rgb_page(1))
        write(self.images / "y.tif", whole)
        fields, data = rgb_page(1)
        second = len(whole) - 4 - 12 * (len(fields) + 2) - 2
        self.assertIn(struct.pack("<I", second), whole)
        write(self.images / "x.tif", whole[: second + 1])
        write(
            self.images / "z.tif", whole.replace(struct.pack("<I", second), struct.pack("<I", len(whole) + 5))
        )
        self.expect_stored(
            [self.images, "--pages"],
            {"y.tif#0": 0, "y.tif#1": 1},
            rejected={"x.tif": "TIFF", "z.tif": "TIFF"},
        )
        self.out = self.path / "fail"
        # With several threads, any of the two may be first.
        self.expect_refused(
            [self.images, "--pages", "--on-error", "fail", "--jobs", "1"], "x.tif", "--on-error fail"
        )

    def test_a_file_with_the_key_of_a_page_is_refused(self):
        write(self.images / "x.tif", tiff(rgb_page(0), rgb_page(1)))
        write(self.images / "x.tif#1", picture(7))
        self.expect_refused([self.images, "--pages"], "x.tif#1", "page 1 of", "rename")
        (self.images / "x.tif#1").rename(self.images / "x.tif#2")
        self.expect_stored([self.images, "--pages"], {"x.tif#0": 0, "x.tif#1": 1, "x.tif#2": 7})
        self.assert_code(shardctl("compare", self.out, self.images), 0)

    def test_pages_that_are_there_are_not_appended_again(self):
        write(self.images / "x.tif", tiff(rgb_page(0), rgb_page(1)))
        self.assert_code(self.convert(self.images, "--pages"), 0)
        more = self.path / "more"
        write(more / "x.tif", tiff(rgb_page(5), rgb_page(6)))
        write(more / "y.tif", tiff(rgb_page(7)))
        result = self.assert_refused(
            self.convert(more, "--pages", "--append"), "2 of the 3 images", "x.tif#0"
        )
        self.assertNotIn("y.tif", result.err)
        (more / "x.tif").unlink()
        self.assert_code(self.convert(more, "--pages", "--append"), 0)
        self.assertEqual(sorted(self.labels()), ["x.tif#0", "x.tif#1", "y.tif#0"])

    def test_data_sets_with_wrong_pages_are_named_and_not_continued(self):
        write(self.images / "x.tif", tiff(rgb_page(0), rgb_page(1)))
        shutil.copytree(WRONG_PAGES, self.out)
        wrong = "stored the first page of a file for each of its pages"
        self.assertIn(wrong, shardctl("info", self.out).out)
        verified = shardctl("verify", self.out)
        self.assert_code(verified, 0)
        self.assertIn("the pixels are wrong", verified.err)
        self.assertIn(wrong, json.loads(shardctl("info", self.out, "--json").out)["wrong_pixels"])
        more = self.path / "more"
        write(more / "y.tif", tiff(rgb_page(7)))
        for arguments in (
            [self.images, "--pages"],
            [self.images, "--pages", "--refresh"],
            [more, "--pages", "--append"],
        ):
            with self.subTest(arguments=arguments):
                self.assert_refused(self.convert(*arguments), wrong, "--overwrite")
        other, joined = self.path / "other", self.path / "joined"
        self.assert_code(shardify(more, other, *LOUD, "--pages"), 0)
        result = shardctl("join", joined, self.out, other)
        self.assert_code(result, 2)
        self.assertIn(wrong, result.err)
        self.assert_code(self.convert(self.images, "--pages", "--overwrite"), 0)
        self.assertNotIn(wrong, shardctl("info", self.out).out)

    def test_an_unfinished_conversion_with_wrong_pages_is_not_continued(self):
        write(self.images / "x.tif", tiff(rgb_page(0), rgb_page(1)))
        write(self.images / "z.png", b"\x89PNG\r\n\x1a\nbad")
        self.assert_code(self.convert(self.images, "--pages", "--on-error", "fail"), 2)
        plan = self.out / "conversion.json"
        plan.write_text(plan.read_text().replace('"each as RGB"', '"each"'))
        self.assert_refused(self.convert(self.images, "--pages"), "stored the first page", "--overwrite")


class Depths(Silence):
    """12 bits in files of 16."""

    def setUp(self):
        super().setUp()
        self.images = self.path / "in"
        self.numbers = [int.from_bytes(noise(i, 2), "big") % 4096 for i in range(PIXELS)]
        self.high = gray_of(v >> 8 for v in self.numbers)
        self.scaled = gray_of(v >> 4 for v in self.numbers)
        big, little = struct.pack(f">{PIXELS}H", *self.numbers), struct.pack(f"<{PIXELS}H", *self.numbers)
        write(self.images / "a.png", png(SIDE, 16, 0, rows_of(big, SIDE)))
        write(self.images / "b.tif", tiff(page(SIDE, little, [16], 1)))
        write(self.images / "c.tif", tiff(page(SIDE, big, [16], 1), order=">"))
        write(self.images / "d.png", png(SIDE, 16, 0, rows_of(noise(1, 2 * PIXELS), SIDE)))  # uses all bits
        self.expected = {
            "a.png": self.high,
            "b.tif": self.high,
            "c.tif": self.high,
            "d.png": gray_of(noise(1, 2 * PIXELS)[::2]),
        }

    def test_they_are_counted_with_the_cure(self):
        self.expect_stored([self.images], self.expected)
        self.out = self.path / "said"
        said = shardify(self.images, self.out, *LOUD)
        self.assert_code(said, 0)
        self.assertIn("3 images of 16 bits have values below 16384 only", said.out)
        self.assertIn("--depth", said.out)
        self.assertIn("--channels keep", said.out)
        self.assertEqual(said.out.count("of 16 bits"), 1)
        self.out = self.path / "json"
        told = json.loads(shardify(self.images, self.out, *LOUD, "--json").out)
        self.assertEqual(told["warnings"], {"few_bits": 3})
        self.assertIn("--depth", told["notes"][-1])
        planned = shardify(self.images, self.path / "none", *LOUD, "--dry-run")
        self.assertIn("3 images of 16 bits", planned.out)
        quiet = shardify(self.images, self.path / "quiet", *LOUD, "--quiet")
        self.assert_code(quiet, 0)
        self.assertEqual((quiet.out, quiet.err.count("warning: 3 images of 16 bits")), ("", 1))

    def test_interlaced_turned_and_color_files_are_counted_too(self):
        need_pillow()
        data = b"".join(struct.pack(">H", v % 4096) * 3 for v in self.numbers)
        write(self.images / "e.png", png(SIDE, 16, 2, rows_of(data, SIDE)))
        write(
            self.images / "f.png",
            png(
                SIDE,
                16,
                2,
                rows_of(data, SIDE),
                more=chunk(b"eXIf", b"II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x03\0\0\0\0\0\0\0"),
            ),
        )
        with_alpha = b"".join(struct.pack(">HH", v, 65535) for v in self.numbers)
        write(self.images / "g.png", png(SIDE, 16, 4, rows_of(with_alpha, SIDE)))
        told = json.loads(shardify(self.images, self.out, *LOUD, "--json").out)
        self.assertEqual(told["warnings"], {"few_bits": 6})

    def test_with_their_depth_all_levels_are_stored(self):
        self.expect_stored(
            [self.images, "--depth", "12"],
            dict.fromkeys(("a.png", "b.tif", "c.tif"), self.scaled),
            rejected={"d.png": "which 12 bits do not hold"},
        )
        self.assertEqual(info(self.out)["pipeline"]["depth"], "12")
        self.assert_code(shardctl("compare", self.out, self.images), 0)
        self.assert_refused(self.convert(self.images), "depth", "12")
        self.out = self.path / "16"
        self.expect_stored([self.images, "--depth", "16"], self.expected)

    def test_a_depth_that_has_no_meaning_is_refused(self):
        self.expect_refused([self.images, "--depth", "12", "--channels", "keep"], "--depth together with")
        self.expect_refused([self.images, "--depth", "12", "--dtype", "u16"], "--depth together with")
        self.expect_refused([self.images, "--depth", "8"], "--depth")

    def test_kept_as_they_are_nothing_is_said(self):
        (self.images / "d.png").unlink()
        stored = struct.pack(f"<{PIXELS}H", *self.numbers)
        self.expect_stored(
            [self.images, "--channels", "keep"], dict.fromkeys(("a.png", "b.tif", "c.tif"), stored)
        )
        self.out = self.path / "said"
        self.assertNotIn("of 16 bits", shardify(self.images, self.out, *LOUD, "--channels", "keep").out)


if __name__ == "__main__":
    main()
