"""Mistakes that people make: every argument with values of the wrong kind.
The error names the argument, its value and what is allowed."""

import inspect
import math
import pickle
import re

import numpy as np
import pytest

import shardloader as sl
from conftest import jpeg

PIXELS = np.zeros((8, 8, 3), np.uint8)


def batch_of(data, **options):
    return next(iter(sl.Loader(data, batch_size=4, **options)))


class Odd:
    def __repr__(self):
        return "<odd>"


WRONG = [Odd(), "x", -1, 1.5, [], {}, None, math.nan, (1, 2, 3), True, b"x", 2**70, np.float32(2.5), "1"]
NEEDED = {"posterize": {"bits": 4}, "affine": {"degrees": 1}, "rotation": {"degrees": 1}}
# Said otherwise, and just as well: the argument is told by what it is.
SAID = {
    "data": "path|data set|exist",
    "views": "view|Augment",
    "proportions": "proportion|data set",
    "indices": "ind|selection",
    "condition": "mask|sample",
    "names": "class|names|no samples|sample",
    "name": "column|image|name",
    "fraction": "fraction|part|sample|range|hash",
    "index": "sample|image",
    "shard": "shard",
    "state": "state|views",
    "path": "path|data set|folder|exist",
}


def names_the_mistake(argument, call, named=SAID):
    """The call works, or its error is one of the library's (or Python's own for an index)
    and names the argument."""
    try:
        call()
    except (sl.ShardError, KeyError, IndexError) as error:
        said = str(error)
    except TypeError as error:
        said = str(error)
        assert "incompatible function arguments" not in said and "expected" in said, (
            f"{argument}: bare {error!r}"
        )
    else:
        return
    expected = named.get(argument, re.escape(argument)).replace("NAME", argument)
    assert re.search(expected, said), f"{argument}: {said}"


def arguments(function, skip=("self",)):
    return [name for name in inspect.signature(function).parameters if name not in skip]


@pytest.mark.parametrize("name", arguments(sl.Loader.__init__))
def test_each_argument_of_the_loader(data, name):
    for value in WRONG:
        options = {"data": data, "batch_size": 4, name: value}
        names_the_mistake(name, lambda: sl.Loader(options.pop("data"), **options).close())


@pytest.mark.parametrize("name", arguments(sl.Augment.__init__))
def test_each_argument_of_augment(data, name):
    for value in WRONG:
        names_the_mistake(
            name, lambda: sl.Loader(data, batch_size=4, augment=sl.Augment(**{name: value})).close()
        )


@pytest.mark.parametrize("operation", [name for name in vars(sl.ops) if not name.startswith("_")])
def test_each_argument_of_each_operation(data, operation):
    function = getattr(sl.ops, operation)
    for name in arguments(function):
        for value in WRONG:
            given = {**NEEDED.get(operation, {}), name: value}
            names_the_mistake(
                name if name != "p" else "p",
                lambda: sl.Loader(data, batch_size=4, augment=sl.Augment(ops=[function(**given)])).close(),
            )


GOOD = {
    "condition": lambda columns: columns["labels"] == 0,
    "indices": [0],
    "names": ["ant"],
    "fraction": 0.5,
    "seed": 0,
    "k": 0,
    "n": 2,
    "name": "labels",
    "index": 0,
    "shard": 0,
    "threads": 1,
}


@pytest.mark.parametrize(
    "method",
    [
        "where",
        "select",
        "classes_only",
        "split",
        "fold",
        "image",
        "column",
        "shard_images",
        "verify",
        "__getitem__",
    ],
)
def test_each_argument_of_a_data_set(data, method):
    function = getattr(data, method)
    for name in arguments(function):
        for value in WRONG:
            given = {**{other: GOOD[other] for other in arguments(function)}, name: value}
            names_the_mistake(name, lambda: function(**given))


@pytest.mark.parametrize("method", ["epoch", "set_epoch", "geometry", "load_state_dict"])
def test_arguments_of_methods_of_the_loader(data, method):
    loader = sl.Loader(data, batch_size=4)
    function = getattr(loader, method)
    for value in WRONG:
        names_the_mistake(arguments(function)[0], lambda: function(value))
    assert len(loader) > 0 and next(iter(sl.Loader(data, batch_size=4))) is not None


@pytest.mark.parametrize(
    "function, name", [(sl.mix, "proportions"), (sl.concat, "data"), (sl.Dataset, "path")]
)
def test_data_sets_that_are_none(function, name):
    for value in WRONG:
        names_the_mistake(name, lambda: function(value))


@pytest.mark.parametrize("method, good", [("column", "labels"), ("field", "none")])
def test_each_argument_of_a_batch(data, method, good):
    function = getattr(next(iter(sl.Loader(data, batch_size=4))), method)
    for value in [*WRONG, "\ud800"]:
        names_the_mistake("name", lambda: function(value), {"name": "name|column|field"})
        names_the_mistake("view", lambda: function(good, value))


@pytest.mark.parametrize("method", ["draw", "apply"])
def test_each_argument_of_a_drawn_sample(method):
    function = getattr(sl.Augment(invert=1), method)
    for name in arguments(function):
        for value in WRONG:
            given = {"sample": 0, name: value}
            given.setdefault(*{"draw": ("shape", (8, 8, 3)), "apply": ("image", PIXELS)}[method])
            names_the_mistake(name, lambda: function(**given))


@pytest.mark.parametrize("name", arguments(sl.decode_jpeg))
def test_each_argument_of_decoding(name):
    for value in WRONG:
        names_the_mistake(
            name,
            lambda: sl.decode_jpeg(**{"files": [jpeg(0, 8, 8)], name: value}),
            {"mean": "mean|normalisation", "std": "std|normalisation", "crop": "crop|right"},
        )


@pytest.fixture(scope="module")
def targets(tmp_path_factory):
    folder = tmp_path_factory.mktemp("targets") / "set"
    columns = {
        "depth": sl.ImageField("uint8", 8, 8, 1),
        "boxes": sl.Ragged("float32", 4),
        "points": ("float32", 2, 2),
    }
    with sl.Writer(folder, squash=(8, 8), dtype="uint8", columns=columns) as writer:
        for number in range(4):
            box, points = np.array([[1, 1, 5, 5]], np.float32), np.ones((2, 2), np.float32)
            writer.add(str(number), PIXELS, 0, depth=PIXELS[:, :, :1], boxes=box, points=points)
    return sl.Dataset(folder)


@pytest.mark.parametrize("field, make", [("depth", sl.Pixels), ("boxes", sl.Boxes), ("points", sl.Keypoints)])
def test_each_member_of_a_target(targets, field, make):
    for name in arguments(make):
        for value in WRONG:
            given = {"filter": "bilinear", name: value} if make is sl.Pixels else {name: value}
            names_the_mistake(
                name,
                lambda: sl.Loader(targets, batch_size=4, fields={field: make(**given)}).close(),
                {
                    "filter": "sampling|filter",
                    "along": "along|column",
                    "mean": "mean|normal",
                    "std": "std|norm",
                },
            )


@pytest.mark.parametrize(
    "call, message",
    [
        (
            lambda data: sl.Loader(data, batch_size=4, center_crop="big"),
            r"center_crop is 'big'; expected a size from 1 on, or \(height, width\)",
        ),
        (
            lambda data: sl.Loader(data, batch_size=4, views=sl.Augment()),
            "views is Augment.*expected a list of Augments",
        ),
        (
            lambda data: sl.Loader(data, batch_size=4, sampling=sl.Sampling({"a": 1})),
            "weights is {'a': 1}; expected a number for each sample",
        ),
        (
            lambda data: sl.Loader(data, batch_size=4, samples_per_epoch=0),
            "samples_per_epoch is 0; expected a whole number from 1 on",
        ),
        (
            lambda data: sl.Loader(data, batch_size=4, dtype="float32", mean="imagenet", std="imagenet"),
            "mean is 'imagenet'; expected numbers",
        ),
        (lambda data: data.split("0.9"), "fraction is '0.9'; expected a number"),
        (lambda data: data.fold("1", 2), "k is '1'; expected a whole number"),
        (lambda data: data.save(5), 'name is 5; expected a name of letters, digits, "-", "_" and "."'),
        (lambda data: data.save("\ud800"), r"name is '\\ud800'; expected a name of letters"),
        (lambda data: batch_of(data).column(5), "name is 5; expected the name of a column"),
        (lambda data: batch_of(data).field(b"x"), "name is b'x'; expected the name of a field"),
        (
            lambda data: batch_of(data).column("labels", 5),
            "view is 5; expected a whole number from 0 to 0: the batch has 1 view",
        ),
        (
            lambda data: batch_of(data, views=[sl.Augment()] * 2).field("mask", "a"),
            "view is 'a'; expected a whole number from 0 to 1: the batch has 2 views",
        ),
        (lambda data: sl.decode_jpeg(None), "files is None; expected a list with the bytes of each file"),
        (
            lambda data: sl.decode_jpeg([], crop=5),
            r"crop is 5; expected a list with None or \(left, top, right, bottom\) for each file",
        ),
        (lambda data: sl.Augment().draw(5, 0), r"shape is 5; expected \(rows, columns, channels\)"),
        (
            lambda data: sl.Augment().draw((8, -8, 3), 0),
            "shape's number of columns is -8; expected a whole number from 1 to 65535",
        ),
        (
            lambda data: sl.Augment().apply(PIXELS, "a"),
            "sample is 'a'; expected a whole number from 0 to 18446744073709551615",
        ),
        (lambda data: sl.mix({}), r"proportions is {}; mix\(\) needs at least one data set"),
        (
            lambda data: sl.mix({data: 1}, epoch_size=2**64),
            "epoch_size is 18446744073709551616; expected a whole number from 1 to 18446744073709551615",
        ),
        (
            lambda data: sl.Loader(data, batch_size=4, seed=2**65),
            "seed is 36893488147419103232; expected a whole number from 0 to 18446744073709551615",
        ),
        (
            lambda data: sl.Loader(data, batch_size=2**70),
            "batch_size is 1180591620717411303424; expected a whole number from 1 to 65536",
        ),
        (
            lambda data: sl.Loader(data, batch_size=4).load_state_dict({"epoch": 1}),
            "state is {'epoch': 1}; expected what state_dict.. returns",
        ),
    ],
)
def test_the_message_says_what_is_allowed(data, call, message):
    with pytest.raises(sl.InvalidArgumentError, match=message):
        call(data)


@pytest.fixture(scope="module")
def two_images(tmp_path_factory):
    from PIL import Image

    folder = tmp_path_factory.mktemp("images")
    for name in ("ant", "bee"):
        (folder / name).mkdir()
        Image.new("RGB", (8, 8)).save(folder / name / "0.png")
    return folder


# What the message names instead: a path as it was given, or what the option's value was applied to.
NAMED = {
    **dict.fromkeys(
        ("labels", "coco", "yolo", "voc", "mask", "box_classes", "classes"), 'NAME|"x"|"1"|class'
    ),
    "images": "images|exist|folder",
    "out": 'out|"x"',
    "sample": "sample|dtype",
    "channels": "channels|rejects.csv",
    "columns": "column",
    "pairs": "pairs|folder|field",
}


@pytest.mark.parametrize("name", arguments(sl.convert))
def test_each_argument_of_a_conversion(two_images, tmp_path, name, monkeypatch):
    monkeypatch.chdir(tmp_path)  # "x" and "1" are folders here
    for number, value in enumerate(WRONG):
        given = {"images": two_images, "out": tmp_path / str(number), "resize": 8, "crop": 8, name: value}
        names_the_mistake(name, lambda: sl.convert(given.pop("images"), given.pop("out"), **given), NAMED)


@pytest.mark.parametrize("name", arguments(sl.Writer.__init__))
def test_each_argument_of_a_writer(tmp_path, name, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def write(number, value):
        given = {"out": tmp_path / str(number), "resize": 8, "crop": 8, name: value}
        with sl.Writer(given.pop("out"), **given) as writer:
            writer.add("a", np.zeros((8, 8, 3), np.uint8), 0)

    for number, value in enumerate(WRONG):
        names_the_mistake(name, lambda: write(number, value), NAMED)


@pytest.mark.parametrize("word", ["no", "false", "sequential", "True", 0, 1, []])
def test_truth_is_true_or_false(data, tmp_path, word):
    for name in ("shuffle", "drop_last", "progress", "correspondence"):
        with pytest.raises(sl.InvalidArgumentError, match=f"{name} is .*; expected True or False"):
            sl.Loader(data, batch_size=4, **{name: word})
    with pytest.raises(sl.InvalidArgumentError, match="replacement is .*; expected True or False"):
        sl.Loader(data, batch_size=4, sampling=sl.Sampling(replacement=word))
    with pytest.raises(sl.InvalidArgumentError, match="progress is .*; expected True or False"):
        sl.convert(tmp_path, tmp_path / "out", progress=word)
    with pytest.raises(sl.InvalidArgumentError, match="quiet is .*; expected True or False"):
        sl.doctor([1], id, quiet=word)
    with sl.Loader(data, batch_size=4, shuffle=np.bool_(False), drop_last=np.True_) as loader:
        assert loader.drop_last and loader._sequential


@pytest.mark.parametrize("path", ["", b"", "x\0", b"x\0y"])
def test_no_path(data, tmp_path, path):
    refused = r" is b?'.*; expected a path of at least one character, none of which is \\0"
    for name, call in {
        "images": lambda: sl.Source(path),
        "images ": lambda: sl.convert(path, tmp_path / "out"),
        "images  ": lambda: sl.plan(path, tmp_path / "out"),
        "path": lambda: sl.Dataset(path),
        "data": lambda: sl.Loader(path),
        "out": lambda: sl.convert(tmp_path, path),
        "out ": lambda: sl.plan(tmp_path, path),
        "out  ": lambda: sl.Writer(path),
        "cache": lambda: sl.Source(tmp_path, cache=path),
        "labels": lambda: sl.convert(tmp_path, tmp_path / "out", labels=path),
        "coco": lambda: sl.plan(tmp_path, tmp_path / "out", coco=path),
    }.items():
        with pytest.raises(sl.InvalidArgumentError, match=name.strip() + refused):
            call()


def test_no_plan_and_no_shard(folder, images, tmp_path):
    plan = sl.plan(images, tmp_path / "out", size=32, preset="train")
    for shard in (-1, "0", 1.5, None, 2**64):
        with pytest.raises(sl.InvalidArgumentError, match="shard is .*; expected a whole number from 0"):
            sl.convert_shard(plan, shard)
    for call in (lambda: sl.convert_shard(None, 0), lambda: sl.finish(folder)):
        with pytest.raises(sl.InvalidArgumentError, match="plan is .*; expected a Plan, which plan"):
            call()


def test_a_loader_says_what_to_pickle_instead(data, tmp_path):
    loader = sl.Loader(data, batch_size=4)
    for one in (loader, iter(loader)):
        with pytest.raises(TypeError, match=r"a Loader cannot be pickled, .*: pickle its Dataset"):
            pickle.dumps(one)
    writer = sl.Writer(tmp_path / "out")
    with pytest.raises(TypeError, match="a Writer cannot be pickled"):
        pickle.dumps(writer)
    writer.abandon()


def test_what_has_no_order_names_no_classes_and_no_channels(photos, tmp_path):
    for names in ({"ant", "bee"}, frozenset(["ant"])):
        with pytest.raises(sl.InvalidArgumentError, match="classes .*a set has no order"):
            sl.convert(photos, tmp_path / "out", classes=names)
        with pytest.raises(sl.InvalidArgumentError, match="classes .*a set has no order"):
            sl.Source(photos, classes=names)
        with pytest.raises(sl.InvalidArgumentError, match="classes .*a set has no order"):
            sl.Writer(tmp_path / "out", classes=names)
    with pytest.raises(sl.InvalidArgumentError, match="mean .*in an order"):
        sl.convert(photos, tmp_path / "out", mean={0.1, 0.2, 0.3}, std=(1, 1, 1), normalize="custom")
    with pytest.raises(sl.InvalidArgumentError, match="mean .*in an order"):
        sl.Loader(photos, mean={0.1, 0.2, 0.3}, std=(1, 1, 1), dtype="float32", random_resized_crop=8)


def test_a_std_below_zero_is_refused_where_batches_are_normalised(photos):
    how = {"mean": (0.5,) * 3, "dtype": "float32"}
    with pytest.raises(sl.InvalidArgumentError, match=r"std -0.25 in channel 1; .*above 0"):
        sl.Loader(photos, 8, random_resized_crop=8, std=(0.25, -0.25, 0.25), **how)
    view = sl.Augment(random_resized_crop=8, std=(0.25, -0.25, 0.25), **how)
    with pytest.raises(sl.InvalidArgumentError, match=r"std -0.25 in channel 1; .*above 0"):
        sl.Loader(photos, 8, augment=view)


def test_a_page_that_cannot_be_written_is_named_and_not_left(photos, tmp_path):
    sl.convert(photos, tmp_path / "out", size=16, preset="eval")
    sheet = sl.Dataset(tmp_path / "out").show(2)
    (tmp_path / "page.html").mkdir()
    with pytest.raises(OSError, match="page.html"):
        sheet.save(tmp_path / "page.html")
    assert list(tmp_path.glob("*.part")) == []
    sheet.save(tmp_path / "other.html")
    assert "color-scheme" in (tmp_path / "other.html").read_text()


@pytest.mark.parametrize("loader", ["out/train", {"a": 1}, b"x"])
def test_the_doctor_asks_for_a_loader(loader):
    with pytest.raises(sl.InvalidArgumentError, match="loader is .*an iterable of batches"):
        sl.doctor(loader, lambda batch: None, seconds=0.1)


@pytest.mark.parametrize(
    "name, instead",
    [
        ("cach", "did you mean cache"),
        ("crop", "random_resized_crop="),
        ("codec", r"sl.Source\(path, codec="),
        ("weights", "Sampling"),
        ("zebra", "no such option"),
    ],
)
def test_options_of_others_lead_to_ours(photos, name, instead):
    with pytest.raises(TypeError, match=instead):
        sl.Loader(photos, **{name: 1})


@pytest.mark.parametrize(
    "name, why",
    [("a.zip", "unpacked first"), ("a.MP4", "videos are not read"), ("a.jpg", "the folder that it is in")],
)
def test_a_file_in_place_of_the_folder_of_images(tmp_path, name, why):
    (tmp_path / name).write_bytes(b"x" * 100)
    with pytest.raises(sl.InvalidArgumentError, match=why):
        sl.convert(tmp_path / name, tmp_path / "out")
