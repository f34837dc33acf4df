"""What is not possible with samples of any size, and what happens to damaged ones."""

import json

import numpy as np
import pytest

import shardloader as sl
from any_size import CODECS, options_of, picture


@pytest.mark.parametrize(
    "options, message",
    [
        (
            {},
            "any size.*choose random_resized_crop, a crop .*squash, letterbox, .*buckets, padded or patch",
        ),
        ({"flip": True}, "any size.*choose"),
        (
            {"shortest": 8, "squash": 9, "center_crop": 4},
            "shortest is 8 and squash is 9; they exclude each other",
        ),
        ({"letterbox": 8, "cover": 9}, "letterbox is 8 and cover is 9; they exclude each other"),
        ({"shortest": 8}, "shortest to 8.*add a crop .*or use squash, letterbox, cover or padded"),
        ({"longest": 8, "flip": True}, "longest to 8.*add a crop"),
        ({"shortest": 8, "random_resized_crop": 8}, "shortest.*random_resized_crop.*leave one out"),
        ({"letterbox": 8, "center_crop": 8}, "letterbox.*leave crop out"),
        ({"cover": 8, "center_crop": 9}, "crop of 9 x 9 is larger than .*cover.* 8 x 8"),
        ({"squash": 8, "random_crop": (8, 9)}, "crop of 8 x 9 is larger than .*squash.* 8 x 8"),
        (
            {"center_crop": 8, "random_crop": 8},
            "center_crop is 8 and random_crop is 8; they exclude each other",
        ),
        ({"padded": 8, "center_crop": 8}, "padded.*leave crop out"),
        ({"padded": True, "shortest": 8}, "padded.*resize but for longest"),
        ({"padded": True, "squash": 8}, "padded.*resize but for longest"),
        ({"padded": -1}, "padded is -1; expected a whole number from 0 to 8192"),
        ({"padded": 2.5}, "padded is 2.5; expected"),
        ({"padded": "yes"}, "padded is 'yes'; expected"),
        ({"padded": 8, "length_window": 0}, "length_window is 0"),
        ({"padded": 8, "length_window": 2.5}, "length_window is 2.5"),
        ({"letterbox": 8, "length_window": 99}, "length_window is 99, but no view is padded: leave it out"),
        (
            {"padded": 8, "length_window": 99, "repeats": 5},
            "length_window needs repeats 1.*they are 5 and global: leave",
        ),
        ({"padded": 8, "augment": sl.Augment(ops=[sl.ops.turns()])}, "quarter turn.*use turns 2"),
        ({"patch": 8, "max_tokens": 9, "augment": sl.Augment(ops=[sl.ops.turns(1)])}, "quarter turn"),
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
        ({"buckets": [(8, 8)], "repeats": 5}, "repeats is 5; buckets need repeats 1"),
        ({"buckets": [(8, 8)], "mixup": 1.0, "tail": "drop", "drop_last": None}, "mixup"),
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
        ({"padded": 8, "length_window": 9}, "length_window is 9, but all samples are 32 x 32: leave it out"),
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
