"""What the tests of shardify as a program share: pictures, runs,
and the state of the folder that a run leaves.

Needs nothing but Python's standard library: PNG files are written here,
JPEG files come from `shardbench synth`.
"""

import hashlib
import json
import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import unittest
import zlib
from pathlib import Path

BIN = Path(os.environ.get("SHARD_BIN", Path(__file__).resolve().parents[3] / "build" / "dev" / "bin"))
SHARDIFY = str(BIN / "shardify")
SHARDCTL = str(BIN / "shardctl")
SHARDBENCH = os.environ.get("SHARD_SHARDBENCH", str(BIN / "shardbench"))
SANITIZED = bool(os.environ.get("SHARD_SANITIZED"))  # the programs carry a sanitizer's runtime
# Slow tests that would try every call try every STRIDE-th one (CONTRIBUTING.md).
STRIDE = int(os.environ.get("SHARD_TEST_STRIDE") or 7)
SKIP_CODE = 77  # CTest shows the test as skipped

# 3,072 bytes per sample, a few samples a shard: a run is a few shards and some milliseconds.
SMALL = ["--resize", "32", "--crop", "32", "--dtype", "u8", "--samples-per-shard", "4", "--quiet"]


# --- pictures -----------------------------------------------------------------------------------------------


def png(seed, width=48, height=40):
    """A small RGB PNG; the same bytes for the same arguments."""
    noise = random.Random(seed)
    rows = bytearray()
    for y in range(height):
        rows.append(0)  # filter: none
        for x in range(width):
            rows += bytes(((x * 5 + seed * 37) % 256, (y * 6 + seed * 11) % 256, noise.randrange(256)))

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(bytes(rows), 1))
        + chunk(b"IEND", b"")
    )


def huge_png(width=60000, height=60000):
    """A PNG whose header claims more pixels than the bound; there is next to no data."""

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(b"\0" * 100))
        + chunk(b"IEND", b"")
    )


def long_png(width):
    """A gray PNG of one row; some kilobytes for a million pixels."""

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    deflate, left, stripe = zlib.compressobj(1), width, bytes(range(256)) * 400
    pixels = deflate.compress(b"\0")
    while left > 0:
        pixels += deflate.compress(stripe[:left])
        left -= len(stripe)
    header = struct.pack(">IIBBBBB", width, 1, 8, 0, 0, 0, 0)
    pixels += deflate.flush()
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


def write(path, data):
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def make_images(folder, classes=("ant", "bee", "cow"), each=4):
    """folder/<class>/<n>.png; returns the folder."""
    for c, name in enumerate(classes):
        for i in range(each):
            write(Path(folder) / name / f"{i}.png", png(100 * c + i))
    return Path(folder)


def make_photos(folder, count=6, seed=1):
    run = subprocess.run(
        [SHARDBENCH, "synth", str(folder), "--count", str(count), "--seed", str(seed)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        check=False,
    )
    if run.returncode != 0:
        raise RuntimeError("shardbench synth failed: " + run.stderr.decode(errors="replace"))
    return Path(folder)


# --- runs ---------------------------------------------------------------------------------------------------

# Of launchers and clouds: a test may itself run under one.
LAUNCHER_VARIABLES = (
    "OMPI_",
    "PMI_",
    "PMIX_",
    "SLURM_",
    "AWS_",
    "JOB_COMPLETION_INDEX",
    "TORCHELASTIC_",
    "RANK",
    "WORLD_SIZE",
)


def environment(**changes):
    env = {k: v for k, v in os.environ.items() if not k.startswith(LAUNCHER_VARIABLES)}
    env["AWS_EC2_METADATA_DISABLED"] = "true"
    env.update(changes)
    return env


class Result:
    def __init__(self, command, run):
        self.command = command
        self.code = run.returncode
        self.out = (run.stdout or b"").decode(errors="surrogateescape")
        self.err = (run.stderr or b"").decode(errors="surrogateescape")

    def __repr__(self):
        return (
            f"exit {self.code}\n$ {' '.join(map(str, self.command))}\n"
            f"stdout: {self.out[-3000:]}\nstderr: {self.err[-3000:]}"
        )


def run(command, timeout=100, env=None, **options):
    options.setdefault("stdout", subprocess.PIPE)
    options.setdefault("stderr", subprocess.PIPE)
    if "input" not in options:
        options.setdefault("stdin", subprocess.DEVNULL)
    return Result(
        command, subprocess.run(command, timeout=timeout, env=env or environment(), check=False, **options)
    )


def shardify(*arguments, **options):
    return run([SHARDIFY, *map(os.fspath, arguments)], **options)


def shardctl(*arguments, **options):
    return run([SHARDCTL, *map(os.fspath, arguments)], **options)


def need(program):
    """The path of a program, or the test is skipped, visibly."""
    path = shutil.which(program)
    if path is None:
        raise unittest.SkipTest(f"{program} is not installed")
    return path


def need_root():
    if os.geteuid() != 0:
        raise unittest.SkipTest("needs root")


# --- what a run leaves --------------------------------------------------------------------------------------


def digests(folder):
    """sha256 of every file below a folder, hidden ones too."""
    folder = os.fsencode(folder)
    found = {}
    for place, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(place, name)
            with open(path, "rb") as file:
                found[os.path.relpath(path, folder)] = hashlib.sha256(file.read()).hexdigest()
    return found


def info(out):
    return json.loads((Path(out) / "dataset.json").read_text(encoding="utf-8"))


def shards(out):
    return sorted(Path(out).glob("shard-*.safetensors"))


def read_shard(path):
    """Header and bytes of the tensors of a safetensors file, by its five lines of specification."""
    data = Path(path).read_bytes()
    size = struct.unpack_from("<Q", data)[0]
    header = json.loads(data[8 : 8 + size])
    tensors = {}
    for name, tensor in header.items():
        if name != "__metadata__":
            begin, end = tensor["data_offsets"]
            tensors[name] = (tensor["dtype"], tensor["shape"], data[8 + size + begin : 8 + size + end])
    return header.get("__metadata__", {}), tensors


def keys_of(path):
    _, tensors = read_shard(path)
    offsets = struct.unpack(f"<{len(tensors['key_offsets'][2]) // 8}Q", tensors["key_offsets"][2])
    text = tensors["keys"][2]
    return [text[a:b].decode() for a, b in zip(offsets, offsets[1:])]


def labels_of(path):
    dtype, shape, data = read_shard(path)[1]["labels"]
    if dtype == "I64":
        return list(struct.unpack(f"<{len(data) // 8}q", data))
    values = struct.unpack(f"<{len(data) // 4}f", data)
    width = shape[1]
    return [values[i : i + width] for i in range(0, len(values), width)]


def all_keys(out):
    return [key for path in shards(out) for key in keys_of(path)]


def stored_samples(out):
    """{key: bytes of the sample} of a data set with codec none."""
    found = {}
    for path in shards(out):
        images = read_shard(path)[1]["images"]
        size = len(images[2]) // images[1][0]
        found.update((key, images[2][i * size : (i + 1) * size]) for i, key in enumerate(keys_of(path)))
    return found


def all_labels(out):
    return [label for path in shards(out) for label in labels_of(path)]


def rejects(out):
    """rejects.csv as {path: reason}."""
    import csv

    with open(Path(out) / "rejects.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))
    assert rows[0] == ["path", "reason"], rows[0]
    assert all(len(row) == 2 for row in rows), rows
    assert len({row[0] for row in rows}) == len(rows), "a path occurs twice in rejects.csv"
    return dict(rows[1:])


def state(out):
    """absent, empty, incomplete, complete or foreign: the rules of the format,
    told apart without our programs."""
    out = Path(out)
    if not out.exists():
        return "absent"
    names = set(os.listdir(out))
    if "dataset.json" in names:
        return "complete"
    if "conversion.json" in names:
        return "incomplete"
    return "foreign" if [n for n in names if not n.endswith(".part")] else "empty"


class TestCase(unittest.TestCase):
    """Each test has a folder of its own, self.path, removed afterwards."""

    maxDiff = 4000

    def setUp(self):
        self._folder = tempfile.mkdtemp(prefix="shard-test.")
        self.path = Path(self._folder)
        self.out = self.path / "out"

    def tearDown(self):
        shutil.rmtree(os.fsencode(self._folder), ignore_errors=True)

    def assert_code(self, result, code):
        self.assertEqual(result.code, code, result)
        return result

    def assert_refused(self, result, *words):
        """Exit code 2 and one message on standard error that holds the words."""
        self.assert_code(result, 2)
        self.assertTrue(result.err.startswith("shardify: "), result)
        for word in words:
            self.assertIn(os.fspath(word), result.err, result)
        return result

    def assert_visible_is_sound(self, out):
        """Never corrupt: a folder of an allowed state, in it only files of known names,
        each shard in it whole."""
        found = state(out)
        self.assertIn(found, ("absent", "empty", "incomplete", "complete"))
        if found == "absent":
            return found
        for name in os.listdir(out):
            known = (
                name in ("dataset.json", "conversion.json", "rejects.csv", "inputs.csv")
                or name.endswith(".part")
                or (name.startswith("shard-") and name.endswith(".safetensors"))
                or (name.startswith(".shard-") and name.endswith(".done.json"))
            )
            self.assertTrue(known, f"'{name}' in the folder")
            if name.endswith(".json"):
                json.loads((Path(out) / name).read_text(encoding="utf-8"))
        if found == "complete":
            checked = shardctl("verify", out)
            self.assertEqual(checked.code, 0, checked)
        else:
            for shard in shards(out):
                checked = shardctl("verify", shard)
                self.assertEqual(checked.code, 0, checked)
        return found


def main():
    """unittest with CTest's code for a test that was skipped: what did not run is never counted as passed."""
    program = unittest.main(exit=False, verbosity=1)
    sys.stderr.flush()
    if not program.result.wasSuccessful() or program.result.testsRun + len(program.result.skipped) == 0:
        sys.exit(1)
    if program.result.skipped:
        for test, why in program.result.skipped:
            print(f"SKIPPED {test.id()}: {why}")
        sys.exit(SKIP_CODE)
    sys.exit(0)


def signal_name(code):
    return signal.Signals(-code).name if code < 0 else str(code)
