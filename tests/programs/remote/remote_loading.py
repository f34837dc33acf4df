#!/usr/bin/env python3
"""Loaders over data sets on servers: the same batches as from the folder, by range,
through the cache and through the transit area."""

import json
import os
import random
import signal
import subprocess
import threading
import time

from remote_servers import HostileServer
from remote_support import ServerCase
from shardify_support import BIN, SMALL, environment, main, run

EPOCHS = str(BIN / "remote_epochs")
PATIENCE = {"SHARD_HTTP_PATIENCE": "30"}  # no answer counts as a stall because this machine is slow

# The loader works into the epoch after the last one until it is closed. It has room for 4 batches of
# 16 samples, which are 4 shards each, and for 4 shards in the transit area behind them.
AHEAD = 4 * 4 + 4


class LoadingCase(ServerCase):
    CODEC = "none"

    def setUp(self):
        super().setUp()
        self.data = self.path / "sets" / "more"
        self.data.parent.mkdir()
        self.make_data(self.data, [*SMALL, "--codec", self.CODEC], each=40)
        self.files = sorted(self.data.glob("*.safetensors"))
        self.size = sum(file.stat().st_size for file in self.files)
        self.largest = max(file.stat().st_size for file in self.files)
        self.temporary = self.path / "tmp"
        self.temporary.mkdir()

    def tearDown(self):
        self.assertEqual(os.listdir(self.temporary), [])
        super().tearDown()

    def serve(self, behave=None):
        server = HostileServer(self.data.parent, behave)
        self.addCleanup(server.__exit__)
        return server

    def load(
        self,
        path,
        order="windowed",
        epochs=2,
        cache="-",
        cache_bytes=0,
        transit="-",
        transit_bytes=0,
        rank=0,
        world=1,
        timeout=120,
    ):
        words = [EPOCHS, path, order, epochs, cache, cache_bytes, transit, transit_bytes, rank, world]
        result = run(
            [str(word) for word in words],
            timeout=timeout,
            env=environment(**PATIENCE, TMPDIR=str(self.temporary)),
        )
        return result, [json.loads(line) for line in result.out.splitlines()]

    def digests(self, path, order="windowed", **options):
        result, epochs = self.load(path, order, **options)
        self.assert_code(result, 0)
        return [epoch["digest"] for epoch in epochs]

    def url(self, server):
        return f"{server.url}/{self.data.name}"

    def cached(self, cache):
        return [name for name in os.listdir(cache) if name.endswith(".safetensors")]

    def bodies(self, server):
        """How often each shard was asked for behind its head."""
        found = {file.name: 0 for file in self.files}
        for path, wanted, _ in server.requests:
            if path.endswith(".safetensors") and not wanted.startswith("bytes=0-"):
                found[path.rsplit("/", 1)[1]] += 1
        return found


class Loading(LoadingCase):
    def test_the_batches_are_those_of_the_folder(self):
        server = self.serve()
        for order in "sequential", "windowed", "shuffle", "by_shard":
            here = self.digests(self.data, order)
            self.assertEqual(self.digests(self.url(server), order), here)
            cache = self.path / f"cache-{order}"
            self.assertEqual(self.digests(self.url(server), order, cache=cache), here)
            self.assertEqual(self.digests(self.url(server), order, cache=cache), here)

    def test_half_a_cache_halves_the_bytes(self):
        server = self.serve()
        count = 8
        for order in "windowed", "sequential":
            cache = self.path / f"cache-{order}"
            here = self.digests(self.data, order, epochs=count)
            result, epochs = self.load(
                self.url(server),
                order,
                epochs=count,
                cache=cache,
                cache_bytes=self.size // 2,
                transit_bytes=4 * self.largest,
            )
            self.assertEqual([epoch["digest"] for epoch in epochs], here, result)
            names = self.cached(cache)
            kept = sum((cache / name).stat().st_size for name in names)
            self.assertLessEqual(kept, self.size // 2)
            self.assertEqual(
                [name for name in os.listdir(cache) if not name.endswith((".safetensors", ".proof"))], []
            )
            for epoch in epochs[1:]:
                self.assertLessEqual(epoch["held"], 4 * self.largest)
            # How far the loader is in the next epoch differs where an epoch ends.
            passing = self.size - kept
            fetched = sum(epoch["fetched"] for epoch in epochs[2:])
            self.assertLessEqual(fetched, (count - 2) * passing + AHEAD * self.largest)
            self.assertGreater(epochs[-1]["passed"], (count - 1) * passing - 4 * self.largest)

    def test_a_transit_area_that_is_too_small(self):
        server = self.serve()
        here = self.digests(self.data)
        for size in 1, self.largest, 2 * self.largest + 1:
            result, epochs = self.load(self.url(server), transit=self.path / "transit", transit_bytes=size)
            self.assertEqual([epoch["digest"] for epoch in epochs], here, result)
            for epoch in epochs:
                self.assertLessEqual(epoch["held"], size)
        self.assertEqual(os.listdir(self.path / "transit"), [])

    def test_a_flipped_byte_now_and_then_is_never_delivered(self):
        chance = random.Random(3)
        server = self.serve(lambda *_: "flip" if chance.random() < 0.03 else None)
        here = self.digests(self.data)
        self.assertEqual(self.digests(self.url(server)), here)
        self.assertEqual(self.digests(self.url(server), cache=self.path / "cache"), here)


class Packed(Loading):
    CODEC = "packed"


class Requests(LoadingCase):
    def test_samples_are_requested_by_many_threads(self):
        lock, now, many = threading.Lock(), [0], threading.Event()

        def gather(path, begin, end, count):
            if path.endswith(".json"):
                return
            with lock:
                now[0] += 1
                if now[0] > 8:  # more than there are threads for a folder
                    many.set()
            many.wait(5)
            with lock:
                now[0] -= 1

        server = self.serve(gather)
        self.assertEqual(
            self.digests(self.url(server), "shuffle", epochs=1), self.digests(self.data, "shuffle", epochs=1)
        )
        self.assertTrue(many.is_set(), "the requests are sent one after the other")

    def test_without_a_cache_each_shard_passes_once_in_an_epoch(self):
        epochs = 4
        for order in "windowed", "sequential":
            server = self.serve()
            self.assertEqual(
                self.digests(self.url(server), order, epochs=epochs, transit_bytes=4 * self.largest),
                self.digests(self.data, order, epochs=epochs),
            )
            bodies = self.bodies(server)
            self.assertLessEqual(sum(bodies.values()), epochs * len(bodies) + AHEAD)
            # What the end of an epoch and the begin of the next one both need may pass once for both.
            self.assertGreaterEqual(sum(bodies.values()), epochs * len(bodies) - (epochs - 1) * 4)
            self.assertGreaterEqual(min(bodies.values()), 1)
            self.assertLessEqual(max(bodies.values()), epochs + 1)

    def in_step(self, path, world, cache="-", cache_bytes=0, transit_bytes=0):
        """The digests of one epoch of ranks that go from batch to batch together,
        as in a training. Batches of 1."""
        words = [EPOCHS, path, "windowed", 1, cache, cache_bytes, "-", transit_bytes]
        ranks = [
            subprocess.Popen(
                [*map(str, words), str(rank), str(world), "step"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env=environment(**PATIENCE, TMPDIR=str(self.temporary)),
            )
            for rank in range(world)
        ]
        lines = [rank.stdout.readline() for rank in ranks]
        while all(line == "\n" for line in lines):
            for rank in ranks:
                rank.stdin.write("\n")
                rank.stdin.flush()
            lines = [rank.stdout.readline() for rank in ranks]
        for rank in ranks:
            rank.stdin.close()
            rank.stdout.read()
            self.assertEqual(rank.wait(60), 0)
            rank.stdout.close()
        return [json.loads(line)["digest"] for line in lines]

    def test_ranks_share_what_is_in_transit(self):
        server = self.serve(lambda *_: time.sleep(0.05))
        cache = self.path / "cache"
        found = self.in_step(self.url(server), 2, cache, self.size // 2, 4 * self.largest)
        self.assertEqual(found, self.in_step(self.data, 2))
        # A rank that is late by a window asks again; without sharing, it would be all of the other half.
        self.assertLess(sum(self.bodies(server).values()), 1.4 * len(self.files))
        self.assertEqual([name for name in os.listdir(cache) if name.endswith(".transit")], [])

    def test_a_kill_leaves_nothing_in_transit(self):
        server = self.serve()
        transit = self.path / "transit"
        chance = random.Random(8)
        for turn in range(12):
            shared = turn % 2  # with names, which the next process removes
            command = [
                EPOCHS,
                self.url(server),
                "windowed",
                "9",
                "-",
                "0",
                str(transit),
                str(4 * self.largest),
                "0",
                str(1 + shared),
            ]
            process = subprocess.Popen(
                command, stdout=subprocess.DEVNULL, env=environment(**PATIENCE, TMPDIR=str(self.temporary))
            )
            time.sleep(chance.uniform(0.1, 0.5))
            process.send_signal(signal.SIGKILL)
            process.wait()
            if not shared and transit.exists():
                self.assertEqual(os.listdir(transit), [])
            self.digests(self.url(server), "sequential", epochs=1, transit=transit)
            self.assertEqual(os.listdir(transit), [])

    def test_a_server_that_fails_in_mid_run(self):
        server = self.serve(
            lambda path, begin, end, count: "status:403" if "00009" in path and begin > 0 else None
        )
        for cache in "-", self.path / "cache":
            result, _ = self.load(self.url(server), cache=cache)
            self.assert_code(result, 1)
            self.assertIn("shard-00009", result.err)
            self.assertIn("HTTP 403", result.err)


if __name__ == "__main__":
    main()
