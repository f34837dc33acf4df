"""Boxes and keypoints that a data set knows follow the pixels by themselves; what looks like them and is not
known is refused, not delivered unmoved."""

import json

import numpy as np
import pytest

import shardloader as sl
from conftest import png
from shardloader import ops

SIDE, COUNT = 64, 12
GEOMETRY = {"random_resized_crop": 48, "flip": True}


def boxes_of(number):
    return [[4 + number, 6, 20 + number, 30], [30, 10 + number, 60, 40 + number]][: 1 + number % 2]


def write_images(folder):
    folder.mkdir(parents=True)
    for number in range(COUNT):
        (folder / f"{number:02}.png").write_bytes(png(number, SIDE, SIDE))


def write_coco(path, keypoints=True):
    annotations = []
    for number in range(COUNT):
        for x0, y0, x1, y1 in boxes_of(number):
            one = {
                "id": len(annotations) + 1,
                "image_id": number,
                "category_id": 1,
                "bbox": [x0, y0, x1 - x0, y1 - y0],
                "iscrowd": 0,
                "area": 9,
            }
            if keypoints:
                one |= {"keypoints": [x0 + 2, y0 + 2, 2, x1 - 2, y1 - 2, 2], "num_keypoints": 2}
            annotations.append(one)
    images = [
        {"id": number, "file_name": f"{number:02}.png", "width": SIDE, "height": SIDE}
        for number in range(COUNT)
    ]
    path.write_text(
        json.dumps({"images": images, "annotations": annotations, "categories": [{"id": 1, "name": "cat"}]})
    )


@pytest.fixture(scope="module")
def coco(tmp_path_factory):
    folder = tmp_path_factory.mktemp("known")
    write_images(folder / "images")
    write_coco(folder / "coco.json")
    sl.convert(
        folder / "images",
        folder / "set",
        coco=folder / "coco.json",
        preset="train",
        resize=SIDE,
        crop=SIDE,
        samples_per_shard=5,
    )
    return folder / "set"


def contents(data, **options):
    """All columns of an epoch, by name and view."""
    loader = sl.Loader(data, batch_size=4, framework="numpy", **options)
    names = ["boxes", "boxes_counts", "box_labels", "areas", "crowd", "keypoints", "keypoints_counts"]
    views = 1 + len(options.get("views", [None])[1:])
    return [
        [batch.column(name, view).tolist() for name in names for view in range(views)]
        for batch in loader.epoch(0)
    ]


def test_a_conversion_of_annotations_records_what_its_columns_are(coco):
    assert json.loads((coco / "dataset.json").read_text())["targets"] == {
        "boxes": "boxes",
        "keypoints": "keypoints",
    }
    assert sl.Dataset(coco).info["targets"] == {"boxes": "boxes", "keypoints": "keypoints"}


def test_known_targets_follow_by_themselves(coco):
    named = {"fields": {"boxes": sl.Boxes(), "keypoints": sl.Keypoints()}}
    for options in (
        GEOMETRY,
        {"center_crop": 32},
        {"flip": 1.0},
        {"augment": sl.Augment(ops=[ops.affine((-20, 20))])},
        {"augment": sl.Augment.rand_augment()},
        {"views": [sl.Augment(), sl.Augment(random_crop=40, flip=0.5)]},
    ):
        assert contents(coco, **options) == contents(coco, **options, **named)
        assert contents(coco, **options) != contents(coco, **options, as_stored=["*"])


def test_a_mask_need_only_be_named(tmp_path):
    columns = {
        "mask": sl.ImageField("uint8", SIDE, SIDE, 1, role="mask"),
        "depth": sl.ImageField("uint16", SIDE, SIDE, 1),
    }
    with sl.Writer(
        tmp_path / "set", squash=(SIDE, SIDE), dtype="uint8", layout="nhwc", columns=columns
    ) as writer:
        for number in range(4):
            grey = np.random.default_rng(number).integers(0, 4, (SIDE, SIDE, 1), np.uint8)
            writer.add(f"{number}", np.repeat(grey, 3, 2), 0, mask=grey, depth=grey.astype(np.uint16))
    for batch in sl.Loader(
        tmp_path / "set", batch_size=2, framework="numpy", random_crop=40, flip=True, fields=["mask"]
    ).epoch(0):
        assert (batch.targets()["mask"] == batch.images[..., 0]).all()
    for name in ("depth", "labels", "nothing"):
        with pytest.raises(sl.InvalidArgumentError, match=f"'{name}' is"):
            sl.Loader(tmp_path / "set", batch_size=2, fields=[name])


def test_without_geometry_columns_are_as_they_are_stored(coco):
    for options in ({}, {"center_crop": SIDE}, {"augment": sl.Augment(ops=[ops.invert()])}):
        assert contents(coco, shuffle=False, **options)[0][0][:2] == [[*boxes_of(0), [0] * 4], boxes_of(1)]


def test_as_stored_leaves_known_targets_where_they_are(coco):
    stored = contents(coco)
    assert contents(coco, **GEOMETRY, as_stored=["*"]) == stored
    assert contents(coco, **GEOMETRY, as_stored=["boxes", "keypoints"]) == stored
    assert contents(coco, **GEOMETRY, fields={"boxes": "stored", "keypoints": "stored"}) == stored
    one = contents(coco, **GEOMETRY, as_stored=["boxes"])  # and the keypoints move
    assert [batch[0] for batch in one] == [batch[0] for batch in stored] and [batch[5] for batch in one] != [
        batch[5] for batch in stored
    ]


def test_targets_of_a_batch_have_what_is_known(coco):
    for options in (GEOMETRY, {}):
        batch = next(iter(sl.Loader(coco, batch_size=4, framework="numpy", **options).epoch(0)))
        assert sorted(batch.targets()) == [
            "areas",
            "areas_counts",
            "box_labels",
            "box_labels_counts",
            "boxes",
            "boxes_counts",
            "crowd",
            "crowd_counts",
            "keypoints",
            "keypoints_counts",
        ]
    batch = next(iter(sl.Loader(coco, batch_size=4, framework="numpy", as_stored=["*"], **GEOMETRY).epoch(0)))
    assert batch.targets() == {}


def test_set_augment_and_a_state_look_again_at_what_moves(coco):
    loader = sl.Loader(coco, batch_size=4, framework="numpy")
    stored = [batch.column("boxes").tolist() for batch in loader.epoch(0)]
    loader.set_augment(sl.Augment(**{"random_resized_crop": 48, "flip": True}))
    moved = [batch.column("boxes").tolist() for batch in loader.epoch(1)]
    fresh = sl.Loader(coco, batch_size=4, framework="numpy", **GEOMETRY)
    assert moved == [batch.column("boxes").tolist() for batch in fresh.epoch(1)] != stored
    state = loader.state_dict()
    other = sl.Loader(coco, batch_size=4, framework="numpy")
    other.load_state_dict(state, keep_views=False)
    fresh = sl.Loader(coco, batch_size=4, framework="numpy", **GEOMETRY)
    assert [batch.column("boxes").tolist() for batch in other.epoch(2)] == [
        batch.column("boxes").tolist() for batch in fresh.epoch(2)
    ]
    loader.set_augment(None)
    assert [batch.column("boxes").tolist() for batch in loader.epoch(0)] == stored


def test_mixing_and_aug_mix_say_that_boxes_cannot_follow(coco):
    for options in ({"cutmix": 1.0}, {"augment": sl.Augment.aug_mix()}):
        with pytest.raises(sl.InvalidArgumentError, match="as_stored"):
            sl.Loader(coco, batch_size=4, **options)
        sl.Loader(coco, batch_size=4, as_stored=["*"], **options)


def test_what_is_known_survives_parts_and_joins(coco, tmp_path):
    data = sl.Dataset(coco)
    known = {"boxes": "boxes", "keypoints": "keypoints"}
    assert data.select(range(3)).info["targets"] == known and data.split(0.5)[0].info["targets"] == known
    assert sl.concat(coco, data.select([1, 2])).info["targets"] == known
    with sl.Writer(
        tmp_path / "plain",
        columns={
            "boxes": sl.Ragged("float32", 4),
            "box_labels": sl.Ragged("int64"),
            "areas": sl.Ragged("float32"),
            "crowd": sl.Ragged("uint8"),
            "keypoints": sl.Ragged("float32", 2, 3),
        },
        preset="train",
        resize=SIDE,
        crop=SIDE,
    ) as writer:
        writer.add(
            "a",
            np.zeros((SIDE, SIDE, 3), np.uint8),
            0,
            boxes=[[1, 2, 3, 4]],
            box_labels=[0],
            areas=[1],
            crowd=[0],
            keypoints=np.zeros((1, 2, 3)),
        )
    both = sl.concat(coco, tmp_path / "plain")  # of the second it is not known
    assert both.info["targets"] == {}
    with pytest.raises(sl.InvalidArgumentError, match='column "boxes"'):
        sl.Loader(both, **GEOMETRY)


def test_a_shard_alone_of_an_annotated_set_is_known_by_its_pipeline(coco):
    shard = sl.Dataset(coco / "shard-00000.safetensors")
    assert shard.info["targets"] == {"boxes": "boxes", "keypoints": "keypoints"}


def writer_set(folder, **columns):
    """columns: (type, rows)."""
    with sl.Writer(
        folder,
        squash=(SIDE, SIDE),
        dtype="uint8",
        layout="nhwc",
        columns={name: kind for name, (kind, _) in columns.items()},
    ) as writer:
        for number in range(4):
            writer.add(
                f"{number}",
                np.zeros((SIDE, SIDE, 3), np.uint8),
                0,
                **{name: rows for name, (_, rows) in columns.items()},
            )
    return folder


@pytest.mark.parametrize(
    "columns, cure",
    [
        ({"boxes": (sl.Ragged("float32", 4), [[1, 2, 3, 4]])}, r'fields=\{"boxes": Boxes\(\)\}'),
        ({"gt": (sl.Ragged("float32", 4), [[1, 2, 3, 4]])}, r'fields=\{"gt": Boxes\(\)\}'),
        ({"bbox": (("int64", 4), [1, 2, 3, 4])}, "ragged float32"),
        ({"lines": (sl.Ragged("float32", 5), [[0, 1, 2, 3, 4]])}, "ragged float32"),
        ({"points": (("float32", 5, 2), np.zeros((5, 2)))}, r'fields=\{"points": Keypoints\(\)\}'),
        ({"centre": (("float32", 2), [3, 4])}, r'fields=\{"centre": Keypoints\(\)\}'),
        ({"polygon": (sl.Ragged("float64"), [1, 2, 3])}, "as_stored"),
        ({"map": (("uint8", SIDE, SIDE), np.zeros((SIDE, SIDE), np.uint8))}, "ImageField"),
        ({"segmentation": (("uint8", 8, 8), np.zeros((8, 8), np.uint8))}, "ImageField"),
        ({"x": ("float32", 3), "y": ("float32", 4)}, 'likewise "y"'),
    ],
)
def test_columns_that_look_like_targets_are_refused_by_name(tmp_path, columns, cure):
    folder, name = writer_set(tmp_path / "set", **columns), next(iter(columns))
    sl.Loader(folder, batch_size=2)  # nothing moves
    for options in (
        GEOMETRY,
        {"flip": True},
        {"center_crop": 32},
        {"augment": sl.Augment(ops=[ops.rotation(10)])},
    ):
        with pytest.raises(
            sl.InvalidArgumentError, match=f'column "{name}".*it cannot be told.*{cure}'
        ) as caught:
            sl.Loader(folder, batch_size=2, **options)
        assert f'as_stored=["{name}"]' in str(caught.value)
        sl.Loader(folder, batch_size=2, as_stored=list(columns), **options)
    loader = sl.Loader(folder, batch_size=2)
    with pytest.raises(sl.InvalidArgumentError, match=f'column "{name}"'):
        loader.set_augment(sl.Augment(flip=0.5))


def test_columns_of_a_classifier_are_not_refused(tmp_path):
    folder = writer_set(
        tmp_path / "set",
        embedding=(("float16", 64), np.zeros(64)),
        grade=("int64", 1),
        weight=("float32", 1),
        caption=(sl.Text, "a box"),
        soft_labels=(("float32", 4), np.zeros(4)),
        tokens=(sl.Ragged("int64"), [1, 2]),
        attributes=(("uint8", 40), np.zeros(40, np.uint8)),
    )
    batch = next(iter(sl.Loader(folder, batch_size=2, framework="numpy", **GEOMETRY).epoch(0)))
    assert batch.column("embedding").shape == (2, 64)


def test_rows_that_may_belong_to_boxes_must_be_named(tmp_path):
    columns = {
        "boxes": (sl.Ragged("float32", 4), [[1, 2, 30, 40], [0, 0, 0, 0]]),
        "difficult": (sl.Ragged("uint8"), [0, 1]),
        "tokens": (sl.Ragged("int64"), [1, 2, 3]),
    }
    folder = writer_set(tmp_path / "set", **columns)
    with pytest.raises(
        sl.InvalidArgumentError,
        match='column "difficult".*as many rows as "boxes" has boxes.*along.*as_stored',
    ):
        sl.Loader(folder, batch_size=2, fields={"boxes": sl.Boxes()}, **GEOMETRY)
    for options in (
        {"fields": {"boxes": sl.Boxes(along=["difficult"])}},
        {"fields": {"boxes": sl.Boxes()}, "as_stored": ["difficult"]},
    ):
        sl.Loader(folder, batch_size=2, **options, **GEOMETRY)


def test_as_stored_refuses_what_it_cannot_mean(coco):
    for options, says in (
        ({"as_stored": ["nothing"]}, "no column of this name"),
        ({"as_stored": ["boxes"], "fields": {"boxes": sl.Boxes()}}, "name it once"),
        ({"as_stored": ["crowd"], "fields": {"boxes": sl.Boxes(along=["crowd"])}}, "goes along"),
        ({"as_stored": [3]}, r"as_stored is \[3\]; expected a list of names"),
        ({"fields": {"boxes": "nearest"}}, "it is a column"),
    ):
        with pytest.raises(sl.InvalidArgumentError, match=says):
            sl.Loader(coco, batch_size=4, **options, **GEOMETRY)
