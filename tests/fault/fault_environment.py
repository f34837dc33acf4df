#!/usr/bin/env python3
"""A hostile system: no standard output, read-only folders, few descriptors, small files,
little memory, short writes."""

import os
import resource
import shutil
import unittest

from fault_support import (
    SANITIZED,
    SHARDIFY,
    SMALL,
    FaultCase,
    TestCase,
    digests,
    environment,
    main,
    make_images,
    need_root,
    run,
    state,
)

LOUD = [option for option in SMALL if option != "--quiet"]
SHORT_IO = os.environ.get("SHARD_SHORT_IO", "")


def limit(kind, value):
    return lambda: resource.setrlimit(kind, (value, value))


class EnvironmentCase(TestCase):
    def setUp(self):
        super().setUp()
        self.images = make_images(self.path / "in", ("a", "b"), each=5)
        whole = self.path / "whole"
        self.assert_code(run([SHARDIFY, str(self.images), str(whole), *SMALL]), 0)
        self.expected = digests(whole)

    def command(self, *more, options=LOUD):
        return [SHARDIFY, str(self.images), str(self.out), *options, *more]

    def assert_finishes(self, *more):
        self.assert_code(run(self.command(*more)), 0)
        self.assertEqual(digests(self.out), self.expected)


class StandardOutput(EnvironmentCase):
    def lost(self, command):
        for more in ([], ["--json"]):
            result = run(["bash", "-c", command, "bash", *self.command(*more)])
            self.assert_refused(result, "cannot write to standard output", "incomplete")
            self.assertEqual(digests(self.out), self.expected)  # the data set is complete nevertheless

    def test_a_closed_standard_output_is_reported_and_nothing_is_lost(self):
        self.lost('"$@" >&-')

    def test_a_full_standard_output_is_reported_and_nothing_is_lost(self):
        self.lost('"$@" >/dev/full')

    def test_a_reader_that_has_gone_ends_it_as_a_shell_expects_and_nothing_is_lost(self):
        reader, writer = os.pipe()
        os.close(reader)
        result = run(self.command(), stdout=writer)
        os.close(writer)
        self.assert_code(result, 141)  # 128 + SIGPIPE
        self.assertEqual(digests(self.out), self.expected)

    def test_all_descriptors_closed_and_no_file_of_ours_is_written_into(self):
        result = run(["bash", "-c", '"$@" <&- >&- 2>&-', "bash", *self.command()])
        self.assert_code(result, 2)
        self.assertEqual(digests(self.out), self.expected)

    def test_a_full_standard_error_does_no_harm(self):
        result = run(["bash", "-c", '"$@" 2>/dev/full', "bash", *self.command()])
        self.assert_code(result, 0)
        self.assertEqual(digests(self.out), self.expected)

    def test_dry_run_help_and_version_report_it_too(self):
        for more in (["--dry-run"], ["--help"], ["--version"]):
            result = run(["bash", "-c", '"$@" >/dev/full', "bash", *self.command(*more)])
            self.assert_refused(result, "cannot write to standard output")


class ReadOnly(EnvironmentCase):
    def as_nobody(self, command):
        self.path.chmod(0o755)
        return run(command, user=65534, group=65534, extra_groups=[])

    def test_a_parent_folder_without_rights(self):
        need_root()
        self.assert_refused(self.as_nobody(self.command()), self.out, "Permission denied")
        self.assertEqual(state(self.out), "absent")

    def test_an_empty_folder_without_rights(self):
        need_root()
        self.out.mkdir(mode=0o755)
        self.assert_refused(self.as_nobody(self.command()), self.out, "Permission denied")
        self.assertEqual(state(self.out), "empty")
        self.assert_finishes()

    def test_a_data_set_of_someone_else_can_be_looked_at_but_not_replaced(self):
        need_root()
        self.assert_finishes()
        self.assert_code(self.as_nobody(self.command()), 0)
        self.assert_refused(self.as_nobody(self.command("--overwrite")), self.out, "Permission denied")
        self.assertEqual(digests(self.out), self.expected)

    def test_a_file_system_that_is_read_only(self):
        need_root()
        self.out.mkdir()
        bind = run(["mount", "--bind", self.out, self.out])
        if bind.code != 0 or run(["mount", "-o", "remount,ro,bind", self.out]).code != 0:
            raise unittest.SkipTest(f"cannot mount here: {bind.err.strip()}")
        self.addCleanup(lambda: run(["umount", "-l", self.out]))
        self.assert_refused(run(self.command()), self.out, "Read-only file system")
        run(["umount", "-l", self.out])
        self.assert_finishes()


class Limits(EnvironmentCase):
    @unittest.skipIf(SANITIZED, "a sanitizer needs descriptors of its own")
    def test_few_descriptors_are_an_error_that_says_so_and_never_a_reject(self):
        seen = []
        for count in range(3, 24):
            result = run(
                self.command("--jobs", "2", options=SMALL), preexec_fn=limit(resource.RLIMIT_NOFILE, count)
            )
            if result.code == 127:  # the dynamic linker itself needs one
                continue
            seen.append(result.code)
            if result.code == 0:
                break
            self.assert_refused(result, "Too many open files", self.path)
            self.assert_visible_is_sound(self.out)
        self.assertIn(0, seen)
        self.assertIn(2, seen)
        self.assertEqual(digests(self.out), self.expected)

    @unittest.skipIf(SANITIZED, "a sanitizer needs descriptors of its own")
    def test_few_descriptors_and_deep_folders(self):
        deep = self.images / "a" / "/".join("d" * 40)
        deep.mkdir(parents=True)
        result = run(self.command(options=SMALL), preexec_fn=limit(resource.RLIMIT_NOFILE, 24))
        self.assert_refused(result, "Too many open files", "ulimit -n")

    def test_a_limit_on_the_size_of_files(self):
        for size in (0, 1, 100, 4096, 10000, 16000):
            result = run(self.command(options=SMALL), preexec_fn=limit(resource.RLIMIT_FSIZE, size))
            self.assert_refused(result, self.out, "File too large")
            self.assert_visible_is_sound(self.out)
        self.assert_finishes()

    def test_a_limit_on_the_size_of_files_with_frames(self):
        for size in (1, 3000, 5000):
            result = run(
                self.command("--codec", "zstd", options=SMALL), preexec_fn=limit(resource.RLIMIT_FSIZE, size)
            )
            self.assert_refused(result, self.out, "File too large")
            self.assert_visible_is_sound(self.out)

    @unittest.skipIf(SANITIZED, "a sanitizer reserves terabytes of addresses")
    def test_little_memory_is_an_error_and_no_crash(self):
        codes = set()
        for mib in (12, *range(16, 64, 8), *range(64, 132, 2), 160, 192, 256, 512):
            options = [*SMALL, "--jobs", "4"]
            result = run(self.command(options=options), preexec_fn=limit(resource.RLIMIT_AS, mib << 20))
            codes.add(result.code)
            if result.code == 127 or "allocating bitmask" in result.err:  # ld.so, or libnuma, before main()
                continue
            self.assertIn(result.code, (0, 2), f"{mib} MiB: {result}")
            if result.code == 2:
                # A library may have said something before main().
                lines = result.err.splitlines()
                self.assertTrue(lines and lines[-1].startswith("shardify: "), result)
            self.assert_visible_is_sound(self.out)
        self.assertIn(0, codes)
        self.assertIn(2, codes)
        self.assertEqual(digests(self.out), self.expected)

    def test_fewer_threads_than_asked_for_give_the_same_bytes(self):
        need_root()
        self.path.chmod(0o755)
        codes = []
        user = 40000 + os.getpid() % 20000  # whose threads of another run of this test do not count
        for processes in (
            (8,) if SANITIZED else (8, 1)
        ):  # of this user: some threads of 64, and none; a leak checker needs one itself
            out = self.path / f"out-{processes}"
            out.mkdir()
            out.chmod(0o777)
            result = run(
                [SHARDIFY, str(self.path / "in"), str(out), "--jobs", "64", *SMALL],
                user=user,
                group=user,
                extra_groups=[],
                preexec_fn=limit(resource.RLIMIT_NPROC, processes),
            )
            codes.append(result.code)
            if result.code == 0:
                self.assertEqual(digests(out), self.expected)
            else:
                self.assert_code(result, 2)
                self.assertIn("Resource temporarily unavailable", result.err)
                self.assert_visible_is_sound(out)
        self.assertEqual(codes[0], 0)


class ShortTransfers(FaultCase):
    def test_short_and_interrupted_reads_and_writes_give_the_same_bytes(self):
        if not os.path.exists(SHORT_IO):
            self.fail(f"SHARD_SHORT_IO='{SHORT_IO}' is not there: it is built with the tests")
        env = environment(LD_PRELOAD=SHORT_IO, ASAN_OPTIONS="verify_asan_link_order=0:detect_leaks=0")
        for variant in ("rows", "frames"):
            done = self.path / variant
            self.assert_code(run(self.command(variant, out=done)), 1)
            result = run(self.command(variant), env=dict(env, SHARD_SHORT_IO_LOG=str(self.path / "log")))
            self.assert_code(result, 1)
            self.assertEqual(digests(self.out), digests(done))
            counted = (self.path / "log").read_text()
            self.assertRegex(counted, r"short [1-9]\d+ interrupted [1-9]\d+")
            shutil.rmtree(self.out)
            (self.path / "log").unlink()


if __name__ == "__main__":
    main()
