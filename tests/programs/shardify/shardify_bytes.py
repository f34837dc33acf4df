#!/usr/bin/env python3
"""shardify: the same bytes for any number of threads and processes, order of folders, locale and umask."""

import os
import random
import subprocess

from shardify_support import (
    SHARDIFY,
    SMALL,
    TestCase,
    digests,
    environment,
    main,
    make_images,
    make_photos,
    need,
    png,
    run,
    shardctl,
    shardify,
    state,
    write,
)


class SameBytes(TestCase):
    """One mixed folder: photos, small pictures, rejects, hard names; converted in many ways."""

    def setUp(self):
        super().setUp()
        self.images = self.path / "in"
        self.fill(self.images, None)
        self.count = 0

    def fill(self, folder, seed):
        """The same files in another order of creation."""
        files = {
            f"{c}/{i:02}.png".encode(): png(50 * n + i)
            for n, c in enumerate(("b", "a", "\u00e9"))
            for i in range(7)
        }
        files.update({f"a/bad{i}.jpg".encode(): b"no" for i in range(3)})
        files.update({f"only-bad/{i}.jpg".encode(): b"no" for i in range(9)})
        files.update(
            {"I\u0131.Ii/i\u0130.png".encode(): png(400), b"x\xff/y\nz.png": png(401), b"empty/e.png": b""}
        )
        names = sorted(files)
        if seed is not None:
            random.Random(seed).shuffle(names)
        for name in names:
            path = os.path.join(os.fsencode(folder), name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as file:
                file.write(files[name])
        make_photos(folder / "photos", 5)

    def convert(self, *options, images=None, **how):
        self.count += 1
        out = self.path / f"out{self.count}"
        self.assert_code(shardify(images or self.images, out, *SMALL, *options, **how), 1)
        self.assertEqual(state(out), "complete")
        return digests(out)

    def three_at_once(self, out, *options, code=None):
        processes = [
            subprocess.Popen(
                [
                    SHARDIFY,
                    str(self.images),
                    str(out),
                    *SMALL,
                    *options,
                    "--rank",
                    str(rank),
                    "--world-size",
                    "3",
                ],
                env=environment(),
                stderr=subprocess.PIPE,
            )
            for rank in range(3)
        ]
        results = [(p.communicate(timeout=100)[1], p.returncode) for p in processes]
        for err, found in results:
            self.assertIn(found, (0, 1, 3), err)
        self.assertTrue(any(found != 3 for _, found in results), "the process that ends last does not say 3")
        self.assertEqual(state(out), "complete")
        return digests(out)

    def test_threads(self):
        for codec in ("none", "zstd:1", "packed"):
            first = self.convert("--codec", codec, "--jobs", "1")
            self.assertGreater(len(first), 8)
            for jobs in ("2", "8"):
                self.assertEqual(self.convert("--codec", codec, "--jobs", jobs), first)

    def repack(self, source, out, codec, code=0):
        return self.assert_code(shardctl("repack", source, out, "--codec", codec, "--quiet"), code)

    def test_repack_gives_the_bytes_of_a_conversion_with_that_codec(self):
        for dtype in ("u8", "f16"):
            options = [dtype if option == "u8" else option for option in SMALL]
            made = {codec: self.path / f"{dtype}-{codec[:4]}" for codec in ("none", "packed", "zstd:1")}
            for codec, folder in made.items():
                self.assert_code(shardify(self.images, folder, *options, "--codec", codec), 1)
            for before, folder in made.items():
                for after, expected in made.items():
                    out = self.path / f"{dtype}-{before[:4]}-{after[:4]}"
                    self.repack(folder, out, after)
                    self.assertEqual(digests(out), digests(expected), f"{before} to {after}")
                    self.assert_code(shardctl("verify", out), 0)

    def test_repack_goes_on_where_it_was_stopped_and_touches_nothing_else(self):
        made = self.convert("--codec", "packed")
        source, out = self.path / "plain", self.path / "new"
        self.assert_code(shardify(self.images, source, *SMALL), 1)
        self.repack(source, out, "packed")
        whole = {name: (out / name).stat().st_mtime_ns for name in os.listdir(out)}
        (out / "dataset.json").unlink()
        removed = sorted(name for name in whole if name.startswith("shard-"))[1]
        (out / removed).unlink()
        write(out / f".{removed}.12.0123456789abcdef.part", b"half of it")
        self.repack(source, out, "packed")
        self.assertEqual(digests(out), made)
        self.assertEqual(sorted(os.listdir(out)), sorted(whole))
        kept = [name for name in whole if name.startswith("shard-") and name != removed]
        self.assertTrue(all((out / name).stat().st_mtime_ns == whole[name] for name in kept))
        self.assertIn(
            "dataset.json", self.repack(source, out, "packed", code=2).err
        )  # complete: never replaced
        self.assertIn("dataset.json", self.repack(source, source, "packed", code=2).err)
        (out / "dataset.json").unlink()
        self.assertIn("another codec", self.repack(source, out, "zstd", code=2).err)
        write(self.path / "other" / "mine.txt", b"")
        self.assertIn("mine.txt", self.repack(source, self.path / "other", "packed", code=2).err)
        self.assertIn("gzip", self.repack(source, self.path / "fresh", "gzip", code=2).err)

    def test_repack_stops_at_a_damaged_sample_and_publishes_nothing_of_its_shard(self):
        source, out = self.path / "plain", self.path / "new"
        self.assert_code(shardify(self.images, source, *SMALL), 1)
        damaged = sorted(source.glob("shard-*"))[2]
        content = bytearray(damaged.read_bytes())
        content[-1] ^= 1
        damaged.write_bytes(content)
        err = self.repack(source, out, "packed", code=1).err
        self.assertIn(damaged.name, err)
        self.assertIn("sample", err)
        self.assertEqual(sorted(os.listdir(out)), [p.name for p in sorted(source.glob("shard-*"))[:2]])

    def test_order_of_the_folder(self):
        first = self.convert()
        for seed in (1, 2):
            other = self.path / f"shuffled{seed}" / "in"
            self.fill(other, seed)
            self.assertEqual(self.convert(images=other), first)

    def test_locale_and_umask(self):
        first = self.convert()
        there = run(["locale", "-a"]).out.split()
        for name in ["C", "POSIX"] + [
            n for n in there if n.lower().startswith(("c.utf", "tr_tr", "de_de", "en_us"))
        ]:
            self.assertEqual(self.convert(env=environment(LC_ALL=name, LANG=name)), first, name)
        for mask in (0o077, 0o022, 0):
            self.assertEqual(self.convert(umask=mask), first)
            modes = {p.stat().st_mode & 0o777 for p in (self.path / f"out{self.count}").iterdir()}
            self.assertEqual(modes, {0o666 & ~mask})

    def test_three_processes_one_after_the_other(self):
        for codec in ("none", "zstd:1", "packed"):
            first = self.convert("--codec", codec)
            out = self.path / f"world-{codec[:4]}"
            for rank in ("2", "0", "1"):
                self.assertNotEqual(state(out), "complete")
                result = shardify(
                    self.images, out, *SMALL, "--codec", codec, "--rank", rank, "--world-size", "3"
                )
                self.assert_code(result, 1 if rank == "1" else 3)
                self.assertIn(f"rank {rank} of 3 (--rank, --world-size)", result.err)
            self.assertEqual(digests(out), first)

    def test_three_processes_at_once(self):
        first = self.convert()
        for attempt in range(4):
            self.assertEqual(self.three_at_once(self.path / f"world{attempt}"), first)
        first = self.convert("--codec", "zstd:1")
        self.assertEqual(self.three_at_once(self.path / "world-zstd", "--codec", "zstd:1"), first)

    def test_processes_that_all_find_their_work_done(self):
        first = self.convert()
        out = self.path / "world"
        for rank in ("0", "1"):
            self.assert_code(shardify(self.images, out, *SMALL, "--rank", rank, "--world-size", "3"), 3)
        for attempt in range(4):
            self.assertEqual(
                self.three_at_once(out), first
            )  # first: rank 2 completes while the others only look
            if attempt == 0:
                continue
            self.assertEqual(state(out), "complete")

    def test_more_processes_than_shards_and_another_number_on_the_way(self):
        first = self.convert()
        out = self.path / "world"
        self.assert_code(shardify(self.images, out, *SMALL, "--rank", "1", "--world-size", "2"), 3)
        self.assert_code(shardify(self.images, out, *SMALL, "--rank", "90", "--world-size", "100"), 3)
        self.assert_code(shardify(self.images, out, *SMALL), 1)
        self.assertEqual(digests(out), first)

    def test_launchers_of_other_kinds(self):
        first = self.convert()
        array = {"SLURM_ARRAY_TASK_MIN": "3", "SLURM_ARRAY_TASK_MAX": "5", "SLURM_ARRAY_TASK_STEP": "2"}
        step = {"SLURM_STEP_ID": "0", "SLURM_NTASKS": "2"}
        for rank_name, world_name, ranks, more in (
            ("PMI_RANK", "PMI_SIZE", "01", {}),
            ("RANK", "WORLD_SIZE", "01", {}),
            ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "01", {}),
            ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "01", step),
            ("SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_COUNT", "35", array),
            ("AWS_BATCH_JOB_ARRAY_INDEX", "AWS_BATCH_JOB_ARRAY_SIZE", "01", {}),
        ):
            out = self.path / rank_name
            for rank, value in enumerate(ranks):
                result = shardify(
                    self.images, out, *SMALL, env=environment(**{rank_name: value, world_name: "2"}, **more)
                )
                self.assert_code(result, (3, 1)[rank])
                self.assertRegex(
                    result.err,
                    f"^shardify: rank {rank} of 2 \\(.*{rank_name}={value}.*--rank 0 --world-size 1",
                )
                self.assertEqual(result.err.count("\n"), 1, result)
            self.assertEqual(digests(out), first)
        for name in ("JOB_COMPLETION_INDEX", "PMIX_RANK"):
            out = self.path / name
            self.assert_refused(
                shardify(self.images, out, *SMALL, env=environment(**{name: "1"})),
                f"{name}=1",
                "--world-size N",
            )
            for rank, code in (("0", 3), ("1", 1)):
                self.assert_code(
                    shardify(self.images, out, *SMALL, "--world-size", "2", env=environment(**{name: rank})),
                    code,
                )
            self.assertEqual(digests(out), first)

    def test_a_batch_script_and_a_shell_of_slurm_are_one_process(self):
        first = self.convert()
        for there in (
            {"SLURM_JOB_ID": "7", "SLURM_PROCID": "0", "SLURM_NTASKS": "8"},
            {"SLURM_JOB_ID": "7", "SLURM_NTASKS": "8"},
            {
                "SLURM_JOB_ID": "7",
                "SLURM_PROCID": "0",
                "SLURM_NTASKS": "8",
                "SLURM_STEP_ID": "4294967290",
                "SLURM_STEP_NUM_TASKS": "1",
            },
        ):
            self.assertEqual(self.convert(env=environment(**there)), first)

    def test_launchers_that_contradict_themselves_are_refused(self):
        for there, words in (
            ({"RANK": "1"}, ["RANK is set without WORLD_SIZE"]),
            ({"RANK": "x", "WORLD_SIZE": "2"}, ['RANK="x"']),
            ({"RANK": "2", "WORLD_SIZE": "2"}, ["RANK=2"]),
            ({"SLURM_STEP_ID": "0", "SLURM_PROCID": "0"}, ["SLURM_STEP_NUM_TASKS"]),
            (
                {
                    "SLURM_STEP_ID": "0",
                    "SLURM_PROCID": "0",
                    "SLURM_STEP_NUM_TASKS": "4",
                    "RANK": "0",
                    "WORLD_SIZE": "8",
                },
                ["WORLD_SIZE=8", "SLURM_STEP_NUM_TASKS=4"],
            ),
            (
                {
                    "SLURM_ARRAY_TASK_ID": "5",
                    "SLURM_ARRAY_TASK_COUNT": "3",
                    "SLURM_ARRAY_TASK_MIN": "1",
                    "SLURM_ARRAY_TASK_MAX": "7",
                },
                ["not evenly spaced"],
            ),
        ):
            with self.subTest(there=there):
                self.assert_refused(
                    shardify(self.images, self.out, *SMALL, env=environment(**there)),
                    "--rank and --world-size",
                    *words,
                )
                self.assertEqual(state(self.out), "absent")
        self.assert_refused(
            shardify(
                self.images, self.out, *SMALL, "--world-size", "3", env=environment(RANK="0", WORLD_SIZE="2")
            ),
            "--world-size 3 contradicts",
        )
        self.assert_refused(
            shardify(self.images, self.out, *SMALL, "--world-size", "3"), "--world-size 3 without --rank"
        )
        self.assert_code(
            shardify(
                self.images,
                self.out,
                *SMALL,
                "--rank",
                "0",
                "--world-size",
                "1",
                env=environment(RANK="x", WORLD_SIZE="2"),
            ),
            1,
        )

    def test_overwrite_and_refresh_with_several_processes_are_refused(self):
        for option in ("--overwrite", "--refresh"):
            self.assert_refused(
                shardify(self.images, self.out, *SMALL, option, "--rank", "0", "--world-size", "2"), option
            )

    def mpirun(self, images, out, *options):
        return run(
            [
                "mpirun",
                "--oversubscribe",
                "--allow-run-as-root",
                "-n",
                "3",
                SHARDIFY,
                str(images),
                str(out),
                *options,
            ],
            env=environment(OMPI_MCA_btl_base_warn_component_unused="0"),
        )

    def test_mpirun(self):
        need("mpirun")
        first = self.convert()
        out = self.path / "mpi"
        result = self.mpirun(self.images, out, *SMALL)
        self.assertIn(result.code, (0, 1), result)
        self.assertEqual(state(out), "complete", result)
        self.assertEqual(digests(out), first)

    def test_mpirun_does_not_end_the_processes_that_are_at_work_when_one_has_no_more_to_do(self):
        need("mpirun")
        images = make_images(self.path / "many", ("a", "b"), each=1)
        for i in range(80):
            os.link(images / "a" / "0.png", images / "a" / f"l{i}.png")
        # Ranks 1 and 2 have no shard, and rank 0 works for seconds.
        large = ("--quiet", "--resize", "768", "--crop", "768", "--samples-per-shard", "1000", "--jobs", "1")
        result = self.assert_code(self.mpirun(images, self.out, *large), 0)
        self.assertEqual(state(self.out), "complete", result)
        for rank in range(3):
            self.assertIn(f"rank {rank} of 3", result.err)


if __name__ == "__main__":
    main()
