"""What Dataset.show() and a notebook show of a data set."""

import base64
import io
import re
import zlib

import numpy as np
import pytest

import shardloader as sl
from conftest import SAMPLES, make_images
from shardloader import _show

IMAGE = re.compile(r'<img src="data:image/png;base64,([^"]*)" width="(\d+)" height="(\d+)" alt="([^"]*)"')


def pixels_of(png):
    """uint8 [row, column, 3] of a PNG of this package, by the format's description."""
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    at, packed = 8, b""
    while at < len(png):
        size, kind = int.from_bytes(png[at : at + 4], "big"), png[at + 4 : at + 8]
        body = png[at + 8 : at + 8 + size]
        assert zlib.crc32(kind + body) == int.from_bytes(png[at + 8 + size : at + 12 + size], "big")
        if kind == b"IHDR":
            columns, rows = int.from_bytes(body[:4], "big"), int.from_bytes(body[4:8], "big")
        packed += body if kind == b"IDAT" else b""
        at += 12 + size
    lines = np.frombuffer(zlib.decompress(packed), np.uint8).reshape(rows, 1 + 3 * columns)
    assert (lines[:, 0] == 2).all()
    return np.cumsum(lines[:, 1:], axis=0, dtype=np.uint8).reshape(rows, columns, 3)


def pictures_of(sheet):
    """(pixels, width, height, alt) of each."""
    return [
        (pixels_of(base64.b64decode(packed)), int(width), int(height), alt)
        for packed, width, height, alt in IMAGE.findall(sheet._repr_html_())
    ]


@pytest.mark.parametrize(
    "how",
    [
        {},
        {"codec": "packed"},
        {"dtype": "float16", "layout": "nchw"},
        {"dtype": "bfloat16"},
        {"dtype": "float32", "mean": (0.1, 0.2, 0.3), "std": (0.3, 0.2, 0.1)},
    ],
)
def test_pictures_are_the_images_before_normalisation(make, folder, how):
    stored = sl.Dataset(folder)  # uint8
    sheet = sl.Dataset(make(**how)).show([0, 25, -1], size=64)
    assert sheet.indices == (0, 25, SAMPLES - 1) and len(sheet) == 3
    for index, (pixels, width, height, alt) in zip(sheet.indices, pictures_of(sheet)):
        assert (width, height) == (64, 64)  # 32x32, enlarged
        exact = how.get("dtype") != "bfloat16"
        difference = np.abs(pixels.astype(int) - stored[index][0].astype(int))
        assert difference.max() <= (0 if exact else 2)
        assert alt == stored.keys[index]
    assert "#25 bee" in sheet._repr_html_()


def test_the_same_random_samples_for_the_same_seed(data):
    assert data.show(5).indices == data.show(5).indices == tuple(sorted(set(data.show(5).indices)))
    assert data.show(5, seed=1).indices != data.show(5).indices
    assert data.show(10_000).indices == tuple(range(SAMPLES))


def test_a_notebook_shows_what_a_data_set_is(data):
    html = data._repr_html_()
    assert f"<b>{SAMPLES} samples</b>" in html and "3 classes: ant, bee, cow" in html
    assert len(IMAGE.findall(html)) == 12
    assert data.path in html
    assert "a notebook shows them" in repr(data.show(1))


def test_large_images_are_the_means_of_their_pixels():
    rng = np.random.default_rng(1)
    picture = rng.integers(0, 256, (90, 60, 3), np.uint8)
    small = _show.shrunk(picture, 30)
    assert small.shape == (30, 20, 3)
    assert (small == np.rint(picture.reshape(30, 3, 20, 3, 3).mean((1, 3)))).all()
    assert _show.shrunk(picture, 89).shape == (89, 59, 3)
    assert _show.shrunk(picture[:1], 7).shape == (1, 7, 3)
    assert _show.shrunk(picture, 90) is picture


def test_pngs_are_read_by_pillow():
    image = pytest.importorskip("PIL.Image")
    picture = np.random.default_rng(2).integers(0, 256, (5, 7, 3), np.uint8)
    assert (np.asarray(image.open(io.BytesIO(_show.png_of(picture)))) == picture).all()


@pytest.fixture
def scenes(tmp_path):
    """Two gray samples with a mask, depth, two boxes, keypoints and a caption."""
    columns = {
        "mask": sl.ImageField("uint8", 40, 40, 1, role="mask"),
        "depth": sl.ImageField("uint16", 40, 40, 1),
        "boxes": sl.Ragged("float32", 4),
        "box_labels": sl.Ragged("int64"),
        "keypoints": sl.Ragged("float32", 1, 3),
        "caption": sl.Text,
    }
    mask = np.zeros((40, 40, 1), np.uint8)
    mask[:, :10], mask[:, 10:12] = 2, 255
    depth = np.zeros((40, 40, 1), np.uint16)
    depth[8:20], depth[20:] = 1000, 3000
    with sl.Writer(tmp_path / "scenes", squash=(40, 40), dtype="uint8", columns=columns) as writer:
        for number in range(2):
            writer.add(
                f"<{number}>",
                np.full((40, 40, 3), 100, np.uint8),
                0,
                mask=mask,
                depth=depth,
                boxes=[[16, 5, 30, 25], [-5, 30, 1000, 38]],
                box_labels=[0, 1],
                keypoints=[[[35, 35, 1]], [[20, 20, 0]]],
                caption="a & b",
            )
    return sl.Dataset(tmp_path / "scenes")


def test_targets_are_drawn_where_they_are(scenes):
    sheet = scenes.show([0], size=40)
    (picture, *_), (depth, *_) = pictures_of(sheet)
    first, second = (128, 0, 0), (0, 128, 0)  # Pascal VOC's colours of 1 and 2
    expected = np.full((40, 40, 3), 100, np.uint8)
    expected[:, :10] = [(100 + part + 1) // 2 for part in second]
    expected[:, 10:12] = (100 + 255 + 1) // 2
    for (top, bottom, left, right), color in (((5, 25, 16, 30), first), ((30, 38, 0, 40), second)):
        inside = expected[top:bottom, left:right].copy()
        expected[top:bottom, left:right] = color
        expected[top + 2 : bottom - 2, left + 2 : right - 2] = inside[2:-2, 2:-2]
    expected[33:38, 33:38] = first
    assert (picture == expected).all()
    assert depth[[0, 7, 8, 19, 20, 39], 20].tolist() == [[0] * 3] * 2 + [[32] * 3] * 2 + [[255] * 3] * 2
    html = sheet._repr_html_()
    assert "a &amp; b" in html and "&lt;0&gt;" in html and "<0>" not in html
    assert "mask 2" in html and "box 1" in html
    (plain, *_), *others = pictures_of(scenes.show([0], size=40, targets=False))
    assert (plain == 100).all() and not others


def test_samples_of_any_size_and_gray_ones(tmp_path):
    with sl.Writer(tmp_path / "set", size="original", codec="packed") as writer:
        writer.add("tall", np.full((60, 20, 3), 7, np.uint8), 0)
        writer.add("wide", np.full((20, 300, 3), 9, np.uint8), 0)
    (tall, *at, _), (wide, *at_wide, hint) = pictures_of(sl.Dataset(tmp_path / "set").show(2, size=60))
    assert tall.shape == (60, 20, 3) and at == [20, 60] and (tall == 7).all()
    assert wide.shape == (4, 60, 3) and at_wide == [60, 4] and "300x20" in hint
    assert [at for _, *at, _ in pictures_of(sl.Dataset(tmp_path / "set").show(2, size=90))] == [
        [30, 90],
        [90, 6],
    ]


def test_a_folder_of_images_shows_itself(tmp_path):
    source = sl.Source(make_images(tmp_path / "images", each=2))
    assert len(pictures_of(source.show(3))) == 3


def test_a_damaged_sample_is_shown_as_its_error(make, tmp_path):
    import shutil

    folder = shutil.copytree(make(codec="zstd"), tmp_path / "damaged")
    first = sorted(folder.glob("*.safetensors"))[0]
    data = bytearray(first.read_bytes())
    data[-3000:] = bytes(3000)
    first.write_bytes(data)
    damaged = sl.Dataset(folder)
    html = damaged.show(range(8))._repr_html_()
    assert 0 < len(IMAGE.findall(html)) < 8 and "border:1px dashed" in html
    assert damaged._repr_html_()  # does not fail


def test_a_page_has_the_pictures_in_it(data, tmp_path):
    data.show(2).save(tmp_path / "look.html")
    page = (tmp_path / "look.html").read_text()
    assert page.startswith("<!doctype html>") and len(IMAGE.findall(page)) == 2


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda data: data.show(0), "samples is 0; expected a whole number from 1 on"),
        (lambda data: data.show("3"), "samples is '3'"),
        (lambda data: data.show([]), "samples names no sample"),
        (lambda data: data.show([60]), "an index of samples is 60; expected a whole number from -60 to 59"),
        (lambda data: data.show(1, size=3), "size is 3; expected a whole number from 16 to 4096"),
        (lambda data: data.show(1).save("look.png"), "ends in .html"),
    ],
)
def test_mistakes_are_named(data, call, words):
    with pytest.raises(sl.InvalidArgumentError, match=re.escape(words)):
        call(data)


def test_tensors_are_no_pictures(tmp_path):
    sl.write(
        ({"key": str(i), "image": np.ones((4, 8, 8), np.float16)} for i in range(2)),
        tmp_path / "latents",
        codec="zstd",
    )
    latents = sl.Dataset(tmp_path / "latents")
    with pytest.raises(sl.UnsupportedError, match="are no images|no images"):
        latents.show()
    assert "2 samples" in latents._repr_html_()
