"""Data sets of images that a program hands over, row by row."""

from __future__ import annotations

import importlib
import operator
import os
import sys
import threading
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from . import _core
from ._base import check, words
from ._base.declare import with_signature
from ._base.numpy import np
from ._convert import Conversion, notes
from ._convert.options import Path, SampleOptions, class_names, for_library
from ._errors import InvalidArgumentError, ShardError
from ._fields import _LONG, _SHORT, ImageField, Ragged, Text, _short_dtype

if TYPE_CHECKING:
    from typing_extensions import Unpack

# Options of convert() that arrays which are stored as they are have no use for.
_OF_IMAGES = (
    "resize",
    "crop",
    "squash",
    "size",
    "longest",
    "shortest",
    "area",
    "multiple",
    "filter",
    "dtype",
    "channels",
    "layout",
    "normalize",
    "mean",
    "std",
    "fast_decode",
)
# Of images that are arrays, where samples keep all their bits.
_PIXELS = ("uint8", "uint16", "int8", "int16", "float16", "float32", "float64")
_MAX_SIDE = 65535
_FLOATS = ("float16", "bfloat16", "float32", "float64")

# sl.Text, sl.Ragged(...), sl.ImageField(...), a dtype, or (dtype, axis, ...).
ColumnKind = Any


class _Column(NamedTuple):
    name: str
    kind: str  # "fixed", "ragged", "text"
    dtype: str  # as numpy spells it
    row_shape: tuple[int, ...]
    declared: bool  # numbers are converted to its dtype; if not, it was taken from the first row

    def __str__(self) -> str:
        if self.kind == "text":
            return "text"
        axes = self.row_shape if self.kind == "fixed" else ("any", *self.row_shape)
        return f"{self.dtype} [{', '.join(map(str, axes))}]"

    def for_core(self) -> tuple[str, str, str, list[int]]:
        return self.name, self.kind, _SHORT[self.dtype], list(self.row_shape)


def _dtype_name(dtype: Any) -> str:
    return _LONG[_short_dtype(dtype)]


def _declared(name: str, kind: ColumnKind) -> _Column:
    if kind is Text or kind is str:
        return _Column(name, "text", "uint8", (), True)
    if isinstance(kind, Ragged):
        return _Column(name, "ragged", kind.dtype, kind.shape, True)
    dtype, *axes = kind if isinstance(kind, (tuple, list)) else (kind,)
    if len(axes) == 1 and isinstance(axes[0], (tuple, list)):
        axes = list(axes[0])
    shape = tuple(check.axis(f"an axis of column {name!r}", axis) for axis in axes)
    return _Column(name, "fixed", _dtype_name(dtype), shape, True)


def _names(classes: Path | Sequence[str] | None) -> list[str] | None:
    if classes is None:
        return None
    given = class_names("classes", classes)
    try:
        names = given["classes"] if "classes" in given else _core.read_class_names(given["classes_from"])
    except ShardError as error:
        raise words.of_convert(error) from None
    return [name.decode("utf-8", "surrogateescape") for name in names]


def _array(value: Any, what: str) -> tuple[np.ndarray[Any, Any], str]:
    """The value as an array, and the name of its data type.
    The elements of bfloat16 may be uint16, their bits."""
    check.unmasked(what, value)
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        value = value.detach().cpu()
        if value.dtype == torch.bfloat16:
            return value.contiguous().view(torch.int16).numpy(), "bfloat16"
        value = value.numpy()
    array = np.asarray(value)
    return array, array.dtype.name


class _Unfit(ValueError):
    """A number that the data type of its column cannot hold."""


def _widened(bits: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Bits of bfloat16 as float32."""
    # With an array of no axes, `<<` gives int64 before numpy 2.
    wide: np.ndarray[Any, Any] = np.left_shift(bits.astype(np.uint32), 16, dtype=np.uint32)
    return wide.view(np.float32)


def _cast(array: np.ndarray[Any, Any], found: str, wanted: str) -> np.ndarray[Any, Any] | None:
    """The array with elements of another type; None if it is of another kind. Floats are rounded;
    what cannot be held otherwise is an _Unfit."""
    if found == wanted:
        return array
    source = _widened(array.view(np.uint16)) if found == "bfloat16" else array
    if source.dtype.kind not in "biuf" or (source.dtype.kind == "b" and wanted == "bfloat16"):
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        if wanted == "bfloat16":
            bits = np.asarray(source, np.float32, order="C").view(np.uint32)
            rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
            cast = np.where(bits & 0x7FFFFFFF > 0x7F800000, bits >> 16 | 0x40, rounded).astype(np.uint16)
            held: np.ndarray[Any, Any] = _widened(cast)
        else:
            target = np.dtype(wanted)
            both = source.dtype.kind in "iu" and target.kind in "iu"
            if source.size and not both and not np.can_cast(source.dtype, target, "same_kind"):
                return None
            cast = held = source.astype(target)
        if source.dtype.kind in "iu":  # exactly
            unfit = (held != source) | (held.astype(source.dtype) != source)
        elif source.dtype.kind == "f":
            unfit = np.isfinite(source) & ~np.isfinite(held)
        else:
            unfit = np.zeros(source.shape, bool)
    if np.any(unfit):
        raise _Unfit(f"{wanted} cannot hold {source[unfit].reshape(-1)[0]!s}")
    return cast


def _little(array: np.ndarray[Any, Any]) -> bytes:
    return (array.astype(array.dtype.newbyteorder("<")) if array.dtype.byteorder == ">" else array).tobytes()


class Writer:
    """Makes a data set of images that come from anywhere: rows of a table,
    records of another format, a model.

        with sl.Writer("out/train", classes=["ant", "bee"]) as writer:
            for row in rows:
                writer.add(row["name"], row["jpeg"], "ant", caption=row["caption"])

    Threads of the library decode, resize, encode and write; add() only waits when they are behind. The shards
    have the same bytes as those that shardify makes of the same images in the same order.

    out: a new or empty folder; with resume=True also one in which a Writer has stopped.
    sample: ("float32", 4, 64, 64) for samples that are arrays of this data type and shape, stored as they
        are. None: images, or what the first row has. To resume such a data set it must be given.
    columns: what each row has beside image and label. {"caption": sl.Text, "boxes": sl.Ragged("float32", 4),
        "emb": ("float16", 768), "id": "int64"}, and further images as sl.ImageField(...). Numbers are
        converted to the declared type. Columns that are not declared are taken from the first row as they
        are: str is text, an array keeps its type and shape, numbers are int64 or float64. "labels" may be
        declared too: ("float32", k) for a vector.
    classes: the names of the labels 0, 1, ...: a list, a text file with one name a line, or another data set;
        labels are then names or numbers. None: labels are whole numbers, or vectors of float32.
    resume: goes on where an earlier Writer with the same options was stopped, at the last whole shard. `key
        in writer` and keys_done() say which rows are there; add() passes over them. Add the other rows in the
        same order, and the bytes are those of a run that was not stopped.
    array_layout: the axes of images that are arrays: "hwc", [row, column, channel], or "chw".
        [row, column] is one channel in both.
    overwrite: replaces the data set in `out`, finished or not, as convert() does: the old one stays complete
        and readable until close(). Together with resume, a replacement that was stopped goes on.

    The other options are those of convert().

    samples_per_shard: by default as many as shard_bytes holds,
        or fewer where columns are so wide that a shard could not hold them.

    Threads may add at once; the order of the rows is that of the calls. What is added before close() is
    stored. What comes after it, also while it is at work in another thread, is an InvalidArgumentError. A
    Writer cannot be used in the child of a fork.

    close() writes dataset.json. Leaving the `with` block by an exception does not: the data set stays
    unfinished and can be resumed. A process that is killed leaves whole shards, never a dataset.json. Several
    Writers may work at once, each in a folder of its own; a second one on the same folder is a ResourceError.
    """

    def __init__(
        self,
        out: Path,
        *,
        columns: Mapping[str, ColumnKind] | None = None,
        resume: bool = False,
        sample: tuple[Any, ...] | None = None,
        array_layout: str = "hwc",
        **options: Unpack[SampleOptions],
    ) -> None:
        self._core: Any = None
        self._process = os.getpid()
        self._first = threading.RLock()  # what the first row decides; a signal handler may add, too
        self._result: Conversion | None = None
        self._out = check.path("out", out)
        self._classes = _names(options.get("classes"))
        if columns is not None and not isinstance(columns, Mapping):
            check.refuse("columns", columns, 'kinds by name, such as {"caption": Text, "id": "int64"}')
        resume = check.flag("resume", resume)
        if array_layout not in ("hwc", "chw"):
            check.refuse("array_layout", array_layout, '"hwc" or "chw"')
        self._layout = array_layout
        for name in columns or ():
            if name in ("key", "image", "label"):
                raise InvalidArgumentError(
                    f"column {name!r} has the name of an argument of add(); give it another"
                    + ("" if name != "label" else ", or declare 'labels'")
                )
        self._labels = {name: number for number, name in enumerate(self._classes or ())}
        if len(self._labels) != len(self._classes or ()):
            raise InvalidArgumentError("classes has a name twice")
        self._images = {name: kind for name, kind in (columns or {}).items() if isinstance(kind, ImageField)}
        self._declared = {
            name: _declared(name, kind) for name, kind in (columns or {}).items() if name not in self._images
        }
        self._columns: list[_Column] | None = None
        given = for_library("Writer()", "the rows", out, {**options, "classes": self._classes}, SampleOptions)
        if self._images:
            given["image_fields"] = [kind._for_core(name) for name, kind in self._images.items()]
        if resume:
            given["resume"] = True
        self._given = given
        # The samples have the channels and all bits of their images.
        self._wide = "channels" in given or given.get("dtype") == "u16"
        self._labelled: bool | None = None  # whether rows have labels, as the first row says
        self._added = 0
        self._warned = False  # that images are enlarged
        self._for_images = [name for name in _OF_IMAGES if name in given]
        self._tensor: tuple[str, tuple[int, ...]] | None = None
        if sample is not None:
            if not isinstance(sample, (tuple, list)) or len(sample) < 2:
                check.refuse("sample", sample, '(data type, axis, ...), such as ("float32", 4, 64, 64)')
            axes = tuple(check.axis("an axis of sample", axis) for axis in sample[1:])
            self._tensor = (_short_dtype(sample[0]), axes)
        recorded = self._start()
        if recorded:
            found = [
                _Column(name, kind, _LONG[dtype], tuple(shape), name == "labels" or name in self._declared)
                for name, kind, dtype, shape in recorded
            ]
            other = [column for name, column in self._declared.items() if column not in found]
            if other:
                there = "; ".join(f"{column.name}: {column}" for column in found)
                self.abandon()
                raise InvalidArgumentError(
                    f"column {other[0].name!r} is {other[0]}, but the data set in {self._out!r} has other "
                    f"columns: {there}"
                )
            self._columns = found

    def _start(self) -> Any:
        """Makes the C++ writer; returns the columns of the unfinished data set."""
        given = self._given if self._tensor is None else {**self._given, "tensor": self._tensor}
        if self._tensor is not None and self._for_images:
            dtype, axes = self._tensor
            raise InvalidArgumentError(
                f"the samples are arrays, {_LONG[dtype]} {list(axes)}, which are stored as they are, "
                f"but {', '.join(self._for_images)} {'is' if len(self._for_images) == 1 else 'are'} for "
                "images: leave that out, or give uint8 pixels, or say with channels= that these are pixels"
            )
        try:
            self._core = _core.Writer(given)
            return self._core.columns()
        except ShardError as error:
            raise words.of_convert(error) from None

    def add(self, key: str, image: Any, label: Any = None, **columns: Any) -> bool:
        """Adds a row. Returns False if an earlier run has stored it, True otherwise.

        key: unique in the data set, such as the path of the file; any str, or bytes.
        image: the bytes of an image file; the path of one; an array of uint8 [row, column] or [row, column,
            channel] with 1, 3 or 4 channels; or an image of Pillow, which is turned upright as its EXIF data
            say. With channels=N or dtype="uint16" also an array of N channels and any of these types: uint8,
            uint16, int8, int16, float16, float32, float64. Without them, any other array (or tensor) of one
            to four axes that is not uint8 is stored as it is, with its data type: a latent, a waveform, a
            volume. Then all rows have arrays of this shape and type.
        label: a class name or its number, a whole number, or a vector of float32.
            None: no row has a label, and 0 is stored; not where there are classes. The first row
            decides whether all rows have labels or none has. Vectors have no nan and no inf.

        An image that cannot be decoded is listed in rejects.csv, or ends the data set with on_error="fail".
        InvalidArgumentError if the row does not fit: a key that was added before, an unknown class, a column
        that is missing, not known, or of another type or shape. The Writer can be used after it.
        """
        if os.getpid() != self._process:
            self._open().columns()  # an error; the lock may be one of another thread of the parent
        self._open()
        images = [self._further(key, name, kind, columns) for name, kind in self._images.items()]
        columns = {name: value for name, value in columns.items() if name not in self._images}
        raw = self._raw(key)
        core = self._take_first(key, image, label, columns) if self._columns is None else self._open()
        assert self._columns is not None
        rows = [self._label(key, label, self._columns[0])]
        for column in self._columns[1:]:
            if column.name not in columns:
                raise InvalidArgumentError(f"{key!r}: column {column.name!r} is missing")
            rows.append(self._encode(key, column, columns[column.name]))
        if len(columns) + 1 != len(self._columns):
            unknown = next(name for name in columns if all(column.name != name for column in self._columns))
            there = ", ".join(column.name for column in self._columns[1:]) or "none"
            raise InvalidArgumentError(
                f"{key!r}: there is no column {unknown!r}; the columns are those of the first row or as "
                f"declared: {there}"
            )
        data, size = self._image(key, image)
        try:
            added = bool(core.add(raw, data, size, rows, images))
        except ShardError as error:
            raise words.of_convert(error) from None
        self._added += 1
        if self._added % 256 == 0:
            self._warn_of_enlargement(core)
        return added

    def _warn_of_enlargement(self, core: Any) -> None:
        """Once, as soon as the images that were read say so."""
        if not self._warned and (text := core.enlargement()):
            self._warned = True
            notes.warn(words.in_python(text))

    def __reduce__(self) -> Any:
        raise TypeError("a Writer cannot be pickled, it has threads and files: make it where rows are added")

    def __contains__(self, key: str | bytes) -> bool:
        """Whether an earlier run has stored (or rejected) the row with this key."""
        return bool(self._open().is_done(self._raw(key)))

    def keys_done(self) -> list[str]:
        """The keys of the rows that an earlier run has stored or rejected, in their order."""
        return [os.fsdecode(key) for key in self._open().keys_done()]

    def __len__(self) -> int:
        """Rows so far, with those of earlier runs and those that were rejected."""
        return self._result.inputs if self._result is not None else len(self._open())

    def close(self) -> Conversion:
        """Writes what is left and dataset.json. A second call returns the same.
        A ConversionWarning says how many images are not in the data set."""
        if self._result is None:
            try:
                core = self._open()
                done = notes.worded(core.close())
                self._warn_of_enlargement(core)
            except ShardError as error:
                raise words.of_convert(error) from None
            self._result = Conversion(**done)
            notes.after(self._out, done)
        return self._result

    def abandon(self) -> None:
        """Ends without finishing the data set, which can be resumed."""
        core, self._core = self._core, None
        if core is not None:
            core.abandon()

    @property
    def closed(self) -> bool:
        return self._result is not None or self._core is None

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if kind is None and self._core is not None:
            try:
                self.close()
            finally:
                self.abandon()
        else:
            self.abandon()

    def __del__(self) -> None:
        if getattr(self, "_core", None) is not None and self._result is None:
            warnings.warn(
                f"the Writer on {self._out!r} was not closed: its data set is unfinished",
                ResourceWarning,
                stacklevel=1,
                source=self,
            )

    def _open(self) -> Any:
        core = self._core  # another thread may abandon it
        if core is None:
            raise InvalidArgumentError("the writer is closed")
        return core

    @staticmethod
    def _raw(key: Any) -> bytes:
        if isinstance(key, bytes):
            return key
        try:
            return os.fsencode(key)
        except (TypeError, UnicodeEncodeError):
            raise InvalidArgumentError(f"the key is {key!r}; expected str, bytes or a path") from None

    def _take_first(self, key: Any, image: Any, label: Any, columns: dict[str, Any]) -> Any:
        """What the first row decides, once: whether the samples are arrays,
        and the columns. Returns the core."""
        with self._first:
            core = self._open()
            if self._columns is not None:
                return core
            if self._tensor is None and not self._wide and (found := _tensor_of(image)) is not None:
                if not self._for_images:
                    core.abandon()  # nothing was written
                self._tensor = found
                try:
                    self._start()
                except InvalidArgumentError:
                    self._tensor = None
                    raise
                core = self._open()
            self._take_columns(key, label, columns)
            return core

    def _take_columns(self, key: Any, label: Any, columns: dict[str, Any]) -> None:
        """The columns, from what is declared and from the first row."""
        found = [self._declared.get("labels") or self._label_column(key, label)]
        found += [column for name, column in self._declared.items() if name != "labels"]
        found += [
            self._column_of(key, name, value) for name, value in columns.items() if name not in self._declared
        ]
        try:
            self._open().declare([column.for_core() for column in found])
        except ShardError as error:
            raise words.of_convert(error) from None
        self._columns = found

    def _label_column(self, key: Any, label: Any) -> _Column:
        if label is None or isinstance(label, str) or np.ndim(label) == 0:
            return _Column("labels", "fixed", "int64", (), True)
        array, _ = _array(label, f"{key!r}: the label")
        if array.ndim != 1 or array.dtype.kind not in "iuf":
            raise InvalidArgumentError(
                f"{key!r}: the label is {label!r}; expected a whole number or a vector"
            )
        return _Column("labels", "fixed", "float32", array.shape, True)

    def _column_of(self, key: Any, name: str, value: Any) -> _Column:
        if isinstance(value, str):
            return _Column(name, "text", "uint8", (), False)
        what = f"{key!r}: column {name!r}"
        array, dtype = (
            _array(value, what) if value is not None and not isinstance(value, bytes) else (None, "")
        )
        if array is None or dtype not in _SHORT or (array.size == 0 and array.ndim == 1):
            raise InvalidArgumentError(
                f"{key!r}: column {name!r} is {type(value).__name__}: declare it, columns={{{name!r}: ...}}, "
                "with sl.Text, sl.Ragged(dtype, ...) or (dtype, axis, ...)"
            )
        return _Column(name, "fixed", dtype, array.shape, False)

    def _label(self, key: Any, label: Any, column: _Column) -> bytes:
        if column.row_shape or column.dtype != "int64":
            return self._encode(key, column, label, finite=True)
        number = self._number(key, label)
        if self._labelled is None:
            with self._first:
                if self._labelled is None:
                    self._labelled = label is not None
        if self._labelled != (label is not None):
            raise InvalidArgumentError(
                f"{key!r} has {'no' if label is None else 'a'} label, but the first row of this Writer has "
                f"{'one' if self._labelled else 'none'}: give every row a label, or none"
            )
        return number

    def _number(self, key: Any, label: Any) -> bytes:
        if label is None:
            if self._classes is not None:
                raise InvalidArgumentError(f"{key!r} has no label")
            label = 0
        check.unmasked(f"{key!r}: the label", label)
        if isinstance(label, str):
            if label not in self._labels:
                raise InvalidArgumentError(
                    f"{key!r}: {label!r} is no class"
                    + (
                        "; give the names, classes=[...]"
                        if self._classes is None
                        else f"; expected one of {check.listed(self._classes)}, or its number"
                    )
                )
            label = self._labels[label]
        try:
            return operator.index(label).to_bytes(8, "little", signed=True)
        except (TypeError, OverflowError):
            array, dtype = _array(label, f"{key!r}: the label")
            raise InvalidArgumentError(
                f"{key!r}: column 'labels' is int64 [], but this row has {dtype} {list(array.shape)}"
            ) from None

    def _encode(self, key: Any, column: _Column, value: Any, finite: bool = False) -> bytes:
        if column.kind == "text" or isinstance(value, str):
            if column.kind == "text" and isinstance(value, str):
                try:
                    return value.encode()
                except UnicodeEncodeError as error:
                    raise InvalidArgumentError(
                        f"{key!r}: the text of column {column.name!r} is not Unicode: {error}"
                    ) from None
            raise InvalidArgumentError(
                f"{key!r}: column {column.name!r} is {column}, but this row has "
                f"{'text' if isinstance(value, str) else type(value).__name__}"
            )
        try:
            array, dtype = _array(value, f"{key!r}: column {column.name!r}")
        except InvalidArgumentError:
            raise
        except ValueError as error:
            raise InvalidArgumentError(
                f"{key!r}: column {column.name!r} is {column}, but this row has no array: {error}"
            ) from None
        shape = array.shape
        if column.kind == "ragged" and array.size == 0 and shape in ((0,), (0, *column.row_shape)):
            return b""
        fits = (
            shape == column.row_shape
            if column.kind == "fixed"
            else len(shape) == 1 + len(column.row_shape) and shape[1:] == column.row_shape
        )
        try:
            cast = (
                _cast(array, dtype, column.dtype)
                if fits and (column.declared or dtype == column.dtype)
                else None
            )
        except _Unfit as error:
            raise InvalidArgumentError(f"{key!r}: column {column.name!r} is {column}: {error}") from None
        if cast is None:
            raise InvalidArgumentError(
                f"{key!r}: column {column.name!r} is {column}, but this row has {dtype} {list(shape)}"
            )
        if finite and not np.isfinite(cast).all():
            odd = cast[~np.isfinite(cast)].reshape(-1)[0]
            raise InvalidArgumentError(f"{key!r}: the label has {odd!s}: expected finite numbers")
        return _little(cast)

    def _further(
        self, key: Any, name: str, kind: ImageField, columns: dict[str, Any]
    ) -> tuple[bytes, int, int]:
        """The bytes, and rows and columns if the field has any size."""
        if name not in columns:
            raise InvalidArgumentError(f"{key!r}: the image {name!r} is missing")
        array, dtype = _array(columns[name], f"{key!r}: the image {name!r}")
        try:
            cast = _cast(array, dtype, kind.dtype) if kind._fits(array.shape) else None
        except _Unfit as error:
            raise InvalidArgumentError(
                f"{key!r}: the image {name!r} is {kind.dtype} {kind._shape_text}: {error}"
            ) from None
        if cast is None:
            raise InvalidArgumentError(
                f"{key!r}: the image {name!r} is {kind.dtype} {kind._shape_text}, "
                f"but this row has {dtype} {list(array.shape)}"
            )
        return (_little(cast), *kind._size(array.shape))

    def _image(self, key: Any, image: Any) -> tuple[Any, Any]:
        if self._tensor is not None:
            wanted, axes = self._tensor
            if isinstance(image, (bytes, bytearray, str, os.PathLike)):
                raise InvalidArgumentError(
                    f"{key!r}: the sample is {type(image).__name__}, but those of this data set are arrays, "
                    f"{_LONG[wanted]} {list(axes)}"
                )
            array, dtype = _array(image, f"{key!r}: the sample")
            if dtype != _LONG[wanted] or array.shape != axes:
                raise InvalidArgumentError(
                    f"{key!r}: the sample is {dtype} {list(array.shape)}, but those of this data set are "
                    f"{_LONG[wanted]} {list(axes)}"
                )
            return _little(array), None
        if isinstance(image, (bytes, bytearray)):
            return image, None
        if isinstance(image, (str, os.PathLike)):
            return os.fsencode(check.path(f"{key!r}: the image", image)), 0
        pillow = sys.modules.get("PIL.Image")
        if pillow is not None and isinstance(image, pillow.Image):
            if image.mode in ("F", "I") or image.mode.startswith("I;"):
                raise InvalidArgumentError(
                    f"{key!r}: the image of Pillow has mode {image.mode}, which RGB of 8 bits cannot hold; "
                    "give the bytes or the path of its file, with the option dtype or channels, or an array"
                )
            upright = importlib.import_module("PIL.ImageOps").exif_transpose(image)
            image = upright if upright.mode in ("L", "RGB") else upright.convert("RGB")
        array, dtype = _array(image, f"{key!r}: the image")
        if dtype == "uint8" and array.ndim == 1:
            return array.tobytes(), None
        given = array
        if self._layout == "chw" and array.ndim == 3:
            array = array.transpose(1, 2, 0)
        if (
            dtype == "uint8"
            and (array.ndim == 2 or (array.ndim == 3 and array.shape[2] in (1, 3, 4)))
            and array.size
        ):
            size = array.shape if array.ndim == 3 else (*array.shape, 1)
            return np.ascontiguousarray(array), size
        if self._wide:
            return self._wide_image(key, given, dtype)
        raise InvalidArgumentError(
            f"{key!r}: the image is {type(image).__name__}, {dtype} {list(array.shape)}; "
            "expected the bytes or the path of an image file, uint8 [row, column, channel] with 1, "
            "3 or 4 channels, or an image of Pillow; with channels=N also other arrays"
        )

    def _wide_image(self, key: Any, array: np.ndarray[Any, Any], dtype: str) -> tuple[Any, Any]:
        """An array of any type and number of channels, for the library."""
        layout = "hw" if array.ndim == 2 else self._layout
        axes = dict(zip(layout, array.shape)) if array.ndim in (2, 3) else {}
        channels = axes.get("c", 1)
        wanted = int(self._given.get("channels", 3))
        allowed = (1, 3) if wanted == 3 else (wanted,)  # gray becomes three
        if dtype not in _PIXELS or not axes or not array.size or channels not in allowed:
            raise InvalidArgumentError(
                f"{key!r}: the image is {dtype} {list(array.shape)}; expected {', '.join(_PIXELS)}, "
                f"{'[row, column, channel]' if self._layout == 'hwc' else '[channel, row, column]'} with "
                f"{wanted} channels (channels={wanted}, array_layout={self._layout!r}) and at least one pixel"
            )
        if max(axes["h"], axes["w"]) > _MAX_SIDE:
            raise InvalidArgumentError(
                f"{key!r}: the image has {axes['h']} rows and {axes['w']} columns: at most {_MAX_SIDE} each"
            )
        if array.dtype.kind in "fi" and wanted == 3 and not {"normalize", "mean", "std"} & self._given.keys():
            raise InvalidArgumentError(
                f"{key!r}: the image is {dtype}, which is stored as it is, but mean and std are those of "
                "RGB: give normalize='none'"
            )
        return np.ascontiguousarray(array), (array.dtype.str, array.shape, layout)


def _tensor_of(image: Any) -> tuple[str, tuple[int, ...]] | None:
    """Data type and axes of an array that is no image."""
    pillow = sys.modules.get("PIL.Image")
    if isinstance(image, (bytes, bytearray, str, os.PathLike)) or (
        pillow is not None and isinstance(image, pillow.Image)
    ):
        return None
    check.unmasked("the image", image)
    try:
        array, dtype = _array(image, "the image")
    except (TypeError, ValueError):
        return None
    if dtype not in _SHORT or dtype == "uint8" or not array.size or not 1 <= array.ndim <= 4:
        return None  # uint8 may be pixels: Writer(sample=...) says that it is not
    return _SHORT[dtype], array.shape


_EXPECTED = "expected a dict with 'key' and 'image', or a tuple (key, image) or (key, image, label)"


def _members(number: int, row: Mapping[Any, Any]) -> dict[str, Any]:
    """A row that is a dict, as arguments of Writer.add()."""
    for name in ("key", "image"):
        if name not in row:
            there = ", ".join(repr(one) for one in row) or "nothing"
            raise InvalidArgumentError(f"row {number} has no {name!r}; it has {there}; {_EXPECTED}")
    for name in row:
        if not isinstance(name, str) or name == "self":
            raise InvalidArgumentError(f"row {number} has a column {name!r}; its name must be another text")
    return dict(row)


def _parts(number: int, row: Any) -> tuple[Any, ...]:
    """A row that is a tuple, as arguments of Writer.add()."""
    try:
        parts = () if isinstance(row, (str, bytes)) else tuple(row)
    except TypeError:
        parts = ()
    if not 2 <= len(parts) <= 3:
        shown = f" of {len(parts)}" if parts else ""
        raise InvalidArgumentError(
            f"row {number} is a {type(row).__name__}{shown}; {_EXPECTED}; further columns need a dict"
        )
    return parts


def write(rows: Iterable[Any], out: Path, **options: Any) -> Conversion:
    """Makes a data set of rows: dicts or tuples with the arguments of Writer.add().
    Takes the options of Writer.

    sl.write(({"key": f"{i}.jpg", "image": row["image"]["bytes"], "label": row["label"]} for i,
    row in enumerate(rows)), "out/train")
    """
    with Writer(out, **options) as writer:
        for number, row in enumerate(rows):
            if isinstance(row, Mapping):
                writer.add(**_members(number, row))
            else:
                writer.add(*_parts(number, row))
        return writer.close()


with_signature(Writer.__init__, SampleOptions)
