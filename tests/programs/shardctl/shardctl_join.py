#!/usr/bin/env python3
"""shardctl join: what stands in the new data set, what is shared with the parts, and what is refused."""

import json
import os
import shutil
import tempfile
import unittest
from pathlib import Path

from shardify_support import (
    SMALL,
    TestCase,
    digests,
    info,
    keys_of,
    labels_of,
    main,
    png,
    rejects,
    shardctl,
    shardify,
    shards,
    stored_samples,
    write,
)


class JoinCase(TestCase):
    """self.a, self.b and self.c: ant, bee; bee, cow, and a file that is no picture; ant, bee again."""

    def setUp(self):
        super().setUp()
        self.images = {}
        for name, classes in (("a", ("ant", "bee")), ("b", ("bee", "cow")), ("c", ("ant", "bee"))):
            folder = self.path / f"in-{name}"
            for c, label in enumerate(classes):
                for i in range(5):
                    write(folder / label / f"{name}{i}.png", png(ord(name) * 100 + 10 * c + i))
            self.images[name] = folder
        write(self.images["b"] / "cow" / 'bad, "file".png', b"no picture")
        self.a, self.b, self.c = (self.convert(name, code=int(name == "b")) for name in "abc")
        self.new = self.path / "new"

    def convert(self, name, *options, out=None, code=0):
        out = self.path / (out or f"set-{name}")
        defaults = dict(zip(SMALL[:-1:2], SMALL[1::2]))
        defaults.update(zip(options[::2], options[1::2]))
        self.assert_code(
            shardify(
                self.images[name], out, "--quiet", *(word for pair in defaults.items() for word in pair)
            ),
            code,
        )
        return out

    def join(self, *parts, out=None, options=()):
        return shardctl("join", out or self.new, *parts, "--quiet", *options)

    def refused(self, result, *words):
        self.assert_code(result, 2)
        self.assertTrue(result.err.startswith("shardctl: "), result)
        for word in words:
            self.assertIn(os.fspath(word), result.err, result)

    def names(self, out):
        """(key, name of the class) of every sample, read from the shards alone."""
        classes = info(out)["classes"]
        return [
            (key, classes[label])
            for shard in shards(out)
            for key, label in zip(keys_of(shard), labels_of(shard))
        ]


class Join(JoinCase):
    def test_all_samples_in_order_with_the_labels_of_the_joined_classes(self):
        self.assert_code(self.join(self.a, self.b, self.c), 0)
        self.assert_code(shardctl("verify", self.new), 0)
        self.assertEqual(info(self.new)["classes"], ["ant", "bee", "cow"])
        self.assertEqual(self.names(self.new), self.names(self.a) + self.names(self.b) + self.names(self.c))
        self.assertEqual(
            [path.name for path in shards(self.new)], [f"shard-{i:05}.safetensors" for i in range(9)]
        )
        whole = {}
        for part in (self.a, self.b, self.c):
            whole.update(stored_samples(part))
        self.assertEqual(stored_samples(self.new), whole)

    def test_shards_are_linked_unless_their_labels_change(self):
        self.assert_code(self.join(self.a, self.b, self.c), 0)
        parts = [path for part in (self.a, self.b, self.c) for path in shards(part)]
        for before, after in zip(parts, shards(self.new)):
            if before.parent == self.b:
                self.assertNotEqual(before.stat().st_ino, after.stat().st_ino)
                self.assertEqual(before.stat().st_size, after.stat().st_size)
            else:
                self.assertEqual(before.stat().st_ino, after.stat().st_ino)
        before = digests(self.a)
        shutil.rmtree(self.new)
        self.assertEqual(digests(self.a), before)

    def test_a_shard_whose_samples_keep_their_labels_is_linked_although_the_classes_of_its_data_set_move(
        self,
    ):
        write(self.images["b"] / "ant" / "first.png", png(9000))  # label 0 in each: ant, bee, cow
        part = self.convert("b", "--samples-per-shard", "1", out="b1", code=1)
        first = self.convert("a", "--samples-per-shard", "1", out="a1")
        self.assert_code(self.join(first, part), 0)
        self.assertEqual(shards(part)[0].stat().st_ino, shards(self.new)[10].stat().st_ino)
        extra = self.path / "in-z"
        for label in ("ant", "zebra"):
            write(extra / label / f"{label}.png", png(9001))
        self.images["z"] = extra
        part = self.convert("z", "--samples-per-shard", "1")
        self.assert_code(self.join(first, part, out=self.path / "z"), 0)
        linked, moved = shards(self.path / "z")[10:]
        self.assertEqual(linked.stat().st_ino, shards(part)[0].stat().st_ino)
        self.assertEqual(labels_of(moved), [2])

    def test_a_shard_with_other_labels_has_the_bytes_of_a_conversion_with_these_labels(self):
        for codec in ("none", "packed", "zstd:3"):
            part = self.convert("b", "--codec", codec, out=f"b-{codec}", code=1)
            first = self.convert("a", "--codec", codec, out=f"a-{codec}")
            new = self.path / f"new-{codec}"
            self.assert_code(self.join(first, part, out=new), 0)
            table = self.path / "labels.csv"
            rows = [
                f"{label}/b{i}.png,{number}" for number, label in ((1, "bee"), (2, "cow")) for i in range(5)
            ]
            table.write_text("\n".join(rows + ['"cow/bad, ""file"".png",2']) + "\n")
            same = self.convert("b", "--codec", codec, "--labels", str(table), out=f"table-{codec}", code=1)
            self.assertEqual(
                [path.read_bytes() for path in shards(new)[3:]], [path.read_bytes() for path in shards(same)]
            )

    def test_copy_gives_the_same_bytes_in_files_of_its_own(self):
        self.assert_code(self.join(self.a, self.b, self.c), 0)
        copy = self.path / "copy"
        self.assert_code(self.join(self.a, self.b, self.c, out=copy, options=["--copy"]), 0)
        self.assertEqual(digests(copy), digests(self.new))
        inodes = {path.stat().st_ino for part in (self.a, self.b, self.c) for path in shards(part)}
        self.assertEqual(inodes & {path.stat().st_ino for path in shards(copy)}, set())

    def test_across_file_systems_shards_are_copied(self):
        if not os.access("/dev/shm", os.W_OK) or os.stat("/dev/shm").st_dev == self.path.stat().st_dev:
            raise unittest.SkipTest("/dev/shm is no other file system")
        elsewhere = Path(tempfile.mkdtemp(dir="/dev/shm"))
        self.addCleanup(shutil.rmtree, elsewhere)
        self.assert_code(self.join(self.a, self.b, self.c, out=elsewhere / "new"), 0)
        self.assert_code(self.join(self.a, self.b, self.c), 0)
        self.assertEqual(digests(elsewhere / "new"), digests(self.new))

    def test_tables_and_counts_are_those_of_all_parts(self):
        self.assert_code(self.join(self.a, self.b, self.c), 0)
        parts = [info(part) for part in (self.a, self.b, self.c)]
        whole = info(self.new)
        for count in ("samples", "inputs", "rejects"):
            self.assertEqual(whole[count], sum(part[count] for part in parts))
        self.assertEqual(rejects(self.new), rejects(self.b))
        rows = [(part / "inputs.csv").read_text().splitlines() for part in (self.a, self.b, self.c)]
        self.assertEqual(
            (self.new / "inputs.csv").read_text().splitlines(), rows[0] + rows[1][1:] + rows[2][1:]
        )
        self.assertEqual(
            [part["source_digest"] for part in whole["parts"]], [part["source_digest"] for part in parts]
        )
        self.assertEqual([part["shards"] for part in whole["parts"]], [3, 3, 3])

    def test_the_steps_in_which_parts_are_joined_do_not_matter(self):
        self.assert_code(self.join(self.a, self.b, self.c), 0)
        first, last = self.path / "ab", self.path / "bc"
        self.assert_code(self.join(self.a, self.b, out=first), 0)
        self.assert_code(self.join(self.b, self.c, out=last), 0)
        self.assert_code(self.join(first, self.c, out=self.path / "ab-c"), 0)
        self.assert_code(self.join(self.a, last, out=self.path / "a-bc"), 0)
        self.assertEqual(digests(self.path / "ab-c"), digests(self.new))
        self.assertEqual(digests(self.path / "a-bc"), digests(self.new))

    def test_the_same_command_again_changes_nothing_and_other_parts_are_refused(self):
        self.assert_code(self.join(self.a, self.b), 0)
        before = {path.name: path.stat().st_ino for path in self.new.iterdir()}
        again = shardctl("join", self.new, self.a, self.b)
        self.assert_code(again, 0)
        self.assertIn("already complete", again.out)
        self.assert_code(shardctl("split", self.new, "--fractions", "0.5,0.5", "--quiet"), 0)
        self.assert_code(self.join(self.a, self.b), 0)
        for path in self.new.glob("*.selection"):
            path.unlink()
        self.assertEqual({path.name: path.stat().st_ino for path in self.new.iterdir()}, before)
        self.refused(self.join(self.b, self.a), self.new)
        self.refused(self.join(self.a, self.c), self.new)
        self.refused(self.join(self.a, self.b, self.c), self.new)
        shards(self.new)[1].unlink()
        shards(self.new)[-1].unlink()
        whole = self.path / "whole"
        self.assert_code(self.join(self.a, self.b, out=whole), 0)
        self.assert_code(self.join(self.a, self.b), 0)  # makes them again
        self.assertEqual(digests(self.new), digests(whole))

    def test_a_part_may_be_removed_afterwards(self):
        self.assert_code(self.join(self.a, self.b), 0)
        shutil.rmtree(self.a)
        shutil.rmtree(self.b)
        self.assert_code(shardctl("verify", self.new), 0)

    def test_other_programs_take_the_joined_set(self):
        self.assert_code(self.join(self.a, self.b), 0)
        self.assert_code(
            shardctl("repack", self.new, self.path / "packed", "--codec", "packed", "--quiet"), 0
        )
        self.assert_code(shardctl("verify", self.path / "packed"), 0)
        self.assertIn("put together from 2 conversions", shardctl("info", self.new).out)
        self.assertEqual(
            json.loads(shardctl("info", self.new, "--json").out)["parts"], info(self.new)["parts"]
        )
        self.assertNotIn("parts", json.loads(shardctl("info", self.a, "--json").out))
        self.assert_refused(
            shardify(self.images["a"], self.new, *SMALL), "put together from 2 conversions", "--overwrite"
        )
        self.assert_refused(
            shardify(self.images["a"], self.new, *SMALL, "--refresh"), "put together from 2 conversions"
        )
        self.assert_code(shardify(self.images["a"], self.new, *SMALL, "--overwrite"), 0)
        self.assertEqual(digests(self.new), digests(self.a))

    def test_data_sets_of_earlier_versions_have_no_inputs_table(self):
        old = [
            shutil.copytree(
                Path(__file__).resolve().parents[2] / "golden" / "dataset", self.path / f"old{number}"
            )
            for number in range(2)
        ]
        self.assertNotIn("tables", info(old[0]))
        self.assert_code(self.join(*old), 0)
        self.assertFalse((self.new / "inputs.csv").exists())
        self.assertEqual([table["file"] for table in info(self.new)["tables"]], ["rejects.csv"])
        self.assert_code(shardctl("verify", self.new), 0)

    def test_a_table_that_is_lost_is_not_left_out(self):
        (self.a / "inputs.csv").unlink()
        self.refused(self.join(self.a, self.b), self.a / "inputs.csv")
        self.assertFalse((self.new / "dataset.json").exists())


class Refused(JoinCase):
    def test_what_must_agree(self):
        for options, words in (
            (["--codec", "packed"], ["codec", "shardctl repack"]),
            (["--samples-per-shard", "5"], ["fingerprint", "samples per shard", "concat"]),
            (["--dtype", "f16"], ["sample", "same options"]),
            (["--crop", "24"], ["sample"]),
            (["--filter", "box"], ["provenance", "filter", "same options"]),
            (["--mean", "0.5,0.5,0.5"], ["normalization"]),
        ):
            other = self.convert("c", *options, out="other")
            self.refused(self.join(self.a, other), self.a, other, *words)
            self.assertFalse(self.new.exists())
            shutil.rmtree(other)

    def test_jpegs_of_two_qualities_are_not_told_to_be_repacked(self):
        first, other = (
            self.convert("c", "--codec", "jpeg", "--quality", quality, out=quality)
            for quality in ("90", "50")
        )
        refused = self.join(first, other)
        self.refused(refused, first, other, "jpeg:90", "jpeg:50", "same quality", "concat")
        self.assertNotIn("repack", refused.err)

    def test_only_what_differs_is_named(self):
        other = self.convert("c", "--filter", "box", out="other")
        refused = self.join(self.a, other)
        self.refused(refused, self.a, other, 'filter "bilinear"', 'filter "box"')
        self.assertNotIn("decoder", refused.err)

    def test_labels_of_another_kind(self):
        table = self.path / "t.csv"
        table.write_text("".join(f"{label}/c{i}.png,0.5,1\n" for label in ("ant", "bee") for i in range(5)))
        vectors = self.convert("c", "--labels", str(table), out="vectors")
        self.refused(self.join(self.a, vectors), self.a, vectors, "columns")
        table.write_text("".join(f"{label}/c{i}.png,{i}\n" for label in ("ant", "bee") for i in range(5)))
        numbers = self.convert("c", "--labels", str(table), out="numbers")
        self.refused(self.join(self.a, numbers), self.a, numbers, "has classes")

    def test_parts_that_are_no_whole_data_sets(self):
        lone = shards(self.a)[0]
        self.refused(self.join(self.b, lone), lone, "shards alone cannot be joined")
        self.refused(self.join(self.b, self.path / "none"), self.path / "none", "no such folder")
        for address in "https://127.0.0.1:1/x", "s3://bucket/x", "hf://datasets/a/b":
            for parts in (self.b, address), (address, self.b):
                self.refused(self.join(*parts), f'"{address}" is on a server', "shardctl copy")
        self.assert_code(shardctl("split", self.a, "--fractions", "0.5,0.5", "--quiet"), 0)
        self.refused(self.join(self.b, f"{self.a}#train"), "only whole ones can be joined", "concat")
        empty = self.path / "empty"
        empty.mkdir()
        self.refused(self.join(self.b, empty), empty, "not a data set")
        left = self.path / "left"
        shutil.copytree(self.a, left)
        (left / "dataset.json").rename(left / "conversion.json")
        self.refused(self.join(self.b, left), left, "incomplete")
        missing = self.path / "missing"
        shutil.copytree(self.a, missing)
        shards(missing)[0].unlink()
        self.assertIn("is missing", self.join(self.b, missing).err)
        self.assertFalse(self.new.exists())
        self.refused(shardctl("join", self.new, self.a), "PATHS")

    def test_the_same_data_set_twice(self):
        link = self.path / "link"
        link.symlink_to(self.a)
        for again in (self.a, link, f"{self.a}/"):
            self.refused(self.join(self.a, self.b, again), "the same data set", self.a)

    def test_new_folders_that_are_taken(self):
        self.refused(self.join(self.a, self.b, out=self.a), self.a)
        self.refused(self.join(self.a, self.b, out=self.b / "new"), "is inside")
        self.new.mkdir()
        write(self.new / "notes.txt", b"mine")
        self.refused(self.join(self.a, self.b), "notes.txt")
        (self.new / "notes.txt").unlink()
        write(self.new / "shard-00001.safetensors", b"mine")
        self.refused(self.join(self.a, self.b), "shard-00001.safetensors")
        self.assertEqual((self.new / "shard-00001.safetensors").read_bytes(), b"mine")

    def test_a_part_that_is_damaged(self):
        path = shards(self.b)[1]
        data = bytearray(path.read_bytes())
        data[data.index(b"bee/b")] ^= 1  # in the keys of the head
        path.write_bytes(data)
        result = self.join(self.a, self.b)
        self.assert_code(result, 1)
        self.assertIn(path.name, result.err)
        self.assertFalse((self.new / "dataset.json").exists())

    def test_tables_that_are_cut_or_foreign(self):
        for name, text in (
            ("rejects.csv", "path,reason\ncow/x.png,bad"),
            ("rejects.csv", "p,r\n"),
            ("inputs.csv", "path,size"),
        ):
            part = self.path / "part"
            shutil.rmtree(part, ignore_errors=True)
            shutil.copytree(self.b, part)
            (part / name).write_text(text)
            result = self.join(self.a, part)
            self.assert_code(result, 1)
            self.assertIn(name, result.err)
            self.assertFalse((self.new / "dataset.json").exists())


if __name__ == "__main__":
    main()
