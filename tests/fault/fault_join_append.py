#!/usr/bin/env python3
"""shardctl join and shardify --append, disturbed at every call that changes the disk: what is visible is whole, nothing that was
finished is lost, and the same command again gives the same bytes."""

import os
import shutil
import subprocess
import time
from pathlib import Path

from fault_support import CALLS, LOG_LINE, SANITIZED, SHARDCTL, SHARDIFY, SMALL, TestCase, digests, environment, info, main, need
from fault_support import png, run, shardctl, shards, state, write

TEXT = {"ENOSPC": "No space left on device", "EIO": "Input/output error"}


class PartsCase(TestCase):
    """self.a: ant, bee; self.b: bee, cow, of other images, one of them bad. Each is a data set of three shards."""

    def setUp(self):
        super().setUp()
        self.images = {}
        for name, classes in (("a", ("ant", "bee")), ("b", ("bee", "cow"))):
            self.images[name] = self.path / f"in-{name}"
            for c, label in enumerate(classes):
                for i in range(5):
                    write(self.images[name] / label / f"{name}{i}.png", png(ord(name) * 100 + 10 * c + i))
        write(self.images["b"] / "cow" / "bad.png", b"no picture")
        self.a, self.b = self.path / "a", self.path / "b"
        self.assert_code(run(self.convert("a", self.a)), 0)
        self.assert_code(run(self.convert("b", self.b)), 1)

    def convert(self, name, out, *more):
        return [SHARDIFY, str(self.images[name]), str(out), *SMALL, "--jobs", "1", *more]

    def strace(self, command, calls, fault=None, when=1, log=None, delay=None):
        need("strace")
        options = ["strace", "-f", "-qq", "-o", str(log or "/dev/null"), "-e", f"trace={calls}"]
        if fault:
            options += ["-e", f"inject={calls}:{fault}:when={when}"]
        if delay:
            options += ["-e", f"inject={calls}:delay_enter={int(delay * 1e6)}"]
        return options + [str(word) for word in command]

    def disturb(self, command, call, fault, when, log=None):
        return run(self.strace(command, call, fault, when, log), env=environment(ASAN_OPTIONS="detect_leaks=0"))

    def calls_of(self, command):
        """(call, K) for every call of its busiest thread."""
        log = self.path / "calls.log"
        run(self.strace(command, ",".join(CALLS), log=log), env=environment(ASAN_OPTIONS="detect_leaks=0"))
        counts = {}
        for line in log.read_text(errors="replace").splitlines():
            match = LOG_LINE.match(line)
            if match:
                counts[match.groups()] = counts.get(match.groups(), 0) + 1
        most = {}
        for (_, call), count in counts.items():
            most[call] = max(most.get(call, 0), count)
        self.assertTrue(most, "strace saw no call")
        return [(call, k) for call in sorted(most) for k in range(1, most[call] + 1, 3 if SANITIZED else 1)]

    def start(self, command):
        process = subprocess.Popen([str(word) for word in command], env=environment(), stdout=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE)
        self.addCleanup(lambda: process.poll() is None and (process.kill(), process.communicate()))
        return process

    def end(self, process):
        err = process.communicate(timeout=120)[1].decode(errors="replace")
        return process.returncode, err

    def wait_for(self, condition, what):
        deadline = time.monotonic() + 60
        while not condition():
            self.assertLess(time.monotonic(), deadline, f"no {what} within a minute")
            time.sleep(0.005)


class Join(PartsCase):
    def setUp(self):
        super().setUp()
        self.new = self.path / "new"
        whole = self.path / "whole"
        self.assert_code(run(self.join(out=whole)), 0)
        self.expected = digests(whole)
        self.parts = digests(self.a), digests(self.b)

    def join(self, *more, parts=None, out=None):
        return [SHARDCTL, "join", str(out or self.new), *map(str, parts or (self.a, self.b)), "--quiet", *more]

    def assert_sound(self):
        self.assertEqual((digests(self.a), digests(self.b)), self.parts)
        if not self.new.exists():
            return
        found = digests(self.new)
        for name, digest in found.items():
            if not name.endswith(b".part"):
                self.assertEqual(digest, self.expected[name], name)
        if b"dataset.json" in found:
            self.assertEqual(set(self.expected) - set(found), set())

    def check(self, fault, more=()):
        disturbed = {}
        for call, k in self.fresh(lambda: self.calls_of(self.join(*more))):
            with self.subTest(call=call, k=k, more=more):
                self.fresh(lambda: None)
                log = self.path / "fault.log"
                result = self.disturb(self.join(*more), call, fault, k, log)
                self.assert_sound()
                if result.code != 0:
                    disturbed[call] = disturbed.get(call, 0) + 1
                    if fault.startswith("error="):
                        self.assert_code(result, 2)
                        self.assertIn(TEXT[fault[6:]], result.err)
                        left = os.listdir(self.new) if self.new.exists() else []
                        if not call.startswith("unlink"):
                            self.assertEqual([name for name in left if name.endswith(".part")], [])
                    else:
                        self.assertIn(result.code, (-9, 137), result)
                self.assert_code(run(self.join(*more)), 0)
                self.assertEqual(digests(self.new), self.expected)
        print(f"join{' '.join(['', *more])}, {fault}: {disturbed}, {sum(disturbed.values())} in all")
        return disturbed

    def fresh(self, then):
        shutil.rmtree(self.new, ignore_errors=True)
        return then()

    def test_a_kill_at_any_call(self):
        for more in ([], ["--copy"]):
            killed = self.check("signal=SIGKILL", more)
            for call in ("pwrite64", "fsync", "rename", "mkdir") + (() if more else ("link",)):
                self.assertGreater(killed.get(call, 0), 0, f"no kill at {call}: {killed}")

    def test_a_full_and_a_failing_disk_at_any_call(self):
        for error in TEXT:
            failed = self.check(f"error={error}")
            for call in ("pwrite64", "fsync", "link", "mkdir"):
                self.assertGreater(failed.get(call, 0), 0, f"no failure at {call}: {failed}")

    def test_where_links_are_refused_shards_are_copied(self):
        for error in ("EXDEV", "EPERM", "EMLINK", "EOPNOTSUPP"):
            shutil.rmtree(self.new, ignore_errors=True)
            self.assert_code(self.disturb(self.join(), "link", f"error={error}", "1+"), 0)
            self.assertEqual(digests(self.new), self.expected)
            inodes = {path.stat().st_ino for path in [*shards(self.a), *shards(self.b)]}
            self.assertEqual(inodes & {path.stat().st_ino for path in shards(self.new)}, set())

    def test_two_joins_at_once_of_the_same_parts_and_of_others(self):
        for parts in ((self.a, self.b), (self.b, self.a)):
            shutil.rmtree(self.new, ignore_errors=True)
            slow = self.start(self.strace(self.join(), "fsync,link", delay=0.1))
            self.wait_for(lambda: shards(self.new), "shard")
            second = run(self.join(parts=parts))
            self.assert_code(second, 2)
            self.assertIn("is at work there", second.err)
            self.assertEqual(self.end(slow), (0, ""))
            self.assertEqual(digests(self.new), self.expected)

    def test_two_joins_on_nodes_that_see_no_locks(self):
        nodes = [environment(LD_PRELOAD=os.environ["SHARD_NO_LOCKS"], SHARD_TEST_NODE=name,
                             ASAN_OPTIONS="verify_asan_link_order=0:detect_leaks=0") for name in ("one", "two")]
        for _ in range(5):
            shutil.rmtree(self.new, ignore_errors=True)
            both = [subprocess.Popen(self.join(*more), env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
                    for env, more in zip(nodes, ([], ["--copy"]))]
            for process in both:
                self.assertEqual(self.end(process), (0, ""))
            self.assertEqual(digests(self.new), self.expected)
        shutil.rmtree(self.new)
        both = [subprocess.Popen(self.join(parts=parts), env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
                for env, parts in zip(nodes, ((self.a, self.b), (self.b, self.a)))]
        codes = [self.end(process)[0] for process in both]
        self.assertIn(2, codes)
        if 0 in codes:
            self.assert_code(shardctl("verify", self.new), 0)

    def test_a_part_that_is_replaced_meanwhile(self):
        slow = self.start(self.strace(self.join(), "link", delay=0.3))
        self.wait_for(lambda: shards(self.new), "shard")
        write(self.images["a"] / "ant" / "more.png", png(1))
        self.assert_code(run(self.convert("a", self.a, "--overwrite")), 0)
        code, err = self.end(slow)
        self.assertNotEqual(code, 0)
        self.assertIn(str(self.a), err)
        self.assertNotEqual(state(self.new), "complete")


if __name__ == "__main__":
    main()
