#!/usr/bin/env python3
"""What a cache of data sets on servers trusts: files that are lost or changed under a run,
files and proofs of other users, and locks."""

import json
import os
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from remote_loading import EPOCHS, PATIENCE, LoadingCase
from shardify_support import environment, main, run

NOBODY, OTHER = 65534, 1


def proof_of(path):
    """What the proof of a file says, as anybody can write it."""
    with open("/proc/sys/kernel/random/boot_id") as file:
        boot = file.read().strip()
    status = os.stat(path)
    times = " ".join(f"{at // 10**9}.{at % 10**9}" for at in (status.st_mtime_ns, status.st_ctime_ns))
    return f"shard cache 1\n{boot} {status.st_dev} {status.st_ino} {status.st_size} {times}\n"


def flip(path):
    """One byte in each page: of the head and of every sample."""
    with open(path, "r+b") as file:
        data = bytearray(file.read())
        for at in range(100, len(data), 1000):
            data[at] ^= 1
        file.seek(0)
        file.write(data)


class CacheCase(LoadingCase):
    def epochs(self, server, cache, cache_bytes=0, order="windowed", epochs=2, env=None, **options):
        words = [EPOCHS, self.url(server), order, epochs, cache, cache_bytes, "-", 4 * self.largest]
        result = run(
            [str(word) for word in words],
            env=environment(**PATIENCE, TMPDIR=str(self.temporary), **(env or {})),
            **options,
        )
        self.assert_code(result, 0)
        return result, [json.loads(line) for line in result.out.splitlines()]

    def files_in(self, cache):
        return [cache / name for name in os.listdir(cache)]


class Later(CacheCase):
    """Runs that find some shards in the cache."""

    def stepped(self, path, cache="-", damage=None):
        """The digest of an epoch in batches of 1. In the middle,
        when no batch is being made, `damage` is called."""
        words = [EPOCHS, path, "windowed", 1, cache, self.size // 2, "-", 4 * self.largest, 0, 1, "step"]
        environ = environment(**PATIENCE, TMPDIR=str(self.temporary))
        errors = open(self.path / "errors", "w+")  # noqa: SIM115  closed when the test ends
        self.addCleanup(errors.close)
        with subprocess.Popen(
            [str(word) for word in words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env=environ,
        ) as process:
            line, batches = process.stdout.readline(), 0
            while line == "\n":
                batches += 1
                if damage and batches == 12:
                    time.sleep(0.5)
                    damage()
                process.stdin.write("\n")
                process.stdin.flush()
                line = process.stdout.readline()
            process.stdin.close()
            rest = line + process.stdout.read()
        errors.seek(0)
        self.assertEqual(process.returncode, 0, errors.read())
        self.assertGreater(batches, 50)
        return json.loads(rest)["digest"]

    def test_what_is_lost_or_changed_in_mid_run_comes_from_the_server(self):
        here = self.stepped(self.data)
        server = self.serve()
        for how in "lost", "changed", "cut", "replaced":
            cache = self.path / f"cache-{how}"
            self.epochs(server, cache, self.size // 2)
            kept = self.cached(cache)
            self.assertGreater(len(kept), 2)

            def damage():
                for name in kept:
                    file = cache / name
                    if how == "changed":
                        flip(file)
                    elif how == "cut":
                        os.truncate(file, 5000)
                    else:
                        data = bytearray(file.read_bytes())
                        data[-9] ^= 1
                        os.unlink(file)
                        if how == "replaced":
                            file.write_bytes(data)

            self.assertEqual(self.stepped(self.url(server), cache, damage), here, how)

    def test_what_is_lost_before_it_is_opened_comes_from_the_server(self):
        server = self.serve()
        cache = self.path / "cache"
        self.epochs(server, cache, self.size // 2)
        kept, done = self.cached(cache), threading.Event()

        def lose(path, *_):
            if path.endswith(".safetensors") and not done.is_set():
                done.set()
                for name in kept:
                    os.unlink(cache / name)

        server.behave = lose
        _, found = self.epochs(server, cache, self.size // 2)
        self.assertTrue(done.is_set())
        self.assertEqual([epoch["digest"] for epoch in found], self.digests(self.data, epochs=2))

    def test_the_heads_of_what_is_there_are_not_requested(self):
        server = self.serve()
        cache = self.path / "cache"
        self.epochs(server, cache, self.size // 2)
        kept = len(self.cached(cache))
        del server.requests[:]
        self.epochs(server, cache, self.size // 2, epochs=1)
        heads = {
            path
            for path, wanted, _ in server.requests
            if path.endswith(".safetensors") and wanted.startswith("bytes=0-")
        }
        self.assertEqual(len(heads), len(self.files) - kept)


class Others(CacheCase):
    """Two users and one folder. As root, who can be both."""

    def setUp(self):
        super().setUp()
        if os.geteuid() != 0:
            self.skipTest("needs root, to be two users")
        os.chmod(self.path, 0o755)
        os.chmod(self.temporary, 0o777)
        if run([EPOCHS], user=NOBODY).code != 2:
            self.skipTest("the program cannot be run as another user here")

    def give(self, cache, user, names=None):
        """The files with proofs that agree with them, as their new owner can write them."""
        for name in names or self.cached(cache):
            os.chown(cache / name, user, user)
            proof = cache / (name + ".proof")
            proof.write_text(proof_of(cache / name))
            os.chown(proof, user, user)

    def test_a_proof_of_another_user_is_not_believed(self):
        here = self.digests(self.data, epochs=2)
        for cache_bytes in 0, self.size // 2:
            server = self.serve()
            cache = self.path / f"cache-{cache_bytes}"
            self.epochs(server, cache, cache_bytes)
            for name in self.cached(cache)[::2]:
                flip(cache / name)
            self.give(cache, OTHER)
            result, found = self.epochs(server, cache, cache_bytes)
            self.assertEqual([epoch["digest"] for epoch in found], here)
            self.assertEqual(found[0]["transport"], "staged")
            self.assertIn("belongs to another user", result.err)
            self.assertTrue(found[0]["problem"])

    def test_nothing_is_fetched_in_vain_into_a_sticky_folder(self):
        here = self.digests(self.data, epochs=3)
        server = self.serve()
        cache = self.path / "cache"
        self.epochs(server, cache)
        damaged = self.cached(cache)[::3]
        for name in damaged:
            flip(cache / name)
        self.give(cache, OTHER)
        os.chmod(cache, 0o1777)
        before = sorted(os.listdir(cache))
        del server.requests[:]
        result, found = self.epochs(server, cache, epochs=3, user=NOBODY)
        self.assertEqual([epoch["digest"] for epoch in found], here)
        # Which problem was the last of an epoch depends on which shard came last.
        self.assertRegex(result.err, "belongs to another user|cannot be used, and not be removed")
        self.assertEqual(sorted(os.listdir(cache)), before)
        # Through the transit area, once in an epoch (and the first ones of the next epoch),
        # and not for the cache too.
        bodies = self.bodies(server)
        self.assertLessEqual(sum(bodies.values()), 4 * len(damaged) + 4)
        self.assertEqual(sum(1 for count in bodies.values() if count > 0), len(damaged))

    def test_two_users_fill_one_folder(self):
        here = self.digests(self.data, epochs=2)
        server = self.serve(lambda *_: time.sleep(0.005))
        cache = self.path / "cache"
        cache.mkdir()
        os.chmod(cache, 0o1777)
        bound = 3 * self.size // 4
        with ThreadPoolExecutor(6) as pool:
            runs = [
                pool.submit(self.epochs, server, cache, bound, user=user) for user in (NOBODY, OTHER, 0) * 2
            ]
            for done in runs:
                self.assertEqual([epoch["digest"] for epoch in done.result()[1]], here)
        self.assertLessEqual(sum(file.stat().st_size for file in self.files_in(cache)), bound)


class Locks(CacheCase):
    """File systems that lock as NFS does, or not at all."""

    def setUp(self):
        super().setUp()
        library = os.environ.get("SHARD_NFS_LOCKS", "")
        if not library or os.environ.get("SHARD_SANITIZED"):
            self.skipTest("SHARD_NFS_LOCKS names no library, or a sanitizer must be loaded first")
        self.locks = {"LD_PRELOAD": library}

    def test_where_only_files_that_can_be_written_are_locked_a_cache_is_shared(self):
        here = self.digests(self.data, epochs=2)
        for bound in 0, self.size // 2:
            server = self.serve()
            cache = self.path / f"cache-{bound}"
            with ThreadPoolExecutor(4) as pool:
                runs = [pool.submit(self.epochs, server, cache, bound, env=self.locks) for _ in range(4)]
                for done in runs:
                    result, found = done.result()
                    self.assertEqual([epoch["digest"] for epoch in found], here)
                    self.assertFalse(found[1]["problem"], result.err)
            self.assertEqual(
                [name for name in os.listdir(cache) if not name.endswith((".safetensors", ".proof"))], []
            )
            kept = self.cached(cache)
            self.assertGreater(len(kept), 2)
            if bound:
                self.assertLessEqual(sum(file.stat().st_size for file in self.files_in(cache)), bound)
            else:
                self.assertEqual(len(kept), len(self.files))
                self.assertLessEqual(sum(self.bodies(server).values()), len(self.files))

    def test_where_there_are_no_locks_it_is_said_and_the_batches_are_right(self):
        server = self.serve()
        cache = self.path / "cache"
        result, found = self.epochs(server, cache, env={**self.locks, "SHARD_TEST_LOCKS": "none"})
        self.assertEqual([epoch["digest"] for epoch in found], self.digests(self.data, epochs=2))
        self.assertIn("cannot lock", result.err)
        self.assertIn("local disk", result.err)
        self.assertEqual(os.listdir(cache), [])


if __name__ == "__main__":
    main()
