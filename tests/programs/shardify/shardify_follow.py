#!/usr/bin/env python3
"""shardify --follow: a folder that grows while it is converted, and what OUT is at each moment."""

import json
import os
import random
import signal
import subprocess
import threading
import time

from shardify_support import (
    SHARDIFY,
    SMALL,
    TestCase,
    all_keys,
    info,
    labels_of,
    main,
    png,
    rejects,
    shardctl,
    shardify,
    shards,
    write,
)

PATIENCE = 60  # seconds


class Follow(TestCase):
    def setUp(self):
        super().setUp()
        self.images, self.until = self.path / "images", self.path / "until"
        self.images.mkdir()
        self.count = 0

    def add(self, label, number=1):
        for _ in range(number):
            write(self.images / label / f"{self.count:04}.png", png(self.count))
            self.count += 1

    def start(self, *more):
        command = [SHARDIFY, self.images, self.out, *SMALL, "--follow", "--until", self.until, *more]
        return subprocess.Popen([str(part) for part in command], stderr=subprocess.PIPE, text=True)

    def wait_for(self, condition, running, pause=0.05):
        end = time.monotonic() + PATIENCE
        while not condition():
            self.assertLess(time.monotonic(), end)
            self.assertIsNone(running.poll(), running.stderr.read() if running.poll() is not None else "")
            time.sleep(pause)

    def samples(self):
        try:
            shards = json.loads((self.out / "dataset.json").read_text())["shards"]
            return sum(shard["samples"] for shard in shards)
        except FileNotFoundError:
            return 0

    def end(self, running, code=0):
        self.until.write_text("")
        _, errors = running.communicate(timeout=PATIENCE)
        self.assertEqual(running.returncode, code, errors)
        return errors

    def test_whole_shards_come_while_it_runs_and_the_rest_at_the_end(self):
        self.add("bee", 3)
        running = self.start()
        time.sleep(2.5)
        self.assertFalse(self.out.exists())  # three of the four images of a shard
        self.add("bee", 3)
        self.wait_for(lambda: self.samples() == 4, running)
        self.assert_code(shardctl("verify", self.out), 0)
        self.add("ant", 4)
        self.wait_for(lambda: self.samples() == 8, running)
        self.end(running)
        self.assertEqual(len(all_keys(self.out)), 10)
        self.assertEqual(info(self.out)["classes"], ["bee", "ant"])  # the later class is the second one
        labels = [label for shard in shards(self.out) for label in labels_of(shard)]
        self.assertEqual(labels, [0 if key.startswith("bee") else 1 for key in all_keys(self.out)])
        self.assert_code(shardctl("verify", self.out), 0)

    def test_what_was_seen_once_never_changes(self):
        seen = []

        def look(stop):
            while not stop.is_set():
                try:
                    now = json.loads((self.out / "dataset.json").read_text())["shards"]
                except FileNotFoundError:
                    continue
                sizes = [(shard["file"], shard["samples"]) for shard in now]
                if not seen or seen[-1] != sizes:
                    seen.append(sizes)
                for file, _ in sizes:
                    self.assertTrue((self.out / file).exists())
                time.sleep(0.01)

        stop = threading.Event()
        looking = threading.Thread(target=look, args=(stop,))
        looking.start()
        running = self.start()
        for _ in range(5):
            self.add("ant", 4)
            time.sleep(0.7)
        self.end(running)
        stop.set()
        looking.join()
        for before, after in zip(seen, seen[1:]):
            self.assertEqual(after[: len(before)], before)
        self.assertGreater(len(seen), 1)
        self.assertEqual(self.samples(), 20)

    def test_kills_lose_no_finished_shard(self):
        draw = random.Random(1)
        self.add("ant", 30)
        before = []
        for _ in range(6):
            running = self.start()
            time.sleep(draw.uniform(1.9, 2.6))
            running.kill()
            running.communicate()
            keys = all_keys(self.out) if self.out.exists() else []
            self.assertEqual(keys[: len(before)], before)
            before = keys
            self.add("bee", 2)
        self.end(self.start())
        self.assertEqual(sorted(all_keys(self.out)), sorted(set(all_keys(self.out))))
        self.assertEqual(len(all_keys(self.out)), 42)
        self.assert_code(shardctl("verify", self.out), 0)
        self.assertEqual(sorted(os.listdir(self.path)), ["images", "out", "until"])

    def test_ctrl_c_ends_it_and_the_same_command_goes_on(self):
        self.add("ant", 5)
        running = self.start()
        self.wait_for(lambda: self.samples() == 4, running)
        begin = time.monotonic()
        running.send_signal(signal.SIGINT)
        _, errors = running.communicate(timeout=PATIENCE)
        self.assertLess(time.monotonic() - begin, 1.5)
        self.assertEqual(running.returncode, 130)
        self.assertIn("the same command goes on", errors)
        self.end(self.start())
        self.assertEqual(len(all_keys(self.out)), 5)

    def test_bad_images_are_rejects_once(self):
        self.add("ant", 7)
        write(self.images / "ant" / "bad.png", b"\x89PNG\r\n\x1a\n no picture")
        self.end(self.start(), code=1)
        self.assertEqual(list(rejects(self.out)), ["ant/bad.png"])
        self.assertEqual(len(all_keys(self.out)), 7)
        self.add("ant", 1)
        self.end(self.start(), code=1)
        self.assertEqual(len(rejects(self.out)), 1)
        self.assertEqual(len(all_keys(self.out)), 8)

    def test_the_bytes_are_those_of_a_conversion_of_the_same_images(self):
        self.add("ant", 10)
        self.end(self.start())
        other = self.path / "other"
        self.assert_code(shardify(self.images, other, *SMALL), 0)
        for shard in sorted(other.glob("shard-*")):
            self.assertEqual(shard.read_bytes(), (self.out / shard.name).read_bytes())

    def test_other_options_are_refused_also_where_nothing_is_new(self):
        self.add("ant", 3)
        self.end(self.start())
        before = (self.out / "dataset.json").read_bytes()
        self.assert_refused(
            shardify(
                self.images, self.out, "--resize", "20", "--crop", "20", "--follow", "--until", self.until
            ),
            "was converted with other options",
        )
        self.assertEqual((self.out / "dataset.json").read_bytes(), before)

    def test_what_another_run_left_is_not_taken_for_its_own(self):
        self.add("ant", 3)
        left = self.out.parent / f".{self.out.name}.shardify-follow"
        self.until.write_text("")
        follow = (self.images, self.out, *SMALL, "--follow", "--until", self.until)
        self.assert_code(shardify(self.images, left, "--resize", "20", "--crop", "20"), 0)
        self.assert_refused(shardify(*follow), "was converted with other options")
        other = self.path / "others"
        write(other / "ant" / "other.png", png(99))
        self.assert_code(shardify(other, left, *SMALL, "--overwrite"), 0)
        self.assert_refused(shardify(*follow), "ant/other.png", "remove it")
        self.assertFalse(self.out.exists())

    def test_a_second_run_leaves_the_first_alone(self):
        self.add("ant", 800)  # 200 shards, which are many flushes
        running = self.start("--jobs", "1")
        plan = self.out.parent / f".{self.out.name}.shardify-follow" / "conversion.json"
        self.wait_for(plan.exists, running, 0.002)
        running.send_signal(signal.SIGSTOP)
        try:
            self.add("bee", 3)
            self.until.write_text("")
            second = shardify(self.images, self.out, *SMALL, "--follow", "--until", self.until)
        finally:
            running.send_signal(signal.SIGCONT)
        self.assert_refused(second, "is at work there")
        self.end(running)
        self.assertEqual(len(all_keys(self.out)), 803)

    def test_classes_that_have_other_numbers_elsewhere_are_said(self):
        for label in ("ant", "bee", "cow"):
            write(self.path / "train" / label / "1.png", png(1))
        self.images = self.path / "val"
        self.add("ant")
        self.add("cow")
        said = self.end(self.start())
        self.assertIn("has 3 classes and these images have 2", said)
        self.assertIn("label 1 here and 2 there", said)

    def test_what_cannot_be_listed_is_said(self):
        self.add("ant", 3)
        (self.images / "ant" / "loop").symlink_to("../ant")
        (self.images / "ant" / "lost.png").symlink_to("nowhere.png")
        errors = self.end(self.start(), code=1)
        self.assertIn("1 of", errors)
        self.assertIn("ant/loop", errors)
        self.assertEqual(list(rejects(self.out)), ["ant/lost.png"])

    def test_a_clock_that_is_ahead_does_not_make_a_file_complete(self):
        whole, ahead = png(7), time.time() + 1000
        path = self.images / "ant" / "0.png"

        def put(size):
            write(path, whole[:size])
            os.utime(path, (ahead, ahead))

        put(50)
        self.add("ant", 9)
        running = self.start()
        for step in range(20):  # longer than it takes to settle
            time.sleep(0.2)
            put(60 + (len(whole) - 60) * step // 20)
        put(len(whole))
        self.end(running)
        self.assertEqual(rejects(self.out), {})
        self.assertEqual(len(all_keys(self.out)), 10)

    def test_refusals_say_why(self):
        for more, text in (
            ((self.path / "no", self.out, "--follow"), "is not a folder"),
            ((self.images, self.out, "--follow", "--append"), "leave out --overwrite, --refresh, --append"),
            ((self.images, self.out, "--follow", "--labels", "x.csv"), "leave out tables"),
            ((self.images, self.out, "--until", "x"), "--until requires --follow"),
            ((self.images, self.out, "--follow", "--dry-run"), "exclude each other"),
        ):
            self.assert_refused(shardify(*more), text)
        self.until.write_text("")
        self.assert_refused(
            shardify(self.images, self.out, "--follow", "--until", self.until), "no images came"
        )


if __name__ == "__main__":
    main()
