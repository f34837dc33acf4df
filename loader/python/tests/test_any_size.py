"""Data sets whose samples have sizes of their own: the pixels of a view are Pillow's, bit for bit."""

import json
import math
from fractions import Fraction

import numpy as np
import pytest

import shardloader as sl
from conftest import MEAN, STD

Image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
PIL = pytest.importorskip("PIL")

# Width and height, as in Pillow.
SIZES = [(1, 1), (300, 1), (1, 300), (700, 30), (30, 700), (640, 480), (480, 640), (37, 53), (2, 3), (64, 64)]
SIZES += [tuple(int(side) for side in np.random.default_rng(i).integers(5, 200, 2)) for i in range(26)]
CODECS = ("none", "zstd", "packed")
FILTERS = {"bilinear": Image.BILINEAR, "bicubic": Image.BICUBIC, "box": Image.BOX, "lanczos": Image.LANCZOS}
FILL = (9, 200, 77)


def picture(number, width, height, mode):
    """Waves and noise."""
    noise = np.random.default_rng(number).integers(0, 90, (height, width, 3))
    y, x = np.mgrid[:height, :width]
    waves = np.stack([x * 3 + number, y * 5, x + y], -1) % 160
    return Image.fromarray((waves + noise).astype(np.uint8)).convert(mode)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A folder of PNG files in two classes, every fifth of them grey."""
    folder = tmp_path_factory.mktemp("any") / "images"
    for number, (width, height) in enumerate(SIZES):
        path = folder / "ab"[number % 2] / f"{number:02}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        picture(number, width, height, "L" if number % 5 == 4 else "RGB").save(path)
    return folder


@pytest.fixture(scope="module")
def sets(files, tmp_path_factory):
    """The data set of each codec."""
    made = {}
    for codec in CODECS:
        made[codec] = tmp_path_factory.mktemp("any") / codec
        found = sl.convert(files, made[codec], size="original", codec=codec, samples_per_shard=7)
        assert found.samples == len(SIZES)
    return made


@pytest.fixture(scope="module")
def pictures(files, sets):
    """The image of each sample."""
    return [Image.open(files / key).convert("RGB") for key in sl.Dataset(sets["none"]).keys]


def options_of(options):
    return {"framework": "numpy", "batch_size": 5, "seed": 3, "threads": 2, "drop_last": False, **options}


def samples(data, epoch=0, **options):
    """(sample, image, batch, row) of an epoch, which has every sample once, and whose sizes are right."""
    data = data if isinstance(data, sl.Dataset) else sl.Dataset(data)
    ids = []
    for batch in sl.Loader(data, **options_of(options)).epoch(epoch):
        assert batch.sizes.dtype == np.int64
        for row, sample in enumerate(batch.ids.tolist()):
            assert tuple(batch.sizes[row]) == data[sample][0].shape[:2]
            ids.append(sample)
            yield sample, batch.images[row], batch, row
    assert sorted(ids) == list(range(len(data)))


def contents(data, epoch=0, batches=None, **options):
    """All that the batches of an epoch have, as bytes."""
    found = []
    for batch in batches or sl.Loader(data, **options_of(options)).epoch(epoch):
        parts = [batch.images, batch.labels, batch.ids, batch.sizes]
        found.append((batch.images.shape, *(np.array(part).tobytes() for part in parts)))
    return found


# --- What Pillow and torchvision make -----------------------------------------------------------------------


def resized(image, height, width, filter="bilinear"):
    """Image.resize. From Pillow 12 on it may resize rows before columns, which rounds otherwise: there, both
    are asked for one after the other."""
    if int(PIL.__version__.split(".")[0]) >= 12:
        image = image.resize((width, image.height), FILTERS[filter])
    return image.resize((width, height), FILTERS[filter])


def placed(image, height, width, top, left, fill=0):
    """A view of height x width, in which the image begins at row `top` and column `left`."""
    canvas = Image.new(image.mode, (width, height), fill)
    canvas.paste(image, (left, top))
    return canvas


def begin(side, view):
    """Where torchvision's CenterCrop puts an image: it pads what is too small."""
    return (view - side) // 2 if view > side else -round((side - view) / 2)


def center(image, height, width, fill=0):
    return placed(image, height, width, begin(image.height, height), begin(image.width, width), fill)


def size_of(kind, height, width, to):
    """Rows and columns that a resize makes of height x width; shortest as torchvision's Resize."""
    if kind in ("shortest", "longest"):
        side = (min if kind == "shortest" else max)(height, width)
        return tuple(to if one == side else max(1, int(to * one / side)) for one in (height, width))
    if kind == "squash":
        return to
    ratios = to[0] / height, to[1] / width
    if kind == "letterbox":
        return tuple(max(1, round(side * min(ratios))) for side in (height, width))
    return tuple(max(most, round(side * max(ratios))) for side, most in zip((height, width), to))


def shape(kind, image, to, filter="bilinear"):
    return resized(image, *size_of(kind, image.height, image.width, to), filter)


def letterbox(image, to, filter="bilinear", fill=0):
    inner = shape("letterbox", image, to, filter)
    return placed(inner, *to, (to[0] - inner.height) // 2, (to[1] - inner.width) // 2, fill)


def cover(image, to, filter="bilinear"):
    return center(shape("cover", image, to, filter), *to)


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


# --- The same batches, however they are loaded --------------------------------------------------------------

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


# --- Patches ------------------------------------------------------------------------------------------------


def grid_of(height, width, most):
    """Rows and columns of patches at the largest scale s (in patches per pixel) at which ceil(height * s) *
    ceil(width * s) <= most. Either is a whole number there."""
    scales = {Fraction(k, side) for k in range(1, most + 1) for side in (height, width)}
    grids = ((math.ceil(height * scale), math.ceil(width * scale), scale) for scale in scales)
    return max((grid for grid in grids if grid[0] * grid[1] <= most), key=lambda grid: grid[2])[:2]


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize(
    "options",
    [
        {"patch": 8, "max_tokens": 25},
        {"patch": 5, "max_tokens": 1},
        {"patch": 16, "max_tokens": 12, "filter": "bicubic", "flip": 1.0},
        {"patch": 7, "max_tokens": 30, "dtype": "float32", "mean": MEAN, "std": STD},
        {"patch": 7, "max_tokens": 30, "dtype": "float16", "layout": "nhwc", "mean": MEAN, "std": STD},
    ],
    ids=str,
)
def test_samples_are_delivered_as_patches(options, codec, sets, pictures):
    side, seen = options["patch"], []
    loader = sl.Loader(sets[codec], **options_of(options))
    assert loader.shape == (side * side * 3,)
    for batch in loader.epoch(0):
        offsets, coords, owners = (batch.column(f"patch_{name}") for name in ("offsets", "coords", "samples"))
        assert offsets.dtype == coords.dtype == owners.dtype == np.int32
        assert len(batch.images) == len(coords) == len(owners) == offsets[-1]
        assert offsets[0] == 0 and len(offsets) == len(batch.ids) + 1
        for row, sample in enumerate(batch.ids.tolist()):
            whole, of = pictures[sample], slice(offsets[row], offsets[row + 1])
            rows, columns = grid_of(whole.height, whole.width, options["max_tokens"])
            assert (owners[of] == row).all()
            assert coords[of].tolist() == [[y, x] for y in range(rows) for x in range(columns)], whole.size
            filter = options.get("filter", "bilinear")
            pixels = np.asarray(resized(whole, rows * side, columns * side, filter))
            if options.get("flip"):
                pixels = pixels[:, ::-1]
            if "mean" in options:
                pixels = ((pixels.astype(np.float32) / 255 - MEAN) / STD).astype(options["dtype"])
            patches = pixels.reshape(rows, side, columns, side, 3).swapaxes(1, 2)
            np.testing.assert_array_equal(batch.images[of], patches.reshape(rows * columns, -1))
        seen += batch.ids.tolist()
    assert sorted(seen) == list(range(len(SIZES)))


# --- Boxes --------------------------------------------------------------------------------------------------


def boxes_of(number, width, height):
    """Some boxes of an image, one of them all of it."""
    draw = np.random.default_rng(1000 + number)
    corners = np.sort(draw.uniform(0, 1, (1 + number % 4, 2, 2)), 1) * (width, height)
    return np.concatenate([corners.reshape(-1, 4), [[0, 0, width, height]]]).astype(np.float32)


@pytest.fixture(scope="module")
def boxed(tmp_path_factory, files):
    """A data set of a Writer, with boxes."""
    folder = tmp_path_factory.mktemp("boxed") / "set"
    columns = {"boxes": sl.Ragged("float32", 4), "names": sl.Ragged("int64")}
    how = {"size": "original", "codec": "packed", "samples_per_shard": 9}
    with sl.Writer(folder, columns=columns, **how) as writer:
        for number, size in enumerate(SIZES):
            boxes = boxes_of(number, *size)
            image = files / "ab"[number % 2] / f"{number:02}.png"
            writer.add(f"{number}", image, 0, boxes=boxes, names=np.arange(len(boxes)))
    return folder


@pytest.mark.parametrize("flip", [None, 1.0])
@pytest.mark.parametrize("kind", ["letterbox", "cover", "padded", "shortest", "squash"])
def test_boxes_follow(kind, flip, boxed):
    to = {"letterbox": (48, 61), "cover": (48, 61), "padded": 8, "shortest": 40, "squash": (48, 61)}[kind]
    options = {kind: to, "flip": flip, "fields": {"boxes": sl.Boxes(along=["names"])}}
    if kind == "shortest":
        options["center_crop"] = (48, 61)
    kept = 0
    for sample, image, batch, row in samples(boxed, **options):
        width, height = SIZES[sample]
        inner = (height, width) if kind == "padded" else size_of(kind, height, width, to)
        view = image.shape[:2] if kind == "padded" else (48, 61)
        top, left = (0, 0) if kind == "padded" else (begin(*sides) for sides in zip(inner, view))
        down, across = inner[0] / height, inner[1] / width
        expected, names = [], []
        for name, (x0, y0, x1, y1) in enumerate(boxes_of(sample, width, height).astype(float)):
            x0, x1 = (left + across * x for x in (x0, x1))
            y0, y1 = (top + down * y for y in (y0, y1))
            if flip:
                mirror = inner[1] if kind == "padded" else view[1]
                x0, x1 = mirror - x1, mirror - x0
            x0, x1 = np.clip((x0, x1), 0, view[1])
            y0, y1 = np.clip((y0, y1), 0, view[0])
            # Boxes of less than a pixel are dropped; near that, it is a question of rounding.
            if min(x1 - x0, y1 - y0) >= 1 and (x1 - x0) * (y1 - y0) >= 1:
                expected.append((x0, y0, x1, y1))
                names.append(name)
        count = batch.column("boxes_counts")[row]
        assert batch.column("names")[row, :count].tolist() == names, SIZES[sample]
        np.testing.assert_allclose(
            batch.column("boxes")[row, :count], expected or np.zeros((0, 4)), atol=2e-3
        )
        kept += count
    assert kept > len(SIZES) / 2


@pytest.fixture(scope="module")
def coco(files, tmp_path_factory):
    """The images that have no tiny side, with boxes of COCO."""
    folder, images, annotations = tmp_path_factory.mktemp("coco"), [], []
    for number, (width, height) in enumerate(SIZES):
        name = f"{'ab'[number % 2]}/{number:02}.png"
        images.append({"id": number, "file_name": name, "width": width, "height": height})
        for x0, y0, x1, y1 in boxes_of(number, width, height).tolist():
            one = {"image_id": number, "category_id": 1, "bbox": [x0, y0, x1 - x0, y1 - y0], "iscrowd": 0}
            annotations.append({"id": len(annotations) + 1, "area": 9, **one})
    (folder / "coco.json").write_text(
        json.dumps({"images": images, "annotations": annotations, "categories": [{"id": 1, "name": "cat"}]})
    )
    sl.convert(files, folder / "set", coco=folder / "coco.json", size="original", samples_per_shard=9)
    data = sl.Dataset(folder / "set")
    return data.select([i for i, key in enumerate(data.keys) if min(SIZES[int(key[2:4])]) > 20])


@pytest.mark.parametrize(
    "options",
    [{"letterbox": (64, 96)}, {"cover": (40, 60)}, {"buckets": [(40, 60), (60, 40)]}],
    ids=str,
)
def test_boxes_of_coco_follow_by_themselves(options, coco):
    for sample, image, batch, row in samples(coco, **options):
        width, height = SIZES[int(coco.keys[sample][2:4])]
        view = image.shape[:2]
        inner = size_of("letterbox" if "letterbox" in options else "cover", height, width, view)
        top, left = (begin(*sides) for sides in zip(inner, view))
        whole = batch.column("boxes")[row, batch.column("boxes_counts")[row] - 1]
        expected = (max(left, 0), max(top, 0), min(left + inner[1], view[1]), min(top + inner[0], view[0]))
        np.testing.assert_allclose(whole, expected, atol=2e-3)
    with pytest.raises(sl.InvalidArgumentError, match="patch: boxes.*as_stored"):
        sl.Loader(coco, **options_of({"patch": 8, "max_tokens": 9}))


@pytest.mark.parametrize(
    "options",
    [{"letterbox": 8}, {"longest": 8, "padded": 8}, {"center_crop": 8}]
    + [{"buckets": [(8, 8)]}, {"patch": 8, "max_tokens": 9}],
    ids=str,
)
def test_columns_that_may_be_boxes_must_be_named(options, boxed):
    with pytest.raises(sl.InvalidArgumentError, match='column "boxes".*looks like boxes.*as_stored'):
        sl.Loader(boxed, **options_of(options))
    batch = next(sl.Loader(boxed, **options_of({"as_stored": ["*"], **options})).epoch(0))
    for row, sample in enumerate(batch.ids.tolist()):
        stored = boxes_of(sample, *SIZES[sample])
        assert (batch.column("boxes")[row, : len(stored)] == stored).all()


# --- Buckets ------------------------------------------------------------------------------------------------

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


# --- What is not possible -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options, message",
    [
        (
            {},
            "any size.*choose random_resized_crop, a crop .*squash, letterbox, .*buckets, padded or patch",
        ),
        ({"flip": True}, "any size.*choose"),
        ({"shortest": 8, "squash": 9, "center_crop": 4}, "shortest and squash exclude each other"),
        ({"letterbox": 8, "cover": 9}, "letterbox and cover exclude each other"),
        ({"shortest": 8}, "shortest to 8.*add a crop .*or use squash, letterbox, cover or padded"),
        ({"longest": 8, "flip": True}, "longest to 8.*add a crop"),
        ({"shortest": 8, "random_resized_crop": 8}, "shortest.*random_resized_crop.*leave one out"),
        ({"letterbox": 8, "center_crop": 8}, "letterbox.*leave crop out"),
        ({"cover": 8, "center_crop": 9}, "crop of 9 x 9 is larger than .*cover.* 8 x 8"),
        ({"squash": 8, "random_crop": (8, 9)}, "crop of 8 x 9 is larger than .*squash.* 8 x 8"),
        ({"center_crop": 8, "random_crop": 8}, "center_crop and random_crop exclude each other"),
        ({"padded": 8, "center_crop": 8}, "padded.*leave crop out"),
        ({"padded": True, "shortest": 8}, "padded.*resize but for longest"),
        ({"padded": True, "squash": 8}, "padded.*resize but for longest"),
        ({"padded": -1}, "padded is -1; expected a whole number from 0 to 8192"),
        ({"padded": 2.5}, "padded is 2.5; expected"),
        ({"padded": "yes"}, "padded is 'yes'; expected"),
        ({"letterbox": 8, "fill": (1, 2)}, "fill has 2 values.*3 channels.*give one, or one for each"),
        ({"letterbox": 8, "fill": 256}, "fill is 256; expected a whole number from 0 to 255"),
        ({"letterbox": 8, "fill": 0.5}, "fill is 0.5; expected"),
        ({"letterbox": 8, "fill": "red"}, "fill is 'red'; expected"),
        ({"letterbox": 8, "filter": "nearest"}, 'filter is "nearest"; expected.*"bilinear".*"lanczos"'),
        ({"letterbox": 8, "filter": 3}, "filter is 3; expected"),
        ({"shortest": 0, "center_crop": 8}, "shortest is 0; expected a whole number from 1 to 8192"),
        ({"shortest": (8, 9), "center_crop": 8}, r"shortest is \(8, 9\); expected"),
        ({"longest": 9000, "center_crop": 8}, "longest is 9000; expected a whole number from 1 to 8192"),
        ({"letterbox": 9000}, "letterbox is 9000; expected sides of at most 8192"),
        ({"letterbox": (8, 0)}, r"letterbox is \(8, 0\); expected"),
        ({"cover": (8, 9, 10)}, r"cover is \(8, 9, 10\); expected"),
        ({"squash": "8x8"}, "squash is '8x8'; expected"),
        ({"center_crop": 9000}, "9000 x 9000 exceeds 8192 x 8192"),
        ({"patch": 16}, "patch is 16 and max_tokens 0; they go together"),
        ({"max_tokens": 16, "center_crop": 8}, "patch is 0 and max_tokens 16; they go together"),
        ({"patch": 0, "max_tokens": 4}, "patch is 0; expected a whole number from 1 to 256"),
        ({"patch": 16, "max_tokens": 70_000}, "max_tokens is 70000; expected a whole number from 1 to 65536"),
        ({"patch": 16, "max_tokens": 9, "center_crop": 8}, "patch resizes whole samples: leave crop"),
        ({"patch": 16, "max_tokens": 9, "letterbox": 8}, "patch resizes whole samples: leave crop, resize"),
        ({"patch": 16, "max_tokens": 9, "padded": True}, "patch resizes whole samples: .*padded"),
        ({"patch": 16, "max_tokens": 9, "layout": "nchw"}, "patches .* leave layout out, or use nhwc"),
        ({"patch": 16, "max_tokens": 9, "correspondence": True}, "patch.*correspondence do not follow"),
        ({"patch": 16, "max_tokens": 9, "buckets": [(8, 8)]}, "buckets.*patch out"),
        ({"buckets": [], "center_crop": 8}, r"buckets is \[\]; expected a list"),
        ({"buckets": [(8, 8), (0, 8)]}, r"buckets\[1\] is \(0, 8\); expected a size from 1 on"),
        ({"buckets": [(8, 8), (16, 4), (8, 8)]}, "8 x 8 is in the list more than once"),
        ({"buckets": [(8, 9000)]}, "8192"),
        ({"buckets": [(8, 8), (8, 9, 3)]}, r"buckets\[1\] is \(8, 9, 3\); expected"),
        ({"buckets": 8}, r"buckets is 8; expected a list of \(height, width\), or shardloader.buckets"),
        ({"buckets": "8x8"}, "buckets is '8x8'"),
        ({"buckets": [(8, 8)], "center_crop": 8}, "buckets.*leave crop"),
        ({"buckets": [(8, 8)], "letterbox": 8}, "buckets.*leave crop, resize"),
        ({"buckets": [(8, 8)], "padded": True}, "buckets.*padded"),
        ({"buckets": [(8, 8)], "views": [sl.Augment(), sl.Augment()]}, "buckets.*one view"),
        ({"buckets": [(8, 8)], "bucket_crop": "left"}, 'bucket_crop is "left".*"center".*"random"'),
        ({"buckets": [(8, 8)], "batch_pixels": -1}, "batch_pixels is -1"),
        ({"buckets": [(8, 8)], "window_shards": 2}, "buckets"),
        ({"buckets": [(8, 8)], "repeats": 2}, "buckets.*each sample once|repeats"),
        ({"buckets": [(8, 8)], "sampling": "balanced"}, "buckets|each sample once"),
        ({"buckets": [(8, 8)], "mix": sl.MixPairs(mixup=1.0), "tail": "drop", "drop_last": None}, "mix"),
        ({"buckets": [(8, 8)], "batch_size": 100, "drop_last": True}, "leaves no batch"),
        ({"batch_pixels": 8 * 8, "center_crop": 8}, "batch_pixels"),
        ({"bucket_crop": "random", "center_crop": 8}, "bucket_crop"),
    ],
    ids=str,
)
def test_what_is_not_possible_is_refused(options, message, sets):
    with pytest.raises(sl.InvalidArgumentError, match=message):
        sl.Loader(sets["none"], **options_of(options))


@pytest.mark.parametrize(
    "options, message",
    [
        ({"buckets": [(8, 8)]}, "buckets: they are for samples of any size.*32 x 32: leave them out"),
        ({"fill": 7}, "fill has a value, but nothing is filled"),
        (
            {"random_resized_crop": 8, "filter": "box"},
            "filter is box, but these samples have one size.*leave filter out",
        ),
        ({"center_crop": 33}, "33 x 33 is larger than the stored samples of 32 x 32"),
        ({"padded": 8, "longest": 8, "random_crop": 8}, "padded.*leave crop out"),
    ],
    ids=str,
)
def test_what_samples_of_one_size_cannot_do_is_refused(options, message, folder):
    with pytest.raises(sl.InvalidArgumentError, match=message):
        sl.Loader(folder, **options_of(options))


def test_options_are_given_once(sets):
    with pytest.raises(
        sl.InvalidArgumentError, match="letterbox is given to the Loader, but its augment has a crop"
    ):
        sl.Loader(sets["none"], letterbox=8, augment=sl.Augment(center_crop=8))
    with pytest.raises(
        sl.InvalidArgumentError, match="fill is .* for the Loader and .* for its augment: give it once"
    ):
        sl.Loader(sets["none"], fill=3, augment=sl.Augment(letterbox=8, fill=4))
    with pytest.raises(sl.InvalidArgumentError, match="view 1: the samples are of any size"):
        sl.Loader(sets["none"], batch_size=5, views=[sl.Augment(letterbox=8), sl.Augment()])


def test_sides_that_would_be_shrunk_too_much_are_refused(tmp_path):
    (tmp_path / "images").mkdir()
    picture(0, 9000, 2, "RGB").save(tmp_path / "images" / "long.png")
    sl.convert(tmp_path / "images", tmp_path / "set", size="original")
    with pytest.raises(
        sl.InvalidArgumentError, match="a side of 9000 pixels .* would be shrunk to 4.*larger views"
    ):
        sl.Loader(tmp_path / "set", batch_size=1, squash=4)
    next(sl.Loader(tmp_path / "set", batch_size=1, squash=16).epoch(0))


@pytest.mark.parametrize("transport", ["mapped", "staged", "direct", "resident"])
@pytest.mark.parametrize("codec", CODECS)
def test_further_images_of_one_size_are_delivered_as_stored(tmp_path, codec, transport):
    """Also where there is no room for all samples of a batch."""
    latent = sl.ImageField("float16", 5, 3, layout="tensor")
    with sl.Writer(tmp_path / "set", size="original", codec=codec, columns={"latent": latent}) as writer:
        for number in range(64):
            image = np.full((40 + number, 50, 3), number, np.uint8)
            writer.add(f"{number}", image, 0, latent=np.full((5, 3), number, np.float16))
    if codec == "zstd" and transport == "mapped":
        pytest.skip("a compressed frame is not read in place")
    memory = sl.MemoryOptions(batch_bytes=2 * 103 * 50 * 3)
    options = {"center_crop": 32, "fields": {"latent": "stored"}, "transport": transport, "memory": memory}
    loader = sl.Loader(tmp_path / "set", **{**options_of(options), "batch_size": 16})
    for epoch in range(2):
        for batch in loader.epoch(epoch):
            numbers = batch.ids.reshape(-1, 1, 1)
            assert (batch.images == numbers[..., None]).all()
            assert (batch.field("latent") == numbers).all()


def test_fields_follow_views_that_are_set_later(tmp_path):
    mask = sl.ImageField("uint8", 24, 24, 1, role="mask")
    with sl.Writer(tmp_path / "set", resize=24, crop=24, codec="packed", columns={"mask": mask}) as writer:
        for number in range(4):
            writer.add(f"{number}", np.zeros((24, 24, 3), np.uint8), 0, mask=np.zeros((24, 24, 1), np.uint8))
    options = {**options_of({"dtype": "uint8"}), "batch_size": 2}
    loader = sl.Loader(tmp_path / "set", center_crop=16, fields=["mask"], **options)
    view = {"patch": 8, "max_tokens": 4}
    with pytest.raises(sl.UnsupportedError, match='field "mask": it cannot follow'):
        loader.set_augment(sl.Augment(**view))
    other = sl.Loader(tmp_path / "set", **options, **view)
    next(iter(other))
    with pytest.raises(sl.UnsupportedError, match='field "mask": it cannot follow'):
        loader.load_state_dict(other.state_dict(), keep_views=False)
    assert next(iter(loader)).field("mask").shape == (2, 16, 16)
    for view, shape in (({"letterbox": (16, 32)}, (2, 16, 32)), ({"padded": 32}, (2, 32, 32))):
        loader.set_augment(sl.Augment(**view))
        assert next(iter(loader)).field("mask").shape == shape


@pytest.mark.parametrize("transport", ["auto", "staged", "direct", "resident"])
@pytest.mark.parametrize("table", ["shapes", "frame_offsets"])
@pytest.mark.parametrize("codec", CODECS)
def test_sizes_that_change_under_a_loader(tmp_path, codec, table, transport):
    """Sizes and frames that do not fit each other any more are errors that name the sample."""
    with sl.Writer(tmp_path / "set", size="original", codec=codec, samples_per_shard=64) as writer:
        for number in range(64):
            writer.add(f"{number}", np.full((40 + number, 50, 3), number, np.uint8), 0)
    memory = sl.MemoryOptions(batch_bytes=2 * 103 * 50 * 3)
    options = {
        "center_crop": 32,
        "transport": transport,
        "memory": memory,
        "shuffle": False,
        "batch_size": 16,
    }
    loader = sl.Loader(tmp_path / "set", **{**options_of({}), **options})
    assert len(list(loader.epoch(0))) == 4
    (shard,) = (tmp_path / "set").glob("*.safetensors")
    with open(shard, "r+b") as file:
        size = int.from_bytes(file.read(8), "little")
        begin = 8 + size + json.loads(file.read(size))[table]["data_offsets"][0]
        if table == "shapes":
            file.seek(begin + 2 * 8)
            file.write((100).to_bytes(4, "little"))
        else:
            file.seek(begin + 3 * 8)
            end = int.from_bytes(file.read(8), "little")
            file.seek(begin + 3 * 8)
            file.write((end + 16).to_bytes(8, "little"))
    try:
        for batch in loader.epoch(2):  # epoch 1 may have been made already
            assert (batch.images == batch.ids.reshape(-1, 1, 1, 1)).all()
        assert transport == "resident"  # its samples are read once
    except sl.CorruptError as error:
        assert any(f'sample {number} ("{number}")' in str(error) for number in (2, 3))


@pytest.mark.parametrize("transport", ["staged", "direct", "resident"])
def test_an_epoch_after_a_bad_sample_without_room(tmp_path, transport):
    with sl.Writer(tmp_path / "set", size="original", codec="none", samples_per_shard=64) as writer:
        for number in range(64):
            writer.add(f"{number}", np.full((40 + number, 50, 3), number, np.uint8), 0)
    (shard,) = (tmp_path / "set").glob("*.safetensors")
    whole = shard.read_bytes()
    memory = sl.MemoryOptions(batch_bytes=2 * 103 * 50 * 3)
    options = {
        "center_crop": 32,
        "transport": transport,
        "memory": memory,
        "batch_size": 16,
        "verify": "always",
    }
    loader = sl.Loader(tmp_path / "set", **{**options_of({"shuffle": False}), **options})
    at = whole.index(bytes([46]) * 3000)
    for epoch in (0, 2, 4):  # the ones between may have been made already
        with open(shard, "r+b") as file:
            file.seek(at)
            file.write(bytes([47]))
        with pytest.raises(sl.CorruptError, match='sample 46 \\("46"\\)'):
            list(loader.epoch(epoch))
        with open(shard, "r+b") as file:
            file.write(whole)
        for batch in loader.epoch(epoch):
            assert (batch.images == batch.ids.reshape(-1, 1, 1, 1)).all()


@pytest.mark.parametrize(
    "option", [{"padded": 32}, {"patch": 4, "max_tokens": 9}, {"fill": 3}, {"filter": "box"}]
)
def test_tensors_have_no_pixels_to_place(tmp_path, option):
    with sl.Writer(tmp_path / "set", sample=("uint8", 16)) as writer:
        for number in range(4):
            writer.add(f"{number}", np.full(16, number, np.uint8), 0)
    with pytest.raises(sl.InvalidArgumentError, match="the samples are tensors"):
        sl.Loader(tmp_path / "set", batch_size=2, **option)


def test_geometry_of_many_channels(tmp_path):
    np.save(tmp_path / "bands.npy", np.zeros((4, 32, 32, 6), np.uint8))
    form = {"channels": "keep", "resize": 32, "crop": 32, "dtype": "uint8", "layout": "nhwc"}
    sl.convert(tmp_path / "bands.npy", tmp_path / "set", **form)
    loader = sl.Loader(tmp_path / "set", **options_of({"random_crop": 16}))
    assert loader.geometry(0).crop[2:] == (16, 16)
