"""What the fault tests share: a small conversion, the states it can be started from,
and strace to disturb it.

strace counts the calls of each thread by itself, so "the K-th fsync" is the first one that is the K-th of its
thread. Starting from every state that a stopped run can leave, each thread comes to be the first one.
"""

import os
import re
import shutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "programs" / "support"))
# pylint: disable=wrong-import-position,wildcard-import,unused-wildcard-import
from shardify_support import *  # noqa: F403  the fault tests find all of it here
from shardify_support import (
    SANITIZED,
    SHARDIFY,
    STRIDE,
    TestCase,
    digests,
    environment,
    make_images,
    need,
    run,
    state,
    write,
)

CALLS = (
    "write",
    "pwrite64",
    "fsync",
    "fdatasync",
    "rename",
    "renameat",
    "renameat2",
    "unlink",
    "unlinkat",
    "ftruncate",
    "fallocate",
    "link",
    "linkat",
    "mkdir",
)
if SANITIZED:
    CALLS = CALLS[1:]  # a sanitizer asks by writing into a pipe whether memory can be read
STRIDE_AT_CALLS = max(STRIDE, 3) if SANITIZED else STRIDE  # sanitizers are slow
LOG_LINE = re.compile(r"^(\d+) +(\w+)\(")

# Three shards of rows of a fixed size, one of them with a gap to close; and frames of one sample a shard.
VARIANTS = {
    "rows": ["--samples-per-shard", "4", "--codec", "none"],
    "frames": ["--samples-per-shard", "1", "--codec", "zstd:1"],
}


class FaultCase(TestCase):
    """self.images, and for each variant the undisturbed result and the states to start from."""

    def setUp(self):
        super().setUp()
        self.images = make_images(self.path / "in", ("a", "b"), each=5)
        write(self.images / "a" / "2-bad.png", b"no picture")
        self.few = make_images(self.path / "few", ("a",), each=3)
        write(self.few / "a" / "bad.png", b"no picture")
        self.expected = {}
        self.starts = {}

    def command(self, variant, *more, out=None):
        images = self.images if variant == "rows" else self.few
        return [
            SHARDIFY,
            str(images),
            str(out or self.out),
            "--resize",
            "32",
            "--crop",
            "32",
            "--dtype",
            "u8",
            "--jobs",
            "1",
            "--quiet",
            *VARIANTS[variant],
            *more,
        ]

    def prepare(self, variant):
        """Undisturbed result; copies of the folder at each stage of the way."""
        done = self.path / f"{variant}-done"
        self.assert_code(run(self.command(variant, out=done)), 1)
        self.expected[variant] = digests(done)
        starts = {"fresh": None, "complete": done}
        need("strace")
        # Killed at the first removal of progress files: dataset.json is there, and all that led to it.
        # Without that and the shards the folder is claimed, no more.
        folder = self.path / f"{variant}-left"
        self.strace(
            self.command(variant, out=folder), "unlink", "signal=SIGKILL", path=folder / "conversion.json"
        )
        self.assertEqual(state(folder), "complete")
        self.assertIn("conversion.json", os.listdir(folder))
        before = self.path / f"{variant}-before"
        shutil.copytree(folder, before)
        for name in ("dataset.json", "inputs.csv", "rejects.csv"):
            (before / name).unlink()
        starts["shards done"] = before
        claimed = self.path / f"{variant}-claimed"
        claimed.mkdir()
        shutil.copy(folder / "conversion.json", claimed)
        starts["claimed"] = claimed
        starts["not tidied"] = folder
        self.starts[variant] = starts

    def start(self, variant, name):
        shutil.rmtree(self.out, ignore_errors=True)
        shutil.rmtree(self.side(), ignore_errors=True)
        folder = self.starts[variant][name]
        if folder is not None:
            shutil.copytree(folder, self.out)

    def strace(self, command, calls, fault, when=1, path=None, log=None, also=None):
        """The command with `fault` at the when-th of the calls (of one thread); on `path` only, if given."""
        options = [
            "strace",
            "-f",
            "-qq",
            "-y",
            "-o",
            str(log or "/dev/null"),
            "-e",
            f"trace={calls}{',' + also if also else ''}",
        ]
        if not fault or fault.startswith("error="):
            # Stops at the traced calls alone, not at each call. Injected signals would be lost that way.
            options.append("--seccomp-bpf")
        if fault:
            options += ["-e", f"inject={calls}:{fault}:when={when}"]
        if path:
            options += ["-P", str(path)]
        return run(options + command, env=environment(ASAN_OPTIONS="detect_leaks=0"))

    def count_calls(self, command):
        """How many calls of each kind the busiest thread makes."""
        log = self.path / "calls.log"
        self.strace(command, ",".join(CALLS), None, log=log)
        counts = {}
        for line in log.read_text(errors="replace").splitlines():
            match = LOG_LINE.match(line)
            if match:
                counts[match.groups()] = counts.get(match.groups(), 0) + 1
        most = {}
        for (_, call), count in counts.items():
            most[call] = max(most.get(call, 0), count)
        self.assertTrue(most, "strace saw no call")
        return most

    def cases(self):
        """Every (variant, start, options, call, K), of the K of a call every STRIDE_AT_CALLS-th."""
        for variant in VARIANTS:
            self.prepare(variant)
            for name, more in [(n, []) for n in self.starts[variant] if n != "complete"] + [
                ("complete", ["--overwrite"])
            ]:
                self.start(variant, name)
                for call, count in sorted(self.count_calls(self.command(variant, *more)).items()):
                    for k in range(1, count + 1, STRIDE_AT_CALLS):
                        yield variant, name, more, call, k

    def assert_sound(self, variant):
        """What is visible under a final name is what an undisturbed run writes there,
        and the state is an allowed one."""
        found = state(self.out)
        self.assertIn(found, ("absent", "empty", "incomplete", "complete"))
        if found == "absent":
            return found
        for name, digest in digests(self.out).items():
            if name in self.expected[variant]:
                self.assertEqual(digest, self.expected[variant][name], name)
            else:
                self.assertRegex(
                    os.fsdecode(name),
                    r"^(conversion\.json|\.shard-\d+\.done\.json|\..*\.part|\.shardify-next/.*)$",
                )
        if found == "complete":
            missing = set(self.expected[variant]) - set(digests(self.out))
            self.assertEqual(missing, set(), "complete without these files")
        return found

    def side(self):
        """Where the old data set stands while it is removed."""
        return self.out.parent / f".{self.out.name}.shardify-old"

    def assert_finishes(self, variant, more=()):
        self.assert_code(run(self.command(variant, *more)), 1)
        self.assertEqual(digests(self.out), self.expected[variant])
        self.assertFalse(self.side().exists(), "the old data set is left")
