#!/usr/bin/env python3
"""shardctl export --format tar (shardify gives the same data set back)
and compare of two data sets, columns too."""

import json
import tarfile

from shardify_support import (
    SHARDIFY,
    TestCase,
    all_keys,
    all_labels,
    info,
    main,
    need,
    png,
    run,
    shardctl,
    shardify,
    stored_samples,
    write,
)

FORM = ["--resize", "32", "--crop", "32", "--samples-per-shard", "4", "--quiet"]
COLUMNS = ("caption:text", "boxes:f32[,4]", "ids:i64[]", "pose:f64[2,2]", "flag:bool", "size:u64", "half:f16")
OPTIONS = [part for column in COLUMNS for part in ("--column", column)]
ROWS = {
    "a/0.png": [
        '"a ""cat"", ä"',
        "1 2 3 4 0.1 -1e30 1e-40 0",
        "3 17 -4",
        "1 2 3e300 0.1",
        "true",
        "18446744073709551615",
        "0.333251953125",
    ],
    "a/1.png": ["", "", "", "0 -0.0 5e-324 1", "false", "0", "65504"],
    "b/0.png": ['"two\nlines"', "9 8 7 6", "1", "1 1 1 1", "true", "7", "0"],
    "b/x.y.png": ["dots", "", "5 5", "1 1 1 1", "false", "8", "1"],
    "b/x.z.png": ["more dots", "", "", "1 1 1 1", "false", "9", "2"],
}


def members(path):
    with tarfile.open(path) as archive:
        return {m.name: archive.extractfile(m).read() for m in archive}


class Sets(TestCase):
    def setUp(self):
        super().setUp()
        self.images = self.path / "in"
        for seed, name in enumerate(ROWS):
            write(self.images / name, png(seed))
        write(self.images / "b" / ("long" * 60 + ".png"), png(9))
        self.rows = {**ROWS, "b/" + "long" * 60 + ".png": ["long", "", "", "1 1 1 1", "true", "1", "3"]}
        self.out = self.convert("out", self.rows)

    def refused(self, result, *words):
        self.assert_code(result, 2)
        for word in words:
            self.assertIn(word, result.err)

    def convert(self, name, rows, columns=OPTIONS, options=("--dtype", "u8")):
        table = self.path / f"{name}.csv"
        names = [column.split(":")[0] for column in COLUMNS]
        write(
            table,
            (
                "path,"
                + ",".join(names)
                + "\n"
                + "".join(f"{key},{','.join(row)}\n" for key, row in rows.items())
            ).encode(),
        )
        out = self.path / name
        self.assert_code(shardify(self.images, out, *FORM, *options, "--labels", table, *columns), 0)
        return out

    def way_back(self, said, out):
        """Runs the command that was printed, in a shell, as a person does who copies it."""
        command = next(
            line for line in said.out.splitlines() if line.startswith("as a data set again: shardify ")
        ).split(": ", 1)[1]
        self.assertTrue(command.isprintable(), command)
        self.assertIn(" OUT ", command)
        script = command.replace("shardify", SHARDIFY, 1).replace(" OUT ", f" {out} ", 1)
        self.assert_code(run([need("bash"), "-c", script + " --quiet"]), 0)

    def test_the_way_back_is_quoted_for_the_shell_and_shows_no_control_characters(self):
        strange = self.path / 'it\'s $(touch gone); "x" ä'
        names = {
            "it's": "text",
            "a b;touch gone": "i64",
            "esc\x1b[31m": "f32[2]",
            "back\\slash`x`": "text",
            "ä:b": "i64[]",
        }
        header = "path," + ",".join('"' + name.replace('"', '""') + '"' for name in names) + "\n"
        table = write(
            strange / "labels.csv", (header + "".join(f"{key},w,1,1 2,v,3\n" for key in self.rows)).encode()
        )
        out = strange / "set"
        columns = [word for name, kind in names.items() for word in ("--column", f"{name}:{kind}")]
        self.assert_code(
            shardify(self.images, out, *FORM, "--codec", "packed", "--labels", table, *columns), 0
        )
        said = self.assert_code(shardctl("export", out, "--format", "tar", "-o", strange / "x.tar"), 0)
        self.assertNotIn("\x1b", said.out)
        self.way_back(said, self.path / "again")
        for member in ("dtype", "layout", "shape", "mean", "std", "codec", "classes", "columns", "samples"):
            self.assertEqual(info(self.path / "again")[member], info(out)[member], member)
        self.assertEqual(list(self.path.rglob("gone")), [])
        said = self.assert_code(shardctl("export", out, "--npy", self.path / "npy"), 0)
        self.assertNotIn("\x1b", said.out)
        self.assertIn("esc\\x1b[31m.npy", said.out)

    def test_what_does_not_come_back_from_a_tar_is_told(self):
        table = write(self.path / "vectors.csv", "".join(f"{key},0.5,1\n" for key in self.rows).encode())
        masks = self.path / "masks"
        for seed, key in enumerate(self.rows):
            write(masks / key, png(seed))
        out = self.path / "vectors"
        self.assert_code(shardify(self.images, out, *FORM, "--labels", table, "--pair", f"depth={masks}"), 0)
        said = self.assert_code(shardctl("export", out, "--format", "tar", "-o", self.path / "v.tar"), 0)
        self.assertIn(
            'without the labels, which are lists of numbers in the .json members, the images "depth"\n',
            said.out,
        )

    def test_a_tar_gives_the_data_set_back(self):
        for dtype in "u8", "f16", "f32":
            out = self.convert(f"out-{dtype}", self.rows, options=("--dtype", dtype))
            tar = self.path / f"{dtype}.tar"
            said = self.assert_code(shardctl("export", out, "--format", "tar", "-o", tar), 0)
            self.assertIn("--column 'boxes:f32[,4]'", said.out)
            again = self.path / f"again-{dtype}"
            self.way_back(said, again)
            for member in (
                "dtype",
                "layout",
                "shape",
                "mean",
                "std",
                "codec",
                "classes",
                "columns",
                "samples",
            ):
                self.assertEqual(info(again)[member], info(out)[member], member)
            self.assertEqual(all_labels(again), all_labels(out))
            same = [key.replace(".png", "").replace("x.", "x_") + ".png" for key in all_keys(out)]
            self.assertEqual(all_keys(again), same)
            self.assertEqual(list(stored_samples(again).values()), list(stored_samples(out).values()))
            one, two = (
                json.loads(self.assert_code(shardctl("ls", folder, "--columns", "--json"), 0).out)
                for folder in (out, again)
            )
            without_key = [{name: value for name, value in line.items() if name != "key"} for line in one]
            self.assertEqual(
                without_key, [{name: value for name, value in line.items() if name != "key"} for line in two]
            )
            self.assertEqual(without_key[0]["columns"]["caption"], 'a "cat", ä')
        found = members(tar)
        self.assertEqual(found["a/0.cls"], b"0")
        self.assertEqual(json.loads(found["a/0.json"])["boxes"], [[1, 2, 3, 4], [0.1, -1e30, 1e-40, 0]])
        self.assertEqual(json.loads(found["a/0.json"])["class"], "a")
        self.assertEqual(json.loads(found["b/x_y.json"])["ids"], [5, 5])
        self.assertTrue(found["b/" + "long" * 60 + ".png"].startswith(b"\x89PNG"))

    def test_a_tar_is_there_complete_or_not_at_all(self):
        tar = self.path / "x.tar"
        write(tar, b"mine")
        self.refused(shardctl("export", self.out, "--format", "tar", "-o", tar), "exists")
        self.assertEqual(tar.read_bytes(), b"mine")
        shard = next(self.out.glob("shard-*.safetensors"))
        data = bytearray(shard.read_bytes())
        data[-100] ^= 1
        shard.write_bytes(data)
        other = self.path / "y.tar"
        self.assert_code(shardctl("export", self.out, "--format", "tar", "-o", other), 1)
        self.assertFalse(other.exists())
        self.assertEqual([p.name for p in self.path.iterdir() if p.name.startswith(".")], [])

    def test_words_that_do_not_fit_are_refused(self):
        self.refused(
            shardctl("export", self.out, "--format", "parquet", "-o", "x"),
            "python -m shardloader export",
            "--parquet x",
        )
        self.refused(shardctl("export", self.out, "--format", "tar"), "--output")
        self.refused(shardctl("export", self.out), "--npy DIR")
        self.refused(
            shardctl("export", self.out, "--npy", self.path / "n", "--format", "tar"), "give one of them"
        )
        self.assert_code(shardctl("export", self.out, "--format", "npy", "-o", self.path / "n", "--quiet"), 0)
        self.assertTrue((self.path / "n" / "images.npy").exists())

    def test_equal_sets_are_identical_and_the_first_difference_is_named(self):
        other = self.convert("other", self.rows)
        said = self.assert_code(shardctl("compare", self.out, other), 0)
        self.assertIn("identical", said.out)
        for column, changed, words in (
            (0, "another", 'caption: 1 sample differs, first sample "b/0.png": "two'),
            (1, "9 8 7 5", '"9 8 7 6" and "9 8 7 5"'),
            (1, "9 8 7 6 1 1 1 1", "boxes: 1 sample"),
            (3, "1 1 1 2", "pose: 1 sample"),
        ):
            rows = {key: list(row) for key, row in self.rows.items()}
            rows["b/0.png"][column] = changed
            out = self.convert(f"changed{column}{len(changed)}", rows)
            said = self.assert_code(shardctl("compare", self.out, out), 1)
            self.assertIn(words, said.out)
            report = json.loads(shardctl("compare", self.out, out, "--json").out)
            self.assertFalse(report["identical"])
            self.assertEqual(list(report["differences"]), [COLUMNS[column].split(":")[0]])

    def test_other_columns_samples_and_pixels(self):
        less = self.convert("less", self.rows, columns=["--column", "caption:text", "--column", "ids:f32[]"])
        said = self.assert_code(shardctl("compare", self.out, less), 1)
        self.assertIn('column "boxes": ragged f32 [4], only in the first', said.out)
        self.assertIn('column "ids": ragged i64', said.out)
        write(self.images / "a" / "0.png", png(99))
        pixels = self.convert("pixels", self.rows)
        self.assertIn(
            'images: 1 sample differs, first sample "a/0.png"',
            self.assert_code(shardctl("compare", self.out, pixels), 1).out,
        )
        (self.images / "a" / "1.png").unlink()
        fewer = self.convert("fewer", {key: row for key, row in self.rows.items() if key != "a/1.png"})
        self.assertIn(
            'only in the first: 1 sample, first "a/1.png"',
            self.assert_code(shardctl("compare", pixels, fewer), 1).out,
        )
        self.assertIn(
            "only in the second: 1 sample", self.assert_code(shardctl("compare", fewer, pixels), 1).out
        )
        other = self.convert(
            "dtype",
            {key: row for key, row in self.rows.items() if key != "a/1.png"},
            options=("--dtype", "f32"),
        )
        self.assertIn("samples: u8", self.assert_code(shardctl("compare", fewer, other), 1).out)


if __name__ == "__main__":
    main()
