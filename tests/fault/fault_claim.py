#!/usr/bin/env python3
"""Processes that claim shards (--claim), killed and started at random.

SHARD_CLAIM_KILLS: how many kills (default 12); SHARD_CLAIM_SEED: which moments (default 1).
"""

import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import time

from fault_support import (
    SHARDIFY,
    TestCase,
    digests,
    environment,
    info,
    main,
    make_images,
    need,
    run,
    shardctl,
    shards,
    state,
    write,
)
from fault_two_at_once import node

KILLS = int(os.environ.get("SHARD_CLAIM_KILLS", "12"))
SEED = int(os.environ.get("SHARD_CLAIM_SEED", "1"))
PROCESSES = 4


class ClaimCase(TestCase):
    def setUp(self):
        super().setUp()
        self.random = random.Random(SEED)
        self.images = make_images(self.path / "in", ("a", "b", "c"), each=20)
        for i in range(3):
            write(self.images / "b" / f"bad{i}.png", b"no picture")
        self.whole = self.path / "whole"
        begin = time.monotonic()
        self.assert_code(run(self.command(out=self.whole)), 1)
        self.took = time.monotonic() - begin
        self.expected = digests(self.whole)

    def command(self, *more, out=None):
        return [
            SHARDIFY,
            str(self.images),
            str(out or self.out),
            "--resize",
            "64",
            "--crop",
            "64",
            "--dtype",
            "f32",
            "--samples-per-shard",
            "3",
            "--jobs",
            "1",
            *more,
        ]

    def start(self, *more, env=None):
        process = subprocess.Popen(
            self.command("--claim", "--json", *more),
            env=env or environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.addCleanup(lambda: process.poll() is None and (process.kill(), process.communicate()))
        return process

    def end(self, process, codes=(1,)):
        out, err = process.communicate(timeout=100)
        self.assertIn(process.returncode, codes, err.decode(errors="replace"))
        return json.loads(out) if process.returncode in (0, 1, 3) else None

    def assert_done(self):
        self.assertEqual(state(self.out), "complete")
        for path in self.out.iterdir():  # what killed processes of another node have left
            if path.name.endswith(".part"):
                path.unlink()
        self.assertEqual(digests(self.out), self.expected)

    def check_on_the_way(self):
        """Processes are at work meanwhile."""
        for name in self.expected:
            path = self.out / os.fsdecode(name)
            if path.exists():
                self.assertEqual(hashlib.sha256(path.read_bytes()).hexdigest(), self.expected[name], name)


class Claim(ClaimCase):
    def test_each_shard_is_converted_by_one_process(self):
        for _ in range(3):
            shutil.rmtree(self.out, ignore_errors=True)
            results = [self.end(process) for process in [self.start() for _ in range(PROCESSES)]]
            self.assert_done()
            self.assertEqual(sum(result["converted_shards"] for result in results), len(shards(self.out)))
            self.assertEqual(sum(result["converted"] for result in results), info(self.out)["samples"])
            for result in results:
                self.assertTrue(result["complete"])
                self.assertEqual(result["samples"], info(self.out)["samples"])

    def test_processes_are_killed_and_started_at_random(self):
        killed = rounds = 0
        while killed < KILLS:
            shutil.rmtree(self.out, ignore_errors=True)
            rounds += 1
            running = []
            budget = self.random.randint(3, 12)  # kills of this conversion; then it may finish
            while budget > 0 and state(self.out) != "complete":
                while len(running) < PROCESSES:
                    running.append(self.start())
                time.sleep(self.random.uniform(0, self.took / 2))
                process = running.pop(self.random.randrange(len(running)))
                process.send_signal(signal.SIGKILL)
                self.end(process, (1, -9))
                killed += process.returncode == -9
                budget -= 1
                self.check_on_the_way()
            while len(running) < PROCESSES:
                running.append(self.start())
            for process in running:
                self.end(process)
            self.assert_code(run(self.command("--claim")), 1)
            self.assert_done()
            self.assert_code(shardctl("verify", self.out), 0)
        print(
            f"{killed} kills among {PROCESSES} claiming processes, {rounds} conversions: "
            f"all identical (seed {SEED})"
        )

    def test_a_shard_of_a_process_that_died_is_taken_by_one_that_waits(self):
        def parts():
            return list(self.out.glob(".shard-*.part"))

        for _ in range(100):
            shutil.rmtree(self.out, ignore_errors=True)
            held = self.start()
            while held.poll() is None and not (self.out.exists() and parts()):
                time.sleep(0.001)
            held.send_signal(signal.SIGSTOP)
            time.sleep(0.05)
            if parts() and len(shards(self.out)) < 5:
                break
            held.kill()
            held.communicate()
        waiting = self.start()
        deadline = time.monotonic() + 60
        while len(shards(self.out)) < len(shards(self.whole)) - 2:
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)
        time.sleep(0.5)
        self.assertIsNone(waiting.poll(), "it waits for the shards of the other")
        self.assertEqual(state(self.out), "incomplete")
        held.kill()
        held.communicate()
        self.assertTrue(self.end(waiting)["complete"])
        self.assert_done()

    def test_where_locks_exclude_nobody_the_bytes_are_the_same(self):
        for _ in range(max(2, KILLS // 10)):
            shutil.rmtree(self.out, ignore_errors=True)
            processes = [self.start(env=node(f"node{i}")) for i in range(PROCESSES)]
            time.sleep(self.random.uniform(0, self.took / 2))
            processes[0].send_signal(signal.SIGKILL)
            for process in processes:
                self.end(process, (1, -9))
            self.assert_done()

    def test_lost_shards_are_made_again_by_several(self):
        self.assert_code(run(self.command("--claim")), 1)
        for path in shards(self.out)[::2]:
            path.unlink()
        for process in [self.start() for _ in range(PROCESSES)]:
            self.end(process)
        self.assert_done()

    def test_a_single_process_and_claiming_ones_exclude_each_other(self):
        need("strace")
        held = subprocess.Popen(
            [
                "strace",
                "-f",
                "-qq",
                "-o",
                "/dev/null",
                "-e",
                "trace=fsync",
                "-e",
                "inject=fsync:delay_enter=60000",
                *self.command("--claim", "--quiet"),
            ],
            env=environment(ASAN_OPTIONS="detect_leaks=0"),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.addCleanup(lambda: held.poll() is None and (held.kill(), held.communicate()))
        deadline = time.monotonic() + 60
        while not shards(self.out) if self.out.exists() else True:
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)
        self.assert_refused(run(self.command()), "is at work there")
        self.assertEqual(held.wait(timeout=100), 1)
        self.assert_done()

    def test_claim_goes_with_neither_ranks_nor_replacing(self):
        for more, words in (
            (("--rank", "0", "--world-size", "2"), "--claim"),
            (("--overwrite",), "--claim"),
            (("--append",), "--claim"),
            (("--refresh",), "--claim"),
        ):
            self.assertIn(words, self.assert_code(run(self.command("--claim", *more)), 2).err)

    def test_the_ranks_of_a_launcher_do_not_count(self):
        env = environment(OMPI_COMM_WORLD_RANK="1", OMPI_COMM_WORLD_SIZE="3")
        self.assert_code(run(self.command("--claim"), env=env), 1)
        self.assert_done()

    def test_open_mpi(self):
        need("mpirun")
        result = run(
            [
                "mpirun",
                "--oversubscribe",
                "--allow-run-as-root",
                "-n",
                "3",
                *self.command("--claim", "--on-error", "skip"),
            ]
        )
        self.assertIn("this process: ", result.out)
        self.assert_done()


if __name__ == "__main__":
    main()
