"""What an installed wheel must do, with numpy and nothing else: run by the Python that it was installed for.

    python installed.py WORK [IMAGES]

WORK: a new folder for what it makes; IMAGES: photos (default: generated ones).

Prints a line per step with its time. Stops at the first that fails.
"""

import ctypes
import os
import shutil
import statistics
import struct
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

# What runs programs of another machine (tests/wheel/emulated.bash).
EMULATOR = os.environ.get("SHARD_TEST_EMULATOR", "").split()
SCRIPTS = Path(sysconfig.get_path("scripts"))
started = time.perf_counter()


def done(what):
    global started
    print(f"  {what}: {time.perf_counter() - started:.2f} s", flush=True)
    started = time.perf_counter()


def run(*command):
    result = subprocess.run([*EMULATOR, *map(str, command)], capture_output=True, text=True)
    assert result.returncode == 0, f"{command}: exit code {result.returncode}\n{result.stdout}{result.stderr}"
    return result.stdout


def bitmaps(folder, side):
    """Writes a BMP and a PNM (P6), by hand. The pixels by key, [row, column, channel] as bytes."""
    folder.mkdir()
    bmp, pnm = (
        bytes(
            5 * y + factor * x + 61 * channel & 255
            for y in range(side)
            for x in range(side)
            for channel in range(3)
        )
        for factor in (3, 7)
    )
    # From the last row to the first, blue first. A row must have a multiple of 4 bytes.
    body = bmp[::-1]
    body = b"".join(
        body[at + 3 * x : at + 3 * x + 3]
        for at in range(0, len(body), 3 * side)
        for x in reversed(range(side))
    )
    head = struct.pack("<2sIHHI", b"BM", 54 + len(body), 0, 0, 54)
    head += struct.pack("<IiiHHIIiiII", 40, side, side, 1, 24, 0, len(body), 2835, 2835, 0, 0)
    (folder / "a.bmp").write_bytes(head + body)
    (folder / "b.ppm").write_bytes(f"P6 {side} {side} 255\n".encode() + pnm)
    return {"a.bmp": bmp, "b.ppm": pnm}


def main(work, images=None):
    work.mkdir(parents=True)
    for name in ("shardify", "shardctl", "shardbench"):
        assert os.access(SCRIPTS / name, os.X_OK), f"{name} is not in {SCRIPTS}"
        run(SCRIPTS / name, "--version")
        script = Path(sysconfig.get_path("data"), "share", "bash-completion", "completions", name)
        assert script.read_text() == run(SCRIPTS / name, "--completion", "bash"), script
    done("the programs start")
    if images is None:
        images = work / "photos"
        run(SCRIPTS / "shardbench", "synth", images, "--count", 60)
        done("shardbench synth: 60 photos")
    run(SCRIPTS / "shardify", images, work / "train", "--preset", "train")
    run(SCRIPTS / "shardctl", "verify", work / "train")
    done("shardify, shardctl verify")

    # Without torch, which is not part of the package.
    once = [
        sys.executable,
        "-c",
        (
            "import sys, time; t = time.perf_counter(); import shardloader; print(time.perf_counter() - t); "
            "assert 'torch' not in sys.modules"
        ),
    ]
    run(*once)
    seconds = statistics.median(float(run(*once)) for _ in range(5))
    numpy = statistics.median(
        float(
            run(
                sys.executable,
                "-c",
                "import time; t = time.perf_counter(); import numpy; print(time.perf_counter() - t)",
            )
        )
        for _ in range(5)
    )
    done(f"import shardloader: {seconds:.3f} s, of which numpy {numpy:.3f} s; this step")

    import numpy as np

    import shardloader as sl

    name = Path(sl._core.__file__).name
    assert name.endswith(".abi3.so") == (sys.version_info >= (3, 12)), name
    data = sl.Dataset(work / "train")
    # The lines of README.md, on the host.
    again = sl.convert(str(images), work / "train", preset="train")
    assert again.was_complete and again.samples == len(data)
    train = sl.Loader(
        work / "train", batch_size=8, device="cpu", random_resized_crop=224, flip=True, dtype="float16"
    )
    for epoch in range(2):
        rows = 0
        for batch, labels in train.epoch(epoch):
            array = np.asarray(batch)
            assert (
                array.shape == (8, 3, 224, 224)
                and array.dtype == np.float16
                and np.isfinite(array.astype(np.float32)).all()
            )
            rows += len(labels)
        assert rows == len(data) // 8 * 8
    done(f"README's lines: 2 epochs of {rows} images")
    written = bitmaps(work / "bitmaps", side=40)
    made = sl.convert(str(work / "bitmaps"), work / "from-bitmaps", size=40)
    assert made.rejects == 0, (work / "from-bitmaps" / "rejects.csv").read_text()
    read = sl.Dataset(work / "from-bitmaps")
    assert {read.keys[i]: read[i][0].tobytes() for i in range(len(read))} == written, "other pixels"
    done("BMP and PNM: the pixels that were written")
    facts = run(sys.executable, "-m", "shardloader", "info", work / "train")
    assert f"{len(data)} of" in facts, facts
    try:
        ctypes.CDLL("libopenblas.so.0")
    except OSError:
        refused = subprocess.run(
            [*EMULATOR, SCRIPTS / "shardbench", "matmul", "--quick"], capture_output=True, text=True
        )
        assert refused.returncode != 0 and "OpenBLAS" in refused.stderr, refused
        done(f"shardbench matmul: {refused.stderr.splitlines()[-1]}")
    if sl.has_cuda and sl.cuda_device_count() == 0:
        try:
            sl.Loader(work / "train", batch_size=8, device="cuda:0")
        except sl.ShardError as error:
            assert "\n" not in str(error), error
            done(f"a GPU that is not there: {type(error).__name__}: {error}")
        else:
            raise AssertionError("a loader for a GPU where there is none")
    shutil.rmtree(work)


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    main(Path(sys.argv[1]), *map(Path, sys.argv[2:]))
