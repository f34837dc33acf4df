#!/usr/bin/env python3
"""shardctl show and page: masks, boxes, keypoints and further images over and beside the samples."""

import json
import struct
import zlib

from png_files import png_of
from shardify_support import TestCase, main, shardctl, shardify, write

SIDE = 40
GRAY = 100
FIRST, SECOND = (128, 0, 0), (0, 128, 0)  # Pascal VOC's colours of 1 and 2


def pixels_of(path):
    """{(x, y): (red, green, blue)} of an RGB PNG."""
    data, at, packed = path.read_bytes(), 8, b""
    while at < len(data):
        size, kind = struct.unpack_from(">I4s", data, at)
        body = data[at + 8 : at + 8 + size]
        if kind == b"IHDR":
            width, height, depth, color, *_ = struct.unpack(">IIBBBBB", body)
            assert (depth, color) == (8, 2)
        packed += body if kind == b"IDAT" else b""
        at += 12 + size
    raw, row, found = zlib.decompress(packed), bytearray(3 * width), {}
    for y in range(height):
        kind, line = (
            raw[y * (3 * width + 1)],
            bytearray(raw[y * (3 * width + 1) + 1 : (y + 1) * (3 * width + 1)]),
        )
        for i in range(3 * width):
            left, up, corner = line[i - 3] if i >= 3 else 0, row[i], row[i - 3] if i >= 3 else 0
            guess = left + up - corner
            paeth = min(
                (abs(guess - left), 0, left), (abs(guess - up), 1, up), (abs(guess - corner), 2, corner)
            )[2]
            line[i] = (line[i] + (0, left, up, (left + up) // 2, paeth)[kind]) % 256
        row = line
        found.update(((x, y), tuple(row[3 * x : 3 * x + 3])) for x in range(width))
    return width, height, found


class Look(TestCase):
    def setUp(self):
        super().setUp()
        images, masks, depth, boxes = (self.path / name for name in ("images", "masks", "depth", "boxes"))
        for i in range(2):
            write(images / f"{i}.png", png_of([[GRAY] * 3 * SIDE] * SIDE, color=2))
            write(
                masks / f"{i}.png",
                png_of([[2 if x < 10 else 255 if x < 12 else 0 for x in range(SIDE)] for _ in range(SIDE)]),
            )
            write(
                depth / f"{i}.png",
                png_of(
                    [[0 if y < 8 else 1000 if y < 20 else 3000 for _ in range(SIDE)] for y in range(SIDE)],
                    depth=16,
                ),
            )
        # A box of class 0 from 16, 5 to 30, 25 with a visible keypoint at 35, 35,
        # and one that is not labelled.
        write(boxes / "0.txt", b"0 0.575 0.375 0.35 0.5 0.8875 0.8875 2 0.1 0.9 0\n")
        write(boxes / "1.txt", b"")
        self.convert = [
            images,
            self.out,
            "--squash",
            f"{SIDE}x{SIDE}",
            "--dtype",
            "u8",
            "--layout",
            "nhwc",
            "--quiet",
            "--mask",
            masks,
            "--pair",
            f"depth={depth}",
            "--yolo",
            boxes,
            "--yolo-keypoints",
            "2",
        ]
        self.assert_code(shardify(*self.convert), 0)

    def show(self, *more, name="sheet.png"):
        self.assert_code(shardctl("show", self.out, *more, "-o", self.path / name), 0)
        return pixels_of(self.path / name)

    def test_colours_frames_and_dots_are_where_the_targets_are(self):
        _, _, found = self.show("0")
        tile = {(x, y): found[4 + x, 4 + y] for x in range(SIDE) for y in range(SIDE)}
        mixed = tuple((GRAY + c + 1) // 2 for c in SECOND)
        for (x, y), color in tile.items():
            border = 16 <= x < 30 and 5 <= y < 25 and (x in (16, 29) or y in (5, 24))
            dot = 34 <= x <= 36 and 34 <= y <= 36
            expected = (
                FIRST
                if border or dot
                else mixed
                if x < 10
                else ((GRAY + 256) // 2,) * 3
                if x < 12
                else (GRAY,) * 3
            )
            self.assertEqual(color, expected, (x, y))
        # The map of depth beside it: 0 is black, the smallest value dark, the largest white.
        left = 4 + max(SIDE, 48) + 4
        self.assertEqual(
            [found[left + 20, 4 + y] for y in (0, 7, 8, 19, 20, 39)],
            [(0,) * 3] * 2 + [(32,) * 3] * 2 + [(255,) * 3] * 2,
        )

    def test_a_sample_has_a_row_and_targets_can_be_left_out(self):
        width, height, _ = self.show("0", "1")
        self.assertEqual((width, height), (2 * (48 + 4) + 4, 2 * (SIDE + 16) + 4))
        width, height, found = self.show("0", "--no-targets")
        self.assertEqual((width, height), (48 + 8, SIDE + 16 + 4))
        self.assertTrue(all(found[4 + x, 4 + y] == (GRAY,) * 3 for x in range(SIDE) for y in range(SIDE)))
        width, _, _ = self.show("1", "--augment", "crop", "--views", "3")
        self.assertEqual(width, (2 + 3) * 52 + 4)

    def test_boxes_have_the_names_of_their_classes(self):
        images, boxes = self.path / "images-4", self.path / "boxes-4"
        write(images / "0.png", png_of([[GRAY] * 3 * SIDE] * SIDE, color=2))
        # From 4, 4 to 34, 24: room for four letters. From 4, 30 to 12, 38: too narrow for a name.
        write(boxes / "0.txt", b"0 0.475 0.35 0.75 0.5\n1 0.2 0.85 0.2 0.2\n")
        write(self.path / "names", b"catamaran\nox\n")
        out = self.path / "out-4"
        convert = [
            images,
            out,
            "--squash",
            f"{SIDE}x{SIDE}",
            "--dtype",
            "u8",
            "--layout",
            "nhwc",
            "--quiet",
            "--yolo",
            boxes,
        ]
        self.assert_code(shardify(*convert, "--box-classes", self.path / "names"), 0)
        self.assert_code(shardctl("show", out, "0", "-o", self.path / "named.png"), 0)
        _, _, found = pixels_of(self.path / "named.png")
        inside = {(x, y): found[4 + x, 4 + y] for x in range(5, 33) for y in range(5, 23)}
        ground = {spot for spot in inside if spot[0] < 5 + 4 * 6 + 1 and spot[1] < 5 + 9}
        self.assertEqual({inside[spot] for spot in ground}, {FIRST, (255,) * 3})
        self.assertEqual({inside[spot] for spot in inside.keys() - ground}, {(GRAY,) * 3})
        # The first letter, as in the font: "c" has the columns 38 44 44 44 20.
        letter = {(x, y) for x in range(5) for y in range(7) if (0x38, 0x44, 0x44, 0x44, 0x20)[x] >> y & 1}
        self.assertEqual({(x - 6, y - 6) for x, y in ground if x < 12 and inside[x, y] != FIRST}, letter)
        self.assertEqual({found[4 + x, 4 + y] for x in range(5, 11) for y in range(31, 37)}, {(GRAY,) * 3})

    def test_targets_follow_the_views_of_training(self):
        images, masks, boxes = (self.path / f"{name}-2" for name in ("images", "masks", "boxes"))

        def inside(x, y):
            return 12 <= x < 28 and 8 <= y < 30

        write(
            images / "0.png",
            png_of(
                [
                    [v for x in range(SIDE) for v in ((240, 20, 20) if inside(x, y) else (GRAY,) * 3)]
                    for y in range(SIDE)
                ],
                color=2,
            ),
        )
        write(masks / "0.png", png_of([[2 if inside(x, y) else 0 for x in range(SIDE)] for y in range(SIDE)]))
        write(boxes / "0.txt", f"0 0.5 {19 / 40} 0.4 0.55 0.5 {19 / 40} 2\n".encode())
        out = self.path / "out-2"
        options = [
            "--squash",
            f"{SIDE}x{SIDE}",
            "--dtype",
            "u8",
            "--layout",
            "nhwc",
            "--codec",
            "packed",
            "--quiet",
        ]
        self.assert_code(shardify(images, out, *options, "--mask", masks), 0)
        boxed = self.path / "out-3"
        self.assert_code(shardify(images, boxed, *options, "--yolo", boxes, "--yolo-keypoints", "1"), 0)
        views, seen = 40, 0
        for policy in ("crop", "trivial-augment"):
            how = ["0", "--augment", policy, "--views", str(views), "--columns", "1"]
            tiles = []
            for folder, more, name in (
                (out, [], "masks"),
                (out, ["--no-targets"], "plain"),
                (boxed, [], "boxes"),
            ):
                self.assert_code(shardctl("show", folder, *how, *more, "-o", self.path / f"{name}.png"), 0)
                tiles.append(pixels_of(self.path / f"{name}.png")[2])
            masked, plain, framed = tiles
            for view in range(1, 1 + views):
                top = 4 + view * (SIDE + 16)
                spots = [(x, y) for x in range(SIDE) for y in range(SIDE)]

                def at(tile, x, y):
                    return tile[4 + x, top + y]

                covered = {(x, y) for x, y in spots if at(masked, x, y) != at(plain, x, y)}
                framed_at = {(x, y) for x, y in spots if at(framed, x, y) != at(plain, x, y)}
                if (
                    policy == "crop"
                ):  # colours are as they were: what is red has the mask, but for a pixel at the border
                    red = {(x, y) for x, y in spots if at(plain, x, y)[0] > at(plain, x, y)[1] + 110}
                    away = [
                        spot
                        for spot in red ^ covered
                        if not any(
                            (spot[0] + i, spot[1] + j) in red and (spot[0] - i, spot[1] - j) not in red
                            for i in (-2, -1, 0, 1, 2)
                            for j in (-2, -1, 0, 1, 2)
                        )
                    ]
                    self.assertEqual(away, [], (view, sorted(red ^ covered)[:9]))
                if len(covered) > 60 and len(framed_at) > 8:
                    seen += 1
                    for axis in (
                        0,
                        1,
                    ):  # the frame is around the mask; closely if nothing is rotated or sheared
                        low = min(s[axis] for s in covered) - min(s[axis] for s in framed_at)
                        high = max(s[axis] for s in framed_at) - max(s[axis] for s in covered)
                        self.assertTrue(min(low, high) >= -2, (policy, view, axis, low, high))
                        self.assertTrue(
                            policy != "crop" or max(low, high) <= 2, (policy, view, axis, low, high)
                        )
        self.assertTrue(seen > views, seen)

    def test_the_page_has_them_too(self):
        sizes = {}
        for name, more in (("with", []), ("without", ["--no-targets"])):
            self.assert_code(shardctl("page", self.out, self.path / name, *more), 0)
            sizes[name] = [(self.path / name / "pictures" / f"{i}.jpg").stat().st_size for i in range(2)]
        self.assertTrue(all(a > b for a, b in zip(sizes["with"], sizes["without"])), sizes)
        self.assertTrue(sizes["with"][0] > sizes["with"][1], sizes)  # the box

    def test_a_damaged_mask_is_named(self):
        shard = self.out / "shard-00000.safetensors"
        data = bytearray(shard.read_bytes())
        head = struct.unpack_from("<Q", data)[0] + 8
        begin, end = json.loads(data[8:head])["mask.frames"]["data_offsets"]
        data[head + end - 5] ^= 0x55
        data[head + begin + 60] ^= 0x55
        shard.write_bytes(data)
        result = self.assert_code(shardctl("show", self.out, "0..2", "-o", self.path / "sheet.png"), 1)
        self.assertIn("mask", result.err)
        self.assertFalse((self.path / "sheet.png").exists())


if __name__ == "__main__":
    main()
