import filecmp
import json
import os
import shutil
import struct
import subprocess
import sys
import tarfile
import threading
import types
import warnings
import zlib
from pathlib import Path

import numpy as np
import pytest

import shardloader as sl
from conftest import EACH, SAMPLES, make_images
from shardloader import _convert

GOLDEN = Path(__file__).resolve().parents[4] / "tests" / "golden" / "images"


def test_the_same_options_give_the_same_bytes(images, folder, tmp_path):
    told = []
    result = sl.convert(
        images,
        tmp_path / "out",
        preset="train",
        resize=32,
        crop=(32, 32),
        samples_per_shard=8,
        jobs=1,
        progress=lambda *counts: told.append(counts),
    )
    assert result.complete and (result.samples, result.rejects, result.shards, result.converted) == (
        SAMPLES,
        0,
        8,
        SAMPLES,
    )
    assert told[-1] == (SAMPLES, SAMPLES, 0)
    same, different, missing = filecmp.cmpfiles(
        folder, tmp_path / "out", [f"shard-{i:05}.safetensors" for i in range(8)], False
    )
    assert (len(same), different, missing) == (8, [], [])
    again = sl.convert(images, tmp_path / "out", preset="train", resize=32, crop=32, samples_per_shard=8)
    assert again.was_complete and again.converted == 0


def test_the_preset_is_train_at_every_door(images, tmp_path):
    """convert(), plan(), Writer, write() and Source, and the program, without an option about samples."""
    doors = {
        "explicit": tmp_path / "explicit",
        "convert": tmp_path / "convert",
        "writer": tmp_path / "writer",
    }
    sl.convert(images, doors["explicit"], preset="train")
    sl.convert(images, doors["convert"])
    files = [(str(path.relative_to(images)), path) for path in sorted(images.rglob("*.png"))]
    with sl.Writer(doors["writer"], classes=["ant", "bee", "cow"]) as writer:
        for key, path in files:
            writer.add(key, path, path.parent.name)
    sl.write(((key, path) for key, path in files), tmp_path / "write")
    plan = sl.plan(images, tmp_path / "plan")
    for shard in range(plan.shards):
        sl.convert_shard(plan, shard)
    sl.finish(plan)
    doors |= {"write": tmp_path / "write", "plan": tmp_path / "plan"}
    program = Path(sl.__file__).parents[2] / "bin" / "shardify"
    if program.exists():
        subprocess.run([program, images, tmp_path / "program", "--quiet"], check=True)
        doors["program"] = tmp_path / "program"
    wanted = sl.Dataset(doors["explicit"])
    assert (wanted.shape, wanted.dtype, wanted.layout) == ((256, 256, 3), "uint8", "nhwc")
    pipeline = wanted.info["pipeline"]
    for door, folder in doors.items():
        data = sl.Dataset(folder)
        assert (data.shape, data.dtype, data.layout, data.mean, data.std) == (
            wanted.shape,
            wanted.dtype,
            wanted.layout,
            wanted.mean,
            wanted.std,
        ), door
        assert np.array_equal(data[7][0], wanted[7][0]), door
        if door not in ("writer", "write"):  # which say other things beside
            assert data.info["pipeline"] == pipeline, door
            assert data.info["fingerprint"] == wanted.info["fingerprint"], door
    # Nothing is stored, so images keep their size, in the preset's dtype and layout.
    source = sl.Source(images)
    assert (source.shape, source.dtype, source.layout) == ((0, 0, 3), "uint8", "nhwc")
    source = sl.Source(images, preset="train")
    assert np.array_equal(source[7][0], wanted[7][0]) and source.mean == wanted.mean


def test_the_preset_eval_is_said(images, tmp_path):
    sl.convert(images, tmp_path / "out", preset="eval")
    data = sl.Dataset(tmp_path / "out")
    assert (data.shape, data.dtype, data.layout) == ((3, 224, 224), "float16", "nchw")


def test_append_adds_images_to_a_finished_data_set(tmp_path):
    size = {"resize": 8, "crop": 8, "dtype": "uint8"}
    first = make_images(tmp_path / "first", each=2)
    out = tmp_path / "out"
    with pytest.raises(FileNotFoundError, match="holds no data set .*without append=True"):
        sl.convert(first, out, append=True, **size)
    sl.convert(first, out, **size)
    opened = sl.Dataset(out)
    more = tmp_path / "more"
    for name in ("zebra", "ant"):
        (more / name).mkdir(parents=True)
        (more / name / "new.png").write_bytes(min((first / "ant").iterdir()).read_bytes())
    result = sl.convert(more, out, append=True, **size)
    assert (result.samples, result.rejects, result.was_complete) == (2, 0, False)
    assert sl.convert(more, out, append=True, **size).was_complete
    data = sl.Dataset(out)
    count = len(opened)
    assert len(data) == count + 2 and data.classes == (*opened.classes, "zebra")
    assert [data.classes[data[i][1]] for i in range(count, count + 2)] == ["ant", "zebra"]
    assert all(np.array_equal(opened[i][0], data[i][0]) for i in range(count))
    with pytest.raises(ValueError, match=r"other options:\n  crop: .*\ngive the recorded"):
        sl.convert(more, out, append=True, **{**size, "crop": 6})
    with pytest.raises(ValueError, match="already by their keys"):
        sl.convert(first, out, append=True, **size)


def test_rejects_are_counted_and_can_end_it(tmp_path):
    images = make_images(tmp_path / "images", each=2)
    (images / "bee" / "bad.png").write_bytes(b"no picture")
    assert sl.convert(images, tmp_path / "out", resize=8, crop=8).rejects == 1
    assert sl.Dataset(tmp_path / "out").info["rejects"] == 1
    with pytest.raises(RuntimeError, match="bad.png"):
        sl.convert(images, tmp_path / "other", resize=8, crop=8, on_error="fail")


def conversion_warnings(caught):
    assert all(warning.filename == __file__ for warning in caught), [
        warning.filename for warning in caught
    ]  # the line of the caller
    return [str(warning.message) for warning in caught if issubclass(warning.category, sl.ConversionWarning)]


def test_what_is_left_out_is_a_warning_of_every_door(tmp_path):
    images = make_images(tmp_path / "images", each=2)
    (images / "bee" / "bad.png").write_bytes(b"no picture")
    (images / "bee" / ".hidden.png").write_bytes(b"")
    (images / "bee" / "notes.txt").write_bytes(b"text")
    size = {"resize": 8, "crop": 8}
    expected = r"1 of 7 inputs are not in the data set .*rejects\.csv.*, the first: bee/bad\.png: "
    with pytest.warns(sl.ConversionWarning, match=expected) as caught:
        result = sl.convert(images, tmp_path / "out", **size)
    assert len(conversion_warnings(caught)) == 1 and result.skipped == {"hidden": 1, "no_image": 1}
    with pytest.warns(sl.ConversionWarning, match=expected):  # also if nothing is left to do
        assert sl.convert(images, tmp_path / "out", **size).was_complete
    plan = sl.plan(images, tmp_path / "planned", **size)
    for shard in range(plan.shards):
        sl.convert_shard(plan, shard)
    with pytest.warns(sl.ConversionWarning, match=expected) as caught:
        sl.finish(plan)
    assert len(conversion_warnings(caught)) == 1
    rows = [(path.name, path, 0) for path in sorted((images / "bee").glob("[0b]*.png"))]
    with pytest.warns(
        sl.ConversionWarning, match=r"1 of 3 inputs are not in the data set .*bad\.png"
    ) as caught:
        sl.write(rows, tmp_path / "written", **size)
    assert len(conversion_warnings(caught)) == 1
    with (
        pytest.warns(sl.ConversionWarning, match=r"1 of 3 inputs") as caught,
        sl.Writer(tmp_path / "with", **size) as writer,
    ):
        for row in rows:
            writer.add(*row)
    assert len(conversion_warnings(caught)) == 1
    more = make_images(tmp_path / "more" / "deeper", each=1).parent
    (more / "deeper" / "worse.png").write_bytes(b"")
    with pytest.warns(sl.ConversionWarning, match="1 of 4 inputs are not in the data set"):
        sl.convert(more, tmp_path / "out", append=True, **size)
    with warnings.catch_warnings():
        warnings.simplefilter("error", sl.ConversionWarning)
        (images / "bee" / "bad.png").unlink()
        assert sl.convert(images, tmp_path / "clean", **size).rejects == 0


def test_objects_that_are_left_out_are_a_warning(tmp_path):
    make_images(tmp_path / "images", each=1)
    boxes = tmp_path / "boxes.json"
    annotations = [
        {"id": 1, "image_id": 1, "category_id": 9, "bbox": [1, 1, 5, 5]},
        {"id": 2, "image_id": 1, "category_id": 1, "bbox": [1, 1, 0, 5]},
        {"id": 3, "image_id": 1, "category_id": 1, "bbox": [1, 1, 5, 5]},
    ]
    boxes.write_text(
        json.dumps(
            {
                "images": [{"id": 1, "file_name": "ant/000.png", "width": 48, "height": 40}],
                "categories": [{"id": 1, "name": "x"}],
                "annotations": annotations,
            }
        )
    )
    with pytest.warns(sl.ConversionWarning) as caught:
        result = sl.convert(tmp_path / "images", tmp_path / "out", coco=boxes, resize=32, crop=32)
    assert [text.split(" are left out")[0] for text in conversion_warnings(caught)] == [
        "1 objects of categories that the annotations do not name",
        "1 objects with boxes without area",
    ]
    assert result.annotations == {
        "objects": 1,
        "images_without": 2,
        "unknown_category": 1,
        "invalid_boxes": 1,
    }


def doors(tmp_path, images, **options):
    """(what it returned, its warnings) of each way to give annotations."""

    def planned():
        plan = sl.plan(images, tmp_path / "planned", **options)
        for shard in range(plan.shards):
            sl.convert_shard(plan, shard)
        return plan

    plans = []
    for door in (
        lambda: sl.convert(images, tmp_path / "out", **options),
        lambda: sl.Source(images, **options),
        lambda: sl.Source(images, cache=tmp_path / "cache", **options),
        lambda: plans.append(planned()),
        lambda: sl.finish(plans[0]),
    ):
        with pytest.warns(sl.ConversionWarning) as caught:
            returned = door()
        yield returned, conversion_warnings(caught)


def test_annotations_without_image_are_a_warning_of_every_door(tmp_path):
    images = make_images(tmp_path / "images", each=1)
    boxes = tmp_path / "boxes.json"
    boxes.write_text(
        json.dumps(
            {
                "images": [
                    {"id": 1, "file_name": "ant/000.png", "width": 48, "height": 40},
                    {"id": 2, "file_name": "other/000.png", "width": 48, "height": 40},
                ],
                "categories": [{"id": 1, "name": "x"}],
                "annotations": [
                    {"id": id, "image_id": image, "category_id": 1, "bbox": [1, 1, 5, 5]}
                    for id, image in ((1, 1), (2, 2), (3, 77))
                ],
            }
        )
    )
    (tmp_path / "masks" / "ant").mkdir(parents=True)
    shutil.copy(images / "ant" / "000.png", tmp_path / "masks" / "ant" / "000.png")
    shutil.copy(images / "ant" / "000.png", tmp_path / "masks" / "ant" / "999.png")
    found = list(
        doors(tmp_path, images, coco=boxes, pairs={"mate": tmp_path / "masks"}, preset="train", size=32)
    )
    for _, told in found:
        assert len(told) == 2 and told[0].startswith("2 annotations belong to no image of ")
        assert told[0].endswith(
            '(the first: annotation 2 is of "other/000.png", which is not among the inputs)'
        )
        assert told[1].startswith("1 files of mate belong to no image of ") and '"ant/999.png"' in told[1]
    converted, finished = found[0][0], found[-1][0]
    assert converted.annotations == {"objects": 1, "images_without": 2, "without_image": 2}
    assert (finished.annotations, finished.skipped) == (converted.annotations, converted.skipped)


def test_boxes_beyond_their_image_and_images_beside_folders_are_a_warning(tmp_path):
    images = make_images(tmp_path / "images", each=1)
    shutil.copy(images / "ant" / "000.png", images / "beside.png")
    boxes = tmp_path / "boxes.json"
    boxes.write_text(
        json.dumps(
            {
                "images": [{"id": 1, "file_name": "ant/000.png", "width": 48, "height": 40}],
                "categories": [{"id": 1, "name": "x"}],
                "annotations": [{"id": 1, "image_id": 1, "category_id": 1, "bbox": [40, 30, 48, 40]}],
            }
        )
    )
    with pytest.warns(sl.ConversionWarning) as caught:
        result = sl.convert(images, tmp_path / "out", coco=boxes, resize=32, crop=32)
    assert [text.split(";")[0].split(",")[0] for text in conversion_warnings(caught)] == [
        "1 boxes reach beyond their image",
        "1 images lie beside the folders of others",
    ]
    assert (
        result.annotations == {"objects": 1, "images_without": 3, "beyond_image": 1, "beside_folders": 1}
        and result.samples == 4
    )
    assert sl.Dataset(tmp_path / "out").labels.tolist() == [0] * 4


def test_classes_are_a_list_a_file_or_another_data_set(tmp_path):
    size = {"resize": 8, "crop": 8}
    sl.convert(make_images(tmp_path / "set" / "train", each=2), tmp_path / "train", **size)
    val = make_images(tmp_path / "set" / "val", each=1)
    shutil.rmtree(val / "ant")
    names = tmp_path / "names.txt"
    names.write_text("ant\nbee\ncow\n")
    with pytest.warns(
        sl.ConversionWarning, match='"bee" is label 0 here and 1 there: give classes '
    ) as caught:
        sl.convert(val, tmp_path / "alone", **size)
    assert len(conversion_warnings(caught)) == 1 and sl.Dataset(tmp_path / "alone").labels.tolist() == [0, 1]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for number, classes in enumerate(
            (["ant", "bee", "cow"], ("ant", "bee", "cow"), names, str(names), tmp_path / "train")
        ):
            out = tmp_path / f"out{number}"
            sl.convert(val, out, classes=classes, **size)
            assert sl.Dataset(out).labels.tolist() == [1, 2] and sl.Dataset(out).classes == (
                "ant",
                "bee",
                "cow",
            )
        plan = sl.plan(val, tmp_path / "planned", classes=os.path.relpath(tmp_path / "train"), **size)
        for shard in range(plan.shards):
            sl.convert_shard(plan, shard)
        sl.finish(plan)
        with sl.Writer(tmp_path / "written", classes=tmp_path / "train", **size) as writer:
            writer.add("x", val / "cow" / "000.png", "cow")
        assert sl.Dataset(tmp_path / "planned").labels.tolist() == [1, 2]
        assert sl.Dataset(tmp_path / "written").labels.tolist() == [2] and sl.Dataset(
            tmp_path / "written"
        ).classes == ("ant", "bee", "cow")
    with pytest.raises(
        ValueError, match='"bee/000.png" is of the class "bee", which is not one of the 2 of classes'
    ):
        sl.convert(val, tmp_path / "bad", classes=["ant", "cow"], **size)
    for wrong, message in (
        ([], "classes is empty"),
        ("nowhere.txt", "nowhere.txt"),
        (["a", "a"], "classes has .* twice"),
        ([1, 2], "classes has 1"),
        (b"abc", "expected a list of names"),
        ({"a": 1}, "expected a list of names"),
        (5, "expected a list of names"),
    ):
        with pytest.raises((ValueError, FileNotFoundError), match=message):
            sl.convert(val, tmp_path / "bad", classes=wrong, **size)
        with pytest.raises((ValueError, FileNotFoundError), match=message):
            sl.Writer(tmp_path / "bad", classes=wrong, **size)
    assert not (tmp_path / "bad").exists()


def test_paths_with_zero_bytes_are_refused(images, tmp_path):
    for call, name in (
        (lambda: sl.convert(f"{images}\0x", tmp_path / "out"), "images"),
        (lambda: sl.convert(images, f"{tmp_path}/out\0x"), "out"),
        (lambda: sl.Source(f"{images}\0x"), "images"),
        (lambda: sl.Writer(f"{tmp_path}/out\0x"), "out"),
        (lambda: sl.convert(images, tmp_path / "out", coco=f"{images}\0x"), "coco"),
    ):
        with pytest.raises(sl.InvalidArgumentError, match=rf"^{name} is .*none of which is \\0"):
            call()
    (png, *_) = images.rglob("*.png")
    with sl.Writer(tmp_path / "out", resize=8, crop=8) as writer:
        with pytest.raises(sl.InvalidArgumentError, match=r"the image is .*none of which is \\0"):
            writer.add("a.png", f"{png}\0x")
        writer.add("a.png", png)


def test_classes_that_are_the_parts_of_a_data_set_are_told(tmp_path):
    for part in ("train", "val"):
        make_images(tmp_path / "set" / part, each=1)
    words = (
        r'the classes are "train" and "val": to convert one part give ".*/set/train"; its classes are "ant", '
    )
    with pytest.warns(sl.ConversionWarning, match=words):
        sl.plan(tmp_path / "set", tmp_path / "out", resize=8, crop=8)
    with pytest.warns(sl.ConversionWarning, match=words):
        sl.convert(tmp_path / "set", tmp_path / "out", resize=8, crop=8)


def test_images_that_would_be_enlarged_are_told_before(tmp_path):
    images = make_images(tmp_path / "images", each=2)
    with pytest.warns(
        sl.ConversionWarning,
        match=r"100 % of the images are smaller than 256x256 and would be enlarged \(6 of 6 that were looked "
        r"at\): squash 48x40",
    ):
        sl.convert(images, tmp_path / "out")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sl.convert(images, tmp_path / "out")  # it is there
        sl.convert(images, tmp_path / "small", resize=40, crop=40)
    with pytest.warns(sl.ConversionWarning, match="100 % of the images"):
        sl.plan(images, tmp_path / "planned")


def test_verify_covers_the_tables(tmp_path):
    sl.convert(make_images(tmp_path / "images", each=2), tmp_path / "out", resize=8, crop=8)
    data = sl.Dataset(tmp_path / "out")
    data.verify()
    table = tmp_path / "out" / "inputs.csv"
    whole = table.read_bytes()
    table.write_bytes(whole.replace(b"ant", b"bnt", 1))
    with pytest.raises(sl.CorruptError, match=r"inputs\.csv: .*edited or damaged"):
        data.verify()
    data.select([0]).verify()  # the samples of a part
    table.write_bytes(whole)
    data.verify()


def test_pixels_that_are_missing_are_a_warning(tmp_path):
    photo = GOLDEN / "jpeg_420_33x20.jpg"
    for name, data in (("whole", photo.read_bytes()), ("half", photo.read_bytes()[:-60])):
        (tmp_path / "photos" / "a").mkdir(parents=True, exist_ok=True)
        (tmp_path / "photos" / "a" / f"{name}.jpg").write_bytes(data)
    with pytest.warns(sl.ConversionWarning, match="1 of 2 inputs are not in the data set .*half.jpg"):
        assert sl.convert(tmp_path / "photos", tmp_path / "strict", size=16).samples == 1
    with pytest.warns(sl.ConversionWarning, match="missing or invented pixels .*, as on_warning accept asks"):
        done = sl.convert(tmp_path / "photos", tmp_path / "out", size=16, on_warning="accept")
    assert done.samples == 2 and len(done.advice) == 1 and done.warnings["premature_end"] == 1


def test_warnings_are_counted_per_kind(images, tmp_path):
    photos = tmp_path / "photos" / "ant"
    photos.mkdir(parents=True)
    for path in (images / "ant").iterdir():
        (photos / path.name).write_bytes(path.read_bytes())
    assert sl.convert(photos.parent, tmp_path / "out", resize=8, crop=8).warnings == {}
    with pytest.raises(ValueError, match="expected harmless, accept or reject"):
        sl.convert(photos.parent, tmp_path / "other", on_warning="ignore")


def test_sizes_and_values(images, tmp_path):
    sl.convert(
        images,
        tmp_path / "out",
        squash=(12, 20),
        dtype="float32",
        layout="nhwc",
        mean=(0, 0, 0),
        std=(1, 0.5, 1),
        overwrite=True,
    )
    data = sl.Dataset(tmp_path / "out")
    assert data.shape == (12, 20, 3) and data.dtype == "float32" and data.std == (1, 0.5, 1)
    assert 1 < np.max(data[0][0]) <= 2


@pytest.mark.parametrize("dtype", ["f32", "float32", "torch.float32", np.float32, np.dtype("float32")])
def test_dtypes_in_every_spelling(images, tmp_path, dtype):
    sl.convert(images, tmp_path / "out", resize=8, crop=8, dtype=dtype)
    assert sl.Dataset(tmp_path / "out").dtype == "float32"


LAUNCHERS = [
    {"RANK": "1", "WORLD_SIZE": "4", "TORCHELASTIC_RUN_ID": "none"},
    {"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "4"},
    {"SLURM_STEP_ID": "0", "SLURM_PROCID": "1", "SLURM_NTASKS": "4", "SLURM_STEP_NUM_TASKS": "4"},
    {"RANK": "1"},
]


@pytest.mark.parametrize("variables", LAUNCHERS)
def test_a_launcher_does_not_make_it_one_ranks_part(images, folder, tmp_path, monkeypatch, variables):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    result = sl.convert(images, tmp_path / "out", preset="train", resize=32, crop=32, samples_per_shard=8)
    assert result.complete and result.converted == SAMPLES
    same, different, missing = filecmp.cmpfiles(
        folder, tmp_path / "out", [f"shard-{i:05}.safetensors" for i in range(8)], False
    )
    assert (len(same), different, missing) == (8, [], [])


def test_ranks_share_the_work_when_they_are_told(images, folder, tmp_path, monkeypatch):
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    options = {"preset": "train", "resize": 32, "crop": 32, "samples_per_shard": 8, "world_size": 3}
    parts = [sl.convert(images, tmp_path / "out", rank=rank, **options) for rank in (2, 0, 1)]
    assert [part.complete for part in parts] == [False, False, True]
    assert sum(part.converted for part in parts) == SAMPLES and all(
        part.converted < SAMPLES for part in parts
    )
    assert filecmp.cmp(folder / "dataset.json", tmp_path / "out" / "dataset.json", False)


def test_a_table_may_choose_a_subset_and_strict_makes_rejects_of_strays(tmp_path):
    images = make_images(tmp_path / "images", each=2)
    (images / "README.md").write_text("notes")
    names = sorted(str(path.relative_to(images)) for path in images.rglob("*.png"))
    (tmp_path / "labels.csv").write_text(f"path,label\n{names[0]},3\n{names[-1]},5\n")
    subset = sl.convert(
        images, tmp_path / "subset", resize=8, crop=8, labels=tmp_path / "labels.csv", unlisted="skip"
    )
    assert (subset.inputs, subset.samples, subset.rejects) == (2, 2, 0)
    strict = sl.convert(images, tmp_path / "strict", resize=8, crop=8, strict=True)
    assert (strict.samples, strict.rejects) == (len(names), 1)


def gray_png(values):
    """A PNG file of 16 bits, [row, column]."""

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"".join(b"\0" + row.astype(">u2").tobytes() for row in values)
    header = struct.pack(">IIBBBBB", values.shape[1], values.shape[0], 16, 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(rows))
        + chunk(b"IEND", b"")
    )


def test_12_bits_in_files_of_16_are_a_warning_with_the_cure(tmp_path):
    values = (np.arange(64).reshape(8, 8) * 65).astype(np.uint16)  # up to 4095
    (tmp_path / "images").mkdir()
    for i in range(2):
        (tmp_path / "images" / f"{i}.png").write_bytes(gray_png(values))
    options = {"preset": "train", "resize": 8, "crop": 8}
    with pytest.warns(
        UserWarning, match="^2 images of 16 bits .*depth says .*channels keep or dtype"
    ) as told:
        result = sl.convert(tmp_path / "images", tmp_path / "out", **options)
    assert len(told) == 1 and result.advice == (str(told[0].message),)
    assert "`" not in result.advice[0] and result.warnings == {"few_bits": 2}
    plan = sl.plan(tmp_path / "images", tmp_path / "planned", **options)
    sl.convert_shard(plan, 0)
    with pytest.warns(UserWarning, match="^2 images of 16 bits"):
        sl.finish(plan)
    with (
        pytest.warns(UserWarning, match="^1 image of 16 bits has values"),
        sl.Writer(tmp_path / "written", **options) as writer,
    ):
        writer.add("a", gray_png(values), 0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name, more in (("depth", {"depth": 12}), ("kept", {"channels": "keep"})):
            assert sl.convert(tmp_path / "images", tmp_path / name, **options, **more).advice == ()
        with sl.Writer(tmp_path / "written-12", depth=12, **options) as writer:
            writer.add("a", gray_png(values), 0)
    for name in ("depth", "written-12"):
        assert sl.Dataset(tmp_path / name)[0][0][..., 1].tolist() == (values >> 4).tolist()
    with pytest.raises(ValueError, match="^depth together with channels"):
        sl.convert(tmp_path / "images", tmp_path / "no", channels="keep", depth=12)


@pytest.mark.parametrize(
    ("options", "error", "piece"),
    [
        ({"preset": "fast"}, ValueError, '^preset "fast"'),
        ({"crop": "big"}, ValueError, '^crop "big"'),
        ({"depth": 8}, ValueError, '^depth "8": expected a whole number of 9 to 16'),
        ({"max_pixels": 0}, ValueError, "^max_pixels must be at least 1"),
        (
            {"rank": 3, "world_size": 2},
            ValueError,
            "^rank 3 and world_size 2: rank must be 0 to world_size - 1",
        ),
        ({"shard_bytes": 10}, ValueError, "^shard_bytes 10 is less than"),
        ({"rank": 0, "world_size": 2, "overwrite": True}, ValueError, "^overwrite=True with several"),
        ({"crop": (1, 2, 3)}, ValueError, "height, width"),
        ({"dtype": "int8"}, ValueError, "dtype is 'int8'"),
        ({"codec": "lz4"}, ValueError, "^codec"),
        ({"jobs": -1}, ValueError, "jobs is -1"),
        ({"rank": 0}, ValueError, "go together"),
        ({"batch_size": 3}, TypeError, "batch_size"),
        ({"jobs": "2"}, ValueError, "^jobs is '2'; expected a whole number"),
    ],
)
def test_bad_options_name_themselves(images, tmp_path, options, error, piece):
    with pytest.raises(error, match=piece):
        sl.convert(images, tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()


def test_errors_are_pythons_own(tmp_path, images):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        sl.convert(tmp_path / "nowhere", tmp_path / "out")
    with pytest.raises(ValueError, match="standard input"):
        sl.convert("-", tmp_path / "out")
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "file").touch()
    with pytest.raises(ValueError, match="taken"):
        sl.convert(images, tmp_path / "taken")


def test_messages_are_in_pythons_words_but_for_names_of_files(tmp_path, images):
    odd = tmp_path / "a --crop b" / "--max-pixels"
    with pytest.raises(FileNotFoundError, match="a .*b/--max-pixels"):
        sl.convert(odd, tmp_path / "out")
    sl.convert(images, tmp_path / "out", resize=8, crop=8)
    with pytest.raises(ValueError, match="use another folder, or overwrite=True to replace"):
        sl.convert(images, tmp_path / "out", resize=16, crop=16)


def test_what_progress_raises_ends_it(tmp_path, images):
    def progress(*counts):
        raise LookupError("enough")

    with pytest.raises(LookupError, match="enough"):
        sl.convert(images, tmp_path / "out", progress=progress)


def test_the_bar_is_tqdms_where_there_is_one(tmp_path, images, monkeypatch):
    bars = []

    class Bar:
        def __init__(self, total, initial, **_):
            self.n, self.total, self.closed = initial, total, False
            bars.append(self)

        def update(self, more):
            self.n += more

        def close(self):
            self.closed = True

    auto = types.ModuleType("tqdm.auto")
    auto.tqdm = Bar
    monkeypatch.setitem(sys.modules, "tqdm", types.ModuleType("tqdm"))
    monkeypatch.setitem(sys.modules, "tqdm.auto", auto)
    sl.convert(images, tmp_path / "out", resize=32, crop=32, progress=True)
    assert [(bar.n, bar.total, bar.closed) for bar in bars] == [(3 * EACH, 3 * EACH, True)]
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)  # not installed
    assert sl.convert(images, tmp_path / "plain", resize=32, crop=32, progress=True).complete


def test_the_rate_is_that_of_this_call_from_its_first_second(monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)  # not installed
    bar = _convert._Bar()
    bar._first = (100.0, 5000)  # an earlier run has stored 5,000
    assert bar.line(100.0, 5000, 10000, 0) == "5000 / 10000 images, 0 rejected"
    assert bar.line(100.3, 5090, 10000, 0) == "5090 / 10000 images, 0 rejected"  # too early to say
    assert bar.line(101.0, 5100, 10000, 2) == "5100 / 10000 images, 2 rejected, 100 images/s, 0:49 left"
    assert bar.line(150.0, 5000, 10000, 0) == "5000 / 10000 images, 0 rejected"


def test_a_bar_starts_where_an_earlier_run_ended(monkeypatch):
    made = []
    auto = types.ModuleType("tqdm.auto")

    class Bar:
        def __init__(self, total, initial, unit):
            self.n = initial
            made.append((total, initial, unit))

        def update(self, more):
            self.n += more

    auto.tqdm = Bar
    monkeypatch.setitem(sys.modules, "tqdm", types.ModuleType("tqdm"))
    monkeypatch.setitem(sys.modules, "tqdm.auto", auto)
    bar = _convert._Bar()
    for done, planned in ((0, 0), (5000, 10000), (5100, 10000)):
        bar(done, planned, 0)
    assert made == [(10000, 5000, "images")] and bar._bar.n == 5100


def test_archives_give_the_bytes_of_their_folder(images, folder, tmp_path):
    for part in range(2):
        with tarfile.open(tmp_path / f"part-{part}.tar", "w") as archive:
            for path in sorted(images.rglob("*.png"))[part::2]:
                archive.add(path, path.relative_to(images))
    options = dict(preset="train", resize=32, crop=32, samples_per_shard=8)
    result = sl.convert(tmp_path / "part-{0..1}.tar", tmp_path / "out", **options)
    assert result.complete and result.samples == SAMPLES
    files = [f"shard-{i:05}.safetensors" for i in range(8)] + ["dataset.json"]
    assert filecmp.cmpfiles(folder, tmp_path / "out", files, False)[0] == files
    with pytest.raises(sl.NotFoundError, match="part-2.tar"):
        sl.convert(tmp_path / "part-{0..2}.tar", tmp_path / "other", **options)


def test_arrays_are_converted(tmp_path):
    pixels = np.random.default_rng(1).integers(0, 256, (6, 3, 20, 3), dtype=np.uint8)
    np.save(tmp_path / "x.npy", pixels)
    np.save(tmp_path / "y.npy", np.arange(6)[::-1])
    with pytest.raises(sl.InvalidArgumentError, match="array_layout"):
        sl.convert(tmp_path / "x.npy", tmp_path / "out", preset="train", squash=(3, 20))
    sl.convert(
        tmp_path / "x.npy",
        tmp_path / "out",
        preset="train",
        squash=(3, 20),
        array_layout="nhwc",
        labels=tmp_path / "y.npy",
    )
    data = sl.Dataset(tmp_path / "out")
    assert list(data.keys[:2]) == ["x.npy/000000", "x.npy/000001"]
    for i in range(6):
        image, label = data[i]
        assert label == 5 - i
        np.testing.assert_array_equal(image, pixels[i])


def threads_of_conversion(images, out, jobs):
    """The most threads that this process has while it converts, beside those before."""
    before, most, done = len(os.listdir("/proc/self/task")), [0], threading.Event()

    def count():
        while not done.is_set():
            most[0] = max(most[0], len(os.listdir("/proc/self/task")))

    counter = threading.Thread(target=count)
    counter.start()
    try:
        sl.convert(images, out, jobs=jobs, resize=8, crop=8)
    finally:
        done.set()
        counter.join()
    return most[0] - before


def test_jobs_is_the_number_of_threads(images, tmp_path):
    few = min(threads_of_conversion(images, tmp_path / f"few{i}", 1) for i in range(3))
    # Beside other programs a thread may have ended before another one has begun.
    assert any(threads_of_conversion(images, tmp_path / f"many{i}", 12) >= few + 8 for i in range(40))
    with pytest.raises(sl.InvalidArgumentError, match="jobs is 1025; expected a whole number from 0 to 1024"):
        sl.convert(images, tmp_path / "out", jobs=1025)
    with pytest.raises(sl.InvalidArgumentError, match="jobs is 1025"):
        sl.Source(images, jobs=1025)


def test_folders_without_images_are_told(tmp_path):
    folder = make_images(tmp_path / "images")
    (folder / "aaa" / "notes").mkdir(parents=True)
    for call in (lambda: sl.convert(folder, tmp_path / "out"), lambda: sl.Source(folder, preset="train")):
        with pytest.warns(sl.ConversionWarning, match="1 folders of .* have no images .*'aaa'"):
            call()
    lines = ["path,label", *(f"{path.relative_to(folder)},1" for path in sorted(folder.glob("*/*.*")))]
    (tmp_path / "labels.csv").write_text("\n".join(lines) + "\n")
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*no images")
        sl.Source(folder, preset="train", labels=tmp_path / "labels.csv")
