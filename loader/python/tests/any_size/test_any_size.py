"""Data sets whose samples have sizes of their own: the pixels of a view are Pillow's, bit for bit."""

import numpy as np
import pytest

import shardloader as sl
from any_size import (
    CODECS,
    FILL,
    FILTERS,
    SIZES,
    Image,
    center,
    cover,
    letterbox,
    options_of,
    picture,
    placed,
    resized,
    samples,
    shape,
)
from conftest import MEAN, STD

VIEWS = {
    "center_crop": ({"center_crop": (40, 51)}, lambda image: center(image, 40, 51)),
    "a crop of one pixel": ({"center_crop": 1}, lambda image: center(image, 1, 1)),
    "a crop larger than all": ({"center_crop": (701, 702)}, lambda image: center(image, 701, 702)),
    "fill": ({"center_crop": (90, 61), "fill": FILL}, lambda image: center(image, 90, 61, FILL)),
    "shortest": (
        {"shortest": 48, "center_crop": (40, 41)},
        lambda image: center(shape("shortest", image, 48), 40, 41),
    ),
    "shortest and a larger crop": (
        {"shortest": 24, "center_crop": (25, 60), "fill": 255},
        lambda image: center(shape("shortest", image, 24), 25, 60, (255,) * 3),
    ),
    "longest": (
        {"longest": 50, "center_crop": 50, "fill": FILL},
        lambda image: center(shape("longest", image, 50), 50, 50, FILL),
    ),
    "longest, cut": (
        {"longest": 63, "center_crop": 40},
        lambda image: center(shape("longest", image, 63), 40, 40),
    ),
    "squash": ({"squash": (33, 70)}, lambda image: resized(image, 33, 70)),
    "squash and crop": (
        {"squash": 40, "center_crop": (31, 40)},
        lambda image: center(resized(image, 40, 40), 31, 40),
    ),
    "letterbox": ({"letterbox": (48, 60), "fill": FILL}, lambda image: letterbox(image, (48, 60), fill=FILL)),
    "letterbox of a square": ({"letterbox": 37}, lambda image: letterbox(image, (37, 37))),
    "cover": ({"cover": (48, 60)}, lambda image: cover(image, (48, 60))),
    "cover and crop": (
        {"cover": (48, 60), "center_crop": 31},
        lambda image: center(shape("cover", image, (48, 60)), 31, 31),
    ),
}


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("view", VIEWS)
def test_views_are_pillows(view, codec, sets, pictures):
    options, expected = VIEWS[view]
    for sample, image, _, _ in samples(sets[codec], **options):
        np.testing.assert_array_equal(
            image, np.asarray(expected(pictures[sample])), f"{pictures[sample].size}"
        )


@pytest.mark.parametrize("filter", FILTERS)
def test_filters_are_pillows(filter, sets, pictures):
    for options, expected in (
        ({"squash": (45, 61)}, lambda image: resized(image, 45, 61, filter)),
        ({"letterbox": (45, 61)}, lambda image: letterbox(image, (45, 61), filter)),
        ({"cover": (45, 61)}, lambda image: cover(image, (45, 61), filter)),
        (
            {"shortest": 45, "center_crop": 45},
            lambda image: center(shape("shortest", image, 45, filter), 45, 45),
        ),
    ):
        for sample, image, _, _ in samples(sets["packed"], filter=filter, **options):
            np.testing.assert_array_equal(
                image, np.asarray(expected(pictures[sample])), f"{pictures[sample].size}"
            )


def box_of(matrix, height, width):
    """((left, top, right, bottom), mirrored): what a view of height x width shows of a sample, of the matrix
    from there to here."""
    across, down = float(matrix[0, 0]), float(matrix[1, 1])
    left = (float(matrix[0, 2]) - (width if across < 0 else 0)) / -across
    top = float(matrix[1, 2]) / -down
    exact = np.array([left, top, left + width / abs(across), top + height / down])
    assert abs(exact - exact.round()).max() < 0.01
    return tuple(int(side) for side in exact.round()), across < 0


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("filter", FILTERS)
def test_random_resized_crops_are_pillows(filter, codec, sets, pictures):
    options = {"random_resized_crop": (40, 56), "flip": True, "filter": filter, "scale": (0.1, 1)}
    boxes, mirrored = {}, 0
    for epoch in (0, 1):
        for sample, image, batch, row in samples(sets[codec], epoch, correspondence=True, **options):
            box, flip = box_of(batch.column("correspondence")[row, 0], 40, 56)
            whole = pictures[sample]
            assert 0 <= box[0] < box[2] <= whole.width and 0 <= box[1] < box[3] <= whole.height
            expected = np.asarray(resized(whole.crop(box), 40, 56, filter))
            np.testing.assert_array_equal(
                image, expected[:, ::-1] if flip else expected, f"{whole.size} {box}"
            )
            boxes.setdefault(sample, set()).add(box)
            mirrored += flip
    assert 0.25 < mirrored / (2 * len(SIZES)) < 0.75
    assert sum(len(of) == 2 for of in boxes.values()) > 0.6 * len(SIZES), "an epoch has crops of its own"


def test_geometry_is_what_is_drawn_for_the_size_of_the_sample(sets):
    for options in (
        {"random_resized_crop": (40, 56), "flip": True},
        {"shortest": 48, "random_crop": 40},
        {"letterbox": (48, 60), "flip": True},
        {"center_crop": (90, 61)},
    ):
        loader = sl.Loader(sets["none"], **options_of({"correspondence": True, **options}))
        for batch in loader.epoch(2):
            for row, sample in enumerate(batch.ids.tolist()):
                geometry = loader.geometry(sample, epoch=2)
                matrix = np.array(geometry.matrix).reshape(3, 3)
                np.testing.assert_allclose(
                    matrix, batch.column("correspondence")[row, 0], rtol=1e-5, atol=1e-5
                )
                if "random_resized_crop" in options:
                    top, left, height, width = geometry.crop
                    box = box_of(batch.column("correspondence")[row, 0], 40, 56)
                    assert ((left, top, left + width, top + height), geometry.flip) == box


@pytest.mark.parametrize("resize", ["none", "shortest", "cover", "squash"])
def test_random_crops_are_pillows(resize, sets, pictures):
    to = {"none": None, "shortest": 48, "cover": (48, 60), "squash": (90, 80)}[resize]
    options = {"random_crop": (46, 58), "flip": 0.5, "correspondence": True}
    if to is not None:
        options[resize] = to
    begins = set()
    for sample, image, batch, row in samples(sets["packed"], **options):
        matrix, whole = batch.column("correspondence")[row, 0], pictures[sample]
        if to is not None:
            whole = shape(resize, whole, to)
        flip = matrix[0, 0] < 0
        left = round(float(58 - matrix[0, 2] if flip else matrix[0, 2]))
        top = round(float(matrix[1, 2]))
        for at, side, view in ((left, whole.width, 58), (top, whole.height, 46)):
            assert view - side <= at <= 0 if side >= view else at == (view - side) // 2
        expected = np.asarray(placed(whole, 46, 58, top, left))
        np.testing.assert_array_equal(image, expected[:, ::-1] if flip else expected, f"{whole.size}")
        begins.add((whole.width + left, whole.height + top))
    assert len(begins) > 5


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("flip", [None, 1.0])
@pytest.mark.parametrize("longest", [None, 45])
@pytest.mark.parametrize("padded", [True, 16])
def test_padded_samples_keep_their_shape(padded, longest, flip, codec, sets, pictures):
    options = {"padded": padded, "longest": longest, "flip": flip, "fill": FILL, "layout": "nhwc"}
    largest = {}
    for sample, image, batch, row in samples(sets[codec], **options):
        whole = pictures[sample]
        if longest is not None:
            whole = shape("longest", whole, longest)
        assert tuple(batch.view_sizes[row]) == (whole.height, whole.width)
        pixels = np.asarray(whole)[:, ::-1] if flip else np.asarray(whole)
        expected = np.full_like(image, FILL)
        expected[: whole.height, : whole.width] = pixels
        np.testing.assert_array_equal(image, expected, f"{whole.size}")
        largest.setdefault(batch.batch_index, []).append((*pixels.shape[:2], *image.shape[:2]))
    for of in largest.values():
        sides = np.array(of)
        assert (sides[:, 2:] == -(-sides[:, :2].max(0) // int(padded)) * int(padded)).all()
    assert len({of[0][2:] for of in largest.values()}) > (1 if longest is None else 0)


# --- Dtypes, layouts, channels ------------------------------------------------------------------------------


def test_floats_and_layouts_are_made_of_the_same_bytes(sets):
    view = {"letterbox": (48, 60), "fill": FILL}
    bytes_ = {sample: np.array(image) for sample, image, _, _ in samples(sets["none"], **view, layout="nhwc")}
    for codec in CODECS:
        for sample, image, _, _ in samples(sets[codec], **view, layout="nchw", dtype="uint8"):
            np.testing.assert_array_equal(image.transpose(1, 2, 0), bytes_[sample])
        for dtype in ("float32", "float16"):
            for layout in ("nchw", "nhwc"):
                options = {"dtype": dtype, "layout": layout, "mean": MEAN, "std": STD}
                for sample, image, _, _ in samples(sets[codec], **view, **options):
                    floats = ((bytes_[sample].astype(np.float32) / 255 - MEAN) / STD).astype(dtype)
                    assert image.dtype == dtype
                    np.testing.assert_array_equal(
                        image if layout == "nhwc" else image.transpose(1, 2, 0), floats
                    )
    for sample, image, _, _ in samples(
        sets["none"], **view, dtype="float32", layout="nhwc", mean=(0,) * 3, std=(1,) * 3
    ):
        np.testing.assert_array_equal(image, bytes_[sample].astype(np.float32) / 255)


@pytest.mark.parametrize("codec", CODECS)
def test_samples_can_be_stored_by_channel(codec, files, tmp_path, pictures):
    sl.convert(files, tmp_path / "set", size="original", layout="nchw", codec=codec, samples_per_shard=7)
    for dtype in ("uint8", "float32"):
        options = {"letterbox": (48, 60), "fill": FILL, "dtype": dtype, "layout": "nhwc"}
        data, found = sl.Dataset(tmp_path / "set"), {}
        for batch in sl.Loader(data, **options_of(options)).epoch(0):
            found.update(zip(batch.ids.tolist(), batch.images.copy()))
        assert sorted(found) == list(range(len(data)))
        for sample, image in found.items():
            expected = np.asarray(letterbox(pictures[sample], (48, 60), fill=FILL))
            if dtype == "float32":
                expected = (expected.astype(np.float32) / 255 - MEAN) / STD
            np.testing.assert_array_equal(image, expected)


def test_packed_floats_are_resized_as_the_bytes_that_they_were(files, tmp_path, pictures):
    sl.convert(files, tmp_path / "set", size="original", dtype="float16", codec="packed")
    options = {"cover": (33, 40), "filter": "bicubic", "layout": "nhwc", "mean": MEAN, "std": STD}
    for sample, image, _, _ in samples(tmp_path / "set", **options):
        expected = np.asarray(cover(pictures[sample], (33, 40), "bicubic")).astype(np.float32)
        np.testing.assert_array_equal(image, ((expected / 255 - MEAN) / STD).astype(np.float16))


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_grey_images_can_stay_grey(codec, tmp_path):
    images, files = [], tmp_path / "images"
    files.mkdir()
    for number, (width, height) in enumerate(SIZES):
        images.append(picture(number, width, height, "L"))
        images[-1].save(files / f"{number:02}.png")
    sl.convert(files, tmp_path / "set", size="original", channels=1, codec=codec, samples_per_shard=10)
    assert sl.Dataset(tmp_path / "set").shape == (0, 0, 1)
    for options, expected in (
        ({"letterbox": (48, 60), "fill": 90}, lambda image: letterbox(image, (48, 60), fill=90)),
        ({"shortest": 40, "center_crop": 40}, lambda image: center(shape("shortest", image, 40), 40, 40)),
        ({"squash": 33, "filter": "bicubic"}, lambda image: resized(image, 33, 33, "bicubic")),
    ):
        for sample, image, _, _ in samples(tmp_path / "set", **options):
            np.testing.assert_array_equal(image[..., 0], np.asarray(expected(images[sample])))


@pytest.mark.parametrize("codec", CODECS)
def test_samples_of_one_size_can_be_resized_too(codec, make, reference):
    wholes = [Image.fromarray(image) for image in reference[0]]
    for options, expected in (
        ({"shortest": 20, "center_crop": (17, 20)}, lambda image: center(resized(image, 20, 20), 17, 20)),
        ({"squash": (40, 13), "filter": "box"}, lambda image: resized(image, 40, 13, "box")),
        ({"letterbox": (24, 40), "fill": FILL}, lambda image: letterbox(image, (24, 40), fill=FILL)),
        ({"cover": (24, 40), "filter": "bicubic"}, lambda image: cover(image, (24, 40), "bicubic")),
        ({"padded": 20, "fill": FILL}, lambda image: placed(image, 40, 40, 0, 0, FILL)),
    ):
        loader = sl.Loader(make(codec=codec), **options_of({"layout": "nhwc", **options}))
        for batch in loader.epoch(0):
            for image, sample in zip(batch.images, batch.ids.tolist()):
                np.testing.assert_array_equal(image, np.asarray(expected(wholes[sample])))


# --- Padding: operations, and windows of samples of about one size ------------------------------------------

OPERATIONS = {
    "values": sl.Augment(color_jitter=(0.4, 0.4, 0.4, 0.1), equalize=0.5, solarize=100, solarize_p=0.5),
    "places": sl.Augment(
        ops=[sl.ops.vertical_flip(p=0.5), sl.ops.rotation(30), sl.ops.sharpness(2.0), sl.ops.erasing(p=0.7)]
    ),
    "policy": sl.Augment.rand_augment(2, 9),
}


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("kind", OPERATIONS)
def test_operations_see_the_pixels_of_each_sample_alone(kind, codec, sets, pictures):
    """Padded, or cut into patches: what Augment.apply() makes of the whole sample."""
    for sample, image, batch, row in samples(
        sets[codec], epoch=2, padded=8, fill=FILL, layout="nhwc", augment=OPERATIONS[kind]
    ):
        whole = np.asarray(pictures[sample])
        expected = np.full_like(image, FILL)
        made = OPERATIONS[kind].apply(whole, sample, seed=3, epoch=2)
        expected[: whole.shape[0], : whole.shape[1]] = made
        np.testing.assert_array_equal(image, expected, f"{whole.shape}")
        assert tuple(batch.view_sizes[row]) == whole.shape[:2]
    options = {"patch": 8, "max_tokens": 24}
    changed = sl.Loader(sets[codec], augment=OPERATIONS[kind], **options_of(options))
    for plain, batch in zip(sl.Loader(sets[codec], **options_of(options)).epoch(1), changed.epoch(1)):
        offsets, coords = plain.column("patch_offsets"), plain.column("patch_coords")
        for row, sample in enumerate(plain.ids.tolist()):
            at = slice(offsets[row], offsets[row + 1])
            rows, columns = coords[at].max(0) + 1

            def joined(patches):
                tiles = patches[at].reshape(rows, columns, 8, 8, 3)
                return tiles.swapaxes(1, 2).reshape(rows * 8, columns * 8, 3)

            made = OPERATIONS[kind].apply(joined(plain.images), sample, seed=3, epoch=1)
            np.testing.assert_array_equal(joined(batch.images), made)


def padded_share(data, **options):
    """Pixels of the batches for each pixel of a sample."""
    loader = sl.Loader(data, padded=True, **options_of(options))
    made = [(batch.images.size, batch.view_sizes.prod(1).sum() * 3) for batch in loader.epoch(1)]
    return sum(all_ for all_, _ in made) / sum(own for _, own in made)


@pytest.mark.parametrize("order", [{}, {"shuffle": False}, {"window_shards": 2}])
def test_a_length_window_leaves_less_to_pad(order, sets):
    plain = padded_share(sets["none"], **order)
    assert padded_share(sets["none"], length_window=20, **order) < plain
    assert padded_share(sets["none"], length_window=len(SIZES), **order) < plain * 0.7
    # Each sample once, whatever the number of ranks.
    ways = {"padded": True, "length_window": 18, "batch_size": 6, **order}
    one = [set(batch.ids.tolist()) for batch in sl.Loader(sets["none"], **options_of(ways)).epoch(2)]
    ranks = [
        sl.Loader(sets["none"], rank=rank, world_size=3, **options_of({**ways, "batch_size": 2})).epoch(2)
        for rank in range(3)
    ]
    assert [set().union(*(batch.ids.tolist() for batch in batches)) for batches in zip(*ranks)] == one
    assert sorted(sample for batch in one for sample in batch) == list(range(len(SIZES)))


@pytest.mark.parametrize("way", [{"padded": True}, {"padded": True, "length_window": 18}, {"patch": 8}])
def test_mixes_of_data_sets_are_padded_and_cut_into_patches(way, sets):
    if "patch" in way:
        way = {**way, "max_tokens": 9}
    mixed = sl.mix({sets["none"]: 0.25, sets["packed"]: 0.75}, epoch_size=48)
    ways = {"batch_size": 6, **way}
    one = [batch.ids.tolist() for batch in sl.Loader(mixed, **options_of(ways)).epoch(2)]
    everything = [sample for batch in one for sample in batch]
    assert len(everything) == 48
    assert sum(sample >= len(SIZES) for sample in everything) == 36
    ranks = [
        sl.Loader(mixed, rank=rank, world_size=3, **options_of({**ways, "batch_size": 2})).epoch(2)
        for rank in range(3)
    ]
    assert [sum((batch.ids.tolist() for batch in batches), []) for batches in zip(*ranks)] == one
    loader = sl.Loader(mixed, **options_of(ways))
    batches = loader.epoch(2)
    for _ in range(3):
        next(batches)
    state = loader.state_dict()
    again = sl.Loader(mixed, **options_of(ways))
    again.load_state_dict(state)
    assert [batch.ids.tolist() for batch in again] == one[3:]


@pytest.mark.parametrize("codec", CODECS)
def test_operations_see_padded_samples_of_one_size(codec, make, reference):
    images, augment = reference[0], OPERATIONS["places"]
    data = make(codec=codec)
    options = {"padded": 20, "fill": FILL, "layout": "nhwc", "augment": augment}
    for batch in sl.Loader(data, **options_of(options)).epoch(1):
        for image, sample in zip(batch.images, batch.ids.tolist()):
            expected = np.full((40, 40, 3), FILL, np.uint8)
            expected[:32, :32] = augment.apply(images[sample], sample, seed=3, epoch=1)
            np.testing.assert_array_equal(image, expected)
