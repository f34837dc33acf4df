"""Samples of 16 bits, of many channels, and tensors: converted or written from Python, and delivered."""

import numpy as np
import pytest

import shardloader as sl


@pytest.fixture
def bands(tmp_path):
    """Five images of 13 bands, uint16, and the folder of their data set."""
    images = np.random.default_rng(3).integers(0, 65536, (5, 16, 18, 13), dtype=np.uint16)
    np.save(tmp_path / "x.npy", images)
    mean, std = np.linspace(0, 0.6, 13), np.linspace(0.5, 1.7, 13)
    result = sl.convert(
        tmp_path / "x.npy", tmp_path / "out", squash=(16, 18), layout="nhwc", mean=mean, std=std, codec="zstd"
    )
    assert result.samples == 5
    return images, tmp_path / "out", mean.astype(np.float32), std.astype(np.float32)


def test_bands_keep_their_bits_and_are_normalised_while_loading(bands):
    images, out, mean, std = bands
    data = sl.Dataset(out)
    assert (data.dtype, data.shape, data.layout) == ("uint16", (16, 18, 13), "nhwc")
    assert np.array_equal(data.mean, mean) and np.array_equal(data.std, std)
    for i in range(5):
        assert np.array_equal(data[i][0], images[i])
    with sl.Loader(out, batch_size=5, shuffle=False, framework="numpy") as loader:
        assert loader.dtype == "uint16"
        (batch,) = loader.epoch(0)
        assert np.array_equal(batch.images, images)
    with sl.Loader(
        out, batch_size=5, shuffle=False, framework="numpy", dtype="float32", layout="nhwc"
    ) as loader:
        (batch,) = loader.epoch(0)
        expected = (images.astype(np.float32) / np.float32(65535) - mean) / std
        assert np.array_equal(batch.images, expected)
    with sl.Loader(
        out, batch_size=5, shuffle=False, framework="numpy", dtype="float16", random_resized_crop=4, flip=True
    ) as loader:
        (batch,) = loader.epoch(0)
        assert batch.images.shape == (5, 13, 4, 4) and np.isfinite(batch.images).all()
    with pytest.raises(ValueError, match="3 means and 3 stds, but the samples have 13 channels"):
        sl.Loader(out, batch_size=5, dtype="float32", mean=(0, 0, 0), std=(1, 1, 1))
    with pytest.raises(ValueError, match="uint8 cannot be delivered from samples stored as uint16"):
        sl.Loader(out, batch_size=5, dtype="uint8")


@pytest.mark.parametrize("dtype", ["float32", "float16", "int64", "uint16", "bool", "float64"])
@pytest.mark.parametrize("shape", [(7,), (3, 4), (4, 8, 6), (2, 3, 4, 5)])
def test_arrays_of_any_rank_and_dtype_are_stored_as_they_are(tmp_path, dtype, shape):
    arrays = (np.random.default_rng(1).random((6, *shape)) * 9).astype(dtype)
    sl.write(
        ({"key": f"{i}", "image": array, "label": i} for i, array in enumerate(arrays)),
        tmp_path / "out",
        samples_per_shard=4,
        codec="zstd",
    )
    data = sl.Dataset(tmp_path / "out")
    assert (data.dtype, data.shape, data.layout, len(data)) == (dtype, shape, "tensor", 6)
    assert data.fields["image"].shape == shape
    for i, array in enumerate(arrays):
        assert np.array_equal(data[i][0], array) and data[i][0].dtype == array.dtype
    with sl.Loader(tmp_path / "out", batch_size=6, shuffle=False, framework="numpy") as loader:
        (batch,) = loader.epoch(0)
        assert np.array_equal(batch.images, arrays) and batch.images.dtype == arrays.dtype
    if dtype == "float32":
        with sl.Loader(
            tmp_path / "out", batch_size=6, shuffle=False, framework="numpy", dtype="float16"
        ) as loader:
            (batch,) = loader.epoch(0)
            assert np.array_equal(batch.images, arrays.astype(np.float16))
    for wrong, why in (
        (dict(flip=True), "cannot be flipped"),
        (dict(random_crop=2), "cannot be cropped"),
        (dict(mean=(1, 1, 1), std=(1, 1, 1)), "not normalised"),
    ):
        with pytest.raises(ValueError, match=why):
            sl.Loader(tmp_path / "out", batch_size=6, **wrong)


def test_arrays_of_another_shape_or_type_are_refused(tmp_path):
    with sl.Writer(tmp_path / "out") as writer:
        writer.add("a", np.zeros((4, 8), np.float32))
        with pytest.raises(
            ValueError,
            match=r"'b': the sample is float32 \[4, 9\], but those of this data set are float32 \[4, 8\]",
        ):
            writer.add("b", np.zeros((4, 9), np.float32))
        with pytest.raises(ValueError, match=r"'b': the sample is float64 \[4, 8\]"):
            writer.add("b", np.zeros((4, 8)))
        with pytest.raises(ValueError, match="'b': the sample is bytes"):
            writer.add("b", b"x")
        writer.add("b", np.ones((4, 8), np.float32))
    assert len(sl.Dataset(tmp_path / "out")) == 2
    with pytest.raises(ValueError, match=r"float32 \[1, 1, 1, 1, 1\]"):
        sl.write([("a", np.zeros((1, 1, 1, 1, 1), np.float32))], tmp_path / "five")
    with pytest.raises(ValueError, match="codec packed holds images"):
        sl.write([("a", np.zeros((4, 8), np.float32))], tmp_path / "packed", codec="packed")


def test_uint8_arrays_that_are_no_images_are_declared(tmp_path):
    volume = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    with sl.Writer(tmp_path / "out", sample=("uint8", 2, 3, 4), samples_per_shard=1) as writer:
        writer.add("a", volume)
        writer.add("b", volume + 1)
        writer.abandon()
    with sl.Writer(tmp_path / "out", sample=("uint8", 2, 3, 4), samples_per_shard=1, resume=True) as writer:
        for key, array in (("a", volume), ("b", volume + 1), ("c", volume + 2)):
            writer.add(key, array)
    assert [int(image.ravel()[0]) for image, _ in sl.Dataset(tmp_path / "out")] == [0, 1, 2]


@pytest.mark.parametrize(
    "dtype, value, words",
    [
        (
            "float16",
            np.float32(70000),
            "the value 70000 at row 1, column 2 of its sample is too large for dtype f16",
        ),
        ("bfloat16", np.float32(3.4e38), "too large for dtype bf16: dtype f32 keeps it"),
        ("float32", np.float64(1e300), "the value 1e\\+300 at row 1, column 2 is too large for dtype f32"),
    ],
)
def test_arrays_with_floats_that_the_dtype_cannot_hold_are_refused(tmp_path, dtype, value, words):
    array = np.full((4, 5), np.inf, np.asarray(value).dtype)  # which stays
    how = {"channels": 1, "dtype": dtype, "size": "original"}
    with sl.Writer(tmp_path / "right", **how) as writer:
        writer.add("a", array)
    array[1, 2] = value
    with (
        pytest.raises(sl.CorruptError, match=words),
        sl.Writer(tmp_path / "out", on_error="fail", **how) as writer,
    ):
        writer.add("a", array)
    np.save(tmp_path / "x.npy", array[None])
    with pytest.raises(sl.CorruptError, match=words):
        sl.Source(tmp_path / "x.npy", **how)[0]
