"""A data set as one Parquet file, through pyarrow (pip install "shardloader[parquet]")."""

from __future__ import annotations

import fcntl
import io
import json
import os
from collections.abc import Callable, Sequence
from typing import Any

from ._base import check
from ._base.numpy import np
from ._dataset import Dataset
from ._errors import InvalidArgumentError


def _floats(values: Any, dtype: str) -> Any:
    """numpy and Arrow have no bfloat16: the same numbers as float32."""
    if dtype != "bfloat16":
        return values
    values = np.asarray(values)
    return (
        (values.astype(np.uint32) << 16).view(np.float32)
        if values.dtype == np.uint16
        else values.astype(np.float32)
    )


def _npy(image: Any, dtype: str) -> bytes:
    file = io.BytesIO()
    np.save(file, np.ascontiguousarray(_floats(image, dtype)), allow_pickle=False)
    return file.getvalue()


def _type(pyarrow: Any, field: Any) -> Any:
    if field.kind == "text":
        return pyarrow.string()
    element = pyarrow.from_numpy_dtype(np.float32 if field.dtype == "bfloat16" else np.dtype(field.dtype))
    for extent in reversed(field.shape):
        element = pyarrow.list_(element, extent)
    return pyarrow.list_(element) if field.kind == "ragged" else element


def _parquet_columns(pyarrow: Any, data: Dataset, named: Sequence[str], images: Sequence[str]) -> list[Any]:
    fields = [
        ("key", pyarrow.string()),
        ("image", pyarrow.binary()),
        ("label", _type(pyarrow, data.fields["label"])),
    ]
    if data.classes:
        fields.append(("class", pyarrow.string()))
    for name in named:
        if any(name == taken for taken, _ in fields):
            raise InvalidArgumentError(f"the column {name!r} has the name of another one in the file")
        fields.append((name, _type(pyarrow, data.fields[name])))
    for name in images:
        if any(name == taken for taken, _ in fields):
            raise InvalidArgumentError(f"the image {name!r} has the name of another column in the file")
        fields.append((name, pyarrow.binary()))
    return fields


def to_parquet(
    data: Dataset | str | os.PathLike[str],
    path: str | os.PathLike[str],
    *,
    batch_size: int = 256,
    compression: str = "zstd",
    progress: Callable[[int, int], None] | None = None,
) -> None:
    """Writes a data set as a Parquet file: a row for each sample, in their order, with the columns

        key      string
        image    binary: the stored sample as an .npy file, numpy.load(io.BytesIO(...)); bfloat16 as float32
        label    int64, or a list of float32
        class    string, if the labels are classes with names
        NAME     each further image, as `image`
        NAME     each further column: numbers, lists of a fixed size, lists (ragged), or strings

    path: must not exist. It appears when it is complete: until then it is ".NAME.part" beside it, which a run
    that was killed leaves and the next one replaces. batch_size: rows in memory, and of a row group.
    progress: is called with the rows written and all of them.
    Errors: ImportError (no pyarrow), InvalidArgumentError (path exists, is being written by another process,
    or a column has the name of another one).
    """
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError('Parquet needs pyarrow: pip install "shardloader[parquet]"') from error
    data = data if isinstance(data, Dataset) else Dataset(data)
    path = check.path("path", path)
    if os.path.lexists(path):
        raise InvalidArgumentError(f"{path} exists: name a file that does not")
    if batch_size < 1:
        raise InvalidArgumentError(f"batch_size is {batch_size}; it must be at least 1")
    named = data.columns[1:]
    images = list(data.info["images"])
    fields = _parquet_columns(pyarrow, data, named, images)
    facts = {
        "sample": f"{data.dtype} {list(data.shape)} {data.layout}",
        "mean": data.mean,
        "std": data.std,
        "classes": data.classes,
    }
    schema = pyarrow.schema(fields, metadata={"shardloader": json.dumps(facts)})

    def value(row: int, name: str) -> Any:
        found = data._value(row, name)
        return found if isinstance(found, str) else _floats(found, data.fields[name].dtype).tolist()

    labels = data.labels
    part = os.path.join(os.path.dirname(path), f".{os.path.basename(path)}.part")
    with open(part, "ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise InvalidArgumentError(f"{path} is being written by another process") from error
        try:
            file.truncate(0)
            with pyarrow.parquet.ParquetWriter(file, schema, compression=compression) as writer:
                for begin in range(0, len(data), batch_size):
                    rows = range(begin, min(begin + batch_size, len(data)))
                    columns = {
                        "key": [data.keys[row] for row in rows],
                        "image": [_npy(data[row][0], data.dtype) for row in rows],
                        "label": labels[rows.start : rows.stop].tolist(),
                    }
                    if data.classes:
                        columns["class"] = [data.classes[label] for label in columns["label"]]
                    for name in named:
                        columns[name] = [value(row, name) for row in rows]
                    for name in images:
                        columns[name] = [_npy(data.image(name, row), data.fields[name].dtype) for row in rows]
                    writer.write_table(
                        pyarrow.Table.from_pydict(columns, schema=schema), row_group_size=batch_size
                    )
                    if progress is not None:
                        progress(rows.stop, len(data))
            file.flush()
            os.fsync(file.fileno())
            try:
                os.link(part, path)  # never replaces
            except FileExistsError:
                raise InvalidArgumentError(f"{path} exists: name a file that does not") from None
            except OSError:  # a file system without hard links
                os.rename(part, path)
        finally:
            if os.path.lexists(part):
                os.unlink(part)
