"""sl.to_parquet and python -m shardloader export."""

import io
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import shardloader as sl

pytest.importorskip("pyarrow", reason="pyarrow is not installed")
import pyarrow.parquet

COUNT = 11


@pytest.fixture
def data(tmp_path):
    columns = {
        "caption": sl.Text,
        "boxes": sl.Ragged("float32", 4),
        "ids": sl.Ragged("int64"),
        "emb": ("float16", 3),
        "angle": "float64",
    }
    with sl.Writer(
        tmp_path / "out", resize=16, crop=16, dtype="uint8", classes=["ant", "bee"], columns=columns
    ) as writer:
        for i in range(COUNT):
            image = np.random.default_rng(i).integers(0, 256, (16, 16, 3), np.uint8)
            writer.add(
                f"k/{i:03}",
                image,
                i % 2,
                caption="ä" * i,
                boxes=np.full((i % 3, 4), i, np.float32),
                ids=np.arange(i % 4),
                emb=np.full(3, i / 8, np.float16),
                angle=i / 3,
            )
    return sl.Dataset(tmp_path / "out")


def test_a_row_has_what_the_sample_has(data, tmp_path):
    sl.to_parquet(data, tmp_path / "x.parquet", batch_size=4)
    file = pyarrow.parquet.ParquetFile(tmp_path / "x.parquet")
    assert file.num_row_groups == 3
    rows = file.read().to_pylist()
    assert [row["key"] for row in rows] == list(data.keys) and [
        row["label"] for row in rows
    ] == data.labels.tolist()
    assert [row["class"] for row in rows] == ["ant", "bee"] * 5 + ["ant"]
    for i, row in enumerate(rows):
        fields = data.fields[i]
        assert np.array_equal(np.load(io.BytesIO(row["image"])), fields["image"])
        assert row["caption"] == fields["caption"] and row["angle"] == fields["angle"]
        assert (
            row["boxes"] == fields["boxes"].tolist()
            and row["ids"] == fields["ids"].tolist()
            and row["emb"] == fields["emb"].tolist()
        )
    again = tmp_path / "again"
    with sl.Writer(
        again, resize=16, crop=16, dtype="uint8", classes=["ant", "bee"], columns={"caption": sl.Text}
    ) as writer:
        for row in rows:
            writer.add(
                row["key"],
                np.load(io.BytesIO(row["image"])).transpose(1, 2, 0)
                if data.layout == "nchw"
                else np.load(io.BytesIO(row["image"])),
                row["label"],
                caption=row["caption"],
            )
    assert all(np.array_equal(sl.Dataset(again)[i][0], data[i][0]) for i in range(COUNT))


def test_a_part_and_refusals(data, tmp_path):
    sl.to_parquet(data.select([1, 5]), tmp_path / "part.parquet")
    assert pyarrow.parquet.read_table(tmp_path / "part.parquet")["key"].to_pylist() == ["k/001", "k/005"]
    with pytest.raises(ValueError, match="part.parquet exists"):
        sl.to_parquet(data, tmp_path / "part.parquet")
    with pytest.raises(ValueError, match="batch_size is 0"):
        sl.to_parquet(data, tmp_path / "no.parquet", batch_size=0)

    def fail(done, of):
        raise KeyError(done)

    with pytest.raises(KeyError):
        sl.to_parquet(data, tmp_path / "no.parquet", progress=fail)
    assert sorted(os.listdir(tmp_path)) == ["out", "part.parquet"]


def test_the_program(data, tmp_path):
    command = [
        sys.executable,
        "-m",
        "shardloader",
        "export",
        str(tmp_path / "out"),
        "--parquet",
        str(tmp_path / "x.parquet"),
    ]
    assert subprocess.run(command, check=True, capture_output=True, text=True).stdout.endswith(
        f"x.parquet: {COUNT} samples\n"
    )
    assert pyarrow.parquet.read_metadata(tmp_path / "x.parquet").num_rows == COUNT
    again = subprocess.run(command, capture_output=True, text=True, check=False)
    assert again.returncode == 2 and "exists" in again.stderr


def test_a_kill_leaves_no_half_of_a_file(data, tmp_path):
    code = (
        "import sys, time, shardloader as sl; sl.to_parquet(sys.argv[1], sys.argv[2], batch_size=1, "
        "progress=lambda *_: (print(flush=True), time.sleep(60)))"
    )
    path = tmp_path / "x.parquet"
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path / "out"), str(path)], stdout=subprocess.PIPE
    ) as process:
        process.stdout.readline()
        with pytest.raises(ValueError, match="written by another process"):
            sl.to_parquet(data, path)
        process.send_signal(signal.SIGKILL)
    time.sleep(0.1)
    assert not path.exists()
    sl.to_parquet(data, path)
    assert pyarrow.parquet.read_metadata(path).num_rows == COUNT
    assert sorted(os.listdir(tmp_path)) == ["out", "x.parquet"]
