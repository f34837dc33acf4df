#!/usr/bin/env python3
"""shardify on tar archives: the same bytes as from the unpacked folder, WebDatasets,
tars in a tar, and damaged ones."""

import io
import json
import os
import random
import struct
import tarfile

from shardify_support import (
    SHARDIFY,
    SMALL,
    TestCase,
    all_keys,
    digests,
    keys_of,
    main,
    make_images,
    png,
    read_shard,
    rejects,
    run,
    shardctl,
    shardify,
    shards,
    write,
)


def add(archive, name, data, **more):
    member = tarfile.TarInfo(name)
    member.size = len(data)
    for key, value in more.items():
        setattr(member, key, value)
    archive.addfile(member, io.BytesIO(data))


class Archives(TestCase):
    def tar(self, name, members, **options):
        path = self.path / name
        with tarfile.open(path, "w", **options) as archive:
            for member, data in members:
                add(archive, member, data)
        return path

    def labels(self, out):
        rows = self.assert_code(shardctl("ls", out, "--csv"), 0).out.splitlines()[1:]
        return {row.split(",")[3]: int(row.split(",")[1]) for row in rows}

    def test_an_archive_gives_the_bytes_of_the_unpacked_folder(self):
        images = make_images(self.path / "in", ("a", "b", "c d"), each=5)
        write(images / "b" / "bad.png", b"no picture")
        write(images / "b" / ".hidden.png", b"x")
        write(images / "readme.txt", b"text")
        write(images / "c d" / ("long" * 40 + ".png"), png(3))
        self.assert_code(shardify(images, self.path / "expected", *SMALL), 1)
        for form in (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
            archive = self.path / f"{form}.tar"
            with tarfile.open(archive, "w", format=form) as tar:
                names = [str(path.relative_to(images)) for path in images.rglob("*") if path.is_file()]
                random.Random(form).shuffle(names)  # the order of the archive does not matter
                for name in names:
                    if form == tarfile.USTAR_FORMAT and len(name) > 100:
                        continue
                    tar.add(images / name, name)
            out = self.path / f"out{form}"
            self.assert_code(shardify(archive, out, *SMALL), 1)
            if form != tarfile.USTAR_FORMAT:
                self.assertEqual(digests(out), digests(self.path / "expected"))
                self.assert_code(shardctl("compare", out, archive), 0)
            self.assertEqual(rejects(out).keys(), {"b/bad.png"})
            # Again: nothing to do. By two ranks: the same bytes.
            again = self.assert_code(shardify(archive, out, *SMALL, "--json"), 1)
            self.assertEqual(json.loads(again.out)["converted"], 0)
            ranks = self.path / f"ranks{form}"
            for rank in (1, 0):
                shardify(archive, ranks, *SMALL, "--rank", str(rank), "--world-size", "2")
            self.assertEqual(digests(ranks), digests(out))

    def test_the_labels_of_a_webdataset_are_its_numbers(self):
        for shard in range(3):
            members = []
            for i in range(4):
                key = f"{shard * 4 + i:05}"
                members += [
                    (f"{key}.png", png(i)),
                    (f"{key}.cls", f" {(shard * 4 + i) % 5}\n".encode()),
                    (f"{key}.json", b"{}"),
                    (f"{key}.txt", b"a cat"),
                ]
            self.tar(f"w-{shard:03}.tar", members)
        pattern = self.path / "w-{000..002}.tar"
        done = self.assert_code(shardify(pattern, self.out, *SMALL[:-1]), 0)
        self.assertIn("labels are the numbers that come with the images", done.out)
        self.assertEqual(self.labels(self.out), {f"{i:05}.png": i % 5 for i in range(12)})
        self.assert_code(shardctl("compare", self.out, pattern), 0)
        # Some without a label, or with none that is a number.
        self.tar(
            "odd.tar",
            [
                ("1.png", png(1)),
                ("1.cls", b"7"),
                ("2.png", png(2)),
                ("3.png", png(3)),
                ("3.cls", b"dog"),
                ("4.x.png", png(4)),
                ("4.cls", b"-2"),
            ],
        )
        self.assert_code(shardify(self.path / "odd.tar", self.path / "odd", *SMALL), 1)
        self.assertEqual(self.labels(self.path / "odd"), {"1.png": 7, "4.x.png": -2})
        self.assertEqual(rejects(self.path / "odd").keys(), {"2.png", "3.cls", "3.png"})

    def test_tars_in_a_tar_are_classes(self):
        inner = {}
        for name in ("n01", "n02"):
            inner[name] = self.tar(
                f"{name}.tar", [(f"{name}_{i}.JPEG.png", png(i)) for i in range(3)]
            ).read_bytes()
        deep = self.tar("deep.tar", [("x.tar", inner["n01"])]).read_bytes()
        outer = self.tar(
            "outer.tar", [(f"{name}.tar", data) for name, data in inner.items()] + [("n03.tar", deep)]
        )
        self.assert_code(shardify(outer, self.out, *SMALL), 1)
        self.assertEqual(
            self.labels(self.out),
            {f"{name}/{name}_{i}.JPEG.png": label for label, name in enumerate(inner) for i in range(3)},
        )
        self.assertEqual(rejects(self.out).keys(), {"n03/x.tar"})
        self.assertIn("unpack one of them", rejects(self.out)["n03/x.tar"])

    def test_hostile_members_are_rejects_and_the_run_goes_on(self):
        path = self.path / "hostile.tar"
        with tarfile.open(path, "w") as tar:
            for name in ("../up.png", "/root.png", "a/../../x.png", "good.png"):
                add(tar, name, png(1))
            for name, kind in (
                ("soft.png", tarfile.SYMTYPE),
                ("hard.png", tarfile.LNKTYPE),
                ("pipe.png", tarfile.FIFOTYPE),
            ):
                add(tar, name, b"", type=kind, linkname="good.png")
            add(tar, "twice.png", png(2))
            add(tar, "twice.png", png(3))
            add(tar, "empty.png", b"")
        self.assert_code(shardify(path, self.out, *SMALL), 1)
        self.assertEqual(set(all_keys(self.out)), {"good.png", "twice.png"})
        self.assertEqual(len(rejects(self.out)), 8)
        last = self.path / "last"
        self.assert_code(
            shardify(self.tar("last.tar", [("good.png", png(1)), ("twice.png", png(3))]), last, *SMALL), 0
        )
        self.assertEqual(
            self.assert_code(shardctl("ls", self.out), 0).out, self.assert_code(shardctl("ls", last), 0).out
        )

    def test_a_damaged_archive_is_a_reject(self):
        data = self.tar("whole.tar", [(f"{i}.png", png(i)) for i in range(6)]).read_bytes()
        write(self.path / "cut.tar", data[: len(data) // 2])
        self.assert_code(shardify(self.path / "cut.tar", self.out, *SMALL), 1)
        self.assertIn("it was cut", rejects(self.out)[str(self.path / "cut.tar")])
        self.assertGreater(len(all_keys(self.out)), 0)
        write(self.path / "none.tar", b"no archive" * 100)
        self.assert_refused(
            shardify(self.path / "none.tar", self.path / "x", *SMALL), "it is not a tar archive"
        )

    def test_what_cannot_be_read_is_said(self):
        self.assert_refused(shardify(self.path / "no.tar", self.out, *SMALL), "cannot open the archive")
        write(self.path / "a.tar.gz", b"x")
        self.assert_refused(shardify(self.path / "a.tar.gz", self.out, *SMALL), "is compressed")
        os.mkfifo(self.path / "pipe.tar")
        self.assert_refused(shardify(self.path / "pipe.tar", self.out, *SMALL), "not a regular file")
        self.tar("p-1.tar", [("1.png", png(1))])
        self.assert_refused(shardify(self.path / "p-{1..2}.tar", self.out, *SMALL), "p-2.tar")
        largest = 2**64 - 1
        self.assert_refused(
            shardify(self.path / f"p-{{{largest}..{largest}}}.tar", self.out, *SMALL), f"p-{largest}.tar"
        )
        self.assert_refused(shardify(self.path / "p-{1..99999999}.tar", self.out, *SMALL), "at most 1000000")
        self.assertFalse(self.out.exists())

    def test_an_archive_that_changes_is_noticed(self):
        path = self.tar("a.tar", [(f"{i}.png", png(i)) for i in range(4)])
        self.assert_code(shardify(path, self.out, *SMALL), 0)
        self.tar("a.tar", [(f"{i}.png", png(i + (i == 2))) for i in range(4)])
        refreshed = self.assert_code(run([SHARDIFY, str(path), str(self.out), *SMALL, "--refresh"]), 0)
        expected = self.path / "expected"
        self.assert_code(shardify(path, expected, *SMALL), 0)
        self.assertEqual(digests(self.out), digests(expected), refreshed.out)

    def fields(self, out):
        """{key: (caption, numbers)} of a text column `caption` and a ragged one `ids`."""
        found = {}
        for path in shards(out):
            tensors = read_shard(path)[1]
            texts, rows, ids = (
                [v for (v,) in struct.iter_unpack("<q", tensors[name][2])]
                for name in ("caption_offsets", "ids_offsets", "ids")
            )
            for i, key in enumerate(keys_of(path)):
                found[key] = (
                    bytes(tensors["caption"][2][texts[i] : texts[i + 1]]).decode(),
                    ids[rows[i] : rows[i + 1]],
                )
        return found

    COLUMNS = ("--column", "caption:text", "--column", "ids:i64[]")

    def test_columns_of_a_webdataset_are_its_members_or_those_of_its_json(self):
        members, expected = [], {}
        for i in range(6):
            caption, ids = f"caption {i} \u00fc\nof two lines", list(range(i))
            expected[f"{i:04}.png"] = (caption, ids)
            members.append((f"{i:04}.png", png(i)))
            if i % 2:  # its own member is taken before the one in the JSON
                members += [
                    (f"{i:04}.caption", (caption + "\n").encode()),
                    (f"{i:04}.ids", " ".join(map(str, ids)).encode() + b"\r\n"),
                    (
                        f"{i:04}.json",
                        json.dumps({"caption": "other", "deep": {"caption": "no", "ids": [9]}}).encode(),
                    ),
                ]
            else:
                nested = [[v] for v in ids]
                members.append(
                    (
                        f"{i:04}.json",
                        json.dumps(
                            {"x": {"ids": 3}, "caption": caption, "width": None, "ids": nested if i else []}
                        ).encode(),
                    )
                )
        random.Random(1).shuffle(members)
        archive = self.tar("w.tar", members)
        self.assert_code(shardify(archive, self.out, *SMALL, *self.COLUMNS), 0)
        self.assertEqual(self.fields(self.out), expected)
        self.assert_code(shardctl("verify", self.out), 0)
        before = digests(self.out)
        split = [
            self.tar(f"p-{k}.tar", members[k::2]) for k in range(2)
        ]  # images and members in different archives
        self.assert_code(
            shardify(str(self.path / "p-{0..1}.tar"), self.path / "parts", *SMALL, *self.COLUMNS), 0
        )
        self.assertEqual(digests(self.path / "parts"), before, split)
        for rank in (1, 0):
            shardify(
                archive, self.path / "ranks", *SMALL, *self.COLUMNS, "--rank", str(rank), "--world-size", "2"
            )
        self.assertEqual(digests(self.path / "ranks"), before)
        changed = [(name, data.replace(b"other", b"OTHER")) for name, data in members]
        self.tar("w.tar", changed)
        self.assert_code(
            shardify(archive, self.out, *SMALL, *self.COLUMNS), 0
        )  # nothing that is stored has changed
        self.tar("w.tar", [(name, data.replace(b"caption 1", b"CAPTION 1")) for name, data in members])
        self.assert_refused(
            shardify(archive, self.out, *SMALL, *self.COLUMNS), "columns are not the same as before"
        )

    def test_a_sample_without_a_column_is_a_reject_or_left_out(self):
        good = {"caption": "x", "ids": [1, 2]}
        members = [(f"{i}.png", png(i)) for i in range(6)]
        members += [
            ("0.json", json.dumps(good).encode()),
            ("1.json", b'{"caption": "y"}'),
            ("2.json", b'{"caption": "y", "ids": null}'),
            ("3.json", b'{"caption": "y", "ids": {"a": 1}}'),
            ("4.json", b'{"caption": "y", '),
            ("0.json", b'{"caption": "x", "ids": [3]}'),
        ]
        archive = self.tar("w.tar", members)
        self.assert_code(shardify(archive, self.out, *SMALL, *self.COLUMNS), 1)
        self.assertEqual(self.fields(self.out), {"0.png": ("x", [3])})  # of two members of one name the last
        found = rejects(self.out)
        for name, why in (
            ("1.png", "no member .ids, and none of this name in its .json"),
            ("2.png", "none of this name"),
            ("3.png", "none of this name"),
            ("4.png", "its .json member is not valid JSON"),
            ("5.png", "there is no member .caption, and no .json"),
        ):
            self.assertIn(why, found[name].replace('""', '"'))
        # Damaged JSON is not a sample that lacks a column.
        self.assert_code(
            shardify(archive, self.path / "less", *SMALL, *self.COLUMNS, "--unlisted", "skip"), 1
        )
        self.assertEqual(self.fields(self.path / "less"), {"0.png": ("x", [3])})
        self.assertEqual(rejects(self.path / "less").keys(), {"4.png"})
        self.assert_refused(
            shardify(
                self.tar("no.tar", members[:6]), self.path / "no", *SMALL, *self.COLUMNS, "--unlisted", "skip"
            ),
            "none of the 6 images has the columns",
        )
        self.assert_refused(
            shardify(
                self.tar("n.tar", members[:1] + [("0.json", b'{"caption": "y", "ids": [1.5]}')]),
                self.path / "n",
                *SMALL,
                *self.COLUMNS,
            ),
            'image "0.png", column "ids" (ragged i64 []): "1.5" is not a whole number of',
        )
        self.assert_refused(
            shardify(
                self.tar("u.tar", members[:1] + [("0.caption", b"\xff"), ("0.ids", b"")]),
                self.path / "u",
                *SMALL,
                *self.COLUMNS,
            ),
            "not UTF-8",
        )


if __name__ == "__main__":
    main()
