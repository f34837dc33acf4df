"""Masks, depth and cameras of samples of any size: they follow every view of their images. References are
numpy's (torch's nearest) and Pillow's, whose images of mode F are resized in floats."""

import functools

import numpy as np
import pytest

import shardloader as sl
from any_size import CODECS, SIZES, begin, options_of, picture, size_of
from test_any_size import box_of

Image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")

IGNORED = 255


def mask_of(number, width, height):
    y, x = np.mgrid[:height, :width]
    return ((x // 3 + y // 4 * 2 + number) % 20).astype(np.uint8)


def depth_of(number, width, height):
    y, x = np.mgrid[:height, :width]
    noise = np.random.default_rng(number).integers(0, 3000, (height, width))
    return ((x * 71 + y * 53 + number * 500) % 60_000 + noise).astype(np.uint16)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Images, masks, depth of 16 bits and a second camera, in folders of the same names."""
    root = tmp_path_factory.mktemp("fields")
    for number, (width, height) in enumerate(SIZES):
        for kind, image in (
            ("images", picture(number, width, height, "RGB")),
            ("masks", Image.fromarray(mask_of(number, width, height))),
            ("depth", Image.fromarray(depth_of(number, width, height))),
            ("right", picture(number + 100, width, height, "RGB")),
        ):
            path = root / kind / "ab"[number % 2] / f"{number:02}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            image.save(path)
    return root


@pytest.fixture(scope="module")
def sets(folders, tmp_path_factory):
    """The data set of each codec; disparity is depth as float32."""
    made = {}
    for codec in CODECS:
        made[codec] = tmp_path_factory.mktemp("fields") / codec
        values = "none" if codec == "packed" else codec
        pairs = {
            "depth": f"{folders}/depth,codec={values}",
            "disparity": f"{folders}/depth,dtype=f32,codec={values}",
            "right": f"{folders}/right",
        }
        mask = f"{folders}/masks,classes=20,ignore={IGNORED}"
        options = {"codec": codec, "mask": mask, "pairs": pairs, "samples_per_shard": 7}
        sl.convert(folders / "images", made[codec], size="original", **options)
    return made


FIELDS = {
    "mask": sl.Pixels("nearest", fill=IGNORED),
    "depth": sl.Pixels("bilinear", fill=11),
    "disparity": sl.Pixels("bilinear", fill=-1),
    "right": sl.Pixels("bilinear", fill=5),
}


def number_of(data, sample):
    return int(data.keys[sample].rsplit("/", 1)[-1].removesuffix(".png"))


def stored(data, sample):
    """What each field of a sample is, [row, column] or [row, column, channel]."""
    return values_of(number_of(data, sample))


@functools.cache
def values_of(number):
    size = SIZES[number]
    depth = depth_of(number, *size)
    return {
        "mask": mask_of(number, *size),
        "depth": depth,
        "disparity": depth.astype(np.float32) / np.float32(65535),
        "right": np.asarray(picture(number + 100, *size, "RGB")),
    }


def nearest(values, height, width):
    """torch's nearest of an axis: floor of the position times the ratio, in float32."""
    for axis, to in enumerate((height, width)):
        side = values.shape[axis]
        at = np.arange(to, dtype=np.float32) * (np.float32(side) / np.float32(to))
        values = values.take(np.minimum(at.astype(np.int64), side - 1), axis)
    return values


def in_floats(values, height, width):
    """Pillow's bilinear of each channel, in floats."""
    if values.ndim == 3:
        return np.stack([in_floats(values[..., c], height, width) for c in range(values.shape[2])], -1)
    image = Image.fromarray(values.astype(np.float32), "F")
    return np.asarray(image.resize((width, height), Image.BILINEAR), np.float64)


def placed(values, height, width, top, left, fill):
    view = np.full((height, width, *values.shape[2:]), fill, values.dtype)
    rows = slice(max(top, 0), min(top + values.shape[0], height))
    columns = slice(max(left, 0), min(left + values.shape[1], width))
    down = slice(rows.start - top, rows.stop - top)
    view[rows, columns] = values[down, columns.start - left : columns.stop - left]
    return view


def centred(values, height, width, fill):
    return placed(values, height, width, begin(values.shape[0], height), begin(values.shape[1], width), fill)


def shaped(kind, values, to, resize):
    return resize(values, *size_of(kind, *values.shape[:2], to))


def boxed(values, to, resize, fill):
    inner = shaped("letterbox", values, to, resize)
    return placed(inner, *to, (to[0] - inner.shape[0]) // 2, (to[1] - inner.shape[1]) // 2, fill)


VIEWS = {
    "center_crop": ({"center_crop": (40, 51)}, lambda v, r, f: centred(v, 40, 51, f)),
    "shortest": (
        {"shortest": 24, "center_crop": (25, 60)},
        lambda v, r, f: centred(shaped("shortest", v, 24, r), 25, 60, f),
    ),
    "longest": (
        {"longest": 50, "center_crop": 50},
        lambda v, r, f: centred(shaped("longest", v, 50, r), 50, 50, f),
    ),
    "squash": ({"squash": (33, 70), "filter": "lanczos"}, lambda v, r, f: r(v, 33, 70)),
    "letterbox": ({"letterbox": (48, 60), "fill": 99}, lambda v, r, f: boxed(v, (48, 60), r, f)),
    "cover": ({"cover": (48, 60)}, lambda v, r, f: centred(shaped("cover", v, (48, 60), r), 48, 60, f)),
}


def expected_of(values, make, name):
    """`make(values, resize, fill)` is what is expected of a view of a field."""
    fill = FIELDS[name].fill
    return make(values, nearest, fill) if name == "mask" else make(values.astype(np.float64), in_floats, fill)


@functools.cache
def expected_view(view, number, name):
    """It is the same for every codec."""
    return expected_of(values_of(number)[name], VIEWS[view][1], name)


def check(found, values, make, name):
    compare(found, expected_of(values, make, name), name)


def compare(found, expected, name):
    if name == "mask":
        return np.testing.assert_array_equal(found, expected)
    # Bytes are rounded after the columns and after the rows, u16 once.
    tolerance = {"depth": 0.52, "disparity": 1e-6, "right": 1.1}[name]
    np.testing.assert_allclose(found.reshape(expected.shape), expected, rtol=0, atol=tolerance, err_msg=name)


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("view", VIEWS)
def test_fields_follow_views(view, codec, sets):
    options, _ = VIEWS[view]
    data = sl.Dataset(sets[codec])
    seen = 0
    for batch in sl.Loader(data, fields=FIELDS, **options_of(options)).epoch(0):
        assert batch.field("mask").dtype == np.uint8 and batch.field("depth").dtype == np.uint16
        for row, sample in enumerate(batch.ids.tolist()):
            for name in FIELDS:
                compare(batch.field(name)[row], expected_view(view, number_of(data, sample), name), name)
            seen += 1
    assert seen == len(SIZES)


@pytest.mark.parametrize("transport", ["mapped", "staged", "direct", "resident"])
@pytest.mark.parametrize("codec", CODECS)
def test_fields_follow_crops_that_are_drawn(codec, transport, sets):
    """Also where the room is for the largest sample only."""
    if codec == "zstd" and transport == "mapped":
        pytest.skip("a compressed frame is not read in place")
    data = sl.Dataset(sets[codec])
    options = {"random_resized_crop": (40, 56), "flip": True, "scale": (0.1, 1), "correspondence": True}
    memory = sl.MemoryOptions(batch_bytes=640 * 480 * 3)
    flips = 0
    loader = sl.Loader(data, fields=FIELDS, transport=transport, memory=memory, **options_of(options))
    for batch in loader.epoch(1):
        for row, sample in enumerate(batch.ids.tolist()):
            (left, top, right, bottom), flip = box_of(batch.column("correspondence")[row, 0], 40, 56)
            flips += flip

            def make(values, resize, fill):
                made = resize(values[top:bottom, left:right], 40, 56)
                return made[:, ::-1] if flip else made

            for name, values in stored(data, sample).items():
                check(batch.field(name)[row], values, make, name)
    assert 0 < flips < len(SIZES)


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("flip", [None, 1.0])
def test_fields_are_padded(flip, codec, sets):
    data = sl.Dataset(sets[codec])
    shapes = set()
    for batch in sl.Loader(data, fields=FIELDS, **options_of({"padded": 16, "flip": flip, "layout": "nhwc"})):
        height, width = batch.images.shape[1:3]
        shapes.add((height, width))
        assert batch.field("mask").shape == (len(batch.ids), height, width)
        for row, sample in enumerate(batch.ids.tolist()):

            def make(values, resize, fill):
                return placed(values[:, ::-1] if flip else values, height, width, 0, 0, fill)

            for name, values in stored(data, sample).items():
                check(batch.field(name)[row], values, make, name)
    assert len(shapes) > 1


@pytest.mark.parametrize("codec", CODECS)
def test_fields_follow_into_buckets(codec, sets):
    data = sl.Dataset(sets[codec])
    shapes = set()
    options = {"buckets": [(32, 32), (16, 64), (64, 16)], "layout": "nhwc"}
    for batch in sl.Loader(data, fields=FIELDS, **options_of(options)).epoch(0):
        to = tuple(batch.images.shape[1:3])
        shapes.add(to)
        for row, sample in enumerate(batch.ids.tolist()):

            def make(values, resize, fill):
                return centred(shaped("cover", values, to, resize), *to, fill)

            for name, values in stored(data, sample).items():
                check(batch.field(name)[row], values, make, name)
    assert len(shapes) == 3


def test_operations_move_fields_with_their_images(sets):
    data = sl.Dataset(sets["packed"])
    options = options_of({"fields": {"mask": FIELDS["mask"]}})
    augment = sl.Augment(letterbox=48, ops=[sl.ops.affine(25)])
    moved = 0
    loaders = sl.Loader(data, augment=augment, **options), sl.Loader(data, letterbox=48, **options)
    for batch, still in zip(*(loader.epoch(0) for loader in loaders)):
        np.testing.assert_array_equal(batch.ids, still.ids)
        moved += int((batch.field("mask") != still.field("mask")).any(axis=(1, 2)).sum())
        assert set(np.unique(batch.field("mask"))) <= set(np.unique(still.field("mask"))) | {IGNORED}
    assert moved > len(SIZES) // 2


def test_samples_of_one_size_have_fields_that_follow_too(tmp_path):
    """Letterbox and padded of a set whose samples have one size."""
    mask = sl.ImageField("uint8", 24, 36, 1, role="mask", codec="packed")
    depth = sl.ImageField("float32", 24, 36, 1)
    columns = {"mask": mask, "depth": depth}
    with sl.Writer(tmp_path / "set", squash=(24, 36), codec="packed", columns=columns) as writer:
        for number in range(6):
            values = mask_of(number, 36, 24)[..., None]
            image = np.zeros((24, 36, 3), np.uint8)
            writer.add(f"{number}", image, 0, mask=values, depth=values.astype(np.float32))
    fields = {"mask": FIELDS["mask"], "depth": sl.Pixels("bilinear", fill=-3)}
    loader = sl.Loader(tmp_path / "set", letterbox=48, fields=fields, **options_of({}))
    for batch in loader.epoch(0):
        for row, sample in enumerate(batch.ids.tolist()):
            values = mask_of(sample, 36, 24)
            np.testing.assert_array_equal(batch.field("mask")[row], boxed(values, (48, 48), nearest, IGNORED))
            expected = boxed(values.astype(np.float64), (48, 48), in_floats, -3)
            np.testing.assert_allclose(batch.field("depth")[row].reshape(48, 48), expected, atol=1e-5)


# --- Images that are not bytes of up to four channels -------------------------------------------------------


@pytest.mark.parametrize("dtype", ["uint16", "float16", "float32"])
@pytest.mark.parametrize("filter", ["bilinear", "bicubic", "lanczos"])
def test_images_of_other_dtypes_are_resized_in_floats(filter, dtype, folders, tmp_path):
    options = {} if dtype == "uint16" else {"mean": (0, 0, 0), "std": (1, 1, 1)}
    options.update(size="original", dtype=dtype, codec="zstd")
    sl.convert(folders / "images", tmp_path / "set", **options)
    data = sl.Dataset(tmp_path / "set")
    filters = {"bilinear": Image.BILINEAR, "bicubic": Image.BICUBIC, "lanczos": Image.LANCZOS}

    def resize(values, height, width):
        planes = [Image.fromarray(values[..., c].astype(np.float32), "F") for c in range(3)]
        return np.stack([np.asarray(plane.resize((width, height), filters[filter])) for plane in planes], -1)

    options = {"letterbox": (40, 52), "filter": filter, "layout": "nhwc", "dtype": dtype}
    seen = 0
    for batch in sl.Loader(data, **options_of(options)).epoch(0):
        assert batch.images.dtype == np.dtype(dtype)
        for row, sample in enumerate(batch.ids.tolist()):
            expected = boxed(np.asarray(data[sample][0], np.float64), (40, 52), resize, 0)
            if dtype == "uint16":
                expected = expected.clip(0, 65535)
            tolerance = {"uint16": 0.52, "float16": 1e-3, "float32": 2e-6}[dtype]
            np.testing.assert_allclose(batch.images[row], expected, rtol=0, atol=tolerance)
            seen += 1
    assert seen == len(SIZES)


@pytest.mark.parametrize(
    "options", [{"patch": 8, "max_tokens": 20}, {"padded": 4}, {"random_resized_crop": 16}]
)
def test_images_of_16_bits_have_all_views(options, folders, tmp_path):
    """The same as the bytes that they are multiples of, but for rounding."""
    for name, dtype in (("bytes", "uint8"), ("words", "uint16")):
        sl.convert(folders / "images", tmp_path / name, size="original", dtype=dtype, codec="none")
    loaders = [sl.Loader(tmp_path / name, **options_of(options)) for name in ("bytes", "words")]
    for few, many in zip(*(loader.epoch(0) for loader in loaders)):
        assert few.images.shape == many.images.shape
        difference = np.abs(many.images.astype(np.float64) / 257 - few.images)
        assert difference.max() <= 1.1


def test_fill_of_other_dtypes_is_refused(folders, tmp_path):
    sl.convert(folders / "images", tmp_path / "set", size="original", dtype="uint16", codec="none")
    with pytest.raises(sl.InvalidArgumentError, match="fill has bytes.*uint16"):
        sl.Loader(tmp_path / "set", **options_of({"letterbox": 8, "fill": 3}))


# --- What is not possible -----------------------------------------------------------------------------------


def test_a_field_of_another_size_than_its_image_is_an_error_that_names_it(folders, tmp_path):
    """--pair size=any allows such files; a loader does not deliver them as if they followed."""
    other = tmp_path / "other"
    for path in (folders / "depth").rglob("*.png"):
        image = Image.open(path)
        size = (image.width, image.height + 3) if path.stem == "04" else image.size
        (other / path.parent.name).mkdir(parents=True, exist_ok=True)
        image.resize(size, Image.NEAREST).save(other / path.parent.name / path.name)
    sl.convert(folders / "images", tmp_path / "set", size="original", pairs={"depth": f"{other},size=any"})
    width, height = SIZES[4]
    message = rf'a/04.png.*field "depth".*{height + 3} x {width}.*its image has {height} x {width}.*size=any'
    with pytest.raises(sl.InvalidArgumentError, match=message):
        for _ in sl.Loader(tmp_path / "set", fields={"depth": "bilinear"}, **options_of({"letterbox": 8})):
            pass
    for _ in sl.Loader(tmp_path / "set", **options_of({"letterbox": 8})):
        pass


def test_a_box_outside_of_its_image_is_an_error_that_names_it(tmp_path):
    columns = {"boxes": sl.Ragged("float32", 4)}
    with sl.Writer(tmp_path / "set", size="original", columns=columns) as writer:
        for number in range(4):
            boxes = [[1, 2, 9, 9], [35, 1, 90, 20]] if number != 2 else [[1, 2, 9, 9], [50, 1, 90, 20]]
            writer.add(f"k{number}", np.zeros((30, 40, 3), np.uint8), 0, boxes=boxes)
    message = r'"k2".*box 1 of column "boxes", \(50, 1, 90, 20\).*its image of 30 x 40'
    options = options_of({"letterbox": 8})
    with pytest.raises(sl.InvalidArgumentError, match=message):
        list(sl.Loader(tmp_path / "set", fields={"boxes": sl.Boxes()}, **options).epoch(0))
    list(sl.Loader(tmp_path / "set", as_stored=["boxes"], **options).epoch(0))


@pytest.mark.parametrize(
    "options, message",
    [
        ({"fields": {"mask": "stored"}, "letterbox": 8}, "any size, and as stored they are no array"),
        ({"fields": ["mask"], "patch": 8, "max_tokens": 8}, "cannot follow views in patches"),
    ],
)
def test_what_fields_of_any_size_cannot_do_is_refused(options, message, sets):
    with pytest.raises(sl.UnsupportedError, match=f'field "mask".*{message}'):
        sl.Loader(sets["none"], **options_of(options))
