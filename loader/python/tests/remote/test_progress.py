"""progress= of loaders over data sets on servers."""

import re
import threading
import time
import warnings

import pytest

import shardloader as sl
from conftest import make_images, need_libcurl
from remote_servers import HostileServer
from shardloader._progress import Progress, Reporter, line_of


@pytest.fixture
def served(tmp_path, monkeypatch):
    monkeypatch.setattr(Reporter, "INTERVAL", 0.05)
    data = tmp_path / "data"
    sl.convert(make_images(tmp_path / "images", 8), data, preset="train", samples_per_shard=4)
    with HostileServer(data, lambda path, *_: time.sleep(0.1) if path.endswith("s") else None) as server:
        need_libcurl(server.url)
        yield server


def loader_of(server, tmp_path, **options):
    return sl.Loader(
        server.url,
        batch_size=4,
        window_shards=1,
        framework="numpy",
        remote=sl.RemoteOptions(cache=tmp_path / "cache"),
        **options,
    )


def test_a_function_is_told_of_the_first_epoch(served, tmp_path):
    seen = []
    loader = loader_of(
        served, tmp_path, progress=lambda now: seen.append((now, threading.current_thread().name))
    )
    for _ in loader.epoch(0):
        pass
    calls = len(seen)
    assert calls >= 3 and seen[0][1] == "shard-progress"
    told = [now for now, _ in seen]
    size = sum(file.stat().st_size for file in (tmp_path / "data").glob("*.safetensors"))
    for before, after in zip(told, told[1:]):
        assert (
            before.bytes <= after.bytes
            and before.shards <= after.shards
            and before.fetched_bytes <= after.fetched_bytes
        )
    assert [now.ended for now in told] == [False] * (calls - 1) + [True]
    last = told[-1]
    assert (last.epoch, last.shards, last.total_shards, last.total_bytes, last.seconds_left) == (
        0,
        6,
        6,
        size,
        None,
    )
    assert last.bytes == size and last.fetched_bytes >= size and last.bytes_per_second > 0
    for _ in loader.epoch(1):
        pass
    time.sleep(0.2)
    assert len(seen) == calls  # of the first epoch only
    assert loader.stats().arrived_shards == 6 and loader.stats().arrived_bytes == size
    loader.close()


def test_a_line_on_standard_error(served, tmp_path, capsys):
    with loader_of(served, tmp_path, progress=True) as loader:
        for _ in loader:
            pass
    lines = capsys.readouterr().err.splitlines()
    assert re.fullmatch(
        r"epoch 0: \d of 6 shards, \d+\.\d MiB of 4\.\d MiB, [\d.]+ MB/s(, \d+:\d\d left)?", lines[0]
    ), lines
    assert re.fullmatch(
        r"epoch 0: 6 of 6 shards came, 4\.\d MiB fetched in 0:\d\d, [\d.]+ MB/s", lines[-1]
    ), lines


def test_nothing_is_said_where_nothing_is_fetched(served, tmp_path, capsys):
    for _ in range(2):  # the second time from the cache
        seen = []
        with loader_of(served, tmp_path, progress=seen.append) as loader:
            for _ in loader.epoch(0):
                pass
    assert seen == []
    with sl.Loader(tmp_path / "data", batch_size=4, framework="numpy", progress=True) as loader:
        for _ in loader:
            pass
    with loader_of(served, tmp_path, progress=True, rank=1, world_size=2) as loader:
        for _ in loader:
            pass
    assert capsys.readouterr().err == ""


def test_a_function_that_fails_does_not_end_the_epoch(served, tmp_path):
    def fail(_):
        raise RuntimeError("mine")

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with loader_of(served, tmp_path, progress=fail) as loader:
            assert sum(1 for _ in loader) == 6
    assert [str(one.message).count("mine") for one in caught if one.category is RuntimeWarning] == [1]


def test_the_thread_ends_with_the_loader(served, tmp_path):
    loader = loader_of(served, tmp_path, progress=lambda now: None)
    next(loader.epoch(0))
    del loader
    end = time.monotonic() + 5
    while any(thread.name == "shard-progress" for thread in threading.enumerate()) and time.monotonic() < end:
        time.sleep(0.02)
    assert not any(thread.name == "shard-progress" for thread in threading.enumerate())


def test_lines():
    now = Progress(3, 12, 100, 12 << 30, 98 << 30, 11 << 30, 1.5e9, 10, 3725, False)
    assert line_of(now) == "epoch 3: 12 of 100 shards, 12.00 GiB of 98.00 GiB, 1500.0 MB/s, 1:02:05 left"
    assert line_of(now._replace(seconds_left=None)).endswith("1500.0 MB/s")
    assert (
        line_of(now._replace(ended=True))
        == "epoch 3: 12 of 100 shards came, 11.00 GiB fetched in 0:10, 1500.0 MB/s"
    )
