"""Codec jpeg from Python: files stored as they are, pixels that are those of Pillow, what is encoded."""

import io

import numpy as np
import pytest
from PIL import Image, ImageOps

import shardloader as sl
from conftest import png


def picture(seed, width=70, height=50, mode="RGB"):
    values = np.random.default_rng(seed).integers(0, 40, (height, width, 4), np.uint8)
    values += (
        np.arange(width, dtype=np.uint8)[None, :, None] + np.arange(height, dtype=np.uint8)[:, None, None]
    )
    return (
        Image.fromarray(values[..., :3]).convert(mode) if mode != "CMYK" else Image.fromarray(values, "CMYK")
    )


def jpeg(seed, orientation=None, mode="RGB", **how):
    file = io.BytesIO()
    if orientation:
        exif = Image.Exif()
        exif[0x0112] = orientation
        how["exif"] = exif
    picture(seed, mode=mode).save(file, "jpeg", quality=90, **how)
    return file.getvalue()


def files():
    return {
        "420.jpg": jpeg(0),
        "444.jpg": jpeg(1, subsampling=0),
        "422.jpg": jpeg(2, subsampling=1),
        "gray.jpg": jpeg(3, mode="L"),
        "cmyk.jpg": jpeg(4, mode="CMYK"),
        "progressive.jpg": jpeg(5, progressive=True),
        "restart.jpg": jpeg(6, restart_marker_blocks=4),
        **{f"turned{n}.jpg": jpeg(6 + n, orientation=n) for n in range(1, 9)},
    }


def pixels(file):
    return np.asarray(ImageOps.exif_transpose(Image.open(io.BytesIO(file))).convert("RGB"))


@pytest.fixture
def folder(tmp_path):
    for name, data in files().items():
        (tmp_path / "images").mkdir(exist_ok=True)
        (tmp_path / "images" / name).write_bytes(data)
    return tmp_path / "images"


def test_files_are_stored_as_they_are_with_the_pixels_of_pillow(folder, tmp_path):
    (folder / "a.png").write_bytes(png(1))
    done = sl.convert(folder, tmp_path / "out", size="original", codec="jpeg", quality=90)
    assert done.jpeg == {"kept": 14, "transcoded": 1, "encoded": 1}
    data = sl.Dataset(tmp_path / "out")
    assert data.codec == "jpeg:90" and len(data) == 16
    data.verify()
    for key, (image, _) in zip(data.keys, data):
        if key != "a.png":
            assert np.array_equal(image, pixels((folder / key).read_bytes())), key
    difference = np.abs(
        data[list(data.keys).index("a.png")][0].astype(int) - pixels((folder / "a.png").read_bytes())
    )
    assert 0 < difference.mean() < 40


def test_a_writer_makes_the_same_bytes(folder, tmp_path):
    options = {"size": "original", "codec": "jpeg", "quality": 80, "samples_per_shard": 4}
    sl.convert(folder, tmp_path / "out", **options)
    with sl.Writer(tmp_path / "written", **options) as writer:
        for path in sorted(folder.iterdir()):
            writer.add(path.name, path.read_bytes() if path.name.startswith("4") else path, 0)
    for path in sorted((tmp_path / "out").glob("*.safetensors")):
        assert (tmp_path / "written" / path.name).read_bytes() == path.read_bytes()
    with sl.Writer(tmp_path / "arrays", size="original", codec="jpeg") as writer:
        writer.add("array", pixels(jpeg(1)), 0)
        writer.add("pillow", picture(2), 0)
    for (image, _), expected in zip(
        sl.Dataset(tmp_path / "arrays"), (pixels(jpeg(1)), np.asarray(picture(2)))
    ):
        assert image.shape == expected.shape and 0 < np.abs(image.astype(int) - expected).mean() < 20


def test_samples_of_one_size_are_encoded(folder, tmp_path):
    done = sl.convert(folder, tmp_path / "out", size=32, codec="jpeg", quality=95)
    assert done.jpeg == {"encoded": 15}
    data = sl.Dataset(tmp_path / "out")
    assert (data.dtype, data.shape, data.codec) == ("uint8", (32, 32, 3), "jpeg:95")
    plain = sl.convert(folder, tmp_path / "plain", size=32, preset="train")
    assert plain.jpeg == {}
    for (image, _), (expected, _) in zip(data, sl.Dataset(tmp_path / "plain")):
        assert np.abs(image.astype(int) - expected).mean() < 12


def test_a_loader_brings_the_pixels(folder, tmp_path):
    sl.convert(folder, tmp_path / "out", size="original", codec="jpeg")
    sl.convert(folder, tmp_path / "plain", size="original")
    loaders = [
        sl.Loader(
            tmp_path / name,
            batch_size=5,
            device="cpu",
            random_resized_crop=32,
            flip=True,
            framework=None,
            seed=3,
        )
        for name in ("out", "plain")
    ]
    for one, other in zip(loaders[0].epoch(0), loaders[1].epoch(0)):
        assert np.array_equal(np.asarray(one.images), np.asarray(other.images))
        assert np.array_equal(np.asarray(one.ids), np.asarray(other.ids))


def test_files_without_digests_of_pixels_are_loaded_and_checked_by_their_frames(folder, tmp_path):
    done = sl.convert(folder, tmp_path / "out", size="original", codec="jpeg", no_sample_digest=True)
    assert done.jpeg == {"kept": 14, "transcoded": 1}
    data = sl.Dataset(tmp_path / "out")
    assert not data.verify()
    for key, (image, _) in zip(data.keys, data):
        assert np.array_equal(image, pixels((folder / key).read_bytes())), key
    how = {
        "batch_size": 5,
        "device": "cpu",
        "center_crop": 32,
        "framework": None,
        "shuffle": False,
        "verify": "always",
    }
    for transport in ("mapped", "staged", "direct"):
        seen = [np.array(batch.images) for batch in sl.Loader(data, transport=transport, **how)]
        assert len(seen) == 3 and all(images.shape == (5, 32, 32, 3) for images in seen)
    (shard,) = (tmp_path / "out").glob("*.safetensors")
    damaged = bytearray(shard.read_bytes())
    damaged[-40] ^= 1
    shard.write_bytes(bytes(damaged))
    for transport in ("mapped", "staged", "direct"):
        with pytest.raises(sl.CorruptError):
            for batch in sl.Loader(sl.Dataset(tmp_path / "out"), transport=transport, **how):
                np.array(batch.images)
    with pytest.raises(sl.InvalidArgumentError, match="no_sample_digest"):
        sl.convert(folder, tmp_path / "other", size=32, codec="jpeg", no_sample_digest=True)


def test_mistakes_are_named(folder, tmp_path):
    out = tmp_path / "out"
    with pytest.raises(sl.InvalidArgumentError, match="quality"):
        sl.convert(folder, out, size="original", quality=90)
    for quality in (0, 101, 1.5, "90", True):
        with pytest.raises(sl.InvalidArgumentError, match="quality is .* 1 to 100"):
            sl.convert(folder, out, size="original", codec="jpeg", quality=quality)
    with pytest.raises(sl.InvalidArgumentError, match="jpeg"):
        sl.convert(folder, out, size="original", codec="jpeg", dtype="float16")
    assert not out.exists()
    columns = {"mask": sl.ImageField("uint8", 8, 8, 1, role="mask", codec="jpeg")}
    with (
        pytest.raises(sl.InvalidArgumentError, match="class ids"),
        sl.Writer(out, columns=columns, size=8) as writer,
    ):
        writer.add("a", picture(1), 0, mask=np.zeros((8, 8, 1), np.uint8))
