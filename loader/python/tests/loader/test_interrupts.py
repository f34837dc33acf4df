"""Ctrl-C and close() at random moments: in the constructor, in epoch(),
between and inside of steps, in close().

SHARD_TEST_ROUNDS=N tries as many moments with views and as many without, SHARD_TEST_SEED=N others. The
slowest time is printed, and with more than 20 moments that of each. The property is a second on a machine
without other work; here the bound is what a machine with other work and a sanitizer keeps too, and what a
loader that first makes the batches it has begun does not.
"""

import os
import random
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

import shardloader as sl

pytestmark = pytest.mark.alone
MOMENTS = int(os.environ.get("SHARD_TEST_ROUNDS", "5"))
SEED = int(os.environ.get("SHARD_TEST_SEED", "0"))
BOUND = 10  # seconds
USUAL = 1  # second
PLACES = ("constructor", "epoch", "step", "body", "close")
SIDE = 256

CHILD = """
    import sys, time
    import numpy  # now, so that no signal arrives in the middle of it
    import shardloader as sl
    from shardloader import ops

    folder, kind, seed = sys.argv[1], sys.argv[2], int(sys.argv[3])
    if kind == "views":
        pixels = [ops.color_jitter(0.4, 0.4, 0.2, 0.1, p=0.8), ops.gaussian_blur(23, p=1)]
        whole = [sl.Augment(random_resized_crop=224, flip=0.5, ops=pixels) for _ in range(2)]
        parts = [sl.Augment(random_resized_crop=96, flip=0.5, ops=pixels) for _ in range(8)]
        options = {"views": whole + parts, "dtype": "float32"}
    else:
        options = {"random_resized_crop": 224, "flip": True, "dtype": "float32"}
    at, loader = "nowhere", None
    def now(where):
        global at
        at = where
        print(where + "\\n", end="", flush=True)  # whole or not at all: no signal arrives in the middle of it
    try:
        for turn in range(10**9):
            now("constructor")
            loader = sl.Loader(folder, batch_size=64, framework="numpy", seed=seed + turn, **options)
            for epoch in (0, 1):
                now("epoch")
                batches = loader.epoch(epoch)
                now("step")
                for number, batch in enumerate(batches):
                    now("body")
                    time.sleep(0.01)
                    if number == 1:
                        break
                    now("step")
            now("close")
            loader.close()
    except KeyboardInterrupt:
        arrived = time.time()
        if loader is not None:
            loader.close()
        print("end", at, arrived, time.time() - arrived, flush=True)
"""


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    folder = tmp_path_factory.mktemp("interrupts") / "set"
    rng = np.random.default_rng(0)
    with sl.Writer(folder, squash=(SIDE, SIDE), dtype="uint8", layout="nhwc", samples_per_shard=64) as writer:
        for number in range(256):
            writer.add(f"{number}", rng.integers(0, 256, (SIDE, SIDE, 3), np.uint8), 0)
    return folder


@pytest.mark.parametrize("kind", ["views", "plain"])
def test_ctrl_c_ends_a_program_at_any_moment(large, kind):
    moments = random.Random(f"{kind} {SEED}")
    took = []
    for number in range(MOMENTS):
        where = PLACES[number % len(PLACES)]
        process = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(CHILD), str(large), kind, str(number)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        try:
            for _ in range(moments.randrange(1, 3)):
                while (line := process.stdout.readline()) != where + "\n":
                    assert line, process.communicate(timeout=60)[1]
            time.sleep(moments.choice([0, 0.001, 0.01, 0.1, 1]) * moments.random())
            began = time.time()
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=120)
            ended = time.time()
        finally:
            process.kill()
        last = out.splitlines()[-1].split() if out else []
        assert process.returncode == 0 and len(last) == 4 and last[0] == "end", err
        at, arrived, closed = last[1], float(last[2]) - began, float(last[3])
        said = (
            f"{kind} {at}: arrived after {arrived:.3f} s, close() took {closed:.3f} s, "
            f"end after {ended - began:.3f} s"
        )
        if MOMENTS > 20:
            print(f"{said}, load {os.getloadavg()[0]:.1f}", flush=True)
        took.append((ended - began, said))
        assert ended - began < BOUND, f"SHARD_TEST_SEED={SEED}, moment {number}: {said}"
    above = sum(time_s > USUAL for time_s, _ in took)
    print(f"{MOMENTS} moments, {above} above {USUAL} s; the slowest: {max(took)[1]}", flush=True)
