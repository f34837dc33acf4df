#!/usr/bin/env python3
"""Loaders over data sets on servers: the same batches as from the folder, with and without a cache, whatever server, processes and disks do."""

import json
import os
import random
import shutil
import signal
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from remote_data_sets import RemoteCase
from remote_servers import HostileServer
from shardify_support import BIN, SMALL, environment, main, make_images, run, shardctl, shardify

EPOCHS = str(BIN / "remote_epochs")
PATIENCE = {"SHARD_HTTP_PATIENCE": "6"}


class Loading(RemoteCase):
    def setUp(self):
        super().setUp()
        images = make_images(self.path / "more", each=40)
        self.data = self.path / "sets" / "more"
        self.name = "more"
        self.assert_code(shardify(images, self.data, *SMALL, "--codec", self.CODEC), 0)
        self.files = sorted(self.data.glob("*.safetensors"))
        self.size = sum(file.stat().st_size for file in self.files)
        self.largest = max(file.stat().st_size for file in self.files)
        self.temporary = self.path / "tmp"
        self.temporary.mkdir()

    def tearDown(self):
        self.assertEqual(os.listdir(self.temporary), [])
        super().tearDown()

    def load(self, path, order="windowed", epochs=2, cache="-", cache_bytes=0, transit="-", transit_bytes=0, rank=0, world=1, timeout=120):
        words = [EPOCHS, path, order, epochs, cache, cache_bytes, transit, transit_bytes, rank, world]
        result = run([str(word) for word in words], timeout=timeout, env=environment(**PATIENCE, TMPDIR=str(self.temporary)))
        return result, [json.loads(line) for line in result.out.splitlines()]

    def digests(self, path, order="windowed", **options):
        result, epochs = self.load(path, order, **options)
        self.assert_code(result, 0)
        return [epoch["digest"] for epoch in epochs]

    def url(self, server):
        return f"{server.url}/{self.name}"

    def cached(self, cache):
        return [name for name in os.listdir(cache) if name.endswith(".safetensors")]

    def test_the_batches_are_those_of_the_folder(self):
        server = self.serve()
        for order in "sequential", "windowed", "shuffle", "by_shard":
            here = self.digests(self.data, order)
            self.assertEqual(self.digests(self.url(server), order), here)
            cache = self.path / f"cache-{order}"
            self.assertEqual(self.digests(self.url(server), order, cache=cache), here)
            self.assertEqual(self.digests(self.url(server), order, cache=cache), here)

    def test_a_full_cache_fetches_nothing(self):
        server = self.serve()
        cache = self.path / "cache"
        _, first = self.load(self.url(server), cache=cache)
        self.assertLess(first[0]["fetched"], 2.2 * self.size)  # shards so small that the request for a head brings all of it
        self.assertEqual(first[1]["fetched"], 0)
        self.assertEqual(len(self.cached(cache)), len(self.files))
        sent = server.sent
        _, again = self.load(self.url(server), cache=cache)
        self.assertLess(server.sent - sent, 100_000)  # dataset.json
        self.assertEqual(again[0]["transport"], "mapped")

    def bodies(self, server):
        """How often each shard was asked for behind its head."""
        found = {file.name: 0 for file in self.files}
        for path, wanted, _ in server.requests:
            if path.endswith(".safetensors") and not wanted.startswith("bytes=0-"):
                found[path.rsplit("/", 1)[1]] += 1
        return found

    def test_samples_are_requested_by_many_threads(self):
        lock, now, most = threading.Lock(), [0], [0]

        def slow(*_):
            with lock:
                now[0] += 1
                most[0] = max(most[0], now[0])
            time.sleep(0.1)
            with lock:
                now[0] -= 1

        server = self.serve(slow)
        self.assertEqual(self.digests(self.url(server), "shuffle", epochs=1), self.digests(self.data, "shuffle", epochs=1))
        self.assertGreater(most[0], 8)  # more than there are threads for a folder

    def test_half_a_cache_halves_the_bytes(self):
        server = self.serve()
        for order in "windowed", "sequential":
            cache = self.path / f"cache-{order}"
            here = self.digests(self.data, order, epochs=4)
            result, epochs = self.load(self.url(server), order, epochs=4, cache=cache, cache_bytes=self.size // 2, transit_bytes=4 * self.largest)
            self.assertEqual([epoch["digest"] for epoch in epochs], here, result)
            names = self.cached(cache)
            kept = sum((cache / name).stat().st_size for name in names)
            self.assertLessEqual(kept, self.size // 2)
            self.assertEqual([name for name in os.listdir(cache) if not name.endswith((".safetensors", ".proof"))], [])
            for epoch in epochs[1:]:
                self.assertLessEqual(epoch["held"], 4 * self.largest)
            # Each epoch ends with the shards of the next one in transit, which are not always as large.
            self.assertLessEqual(sum(epoch["fetched"] for epoch in epochs[2:]) / 2, self.size - kept + 2 * self.largest)
            self.assertGreater(epochs[3]["passed"], 3 * (self.size - kept) - 4 * self.largest)

    def test_without_a_cache_each_shard_passes_once_in_an_epoch(self):
        for order in "windowed", "sequential":
            server = self.serve()
            self.assertEqual(self.digests(self.url(server), order, epochs=1, transit_bytes=4 * self.largest), self.digests(self.data, order, epochs=1))
            bodies = self.bodies(server)
            # The first shards of the next epoch are fetched ahead.
            self.assertLessEqual(sum(bodies.values()), len(bodies) + 4)
            self.assertEqual(min(bodies.values()), 1)
            self.assertLessEqual(max(bodies.values()), 2)

    def test_a_transit_area_that_is_too_small(self):
        server = self.serve()
        here = self.digests(self.data)
        for size in 1, self.largest, 2 * self.largest + 1:
            result, epochs = self.load(self.url(server), transit=self.path / "transit", transit_bytes=size)
            self.assertEqual([epoch["digest"] for epoch in epochs], here, result)
            for epoch in epochs:
                self.assertLessEqual(epoch["held"], size)
        self.assertEqual(os.listdir(self.path / "transit"), [])

    def test_ranks_share_what_is_in_transit(self):
        server = self.serve(lambda *_: time.sleep(0.05))
        cache = self.path / "cache"
        here = [self.digests(self.data, epochs=1, rank=rank, world=2) for rank in range(2)]
        options = dict(epochs=1, world=2, cache=cache, cache_bytes=self.size // 2, transit_bytes=4 * self.largest)
        with ThreadPoolExecutor(2) as pool:
            found = list(pool.map(lambda rank: self.digests(self.url(server), rank=rank, **options), range(2)))
        self.assertEqual(found, here)
        # A rank that is late by a window asks again; without sharing, it would be all of the other half.
        self.assertLess(sum(self.bodies(server).values()), 1.4 * len(self.files))
        self.assertEqual([name for name in os.listdir(cache) if name.endswith(".transit")], [])

    def test_a_kill_leaves_nothing_in_transit(self):
        server = self.serve()
        transit = self.path / "transit"
        chance = random.Random(8)
        for turn in range(12):
            shared = turn % 2  # with names, which the next process removes
            command = [EPOCHS, self.url(server), "windowed", "9", "-", "0", str(transit), str(4 * self.largest), "0", str(1 + shared)]
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, env=environment(**PATIENCE, TMPDIR=str(self.temporary)))
            time.sleep(chance.uniform(0.1, 0.5))
            process.send_signal(signal.SIGKILL)
            process.wait()
            if not shared and transit.exists():
                self.assertEqual(os.listdir(transit), [])
            self.digests(self.url(server), "sequential", epochs=1, transit=transit)
            self.assertEqual(os.listdir(transit), [])

    def test_damaged_and_foreign_files_are_not_used(self):
        server = self.serve()
        cache = self.path / "cache"
        here = self.digests(self.url(server), cache=cache)
        names = sorted(self.cached(cache))
        def damage(name, how):
            data = bytearray((cache / name).read_bytes())
            how(data)
            (cache / name).write_bytes(data)
        damage(names[0], lambda data: data.__setitem__(len(data) - 7, data[-7] ^ 1))
        damage(names[1], lambda data: data.__setitem__(100, data[100] ^ 1))
        damage(names[2], lambda data: data.clear())
        shutil.copy(cache / names[4], cache / names[3])
        os.unlink(cache / names[5])
        os.symlink("/etc/passwd", cache / names[5])
        os.unlink(cache / (names[6] + ".proof"))
        (cache / (names[7] + ".proof")).write_bytes(os.urandom(100))
        (cache / "notes.txt").write_text("mine")
        self.assertEqual(self.digests(self.url(server), cache=cache), here)
        self.assertEqual((cache / "notes.txt").read_text(), "mine")
        self.assertEqual(self.digests(self.url(server), cache=cache), here)

    def test_processes_of_a_node_fetch_each_shard_once(self):
        server = self.serve()
        cache = self.path / "cache"
        here = self.digests(self.data)
        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(lambda _: self.digests(self.url(server), cache=cache), range(8)))
        self.assertEqual(found, [here] * 8)
        bodies = sum(1 for path, wanted, _ in server.requests if path.endswith("s") and not wanted.startswith("bytes=0-"))
        self.assertLessEqual(bodies, len(self.files))

    def test_a_process_may_be_killed_at_any_moment(self):
        server = self.serve()
        here = self.digests(self.data)
        cache = self.path / "cache"
        command = [EPOCHS, self.url(server), "windowed", "1", str(cache), "0"]
        rounds = int(os.environ.get("SHARD_KILLS", "40"))
        chance = random.Random(5)
        for _ in range(rounds):
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment(**PATIENCE))
            time.sleep(chance.uniform(0, 0.4))
            process.send_signal(signal.SIGKILL)
            process.wait()
            if chance.random() < 0.2:
                shutil.rmtree(cache, ignore_errors=True)
        self.assertEqual(self.digests(self.url(server), cache=cache), here)
        self.assertEqual([name for name in os.listdir(cache) if name.endswith(".part")], [])
        self.assertEqual(len(self.cached(cache)), len(self.files))

    def test_a_flipped_byte_now_and_then_is_never_delivered(self):
        chance = random.Random(3)
        server = self.serve(lambda *_: "flip" if chance.random() < 0.03 else None)
        here = self.digests(self.data)
        self.assertEqual(self.digests(self.url(server)), here)
        self.assertEqual(self.digests(self.url(server), cache=self.path / "cache"), here)

    def test_a_server_that_fails_in_mid_run(self):
        server = self.serve(lambda path, begin, end, count: "status:403" if "00009" in path and begin > 0 else None)
        for cache in "-", self.path / "cache":
            result, _ = self.load(self.url(server), cache=cache)
            self.assert_code(result, 1)
            self.assertIn("shard-00009", result.err)
            self.assertIn("HTTP 403", result.err)

    def mounted(self, name, size):
        """A small file system, or the test is skipped."""
        folder = self.path / name
        folder.mkdir()
        done = os.geteuid() == 0 and subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(folder)], capture_output=True).returncode == 0
        if not done:
            self.skipTest("a small file system cannot be mounted here")
        self.addCleanup(subprocess.run, ["umount", str(folder)], check=True)
        return folder

    def test_a_full_disk(self):
        server = self.serve()
        here = self.digests(self.data)
        folder = self.mounted("small", self.size // 2)
        # The cache leaves room for what is in transit.
        result, epochs = self.load(self.url(server), cache=folder / "cache", transit_bytes=3 * self.largest)
        self.assertEqual([epoch["digest"] for epoch in epochs], here, result)
        self.assertGreater(len(self.cached(folder / "cache")), 2)
        self.assertGreater(epochs[1]["passed"], 0)
        # Where there is none, because others fill the disk, TMPDIR is used.
        with open(folder / "full", "wb", buffering=0) as file, self.assertRaises(OSError):
            while file.write(bytes(1 << 16)):
                pass
        result, again = self.load(self.url(server), cache=folder / "cache", transit_bytes=3 * self.largest)
        self.assertEqual([epoch["digest"] for epoch in again], here, result)
        self.assertGreater(again[0]["passed"], 0)


class Packed(Loading):
    CODEC = "packed"


if __name__ == "__main__":
    main()
