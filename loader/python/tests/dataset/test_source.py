"""Source: images without a conversion are the data set that a conversion makes of them."""

import contextlib
import io
import os
import pickle
import shutil
import tarfile
import time
import warnings

import numpy as np
import pytest

import shardloader as sl
from conftest import make_images, png

Image = pytest.importorskip("PIL.Image")


def same(source: sl.Dataset, converted: sl.Dataset) -> None:
    assert len(source) == len(converted)
    assert source.classes == converted.classes
    assert list(source.keys) == list(converted.keys)
    assert source.columns == converted.columns
    for i in range(len(source)):
        (left, left_label), (right, right_label) = source[i], converted[i]
        assert left.dtype == right.dtype and np.array_equal(left, right), i
        assert np.array_equal(left_label, right_label)


def same_batches(source: sl.Dataset, converted: sl.Dataset, epochs=(0, 1), **how) -> None:
    loaders = [
        sl.Loader(data, framework="numpy", seed=3, **{"batch_size": 8, **how}) for data in (source, converted)
    ]
    for epoch in epochs:
        count = 0
        for left, right in zip(*(loader.epoch(epoch) for loader in loaders), strict=True):
            count += 1
            assert np.array_equal(left.images, right.images)
            assert np.array_equal(left.labels, right.labels)
            assert np.array_equal(left.ids, right.ids)
        assert count == len(loaders[0])


RIGID = [
    {"preset": "train", "size": 40},
    {"preset": "eval", "resize": 48, "crop": 32},
    {"squash": (30, 50), "dtype": "float32", "codec": "zstd"},
    {"size": 40, "dtype": "uint8", "codec": "packed"},
    {"size": 48, "codec": "jpeg", "quality": 70},
]


@pytest.mark.parametrize("options", RIGID, ids=str)
def test_samples_of_one_size_are_those_of_a_conversion(photos, tmp_path, options):
    options = {"samples_per_shard": 7, **options}
    source = sl.Source(photos, **options)
    sl.convert(photos, tmp_path / "out", **options)
    converted = sl.Dataset(tmp_path / "out")
    same(source, converted)
    same_batches(source, converted)


FREE = [
    {},
    {"size": "original", "codec": "packed"},
    {"longest": 64, "multiple": 8},
    {"area": 3000, "dtype": "float16"},
    {"size": "original", "codec": "jpeg", "quality": 80},
]


@pytest.mark.parametrize("options", FREE, ids=str)
def test_samples_of_any_size_are_those_of_a_conversion(photos, tmp_path, options):
    options = {"samples_per_shard": 9, **options}
    source = sl.Source(photos, **options)
    sl.convert(photos, tmp_path / "out", **({"size": "original"} | options if len(options) == 1 else options))
    converted = sl.Dataset(tmp_path / "out")
    same(source, converted)
    same_batches(source, converted, random_resized_crop=32, flip=True, dtype="float32")
    same_batches(source, converted, letterbox=(40, 48))
    same_batches(source, converted, buckets=[(40, 40), (56, 32)], bucket_crop="random")
    same_batches(source, converted, padded=True, length_window=16)
    same_batches(source, converted, random_resized_crop=32, window_shards=2)


def test_a_path_of_images_needs_no_conversion(photos, tmp_path):
    sl.convert(photos, tmp_path / "out", size="original")
    how = {"batch_size": 8, "framework": "numpy", "random_resized_crop": 24, "flip": True, "seed": 1}
    direct, converted = sl.Loader(photos, **how), sl.Loader(tmp_path / "out", **how)
    assert isinstance(direct.data, sl.Source) and not isinstance(converted.data, sl.Source)
    for left, right in zip(direct, converted, strict=True):
        assert np.array_equal(left.images, right.images)
    stats = direct.stats()
    assert stats.transport == "staged" and "not converted" in stats.reason
    assert stats.decoded_images >= 40 // 8 * 8 and stats.replaced_images == 0


def archive(path, photos):
    with tarfile.open(path, "w") as tar:
        for file in sorted(photos.rglob("*.*")):
            tar.add(file, file.relative_to(photos))
    return path


@pytest.mark.parametrize("kind", ["tar", "list", "csv", "npy"])
def test_every_kind_of_source(photos, tmp_path, kind):
    options = {"preset": "train", "size": 40, "samples_per_shard": 7}
    images = photos
    if kind == "tar":
        images = archive(tmp_path / "photos.tar", photos)
    elif kind == "list":
        (tmp_path / "list").write_text("\n".join(str(path) for path in sorted(photos.rglob("*.*"))[::-1]))
        images, options["root"] = f"@{tmp_path / 'list'}", photos
    elif kind == "csv":
        rows = [
            f"{path.relative_to(photos)},{number},caption {number},{number} {number} 9 9"
            for number, path in enumerate(sorted(photos.rglob("*.*")))
        ]
        (tmp_path / "labels.csv").write_text("\n".join(["path,label,caption,boxes", *rows]) + "\n")
        options["labels"] = tmp_path / "labels.csv"
        options["columns"] = {"caption": sl.Text, "boxes": sl.Ragged("float32", 4)}
    else:
        images = tmp_path / "images.npy"
        np.save(images, np.random.default_rng(1).integers(0, 256, (20, 50, 60, 3), np.uint8))
    source = sl.Source(images, **options)
    sl.convert(images, tmp_path / "out", **options)
    converted = sl.Dataset(tmp_path / "out")
    same(source, converted)
    same_batches(source, converted, **({"as_stored": ["boxes"]} if kind == "csv" else {}))
    for name in source.columns:
        for i in range(len(source)):
            assert np.array_equal(source.column(name)[i], converted.column(name)[i])


def test_masks_follow(photos, tmp_path):
    masks = tmp_path / "masks"
    for path in photos.rglob("*.*"):
        target = masks / path.relative_to(photos).with_suffix(".png")
        target.parent.mkdir(parents=True, exist_ok=True)
        with Image.open(path) as image:
            turned = image.getexif().get(0x0112) == 6
            size = image.size[::-1] if turned else image.size
        Image.fromarray(np.random.default_rng(size[0]).integers(0, 5, size[::-1], np.uint8)).save(target)
    for options in ({"preset": "train", "size": 40}, {"size": "original"}):
        options = {"samples_per_shard": 7, "mask": f"{masks},classes=5", **options}
        source = sl.Source(photos, **options)
        out = tmp_path / ("out" + str(options.get("preset")))
        sl.convert(photos, out, **options)
        converted = sl.Dataset(out)
        same(source, converted)
        for i in range(len(source)):
            assert np.array_equal(source.image("mask", i), converted.image("mask", i))
        loaders = [
            sl.Loader(
                data, batch_size=8, framework="numpy", random_resized_crop=24, flip=True, fields=["mask"]
            )
            for data in (source, converted)
        ]
        for left, right in zip(*loaders, strict=True):
            assert np.array_equal(left.images, right.images)
            assert np.array_equal(left.targets()["mask"], right.targets()["mask"])


def test_a_run_that_began_before_the_conversion_ends_after_it(photos, tmp_path):
    options = {"size": 40, "preset": "train", "samples_per_shard": 7}
    how = {"batch_size": 4, "framework": "numpy", "seed": 5, "window_shards": 2}
    before = sl.Loader(sl.Source(photos, **options), **how)
    batches = iter(before)
    for _ in range(3):
        next(batches)
    state = before.state_dict()
    sl.convert(photos, tmp_path / "out", **options)
    after = sl.Loader(tmp_path / "out", **how)
    after.load_state_dict(state)
    for left, right in zip(batches, after, strict=True):
        assert np.array_equal(left.ids, right.ids) and np.array_equal(left.images, right.images)


def test_selections_and_mixes(photos, tmp_path):
    options = {"size": 40, "preset": "train", "samples_per_shard": 7}
    source = sl.Source(photos, **options)
    sl.convert(photos, tmp_path / "out", **options)
    converted = sl.Dataset(tmp_path / "out")
    same(source.classes_only(["cat", "emu"]), converted.classes_only(["cat", "emu"]))
    for left, right in zip(source.split(0.7), converted.split(0.7), strict=True):
        same(left, right)
    same(sl.concat(source, converted), sl.concat(converted, converted))
    same_batches(sl.concat(converted, source), sl.concat(converted, converted))
    first_converted = sl.Loader(
        sl.concat(converted, source), batch_size=8, framework="numpy", shuffle=False, prefetch=1
    )
    next(iter(first_converted))
    assert first_converted.stats().decoded_images == 0  # of 40, and only the first three batches are begun
    with pytest.raises(sl.UnsupportedError, match="is not converted"):
        source.split(0.7)[0].save("some")


def test_the_same_for_ranks_threads_and_transports(photos):
    source = sl.Source(photos, size=40, preset="train", samples_per_shard=7)
    how = {"framework": "numpy", "seed": 2, "flip": True}
    whole = [batch.images.copy() for batch in sl.Loader(source, batch_size=8, **how)]
    for threads in (1, 3):
        loader = sl.Loader(source, batch_size=8, threads=threads, prefetch=1, **how)
        for left, right in zip(whole, loader, strict=True):
            assert np.array_equal(left, right.images)
    ranks = [sl.Loader(source, batch_size=4, rank=rank, world_size=2, **how) for rank in (0, 1)]
    for left, *parts in zip(whole, *ranks, strict=True):
        assert np.array_equal(left, np.concatenate([part.images for part in parts]))
    resident = sl.Loader(source, batch_size=8, transport="resident", **how)
    for epoch in range(3):
        again = sl.Loader(source, batch_size=8, **how)
        for left, right in zip(resident.epoch(epoch), again.epoch(epoch), strict=True):
            assert np.array_equal(left.images, right.images)
    # Resident samples are not decoded again, but for those of batches that were begun before.
    assert resident.stats().decoded_images < 2 * len(source)
    for transport in ("mapped", "direct"):
        with pytest.raises(sl.InvalidArgumentError, match="not converted"):
            next(iter(sl.Loader(source, batch_size=8, transport=transport, **how)))


def test_bad_images_are_errors_that_name_them(some_bad):
    folder, bad = some_bad
    source = sl.Source(folder, size=32, preset="train")
    assert len(source) == 30
    with pytest.raises(sl.CorruptError, match="ant/000.png"):
        source[0]
    assert source[1][0].shape == (32, 32, 3)
    loader = sl.Loader(source, batch_size=6, framework="numpy")
    with pytest.raises(sl.CorruptError, match=r"image \"\w+/\d+.png\": .*on_error"):
        list(loader)
    converted = {str(path.relative_to(folder)) for path in bad}
    assert {key for key in source.keys if not readable(source, key)} == converted


def readable(source, key):
    try:
        source[list(source.keys).index(key)]
    except sl.CorruptError:
        return False
    return True


def test_bad_images_are_replaced_by_the_next_one(some_bad):
    folder, bad = some_bad
    source = sl.Source(folder, size=32, preset="train", samples_per_shard=8)
    names = {str(path.relative_to(folder)) for path in bad}
    keys = list(source.keys)

    def expected(sample):
        while keys[sample] in names:
            sample = (sample + 1) % len(keys)
        return sample

    how = {"batch_size": 6, "framework": "numpy", "seed": 4, "prefetch": 8}
    good = sl.Loader(source, on_error="skip", **how)
    all_good = make_images(folder.parent / "good", 10)
    order = sl.Loader(sl.Source(all_good, size=32, preset="train", samples_per_shard=8), **how)
    for epoch in range(2):
        with pytest.warns(RuntimeWarning, match="replaced") if epoch == 0 else contextlib.nullcontext():
            batches = [(b.ids.tolist(), b.images.copy(), b.labels.copy()) for b in good.epoch(epoch)]
        for (ids, pixels, labels), right in zip(batches, order.epoch(epoch), strict=True):
            assert ids == [expected(int(i)) for i in right.ids]
            for row, sample in enumerate(ids):
                assert np.array_equal(pixels[row], source[sample][0]) and labels[row] == source[sample][1]
    stats = good.stats()
    assert stats.replaced_images >= 2 * len(bad)
    assert {line.split('"')[3] for line in stats.unusable_images.split("\n")} == names
    halves = [
        sl.Loader(source, batch_size=3, framework="numpy", on_error="skip", seed=4, rank=rank, world_size=2)
        for rank in (0, 1)
    ]
    with pytest.warns(RuntimeWarning, match="replaced"):
        ids = [[i for batch in loader.epoch(0) for i in batch.ids.tolist()] for loader in halves]
    assert sorted(ids[0] + ids[1]) == sorted(expected(int(i)) for batch in order.epoch(0) for i in batch.ids)


def test_no_image_that_can_be_used(tmp_path):
    (tmp_path / "a").mkdir()
    for i in range(3):
        (tmp_path / "a" / f"{i}.png").write_bytes(png(i)[:300])
    source = sl.Source(tmp_path, size=32, preset="train")
    loader = sl.Loader(source, batch_size=2, framework="numpy", on_error="skip")
    with pytest.raises(sl.CorruptError, match="none of the 3 images can be used"):
        next(iter(loader))


def test_a_file_that_changes_is_an_error(photos, tmp_path):
    folder = make_images(tmp_path / "images", 4)
    for options in ({"size": 32, "preset": "train"}, {}):
        source = sl.Source(folder, **options)
        path = folder / "bee" / "001.png"
        before = path.read_bytes()
        path.write_bytes(png(999, 50, 60))
        at = list(source.keys).index("bee/001.png")
        with pytest.raises(sl.InvalidArgumentError, match="bee/001.png"):
            source[at]
        for on_error in ("raise", "skip"):
            how = {} if options else {"center_crop": 32}
            with pytest.raises(sl.InvalidArgumentError, match="bee/001.png"):
                list(sl.Loader(source, batch_size=3, framework="numpy", on_error=on_error, **how))
        path.unlink()
        with pytest.raises(sl.ShardError, match="bee/001.png"):
            source[at]
        path.write_bytes(before)  # at another time
        with pytest.raises(sl.InvalidArgumentError, match="bee/001.png.* was replaced or written to"):
            source[at]


def test_it_is_pickled_and_used_after_fork(photos, tmp_path):
    source = sl.Source(os.path.relpath(photos), size=40, preset="train")
    there = pickle.loads(pickle.dumps(source))
    same(source, there)
    half = pickle.loads(pickle.dumps(source.split(0.5)[0]))
    same(half, source.split(0.5)[0])
    expected = source[5][0].copy()
    process = os.fork()
    if process == 0:
        os._exit(0 if np.array_equal(source[5][0], expected) and len(source[6]) == 2 else 1)
    assert os.waitpid(process, 0)[1] == 0


def test_wrong_arguments(photos, tmp_path):
    with pytest.raises(sl.InvalidArgumentError, match="overwrite is about a conversion"):
        sl.Source(photos, overwrite=True)
    with pytest.raises(sl.NotFoundError, match="nowhere"):
        sl.Source(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(sl.InvalidArgumentError, match="empty"):
        sl.Loader(tmp_path / "empty", batch_size=2, framework="numpy")
    with pytest.raises(sl.InvalidArgumentError, match="on_error"):
        sl.Loader(photos, batch_size=2, framework="numpy", on_error="ignore")
    with pytest.raises(sl.NotFoundError):
        sl.Loader(tmp_path / "nowhere", batch_size=2, framework="numpy")
    with pytest.raises(TypeError, match="colour"):
        sl.Source(photos, colour=1)
    with pytest.raises(sl.NotFoundError, match=r"no dataset.json; .*Source\(.* loads them as they are"):
        sl.Dataset(photos)
    with pytest.raises(sl.UnsupportedError, match="nothing is stored"):
        sl.Source(photos).verify()
    assert repr(sl.Source(photos)).startswith("<Source ")


def test_inputs_that_the_listing_leaves_out_are_named(photos, tmp_path):
    folder = make_images(tmp_path / "images", 4)
    (folder / "beside.png").write_bytes(png(1))
    with pytest.warns(sl.ConversionWarning, match="1 of 13 inputs .* left out .*beside.png"):
        source = sl.Source(folder, size=32, preset="train")
    assert [key for key, _ in source.rejects] == ["beside.png"] and len(source) == 12


def swap(one, other):
    kept = one.with_name("kept")
    one.rename(kept)
    other.rename(one)
    kept.rename(other)


def bitmap(color, size=(8, 8)):
    file = io.BytesIO()
    Image.new("RGB", size, color).save(file, "BMP")
    return file.getvalue()


@pytest.mark.parametrize("how", ["swapped", "written", "time set back"])
@pytest.mark.parametrize("door", ["sample", "loader", "convert"])
def test_files_that_change_meanwhile_are_errors(tmp_path, how, door):
    for name, color in (("a", (0, 80, 160)), ("b", (200, 120, 40))):
        (tmp_path / "in" / name).mkdir(parents=True)
        (tmp_path / "in" / name / "1.bmp").write_bytes(bitmap(color))
    one, other = (tmp_path / "in" / name / "1.bmp" for name in "ab")
    source = sl.Source(tmp_path / "in", size=8)
    plan = sl.plan(tmp_path / "in", tmp_path / "out", size=8)
    before = one.stat()
    time.sleep(0.02)
    if how == "swapped":
        swap(one, other)
    else:
        one.write_bytes(bitmap((1, 2, 3)))
    if how == "time set back":
        os.utime(one, ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(sl.InvalidArgumentError, match="[ab]/1.bmp.* was replaced or written to"):
        if door == "sample":
            source[0]
        elif door == "loader":
            loader = sl.Loader(source, batch_size=2, framework="numpy", on_error="skip")
            next(iter(loader))
        else:
            sl.convert_shard(plan, 0)


@pytest.mark.parametrize("cached", [False, True])
def test_12_bits_in_files_of_16_are_a_warning_with_the_cure(tmp_path, cached):
    (tmp_path / "in").mkdir()
    for i in range(4):
        values = (np.arange(64, dtype=np.uint16).reshape(8, 8) * 64 + i).astype(np.uint16)  # up to 4035
        Image.fromarray(values).save(tmp_path / "in" / f"{i}.png")
    (tmp_path / "in" / "8.png").write_bytes(png(1, 8, 8))
    keep = {"cache": tmp_path / "cache"} if cached else {}
    data = sl.Source(tmp_path / "in", size=8, **keep)
    loader = sl.Loader(data, batch_size=5, framework="numpy")
    with pytest.warns(RuntimeWarning, match="16 bits .*depth= says") as told:
        for epoch in range(2):
            assert len(list(loader.epoch(epoch))) == 1
    assert len([one for one in told if "16 bits" in str(one.message)]) == 1
    assert loader.stats().few_bits_images >= 4
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        deep = sl.Source(tmp_path / "in", size=8, depth=12)
        assert len(list(sl.Loader(deep, batch_size=5, framework="numpy").epoch(0))) == 1


@pytest.mark.parametrize("read_before", [False, True])
def test_archives_that_change_meanwhile_are_errors(tmp_path, read_before):
    def write(color):
        with tarfile.open(tmp_path / "new.tar", "w") as archive:
            for i in range(4):
                member = tarfile.TarInfo(f"a/{i}.bmp")
                data = bitmap((color, i, 0))
                member.size = len(data)
                archive.addfile(member, io.BytesIO(data))
        data = (tmp_path / "new.tar").read_bytes()
        with open(tmp_path / "a.tar", "r+b" if (tmp_path / "a.tar").exists() else "wb") as file:
            file.write(data)

    write(10)
    source = sl.Source(tmp_path / "a.tar", size=8)
    if read_before:
        assert source[0][0].max() == 10
    before = (tmp_path / "a.tar").stat()
    time.sleep(0.02)
    write(200)
    os.utime(tmp_path / "a.tar", ns=(before.st_atime_ns, before.st_mtime_ns))
    for i in range(1, 4):  # the one that was read last is kept
        with pytest.raises(sl.InvalidArgumentError, match="was replaced or written to"):
            source[i]


def test_masks_that_change_meanwhile_are_errors(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "masks").mkdir()
    (tmp_path / "in" / "a.bmp").write_bytes(bitmap((9, 9, 9)))
    Image.new("L", (8, 8), 1).save(tmp_path / "masks" / "a.png")
    source = sl.Source(tmp_path / "in", size=8, mask=f"{tmp_path / 'masks'},classes=5")
    time.sleep(0.02)
    Image.new("L", (8, 8), 2).save(tmp_path / "masks" / "a.png")
    with pytest.raises(sl.InvalidArgumentError, match="a.png.* was replaced or written to"):
        source[0]


def test_a_file_that_cannot_be_read_for_a_moment_comes_back(tmp_path):
    folder = make_images(tmp_path / "in", each=4)
    source = sl.Source(folder, size=16)
    loader = sl.Loader(source, batch_size=3, framework="numpy", shuffle=False, on_error="skip", prefetch=1)
    (folder / "bee" / "001.png").rename(tmp_path / "away.png")
    with pytest.raises(sl.IoError, match="bee/001.png.*cannot open"):
        source[5]
    with pytest.warns(RuntimeWarning, match="bee/001.png.*cannot open"):
        ids = [int(i) for batch in loader.epoch(0) for i in batch.ids]
    assert ids == [0, 1, 2, 3, 4, 6, 6, 7, 8, 9, 10, 11]
    (tmp_path / "away.png").rename(folder / "bee" / "001.png")  # its times change, so it is another file
    with pytest.raises(sl.InvalidArgumentError, match="was replaced"):
        for epoch in (1, 2):  # batches of the first one were begun before
            for _ in loader.epoch(epoch):
                pass


def changes(how, folder, table):
    """Changes what a Source was made of."""
    first, other = sorted(folder.glob("*/*"))[:2]
    if how == "a file":
        data = other.read_bytes()
        first.unlink()
        first.write_bytes(data)
    elif how == "the table":
        table.write_text("".join(f"{line.split(',')[0]},7\n" for line in table.read_text().splitlines()))
    else:
        (folder / "+").mkdir()
        (folder / "+" / "1.png").write_bytes(png(1))


@pytest.mark.parametrize("how", ["a file", "the table", "a class"])
@pytest.mark.parametrize("loop", ["at once", "later"])
def test_a_loop_without_a_loader_is_of_what_the_source_listed(tmp_path, how, loop):
    folder, table = make_images(tmp_path / "in"), tmp_path / "l.csv"
    paths = sorted(path.relative_to(folder) for path in folder.glob("*/*"))
    table.write_text("".join(f"{path},{number}\n" for number, path in enumerate(paths)))
    source = sl.Source(folder, preset="train", squash=(48, 40), labels=table if how == "the table" else None)
    labels = source.labels.copy()
    images = [source[i][0].copy() for i in range(len(source))]
    options = {"shuffle": False, "drop_last": False, "layout": "nhwc", "framework": "numpy"}
    if loop == "later":
        batches = sl.Loader(source, 4, **options).epoch(0)
    changes(how, folder, table)
    if loop == "at once":
        batches = iter(sl.Loader(source, 4, **options))
    found = []
    try:
        for batch in batches:
            copies = map(np.copy, batch.images)
            found.extend(zip(batch.ids.tolist(), batch.labels.tolist(), copies, strict=True))
    except sl.InvalidArgumentError:
        assert how == "a file"
    else:  # the file may have been read before it was changed
        assert len(found) == len(source)
    for i, label, image in found:
        assert label == labels[i]
        np.testing.assert_array_equal(image, images[i])


def test_a_data_set_that_is_replaced_is_not_taken_in_the_middle(photos, tmp_path):
    sl.convert(photos, tmp_path / "out", preset="train", size=32)
    data = sl.Dataset(tmp_path / "out")
    kept = [data[i][0].copy() for i in range(len(data))]
    options = {"shuffle": False, "layout": "nhwc", "framework": "numpy"}
    batches = sl.Loader(data, 8, **options).epoch(0)
    sl.convert(photos, tmp_path / "out", preset="train", size=32, filter="bicubic", overwrite=True)
    for batch in batches:
        for i, image in zip(batch.ids.tolist(), batch.images, strict=True):
            np.testing.assert_array_equal(image, kept[i])


@pytest.mark.parametrize(
    "options, why",
    [
        ({"preset": "eval", "codec": "packed"}, "codec packed of float samples"),
        (
            {"preset": "train", "pairs": "FOLDER,codec=jpeg:80"},
            "field .*codec jpeg:80 gives its pixels other",
        ),
        ({"preset": "train", "pairs": "FOLDER,dtype=f32,codec=packed"}, "field .*codec packed of floats"),
    ],
)
def test_codecs_that_would_make_other_batches_are_refused(photos, tmp_path, options, why):
    if "pairs" in options:
        options = {**options, "pairs": {"p": options["pairs"].replace("FOLDER", str(photos))}}
    for cache in (None, tmp_path / "cache"):
        with pytest.raises(sl.InvalidArgumentError, match=why + ".*leave codec out, or convert"):
            sl.Source(photos, cache=cache, **options)


def test_a_state_of_other_images_is_refused(photos, tmp_path):
    folder = tmp_path / "in"
    shutil.copytree(photos, folder)
    options = {"preset": "train", "size": 32}
    loader = sl.Loader(sl.Source(folder, **options), 8, framework="numpy")
    next(iter(loader))
    state = loader.state_dict()
    assert set(state) == {"epoch", "batch", "state", "inputs"}
    sl.convert(folder, tmp_path / "out", **options)
    for same in (sl.Source(folder, **options), sl.Dataset(tmp_path / "out")):
        resumed = sl.Loader(same, 8, framework="numpy")
        resumed.load_state_dict(state)
        assert next(iter(resumed)).batch_index == 1
    first = sorted(folder.glob("*/*"))[0]
    first.rename(folder / "emu" / "zz.jpg")  # as many images as before, each with another number
    other = sl.Loader(sl.Source(folder, **options), 8, framework="numpy")
    with pytest.raises(sl.InvalidArgumentError, match="a data set of other images or labels"):
        other.load_state_dict(state)
    other.load_state_dict({name: value for name, value in state.items() if name != "inputs"})
