"""Nothing wrong in silence: sl.Writer. Each test has one oddity; the only results that it allows are the
right data, or a named reject or error."""

import collections
import contextlib
import csv
import gc
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import shardloader as sl

SIDE = 32
AS_THEY_ARE = {"preset": "train", "resize": SIDE, "crop": SIDE, "samples_per_shard": 3}


def pixels(seed):
    """uint8 [row, column, RGB]: what a sample must hold, without a decoder."""
    return np.random.default_rng(seed).integers(0, 256, (SIDE, SIDE, 3), np.uint8)


def rejects(out):
    with open(out / "rejects.csv", newline="", encoding="utf-8") as file:
        return dict(list(csv.reader(file))[1:])


def assert_stored(out, samples, labels=None):
    """samples: {key: array}."""
    data = sl.Dataset(out)
    assert sorted(data.keys) == sorted(samples)
    for i, key in enumerate(data.keys):
        assert np.array_equal(np.asarray(data[i][0]), samples[key]), key
    if labels is not None:
        assert dict(zip(data.keys, data.labels.tolist())) == labels
    assert not data.verify()
    return data


@pytest.fixture
def out(tmp_path):
    return tmp_path / "out"


@pytest.fixture(autouse=True)
def no_test_hangs():
    """A call that never ends is what these tests look for."""

    def end(*_):
        raise TimeoutError("the test hangs")

    before = signal.signal(signal.SIGALRM, end)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


# --- threads, close(), abandon() ----------------------------------------------------------------------------


def adders(writer, stored, errors, threads=3):
    def work(t):
        try:
            for i in range(1_000_000):
                key = f"{t} {i}"
                writer.add(key, pixels(0), i)
                stored.append(key)
        except BaseException as error:
            errors.append(error)

    started = [threading.Thread(target=work, args=(t,)) for t in range(threads)]
    for thread in started:
        thread.start()
    return started


@pytest.mark.parametrize("moment", [0.0, 0.001, 0.01, 0.03, 0.1])
def test_what_is_added_before_close_is_stored_and_what_comes_later_is_an_error(out, moment):
    writer, stored, errors = sl.Writer(out, **AS_THEY_ARE), ["first"], []
    writer.add("first", pixels(0), 0)
    threads = adders(writer, stored, errors)
    time.sleep(moment)
    result = writer.close()
    for thread in threads:
        thread.join()
    assert [type(error) for error in errors] == [sl.InvalidArgumentError] * 3 and all(
        "the writer is closed" in str(error) for error in errors
    )
    assert result.samples == len(stored) == len(writer)
    assert_stored(out, dict.fromkeys(stored, pixels(0)))


@pytest.mark.parametrize("moment", [0.0, 0.01, 0.05])
def test_abandon_ends_the_waits_of_other_threads(out, moment):
    writer, stored, errors = sl.Writer(out, jobs=1, **AS_THEY_ARE), [], []
    threads = adders(writer, stored, errors)
    time.sleep(moment)
    writer.abandon()
    for thread in threads:
        thread.join()
    assert [type(error) for error in errors] == [sl.InvalidArgumentError] * 3 and all(
        "the writer is closed" in str(error) for error in errors
    )
    assert writer.closed and not (out / "dataset.json").exists()
    with sl.Writer(out, resume=True, **AS_THEY_ARE) as writer:  # nobody has the lock
        writer.add("last", pixels(0))


def test_an_exception_in_the_block_ends_the_waits_of_other_threads(out):
    stored, errors, threads = [], [], []
    with pytest.raises(ZeroDivisionError), sl.Writer(out, jobs=1, **AS_THEY_ARE) as writer:
        threads = adders(writer, stored, errors)
        time.sleep(0.02)
        1 / 0  # noqa: B018
    for thread in threads:
        thread.join()
    assert (
        all(isinstance(error, sl.InvalidArgumentError) for error in errors)
        and not (out / "dataset.json").exists()
    )


def test_two_threads_that_close_get_the_same(out):
    writer = sl.Writer(out, **AS_THEY_ARE)
    for i in range(20):
        writer.add(str(i), pixels(i), i)
    results = []
    threads = [threading.Thread(target=lambda: results.append(writer.close())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 4 and len(set(map(str, results))) == 1 and results[0].samples == 20


def test_first_rows_of_several_threads_are_arrays(out):
    for round in range(10):
        folder, errors = out.with_name(f"out{round}"), []
        writer, start = sl.Writer(folder, samples_per_shard=3), threading.Barrier(4)

        def work(i, writer=writer, start=start, errors=errors):
            start.wait()
            try:
                writer.add(str(i), np.full((2, 3), i, np.float32), i)
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not errors
        writer.close()
        assert_stored(
            folder, {str(i): np.full((2, 3), i, np.float32) for i in range(4)}, {str(i): i for i in range(4)}
        )


def test_a_writer_that_is_deleted_while_a_thread_adds(out):
    writer, stored, errors = sl.Writer(out, jobs=1, **AS_THEY_ARE), [], []
    threads = adders(writer, stored, errors, 1)
    time.sleep(0.02)
    core = writer._core
    del core
    writer.abandon()
    del writer
    gc.collect()
    for thread in threads:
        thread.join()
    assert isinstance(errors[0], sl.InvalidArgumentError)


def test_a_bad_image_that_ends_it_reaches_every_thread(out):
    writer, stored, errors = sl.Writer(out, on_error="fail", **AS_THEY_ARE), [], []
    threads = adders(writer, stored, errors)
    with contextlib.suppress(sl.CorruptError):
        writer.add("bad", b"no picture", 0)
    for thread in threads:
        thread.join()
    assert [type(error) for error in errors] == [sl.CorruptError] * 3 and "bad" in str(errors[0])
    with pytest.raises(sl.CorruptError, match="bad"):
        writer.close()
    writer.abandon()
    assert not (out / "dataset.json").exists()


def test_a_failed_close_in_a_block_lets_go_of_the_folder(out):
    with (
        pytest.raises(sl.InvalidArgumentError, match="nothing was added") as kept,
        sl.Writer(out, **AS_THEY_ARE),
    ):
        pass
    with sl.Writer(out, **AS_THEY_ARE) as writer:
        writer.add("0", pixels(0))
    assert kept is not None
    assert_stored(out, {"0": pixels(0)})


def test_rows_can_follow_a_close_that_found_none(out):
    writer = sl.Writer(out, **AS_THEY_ARE)
    with pytest.raises(sl.InvalidArgumentError, match="nothing was added"):
        writer.close()
    writer.add("0", pixels(0))
    assert writer.close().samples == 1
    with pytest.raises(sl.InvalidArgumentError, match="the writer is closed"):
        writer.add("1", pixels(1))


def test_every_call_in_the_child_of_a_fork_is_an_error(out):
    writer = sl.Writer(out, columns={"id": "int64"}, **AS_THEY_ARE)
    for added in (False, True):  # before its threads were started, and after
        if added:
            writer.add("0", pixels(0), id=0)
        pid = os.fork()
        if pid == 0:
            signal.alarm(20)
            wrong = 0
            for call in (
                lambda: writer.add("1", pixels(1), id=1),
                writer.close,
                writer.keys_done,
                lambda: len(writer),
                lambda: "0" in writer,
            ):
                try:
                    call()
                    wrong += 1
                except sl.UnsupportedError as error:
                    wrong += "child of a fork" not in str(error)
            writer.abandon()
            os._exit(wrong)
        assert os.waitpid(pid, 0)[1] == 0
    with pytest.raises(sl.ResourceError, match="is at work there"):
        sl.Writer(out, **AS_THEY_ARE)
    writer.add("1", pixels(1), id=1)
    assert writer.close().samples == 2


def test_a_fork_while_threads_add(out):
    writer, stored, errors = sl.Writer(out, **AS_THEY_ARE), [], []
    threads = adders(writer, stored, errors)
    for _ in range(5):
        pid = os.fork()
        if pid == 0:
            signal.alarm(20)
            try:
                writer.add("child", pixels(1))
            except sl.UnsupportedError:
                os._exit(0)
            os._exit(1)
        assert os.waitpid(pid, 0)[1] == 0
    writer.close()
    for thread in threads:
        thread.join()
    assert_stored(out, dict.fromkeys(stored, pixels(0)))


# --- sizes --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "dtype, shape, wide",
    [
        ("float32", (2048,), 2048),
        ("uint8", (1,), 0),
        ("uint8", (8, 8, 3), 0),
        ("float16", (768,), 4096),
        ("float32", (1,), 100_000),
    ],
)
def test_the_default_number_of_samples_fits(out, dtype, shape, wide):
    rows = {str(i): np.full(shape, i, dtype) for i in range(5)}
    with sl.Writer(out, sample=(dtype, *shape)) as writer:
        for i, (key, value) in enumerate(rows.items()):
            writer.add(key, value, i, **({"wide": np.full(wide, i, np.float32)} if wide else {}))
    data = assert_stored(out, rows, {key: i for i, key in enumerate(rows)})
    if wide:
        assert all(np.all(np.asarray(data.fields[i]["wide"]) == i) for i in range(5))


def test_more_samples_per_shard_than_it_can_hold(out):
    with (
        pytest.raises(
            sl.InvalidArgumentError, match="samples_per_shard is 200000, but a shard has at most 130"
        ),
        sl.Writer(out, samples_per_shard=200_000) as writer,
    ):
        writer.add("0", np.zeros(4, np.float32), wide=np.zeros(2048, np.float32))


def test_a_shard_size_for_arrays_is_about_arrays(out):
    with sl.Writer(out, sample=("float32", 4), shard_bytes=64) as writer:
        for i in range(9):
            writer.add(str(i), np.full(4, i, np.float32))
    assert len(list(out.glob("shard-*"))) == 3
    with pytest.raises(sl.InvalidArgumentError, match="shard_bytes 8 is less than one sample of 16 bytes"):
        sl.Writer(out.with_name("small"), sample=("float32", 4), shard_bytes=8)


# --- overwrite and resume -----------------------------------------------------------------------------------


def fill(writer, numbers):
    for i in numbers:
        writer.add(str(i), pixels(i), i)


def test_overwrite_replaces_in_one_step(out):
    with sl.Writer(out, **AS_THEY_ARE) as writer:
        fill(writer, range(4))
    with pytest.raises(
        sl.InvalidArgumentError, match="holds a finished data set: use another folder, or overwrite=True"
    ):
        sl.Writer(out, **AS_THEY_ARE)
    with sl.Writer(out, overwrite=True, **AS_THEY_ARE) as writer:
        fill(writer, range(10, 15))
        assert_stored(out, {str(i): pixels(i) for i in range(4)})
    assert_stored(out, {str(i): pixels(i) for i in range(10, 15)}, {str(i): i for i in range(10, 15)})
    assert not [name for name in os.listdir(out) if name.startswith(".")] and os.listdir(out.parent) == [
        "out"
    ]


def test_overwrite_by_other_columns_and_samples(out):
    with sl.Writer(out, classes=["a"], **AS_THEY_ARE) as writer:
        writer.add("0", pixels(0), "a", caption="x")
    with sl.Writer(out, overwrite=True) as writer:
        writer.add("0", np.arange(4, dtype=np.float32), 7)
    data = assert_stored(out, {"0": np.arange(4, dtype=np.float32)}, {"0": 7})
    assert list(data.fields) == ["image", "label"]


def test_overwrite_that_fails_keeps_what_was_there(out):
    with sl.Writer(out, **AS_THEY_ARE) as writer:
        fill(writer, range(4))
    with pytest.raises(ZeroDivisionError), sl.Writer(out, overwrite=True, **AS_THEY_ARE) as writer:
        fill(writer, range(10, 20))
        1 / 0  # noqa: B018
    assert_stored(out, {str(i): pixels(i) for i in range(4)})
    with (
        pytest.raises(sl.InvalidArgumentError, match="nothing was added"),
        sl.Writer(out, overwrite=True, **AS_THEY_ARE),
    ):
        pass
    assert_stored(out, {str(i): pixels(i) for i in range(4)})
    with sl.Writer(out, overwrite=True, **AS_THEY_ARE) as writer:  # starts anew
        assert len(writer) == 0
        fill(writer, range(20, 22))
    assert_stored(out, {str(i): pixels(i) for i in range(20, 22)})


def test_overwrite_goes_on_where_it_was_stopped(out):
    with sl.Writer(out, **AS_THEY_ARE) as writer:
        fill(writer, range(4))
    with contextlib.suppress(ZeroDivisionError), sl.Writer(out, overwrite=True, **AS_THEY_ARE) as writer:
        fill(writer, range(10, 18))
        while len(list((out / ".shardify-next").glob(".shard-*.done.json"))) < 2:
            time.sleep(0.005)
        1 / 0  # noqa: B018
    with sl.Writer(out, overwrite=True, resume=True, **AS_THEY_ARE) as writer:
        assert writer.keys_done() == [str(i) for i in range(10, 16)] and "3" not in writer
        fill(writer, range(10, 20))
    assert_stored(out, {str(i): pixels(i) for i in range(10, 20)})


def test_overwrite_of_a_new_an_empty_and_a_foreign_folder(out):
    with sl.Writer(out, overwrite=True, **AS_THEY_ARE) as writer:
        fill(writer, range(2))
    assert_stored(out, {str(i): pixels(i) for i in range(2)})
    foreign = out.with_name("foreign")
    foreign.mkdir()
    (foreign / "thesis.txt").write_text("text")
    with pytest.raises(sl.InvalidArgumentError, match="holds no data set of shardify"):
        sl.Writer(foreign, overwrite=True, **AS_THEY_ARE)
    assert os.listdir(foreign) == ["thesis.txt"]


def test_overwrite_of_an_unfinished_data_set_and_files_beside_it(out):
    with contextlib.suppress(ZeroDivisionError), sl.Writer(out, **AS_THEY_ARE) as writer:
        fill(writer, range(7))
        while not list(out.glob(".shard-*.done.json")):
            time.sleep(0.005)
        1 / 0  # noqa: B018
    (out / "notes.txt").write_text("mine")
    with pytest.raises(
        sl.InvalidArgumentError, match="give resume=True to go on with it, overwrite=True to replace it"
    ):
        sl.Writer(out, **AS_THEY_ARE)
    with sl.Writer(out, overwrite=True, **AS_THEY_ARE) as writer:
        fill(writer, range(20, 22))
    assert (out / "notes.txt").read_text() == "mine"
    (out / "notes.txt").unlink()
    assert_stored(out, {str(i): pixels(i) for i in range(20, 22)})


def test_a_kill_while_it_overwrites_leaves_one_of_the_two(out):
    code = f"""
import sys
sys.path[:0] = {sys.path!r}
import numpy as np, shardloader as sl
with sl.Writer({str(out)!r}, overwrite=True, **{AS_THEY_ARE!r}) as writer:
    for i in range(30):
        writer.add("new " + str(i), np.full((32, 32, 3), i, np.uint8), i)
    print("closing", flush=True)
"""
    old = {str(i): pixels(i) for i in range(4)}
    new = {f"new {i}": np.full((SIDE, SIDE, 3), i, np.uint8) for i in range(30)}
    with sl.Writer(out, **AS_THEY_ARE) as writer:
        fill(writer, range(4))
    seen = collections.Counter()
    for moment in np.linspace(0, 0.02, 12):
        process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
        process.stdout.readline()
        time.sleep(moment)
        process.kill()
        process.wait()
        process.stdout.close()
        keys = sorted(sl.Dataset(out).keys)
        assert keys in (sorted(old), sorted(new))
        seen[len(keys)] += 1
        assert_stored(out, old if keys == sorted(old) else new)
    with sl.Writer(out, overwrite=True, **AS_THEY_ARE) as writer:
        fill(writer, range(2))
    assert_stored(out, {str(i): pixels(i) for i in range(2)})
    assert not [name for name in os.listdir(out) if name.startswith(".")]


# --- rows ---------------------------------------------------------------------------------------------------


@pytest.fixture
def writer(out):
    with sl.Writer(
        out,
        columns={
            "small": "uint8",
            "half": ("float16", 2),
            "text": sl.Text,
            "many": sl.Ragged("float32", 2),
            "brain": "bfloat16",
            "whole": "int64",
            "flag": "bool",
        },
        **AS_THEY_ARE,
    ) as writer:
        yield writer
        writer.add("right", pixels(1), 5, **RIGHT)
    data = assert_stored(out, {"right": pixels(1)}, {"right": 5})
    row = data.fields[0]
    assert (row["small"], row["whole"], row["text"], bool(row["flag"])) == (255, 2**53 + 1, "Käfer", True)


RIGHT = {
    "small": 255,
    "half": (65504, 0.1),
    "text": "Käfer",
    "many": [[1, 2]],
    "brain": 256,
    "whole": 2**53 + 1,
    "flag": True,
}


@pytest.mark.parametrize(
    "name, value, words",
    [
        ("small", 256, "uint8 cannot hold 256"),
        ("small", -1, "uint8 cannot hold -1"),
        ("small", 1.0, "this row has float64"),
        ("small", "1", "this row has text"),
        ("small", None, "this row has object"),
        ("half", (65536, 0), "float16 cannot hold 65536"),
        ("half", (1e6, 0.0), "float16 cannot hold 1000000.0"),
        ("half", (2049, 0), "float16 cannot hold 2049"),
        ("half", 1.0, r"this row has float64 \[\]"),
        ("half", (1.0, 2.0, 3.0), r"this row has float64 \[3\]"),
        ("text", b"bytes", "this row has bytes"),
        ("text", 5, "this row has int"),
        ("text", "\ud800", "is not Unicode"),
        ("many", [[1, 2, 3]], r"this row has int64 \[1, 3\]"),
        ("many", [[1e39, 2]], r"float32 cannot hold 1e\+39"),
        ("many", [[16777217, 2]], "float32 cannot hold 16777217"),
        ("many", [[1, 2], [3]], "this row has no array"),
        ("brain", 257, "bfloat16 cannot hold 257"),
        ("brain", 1e39, r"bfloat16 cannot hold 1e\+39"),
        ("whole", 2**63, "int64 cannot hold 9223372036854775808"),
        ("whole", 1.5, "this row has float64"),
        ("whole", np.datetime64("2020-01-01"), "this row has datetime64"),
        ("flag", 1, "this row has int64"),
    ],
)
def test_a_value_that_its_column_cannot_hold(writer, name, value, words):
    with pytest.raises(sl.InvalidArgumentError, match=rf"'odd': (the text of )?column '{name}'.*{words}"):
        writer.add("odd", pixels(0), 1, **{**RIGHT, name: value})


@pytest.mark.parametrize("key", [5, None, 1.5, ("a", "b"), "\ud800", ""])
def test_a_key_that_is_none(out, key):
    with sl.Writer(out, **AS_THEY_ARE) as writer:
        writer.add("right", pixels(0))
        with pytest.raises(sl.InvalidArgumentError, match="key"):
            writer.add(key, pixels(0))
    assert_stored(out, {"right": pixels(0)})


def test_keys_that_are_odd_are_kept_apart(out):
    keys = [
        "a",
        "A",
        "a ",
        "a/b",
        "a\\b",
        "ä",
        "a\u0308",
        "line\nbreak",
        'quo"te',
        "com,ma",
        "\0",
        "x" * 16_000,
    ]
    with sl.Writer(out, **AS_THEY_ARE) as writer:
        for i, key in enumerate(keys):
            writer.add(key, pixels(i), i)
        with pytest.raises(sl.InvalidArgumentError, match="at most 16384"):
            writer.add("x" * 17_000, pixels(0), 0)
    data = sl.Dataset(out)
    assert data.labels.tolist() == list(range(len(keys))) and len(set(data.keys)) == len(keys)
    assert all(np.array_equal(data[i][0], pixels(i)) for i in range(len(keys)))
    with sl.Writer(out, resume=True, **AS_THEY_ARE) as writer:
        assert writer.keys_done() == keys


def test_a_key_that_comes_twice_in_two_threads(out):
    writer, refused, start = sl.Writer(out, **AS_THEY_ARE), [], threading.Barrier(4)

    def work(t):
        start.wait()
        for i in range(50):
            try:
                writer.add(str(i), pixels(i), i)
            except sl.InvalidArgumentError as error:
                refused.append(str(error))

    threads = [threading.Thread(target=work, args=(t,)) for t in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    writer.close()
    assert len(refused) == 150 and all("was added before" in text for text in refused)
    assert_stored(out, {str(i): pixels(i) for i in range(50)}, {str(i): i for i in range(50)})


@pytest.mark.parametrize(
    "label, words",
    [
        ("cow", "'cow' is no class"),
        (2, "label 2, but there are 2 classes"),
        (-1, "label -1"),
        (None, "has no label"),
        (0.0, "this row has float64"),
        (2**70, "labels"),
        ("0", "'0' is no class"),
        ([0], "labels"),
        ("Ant", "'Ant' is no class"),
    ],
)
def test_a_label_that_is_no_class(out, label, words):
    with sl.Writer(out, classes=["ant", "bee"], **AS_THEY_ARE) as writer:
        writer.add("right", pixels(0), "bee")
        with pytest.raises(sl.InvalidArgumentError, match=words):
            writer.add("odd", pixels(0), label)
    assert_stored(out, {"right": pixels(0)}, {"right": 1})


def test_classes_that_come_twice(out):
    with pytest.raises(sl.InvalidArgumentError, match="classes"):
        sl.Writer(out, classes=["a", "b", "a"], **AS_THEY_ARE)


def test_large_labels_stay_whole(out):
    numbers = {"a": 2**63 - 1, "b": -(2**63), "c": 2**53 + 1}
    with sl.Writer(out, **AS_THEY_ARE) as writer:
        for key, number in numbers.items():
            writer.add(key, pixels(0), number)
        with pytest.raises(sl.InvalidArgumentError, match="labels"):
            writer.add("d", pixels(0), 2**63)
    assert_stored(out, dict.fromkeys(numbers, pixels(0)), numbers)


@pytest.mark.parametrize("name", ["key", "image", "label"])
def test_a_column_with_the_name_of_an_argument(out, name):
    with pytest.raises(sl.InvalidArgumentError, match=f"column '{name}' has the name of an argument"):
        sl.Writer(out, columns={name: "int64"}, **AS_THEY_ARE)


@pytest.mark.parametrize("name", ["images", "keys", "checksums", "x" * 300, ""])
def test_a_column_with_a_name_of_the_format(out, name):
    with sl.Writer(out, **AS_THEY_ARE) as writer:
        with pytest.raises(sl.InvalidArgumentError, match="column name"):
            writer.add("odd", pixels(0), **{name: 1})
        writer.add("right", pixels(0))
    assert_stored(out, {"right": pixels(0)})


# --- images -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "image",
    [
        b"",
        b"no picture",
        bytearray(b"\x89PNG"),
        np.zeros(0, np.uint8),
        memoryview(b"x"),
        "/nowhere/1.png",
        os.devnull,
    ],
)
def test_an_image_that_cannot_be_decoded_is_a_reject(out, image):
    with sl.Writer(out, **AS_THEY_ARE) as writer:
        writer.add("right", pixels(0), 3)
        writer.add("odd", image, 4)
    assert_stored(out, {"right": pixels(0)}, {"right": 3})
    assert list(rejects(out)) == ["odd"] and rejects(out)["odd"]


@pytest.mark.parametrize(
    "image",
    [
        None,
        5,
        [],
        [[1, 2], [3, 4]],
        np.zeros((3, 8, 8), np.uint8),
        np.zeros((8, 8, 2), np.uint8),
        np.zeros((2, 8, 8, 3), np.uint8),
        np.zeros((0, 8, 3), np.uint8),
        np.zeros((8, 8, 3)),
        np.zeros((8, 8), bool),
        object(),
    ],
)
def test_an_image_that_is_none_is_an_error(out, image):
    with sl.Writer(out, **AS_THEY_ARE) as writer:
        writer.add("right", pixels(0))
        with pytest.raises(sl.InvalidArgumentError, match="'odd': the image is"):
            writer.add("odd", image)
    assert_stored(out, {"right": pixels(0)})


@pytest.mark.parametrize("mode", ["I;16", "I", "F"])
def test_an_image_of_pillow_that_rgb_cannot_hold(out, mode):
    Image = pytest.importorskip("PIL.Image")
    with sl.Writer(out, **AS_THEY_ARE) as writer:
        writer.add("right", pixels(0))
        with pytest.raises(sl.InvalidArgumentError, match=f"'odd': the image of Pillow has mode {mode}"):
            writer.add("odd", Image.new(mode, (SIDE, SIDE), 1000))
    assert_stored(out, {"right": pixels(0)})


def test_images_of_pillow_in_other_modes(out):
    Image = pytest.importorskip("PIL.Image")
    picture = Image.fromarray(pixels(0))
    modes = ("RGB", "L", "1", "P", "RGBA", "LA", "CMYK", "YCbCr")
    with sl.Writer(out, **AS_THEY_ARE) as writer:
        for mode in modes:
            writer.add(mode, picture.convert(mode))
    assert_stored(out, {mode: np.asarray(picture.convert(mode).convert("RGB")) for mode in modes})


def test_arrays_in_any_memory_layout(out):
    wide = np.random.default_rng(0).integers(0, 256, (2 * SIDE, 2 * SIDE, 4), np.uint8)
    views = {
        "strided": wide[::2, 1::2, :3],
        "turned": wide[:SIDE, :SIDE, :3].transpose(1, 0, 2),
        "reversed": wide[SIDE - 1 :: -1, :SIDE, 2::-1],
        "fortran": np.asfortranarray(pixels(1)),
    }
    with sl.Writer(out, **AS_THEY_ARE) as writer:
        for key, view in views.items():
            writer.add(key, view)
    assert_stored(out, views)


def test_arrays_that_are_changed_after_they_were_added(out):
    image, column = pixels(0), np.zeros(3, np.float32)
    with sl.Writer(out, jobs=1, **AS_THEY_ARE) as writer:
        for i in range(20):
            image[:], column[:] = i, i
            writer.add(str(i), image, i, column=column)
    data = assert_stored(out, {str(i): np.full((SIDE, SIDE, 3), i, np.uint8) for i in range(20)})
    assert all(data.fields[i]["column"].tolist() == [i] * 3 for i in range(20))


def test_byte_orders(out):
    with sl.Writer(out) as writer:
        writer.add("big", np.arange(6, dtype=">f4").reshape(2, 3), id=np.array([1, 2], ">i8"))
        writer.add("little", np.arange(6, dtype="<f4").reshape(2, 3), id=np.array([3, 4], "<i8"))
    data = assert_stored(out, dict.fromkeys(("big", "little"), np.arange(6, dtype=np.float32).reshape(2, 3)))
    assert data.fields[0]["id"].tolist() == [1, 2]


@pytest.mark.parametrize(
    "array",
    [
        np.zeros((2, 4), np.float32),
        np.zeros((2, 3)),
        np.zeros((2, 3), np.int32),
        np.zeros(6, np.float32),
        b"bytes",
        "path",
        np.zeros((2, 3), np.uint8),
    ],
)
def test_an_array_unlike_the_others(out, array):
    with sl.Writer(out) as writer:
        writer.add("right", np.ones((2, 3), np.float32))
        with pytest.raises(
            sl.InvalidArgumentError,
            match=r"'odd': the sample is .*, but those of this data set are (arrays, )?float32 \[2, 3\]",
        ):
            writer.add("odd", array)
    assert_stored(out, {"right": np.ones((2, 3), np.float32)})


@pytest.mark.parametrize(
    "options",
    [
        {"resize": 40},
        {"crop": 8},
        {"normalize": "clip"},
        {"dtype": "float16"},
        {"mean": [0, 0, 0], "std": [1, 1, 1]},
    ],
)
def test_options_of_images_are_not_dropped_for_arrays(out, options):
    with pytest.raises(sl.InvalidArgumentError, match=f"{', '.join(options)} (is|are) for images"):
        sl.Writer(out, sample=("float32", 2, 3), **options)
    with sl.Writer(out, **{**AS_THEY_ARE, **options, "samples_per_shard": 3}) as writer:
        with pytest.raises(sl.InvalidArgumentError, match="for images: leave that out, or give uint8 pixels"):
            writer.add("odd", np.zeros((8, 8, 3), np.float32))
        writer.add("right", np.zeros((SIDE, SIDE, 3), np.uint8))
    assert len(sl.Dataset(out)) == 1


def test_one_channel_of_pixels_that_have_three(out):
    """Where samples keep their channels, pixels have as many, or are a reject; never another channel."""
    gray = np.random.default_rng(1).integers(0, 256, (SIDE, SIDE), np.uint8)
    with sl.Writer(
        out,
        channels=1,
        dtype="uint8",
        layout="nhwc",
        **{k: v for k, v in AS_THEY_ARE.items() if k != "preset"},
    ) as writer:
        writer.add("gray", gray)
        writer.add("colour", pixels(0))
    data = sl.Dataset(out)
    assert (
        list(data.keys) == ["gray"]
        and list(rejects(out)) == ["colour"]
        and "3 channels" in rejects(out)["colour"]
    )
    assert np.array_equal(np.asarray(data[0][0]).reshape(SIDE, SIDE), gray)


def test_rows_that_are_text(out):
    for rows in (["ab", "cd"], [b"ab"]):
        with pytest.raises(sl.InvalidArgumentError, match="row 0 is a (str|bytes); expected"):
            sl.write(rows, out, **AS_THEY_ARE)
    assert not (out / "dataset.json").exists()


def test_rows_whose_iterator_fails(out):
    def rows():
        yield "0", pixels(0)
        raise OSError("the source is gone")

    with pytest.raises(OSError, match="the source is gone"):
        sl.write(rows(), out, **AS_THEY_ARE)
    assert not (out / "dataset.json").exists()


@pytest.mark.parametrize("declared", [{}, {"columns": {"labels": "int64"}}])
def test_the_first_row_decides_whether_rows_have_labels(out, declared):
    with sl.Writer(out, **declared, **AS_THEY_ARE) as writer:
        writer.add("a", pixels(0), 5)
        with pytest.raises(sl.InvalidArgumentError, match="'c' has no label, but the first row .* has one"):
            writer.add("c", pixels(2))
        writer.add("b", pixels(1), 7)
    assert_stored(out, {"a": pixels(0), "b": pixels(1)}, {"a": 5, "b": 7})
    with sl.Writer(out.with_name("none"), **declared, **AS_THEY_ARE) as writer:
        writer.add("a", pixels(0))
        with pytest.raises(sl.InvalidArgumentError, match="'b' has a label, but the first row .* has none"):
            writer.add("b", pixels(1), 0)
        writer.add("c", pixels(2))
    assert_stored(out.with_name("none"), {"a": pixels(0), "c": pixels(2)}, {"a": 0, "c": 0})


@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("columns", [{}, {"labels": ("float32", 2)}])
def test_labels_that_are_vectors_are_finite(out, columns, odd):
    with sl.Writer(out, columns={**columns, "angle": "float32"}, **AS_THEY_ARE) as writer:
        writer.add("a", pixels(0), [1, 2], angle=np.nan)  # a column may hold it
        with pytest.raises(sl.InvalidArgumentError, match="'b': the label has -?(nan|inf): expected finite"):
            writer.add("b", pixels(1), [1, odd], angle=0)
    assert sl.Dataset(out).keys[:] == ["a"]


def masked(values, at):
    array = np.ma.array(values)
    array[at] = np.ma.masked
    return array


def test_what_a_mask_hides_is_not_stored(out):
    with sl.Writer(
        out,
        columns={"box": sl.Ragged("float32", 2), "far": sl.ImageField("uint16", 2, 2, 1)},
        **AS_THEY_ARE,
    ) as writer:
        good = {
            "image": pixels(0),
            "label": 1,
            "box": np.zeros((1, 2)),
            "far": np.zeros((2, 2, 1), np.uint16),
        }
        for name, value in (
            ("image", masked(pixels(0), (0, 0, 0))),
            ("label", masked([3], 0)[0]),
            ("label", masked(np.array(3), ())),
            ("box", masked(np.zeros((1, 2)), 0)),
            ("box", [masked(np.zeros(2), 0)]),
            ("far", masked(good["far"], 0)),
        ):
            with pytest.raises(
                sl.InvalidArgumentError, match=r"hides \d+ of \d+ values: fill it, x.filled\(0\)"
            ):
                writer.add("a", **{**good, name: value})
        writer.add(
            "b", **{**good, "image": np.ma.array(pixels(1)), "box": np.ma.zeros((1, 2))}
        )  # it hides nothing
    assert_stored(out, {"b": pixels(1)}, {"b": 1})
    with sl.Writer(out.with_name("tensors")) as writer:
        with pytest.raises(sl.InvalidArgumentError, match="hides 1 of 4 values"):
            writer.add("a", masked(np.zeros(4, np.float32), 0))
        writer.add("b", np.zeros(4, np.float32))
    with pytest.raises(sl.InvalidArgumentError, match="indices is a masked array"):
        sl.Dataset(out).select(masked([0], 0))


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"key": "a", "img": 1}, "row 1 has no 'image'; it has 'key', 'img'; expected a dict with"),
        ({}, "row 1 has no 'key'; it has nothing"),
        ({"key": "a", "image": pixels(0), 3: 1}, "row 1 has a column 3"),
        ({"key": "a", "image": pixels(0), "self": 1}, "row 1 has a column 'self'"),
        (1, "row 1 is a int; expected a dict with 'key' and 'image', or a tuple"),
        ("a", "row 1 is a str; expected"),
        (("a",), "row 1 is a tuple of 1; expected"),
        (("a", pixels(0), 3, 4), "row 1 is a tuple of 4; expected .* further columns need a dict"),
    ],
)
def test_a_row_of_another_form_is_named(out, row, words):
    with pytest.raises(sl.InvalidArgumentError, match=words):
        sl.write([("first", pixels(0)), row], out, **AS_THEY_ARE)


@pytest.mark.parametrize("axis", [-1, 0, 2.5, 2**70])
def test_an_axis_of_another_length_is_named(out, axis):
    for make in (
        lambda: sl.Writer(out, columns={"x": ("float32", axis)}),
        lambda: sl.Ragged("float32", axis),
        lambda: sl.Writer(out, sample=("float32", axis)),
    ):
        with pytest.raises(
            sl.InvalidArgumentError, match="an axis of .* is .*; expected a whole number from 1"
        ):
            make()
    if axis != 0:
        with pytest.raises(sl.InvalidArgumentError, match=r"an axis of ImageField\(\) is"):
            sl.ImageField("uint8", axis, 4, 3)
