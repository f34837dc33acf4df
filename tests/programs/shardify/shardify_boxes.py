#!/usr/bin/env python3
"""shardify --yolo and --voc: boxes and keypoints from a file for each image, in the pixels of the stored
samples, and files that are not in order."""

import json
import os
import random

from shardify_coco import CROP, SHOWN, columns_of, geometry
from shardify_support import TestCase, all_keys, digests, info, main, png, rejects, shardctl, shardify, write

SIZES = [(48, 40), (40, 48), (64, 64), (100, 33)]  # width, height


def clipped(box, width, height):
    """A box in pixels of the image in those of the sample, or None if nothing of it is left."""
    sx, sy, left, top = geometry(width, height)
    moved = [
        min(max(value * scale - offset, 0), CROP)
        for value, scale, offset in zip(box, (sx, sy, sx, sy), (left, top, left, top))
    ]
    return moved if moved[0] < moved[2] and moved[1] < moved[3] else None


class BoxCase(TestCase):
    def setUp(self):
        super().setUp()
        self.images, self.labels = self.path / "images", self.path / "labels"
        for i, (width, height) in enumerate(SIZES * 3):
            write(self.images / f"{'ant' if i % 2 else 'bee'}/{i:03}.png", png(i, width, height))

    def assert_rows(self, found, expected):
        self.assertEqual(len(found), len(expected), (found, expected))
        for row, of in zip(found, expected):
            for value, wanted in zip(row, of):
                self.assertAlmostEqual(value, wanted, places=3)


class Yolo(BoxCase):
    def convert(self, *more, out=None):
        return shardify(self.images, out or self.out, *SHOWN, "--yolo", self.labels, *more)

    def label(self, i, text):
        return write(
            self.labels / f"{'ant' if i % 2 else 'bee'}/{i:03}.txt",
            text.encode() if isinstance(text, str) else text,
        )

    def fill(self, keypoints=False):
        """Boxes for all images but the last two; of 010 the file is empty."""
        draw = random.Random(7)
        expected, points, removed = {}, {}, 0
        for i in range(10):
            width, height = (SIZES * 3)[i]
            key, lines = f"{'ant' if i % 2 else 'bee'}/{i:03}.png", []
            expected[key], points[key] = [], []
            for n in range(15):
                x, y = draw.uniform(0, 1), draw.uniform(0, 1)
                w, h = (
                    draw.uniform(0.01, 2 * min(x, 1 - x) + 0.02),
                    draw.uniform(0.01, 2 * min(y, 1 - y) + 0.02),
                )
                w, h = min(w, 1), min(h, 1)
                spots = [(draw.random(), draw.random(), draw.choice((0, 1, 2))) for _ in range(2)]
                line = f"{n % 3} {x:.9f} {y:.9f} {w:.9f}\t{h:.9f}"
                if keypoints:
                    line += "".join(f" {a:.7f} {b:.7f} {v}" for a, b, v in spots)
                lines.append(line)
                box = clipped(
                    [(x - w / 2) * width, (y - h / 2) * height, (x + w / 2) * width, (y + h / 2) * height],
                    width,
                    height,
                )
                if box is None:
                    removed += 1
                    continue
                sx, sy, left, top = geometry(width, height)
                expected[key].append((box, n % 3, w * width * sx * h * height * sy))
                row = []
                for a, b, v in spots:
                    a, b = a * width * sx - left, b * height * sy - top
                    row += [a, b, v] if v and 0 <= a <= CROP and 0 <= b <= CROP else [0, 0, 0]
                points[key].append(row)
            self.label(i, "\r\n".join(lines) + "\n\n")
        self.label(10, "")
        return expected, points, removed

    def test_boxes_are_moved_and_clipped_and_what_the_crop_removes_is_counted(self):
        expected, _, removed = self.fill()
        write(self.labels / "classes.txt", b"ant\nb\xc3\xbcg\nc d\n")
        self.label(99, "0 0.5 0.5 1 1")
        result = self.assert_code(self.convert(), 0)
        self.assertTrue(removed > 5)
        self.assertIn(f"annotations: {150 - removed} objects", result.out)
        self.assertIn(f"{removed} objects outside of the crop, left out", result.out)
        self.assertIn('1 images without: "ant/011.png" has no annotation', result.out)
        self.assertIn('1 annotations without their image: "ant/099.txt"', result.out)
        found = columns_of(self.out)
        self.assertEqual(len(found), 12)
        for key, row in found.items():
            self.assert_rows(row["boxes"], [of[0] for of in expected.get(key, [])])
            self.assertEqual(row["box_labels"], [of[1] for of in expected.get(key, [])])
            self.assert_rows([row["areas"]], [[of[2] for of in expected.get(key, [])]])
            self.assertEqual(row["crowd"], [0] * len(row["boxes"]))
        self.assertEqual(json.loads(info(self.out)["pipeline"]["categories"]), ["ant", "b\u00fcg", "c d"])
        self.assert_code(shardctl("verify", self.out), 0)
        for name, more in (("jobs", ["--jobs", "1"]), ("skip", ["--missing", "skip"])):
            self.assert_code(self.convert(*more, out=self.path / name), 0)
        self.assertEqual(digests(self.path / "jobs"), digests(self.out))
        self.assertEqual(
            all_keys(self.path / "skip"), [key for key in all_keys(self.out) if key != "ant/011.png"]
        )
        self.assert_refused(
            self.convert("--missing", "fail", out=self.path / "fail"), "ant/011.png", "--missing fail"
        )

    def test_keypoints_follow_their_boxes(self):
        expected, points, _ = self.fill(keypoints=True)
        self.assert_code(self.convert("--yolo-keypoints", "2"), 0)
        for key, row in columns_of(self.out).items():
            self.assert_rows(row["keypoints"], points.get(key, []))
        # Without visibility, all that are not 0 0 are visible.
        for i in range(10):
            self.label(i, "0 0.5 0.5 1 1 0.5 0.5 0 0")
        self.assert_code(self.convert("--yolo-keypoints", "2", out=self.path / "two"), 0)
        row = columns_of(self.path / "two")["bee/002.png"]
        self.assert_rows(row["keypoints"], [[12, 12, 2, 0, 0, 0]])

    def test_what_the_columns_are_is_recorded(self):
        self.label(0, "0 0.5 0.5 0.25 0.25 0.5 0.5 2")
        self.assert_code(self.convert("--yolo-keypoints", "1"), 0)
        self.assertEqual(info(self.out)["targets"], {"boxes": "boxes", "keypoints": "keypoints"})

    def test_a_squashed_image_needs_no_look_at_its_size(self):
        self.label(3, "1 0.5 0.25 0.5 0.1")
        self.assert_code(
            shardify(
                self.images, self.out, "--dtype", "u8", "--squash", "20x66", "--yolo", self.labels, "--quiet"
            ),
            0,
        )
        self.assert_rows(columns_of(self.out)["ant/003.png"]["boxes"], [[5, 13.2, 15, 19.8]])

    def test_lines_that_are_not_in_order_make_rejects_that_say_why(self):
        write(self.labels / "classes.txt", b"a\nb\nc")
        cases = [
            "0 0.5 0.5 nan 0.1",
            "0 0.5 0.5 1e400 0.1",
            "0 0.5 0.5 0.1",
            "0 0.5 0.5 0.1 0.1 0.9 0.8 0.2 0.3",
            "3 0.5 0.5 0.1 0.1",
            "-1 0.5 0.5 0.1 0.1",
            "0.5 0.5 0.5 0.1 0.1",
            "0 312 200 30 40",
            "0 0.5 0.5 -0.3 0.3",
            "x y z v w",
            b"\xff\xfe\0\0",
        ]
        words = [
            '"nan" is not a finite number',
            '"1e400" is not a finite number',
            "4 numbers: 5 are needed",
            "polygons of segmentations are not read",
            "class 3 of object 1",
            "class -1: a whole number",
            "class 0.5: a whole number",
            "cx is 312: a fraction of the image, 0 to 1",
            "w is -0.3: a fraction",
            '"x" is not a finite number',
            "is not a finite number",
        ]
        for i, text in enumerate(cases):
            self.label(i, ("0 0.5 0.5 1 1\n" + text) if isinstance(text, str) and i != 4 else text)
        self.label(11, "0 0.5 0.5 0 0.5\n1 0.5 0.5 1 1")
        result = self.assert_code(self.convert(), 1)
        self.assertIn('1 boxes without area, left out: "ant/011.txt" line 1: a box of 0 x 0.5', result.out)
        found = rejects(self.out)
        self.assertEqual(len(found), len(cases))
        for i, word in enumerate(words):
            reason = found[f"{'ant' if i % 2 else 'bee'}/{i:03}.png"]
            self.assertIn(f'annotations "{"ant" if i % 2 else "bee"}/{i:03}.txt": ', reason)
            self.assertIn(word, reason)
            if i not in (4, 10):
                self.assertIn("line 2: ", reason)
        self.assertEqual(all_keys(self.out), ["ant/011.png"])
        self.assert_refused(
            self.convert("--on-error", "fail", out=self.path / "fail"), "--on-error fail", ".txt"
        )
        self.assert_refused(self.convert("--missing", "fail", out=self.path / "fail"), "a box of 0 x 0.5")

    def test_folders_that_are_links_are_looked_into(self):
        self.label(2, "0 0.5 0.5 1 1")
        (self.labels / "bee").rename(self.path / "elsewhere")
        (self.labels / "bee").symlink_to(self.path / "elsewhere")
        self.assert_code(self.convert(), 0)
        self.assertEqual(len(columns_of(self.out)["bee/002.png"]["boxes"]), 1)

    def test_ten_thousand_boxes_are_stored(self):
        self.label(2, "".join(f"{i % 80} 0.5 0.5 {0.1 + i / 20000:.6f} 0.5\n" for i in range(10000)))
        self.assert_code(self.convert(), 0)
        self.assertEqual(len(columns_of(self.out)["bee/002.png"]["boxes"]), 10000)
        self.assert_code(shardctl("verify", self.out), 0)

    def test_changed_files_are_noticed(self):
        self.fill()
        self.assert_code(self.convert(), 0)
        self.label(3, "1 0.5 0.5 0.5 0.5")
        self.assert_refused(self.convert(), "labels or columns are not the same as before")
        self.assert_code(self.convert("--refresh"), 0)
        self.assert_code(self.convert(out=self.path / "fresh"), 0)
        self.assertEqual(digests(self.out), digests(self.path / "fresh"))

    def test_folders_and_options_that_do_not_fit_are_refused(self):
        self.assert_refused(self.convert(), "not a folder")
        write(self.labels / "else.txt", b"")
        self.assert_refused(
            self.convert(), "none of its 1 .txt files has the name of one of the 12 inputs", "else.txt"
        )
        self.label(1, "")
        self.assert_refused(self.convert("--voc", self.labels), "--yolo and --voc exclude each other")
        self.assert_refused(self.convert("--yolo-keypoints", "1001"), "--yolo-keypoints 1001")
        self.assert_refused(
            shardify(self.images, self.out, *SHOWN, "--box-classes", self.labels / "x"),
            "give one of them too",
        )
        write(self.path / "names", b"a\nb\na\n")
        self.assert_refused(self.convert("--box-classes", self.path / "names"), 'it has "a" twice')
        self.assert_refused(self.convert("--pages"), "--pages together with")

    def test_names_come_from_another_data_set(self):
        self.label(0, "1 0.5 0.5 0.5 0.5")
        self.label(1, "0 0.5 0.5 0.5 0.5")
        write(self.path / "names", b"cat\nd\xc3\xb6g, big\n")
        train, val = self.path / "train", self.path / "val"
        self.assert_code(self.convert("--box-classes", self.path / "names", out=train), 0)
        for from_set in (train, train / "dataset.json"):
            self.assert_code(self.convert("--box-classes", from_set, "--overwrite", out=val), 0)
            self.assertEqual(
                info(val)["pipeline"]["categories"], info(train)["pipeline"]["categories"], from_set
            )
        self.label(2, "2 0.5 0.5 0.5 0.5")
        self.assert_code(self.convert("--box-classes", train, "--overwrite", out=val), 1)
        self.assertIn("2", rejects(val)["bee/002.png"])
        plain = self.path / "plain"
        self.assert_code(shardify(self.images, plain, *SHOWN), 0)
        self.assert_refused(self.convert("--box-classes", plain), "has no categories of objects")
        self.assert_refused(self.convert("--box-classes", self.images), "is not a data set")


def voc(objects, size=None, extra=""):
    text = '<?xml version="1.0"?>\n<annotation><folder>x</folder>' + extra
    if size:
        text += f"<size><width>{size[0]}</width><height>{size[1]}</height><depth>3</depth></size>"
    for name, box, *more in objects:
        sides = "".join(
            f"<{side}>{value}</{side}>" for side, value in zip(("xmin", "ymin", "xmax", "ymax"), box)
        )
        text += f"<object><name> {name} </name>{''.join(more)}<bndbox>{sides}</bndbox></object>"
    return text + "</annotation>\n"


class Voc(BoxCase):
    def convert(self, *more, out=None):
        return shardify(self.images, out or self.out, *SHOWN, "--voc", self.labels, *more)

    def label(self, i, text):
        return write(
            self.labels / f"{'ant' if i % 2 else 'bee'}/{i:03}.xml",
            text.encode() if isinstance(text, str) else text,
        )

    def test_boxes_count_pixels_from_1_and_names_are_sorted(self):
        box = "<bndbox><xmin>1</xmin><ymin>1</ymin><xmax>2</xmax><ymax>2</ymax></bndbox>"
        part = f"<part><name>head</name>{box}</part>"
        self.label(
            0,
            voc(
                [
                    ("dog", (1, 1, 48, 40)),
                    ("cat", (3, 5, 30, 20), part, "<difficult>1</difficult>"),
                    ("\u00e4&amp;b", (20.5, 9, 22, 21.25)),
                ],
                (48, 40),
            ),
        )
        self.label(3, voc([("dog", (41, 10, 60, 20))]))  # without a size
        self.label(5, voc([("dog", (1, 1, 3, 4))], (41, 48)))
        self.label(
            7, voc([("dog", (1, 1, 2, 33)), ("dog", (5, 5, 4, 9)), ("cat", (-200, -3, 400, 77))], (0, 0))
        )
        result = self.assert_code(self.convert(), 1)
        self.assertEqual(
            rejects(self.out), {"ant/005.png": "its annotations are for 41x48 pixels, it has 40x48"}
        )
        self.assertIn("2 objects outside of the crop", result.out)
        self.assertIn(
            '1 boxes without area, left out: "ant/007.xml" object 2 ("dog"): a box from 5, 5 to 4, 9',
            result.out,
        )
        self.assertEqual(json.loads(info(self.out)["pipeline"]["categories"]), ["cat", "dog", "\u00e4&b"])
        found = columns_of(self.out)
        self.assertEqual(len(found), 11)
        row = found["bee/000.png"]
        self.assert_rows(
            row["boxes"],
            [clipped(box, 48, 40) for box in ((0, 0, 48, 40), (2, 4, 30, 20), (19.5, 8, 22, 21.25))],
        )
        self.assertEqual((row["box_labels"], row["crowd"]), ([1, 0, 2], [0, 1, 0]))
        self.assert_rows(found["ant/003.png"]["boxes"], [clipped((40, 9, 60, 20), 100, 33)])
        self.assert_rows(found["ant/007.png"]["boxes"], [clipped((-201, -4, 400, 77), 100, 33)])
        self.assertEqual(found["ant/011.png"]["boxes"], [])
        self.assert_code(shardctl("verify", self.out), 0)

    def test_a_list_of_names_decides_numbers_and_what_is_allowed(self):
        write(self.path / "names", b"dog\ncat\n")
        self.label(0, voc([("dog", (1, 1, 48, 40)), ("cat", (3, 5, 30, 20))]))
        self.label(1, voc([("zebra", (1, 1, 40, 40))]))
        self.assert_code(self.convert("--box-classes", self.path / "names"), 1)
        self.assertEqual(columns_of(self.out)["bee/000.png"]["box_labels"], [0, 1])
        self.assertIn('object 1 is a "zebra", which', rejects(self.out)["ant/001.png"])

    def test_hostile_and_broken_files_are_rejects(self):
        bomb = (
            '<!DOCTYPE a [<!ENTITY a "'
            + "x" * 1000
            + '">'
            + "".join(f'<!ENTITY {chr(98 + i)} "{("&" + chr(97 + i) + ";") * 50}">' for i in range(12))
            + "]>"
        )
        dog = ("dog", (1, 1, 9, 9))
        cases = [
            ("<?xml version='1.0'?>" + bomb + "<annotation>&m;</annotation>", "DOCTYPE"),
            ('<!DOCTYPE annotation SYSTEM "file:///etc/passwd"><annotation/>', "DOCTYPE"),
            ("<annotation>" + "<a>" * 100000, "more than 32 elements"),
            ("<annotation><object>", "no XML"),
            ("", "no XML"),
            ("<root/>", "its root is"),
            (voc([("dog", (1, 1, "nan", 9))]), 'xmax is "nan": a finite number'),
            (voc([("dog", (1, 1, "1e99", 9))]), "a finite number of pixels"),
            (voc([("dog", (1, 1, 9))]), 'object 1 ("dog") has no ymax'),
            (voc([("", (1, 1, 9, 9))]), "object 1 has no name"),
            (voc([dog], (-4, 4)), 'size "-4"'),
            (voc([dog], extra="<folder>" + "x" * 5000 + "</folder>"), "bytes of text"),
        ]
        for i, (text, _) in enumerate(cases):
            self.label(i, text)
        write(self.images / "bee" / "good.png", png(1))
        write(self.labels / "bee" / "good.xml", voc([dog]).encode())
        self.assert_code(self.convert(), 1)
        found = rejects(self.out)
        self.assertEqual(len(found), len(cases))
        for i, (_, word) in enumerate(cases):
            self.assertIn(word, found[f"{'ant' if i % 2 else 'bee'}/{i:03}.png"])

    def test_nothing_but_bad_files_is_an_error(self):
        for i in range(12):
            self.label(i, "<a/>")
        self.assert_refused(self.convert(), "none of the 12 inputs", "its root is")

    def test_unreadable_files_are_rejects(self):
        if os.geteuid() == 0:
            path = self.labels / "bee" / "000.xml"
            path.parent.mkdir(parents=True)
            os.symlink("nowhere", path)
        else:
            os.chmod(self.label(0, voc([])), 0)
        self.label(1, voc([]))
        self.assert_code(self.convert(), 1)
        self.assertIn("bee/000.xml", rejects(self.out)["bee/000.png"])


if __name__ == "__main__":
    main()
