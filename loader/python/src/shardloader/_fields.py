"""What a sample has beside its image: columns of one row, ragged ones, and text."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ._base import check
from ._base.arrays import name_of
from ._base.numpy import np
from ._errors import InvalidArgumentError

_SHORT = {
    "bool": "bool",
    "uint8": "u8",
    "int8": "i8",
    "uint16": "u16",
    "int16": "i16",
    "float16": "f16",
    "bfloat16": "bf16",
    "uint32": "u32",
    "int32": "i32",
    "float32": "f32",
    "uint64": "u64",
    "int64": "i64",
    "float64": "f64",
}
_LONG = {short: long for long, short in _SHORT.items()}


def _short_dtype(dtype: Any) -> str:
    name = name_of(dtype)
    name = _SHORT.get(name, name)
    if name not in _LONG:
        raise InvalidArgumentError(f"dtype {dtype!r} is not known; expected one of {', '.join(_SHORT)}")
    return name


class Field(NamedTuple):
    """One value of a sample. kind: "image", "mask" (class ids), "fixed" (an array of `shape`), "ragged" (any
    number of rows of `shape`) or "text"."""

    kind: str
    dtype: str
    shape: tuple[int, ...]


class _TextType:
    """The type of a text column."""

    def __repr__(self) -> str:
        return "shardloader.Text"

    def __reduce__(self) -> str:
        return "Text"


#: The type of a column of text, for convert(columns=...): UTF-8 of any length.
Text = _TextType()


class Ragged:
    """The type of a column with any number of rows for each sample: `Ragged("float32", 4)` for boxes,
    `Ragged("int64")` for numbers."""

    def __init__(self, dtype: Any, *shape: int) -> None:
        self.dtype, self.shape = (
            _LONG[_short_dtype(dtype)],
            tuple(check.axis("an axis of Ragged()", extent) for extent in shape),
        )

    def __repr__(self) -> str:
        return f"shardloader.Ragged({self.dtype!r}{''.join(f', {extent}' for extent in self.shape)})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ragged) and (self.dtype, self.shape) == (other.dtype, other.shape)

    def __hash__(self) -> int:
        return hash((self.dtype, self.shape))


class ImageField:
    """The type of a further image of each sample, which a Writer stores as it is given:
    a mask, depth, a latent.

        columns={"mask": sl.ImageField("uint8", 224, 224, 1, role="mask", codec="packed"),
                 "depth": sl.ImageField("uint16", 224, 224, 1),
                 "latent": sl.ImageField("float16", 4, 64, 64, layout="nchw"),
                 "right": sl.ImageField("uint8", None, None, 3)}

    dtype, shape: of one sample, in C order, one to four axes. With None for both rows and columns, of "nhwc"
        or "nchw", each sample has its own size, a mask that of its image as stored.
    layout: "nhwc" [row, column, channel], "nchw" [channel, row, column], or "tensor": axes without a meaning,
        of any dtype. Default: "nhwc" for three axes, else "tensor".
    role: "image", whose values may be interpolated, or "mask": class ids, uint8 or uint16 of one channel.
    codec: "none", "zstd", "zstd:LEVEL", "packed" (uint8 of up to four channels, not tensors), or "jpeg" or
        "jpeg:QUALITY" (1 to 100, default 95; uint8 "nhwc" of one or three channels, no mask), which is lossy:
        what is stored and read is the decoded JPEG.
    mean, std: of three channels, or of each one; recorded only, to be applied after loading.
    """

    def __init__(
        self,
        dtype: Any,
        *shape: int | None,
        layout: str | None = None,
        role: str = "image",
        codec: str = "none",
        mean: Sequence[float] | None = None,
        std: Sequence[float] | None = None,
    ) -> None:
        self.dtype = _LONG[_short_dtype(dtype)]
        self.shape = tuple(
            None if extent is None else check.axis("an axis of ImageField()", extent, 0) for extent in shape
        )
        self.layout = layout if layout is not None else "nhwc" if len(self.shape) == 3 else "tensor"
        self.role, self.codec = role, codec
        self.mean = None if mean is None else [float(value) for value in mean]
        self.std = None if std is None else [float(value) for value in std]
        if role not in ("image", "mask") or self.layout not in ("nhwc", "nchw", "tensor"):
            raise InvalidArgumentError(
                f'role {role!r}, layout {self.layout!r}: expected role "image" or "mask", layout "nhwc", '
                '"nchw" or "tensor"'
            )
        rows = 1 if self.layout == "nchw" else 0
        if (None in self.shape or self.shape[rows : rows + 2] == (0, 0)) and not self._any_size:
            raise InvalidArgumentError(
                f"shape {list(self.shape)} of layout {self.layout!r}: samples of any size have None for rows "
                "and columns and for no other axis: (None, None, channels) of 'nhwc', or (channels, None, "
                "None) of 'nchw'"
            )

    @property
    def _any_size(self) -> bool:
        """Each sample has its own rows and columns."""
        sides = {"nhwc": self.shape[:2], "nchw": self.shape[1:], "tensor": ()}[self.layout]
        return sides == (None, None) and len(self.shape) == 3 and self.shape.count(None) == 2

    @property
    def _shape_text(self) -> str:
        return f"[{', '.join('any' if extent is None else str(extent) for extent in self.shape)}]"

    def _fits(self, shape: tuple[int, ...]) -> bool:
        return len(shape) == len(self.shape) and all(
            there > 0 if wanted is None else there == wanted for there, wanted in zip(shape, self.shape)
        )

    def _size(self, shape: tuple[int, ...]) -> tuple[int, int]:
        """Rows and columns of a sample of any size; else 0, 0."""
        if not self._any_size:
            return 0, 0
        return shape[1:] if self.layout == "nchw" else shape[:2]  # type: ignore[return-value]

    def __repr__(self) -> str:
        return (
            f"shardloader.ImageField({self.dtype!r}, {', '.join(map(str, self.shape))}, "
            f"layout={self.layout!r}, role={self.role!r}, codec={self.codec!r})"
        )

    def _for_core(self, name: str) -> tuple[Any, ...]:
        return (
            name,
            self.role,
            _SHORT[self.dtype],
            self.layout,
            [0 if extent is None else extent for extent in self.shape],
            self.mean,
            self.std,
            self.codec,
        )


def column_text(name: str, kind: Any) -> str:
    """NAME:TYPE, as the program takes it. kind: Text, Ragged(...), a dtype, or (dtype, extent, ...)."""
    if kind is Text or kind is str:
        return f"{name}:text"
    if isinstance(kind, Ragged):
        return f"{name}:{_short_dtype(kind.dtype)}[{''.join(f',{extent}' for extent in kind.shape)}]"
    if isinstance(kind, tuple):
        return f"{name}:{_short_dtype(kind[0])}" + (
            f"[{','.join(str(check.axis(f'an axis of column {name!r}', extent)) for extent in kind[1:])}]"
            if len(kind) > 1
            else ""
        )
    return f"{name}:{_short_dtype(kind)}"


class RaggedArray(Sequence["np.ndarray[Any, Any]"]):
    """A ragged column of many samples. array[i]: the rows of sample i.
    values: the rows of all samples, one after the other.
    offsets: int64 [samples + 1], where those of each sample begin. counts: int64 [samples]."""

    def __init__(self, values: np.ndarray[Any, Any], offsets: np.ndarray[Any, Any]) -> None:
        self.values, self.offsets = values, offsets

    @property
    def counts(self) -> np.ndarray[Any, Any]:
        return np.diff(self.offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        at = index + len(self) if index < 0 else index
        if not 0 <= at < len(self):
            raise IndexError(f"sample {index} of {len(self)}; expected 0 to {len(self) - 1}")
        return self.values[self.offsets[at] : self.offsets[at + 1]]


def delivered_names(data: Any, flat: Sequence[str]) -> tuple[tuple[str, ...], frozenset[str]]:
    """The names of what Batch.column() has, and those of them that are text."""
    names: list[str] = []
    for name in data.columns:
        names.append(name)
        if data.fields["label" if name == "labels" else name].kind == "ragged":
            names.append(name + ("_offsets" if name in flat else "_counts"))
    return tuple(names), frozenset(name for name, kind in data._info["kinds"].items() if kind[0] == "text")


class Fields(Mapping[str, Field]):
    """The fields of a data set by name, first "image" and "label", then the further columns and images.
    fields[name] describes one of them, and fields[i] has those of sample i: a dict of the image, the label,
    for each column an array, or a str if it is text, and for each further image an array."""

    def __init__(self, data: Any) -> None:
        self._data = data

    def __iter__(self) -> Iterator[str]:
        return iter(("image", "label", *self._data.columns[1:], *self._data._info["images"]))

    def __len__(self) -> int:
        return 1 + len(self._data.columns) + len(self._data._info["images"])

    def __getitem__(self, name: str | int | os.PathLike[str]) -> Any:
        data = self._data
        if not isinstance(name, str):
            image, label = data[name]
            at = int(name) + len(data) if int(name) < 0 else int(name)  # type: ignore[arg-type]
            columns = {column: data._value(at, column) for column in data.columns[1:]}
            return {
                "image": image,
                "label": label,
                **columns,
                **{image: data.image(image, at) for image in data._info["images"]},
            }
        if name == "image":
            return Field("image", data.dtype, tuple(data.shape))
        if name in data._info["images"]:
            role, dtype, shape = data._info["images"][name]
            return Field(role, _LONG[dtype], shape)
        kind, dtype, shape = data._info["kinds"]["labels" if name == "label" else name]
        return Field(kind, _LONG[dtype], shape)
