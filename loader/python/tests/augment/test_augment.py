"""Augmentation through the package: what a Loader delivers, what is drawn, what is refused."""

import numpy as np
import pytest

import shardloader as sl
from shardloader import ops


def collect(loader):
    """Images and indices of epoch 0, by index."""
    images, ids = [], []
    for batch in loader.epoch(0):
        images.append(np.array(batch.images))
        ids.append(np.array(batch.ids))
    order = np.argsort(np.concatenate(ids))
    return np.concatenate(images)[order]


def loader(data, **options):
    return sl.Loader(
        data, framework="numpy", batch_size=20, drop_last=False, dtype="uint8", layout="nhwc", **options
    )


ALL = [
    ops.color_jitter(0.4, 0.4, 0.4, 0.1, p=0.8),
    ops.grayscale(0.2),
    ops.gaussian_blur(9, p=0.5),
    ops.solarize(100, p=0.3),
    ops.affine(10, (0.1, 0.1), (0.8, 1.2), 5, interpolation="bilinear"),
    ops.erasing(value="random"),
]


def test_a_loader_delivers_what_apply_gives(data):
    augment = sl.Augment(ops=ALL)
    plain, changed = collect(loader(data, seed=3)), collect(loader(data, seed=3, augment=augment))
    assert (plain != changed).any()
    for sample in range(len(plain)):
        assert (changed[sample] == augment.apply(plain[sample], sample, seed=3)).all(), augment.draw(
            plain[sample].shape, sample, seed=3
        )


def test_the_result_depends_on_seed_and_epoch_but_not_on_threads_or_world(data):
    options = {"augment": sl.Augment.rand_augment(2, 9), "seed": 5}
    whole = collect(loader(data, **options))
    assert (whole == collect(loader(data, threads=3, prefetch=1, transport="staged", **options))).all()
    assert (whole != collect(loader(data, augment=options["augment"], seed=6))).any()
    halves = {}
    for rank in range(2):
        for batch in loader(data, rank=rank, world_size=2, **options).epoch(0):
            halves.update(zip(np.array(batch.ids).tolist(), np.array(batch.images)))
    assert all((halves[sample] == whole[sample]).all() for sample in halves) and len(halves) == len(whole)


def test_crop_and_flip_of_an_augment_are_those_of_the_loader(data):
    ours = collect(loader(data, augment=sl.Augment(random_resized_crop=16, scale=(0.3, 1), flip=0.5)))
    assert ours.shape[1:3] == (16, 16)
    assert (ours == collect(loader(data, random_resized_crop=16, scale=(0.3, 1), flip=0.5))).all()
    assert collect(loader(data, center_crop=20, augment=sl.Augment(invert=1))).shape[1:3] == (20, 20)


@pytest.mark.parametrize(
    "policy", ["rand_augment", "trivial_augment", "auto_augment", "aug_mix", "three_augment"]
)
def test_each_policy_changes_samples(data, policy):
    augment = getattr(sl.Augment, policy)()
    assert (collect(loader(data)) != collect(loader(data, augment=augment))).any()
    assert augment.operations[0] == sl.Augment(policy=policy).operations[0]


def test_keywords_are_operations():
    augment = sl.Augment(
        random_resized_crop=8,
        flip=0.5,
        color_jitter=(0.4, 0.4, 0.4, 0.1),
        grayscale=0.2,
        gaussian_blur=9,
        solarize=128,
        erasing=0.25,
    )
    assert [one.name for one in augment.operations] == [
        "color_jitter",
        "grayscale",
        "gaussian_blur",
        "solarize",
        "erasing",
    ]
    assert augment.operations[0].parameters["brightness"] == (0.6, 1.4) and augment.operations[0].parameters[
        "hue"
    ] == (-0.1, 0.1)
    assert repr(augment).startswith("Augment(random_resized_crop=8, flip=0.5, color_jitter")


def test_what_is_drawn_can_be_read():
    (one,) = sl.Augment(ops=[ops.color_jitter(brightness=(0.5, 0.5))]).draw((32, 32, 3), 7)
    assert one.opcode == "brightness" and one.real[0] == 0.5
    assert sl.Augment(invert=0.5).draw((32, 32, 3), 7) == sl.Augment(invert=0.5).draw((32, 32, 3), 7)
    drawn = sum(len(sl.Augment(invert=0.25).draw((32, 32, 3), sample)) for sample in range(2000))
    assert 400 < drawn < 600


# Each share of Dirichlet(a, ..., a) of a small a is near 0 or 1. The largest of `width` shares is below 0.9
# in about 2.2 (width - 1) a of all cases, and each is the largest equally often.
@pytest.mark.parametrize("alpha", [0.001, 0.003, 0.01])
@pytest.mark.parametrize("width", [2, 3, 4])
def test_shares_of_aug_mix_are_those_of_the_dirichlet_distribution(alpha, width):
    augment, count = sl.Augment.aug_mix(width=width, depth=1, alpha=alpha), 4000
    drawn = [augment.draw((8, 8, 3), sample, seed=5) for sample in range(count)]
    original = np.array([one.real[0] for program in drawn for one in program if one.opcode == "mix_set"])
    added = np.array([one.real[0] for program in drawn for one in program if one.opcode == "mix_add"])
    added = added.reshape(count, width)
    assert len(original) == count and np.isfinite(original).all() and np.isfinite(added).all()
    assert (original >= 0).all() and (added >= 0).all()
    np.testing.assert_allclose(original + added.sum(1), 1, atol=1e-6)

    def expect_about(found, cases, probability):
        deviation = np.sqrt(cases * probability * (1 - probability))
        assert abs(found - cases * probability) < 6 * deviation + 3

    expect_about((original > 0.5).sum(), count, 0.5)
    expect_about(((original > 0.1) & (original < 0.9)).sum(), count, 2.2 * alpha)
    # Where the chains have most of the weight, their parts of it are exact in float32.
    shares = added[original < 0.5] / (1 - original[original < 0.5, None])
    np.testing.assert_allclose(shares.sum(1), 1, atol=1e-5)
    expect_about((shares.max(1) < 0.9).sum(), len(shares), 2.2 * (width - 1) * alpha)
    for largest in np.bincount(shares.argmax(1), minlength=width):
        expect_about(largest, len(shares), 1 / width)


def test_normalised_values_are_made_of_the_changed_bytes(data):
    augment = sl.Augment(ops=[ops.posterize(3)])
    bytes_ = collect(loader(data, augment=augment))
    floats = collect(
        sl.Loader(
            data,
            framework="numpy",
            batch_size=20,
            drop_last=False,
            dtype="float32",
            layout="nhwc",
            mean=(0, 0, 0),
            std=(1, 1, 1),
            augment=augment,
        )
    )
    assert (floats == bytes_.astype(np.float32) / np.float32(255)).all()


@pytest.mark.parametrize(
    "attempt, message",
    [
        (
            lambda data: loader(data, augment=sl.Augment(ops=[ops.posterize(9)])),
            r"view 0, operation 0 \(posterize\): bits is 9; it must be 0 to 8",
        ),
        (
            lambda data: loader(data, augment=sl.Augment(invert=2)),
            "invert is 2; expected a probability, 0 to 1",
        ),
        (lambda data: loader(data, augment="rand_augment"), "augment is 'rand_augment'; expected an Augment"),
        (lambda data: sl.Augment(policy="best"), "policy is 'best'"),
        (
            lambda data: loader(data, augment=sl.Augment(ops=[ops.affine(3, interpolation="cubic")])),
            'interpolation is "cubic"',
        ),
        (lambda data: sl.Augment().apply(np.zeros((3, 4))), "expected uint8"),
    ],
)
def test_refusals_name_what_and_why(data, attempt, message):
    with pytest.raises(sl.InvalidArgumentError, match=message):
        attempt(data)


def test_views_are_what_loaders_of_one_view_deliver(data):
    large = sl.Augment(random_resized_crop=24, flip=0.5, ops=ALL)
    small = sl.Augment(
        random_resized_crop=12, flip=0.5, dtype="float16", layout="nchw", ops=[ops.posterize(4)]
    )
    both = loader(data, views=[large, small, large], seed=1)
    alone = collect(loader(data, augment=large, seed=1))
    for batch in both.epoch(0):
        first, second, third = batch.views
        assert (
            first.shape[1:] == (24, 24, 3) and second.shape[1:] == (3, 12, 12) and second.dtype == np.float16
        )
        assert (first == alone[np.array(batch.ids)]).all() and (first == batch.images).all()
        assert (first != third).any()  # drawn for its own view
    assert both.shape == (24, 24, 3)


def test_views_are_the_same_for_packed_shards(make):
    views = [sl.Augment(random_resized_crop=24, invert=0.5), sl.Augment(random_crop=16, flip=0.5)]
    for plain, packed in zip(
        loader(make(), views=views).epoch(0), loader(make(codec="packed"), views=views).epoch(0)
    ):
        assert all((a == b).all() for a, b in zip(plain.views, packed.views))


def test_views_can_be_replaced_between_epochs(data):
    changing = loader(data, augment=sl.Augment(random_resized_crop=12), seed=4)
    first = [np.array(batch.images) for batch in changing.epoch(0)]
    assert first[0].shape[1:3] == (12, 12)
    with pytest.raises(sl.InvalidArgumentError, match="bits is 9"):
        changing.set_augment(sl.Augment(ops=[ops.posterize(9)]))
    changing.set_augment(sl.Augment(random_resized_crop=24))
    assert changing.shape == (24, 24, 3)
    second = [np.array(batch.images) for batch in changing.epoch(1)]
    straight = [
        np.array(batch.images)
        for batch in loader(data, augment=sl.Augment(random_resized_crop=24), seed=4).epoch(1)
    ]
    assert len(second) == len(straight) and all((a == b).all() for a, b in zip(second, straight))


def test_a_view_that_is_not_possible_is_named(data):
    with pytest.raises(sl.InvalidArgumentError, match=r"view 1: the crop of 900 x 900"):
        loader(data, views=[sl.Augment(), sl.Augment(center_crop=900)])
    with pytest.raises(
        sl.InvalidArgumentError, match=r"view 1, operation 0 \(turns\)|view 1, operation 0 \(posterize\)"
    ):
        loader(data, views=[sl.Augment(), sl.Augment(ops=[ops.posterize(9)])])
    with pytest.raises(sl.InvalidArgumentError, match="augment and views exclude"):
        loader(data, augment=sl.Augment(), views=[sl.Augment()])


def mixed_batches(data, mix, **options):
    options = {
        "framework": "numpy",
        "batch_size": 20,
        "seed": 2,
        "dtype": "float32",
        "layout": "nchw",
        "mean": (0, 0, 0),
        "std": (1, 1, 1),
        **options,
    }
    return sl.Loader(data, **mix, **options), sl.Loader(data, **options)


def test_mixup_is_the_sum_of_neighbours(data):
    changed, plain = mixed_batches(data, {"mixup": 0.4})
    for mixed, batch in zip(changed.epoch(0), plain.epoch(0)):
        share = mixed.column("share")
        assert (
            share.dtype == np.float32
            and ((share > 0) & (share < 1)).any()
            and (share[::2] == share[1::2]).all()
        )
        other = batch.images.reshape(-1, 2, *batch.images.shape[1:])[:, ::-1].reshape(batch.images.shape)
        wide = share[:, None, None, None]
        assert (mixed.images == batch.images * wide + other * (1 - wide)).all()
        assert (mixed.labels == batch.labels).all() and (
            mixed.column("labels_b") == batch.labels.reshape(-1, 2)[:, ::-1].ravel()
        ).all()
        soft = mixed.soft_labels(10, smoothing=0.1)
        assert soft.dtype == np.float32 and np.allclose(soft.sum(1), 1)
        same = batch.labels == mixed.column("labels_b")
        assert np.allclose(soft[np.arange(20), batch.labels], np.where(same, 0.9, 0.9 * share) + 0.01)


def test_cutmix_takes_a_box_of_the_neighbour(data):
    changed, plain = mixed_batches(data, {"cutmix": 1.0})
    for mixed, batch in zip(changed.epoch(0), plain.epoch(0)):
        other = batch.images.reshape(-1, 2, *batch.images.shape[1:])[:, ::-1].reshape(batch.images.shape)
        share = mixed.column("share")
        height, width = batch.images.shape[2:]
        for row in range(20):
            kept = (mixed.images[row] == batch.images[row]).all(0)
            taken = (mixed.images[row] == other[row]).all(0)
            assert (kept | taken).all()
            assert (~kept).sum() <= round((1 - share[row]) * height * width) <= taken.sum()


def test_what_is_mixed_does_not_depend_on_the_world_size(data):
    mix = {"mixup": 0.2, "cutmix": 1.0, "mix_probability": 0.8}
    whole = np.concatenate(
        [np.array(batch.images) for batch in mixed_batches(data, mix, batch_size=12)[0].epoch(1)]
    )
    ranks = [
        [
            np.array(batch.images)
            for batch in mixed_batches(data, mix, batch_size=4, rank=rank, world_size=3, transport="staged")[
                0
            ].epoch(1)
        ]
        for rank in range(3)
    ]
    assert (whole == np.concatenate([np.concatenate(step) for step in zip(*ranks)])).all()
    assert (
        whole
        != np.concatenate(
            [np.array(batch.images) for batch in mixed_batches(data, mix, batch_size=12)[1].epoch(1)]
        )
    ).any()
