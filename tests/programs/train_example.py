#!/usr/bin/env python3
"""docs/examples/train: it learns, says where the time goes,
and a run that was stopped ends in the same bytes.

How to run it:
    train_example.py Host      on the host
    train_example.py Cuda      on CUDA; skipped where there is no device
"""

import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from shardify_support import BIN, SANITIZED, SHARDBENCH, TestCase, environment, main, run, shardify

TRAIN = str(BIN / "train")
BATCH = 16
PICTURES = 96 if SANITIZED else 160  # for training
TEST_PICTURES = 50  # of another seed
BATCHES = PICTURES // BATCH  # an epoch
HEAD = ["epoch", "batch", "Load", "Transfer", "Train", "Total", "loss", "accuracy", "samples/s"]


def make_data_set(folder, count, seed):
    """Photo-like pictures of 10 classes, which differ in hue and in shape, at 40x40."""
    photos = Path(folder) / f"photos{seed}"
    out = Path(folder) / f"data{seed}"
    made = run(
        [
            SHARDBENCH,
            "synth",
            str(photos),
            "--count",
            str(count),
            "--classes",
            "10",
            "--seed",
            str(seed),
            "--quiet",
        ]
    )
    assert made.code == 0, made
    made = shardify(
        photos,
        out,
        "--resize",
        "40",
        "--crop",
        "40",
        "--dtype",
        "u8",
        "--layout",
        "nhwc",
        "--samples-per-shard",
        "50",
        "--quiet",
    )
    assert made.code == 0, made
    return out


class Table:
    """The lines of the table as dicts, and what stands beside it."""

    def __init__(self, text):
        self.heads, self.lines, self.other = [], [], []
        for line in text.splitlines():
            words = line.split()
            if words[:1] == ["epoch"]:
                self.heads.append(words)
            elif re.match(r" *\d+ +(\d+|all) ", line):
                values = [word.rstrip("%") for word in words]
                self.lines.append(
                    {name: value if name == "batch" else float(value) for name, value in zip(HEAD, values)}
                )
            else:
                self.other.append(line)
        self.epochs = [line for line in self.lines if line["batch"] == "all"]


class Example:
    """What must hold on every device."""

    device = ""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="shard-train.")
        cls.data = make_data_set(cls.folder, PICTURES, 1)
        cls.test_data = make_data_set(cls.folder, TEST_PICTURES, 2)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder, ignore_errors=True)

    def command(self, *options, data=None):
        return [
            TRAIN,
            str(data or self.data),
            "--device",
            self.device,
            "--batch-size",
            str(BATCH),
            *map(str, options),
        ]

    def train(self, *options, data=None):
        return self.assert_code(run(self.command(*options, data=data)), 0)

    def refused(self, *options, words, data=None):
        result = self.assert_code(run(self.command(*options, data=data)), 2)
        self.assertTrue(result.err.startswith("train: "), result)
        for word in words:
            self.assertIn(str(word), result.err, result)
        self.assertNotIn("Transfer", result.out, "it trained")
        return result

    def checkpoint(self, name, *options):
        path = self.path / name
        self.train("--checkpoint", path, *options)
        return path.read_bytes()

    def assert_same(self, found, wanted, what=""):
        self.assertTrue(found == wanted, f"other bytes: {what}")  # without megabytes of difference

    def test_it_learns_and_says_where_the_time_goes(self):
        result = self.train("--epochs", 20, "--print-every", 4, "--test", self.test_data)
        table = Table(result.out)
        self.assertEqual(table.heads, [HEAD] * 20)
        self.assertEqual(
            [line["batch"] for line in table.lines[: BATCHES // 4 + 1]],
            [str(n) for n in range(3, BATCHES, 4)] + ["all"],
        )
        for line in table.lines:
            parts = line["Load"] + line["Transfer"] + line["Train"]
            self.assertGreater(line["Train"], 0, line)
            self.assertGreaterEqual(line["Total"], 0.99 * parts - 0.01, line)
            self.assertGreater(line["samples/s"], 0, line)
        self.assertGreater(table.epochs[-1]["accuracy"], 60)  # chance: 10
        self.assertGreater(table.epochs[-1]["accuracy"], table.epochs[0]["accuracy"] + 20)
        self.assertLess(table.epochs[-1]["loss"], table.epochs[0]["loss"] / 1.5)
        tests = [line for line in table.other if line.startswith("test: ")]
        self.assertEqual(len(tests), 20)
        accuracy, samples = re.search(r"accuracy ([\d.]+)% of (\d+) samples", tests[-1]).groups()
        self.assertEqual(int(samples), TEST_PICTURES)  # what fills up the last batch is not counted
        self.assertGreater(float(accuracy), 30 if SANITIZED else 45)
        self.assertRegex(result.out, r"(?m)^loader: transport \w+ \(.+\)$")
        self.assertIn(f"{20 * BATCHES * BATCH} samples", result.out)

    def test_a_stopped_run_ends_in_the_same_bytes(self):
        whole = self.checkpoint("whole", "--epochs", 3)
        self.assert_same(self.checkpoint("again", "--epochs", 3, "--checkpoint-every", 2), whole)
        self.assertFalse(self.checkpoint("seed", "--epochs", 3, "--seed", 1) == whole)
        # in an epoch; at the end of one, before it is closed; several times
        for stops in ((2,), (BATCHES,), (1, BATCHES, 1)):
            name = "-".join(map(str, stops))
            for stop in stops:
                self.assertFalse(self.checkpoint(name, "--epochs", 3, "--stop-after", stop) == whole)
            result = self.train("--epochs", 3, "--checkpoint", self.path / name)
            self.assertIn("resumed from", result.out)
            self.assert_same((self.path / name).read_bytes(), whole, name)
            again = self.train("--epochs", 3, "--checkpoint", self.path / name)
            self.assertEqual(Table(again.out).lines, [])  # there is nothing left to do
            self.assert_same((self.path / name).read_bytes(), whole, name)

    def test_loss_and_accuracy_of_a_resumed_epoch_are_of_the_whole_epoch(self):
        whole = Table(self.train("--epochs", 1).out).epochs
        path = self.path / "part"
        self.train("--epochs", 1, "--checkpoint", path, "--stop-after", 4)
        rest = Table(self.train("--epochs", 1, "--checkpoint", path).out).epochs
        self.assertEqual(
            [(e["loss"], e["accuracy"]) for e in rest], [(e["loss"], e["accuracy"]) for e in whole]
        )

    def test_a_killed_run_ends_in_the_same_bytes(self):
        whole = self.checkpoint("whole", "--epochs", 2)
        path = self.path / "killed"
        options = ("--epochs", 2, "--checkpoint", path, "--checkpoint-every", 1, "--print-every", 1)
        with subprocess.Popen(self.command(*options), stdout=subprocess.PIPE, env=environment()) as process:
            for line in process.stdout:
                if line.split()[:2] == [b"0", b"3"]:
                    break
            process.kill()
        self.train(*options)
        self.assert_same(path.read_bytes(), whole)

    def test_a_checkpoint_that_is_damaged_or_of_another_run_is_refused(self):
        path = self.path / "checkpoint"
        good = self.checkpoint("checkpoint", "--epochs", 1, "--stop-after", 3)
        damaged = {
            "cut": good[:-1],
            "empty": b"",
            "head only": good[:14],
            "longer": good + b"\n",
            "another file": b"PK" + good,
        }
        for at in (14, good.index(b"shard-loader") + 15, len(good) // 2, len(good) - 1):
            damaged[f"byte {at}"] = good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :]
        for name, content in damaged.items():
            with self.subTest(name):
                path.write_bytes(content)
                self.refused(
                    "--epochs", 2, "--checkpoint", path, words=[path, "checkpoint", "remove it to begin anew"]
                )
                self.assert_same(path.read_bytes(), content)
        path.write_bytes(good)
        for option, value, words in (
            ("--rate", 0.5, ["another run", "rate 0.5"]),
            ("--hidden", 8, ["another run", "hidden 8"]),
            ("--size", 16, ["another run", "size 16"]),
            ("--seed", 7, ["cannot resume", "seed"]),
            ("--batch-size", 8, ["cannot resume", "batch"]),
        ):
            with self.subTest(option):
                self.refused("--epochs", 2, "--checkpoint", path, option, value, words=words)
        self.refused("--epochs", 2, "--checkpoint", path, data=self.test_data, words=["another run", "data"])
        self.assert_same(path.read_bytes(), good)
        self.train("--epochs", 2, "--checkpoint", path)

    def test_wrong_use_is_refused(self):
        self.refused("--batch-size", PICTURES + 1, words=["batch_size", PICTURES])
        self.refused(data=self.path / "nowhere", words=["nowhere"])
        self.refused("--test", self.path / "nowhere", words=["nowhere"])
        self.refused("--device", "cuda:x", words=["cuda:x", "host, cuda or cuda:N"])
        self.refused("--device", "gpu", words=["gpu", "host, cuda or cuda:N"])


class Host(Example, TestCase):
    device = "host"


class Cuda(Example, TestCase):
    device = "cuda"

    @classmethod
    def setUpClass(cls):
        probe = run([TRAIN, "nowhere", "--device", "cuda"])  # the device is looked for first
        if "CUDA" in probe.err:
            raise unittest.SkipTest(probe.err.strip())
        super().setUpClass()

    def test_the_host_learns_the_same(self):
        options = ("--epochs", 1, "--print-every", 1)
        there = Table(self.train(*options).out)
        here = Table(self.train(*options, "--device", "host").out)
        for a, b in zip(there.lines[:4], here.lines[:4]):
            self.assertAlmostEqual(a["loss"], b["loss"], delta=2e-3)


if __name__ == "__main__":
    main()
