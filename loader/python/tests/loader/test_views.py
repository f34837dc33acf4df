"""Views that are replaced while a loader is used, and states that know them."""

import json
import warnings

import numpy as np
import pytest

import shardloader as sl
from shardloader import ops

SIZES = (12, 18, 24)


@pytest.fixture(scope="module")
def data(folder):
    return folder


def size(side):
    return sl.Augment(
        random_resized_crop=side,
        flip=0.5,
        color_jitter=(0.4, 0.4, 0.4, 0.1),
        ops=[ops.affine(10, interpolation="bilinear")],
    )


def loader(data, side=SIZES[0], **options):
    options = {
        "batch_size": 6,
        "seed": 3,
        "framework": "numpy",
        "augment": size(side),
        "prefetch": 8,
        **options,
    }
    return sl.Loader(data, **options)


def images(batches):
    return [np.array(batch.images) for batch in batches]


def same(some, others):
    return len(some) == len(others) and all(
        a.dtype == b.dtype and a.shape == b.shape and (a == b).all() for a, b in zip(some, others)
    )


@pytest.fixture(scope="module")
def expected(data):
    """Of each epoch, by a loader that was made with its views."""
    return [images(loader(data, side).epoch(epoch)) for epoch, side in enumerate(SIZES)]


def test_progressive_resizing_goes_on_from_a_state_at_every_batch(data, expected):
    whole = loader(data)
    for epoch, side in enumerate(SIZES):
        whole.set_augment(size(side))
        assert whole.shape == (side, side, 3)
        seen, states = [], [whole.state_dict()]
        for batch in whole.epoch(epoch):
            seen.append(np.array(batch.images))
            states.append(json.loads(json.dumps(whole.state_dict())))
        assert same(seen, expected[epoch])
        for number, state in enumerate(states[1:], 1):
            resumed = loader(data)  # with the views of the first epoch
            resumed.load_state_dict(state, keep_views=False)
            assert resumed.shape == (side, side, 3)
            assert resumed.state_dict() == state
            assert same(images(resumed.epoch(epoch)), expected[epoch][number:])


def test_an_epoch_that_runs_keeps_its_views_and_the_next_one_has_none_of_them(data, expected):
    changing = loader(data)
    batches = changing.epoch(0)
    seen = images([next(batches)])
    changing.set_augment(size(7))
    changing.set_augment(size(SIZES[1]))  # the last call counts
    state = changing.state_dict()
    seen += images(batches)
    assert same(seen, expected[0]) and same(images(changing.epoch(1)), expected[1])
    resumed = loader(data, 5)
    resumed.load_state_dict(state, keep_views=False)
    assert same(images(resumed.epoch(0)), expected[0][1:]) and same(images(resumed.epoch(1)), expected[1])


def test_ranks_resume_with_the_views_of_the_state(data, expected):
    whole = loader(data, SIZES[1])
    batches = whole.epoch(1)
    next(batches)
    state = whole.state_dict()
    ranks = [loader(data, batch_size=2, rank=rank, world_size=3) for rank in range(3)]
    for rank in ranks:
        rank.load_state_dict(state, keep_views=False)
    parts = [images(rank.epoch(1)) for rank in ranks]
    assert same([np.concatenate(rows) for rows in zip(*parts)], expected[1][1:])


def test_number_dtype_and_layout_of_views_can_change(data):
    few, many = (
        [size(12)],
        [size(9), sl.Augment(center_crop=11, dtype="float16", layout="nchw", mean=(0, 0, 0), std=(1, 1, 1))],
    )
    changing = sl.Loader(data, batch_size=6, seed=3, framework="numpy", views=few)
    next(changing.epoch(0))
    changing.set_augment(*many)
    straight = sl.Loader(data, batch_size=6, seed=3, framework="numpy", views=many)
    for batch, other in zip(changing.epoch(1), straight.epoch(1)):
        assert same([np.array(view) for view in batch.views], [np.array(view) for view in other.views])
        assert batch.views[1].shape == (6, 3, 11, 11) and batch.views[1].dtype == np.float16
    changing.set_augment(None)
    assert len(next(changing.epoch(2)).views) == 1 and changing.shape == data_shape(data)
    geometry = changing.geometry(0)
    assert geometry.size == data_shape(data)[:2]
    with pytest.raises(sl.InvalidArgumentError, match="view 1 of a loader with 1"):
        changing.geometry(0, view=1)


def data_shape(data):
    return tuple(sl.Dataset(data).shape)


def test_a_state_can_be_loaded_with_other_views(data, expected):
    first = loader(data)
    batches = first.epoch(1)
    next(batches)
    next(batches)
    state = first.state_dict()
    other = loader(data, SIZES[1])
    other.load_state_dict(state, keep_views=True)
    assert other.shape == (SIZES[1],) * 2 + (3,) and same(images(other.epoch(1)), expected[1][2:])
    # A state of a version whose states have no views.
    numbers = state["state"].split(" views ")[0].replace("shard-loader 4", "shard-loader 3")
    old = loader(data, SIZES[1])
    old.load_state_dict({**state, "state": numbers})
    assert same(images(old.epoch(1)), expected[1][2:])


def test_views_of_a_state_that_this_loader_was_not_made_with_are_restored_with_a_warning(data):
    first = loader(data)
    next(first.epoch(1))
    state = first.state_dict()
    other = loader(data, SIZES[1])
    with pytest.warns(UserWarning, match="taken with other views .* keep_views=True"):
        other.load_state_dict(state)
    assert same(images(other.epoch(1)), images(loader(data).epoch(1))[1:])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loader(data).load_state_dict(state)  # the same views
        loader(data, SIZES[1]).load_state_dict(state, keep_views=False)
        loader(data, SIZES[1]).load_state_dict(state, keep_views=True)


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda text: text + " 7", "the views of a loader state"),
        (lambda text: text.replace("color_jitter", "colour_jitter"), 'the word "colour_jitter"'),
        (lambda text: text.replace("views 1 1 3 12 12", "views 1 1 1 900 900"), "the crop of 900 x 900"),
        (lambda text: text.replace("views 1 ", "views 3 "), "version 1 to 2"),
        (lambda text: text[: text.index("color_jitter")], "the views of a loader state"),
    ],
)
def test_views_of_a_state_that_are_none_are_refused(data, expected, change, message):
    one = loader(data)
    state = one.state_dict()
    assert change(state["state"]) != state["state"]
    with pytest.raises(sl.InvalidArgumentError, match=message):
        one.load_state_dict({**state, "state": change(state["state"])})
    assert same(images(one.epoch(0)), expected[0])


def test_an_iterator_whose_loader_is_gone_goes_on_with_replaced_views(data, expected):
    one = loader(data)
    next(one.epoch(0))
    one.set_augment(size(SIZES[1]))
    batches = one.epoch(1)
    seen = images([next(batches)])
    del one  # its threads end; the next step makes them again
    assert same(seen + images(batches), expected[1])


def test_counters_go_on_when_views_are_replaced(data):
    one = loader(data)
    images(one.epoch(0))
    before = one.stats()
    one.set_augment(size(SIZES[2]))
    images(one.epoch(1))
    after = one.stats()
    assert (
        after.batches == 2 * before.batches
        and after.samples == 2 * before.samples
        and after.bytes > before.bytes
    )
    assert after.device_bytes > before.device_bytes
