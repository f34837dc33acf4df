#!/usr/bin/env python3
"""shardify: where labels come from, and what is refused in a table of them."""

import csv
import io
import json
import os
import struct
from pathlib import Path

from shardify_support import (
    SMALL,
    TestCase,
    all_keys,
    all_labels,
    digests,
    info,
    keys_of,
    main,
    make_images,
    png,
    read_shard,
    rejects,
    shardctl,
    shardify,
    shards,
    state,
    write,
)


class Folders(TestCase):
    def test_class_is_the_top_folder_and_its_id_the_position_of_its_name(self):
        images = make_images(self.path / "in", ("zebra", "Ant", "bee"), each=2)
        write(images / "bee" / "deep" / "er" / "x.png", png(5))
        self.assert_code(shardify(images, self.out, *SMALL), 0)
        self.assertEqual(info(self.out)["classes"], ["Ant", "bee", "zebra"])
        self.assertEqual(
            all_keys(self.out),
            [
                "Ant/0.png",
                "Ant/1.png",
                "bee/0.png",
                "bee/1.png",
                "bee/deep/er/x.png",
                "zebra/0.png",
                "zebra/1.png",
            ],
        )
        self.assertEqual(all_labels(self.out), [0, 0, 1, 1, 1, 2, 2])

    def test_without_subfolders_every_label_is_0(self):
        for i in range(3):
            write(self.path / "in" / f"{i}.png", png(i))
        self.assert_code(shardify(self.path / "in", self.out, *SMALL), 0)
        self.assertEqual(all_labels(self.out), [0, 0, 0])
        self.assertEqual(info(self.out)["classes"], [])

    def test_a_file_beside_the_class_folders_is_rejected(self):
        images = make_images(self.path / "in", ("a", "b"), each=2)
        write(images / "stray.png", png(9))
        self.assert_code(shardify(images, self.out, *SMALL), 1)
        self.assertEqual(len(all_keys(self.out)), 4)
        self.assertIn("has no class", rejects(self.out)["stray.png"])

    def test_a_folder_without_images_is_no_class_and_a_line_says_so(self):
        images = make_images(self.path / "in", ("a", "c"), each=1)
        (images / "b" / "deep").mkdir(parents=True)
        write(images / "b" / "notes.txt", b"none here")
        shown = [option for option in SMALL if option != "--quiet"]
        result = self.assert_code(shardify(images, self.out, *shown), 0)
        self.assertEqual(info(self.out)["classes"], ["a", "c"])
        self.assertEqual(all_labels(self.out), [0, 1])
        self.assertIn("no classes: 1 folder without images: b\n", result.out)
        self.assertIn("classes: 2: a, c\n", result.out)
        self.assertIn(
            "no classes: 1 folder without images: b\n",
            shardify(images, self.path / "o", "--dry-run", *shown).out,
        )

    def test_a_folder_that_holds_only_bad_or_unreadable_images_keeps_its_number(self):
        images = make_images(self.path / "in", ("a", "d"), each=1)
        write(images / "b" / "x.jpg", b"no picture")
        (images / "c").mkdir()
        os.symlink("/nowhere", images / "c" / "gone")
        self.assert_code(shardify(images, self.out, *SMALL), 1)
        self.assertEqual(info(self.out)["classes"], ["a", "b", "c", "d"])
        self.assertEqual(all_labels(self.out), [0, 3])

    def test_the_summary_names_the_classes_but_not_a_thousand(self):
        images = make_images(self.path / "in", [f"n{i:04}" for i in range(1000)], each=1)
        result = self.assert_code(shardify(images, self.out, "--resize", "8", "--crop", "8"), 0)
        line = next(line for line in result.out.splitlines() if line.startswith("classes:"))
        self.assertTrue(line.startswith("classes: 1,000: n0000, n0001, "), line)
        self.assertTrue(line.endswith(", ..., n0999"), line)
        self.assertLess(len(line), 200)

    def test_a_link_that_leads_back_up_is_a_reject_and_no_class(self):
        images = make_images(self.path / "in", ("a", "b"), each=1)
        os.symlink("..", images / "a" / "up")
        os.symlink(".", images / "A")
        self.assert_code(shardify(images, self.out, *SMALL), 1)
        self.assertEqual(info(self.out)["classes"], ["a", "b"])
        self.assertEqual(rejects(self.out), {"A": "symbolic link loop", "a/up": "symbolic link loop"})

    def test_classes_that_differ_only_by_normalisation_stay_two(self):
        images = make_images(self.path / "in", ("caf\u00e9", "cafe\u0301"), each=2)
        self.assert_code(shardify(images, self.out, *SMALL), 0)
        self.assertEqual(info(self.out)["classes"], ["cafe\u0301", "caf\u00e9"])
        self.assertEqual(all_labels(self.out), [0, 0, 1, 1])


class Tables(TestCase):
    def setUp(self):
        super().setUp()
        self.images = make_images(self.path / "in", ("x", "y"), each=2)
        self.csv = self.path / "labels.csv"

    def convert(self, text, *more):
        self.csv.write_bytes(text.encode() if isinstance(text, str) else text)
        return shardify(self.images, self.out, "--labels", self.csv, *SMALL, *more)

    def tensor(self):
        self.assertEqual(len(shards(self.out)), 1)
        return read_shard(shards(self.out)[0])[1]["labels"]

    def test_whole_numbers_are_i64(self):
        self.assert_code(
            self.convert("path,label\ny/1.png,-7\nx/0.png,3\nx/1.png,9223372036854775807\ny/0.png,0\n"), 0
        )
        self.assertEqual(self.tensor()[:2], ("I64", [4]))
        self.assertEqual(all_labels(self.out), [3, 2**63 - 1, 0, -7])
        self.assertEqual(info(self.out)["classes"], [])

    def test_the_header_line_and_the_last_line_break_are_optional_and_crlf_is_fine(self):
        self.assert_code(self.convert("x/0.png,1\r\nx/1.png,2\r\ny/0.png,3\r\ny/1.png,4"), 0)
        self.assertEqual(all_labels(self.out), [1, 2, 3, 4])

    def test_a_byte_order_mark_is_skipped(self):
        self.assert_code(
            self.convert(b"\xef\xbb\xbfpath,label\nx/0.png,1\nx/1.png,2\ny/0.png,3\ny/1.png,4\n"), 0
        )
        self.assertEqual(all_labels(self.out), [1, 2, 3, 4])

    def test_numbers_with_fractions_are_f32_of_one_column(self):
        self.assert_code(self.convert("x/0.png,0.5\nx/1.png,-1e3\ny/0.png,2\ny/1.png,0.1\n"), 0)
        self.assertEqual(self.tensor()[:2], ("F32", [4, 1]))
        self.assertEqual(self.tensor()[2], struct.pack("<4f", 0.5, -1000, 2, 0.1))

    def test_several_columns_are_f32(self):
        self.assert_code(
            self.convert("path,a,b,c\nx/0.png,1,2,3\nx/1.png,4,5,6\ny/0.png,7,8,9\ny/1.png,.5,.25,0\n"), 0
        )
        self.assertEqual(self.tensor()[:2], ("F32", [4, 3]))
        self.assertEqual(all_labels(self.out), [(1, 2, 3), (4, 5, 6), (7, 8, 9), (0.5, 0.25, 0)])

    def test_names_are_classes_in_sorted_order(self):
        self.assert_code(self.convert('x/0.png,owl\nx/1.png,"ant, red"\ny/0.png,owl\ny/1.png,"a ""b"""\n'), 0)
        self.assertEqual(info(self.out)["classes"], ['a "b"', "ant, red", "owl"])
        self.assertEqual(all_labels(self.out), [2, 1, 2, 0])

    def test_an_image_without_a_row_is_rejected(self):
        self.assert_code(self.convert("x/0.png,1\nx/1.png,2\ny/1.png,4\n"), 1)
        self.assertEqual(rejects(self.out), {"y/0.png": "has no label in labels.csv"})
        self.assertEqual(all_labels(self.out), [1, 2, 4])

    def test_a_table_may_choose_a_subset(self):
        text = "path,label\nx/0.png,1\ny/1.png,4\n"
        self.assert_code(self.convert(text, "--unlisted", "reject"), 1)
        self.assertEqual(sorted(rejects(self.out)), ["x/1.png", "y/0.png"])
        self.out = self.path / "subset"
        result = self.assert_code(self.convert(text, "--unlisted", "skip"), 0)
        self.assertEqual(dict(zip(all_keys(self.out), all_labels(self.out))), {"x/0.png": 1, "y/1.png": 4})
        self.assertEqual((info(self.out)["inputs"], rejects(self.out)), (2, {}))
        options = [option for option in SMALL if option != "--quiet"] + [
            "--labels",
            str(self.csv),
            "--unlisted",
            "skip",
        ]
        result = self.assert_code(shardify(self.images, self.path / "again", *options), 0)
        self.assertIn(f'left out: 2 images that "{self.csv}" does not name', result.out)
        summary = json.loads(shardify(self.images, self.path / "again", *options, "--json").out)
        self.assertEqual(summary["unlisted"], 2)
        self.assert_refused(self.convert(text, "--unlisted", "maybe"), '--unlisted "maybe"')

    def test_a_row_that_names_what_is_skipped_says_so(self):
        write(self.images / "x" / ".hidden" / "a.png", png(1))
        write(self.images / "x" / "notes.txt", b"no picture")
        for path, words in (
            ("x/.hidden/a.png", '"x/.hidden" is skipped: hidden name'),
            ("x/notes.txt", "no image by name or content"),
        ):
            self.assert_refused(self.convert(f"x/0.png,1\n{path},2\n"), f'"{self.csv}": line 2: ', words)

    def test_names_with_quotes_commas_and_line_breaks_are_found(self):
        name = 'we"ird,\nname.png'
        write(self.images / "x" / name, png(3))
        self.assert_code(
            self.convert('x/0.png,1\n"x/we""ird,\nname.png",5\nx/1.png,2\ny/0.png,3\ny/1.png,4\n'), 0
        )
        self.assertEqual(dict(zip(all_keys(self.out), all_labels(self.out)))['x/we"ird,\\x0aname.png'], 5)

    def test_errors_name_the_file_and_the_line(self):
        good = "path,label\nx/0.png,1\n"
        for text, line, words in (
            (good + "nowhere.png,2\n", 3, 'no such image: "nowhere.png"'),
            (good + "x/0.png,2\n", 3, "labelled twice"),
            (good + "x/1.png\n", 3, "1 fields, but 2 are expected"),
            (good + "x/1.png,2,3\n", 3, "3 fields, but 2 are expected"),
            (good + '\n"x/1.png,2\n', 4, "a quoted field has no closing quote"),
            (good + '"x/1.png"z,2\n', 3, "text after a quoted field"),
            ("path,a,b\nx/0.png,1,2\nx/1.png,1,two\n", 3, '"two" is not a finite number'),
            ("path,a,b\nx/0.png,1,2\nx/1.png,1,nan\n", 3, '"nan" is not a finite number'),
            ("x/0.png,0.5\nx/1.png,inf\n", 2, '"inf" is not a finite number'),
        ):
            with self.subTest(text=text):
                self.assert_refused(self.convert(text), f'"{self.csv}": line {line}: ', words)
                self.assertFalse(self.out.exists())

    def test_an_empty_or_absent_table_is_refused(self):
        self.assert_refused(self.convert(""), 'labels.csv" has no rows')
        self.assert_refused(self.convert("path,label\n"), 'labels.csv" has no rows')
        self.assert_refused(
            shardify(self.images, self.out, "--labels", self.path / "none.csv", *SMALL), "none.csv"
        )
        self.assert_refused(shardify(self.images, self.out, "--labels", self.path, *SMALL), self.path)

    def test_a_table_of_the_wrong_folder_names_the_folder(self):
        self.assert_refused(self.convert("0.png,1\n"), "paths are relative to", self.images)


class Lists(TestCase):
    def setUp(self):
        super().setUp()
        self.images = make_images(self.path / "in", ("b", "a"), each=2)
        self.lines = "".join(f"{p}\n" for p in sorted(self.images.rglob("*.png"), reverse=True))

    def expected(self, keys=("a/0.png", "a/1.png", "b/0.png", "b/1.png"), labels=(0, 0, 1, 1)):
        self.assertEqual(all_keys(self.out), list(keys))
        self.assertEqual(all_labels(self.out), list(labels))

    def test_a_list_file_gives_what_the_folder_gives(self):
        (self.path / "list.txt").write_text(self.lines)
        self.assert_code(shardify(f"@{self.path}/list.txt", self.out, *SMALL), 0)
        self.expected()

    def test_standard_input_is_a_list(self):
        self.assert_code(shardify("-", self.out, *SMALL, input=self.lines.encode()), 0)
        self.expected()

    def test_relative_paths_and_line_ends_of_windows(self):
        text = self.lines.replace(str(self.path), ".").replace("\n", "\r\n")
        self.assert_code(shardify("-", self.out, *SMALL, input=text.encode(), cwd=self.path), 0)
        self.expected()

    def test_root_says_what_keys_and_classes_are_relative_to(self):
        self.assert_code(shardify("-", self.out, "--root", self.path, *SMALL, input=self.lines.encode()), 0)
        self.expected(keys=("in/a/0.png", "in/a/1.png", "in/b/0.png", "in/b/1.png"), labels=(0, 0, 0, 0))
        self.assertEqual(info(self.out)["classes"], ["in"])

    def test_root_of_a_list_with_one_class(self):
        lines = "".join(line + "\n" for line in self.lines.splitlines() if "/a/" in line)
        self.assert_code(shardify("-", self.out, "--root", self.images, *SMALL, input=lines.encode()), 0)
        self.assertEqual(info(self.out)["classes"], ["a"])

    def test_a_table_goes_with_a_list(self):
        write(self.path / "l.csv", b"a/0.png,5\na/1.png,6\nb/0.png,7\nb/1.png,8\n")
        self.assert_code(
            shardify("-", self.out, "--labels", self.path / "l.csv", *SMALL, input=self.lines.encode()), 0
        )
        self.expected(labels=(5, 6, 7, 8))

    def test_refusals(self):
        first = self.lines.splitlines()[0]
        for text, options, words in (
            ("", [], ["nothing to convert"]),
            ("\n\n", [], ["nothing to convert"]),
            (self.lines + first + "\n", [], ["b/1.png", "listed twice"]),
            (self.lines + str(Path(first).parent) + "/./1.png\n", [], ["listed twice"]),
            (self.lines, ["--root", "/nowhere"], [first, 'not below --root "/nowhere/"']),
        ):
            with self.subTest(text=text, options=options):
                self.assert_refused(shardify("-", self.out, *options, *SMALL, input=text.encode()), *words)
        self.assert_refused(shardify("@/nowhere.txt", self.out, *SMALL), "/nowhere.txt", "No such file")
        self.assert_refused(shardify(f"@{self.path}", self.out, *SMALL), self.path)

    def test_a_path_that_is_not_there_is_a_reject(self):
        text = self.lines + f"{self.images}/a/gone.png\n"
        self.assert_code(shardify("-", self.out, *SMALL, input=text.encode()), 1)
        self.assertIn("No such file", rejects(self.out)["a/gone.png"])

    def convert(self, text, *options, **how):
        return shardify("-", self.out, *options, *SMALL, input=text.encode(), **how)

    def test_a_wrong_path_changes_nobodys_class(self):
        for wrong in (
            f"{self.path}/im/a/0.png",
            f"{self.images}/0.png",
            f"{self.images}/a/deep/0.png",
            f"{self.path}/x.png",
            "/x.png",
        ):
            with self.subTest(wrong=wrong):
                result = self.assert_refused(
                    self.convert(f"{self.lines}{wrong}\n"), "not obvious", "give --root", 'with --root "'
                )
                self.assertRegex(result.err, r'the keys would be "[^"]+" and "[^"]*a/[^"]*\.png"')
                self.assertFalse(self.out.exists())
        # A folder that is not there cannot be a class.
        lines = self.lines + f"{self.images}/0/0.png\n{self.images}/aa/1.png\n"
        self.assert_refused(self.convert(lines), f'"{self.images}/0/0.png"', "give --root", "not a class")
        self.assert_code(self.convert(lines, "--root", self.images), 1)
        self.expected()
        self.assertEqual(info(self.out)["classes"], ["a", "b"])
        self.assertEqual(sorted(rejects(self.out)), ["0/0.png", "aa/1.png"])

    def test_relative_and_absolute_paths_together_need_a_root(self):
        lines = self.lines.splitlines()
        mixed = "\n".join([lines[0].replace(f"{self.path}/", ""), *lines[1:]]) + "\n"
        self.assert_refused(
            self.convert(mixed, cwd=self.path),
            "relative and absolute",
            '"in/b/1.png"',
            lines[1],
            "give --root",
        )
        for root in (self.images, "in", "./in/"):
            self.out = self.path / f"out{len(str(root))}"
            self.assert_code(self.convert(mixed, "--root", root, cwd=self.path), 0)
            self.expected()
            self.assertEqual(info(self.out)["classes"], ["a", "b"])
        self.assert_refused(
            self.convert(mixed + "../else/x/1.png\n", "--root", ".", cwd=self.path),
            "../else/x/1.png",
            "not below",
        )
        self.assert_refused(
            self.convert(mixed + lines[0] + "\n", "--root", "in", cwd=self.path), "listed twice"
        )

    def test_images_in_deeper_folders_take_a_root(self):
        write(self.images / "a" / "deep" / "x.png", png(3))
        lines = self.lines + f"{self.images}/a/deep/x.png\n"
        self.assert_refused(
            self.convert(lines), f'with --root "{self.images}/" the keys would be', '"a/deep/x.png"'
        )
        self.assert_code(self.convert(lines, "--root", self.images), 0)
        self.expected(("a/0.png", "a/1.png", "a/deep/x.png", "b/0.png", "b/1.png"), (0, 0, 0, 1, 1))

    def test_litter_in_a_list_is_passed_over_as_in_a_folder(self):
        for name in (
            ".DS_Store",
            "README.md",
            "a/Thumbs.db",
            "a/.ipynb_checkpoints/0-checkpoint.png",
            "__MACOSX/a/0.png",
            ".git/x.png",
        ):
            write(self.images / name, png(1) if name.endswith("png") else b"x")
        lines = "".join(f"{p}\n" for p in sorted(self.images.rglob("*")) if p.is_file())
        self.assertEqual(lines.count("\n"), 10)
        self.assert_code(self.convert(lines), 0)
        self.expected()
        folder = self.path / "folder"
        self.assert_code(shardify(self.images, folder, *SMALL), 0)
        self.assertEqual(info(folder), info(self.out))


class Columns(TestCase):
    """Further columns of the table: ragged, text, and of fixed shape."""

    GIVEN = (
        "--column",
        "caption:text",
        "--column",
        "boxes:f32[,4]",
        "--column",
        "angle:f16",
        "--column",
        "pose:i64[2]",
    )

    def setUp(self):
        super().setUp()
        self.images = make_images(self.path / "in", ("a", "b"), each=5)
        self.rows = {}
        for i, path in enumerate(sorted(self.images.rglob("*.png"))):
            caption = ["", "plain", 'with, "quotes"\nand a line \u00fc'][i % 3]
            self.rows[str(path.relative_to(self.images))] = (
                caption,
                [float(v) for v in range(4 * (i % 4))],
                i / 2,
                (i, -i),
            )
        self.table = self.path / "t.csv"
        self.write()

    def write(self, label=None, header=None):
        with open(self.table, "w", newline="") as file:
            table = csv.writer(file)
            table.writerow(
                header
                or ["path", "boxes", "other", "caption", "pose", "angle"] + (["label"] if label else [])
            )
            for path, (caption, boxes, angle, pose) in self.rows.items():
                table.writerow(
                    [path, " ".join(map(str, boxes)), "x", caption, f"{pose[0]}  {pose[1]}", angle]
                    + ([label(path)] if label else [])
                )

    def convert(self, *more, out=None):
        return shardify(self.images, out or self.out, *SMALL, "--labels", self.table, *self.GIVEN, *more)

    def stored(self, out=None):
        found = {}
        for path in shards(out or self.out):
            tensors = read_shard(path)[1]
            count = tensors["checksums"][1][0]

            def values(name, code):
                return [value for (value,) in struct.iter_unpack("<" + code, tensors[name][2])]

            texts, boxes = values("caption_offsets", "Q"), values("boxes_offsets", "Q")
            for i, key in enumerate(keys_of(path)):
                found[key] = (
                    bytes(tensors["caption"][2][texts[i] : texts[i + 1]]).decode(),
                    values("boxes", "f")[4 * boxes[i] : 4 * boxes[i + 1]],
                    values("angle", "e")[i],
                    tuple(values("pose", "q")[2 * i : 2 * i + 2]),
                )
            self.assertEqual(
                (texts[0], boxes[0], texts[count], boxes[count]),
                (0, 0, tensors["caption"][1][0], tensors["boxes"][1][0]),
            )
        return found

    def test_they_are_stored_as_they_are_whatever_the_order_of_the_rows(self):
        self.assert_code(self.convert(), 0)
        self.assertEqual(self.stored(), self.rows)
        self.assertEqual(info(self.out)["version"], 2)
        self.assertEqual(info(self.out)["classes"], ["a", "b"])
        self.assert_code(shardctl("verify", self.out), 0)
        before = digests(self.out)
        self.rows = dict(reversed(self.rows.items()))
        self.write()
        self.assert_code(self.convert(), 0)
        self.assertEqual(digests(self.out), before)
        self.assert_code(self.convert("--jobs", "1", out=self.path / "one"), 0)
        self.assertEqual(dict(digests(self.path / "one").items()), before)

    def test_labels_may_be_one_of_them(self):
        self.write(label=lambda path: f"class {len(path) % 2 + int(path[2]) % 2}")
        self.assert_code(self.convert(), 0)
        self.assertEqual(len(info(self.out)["classes"]), 2)
        self.assertEqual(self.stored(), self.rows)

    def test_a_changed_caption_is_another_conversion_and_refresh_makes_its_shard_again(self):
        self.assert_code(self.convert(), 0)
        inodes = {path.name: path.stat().st_ino for path in shards(self.out)}
        first = next(iter(self.rows))
        self.rows[first] = ("new",) + self.rows[first][1:]
        self.write()
        self.assert_refused(self.convert(), "labels or columns are not the same as before")
        self.assert_code(self.convert("--refresh"), 0)
        self.assertEqual(self.stored(), self.rows)
        kept = {name for name, inode in inodes.items() if (self.out / name).stat().st_ino == inode}
        self.assertEqual(len(inodes) - len(kept), 1)

    def test_other_columns_are_another_conversion(self):
        self.assert_code(self.convert(), 0)
        self.assert_refused(
            shardify(self.images, self.out, *SMALL, "--labels", self.table, *self.GIVEN[:4]), "columns"
        )
        self.assert_refused(
            shardify(self.images, self.out, *SMALL, "--labels", self.table, *self.GIVEN[:4], "--append"),
            "columns",
        )

    def test_append_join_repack_and_selections_keep_them(self):
        self.assert_code(self.convert(), 0)
        more = make_images(self.path / "more", ("c",), each=3)
        rows = dict(self.rows)
        table = self.path / "more.csv"
        table.write_text(
            "path,boxes,caption,pose,angle\n" + "".join(f"c/{i}.png,,c{i},7 8,2\n" for i in range(3))
        )
        self.assert_code(shardify(more, self.out, *SMALL, "--labels", table, *self.GIVEN, "--append"), 0)
        rows.update({f"c/{i}.png": (f"c{i}", [], 2.0, (7, 8)) for i in range(3)})
        self.assertEqual(self.stored(), rows)
        packed = self.path / "packed"
        self.assert_code(shardctl("repack", "--codec", "packed", self.out, packed), 0)
        self.assertEqual(self.stored(packed), rows)
        self.assert_code(shardctl("verify", packed), 0)
        other = self.path / "other"
        self.assert_code(shardify(more, other, *SMALL, "--labels", table, *self.GIVEN), 0)
        first = self.path / "first"
        self.assert_code(self.convert(out=first), 0)
        self.assert_code(shardctl("join", self.path / "joined", first, other), 0)
        self.assertEqual(self.stored(self.path / "joined"), rows)

    def test_shardctl_lists_and_shows_them(self):
        self.assert_code(self.convert(), 0)
        shown = self.assert_code(shardctl("info", self.out), 0).out
        for line in ("column caption", "text", "ragged f32 [4]", "i64 [2]"):
            self.assertIn(line, shown)
        rows = list(
            csv.DictReader(
                io.StringIO(
                    self.assert_code(shardctl("ls", self.out, "--csv", "--columns"), 0).out, newline=""
                )
            )
        )
        listed = json.loads(self.assert_code(shardctl("ls", self.out, "--json", "--columns"), 0).out)
        self.assertEqual([row["key"] for row in rows], sorted(self.rows))
        for row, line in zip(rows, listed):
            caption, boxes, angle, pose = self.rows[row["key"]]
            self.assertEqual(
                (row["caption"], row["boxes"], float(row["angle"]), row["pose"]),
                (caption, " ".join(f"{v:g}" for v in boxes), angle, f"{pose[0]} {pose[1]}"),
            )
            self.assertEqual(
                line["columns"],
                {
                    "caption": caption,
                    "boxes": [boxes[k : k + 4] for k in range(0, len(boxes), 4)],
                    "angle": angle,
                    "pose": list(pose),
                },
            )
        self.assertIn(
            "--columns without --csv or --json",
            self.assert_code(shardctl("ls", self.out, "--columns"), 2).err,
        )

    def test_export_writes_them_for_numpy(self):
        try:
            import numpy
        except ImportError:
            self.skipTest("python3-numpy is not installed")
        self.assert_code(self.convert(), 0)
        result = self.assert_code(shardctl("export", self.out, "--npy", self.path / "npy"), 0)
        self.assertIn(
            "caption.npy, caption_offsets.npy, boxes.npy, boxes_offsets.npy, angle.npy, pose.npy", result.out
        )
        found = {path.stem: numpy.load(path) for path in (self.path / "npy").glob("*.npy")}
        keys = (self.path / "npy" / "keys.txt").read_text().splitlines()
        self.assertEqual(found["boxes"].shape[1:], (4,))
        for i, key in enumerate(keys):
            caption, boxes, angle, pose = self.rows[key]
            begin, end = found["caption_offsets"][i : i + 2]
            self.assertEqual(found["caption"][begin:end].tobytes().decode(), caption)
            begin, end = found["boxes_offsets"][i : i + 2]
            self.assertEqual(
                (
                    found["boxes"][begin:end].ravel().tolist(),
                    float(found["angle"][i]),
                    tuple(found["pose"][i]),
                ),
                (boxes, angle, pose),
            )

    def test_what_does_not_fit_names_line_image_column_and_value(self):
        path = list(self.rows)[7]
        good = self.rows[path]
        for change, why in (
            (("x", [1.0], 1.0, (1, 2)), "1 numbers: a multiple of 4 are needed"),
            (("x", [], "1.5e9", (1, 2)), '"1.5e9" is not a finite number: the type is f16'),
            (("x", [], 1.0, (1, "2.5")), '"2.5" is not a whole number of -9223372036854775808 to'),
        ):
            self.rows[path] = change
            self.write()
            result = self.assert_refused(self.convert(), why)
            self.assertIn(f'image "{path}", column "', result.err)
            self.assertEqual(state(self.out), "absent")
        self.rows[path] = good
        self.write(header=["path", "boxes", "other", "caption", "pose", "angel"])
        self.assert_refused(self.convert(), 'has no column "angle": its first line must name it')
        self.assert_refused(
            shardify(self.images, self.out, *SMALL, "--column", "x:f32"), "--column without --labels"
        )
        self.assert_refused(
            shardify(self.images, self.out, *SMALL, "--labels", self.table, "--column", "x:f3"), "NAME:TYPE"
        )
        self.assert_refused(
            shardify(self.images, self.out, *SMALL, "--labels", self.table, "--column", "key:text"),
            "reserved",
        )

    def test_an_image_without_a_row_is_rejected_or_left_out(self):
        gone = list(self.rows)[3]
        row = self.rows.pop(gone)
        self.write()
        self.assert_code(self.convert(), 1)
        self.assertEqual(self.stored(), self.rows)
        self.assertIn(gone, rejects(self.out))
        self.assert_code(self.convert("--unlisted", "skip", out=self.path / "less"), 0)
        self.assertEqual(self.stored(self.path / "less"), self.rows)
        self.rows[gone] = row


if __name__ == "__main__":
    main()
