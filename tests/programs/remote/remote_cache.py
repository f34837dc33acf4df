#!/usr/bin/env python3
"""The cache of loaders over data sets on servers: shared by processes that are killed, by data sets and
addresses, and on disks that fill up."""

import json
import os
import random
import shutil
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

from remote_loading import EPOCHS, PATIENCE, LoadingCase
from shardify_support import SMALL, environment, main, make_images, run, shardify

NOBODY = 65534


class Shared(LoadingCase):
    def start(self, server, cache):
        command = [EPOCHS, self.url(server), "windowed", "2", str(cache), "0"]
        return subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(**PATIENCE)
        )

    def is_whole(self, cache):
        """Every shard is there, with its proof, and nothing else."""
        self.assertEqual(len(self.cached(cache)), len(self.files))
        self.assertEqual(
            {name for name in os.listdir(cache) if not name.endswith(".proof")}, set(self.cached(cache))
        )

    def test_a_full_cache_fetches_nothing(self):
        server = self.serve()
        cache = self.path / "cache"
        _, first = self.load(self.url(server), cache=cache)
        self.assertLess(
            first[0]["fetched"], 2.2 * self.size
        )  # shards so small that the request for a head brings all of it
        self.assertEqual(first[1]["fetched"], 0)
        self.assertEqual(len(self.cached(cache)), len(self.files))
        sent = server.sent
        _, again = self.load(self.url(server), cache=cache)
        self.assertLess(server.sent - sent, 100_000)  # dataset.json
        self.assertEqual(again[0]["transport"], "mapped")

    def test_processes_of_a_node_fetch_each_shard_once(self):
        server = self.serve()
        cache = self.path / "cache"
        here = self.digests(self.data)
        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(lambda _: self.digests(self.url(server), cache=cache), range(8)))
        self.assertEqual(found, [here] * 8)
        bodies = sum(
            1
            for path, wanted, _ in server.requests
            if path.endswith("s") and not wanted.startswith("bytes=0-")
        )
        self.assertLessEqual(bodies, len(self.files))

    def test_a_process_may_be_killed_at_any_moment(self):
        server = self.serve()
        here = self.digests(self.data)
        cache = self.path / "cache"
        command = [EPOCHS, self.url(server), "windowed", "1", str(cache), "0"]
        rounds = int(os.environ.get("SHARD_KILLS", "40"))
        chance = random.Random(5)
        for _ in range(rounds):
            process = subprocess.Popen(
                command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment(**PATIENCE)
            )
            time.sleep(chance.uniform(0, 0.4))
            process.send_signal(signal.SIGKILL)
            process.wait()
            if chance.random() < 0.2:
                shutil.rmtree(cache, ignore_errors=True)
        self.assertEqual(self.digests(self.url(server), cache=cache), here)
        self.assertEqual([name for name in os.listdir(cache) if name.endswith(".part")], [])
        self.assertEqual(len(self.cached(cache)), len(self.files))

    def test_some_of_eight_processes_are_killed(self):
        server = self.serve(lambda *_: time.sleep(0.01))
        here = self.digests(self.data)
        chance = random.Random(9)
        for turn in range(int(os.environ.get("SHARD_KILLS", "4"))):
            cache = self.path / f"cache-{turn}"
            running = [self.start(server, cache) for _ in range(8)]
            for process in running[:4]:
                time.sleep(chance.uniform(0, 0.1))
                process.send_signal(signal.SIGKILL)
                process.communicate()
            for process in running[4:]:
                out, err = process.communicate(timeout=100)
                self.assertEqual(process.returncode, 0, err)
                self.assertEqual([json.loads(line)["digest"] for line in out.splitlines()], here)
            self.assertEqual(self.digests(self.url(server), cache=cache), here)
            self.is_whole(cache)

    def other_data(self, folder):
        """A data set with the same names, keys, labels and sizes, and other pixels."""
        images = make_images(self.path / "in", each=40)
        for image, one in zip(sorted(images.rglob("*.png")), sorted(images.rglob("*.png"))[1:]):
            image.write_bytes(one.read_bytes())
        self.assert_code(shardify(images, folder, *SMALL), 0)
        for file in self.files:
            self.assertEqual(file.stat().st_size, (folder / file.name).stat().st_size)
            self.assertNotEqual(file.read_bytes(), (folder / file.name).read_bytes())
        return folder

    def test_two_data_sets_with_the_same_names(self):
        other = self.other_data(self.path / "sets" / "other")
        server = self.serve()
        addresses = [self.url(server), f"{server.url}/other"] * 2
        here = [self.digests(self.data), self.digests(other)] * 2
        self.assertNotEqual(here[0], here[1])
        found = self.at_once(
            *(
                lambda address=address: self.digests(address, cache=self.path / "cache")
                for address in addresses
            )
        )
        self.assertEqual(found, here)
        self.assertEqual(len(self.cached(self.path / "cache")), 2 * len(self.files))

    def test_one_data_set_under_two_addresses(self):
        server = self.serve()
        here = self.digests(self.data)
        addresses = [self.url(server), self.url(server).replace("127.0.0.1", "localhost")] * 2
        found = self.at_once(
            *(
                lambda address=address: self.digests(address, cache=self.path / "cache")
                for address in addresses
            )
        )
        self.assertEqual(found, [here] * 4)

    def test_a_data_set_that_is_replaced_between_two_runs(self):
        server = self.serve()  # whose ETags are always the same
        cache = self.path / "cache"
        self.assertEqual(self.digests(self.url(server), cache=cache), self.digests(self.data))
        other = self.other_data(self.path / "other")
        shutil.rmtree(self.data)
        shutil.copytree(other, self.data)
        self.assertEqual(self.digests(self.url(server), cache=cache), self.digests(other))

    def test_a_data_set_that_is_replaced_in_mid_run(self):
        here = self.digests(self.data)
        other = self.other_data(self.path / "other")
        for cache in "-", self.path / "cache":
            for after in 2, 10, 40:
                server = self.serve()
                server.behave = lambda *_, server=server, after=after: (
                    setattr(server, "folder", self.path) if len(server.requests) >= after else None
                )
                (self.path / "more").unlink(missing_ok=True)
                (self.path / "more").symlink_to(other)
                result, epochs = self.load(self.url(server), cache=cache)
                # What was here before is right; bytes of the other one are an error, and not data.
                self.assertEqual([epoch["digest"] for epoch in epochs], here[: len(epochs)], result)
                if result.code != 0:
                    self.assertIn(self.url(server), result.err)

    def test_a_folder_that_becomes_read_only(self):
        cache = self.path / "cache"
        cache.mkdir()
        options = {}
        if os.geteuid() == 0:  # root may always write
            options["user"] = NOBODY
            os.chown(cache, NOBODY, NOBODY)
            os.chmod(self.path, 0o755)
            os.chmod(self.temporary, 0o777)
        if run([EPOCHS], **options).code != 2:
            self.skipTest("the program cannot be run as another user here")
        here = self.digests(self.data)
        for after in 60, 20, 1:
            server = self.serve()
            server.behave = lambda *_, server=server, after=after: (
                os.chmod(cache, 0o555) if len(server.requests) >= after else None
            )
            words = [EPOCHS, self.url(server), "windowed", 2, cache, 0]
            for _ in range(2):
                result = run(
                    [str(word) for word in words],
                    env=environment(**PATIENCE, TMPDIR=str(self.temporary)),
                    **options,
                )
                epochs = [json.loads(line) for line in self.assert_code(result, 0).out.splitlines()]
                self.assertEqual([epoch["digest"] for epoch in epochs], here)
                kept = len(self.cached(cache))
                if kept < len(self.files) / 2:
                    self.assertGreater(epochs[1]["passed"], 0)  # not sample by sample
            os.chmod(cache, 0o755)
            for name in os.listdir(cache):
                os.unlink(cache / name)

    def mounted(self, name, size):
        """A small file system, or the test is skipped."""
        folder = self.path / name
        folder.mkdir()
        done = (
            os.geteuid() == 0
            and subprocess.run(
                ["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(folder)], capture_output=True
            ).returncode
            == 0
        )
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


class Damaged(LoadingCase):
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


class DamagedPacked(Damaged):
    CODEC = "packed"


if __name__ == "__main__":
    main()
