"""Columns beside the label: ragged, text and of fixed shape, from a table to data sets and batches."""

import csv
import json
import pickle

import numpy as np
import pytest

import shardloader as sl
from conftest import CLASSES, EACH, SAMPLES, make_images

COLUMNS = {
    "caption": sl.Text,
    "boxes": sl.Ragged("float32", 4),
    "pose": ("int16", 2, 2),
    "angle": np.float64,
    "ids": sl.Ragged(np.int64),
}


def row_of(index):
    """What sample `index` has."""
    return {
        "caption": ["", "plain", 'with, "quotes",\nlines and \u00fc'][index % 3],
        "boxes": np.arange(4 * (index % 4), dtype=np.float32).reshape(-1, 4) + index,
        "pose": np.array([[index, -index], [1, 2]], np.int16),
        "angle": np.float64(index / 8),
        "ids": np.arange(index % 7, dtype=np.int64) - index,
    }


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fields")
    make_images(folder / "images")
    with open(folder / "t.csv", "w", newline="") as file:
        out = csv.writer(file)
        out.writerow(["path", *COLUMNS])
        paths = [f"{name}/{i:03}.png" for name in CLASSES for i in range(EACH)]
        for index, path in enumerate(paths):
            row = row_of(index)
            out.writerow(
                [
                    path,
                    row["caption"],
                    *(
                        " ".join(map(repr, np.ravel(row[name]).tolist()))
                        for name in ("boxes", "pose", "angle", "ids")
                    ),
                ]
            )
    return folder


@pytest.fixture(scope="module")
def data(table):
    sl.convert(
        table / "images",
        table / "out",
        preset="train",
        resize=32,
        crop=32,
        samples_per_shard=8,
        labels=table / "t.csv",
        columns=COLUMNS,
    )
    return sl.Dataset(table / "out")


def same(found, expected):
    if isinstance(expected, str):
        return found == expected
    found = np.asarray(found)
    return found.dtype == expected.dtype and found.shape == expected.shape and np.array_equal(found, expected)


def test_each_sample_has_its_fields(data):
    assert list(data.fields) == ["image", "label", *COLUMNS] and len(data.fields) == 7
    assert data.fields["caption"] == sl.types.Field("text", "uint8", ()) and data.fields[
        "boxes"
    ] == sl.types.Field("ragged", "float32", (4,))
    assert data.fields["pose"] == sl.types.Field("fixed", "int16", (2, 2)) and data.fields[
        "label"
    ] == sl.types.Field("fixed", "int64", ())
    assert data.fields["image"] == sl.types.Field("image", "uint8", (32, 32, 3))
    for index in (*range(SAMPLES), -1):
        sample = data.fields[index]
        assert list(sample) == ["image", "label", *COLUMNS]
        assert np.array_equal(sample["image"], data[index][0]) and sample["label"] == data[index][1]
        for name, expected in row_of(index % SAMPLES).items():
            assert same(sample[name], expected), (index, name, sample[name], expected)
    for wrong in (SAMPLES, -SAMPLES - 1):
        with pytest.raises(IndexError):
            data.fields[wrong]
    with pytest.raises(KeyError):
        data.fields["no"]


def test_a_column_of_all_samples(data):
    captions = data.column("caption")
    assert captions.tolist() == [row_of(i)["caption"] for i in range(SAMPLES)]
    boxes = data.column("boxes")
    assert (
        isinstance(boxes, sl.types.RaggedArray) and len(boxes) == SAMPLES and boxes.offsets.dtype == np.int64
    )
    assert boxes.counts.tolist() == [i % 4 for i in range(SAMPLES)] and boxes.values.shape == (
        sum(boxes.counts),
        4,
    )
    assert all(same(boxes[i], row_of(i)["boxes"]) for i in range(-1, SAMPLES) if i >= 0) and same(
        boxes[-1], row_of(SAMPLES - 1)["boxes"]
    )
    assert len(boxes[3:7]) == 4
    with pytest.raises(IndexError):
        boxes[SAMPLES]
    assert same(data.column("angle"), np.arange(SAMPLES) / 8)
    with pytest.raises(KeyError, match="no column 'no'"):
        data.column("no")


def test_parts_of_a_data_set_keep_them(data, tmp_path):
    part = data.where(lambda columns: columns["caption"] == "plain")
    assert len(part) == SAMPLES // 3 and set(part.column("caption")) == {"plain"}
    for k in range(len(part)):
        assert same(part.fields[k]["ids"], row_of(3 * k + 1)["ids"])
    again = pickle.loads(pickle.dumps(part))
    assert same(again.column("ids").values, part.column("ids").values)
    both = sl.concat(part, data)
    assert (
        both.fields[len(part) + 5]["caption"] == row_of(5)["caption"]
        and len(both.column("boxes")) == len(part) + SAMPLES
    )


@pytest.mark.parametrize("transport", ["mapped", "staged", "resident"])
def test_batches_have_them_padded_or_flat(data, transport):
    loader = sl.Loader(
        data,
        batch_size=7,
        framework="numpy",
        tail="short",
        flat=["ids"],
        max_rows={"boxes": 2},
        transport=transport,
        prefetch=2,
    )
    for epoch in range(2):
        seen = 0
        for batch in loader.epoch(epoch):
            rows = [row_of(int(i)) for i in batch.ids]
            seen += len(rows)
            assert batch.column("caption") == [row["caption"] for row in rows]
            assert same(batch.column("boxes_counts"), np.array([min(len(row["boxes"]), 2) for row in rows]))
            assert same(
                batch.column("boxes"),
                np.stack(
                    [np.concatenate([row["boxes"][:2], np.zeros((2, 4), np.float32)])[:2] for row in rows]
                ),
            )
            assert same(batch.column("ids"), np.concatenate([row["ids"] for row in rows]))
            assert same(batch.column("ids_offsets"), np.cumsum([0] + [len(row["ids"]) for row in rows]))
            assert same(batch.column("pose"), np.stack([row["pose"] for row in rows]))
            for missing in ("no", "boxes_offsets", "ids_counts"):
                with pytest.raises(KeyError):
                    batch.column(missing)
        assert seen == SAMPLES


def test_without_a_limit_the_longest_sample_decides(data):
    batch = next(iter(sl.Loader(data, batch_size=4, framework="numpy")))
    assert batch.column("boxes").shape == (4, 3, 4) and batch.column("ids").shape == (4, 6)


def test_a_batch_that_was_moved_keeps_its_columns(data):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    batch = next(iter(sl.Loader(data, batch_size=4, framework="torch")))
    moved = batch.to(torch.device("meta"))
    assert moved.column("caption") == batch.column("caption") and moved.column("boxes").shape == (4, 3, 4)
    assert moved.column("boxes_counts").shape == (4,)


def test_wrong_columns_are_refused(data, table, tmp_path):
    def convert(**options):
        return sl.convert(table / "images", tmp_path / "out", preset="train", **options)

    for columns, why in (
        ({"x": "float33"}, "dtype 'float33' is not known"),
        ({"none": sl.Text}, "has no column"),
        ({"caption": "float32"}, 'column "caption"'),
        ({"key": sl.Text}, "reserved"),
    ):
        with pytest.raises(sl.InvalidArgumentError, match=why):
            convert(labels=table / "t.csv", columns=columns)
    with pytest.raises(sl.InvalidArgumentError, match="columns.* without labels|column without labels"):
        convert(columns={"angle": "float32"})
    for options, why in (
        ({"max_rows": {"angle": 3}}, "no ragged column"),
        ({"flat": ["caption"]}, "no ragged column"),
        ({"max_rows": {"boxes": -1}}, "max_rows"),
        ({"max_rows": 3}, "max_rows|dict"),
    ):
        with pytest.raises((sl.InvalidArgumentError, TypeError), match=why):
            sl.Loader(data, **options)
    assert (
        repr(sl.Ragged("f32", 4)) == "shardloader.Ragged('float32', 4)"
        and pickle.loads(pickle.dumps(COLUMNS)) == COLUMNS
    )


def test_coco_annotations_become_columns(table, tmp_path):
    path = tmp_path / "coco.json"
    entry = {"id": 1, "image_id": 4, "category_id": 9, "bbox": [12, 10, 6, 5], "area": 30, "iscrowd": 0}
    path.write_text(
        json.dumps(
            {
                "images": [{"id": 4, "file_name": "ant/000.png", "width": 48, "height": 40}],
                "annotations": [entry],
                "categories": [{"id": 9, "name": "leg"}, {"id": 2, "name": "eye"}],
            }
        )
    )
    assert (
        sl.convert(table / "images", tmp_path / "out", preset="train", resize=40, crop=40, coco=path).samples
        == SAMPLES
    )
    data = sl.Dataset(tmp_path / "out")
    assert data.categories == ("eye", "leg")
    sample = data.fields[0]
    assert (
        same(sample["boxes"], np.array([[8, 10, 14, 15]], np.float32))
        and sample["box_labels"].tolist() == [1]
        and sample["areas"].tolist() == [30]
    )
    assert data.column("boxes").counts.tolist() == [1] + [0] * (SAMPLES - 1)
    assert (
        sl.convert(
            table / "images", tmp_path / "less", preset="train", resize=40, crop=40, coco=path, missing="skip"
        ).samples
        == 1
    )
    with pytest.raises(sl.InvalidArgumentError, match='missing "maybe"'):
        sl.convert(table / "images", tmp_path / "no", coco=path, missing="maybe")


def test_masks_pairs_and_boxes_from_folders(table, tmp_path):
    images = table / "images"
    for path in images.glob("*/*.png"):
        label = (tmp_path / "labels" / path.relative_to(images)).with_suffix(".txt")
        label.parent.mkdir(parents=True, exist_ok=True)
        label.write_text("1 0.5 0.5 0.5 0.5\n")
    (tmp_path / "names").write_text("leg\neye\n")
    options = dict(
        preset="train",
        resize=40,
        crop=40,
        yolo=tmp_path / "labels",
        box_classes=tmp_path / "names",
        pairs={"again": images, "near": f"{images},filter=nearest"},
    )
    assert sl.convert(images, tmp_path / "out", **options).samples == SAMPLES
    data = sl.Dataset(tmp_path / "out")
    assert data.categories == ("leg", "eye") and data.fields[0]["box_labels"].tolist() == [1]
    assert same(data.image("again", 0), data[0][0]) and data.image("near", 0).shape == (40, 40, 3)
    with pytest.raises(sl.InvalidArgumentError, match="mask classes"):
        sl.convert(images, tmp_path / "no", mask=f"{images},classes=70000")
    with pytest.raises(sl.InvalidArgumentError, match="a mask has one whole number for each pixel"):
        sl.convert(images, tmp_path / "no", mask=images)  # colours
    plan = sl.plan(images, tmp_path / "plan", **options)
    for shard in range(plan.shards):
        sl.convert_shard(plan, shard)
    assert sl.finish(plan).samples == SAMPLES
    assert (tmp_path / "plan" / "dataset.json").read_bytes() == (
        tmp_path / "out" / "dataset.json"
    ).read_bytes()
