#!/usr/bin/env python3
"""The first mistakes that a stranger makes with the programs, one a row. Each message says what happened,
with the value, and what to do, and the exit code is 2.

Those in Python: loader/python/tests/package/test_first_mistakes.py.
"""

import os
import re
import shutil
import subprocess
import unittest

from shardify_support import (
    SANITIZED,
    SHARDBENCH,
    SHARDCTL,
    SHARDIFY,
    SMALL,
    TestCase,
    main,
    make_images,
    run,
    shardify,
    write,
)

# What was done, the value that the message has, what it says to do.
MISTAKES = (
    # Paths.
    ("shardify trian new", 'no such folder: "trian"', 'has no "trian": correct the path'),
    ("shardify empty new", 'no images found in "empty"', "expected files such as .jpg, .png or .webp"),
    ("shardify texts new", r'no images found in "texts".*first "note.txt"', "expected files such as"),
    ("shardify photos/ant/0.png new", '"photos/ant/0.png" is not a folder', "give the folder that holds"),
    ("shardify photos photos/out", 'OUT "photos/out" is inside IMAGES "photos"', "choose a folder outside"),
    ("shardify photos photos", 'OUT "photos" is inside IMAGES "photos"', "choose a folder outside"),
    ("shardify photos texts", '"texts" is not empty', "choose an empty or a new folder"),
    ("shardify photos table.csv", '"table.csv" is not a folder', "choose an empty or a new folder"),
    ("shardify photos", "OUT is required", "--help"),
    ("shardify photos new more", '"more" is one argument too many', "Put quotes around a pattern.*--help"),
    (
        "shardify tars new",
        'no images found in "tars"',
        '"a.tar" is an archive: give it, or many as a pattern',
    ),
    (
        "shardify arrays new",
        'no images found in "arrays"',
        '"x.npy" is an array: give this file.*--array-layout',
    ),
    (
        "shardify mnist new",
        'no images found in "mnist"',
        '-ubyte" is an array: give the file that has the images',
    ),
    ("shardify tars/*.tar new", 'cannot open the archive "tars/[*].tar"', r"\{000\.\.146\} in a name counts"),
    (
        "shardify photos new --mask photos,klasses=2",
        'no setting "klasses"',
        "the settings are suffix, role, classes",
    ),
    ("shardify broken new", r'none of the 1 inputs could be stored \(the first, "ant/0.jpg":', "rejects.csv"),
    # Options.
    ("shardify photos new --prest train", 'no option "--prest"', "did you mean --preset"),
    ("shardify photos new --preset trian", '--preset "trian"', "expected train or eval"),
    ("shardify photos new --resize 0", '--resize "0"', "expected a size of 1 to 65535"),
    (
        "shardify photos new --resize 32 --crop 64",
        "--crop is 64x64",
        "make the crop smaller or --resize larger",
    ),
    ("shardify photos new --codec gzip", 'codec "gzip" is not known', "use none, packed, zstd"),
    ("shardify photos new --mean 124,116,104 --std 58,57,57", "mean 124 and std 58", "by 255"),
    ("shardify photos new --labels labels.csv", 'cannot open "labels.csv"', 'has no "labels.csv"'),
    ("shardify photos new --labels table.csv", '"table.csv": line 2: 1 fields', "2 are expected"),
    ("shardify photos new --coco boxes.json", 'cannot open "boxes.json"', 'has no "boxes.json"'),
    ("shardify photos new --classes ant,bee", 'cannot open "ant,bee"', 'has no "ant,bee"'),
    (
        "shardify photos out --resize 16 --crop 16",
        '"out" holds a conversion with other options',
        "--overwrite",
    ),
    # Data sets.
    ("shardctl", "a subcommand is required", "use one of: info, ls"),
    ("shardctl inf out", 'no subcommand "inf"', "use one of: info, ls"),
    ("shardctl info photos", '"photos": not a data set', "make a data set with: shardify photos OUT"),
    ("shardctl info empty", '"empty": an empty folder', "make a data set with: shardify IMAGES OUT"),
    ("shardctl info trian", '"trian": no such file or folder', 'has no "trian": correct the path'),
    ("shardctl verify out/shard-00000", '"out/shard-00000": no such', 'has no "shard-00000"'),
    ("shardctl info gone", 'shard "gone/shard-00000.safetensors" is missing', "restore it or convert again"),
    ("shardctl ls later", 'version "9": this build reads versions 1 to', "install a later one"),
    ("shardctl info edited", '"edited": dataset.json', "it was edited or damaged"),
    ("shardctl show out 1000 -o a.png", "sample 1000 does not exist", "has 12, numbered from 0"),
    ("shardctl show out 0", "standard output is not a terminal", "name a file with --output FILE.png"),
    ("shardctl split out --fractions 80,20", "--fractions has 80", "above 0 and at most 1"),
    ("shardctl split out --fractions 0.8,0.1", "add up to 0.9", "must add up to 1"),
    (
        "shardctl compare out texts",
        'can be read below "texts"',
        "is it the folder that the data set was made",
    ),
    ("shardctl repack out out --codec zstd", '"out": not empty', "give a new or empty folder"),
    ("shardctl repack out new --codec zip", 'codec "zip" is not known', "use none, packed, zstd"),
    ("shardctl export out --npy texts", '"texts": not empty', "give a new or empty folder"),
    ("shardctl export out", "export needs", "--output PATH, --npy DIR or --files DIR"),
    ("shardctl copy out s3://", '"s3://"', "expected s3://BUCKET/PREFIX"),
    ("shardbench load photos", "samples are of any size", "choose random_resized, a crop"),
    ("shardbench load trian", '"trian" does not exist', "correct the path"),
)
PROGRAMS = {"shardify": SHARDIFY, "shardctl": SHARDCTL, "shardbench": SHARDBENCH}


class FirstMistakes(TestCase):
    def setUp(self):
        super().setUp()
        make_images(self.path / "photos")
        self.assert_code(shardify(self.path / "photos", self.path / "out", *SMALL), 0)
        for name in ("gone", "edited", "later"):
            shutil.copytree(self.path / "out", self.path / name)
        (self.path / "gone" / "shard-00000.safetensors").unlink()
        later = self.path / "later" / "shard-00000.safetensors"
        head = later.read_bytes()
        later.write_bytes(re.sub(rb'("shard.profile":")\d', rb"\g<1>9", head, count=1))
        edited = self.path / "edited" / "dataset.json"
        edited.write_text(edited.read_text().replace('"samples": 12', '"samples": 99'))
        (self.path / "empty").mkdir()
        write(self.path / "texts" / "note.txt", b"no image")
        write(self.path / "tars" / "a.tar", b"")
        write(self.path / "arrays" / "x.npy", b"")
        write(self.path / "mnist" / "train-images-idx3-ubyte", b"")
        write(self.path / "broken" / "ant" / "0.jpg", b"\xff\xd8 cut off")
        write(self.path / "table.csv", b"path,label\nant/0.png\n")

    def test_each_message_says_what_happened_with_the_value_and_what_to_do(self):
        self.assertGreaterEqual(len(MISTAKES), 40)
        for command, happened, cure in MISTAKES:
            program, *arguments = command.split()
            with self.subTest(command):
                done = subprocess.run(
                    [PROGRAMS[program], *arguments],
                    capture_output=True,
                    text=True,
                    cwd=self.path,
                    timeout=300,
                    check=False,
                )
                self.assertEqual(done.returncode, 2, done.stderr)
                said = [line for line in done.stderr.splitlines(keepends=True) if "warning:" not in line]
                self.assertTrue(said and said[0].startswith(f"{program}: "), done.stderr)
                self.assertRegex("".join(said), re.compile(happened, re.DOTALL))
                self.assertRegex("".join(said), re.compile(cure, re.DOTALL))
                shutil.rmtree(self.path / "new", ignore_errors=True)

    @unittest.skipIf(SANITIZED or os.geteuid() != 0, "needs to mount a small file system")
    def test_a_disk_that_is_full_is_named_with_what_is_missing(self):
        script = (
            'mount -t tmpfs -o size=256k none "$1" 2>/dev/null || exit 77; '
            'exec "$2" "$3" "$1/out" --resize 256 --crop 256 --quiet'
        )
        (self.path / "full").mkdir()
        done = run(
            ["unshare", "-m", "bash", "-c", script, "-", self.path / "full", SHARDIFY, self.path / "photos"]
        )
        if done.code == 77:
            self.skipTest("nothing can be mounted")
        self.assert_code(done, 2)
        self.assertRegex(done.err, r'"[^"]*/full/out[^"]*"')
        self.assertRegex(done.err, r"free space|another disk|is free|are free")


if __name__ == "__main__":
    main()
