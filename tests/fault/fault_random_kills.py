#!/usr/bin/env python3
"""kill -9 at random moments. SHARD_KILLS: how many (default 20); SHARD_KILL_SEED: which (default 1)."""

import gzip
import os
import random
import shutil
import signal
import struct
import subprocess
import time

from fault_support import (
    SHARDIFY,
    TestCase,
    digests,
    environment,
    main,
    make_images,
    make_photos,
    run,
    shardctl,
    shards,
    state,
    write,
)

KILLS = int(os.environ.get("SHARD_KILLS", "20"))
SEED = int(os.environ.get("SHARD_KILL_SEED", "1"))


class RandomKills(TestCase):
    def setUp(self):
        super().setUp()
        self.images = make_images(self.path / "in", ("a", "b", "c"), each=16)
        make_photos(self.images / "photos", 12)
        for i in range(5):
            write(self.images / "b" / f"bad{i}.png", b"no picture")
        self.random = random.Random(SEED)
        self.seen = {}

    def command(self, out, codec, *more):
        return [
            SHARDIFY,
            str(self.images),
            str(out),
            "--resize",
            "64",
            "--crop",
            "64",
            "--dtype",
            "f32",
            "--codec",
            codec,
            "--samples-per-shard",
            "6",
            "--jobs",
            "2",
            "--quiet",
            *more,
        ]

    def undisturbed(self, codec):
        out = self.path / f"whole-{codec[:4]}"
        begin = time.monotonic()
        self.assert_code(run(self.command(out, codec)), 1)
        return digests(out), time.monotonic() - begin

    def kill_once(self, command, longest):
        """True when the run was killed, false when it was quicker."""
        with subprocess.Popen(
            command, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        ) as process:
            time.sleep(self.random.uniform(0, longest))
            process.send_signal(signal.SIGKILL)
            err = process.communicate(timeout=60)[1]
        self.assertIn(process.returncode, (-9, 1), err)
        return process.returncode == -9

    def check(self, out, expected):
        """Any shard that is visible passes `shardctl verify`;
        whatever has a final name has its final bytes."""
        found = state(out)
        self.seen[found] = self.seen.get(found, 0) + 1
        self.assertIn(found, ("absent", "empty", "incomplete", "complete"))
        if found == "complete":
            self.assert_code(shardctl("verify", out), 0)
        elif found == "incomplete":
            for shard in self.random.sample(shards(out), min(2, len(shards(out)))):
                self.assert_code(shardctl("verify", shard), 0)
        if found != "absent":
            for name, digest in digests(out).items():
                if name in expected:
                    self.assertEqual(digest, expected[name], name)

    def test_kills_of_fresh_runs(self):
        killed = 0
        while killed < KILLS // 2:
            codec = ("none", "zstd:1", "packed")[killed % 3]
            if codec not in getattr(self, "whole", {}):
                whole = dict(getattr(self, "whole", {}))
                whole[codec] = self.undisturbed(codec)
                self.whole = whole
            expected, longest = self.whole[codec]
            out = self.path / "fresh"
            shutil.rmtree(out, ignore_errors=True)
            if not self.kill_once(self.command(out, codec), longest):
                continue
            killed += 1
            self.check(out, expected)
            self.assert_code(run(self.command(out, codec)), 1)
            self.assertEqual(digests(out), expected)
        print(f"{killed} fresh runs killed, left {self.seen}")

    def test_kills_of_one_conversion_again_and_again(self):
        killed = 0
        finished = 0
        while killed < KILLS - KILLS // 2:
            codec = ("none", "zstd:1", "packed")[finished % 3]
            expected, longest = self.undisturbed(codec)
            out = self.path / f"again{finished}"
            more = []
            for attempt in range(1000):
                if not self.kill_once(self.command(out, codec, *more), min(longest, 0.02 + 0.004 * attempt)):
                    break
                killed += 1
                self.check(out, expected)
            self.assertEqual(digests(out), expected)
            # and what is there is replaced, killed as often
            for attempt in range(1000):
                if not self.kill_once(
                    self.command(out, codec, "--overwrite"), min(longest, 0.02 + 0.01 * attempt)
                ):
                    break
                killed += 1
                self.check(out, expected)
            self.assertEqual(digests(out), expected)
            finished += 1
            shutil.rmtree(self.path / f"whole-{codec[:4]}")
        print(f"{killed} runs killed on {finished} conversions, left {self.seen}")

    def test_kills_of_conversions_of_arrays(self):
        """A .npy that is read in place, and the same compressed;
        of both the same bytes, and no temporary file is left."""
        pixels = self.random.randbytes(90 * 50 * 60 * 3)
        header = b"{'descr': '|u1', 'fortran_order': False, 'shape': (90, 50, 60, 3), }".ljust(117) + b"\n"
        array = b"\x93NUMPY\1\0" + struct.pack("<H", len(header)) + header + pixels
        write(self.path / "x.npy", array)
        write(self.path / "x.npy.gz", gzip.compress(array, 1))
        temporary = self.path / "temporary"
        temporary.mkdir()
        expected = None
        killed = 0
        for name in "x.npy", "x.npy.gz":

            def command(out, source=self.path / name):
                return [
                    "env",
                    f"TMPDIR={temporary}",
                    *[
                        str(source) if part == str(self.images) else part
                        for part in self.command(out, "packed")
                    ],
                ]

            begin = time.monotonic()
            whole = self.path / f"whole-{name}"
            self.assert_code(run(command(whole)), 0)
            longest = time.monotonic() - begin
            expected = expected or digests(whole)
            self.assertEqual(digests(whole), expected)
            for attempt in range(max(4, KILLS // 4)):
                out = self.path / f"{name}-{attempt}"
                for _ in range(3):
                    with subprocess.Popen(
                        command(out), env=environment(), stderr=subprocess.DEVNULL
                    ) as process:
                        time.sleep(self.random.uniform(0, longest))
                        process.send_signal(signal.SIGKILL)
                    killed += process.returncode == -9
                    self.check(out, expected)
                self.assert_code(run(command(out)), 0)
                self.assertEqual(digests(out), expected)
                shutil.rmtree(out)
        self.assertGreater(killed, 0)
        self.assertEqual(list(temporary.iterdir()), [])
        print(f"{killed} conversions of arrays killed")

    def test_kills_of_one_of_three_processes(self):
        expected, longest = self.undisturbed("none")
        for attempt in range(max(2, KILLS // 10)):
            out = self.path / f"three{attempt}"
            commands = [
                self.command(out, "none", "--rank", str(rank), "--world-size", "3") for rank in range(3)
            ]
            processes = [subprocess.Popen(c, env=environment(), stderr=subprocess.PIPE) for c in commands]
            time.sleep(self.random.uniform(0, longest))
            processes[attempt % 3].send_signal(signal.SIGKILL)
            for process in processes:
                err = process.communicate(timeout=60)[1]
                self.assertIn(process.returncode, (0, 1, 3, -9), err)
            self.check(out, expected)
            for command in commands:
                self.assertIn(run(command).code, (0, 1, 3))
            self.assertIn(run(commands[0]).code, (0, 1), "complete by now")
            self.assertEqual(digests(out), expected)


if __name__ == "__main__":
    main()
