"""sl.Writer and sl.write: data sets of images that a program hands over.

SHARD_WRITER_KILLS: how often the killed writer is killed (default 5).
"""

import filecmp
import gc
import io
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import numpy as np
import pytest

import shardloader as sl
from conftest import CLASSES, EACH, SAMPLES, SIDE, png

OPTIONS = {"preset": "train", "resize": SIDE, "crop": SIDE, "samples_per_shard": 8}
KILLS = int(os.environ.get("SHARD_WRITER_KILLS", "5"))


def rows(images):
    for path in sorted(images.rglob("*.png")):
        yield {"key": str(path.relative_to(images)), "image": path.read_bytes(), "label": path.parent.name}


def shard_names(folder):
    return sorted(name for name in os.listdir(folder) if name.endswith(".safetensors"))


def assert_same_shards(folder, out):
    names = shard_names(folder)
    assert shard_names(out) == names
    assert filecmp.cmpfiles(folder, out, names, False)[1:] == ([], [])


def tensors(path):
    """The tensors of a shard, by the specification of safetensors."""
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    kinds = {
        "U8": "u1",
        "BOOL": "?",
        "I16": "<i2",
        "F16": "<f2",
        "BF16": "<u2",
        "F32": "<f4",
        "F64": "<f8",
        "I64": "<i8",
        "U64": "<u8",
    }
    return {
        name: np.frombuffer(data[8 + size :][slice(*t["data_offsets"])], kinds[t["dtype"]]).reshape(
            t["shape"]
        )
        for name, t in json.loads(data[8 : 8 + size]).items()
        if name != "__metadata__"
    }


def test_the_same_bytes_as_convert(images, folder, tmp_path):
    out = tmp_path / "out"
    with sl.Writer(out, classes=CLASSES, **OPTIONS) as writer:
        for row in rows(images):
            assert writer.add(**row)
        assert len(writer) == SAMPLES and not writer.closed
    result = writer.close()
    assert (result.samples, result.rejects, result.shards, result.complete) == (SAMPLES, 0, 8, True)
    assert writer.closed and len(writer) == SAMPLES
    assert sorted(os.listdir(out)) == sorted(os.listdir(folder))
    assert_same_shards(folder, out)
    assert filecmp.cmpfiles(folder, out, ["inputs.csv", "rejects.csv"], False)[1:] == ([], [])
    ours, theirs = (json.loads((f / "dataset.json").read_text()) for f in (out, folder))
    assert {name for name in theirs if ours[name] != theirs[name]} == {"source_digest", "digest"}
    sl.Dataset(out).verify()


@pytest.mark.parametrize("form", ["path", "array", "pillow", "memoryview"])
def test_every_form_of_image(images, folder, tmp_path, form):
    from PIL import Image

    def of(row):
        if form == "path":
            return images / row["key"]
        if form == "memoryview":
            return np.frombuffer(row["image"], np.uint8)
        picture = Image.open(io.BytesIO(row["image"]))
        return np.asarray(picture) if form == "array" else picture

    result = sl.write(
        ({**row, "image": of(row)} for row in rows(images)), tmp_path / "out", classes=CLASSES, **OPTIONS
    )
    assert result.samples == SAMPLES
    assert_same_shards(folder, tmp_path / "out")


def test_pillow_images_are_turned_upright(tmp_path):
    from PIL import Image

    picture = Image.fromarray(np.arange(8 * 4 * 3, dtype=np.uint8).reshape(8, 4, 3))
    exif = Image.Exif()
    exif[0x0112] = 6
    file = io.BytesIO()
    picture.save(file, "png", exif=exif)
    gray = np.full((6, 6), 9, np.uint8)
    with sl.Writer(tmp_path / "out", squash=(8, 8), dtype="uint8", layout="nhwc") as writer:
        writer.add("bytes", file.getvalue())
        writer.add("opened", Image.open(io.BytesIO(file.getvalue())))
        writer.add("gray", gray)
        writer.add("gray with an axis", gray[:, :, None])
        writer.add("colour", np.repeat(gray[:, :, None], 3, 2))
        writer.add("with alpha", np.dstack([gray] * 4))
        with pytest.raises(ValueError, match=r"'planes': the image is ndarray, uint8 \[3, 6, 6\]; expected"):
            writer.add("planes", np.zeros((3, 6, 6), np.uint8))
        with pytest.raises(ValueError, match=r"float64 \[6, 6, 3\]"):
            writer.add("floats", np.zeros((6, 6, 3)))
    data = sl.Dataset(tmp_path / "out")
    assert np.array_equal(data[0][0], data[1][0])
    assert all(np.array_equal(data[2][0], data[i][0]) for i in range(3, 6))


def test_columns_of_every_kind(tmp_path):
    columns = {
        "caption": sl.Text,
        "boxes": sl.Ragged("float32", 4),
        "words": sl.Ragged("int64"),
        "emb": ("float16", 3),
        "brain": ("bfloat16", (2,)),
    }
    given = [
        {
            "caption": "ein Käfer",
            "boxes": [[0, 1, 2, 3], [4, 5, 6, 7]],
            "words": [1, 2, 3],
            "emb": [0.5, 1, 2],
            "brain": [1.0, 3.1415926],
            "latent": np.eye(2, dtype=np.float32),
            "id": 7,
            "ok": True,
        },
        {
            "caption": "",
            "boxes": [],
            "words": np.zeros(0, np.int32),
            "emb": np.ones(3),
            "brain": np.zeros(2),
            "latent": np.ones((2, 2), np.float32),
            "id": 8,
            "ok": False,
        },
    ]
    with sl.Writer(tmp_path / "out", columns=columns, resize=8, crop=8, samples_per_shard=8) as writer:
        for i, more in enumerate(given):
            writer.add(str(i), png(i), i, **more)
    fields = sl.Dataset(tmp_path / "out").fields
    assert (
        fields[0]["caption"] == "ein Käfer"
        and fields[0]["boxes"].tolist() == given[0]["boxes"]
        and fields[0]["id"] == 7
    )
    found = tensors(tmp_path / "out" / "shard-00000.safetensors")
    assert bytes(found["caption"]).decode() == "ein Käfer" and found["caption_offsets"].tolist() == [
        0,
        10,
        10,
    ]
    assert found["boxes"].tolist() == given[0]["boxes"] and found["boxes_offsets"].tolist() == [0, 2, 2]
    assert found["words"].tolist() == [1, 2, 3] and found["emb"].tolist() == [[0.5, 1, 2], [1, 1, 1]]
    assert found["brain"].tolist() == [[0x3F80, 0x4049], [0, 0]]
    assert found["latent"].dtype == np.float32 and found["latent"].shape == (2, 2, 2)
    assert (
        found["id"].tolist() == [7, 8]
        and found["ok"].tolist() == [True, False]
        and found["labels"].tolist() == [0, 1]
    )


def further_images(i):
    generator = np.random.default_rng(i)
    return {
        "mask": generator.integers(0, 21, (6, 5, 1), np.uint8),
        "depth": generator.integers(0, 65536, (7, 3), np.uint16),
        "latent": generator.standard_normal((4, 2, 2)).astype(np.float16),
    }


FURTHER = {
    "mask": sl.ImageField("uint8", 6, 5, 1, role="mask", codec="packed"),
    "depth": sl.ImageField("uint16", 7, 3, codec="zstd"),
    "latent": sl.ImageField("float16", 4, 2, 2, layout="nchw", mean=[1, 2, 3, 4], std=[1, 1, 1, 2]),
}


def test_further_images(images, tmp_path):
    out = tmp_path / "out"
    with sl.Writer(out, classes=CLASSES, columns={"caption": sl.Text, **FURTHER}, **OPTIONS) as writer:
        for i, row in enumerate(rows(images)):
            assert writer.add(**row, caption=f"text {i}", **further_images(i))
    data = sl.Dataset(out)
    assert not data.verify()
    assert list(data.fields) == ["image", "label", "caption", *FURTHER]
    assert data.fields["mask"] == sl.types.Field("mask", "uint8", (6, 5, 1))
    assert data.fields["depth"] == sl.types.Field("image", "uint16", (7, 3))
    for i in range(len(data)):
        for name, image in further_images(i).items():
            found = data.image(name, i)
            assert found.dtype == image.dtype and np.array_equal(found, image)
            assert np.array_equal(data.fields[i][name], image)
        assert data.fields[i]["caption"] == f"text {i}"
    assert np.array_equal(data.image("depth", -1), further_images(len(data) - 1)["depth"])
    with pytest.raises(
        sl.InvalidArgumentError, match="no further image 'boxes'; there are: mask, depth, latent"
    ):
        data.image("boxes", 0)
    with pytest.raises(IndexError):
        data.image("mask", len(data))
    train, _ = data.split(0.5)
    at = [data.keys[i] for i in range(len(data))].index(train.keys[3])
    assert np.array_equal(train.image("latent", 3), further_images(at)["latent"])


def decoded_jpeg(image, quality):
    """What Pillow makes of a JPEG of these pixels, in 4:2:0."""
    Image = pytest.importorskip("PIL.Image")
    file = io.BytesIO()
    Image.fromarray(image).save(file, "jpeg", quality=quality, subsampling=2)
    return np.asarray(Image.open(file))


def test_jpegs_of_images_and_further_images(tmp_path):
    generator = np.random.default_rng(1)
    smooth = np.linspace(0, 200, 40 * 48 * 3).reshape(40, 48, 3)
    images = [(smooth + generator.integers(0, 40, smooth.shape)).astype(np.uint8) for _ in range(5)]
    columns = {
        "left": sl.ImageField("uint8", 40, 48, 3, codec="jpeg:70"),
        "gray": sl.ImageField("uint8", 40, 48, 1, codec="jpeg"),
    }
    how = {"size": "original", "dtype": "uint8", "layout": "nhwc", "codec": "jpeg:90"}
    with sl.Writer(tmp_path / "out", columns=columns, **how) as writer:
        for i, image in enumerate(images):
            writer.add(str(i), image, 0, left=image, gray=image[:, :, :1])
    data = sl.Dataset(tmp_path / "out")
    assert data.codec == "jpeg:90"
    assert not data.verify()
    for i, image in enumerate(images):
        assert np.array_equal(data[i][0], decoded_jpeg(image, 90))
        assert np.array_equal(data.image("left", i), decoded_jpeg(image, 70))
        assert np.array_equal(data.image("gray", i)[:, :, 0], decoded_jpeg(image[:, :, 0], 95))


def test_further_images_that_do_not_fit_are_named(images, tmp_path):
    with sl.Writer(tmp_path / "out", classes=CLASSES, columns=FURTHER, **OPTIONS) as writer:
        row = next(rows(images))
        good = further_images(0)
        for change, text in [
            (
                {"mask": good["mask"][:5]},
                r"the image 'mask' is uint8 \[6, 5, 1\], but this row has uint8 \[5, 5, 1\]",
            ),
            ({"mask": good["mask"].astype(np.int64) + 300}, r"uint8 \[6, 5, 1\]: uint8 cannot hold"),
            ({"mask": good["mask"].astype(np.float32)}, "but this row has float32"),
        ]:
            with pytest.raises(sl.InvalidArgumentError, match=text):
                writer.add(**row, **{**good, **change})
        with pytest.raises(sl.InvalidArgumentError, match="the image 'depth' is missing"):
            writer.add(**row, mask=good["mask"], latent=good["latent"])
        assert writer.add(**row, **{**good, "mask": good["mask"].astype(np.int64)})
    assert np.array_equal(sl.Dataset(tmp_path / "out").image("mask", 0), good["mask"])
    for field, text in [
        (sl.ImageField("uint8", 6, 5, 3, role="mask"), "3 channels"),
        (sl.ImageField("uint16", 6, 5, 1, codec="packed"), "codec packed"),
        (sl.ImageField("uint8", 6, 5, 1, codec="lz4"), "lz4"),
        (sl.ImageField("uint8", 6, 5, 1, role="mask", codec="jpeg"), "would change its class ids"),
        (sl.ImageField("uint16", 6, 5, 1, codec="jpeg"), "codec jpeg"),
        (sl.ImageField("uint8", 6, 0, 1), "field field: sample width is 0"),
        (sl.ImageField("uint8", 2, 2, 2, 2, 2), "5 axes"),
    ]:
        with (
            pytest.raises(sl.InvalidArgumentError, match=text),
            sl.Writer(tmp_path / "bad", columns={"field": field}, **OPTIONS) as writer,
        ):
            writer.add("a", next(rows(images))["image"], 0, field=np.zeros(field.shape, field.dtype))
    with pytest.raises(sl.InvalidArgumentError, match="expected role"):
        sl.ImageField("uint8", 2, 2, 1, role="video")


def test_further_images_are_resumed_and_must_be_the_same(images, tmp_path):
    every = list(rows(images))
    whole, out = tmp_path / "whole", tmp_path / "out"
    with sl.Writer(whole, classes=CLASSES, columns=FURTHER, **OPTIONS) as writer:
        for i, row in enumerate(every):
            writer.add(**row, **further_images(i))
    with pytest.raises(KeyError), sl.Writer(out, classes=CLASSES, columns=FURTHER, **OPTIONS) as writer:
        for i, row in enumerate(every[:30]):
            writer.add(**row, **further_images(i))
        raise KeyError
    with pytest.raises(sl.InvalidArgumentError, match="fields"):
        sl.Writer(
            out,
            classes=CLASSES,
            columns={**FURTHER, "depth": sl.ImageField("uint16", 7, 3)},
            resume=True,
            **OPTIONS,
        )
    with sl.Writer(out, classes=CLASSES, columns=FURTHER, resume=True, **OPTIONS) as writer:
        for i, row in enumerate(every):
            writer.add(**row, **further_images(i))
    assert_same_shards(whole, out)


def tables(folder):
    """The tensors of the shards of a data set, but for keys, whose padding depends on the header."""
    made = []
    for path in sorted(folder.glob("*.safetensors")):
        data = path.read_bytes()
        length = int.from_bytes(data[:8], "little")
        header = json.loads(data[8 : 8 + length])
        made.append(
            {
                name: data[8 + length + of["data_offsets"][0] : 8 + length + of["data_offsets"][1]]
                for name, of in header.items()
                if name not in ("__metadata__", "keys")
            }
        )
    return made


@pytest.mark.parametrize("codec", ["none", "zstd", "packed"])
def test_further_images_of_any_size_have_the_bytes_of_a_conversion(codec, tmp_path):
    Image = pytest.importorskip("PIL.Image")
    generator = np.random.default_rng(3)
    rows_of = {}
    for i in range(11):
        size = (20 + 3 * i, 50 - 2 * i)
        image = generator.integers(0, 256, (*size, 3), np.uint8)
        mask = generator.integers(0, 21, (*size, 1), np.uint8)
        depth = generator.integers(0, 65536, (*size, 1), np.uint16)
        rows_of[f"{i:02}.png"] = image, mask, depth
        for name, pixels in (("images", image), ("masks", mask[..., 0]), ("depth", depth[..., 0])):
            (tmp_path / name).mkdir(exist_ok=True)
            Image.fromarray(pixels).save(tmp_path / name / f"{i:02}.png")
    how = {"size": "original", "codec": codec, "samples_per_shard": 4, "dtype": "uint8", "layout": "nhwc"}
    converted, written = tmp_path / "converted", tmp_path / "written"
    pairs = {"depth": f"{tmp_path / 'depth'},codec=zstd"}
    sl.convert(tmp_path / "images", converted, mask=str(tmp_path / "masks"), pairs=pairs, **how)
    columns = {
        "mask": sl.ImageField("uint8", None, None, 1, role="mask", codec="packed"),
        "depth": sl.ImageField("uint16", None, None, 1, codec="zstd"),
    }
    with sl.Writer(written, columns=columns, **how) as writer:
        for key in rows_of:
            _, mask, depth = rows_of[key]
            assert writer.add(key, tmp_path / "images" / key, mask=mask, depth=depth)
    data = sl.Dataset(written)
    assert not data.verify()
    for i, key in enumerate(data.keys):
        image, mask, depth = rows_of[key]
        assert np.array_equal(data[i][0], image)
        assert np.array_equal(data.image("mask", i), mask)
        assert np.array_equal(data.image("depth", i), depth)
    for made, wanted in zip(tables(written), tables(converted), strict=True):
        assert [name for name in wanted if made.get(name) != wanted[name]] == []
        assert made.keys() == wanted.keys()
    assert list(data.keys) == list(sl.Dataset(converted).keys)
    batch = next(iter(sl.Loader(data, batch_size=4, padded=True, fields={"mask": sl.Pixels("nearest")})))
    assert batch.targets()["mask"].shape == batch.images.shape[:3]


def test_further_images_of_any_size_that_do_not_fit_are_named(tmp_path):
    for shape, layout in [
        ((None, 5, 1), "nhwc"),
        ((None, None, None), "nhwc"),
        ((None, None, 3), "nchw"),
        ((None, None), "tensor"),
        ((0, 0, 1), "nhwc"),
    ]:
        with pytest.raises(sl.InvalidArgumentError, match="None for rows and columns"):
            sl.ImageField("uint8", *shape, layout=layout)
    columns = {
        "mask": sl.ImageField("uint8", None, None, 1, role="mask"),
        "right": sl.ImageField("float16", 2, None, None, layout="nchw"),
    }
    image, mask = np.zeros((20, 30, 3), np.uint8), np.zeros((20, 30, 1), np.uint8)
    right = np.zeros((2, 5, 6), np.float16)
    with (
        pytest.warns(UserWarning, match="1 of 2 inputs are not in the data set"),
        sl.Writer(tmp_path / "out", size="original", columns=columns) as writer,
    ):
        for wrong in (mask[..., 0], np.zeros((20, 30, 2), np.uint8), mask[:0]):
            with pytest.raises(sl.InvalidArgumentError, match=r"'mask' is uint8 \[any, any, 1\], but"):
                writer.add("a", image, mask=wrong, right=right)
        writer.add("a", image, mask=mask, right=right)
        writer.add("b", image, mask=mask[:19], right=right)
    data = sl.Dataset(tmp_path / "out")
    assert list(data.keys) == ["a"]
    assert data.image("right", 0).shape == (2, 5, 6)
    rejects = (tmp_path / "out" / "rejects.csv").read_text()
    assert "30x19 pixels, and its image is stored with 30x20: give a mask of the stored size" in rejects


def test_a_column_that_changes_is_named(tmp_path):
    with sl.Writer(tmp_path / "out", resize=8, crop=8) as writer:
        for i in range(1000):
            writer.add(f"row {i}", png(0), emb=np.zeros(4, np.float32), caption="x")
        for wrong, found in (
            (np.zeros(5, np.float32), r"float32 \[5\]"),
            (np.zeros(4), r"float64 \[4\]"),
            (3, r"int64 \[\]"),
            ("text", "text"),
        ):
            with pytest.raises(
                ValueError, match=rf"'row 1000': column 'emb' is float32 \[4\], but this row has {found}"
            ):
                writer.add("row 1000", png(0), emb=wrong, caption="x")
        with pytest.raises(ValueError, match="'row 1000': column 'caption' is text, but this row has int"):
            writer.add("row 1000", png(0), emb=np.zeros(4, np.float32), caption=3)
        with pytest.raises(ValueError, match="'row 1000': column 'caption' is missing"):
            writer.add("row 1000", png(0), emb=np.zeros(4, np.float32))
        with pytest.raises(ValueError, match="'row 1000': there is no column 'other'; .*: emb, caption"):
            writer.add("row 1000", png(0), emb=np.zeros(4, np.float32), caption="x", other=1)
        with pytest.raises(
            ValueError, match=r"'row 1000': column 'labels' is int64 \[\], but this row has float64 \[2\]"
        ):
            writer.add("row 1000", png(0), [0.5, 1], emb=np.zeros(4, np.float32), caption="x")
        assert len(writer) == 1000


def test_declared_columns_take_numbers_that_fit(tmp_path):
    with sl.Writer(
        tmp_path / "out", columns={"small": "uint8", "box": ("float32", 2)}, resize=8, crop=8
    ) as writer:
        writer.add("0", png(0), small=255, box=(1, 2))
        for small, box in ((256, (1, 2)), (1.5, (1, 2)), (1, (1, 2, 3)), (1, ("a", "b")), (1, None)):
            with pytest.raises(ValueError, match="'1': column '(small is|small|box)'"):
                writer.add("1", png(0), small=small, box=box)
    for value in (None, b"bytes", []):
        with (
            sl.Writer(tmp_path / "other", resize=8, crop=8) as writer,
            pytest.raises(ValueError, match="declare it"),
        ):
            try:
                writer.add("0", png(0), thing=value)
            finally:
                writer.abandon()
    with pytest.raises(ValueError, match="dtype 'complex64' is not known"):
        sl.Writer(tmp_path / "third", columns={"z": "complex64"})


def test_labels(tmp_path):
    with sl.Writer(tmp_path / "named", classes=["ant", "bee"], resize=8, crop=8) as writer:
        writer.add("0", png(0), "bee")
        writer.add("1", png(0), np.int32(0))
        for label, words in (
            ("cow", "'cow' is no class"),
            (2, "label 2, but there are 2 classes"),
            (None, "has no label"),
            (1.5, "labels"),
        ):
            with pytest.raises(ValueError, match=words):
                writer.add("2", png(0), label)
    data = sl.Dataset(tmp_path / "named")
    assert data.labels.tolist() == [1, 0] and data.classes == ("ant", "bee")
    sl.write(
        [("0", png(0), [0.5, 1]), ("1", png(1), np.array([2, 3]))], tmp_path / "vectors", resize=8, crop=8
    )
    assert sl.Dataset(tmp_path / "vectors").labels.tolist() == [[0.5, 1], [2, 3]]
    with sl.Writer(tmp_path / "resumed", resize=8, crop=8, samples_per_shard=1) as writer:
        writer.add("0", png(0), [0.5, 1])
        while not (tmp_path / "resumed" / ".shard-00000.done.json").exists():
            time.sleep(0.01)
        writer.abandon()
    with sl.Writer(tmp_path / "resumed", resume=True, resize=8, crop=8, samples_per_shard=1) as writer:
        assert writer.keys_done() == ["0"]
        writer.add("1", png(1), [2, 3])
    assert sl.Dataset(tmp_path / "resumed").labels.tolist() == [[0.5, 1], [2, 3]]
    sl.write([("0", png(0)), ("1", png(1))], tmp_path / "none", resize=8, crop=8)
    assert sl.Dataset(tmp_path / "none").labels.tolist() == [0, 0]


def test_bad_images_are_rejects_or_end_it(tmp_path):
    result = sl.write(
        [("good", png(0)), ("bad", b"no picture"), ("none", tmp_path / "none.jpg"), ("last", png(1))],
        tmp_path / "out",
        resize=8,
        crop=8,
    )
    assert (result.samples, result.rejects) == (2, 2)
    assert "bad," in (tmp_path / "out" / "rejects.csv").read_text() and list(
        sl.Dataset(tmp_path / "out").keys
    ) == ["good", "last"]
    with pytest.raises(RuntimeError, match="bad.*on_error fail"):
        sl.write(
            [("good", png(0)), ("bad", b"no picture")], tmp_path / "other", on_error="fail", resize=8, crop=8
        )
    assert not (tmp_path / "other" / "dataset.json").exists()


def test_keys(tmp_path):
    with sl.Writer(tmp_path / "out", resize=8, crop=8) as writer:
        writer.add("ein/Käfer", png(0))
        writer.add(b"\xff", png(1))
        for key in ("ein/Käfer", b"\xff", os.fsdecode(b"\xff")):
            with pytest.raises(ValueError, match="was added before"):
                writer.add(key, png(0))
        with pytest.raises(ValueError, match="empty key"):
            writer.add("", png(0))
    assert list(sl.Dataset(tmp_path / "out").keys) == ["ein/Käfer", "\\xff"]


def test_an_exception_leaves_an_unfinished_data_set(images, folder, tmp_path):
    out = tmp_path / "out"
    todo = list(rows(images))
    with pytest.raises(ZeroDivisionError), sl.Writer(out, classes=CLASSES, **OPTIONS) as writer:
        for i, row in enumerate(todo):
            writer.add(**row)
            if i == 35:
                while len(list(out.glob(".shard-*.done.json"))) < 4:
                    time.sleep(0.01)
                1 / 0  # noqa: B018
    assert writer.closed and not (out / "dataset.json").exists()
    with pytest.raises(ValueError, match="the writer is closed"):
        writer.add("x", png(0))
    with pytest.raises(ValueError, match="unfinished data set: give resume=True"):
        sl.Writer(out, classes=CLASSES, **OPTIONS)
    with pytest.raises(ValueError, match="other classes|other options"):
        sl.Writer(out, classes=["other"], resume=True, **OPTIONS)
    with pytest.raises(ValueError, match="crop"):
        sl.Writer(out, classes=CLASSES, resume=True, **{**OPTIONS, "crop": 8})
    with pytest.raises(
        ValueError, match="column 'caption' is text, but the data set .* has other columns: labels: int64"
    ):
        sl.Writer(out, classes=CLASSES, resume=True, columns={"caption": sl.Text}, **OPTIONS)
    with sl.Writer(out, classes=CLASSES, resume=True, **OPTIONS) as writer:
        done = writer.keys_done()
        assert done == [row["key"] for row in todo[: len(done)]] and len(done) == 32
        assert len(writer) == len(done) and done[0] in writer and todo[-1]["key"] not in writer
        assert [writer.add(**row) for row in todo] == [i >= len(done) for i in range(SAMPLES)]
    assert_same_shards(folder, out)
    assert sl.write(iter(todo), out, classes=CLASSES, resume=True, **OPTIONS).was_complete
    with pytest.raises(ValueError, match="finished data set"):
        sl.Writer(out, classes=CLASSES, **OPTIONS)


WRITE = """
import sys
from pathlib import Path
import shardloader as sl
images, out = map(Path, sys.argv[1:3])
with sl.Writer(out, classes=["ant", "bee", "cow"], resume=True, preset="train", resize=32, crop=32,
               samples_per_shard=8, jobs=2) as writer:
    for path in sorted(images.rglob("*.png")):
        key = str(path.relative_to(images))
        if key not in writer:
            writer.add(key, path.read_bytes(), path.parent.name)
"""


def test_kill_at_random_moments(images, folder, tmp_path):
    out, moments = tmp_path / "out", random.Random(1)
    command = [sys.executable, "-c", WRITE, str(images), str(out)]
    begin = time.monotonic()
    subprocess.run(command, check=True)
    took = time.monotonic() - begin
    killed = finished = seen = 0
    while killed < KILLS:
        for name in os.listdir(out) if (out / "dataset.json").exists() else ():
            os.unlink(out / name)
        process = subprocess.Popen(command, stderr=subprocess.PIPE)
        time.sleep(moments.uniform(took / 3, took))
        process.send_signal(signal.SIGKILL)
        error = process.communicate()[1]
        assert process.returncode in (0, -9), error
        killed += process.returncode == -9
        if (out / "dataset.json").exists():
            finished += 1
            assert_same_shards(folder, out)
        elif out.exists():
            seen += len(shard_names(out)) > 0
            assert filecmp.cmpfiles(folder, out, shard_names(out), False)[1:] == ([], [])
        if killed % 3 == 2:  # a second kill before the end, or the end
            subprocess.run(command, check=True)
            assert_same_shards(folder, out)
            assert set(os.listdir(out)) == set(os.listdir(folder))
    subprocess.run(command, check=True)
    assert_same_shards(folder, out)
    print(f"{killed} kills, {seen} of them with shards there, {finished} finished")


def test_a_second_writer_on_the_same_folder_is_refused(images, tmp_path):
    with sl.Writer(tmp_path / "out", resize=8, crop=8) as writer:
        for _ in range(2):
            with pytest.raises(sl.ResourceError, match=f"process {os.getpid()} is at work there"):
                sl.Writer(tmp_path / "out", resize=8, crop=8)
        with pytest.raises(sl.ResourceError, match="is at work there"):
            sl.convert(images, tmp_path / "out", resize=8, crop=8)
        writer.add("0", png(0))
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "file").write_text("x")
    with pytest.raises(ValueError, match="holds no data set of shardify"):
        sl.Writer(tmp_path / "foreign")


def test_several_writers_at_once_and_threads_that_add(images, folder, tmp_path):
    todo = list(rows(images))
    errors = []

    def one(name):
        try:
            sl.write(iter(todo), tmp_path / name, classes=CLASSES, jobs=1, **OPTIONS)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=one, args=(str(i),)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    for i in range(4):
        assert_same_shards(folder, tmp_path / str(i))
    with sl.Writer(tmp_path / "shared", **OPTIONS) as writer:
        threads = [
            threading.Thread(
                target=lambda part: [writer.add(row["key"], row["image"]) for row in part], args=(todo[i::4],)
            )
            for i in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(sl.Dataset(tmp_path / "shared").keys) == sorted(row["key"] for row in todo)


def peak_kib():
    return int(
        next(
            line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")
        ).split()[1]
    )


def test_nothing_is_kept_of_a_row(tmp_path):
    before = peak_kib()
    image = np.zeros((2000, 1500, 3), np.uint8)
    column = np.zeros(100_000, np.float32)
    with sl.Writer(tmp_path / "out", resize=8, crop=8, jobs=1, samples_per_shard=50) as writer:
        counts = sys.getrefcount(image), sys.getrefcount(column)
        for i in range(100):  # 900 MB
            writer.add(str(i), image, big=column)
        assert (sys.getrefcount(image), sys.getrefcount(column)) == counts
    assert peak_kib() - before < 700_000  # the queue has 256 MiB at most


def test_a_writer_that_is_forgotten_says_so_and_lets_go(tmp_path):
    gc.collect()  # what other tests left may end meanwhile
    before = set(threading.enumerate()), set(os.listdir("/proc/self/task"))
    writer = sl.Writer(tmp_path / "out", resize=8, crop=8, jobs=3)
    writer.add("0", png(0))
    assert set(os.listdir("/proc/self/task")) - before[1]
    with pytest.warns(ResourceWarning, match="was not closed"):
        del writer
        gc.collect()
    assert not set(threading.enumerate()) - before[0]
    assert not set(os.listdir("/proc/self/task")) - before[1]
    with sl.Writer(tmp_path / "out", resize=8, crop=8) as writer:
        writer.add("0", png(0))


def test_the_child_of_a_fork_leaves_the_writer_alone(tmp_path):
    with sl.Writer(tmp_path / "out", resize=8, crop=8) as writer:
        writer.add("0", png(0))
        pid = os.fork()
        if pid == 0:
            try:
                writer.add("1", png(1))
            except sl.UnsupportedError:
                writer.abandon()
                os._exit(0)
            os._exit(1)
        assert os.waitpid(pid, 0)[1] == 0
        with pytest.raises(sl.ResourceError):
            sl.Writer(tmp_path / "out", resize=8, crop=8)
        writer.add("1", png(1))
    assert len(sl.Dataset(tmp_path / "out")) == 2


def test_ctrl_c_ends_the_wait_and_the_data_set_can_be_resumed(tmp_path):
    code = f"""
import sys
sys.path[:0] = {sys.path!r}
import numpy as np, shardloader as sl
try:
    with sl.Writer({str(tmp_path / "out")!r}, resize=224, jobs=1) as writer:
        print("ready", flush=True)
        for i in range(100_000):
            writer.add(str(i), np.zeros((3000, 3000, 3), np.uint8))
except KeyboardInterrupt:
    sys.exit(7)
"""
    # A background job inherits SIGINT as ignored, and Python then raises no KeyboardInterrupt.
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    process.stdout.readline()
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=20) == 7
    with sl.Writer(tmp_path / "out", resize=224, resume=True) as writer:
        writer.add("0", png(0))


def test_each_of_the_two_ends_with_the_words_of_python(tmp_path):
    with pytest.raises(ValueError, match="nothing was added"), sl.Writer(tmp_path / "out"):
        pass
    with pytest.raises(ValueError, match="classes has a name twice"):
        sl.Writer(tmp_path / "out", classes=["a", "a"])
    assert EACH * len(CLASSES) == SAMPLES


SHAPES = [(1, 1), (5, 9), (40, 3), (3, 40), (17, 17)]


@pytest.mark.parametrize("codec", ["none", "zstd"])
@pytest.mark.parametrize("layout", ["hwc", "chw"])
@pytest.mark.parametrize(
    "dtype, channels",
    [("uint8", 3), ("uint8", 13), ("uint16", 1), ("uint16", 3), (">u2", 13), ("float16", 4), ("float32", 2)],
)
def test_arrays_of_different_shapes_keep_their_bits(tmp_path, dtype, channels, layout, codec):
    """As the samples of .npy files of the same arrays."""
    draw = np.random.default_rng(3)
    kind = np.dtype(dtype)
    how = {"size": "original", "channels": channels, "dtype": kind.newbyteorder("=").name, "codec": codec}
    arrays = []
    (tmp_path / "files").mkdir()
    how |= {"array_layout": layout, "layout": "nhwc", "samples_per_shard": 2}
    with sl.Writer(tmp_path / "set", **how) as writer:
        for number, shape in enumerate(SHAPES):
            array = draw.integers(0, 200, (*shape, channels)).astype(kind)
            given = array if layout == "hwc" else np.ascontiguousarray(array.transpose(2, 0, 1))
            writer.add(f"{number}.npy", given, 0)
            np.save(tmp_path / "files" / f"{number}.npy", given)
            arrays.append(array)
    data = sl.Dataset(tmp_path / "set")
    assert data.shape == (0, 0, channels)
    for number, array in enumerate(arrays):
        np.testing.assert_array_equal(data[number][0], array)
    sl.convert(tmp_path / "files", tmp_path / "same", **how)
    assert_same_shards(tmp_path / "same", tmp_path / "set")


def test_gray_arrays_have_two_axes_and_rgb_may_be_chw(tmp_path):
    pixels = np.random.default_rng(1).integers(0, 256, (6, 7, 3), np.uint8)
    how = {"size": "original", "dtype": "float32"}
    with sl.Writer(tmp_path / "depth", channels=1, **how) as writer:
        writer.add("a", np.full((4, 5), 0.25, np.float32))
        writer.add("b", np.full((7, 2, 1), 0.5, np.float32))
    data = sl.Dataset(tmp_path / "depth")
    assert [data[i][0].reshape(-1).tolist() for i in range(2)] == [[0.25] * 20, [0.5] * 14]
    with sl.Writer(tmp_path / "rgb", size="original", array_layout="chw") as writer:
        writer.add("a", pixels.transpose(2, 0, 1))
        writer.add("b", pixels[..., 0])
    data = sl.Dataset(tmp_path / "rgb")
    np.testing.assert_array_equal(data[0][0], pixels)
    np.testing.assert_array_equal(data[1][0], np.repeat(pixels[..., :1], 3, 2))


@pytest.mark.parametrize(
    "image, words",
    [
        (np.zeros((0, 5, 2), np.uint16), r"\[0, 5, 2\].*at least one pixel"),
        (np.zeros((4, 5, 3), np.uint16), r"uint16 \[4, 5, 3\].*2 channels \(channels=2"),
        (np.zeros((2, 4, 5), np.uint16), r"array_layout='hwc'"),
        (np.zeros((4, 5), np.uint16), r"\[row, column, channel\] with 2 channels"),
        (np.zeros((1, 4, 5, 2), np.uint16), r"\[1, 4, 5, 2\]"),
        (np.zeros((4, 5, 2), np.int32), r"int32 \[4, 5, 2\]; expected uint8, uint16"),
        (np.zeros((1, 65536, 2), np.uint16), r"1 rows and 65536 columns: at most 65535"),
        ([[[1, 2]]], "int64"),
        ("no/such/file", None),
    ],
)
def test_arrays_that_are_no_images_of_the_set_are_refused(tmp_path, image, words):
    """And the Writer can be used after it."""
    good = np.full((3, 4, 2), 7, np.uint16)
    with sl.Writer(tmp_path / "set", size="original", channels=2, dtype="uint16") as writer:
        writer.add("first", good)
        if words is None:
            writer.add("bad", image)
        else:
            with pytest.raises(sl.InvalidArgumentError, match=words):
                writer.add("bad", image)
        writer.add("last", good)
        if words is None:
            with pytest.warns(sl.ConversionWarning, match="bad"):
                writer.close()
    data = sl.Dataset(tmp_path / "set")
    assert list(data.keys[:]) == ["first", "last"]


def test_arrays_beyond_rgb_need_their_channels_said(tmp_path):
    with sl.Writer(tmp_path / "set", size="original") as writer:
        with pytest.raises(sl.InvalidArgumentError, match="channels="):
            writer.add("a", np.zeros((4, 5, 3), np.float32))
        with pytest.raises(sl.InvalidArgumentError, match="uint8"):
            writer.add("a", np.zeros((4, 5, 2), np.uint8))
        writer.add("a", np.zeros((4, 5, 3), np.uint8))
    floats = np.full((4, 5, 3), 0.125, np.float32)
    how = {"size": "original", "channels": 3, "dtype": "float32"}
    with sl.Writer(tmp_path / "floats", **how) as writer:
        with pytest.raises(sl.InvalidArgumentError, match="normalize='none'"):
            writer.add("a", floats)
        writer.abandon()
    with sl.Writer(tmp_path / "none", normalize="none", **how) as writer:
        writer.add("a", floats)
    assert (np.asarray(sl.Dataset(tmp_path / "none")[0][0]) == 0.125).all()
    for layout in ("hw", "nchw", "", None, 3):
        with pytest.raises(sl.InvalidArgumentError, match='array_layout .*"hwc" or "chw"'):
            sl.Writer(tmp_path / "other", array_layout=layout)


@pytest.mark.parametrize("form", ["pixels", "files"])
def test_images_that_are_enlarged_are_warned_of(tmp_path, form):
    """While it runs, and at its end."""

    def write(out, count, side, **how):
        with sl.Writer(out, overwrite=True, **how) as writer:
            for number in range(count):
                pixels = np.full((side, side, 3), number % 256, np.uint8)
                writer.add(f"{number}", pixels if form == "pixels" else png(number, side, side))

    words = r"100 % of the images are smaller than 48x48 and were enlarged \(5 of 5 .*resize 32 with crop 32"
    with pytest.warns(sl.ConversionWarning, match=words) as caught:
        write(tmp_path / "set", 5, 32, resize=48, crop=48)
    assert len([one for one in caught if "enlarged" in str(one.message)]) == 1
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        write(tmp_path / "set", 5, 48, resize=48, crop=48)
        write(tmp_path / "set", 5, 32, size="original")
    with pytest.warns(sl.ConversionWarning, match="were enlarged"):
        writer = sl.Writer(tmp_path / "long", resize=48, crop=48)
        for number in range(5000):
            writer.add(f"{number}", np.zeros((8, 8, 3), np.uint8))
    writer.abandon()
