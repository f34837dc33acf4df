"""The programs of docs/sources.md, each with the real package; skipped where it is not installed."""

import io
import os
import re
from pathlib import Path

import numpy as np
import pytest

import shardloader as sl
from conftest import png

PAGE = Path(__file__).resolve().parents[4] / "docs" / "sources.md"
COUNT = 6
pytestmark = pytest.mark.skipif(not PAGE.exists(), reason="the documentation is not here")


def program(heading):
    found = re.search(
        rf"^### {heading}\n.*?^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.S | re.M
    )
    assert found, heading
    assert len(found[1].splitlines()) <= 20
    return found[1]


def jpeg(seed):
    from PIL import Image

    file = io.BytesIO()
    Image.open(io.BytesIO(png(seed))).convert("RGB").save(file, "jpeg", quality=95)
    return file.getvalue()


@pytest.fixture
def pictures():
    return [jpeg(seed) for seed in range(COUNT)]


def expected(images, tmp_path):
    """The samples of the same images, with the preset of the programs."""
    sl.write(((str(i), image) for i, image in enumerate(images)), tmp_path / "expected", preset="train")
    data = sl.Dataset(tmp_path / "expected")
    return [data[i][0] for i in range(len(data))]


def run(heading, images, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(compile(program(heading), str(PAGE), "exec"), {})
    data = sl.Dataset("out")
    assert all(np.array_equal(data[i][0], sample) for i, sample in enumerate(expected(images, tmp_path)))
    assert len(data) == len(images)
    return data


def test_hugging_face_datasets(pictures, tmp_path, monkeypatch):
    monkeypatch.setenv("HF_DATASETS_OFFLINE", "1")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "cache"))
    pytest.importorskip("datasets", reason="the package datasets is not installed")
    for i, image in enumerate(pictures):
        folder = tmp_path / "photos" / ("ant" if i < 4 else "bee")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{i}.jpg").write_bytes(image)
    data = run("Hugging Face datasets", pictures, tmp_path, monkeypatch)
    assert data.classes == ("ant", "bee") and data.labels.tolist() == [0, 0, 0, 0, 1, 1]


def test_parquet(pictures, tmp_path, monkeypatch):
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    import pyarrow.parquet

    table = {
        "name": [f"{i}.jpg" for i in range(COUNT)],
        "jpeg": pictures,
        "label": list(range(COUNT)),
        "caption": ["äb"] * COUNT,
    }
    pyarrow.parquet.write_table(pyarrow.table(table), tmp_path / "photos.parquet", row_group_size=4)
    data = run("Parquet", pictures, tmp_path, monkeypatch)
    assert data.labels.tolist() == list(range(COUNT)) and list(data.keys) == table["name"]


def test_lmdb(pictures, tmp_path, monkeypatch):
    lmdb = pytest.importorskip("lmdb", reason="lmdb is not installed")
    with lmdb.open(str(tmp_path / "photos.lmdb")) as database, database.begin(write=True) as transaction:
        for i, image in enumerate(pictures):
            transaction.put(f"{i:04}.jpg".encode(), image)
    data = run("LMDB", pictures, tmp_path, monkeypatch)
    assert data.keys[0] == "0000.jpg"


def arrays():
    return np.random.default_rng(1).integers(0, 256, (COUNT, 40, 30, 3), np.uint8)


def test_hdf5(tmp_path, monkeypatch):
    h5py = pytest.importorskip("h5py", reason="h5py is not installed")
    with h5py.File(tmp_path / "photos.h5", "w") as file:
        file["images"] = arrays()
        file["labels"] = np.arange(COUNT, dtype=np.int32)
        file["embeddings"] = np.ones((COUNT, 5), np.float16)
    data = run("HDF5", arrays(), tmp_path, monkeypatch)
    assert data.labels.tolist() == list(range(COUNT)) and "embedding" in data.columns


def test_tfrecord(pictures, tmp_path, monkeypatch):
    tfrecord = pytest.importorskip("tfrecord", reason="tfrecord is not installed")
    writer = tfrecord.TFRecordWriter(str(tmp_path / "photos.tfrecord"))
    for i, image in enumerate(pictures):
        writer.write({"image": (image, "byte"), "label": (i, "int"), "name": (f"{i}.jpg".encode(), "byte")})
    writer.close()
    data = run("TFRecord", pictures, tmp_path, monkeypatch)
    assert data.labels.tolist() == list(range(COUNT)) and data.keys[0] == "0.jpg"


def beton(path, pictures, numbers):
    """A file as FFCV 1.0 writes it: pages of 2 MiB, images raw (arrays) or jpg (bytes),
    and whole numbers and floats."""
    import struct

    names = (b"image", b"label", b"weight")
    head = 24 + 1041 * len(names)
    rows, blobs, allocations = b"", bytearray(), []
    at = -(-(head + 32 * len(pictures)) // (1 << 21)) * (1 << 21)
    first = at
    for i, (picture, number) in enumerate(zip(pictures, numbers)):
        data = picture if isinstance(picture, bytes) else picture.tobytes()
        height, width = (7, 7) if isinstance(picture, bytes) else picture.shape[:2]
        rows += struct.pack(
            "<BHHQ3xqd", 0 if isinstance(picture, bytes) else 1, width, height, at, number, number / 2
        )
        allocations.append((i, at, len(data)))
        blobs += data
        at += len(data)
    descriptors = b"".join(
        bytes([kind]) + name.ljust(16, b"\0") + bytes(1024) for kind, name in zip((2, 1, 0), names)
    )
    table = b"".join(struct.pack("<QQQ", *entry) for entry in reversed(allocations))
    begin = struct.pack("<HHIQQ", 2, len(names), 1 << 21, len(pictures), at) + descriptors + rows
    path.write_bytes(begin.ljust(first, b"\0") + bytes(blobs) + table)


@pytest.mark.parametrize("kind", ["raw", "jpg", "smart"])
def test_ffcv(pictures, tmp_path, monkeypatch, kind):
    images = [
        pictures[i] if kind == "jpg" or (kind == "smart" and i % 2) else arrays()[i] for i in range(COUNT)
    ]
    beton(tmp_path / "photos.beton", images, range(5, 5 + COUNT))
    data = run("FFCV", images, tmp_path, monkeypatch)
    assert data.labels.tolist() == list(range(5, 5 + COUNT))


def test_torchvision_data_sets(pictures, tmp_path, monkeypatch):
    pytest.importorskip("torchvision", reason="torchvision is not installed")
    for i, image in enumerate(pictures):
        folder = tmp_path / "photos" / ("ant" if i < 4 else "bee")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{i}.jpg").write_bytes(image)
    from PIL import Image

    decoded = [np.asarray(Image.open(io.BytesIO(image)).convert("RGB")) for image in pictures]
    data = run("torchvision data sets", decoded, tmp_path, monkeypatch)
    assert data.classes == ("ant", "bee")


def test_every_program_of_the_page_is_run():
    headings = re.findall(
        r"^### (.*)$", PAGE.read_text(encoding="utf-8").split("## From Python")[1].split("\n## ")[0], re.M
    )
    tested = {name.removeprefix("test_").replace("_", " ") for name in globals() if name.startswith("test_")}
    assert {heading.lower() for heading in headings} <= tested
    assert os.path.exists(PAGE)
