"""shardctl page without a browser: what is written, what is refused,
and that a stopped run leaves nothing in the way."""

import json
import os
import re
import subprocess
import time

from shardify_support import (
    SHARDCTL,
    SMALL,
    TestCase,
    digests,
    environment,
    main,
    make_images,
    png,
    shardctl,
    shardify,
    shards,
    write,
)


class Page(TestCase):
    def setUp(self):
        super().setUp()
        self.dir = self.path / "page"

    def convert(self, images=None, *options):
        images = images or make_images(self.path / "images")
        self.assertIn(shardify(images, self.out, *SMALL, *options).code, (0, 1))

    def page(self, *options):
        result = self.assert_code(shardctl("page", self.out, self.dir, *options), 0)
        return result, self.data()

    def data(self):
        text = (self.dir / "index.html").read_text(encoding="utf-8")
        return json.loads(
            re.search(r'<script id="data" type="application/json">(.*?)</script>', text, re.DOTALL).group(1)
        )

    def assert_refused_page(self, *words, options=()):
        result = self.assert_code(shardctl("page", self.out, self.dir, *options), 2)
        for word in words:
            self.assertIn(word, result.err, result)

    def test_it_has_a_picture_of_each_sample_that_it_shows(self):
        self.convert()
        result, data = self.page("--samples", "2")
        self.assertIn("6 pictures", result.out)
        self.assertEqual(sorted(os.listdir(self.dir)), ["index.html", "pictures"])
        self.assertEqual(
            {f"{sample['index']}.jpg" for sample in data["samples"]}, set(os.listdir(self.dir / "pictures"))
        )
        self.assertEqual([one["samples"] for one in data["classes"]], [4, 4, 4])
        self.assertEqual([sample["class"] for sample in data["samples"]], [0, 0, 1, 1, 2, 2])
        self.assertTrue(
            (self.dir / "pictures" / f"{data['samples'][0]['index']}.jpg")
            .read_bytes()
            .startswith(b"\xff\xd8")
        )
        self.assertNotIn(
            "http",
            re.sub(r'http-equiv|"http://www.w3.org/2000/svg"', "", (self.dir / "index.html").read_text()),
        )

    def test_augment_shows_what_training_gets(self):
        self.convert()
        _, data = self.page("--augment", "rand-augment:2,9", "--samples", "2")
        rows = data["augmented"]["samples"]
        self.assertEqual(len(rows), 6)
        self.assertEqual(data["augmented"]["epochs"], 6)
        self.assertEqual({row["key"] for row in rows}, {sample["key"] for sample in data["samples"]})
        files = {f"{row['index']}-a{epoch}.jpg" for row in rows for epoch in range(6)}
        self.assertEqual(
            set(os.listdir(self.dir / "pictures")),
            files | {f"{sample['index']}.jpg" for sample in data["samples"]},
        )
        before = digests(self.dir / "pictures")
        self.assertGreater(
            len({before[os.fsencode(file)] for file in files}), 30, "epochs and samples differ"
        )
        self.page("--augment", "rand-augment:2,9", "--samples", "2", "--overwrite")
        self.assertEqual(digests(self.dir / "pictures"), before)
        self.page("--augment", "rand-augment:2,9", "--samples", "2", "--seed", "5", "--overwrite")
        drawn = {digest for name, digest in digests(self.dir / "pictures").items() if b"-a" in name}
        self.assertFalse(drawn & {before[os.fsencode(file)] for file in files}, "another seed draws others")
        self.assertNotIn("augmented", self.page("--overwrite")[1])

    def test_show_draws_the_same_beside_the_samples(self):
        self.convert()
        sheet = self.path / "sheet.png"
        self.assert_code(
            shardctl("show", self.out, "0..3", "--augment", "aug-mix", "--views", "2", "-o", sheet), 0
        )
        size = [int.from_bytes(sheet.read_bytes()[at : at + 4], "big") for at in (16, 20)]
        plain = self.path / "plain.png"
        self.assert_code(shardctl("show", self.out, "0..3", "--columns", "3", "-o", plain), 0)
        width, height = (int.from_bytes(plain.read_bytes()[at : at + 4], "big") for at in (16, 20))
        self.assertEqual(size, [width, 4 + 3 * (height - 4)])  # three rows of a sample and two views
        before = sheet.read_bytes()
        self.assert_code(
            shardctl(
                "show", self.out, "0..3", "--augment", "aug-mix", "--views", "2", "--seed", "9", "-o", sheet
            ),
            0,
        )
        self.assertNotEqual(sheet.read_bytes(), before)
        result = self.assert_code(
            shardctl("show", self.out, "0", "--augment", "crop", "--views", "0", "-o", self.path / "x.png"), 2
        )
        self.assertIn("from 1 to 64", result.err)

    def test_an_unknown_policy_is_refused_and_nothing_is_left(self):
        self.convert()
        self.assert_refused_page(
            '--augment "rand"', "rand-augment[:COUNT,MAGNITUDE]", "simclr", options=("--augment", "rand")
        )
        self.assertFalse(self.dir.exists())

    def test_the_channels_are_those_of_stats(self):
        self.convert()
        _, data = self.page()
        stats = json.loads(shardctl("stats", self.out, "--json").out)
        for channel, mean, std in zip(data["channels"], stats["mean"], stats["std"]):
            self.assertAlmostEqual(channel["mean"] / 255, mean, 9)
            self.assertAlmostEqual(channel["std"] / 255, std, 9)

    def test_the_seed_decides_which_samples_are_shown(self):
        self.convert(make_images(self.path / "images", each=30))
        shown = []
        for seed in ("1", "1", "2"):
            shown.append(
                [
                    sample["index"]
                    for sample in self.page("--seed", seed, "--samples", "3", "--overwrite")[1]["samples"]
                ]
            )
        self.assertEqual(shown[0], shown[1])
        self.assertNotEqual(shown[0], shown[2])

    def test_floats_and_codecs_give_the_same_pictures(self):
        self.convert()
        self.page()
        before = digests(self.dir / "pictures")
        for options in (
            ["--dtype", "f16", "--normalize", "imagenet"],
            ["--dtype", "f32", "--codec", "packed"],
        ):
            self.out = self.path / ("out-" + options[1] + "-" + options[-1])
            small = [option for option in SMALL if option not in ("--dtype", "u8")]
            self.assert_code(shardify(self.path / "images", self.out, *small, *options), 0)
            self.page("--overwrite")
            self.assertEqual(digests(self.dir / "pictures"), before)

    def test_a_table_of_labels_has_no_classes(self):
        images = make_images(self.path / "images")
        rows = "".join(f"{path.relative_to(images)},0.5,1\n" for path in sorted(images.rglob("*.png")))
        write(self.path / "labels.csv", ("path,a,b\n" + rows).encode())
        self.convert(images, "--labels", str(self.path / "labels.csv"))
        _, data = self.page()
        self.assertEqual((data["classes"], len(data["samples"])), ([], 12))

    def test_a_single_shard_has_a_page_too(self):
        self.convert()
        self.assert_code(shardctl("page", shards(self.out)[0], self.dir), 0)
        self.assertIn("A single shard does not say", (self.dir / "index.html").read_text())

    def test_a_part_of_a_data_set_has_a_page_too(self):
        images = make_images(self.path / "images", each=30)
        write(images / "ant" / "broken.png", b"text")
        self.convert(images)
        self.assert_code(shardctl("split", self.out, "--fractions", "0.8,0.2"), 0)
        parts = []
        for part in ("train", "val"):
            self.assert_code(
                shardctl(
                    "page", f"{self.out}#{part}", self.dir, "--samples", "90", "--duplicates", "--overwrite"
                ),
                0,
            )
            parts.append(self.data())
        self.assertEqual([data["name"] for data in parts], ["out#train", "out#val"])
        keys = [{sample["key"] for sample in data["samples"]} for data in parts]
        self.assertEqual(len(keys[0]) + len(keys[1]), 90)
        self.assertEqual(len(keys[0] | keys[1]), 90)
        self.assertEqual(parts[1]["reject_note"], "1 input of the whole data set was not stored")

    def test_only_a_page_is_replaced_and_only_if_asked(self):
        self.convert()
        self.dir.mkdir()
        write(self.dir / "mine.txt", b"mine")
        self.assert_refused_page("not empty", "--overwrite")
        self.assert_refused_page("holds other files", options=["--overwrite"])
        self.assertEqual(os.listdir(self.dir), ["mine.txt"])
        (self.dir / "mine.txt").unlink()
        self.page()
        self.assert_refused_page("not empty")
        write(self.dir / "mine.txt", b"mine")
        self.assert_refused_page("holds other files", options=["--overwrite"])
        (self.dir / "mine.txt").unlink()
        self.page("--overwrite")

    def test_the_data_set_itself_is_never_overwritten(self):
        self.convert()
        before = digests(self.out)
        self.dir = self.out
        self.assert_refused_page("holds other files", options=["--overwrite"])
        self.assertEqual(digests(self.out), before)

    def test_damaged_samples_are_named_and_left_out(self):
        self.convert()
        with open(shards(self.out)[0], "r+b") as file:
            file.seek(-1, os.SEEK_END)
            byte = file.read(1)
            file.seek(-1, os.SEEK_END)
            file.write(bytes([byte[0] ^ 1]))
        result = self.assert_code(shardctl("page", self.out, self.dir), 1)
        self.assertIn("1 damaged sample; the channels were measured without them", result.err)
        self.assertIn("1 damaged sample; they are not on the page", result.err)
        self.assertEqual(len(os.listdir(self.dir / "pictures")), 11)

    def test_a_kill_leaves_nothing_visible_and_the_next_run_cleans_up(self):
        for i in range(300):
            write(self.path / "images" / "x" / f"{i}.png", png(i))
        self.convert(self.path / "images")
        for delay in (0.0, 0.02, 0.05, 0.1):
            running = subprocess.Popen(
                [SHARDCTL, "page", self.out, self.dir, "--samples", "300", "--quiet"], env=environment()
            )
            time.sleep(delay)
            running.kill()
            running.wait()
            if self.dir.exists():
                self.assertEqual(len(os.listdir(self.dir / "pictures")), 300)
                break
        self.page("--samples", "300", "--overwrite")
        self.assertEqual([name for name in os.listdir(self.path) if name.startswith(".shardctl")], [])


if __name__ == "__main__":
    main()
