#!/usr/bin/env python3
"""Two conversions on one OUT, one of them killed; replacing and refreshing a data set, killed at any moment.

SHARD_PAIRS: how many pairs of each kind (default 8); SHARD_PAIR_SEED: which moments (default 1).
"""

import os
import random
import shutil
import signal
import subprocess
import threading
import time
from pathlib import Path

from fault_support import (
    SHARDIFY,
    STRIDE,
    TestCase,
    all_keys,
    digests,
    environment,
    info,
    main,
    make_images,
    need,
    need_root,
    png,
    run,
    shardctl,
    shards,
    state,
    write,
)

PAIRS = int(os.environ.get("SHARD_PAIRS", "8"))
SEED = int(os.environ.get("SHARD_PAIR_SEED", "1"))
BUSY = "is at work there"


def node(name):
    """The environment of a process on a node of its own: no lock of another node is seen there."""
    return environment(
        LD_PRELOAD=os.environ["SHARD_NO_LOCKS"],
        SHARD_TEST_NODE=name,
        ASAN_OPTIONS="verify_asan_link_order=0:detect_leaks=0",
    )


class TwoCase(TestCase):
    def setUp(self):
        super().setUp()
        self.random = random.Random(SEED)
        self.images = make_images(self.path / "in", ("a", "b"), each=10)
        self.whole = self.path / "whole"
        begin = time.monotonic()
        self.assert_code(run(self.command(out=self.whole)), 0)
        self.took = time.monotonic() - begin
        self.expected = digests(self.whole)

    def command(self, *more, out=None, size="32"):
        return [
            SHARDIFY,
            str(self.images),
            str(out or self.out),
            "--resize",
            size,
            "--crop",
            size,
            "--dtype",
            "u8",
            "--samples-per-shard",
            "2",
            "--jobs",
            "1",
            "--quiet",
            *more,
        ]

    def start(self, command, **options):
        return subprocess.Popen(
            command,
            env=options.pop("env", environment()),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            **options,
        )

    def end(self, process):
        err = process.communicate(timeout=120)[1].decode(errors="replace")
        return process.returncode, err

    def slow(self, *more, out=None, env=None):
        """The command, held up for 0.2 s at every fsync; its process is a child of strace."""
        need("strace")
        process = self.start(
            [
                "strace",
                "-f",
                "-qq",
                "-o",
                "/dev/null",
                "-e",
                "trace=fsync",
                "-e",
                "inject=fsync:delay_enter=200000",
                *self.command(*more, out=out),
            ],
            env=env or environment(),
        )
        self.addCleanup(lambda: process.poll() is None and (process.kill(), process.communicate()))
        return process

    def wait_for(self, condition, what):
        deadline = time.monotonic() + 60
        while not condition():
            self.assertLess(time.monotonic(), deadline, f"no {what} within a minute")
            time.sleep(0.005)

    def assert_expected(self, expected=None):
        self.assertEqual(digests(self.out), expected or self.expected)


class SameCommand(TwoCase):
    def pair(self, environments):
        """Two processes, one of which is killed, unless it is quicker. Returns codes and messages."""
        shutil.rmtree(self.out, ignore_errors=True)
        first = self.start(self.command(), env=environments[0])
        time.sleep(self.random.uniform(0, self.took * 0.6))
        second = self.start(self.command(), env=environments[1])
        time.sleep(self.random.uniform(0, self.took))
        slower = self.random.choice((first, second))
        slower.send_signal(signal.SIGKILL)
        codes = [self.end(process) for process in (first, second)]
        for code, err in codes:
            self.assertIn(code, (0, 2, -9), err)
            if code == 2:
                self.assertIn(BUSY, err)
        return codes

    def check_pairs(self, *environments):
        finished = lost = 0
        for _ in range(PAIRS):
            codes = self.pair(environments)
            if 0 in [code for code, _ in codes]:
                finished += 1
                self.assertEqual(state(self.out), "complete")
                missing = set(self.expected) - set(digests(self.out))
                lost += bool(missing)
                self.assertEqual(missing, set(), "a finished data set has lost files")
            for name, digest in digests(self.out).items() if self.out.exists() else ():
                if name in self.expected:
                    self.assertEqual(digest, self.expected[name], name)
            self.assert_code(run(self.command(), env=environments[0]), 0)
            self.assert_code(shardctl("verify", self.out), 0)
            for path in self.out.iterdir():  # what the killed one left on its node
                if path.name.endswith(".part") and ".two-" in path.name:
                    path.unlink()
            self.assert_expected()
        print(
            f"{PAIRS} pairs of the same command, one killed: {finished} finished by the other, 0 corrupt, "
            f"{lost} lost "
            f"(seed {SEED})"
        )

    def test_the_same_command_twice_and_one_of_them_killed(self):
        self.check_pairs(environment(), environment())

    def test_the_same_command_on_two_nodes_where_locks_exclude_nobody(self):
        self.check_pairs(node("one"), node("two"))

    def test_the_second_is_refused_and_names_the_first(self):
        holder = self.slow()
        self.wait_for(lambda: shards(self.out), "shard")
        result = run(self.command())
        self.assert_refused(result, self.out, BUSY)
        pid = int(result.err.split("process ")[1].split()[0])
        self.assertEqual(os.path.basename(os.readlink(f"/proc/{pid}/exe")), "shardify")
        self.assertIn(os.fsencode(self.out), Path(f"/proc/{pid}/cmdline").read_bytes())
        self.assert_refused(run(self.command("--overwrite")), BUSY, str(pid))
        self.assert_refused(run(self.command("--rank", "0", "--world-size", "2")), BUSY, str(pid))
        self.assertEqual(self.end(holder)[0], 0)
        self.assert_expected()

    def test_ranks_work_together_and_the_same_rank_twice_does_not(self):
        ranks = [self.slow("--rank", str(rank), "--world-size", "3") for rank in range(2)]
        self.wait_for(lambda: len(shards(self.out)) >= 2, "shards of two ranks")
        result = run(self.command("--rank", "1", "--world-size", "3"))
        self.assert_refused(result, self.out, BUSY, "rank 1 of 3")
        pid = int(result.err.split("process ")[1].split()[0])
        self.assertIn(b"--rank\x001\x00", Path(f"/proc/{pid}/cmdline").read_bytes())
        self.assert_refused(run(self.command()), BUSY)
        self.assertEqual(run(self.command("--rank", "2", "--world-size", "3")).code in (0, 3), True)
        for rank in ranks:
            self.assertIn(self.end(rank)[0], (0, 3))
        self.assert_expected()

    def test_a_late_rank_is_no_stranger_while_others_finish(self):
        for attempt in range(PAIRS):
            shutil.rmtree(self.out, ignore_errors=True)
            ranks = [self.start(self.command("--rank", str(rank), "--world-size", "3")) for rank in range(2)]
            time.sleep(self.random.uniform(0, self.took))
            late = [
                self.start(self.command("--rank", "2", "--world-size", "3")) for _ in range(1 + attempt % 2)
            ]
            for process in ranks + late:
                code, err = self.end(process)
                self.assertIn(code, (0, 2, 3), err)
                if code == 2:
                    self.assertIn(BUSY, err)
            for rank in range(3):
                self.assertIn(run(self.command("--rank", str(rank), "--world-size", "3")).code, (0, 3))
            self.assert_expected()


class OtherOptions(TwoCase):
    def setUp(self):
        super().setUp()
        self.other = self.path / "other"
        self.assert_code(run(self.command(out=self.other, size="24")), 0)

    def check_pairs(self, ranks=None, nodes=False):
        won = {"32": 0, "24": 0}
        for attempt in range(PAIRS):
            shutil.rmtree(self.out, ignore_errors=True)
            sizes = ["32", "24"] if attempt % 2 else ["24", "32"]
            processes = {
                size: self.start(
                    self.command(*(ranks[size] if ranks else ()), size=size),
                    env=node(size) if nodes else environment(),
                )
                for size in sizes
            }
            results = {size: self.end(process) for size, process in processes.items()}
            winners = [size for size, (code, _) in results.items() if code in (0, 3)]
            self.assertEqual(len(winners), 1, results)
            winner = winners[0]
            loser = "24" if winner == "32" else "32"
            self.assertEqual(results[loser][0], 2, results)
            self.assertIn(
                f'crop: "center {winner}x{winner}" recorded, "center {loser}x{loser}" requested',
                results[loser][1],
            )
            won[winner] += 1
            self.assert_code(run(self.command(size=winner)), 0)
            self.assert_expected(digests(self.whole if winner == "32" else self.other))
            self.assert_code(shardctl("verify", self.out), 0)
        print(f"{PAIRS} pairs with other options: won by {won}, 0 corrupt, 0 lost")

    def test_of_two_conversions_one_wins_and_the_other_is_told_what_differs(self):
        self.check_pairs()

    def test_of_two_ranks_with_other_options_one_wins(self):
        self.check_pairs(
            ranks={"32": ["--rank", "0", "--world-size", "2"], "24": ["--rank", "1", "--world-size", "2"]}
        )

    def test_one_wins_on_two_nodes_where_locks_exclude_nobody(self):
        self.check_pairs(nodes=True)


class Repair(TwoCase):
    def test_what_is_missing_in_a_finished_set_is_made_again(self):
        self.assert_code(run(self.command()), 0)
        for damage in ([3], [0, 9], list(range(10))):
            for number in damage:
                path = self.out / f"shard-{number:05}.safetensors"
                path.unlink() if number % 2 else os.truncate(path, 100)
            self.assert_code(shardctl("verify", self.out), 1)
            inodes = {path.name: path.stat().st_ino for path in shards(self.out)}
            self.assert_code(run(self.command()), 0)
            self.assert_expected()
            for path in shards(self.out):
                if int(path.name[6:11]) not in damage:
                    self.assertEqual(path.stat().st_ino, inodes[path.name], path.name)

    def test_ranks_repair_their_own(self):
        self.assert_code(run(self.command()), 0)
        for number in (1, 2):
            (self.out / f"shard-{number:05}.safetensors").unlink()
        self.assert_code(run(self.command("--rank", "1", "--world-size", "2")), 0)
        self.assertEqual(len(shards(self.out)), 9)
        self.assert_code(run(self.command("--rank", "0", "--world-size", "2")), 0)
        self.assert_expected()

    def test_another_picture_is_not_put_into_a_finished_set(self):
        self.assert_code(run(self.command()), 0)
        image = self.images / "a" / "0.png"
        (self.out / "shard-00000.safetensors").unlink()
        before = digests(self.out)
        write(image, b"x" * image.stat().st_size)  # as long as before
        self.assert_refused(run(self.command()), "--refresh", "shard-00000")
        self.assertEqual(digests(self.out), before)

    def test_a_damaged_receipt_means_that_its_shard_is_made_again(self):
        need("strace")
        self.assertNotEqual(
            run(
                [
                    "strace",
                    "-f",
                    "-qq",
                    "-o",
                    "/dev/null",
                    "-e",
                    "trace=unlink",
                    "-e",
                    "inject=unlink:signal=SIGKILL",
                    "-P",
                    str(self.out / "conversion.json"),
                    *self.command(),
                ]
            ).code,
            0,
        )
        for name in ("dataset.json", "inputs.csv", "rejects.csv"):
            (self.out / name).unlink()
        left = self.path / "left"
        self.out.rename(left)
        whole = (left / ".shard-00003.done.json").read_bytes()
        garbage = [
            b"",
            whole[:-1],
            whole[: len(whole) // 2],
            whole + b"x",
            whole.replace(b'"samples": 2', b'"samples": "2"'),
            whole.replace(b'"samples": 2', b'"samples": 1'),
            b"[" * 100000,
            os.urandom(1000),
            b"\0" * 1000000,
            (left / ".shard-00004.done.json").read_bytes(),
        ]
        for damage in garbage + [None]:
            shutil.rmtree(self.out, ignore_errors=True)
            shutil.copytree(left, self.out)
            receipt = self.out / ".shard-00003.done.json"
            if damage is None:
                os.truncate(receipt, 1 << 40)
            else:
                receipt.write_bytes(damage)
            self.assert_code(run(self.command()), 0)
            self.assert_expected()


class Replace(TwoCase):
    """self.old: a data set of other pictures; what is to be there in the end is self.expected."""

    def setUp(self):
        super().setUp()
        before = self.images
        self.images = self.path / "then" / "in"
        shutil.copytree(before, self.images)
        write(self.images / "b" / "3.png", png(5000, width=50))
        write(self.images / "a" / "8.png", png(5001, width=50))
        self.old = self.path / "old"
        self.assert_code(run(self.command(out=self.old)), 0)
        self.images = before
        self.side = self.out.parent / f".{self.out.name}.shardify-old"

    def put_old(self):
        shutil.rmtree(self.out, ignore_errors=True)
        shutil.rmtree(self.side, ignore_errors=True)
        shutil.copytree(self.old, self.out)
        write(self.out / "notes.txt", b"mine")

    def visible(self):
        """The data set at OUT, without what is hidden: old or new."""
        found = {
            name: digest
            for name, digest in digests(self.out).items()
            if not name.startswith(b".") and name not in (b"notes.txt", b"conversion.json")
        }
        return "old" if found == digests(self.old) else "new" if found == self.expected else "neither"

    def assert_replaced(self):
        self.assertEqual((self.out / "notes.txt").read_bytes(), b"mine")
        self.assert_expected({**self.expected, b"notes.txt": digests(self.out)[b"notes.txt"]})
        self.assertFalse(self.side.exists())

    def check_kills(self, option, **options):
        seen = {}
        need("strace")
        for call in ("rename", "renameat", "renameat2", "unlink", "rmdir", "mkdir", "link", "chmod", "fsync"):
            for when in (list(range(1, 9)) + [12, 16, 20, 24])[::STRIDE]:
                self.put_old()
                result = run(
                    [
                        "strace",
                        "-f",
                        "-qq",
                        "-o",
                        "/dev/null",
                        "-e",
                        f"trace={call}",
                        "-e",
                        f"inject={call}:signal=SIGKILL:when={when}",
                        *self.command(option),
                    ],
                    **options,
                )
                if result.code == 0:
                    self.assert_replaced()
                    break
                self.assertIn(result.code, (-9, 137), result)
                found = state(self.out), self.visible()
                seen[found] = seen.get(found, 0) + 1
                if "cwd" not in options:  # exchanged: old or new, at every moment
                    self.assertEqual(found[0], "complete")
                    self.assertIn(found[1], ("old", "new"))
                if found[0] == "complete":
                    self.assertIn(found[1], ("old", "new"))
                    self.assert_code(shardctl("verify", self.out), 0)
                # A rename inside the folder that the process is in is finished there too.
                self.assert_code(run(self.command(option), **options), 0)
                self.assert_replaced()
        print(f"{option} killed: {sum(seen.values())}, left {seen}")
        self.assertIn(("complete", "old"), seen)
        return seen

    def test_overwrite_killed_at_any_call_leaves_the_old_set_or_the_new_one(self):
        self.assertIn(("complete", "new"), self.check_kills("--overwrite"))

    def test_refresh_killed_at_any_call_leaves_the_old_set_or_the_new_one(self):
        self.assertIn(("complete", "new"), self.check_kills("--refresh"))

    def test_overwrite_where_names_cannot_be_exchanged_is_finished_by_the_next_run(self):
        out = self.out_for_good()
        inode = out.stat().st_ino
        self.check_kills("--overwrite", cwd=out)
        self.assertEqual(out.stat().st_ino, inode)  # it was not exchanged

    def out_for_good(self):
        """OUT as a folder that stays: the working folder of the process cannot be exchanged."""
        self.put_old()
        keep = self.out

        def put_old():
            for entry in keep.iterdir():
                shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
            shutil.copytree(self.old, keep, dirs_exist_ok=True)
            write(keep / "notes.txt", b"mine")

        self.put_old = put_old
        return keep

    def test_overwrite_of_a_mount_point_and_below_a_folder_that_is_read_only(self):
        need_root()
        self.put_old()
        if run(["mount", "--bind", self.out, self.out]).code == 0:
            self.addCleanup(lambda: run(["umount", "-l", self.out]))
            self.assert_code(run(self.command("--overwrite")), 0)
            self.assert_replaced()
            run(["umount", "-l", self.out])
        above = self.path / "above"
        shutil.copytree(self.old, above / "out")
        for place in (self.path, above / "out", *above.iterdir()):
            os.chmod(place, 0o777)
        os.chmod(above, 0o555)
        result = run(self.command("--overwrite", out=above / "out"), user=65534, group=65534, extra_groups=[])
        self.assert_code(result, 0)
        self.assertEqual(digests(above / "out"), self.expected)
        self.assertEqual(os.listdir(above), ["out"])

    def test_readers_see_the_old_set_or_the_new_one_while_it_is_replaced(self):
        self.put_old()
        over = threading.Event()
        seen = []

        # The path always leads to a whole data set. (A reader that opens files of both by their paths
        # may see one of each.)
        def read():
            while not over.is_set():
                seen.append(info(self.out)["source_digest"])

        reader = threading.Thread(target=read)
        reader.start()
        try:
            for _ in range(3):
                self.assert_code(run(self.command("--overwrite")), 0)
        finally:
            over.set()
            reader.join()
        self.assertGreater(len(seen), 100)
        then, now = info(self.old)["source_digest"], info(self.whole)["source_digest"]
        self.assertEqual(set(seen), {then, now})
        self.assertEqual(seen, sorted(seen, key=lambda digest: digest != then))

    def test_overwrite_goes_on_where_it_was_and_leaves_mode_and_foreign_folders(self):
        self.put_old()
        (self.out / "mine").mkdir()
        write(self.out / "mine" / "x", b"1")
        self.out.chmod(0o2750)
        process = self.slow("--overwrite")
        self.wait_for(lambda: len(shards(self.out / ".shardify-next")) >= 3, "staged shard")
        pids = run(["pgrep", "-P", str(process.pid)]).out.split()
        for pid in pids:
            os.kill(int(pid), signal.SIGKILL)
        self.end(process)
        staged = {path.name: path.stat().st_ino for path in shards(self.out / ".shardify-next")}
        self.assertEqual(self.visible() if not (self.out / "mine").exists() else "old", "old")
        self.assert_code(run(self.command("--overwrite")), 0)
        for name in list(staged)[:-1]:
            self.assertEqual((self.out / name).stat().st_ino, staged[name], "converted again")
        self.assertEqual(self.out.stat().st_mode & 0o7777, 0o2750)
        self.assertEqual((self.out / "mine" / "x").read_bytes(), b"1")
        shutil.rmtree(self.out / "mine")
        self.assert_replaced()

    def test_refresh_converts_only_what_changed(self):
        self.put_old()
        inodes = {path.name: path.stat().st_ino for path in shards(self.out)}
        self.assert_refused(
            run(self.command()), '"a/8.png": 5698 bytes then, 5468 bytes now', '"b/3.png"', "--refresh"
        )
        self.assert_code(run(self.command("--refresh")), 0)
        self.assert_replaced()
        changed = {path.name for path in shards(self.out) if path.stat().st_ino != inodes[path.name]}
        self.assertEqual(changed, {"shard-00004.safetensors", "shard-00006.safetensors"})
        before = {path.name: path.stat().st_ino for path in self.out.iterdir()}
        self.assert_code(run(self.command("--refresh")), 0)
        self.assertEqual({path.name: path.stat().st_ino for path in self.out.iterdir()}, before)

    def test_refresh_sees_a_picture_of_the_same_size_and_every_kind_of_change(self):
        self.assert_code(run(self.command()), 0)
        steps = [
            lambda: write(
                self.images / "a" / "4.png",
                (lambda d: d[:60] + bytes([d[60] ^ 1]) + d[61:])((self.images / "a" / "4.png").read_bytes()),
            ),  # damaged, as long as before: a reject now
            lambda: write(self.images / "a" / "4.png", png(4)),  # mended
            lambda: write(self.images / "a" / "00.png", png(77)),  # one more, in front: everything moves
            lambda: (self.images / "b" / "9.png").unlink(),
            lambda: write(self.images / "b" / "bad.png", b"no"),
            lambda: (
                (self.images / "0").mkdir() or write(self.images / "0" / "x.png", png(78))
            ),  # a class in front
            lambda: shutil.rmtree(self.images / "0"),
        ]
        for number, step in enumerate(steps):
            step()
            found = run(self.command("--refresh"))
            self.assertIn(found.code, (0, 1), found)
            fresh = self.path / f"fresh{number}"
            self.assert_code(run(self.command(out=fresh)), found.code)
            self.assert_expected(digests(fresh))
            self.assert_code(shardctl("verify", self.out), 0)

    def test_refresh_of_an_unfinished_conversion_and_with_other_options(self):
        process = self.slow()
        self.wait_for(lambda: len(shards(self.out)) >= 4, "shard")
        for pid in run(["pgrep", "-P", str(process.pid)]).out.split():
            os.kill(int(pid), signal.SIGKILL)
        self.end(process)
        self.assertEqual(state(self.out), "incomplete")
        kept = (self.out / "shard-00001.safetensors").stat().st_ino
        write(self.images / "a" / "0.png", png(5002, width=50))
        self.assert_refused(run(self.command()), '"a/0.png"', "--refresh")
        self.assert_refused(run(self.command("--refresh", size="24")), "crop", "--overwrite")
        self.assert_code(run(self.command("--refresh")), 0)
        self.assertEqual((self.out / "shard-00001.safetensors").stat().st_ino, kept)
        fresh = self.path / "fresh"
        self.assert_code(run(self.command(out=fresh)), 0)
        self.assert_expected(digests(fresh))

    def test_a_set_of_an_earlier_version_is_complete_as_long_as_names_and_labels_are_the_same(self):
        self.assert_code(run(self.command()), 0)
        (self.out / "inputs.csv").unlink()
        self.assert_code(run(self.command()), 0)
        write(self.images / "a" / "0.png", png(5003, width=50))
        self.assert_refused(run(self.command()), "not the same as before")
        self.assert_code(run(self.command("--refresh")), 0)
        self.assertEqual(len(all_keys(self.out)), 20)
        self.assertTrue((self.out / "inputs.csv").exists())

    def test_an_input_that_changes_under_the_run_ends_it(self):
        process = self.slow()
        self.wait_for(lambda: shards(self.out), "shard")
        write(self.images / "b" / "9.png", png(5004, width=64))
        code, err = self.end(process)
        self.assertEqual(code, 2, err)
        self.assertIn('"b/9.png" has', err)
        self.assertEqual(state(self.out), "incomplete")


class Temporaries(TwoCase):
    def test_those_of_another_node_stay_until_they_are_old(self):
        need_root()
        need("unshare")
        probe = run(["unshare", "--uts", "hostname", "elsewhere"])
        if probe.code != 0:
            self.skipTest(f"no other host name can be had here: {probe.err.strip()}")
        self.out.mkdir()
        kill = [
            "strace",
            "-f",
            "-qq",
            "-o",
            "/dev/null",
            "-e",
            "trace=fsync",
            "-e",
            "inject=fsync:signal=SIGKILL:when=3",
        ]
        need("strace")
        run(["unshare", "--uts", "bash", "-c", 'hostname elsewhere && "$@"', "bash", *kill, *self.command()])
        left = [p for p in self.out.iterdir() if p.name.endswith(".part")]
        self.assertNotEqual(left, [])
        for path in left:
            self.assertIn(".elsewhere-", path.name)
        self.assert_code(run(self.command()), 0)
        for path in left:
            self.assertTrue(path.exists())
            os.utime(path, (time.time() - 25 * 3600,) * 2)
        self.assert_code(run(self.command()), 0)
        self.assert_expected()


if __name__ == "__main__":
    main()
