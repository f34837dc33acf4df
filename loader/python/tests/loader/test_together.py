"""Batches that are made as one are those that are made one by one."""

import numpy as np
import pytest

import shardloader as sl

OPTIONS = {"batch_size": 7, "flip": True, "seed": 3, "framework": "numpy"}


def columns_of(batch):
    return [np.copy(array) for array in (batch[0], batch[1], batch.ids, batch.mask)]


def epoch_of(data, number=1, skip=0, **options):
    loader = sl.Loader(data, **{**OPTIONS, **options})
    batches = loader.epoch(number)
    return [(batch.batch_index, columns_of(batch)) for batch in batches][skip:]


def assert_equal(one, other):
    assert [index for index, _ in one] == [index for index, _ in other]
    for (_, arrays), (_, others) in zip(one, other, strict=True):
        for array, same in zip(arrays, others, strict=True):
            np.testing.assert_array_equal(array, same)


@pytest.mark.parametrize("together", [2, 3, 64])
@pytest.mark.parametrize("tail", ["drop", "pad", "wrap", "short"])
def test_they_are_the_same(data, together, tail):
    assert_equal(epoch_of(data, tail=tail, together=together), epoch_of(data, tail=tail, together=1))


@pytest.mark.parametrize("transport", ["staged", "resident", "mapped"])
def test_they_are_the_same_by_every_transport(data, transport):
    options = {"transport": transport, "random_resized_crop": 16, "dtype": "float32"}
    assert_equal(epoch_of(data, together=5, **options), epoch_of(data, together=1, **options))


def test_a_state_between_them_goes_on_where_it_was(data):
    whole = epoch_of(data, together=1)
    for taken in range(1, len(whole)):
        loader = sl.Loader(data, **OPTIONS, together=4)
        batches = loader.epoch(1)
        for _ in range(taken):
            next(batches)
        resumed = sl.Loader(data, **OPTIONS, together=3)
        resumed.load_state_dict(loader.state_dict())
        rest = [(batch.batch_index, columns_of(batch)) for batch in resumed.epoch(1)]
        assert_equal(rest, whole[taken:])


def test_a_batch_is_kept_while_the_others_of_its_slot_come_and_go(data):
    whole = epoch_of(data, together=1)
    loader = sl.Loader(data, **OPTIONS, together=2, prefetch=2)
    kept = None
    for index, batch in enumerate(loader.epoch(1)):
        if index == 1:
            kept = batch
        np.testing.assert_array_equal(batch[0], whole[index][1][0])
        del batch
    np.testing.assert_array_equal(kept[0], whole[1][1][0])


def test_an_epoch_that_is_left_in_the_middle_of_them_begins_anew(data):
    whole = epoch_of(data, number=0, together=1)
    loader = sl.Loader(data, **OPTIONS, together=4)
    for left in (1, 2, 5, 0):
        batches = loader.epoch(0)
        for index in range(left):
            np.testing.assert_array_equal(next(batches)[0], whole[index][1][0])
    assert_equal([(batch.batch_index, columns_of(batch)) for batch in loader.epoch(0)], whole)


def test_stats_count_each_of_them(data):
    loader = sl.Loader(data, **OPTIONS, together=4)
    batches = loader.epoch(0)
    for taken in range(1, 7):
        next(batches)
        assert loader.stats().batches == taken
        assert loader.stats().samples == taken * 7


def test_labels_of_torch_are_copies_that_may_be_written_to(data):
    torch = pytest.importorskip("torch")
    whole = epoch_of(data, together=1)
    loader = sl.Loader(data, **{**OPTIONS, "framework": "torch"}, together=3)
    weight = torch.zeros(1, requires_grad=True)
    kept, losses = [], []
    for _, labels in loader.epoch(1):
        kept.append(labels)
        losses.append((weight * labels).sum())
        labels_of_next = labels.clone()
        assert labels_of_next.shape == labels.shape
    for labels, (_, arrays) in zip(kept, whole, strict=True):
        np.testing.assert_array_equal(labels.numpy(), arrays[1])
    kept[0].zero_()  # saved for no other batch's backward
    losses[1].backward()
    np.testing.assert_array_equal(kept[1].numpy(), whole[1][1][1])


@pytest.mark.parametrize("together", [-1, 65])
def test_bounds(data, together):
    with pytest.raises(sl.InvalidArgumentError, match=rf"together is {together}"):
        sl.Loader(data, **OPTIONS, together=together)


def test_labels_are_of_the_mode_in_which_their_batch_is_taken(data):
    torch = pytest.importorskip("torch")
    batches = iter(sl.Loader(data, **{**OPTIONS, "framework": "torch"}, together=4))
    with torch.inference_mode():
        assert next(batches)[1].is_inference()
    labels = next(batches)[1]
    assert not labels.is_inference()
    labels.add_(1)
    with torch.inference_mode():
        assert next(batches)[1].is_inference()
