#!/usr/bin/env python3
"""shardify --follow that is killed at any of its calls goes on, and loses and doubles nothing."""

import os
import shutil
import signal
import subprocess

from fault_support import SHARDIFY, STRIDE, TestCase, environment, need, run, write
from shardify_support import SMALL, all_keys, main, png, shardctl

MOST_CALLS = 200


class Follow(TestCase):
    def setUp(self):
        super().setUp()
        need("strace")
        self.images, self.until = self.path / "images", self.path / "until"
        self.until.write_text("")
        for number in range(5):
            write(self.images / "ant" / f"{number}.png", png(number))
        self.first = self.path / "first"
        self.assert_code(run(self.follow(self.first)), 0)
        for number in range(5, 10):
            write(self.images / "bee" / f"{number}.png", png(number))

    def follow(self, out):
        return [str(part) for part in (SHARDIFY, self.images, out, *SMALL, "--follow", "--until", self.until)]

    def kill(self, call, when):
        """A run that appends was killed at this call of a thread; False: no thread made so many."""
        command = ["strace", "-f", "-qq", "-e", f"trace={call}"]
        command += ["-e", f"inject={call}:signal=SIGKILL:when={when}", *self.follow(self.out)]
        env = environment(ASAN_OPTIONS="detect_leaks=0")
        code = subprocess.run(command, env=env, stderr=subprocess.DEVNULL, check=False).returncode
        self.assertIn(code, (0, -signal.SIGKILL))
        return code != 0

    def test_a_kill_at_any_call(self):
        decided = 0
        for call in ("rename", "renameat", "fsync", "unlink", "mkdir"):
            for when in range(1, MOST_CALLS, STRIDE):
                with self.subTest(call=call, when=when):
                    shutil.rmtree(self.out, ignore_errors=True)
                    shutil.copytree(self.first, self.out)
                    if not self.kill(call, when):
                        break
                    decided += (self.out / ".shardify-next" / "joined" / "dataset.json").exists()
                    more = self.images / "bee" / "more.png"
                    write(more, png(10))
                    result = run(self.follow(self.out))
                    more.unlink()
                    self.assert_code(result, 0)
                    self.assertEqual(len(all_keys(self.out)), 11)
                    self.assertEqual(len(set(all_keys(self.out))), 11)
                    self.assert_code(shardctl("verify", self.out), 0)
                    self.assertFalse((self.out / ".shardify-next").exists(), os.listdir(self.out))
            self.assertLess(when, MOST_CALLS - STRIDE)
            self.assertGreater(when, 1, f"no kill at {call}")
        self.assertGreater(decided, 1 if STRIDE == 1 else 0)


if __name__ == "__main__":
    main()
