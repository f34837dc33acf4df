#!/usr/bin/env python3
"""shardctl join and shardify --append, disturbed at every call that changes the disk: what is visible is
whole, nothing that was finished is lost, and the same command again gives the same bytes."""

import os
import shutil
import subprocess
import time

from fault_support import (
    CALLS,
    LOG_LINE,
    SANITIZED,
    SHARDCTL,
    SHARDIFY,
    SMALL,
    STRIDE_AT_CALLS,
    TestCase,
    digests,
    environment,
    info,
    main,
    need,
    png,
    run,
    shardctl,
    shards,
    state,
    write,
)

TEXT = {"ENOSPC": "No space left on device", "EIO": "Input/output error"}


class PartsCase(TestCase):
    """self.a: ant, bee; self.b: bee, cow, of other images, one of them bad.
    Each is a data set of three shards."""

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
        return run(
            self.strace(command, call, fault, when, log), env=environment(ASAN_OPTIONS="detect_leaks=0")
        )

    def calls_of(self, command, stride=1):
        """(call, K) for every call of its busiest thread, of the K of a call every stride-th."""
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
        return [(call, k) for call in sorted(most) for k in range(1, most[call] + 1, stride)]

    def start(self, command):
        process = subprocess.Popen(
            [str(word) for word in command],
            env=environment(ASAN_OPTIONS="detect_leaks=0"),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        self.addCleanup(lambda: process.poll() is None and (process.kill(), process.communicate()))
        return process

    def end(self, process):
        err = process.communicate(timeout=120)[1].decode(errors="replace")
        return process.returncode, err

    @staticmethod
    def without_locks(*names):
        """The environments of processes on nodes that do not see each other's locks."""
        return [
            environment(
                LD_PRELOAD=os.environ["SHARD_NO_LOCKS"],
                SHARD_TEST_NODE=name,
                ASAN_OPTIONS="verify_asan_link_order=0:detect_leaks=0",
            )
            for name in names
        ]

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
        return [
            SHARDCTL,
            "join",
            str(out or self.new),
            *map(str, parts or (self.a, self.b)),
            "--quiet",
            *more,
        ]

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
        for call, k in self.fresh(lambda: self.calls_of(self.join(*more), STRIDE_AT_CALLS)):
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
            for call in ("pwrite64", "fsync", "rename", "mkdir") + (() if more else ("linkat",)):
                self.assertGreater(killed.get(call, 0), 0, f"no kill at {call}: {killed}")

    def test_a_full_and_a_failing_disk_at_any_call(self):
        for error in TEXT:
            failed = self.check(f"error={error}")
            for call in ("pwrite64", "fsync", "linkat", "mkdir"):
                self.assertGreater(failed.get(call, 0), 0, f"no failure at {call}: {failed}")

    def test_where_links_are_refused_shards_are_copied(self):
        for error in ("EXDEV", "EPERM", "EMLINK", "EOPNOTSUPP"):
            shutil.rmtree(self.new, ignore_errors=True)
            self.assert_code(self.disturb(self.join(), "linkat", f"error={error}", "1+"), 0)
            self.assertEqual(digests(self.new), self.expected)
            inodes = {path.stat().st_ino for path in [*shards(self.a), *shards(self.b)]}
            self.assertEqual(inodes & {path.stat().st_ino for path in shards(self.new)}, set())

    def test_two_joins_at_once_of_the_same_parts_and_of_others(self):
        for parts in ((self.a, self.b), (self.b, self.a)):
            shutil.rmtree(self.new, ignore_errors=True)
            slow = self.start(self.strace(self.join(), "fsync,linkat", delay=0.1))
            self.wait_for(lambda: shards(self.new), "shard")
            second = run(self.join(parts=parts))
            self.assert_code(second, 2)
            self.assertIn("is at work there", second.err)
            self.assertEqual(self.end(slow), (0, ""))
            self.assertEqual(digests(self.new), self.expected)

    def test_two_joins_on_nodes_that_see_no_locks(self):
        nodes = self.without_locks("one", "two")
        for _ in range(5):
            shutil.rmtree(self.new, ignore_errors=True)
            both = [
                subprocess.Popen(self.join(*more), env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
                for env, more in zip(nodes, ([], ["--copy"]))
            ]
            for process in both:
                self.assertEqual(self.end(process), (0, ""))
            self.assertEqual(digests(self.new), self.expected)
        shutil.rmtree(self.new)
        both = [
            subprocess.Popen(
                self.join(parts=parts), env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
            )
            for env, parts in zip(nodes, ((self.a, self.b), (self.b, self.a)))
        ]
        codes = [self.end(process)[0] for process in both]
        self.assertIn(2, codes)
        if 0 in codes:
            self.assert_code(shardctl("verify", self.new), 0)

    def test_a_part_that_is_replaced_meanwhile(self):
        slow = self.start(self.strace(self.join(), "linkat", delay=0.3))
        self.wait_for(lambda: shards(self.new), "shard")
        write(self.images["a"] / "ant" / "more.png", png(1))
        self.assert_code(run(self.convert("a", self.a, "--overwrite")), 0)
        code, err = self.end(slow)
        self.assertNotEqual(code, 0)
        self.assertIn(str(self.a), err)
        self.assertNotEqual(state(self.new), "complete")


class Append(PartsCase):
    """To self.out, a copy of self.a, the images of self.b."""

    def setUp(self):
        super().setUp()
        self.out = self.path / "out"
        self.old = digests(self.a)
        self.put_old()
        self.assert_code(run(self.append()), 1)
        self.expected = digests(self.out)
        joined = self.path / "joined"
        self.assert_code(run([SHARDCTL, "join", str(joined), str(self.a), str(self.b), "--quiet"]), 0)
        self.assertEqual(digests(joined), self.expected)

    def append(self, *more):
        return self.convert("b", self.out, "--append", *more)

    def put_old(self):
        shutil.rmtree(self.out, ignore_errors=True)
        shutil.rmtree(self.out.parent / ".out.shardify-old", ignore_errors=True)
        shutil.copytree(self.a, self.out)

    def assert_sound(self):
        """The data set at OUT is the old one or the new one, whole; its old shards are what they were."""
        found = digests(self.out)
        for name, digest in self.old.items():
            if name.startswith(b"shard-"):
                self.assertEqual(found[name], digest, name)
        which = {self.old[b"dataset.json"]: "old", self.expected[b"dataset.json"]: "new"}[
            found[b"dataset.json"]
        ]
        for name, digest in found.items():
            if name.startswith(b"shard-"):
                self.assertEqual(digest, self.expected[name], name)
        if which == "new":
            for name, digest in self.expected.items():
                self.assertEqual(found.get(name), digest, name)
        self.assert_code(shardctl("verify", self.out), 0)
        return which

    def make_extra(self):
        """The data set that tables_fit() joins with OUT."""
        self.images["extra"] = self.path / "in-extra"
        write(self.images["extra"] / "ant" / "extra.png", png(1))
        self.assert_code(run(self.convert("extra", self.path / "extra")), 0)

    def tables_fit(self):
        """Join reads the tables: either they fit to dataset.json, or it says that an append is under way."""
        new = self.path / "reader"
        shutil.rmtree(new, ignore_errors=True)
        result = run([SHARDCTL, "join", str(new), str(self.out), str(self.path / "extra"), "--quiet"])
        if result.code == 2:
            self.assertIn("is being changed", result.err)
            return False
        self.assert_code(result, 0)
        rows = info(new)["rejects"]
        self.assertEqual(len((new / "rejects.csv").read_text().splitlines()) - 1, rows)
        self.assertEqual(len((new / "inputs.csv").read_text().splitlines()) - 1, info(new)["inputs"])
        return True

    def check(self, fault):
        disturbed, left = {}, {}
        self.make_extra()
        self.put_old()
        for call, k in self.calls_of(self.append(), STRIDE_AT_CALLS):
            with self.subTest(call=call, k=k):
                self.put_old()
                inodes = {path.name: path.stat().st_ino for path in shards(self.out)}
                result = self.disturb(self.append(), call, fault, k)
                which = self.assert_sound()
                if result.code not in (0, 1):
                    disturbed[call] = disturbed.get(call, 0) + 1
                    fits = self.tables_fit()
                    left[which, fits] = left.get((which, fits), 0) + 1
                    if fault.startswith("error="):
                        self.assert_refused(result, TEXT[fault[6:]])
                        self.assertEqual(
                            [path for path in self.out.rglob("*.part") if not call.startswith("unlink")], []
                        )
                    else:
                        self.assertIn(result.code, (-9, 137), result)
                self.assert_code(run(self.append()), 1)
                self.assertEqual(digests(self.out), self.expected)
                self.assertEqual(inodes, {name: (self.out / name).stat().st_ino for name in inodes})
                self.assertFalse(
                    (self.out / ".shardify-next").exists() and os.listdir(self.out / ".shardify-next")
                )
        print(f"append, {fault}: {disturbed}, {sum(disturbed.values())} in all; left {left}")
        return disturbed, left

    def test_a_kill_at_any_call(self):
        killed, left = self.check("signal=SIGKILL")
        for call in ("pwrite64", "fsync", "rename", "unlink", "mkdir"):
            self.assertGreater(killed.get(call, 0), 0, f"no kill at {call}: {killed}")
        for what in (("old", True), ("old", False), ("new", True)):
            self.assertGreater(left.get(what, 0), 0, left)

    def test_a_full_disk_at_any_call(self):
        failed, _ = self.check("error=ENOSPC")
        for call in ("pwrite64", "fsync", "rename", "mkdir"):
            self.assertGreater(failed.get(call, 0), 0, f"no failure at {call}: {failed}")

    def test_a_failing_disk_at_any_call(self):
        self.check("error=EIO")

    def stopped(self, call, when):
        """An append that was killed; True if it was decided and has not replaced dataset.json."""
        self.put_old()
        self.disturb(self.append(), call, "signal=SIGKILL", when)
        return (
            self.out / ".shardify-next" / "joined" / "dataset.json"
        ).exists() and self.assert_sound() == "old"

    def decided(self):
        """As many different stops after the decision as there are."""
        self.put_old()
        count = max(k for call, k in self.calls_of(self.append()) if call == "renameat")
        for when in range(1, count + 1):
            if self.stopped("renameat", when):
                yield when

    def test_other_commands_finish_an_append_that_was_decided_or_leave_it(self):
        stops = list(self.decided())
        self.assertGreater(len(stops), 3)
        extra = self.path / "in-more"
        write(extra / "dog" / "x.png", png(3))
        self.images["more"] = extra
        for when in stops[::STRIDE_AT_CALLS]:
            self.assertTrue(self.stopped("renameat", when))
            self.assert_code(run(self.convert("a", self.out)), 0)  # complete: this command changes nothing
            self.assertEqual(self.assert_sound(), "old")
            self.assert_refused(
                run(self.convert("a", self.out, "--refresh")), "put together from 2 conversions"
            )
            self.assertEqual(digests(self.out), self.expected)
            self.assertTrue(self.stopped("renameat", when))
            self.assert_code(run(self.convert("more", self.out, "--append")), 0)
            self.assertEqual(len(info(self.out)["parts"]), 3)
            self.assertEqual(digests(self.out).keys() - self.expected.keys(), {b"shard-00006.safetensors"})
            self.assert_code(shardctl("verify", self.out), 0)
            self.assertTrue(self.stopped("renameat", when))
            self.assert_code(run(self.convert("a", self.out, "--overwrite")), 0)
            self.assertEqual(digests(self.out), self.old)

    def test_an_append_that_was_not_decided_gives_way_to_another_one(self):
        self.put_old()
        self.disturb(self.append(), "fsync", "signal=SIGKILL", 6)
        self.assertTrue((self.out / ".shardify-next").exists())
        self.images["more"] = self.path / "in-more"
        write(self.images["more"] / "dog" / "x.png", png(3))
        self.assert_code(run(self.convert("more", self.out, "--append")), 0)
        self.assertEqual(len(info(self.out)["parts"]), 2)
        self.assert_code(run(self.append()), 1)
        self.assert_code(shardctl("verify", self.out), 0)
        self.assertFalse((self.out / ".shardify-next").exists())

    def test_a_stopped_append_goes_on_with_the_shards_that_it_has(self):
        self.put_old()
        self.assertFalse(self.stopped("fsync", 12))
        staged = {path.name: path.stat().st_ino for path in shards(self.out / ".shardify-next")}
        self.assertNotEqual(staged, {})
        self.assert_code(run(self.append()), 1)
        new = {path.stat().st_ino for path in shards(self.out)}
        self.assertTrue(set(list(staged.values())[:-1]) <= new)

    def test_what_was_decided_for_another_data_set_is_dropped(self):
        when = next(self.decided())
        self.assertTrue(self.stopped("renameat", when))
        keep = self.path / "keep"
        shutil.copytree(self.out / ".shardify-next", keep)
        shutil.rmtree(self.out)
        shutil.copytree(self.b, self.out)
        shutil.copytree(keep, self.out / ".shardify-next")
        before = digests(self.b)
        self.assert_code(run(self.convert("b", self.out, "--refresh")), 1)
        self.assertEqual(digests(self.out), before)

    def test_two_appends_at_once(self):
        self.put_old()
        slow = self.start(self.strace(self.append(), "fsync", delay=0.1))
        self.wait_for(lambda: shards(self.out / ".shardify-next"), "staged shard")
        self.assert_refused(run(self.append()), "is at work there")
        self.images["more"] = self.path / "in-more"
        write(self.images["more"] / "dog" / "x.png", png(3))
        self.assert_refused(run(self.convert("more", self.out, "--append")), "is at work there")
        self.assert_refused(run(self.convert("a", self.out, "--overwrite")), "is at work there")
        self.assert_code(run(self.convert("a", self.out)), 0)  # the data set is complete all the time
        code, err = self.end(slow)
        self.assertEqual(code, 1, err)
        self.assertEqual(digests(self.out), self.expected)

    def test_what_was_staged_for_an_older_state_goes_when_the_append_is_there(self):
        self.put_old()
        self.disturb(self.append(), "fsync", "signal=SIGKILL", 6)
        keep = self.path / "keep"
        shutil.copytree(self.out / ".shardify-next", keep)
        self.assert_code(run(self.append()), 1)
        shutil.copytree(
            keep, self.out / ".shardify-next"
        )  # as the other one of two leaves it where locks exclude nobody
        self.assert_code(run(self.append()), 1)
        self.assertEqual(digests(self.out), self.expected)
        self.assertFalse((self.out / ".shardify-next").exists())
        (self.out / ".shardify-next").mkdir()
        shutil.copy(next(keep.glob(".shard-*.done.json")), self.out / ".shardify-next")  # without the plan
        self.assert_code(run(self.append()), 1)
        self.assertEqual(digests(self.out), self.expected)
        # What is staged for the data set as it is now stays.
        self.images["more"] = self.path / "in-more"
        for i in range(12):
            write(self.images["more"] / "dog" / f"{i}.png", png(i))
        self.disturb(self.convert("more", self.out, "--append"), "fsync", "signal=SIGKILL", 8)
        staged = {path.name for path in shards(self.out / ".shardify-next")}
        self.assertTrue(staged)
        self.assert_code(run(self.append()), 1)
        self.assertEqual({path.name for path in shards(self.out / ".shardify-next")}, staged)
        self.assert_code(run(self.convert("more", self.out, "--append")), 0)
        self.assert_code(shardctl("verify", self.out), 0)

    def test_two_appends_on_nodes_that_see_no_locks(self):
        nodes = self.without_locks("one", "two")
        ends = {}
        for _ in range(10):
            self.put_old()
            both = [
                subprocess.Popen(self.append(), env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
                for env in nodes
            ]
            codes = tuple(sorted(self.end(process)[0] for process in both))
            ends[codes] = ends.get(codes, 0) + 1
            self.assertTrue(set(codes) <= {1, 2}, codes)
            self.assert_sound()
            for path in self.out.rglob("*.part"):  # what one left on its node
                path.unlink()
            self.assert_code(run(self.append()), 1)
            self.assertEqual(digests(self.out), self.expected)
        print(f"two appends without locks: {ends}")

    def test_an_append_without_locks_that_stands_still_while_another_one_runs(self):
        """At each rename in turn, for longer than the other one needs for the same images or for others."""
        slow, quick = self.without_locks("slow", "quick")
        self.make_extra()
        self.images["more"] = self.path / "in-more"
        write(self.images["more"] / "dog" / "x.png", png(3))
        self.put_old()
        renames = [(call, k) for call, k in self.calls_of(self.append()) if call in ("rename", "renameat")]
        self.assertGreater(len(renames), 5)
        log = self.path / "slow.log"
        ends = {}
        for other in ("b", "more"):
            for call, when in renames[::STRIDE_AT_CALLS]:
                with self.subTest(other=other, call=call, when=when):
                    self.put_old()
                    log.unlink(missing_ok=True)
                    stands = f"delay_enter={2_000_000 if SANITIZED else 400_000}"
                    first = subprocess.Popen(
                        self.strace(self.append(), call, stands, when, log),
                        env=slow,
                        stdout=subprocess.DEVNULL,
                        stderr=subprocess.PIPE,
                    )
                    self.wait_for(
                        lambda call=call, when=when, first=first: (
                            first.poll() is not None
                            or (log.exists() and log.read_text(errors="replace").count(f"{call}(") >= when)
                        ),
                        call,
                    )
                    second = run(self.convert(other, self.out, "--append"), env=quick)
                    codes = (self.end(first)[0], second.code)
                    ends[codes] = ends.get(codes, 0) + 1
                    self.assertTrue(set(codes) <= {0, 1, 2}, (codes, second.err))
                    found = digests(self.out)
                    self.assertEqual(
                        {name: found.get(name) for name in self.old if name.startswith(b"shard-")},
                        {name: digest for name, digest in self.old.items() if name.startswith(b"shard-")},
                    )
                    self.assert_code(shardctl("verify", self.out), 0)
                    for path in self.out.rglob("*.part"):
                        path.unlink()
                    for name in ("b", "more"):
                        self.assertIn(run(self.convert(name, self.out, "--append")).code, (0, 1))
                    self.assert_code(shardctl("verify", self.out), 0)
                    self.assertTrue(self.tables_fit())
                    self.assertEqual(
                        info(self.out)["inputs"], info(self.a)["inputs"] + info(self.b)["inputs"] + 1
                    )
                    self.assertFalse((self.out / ".shardify-next").exists())
        print(f"two appends, one stands still: {ends}")

    def test_an_append_without_locks_does_not_move_what_another_one_has_staged(self):
        """It stands still before it moves a shard. Another one finishes it, and stages one of its own
        under that name."""
        slow, quick = self.without_locks("slow", "quick")
        self.images["more"] = self.path / "in-more"
        for i in range(5):
            write(self.images["more"] / "dog" / f"{i}.png", png(i))
        self.put_old()
        moves = max(k for call, k in self.calls_of(self.append()) if call == "renameat")
        log = self.path / "slow.log"
        for when in (1, 2):
            with self.subTest(when=when):
                self.put_old()
                log.unlink(missing_ok=True)
                both = []
                for env, command, at, delay in (
                    (slow, self.append(), when, 3_000_000),
                    (quick, self.convert("more", self.out, "--append"), moves + 1, 4_000_000),
                ):
                    command = self.strace(command, "renameat", f"delay_enter={delay}", at, log)
                    both.append(
                        subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
                    )
                    self.wait_for(lambda: log.exists() and "renameat(" in log.read_text(), "renameat")
                    log = self.path / "quick.log"
                codes = [self.end(process)[0] for process in both]
                self.assertTrue(set(codes) <= {0, 1, 2}, codes)
                for name, digest in digests(self.out).items():
                    if name in self.expected and name.startswith(b"shard-"):
                        self.assertEqual(digest, self.expected[name], name)
                self.assert_code(shardctl("verify", self.out), 0)
                self.assert_code(run(self.append()), 1)
                self.assert_code(run(self.convert("more", self.out, "--append")), 0)
                self.assertEqual(len(info(self.out)["parts"]), 3)

    def test_two_appends_without_locks_that_both_stand_still(self):
        """One while it converts, the other one then while it puts its files into OUT,
        so that the first finds them half there."""
        nodes = self.without_locks("one", "two")
        self.put_old()
        count = max(k for call, k in self.calls_of(self.append()) if call == "renameat")
        for early in (1, 3):
            for late in range(max(1, count - 5), count + 1):
                with self.subTest(early=early, late=late):
                    self.put_old()
                    both = []
                    stands = ("rename", early, 150_000), ("renameat", late, 350_000)
                    for env, (call, when, pause) in zip(nodes, stands):
                        command = self.strace(self.append(), call, f"delay_enter={pause}", when)
                        both.append(
                            subprocess.Popen(
                                command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
                            )
                        )
                        time.sleep(0.03)  # the first has looked at OUT
                    codes = {self.end(process)[0] for process in both}
                    self.assertTrue(codes <= {1, 2}, codes)
                    self.assert_sound()
                    for path in self.out.rglob("*.part"):
                        path.unlink()
                    self.assert_code(run(self.append()), 1)
                    self.assertEqual(digests(self.out), self.expected)

    def test_readers_see_the_old_data_set_or_the_new_one(self):
        self.put_old()
        slow = self.start(self.strace(self.append(), "fsync,rename,renameat", delay=0.03))
        seen = []
        while slow.poll() is None:
            listed = shardctl("ls", self.out, "--csv")
            self.assert_code(listed, 0)
            checked = shardctl("verify", self.out)
            self.assert_code(checked, 0)
            seen.append(listed.out.count("\n") - 1)
        self.assertEqual(self.end(slow)[0], 1)
        seen.append(shardctl("ls", self.out, "--csv").out.count("\n") - 1)
        self.assertEqual(seen, sorted(seen))
        self.assertEqual(set(seen), {10, 20})


if __name__ == "__main__":
    main()
