"""Random data sets, options and consumers: the batches of a server's data set are those of the folder,
whatever cache and transit area are there."""

import random

import numpy as np
import pytest

import shardloader as sl
from conftest import need_libcurl
from remote_servers import Nginx
from shardloader import ops

SIDE = 32
ROUNDS = 150
SHARDS = {
    "none": (16, 120),
    "packed": (9, 100),
    "zstd": (40, 130),
}  # codec: samples of a shard, and of the data set


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    if not Nginx.available():
        pytest.skip("nginx is not installed")
    folder = tmp_path_factory.mktemp("property")
    rng = np.random.default_rng(0)
    for codec, (each, samples) in SHARDS.items():
        columns = {
            "mask": sl.ImageField("uint8", SIDE, SIDE, 1, role="mask", codec=codec),
            "boxes": sl.Ragged("float32", 4),
        }
        with sl.Writer(
            folder / "sets" / codec,
            columns=columns,
            squash=(SIDE, SIDE),
            dtype="uint8",
            layout="nhwc",
            codec=codec,
            samples_per_shard=each,
        ) as writer:
            for number in range(samples):
                image, mask = (
                    rng.integers(0, 255, (SIDE, SIDE, 3), np.uint8),
                    rng.integers(0, 9, (SIDE, SIDE, 1), np.uint8),
                )
                boxes = (
                    np.sort(rng.uniform(0, SIDE, (number % 4, 2, 2)), axis=1)
                    .reshape(-1, 4)
                    .astype(np.float32)
                )
                writer.add(f"{codec}{number}", image, number % 5, mask=mask, boxes=boxes)
    with Nginx(folder / "sets", folder / "nginx") as server:
        need_libcurl(f"{server.url}/none")
        yield folder / "sets", server.url


def make_data(where, chance, depth=0):
    """Parts of the three data sets, put together; often a shard is there twice."""
    kind = chance.random() if depth < 3 else 1

    def part():
        return make_data(where, chance, depth + 1)

    if kind < 0.3:
        return sl.concat(*[part() for _ in range(chance.randint(1, 3))])
    if kind < 0.45:
        data = part()
        return data.select(chance.sample(range(len(data)), chance.randint(1, len(data))))
    if kind < 0.55:
        return part().split(chance.uniform(0.3, 0.9), chance.randint(0, 9))[0]
    return sl.Dataset(f"{where}/{chance.choice(list(SHARDS))}")


def make_options(chance):
    options = {
        "batch_size": chance.choice([1, 2, 4, 8, 16, 30]),
        "seed": chance.randint(0, 99),
        "prefetch": chance.randint(1, 5),
        "threads": chance.randint(1, 3),
    }
    options["tail"] = chance.choice(["drop", "short", "pad", "wrap"])
    if chance.random() < 0.8:
        options["window_shards"] = chance.choice([1, 2, 3, 50])
    if chance.random() < 0.3:
        options["world_size"] = chance.randint(2, 3)
        options.update(
            rank=chance.randrange(options["world_size"]), partition=chance.choice(["global", "by_shard"])
        )
    if chance.random() < 0.4:
        options.update(dtype="float32", layout="nchw")
    if chance.random() < 0.5:
        options["augment"] = sl.Augment(
            random_resized_crop=24,
            flip=0.5,
            ops=chance.choice([[], [ops.invert(0.5)], [ops.affine((-20, 20))]]),
        )
    if chance.random() < 0.4:
        options["fields"] = {"mask": "nearest", "boxes": sl.Boxes()}
    return options


def make_storage(chance, folder):
    storage = {}
    if chance.random() < 0.5:
        storage.update(cache=folder / "cache", cache_bytes=chance.choice([1, 100_000, 300_000, 3_000_000]))
    if chance.random() < 0.5:
        storage["transit"] = folder / "transit"
    if chance.random() < 0.5:
        storage["transit_bytes"] = chance.choice([1, 80_000, 250_000, 2_000_000])
    return storage


def consume(data, options, storage, chance):
    """What a consumer sees that stops, jumps between epochs and resumes."""
    seen = []
    loader = sl.Loader(data, framework="numpy", device="cpu", **options, remote=sl.RemoteOptions(**storage))
    epoch = 0
    for _ in range(chance.randint(1, 4)):
        stop = chance.choice([None, 0, 1, 5])
        for number, batch in enumerate(loader.epoch(epoch)):
            seen.append(
                [
                    batch.ids.copy(),
                    batch.labels.copy(),
                    batch.images.copy(),
                    *(value.copy() for value in batch.targets().values()),
                ]
            )
            if number == stop:
                break
        then = chance.random()
        if then < 0.2:
            state = loader.state_dict()
            loader.close()
            loader = sl.Loader(
                data, framework="numpy", device="cpu", **options, remote=sl.RemoteOptions(**storage)
            )
            loader.load_state_dict(state)
            epoch = state["epoch"]
        else:
            epoch = chance.randint(0, 4) if then < 0.4 else epoch + 1
    loader.close()
    return seen


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_the_batches_are_those_of_the_folder(server, tmp_path, seed):
    folder, address = server
    seen = []
    for where, make in (
        (folder, lambda chance: {}),
        (address, lambda chance: make_storage(chance, tmp_path)),
    ):
        chance = random.Random(seed)
        storage = make(random.Random(seed + 1000))
        try:
            data, options = make_data(where, chance), make_options(chance)
            seen.append(consume(data, options, storage, chance))
        except sl.InvalidArgumentError as error:  # options that do not go together
            seen.append(str(error).replace(str(where), ""))
    assert len(seen[0]) == len(seen[1]), seen
    for here, there in zip(*seen):
        assert type(here) is type(there)
        for a, b in zip(here, there):
            np.testing.assert_array_equal(a, b)
