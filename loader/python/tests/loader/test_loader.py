import gc
import json
import os
import threading

import numpy as np
import pytest

import shardloader as sl
from conftest import MEAN, SAMPLES, SIDE, STD, ids_of, read_by_offset


def loader_of(data, **options):
    return sl.Loader(data, **{"batch_size": 8, "framework": "numpy", "threads": 2, **options})


def collect(loader, epoch=0):
    batches = [(batch[0].copy(), batch[1], batch.ids) for batch in loader.epoch(epoch)]
    return [np.concatenate(parts) for parts in zip(*batches)]


def test_the_batch_size_may_be_the_second_argument_as_of_a_data_loader(data):
    loader = sl.Loader(data, 12, framework="numpy")
    assert loader.batch_size == 12 and next(iter(loader)).images.shape[0] == 12
    with pytest.raises(sl.InvalidArgumentError, match="batch_size is 'cuda:0'; expected a whole number"):
        sl.Loader(data, "cuda:0")


def test_stored_order_and_bytes(data, reference):
    images, labels, ids = collect(loader_of(data, batch_size=10, shuffle=False))
    np.testing.assert_array_equal(ids, np.arange(SAMPLES))
    np.testing.assert_array_equal(images, reference[0])
    np.testing.assert_array_equal(labels, reference[1])


@pytest.mark.parametrize(
    "options", [{}, {"window_shards": 2}, {"transport": "staged"}, {"transport": "mapped"}]
)
def test_a_shuffled_epoch_has_every_sample_once_and_intact(data, reference, options):
    loader = loader_of(data, batch_size=6, **options)
    orders = []
    for epoch in range(3):
        images, labels, ids = collect(loader, epoch)
        assert sorted(ids) == list(range(SAMPLES))
        np.testing.assert_array_equal(images, reference[0][ids])
        np.testing.assert_array_equal(labels, reference[1][ids])
        orders.append(tuple(ids))
    assert len({*orders, tuple(range(SAMPLES))}) == 4


@pytest.mark.parametrize("codec", ["none", "packed", "zstd:1"])
def test_normalised_floats_are_numpys(make, reference, codec):
    loader = loader_of(make(codec=codec), dtype="float32", layout="nchw", shuffle=False, batch_size=12)
    assert loader.dtype == "float32" and loader.layout == "nchw" and loader.shape == (3, SIDE, SIDE)
    images, _, _ = collect(loader)
    expected = (reference[0].astype(np.float32) / np.float32(255) - MEAN) / STD
    np.testing.assert_array_equal(images, expected.transpose(0, 3, 1, 2))


def test_images_are_nchw_for_torch_and_for_floats(data, make, reference):
    stored, eight = "nhwc", (SIDE, SIDE, 3)
    for framework in ("numpy", None):
        assert (
            loader_of(data, framework=framework).layout == stored
            and loader_of(data, framework=framework, layout="nchw").layout == "nchw"
        )
        for dtype in ("f16", "bfloat16", np.float32):
            assert loader_of(data, framework=framework, dtype=dtype).shape == (3, SIDE, SIDE)
            assert loader_of(data, framework=framework, dtype=dtype, layout="nhwc").shape == eight
    assert loader_of(make(preset="eval"), shuffle=False).shape == (3, SIDE, SIDE)
    images, _, _ = collect(
        loader_of(data, dtype="f32", mean=(0, 0, 0), std=(1, 1, 1), shuffle=False, batch_size=12)
    )
    np.testing.assert_array_equal(
        images, (reference[0].astype(np.float32) / np.float32(255)).transpose(0, 3, 1, 2)
    )


@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
def test_stored_floats_are_transformed_too(make, layout):
    data = sl.Dataset(make(preset="eval", layout=layout))
    plain, _, _ = collect(loader_of(data, shuffle=False, batch_size=12))
    assert plain.shape == (SAMPLES, 3, SIDE, SIDE) and plain.dtype == np.float16
    stored = read_by_offset(data.path)[0]
    np.testing.assert_array_equal(plain, stored if layout == "nchw" else stored.transpose(0, 3, 1, 2))
    images, _, ids = collect(loader_of(data, dtype="f32", flip=1.0, center_crop=16))
    np.testing.assert_array_equal(images, plain[ids][:, :, 8:24, 8:24][..., ::-1].astype(np.float32))
    assert next(iter(loader_of(data, random_resized_crop=20, framework=None))).images.shape == (8, 3, 20, 20)
    with pytest.raises(
        ValueError,
        match='dtype is uint8, but the samples are stored as float16.* convert the images with dtype="uint8" '
        'or codec="packed"',
    ):
        loader_of(data, dtype="uint8")


def test_dtypes_in_every_spelling(data):
    for name, spellings in {
        "uint8": ("uint8", "u8", np.uint8, np.dtype("u1"), "torch.uint8"),
        "float16": ("float16", "f16", np.float16, np.dtype("e")),
        "bfloat16": ("bfloat16", "bf16", "torch.bfloat16"),
        "float32": ("float32", "f32", np.float32, np.dtype("float32")),
    }.items():
        for spelling in spellings:
            assert loader_of(data, dtype=spelling).dtype == name, spelling
    for wrong in ("float", "f64", np.float64, np.int8, "half", 16, object(), "", ()):
        with pytest.raises(ValueError, match="dtype is .*; expected one of"):
            loader_of(data, dtype=wrong)


def test_own_mean_and_std_and_half_precision(data, reference):
    images, _, _ = collect(
        loader_of(
            data, dtype=np.float16, layout="nhwc", mean=(0, 0, 0), std=(1, 1, 1), shuffle=False, batch_size=12
        )
    )
    np.testing.assert_array_equal(
        images, (reference[0].astype(np.float32) / np.float32(255)).astype(np.float16)
    )


def test_bfloat16_is_the_upper_half_of_float32(data, reference):
    images, _, _ = collect(loader_of(data, dtype="bfloat16", layout="nhwc", shuffle=False, batch_size=12))
    bits = ((reference[0].astype(np.float32) / np.float32(255) - MEAN) / STD).view(np.uint32)
    expected = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16  # to the nearest, ties to even
    np.testing.assert_array_equal(images.view(np.uint16), expected.astype(np.uint16))


def test_centre_crop_and_certain_flip(data, reference):
    images, _, ids = collect(loader_of(data, center_crop=(16, 20), flip=1.0))
    np.testing.assert_array_equal(images, reference[0][ids][:, 8:24, 6:26][:, :, ::-1])


def test_flip_true_is_half_of_the_samples(data, reference):
    images, _, ids = collect(loader_of(data, flip=True, batch_size=60))
    straight = (images == reference[0][ids]).all((1, 2, 3))
    flipped = (images == reference[0][ids][:, :, ::-1]).all((1, 2, 3))
    assert (straight ^ flipped).all() and 15 <= straight.sum() <= 45


def test_random_crops_are_parts_of_the_sample(data, reference):
    images, _, ids = collect(loader_of(data, random_crop=24))
    places = set()
    for image, i in zip(images, ids):
        places |= {
            (top, left)
            for top in range(9)
            for left in range(9)
            if np.array_equal(image, reference[0][i, top : top + 24, left : left + 24])
        }
    assert len(places) > 20


def test_the_same_seed_gives_the_same_batches_whatever_does_the_work(data):
    options = {"random_resized_crop": 20, "flip": 0.5, "dtype": "float32", "seed": 3}
    expected = collect(loader_of(data, **options), epoch=2)
    for other in ({"threads": 1}, {"prefetch": 1}, {"transport": "staged"}):
        for ours, theirs in zip(expected, collect(loader_of(data, **options, **other), epoch=2)):
            np.testing.assert_array_equal(ours, theirs)
    ranks = [
        collect(loader_of(data, **{**options, "batch_size": 4}, rank=rank, world_size=2), epoch=2)
        for rank in range(2)
    ]
    halves = [part.reshape(-1, 4, *part.shape[1:]) for rank in ranks for part in rank[:1]]
    np.testing.assert_array_equal(np.concatenate(halves, 1).reshape(expected[0].shape), expected[0])
    assert not np.array_equal(expected[2], collect(loader_of(data, **{**options, "seed": 4}), epoch=2)[2])


def test_tails(data):
    dropped = loader_of(data, batch_size=16)
    assert len(dropped) == 3 == len(list(dropped.epoch(0)))
    padded = list(loader_of(data, batch_size=16, tail="pad").epoch(0))
    assert (
        [int(batch.mask.sum()) for batch in padded] == [16, 16, 16, 12]
        and padded[-1].mask.dtype == bool
        and padded[-1].ids.dtype == np.int64
    )
    wrapped = list(loader_of(data, batch_size=16, tail="wrap").epoch(0))
    assert [int(batch.mask.sum()) for batch in wrapped] == [16] * 4
    assert list(wrapped[-1].ids[-4:]) == list(wrapped[0].ids[:4])


@pytest.mark.parametrize("world_size", [1, 3, 7])
def test_the_short_tail_has_every_sample_once(data, reference, world_size):
    seen, lengths = [], set()
    for rank in range(world_size):
        loader = loader_of(data, batch_size=11, drop_last=False, rank=rank, world_size=world_size)
        lengths.add(len(loader))
        batches = list(
            loader_of(data, batch_size=11, tail="short", rank=rank, world_size=world_size, prefetch=8).epoch(
                1
            )
        )
        assert len(batches) == len(loader)
        for batch in batches:
            rows = len(batch.labels)
            assert (
                batch.images.shape[0]
                == batch.mask.sum()
                == len(batch.ids)
                == len(batch.column("labels"))
                == rows
                <= 11
            )
            np.testing.assert_array_equal(batch.images, reference[0][batch.ids])
            seen += batch.ids.tolist()
    assert sorted(seen) == list(range(SAMPLES)) and lengths == {-(-SAMPLES // (11 * world_size))}


def test_drop_last_and_the_lengths_of_all_tails(data):
    for options, length in (
        ({}, 3),
        ({"drop_last": True}, 3),
        ({"drop_last": False}, 4),
        ({"tail": "short"}, 4),
        ({"tail": "pad"}, 4),
        ({"tail": "wrap"}, 4),
        ({"tail": "pad", "drop_last": False}, 4),
        ({"tail": "short", "batch_size": 100}, 1),
    ):
        loader = loader_of(data, **{"batch_size": 16, **options})
        assert (
            len(loader)
            == length
            == len(loader.epoch(0))
            == len(iter(loader))
            == sum(1 for _ in loader.epoch(1))
        ), options
        assert loader.drop_last == (length == 3)


def test_the_names_that_scripts_know(data):
    loader = loader_of(data)
    batch = next(iter(loader))
    assert batch.images is batch[0] and batch.labels is batch[1]
    assert loader.batch_size == 8 and loader.dataset is loader.data is data
    assert data.class_to_idx == {"ant": 0, "bee": 1, "cow": 2}
    assert data.targets == [0] * 20 + [1] * 20 + [2] * 20 and type(data.targets[0]) is int


def test_a_batch_says_what_it_is(data):
    for index, batch in enumerate(loader_of(data).epoch(4)):
        images, labels = batch
        assert (batch.epoch, batch.batch_index) == (4, index) and isinstance(batch, tuple) and len(batch) == 2
        assert (
            type(batch).index is tuple.index and type(batch).count is tuple.count
        )  # the tuple's own methods
        np.testing.assert_array_equal(batch.column("labels"), labels)
        with pytest.raises(KeyError, match="boxes"):
            batch.column("boxes")


# --- memory -------------------------------------------------------------------------------------------------


def test_a_kept_batch_is_not_filled_again(data, reference):
    loader = loader_of(data, prefetch=3)  # four: two are kept, the loop holds one while it takes the next
    kept = [(batch[0], batch.ids) for batch, _ in zip(loader.epoch(0), range(2))]
    for epoch in range(1, 4):
        for _ in loader.epoch(epoch):
            pass
    for images, ids in kept:
        np.testing.assert_array_equal(images, reference[0][ids])


def test_memory_of_a_batch_that_is_gone_is_filled_again(data):
    loader = loader_of(data, prefetch=2)
    places = {batch[0].__array_interface__["data"][0] for epoch in range(5) for batch in loader.epoch(epoch)}
    assert len(places) == 3


def test_holding_all_batches_is_an_error_and_letting_go_goes_on(data):
    loader = loader_of(data, prefetch=2)
    kept, epoch = [], loader.epoch(0)
    with pytest.raises(
        sl.ResourceError, match=r"all 3 batches of the ring are held: let go of their arrays \(keep copies"
    ):
        for images, _ in epoch:
            kept.append(images)
    assert len(kept) == 3
    view = kept[0][2:4].reshape(-1)  # shares the memory: the batch stays held
    del kept[0], images
    with pytest.raises(RuntimeError, match="held"):
        next(epoch)
    del view
    assert next(epoch).batch_index == 3


def test_batches_in_reference_cycles_are_found(data):
    class Node:
        pass

    loader = loader_of(data, prefetch=1)
    gc.disable()
    try:
        for images, _ in loader.epoch(0):
            node = Node()
            node.itself, node.images = node, images
            del node, images
    finally:
        gc.enable()


def test_kept_labels_hold_nothing(data):
    loader = loader_of(data, prefetch=1)
    labels = [labels for _, labels in loader.epoch(0)]
    np.testing.assert_array_equal(np.concatenate(labels), collect(loader, 0)[1])


def test_batches_outlive_loader_and_data_set(folder, reference):
    def last():
        with loader_of(sl.Dataset(folder)) as loader:
            return list(zip(loader.epoch(0), range(2)))[-1][0]

    batch = last()
    gc.collect()
    np.testing.assert_array_equal(batch[0], reference[0][batch.ids])
    images = loader_of(folder, shuffle=False).epoch(0).__next__()[0]
    gc.collect()
    np.testing.assert_array_equal(images, reference[0][:8])


def test_a_batch_may_be_written_to(data, reference):
    loader = loader_of(data, prefetch=1, shuffle=False, batch_size=10)
    for epoch in range(2):
        for images, _ in loader.epoch(epoch):
            images[:] = 255
    del images
    np.testing.assert_array_equal(collect(loader, 0)[0], reference[0])


# --- epochs and state ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("stop", [0, 1, 4, 7])
def test_a_state_goes_on_where_it_was(data, stop):
    whole = loader_of(data, seed=5)
    expected = ids_of(whole, 1)
    first = loader_of(data, seed=5)
    seen = []
    for _ in range(1):
        epoch = first.epoch(1)
        for _ in range(stop):
            seen += [int(i) for i in next(epoch).ids]
    state = json.loads(json.dumps(first.state_dict()))
    assert (state["epoch"], state["batch"]) == (1, stop)
    second = loader_of(data, seed=5, prefetch=2)
    second.load_state_dict(state)
    rest = second.epoch(1)
    assert len(rest) == len(second) - stop
    seen += [int(i) for batch in rest for i in batch.ids]
    assert seen == expected
    assert ids_of(second, 2) == ids_of(whole, 2)


def test_iterating_the_loader_goes_from_epoch_to_epoch(data):
    loader = loader_of(data)
    assert [[batch.epoch for batch in loader][-1] for _ in range(3)] == [0, 1, 2]
    other = loader_of(data)
    for batch in loader:
        if batch.batch_index == 2:
            break
    other.load_state_dict(loader.state_dict())
    assert [(batch.epoch, batch.batch_index) for batch in other] == [(3, i) for i in range(3, 7)]
    other.load_state_dict(other.state_dict())  # at the end of epoch 3
    assert {batch.epoch for batch in other} == {4}


def test_states_of_something_else_are_refused(data, make):
    state = loader_of(data).state_dict()
    for options in ({"seed": 1}, {"batch_size": 4}, {"world_size": 2, "rank": 0}):
        with pytest.raises(ValueError, match="cannot resume"):
            loader_of(data, **options).load_state_dict(state)
    with pytest.raises(ValueError):
        loader_of(data).load_state_dict({**state, "state": "rubbish"})
    with pytest.raises(sl.InvalidArgumentError, match=r"state is \{\}; expected what state_dict\(\) returns"):
        loader_of(data).load_state_dict({})


def test_an_iterator_ends_when_another_epoch_begins(data):
    loader = loader_of(data)
    first = loader.epoch(0)
    next(first)
    loader.epoch(1)
    with pytest.raises(ValueError, match="another epoch"):
        next(first)


def test_an_epoch_begins_anew_whenever_it_is_asked_for(data):
    loader = loader_of(data)
    expected = ids_of(loader, 3)
    for _ in range(2):
        next(loader.epoch(3))
        assert ids_of(loader, 3) == expected
    next(loader.epoch(3))
    loader.load_state_dict(loader.state_dict())
    assert next(loader.epoch(3)).batch_index == 1
    assert next(loader.epoch(3)).batch_index == 0
    with pytest.raises(ValueError, match="epoch is -1; expected a whole number from 0"):
        loader.epoch(-1)


def test_iterating_begins_with_the_first_batch_only(data):
    loader = loader_of(data)
    first = iter(loader)
    for _ in range(3):
        iter(loader)  # as frameworks do, to see whether it can be iterated
    assert [(batch.epoch, batch.batch_index) for batch in first] == [(0, i) for i in range(7)]
    second, third = iter(loader), iter(loader)
    assert next(second).epoch == 1
    for _ in range(2):
        iter(loader)
    assert next(second).batch_index == 1 and len(second) == 5 and len(third) == 7
    assert next(third).epoch == 2
    with pytest.raises(ValueError, match="another epoch"):
        next(second)


def test_set_epoch_is_honoured(data):
    loader = loader_of(data)
    expected = {epoch: ids_of(loader_of(data), epoch) for epoch in (0, 3, 4)}
    batches = iter(loader)
    loader.set_epoch(3)  # before the first batch
    assert [int(i) for batch in batches for i in batch.ids] == expected[3]
    assert [int(i) for batch in loader for i in batch.ids] == expected[4]  # the next one
    loader.sampler.set_epoch(0)
    batches = iter(loader)
    first = next(batches)
    loader.sampler.set_epoch(4)  # of the next iteration
    assert first.epoch == 0 and {batch.epoch for batch in batches} == {0}
    assert [int(i) for batch in loader for i in batch.ids] == expected[4]
    for _ in range(2):  # the same again, as an evaluation does
        loader.set_epoch(3)
        assert [int(i) for batch in loader for i in batch.ids] == expected[3]
    with pytest.raises(ValueError, match="epoch is -1; expected a whole number from 0"):
        loader.set_epoch(-1)


@pytest.mark.parametrize("by", ["argument", "set_epoch"])
def test_another_epoch_than_the_states_is_refused(data, by):
    def run(loader, epoch):
        if by == "argument":
            return loader.epoch(epoch)
        loader.set_epoch(epoch)
        batches = iter(loader)
        len(batches)
        return batches

    inside = loader_of(data)
    batches = inside.epoch(5)
    next(batches)
    state = inside.state_dict()
    loader = loader_of(data)
    loader.load_state_dict(state)
    for wrong in (0, 4, 6):
        with pytest.raises(
            ValueError,
            match=rf"epoch {wrong} was asked for, .* in epoch 5, before batch 1 of 7: loader.epoch\(5\)",
        ):
            next(run(loader, wrong))
    assert [batch.batch_index for batch in run(loader, 5)] == [1, 2, 3, 4, 5, 6]
    assert next(run(loader, 0)).epoch == 0  # taken up: any epoch again

    for _ in batches:
        pass
    state = inside.state_dict()
    loader.load_state_dict(state)
    for wrong in (0, 4, 7):
        with pytest.raises(
            ValueError,
            match=rf"epoch {wrong} was asked for, .* at the end of epoch 5: go on with loader.epoch\(6\)",
        ):
            next(run(loader, wrong))
    assert list(run(loader, 5)) == []
    assert next(run(loader, 6)).epoch == 6
    loader.load_state_dict(state)
    assert next(run(loader, 6)).batch_index == 0


def test_a_loaded_state_overrides_an_earlier_set_epoch(data):
    loader = loader_of(data)
    next(loader.epoch(5))
    other = loader_of(data)
    other.set_epoch(2)
    other.load_state_dict(loader.state_dict())
    assert len(iter(other)) == 6
    assert [(batch.epoch, batch.batch_index) for batch in other][:1] == [(5, 1)]


def test_stats(data):
    loader = loader_of(data)
    ids_of(loader)
    stats = loader.stats()
    assert (stats.batches, stats.samples) == (7, 56) and stats.bytes >= 56 * SIDE * SIDE * 3
    assert (
        stats.transport == "mapped" and stats.reason and stats.device_bytes > 0 and stats.starved_seconds >= 0
    )


# --- options ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "piece"),
    [
        ({"batch_size": 0}, "batch_size"),
        ({"batch_size": "8"}, "batch_size is '8'"),
        ({"batch_size": 61}, 'smaller batch_size, or tail="short" (drop_last=False)'),
        ({"prefetch": 65}, "prefetch is 65; it must be 0 to 64"),
        ({"prefetch": -1}, "prefetch is -1"),
        ({"device": "gpu"}, "device is 'gpu'"),
        ({"dtype": "int8"}, "dtype is 'int8'"),
        ({"dtype": float}, "dtype is <class 'float'>; expected"),
        ({"tail": "pad", "drop_last": True}, "tail is 'pad' and drop_last is True: name one"),
        ({"layout": "chw"}, "layout"),
        ({"transport": "fast"}, "transport"),
        ({"tail": "keep"}, "tail"),
        ({"verify": "yes"}, "verify"),
        ({"partition": "shards"}, "partition"),
        ({"framework": "tensorflow"}, "framework is 'tensorflow'"),
        ({"framework": "cupy"}, "cupy"),
        ({"center_crop": 33}, "crop of 33 x 33 is larger than .*: lower center_crop$"),
        ({"random_crop": (8, 33)}, "lower random_crop$"),
        (
            {"dtype": "uint8", "mean": (0, 0, 0)},
            "mean and std apply to samples .* float16, bfloat16 or float32",
        ),
        ({"world_size": 3, "rank": 3}, "rank is 3 and world_size 3: rank must be 0 to world_size - 1"),
        ({"center_crop": 0}, "center_crop is 0; expected a size from 1 on"),
        ({"center_crop": (1, 2, 3)}, "height, width"),
        (
            {"center_crop": 8, "random_crop": 8},
            "center_crop is 8 and random_crop is 8; they exclude each other",
        ),
        ({"flip": 1.5}, "^flip is 1.5"),
        ({"flip": "left"}, "flip is 'left'"),
        ({"scale": (0.5,), "random_resized_crop": 8}, "scale"),
        ({"rank": 1}, "rank and world_size go together"),
        ({"rank": 2, "world_size": 2}, "rank"),
        ({"window_shards": 2, "shuffle": False}, "window_shards"),
        ({"seed": -1}, "seed is -1"),
    ],
)
def test_bad_options_are_value_errors_that_name_them(data, options, piece):
    with pytest.raises(ValueError, match=piece.replace("(", r"\(").replace(")", r"\)")) as caught:
        loader_of(data, **options)
    assert isinstance(caught.value, sl.InvalidArgumentError)


def test_unknown_options_are_type_errors(data):
    with pytest.raises(TypeError, match="batchsize"):
        sl.Loader(data, batchsize=3)


def test_rank_and_world_size_from_the_environment(data, monkeypatch):
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "3")
    loader = loader_of(data, shuffle=False, batch_size=4)
    assert (loader.rank, loader.world_size, len(loader)) == (1, 3, 5)
    assert list(next(iter(loader)).ids) == [4, 5, 6, 7]
    assert loader_of(data, rank=0, world_size=1).world_size == 1
    monkeypatch.setenv("WORLD_SIZE", "many")
    with pytest.raises(ValueError, match="WORLD_SIZE is 'many'"):
        loader_of(data)


def test_rank_and_world_size_are_those_at_the_first_epoch(data, monkeypatch):
    loader = loader_of(data, shuffle=False, batch_size=4, tail="short")
    loader.load_state_dict(loader_of(data, shuffle=False, batch_size=4, tail="short").state_dict())
    assert (loader.rank, loader.world_size, len(loader)) == (0, 1, 15)
    loader = loader_of(data, shuffle=False, batch_size=4, tail="short")
    given = loader_of(data, shuffle=False, batch_size=4, tail="short", rank=0, world_size=1)
    batches = iter(loader)
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "3")
    assert (loader.rank, loader.world_size, len(loader), len(batches)) == (1, 3, 5, 5)
    monkeypatch.setenv("RANK", "2")
    assert list(next(batches).ids) == [8, 9, 10, 11]
    monkeypatch.setenv("RANK", "0")  # decided
    assert next(batches).ids[0] == 20 and loader.rank == 2 and next(iter(loader)).ids[0] == 8
    assert next(iter(given)).ids[0] == 0 and given.world_size == 1


def test_a_world_size_without_a_rank_waits_for_the_rank_until_an_epoch_begins(data, monkeypatch):
    """Lightning sets WORLD_SIZE for the processes that it starts, and says the rank by torch.distributed."""
    monkeypatch.setenv("WORLD_SIZE", "3")
    monkeypatch.delenv("RANK", raising=False)
    late, named = loader_of(data, shuffle=False, batch_size=4), loader_of(data, shuffle=False, batch_size=4)
    assert (late.world_size, len(late)) == (3, 5)
    with pytest.raises(
        sl.InvalidArgumentError,
        match="RANK is None and WORLD_SIZE is '3'; expected two whole numbers.*torch.distributed, "
        "which is not initialised",
    ):
        late.epoch(0)
    with pytest.raises(sl.InvalidArgumentError, match="RANK is None"):
        next(iter(late))
    monkeypatch.setenv("RANK", "2")
    assert list(next(iter(named)).ids) == [8, 9, 10, 11] and list(next(late.epoch(0)).ids) == [8, 9, 10, 11]
    monkeypatch.delenv("RANK")
    monkeypatch.setenv("WORLD_SIZE", "1")
    assert next(iter(loader_of(data, shuffle=False, batch_size=4))).ids[0] == 0
    for wrong in ("0", "many", ""):
        monkeypatch.setenv("WORLD_SIZE", wrong)
        with pytest.raises(sl.InvalidArgumentError, match="WORLD_SIZE is"):
            loader_of(data)


def test_a_state_that_was_loaded_survives_a_later_rank(data, monkeypatch):
    first = loader_of(data, batch_size=8)
    rest = first.epoch(1)
    seen = [next(rest).ids for _ in range(2)]
    state, expected = first.state_dict(), [int(i) for batch in rest for i in batch.ids]
    del seen
    got = []
    for rank in range(2):
        monkeypatch.setenv("RANK", str(rank))
        monkeypatch.setenv("WORLD_SIZE", "2")
        loader = loader_of(data, batch_size=4)
        loader.load_state_dict(state)
        monkeypatch.setenv("RANK", str(1 - rank))
        got.append([[int(i) for i in batch.ids] for batch in loader])
    merged = [i for halves in zip(got[1], got[0]) for half in halves for i in half]
    assert merged == expected


def test_cuda_without_a_device_is_a_clear_error(data):
    if sl.cuda_device_count() > 0:
        pytest.skip("there is a device")
    no_driver = sl.has_cuda and not os.path.exists("/proc/driver/nvidia/version")
    with pytest.raises(sl.UnsupportedError, match="no NVIDIA driver is loaded" if no_driver else "CUDA"):
        loader_of(data, device="cuda:0", framework=None)


def test_what_a_gpu_lacks_is_said_before_a_framework_is_asked(data, monkeypatch):
    from shardloader._base import arrays

    class Core:
        has_cuda, count = False, 0

        def cuda_device_count(self):
            return self.count

    core = Core()
    monkeypatch.setattr(arrays, "_core", core)
    for framework in ("torch", "cupy", "jax"):
        core.has_cuda = False
        with pytest.raises(
            sl.UnsupportedError, match='device "cuda:0": this build of shardloader has no CUDA.*device="cpu"'
        ):
            loader_of(data, device="cuda", framework=framework)
        core.has_cuda = True
        with pytest.raises(
            sl.UnsupportedError, match='device "cuda:0": there is no GPU that this process can use.*driver'
        ):
            loader_of(data, device="cuda", framework=framework)


def test_cpu_0_is_the_host(data):
    loader = loader_of(data, device="cpu:0", framework="numpy")
    assert loader.device == "cpu" and next(iter(loader)).to("cpu:0") is not None
    with pytest.raises(ValueError, match="device is 'cpu:1'"):
        loader_of(data, device="cpu:1")


def test_the_layout_is_the_frameworks_and_not_the_states(data, monkeypatch):
    from shardloader import _loader

    numpys = loader_of(data)
    next(iter(numpys))
    monkeypatch.setattr(_loader, "unnamed_layout", lambda arrays: "nchw")  # as with PyTorch
    torchs = loader_of(data)
    assert torchs.shape == (3, SIDE, SIDE)
    torchs.load_state_dict(numpys.state_dict())
    assert torchs.shape == next(iter(torchs))[0].shape[1:] == (3, SIDE, SIDE)
    numpys.load_state_dict(torchs.state_dict())
    assert numpys.shape == next(iter(numpys))[0].shape[1:] == (SIDE, SIDE, 3)
    named = loader_of(data, layout="nhwc")
    next(iter(named))
    torchs.load_state_dict(named.state_dict())
    assert torchs.shape == (SIDE, SIDE, 3)  # that was asked for, and the state has it


# --- threads ------------------------------------------------------------------------------------------------


def test_threads_share_a_loader(data):
    loader = loader_of(data, batch_size=2, prefetch=8)
    for epoch in range(5):
        batches, seen = loader.epoch(epoch), []

        def work():
            for batch in batches:
                seen.extend(int(i) for i in batch.ids)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(seen) == list(range(SAMPLES))


def test_more_threads_than_batches_are_told_what_prefetch_must_be(data):
    loader = loader_of(data, batch_size=2, prefetch=1)
    batches, held, errors, turn, over = loader.epoch(0), [], [], threading.Lock(), threading.Barrier(3)

    def work():
        with turn:
            try:
                held.append(next(batches))
            except sl.ResourceError as error:
                errors.append(str(error))
        over.wait()

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (
        len(held) == 2
        and "3 threads share this loader" in errors[0]
        and "prefetch must be at least 3" in errors[0]
    )


def test_after_the_last_epoch_there_is_none(data):
    loader = loader_of(data)
    for _ in loader.epoch(2**64 - 1):
        pass
    with pytest.raises(sl.InvalidArgumentError, match="18446744073709551615 was the last"):
        next(iter(loader))
    next(loader.epoch(0))


def test_what_is_asked_for_says_what_to_do_instead(data, tmp_path):
    images = [(str(i), np.full((8, 8, 3), i, np.uint8)) for i in range(8)]
    sl.write(images, tmp_path / "zstd", squash=(8, 8), dtype="uint8", codec="zstd")
    with pytest.raises(sl.UnsupportedError, match="transport mapped: .*codec zstd:3.*: use auto or staged"):
        loader_of(tmp_path / "zstd", transport="mapped")
    with sl.Writer(
        tmp_path / "field",
        squash=(8, 8),
        dtype="uint8",
        columns={"depth": sl.ImageField("uint8", 8, 8, 1, role="image", codec="zstd")},
    ) as writer:
        for name, image in images:
            writer.add(name, image, 0, depth=image[..., :1])
    with pytest.raises(sl.UnsupportedError, match="transport mapped: .*field depth .*: use auto or staged"):
        loader_of(tmp_path / "field", transport="mapped", fields={"depth": "stored"})
    memory = sl.MemoryOptions(pinned_bytes=1000)
    how = {"transport": "staged", "batch_size": 2, "memory": memory, "together": 3}
    with pytest.raises(sl.ResourceError, match=r"6 samples \(together=3 batches of 2\).*or lower together"):
        loader_of(tmp_path / "zstd", **how)


def test_cancel_and_what_is_asked_of_a_loader_wait_for_nobody(data):
    loader, given = loader_of(data), loader_of(data, rank=0, world_size=1)
    next(loader.epoch(0))
    answers = []

    def ask():
        answers.append(
            (
                len(loader),
                loader.rank,
                loader.stats().batches,
                loader.state_dict()["batch"],
                len(given),
                given.rank,
            )
        )
        loader.cancel()
        loader.close()

    with (
        loader._engine.lock,
        given._engine.lock,
    ):  # as a thread that begins an epoch, and waits for the one before to let go
        thread = threading.Thread(target=ask, daemon=True)
        thread.start()
        thread.join(60)
    assert answers == [(7, 0, 1, 1, 7, 0)] and not thread.is_alive()


def test_cancel_and_close(data):
    loader = loader_of(data)
    batches = loader.epoch(0)
    next(batches)
    loader.cancel()
    with pytest.raises(sl.CancelledError, match="cancelled"):
        next(batches)
    assert len(ids_of(loader, 0)) == 56
    loader.close()
    loader.close()
    for call in (
        lambda: loader.epoch(1),
        loader.stats,
        loader.state_dict,
        lambda: loader.load_state_dict({"state": "x"}),
    ):
        with pytest.raises(ValueError):
            call()
