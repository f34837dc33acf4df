"""Small data sets, made by the package itself, and an independent reader of theirs."""

import io
import json
import random
import struct
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest

import shardloader as sl

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "tests" / "programs" / "support"))  # servers

SIDE = 32
EACH = 20
CLASSES = ("ant", "bee", "cow")
SAMPLES = EACH * len(CLASSES)
MEAN = np.array([0.485, 0.456, 0.406], np.float32)
STD = np.array([0.229, 0.224, 0.225], np.float32)


def png(seed: int, width: int = 48, height: int = 40) -> bytes:
    """A small RGB picture; the same bytes for the same arguments."""
    noise = random.Random(seed)
    rows = bytearray()
    for y in range(height):
        rows.append(0)  # filter: none
        for x in range(width):
            rows += bytes(((x * 5 + seed * 37) % 256, (y * 6 + seed * 11) % 256, noise.randrange(256)))

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(bytes(rows), 1))
        + chunk(b"IEND", b"")
    )


def make_images(folder: Path, each: int = EACH) -> Path:
    for c, name in enumerate(CLASSES):
        (folder / name).mkdir(parents=True)
        for i in range(each):
            (folder / name / f"{i:03}.png").write_bytes(png(100 * c + i))
    return folder


def read_by_offset(folder) -> "tuple[np.ndarray, np.ndarray]":
    """Images and labels with numpy alone, as README.md shows: nothing of the library."""
    images, labels = [], []
    info = json.loads(Path(folder, "dataset.json").read_text())
    for shard in info["shards"]:
        path = Path(folder, shard["file"])
        head = path.read_bytes()[: 8 + int(np.fromfile(path, "<u8", 1)[0])]
        tensors = json.loads(head[8:])
        for name, parts, kinds in (
            ("images", images, {"U8": "u1", "F16": "<f2", "F32": "<f4", "BF16": "<u2"}),
            ("labels", labels, {"I64": "<i8", "F32": "<f4"}),
        ):
            t = tensors[name]
            parts.append(
                np.memmap(path, kinds[t["dtype"]], "r", len(head) + t["data_offsets"][0], tuple(t["shape"]))
            )
    return np.concatenate(images), np.concatenate(labels)


def jpeg(seed: int, width: int, height: int, **how) -> bytes:
    """A JPEG file; how: of Pillow."""
    from PIL import Image

    noise = np.random.default_rng(seed).integers(0, 256, (height // 4 + 1, width // 4 + 1, 3), np.uint8)
    file = io.BytesIO()
    Image.fromarray(noise).resize((width, height)).save(file, "JPEG", quality=90, **how)
    return file.getvalue()


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    """JPEG files of many sizes, some of them turned, progressive or gray, and a few PNG files."""
    Image = pytest.importorskip("PIL.Image")
    folder = tmp_path_factory.mktemp("photos") / "photos"
    for number in range(40):
        path = folder / ("cat", "dog", "emu")[number % 3] / f"{number:02}"
        path.parent.mkdir(parents=True, exist_ok=True)
        width, height = 60 + number * 7 % 80, 50 + number * 13 % 90
        if number % 8 == 7:
            path.with_suffix(".png").write_bytes(png(number, width, height))
            continue
        exif = Image.Exif()
        if number % 5 == 1:
            exif[0x0112] = 6  # a quarter turn
        path.with_suffix(".jpg").write_bytes(
            jpeg(number, width, height, progressive=number % 4 == 2, exif=exif)
        )
    return folder


@pytest.fixture
def some_bad(tmp_path):
    """Every third picture of 30 is cut off in its pixels, and one is empty."""
    folder = make_images(tmp_path / "images", 10)
    bad = sorted(folder.rglob("*.png"))[::3]
    for path in bad:
        path.write_bytes(path.read_bytes()[:1000])
    bad[4].write_bytes(b"")
    return folder, bad


@pytest.fixture(scope="session")
def images(tmp_path_factory):
    return make_images(tmp_path_factory.mktemp("pictures") / "images")


@pytest.fixture(scope="session")
def make(images, tmp_path_factory):
    """A data set of the pictures with these options: its path. Each is made once."""
    made = {}

    def make(**options):
        options = {
            "preset": "train",
            "resize": SIDE,
            "crop": SIDE,
            "samples_per_shard": 8,
            "jobs": 2,
            **options,
        }
        key = repr(sorted(options.items()))
        if key not in made:
            out = tmp_path_factory.mktemp("data") / "out"
            assert sl.convert(images, out, **options).samples == SAMPLES
            made[key] = out
        return made[key]

    return make


@pytest.fixture(scope="session")
def folder(make):
    """uint8 [row, column, channel], codec none, 8 samples a shard."""
    return make()


@pytest.fixture
def data(folder):
    return sl.Dataset(folder)


@pytest.fixture(scope="session")
def reference(folder):
    return read_by_offset(folder)


def need_libcurl(address):
    """Skips a test where this build reads nothing from servers. address: on a server that runs."""
    try:
        sl.Dataset(address)
    except sl.NotFoundError:
        pass
    except sl.UnsupportedError as error:
        pytest.skip(str(error))


def ids_of(loader, epoch=0):
    return [int(i) for batch in loader.epoch(epoch) for i in batch.ids]


# Samples of any size (any_size.py).


@pytest.fixture(scope="session")
def files(tmp_path_factory):
    """A folder of PNG files in two classes, every fifth of them grey."""
    any_size = pytest.importorskip("any_size")
    folder = tmp_path_factory.mktemp("any") / "images"
    for number, (width, height) in enumerate(any_size.SIZES):
        path = folder / "ab"[number % 2] / f"{number:02}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        any_size.picture(number, width, height, "L" if number % 5 == 4 else "RGB").save(path)
    return folder


@pytest.fixture(scope="session")
def sets(files, tmp_path_factory):
    """The data set of each codec."""
    any_size = pytest.importorskip("any_size")
    made = {}
    for codec in any_size.CODECS:
        made[codec] = tmp_path_factory.mktemp("any") / codec
        found = sl.convert(files, made[codec], size="original", codec=codec, samples_per_shard=7)
        assert found.samples == len(any_size.SIZES)
    return made


@pytest.fixture(scope="session")
def pictures(files, sets):
    """The image of each sample."""
    image = pytest.importorskip("PIL.Image")
    return [image.open(files / key).convert("RGB") for key in sl.Dataset(sets["none"]).keys]


@pytest.fixture(scope="session")
def boxed(tmp_path_factory, files):
    """A data set of a Writer, with boxes."""
    any_size = pytest.importorskip("any_size")
    folder = tmp_path_factory.mktemp("boxed") / "set"
    columns = {"boxes": sl.Ragged("float32", 4), "names": sl.Ragged("int64")}
    how = {"size": "original", "codec": "packed", "samples_per_shard": 9}
    with sl.Writer(folder, columns=columns, **how) as writer:
        for number, size in enumerate(any_size.SIZES):
            boxes = any_size.boxes_of(number, *size)
            image = files / "ab"[number % 2] / f"{number:02}.png"
            writer.add(f"{number}", image, 0, boxes=boxes, names=np.arange(len(boxes)))
    return folder
