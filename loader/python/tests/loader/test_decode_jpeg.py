"""decode_jpeg against Pillow, on the host; `pytest -m gpu`: on a GPU."""

import io
import pathlib
import struct
import threading

import numpy as np
import pytest

import shardloader as sl

Image = pytest.importorskip("PIL.Image", reason="Pillow makes the files, and decodes them for comparison")
ImageOps = pytest.importorskip("PIL.ImageOps")

DEVICES = ["cpu", pytest.param("cuda:0", marks=pytest.mark.gpu)]


@pytest.fixture(params=DEVICES)
def device(request):
    if request.param != "cpu" and (not sl.has_cuda or sl.cuda_device_count() == 0):
        pytest.skip("no CUDA device")
    return request.param


def picture(seed, width, height, mode="RGB"):
    random = np.random.default_rng(seed)
    channels = len(Image.new(mode, (1, 1)).getbands())
    slope = np.add.outer(np.arange(height), np.arange(width))[..., None] * random.integers(1, 5, channels)
    values = (slope + random.integers(0, 30, (height, width, channels))) % 256
    values = values.astype(np.uint8)
    return Image.fromarray(values[..., 0] if channels == 1 else values, mode)


def jpeg(image, orientation=None, **options):
    stored = io.BytesIO()
    if orientation is not None:
        exif = Image.Exif()
        exif[0x0112] = orientation
        options["exif"] = exif
    image.save(stored, "JPEG", **options)
    return stored.getvalue()


def by_pillow(file):
    return ImageOps.exif_transpose(Image.open(io.BytesIO(file))).convert("RGB")


def resized(image, size, filter):
    """First the columns. Pillow 12.3 and later begin with the rows where that is quicker."""
    filter = Image.Resampling[filter.upper()]
    return image.resize((size[0], image.height), filter).resize(size, filter)


def on_host(array):
    return np.asarray(array.cpu() if hasattr(array, "cpu") else array)


def some_files():
    files = [
        jpeg(picture(1, 61, 43)),
        jpeg(picture(2, 100, 75), subsampling=0, quality=97),
        jpeg(picture(3, 33, 80), subsampling=1, orientation=6),
        jpeg(picture(4, 20, 9, "L")),
        jpeg(picture(5, 90, 60), progressive=True, orientation=3),
        jpeg(picture(6, 50, 50, "CMYK")),
        jpeg(picture(7, 400, 300), restart_marker_blocks=5),  # where Pillow has it (10.2)
        jpeg(picture(8, 1, 1), optimize=True),
    ]
    return files + [jpeg(picture(10 + k, 40, 25), orientation=k) for k in range(1, 9)]


def test_pixels_are_pillows(device):
    files = some_files()
    decoded = sl.decode_jpeg(files, device)
    assert len(decoded) == len(files) and decoded.failures == {}
    for image, file in zip(decoded, files):
        np.testing.assert_array_equal(on_host(image), np.asarray(by_pillow(file)))
    assert decoded.on_host == (len(files) if device == "cpu" else 1)


@pytest.mark.parametrize("filter", ["bilinear", "bicubic", "box", "lanczos"])
def test_sizes_and_crops_are_pillows(device, filter):
    files = some_files()
    boxes = []
    right = []
    for k, file in enumerate(files):
        image = by_pillow(file)
        box = None if k % 3 == 0 else (0, 0, max(1, image.width // 2), max(1, image.height - 1))
        boxes.append(box)
        right.append(resized(image if box is None else image.crop(box), (31, 17), filter))
    decoded = sl.decode_jpeg(files, device, size=(17, 31), crop=boxes, filter=filter)
    assert tuple(decoded.images.shape) == (len(files), 17, 31, 3)
    np.testing.assert_array_equal(on_host(decoded.images), np.stack([np.asarray(image) for image in right]))


def test_crops_keep_their_sizes(device):
    file = jpeg(picture(1, 61, 43))
    decoded = sl.decode_jpeg([file, file], device, crop=[(3, 5, 50, 43), None])
    np.testing.assert_array_equal(on_host(decoded[0]), np.asarray(by_pillow(file).crop((3, 5, 50, 43))))
    np.testing.assert_array_equal(on_host(decoded[1]), np.asarray(by_pillow(file)))


def test_floats_and_layouts(device):
    file = jpeg(picture(1, 61, 43))
    mean, std = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
    images = on_host(
        sl.decode_jpeg([file], device, size=24, dtype="float32", layout="nchw", mean=mean, std=std).images
    )
    pixels = np.asarray(resized(by_pillow(file), (24, 24), "bilinear")).astype(np.float32)
    right = (pixels / np.float32(255) - np.float32(mean)) / np.float32(std)
    np.testing.assert_array_equal(images, right.transpose(2, 0, 1)[None])
    half = on_host(sl.decode_jpeg([file], device, size=24, dtype=np.float16).images)
    np.testing.assert_array_equal(half, (pixels / np.float32(255)).astype(np.float16)[None])


def test_as_stored(device):
    image = picture(1, 30, 20)
    turned = sl.decode_jpeg([jpeg(image, orientation=6)], device)
    stored = sl.decode_jpeg([jpeg(image, orientation=6)], device, upright=False)
    assert turned[0].shape == (30, 20, 3) and stored[0].shape == (20, 30, 3)


def test_any_buffer(device):
    file = jpeg(picture(1, 30, 20))
    given = [file, bytearray(file), memoryview(file), np.frombuffer(file, np.uint8)]
    for image in sl.decode_jpeg(given, device, framework="numpy" if device == "cpu" else "auto"):
        np.testing.assert_array_equal(on_host(image), np.asarray(by_pillow(file)))


def test_failures_name_the_file(device):
    good = jpeg(picture(1, 64, 64))
    png = io.BytesIO()
    picture(1, 4, 4).save(png, "PNG")
    cut = good[: len(good) // 2]
    with pytest.raises(sl.CorruptError, match="input 1: "):
        sl.decode_jpeg([good, cut], device)
    with pytest.raises(sl.UnsupportedError, match="input 0: PNG, not JPEG"):
        sl.decode_jpeg([png.getvalue(), good], device)
    with pytest.raises(
        sl.InvalidArgumentError, match="input 0: a box of 65 columns .*64 x 64 .*smaller or move"
    ):
        sl.decode_jpeg([good], device, crop=[(0, 0, 65, 1)])
    at = good.index(b"\xff\xc0") + 5
    large = good[:at] + struct.pack(">HH", 60000, 50000) + good[at + 4 :]
    with pytest.raises(sl.ResourceError, match="input 1: 50000 x 60000 pixels; at most 178956970 .*convers"):
        sl.decode_jpeg([good, large], device, size=8)
    decoded = sl.decode_jpeg([cut, good, png.getvalue()], device, on_error="report")
    assert sorted(decoded.failures) == [0, 2] and decoded[0] is None and decoded[2] is None
    assert isinstance(decoded.failures[2], sl.UnsupportedError)
    np.testing.assert_array_equal(on_host(decoded[1]), np.asarray(by_pillow(good)))
    sized = sl.decode_jpeg([cut, good], device, size=8, on_error="report")
    assert (
        sorted(sized.failures) == [0]
        and not on_host(sized.images)[0].any()
        and on_host(sized.images)[1].any()
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"size": 0}, "size is 0"),
        ({"size": (8, 2**70)}, r"size is \(8, 1180591620717411303424\); expected a size from 1 to 65535"),
        ({"crop": [(1, 1, 1, 2)]}, "right > left"),
        ({"crop": [None, None]}, "crop has 2 boxes for 1 files"),
        ({"crop": 5}, "crop is 5; expected a list"),
        ({"dtype": "uint16"}, "dtype is 'uint16'"),
        ({"layout": "hwc"}, "layout is 'hwc'"),
        ({"filter": "nearest"}, "filter is 'nearest'"),
        ({"mean": (1, 2, 3)}, "normalisation"),
        ({"on_error": "skip"}, "on_error is 'skip'"),
        ({"threads": 65}, "threads is 65"),
        ({"device": "tpu"}, "device is 'tpu'"),
    ],
)
def test_options_are_checked(options, message):
    with pytest.raises(sl.InvalidArgumentError, match=message):
        sl.decode_jpeg([jpeg(picture(1, 8, 8))], **options)


def test_one_file_is_no_list():
    with pytest.raises(sl.InvalidArgumentError, match="files is 'bytes'"):
        sl.decode_jpeg(jpeg(picture(1, 8, 8)))
    for wrong in (None, 5):
        with pytest.raises(sl.InvalidArgumentError, match=f"files is {wrong}; expected a list with the"):
            sl.decode_jpeg(wrong)


class _Tensor:
    """What torchvision.io.read_file() returns: no buffer protocol, but numpy()."""

    def __init__(self, array):
        self.numpy = lambda: array


def test_tensors_of_bytes(device):
    files = [jpeg(picture(1, 30, 20)), jpeg(picture(2, 17, 31))]
    tensors = [_Tensor(np.frombuffer(file, np.uint8)) for file in files]
    for given in (tensors, [files[0], tensors[1]]):
        images = sl.decode_jpeg(given, device, framework="numpy" if device == "cpu" else "auto")
        for image, file in zip(images, files, strict=True):
            np.testing.assert_array_equal(on_host(image), np.asarray(by_pillow(file)))


@pytest.mark.parametrize(
    "array",
    [
        np.zeros(10, np.int8),
        np.zeros((2, 5), np.uint8),
        np.zeros(20, np.uint8)[::2],
    ],
)
def test_tensors_of_other_things_are_named(array):
    with pytest.raises(sl.InvalidArgumentError, match=r"files\[1\] is '_Tensor'; expected .*uint8, one axis"):
        sl.decode_jpeg([jpeg(picture(1, 8, 8)), _Tensor(array)])


def test_a_file_that_is_no_bytes_is_named():
    good = np.frombuffer(jpeg(picture(1, 8, 8)), np.uint8)
    for wrong in ("a.jpg", pathlib.Path("a.jpg"), None, 7, np.repeat(good, 2)[::2]):
        with pytest.raises(sl.InvalidArgumentError, match=r"files\[1\] is .*read_bytes"):
            sl.decode_jpeg([good, wrong, good])
    assert sl.decode_jpeg([good])[0].shape == (8, 8, 3)


def test_no_files(device):
    assert len(sl.decode_jpeg([], device)) == 0
    assert tuple(sl.decode_jpeg([], device, size=8, framework=None).images.shape) == (0, 8, 8, 3)


def test_several_threads(device):
    files = some_files()
    right = [np.asarray(by_pillow(file)) for file in files]
    wrong = []

    def decode():
        for _ in range(5):
            for image, expected in zip(sl.decode_jpeg(files, device, threads=1), right):
                if not np.array_equal(on_host(image), expected):
                    wrong.append(1)

    threads = [threading.Thread(target=decode) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
