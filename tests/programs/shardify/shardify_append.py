#!/usr/bin/env python3
"""shardify --append: what a data set has afterwards, what stays, and what is refused."""

import json
import os
import shutil

from shardify_support import (
    SHARDIFY,
    SMALL,
    TestCase,
    all_keys,
    digests,
    info,
    keys_of,
    labels_of,
    main,
    png,
    rejects,
    run,
    shardctl,
    shardify,
    shards,
    state,
    write,
)


class AppendCase(TestCase):
    """self.first: ant, bee; self.more: aphid, bee, cow, of other images, and one that is bad."""

    def setUp(self):
        super().setUp()
        self.first, self.more = self.path / "first", self.path / "more"
        self.fill(self.first, "f", ("ant", "bee"))
        self.fill(self.more, "m", ("aphid", "bee", "cow"))
        write(self.more / "bee" / "bad.png", b"no picture")
        self.assert_code(self.convert(self.first), 0)

    def fill(self, folder, name, classes, each=3):
        for c, label in enumerate(classes):
            for i in range(each):
                write(folder / label / f"{name}{i}.png", png(ord(name) * 100 + 10 * c + i))

    def convert(self, images, *more, out=None, options=SMALL):
        return shardify(images, out or self.out, *options, *more)

    def append(self, *more, images=None, out=None, options=SMALL):
        return self.convert(images or self.more, "--append", *more, out=out, options=options)

    def names(self, out):
        classes = info(out)["classes"]
        return [
            (key, classes[label])
            for shard in shards(out)
            for key, label in zip(keys_of(shard), labels_of(shard))
        ]


class Append(AppendCase):
    def test_the_new_images_follow_and_the_old_shards_stay(self):
        before = {path.name: (path.stat().st_ino, path.read_bytes()) for path in shards(self.out)}
        self.assert_code(self.append(), 1)
        self.assert_code(shardctl("verify", self.out), 0)
        alone = self.path / "alone"
        self.assert_code(self.convert(self.more, out=alone), 1)
        whole = self.path / "whole"
        self.assert_code(self.convert(self.first, out=whole), 0)
        self.assertEqual(self.names(self.out), self.names(whole) + self.names(alone))
        self.assertEqual(info(self.out)["classes"], ["ant", "bee", "aphid", "cow"])
        for name, (inode, data) in before.items():
            self.assertEqual((self.out / name).stat().st_ino, inode)
            self.assertEqual((self.out / name).read_bytes(), data)
        self.assertEqual(rejects(self.out), rejects(alone))
        self.assertEqual(
            sorted(os.listdir(self.out)),
            sorted(
                ["dataset.json", "rejects.csv", "inputs.csv"]
                + [f"shard-{i:05}.safetensors" for i in range(5)]
            ),
        )

    def test_the_bytes_are_those_of_a_join_of_both(self):
        for codec in ("none", "packed", "zstd:3"):
            first, more, joined, out = (
                self.path / f"{name}-{codec}" for name in ("first", "more", "joined", "out")
            )
            for images, folder, code in ((self.first, first, 0), (self.more, more, 1), (self.first, out, 0)):
                self.assert_code(self.convert(images, "--codec", codec, out=folder), code)
            self.assert_code(self.append("--codec", codec, out=out), 1)
            self.assert_code(shardctl("join", joined, first, more, "--quiet"), 0)
            self.assertEqual(digests(out), digests(joined))

    def test_several_times_and_the_same_command_again(self):
        third = self.path / "third"
        self.fill(third, "t", ("dog", "ant"))
        self.assert_code(self.append(), 1)
        self.assert_code(self.append(images=third), 0)
        before = {path.name: path.stat().st_ino for path in self.out.iterdir()}
        for images, code in ((self.more, 1), (third, 0)):
            again = self.append(images=images, options=[o for o in SMALL if o != "--quiet"])
            self.assert_code(again, code)
            self.assertIn("already appended", again.out)
        self.assertEqual({path.name: path.stat().st_ino for path in self.out.iterdir()}, before)
        self.assertEqual([part["inputs"] for part in info(self.out)["parts"]], [6, 10, 6])
        parts = []
        for name, images in (("a", self.first), ("b", self.more), ("c", third)):
            parts.append(self.path / name)
            self.convert(images, out=parts[-1])
        self.assert_code(shardctl("join", self.path / "joined", *parts, "--quiet"), 0)
        self.assertEqual(digests(self.out), digests(self.path / "joined"))

    def test_the_summary_is_of_the_new_images_and_says_what_there_is_now(self):
        said = self.append(options=[o for o in SMALL if o != "--quiet"])
        self.assertIn("appended: 9 samples in 3 shards", said.out)
        self.assertIn("now 15 samples in 5 shards", said.out)
        self.assertIn("rejected: 1 of 10", said.out)
        told = json.loads(self.append("--json").out)
        self.assertEqual(
            (told["append"], told["was_complete"], told["samples"], told["rejects"]), (True, True, 9, 1)
        )

    def test_threads_do_not_change_the_bytes(self):
        other = self.path / "other"
        shutil.copytree(self.out, other)
        self.assert_code(self.append("--jobs", "1"), 1)
        self.assert_code(self.append("--jobs", "4", out=other), 1)
        self.assertEqual(digests(other), digests(self.out))

    def test_shards_whose_inputs_were_all_rejected_leave_numbers_out_and_none_is_given_twice(self):
        for i in range(4):
            write(self.first / "bee" / f"a{i}.png", b"no picture")  # the second shard
        self.assert_code(self.convert(self.first, "--refresh"), 1)
        self.assertEqual(
            [path.name for path in shards(self.out)],
            ["shard-00000.safetensors", "shard-00001.safetensors", "shard-00002.safetensors"][
                : len(shards(self.out))
            ],
        )
        for i in range(8):
            write(self.more / "aphid" / f"a{i}.png", b"no picture")
        self.assert_code(self.append(), 1)
        self.assert_code(shardctl("verify", self.out), 0)
        names = [path.name for path in shards(self.out)]
        self.assertEqual(names, [f"shard-{i:05}.safetensors" for i in range(len(names))])

    def test_labels_from_tables(self):
        table = self.path / "first.csv"
        table.write_text("".join(f"{label}/f{i}.png,{i}\n" for label in ("ant", "bee") for i in range(3)))
        out = self.path / "numbers"
        self.assert_code(self.convert(self.first, "--labels", str(table), out=out), 0)
        table = self.path / "more.csv"
        table.write_text(
            "".join(f"{label}/m{i}.png,{10 + i}\n" for label in ("bee", "cow") for i in range(3))
        )
        self.assert_code(self.append("--labels", str(table), "--unlisted", "skip", out=out), 0)
        self.assertEqual(
            [label for shard in shards(out) for label in labels_of(shard)], [0, 1, 2] * 2 + [10, 11, 12] * 2
        )
        self.assert_refused(self.append(out=out), out, "has numbers for labels")
        table.write_text("".join(f"{label}/m{i}.png,0.5,1\n" for label in ("bee", "cow") for i in range(3)))
        self.assert_refused(
            self.append("--labels", str(table), "--unlisted", "skip", out=out),
            out,
            "labels",
            "f32 [2]",
            "i64 []",
        )

    def test_a_reader_that_has_the_data_set_open_and_one_that_opens_it(self):
        # A descriptor of the folder, as a reader keeps it: it finds what it has read about,
        # and the new files as well.
        folder = os.open(self.out, os.O_RDONLY)
        before = info(self.out)
        self.assert_code(self.append(), 1)
        for shard in before["shards"]:
            self.assertEqual(os.stat(shard["file"], dir_fd=folder).st_size, shard["size_bytes"])
        os.close(folder)

    def test_a_table_that_is_lost_is_not_left_out(self):
        table = (self.out / "inputs.csv").read_bytes()
        (self.out / "inputs.csv").unlink()
        self.assert_refused(self.append(), self.out / "inputs.csv")
        (self.out / "inputs.csv").write_bytes(table)
        self.assert_code(self.append(), 1)
        self.assert_code(shardctl("verify", self.out), 0)

    def test_a_repaired_reject_may_be_appended_under_its_old_key(self):
        self.assert_code(self.append(), 1)
        fixed = self.path / "fixed"
        write(fixed / "bee" / "bad.png", png(77))
        self.assert_code(self.append(images=fixed), 0)
        self.assertIn("bee/bad.png", all_keys(self.out))
        self.assert_code(shardctl("verify", self.out), 0)

    def test_compare_checks_each_part_with_its_own_images(self):
        self.assert_code(self.append(), 1)
        both = self.path / "both"
        shutil.copytree(self.first, both)
        shutil.copytree(self.more, both, dirs_exist_ok=True)
        self.assert_code(shardctl("compare", self.out, both), 0)

    def test_dry_run_writes_nothing(self):
        before = digests(self.out)
        self.assert_code(self.append("--dry-run"), 0)
        self.assertEqual(digests(self.out), before)


class Refused(AppendCase):
    def refused(self, result, *words):
        self.assert_refused(result, *words)
        self.assertFalse((self.out / ".shardify-next").exists())

    def test_other_options_name_option_recorded_and_given_value(self):
        before = digests(self.out)
        small = dict(zip(SMALL[:-1:2], SMALL[1:-1:2]))
        for option, value, words in (
            ("--crop", "24", ("crop", "center 32x32", "center 24x24")),
            ("--dtype", "f16", ("dtype", '"u8" recorded', '"f16" requested')),
            ("--samples-per-shard", "5", ("samples_per_shard", '"4" recorded', '"5" requested')),
            ("--codec", "packed", ("codec", '"none" recorded', '"packed" requested')),
            ("--filter", "box", ("filter", "bilinear", "box")),
            ("--mean", "0,0,0", ("mean", '"0.485,0.456,0.406" recorded')),
            ("--on-warning", "accept", ("on_warning", '"-" recorded', '"accept" requested')),
        ):
            options = [word for pair in {**small, option: value}.items() for word in pair] + ["--quiet"]
            self.refused(self.append(options=options), self.out, "other options", *words)
        self.assertEqual(digests(self.out), before)

    def test_keys_that_are_in_the_data_set_already(self):
        write(self.more / "ant" / "f1.png", png(1))
        write(self.more / "bee" / "f2.png", png(2))
        before = digests(self.out)
        self.refused(self.append(), self.out, "2 of the 12 images", "ant/f1.png", "shardctl join")
        self.refused(self.append(images=self.first), "6 of the 6 images", "ant/f0.png")
        self.assertEqual(digests(self.out), before)

    def test_folders_without_a_finished_data_set(self):
        self.assert_refused(
            self.append(out=self.path / "none"), self.path / "none", "holds no data set", "without --append"
        )
        self.assertFalse((self.path / "none").exists())
        empty = self.path / "empty"
        empty.mkdir()
        self.assert_refused(self.append(out=empty), empty, "holds no data set")
        self.assertEqual(os.listdir(empty), [])
        write(empty / "x", b"mine")
        self.assert_refused(self.append(out=empty), empty, "no data set of shardify")
        unfinished = self.path / "unfinished"
        run(
            [
                "strace",
                "-f",
                "-qq",
                "-o",
                "/dev/null",
                "-e",
                "trace=rename",
                "-e",
                "inject=rename:signal=SIGKILL:when=1",
                SHARDIFY,
                str(self.first),
                str(unfinished),
                *SMALL,
            ]
        )
        if state(unfinished) == "incomplete":
            self.assert_refused(self.append(out=unfinished), unfinished, "not finished")

    def test_a_data_set_that_lacks_a_shard(self):
        shards(self.out)[0].unlink()
        self.refused(self.append(), "shard-00000", "is missing")
        self.assert_code(self.convert(self.first), 0)  # makes it again
        self.assert_code(self.append(), 1)

    def test_classes_and_none(self):
        flat = self.path / "flat"
        write(flat / "x.png", png(5))
        self.refused(self.append(images=flat), self.out, "has classes, and these images have none")

    def test_several_processes_and_other_ways_to_change_a_data_set(self):
        self.refused(
            self.append("--rank", "0", "--world-size", "2"),
            "--append with several processes",
            "shardctl join",
        )
        for other in ("--overwrite", "--refresh"):
            self.refused(self.append(other), other)

    def test_none_of_the_images_can_be_stored(self):
        bad = self.path / "bad"
        write(bad / "ant" / "x.png", b"no picture")
        before = dict(digests(self.out).items())
        self.assert_refused(self.append(images=bad), "none of the 1 inputs could be stored")
        self.assertEqual(
            {name: digest for name, digest in digests(self.out).items() if not name.startswith(b".")}, before
        )

    def test_afterwards_no_single_source_is_that_of_the_data_set(self):
        self.assert_code(self.append(), 1)
        before = digests(self.out)
        for more in ([], ["--refresh"]):
            self.refused(
                self.convert(self.first, *more),
                "put together from 2 conversions",
                "in it already",
                "--overwrite",
            )
            self.refused(self.convert(self.path / "first" / "ant", *more), "none of them", "--append")
        self.assertEqual(digests(self.out), before)
        self.assert_code(self.convert(self.first, "--overwrite"), 0)
        alone = self.path / "alone"
        self.assert_code(self.convert(self.first, out=alone), 0)
        self.assertEqual(digests(self.out), digests(alone))


if __name__ == "__main__":
    main()
