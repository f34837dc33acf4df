"""Targets through the package: masks, depth, boxes and keypoints follow what happens to the images."""

import json
import re

import numpy as np
import pytest

import shardloader as sl
from shardloader import ops

SIDE, SAMPLES, SHAPES = 48, 40, 4
# The colour of each class. Class 0 is black, which is what operations bring in from outside.
PALETTE = np.array([[0, 0, 0], [250, 10, 20], [10, 250, 30], [20, 40, 250], [240, 240, 60]], np.uint8)
COLUMNS = {
    "mask": sl.ImageField("uint8", SIDE, SIDE, 1, role="mask"),
    "packed": sl.ImageField("uint8", SIDE, SIDE, 1, role="mask", codec="packed"),
    "depth": sl.ImageField("uint16", SIDE, SIDE, 1, codec="zstd"),
    "camera": sl.ImageField("uint8", SIDE, SIDE, 3, codec="packed"),
    "latent": sl.ImageField("float16", 4, 3, 3, layout="tensor"),
    "boxes": sl.Ragged("float32", 4),
    "box_labels": sl.Ragged("int64"),
    "keypoints": sl.Ragged("float32", 2, 3),
    "centre": ("float32", 2),
}
FIELDS = {
    "mask": "nearest",
    "packed": "nearest",
    "depth": "bilinear",
    "camera": "nearest",
    "latent": "stored",
    "boxes": sl.Boxes(),
    "centre": sl.Keypoints(),
}
MOVES = [
    ops.affine((-180, 180), (0.2, 0.2), (0.6, 1.5), (-20, 20), (-20, 20), p=0.6),
    ops.rotation((-180, 180), p=0.3),
    ops.perspective(0.4, interpolation="nearest", p=0.3),
    ops.vertical_flip(p=0.5),
    ops.turns(p=0.5),
    ops.padded_crop(6, p=0.3),
]


def samples_of(seed):
    """Rectangles of classes 1 to 4 over black, each in front of those before it."""
    rng = np.random.default_rng(seed)
    for number in range(SAMPLES):
        mask = np.zeros((SIDE, SIDE, 1), np.uint8)
        boxes = []
        for label in range(1, 1 + number % (SHAPES + 1)):
            left, top = rng.integers(0, SIDE - 12, 2)
            right, bottom = left + rng.integers(6, 12), top + rng.integers(6, 12)
            mask[top:bottom, left:right] = label
            boxes.append((left, top, right, bottom))
        boxes = np.array(boxes, np.float32).reshape(-1, 4)
        points = np.stack([boxes[:, :2] + 1, boxes[:, 2:] - 1], 1)
        yield {
            "image": PALETTE[mask[..., 0]],
            "mask": mask,
            "packed": mask,
            "depth": mask.astype(np.uint16) * 1000,
            "camera": PALETTE[mask[..., 0]],
            "latent": rng.normal(size=(4, 3, 3)).astype(np.float16),
            "boxes": boxes,
            "box_labels": np.arange(1, 1 + len(boxes)),
            "keypoints": np.concatenate([points, np.full((len(boxes), 2, 1), 2)], -1).astype(np.float32),
            "centre": np.array([SIDE / 2, SIDE / 4], np.float32),
        }


@pytest.fixture(scope="module")
def shapes(tmp_path_factory):
    folder = tmp_path_factory.mktemp("targets") / "set"
    with sl.Writer(
        folder, columns=COLUMNS, squash=(SIDE, SIDE), dtype="uint8", layout="nhwc", samples_per_shard=16
    ) as writer:
        for number, row in enumerate(samples_of(0)):
            writer.add(f"{number}", row.pop("image"), number % 3, **row)
    return sl.Dataset(folder)


def loader(data, **options):
    return sl.Loader(
        data, **{"framework": "numpy", "batch_size": 8, "fields": FIELDS, "as_stored": ["*"], **options}
    )


def contents(batch):
    """Everything of all views, as bytes."""
    views = range(len(batch.views))
    return [
        np.array(batch.ids).tobytes(),
        *(value.tobytes() for view in views for value in (batch.views[view], *batch.targets(view).values())),
    ]


def test_without_a_transform_targets_are_those_that_were_stored(shapes):
    rows = list(samples_of(0))
    for batch in loader(shapes, shuffle=False, correspondence=True).epoch(0):
        targets = batch.targets()
        for at, sample in enumerate(batch.ids):
            row = rows[sample]
            for name in ("mask", "packed"):
                assert (targets[name][at] == row[name][..., 0]).all()
            for name in ("depth", "camera", "latent", "centre"):
                assert (targets[name][at] == row[name]).all()
            count = targets["boxes_counts"][at]
            assert count == len(row["boxes"]) and (targets["boxes"][at, :count] == row["boxes"]).all()
            assert (targets["box_labels"][at, :count] == row["box_labels"]).all()
            assert (targets["keypoints"][at, :count] == row["keypoints"]).all()
            assert (targets["boxes"][at, count:] == 0).all()
            assert (targets["correspondence"][at] == np.eye(3)).all()


def check_follows(images, targets, slack):
    """The colours of the images are those of the masks, and the boxes are around them. slack: nearest moves a
    pixel by half of one, with each operation."""
    assert (images == PALETTE[targets["mask"]]).all()
    assert (images == targets["camera"]).all() and (targets["mask"] == targets["packed"]).all()
    for at, mask in enumerate(targets["mask"]):
        count = targets["boxes_counts"][at]
        boxes = {
            int(label): box for label, box in zip(targets["box_labels"][at, :count], targets["boxes"][at])
        }
        for label in np.unique(mask[mask > 0]).tolist():
            y, x = np.nonzero(mask == label)
            if label not in boxes:
                assert len(x) < 12, (at, label, len(x))  # too small a rest
                continue
            left, top, right, bottom = boxes[label]
            assert 0 <= left <= right <= mask.shape[1] and 0 <= top <= bottom <= mask.shape[0]
            assert (
                left - slack <= x.min()
                and x.max() + 1 <= right + slack
                and top - slack <= y.min()
                and y.max() + 1 <= bottom + slack
            )


def test_colours_masks_and_boxes_go_the_same_ways_in_10000_pipelines(shapes):
    seen = 0
    for seed in range(50):
        augment = sl.Augment(random_crop=40, flip=True, ops=[*MOVES, ops.erasing(p=0)])
        data = loader(shapes, seed=seed, augment=augment, batch_size=40, drop_last=False)
        for epoch in range(5):
            for batch in data.epoch(epoch):
                check_follows(np.array(batch.images), batch.targets(), slack=3)
                seen += len(batch.ids)
    assert seen == 10_000


def test_colour_operations_leave_targets_alone(shapes):
    geometry = {"random_resized_crop": 32, "flip": True}
    plain = sl.Augment(**geometry, ops=MOVES)
    coloured = sl.Augment(
        **geometry,
        ops=[
            ops.color_jitter(0.5, 0.5, 0.5, 0.2),
            *MOVES,
            ops.solarize(100),
            ops.erasing(value="random", p=1),
        ],
    )
    for one, other in zip(loader(shapes, augment=plain).epoch(0), loader(shapes, augment=coloured).epoch(0)):
        assert (one.images != other.images).any()
        assert all(one.targets()[name].tobytes() == other.targets()[name].tobytes() for name in one.targets())


def test_cutmix_pastes_masks(shapes):
    augment = sl.Augment(random_crop=40, flip=True, ops=MOVES)
    masks = {"mask": "nearest", "packed": "nearest"}
    pasted = 0
    for epoch in range(5):
        for batch in loader(shapes, fields=masks, augment=augment, cutmix=1.0).epoch(epoch):
            assert (np.array(batch.images) == PALETTE[batch.field("mask")]).all()
            assert (batch.field("mask") == batch.field("packed")).all()
            pasted += int((batch.column("share") < 1).sum())
    assert pasted > 20


def test_every_view_has_its_own_targets_and_matrices(shapes):
    views = [
        sl.Augment(random_crop=40, flip=True, ops=MOVES),
        sl.Augment(random_crop=24, ops=MOVES),
        sl.Augment(center_crop=(20, 30)),
    ]
    batch = next(loader(shapes, views=views, correspondence=True).epoch(0))
    for view, size in enumerate([(40, 40), (24, 24), (20, 30)]):
        targets = batch.targets(view)
        assert targets["mask"].shape == (8, *size) and batch.views[view].shape[1:3] == size
        check_follows(np.array(batch.views[view]), targets, slack=3)
        matrices = targets["correspondence"]
        assert matrices.shape == (8, 3, 3, 3)
        for at in range(8):  # the middle of the sample is where the matrix says, in each view that shows it
            x, y, w = matrices[at, view] @ (SIDE / 2, SIDE / 4, 1)
            seen = targets["centre"][at]
            assert np.isnan(seen).all() or np.allclose(seen, (x / w, y / w), atol=1e-3)
    assert (batch.targets(0)["mask"][:, :20, :20] != batch.targets(1)["mask"][:, :20, :20]).any()
    with pytest.raises(sl.InvalidArgumentError, match="view is 3; .*: the batch has 3 views"):
        batch.field("mask", 3)


@pytest.mark.parametrize("transport", ["staged", "resident", "direct"])
def test_transports_and_threads_do_not_matter(shapes, transport):
    options = {
        "views": [
            sl.Augment(random_resized_crop=32, flip=True, ops=MOVES),
            sl.Augment(random_crop=30, ops=MOVES),
        ],
        "seed": 4,
    }
    expected = [contents(batch) for batch in loader(shapes, threads=1, **options).epoch(1)]
    try:
        other = loader(shapes, transport=transport, threads=3, prefetch=2, **options)
    except sl.UnsupportedError as error:
        pytest.skip(str(error))
    for _ in range(2):  # resident: the second time from memory
        assert [contents(batch) for batch in other.epoch(1)] == expected


def test_world_size_and_resume_do_not_matter(shapes):
    options = {
        "augment": sl.Augment(random_resized_crop=32, flip=True, ops=MOVES),
        "seed": 4,
        "batch_size": 4,
    }
    whole = {}
    for batch in loader(shapes, **options).epoch(2):
        for at, sample in enumerate(batch.ids):
            whole[sample] = [value[at].tobytes() for value in batch.targets().values()]
    for rank in range(2):
        for batch in loader(shapes, rank=rank, world_size=2, **options).epoch(2):
            for at, sample in enumerate(batch.ids):
                assert whole[sample] == [value[at].tobytes() for value in batch.targets().values()]
    first = loader(shapes, **options)
    batches = first.epoch(2)
    next(batches), next(batches)
    state = first.state_dict()
    rest = [contents(batch) for batch in batches]
    again = loader(shapes, **options)
    again.load_state_dict(state)
    assert [contents(batch) for batch in again.epoch(2)] == rest and rest


def test_nothing_of_a_batch_is_left_in_the_next(shapes):
    """Slots are used again and again: a batch of a loader that has run for epochs is that
    of one that is new."""
    options = {"augment": sl.Augment(random_resized_crop=32, flip=True, ops=MOVES), "prefetch": 1}
    for flat in ((), ("boxes", "box_labels", "keypoints")):
        old = loader(shapes, flat=flat, **options)
        for epoch in range(6):
            used = [contents(batch) for batch in old.epoch(epoch)]
        assert used == [contents(batch) for batch in loader(shapes, flat=flat, **options).epoch(5)]


def test_flat_boxes_are_the_padded_ones(shapes):
    options = {"augment": sl.Augment(random_crop=24, flip=True, ops=MOVES)}
    for padded, flat in zip(
        loader(shapes, **options).epoch(0), loader(shapes, flat=["boxes", "box_labels"], **options).epoch(0)
    ):
        offsets = flat.column("boxes_offsets")
        assert (np.diff(offsets) == padded.column("boxes_counts")).all() and (
            offsets == flat.column("box_labels_offsets")
        ).all()
        for at in range(8):
            count = padded.column("boxes_counts")[at]
            for name in ("boxes", "box_labels"):
                assert (
                    flat.column(name)[offsets[at] : offsets[at + 1]] == padded.column(name)[at, :count]
                ).all()


def test_boxes_have_the_format_and_the_limits_that_were_asked_for(shapes):
    augment = sl.Augment(random_crop=20, flip=True)

    def boxes(**options):
        result = []
        for batch in loader(shapes, augment=augment, fields={"boxes": sl.Boxes(**options)}).epoch(0):
            for count, rows, labels in zip(
                *(batch.column(name) for name in ("boxes_counts", "boxes", "box_labels"))
            ):
                result.append({int(label): row for label, row in zip(labels[:count], rows)})
        return result

    plain = boxes(min_size=0, min_area=0)
    for xyxy, xywh, centre in zip(
        plain, boxes(format="xywh", min_size=0, min_area=0), boxes(format="cxcywh", min_size=0, min_area=0)
    ):
        for label, (left, top, right, bottom) in xyxy.items():
            assert np.allclose(xywh[label], (left, top, right - left, bottom - top), atol=1e-5)
            assert np.allclose(
                centre[label], ((left + right) / 2, (top + bottom) / 2, right - left, bottom - top), atol=1e-5
            )
    stored = [row["boxes"] for row in samples_of(0)]
    order = [sample for batch in loader(shapes, augment=augment).epoch(0) for sample in batch.ids]
    for option, value, keeps in (
        ("min_size", 4, lambda box, _: min(box[2] - box[0], box[3] - box[1]) >= 4),
        ("min_area", 30, lambda box, _: (box[2] - box[0]) * (box[3] - box[1]) >= 30),
        (
            "min_visibility",
            0.5,
            lambda box, whole: (
                (box[2] - box[0]) * (box[3] - box[1]) >= 0.5 * (whole[2] - whole[0]) * (whole[3] - whole[1])
            ),
        ),
    ):
        limited = boxes(**{"min_size": 0, "min_area": 0, option: value})
        dropped = 0
        for sample, before, after in zip(order, plain, limited):
            kept = {label for label, box in before.items() if keeps(box, stored[sample][label - 1])}
            assert kept == set(after), option
            dropped += len(before) - len(after)
        assert dropped > 0, option


def test_keypoints_change_places_where_the_sample_is_mirrored(shapes):
    fields = {"boxes": sl.Boxes(), "keypoints": sl.Keypoints(swap=[(0, 1)])}
    plain = next(loader(shapes, shuffle=False, augment=sl.Augment(center_crop=SIDE, flip=1.0)).epoch(0))
    swapped = next(
        loader(shapes, shuffle=False, fields=fields, augment=sl.Augment(center_crop=SIDE, flip=1.0)).epoch(0)
    )
    turned = next(
        loader(
            shapes,
            shuffle=False,
            fields=fields,
            augment=sl.Augment(center_crop=SIDE, flip=1.0, vertical_flip=1.0),
        ).epoch(0)
    )
    assert plain.column("keypoints").any()
    assert (plain.column("keypoints")[..., ::-1, :] == swapped.column("keypoints")).all()
    rows = list(samples_of(0))
    for at in range(8):
        for box in range(plain.column("boxes_counts")[at]):
            x, y, _ = rows[at]["keypoints"][box].T
            assert np.allclose(plain.column("keypoints")[at, box], np.stack([SIDE - x, y, [2, 2]], 1))
            assert np.allclose(
                turned.column("keypoints")[at, box], np.stack([SIDE - x, SIDE - y, [2, 2]], 1)
            )  # half a turn mirrors nothing


def test_points_that_have_left_are_not_visible(shapes):
    gone = 0
    for batch in loader(
        shapes, augment=sl.Augment(random_crop=16), fields={"boxes": sl.Boxes(), "centre": sl.Keypoints()}
    ).epoch(0):
        points, counts = batch.column("keypoints"), batch.column("boxes_counts")
        for at, count in enumerate(counts):
            seen = points[at, :count, :, 2] > 0
            assert (points[at, :count][~seen] == 0).all() and (points[at, :count][seen][:, :2] < 16).all()
            gone += int((~seen).sum())
        centre = batch.column("centre")
        assert (np.isnan(centre).all(-1) | ((centre >= 0) & (centre < 16)).all(-1)).all()
    assert gone > 0


def test_fill_and_dtype_of_fields(shapes):
    augment = sl.Augment(center_crop=SIDE, ops=[ops.rotation((45, 45))])
    fields = {
        "mask": sl.Pixels("nearest", fill=255),
        "depth": sl.Pixels("bilinear", dtype="float32"),
        "camera": sl.Pixels("bilinear", dtype="float16", layout="nchw", mean=(0.5,) * 3, std=(0.25,) * 3),
    }
    batch = next(loader(shapes, shuffle=False, augment=augment, fields=fields).epoch(0))
    assert (batch.field("mask")[:, 0, 0] == 255).all()
    depth = next(loader(shapes, shuffle=False, augment=augment).epoch(0)).field("depth")
    assert batch.field("depth").dtype == np.float32 and np.allclose(
        batch.field("depth"), depth / np.float32(65535), atol=1e-6
    )
    camera = batch.field("camera")
    assert camera.shape == (8, 3, SIDE, SIDE) and camera.dtype == np.float16 and camera.min() == -2.0


def test_boxes_that_are_no_boxes_are_left_out(tmp_path):
    strange = np.array(
        [
            [np.nan, 0, 5, 5],
            [5, 5, 1, 9],
            [np.inf, 0, np.inf, 5],
            [-50, -50, -10, -10],
            [100, 100, 200, 200],
            [1, 2, 1, 9],
            [3, 3, 9, 9],
        ],
        np.float32,
    )
    many = np.tile(np.array([[2, 2, 20, 20]], np.float32), (10_000, 1))
    with sl.Writer(
        tmp_path / "set",
        columns={"boxes": sl.Ragged("float32", 4), "box_labels": sl.Ragged("int64")},
        squash=(32, 32),
        dtype="uint8",
        layout="nhwc",
    ) as writer:
        for number, boxes in enumerate([strange, many, strange[:0], strange]):
            writer.add(
                f"{number}", np.zeros((32, 32, 3), np.uint8), 0, boxes=boxes, box_labels=np.arange(len(boxes))
            )
    for augment in (
        sl.Augment(center_crop=32),
        sl.Augment(flip=True, ops=[ops.affine((-20, 20)), ops.perspective(p=1)]),
    ):
        batch = next(
            loader(
                sl.Dataset(tmp_path / "set"),
                batch_size=4,
                shuffle=False,
                augment=augment,
                fields={"boxes": sl.Boxes()},
            ).epoch(0)
        )
        counts = batch.column("boxes_counts")
        assert counts.tolist() == [1, 10_000, 0, 1] and batch.column("box_labels")[0, 0] == 6
        assert (
            np.isfinite(batch.column("boxes")).all()
            and (batch.column("boxes") >= 0).all()
            and (batch.column("boxes") <= 32).all()
        )


def test_boxes_that_only_touch_the_crop_do_not_come_back_by_a_rotation(tmp_path):
    touching = np.array(
        [
            [0, 10, 8, 22],
            [24, 10, 32, 22],
            [10, 0, 22, 8],
            [10, 24, 22, 32],
            [12, 12, 12, 20],
            [10, 10, 20, 20],
        ],
        np.float32,
    )
    with sl.Writer(
        tmp_path / "set",
        columns={"boxes": sl.Ragged("float32", 4), "box_labels": sl.Ragged("int64")},
        squash=(32, 32),
        dtype="uint8",
        layout="nhwc",
    ) as writer:
        for number in range(4):
            writer.add(
                f"{number}",
                np.zeros((32, 32, 3), np.uint8),
                0,
                boxes=touching,
                box_labels=np.arange(len(touching)),
            )
    data = sl.Dataset(tmp_path / "set")
    for operations in ([], [ops.rotation((45, 45))], [ops.perspective(0.3, p=1)]):
        for limits in ({}, {"min_size": 0, "min_area": 0}):
            augment = sl.Augment(center_crop=16, ops=operations)
            batch = next(
                loader(data, batch_size=4, augment=augment, fields={"boxes": sl.Boxes(**limits)}).epoch(0)
            )
            assert (
                batch.column("boxes_counts").tolist() == [1] * 4
                and (batch.column("box_labels")[:, 0] == 5).all()
            ), (operations, limits)


@pytest.mark.parametrize("flat", [[], ["boxes", "box_labels", "keypoints"]])
@pytest.mark.parametrize("stated", ["boxes", "box_labels", "keypoints"])
@pytest.mark.parametrize("moving", [{"augment": sl.Augment(random_crop=40)}, {}], ids=["moves", "stays"])
def test_what_goes_along_is_cut_with_its_boxes(shapes, moving, flat, stated):
    limited = loader(shapes, **moving, max_rows={stated: 2}, flat=flat)
    whole = loader(shapes, **moving, flat=flat)
    cut = 0
    for batch, full in zip(limited.epoch(0), whole.epoch(0)):
        for name in ("boxes", "box_labels", "keypoints"):
            if flat:
                counts, all_counts = (np.diff(of.column(f"{name}_offsets")) for of in (batch, full))
            else:
                counts, all_counts = (of.column(f"{name}_counts") for of in (batch, full))
                assert batch.column(name).shape[1] == 2
                for row, count in enumerate(counts):
                    assert (batch.column(name)[row, :count] == full.column(name)[row, :count]).all()
            assert counts.tolist() == np.minimum(all_counts, 2).tolist(), name
            cut += int((all_counts > 2).sum())
    assert cut > 0


@pytest.mark.parametrize(
    "options, says",
    [
        (
            {"max_rows": {"boxes": 2, "box_labels": 3}},
            'max_rows of "boxes" is 2, and that of "box_labels" is 3',
        ),
        ({"fields": {"nothing": "nearest"}}, 'option fields names "nothing": the data set has "mask"'),
        ({"fields": {"mask": "bilinear"}}, 'field "mask": it is a mask'),
        ({"fields": {"mask": "cubic"}}, 'sampling is "cubic"'),
        ({"fields": {"mask": sl.Pixels("nearest", fill=256)}}, "fill is 256"),
        ({"fields": {"mask": sl.Pixels("nearest", dtype="float16")}}, "which is delivered as stored"),
        ({"fields": {"latent": "nearest"}}, 'field "latent": a tensor has no pixels'),
        ({"fields": {"mask": 3}}, "expected"),
        ({"fields": {"box_labels": sl.Boxes()}}, 'column "box_labels": it is ragged i'),
        ({"fields": {"centre": sl.Boxes()}}, "boxes are ragged"),
        ({"fields": {"nothing": sl.Boxes()}}, "the data set has no column of this name"),
        ({"fields": {"boxes": sl.Boxes(format="corners")}}, 'format is "corners"'),
        ({"fields": {"boxes": sl.Boxes(min_visibility=2)}}, "min_visibility is 2"),
        ({"fields": {"boxes": sl.Boxes(min_area=float("nan"))}}, "min_area is nan"),
        ({"fields": {"boxes": sl.Boxes(along=["centre"])}}, "it cannot go along"),
        ({"fields": {"boxes": sl.Boxes(along=5)}}, "along of field 'boxes' is 5; expected a list of names"),
        ({"fields": {"boxes": sl.Boxes(along="centre")}}, 'column "centre": .*it cannot go along'),
        ({"fields": {"boxes": sl.Keypoints()}}, "keypoints are"),
        *(
            (
                {"fields": {"keypoints": sl.Keypoints(swap=swap)}},
                rf"swap of field 'keypoints' is {re.escape(repr(swap))}; expected a list of pairs of whole",
            )
            for swap in (5, "ab", [5], [("a", "b")], [(0, -1)], [(0, 2**32)], [(0, 1, 2)])
        ),
        (
            {"fields": {"depth": sl.Pixels("bilinear", mean=5, std=[1])}},
            "mean of field 'depth' is 5; expected numbers",
        ),
        ({"fields": {"keypoints": sl.Keypoints(swap=[(0, 2)])}}, r"swap has \(0, 2\); a row has 2 points"),
        ({"mixup": 0.2, "fields": {"mask": "nearest"}}, "mixup is not defined for fields"),
        (
            {"cutmix": 1.0, "fields": {"depth": "bilinear"}},
            "cutmix pastes fields that are delivered with nearest",
        ),
        ({"cutmix": 1.0, "fields": {"boxes": sl.Boxes()}}, "not defined for boxes"),
        (
            {"cutmix": 1.0, "fields": {}, "correspondence": True},
            "not defined for boxes, keypoints and correspondence",
        ),
        ({"augment": sl.Augment.aug_mix()}, "aug_mix blends samples"),
    ],
)
def test_what_is_not_possible_is_refused(shapes, options, says):
    with pytest.raises(sl.InvalidArgumentError, match=says):
        loader(shapes, **options)


def test_a_damaged_frame_names_sample_and_field(shapes, tmp_path):
    import shutil

    folder = tmp_path / "set"
    shutil.copytree(shapes.path, folder)
    shard = sorted(folder.glob("*.safetensors"))[0]
    content = bytearray(shard.read_bytes())
    head = int.from_bytes(content[:8], "little")
    begin, end = (8 + head + at for at in json.loads(content[8 : 8 + head])["packed.frames"]["data_offsets"])
    content[begin:end] = bytes(255 - byte for byte in content[begin:end])
    shard.write_bytes(content)
    with pytest.raises(sl.CorruptError, match='sample 0.*field "packed"'):
        for _ in loader(folder, shuffle=False, fields={"packed": "nearest"}).epoch(0):
            pass


def test_a_batch_that_was_moved_keeps_its_targets(shapes):
    torch = pytest.importorskip("torch")
    views = [sl.Augment(random_crop=40), sl.Augment(random_crop=24)]
    batch = next(loader(shapes, framework="torch", views=views).epoch(0))
    moved = batch.to("meta")
    for view in range(2):
        for name, value in batch.targets(view).items():
            assert isinstance(value, torch.Tensor) and moved.targets(view)[name].shape == value.shape, name


def test_fields_that_were_not_asked_for_are_not_there(shapes):
    batch = next(loader(shapes, fields={"mask": "nearest"}).epoch(0))
    with pytest.raises(KeyError, match='no field "depth".*it has "mask"'):
        batch.field("depth")
    assert list(batch.targets()) == ["mask"] and batch.column("boxes").shape[1:] == (SHAPES, 4)


def test_sets_of_other_codecs_selections_and_short_batches(shapes, tmp_path):
    """A mask is none, packed or zstd in the parts: the host then decodes all of them."""
    rows = list(samples_of(0))
    parts = []
    for codec in ("none", "packed", "zstd"):
        columns = {
            "mask": sl.ImageField("uint8", SIDE, SIDE, 1, role="mask", codec=codec),
            "boxes": sl.Ragged("float32", 4),
        }
        with sl.Writer(
            tmp_path / codec, columns=columns, squash=(SIDE, SIDE), dtype="uint8", layout="nhwc", codec=codec
        ) as writer:
            for number, row in enumerate(rows[:10]):
                writer.add(f"{codec}{number}", row["image"], 0, mask=row["mask"], boxes=row["boxes"])
        parts.append(sl.Dataset(tmp_path / codec))
    fields = {"mask": "nearest", "boxes": sl.Boxes()}
    augment = sl.Augment(random_crop=40, flip=True, ops=MOVES)
    seen = []
    for batch in loader(
        sl.concat(*parts).select(range(3, 30)), fields=fields, augment=augment, drop_last=False
    ).epoch(0):
        assert (np.array(batch.images) == PALETTE[batch.field("mask")]).all()
        seen.extend(batch.ids.tolist())
    assert sorted(seen) == list(range(27))
    last = list(
        loader(
            parts[1], fields=fields, augment=augment, drop_last=False, batch_size=4, rank=1, world_size=4
        ).epoch(0)
    )[-1]
    assert len(last.ids) == len(last.field("mask")) == len(last.column("boxes")) < 4


def test_views_can_be_replaced_between_epochs(shapes):
    data = loader(shapes, augment=sl.Augment(random_crop=24, ops=MOVES), seed=2)
    assert next(data.epoch(0)).field("mask").shape[1:] == (24, 24)
    data.set_augment(sl.Augment(random_crop=40, ops=MOVES))
    expected = [
        contents(batch)
        for batch in loader(shapes, augment=sl.Augment(random_crop=40, ops=MOVES), seed=2).epoch(1)
    ]
    assert [contents(batch) for batch in data.epoch(1)] == expected
    with pytest.raises(sl.InvalidArgumentError, match="aug_mix blends samples"):
        data.set_augment(sl.Augment.aug_mix())


def test_samples_that_are_drawn_again_have_targets_of_their_own(shapes):
    data = loader(
        shapes,
        augment=sl.Augment(random_crop=24, flip=True, ops=MOVES),
        repeats=2,
    )
    for batch in data.epoch(0):
        check_follows(np.array(batch.images), batch.targets(), slack=3)
