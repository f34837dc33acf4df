"""Sixteen threads that use the same objects at once. An interpreter without a GIL runs them side by side; one
with a GIL lets them take turns."""

import io
import random
import sys
import threading
import time

import numpy as np
import pytest
from PIL import Image

import shardloader as sl
from conftest import SAMPLES, make_images

THREADS = 16


def at_once(work, threads=THREADS):
    """work(number) in each thread. The first error of any of them is raised."""
    errors, start = [], threading.Barrier(threads)

    def run(number):
        start.wait()
        try:
            work(number)
        except BaseException as error:
            errors.append(error)

    all_threads = [threading.Thread(target=run, args=(number,), daemon=True) for number in range(threads)]
    for thread in all_threads:
        thread.start()
    for thread in all_threads:
        thread.join(120)
    assert not any(thread.is_alive() for thread in all_threads), "a thread hangs"
    if errors:
        raise errors[0]


def test_an_interpreter_without_a_gil_keeps_it_off():
    enabled = getattr(sys, "_is_gil_enabled", lambda: None)()
    assert enabled is None or enabled == ("free-threading" not in sys.version)


def test_one_iterator(data):
    expected = {}
    for batch in sl.Loader(data, batch_size=2, framework="numpy", shuffle=True, seed=3):
        expected.update({int(i): image.copy() for i, image in zip(batch.ids, batch.images, strict=True)})
    loader = sl.Loader(data, batch_size=2, framework="numpy", seed=3, prefetch=2 * THREADS)
    for epoch in range(5):
        batches, seen = loader.epoch(epoch), [[] for _ in range(THREADS)]

        def work(number, batches=batches, seen=seen):
            for batch in batches:
                for i, image in zip(batch.ids, batch.images, strict=True):
                    assert np.array_equal(image, expected[int(i)])
                    seen[number].append(int(i))

        at_once(work)
        assert sorted(sum(seen, [])) == list(range(SAMPLES))


@pytest.mark.parametrize("together", [1, 4])
def test_as_many_batches_ahead_as_threads_are_enough(data, together):
    loader = sl.Loader(data, batch_size=1, framework="numpy", prefetch=3, together=together)
    for epoch in range(60):
        batches, seen = loader.epoch(epoch), []

        def work(_, batches=batches, seen=seen):
            for batch in batches:  # keeps the one before until this one is there
                seen.extend(map(int, batch.ids))

        at_once(work, 3)
        assert sorted(seen) == list(range(SAMPLES))


def test_one_batch(data):
    loader = sl.Loader(data, batch_size=8, framework="numpy")
    for batch in loader:
        images, labels, ids = batch.images.copy(), batch.labels.copy(), batch.ids.copy()

        def work(_, batch=batch, images=images, labels=labels, ids=ids):
            for _ in range(50):
                assert np.array_equal(np.from_dlpack(batch._core.images), images)
                assert np.array_equal(batch.labels, labels) and np.array_equal(batch.ids, ids)

        at_once(work)


def test_one_data_set_that_was_just_opened(folder):
    data = sl.Dataset(folder)
    before = [(array.copy(), label) for array, label in data]
    for _ in range(10):
        data = sl.Dataset(folder)  # no shard is mapped yet

        def work(number, data=data):
            order = list(range(SAMPLES))
            random.Random(number).shuffle(order)
            for i in order:
                array, label = data[i]
                assert np.array_equal(array, before[i][0]) and label == before[i][1]
            assert len(data.keys[:]) == SAMPLES and len(data.column("labels")) == SAMPLES

        at_once(work)


def test_one_source_without_a_conversion(tmp_path):
    images = make_images(tmp_path / "images", each=6)
    source = sl.Source(images)
    expected = [sl.Source(images)[i][0] for i in range(len(source))]

    def work(number):
        for i in range(number, number + len(source)):
            i %= len(source)
            assert np.array_equal(source[i][0], expected[i])

    at_once(work)


def test_a_loader_is_closed_under_those_who_use_it(data):
    for round_ in range(20):
        loader = sl.Loader(data, batch_size=2, framework="numpy", prefetch=2 * THREADS)
        batches = loader.epoch(0)
        chance = random.Random(round_)
        pauses = [chance.random() * 0.01 for _ in range(THREADS)]

        def work(number, loader=loader, batches=batches, pauses=pauses):
            try:
                if number == 0:
                    time.sleep(pauses[0])
                    loader.close()
                elif number % 3 == 0:
                    while True:
                        assert loader.stats().batches >= 0 and loader.state_dict()["batch"] >= 0
                elif number == 1:
                    time.sleep(pauses[1])
                    loader.cancel()
                else:
                    for batch in batches:
                        assert batch.images.shape[1:] == (32, 32, 3) or batch.images.shape[1] == 3
            except (sl.CancelledError, sl.InvalidArgumentError) as error:
                assert "closed" in str(error) or "cancelled" in str(error)

        at_once(work)


def test_views_change_under_an_iterator(data):
    sides = (24, 20, 21, 22)  # what is set counts from the next epoch on
    loader = sl.Loader(data, batch_size=2, framework="numpy", random_crop=sides[0], prefetch=2 * THREADS)
    for epoch in range(4):
        batches = loader.epoch(epoch)

        def work(number, batches=batches, epoch=epoch):
            if number == 0:
                loader.set_augment(sl.Augment(random_crop=20 + epoch))
            for batch in batches:
                assert batch.images.shape[1:] == (sides[epoch], sides[epoch], 3)

        at_once(work)


def jpeg(seed):
    file = io.BytesIO()
    noise = np.random.default_rng(seed).integers(0, 255, (40, 50, 3), np.uint8)
    Image.fromarray(noise).save(file, "JPEG", quality=80)
    return file.getvalue()


def test_decode_jpeg():
    files = [jpeg(seed) for seed in range(12)]
    expected = [np.asarray(Image.open(io.BytesIO(file)).convert("RGB")) for file in files]

    def work(number):
        order = [(number + i) % len(files) for i in range(len(files))]
        for _ in range(5):
            found = sl.decode_jpeg([files[i] for i in order], device="cpu", framework="numpy")
            for i, image in zip(order, found, strict=True):
                assert np.array_equal(image, expected[i])

    at_once(work)


def test_one_writer(tmp_path):
    writer = sl.Writer(tmp_path / "out", size=16, codec="none")
    each = 20

    def work(number):
        for i in range(each):
            pixels = np.full((16, 16, 3), (number * each + i) % 256, np.uint8)
            writer.add(f"{number:02}/{i:02}", pixels, label=number)

    at_once(work)
    writer.close()
    data = sl.Dataset(tmp_path / "out")
    assert len(data) == THREADS * each
    for i, key in enumerate(data.keys):
        number, at = (int(part) for part in key.split("/"))
        array, label = data[i]
        assert label == number and np.all(np.asarray(array) == (number * each + at) % 256)


def test_a_writer_is_closed_and_abandoned_under_those_who_add(tmp_path):
    for round_ in range(10):
        writer = sl.Writer(tmp_path / str(round_), size=8, codec="none")
        added, ends = [0] * THREADS, ("close", "abandon")

        def work(number, writer=writer, added=added, ends=ends, round_=round_):
            try:
                if number == 0:
                    while not any(added):
                        time.sleep(0.001)
                    getattr(writer, ends[round_ % 2])()
                    return
                for i in range(200):
                    writer.add(f"{number}/{i}", np.full((8, 8, 3), number, np.uint8), label=number)
                    added[number] += 1
            except (sl.InvalidArgumentError, sl.CancelledError) as error:
                assert "closed" in str(error) or "abandoned" in str(error)

        at_once(work)
        if round_ % 2 == 0:  # a row whose add() returned is in it
            assert len(sl.Dataset(tmp_path / str(round_))) == sum(added)


def test_conversions_side_by_side(tmp_path):
    images = make_images(tmp_path / "images", each=4)
    sl.convert(images, tmp_path / "alone", size=16)
    expected = [array.copy() for array, _ in sl.Dataset(tmp_path / "alone")]

    def work(number):
        sl.convert(images, tmp_path / str(number), size=16, jobs=1)
        for (array, _), other in zip(sl.Dataset(tmp_path / str(number)), expected, strict=True):
            assert np.array_equal(array, other)

    at_once(work, threads=6)


@pytest.mark.parametrize(
    "how", [{"sampling": "balanced"}, {"views": [sl.Augment(random_crop=24, color_jitter=(0.2, 0.2))]}]
)
def test_loaders_side_by_side(data, how):
    expected = [batch.images.copy() for batch in sl.Loader(data, batch_size=8, framework="numpy", **how)]

    def work(_):
        loader = sl.Loader(data, batch_size=8, framework="numpy", threads=1, **how)
        for batch, other in zip(loader, expected, strict=True):
            assert np.array_equal(batch.images, other)

    at_once(work)
