"""Source(cache=): what is stored while images are used is the data set that a conversion makes of them."""

import contextlib
import multiprocessing
import os
import pickle
import random
import shutil
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pytest

import shardloader as sl
from conftest import jpeg, make_images
from shardloader._loader.starving import starving_text
from test_source import FREE, RIGID, Image, same, same_batches

PATIENCE = 30.0  # seconds


def tree(folder) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def finish(source: sl.Source) -> sl.types.CacheProgress:
    end = time.monotonic() + PATIENCE
    while not source.cache.progress().complete:
        assert time.monotonic() < end, source.cache.progress()
        time.sleep(0.05)
    return source.cache.progress()


def use(source: sl.Dataset, **how) -> None:
    for _ in sl.Loader(source, framework="numpy", **{"batch_size": 8, "tail": "short", **how}):
        pass


@pytest.mark.parametrize("options", [*RIGID, *FREE], ids=str)
def test_the_finished_cache_is_what_a_conversion_writes(photos, tmp_path, options):
    options = {"samples_per_shard": 9, "size": "original", **options}
    if {"longest", "area", "squash", "resize"} & set(options):
        del options["size"]
    sl.convert(photos, tmp_path / "out", **{"codec": "none", **options})
    converted = sl.Dataset(tmp_path / "out")
    source = sl.Source(photos, cache=tmp_path / "cache", **{"codec": "none", **options})
    how = {} if 0 not in source.shape else {"random_resized_crop": 32, "flip": True, "dtype": "float32"}
    assert source.cache.progress().stored == 0
    same_batches(source, converted, tail="short", **how)
    now = finish(source)
    assert (now.decoded, now.decoded_for_shards, now.stored) == (len(source), 0, len(source))
    assert tree(tmp_path / "cache") == tree(tmp_path / "out")
    same(source, converted)
    same_batches(source, converted, **how)
    assert source.cache.progress().decoded == len(source)
    finished = sl.Source(photos, cache=tmp_path / "cache", **{"codec": "none", **options})
    assert finished.cache is None
    same(finished, converted)
    loader = sl.Loader(finished, batch_size=8, framework="numpy", **how)
    next(iter(loader))
    assert loader.stats().decoded_images == 0 and "not converted" not in loader.stats().reason


def test_photographs_are_stored_as_their_files(photos, tmp_path):
    folder = tmp_path / "jpeg"
    for path in photos.rglob("*.jpg"):
        (folder / path.parent.name).mkdir(parents=True, exist_ok=True)
        shutil.copy(path, folder / path.parent.name)
    how = {"batch_size": 4, "framework": "numpy", "random_resized_crop": 24, "seed": 2, "tail": "short"}
    cached = sl.Loader(folder, cache=tmp_path / "cache", **how)
    plain = sl.Loader(folder, **how)
    for _ in range(2):
        for left, right in zip(cached, plain, strict=True):
            assert np.array_equal(left.images, right.images) and np.array_equal(left.ids, right.ids)
    finish(cached.data)
    sl.convert(folder, tmp_path / "out", size="original", codec="jpeg", no_sample_digest=True)
    assert tree(tmp_path / "cache") == tree(tmp_path / "out")
    assert cached.stats().decoded_images + cached.stats().cached_images >= 2 * len(cached.data)
    mixed = sl.Source(photos, cache=tmp_path / "mixed")  # with PNG files
    use(mixed, center_crop=24)
    finish(mixed)
    assert sl.Dataset(tmp_path / "mixed").codec == "none"


def test_what_only_its_name_calls_jpeg_is_stored_as_it_is(tmp_path):
    folder = tmp_path / "in" / "c"
    folder.mkdir(parents=True)
    for number in range(4):
        (folder / f"{number}.jpg").write_bytes(jpeg(number, 60, 50))
    pixels = np.random.default_rng(0).integers(0, 256, (50, 60, 3), np.uint8)
    Image.fromarray(pixels).save(folder / "9.jpg", "PNG")
    source = sl.Source(tmp_path / "in", cache=tmp_path / "cache")
    use(source, random_resized_crop=16)
    np.testing.assert_array_equal(source[4][0], pixels)
    again = sl.Source(tmp_path / "in", cache=tmp_path / "cache")
    np.testing.assert_array_equal(again[4][0], pixels)


def test_masks_and_columns_are_stored(photos, tmp_path):
    masks = tmp_path / "masks"
    for path in photos.rglob("*.*"):
        target = masks / path.relative_to(photos).with_suffix(".png")
        target.parent.mkdir(parents=True, exist_ok=True)
        with Image.open(path) as image:
            turned = image.getexif().get(0x0112) == 6
            size = image.size[::-1] if turned else image.size
        Image.fromarray(np.random.default_rng(size[0]).integers(0, 5, size[::-1], np.uint8)).save(target)
    options = {"size": 40, "preset": "train", "samples_per_shard": 7, "mask": f"{masks},classes=5"}
    source = sl.Source(photos, cache=tmp_path / "cache", **options)
    use(source)
    finish(source)
    sl.convert(photos, tmp_path / "out", **options)
    assert tree(tmp_path / "cache") == tree(tmp_path / "out")
    for i in range(0, len(source), 5):
        assert np.array_equal(source.image("mask", i), sl.Dataset(tmp_path / "out").image("mask", i))


def test_what_no_batch_has_is_stored_once_the_rest_is_found(photos, tmp_path):
    options = {"size": 40, "preset": "train", "samples_per_shard": 40}
    source = sl.Source(photos, cache=tmp_path / "cache", **options)
    loader = sl.Loader(source, batch_size=13, framework="numpy", shuffle=False, prefetch=1)  # drops one
    for _ in range(4):
        for _ in loader:
            pass
    now = finish(source)
    assert (now.decoded, now.decoded_for_shards) == (39, 1)
    assert loader.stats().cached_images >= 39
    sl.convert(photos, tmp_path / "out", **options)
    assert tree(tmp_path / "cache") == tree(tmp_path / "out")


def test_rejects_are_those_of_a_conversion_and_batches_stay(some_bad, tmp_path):
    folder, bad = some_bad
    options = {"size": 32, "preset": "train", "samples_per_shard": 8}
    how = {"batch_size": 5, "framework": "numpy", "on_error": "skip", "seed": 3}
    plain = sl.Loader(sl.Source(folder, **options), **how)
    with pytest.warns(RuntimeWarning, match="replaced"):
        expected = [[b.images.copy() for b in plain.epoch(epoch)] for epoch in range(3)]
    with pytest.warns(sl.ConversionWarning):
        sl.convert(folder, tmp_path / "out", **options)
    for turn in range(2):
        source = sl.Source(folder, cache=tmp_path / "cache", **options)
        assert len(source) == 30
        for _ in range(2):  # the second one is told of the bad images, and does not read them again
            cached = sl.Loader(source, **how)
            with pytest.warns(RuntimeWarning, match="replaced"):
                for epoch in range(3):
                    for left, right in zip(expected[epoch], cached.epoch(epoch), strict=True):
                        assert np.array_equal(left, right.images)
        finish(source)
        assert tree(tmp_path / "cache") == tree(tmp_path / "out")
        assert source.cache.progress().decoded <= (30 if turn == 0 else len(bad))


def test_another_data_set_in_the_folder_is_refused(photos, tmp_path):
    cache = tmp_path / "cache"
    source = sl.Source(photos, size=40, preset="train", cache=cache)
    use(source)
    with pytest.raises(sl.InvalidArgumentError, match='resize: "short 40" recorded, "short 48" requested'):
        sl.Source(photos, size=48, preset="train", cache=cache)
    finish(source)
    with pytest.raises(sl.InvalidArgumentError, match='resize: "short 40" recorded, "short 48" requested'):
        sl.Source(photos, size=48, preset="train", cache=cache)
    with pytest.raises(sl.InvalidArgumentError, match='^cache ".*" is inside images'):
        sl.Source(photos, size=40, preset="train", cache=photos)
    with pytest.raises(sl.InvalidArgumentError, match="cache_jobs is for a cache"):
        sl.Source(photos, size=40, cache_jobs=2)
    with pytest.raises(sl.InvalidArgumentError, match="no_sample_digest is about a conversion"):
        sl.Source(photos, no_sample_digest=True)
    with pytest.raises(sl.InvalidArgumentError, match="cache is for a path of images"):
        sl.Loader(cache, cache=tmp_path / "other")


RUN = """
import sys, shardloader as sl
photos, cache, rank, world, epochs = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:6])
source = sl.Source(photos, cache=cache, size=40, preset="train", samples_per_shard=7, codec="packed")
loader = sl.Loader(source, batch_size=2, framework="numpy", rank=rank, world_size=world, seed=1, threads=2)
print("ready", flush=True)
for epoch in range(epochs):
    for batch in loader.epoch(epoch):
        pass
import time
while source.cache and not source.cache.progress().complete:
    time.sleep(0.02)
now = source.cache.progress() if source.cache else None
print(now.decoded + now.decoded_for_shards if now else 0)
"""
OPTIONS = {"size": 40, "preset": "train", "samples_per_shard": 7, "codec": "packed"}


def start(photos, cache, rank=0, world=1, epochs=2, **how):
    command = [sys.executable, "-c", RUN, photos, cache, rank, world, epochs]
    return subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, text=True, **how)


def test_processes_share_the_work(photos, tmp_path):
    runs = [start(photos, tmp_path / "cache", rank, 4, 3) for rank in range(4)]
    decoded = [int(run.communicate(timeout=PATIENCE)[0].split()[-1]) for run in runs]
    assert [run.returncode for run in runs] == [0] * 4
    sl.convert(photos, tmp_path / "out", **OPTIONS)
    assert tree(tmp_path / "cache") == tree(tmp_path / "out")
    # Two that ask for an image at the same moment both decode it: at most once for each other thread.
    assert 40 <= sum(decoded) <= 40 + 3 * 3, decoded


def test_a_killed_run_loses_nothing_that_is_stored(photos, tmp_path):
    rounds = int(os.environ.get("SHARD_TEST_ROUNDS", "6"))
    draw = random.Random(rounds)
    sl.convert(photos, tmp_path / "out", **OPTIONS)
    for number in range(rounds):
        cache = tmp_path / f"cache{number}"
        before = 0
        for _ in range(3):
            run = start(photos, cache)
            assert run.stdout.readline() == "ready\n"
            time.sleep(draw.uniform(0, 0.15))
            run.kill()
            run.communicate()
            now = sl.Source(photos, cache=cache, **OPTIONS)
            stored = now.cache.progress().stored if now.cache else len(now)
            assert stored >= before
            before = stored
            del now
        same_batches(sl.Source(photos, cache=cache, **OPTIONS), sl.Dataset(tmp_path / "out"))
        source = sl.Source(photos, cache=cache, **OPTIONS)
        if source.cache:
            use(source)
            finish(source)
        assert tree(cache) == tree(tmp_path / "out")


def test_a_stopped_run_goes_on_with_the_same_batches(photos, tmp_path):
    how = {"batch_size": 3, "framework": "numpy", "seed": 9}
    plain = sl.Loader(sl.Source(photos, **OPTIONS), **how)
    first = sl.Loader(sl.Source(photos, cache=tmp_path / "cache", **OPTIONS), **how)
    batches = iter(first)
    expected = iter(plain)
    for _ in range(5):
        assert np.array_equal(next(batches).images, next(expected).images)
    state = first.state_dict()
    second_source = sl.Source(photos, cache=tmp_path / "cache", **OPTIONS)
    second = sl.Loader(second_source, **how)
    second.load_state_dict(state)
    for left, right in zip(second, expected, strict=True):
        assert np.array_equal(left.images, right.images)
    use(second_source)
    finish(second_source)
    third = sl.Loader(sl.Source(photos, cache=tmp_path / "cache", **OPTIONS), **how)
    third.load_state_dict(state)
    plain.load_state_dict(state)
    for left, right in zip(third, plain, strict=True):
        assert np.array_equal(left.images, right.images)


FULL = """
import resource, sys, warnings, shardloader as sl
resource.setrlimit(resource.RLIMIT_FSIZE, (60000, 60000))
source = sl.Source(sys.argv[1], cache=sys.argv[2], size=40, preset="train", samples_per_shard=7)
loader = sl.Loader(source, batch_size=8, framework="numpy", tail="short")
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    ids = [i for epoch in range(3) for batch in loader.epoch(epoch) for i in batch.ids.tolist()]
said = [str(w.message) for w in caught if "does not get all samples" in str(w.message)]
assert sorted(ids) == sorted(3 * list(range(len(source)))), ids
assert len(said) == 1 and "File too large" in said[0], said
assert "File too large" in source.cache.progress().problem
assert 0 < source.cache.progress().stored < len(source)
"""


def test_a_full_disk_ends_storing_and_nothing_else(photos, tmp_path):
    subprocess.run([sys.executable, "-c", FULL, photos, tmp_path / "cache"], check=True, timeout=PATIENCE)
    options = {"size": 40, "preset": "train", "samples_per_shard": 7}
    source = sl.Source(photos, cache=tmp_path / "cache", **options)
    use(source)
    assert finish(source).decoded < len(source)  # what was stored before is used
    sl.convert(photos, tmp_path / "out", **options)
    assert tree(tmp_path / "cache") == tree(tmp_path / "out")


def in_child(source, expected):
    assert all(np.array_equal(source[i][0], expected[i][0]) for i in range(len(source)))
    finish(source)


def test_a_child_of_fork_and_a_pickle_store_too(photos, tmp_path):
    options = {"size": 40, "preset": "train", "samples_per_shard": 7}
    plain = sl.Source(photos, **options)
    source = sl.Source(photos, cache=tmp_path / "cache", **options)
    assert np.array_equal(source[3][0], plain[3][0])  # the threads run
    child = multiprocessing.get_context("fork").Process(target=in_child, args=(source, plain))
    child.start()
    child.join(PATIENCE)
    assert child.exitcode == 0
    assert finish(source).decoded == 1
    assert np.array_equal(source[5][0], plain[5][0])
    again = pickle.loads(pickle.dumps(source))
    assert again.cache is None and np.array_equal(again[5][0], plain[5][0])
    sl.convert(photos, tmp_path / "out", **options)
    assert tree(tmp_path / "cache") == tree(tmp_path / "out")


def test_shardify_shares_the_folder(photos, tmp_path):
    source = sl.Source(photos, cache=tmp_path / "cache", **OPTIONS)
    assert source[0][0] is not None
    sl.convert(photos, tmp_path / "cache", claim=True, **OPTIONS)
    assert finish(source).decoded == 1
    sl.convert(photos, tmp_path / "out", **OPTIONS)
    assert tree(tmp_path / "cache") == tree(tmp_path / "out")
    same_batches(source, sl.Dataset(tmp_path / "out"))
    assert source.cache.progress().decoded == 1


def threads_of(pid):
    """What each thread of a process waits for in the kernel."""
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*"):
        with contextlib.suppress(OSError):
            state = (task / "stat").read_text().rpartition(")")[2].split()[0]
            found.append(f"{(task / 'comm').read_text().strip()} {state} {(task / 'wchan').read_text()}")
    return sorted(found)


@pytest.mark.alone
def test_a_program_ends_at_once(photos, tmp_path):
    # A background job inherits SIGINT as ignored, and Python then raises no KeyboardInterrupt.
    default = {"preexec_fn": lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)}
    run = start(photos, tmp_path / "cache", 0, 1, 1_000_000, **default)
    try:
        assert run.stdout.readline() == "ready\n"
        time.sleep(0.3)
        for _ in range(5):  # Python ignores one that arrives in a destructor
            begin = time.monotonic()
            run.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                run.communicate(timeout=3)
                break
        assert run.returncode, threads_of(run.pid)
        assert time.monotonic() - begin < 2.0  # the interpreter's own end is in it
    finally:
        run.kill()


def test_a_damaged_log_is_made_again(photos, tmp_path):
    options = {"size": 40, "preset": "train", "samples_per_shard": 40}
    source = sl.Source(photos, cache=tmp_path / "cache", **options)
    for i in range(20):
        source[i]
    source.cache.stop()
    del source
    (data,) = (tmp_path / "cache").glob(".samples-*.data")
    content = bytearray(data.read_bytes())
    for at in range(0, len(content), 3000):
        content[at] ^= 1
    data.write_bytes(content)
    (index,) = (tmp_path / "cache").glob(".samples-*.index")
    index.write_bytes(index.read_bytes()[:-10] + b"1234567890")
    source = sl.Source(photos, cache=tmp_path / "cache", **options)
    use(source)
    now = finish(source)
    assert now.stored == 40
    sl.convert(photos, tmp_path / "out", **options)
    assert tree(tmp_path / "cache") == tree(tmp_path / "out")


def test_progress_is_one_line():
    now = sl.types.CacheProgress(1000, 610, 17, 3, 0, 0, 0, False, 250.0, "")
    assert str(now) == "61.0% of 1,000 images stored, 3 of 17 shards finished, finished in about 4:10"
    assert "complete" in str(now._replace(complete=True))
    assert "a problem: disk full" in str(now._replace(problem="disk full"))


def test_images_in_a_folder_that_may_not_be_written(photos, tmp_path):
    if os.geteuid() == 0:
        pytest.skip("root may write everywhere")
    folder = make_images(tmp_path / "images", 3)
    folder.chmod(0o555)
    source = sl.Source(folder, size=32, preset="train", cache=tmp_path / "cache")
    use(source)
    finish(source)
    with pytest.raises(sl.IoError):
        sl.Source(folder, size=32, preset="train", cache=folder / "cache")
    folder.chmod(0o755)


def test_the_next_epoch_is_one_of_the_finished_data_set(photos, tmp_path):
    options = {"size": 40, "preset": "train", "samples_per_shard": 7}
    how = {"batch_size": 8, "framework": "numpy", "seed": 6, "flip": True, "tail": "short"}
    source = sl.Source(photos, cache=tmp_path / "cache", **options)
    loader, plain = sl.Loader(source, **how), sl.Loader(sl.Source(photos, **options), **how)
    before = 0
    for epoch in range(4):
        for left, right in zip(loader.epoch(epoch), plain.epoch(epoch), strict=True):
            assert np.array_equal(left.images, right.images) and np.array_equal(left.ids, right.ids)
        finish(source)
        stats = loader.stats()
        assert ("not converted" in stats.reason) == (epoch == 0)
        if epoch > 0:
            assert stats.decoded_images + stats.cached_images == before  # and counters go on
        before = stats.decoded_images + stats.cached_images
        assert stats.samples == 40 * (epoch + 1)
    state = loader.state_dict()
    again = sl.Loader(sl.Source(photos, **options), **how)
    again.load_state_dict(state)
    assert next(iter(again)) is not None


def test_parts_of_a_finished_source_are_parts_of_the_data_set(photos, tmp_path):
    options = {"size": 40, "preset": "train", "samples_per_shard": 7}
    how = {"batch_size": 4, "framework": "numpy", "seed": 6, "tail": "short"}
    source = sl.Source(photos, cache=tmp_path / "cache", **options)
    plain = sl.Source(photos, **options)
    use(source)
    finish(source)
    for of in (
        lambda data: data.classes_only(["cat"]),
        lambda data: data.split(0.6)[0],
        lambda data: sl.concat(data.split(0.5)[1], data),
    ):
        left, right = sl.Loader(of(source), **how), sl.Loader(of(plain), **how)
        for epoch in range(2):
            for one, two in zip(left.epoch(epoch), right.epoch(epoch), strict=True):
                assert np.array_equal(one.images, two.images) and np.array_equal(one.ids, two.ids)
        assert left.stats().decoded_images == 0


def test_views_that_were_set_stay_when_the_data_set_is_taken(photos, tmp_path):
    options = {"size": 40, "preset": "train", "samples_per_shard": 7}
    how = {"batch_size": 8, "framework": "numpy", "seed": 6, "tail": "short", "random_resized_crop": 24}
    source = sl.Source(photos, cache=tmp_path / "cache", **options)
    loader, plain = sl.Loader(source, **how), sl.Loader(sl.Source(photos, **options), **how)
    for one in (loader, plain):
        for _ in one:
            pass
        one.set_augment(sl.Augment(random_resized_crop=16, flip=True))
    finish(source)
    for left, right in zip(loader, plain, strict=True):
        assert left.images.shape[1:3] == (16, 16) and np.array_equal(left.images, right.images)


def test_a_line_says_when_the_cache_will_be_finished(photos, tmp_path, capfd):
    source = sl.Source(photos, cache=tmp_path / "cache", **OPTIONS)
    loader = sl.Loader(source, batch_size=8, framework="numpy", progress=True)
    for _ in loader.epoch(0):
        pass
    next(iter(loader.epoch(1)))
    assert f"{tmp_path / 'cache'}: " in capfd.readouterr().err
    seen = []
    cache = tmp_path / "other"
    how = {"batch_size": 8, "framework": "numpy", "center_crop": 24}
    loader = sl.Loader(photos, cache=cache, progress=seen.append, **how)
    for _ in loader.epoch(0):
        pass
    next(iter(loader.epoch(1)))
    assert seen and isinstance(seen[-1], sl.types.CacheProgress) and seen[-1].inputs == 40


def test_what_starves_a_gpu_is_said_with_what_helps():
    before = {"starved_seconds": 1.0, "images_seconds": 1.0, "decoded_images": 100, "samples": 100}
    now = {"starved_seconds": 6.0, "images_seconds": 5.5, "decoded_images": 1100, "samples": 1100}
    text = starving_text(before, now, 10.0, 8, False)
    assert "waited for images 50% of the epoch, in which it got 100 a second: 8 threads" in text
    assert "decoded 1,000 of 1,000 images" in text
    assert "About 16 cores" in text and "up to 2.0 times" in text and "cache=" in text
    assert "come from the cache" in starving_text(before, now, 10.0, 8, True)
    assert starving_text(before, now, 100.0, 8, False) == ""  # 5 % of the time
    assert starving_text(before, {**now, "images_seconds": 2.0}, 10.0, 8, False) == ""  # something else
    assert starving_text(before, {**now, "decoded_images": 100}, 10.0, 8, False) == ""
    # Most files are decoded by the device, and the rate is that of all of them.
    text = starving_text(before, {**now, "samples": 1_000_100}, 10.0, 8, False)
    assert "100,000 a second" in text and "decoded 1,000 of 1,000,000 images" in text
    # A loop that only waits, as those of benchmarks do: no number of cores can be told from it.
    text = starving_text(before, {**now, "starved_seconds": 10.7, "images_seconds": 9.0}, 10.0, 8, False)
    assert "97% of the epoch" in text and "not known" in text and "times as fast" not in text


def test_a_loop_that_waits_for_images_is_told_once(photos, monkeypatch):
    def text(before, now, seconds, threads, cached):
        assert now["decoded_images"] > before["decoded_images"] == 0 and 0 < seconds < PATIENCE
        return f"it waited, {threads} threads, {cached}"

    monkeypatch.setattr("shardloader._loader.engine.starving_text", text)
    how = {"batch_size": 8, "framework": "numpy", "threads": 3}
    loader = sl.Loader(sl.Source(photos, size=40, preset="train"), **how)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in loader.epoch(0):  # not of the host
            pass
    loader = sl.Loader(sl.Source(photos, size=40, preset="train"), **how)
    monkeypatch.setattr(loader._engine, "_asks_starved", True)  # as on a GPU
    with pytest.warns(RuntimeWarning, match="it waited, 3 threads, False"):
        for _ in loader.epoch(0):
            pass
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in loader.epoch(1):
            pass


def test_an_epoch_that_decodes_no_image_is_not_asked_again(photos, tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr("shardloader._loader.engine.starving_text", lambda *how: asked.append(how) or "")
    sl.convert(photos, tmp_path / "out", size=40, preset="train")
    for data, epochs in ((sl.Dataset(tmp_path / "out"), 1), (sl.Source(photos, size=40, preset="train"), 3)):
        asked.clear()
        loader = sl.Loader(data, batch_size=8, framework="numpy")
        monkeypatch.setattr(loader._engine, "_asks_starved", True)  # as on a GPU
        for epoch in range(3):
            for _ in loader.epoch(epoch):
                pass
        assert len(asked) == epochs


def test_skipped_images_are_listed_where_asked(some_bad, tmp_path):
    folder, bad = some_bad
    table = tmp_path / "skipped.csv"
    how = {"batch_size": 5, "framework": "numpy", "on_error": "skip", "rejects": table, "world_size": 2}
    source = sl.Source(folder, size=32, preset="train")
    for rank in range(2):
        with pytest.warns(RuntimeWarning, match="replaced"):
            loader = sl.Loader(source, rank=rank, **how)
            for epoch in range(2):
                for _ in loader.epoch(epoch):
                    pass
    with pytest.warns(sl.ConversionWarning):
        sl.convert(folder, tmp_path / "out", size=32, preset="train")
    lines = table.read_text().splitlines()
    assert lines[0] == "path,reason"
    assert sorted(set(lines)) == sorted((tmp_path / "out" / "rejects.csv").read_text().splitlines())
    with pytest.raises(sl.NotFoundError, match="nowhere"):
        use(source, on_error="skip", rejects=tmp_path / "nowhere" / "x.csv")


def test_another_data_set_cannot_take_the_place_of_a_source(photos, tmp_path):
    options = {"size": 40, "preset": "train", "samples_per_shard": 7}
    sl.convert(photos, tmp_path / "out", **options)
    sl.convert(photos / "cat", tmp_path / "fewer", **options)
    loader = sl.Loader(sl.Source(photos, **options), batch_size=8, framework="numpy")
    core = loader._engine.core()
    with pytest.raises(sl.InvalidArgumentError, match="other samples than"):
        core.set_data(sl.Dataset(tmp_path / "fewer")._core)
    core.set_data(sl.Dataset(tmp_path / "out")._core)
    next(iter(loader))
    assert loader.stats().decoded_images == 0


def test_samples_of_finished_shards_are_compared_with_their_digests(some_bad, tmp_path):
    folder, _ = some_bad
    options = {"size": 32, "preset": "train", "samples_per_shard": 8, "cache": tmp_path / "cache"}
    source = sl.Source(folder, **options)
    use(source, on_error="skip")
    use(source, on_error="skip")
    finish(source)
    shard = tmp_path / "cache" / "shard-00000.safetensors"
    data = bytearray(shard.read_bytes())
    data[-5] ^= 1
    shard.write_bytes(data)
    damaged = sl.Source(folder, **options)  # has rejects, so it is not the finished data set
    with pytest.raises(sl.CorruptError, match="shard-00000"):
        use(damaged, on_error="skip")
    sl.convert(folder, tmp_path / "other", size=32, preset="train", samples_per_shard=8, filter="bicubic")
    shutil.copy(tmp_path / "other" / shard.name, shard)
    with pytest.raises(sl.CorruptError, match="is not the one that was stored in this cache"):
        use(sl.Source(folder, **options), on_error="skip")


def test_another_conversion_in_the_folder_is_not_taken_for_the_own_one(photos, tmp_path):
    options = {"size": 40, "preset": "train", "samples_per_shard": 9}
    source = sl.Source(photos, cache=tmp_path / "cache", **options)
    source[0]
    sl.convert(photos, tmp_path / "other", filter="bicubic", **options)
    for path in (tmp_path / "other").iterdir():
        shutil.copy(path, tmp_path / "cache" / path.name)
    same(source, sl.Source(photos, **options))
    end = time.monotonic() + PATIENCE
    while "filter" not in source.cache.progress().problem:
        assert time.monotonic() < end
        time.sleep(0.05)


def test_images_that_were_replaced_are_not_mixed_with_those_that_are_stored(tmp_path):
    def write(value):
        np.save(tmp_path / "x.npy", np.full((40, 16, 16, 3), value, np.uint8))

    write(1)
    options = {"size": 16, "samples_per_shard": 10}
    source = sl.Source(tmp_path / "x.npy", cache=tmp_path / "cache", **options)
    for i in range(15):  # one shard, and half of the next one
        assert source[i][0].max() == 1
    del source
    copy = (tmp_path / "x.npy").read_bytes()
    time.sleep(0.02)
    (tmp_path / "x.npy").write_bytes(copy)  # the same images at another time
    again = sl.Source(tmp_path / "x.npy", cache=tmp_path / "cache", **options)
    assert again[0][0].max() == 1
    del again
    time.sleep(0.02)
    write(2)
    with pytest.raises(sl.InvalidArgumentError, match="images that are stored in .* are others now"):
        sl.Source(tmp_path / "x.npy", cache=tmp_path / "cache", **options)


def test_a_file_that_cannot_be_read_now_is_no_reject_of_the_cache(tmp_path):
    folder = make_images(tmp_path / "in", each=6)
    options = {"size": 16, "preset": "train", "samples_per_shard": 18, "cache": tmp_path / "cache"}
    source = sl.Source(folder, **options)
    (folder / "bee" / "001.png").rename(tmp_path / "away.png")
    away = list(source.keys).index("bee/001.png")
    with pytest.raises(sl.IoError, match="bee/001.png"):
        source[away]
    end = time.monotonic() + PATIENCE
    while not source.cache.progress().problem:
        for i in set(range(18)) - {away}:
            source[i]
        assert time.monotonic() < end, source.cache.progress()
    assert "bee/001.png" in source.cache.progress().problem
    assert not (tmp_path / "cache" / "dataset.json").exists()
    del source
    (tmp_path / "away.png").rename(folder / "bee" / "001.png")
    source = sl.Source(folder, **options)
    use(source)
    use(source)
    finish(source)
    assert len(sl.Dataset(tmp_path / "cache")) == 18


def test_a_raised_bound_counts_for_what_is_stored_too(tmp_path):
    folder = make_images(tmp_path / "in", each=3)
    Image.new("RGB", (200, 100), (9, 9, 9)).save(folder / "ant" / "large.png")
    options = {"size": 16, "preset": "train", "cache": tmp_path / "cache"}
    source = sl.Source(folder, max_pixels=10_000, **options)
    at = source.keys[:].index("ant/large.png")
    for _ in range(2):
        with pytest.raises(sl.CorruptError, match="exceed the bound of 10000"):
            source[at]
    del source
    source = sl.Source(folder, **options)
    assert source[at][0].max() == 9
    use(source)
    use(source)
    finish(source)
    assert len(sl.Dataset(tmp_path / "cache")) == 10
