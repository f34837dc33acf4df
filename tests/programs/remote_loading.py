#!/usr/bin/env python3
"""Loaders over data sets on servers: the same batches as from the folder, with and without a cache, whatever server, processes and disks do."""

import json
import os
import random
import shutil
import signal
import subprocess
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

    def load(self, path, order="windowed", epochs=2, cache="-", cache_bytes=0, timeout=120):
        result = run([EPOCHS, str(path), order, str(epochs), str(cache), str(cache_bytes)], timeout=timeout, env=environment(**PATIENCE))
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
        for order in "sequential", "windowed", "shuffle":
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

    def test_half_a_cache_halves_the_bytes(self):
        server = self.serve()
        cache = self.path / "cache"
        here = self.digests(self.data, epochs=4)
        result, epochs = self.load(self.url(server), epochs=4, cache=cache, cache_bytes=self.size // 2)
        self.assertEqual([epoch["digest"] for epoch in epochs], here, result)
        used = sum((cache / name).stat().st_size for name in self.cached(cache))
        self.assertLessEqual(used, self.size // 2)
        for epoch in epochs[1:]:  # the last epoch's threads run ahead
            self.assertLess(epoch["fetched"], 0.75 * self.size)

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

    def test_a_full_disk(self):
        server = self.serve()
        folder = self.path / "small"
        folder.mkdir()
        mounted = os.geteuid() == 0 and subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={self.size // 2}", "none", str(folder)],
                                                       capture_output=True).returncode == 0
        if not mounted:
            self.skipTest("a small file system cannot be mounted here")
        try:
            self.assertEqual(self.digests(self.url(server), cache=folder / "cache"), self.digests(self.data))
        finally:
            subprocess.run(["umount", str(folder)], check=True)


class Packed(Loading):
    CODEC = "packed"


if __name__ == "__main__":
    main()
