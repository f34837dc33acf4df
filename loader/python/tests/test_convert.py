import filecmp
import sys
import types

import numpy as np
import pytest

import shardloader as sl
from conftest import EACH, SAMPLES, make_images


def test_the_same_options_give_the_same_bytes(images, folder, tmp_path):
    told = []
    result = sl.convert(images, tmp_path / "out", preset="train", resize=32, crop=(32, 32), samples_per_shard=8, jobs=1,
                        progress=lambda *counts: told.append(counts))
    assert result.complete and (result.samples, result.rejects, result.shards, result.converted) == (SAMPLES, 0, 8, SAMPLES)
    assert told[-1] == (SAMPLES, SAMPLES, 0)
    same, different, missing = filecmp.cmpfiles(folder, tmp_path / "out", [f"shard-{i:05}.safetensors" for i in range(8)], False)
    assert (len(same), different, missing) == (8, [], [])
    again = sl.convert(images, tmp_path / "out", preset="train", resize=32, crop=32, samples_per_shard=8)
    assert again.was_complete and again.converted == 0


def test_rejects_are_counted_and_can_end_it(tmp_path):
    images = make_images(tmp_path / "images", each=2)
    (images / "bee" / "bad.png").write_bytes(b"no picture")
    assert sl.convert(images, tmp_path / "out", resize=8, crop=8).rejects == 1
    assert sl.Dataset(tmp_path / "out").info["rejects"] == 1
    with pytest.raises(RuntimeError, match="bad.png"):
        sl.convert(images, tmp_path / "other", resize=8, crop=8, on_error="fail")


def test_sizes_and_values(images, tmp_path):
    sl.convert(images, tmp_path / "out", squash=(12, 20), dtype="float32", layout="nhwc", mean=(0, 0, 0), std=(1, 0.5, 1), overwrite=True)
    data = sl.Dataset(tmp_path / "out")
    assert data.shape == (12, 20, 3) and data.dtype == "float32" and data.std == (1, 0.5, 1)
    assert 1 < np.max(data[0][0]) <= 2


@pytest.mark.parametrize(
    ("options", "error", "piece"),
    [
        ({"preset": "fast"}, ValueError, "--preset 'fast'"),
        ({"crop": "x"}, ValueError, "--crop"),
        ({"crop": (1, 2, 3)}, ValueError, "height, width"),
        ({"dtype": "int8"}, ValueError, "--dtype 'int8'"),
        ({"codec": "lz4"}, ValueError, "--codec"),
        ({"jobs": -1}, ValueError, "jobs is -1"),
        ({"rank": 0}, ValueError, "go together"),
        ({"batch_size": 3}, TypeError, "no option 'batch_size'"),
        ({"jobs": "2"}, TypeError, "integer"),
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


def test_what_progress_raises_ends_it(tmp_path, images):
    def progress(*counts):
        raise LookupError("enough")

    with pytest.raises(LookupError, match="enough"):
        sl.convert(images, tmp_path / "out", progress=progress)


def test_the_bar_is_tqdms_where_there_is_one(tmp_path, images, monkeypatch):
    bars = []

    class Bar:
        def __init__(self, total, **_):
            self.n, self.total, self.closed = 0, total, False
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
