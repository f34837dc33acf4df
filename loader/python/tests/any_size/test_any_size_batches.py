"""Samples of any size: the same batches, however they are loaded."""

import json

import numpy as np
import pytest

import shardloader as sl
from any_size import CODECS, FILL, center, contents, cover, letterbox, options_of, samples, shape

WAYS = {
    "random_resized_crop": {"random_resized_crop": 40, "flip": True, "dtype": "float32"},
    "cover": {"cover": (40, 50), "random_crop": (40, 50)},
    "padded": {"padded": 8, "flip": 0.5},
    "patches": {"patch": 8, "max_tokens": 20, "flip": 0.5},
    "views": {"views": [sl.Augment(random_resized_crop=24), sl.Augment(letterbox=(20, 30))]},
    "operations": {"augment": sl.Augment.rand_augment(2, 9, random_resized_crop=32, flip=0.5)},
    "buckets": {"buckets": [(40, 40), (32, 50), (50, 32), (16, 100)], "flip": 0.5},
    "pixels": {"buckets": [(40, 40), (32, 50), (16, 100)], "bucket_crop": "random", "batch_pixels": 7000},
}


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("way", WAYS)
def test_batches_are_the_same_for_all_transports_threads_and_bounds_of_memory(way, codec, sets):
    def of(**options):
        loader = sl.Loader(sets[codec], **options_of({**WAYS[way], **options}))
        found = []
        for batch in loader.epoch(1):
            parts = [*batch.views, batch.labels, batch.ids, batch.sizes]
            found.append([batch.images.shape, *(np.array(part).tobytes() for part in parts)])
        return found

    expected = of()
    assert len(expected) > 5
    for transport in ("staged", "direct", *(["mapped"] if codec != "zstd" else [])):
        for threads in (1, 3):
            assert of(transport=transport, threads=threads) == expected, (transport, threads)
    largest = 640 * 480 * 3
    for transport in ("auto", "staged"):
        tiny = sl.MemoryOptions(batch_bytes=largest)
        assert of(transport=transport, memory=tiny, verify="always", prefetch=1) == expected
    with pytest.raises(
        sl.ResourceError, match=f"batch_bytes is {largest - 1}.*{largest}.*raise it, or leave it out"
    ):
        of(memory=sl.MemoryOptions(batch_bytes=largest - 1))


@pytest.mark.parametrize("way", WAYS)
def test_a_state_in_the_middle_goes_on_with_the_same_batches(way, sets):
    expected = contents(sets["packed"], 2, **WAYS[way])
    loader = sl.Loader(sets["packed"], **options_of(WAYS[way]))
    batches = loader.epoch(2)
    for number in range(len(expected)):
        state = json.loads(json.dumps(loader.state_dict()))
        assert state["batch"] == number
        # Views are those of the state; buckets are not views.
        view = WAYS[way] if "buckets" in WAYS[way] else {"center_crop": 8}
        resumed = sl.Loader(sets["packed"], **options_of(view))
        resumed.load_state_dict(state, keep_views=False)
        rest = resumed.epoch(2)
        assert len(rest) == len(expected) - number
        assert contents(None, batches=rest) == expected[number:]
        next(batches)


def test_views_of_a_state_are_restored_with_all_their_options(sets):
    options = {"letterbox": (30, 41), "fill": FILL, "filter": "bicubic", "flip": 0.5, "layout": "nchw"}
    for view in (
        options,
        {"longest": 33, "padded": 8, "fill": 7, "filter": "box"},
        {"cover": 20, "random_crop": 9},
    ):
        loader = sl.Loader(sets["none"], **options_of(view))
        batches = loader.epoch(0)
        next(batches)
        other = sl.Loader(sets["none"], **options_of({"center_crop": 8}))
        with pytest.warns(UserWarning, match="other views"):
            other.load_state_dict(loader.state_dict())
        assert other.shape == loader.shape
        assert contents(None, batches=other.epoch(0)) == contents(sets["none"], **view)[1:]


def test_views_can_be_replaced(sets):
    loader = sl.Loader(sets["none"], **options_of({"random_resized_crop": 24}))
    next(loader.epoch(0))
    for view in ({"padded": 4, "longest": 30}, {"letterbox": (20, 30)}, {"shortest": 30, "center_crop": 20}):
        loader.set_augment(sl.Augment(**view))
        assert contents(None, batches=loader.epoch(3)) == contents(sets["none"], 3, **view)
    with pytest.raises(sl.InvalidArgumentError, match="shortest to 8.*add a crop"):
        loader.set_augment(sl.Augment(shortest=8))
    assert contents(None, batches=loader.epoch(4)) == contents(sets["none"], 4, **view)


def test_ranks_divide_the_batches(sets):
    view = {"letterbox": (20, 30)}
    whole = contents(sets["none"], batch_size=6, **view)
    ranks = [contents(sets["none"], batch_size=2, rank=rank, world_size=3, **view) for rank in range(3)]
    for batch, *parts in zip(whole, *ranks):
        for field in range(1, 5):
            assert batch[field] == b"".join(part[field] for part in parts)


def test_parts_and_joined_sets_are_of_any_size_too(sets, pictures):
    data = sl.Dataset(sets["none"])
    few = data.select(range(0, len(data), 3))
    for sample, image, _, _ in samples(few, cover=(20, 31)):
        np.testing.assert_array_equal(image, np.asarray(cover(pictures[3 * sample], (20, 31))))
    both = sl.concat(few, sets["packed"])
    loader = sl.Loader(both, **options_of({"cover": (20, 31)}))
    found = {
        sample: image.copy()
        for batch in loader.epoch(0)
        for sample, image in zip(batch.ids.tolist(), batch.images)
    }
    assert len(found) == len(few) + len(data)
    for sample, image in found.items():
        whole = pictures[3 * sample if sample < len(few) else sample - len(few)]
        np.testing.assert_array_equal(image, np.asarray(cover(whole, (20, 31))))


def test_several_views_have_their_own_sizes(sets, pictures):
    views = [sl.Augment(letterbox=(20, 30)), sl.Augment(padded=8), sl.Augment(shortest=30, center_crop=20)]
    for sample, _, batch, row in samples(sets["packed"], views=views):
        whole = pictures[sample]
        np.testing.assert_array_equal(batch.views[0][row], np.asarray(letterbox(whole, (20, 30))))
        np.testing.assert_array_equal(batch.views[1][row][: whole.height, : whole.width], np.asarray(whole))
        assert tuple(batch.column("view_sizes", 1)[row]) == (whole.height, whole.width)
        np.testing.assert_array_equal(
            batch.views[2][row], np.asarray(center(shape("shortest", whole, 30), 20, 20))
        )
