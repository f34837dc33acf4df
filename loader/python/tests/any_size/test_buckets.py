"""Batches of samples of about the same aspect ratio."""

import numpy as np
import pytest

import shardloader as sl
from any_size import CODECS, SIZES, begin, contents, cover, placed, samples, shape, size_of

BUCKETS = [(48, 48), (40, 60), (60, 40), (24, 96)]


def bucket_of(width, height, buckets):
    """The bucket that keeps most of an image; of equal ones the larger, then the first."""

    def kept(bucket):
        sides = width * bucket[0], height * bucket[1]
        return min(sides) / max(sides)

    most = max(kept(bucket) for bucket in buckets)
    near = [bucket for bucket in buckets if kept(bucket) > most * (1 - 1e-12)]
    return max(near, key=lambda bucket: bucket[0] * bucket[1])


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("batch_pixels", [None, 4 * 48 * 48])
def test_a_batch_has_one_bucket(batch_pixels, codec, sets, pictures):
    options = {"buckets": BUCKETS, "batch_pixels": batch_pixels}
    rows, used = {}, set()
    for sample, image, batch, _ in samples(sets[codec], **options):
        bucket = bucket_of(*pictures[sample].size, BUCKETS)
        assert image.shape == (*bucket, 3)
        np.testing.assert_array_equal(image, np.asarray(cover(pictures[sample], bucket)))
        most = 5 if batch_pixels is None else max(1, batch_pixels // (bucket[0] * bucket[1]))
        assert len(batch.ids) <= most
        rows.setdefault(bucket, {})[batch.batch_index] = len(batch.ids)
        used.add(bucket)
    assert used == set(BUCKETS)
    for bucket, of in rows.items():  # all are full, but for one
        most = 5 if batch_pixels is None else max(1, batch_pixels // (bucket[0] * bucket[1]))
        assert sorted(of.values())[1:] == [most] * (len(of) - 1)


def test_bucket_crops_can_be_random(sets, pictures):
    options = {"buckets": BUCKETS, "bucket_crop": "random", "flip": True, "correspondence": True}
    begins = set()
    for sample, image, batch, row in samples(sets["packed"], **options):
        matrix, bucket = batch.column("correspondence")[row, 0], image.shape[:2]
        whole = shape("cover", pictures[sample], bucket)
        flip = matrix[0, 0] < 0
        left = round(float(bucket[1] - matrix[0, 2] if flip else matrix[0, 2]))
        top = round(float(matrix[1, 2]))
        assert bucket[1] - whole.width <= left <= 0 and bucket[0] - whole.height <= top <= 0
        expected = np.asarray(placed(whole, *bucket, top, left))
        np.testing.assert_array_equal(image, expected[:, ::-1] if flip else expected)
        begins.add((left - begin(whole.width, bucket[1]), top - begin(whole.height, bucket[0])))
    assert len(begins) > 5


def test_epochs_have_other_orders_of_buckets_and_ranks_the_same_ones(sets):
    options = {"buckets": BUCKETS, "batch_size": 6}
    shapes = [[batch[0] for batch in contents(sets["none"], epoch, **options)] for epoch in (0, 1, 0)]
    assert shapes[0] == shapes[2] != shapes[1] and sorted(shapes[0]) == sorted(shapes[1])
    ranks = [
        contents(sets["none"], rank=rank, world_size=3, buckets=BUCKETS, batch_size=2) for rank in range(3)
    ]
    for whole, *parts in zip(contents(sets["none"], **options), *ranks):
        assert {part[0][1:] for part in parts} == {whole[0][1:]}
        assert whole[1] == b"".join(part[1] for part in parts)


def test_boxes_follow_into_buckets(boxed):
    for sample, image, batch, row in samples(
        boxed, buckets=BUCKETS, fields={"boxes": sl.Boxes(along=["names"])}
    ):
        width, height = SIZES[sample]
        view = image.shape[:2]
        inner = size_of("cover", height, width, view)
        top, left = (begin(*sides) for sides in zip(inner, view))
        whole = batch.column("boxes")[row, batch.column("boxes_counts")[row] - 1]
        assert batch.column("names")[row, batch.column("boxes_counts")[row] - 1] == 1 + sample % 4
        expected = (max(left, 0), max(top, 0), min(left + inner[1], view[1]), min(top + inner[0], view[0]))
        np.testing.assert_allclose(whole, expected, atol=2e-3)


def test_lists_of_buckets_have_about_one_area():
    buckets = sl.buckets(area=512 * 512, step=64, max_aspect=2.0)
    assert (512, 512) in buckets and all(isinstance(side, int) for bucket in buckets for side in bucket)
    assert len(set(buckets)) == len(buckets) and {(w, h) for h, w in buckets} == set(buckets)
    for height, width in buckets:
        assert height % 64 == width % 64 == 0 and height * width <= 512 * 512
        assert max(height, width) <= 2 * min(height, width)
        assert height * width > 0.7 * 512 * 512
    assert [width / height for height, width in buckets] == sorted(
        width / height for height, width in buckets
    )
    for wrong, message in (
        ({"area": 100, "step": 64}, "area is 100"),
        ({"area": 512 * 512, "step": 0}, "step is 0"),
        ({"area": 512 * 512, "step": 64, "max_aspect": 0.5}, "max_aspect is 0.5"),
        ({"area": "large", "step": 64}, "area is 'large'"),
    ):
        with pytest.raises(sl.InvalidArgumentError, match=message):
            sl.buckets(**wrong)


def test_mixes_and_weights(sets, pictures):
    part, whole = sl.Dataset(sets["none"]).select(range(12)), sl.Dataset(sets["packed"])
    mixed = sl.mix({part: 0.25, whole: 0.75}, epoch_size=240)
    options = {"buckets": BUCKETS, "batch_size": 4, "framework": "numpy", "drop_last": False, "seed": 5}
    seen = np.zeros(len(part) + len(whole))
    for epoch in range(4):
        batches = sl.Loader(mixed, **options).epoch(epoch)
        ranks = [sl.Loader(mixed, **{**options, "batch_size": 2}, rank=r, world_size=2) for r in (0, 1)]
        for batch, *of_ranks in zip(batches, *(rank.epoch(epoch) for rank in ranks), strict=True):
            assert batch.ids.tolist() == [int(i) for other in of_ranks for i in other.ids]
            for image, sample in zip(batch.images, batch.ids.tolist(), strict=True):
                picture = pictures[sample if sample < len(part) else sample - len(part)]
                bucket = bucket_of(*picture.size, BUCKETS)
                np.testing.assert_array_equal(image, np.asarray(cover(picture, bucket)))
                seen[sample] += 1
    assert seen.sum() == 4 * 240
    assert abs(seen[: len(part)].sum() - 240) <= 4 * len(BUCKETS)  # a quarter of 960
    loader = sl.Loader(mixed, **options)
    epoch = loader.epoch(0)
    for _ in range(7):
        next(epoch)
    again = sl.Loader(mixed, **options)
    again.load_state_dict(loader.state_dict())
    for left, right in zip(epoch, again, strict=True):
        assert left.ids.tolist() == right.ids.tolist()
    weights = np.arange(len(whole)) % 3
    drawn = [
        int(i)
        for batch in sl.Loader(whole, **options, sampling=sl.Sampling(weights=weights))
        for i in batch.ids
    ]
    assert len(drawn) == len(whole) and not set(drawn) & set(np.flatnonzero(weights == 0).tolist())
