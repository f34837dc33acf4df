"""Data sets: samples, labels and keys by index."""

from __future__ import annotations

import operator
import os
from collections.abc import Sequence
from typing import Any, NamedTuple, TypedDict, Union, cast

import numpy as np

from . import _core
from ._arrays import DTYPES, to_numpy
from ._errors import CorruptError


class Finding(NamedTuple):
    """One problem that Dataset.verify() found."""

    file: str  #: the shard's name
    sample: int  #: inside the shard; -1: the shard as a whole
    message: str

    def __str__(self) -> str:
        return f"{self.file}: {self.message}" if self.sample < 0 else f"{self.file}: sample {self.sample}: {self.message}"


class _Info(TypedDict):
    """dataset.json, and `folder`."""

    folder: str
    samples: int
    dtype: str
    layout: str
    shape: tuple[int, int, int]
    mean: tuple[float, float, float]
    std: tuple[float, float, float]
    codec: str
    fingerprint: str
    inputs: int
    rejects: int
    pipeline: dict[str, str]
    classes: tuple[str, ...]
    columns: tuple[str, ...]
    shards: tuple[tuple[str, int], ...]


class Keys(Sequence[str]):
    """The keys of all samples (relative source paths). They are read when they are accessed."""

    def __init__(self, core: Any) -> None:
        self._core = core

    def __len__(self) -> int:
        return len(self._core)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self._core.key(i) for i in range(*index.indices(len(self)))]
        return self._core.key(_position(index, len(self)))

    def __repr__(self) -> str:
        return f"<{len(self)} keys>"


def _position(index: Any, size: int) -> int:
    at = operator.index(index)
    if not -size <= at < size:
        raise IndexError(f"sample {at} of {size}")
    return at + size if at < 0 else at


class Dataset:
    """A folder that shardify made. Opening it reads dataset.json only; shards are mapped read-only at their first use.

    len(data) is the number of samples, and data[i] is (array, label), see __getitem__. Several threads may use it. It can be used
    after fork(), and pickled by its absolute path, which the other side opens.

    Raises NotFoundError (a FileNotFoundError) if there is no finished data set, CorruptError if files do not match dataset.json,
    IoError.
    """

    def __init__(self, path: Union[str, "os.PathLike[str]"]) -> None:
        self._path = os.path.abspath(os.fspath(path))
        self._core = _core.Dataset(self._path)
        self._info = cast(_Info, self._core.info())
        self._info["folder"] = self._path
        self._info["dtype"] = DTYPES[self._info["dtype"]]

    def __len__(self) -> int:
        return self._info["samples"]

    def __getitem__(self, index: int) -> tuple[np.ndarray[Any, Any], Any]:
        """(array, label) of a sample. Negative indices count from the end. IndexError beyond the ends.

        array: `shape` and `dtype` of the data set, in C order. Codec none: a read-only view of the mapped file without a copy;
            bytes are read from storage when they are accessed. Other codecs: a decoded copy. The array stays valid after the
            data set is gone. bfloat16 is that of ml_dtypes if it is installed, else the bits as uint16.
        label: an int (position in `classes`), or an array of float32 if the labels come from a table.
        """
        at = _position(index, len(self))
        label: Any = self._core.label(at)
        return to_numpy(self._core.sample(at)), label if isinstance(label, int) else to_numpy(label)

    def __repr__(self) -> str:
        return f"<Dataset {self._path!r}: {len(self)} samples, {self.dtype} {list(self.shape)}, codec {self.codec}>"

    def __reduce__(self) -> Any:
        return (Dataset, (self._path,))

    @property
    def path(self) -> str:
        """The absolute path of the folder."""
        return self._path

    @property
    def shape(self) -> tuple[int, int, int]:
        """Shape of a sample: (channels, rows, columns) or (rows, columns, channels), depending on `layout`."""
        return self._info["shape"]

    @property
    def dtype(self) -> str:
        """Dtype of the stored values: "uint8", "float16", "bfloat16" or "float32"."""
        return self._info["dtype"]

    @property
    def layout(self) -> str:
        """ "nchw" or "nhwc"."""
        return self._info["layout"]

    @property
    def classes(self) -> tuple[str, ...]:
        """Names by label. Empty if the labels come from a table of numbers."""
        return self._info["classes"]

    @property
    def class_to_idx(self) -> dict[str, int]:
        """The label of each class, as in torchvision's ImageFolder."""
        return {name: label for label, name in enumerate(self.classes)}

    @property
    def targets(self) -> list[Any]:
        """All labels as a new list, as in torchvision's data sets. `labels` is the array."""
        return list(self.labels.tolist())

    @property
    def keys(self) -> Keys:
        """Relative source paths of the samples: a sequence that reads them when they are accessed."""
        return Keys(self._core)

    @property
    def mean(self) -> tuple[float, float, float]:
        """Mean of red, green, blue, in units of 0 to 1. Float samples are stored with it applied; for uint8 samples it is
        recorded for the loader."""
        return self._info["mean"]

    @property
    def std(self) -> tuple[float, float, float]:
        """Standard deviation, like `mean`."""
        return self._info["std"]

    @property
    def codec(self) -> str:
        """ "none", "packed" or "zstd:LEVEL"."""
        return self._info["codec"]

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the tensors with one row per sample; "labels" is the first."""
        return self._info["columns"]

    @property
    def info(self) -> dict[str, Any]:
        """The contents of dataset.json: pipeline, fingerprint, inputs, rejects, shards as (file, samples), ..."""
        return dict(self._info)

    @property
    def labels(self) -> np.ndarray[Any, Any]:
        """All labels: int64 [sample], or float32 [sample, k]. A new copy."""
        return self.column("labels")

    def column(self, name: str) -> np.ndarray[Any, Any]:
        """All rows of a column, [sample, ...]; a new copy. KeyError if there is no such column."""
        if name not in self.columns:
            raise KeyError(f"no column {name!r}; there are {', '.join(self.columns)}")
        parts = [to_numpy(self._core.shard_column(shard, name)) for shard in range(len(self._info["shards"]))]
        return np.concatenate(parts)

    def shard_images(self, shard: int) -> np.ndarray[Any, Any]:
        """All samples of one shard, [sample, ...], as a read-only view of the mapping. UnsupportedError if they have a codec."""
        return to_numpy(self._core.shard_images(_position(shard, len(self._info["shards"]))))

    def verify(self, threads: int = 0) -> None:
        """Reads everything; checks every digest, and each label against the classes. threads: 0 means one per core.

        Raises a CorruptError that names the first problems; its `findings` has all of them.
        """
        findings = [Finding(*found) for found in self._core.verify(threads)]
        if findings:
            first = "; ".join(map(str, findings[:3]))
            more = f"; and {len(findings) - 3} more" if len(findings) > 3 else ""
            error = CorruptError(f"{self._path}: {len(findings)} problems: {first}{more}")
            error.findings = findings  # type: ignore[attr-defined]
            raise error
