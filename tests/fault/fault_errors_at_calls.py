#!/usr/bin/env python3
"""An error at every call that changes the disk: a message with path and cause, exit code 2,
nothing partial, nothing lost."""

import os
import re

from fault_support import VARIANTS, FaultCase, main

TEXT = {"ENOSPC": "No space left on device", "EIO": "Input/output error"}


class ErrorsCase(FaultCase):
    def check_errors(self, error):
        failed = {}
        ignored = {}
        for variant, start, more, call, k in self.cases():
            with self.subTest(error=error, variant=variant, start=start, call=call, k=k):
                self.start(variant, start)
                log = self.path / "fault.log"
                result = self.strace(self.command(variant, *more), call, f"error={error}", k, log=log)
                text = log.read_text(errors="replace")
                if "INJECTED" not in text or result.code in (0, 1):
                    ignored[call] = ignored.get(call, 0) + 1
                    self.assert_code(result, 1)
                    self.assertEqual(self.assert_sound(variant), "complete")
                    self.assertNotIn(
                        call,
                        ("pwrite64", "fsync", "ftruncate") if "INJECTED" in text else (),
                        "the failure was not seen",
                    )
                    continue
                failed[call] = failed.get(call, 0) + 1
                self.assert_refused(result, self.out, TEXT[error])
                self.assertEqual(result.err.count("\n"), 1, result)
                self.assert_sound(variant)
                left = (
                    [name for name in os.listdir(self.out) if name.endswith(".part")]
                    if self.out.exists()
                    else []
                )
                if call not in ("unlink", "unlinkat"):
                    self.assertEqual(left, [], "a temporary file is left")
                self.assert_finishes(variant, more if start == "complete" else [])
        print(f"{error}: failed at {failed}, {sum(failed.values())} in all; no failure: {ignored}")
        for call in ("pwrite64", "fsync", "rename", "unlink", "ftruncate", "fallocate"):
            self.assertGreater(failed.get(call, 0), 2, f"no failure at {call}: {failed}")


class NoSpace(ErrorsCase):
    def test_a_full_disk_at_any_call(self):
        self.check_errors("ENOSPC")


class InputOutput(ErrorsCase):
    def test_a_failing_disk_at_any_call(self):
        self.check_errors("EIO")


class Order(ErrorsCase):
    def test_a_failed_fsync_is_never_followed_by_a_rename_of_that_file(self):
        files = 0
        folders = 0
        for variant in VARIANTS:
            self.prepare(variant)
            for name in ("fresh", "claimed", "shards done"):
                self.start(variant, name)
                for k in range(1, self.count_calls(self.command(variant))["fsync"] + 1):
                    self.start(variant, name)
                    log = self.path / "fault.log"
                    self.strace(
                        self.command(variant),
                        "fsync",
                        "error=EIO",
                        k,
                        log=log,
                        also="rename,renameat,renameat2",
                    )
                    before, mark, after = log.read_text(errors="replace").partition("(INJECTED)")
                    if not mark:
                        continue
                    path = re.findall(r"fsync\(\d+<([^>]*)>", before)[-1]
                    files += path.endswith(".part")
                    folders += path == str(self.out)
                    self.assertNotRegex(after, rf'rename(at2)?\(([^,]*, )?"{re.escape(path)}"')
                    if k > 2:  # after the folder above OUT and conversion.json: they would be seen
                        self.assertRegex(before + after, r"rename(at2)?\(")
        self.assertGreater(files, 10)
        self.assertGreater(folders, 10)

    def test_calls_that_are_interrupted_are_made_again(self):
        for variant in VARIANTS:
            self.prepare(variant)
            for call in ("pwrite64", "ftruncate", "fallocate"):
                for when in ("1", "1+2", "2+3"):
                    self.start(variant, "fresh")
                    result = self.strace(self.command(variant), call, "error=EINTR", when)
                    self.assert_code(result, 1)
                    self.assertEqual(self.assert_sound(variant), "complete")


if __name__ == "__main__":
    main()
