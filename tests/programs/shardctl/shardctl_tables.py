#!/usr/bin/env python3
"""shardctl verify covers rejects.csv and inputs.csv: of new data sets, and of those that were joined,
appended to, refreshed, repacked and copied."""

import json
import os
import shutil

from shardify_support import SMALL, TestCase, info, main, make_images, png, shardctl, shardify, write

TABLES = ("inputs.csv", "rejects.csv")


class Tables(TestCase):
    def setUp(self):
        super().setUp()
        self.images = make_images(self.path / "in", each=3)
        write(self.images / "bee" / 'no, "picture".png', b"no picture")
        self.assert_code(shardify(self.images, self.out, *SMALL), 1)

    def verify(self, folder, code):
        return self.assert_code(shardctl("verify", folder), code)

    def expect_covered(self, folder, tables=TABLES):
        """Every changed byte, cut and extension is found, and named by its file."""
        self.verify(folder, 0)
        checks = json.loads(shardctl("verify", "--json", folder).out)["tables"]
        self.assertEqual(checks, dict.fromkeys(tables, "digest"))
        for name in tables:
            path = folder / name
            whole = path.read_bytes()
            self.assertIn(
                {"file": name, "size_bytes": len(whole)},
                [{k: table[k] for k in ("file", "size_bytes")} for table in info(folder)["tables"]],
            )
            for at in range(0, len(whole), max(1, len(whole) // 12)):
                path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
                self.assertIn(f"{name}: its XXH3-64 is", self.verify(folder, 1).out)
            for other in (whole[:-1], whole + b"\n", b""):
                path.write_bytes(other)
                self.assertIn(
                    f"{name}: has {len(other)} bytes, dataset.json says {len(whole)}",
                    self.verify(folder, 1).out,
                )
            path.unlink()
            self.assertIn(f"{name}: is missing", self.verify(folder, 1).out)
            path.write_bytes(whole)
        self.verify(folder, 0)

    def test_a_new_data_set(self):
        self.expect_covered(self.out)

    def test_a_data_set_that_several_processes_made(self):
        out = self.path / "ranks"
        self.assert_code(shardify(self.images, out, *SMALL, "--rank", "0", "--world-size", "2"), 3)
        self.assert_code(shardify(self.images, out, *SMALL, "--rank", "1", "--world-size", "2"), 1)
        self.assertEqual((out / "dataset.json").read_bytes(), (self.out / "dataset.json").read_bytes())
        self.expect_covered(out)

    def test_a_data_set_to_which_images_were_appended(self):
        more = self.path / "more"
        write(more / "dog" / "1.png", png(7))
        write(more / "dog" / "2.png", b"nothing")
        self.assert_code(shardify(more, self.out, *SMALL, "--append"), 1)
        self.expect_covered(self.out)

    def test_a_refreshed_and_a_replaced_data_set(self):
        write(self.images / "ant" / "0.png", png(99))
        self.assert_code(shardify(self.images, self.out, *SMALL, "--refresh"), 1)
        self.expect_covered(self.out)
        self.assert_code(shardify(self.images, self.out, *SMALL, "--overwrite"), 1)
        self.expect_covered(self.out)

    def test_joined_repacked_and_copied_data_sets(self):
        other = self.path / "other"
        self.assert_code(shardify(make_images(self.path / "in2", classes=("bee", "dog")), other, *SMALL), 0)
        for name, command in {
            "joined": ["join", self.path / "joined", self.out, other],
            "packed": ["repack", self.out, self.path / "packed", "--codec", "packed"],
            "copied": ["copy", self.out, self.path / "copied"],
        }.items():
            self.assert_code(shardctl(*command), 0)
            self.expect_covered(self.path / name)
        self.assert_code(
            shardctl("join", self.path / "joined", self.out, other), 0
        )  # it is what stands there

    def test_the_copy_of_a_data_set_that_lost_a_table_says_so(self):
        for name in ("inputs.csv", "rejects.csv"):
            there, copied = self.path / f"lost-{name}", self.path / f"copied-{name}"
            shutil.copytree(self.out, there)
            (there / name).unlink()
            said = shardctl("copy", there, copied)
            self.assert_code(said, 0)
            self.assertIn(f"has no {name} any more", said.err)
            self.assertNotEqual(shardctl("verify", copied).code, 0)

    def test_damaged_tables_do_not_get_a_new_digest(self):
        other = self.path / "other"
        self.assert_code(shardify(make_images(self.path / "in2", classes=("dog",)), other, *SMALL), 0)
        for name in TABLES:
            whole = (self.out / name).read_bytes()
            (self.out / name).write_bytes(whole.replace(b"bee/", b"bed/", 1))
            for command in (
                ["join", self.path / "joined", self.out, other],
                ["join", self.path / "joined2", other, self.out],
            ):
                result = self.assert_code(shardctl(*command), 1)
                self.assertIn(name, result.err)
                self.assertIn("edited or damaged", result.err)
                self.assertFalse((command[1] / "dataset.json").exists())
            result = shardify(self.path / "in2", self.out, *SMALL, "--append")
            self.assert_refused(result, name, "edited or damaged")
            (self.out / name).write_bytes(whole)
            shutil.rmtree(self.path / "joined", ignore_errors=True)
            shutil.rmtree(self.path / "joined2", ignore_errors=True)
        self.assert_code(shardify(self.path / "in2", self.out, *SMALL, "--append"), 0)
        self.expect_covered(self.out)


class LinkedShards(TestCase):
    """A folder of symbolic links, as the cache of a hub makes it: snapshots/1/FILE -> ../../blobs/DIGEST."""

    def hub(self, name, classes):
        made = self.path / f"{name}-made"
        self.assert_code(shardify(make_images(self.path / f"{name}-in", classes=classes), made, *SMALL), 0)
        blobs, snapshot = self.path / name / "blobs", self.path / name / "snapshots" / "1"
        blobs.mkdir(parents=True)
        snapshot.mkdir(parents=True)
        for number, path in enumerate(sorted(made.iterdir())):
            path.rename(blobs / f"{number:040x}")
            os.symlink(f"../../blobs/{number:040x}", snapshot / path.name)
        return snapshot

    def test_join_takes_what_the_links_lead_to(self):
        a, b = self.hub("a", ("ant", "bee")), self.hub("b", ("bee", "cow"))
        self.assert_code(shardctl("join", self.out, a, b), 0)
        for path in self.out.iterdir():
            self.assertFalse(path.is_symlink(), path)
        self.assert_code(shardctl("verify", self.out), 0)
        self.assertEqual(
            (self.out / "shard-00000.safetensors").stat().st_ino,
            (a / "shard-00000.safetensors").stat().st_ino,
        )
        shutil.rmtree(self.path / "a")
        shutil.rmtree(self.path / "b")
        self.assert_code(shardctl("verify", self.out), 0)

    def test_a_link_that_leads_nowhere_in_the_new_folder_is_named(self):
        a, b = self.hub("a", ("ant",)), self.hub("b", ("bee",))
        self.out.mkdir()
        os.symlink("nowhere", self.out / "shard-00001.safetensors")
        result = self.assert_code(shardctl("join", self.out, a, b), 2)
        self.assertIn("shard-00001.safetensors", result.err)

    def test_the_other_programs_read_and_extend_them(self):
        a = self.hub("a", ("ant", "bee"))
        blobs = {path.name: path.read_bytes() for path in (self.path / "a" / "blobs").iterdir()}
        self.assert_code(shardctl("verify", a), 0)
        self.assert_code(shardctl("copy", a, self.path / "copied"), 0)
        self.assert_code(shardctl("repack", a, self.path / "packed", "--codec", "packed"), 0)
        write(self.path / "a-in" / "bee" / "0.png", png(77))
        self.assert_code(shardify(self.path / "a-in", a, *SMALL, "--refresh"), 0)
        self.assert_code(
            shardify(make_images(self.path / "more", classes=("dog",)), a, *SMALL, "--append"), 0
        )
        self.assert_code(shardctl("verify", a), 0)
        self.assertEqual(
            blobs, {path.name: path.read_bytes() for path in (self.path / "a" / "blobs").iterdir()}
        )


if __name__ == "__main__":
    main()
