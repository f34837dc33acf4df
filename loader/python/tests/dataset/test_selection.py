"""Parts of data sets, several data sets as one, and what an epoch draws."""

import gc
import json
import multiprocessing
import pickle
import shutil

import numpy as np
import pytest

import shardloader as sl
from conftest import CLASSES, EACH, SAMPLES, make_images
from shardloader.__main__ import main


def same(some: sl.Dataset, all_: sl.Dataset, indices) -> None:
    assert len(some) == len(indices)
    assert some.labels.tolist() == all_.labels[indices].tolist()
    assert some.keys[:] == [all_.keys[i] for i in indices]
    for at, index in enumerate(indices):
        array, label = some[at]
        expected, expected_label = all_[index]
        assert label == expected_label and np.array_equal(array, expected)


@pytest.mark.parametrize("codec", ["none", "packed", "zstd:1"])
def test_parts_are_data_sets(make, codec):
    data = sl.Dataset(make(codec=codec))
    same(data.select([5, 59, 0, -3]), data, [0, 5, 57, 59])
    same(data.select(range(10, 50, 7)), data, list(range(10, 50, 7)))
    same(data.select(slice(None, None, 11)), data, list(range(0, SAMPLES, 11)))
    same(data.where(data.labels == 1), data, list(range(EACH, 2 * EACH)))
    same(
        data.where(lambda columns: np.char.endswith(columns["keys"].astype(str), "3.png")),
        data,
        [3, 13, 23, 33, 43, 53],
    )
    cows = data.classes_only(["cow", "ant"])
    same(cows, data, [i for i in range(SAMPLES) if i // EACH != 1])
    assert cows.classes == CLASSES
    same(cows.select([0, 20]), data, [0, 2 * EACH])
    train, held_out = data.split(0.7, seed=4)
    assert sorted([*train.keys, *held_out.keys]) == sorted(data.keys)
    folds = [data.fold(k, 3)[1].keys[:] for k in range(3)]
    assert sorted(sum(folds, [])) == sorted(data.keys)
    assert "samples, uint8" in repr(train) and len(train.info["shards"]) <= len(data.info["shards"])
    train.verify()


def test_images_of_a_shard_are_those_that_are_selected(make):
    data = sl.Dataset(make())
    some = data.select([1, 3, 20])
    assert np.array_equal(some.shard_images(0), np.stack([data[1][0], data[3][0]]))
    assert np.array_equal(some.shard_images(1)[0], data[20][0])


@pytest.mark.parametrize(
    "bad, words",
    [
        (lambda data: data.select([]), "has none of the"),
        (lambda data: data.select([SAMPLES]), f"index {SAMPLES} does not exist"),
        (lambda data: data.select([3, 1, 3]), "index 3 is given twice"),
        (lambda data: data.select([0, -SAMPLES]), "index 0 is given twice"),
        (lambda data: data.select([0.5]), "expected a list of whole numbers"),
        (lambda data: data.select([True] * SAMPLES), "for where"),
        (lambda data: data.where([True]), f"expected {SAMPLES} bools"),
        (lambda data: data.where(np.zeros(SAMPLES, bool)), "has none of the"),
        (lambda data: data.where(np.ones(SAMPLES, int)), "dtype int64"),
        (lambda data: data.classes_only(["dog"]), "no class 'dog'; expected some of the 3: ant, bee, cow"),
        (lambda data: data.split(1.5), "1.5"),
        (lambda data: data.split(1.0), "has none of the"),
        (lambda data: data.fold(3, 3), "fold 3 of 3"),
    ],
)
def test_what_cannot_be_selected(make, bad, words):
    with pytest.raises(sl.InvalidArgumentError, match=words):
        bad(sl.Dataset(make()))


def _keys_of(data, queue):
    queue.put(data.keys[:])


def test_parts_are_pickled_and_survive_fork(make):
    data = sl.Dataset(make())
    part = sl.concat(data.select(range(9)), data.where(data.labels == 2)).split(0.5)[0].select([0, 2])
    copy = pickle.loads(pickle.dumps(part))
    same(copy, part, [0, 1])
    for method in ("fork", "spawn"):
        context = multiprocessing.get_context(method)
        queue = context.Queue()
        child = context.Process(target=_keys_of, args=(part, queue))
        child.start()
        assert queue.get(timeout=60) == part.keys[:]
        child.join()


def test_parts_are_saved_and_opened_again(make, tmp_path):
    shutil.copytree(make(), tmp_path / "set")
    data = sl.Dataset(tmp_path / "set")
    part = data.where(data.labels == 1).select(range(1, EACH, 2))
    part.save("odd-bees")
    again = sl.Dataset(f"{tmp_path}/set#odd-bees")
    same(again, data, list(range(EACH + 1, 2 * EACH, 2)))
    same(pickle.loads(pickle.dumps(again.select([1]))), data, [EACH + 3])
    assert len(sl.Loader(f"{tmp_path}/set#odd-bees", batch_size=5, framework="numpy")) == 2
    assert again.info["folder"] == str(tmp_path / "set") and again.path.endswith("set#odd-bees")
    assert main(["info", f"{tmp_path}/set#odd-bees"]) == 0
    with pytest.raises(sl.NotFoundError, match="has no selection"):
        sl.Dataset(f"{tmp_path}/set#none")
    with pytest.raises(sl.InvalidArgumentError, match="name of a selection"):
        part.save("../x")
    with pytest.raises(sl.InvalidArgumentError, match="several data sets"):
        sl.concat(data, part).save("x")


def test_several_data_sets_are_one(make, tmp_path):
    others = make_images(tmp_path / "images", each=6)
    (others / "bee").rename(others / "eel")
    sl.convert(others, tmp_path / "more", preset="train", resize=32, crop=32, codec="packed")
    first, second = sl.Dataset(make()), sl.Dataset(tmp_path / "more")
    both = sl.concat(first, tmp_path / "more")
    assert both.classes == ("ant", "bee", "cow", "eel") and both.codec == "mixed"
    assert len(both) == SAMPLES + 18
    names = [first.classes[label] for label in first.labels] + [
        second.classes[label] for label in second.labels
    ]
    assert [both.classes[label] for label in both.labels] == names
    for index in (0, SAMPLES, SAMPLES + 17):
        part = first if index < SAMPLES else second
        array, label = both[index]
        assert np.array_equal(array, part[index % SAMPLES][0]) and both.classes[label] == names[index]
    seen = set()
    for batch in sl.Loader(both, batch_size=13, tail="short", framework="numpy"):
        for image, label, index in zip(batch.images, batch.labels, batch.ids):
            assert np.array_equal(image, both[int(index)][0]) and label == both[int(index)][1]
            seen.add(int(index))
    assert seen == set(range(len(both)))
    with pytest.raises(sl.InvalidArgumentError, match="the sample of"):
        sl.concat(first, make(resize=24, crop=24))


def ids_of(loader, epoch):
    return np.concatenate([np.asarray(batch.ids) for batch in loader.epoch(epoch)])


@pytest.mark.parametrize("transport", ["mapped", "staged", "resident"])
def test_the_loader_delivers_the_parts_samples(make, transport):
    data = sl.Dataset(make())
    part = data.where(np.arange(SAMPLES) % 3 == 1)
    loader = sl.Loader(part, batch_size=4, framework="numpy", transport=transport)
    for epoch in range(2):
        seen = []
        for batch in loader.epoch(epoch):
            for image, label, index in zip(batch.images, batch.labels, batch.ids):
                assert np.array_equal(image, part[int(index)][0]) and label == part[int(index)][1]
                seen.append(int(index))
        assert sorted(seen) == list(range(20))


def test_draws(make):
    path = make()
    balanced = sl.Dataset(path).where(lambda columns: (columns["labels"] > 0) | (np.arange(SAMPLES) < 5))
    loader = sl.Loader(
        balanced, batch_size=10, framework="numpy", sampling="balanced", samples_per_epoch=3000
    )
    counts = np.bincount(balanced.labels[ids_of(loader, 0)])
    assert np.abs(counts - 1000).max() <= 1  # a third of each 1,000, rounded

    weights = np.arange(SAMPLES) % 2
    loader = sl.Loader(path, batch_size=10, framework="numpy", sampling=sl.Sampling(weights))
    assert set(ids_of(loader, 0) % 2) == {1} and len(loader) == SAMPLES // 10
    loader = sl.Loader(
        path,
        batch_size=10,
        framework="numpy",
        sampling=sl.Sampling(weights, replacement=False),
        samples_per_epoch=30,
    )
    assert sorted(ids_of(loader, 0)) == list(range(1, SAMPLES, 2))

    loader = sl.Loader(path, batch_size=10, framework="numpy", samples_per_epoch=20)
    assert sorted(np.concatenate([ids_of(loader, epoch) for epoch in range(3)])) == list(range(SAMPLES))
    loader = sl.Loader(path, batch_size=10, framework="numpy", sampling=sl.Sampling(), samples_per_epoch=600)
    assert len(set(ids_of(loader, 0))) > 50 and np.bincount(ids_of(loader, 1)).max() > 13
    loader = sl.Loader(
        path, batch_size=10, framework="numpy", sampling=sl.Sampling(replacement=False), samples_per_epoch=120
    )
    assert np.bincount(ids_of(loader, 1)).tolist() == [2] * SAMPLES

    loader = sl.Loader(path, batch_size=12, framework="numpy", repeats=3, random_crop=8)
    for batch in loader.epoch(0):
        ids, images = np.asarray(batch.ids), np.asarray(batch.images)
        assert ids[:4].tolist() == ids[4:8].tolist() == ids[8:].tolist()
        assert not np.array_equal(images[:4], images[4:8])  # other crops


def test_mixes(make):
    data = sl.Dataset(make())
    ants, cows = data.classes_only(["ant"]), data.classes_only(["cow"])
    mixed = sl.mix({ants: 7, cows: 3}, epoch_size=2000)
    assert len(mixed) == 2000
    loader = sl.Loader(mixed, batch_size=100, framework="numpy")
    ids = ids_of(loader, 1)
    for block in (ids[:1000], ids[1000:]):
        assert np.bincount(mixed.data.labels[block], minlength=3).tolist() == [700, 0, 300]
    for bad, words in (
        ({ants: -1, cows: 3}, "group 0 is -1"),
        ({ants: 0}, "add up to 0"),
        ({}, "at least one"),
        ({ants: float("nan")}, "nan"),
    ):
        with pytest.raises(sl.InvalidArgumentError, match=words):
            sl.mix(bad)
    with pytest.raises(sl.InvalidArgumentError, match="a mix and sampling exclude each other"):
        sl.Loader(mixed, batch_size=100, sampling="balanced")


def test_resume_in_the_middle_and_on_other_worlds(make):
    data = sl.Dataset(make()).where(np.arange(SAMPLES) % 5 != 0)
    options = dict(framework="numpy", sampling=sl.Sampling(np.arange(48) + 1.0), samples_per_epoch=96, seed=3)
    whole = sl.Loader(data, batch_size=16, **options)
    expected = [np.asarray(batch.ids).tolist() for batch in whole.epoch(2)]
    half = sl.Loader(data, batch_size=16, **options)
    taken = iter(half.epoch(2))
    for _ in range(3):
        next(taken)
    state = json.loads(json.dumps(half.state_dict()))
    ranks = [sl.Loader(data, batch_size=8, rank=rank, world_size=2, **options) for rank in range(2)]
    for loader in ranks:
        loader.load_state_dict(state)
    rest = [[np.asarray(batch.ids).tolist() for batch in loader] for loader in ranks]
    assert [a + b for a, b in zip(*rest)] == expected[3:]
    for other, words in (
        (
            sl.Loader(
                data.select(range(47)),
                batch_size=16,
                **{**options, "sampling": sl.Sampling(np.arange(47) + 1.0)},
            ),
            "samples: 48",
        ),
        (
            sl.Loader(sl.Dataset(make()).where(np.arange(SAMPLES) % 5 != 1), batch_size=16, **options),
            "another selection",
        ),
        (
            sl.Loader(data, batch_size=16, **{**options, "sampling": sl.Sampling(np.arange(48) + 2.0)}),
            "another sequence",
        ),
    ):
        with pytest.raises(sl.InvalidArgumentError, match=words):
            other.load_state_dict(state)


def test_an_epoch_of_a_part_outlives_its_loader(make):
    part = sl.Dataset(make()).select(range(0, SAMPLES, 2))
    batches = iter(sl.Loader(part, batch_size=5, framework="numpy", shuffle=False).epoch(0))
    gc.collect()
    assert [int(index) for batch in batches for index in np.asarray(batch.ids)] == list(range(30))


@pytest.mark.parametrize(
    "options, words",
    [
        (dict(sampling="even"), "sampling is 'even'; expected \"balanced\" or Sampling"),
        (dict(sampling=[1, 1]), r"sampling is \[1, 1\]; expected \"balanced\" or Sampling"),
        (dict(sampling=sl.Sampling(np.ones(3))), "expected \\(60,\\)"),
        (dict(sampling=sl.Sampling(-np.ones(SAMPLES))), "weight of sample 0 is -1"),
        (dict(sampling=sl.Sampling(np.zeros(SAMPLES))), "all 60 weights are 0"),
        (dict(samples_per_epoch=0), "expected a whole number from 1 on"),
        (dict(repeats=3, batch_size=10), "repeats is 3"),
        (dict(sampling="balanced", shuffle=False), "need shuffle=True"),
        (dict(samples_per_epoch=20, window_shards=2), "need shuffle=True"),
    ],
)
def test_what_cannot_be_drawn(make, options, words):
    with pytest.raises(sl.InvalidArgumentError, match=words):
        sl.Loader(make(), **{"batch_size": 10, "framework": "numpy", **options})
