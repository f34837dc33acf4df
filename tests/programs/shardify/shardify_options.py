#!/usr/bin/env python3
"""shardify: each option's effect on what is stored and recorded, the configuration file, exit codes, OUT."""

import json
import os
import re
import signal
import subprocess
import time
import unittest

from shardify_support import (
    SHARDIFY,
    SMALL,
    TestCase,
    all_keys,
    digests,
    environment,
    info,
    main,
    make_images,
    make_photos,
    need,
    need_root,
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

IMAGENET_MEAN = [0.485, 0.456, 0.406]


def metadata(out):
    return read_shard(shards(out)[0])[0]


def sample(out):
    """dtype and shape of one sample, from the tensor."""
    dtype, shape, _ = read_shard(shards(out)[0])[1]["images"]
    return dtype, shape[1:]


class Options(TestCase):
    def setUp(self):
        super().setUp()
        self.images = make_images(self.path / "in", ("a", "b"), each=2)
        self.count = 0

    def convert(self, *options):
        """A conversion into a new folder, with no options but these."""
        self.count += 1
        self.out = self.path / f"out{self.count}"
        self.assert_code(shardify(self.images, self.out, "--quiet", *options), 0)
        return info(self.out)

    def test_train_is_the_default_preset(self):
        default = self.convert()
        first = digests(self.out)
        self.assertEqual(sample(self.out), ("U8", [256, 256, 3]))
        self.assertEqual(default["pipeline"]["resize"], "short 256")
        self.assertEqual(default["pipeline"]["crop"], "center 256x256")
        self.assertEqual(default["pipeline"]["filter"], "bilinear")
        self.assertIn("0.485", json.dumps(default))  # recorded for after loading
        self.convert("--preset", "train")
        self.assertEqual(digests(self.out), first)

    def test_eval_is_224_f16_nchw(self):
        pipeline = self.convert("--preset", "eval")["pipeline"]
        self.assertEqual(sample(self.out), ("F16", [3, 224, 224]))
        self.assertEqual(pipeline["crop"], "center 224x224")

    def test_options_change_the_preset(self):
        self.convert("--preset", "train", "--crop", "64", "--layout", "nchw", "--dtype", "f32")
        self.assertEqual(sample(self.out), ("F32", [3, 64, 64]))

    def test_sizes_and_crops(self):
        for options, shape, resize, crop in (
            (["--resize", "40", "--crop", "24"], [24, 24, 3], "short 40", "center 24x24"),
            (["--resize", "40", "--crop", "20x30"], [30, 20, 3], "short 40", "center 20x30"),
            (["--resize", "40"], [40, 40, 3], "short 40", "center 40x40"),
            (["--squash", "20x30"], [30, 20, 3], "squash 20x30", "none"),
            (["--squash", "20x30", "--crop", "none"], [30, 20, 3], "squash 20x30", "none"),
            (["--squash", "40x30", "--crop", "16"], [16, 16, 3], "squash 40x30", "center 16x16"),
        ):
            with self.subTest(options=options):
                pipeline = self.convert(*options)["pipeline"]
                self.assertEqual(sample(self.out)[1], shape)
                self.assertEqual((pipeline["resize"], pipeline["crop"]), (resize, crop))

    def test_dtypes_layouts_and_filters(self):
        seen = set()
        for dtype, stored in (("u8", "U8"), ("f16", "F16"), ("bf16", "BF16"), ("f32", "F32")):
            self.convert("--resize", "32", "--crop", "32", "--dtype", dtype)
            self.assertEqual(sample(self.out), (stored, [32, 32, 3]))
        for dtype, stored in (("uint8", "U8"), ("float16", "F16"), ("bfloat16", "BF16"), ("float32", "F32")):
            self.convert("--resize", "32", "--crop", "32", "--dtype", dtype)
            self.assertEqual(sample(self.out), (stored, [32, 32, 3]))
        self.convert("--resize", "32", "--crop", "24x32", "--layout", "nchw")
        self.assertEqual(sample(self.out), ("U8", [3, 32, 24]))
        for name in ("bilinear", "bicubic", "lanczos", "box"):
            self.assertEqual(
                self.convert("--resize", "24", "--crop", "24", "--filter", name)["pipeline"]["filter"], name
            )
            seen.add(read_shard(shards(self.out)[0])[1]["images"][2])
        self.assertEqual(len(seen), 4, "two filters gave the same pixels")

    def test_normalisations(self):
        seen = set()
        for options in (
            ["imagenet"],
            ["clip"],
            ["half"],
            ["none"],
            ["none", "--mean", "0.1,0.2,0.3"],
            ["none", "--std", "0.5,1,2"],
        ):
            self.convert("--resize", "24", "--crop", "24", "--dtype", "f32", "--normalize", *options)
            seen.add(read_shard(shards(self.out)[0])[1]["images"][2])
        self.assertEqual(len(seen), 6)
        self.convert("--resize", "24", "--crop", "24", "--dtype", "u8", "--normalize", "none")
        plain = read_shard(shards(self.out)[0])[1]["images"][2]
        self.convert("--resize", "24", "--crop", "24", "--dtype", "u8", "--normalize", "clip")
        self.assertEqual(read_shard(shards(self.out)[0])[1]["images"][2], plain, "u8 is stored as it is")
        self.assertNotEqual(metadata(self.out), {})

    def test_codec_zstd_is_smaller_and_recorded(self):
        self.convert("--resize", "32", "--crop", "32", "--dtype", "u8")
        plain = shards(self.out)[0].stat().st_size
        for codec in ("zstd", "zstd:1", "zstd:19"):
            self.convert("--resize", "32", "--crop", "32", "--dtype", "u8", "--codec", codec)
            self.assertIn("zstd", json.dumps(info(self.out)))
            self.assertIn("image_frames", read_shard(shards(self.out)[0])[1])
            self.assertNotEqual(shards(self.out)[0].stat().st_size, plain)

    def test_codec_packed_is_smaller_recorded_and_announced(self):
        self.images = make_photos(self.path / "photos", 3)
        size = ("--resize", "64", "--crop", "64")
        for dtype, times in (("u8", 1.4), ("f16", 2.8), ("bf16", 2.8), ("f32", 5.6)):
            self.convert(*size, "--dtype", dtype)
            plain, unpacked = shards(self.out)[0].stat().st_size - 4096, self.exported(dtype)
            planned = json.loads(
                self.assert_code(
                    shardify(self.images, self.path / "dry", *size, "--dtype", dtype, "--dry-run", "--json"),
                    0,
                ).out
            )
            self.convert(*size, "--dtype", dtype, "--codec", "packed")
            packed = shards(self.out)[0].stat().st_size - 4096
            self.assertEqual(info(self.out)["codec"], "packed")
            self.assertLess(packed * times, plain)
            self.assertAlmostEqual(planned["bytes_packed"] / packed, 1, delta=0.01)
            printed = json.loads(self.assert_code(shardctl("info", "--json", self.out), 0).out)
            self.assertAlmostEqual(printed["bits_per_value"], 8 * packed / (3 * 3 * 64 * 64), delta=0.001)
            self.assertEqual(self.exported(dtype + "-packed"), unpacked, "the same values bit for bit")
            self.assert_code(shardctl("verify", self.out), 0)

    def exported(self, name):
        folder = self.path / "exported" / name
        self.assert_code(shardctl("export", self.out, "--npy", folder), 0)
        return (folder / "images.npy").read_bytes()

    def test_shard_size_and_samples_per_shard(self):
        self.convert("--resize", "32", "--crop", "32", "--dtype", "u8", "--samples-per-shard", "3")
        self.assertEqual([s["samples"] for s in info(self.out)["shards"]], [3, 1])
        self.convert("--resize", "32", "--crop", "32", "--dtype", "u8", "--shard-bytes", "6KiB")
        self.assertEqual([s["samples"] for s in info(self.out)["shards"]], [2, 2])

    def test_fast_decode_is_recorded_and_off_by_default(self):
        photos = make_photos(self.path / "photos", 2)
        self.images = photos
        self.assertEqual(self.convert("--resize", "32", "--crop", "32")["pipeline"]["fast_decode"], "off")
        exact = digests(self.out)
        self.assertEqual(
            self.convert("--resize", "32", "--crop", "32", "--fast-decode")["pipeline"]["fast_decode"], "on"
        )
        self.assertNotEqual(digests(self.out), exact)

    def test_max_pixels_refuses_larger_images(self):
        write(self.images / "a" / "larger.png", png(1, 60, 60))
        self.assert_code(shardify(self.images, self.out, *SMALL, "--max-pixels", "3599"), 1)
        self.assertIn("3599", rejects(self.out)["a/larger.png"].replace(",", ""))

    def test_the_advice_of_a_reject_works_on_a_finished_data_set(self):
        write(self.images / "a" / "0.png", png(1, 60, 60))
        command = [self.images, self.out, *SMALL[:-3], "--samples-per-shard", "2", "--quiet"]
        self.assert_code(shardify(*command, "--max-pixels", "3599"), 1)
        self.assertIn(
            "(--max-pixels), of a finished data set together with --refresh", rejects(self.out)["a/0.png"]
        )
        before = digests(self.out)
        self.assert_code(shardify(*command, "--max-pixels", "3599"), 1)
        refused = shardify(*command, "--max-pixels", "3600")
        self.assert_refused(
            refused,
            "1 of the rejects has more pixels than the bound that was given then",
            "a/0.png",
            "3599",
            "--refresh",
        )
        self.assertEqual(digests(self.out), before)
        self.assert_code(shardify(*command, "--max-pixels", "3600", "--refresh"), 0)
        self.assertIn("a/0.png", all_keys(self.out))
        kept = [
            name
            for name, digest in digests(self.out).items()
            if b"shard-" in name and before.get(name) == digest
        ]
        self.assertGreater(len(kept), 0, "shards without such a reject stay")
        alone = self.path / "alone"
        self.assert_code(shardify(self.images, alone, *command[2:], "--max-pixels", "3600"), 0)
        self.assertEqual(digests(self.out), digests(alone))
        self.assert_code(shardify(*command), 0)

    def test_the_advice_of_a_reject_works_on_an_unfinished_conversion(self):
        write(self.images / "a" / "0.png", png(1, 60, 60))
        write(self.images / "zzz" / "bad.png", b"bad")
        command = [self.images, self.out, *SMALL[:-3], "--samples-per-shard", "2", "--quiet", "--jobs", "1"]
        # Rank 0 of 2 finishes its shards, and the data set is not complete.
        self.assert_code(shardify(*command, "--max-pixels", "3599", "--rank", "0", "--world-size", "2"), 3)
        self.assertEqual(state(self.out), "incomplete")
        self.assert_code(shardify(*command), 1)
        self.assertIn("a/0.png", all_keys(self.out))
        self.assertEqual(list(rejects(self.out)), ["zzz/bad.png"])

    def test_the_advice_of_a_reject_works_on_appended_images(self):
        self.assert_code(shardify(self.images, self.out, *SMALL), 0)
        more = self.path / "more"
        write(more / "a" / "large.png", png(1, 60, 60))
        write(more / "a" / "small.png", png(2, 50, 50))
        self.assert_code(shardify(more, self.out, *SMALL, "--append", "--max-pixels", "3599"), 1)
        self.assert_refused(shardify(more, self.out, *SMALL, "--append"), "a/large.png", "append them alone")
        listed = write(self.path / "list.txt", os.fsencode(more / "a" / "large.png") + b"\n")
        self.assert_code(shardify("@" + os.fspath(listed), self.out, *SMALL, "--append", "--root", more), 0)
        self.assertIn("a/large.png", all_keys(self.out))

    def test_a_configuration_file_sets_any_option_and_the_command_line_wins(self):
        config = write(
            self.path / "c.ini",
            b'resize=40\ncrop=24\ndtype=f32\nlayout="nhwc"\nquiet=true\nsamples-per-shard=3\n'
            b'normalize=clip\ncodec="zstd:2"\njobs=1\n',
        )
        self.convert("--config", config)
        by_file = digests(self.out)
        self.convert(
            "--resize",
            "40",
            "--crop",
            "24",
            "--dtype",
            "f32",
            "--layout",
            "nhwc",
            "--samples-per-shard",
            "3",
            "--normalize",
            "clip",
            "--codec",
            "zstd:2",
        )
        self.assertEqual(digests(self.out), by_file)
        self.convert("--config", config, "--crop", "16", "--codec", "none")
        self.assertEqual(sample(self.out), ("F32", [16, 16, 3]))
        write(config, b"no-such-option=1\n")
        refused = self.assert_code(shardify(self.images, self.path / "n", "--config", config), 2)
        self.assertIn(f'"{config}": line 1: unknown option "no-such-option"', refused.err)
        write(config, b"# lists need no quotes\nresize = 24\ncrop = 24\nmean = 0.5,0.25,0.125\n")
        self.convert("--config", config)
        self.assertEqual(metadata(self.out)["mean"], "0.5,0.25,0.125")
        self.assert_code(shardify(self.images, self.path / "n", "--config", self.path / "none.ini"), 2)
        self.assertEqual(state(self.path / "n"), "absent")

    def test_bad_values_are_usage_errors_that_name_the_option(self):
        for options in (
            ["--preset", "best"],
            ["--resize", "0"],
            ["--resize", "x"],
            ["--resize", "70000"],
            ["--crop", "-1"],
            ["--crop", "3x"],
            ["--squash", "20"],
            ["--squash", "2x2x2"],
            ["--filter", "hamming"],
            ["--dtype", "i64"],
            ["--dtype", "f64"],
            ["--layout", "hwc"],
            ["--mean", "1,2"],
            ["--std", "1,2,x"],
            ["--mean", "1,2,3,4"],
            ["--mean", "123.7,116.3,103.5"],
            ["--std", "58.4,57.1,57.4"],
            ["--std", "0,1,1"],
            ["--std", "nan,1,1"],
            ["--normalize", "maybe"],
            ["--codec", "gzip"],
            ["--codec", "zstd:99"],
            ["--shard-bytes", "1"],
            ["--shard-bytes", "many"],
            ["--samples-per-shard", "0"],
            ["--samples-per-shard", "4", "--shard-bytes", "1MiB"],
            ["--jobs", "0"],
            ["--jobs", "9999"],
            ["--on-error", "maybe"],
            ["--max-pixels", "0"],
            ["--rank", "1"],
            ["--rank", "3", "--world-size", "3"],
            ["--world-size", "0", "--rank", "0"],
            ["--no-such-option"],
        ):
            with self.subTest(options=options):
                result = shardify(self.images, self.out, *options)
                self.assert_refused(result, {"--world-size": "--rank"}.get(options[0], options[0]))
                self.assertEqual(state(self.out), "absent")
        self.assert_refused(shardify(self.images), "OUT")
        self.assert_refused(shardify(self.images, self.out, "--resize", "32", "--squash", "4x4"), "--squash")
        self.assert_refused(
            shardify(self.images, self.out, "--resize", "32", "--crop", "64"), "--crop", "--resize"
        )

    def test_help_names_every_option(self):
        text = self.assert_code(shardify("--help-all"), 0).out
        for option in (
            "labels root preset resize crop squash filter dtype layout mean std normalize codec shard-bytes "
            "samples-per-shard jobs on-error max-pixels fast-decode dry-run overwrite refresh json quiet "
            "config rank "
            "world-size completion help"
        ).split():
            self.assertIn(f"--{option}", text)
        for code in (0, 1, 2, 3, 130):
            self.assertIn(f"\n- {code}: ", text)
        version = self.assert_code(shardify("--version"), 0).out
        self.assertRegex(version, r"\d+\.\d+")
        self.assertRegex(version, r"\nservers: (none|libcurl \d.* \(.*\), certificates: .+)\n")


class Output(TestCase):
    def setUp(self):
        super().setUp()
        self.images = make_images(self.path / "in", ("a", "b"), each=3)

    def test_a_summary_that_cannot_be_printed_does_not_hide_that_the_work_is_done(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run(
                [SHARDIFY, self.images, self.path / "out"],
                stdout=full,
                stderr=subprocess.PIPE,
                text=True,
                env=environment(),
            )
        self.assertEqual(done.returncode, 2)
        self.assertIn("the data set is complete, but its summary could not be printed", done.stderr)
        self.assertEqual(state(self.path / "out"), "complete")

    def test_a_dry_run_writes_nothing(self):
        before = digests(self.path)
        plan = self.assert_code(shardify(self.images, self.out, "--dry-run"), 0).out
        for word in ("6 images", "classes: 2", "free", "time"):
            self.assertIn(word, plan)
        plan = json.loads(
            self.assert_code(shardify(self.images, self.out, "--dry-run", "--json", *SMALL), 0).out
        )
        self.assertEqual((plan["inputs"], plan["shards"], plan["bytes"]), (6, 2, 6 * 3072))
        self.assertEqual(plan["classes"], {"a": 3, "b": 3})
        self.assertEqual(digests(self.path), before)
        self.assertEqual(state(self.out), "absent")

    def test_images_that_would_be_enlarged_are_told_before(self):
        images = self.path / "sizes"
        for i in range(20):
            write(images / "a" / f"{i:02}.png", png(i, *((300, 256) if i else (255, 400))))
        for folder, wanted, words in (
            (
                self.images,
                [],
                (
                    "100 % of the images are smaller than 256x256 and would be enlarged (6 of 6 that were "
                    "looked at): --squash 48x40 stores them as they are"
                ),
            ),
            (self.images, ["--squash", "49x40"], "100 % of the images are smaller than 49x40"),
            (
                images,
                [],
                (
                    "5 % of the images are smaller than 256x256 and would be enlarged (1 of 20 that were "
                    "looked at): smaller values of --resize and --crop"
                ),
            ),
            (images, ["--resize", "255", "--crop", "224"], None),
        ):
            said = self.assert_code(shardify(folder, self.out, "--dry-run", *wanted), 0)
            plan = json.loads(
                self.assert_code(shardify(folder, self.out, "--dry-run", "--json", *wanted), 0).out
            )
            self.assertEqual(plan["sized"], 6 if folder == self.images else 20)
            if words is None:
                self.assertNotIn("enlarged", said.out)
                self.assertEqual((plan["smaller"], plan["notes"]), (0, []))
            else:
                self.assertIn(f"warning: {words}", said.out)
                self.assertIn(words, plan["notes"][0])
        started = self.assert_code(shardify(self.images, self.out, "--quiet"), 0)
        self.assertTrue(
            started.err.startswith("shardify: warning: 100 % of the images are smaller than 256x256"), started
        )
        self.assertEqual(
            self.assert_code(shardify(self.images, self.out, "--quiet"), 0).err, ""
        )  # it is there
        self.assertEqual(
            self.assert_code(shardify(images, self.path / "few", "--quiet"), 0).err, ""
        )  # fewer than a tenth

    def test_json_is_a_summary_and_nothing_else(self):
        write(self.images / "a" / "bad.png", b"not a picture")
        summary = json.loads(self.assert_code(shardify(self.images, self.out, *SMALL, "--json"), 1).out)
        self.assertEqual(
            (
                summary["complete"],
                summary["inputs"],
                summary["samples"],
                summary["rejects"],
                summary["shards"],
            ),
            (True, 7, 6, 1, 2),
        )
        self.assertEqual(summary["converted"], 6)
        again = json.loads(self.assert_code(shardify(self.images, self.out, *SMALL, "--json"), 1).out)
        self.assertTrue(again["was_complete"])
        self.assertEqual((again["converted"], again["rejects"]), (0, 1))

    def test_the_summary_says_what_there_is(self):
        result = self.assert_code(shardify(self.images, self.out, *[o for o in SMALL if o != "--quiet"]), 0)
        self.assertIn("complete: 6 samples in 2 shards", result.out)
        result = self.assert_code(shardify(self.images, self.out, *[o for o in SMALL if o != "--quiet"]), 0)
        self.assertIn("already complete", result.out)

    def test_quiet_says_nothing(self):
        result = self.assert_code(shardify(self.images, self.out, *SMALL), 0)
        self.assertEqual((result.out, result.err), ("", ""))

    def test_on_error_fail_stops_at_the_bad_file_and_names_it(self):
        write(self.images / "a" / "bad.png", b"not a picture")
        self.assert_refused(
            shardify(self.images, self.out, *SMALL, "--on-error", "fail"), "a/bad.png", "--on-error fail"
        )
        self.assertNotEqual(state(self.out), "complete")
        os.remove(self.images / "a" / "bad.png")
        self.assert_refused(shardify(self.images, self.out, *SMALL), 'inputs: "7" recorded, "6" requested')
        self.assert_code(shardify(self.images, self.out, *SMALL, "--overwrite"), 0)
        self.assertEqual(len(all_keys(self.out)), 6)

    def test_the_same_command_again_changes_nothing(self):
        self.assert_code(shardify(self.images, self.out, *SMALL), 0)
        before = digests(self.out)
        times = {p: p.stat().st_mtime_ns for p in self.out.iterdir()}
        self.assert_code(shardify(self.images, self.out, *SMALL), 0)
        self.assertEqual(digests(self.out), before)
        self.assertEqual({p: p.stat().st_mtime_ns for p in self.out.iterdir()}, times)

    def test_nothing_but_the_data_set_is_left(self):
        self.assert_code(shardify(self.images, self.out, *SMALL), 0)
        self.assertEqual(
            sorted(p.name for p in self.out.iterdir()),
            [
                "dataset.json",
                "inputs.csv",
                "rejects.csv",
                "shard-00000.safetensors",
                "shard-00001.safetensors",
            ],
        )

    def test_other_options_on_the_same_out_are_refused_and_named(self):
        self.assert_code(shardify(self.images, self.out, *SMALL), 0)
        before = digests(self.out)
        for options, words in (
            (["--filter", "box"], ['filter: "bilinear" recorded, "box" requested']),
            (["--codec", "zstd"], ['codec: "none" recorded, "zstd:3" requested']),
            (["--layout", "nchw"], ["layout"]),
            (["--mean", "0.5,0.5,0.5"], ["mean"]),
            (["--std", "0.5,0.5,0.5"], ["std"]),
            (["--fast-decode"], ["fast_decode"]),
        ):
            with self.subTest(options=options):
                self.assert_refused(
                    shardify(self.images, self.out, *SMALL, *options), self.out, "--overwrite", *words
                )
        for change in (
            ["--resize", "40"],
            ["--crop", "16"],
            ["--dtype", "f32"],
            ["--samples-per-shard", "2"],
        ):
            with self.subTest(options=change):
                place = SMALL.index(change[0])
                other = SMALL[:place] + change + SMALL[place + 2 :]
                self.assert_refused(
                    shardify(self.images, self.out, *other), change[0].strip("-").replace("-", "_")
                )
        write(self.path / "l.csv", b"a/0.png,1\na/1.png,1\na/2.png,1\nb/0.png,2\nb/1.png,2\nb/2.png,2\n")
        self.assert_refused(
            shardify(self.images, self.out, *SMALL, "--labels", self.path / "l.csv"), "labels"
        )
        write(self.images / "b" / "more.png", png(1))
        self.assert_refused(shardify(self.images, self.out, *SMALL), 'inputs: "6" recorded, "7" requested')
        self.assertEqual(digests(self.out), before)

    def test_overwrite_replaces_a_data_set_by_the_new_one_only(self):
        self.assert_code(shardify(self.images, self.out, *SMALL[:-2], "1", "--quiet"), 0)
        self.assertEqual(len(shards(self.out)), 6)
        self.assert_code(shardify(self.images, self.out, *SMALL, "--overwrite"), 0)
        replaced = digests(self.out)
        self.assert_code(shardify(self.images, self.path / "new", *SMALL), 0)
        self.assertEqual(replaced, digests(self.path / "new"))

    def test_out_that_is_not_ours_is_left_alone(self):
        write(self.out / "thesis.txt", b"years of work")
        for options in ([], ["--overwrite"]):
            self.assert_refused(shardify(self.images, self.out, *SMALL, *options), self.out, "not empty")
        self.assertEqual(os.listdir(self.out), ["thesis.txt"])
        self.assert_refused(shardify(self.images, self.out / "thesis.txt", *SMALL), "thesis.txt")
        self.assert_refused(shardify(self.images, self.out / "thesis.txt" / "x", *SMALL), "thesis.txt")

    def test_overwrite_keeps_files_of_others(self):
        self.assert_code(shardify(self.images, self.out, *SMALL), 0)
        write(self.out / "notes.txt", b"mine")
        self.assert_code(shardify(self.images, self.out, *SMALL, "--overwrite"), 0)
        self.assertEqual((self.out / "notes.txt").read_bytes(), b"mine")

    def test_out_inside_images_is_refused(self):
        os.symlink(self.images, self.path / "link")
        for images, out in (
            (self.images, self.images / "out"),
            (self.images, self.images),
            (self.images, self.images / "a" / ".."),
            (self.path / "link", self.images / "a" / "out"),
            (self.images, self.path / "link" / "new" / "er"),
            (self.images, f"{self.images}/new/"),
        ):
            with self.subTest(images=images, out=out):
                self.assert_refused(shardify(images, out, *SMALL), "inside IMAGES", "choose a folder outside")
        self.assertEqual(sorted(os.listdir(self.images)), ["a", "b"])
        self.assert_code(
            shardify(self.images, self.path / "in-not", *SMALL), 0
        )  # beside, with a common prefix

    def test_no_images(self):
        (self.path / "empty" / "deep").mkdir(parents=True)
        self.assert_refused(
            shardify(self.path / "empty", self.out, *SMALL), "nothing to convert", self.path / "empty"
        )
        self.assert_refused(
            shardify(self.path / "none", self.out, *SMALL), "no such folder", self.path / "none"
        )
        self.assert_refused(shardify(self.images / "a" / "0.png", self.out, *SMALL), "not a folder")
        self.assertEqual(state(self.out), "absent")

    def test_only_bad_inputs_are_exit_2_and_no_data_set(self):
        write(self.path / "bad" / "a" / "x.jpg", b"no")
        write(self.path / "bad" / "b" / "y.jpg", b"")
        for _ in range(2):
            self.assert_refused(
                shardify(self.path / "bad", self.out, *SMALL), "none of the 2 inputs", "rejects.csv"
            )
            self.assertEqual(len(rejects(self.out)), 2)
            self.assertNotEqual(state(self.out), "complete")

    def on_terminal(self, term, before="true"):
        """What a terminal is sent while 300 pictures are converted on one thread, without the summary."""
        need("script")
        if not (self.path / "photos").exists():
            for photo in list(make_photos(self.path / "photos", 30).rglob("*.jpg")):
                for i in range(9):
                    os.link(photo, photo.with_name(f"{i}{photo.name}"))
        command = (
            f"{before}; '{SHARDIFY}' '{self.path}/photos' '{self.out}' --jobs 1 --overwrite --dtype "
            "f32 --resize 448 --crop 448"
        )
        env = (
            environment(TERM=term)
            if term is not None
            else {k: v for k, v in environment().items() if k != "TERM"}
        )
        result = run(["script", "-qec", command, "/dev/null"], timeout=600, env=env)
        return self.assert_code(result, 0).out.split("complete:")[0]

    def test_a_terminal_sees_a_live_line_with_the_time_left_first(self):
        frames = [
            frame
            for frame in self.on_terminal("xterm").split("\r\x1b[K")
            if "images" in frame and "warning" not in frame
        ]
        self.assertRegex(frames[0], "^[0-9]+ / 300 images$", "no rate before it has been watched for a while")
        rated = [frame for frame in frames if "images/s" in frame]
        self.assertNotEqual(rated, [], frames)
        for frame in rated:
            self.assertRegex(
                frame,
                r"^[0-9.]+ (s|min [0-9]+ s) left, [0-9]+ / 300 images, [0-9]+ images/s, "
                r"read [0-9.]+ [KM]?i?B/s",
            )
            self.assertLessEqual(float(re.search(r"([0-9]+) images/s", frame).group(1)), 300 / 0.5)

    def test_a_narrow_terminal_shows_the_time_left(self):
        frames = [
            frame for frame in self.on_terminal("xterm", "stty cols 24").split("\r\x1b[K") if "left" in frame
        ]
        self.assertNotEqual(frames, [])
        self.assertLess(max(map(len, frames)), 24)

    def test_a_dumb_terminal_is_sent_no_escape_codes(self):
        for term in ("dumb", None):
            self.assertNotIn("\x1b", self.on_terminal(term))


class Interruption(TestCase):
    def test_ctrl_c_stops_within_a_second_and_says_how_to_go_on(self):
        images = make_images(self.path / "in", [f"c{i}" for i in range(10)], each=1)
        for folder in images.iterdir():  # many names of few pictures: long enough to be interrupted
            for i in range(400):
                os.link(folder / "0.png", folder / f"l{i}.png")
        options = [
            "--resize",
            "512",
            "--crop",
            "512",
            "--dtype",
            "f32",
            "--samples-per-shard",
            "30",
            "--jobs",
            "2",
        ]
        for number in (signal.SIGINT, signal.SIGTERM):
            with subprocess.Popen(
                [SHARDIFY, str(images), str(self.out), *options],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=environment(),
            ) as process:
                deadline = time.monotonic() + 30
                while (
                    len(shards(self.out)) < (1 if number == signal.SIGINT else 3)
                    and time.monotonic() < deadline
                ):
                    time.sleep(0.01)
                self.assertIsNone(process.poll(), "ended before it could be interrupted")
                begin = time.monotonic()
                process.send_signal(number)
                _, err = process.communicate(timeout=30)
                took = time.monotonic() - begin
            self.assertEqual(process.returncode, 130, err)
            self.assertLess(took, 5)  # a second on an idle machine; tests run on busy ones, with sanitizers
            self.assertIn(b"run the same command again", err)
            self.assertEqual(state(self.out), "incomplete")
            self.assertEqual([p for p in os.listdir(self.out) if p.endswith(".part")], [])


class SmallDisk(TestCase):
    def setUp(self):
        super().setUp()
        need_root()
        need("mount")
        self.out.mkdir()
        mounted = run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", self.out])
        if mounted.code != 0:
            raise unittest.SkipTest(f"cannot mount a tmpfs here: {mounted.err.strip()}")
        self.addCleanup(lambda: run(["umount", "-l", self.out]))
        self.images = make_images(self.path / "in", ("a",), each=10)

    def test_a_disk_that_will_be_too_small_is_refused_before_the_start(self):
        result = shardify(self.images, self.out, "--quiet")
        self.assert_refused(result, self.out, "bytes free", "1966080", "--codec packed")
        self.assertEqual(os.listdir(self.out), [])
        # the advice can be followed
        self.assert_code(shardify(self.images, self.out, "--quiet", "--dtype", "u8", "--crop", "64"), 0)

    def test_a_disk_that_fills_up_is_an_error_that_names_the_file_and_the_cause(self):
        result = shardify(
            self.images,
            self.out,
            "--quiet",
            "--codec",
            "zstd:1",
            "--dtype",
            "f32",
            "--samples-per-shard",
            "1",
        )
        self.assert_refused(result, self.out, "No space left on device")
        self.assert_visible_is_sound(self.out)
        self.assertEqual(state(self.out), "incomplete")
        self.assert_code(run(["mount", "-o", "remount,size=64m", self.out]), 0)
        same = ["--quiet", "--codec", "zstd:1", "--dtype", "f32", "--samples-per-shard", "1"]
        self.assert_code(shardify(self.images, self.out, *same), 0)
        self.assert_code(shardify(self.images, self.path / "other", *same), 0)
        self.assertEqual(digests(self.out), digests(self.path / "other"))


if __name__ == "__main__":
    main()
