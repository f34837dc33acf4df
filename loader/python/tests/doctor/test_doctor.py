"""doctor(): its share of waiting is that of a plain loop, measured in the same run.

The loaders are slow by sleeping, or by reading files. Where the machine is busy, a sleep takes longer than it
says, so the truth is measured too, before and after: a loop over the loader, and one over a batch at hand.
"""

import math
import os
import queue
import threading
import time

import numpy as np
import pytest

import shardloader as sl
from shardloader._diagnosis import Diagnosis, half_width
from shardloader._doctor.processor_time import cores_of

pytestmark = pytest.mark.alone
TRIES = 3  # on a busy machine; what is wrong always fails each time


class Batches:
    """`count` batches a turn, of which each takes `load_seconds`; no two turns share anything."""

    def __init__(self, load_seconds, count=100_000):
        self.load_seconds, self.count = load_seconds, count

    def __len__(self):
        return self.count

    def __iter__(self):
        for number in range(self.count):
            time.sleep(self.load_seconds)
            yield np.full(4, number), 0


class Ahead(Batches):
    """The same with a thread that keeps up to 8 batches ready."""

    def __iter__(self):
        ready, over = queue.Queue(8), threading.Event()

        def fill():
            for batch in super(Ahead, self).__iter__():
                while not over.is_set():
                    try:
                        ready.put(batch, timeout=0.05)
                        break
                    except queue.Full:
                        continue
                if over.is_set():
                    return

        threading.Thread(target=fill, daemon=True).start()
        try:
            while True:
                yield ready.get()
        finally:
            over.set()


def sleeps(seconds):
    return lambda batch: time.sleep(seconds)


def seconds_of_a_batch(loader, count=10):
    batches = iter(loader)
    next(batches)
    begin = time.perf_counter()
    for _ in range(count):
        next(batches)
    return (time.perf_counter() - begin) / count


def true_waiting(loader, step, steps=40, before=12):
    """Of a plain loop over the loader, from the point on where its queues are no longer full."""
    batches = iter(loader)
    batch = next(batches)
    for _ in range(before):
        step(next(batches))
    begin = time.perf_counter()
    for _ in range(steps):
        step(next(batches))
    middle = time.perf_counter()
    for _ in range(steps):
        step(batch)
    end = time.perf_counter()
    return 1 - (end - middle) / (middle - begin)


def agrees(loader, step, seconds=4.0, truth=true_waiting):
    """doctor() is within 10 % of the truth; where little is waited for, within 5 % of the loop's time."""
    said = []
    for _ in range(TRIES):
        first = truth(loader, step)
        found = sl.doctor(loader, step, seconds=seconds, quiet=True)
        last = truth(loader, step)
        true = (first + last) / 2
        if abs(found.waiting - true) <= 0.1 * max(true, 0.5) + abs(last - first) / 2:
            return found, true
        said.append(
            f"{found.waiting:.3f} ± {found.uncertainty:.3f}, and the truth is {first:.3f}, {last:.3f}"
        )
    pytest.fail("; ".join(said))


# Loaders of a known truth.


def test_a_loop_that_waits_three_quarters_of_its_time():
    found, true = agrees(Batches(0.006), sleeps(0.002))
    assert 0.6 < true < 0.85 and found.verdict == "switch" and "sl.convert" in found.advice
    assert found.gain == pytest.approx(1 / (1 - found.waiting))
    assert found.gain_range[0] <= found.gain <= found.gain_range[1]
    assert found.step_seconds < found.loop_seconds and found.batches >= 3 * 5 and found.stretches >= 3


def test_a_loop_that_hardly_waits_is_told_to_stay():
    for _ in range(TRIES):
        found, _ = agrees(Ahead(0.001), sleeps(0.008))
        if found.verdict == "stay":
            break
    assert found.verdict == "stay" and "stay with this loader" in found.advice and found.gain < 1.06


def test_batches_that_are_ready_when_a_stretch_begins_do_not_count():
    # While the batch is replayed, the thread fills its queue: 8 batches for nothing.
    found, true = agrees(Ahead(0.008), sleeps(0.004))
    assert 0.3 < true < 0.65 and found.waiting > 0.3


def test_drift_cancels():
    # All becomes three times as slow while it is measured, the share stays.
    begin = time.perf_counter()

    def slower():
        return 1 + min(2, (time.perf_counter() - begin) / 4)

    class Drifting(Batches):
        def __iter__(self):
            while True:
                time.sleep(0.004 * slower())
                yield 0

    for _ in range(TRIES):
        begin = time.perf_counter()
        found = sl.doctor(Drifting(0), lambda _: time.sleep(0.004 * slower()), seconds=6, quiet=True)
        if abs(found.waiting - 0.5) < 0.05:
            return
    pytest.fail(f"{found.waiting}")


def test_short_epochs_are_measured_whole_with_their_start():
    class Starts(Batches):
        def __iter__(self):
            time.sleep(0.1)
            return super().__iter__()

    def truth(loader, step):
        begin, steps = time.perf_counter(), 0
        for _ in range(3):
            for _batch in loader:
                step(_batch)
                steps += 1
        middle = time.perf_counter()
        for _ in range(steps):
            step(None)
        return 1 - (time.perf_counter() - middle) / (middle - begin)

    found, true = agrees(Starts(0.002, count=20), sleeps(0.004), truth=truth)
    assert 0.5 < true < 0.9 and found.first_batch_seconds > 0.1


def test_the_cores_of_data_loading_are_those_that_it_uses_beside_the_step():
    def burn(seconds):
        end = time.thread_time() + seconds
        while time.thread_time() < end:
            pass

    class Burning(Batches):
        def __iter__(self):
            while True:
                burn(0.004)
                yield 0

    def step(_):
        burn(0.002)
        time.sleep(0.004)

    found = sl.doctor(Burning(0), step, seconds=5, quiet=True)
    per_batch = found.cores * found.loop_seconds  # CPU seconds, whatever else runs
    assert per_batch == pytest.approx(0.004, rel=0.25)


# What people have.


class Folder:
    """An ImageFolder without PyTorch: decodes files one after the other."""

    def __init__(self, files, batch_size=16):
        self.files, self.batch_size = files, batch_size

    def __iter__(self):
        from PIL import Image

        order, rows = np.random.default_rng(0), []
        while True:
            for number in order.permutation(len(self.files)):
                rows.append(np.asarray(Image.open(self.files[number]).convert("RGB").resize((64, 64))))
                if len(rows) == self.batch_size:
                    yield np.stack(rows).astype(np.float32) / 255
                    rows = []


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    """A few files of some size, in classes."""
    image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    folder = tmp_path_factory.mktemp("photos")
    noise = np.random.default_rng(0)
    for number in range(24):
        path = folder / "ab"[number % 2] / f"{number}.jpg"
        path.parent.mkdir(exist_ok=True)
        small = noise.integers(0, 256, (12, 16, 3), np.uint8)
        image.fromarray(small).resize((320, 240)).save(path, quality=90)
    return folder


def test_a_folder_of_images_that_starves_the_loop(photos):
    loader = Folder(sorted(photos.rglob("*.jpg")))
    found, true = agrees(loader, sleeps(seconds_of_a_batch(loader) / 2))
    assert true > 0.4 and found.verdict == "switch"


def test_a_folder_of_images_that_does_not(photos):
    loader = Folder(sorted(photos.rglob("*.jpg")), batch_size=4)
    load = seconds_of_a_batch(loader)
    found, true = agrees(loader, sleeps(12 * load))
    assert true < 0.2 and found.gain < 1.25


def test_a_memmap(tmp_path):
    shape = (512, 96, 96, 3)
    np.memmap(tmp_path / "images", np.uint8, "w+", shape=shape)[:] = 7
    images = np.memmap(tmp_path / "images", np.uint8, "r", shape=shape)

    class Mapped:
        """Into the same two buffers each time, as such loaders do."""

        def __iter__(self):
            order = np.random.default_rng(0)
            rows = np.empty((32, *shape[1:]), np.uint8)
            batch = np.empty(rows.shape, np.float32)
            while True:
                np.take(images, order.choice(len(images), 32, replace=False), axis=0, out=rows, mode="clip")
                yield np.multiply(rows, np.float32(1 / 255), out=batch)

    loader = Mapped()
    seconds_of_a_batch(loader)  # the pages are in memory now
    found, true = agrees(loader, sleeps(seconds_of_a_batch(loader)))
    assert 0.2 < true < 0.8


def test_a_data_loader_of_an_image_folder(photos):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    torchvision = pytest.importorskip("torchvision", reason="torchvision is not installed")

    class Endless(torchvision.datasets.ImageFolder):
        def __len__(self):
            return 100_000

        def __getitem__(self, index):
            time.sleep(0.002)  # as a disk would
            return super().__getitem__(index % len(self.samples))

    data = Endless(
        photos,
        torchvision.transforms.Compose(
            [torchvision.transforms.CenterCrop(64), torchvision.transforms.ToTensor()]
        ),
    )
    loader = torch.utils.data.DataLoader(data, batch_size=8, num_workers=2)
    load = seconds_of_a_batch(loader)
    starved, true = agrees(loader, sleeps(load / 3), seconds=5)
    assert true > 0.4 and starved.verdict == "switch" and starved.loader == "DataLoader of Endless, 2 workers"
    found, true = agrees(loader, sleeps(3 * load), seconds=5)
    assert true < 0.3 and found.waiting < 0.3


def test_our_own_loader_is_not_told_to_switch_to_itself(folder):
    loader = sl.Loader(folder, batch_size=4, framework="numpy")
    found = sl.doctor(loader, lambda batch: time.sleep(0.002), seconds=3, quiet=True)
    assert found.own and found.loader == f"shardloader.Loader of {str(folder)!r}"
    assert "sl.convert" not in found.advice
    starved = found._replace(waiting=0.5, uncertainty=0.01)
    assert starved.verdict == "switch" and "Loader.stats()" in starved.advice


# What is said.


def diagnosis(waiting, uncertainty, cores=0.5, own=False):
    return Diagnosis("DataLoader", waiting, uncertainty, 0.01, 0.02, cores, 0.5, 6, 100, own)


def test_the_verdict_needs_the_whole_interval():
    assert diagnosis(0.5, 0.1).verdict == "switch"
    assert diagnosis(0.06, 0.005).verdict == "switch"
    assert diagnosis(0.06, 0.02).verdict == "unclear" and "measure for longer" in diagnosis(0.06, 0.02).advice
    assert diagnosis(0.01, 0.02).verdict == "stay"
    assert diagnosis(0.01, 0.2).verdict == "unclear"
    assert diagnosis(0.3, math.inf).verdict == "unclear"


def test_the_text_has_share_interval_cores_and_gain():
    text = str(diagnosis(0.5, 0.1))
    for piece in (
        "50.0% of the time (± 10.0%; 100 batches in 6 stretches)",
        "10 ms with the batch at hand, 20 ms with the loader",
        "0.50 CPU cores",
        "at most 2.00 times as fast (1.67 to 2.50)",
    ):
        assert piece in text, text
    assert "6.0 cores" in diagnosis(0, 0.01, cores=6.0).advice


def test_an_estimate_is_no_more_than_can_be():
    text = str(diagnosis(1.0, 0.5))
    assert "at most 1000.00 times as fast (2.00 to 1000.00)" in text
    own = str(diagnosis(0.5, 0.1, own=True))
    assert "gain of switching" not in own and "waiting for data" in own
    assert cores_of(500, 1) == len(os.sched_getaffinity(0))
    assert cores_of(-1, 1) == 0 and cores_of(1, 4) == pytest.approx(0.25)


def test_the_interval_is_that_of_student():
    assert half_width([1.0, 2.0, 3.0]) == pytest.approx(4.30 / math.sqrt(3))
    assert half_width([0.5]) == math.inf and half_width([0.5, 0.5]) == 0


def test_it_prints_what_it_returns(capsys):
    found = sl.doctor(Batches(0.001), sleeps(0.001), seconds=1)
    assert capsys.readouterr().out == f"{found}\n"


def test_what_cannot_be_measured_is_an_error_that_says_why():
    for loader, message in (
        (3, "loader is 3; expected an iterable of batches"),
        ([], "the loader has no batches"),
        (iter([1, 2, 3]), r"the loader ended after 0 stretches .*expected at least 2"),
    ):
        with pytest.raises(sl.InvalidArgumentError, match=message):
            sl.doctor(loader, lambda batch: None, seconds=0.5)
    with pytest.raises(sl.InvalidArgumentError, match="step is 3; expected a function that takes a batch"):
        sl.doctor([1], 3)
    for seconds in (0, -1, math.nan, "5", 1e9):
        with pytest.raises(sl.InvalidArgumentError, match="seconds is .*expected a number"):
            sl.doctor([1], print, seconds=seconds)


def test_what_the_step_raises_comes_through():
    def step(batch):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        sl.doctor([1, 2], step, seconds=1)
