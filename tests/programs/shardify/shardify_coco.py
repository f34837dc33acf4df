#!/usr/bin/env python3
"""shardify --coco: boxes, keypoints and captions in the pixels of the stored samples,
and files of annotations that are not in order."""

import json
import math
import random
import struct
import unittest
from collections import defaultdict

from shardify_support import (
    SANITIZED,
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

SIZES = [(48, 40), (40, 48), (64, 64), (100, 33)]  # width, height
RESIZE, CROP = 32, 24
SHOWN = ["--resize", str(RESIZE), "--crop", str(CROP), "--dtype", "u8", "--samples-per-shard", "4"]
CODES = {"F32": "f", "I64": "q", "U8": "B"}


def geometry(width, height):
    """Scale and offset of x and y: torchvision's Resize(32) and CenterCrop(24)."""
    short, long = min(width, height), max(width, height)
    resized = (
        (RESIZE, int(RESIZE * long / short)) if width <= height else (int(RESIZE * long / short), RESIZE)
    )
    # round half to even
    return (
        resized[0] / width,
        resized[1] / height,
        round((resized[0] - CROP) / 2),
        round((resized[1] - CROP) / 2),
    )


def columns_of(out):
    """{key: {column: rows}} of ragged and text columns."""
    found = {}
    for path in shards(out):
        tensors = read_shard(path)[1]
        for i, key in enumerate(keys_of(path)):
            row = found.setdefault(key, {})
            for name in tensors:
                if name + "_offsets" not in tensors:
                    continue
                dtype, shape, data = tensors[name]
                offsets = [v for (v,) in struct.iter_unpack("<Q", tensors[name + "_offsets"][2])]
                each = math.prod(shape[1:])
                values = [v for (v,) in struct.iter_unpack("<" + CODES[dtype], data)][
                    each * offsets[i] : each * offsets[i + 1]
                ]
                row[name] = (
                    bytes(values).decode()
                    if name == "captions"
                    else values
                    if len(shape) == 1
                    else [values[k : k + each] for k in range(0, len(values), each)]
                )
    return found


class Coco(TestCase):
    def setUp(self):
        super().setUp()
        self.images = self.path / "in"
        for i, (width, height) in enumerate(SIZES * 3):
            write(self.images / f"{i:03}.png", png(i, width, height))
        self.coco = {
            "info": {"year": 2017, "nested": [[1], {"id": 3}]},
            "licenses": [{"id": 1, "name": "x"}],
            "images": [
                {"id": 100 + i, "file_name": f"{i:03}.png", "width": w, "height": h}
                for i, (w, h) in enumerate(SIZES * 3)
            ],
            "categories": [
                {"id": 7, "name": "dog", "supercategory": "animal"},
                {"id": 3, "name": 'c"at\u00fc'},
            ],
            "annotations": [],
        }
        self.file = self.path / "coco.json"

    def add(self, image, box=None, category=3, **more):
        entry = {
            "id": len(self.coco["annotations"]) + 1,
            "image_id": 100 + image,
            "category_id": category,
            **more,
        }
        if box is not None:
            entry.update(
                bbox=box,
                area=more.get("area", box[2] * box[3] / 2),
                iscrowd=more.get("iscrowd", 0),
                segmentation=more.get("segmentation", [[1.5, 2, 3e0, -4]]),
            )
        self.coco["annotations"].append(entry)

    def convert(self, *more, out=None, images=None):
        self.file.write_text(json.dumps(self.coco))
        return shardify(images or self.images, out or self.out, *SHOWN, "--coco", self.file, *more)

    def assert_rows(self, found, expected):
        self.assertEqual(len(found), len(expected), (found, expected))
        for a, b in zip(found, expected):
            for x, y in zip(a, b):
                self.assertAlmostEqual(x, y, places=4)

    def test_boxes_are_where_the_objects_are_in_the_sample(self):
        draw = random.Random(4)
        expected = defaultdict(list)
        for n in range(200):
            i = draw.randrange(11)  # the last one stays without
            width, height = (SIZES * 3)[i]
            x, y = draw.uniform(-3, width), draw.uniform(-3, height)
            w, h = draw.uniform(0.5, width), draw.uniform(0.5, height)
            crowd = n % 5 == 0
            self.add(i, [x, y, w, h], category=7 if n % 3 else 3, iscrowd=int(crowd), area=w * h / 3)
            sx, sy, left, top = geometry(width, height)
            box = [
                min(max(x * sx - left, 0), CROP),
                min(max(y * sy - top, 0), CROP),
                min(max((x + w) * sx - left, 0), CROP),
                min(max((y + h) * sy - top, 0), CROP),
            ]
            if box[0] < box[2] and box[1] < box[3]:
                expected[f"{i:03}.png"].append((box, 1 if n % 3 else 0, w * h / 3 * sx * sy, int(crowd)))
        kept = sum(map(len, expected.values()))
        self.assertTrue(100 < kept < 200, kept)  # some are cut away
        result = self.assert_code(self.convert(), 0)
        self.assertIn(f"annotations: {kept} objects", result.out)
        self.assertIn(f"{200 - kept} objects outside of the crop, left out", result.out)
        self.assertIn('1 images without: "011.png" has no annotation', result.out)
        found = columns_of(self.out)
        self.assertEqual(len(found), 12)
        for key, row in found.items():
            self.assert_rows(row["boxes"], [of[0] for of in expected[key]])
            self.assertEqual(row["box_labels"], [of[1] for of in expected[key]])
            self.assert_rows([row["areas"]], [[of[2] for of in expected[key]]])
            self.assertEqual(row["crowd"], [of[3] for of in expected[key]])
            self.assertNotIn("keypoints", row)
        self.assertEqual(json.loads(info(self.out)["pipeline"]["categories"]), ['c"at\u00fc', "dog"])
        self.assert_code(shardctl("verify", self.out), 0)
        before = digests(self.out)
        self.assertIn("already complete", self.assert_code(self.convert(), 0).out)
        draw.shuffle(self.coco["images"])
        draw.shuffle(self.coco["categories"])
        self.assert_code(self.convert(out=self.path / "again"), 0)
        self.assertEqual(digests(self.path / "again"), before)
        for entry in self.coco["annotations"]:
            entry["area"] += 1
        self.assert_refused(self.convert(), "labels or columns are not the same as before")
        self.assert_code(self.convert("--refresh"), 0)

    def test_a_squashed_image_scales_both_sides_by_themselves(self):
        self.add(3, [10, 3, 50, 11])
        self.file.write_text(json.dumps(self.coco))
        self.assert_code(
            shardify(
                self.images, self.out, "--dtype", "u8", "--squash", "20x66", "--coco", self.file, "--quiet"
            ),
            0,
        )
        self.assert_rows(columns_of(self.out)["003.png"]["boxes"], [[2, 6, 12, 28]])

    def test_keypoints_and_captions(self):
        self.add(0, [0, 0, 48, 40], keypoints=[24, 20, 2, 0, 0, 1, 10, 20, 0])
        self.add(0, [10, 10, 20, 20])
        self.add(1, caption="first\nline  ")
        self.add(1, caption="zwei \u00fc")
        result = self.assert_code(self.convert(), 0)
        self.assertIn("annotations: 2 objects", result.out)
        found = columns_of(self.out)
        sx, sy, left, top = geometry(48, 40)
        self.assert_rows(
            found["000.png"]["keypoints"], [[24 * sx - left, 20 * sy - top, 2, 0, 0, 0, 0, 0, 0], [0] * 9]
        )
        self.assertEqual(found["001.png"]["captions"], "first line\nzwei \u00fc")
        self.assertEqual(found["002.png"]["captions"], "")
        self.coco["annotations"] = self.coco["annotations"][2:]
        self.assert_code(self.convert(out=self.path / "texts"), 0)
        self.assertEqual(set(columns_of(self.path / "texts")["000.png"]), {"captions"})

    def test_what_the_columns_are_is_recorded_and_stays(self):
        """Boxes and keypoints must move with the pixels: dataset.json says which columns they are,
        whatever is made of the data set."""
        known = {"boxes": "boxes", "keypoints": "keypoints"}
        for i in range(12):
            self.add(i, [0, 0, 30, 30], keypoints=[24, 20, 2])
        self.assert_code(self.convert(), 0)
        self.assertEqual(info(self.out)["targets"], known)
        self.assert_code(self.convert("--append", images=self.more()), 0)
        self.assertEqual((info(self.out)["targets"], len(info(self.out)["parts"])), (known, 2))
        self.assert_code(shardctl("repack", self.out, self.path / "packed", "--codec", "packed"), 0)
        self.assert_code(shardctl("copy", self.out, self.path / "copy"), 0)
        self.assert_code(self.convert(out=self.path / "second", images=self.more("other")), 0)
        self.assert_code(shardctl("join", self.path / "joined", self.out, self.path / "second"), 0)
        for name in ("packed", "copy", "joined"):
            self.assertEqual(info(self.path / name)["targets"], known, name)
            self.assert_code(shardctl("verify", self.path / name), 0)

    def more(self, name="more"):
        """Other images of the same annotations: a folder of their own."""
        folder = self.path / name
        for i, (width, height) in enumerate(SIZES):
            write(folder / f"{name}-{i:03}.png", png(50 + i, width, height))
            self.coco["images"].append(
                {
                    "id": 1000 * len(name) + i,
                    "file_name": f"{name}-{i:03}.png",
                    "width": width,
                    "height": height,
                }
            )
            self.coco["annotations"].append(
                {
                    "id": len(self.coco["annotations"]) + 1,
                    "image_id": 1000 * len(name) + i,
                    "category_id": 3,
                    "bbox": [1, 2, 20, 20],
                    "area": 9,
                    "iscrowd": 0,
                    "keypoints": [4, 5, 2],
                }
            )
        return folder

    def test_names_without_folders_find_images_in_folders(self):
        for path in sorted(self.images.glob("*.png")):
            write(self.images / ("a" if int(path.stem) % 2 else "b") / path.name, path.read_bytes())
            path.unlink()
        self.add(5, [0, 0, 40, 48])
        self.assert_code(self.convert(), 0)
        self.assertEqual(info(self.out)["classes"], ["a", "b"])
        self.assertEqual(len(columns_of(self.out)["a/005.png"]["boxes"]), 1)
        write(self.images / "b" / "005.png", png(5, 40, 48))
        self.assert_refused(self.convert(out=self.path / "twice"), "both have the name of its image 105")
        self.coco["images"][5]["file_name"] = "a/005.png"
        self.assert_code(self.convert(out=self.path / "paths"), 0)
        self.assertEqual(
            [key for key, row in columns_of(self.path / "paths").items() if row["boxes"]], ["a/005.png"]
        )

    def test_what_is_missing_is_counted_left_out_or_refused(self):
        self.add(0, [0, 0, 48, 40])
        self.add(0, [0, 0, 48, 40], category=99)
        self.add(1, [5, 5, 0, 10])
        self.add(1, [5, 5, 10, -10])
        self.add(900, [5, 5, 10, 10])
        self.coco["images"].append({"id": 50, "file_name": "gone.png", "width": 10, "height": 10})
        self.add(-50, [0, 0, 5, 5])
        result = self.assert_code(self.convert(), 0)
        for line in (
            "annotations: 1 object\n",
            '10 images without: first "002.png" has no annotation',
            (
                '2 annotations without their image: first annotation 6 is of "gone.png", '
                "which is not among the inputs"
            ),
            "1 of unknown categories, left out: annotation 2 is of category 99",
            "2 boxes without area, left out: first annotation 3 ",
        ):
            self.assertIn(line, result.out)
        self.assertEqual(len(all_keys(self.out)), 12)
        self.assert_code(self.convert("--missing", "skip", out=self.path / "less"), 0)
        self.assertEqual(all_keys(self.path / "less"), ["000.png", "001.png"])
        dry = json.loads(self.assert_code(self.convert("--dry-run", "--json", out=self.path / "dry"), 0).out)
        self.assertEqual(
            dry["annotations"],
            {
                "objects": 1,
                "images_without": 10,
                "without_image": 2,
                "unknown_category": 1,
                "invalid_boxes": 2,
                "cut_away": 0,
                "beyond_image": 0,
                "beside_folders": 0,
            },
        )
        for keep, why in (
            (slice(0, 1), '"001.png" has no annotation (--missing fail'),
            (slice(0, 5), "annotation 5 is of image 1000, which the file does not have"),
        ):
            annotations, self.coco["annotations"] = self.coco["annotations"], self.coco["annotations"][keep]
            self.assert_refused(self.convert("--missing", "fail", out=self.path / "fail"), why)
            self.assertEqual(state(self.path / "fail"), "absent")
            self.coco["annotations"] = annotations

    def test_labels_of_a_table_go_with_it(self):
        self.add(0, [0, 0, 48, 40])
        self.add(2, [0, 0, 64, 64])
        table = self.path / "t.csv"
        table.write_text("path,label,angle\n" + "".join(f"{i:03}.png,c{i % 2},{i}\n" for i in range(12)))
        self.assert_code(self.convert("--labels", table, "--column", "angle:f32", "--missing", "empty"), 0)
        self.assertEqual(
            [column["name"] for column in info(self.out)["columns"]],
            ["labels", "angle", "boxes", "box_labels", "areas", "crowd"],
        )
        table.write_text("path,label\n" + "".join(f"{i:03}.png,{i}\n" for i in (0, 2)))
        self.assert_code(self.convert("--labels", table, "--unlisted", "skip", out=self.path / "two"), 0)
        found = columns_of(self.path / "two")
        self.assertEqual({key: len(row["boxes"]) for key, row in found.items()}, {"000.png": 1, "002.png": 1})
        table.write_text("path,boxes\n" + "".join(f"{i:03}.png,1\n" for i in range(12)))
        self.assert_refused(
            self.convert("--labels", table, "--column", "boxes:f32", out=self.path / "clash"),
            '"boxes" occurs twice',
        )

    def test_an_image_of_another_size_is_a_reject(self):
        self.add(0, [0, 0, 48, 40])
        self.coco["images"][0].update(width=40, height=48)
        self.assert_code(self.convert(), 1)
        self.assertIn("annotations are for 40x48 pixels, it has 48x40", rejects(self.out)["000.png"])
        self.assertEqual(len(all_keys(self.out)), 11)

    def test_files_that_are_not_in_order_are_refused_with_the_place(self):
        self.add(0, [0, 0, 48, 40])
        good = json.dumps(self.coco)
        two = json.loads(good)
        two["images"].append(dict(two["images"][0], id=1))
        same_id = json.loads(good)
        same_id["images"].append({"id": 100, "file_name": "x.png", "width": 1, "height": 1})
        points = json.loads(good)
        points["annotations"] += [
            dict(points["annotations"][0], id=2, keypoints=[1, 2, 2]),
            dict(points["annotations"][0], id=3, keypoints=[1, 2, 2] * 2),
        ]
        no_size = json.loads(good)
        del no_size["images"][0]["width"]
        other = json.loads(good)
        for image in other["images"]:
            image["file_name"] = "train/" + image["file_name"]
        for text, why in (
            ("", "is empty"),
            ("[]", 'no lists "images" and "annotations"'),
            ("{}", 'no lists "images"'),
            (good[:-30], "not valid JSON"),
            (good.replace("[0, 0, 48, 40]", "[0, NaN, 48, 40]"), "not valid JSON"),
            (good.replace("[0, 0, 48, 40]", "[0, 0, 48]"), "a bbox of 3 numbers"),
            (
                good.replace('"image_id": 100', '"image_id": "100"'),
                'annotation 1: image_id is "100": it must be a whole number',
            ),
            (good.replace('"id": 103', '"id": 1.5'), "images[3]: id is 1.5: it must be a whole number"),
            (good.replace('"width": 64', '"width": 0', 1), "image 102 has a width of 0"),
            (good.replace('"file_name": "003.png", ', ""), "image 103 has no file_name"),
            (json.dumps(two), 'two images have the file_name "000.png"'),
            (json.dumps(same_id), "two images have the id 100"),
            (json.dumps(points), "annotation 3 has 2 keypoints, those before it 1"),
            (json.dumps(no_size), "image 100 has no width and height"),
            (
                json.dumps(other),
                (
                    'none of its 12 images is among the 12 inputs: its first file_name is "train/000.png", '
                    'the first input "000.png"'
                ),
            ),
            (good.replace('"bbox"', '"bbix"'), "none of its annotations has a bbox"),
            (
                '{"images": [{"id": 1, "file_name": "x", "bbox": [], "caption": 1}], "annotations": [[[1]]]}',
                "must be an object",
            ),
            (
                '{"images": [{"id": 1, "file_name": "x", "caption": 1}], "annotations": [["text", 3]]}',
                "must be an object",
            ),
            ('{"images": [], "annotations": {"a": {"id": 1, "image_id": 2}}}', "must be lists"),
        ):
            self.file.write_text(text)
            result = shardify(self.images, self.out, *SMALL, "--coco", self.file)
            self.assert_refused(result, why)
            self.assertIn("coco.json", result.err)
            self.assertEqual(state(self.out), "absent")
        self.assert_refused(
            shardify(self.images, self.out, *SMALL, "--coco", self.path / "none.json"), "none.json"
        )
        self.assert_refused(
            shardify(self.images, self.out, *SMALL, "--coco", self.images), "not a regular file"
        )
        self.file.write_text(good)
        self.assert_refused(
            shardify(self.images, self.out, *SMALL, "--coco", self.file, "--missing", "maybe"),
            "expected empty, skip or fail",
        )

    @unittest.skipIf(SANITIZED, "a sanitizer needs terabytes of address space")
    def test_memory_is_that_of_the_objects_and_not_of_the_file(self):
        padding = [[float(i) for i in range(20000)]] * 10
        for _ in range(20):
            self.add(0, [0, 0, 48, 40], segmentation=padding)
        self.file.write_text(json.dumps(self.coco))
        size = self.file.stat().st_size
        self.assertGreater(size, 25 << 20)
        result = run(
            [
                "/usr/bin/env",
                "bash",
                "-c",
                'ulimit -d 400000; exec "$@"',
                "-",
                SHARDIFY,
                self.images,
                self.out,
                *SMALL,
                "--jobs",
                "2",  # each thread has memory of its own
                "--coco",
                self.file,
            ]
        )
        self.assert_code(result, 0)
        self.assertEqual(len(columns_of(self.out)["000.png"]["boxes"]), 20)


if __name__ == "__main__":
    main()
