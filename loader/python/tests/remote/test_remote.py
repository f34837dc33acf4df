"""Data sets on servers: the options and statistics of the cache and the transit area."""

import os
import random
import time

import numpy as np
import pytest

import shardloader as sl
from conftest import make_images, need_libcurl
from remote_servers import HostileServer
from remote_store import HostileStore


@pytest.fixture
def server(tmp_path):
    images = np.random.default_rng(1).integers(
        0, 255, (40, 96, 96, 3), np.uint8
    )  # a shard is more than what is asked for its head
    with sl.Writer(
        str(tmp_path / "set"), squash=(96, 96), dtype="uint8", layout="nhwc", shard_bytes=120_000
    ) as writer:
        for number, image in enumerate(images):
            writer.add(f"{number}", image, number)
    with HostileServer(tmp_path) as server:
        need_libcurl(f"{server.url}/set")
        yield server


def epochs(data, **options):
    loader = sl.Loader(data, batch_size=8, framework="numpy", window_shards=2, drop_last=False, **options)
    labels = [list(labels) for epoch in range(2) for _, labels in loader.epoch(epoch)]
    return labels, loader.stats()


def test_what_does_not_fit_in_the_cache_is_in_transit(server, tmp_path):
    here, stats = epochs(tmp_path / "set")
    assert stats.passed_bytes == stats.transit_bytes == stats.fetched_bytes == 0
    size = sum(file.stat().st_size for file in (tmp_path / "set").glob("*.safetensors"))
    address = f"{server.url}/set"
    for options in ({}, {"cache": tmp_path / "cache", "cache_bytes": size // 2}):
        there, stats = epochs(
            address,
            remote=sl.RemoteOptions(transit=tmp_path / "transit", transit_bytes=size // 2, **options),
        )
        assert there == here
        assert stats.transport == "staged"
        assert stats.passed_bytes > size // 2
        assert stats.transit_bytes <= size // 2
        assert os.listdir(tmp_path / "transit") == []
        there, _ = epochs(
            address,
            remote=sl.RemoteOptions(transit=tmp_path / "transit", transit_bytes=size // 2, **options),
            verify="always",
        )
        assert there == here
    for verify in ("never", "always"):  # no room: by range
        there, stats = epochs(address, remote=sl.RemoteOptions(transit_bytes=1), verify=verify)
        assert there == here
        assert stats.passed_bytes == 0


def test_the_same_shards_twice_in_one_data_set(server, tmp_path):
    """A shard that leaves the transit area for one of its two places is still needed for the other."""
    images = np.stack([image for image, _ in sl.Dataset(tmp_path / "set")])
    data = sl.Dataset(f"{server.url}/set")
    size = sum(file.stat().st_size for file in (tmp_path / "set").glob("*.safetensors"))
    for options in ({}, {"transit_bytes": size}, {"cache": tmp_path / "cache", "cache_bytes": size // 2}):
        loader = sl.Loader(
            sl.concat(data, data),
            batch_size=4,
            device="cpu",
            framework="numpy",
            window_shards=2,
            drop_last=False,
            remote=sl.RemoteOptions(**options),
        )
        for epoch in range(8):
            seen = []
            for batch, labels in loader.epoch(epoch):
                np.testing.assert_array_equal(batch, images[labels])
                seen += labels.tolist()
            assert sorted(seen) == sorted(2 * list(range(len(images)))), epoch
        assert loader.stats().passed_bytes > 0
        loader.close()


def test_shards_leave_after_the_last_batch_that_reads_them(server, tmp_path):
    """Also where the consumer goes elsewhere, and where the last batch has samples of the first window."""
    images = np.stack([image for image, _ in sl.Dataset(tmp_path / "set")])
    data = sl.Dataset(f"{server.url}/set")
    chance = random.Random(0)
    size = sum(file.stat().st_size for file in (tmp_path / "set").glob("*.safetensors"))
    for _ in range(20):
        options = {
            "prefetch": chance.randint(1, 4),
            "remote": sl.RemoteOptions(transit_bytes=chance.choice([0, size])),
            "dtype": "float32",
            "mean": (0, 0, 0),
            "std": (1 / 255,) * 3,
        }
        with sl.Loader(
            data,
            batch_size=chance.choice([1, 4, 7]),
            device="cpu",
            framework="numpy",
            layout="nhwc",
            window_shards=chance.choice([2, 5]),
            tail="wrap",
            **options,
        ) as loader:
            for _ in range(12):
                wanted = chance.choice([1, 3, len(loader)])
                for number, (batch, labels) in enumerate(loader.epoch(chance.randint(0, 3))):
                    np.testing.assert_allclose(batch, images[labels], atol=1e-3)
                    if number == wanted:
                        break


@pytest.mark.parametrize(
    "options", [{}, {"dtype": "float32"}]
)  # batches that are copies of what is stored, and others
def test_cached_shards_that_others_change_while_they_are_read(server, tmp_path, options):
    def labelled(loader, epoch):
        return [(labels.tolist(), images.copy()) for images, labels in loader.epoch(epoch)]

    def open_loader(data, **storage):
        return sl.Loader(
            data,
            batch_size=4,
            framework="numpy",
            window_shards=2,
            prefetch=1,
            drop_last=False,
            **options,
            **storage,
        )

    here = open_loader(tmp_path / "set")
    there = open_loader(f"{server.url}/set", remote=sl.RemoteOptions(cache=tmp_path / "cache"))

    def same(epoch):
        for (labels, images), (found, others) in zip(
            labelled(here, epoch), labelled(there, epoch), strict=True
        ):
            assert labels == found
            np.testing.assert_array_equal(images, others)

    same(0)
    same(1)
    time.sleep(0.2)  # the batches that are made ahead are ready
    fetched = there.stats().fetched_bytes
    files = sorted((tmp_path / "cache").glob("*.safetensors"))
    assert len(files) == 10
    with open(files[0], "r+b") as file:
        file.seek(-5000, os.SEEK_END)
        file.write(bytes(100))
    os.truncate(files[1], 8192)
    files[2].unlink()
    os.replace(files[4], files[3])
    for epoch in 2, 3:
        same(epoch)
    stats = there.stats()
    assert stats.transport == "staged"
    assert fetched < stats.fetched_bytes < fetched + 400_000  # of what was damaged alone


SMALL = {"resize": 32, "crop": 32, "dtype": "uint8", "samples_per_shard": 4}


@pytest.fixture
def photos(tmp_path):
    return make_images(tmp_path / "photos", 4)


@pytest.fixture
def store(monkeypatch):
    with HostileStore() as store:
        for name, value in store.environment.items():
            monkeypatch.setenv(name, value)
        need_libcurl("s3://bucket/nothing")
        yield store


def refusal(call):
    with pytest.raises(sl.ShardError) as error:
        call()
    return str(error.value)


def test_convert_uploads_to_an_object_store(store, photos, tmp_path):
    work = tmp_path / "work"
    done = sl.convert(photos, tmp_path / "here", **SMALL)
    there = sl.convert(photos, "s3://bucket/sets/a b", work=work, **SMALL)
    assert (there.samples, there.shards, there.complete) == (done.samples, done.shards, True)
    assert store.files("sets/a b/") == {
        file.name: file.read_bytes() for file in (tmp_path / "here").iterdir()
    }
    assert os.listdir(work) == []
    assert sl.convert(photos, "s3://bucket/sets/a b", work=work, **SMALL).was_complete
    assert len(sl.Dataset("s3://bucket/sets/a b")) == done.samples


def test_what_cannot_write_to_servers_says_so(store, photos, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    here = sorted(os.listdir(tmp_path))
    address = "s3://bucket/set"
    for options in (
        {"append": True},
        {"overwrite": True},
        {"refresh": True},
        {"claim": True},
        {"rank": 0, "world_size": 2},
    ):
        assert "need a folder, which shardctl copy uploads" in refusal(
            lambda: sl.convert(photos, address, **SMALL, **options)
        )
    assert "need a folder, which shardctl copy uploads" in refusal(lambda: sl.plan(photos, address, **SMALL))
    assert "only s3://" in refusal(lambda: sl.convert(photos, "https://127.0.0.1:1/set", **SMALL))
    assert "work is for an out in an object store" in refusal(
        lambda: sl.convert(photos, tmp_path / "x", work=tmp_path / "work", **SMALL)
    )
    assert "upload it with shardctl copy" in refusal(lambda: sl.Writer(address, **SMALL).add("a", b"", 0))
    assert sorted(os.listdir(tmp_path)) == here
    assert store.files() == {}


def test_a_plan_reads_archives_on_servers(server, photos, tmp_path):
    import tarfile

    with tarfile.open(tmp_path / "all.tar", "w") as archive:
        archive.add(photos, ".")
    plan = sl.plan(f"{server.url}/all.tar", tmp_path / "out", jobs=1, **SMALL)
    assert plan.inputs == 12
    for shard in range(plan.shards):
        sl.convert_shard(plan, shard)
    assert sl.finish(plan).samples == 12


def test_what_keeps_shards_out_of_the_cache_is_said_once(server, tmp_path):
    here, _ = epochs(tmp_path / "set")
    address, cache = f"{server.url}/set", tmp_path / "cache"
    epochs(address, remote=sl.RemoteOptions(cache=cache))
    for file in list(cache.glob("*.safetensors"))[:2]:
        file.unlink()
        (file / "in the way").mkdir(parents=True)
    with pytest.warns(RuntimeWarning, match="cannot be used, and not be removed") as said:
        there, stats = epochs(address, remote=sl.RemoteOptions(cache=cache))
    assert there == here
    assert len([one for one in said if issubclass(one.category, RuntimeWarning)]) == 1
    assert str(cache) in stats.storage_problem
