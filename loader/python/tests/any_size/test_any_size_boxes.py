"""Boxes of samples of any size follow all views but patches."""

import json

import numpy as np
import pytest

import shardloader as sl
from any_size import SIZES, begin, boxes_of, options_of, samples, size_of


@pytest.mark.parametrize("upside_down", [False, True])
@pytest.mark.parametrize("flip", [None, 1.0])
@pytest.mark.parametrize("kind", ["letterbox", "cover", "padded", "shortest", "squash"])
def test_boxes_follow(kind, flip, upside_down, boxed):
    to = {"letterbox": (48, 61), "cover": (48, 61), "padded": 8, "shortest": 40, "squash": (48, 61)}[kind]
    options = {kind: to, "flip": flip, "fields": {"boxes": sl.Boxes(along=["names"])}}
    if kind == "shortest":
        options["center_crop"] = (48, 61)
    if upside_down:
        options["augment"] = sl.Augment(ops=[sl.ops.vertical_flip(p=1.0)])
    kept = 0
    for sample, image, batch, row in samples(boxed, **options):
        width, height = SIZES[sample]
        inner = (height, width) if kind == "padded" else size_of(kind, height, width, to)
        view = image.shape[:2] if kind == "padded" else (48, 61)
        top, left = (0, 0) if kind == "padded" else (begin(*sides) for sides in zip(inner, view))
        down, across = inner[0] / height, inner[1] / width
        expected, names = [], []
        for name, (x0, y0, x1, y1) in enumerate(boxes_of(sample, width, height).astype(float)):
            x0, x1 = (left + across * x for x in (x0, x1))
            y0, y1 = (top + down * y for y in (y0, y1))
            if flip:
                mirror = inner[1] if kind == "padded" else view[1]
                x0, x1 = mirror - x1, mirror - x0
            if upside_down:
                mirror = inner[0] if kind == "padded" else view[0]
                y0, y1 = mirror - y1, mirror - y0
            x0, x1 = np.clip((x0, x1), 0, view[1])
            y0, y1 = np.clip((y0, y1), 0, view[0])
            # Boxes of less than a pixel are dropped; near that, it is a question of rounding.
            if min(x1 - x0, y1 - y0) >= 1 and (x1 - x0) * (y1 - y0) >= 1:
                expected.append((x0, y0, x1, y1))
                names.append(name)
        count = batch.column("boxes_counts")[row]
        assert batch.column("names")[row, :count].tolist() == names, SIZES[sample]
        np.testing.assert_allclose(
            batch.column("boxes")[row, :count], expected or np.zeros((0, 4)), atol=2e-3
        )
        kept += count
    assert kept > len(SIZES) / 2


@pytest.fixture(scope="module")
def coco(files, tmp_path_factory):
    """The images that have no tiny side, with boxes of COCO."""
    folder, images, annotations = tmp_path_factory.mktemp("coco"), [], []
    for number, (width, height) in enumerate(SIZES):
        name = f"{'ab'[number % 2]}/{number:02}.png"
        images.append({"id": number, "file_name": name, "width": width, "height": height})
        for x0, y0, x1, y1 in boxes_of(number, width, height).tolist():
            one = {"image_id": number, "category_id": 1, "bbox": [x0, y0, x1 - x0, y1 - y0], "iscrowd": 0}
            annotations.append({"id": len(annotations) + 1, "area": 9, **one})
    (folder / "coco.json").write_text(
        json.dumps({"images": images, "annotations": annotations, "categories": [{"id": 1, "name": "cat"}]})
    )
    sl.convert(files, folder / "set", coco=folder / "coco.json", size="original", samples_per_shard=9)
    data = sl.Dataset(folder / "set")
    return data.select([i for i, key in enumerate(data.keys) if min(SIZES[int(key[2:4])]) > 20])


@pytest.mark.parametrize(
    "options",
    [{"letterbox": (64, 96)}, {"cover": (40, 60)}, {"buckets": [(40, 60), (60, 40)]}],
    ids=str,
)
def test_boxes_of_coco_follow_by_themselves(options, coco):
    for sample, image, batch, row in samples(coco, **options):
        width, height = SIZES[int(coco.keys[sample][2:4])]
        view = image.shape[:2]
        inner = size_of("letterbox" if "letterbox" in options else "cover", height, width, view)
        top, left = (begin(*sides) for sides in zip(inner, view))
        whole = batch.column("boxes")[row, batch.column("boxes_counts")[row] - 1]
        expected = (max(left, 0), max(top, 0), min(left + inner[1], view[1]), min(top + inner[0], view[0]))
        np.testing.assert_allclose(whole, expected, atol=2e-3)
    with pytest.raises(sl.InvalidArgumentError, match="patch: boxes.*as_stored"):
        sl.Loader(coco, **options_of({"patch": 8, "max_tokens": 9}))


@pytest.mark.parametrize(
    "options",
    [{"letterbox": 8}, {"longest": 8, "padded": 8}, {"center_crop": 8}]
    + [{"buckets": [(8, 8)]}, {"patch": 8, "max_tokens": 9}],
    ids=str,
)
def test_columns_that_may_be_boxes_must_be_named(options, boxed):
    with pytest.raises(sl.InvalidArgumentError, match='column "boxes".*looks like boxes.*as_stored'):
        sl.Loader(boxed, **options_of(options))
    batch = next(sl.Loader(boxed, **options_of({"as_stored": ["*"], **options})).epoch(0))
    for row, sample in enumerate(batch.ids.tolist()):
        stored = boxes_of(sample, *SIZES[sample])
        assert (batch.column("boxes")[row, : len(stored)] == stored).all()
