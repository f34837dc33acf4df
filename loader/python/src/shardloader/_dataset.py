"""Data sets: samples, labels and keys by index."""

from __future__ import annotations

import json
import operator
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict, cast

from . import _core
from ._base import check
from ._base.arrays import to_numpy
from ._base.numpy import np
from ._convert import absolute
from ._errors import CorruptError, InvalidArgumentError, NotFoundError
from ._fields import _LONG, Fields, RaggedArray
from ._show import Sheet, html_of, sheet_of

if TYPE_CHECKING:
    from ._cache import ImageCache


class Finding(NamedTuple):
    """One problem that Dataset.verify() found."""

    file: str  #: the shard's name
    sample: int  #: inside the shard; -1: the shard as a whole
    message: str

    def __str__(self) -> str:
        return (
            f"{self.file}: {self.message}"
            if self.sample < 0
            else f"{self.file}: sample {self.sample}: {self.message}"
        )


class _Info(TypedDict):
    """dataset.json, and `folder`: where the shards are; the first one if there are several."""

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
    kinds: dict[str, tuple[str, str, tuple[int, ...]]]
    images: dict[str, tuple[str, str, tuple[int, ...]]]
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


def _position(index: Any, size: int, of: str = "sample") -> int:
    try:
        at = operator.index(index)
    except TypeError:
        raise TypeError(
            f"the {of} is {index!r}; expected a whole number from {-size} to {size - 1}"
        ) from None
    if not -size <= at < size:
        raise IndexError(f"{of} {at} of {size}; expected 0 to {size - 1}, or -1 to -{size} from the end")
    return at + size if at < 0 else at


class Columns(Mapping[str, "np.ndarray[Any, Any]"]):
    """What Dataset.where() hands to its function: arrays by name, read when they are asked for. "labels" and
    the other columns are those of Dataset.column(); "keys" is an array of the keys."""

    def __init__(self, data: Dataset) -> None:
        self._data = data

    def __getitem__(self, name: str) -> np.ndarray[Any, Any]:
        return np.array(self._data.keys[:], dtype=object) if name == "keys" else self._data.column(name)

    def __iter__(self) -> Iterator[str]:
        return iter(("keys", *self._data.columns))

    def __len__(self) -> int:
        return 1 + len(self._data.columns)


def _bits(mask: np.ndarray[Any, Any]) -> bytes:
    return np.packbits(mask, bitorder="little").tobytes()


class Dataset:
    """A folder that shardify made, or a part of it: "FOLDER#NAME" is what `shardctl split` or save() has
    written there. Opening it reads dataset.json only; shards are mapped read-only at their first use.

    len(data) is the number of samples, and data[i] is (array, label), see __getitem__. Several threads may
    use it. It can be used after fork(), and pickled by its absolute path, which the other side opens.

    where(), select(), classes_only(), split(), fold() and shardloader.concat() give further data sets, which
    share the mappings. They keep the order of the data set that they are made from. A pickle of a selection
    has one bit for each of its samples.

    Raises NotFoundError (a FileNotFoundError) if there is no finished data set,
    CorruptError if files do not match dataset.json, IoError.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        path = absolute(check.path("path", path))
        try:
            core = _core.Dataset(path)
        except NotFoundError as error:
            if not os.path.isdir(path) or not _core.names_images(path):
                raise
            raise NotFoundError(f"{error}; Source({path!r}) loads them as they are") from None
        self._adopt(core, path, ("open", path))

    def _adopt(self, core: Any, path: str, recipe: tuple[Any, ...]) -> Dataset:
        self._core, self._path, self._recipe = core, path, recipe
        self._info = cast(_Info, core.info())
        self._info["folder"] = os.fspath(self._info["folder"])
        self._info["dtype"] = _LONG[self._info["dtype"]]
        return self

    _caches: tuple[ImageCache, ...] = ()
    """Of the sources that it is made of."""

    @staticmethod
    def _made(core: Any, path: str, recipe: tuple[Any, ...], caches: tuple[ImageCache, ...] = ()) -> Dataset:
        made = Dataset.__new__(Dataset)._adopt(core, path, recipe)
        made._caches = caches
        return made

    @staticmethod
    def _cooked(recipe: tuple[Any, ...]) -> Dataset:
        """The data set of a recipe: ("open", path), ("source", options), ("concat", recipes), ("select",
        recipe, bits), ("hashed", recipe, from, to, seed, the others)."""
        kind, of, *rest = recipe
        if kind == "open":
            return Dataset(of)
        if kind == "source":
            from ._source import Source  # which is a Dataset

            return Source._again(of)
        if kind == "concat":
            return concat(*(Dataset._cooked(part) for part in of))
        base = Dataset._cooked(of)
        made = _core.select if kind == "select" else _core.hashed
        return Dataset._made(made(base._core, *rest), base._path, recipe, base._caches)

    def __len__(self) -> int:
        return self._info["samples"]

    def __getitem__(self, index: int) -> tuple[np.ndarray[Any, Any], Any]:
        """(array, label) of a sample. Negative indices count from the end. IndexError beyond the ends.

        array: `shape` and `dtype` of the data set, in C order. Codec none: a read-only view of the mapped
            file without a copy; bytes are read from storage when they are accessed, and the file must not
            be cut meanwhile (CorruptError if it was changed before). Other codecs: a decoded copy. The
            array stays valid after the data set is gone. bfloat16 is that of ml_dtypes if it is installed,
            else the bits as uint16.
        label: an int (position in `classes`), or an array of float32 if the labels come from a table.
        """
        at = _position(index, len(self))
        array = to_numpy(self._core.sample(at))  # looks whether the file is whole
        label: Any = self._core.label(at)
        return array, label if isinstance(label, int) else to_numpy(label)

    def image(self, name: str, index: int) -> np.ndarray[Any, Any]:
        """A further image of a sample, such as its mask: one of `fields` of kind "image" or "mask".
        The array is as that of data[i]."""
        names = list(self._info["images"])
        if name not in names:
            raise InvalidArgumentError(
                f"there is no further image {name!r}; there are: {', '.join(names) or 'none'}"
            )
        return to_numpy(self._core.sample(_position(index, len(self)), names.index(name)))

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__} {self._path!r}: {len(self)} samples, {self.dtype} {list(self.shape)}, "
            f"codec {self.codec}>"
        )

    def __reduce__(self) -> Any:
        return (_from_recipe, (self._recipe,))

    def show(
        self,
        samples: int | Sequence[int] | range | slice = 16,
        *,
        seed: int = 0,
        size: int = 160,
        targets: bool = True,
    ) -> Sheet:
        """Pictures of samples for a notebook, with index and class: `data.show()` as the value of a cell.
        Normalisation is undone. A data set itself shows twelve.

        samples: how many random samples, or their indices.
        seed: of the random samples.
        size: the longer side of a picture in pixels, 16 to 4096; larger images are made smaller.
        targets: draw masks and the column "boxes" over the images, and further images beside them.

        A damaged sample is shown as its error. UnsupportedError for samples that are tensors;
        InvalidArgumentError. `shardctl show` does the same in a terminal.
        """
        return sheet_of(self, samples, seed, size, targets)

    def _repr_html_(self) -> str:
        return html_of(self)

    # --- parts of a data set --------------------------------------------------------------------------------

    def _select(self, bits: bytes) -> Dataset:
        recipe = ("select", self._recipe, bits)
        return Dataset._made(_core.select(self._core, bits), self._path, recipe, self._caches)

    def _hashed(self, begin: float, end: float, seed: int, others: bool) -> Dataset:
        rest = (begin, end, check.whole("seed", seed, 0, 2**64 - 1), others)
        recipe = ("hashed", self._recipe, *rest)
        return Dataset._made(_core.hashed(self._core, *rest), self._path, recipe, self._caches)

    def where(self, condition: Sequence[bool] | np.ndarray[Any, Any] | Callable[[Columns], Any]) -> Dataset:
        """The samples for which the condition is true: a mask of one bool per sample, or a function that gets
        Columns and returns such a mask, for instance `data.where(lambda columns: columns["labels"] < 10)`.
        InvalidArgumentError if the mask has another length or is not of bools, or if no sample is left."""
        given = condition(Columns(self)) if callable(condition) else condition
        check.unmasked("the condition", given)
        mask = np.asarray(given)
        if mask.dtype != np.bool_ or mask.shape != (len(self),):
            raise InvalidArgumentError(
                f"a mask of shape {mask.shape} and dtype {mask.dtype}; expected {len(self)} bools, "
                "one for each sample"
            )
        return self._select(_bits(mask))

    def select(self, indices: Sequence[int] | np.ndarray[Any, Any] | range | slice) -> Dataset:
        """The samples of these indices, in the order of this data set, whatever the order of the indices.
        Negative indices count from the end. InvalidArgumentError for an index that does not exist or that is
        given twice, or if there is none."""
        size = len(self)
        if isinstance(indices, slice):
            indices = range(*indices.indices(size))
        check.unmasked("indices", indices)
        chosen = np.asarray(indices)
        if chosen.ndim != 1 or (chosen.size > 0 and not np.issubdtype(chosen.dtype, np.integer)):
            hint = "; a mask of bools is for where()" if chosen.dtype == np.bool_ else ""
            raise InvalidArgumentError(
                f"indices of shape {chosen.shape} and dtype {chosen.dtype}; "
                f"expected a list of whole numbers{hint}"
            )
        outside = (chosen < -size) | (chosen >= size)
        if outside.any():
            raise InvalidArgumentError(f"index {chosen[outside][0]} does not exist: there are {size} samples")
        mask = np.zeros(size, np.bool_)
        if chosen.size > 0:
            mask[chosen] = True
        if np.count_nonzero(mask) != chosen.size:
            sorted_ = np.sort(chosen % size)
            twice = sorted_[1:][sorted_[1:] == sorted_[:-1]][0]
            raise InvalidArgumentError(
                f"index {twice} is given twice; to draw samples more often, use sl.Sampling(weights)"
            )
        return self._select(_bits(mask))

    def classes_only(self, names: Sequence[str]) -> Dataset:
        """The samples of these classes. `classes` and labels stay as they are.
        InvalidArgumentError if there is no such class."""
        names, known = check.names("names", names), self.class_to_idx
        for name in names:
            if name not in known:
                raise InvalidArgumentError(
                    f"no class {name!r}; expected some of the {len(known)}: {check.listed(known)}"
                )
        return self._select(_bits(np.isin(self.labels, [known[name] for name in names])))

    def split(self, fraction: float, seed: int = 0) -> tuple[Dataset, Dataset]:
        """Two parts: about `fraction` of the samples, and the others. A sample's part is decided by the hash
        of its key and the seed, so it stays when data are added later, and samples with the same key stay
        together. A split of a part is independent of the split that made the part, also with the same seed.
        InvalidArgumentError if fraction is not in [0, 1], or if a part has no sample."""
        if not 0 <= check.number("fraction", fraction) <= 1:
            check.refuse("fraction", fraction, "a number from 0 to 1, such as 0.9 for 90 %")
        return self._hashed(0.0, fraction, seed, False), self._hashed(0.0, fraction, seed, True)

    def fold(self, k: int, n: int, seed: int = 0) -> tuple[Dataset, Dataset]:
        """Cross validation: (the samples to train with, those of part k of n, which are held out). k is 0 to
        n - 1. The parts are decided like those of split()."""
        k, n = check.whole("k", k), check.whole("n", n)
        if n < 2 or not 0 <= k < n:
            raise InvalidArgumentError(f"fold {k} of {n}; expected k from 0 to n - 1, and n at least 2")
        return self._hashed(k / n, (k + 1) / n, seed, True), self._hashed(k / n, (k + 1) / n, seed, False)

    def save(self, name: str) -> None:
        """Writes which samples of its folder this data set has to the file NAME.selection there.
        `Dataset("FOLDER#NAME")`, and FOLDER#NAME for the programs, is this data set again. It is refused
        (CorruptError) when the folder has other shards then. InvalidArgumentError for a name that is not
        letters, digits, "-", "_" and ".", and for several data sets as one."""
        name = check.text("name", name, 'a name of letters, digits, "-", "_" and "."')
        _core.save_selection(self._core, name)

    @property
    def path(self) -> str:
        """The absolute path of the folder; of several data sets, their paths with " + " between them."""
        return self._path

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of a sample: (channels, rows, columns) or (rows, columns, channels), depending on `layout`.
        A tensor has one to four axes. 0 rows and 0 columns: each sample has its own."""
        return self._info["shape"]

    @property
    def dtype(self) -> str:
        """Dtype of the stored values: "uint8", "uint16", "float16", "bfloat16" or "float32".
        Tensors may have any of numpy."""
        return self._info["dtype"]

    @property
    def layout(self) -> str:
        """ "nchw", "nhwc" or "tensor": axes without a meaning."""
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
    def mean(self) -> tuple[float, ...]:
        """Mean of red, green, blue, in units of 0 to 1; of samples of more channels there may be a
        number for each. Float samples are stored with it applied; for uint8 and uint16 samples it is
        recorded for the loader."""
        return self._info["mean"]

    @property
    def std(self) -> tuple[float, ...]:
        """Standard deviation, like `mean`."""
        return self._info["std"]

    @property
    def codec(self) -> str:
        """ "none", "packed", "zstd:LEVEL", "jpeg:QUALITY", or "mixed" for data sets with different ones.
        Where only levels differ, the first data set's."""
        return self._info["codec"]

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of what each sample has beside its image; "labels" is the first. See `fields`."""
        return self._info["columns"]

    @property
    def fields(self) -> Fields:
        """What a sample has: `fields["boxes"]` describes one field,
        and `fields[i]` is a dict of those of sample i."""
        return Fields(self)

    @property
    def categories(self) -> tuple[str, ...]:
        """The names of the categories of boxes, by the numbers in column "box_labels":
        those of a conversion with coco=. Else empty."""
        return tuple(json.loads(self._info["pipeline"].get("categories", "[]")))

    @property
    def info(self) -> dict[str, Any]:
        """The contents of dataset.json: pipeline, fingerprint, inputs, rejects,
        shards as (file, samples), ..."""
        return dict(self._info)

    @property
    def labels(self) -> np.ndarray[Any, Any]:
        """All labels: int64 [sample], or float32 [sample, k]. A new copy."""
        return self.column("labels")  # type: ignore[no-any-return]

    def column(self, name: str) -> Any:
        """A column of all samples; a new copy: an array [sample, ...], a RaggedArray, or an array of str if
        it is text. KeyError if there is no such column."""
        if name not in self.columns:
            raise KeyError(f"no column {name!r}; there are {', '.join(self.columns)}")
        kind = self._info["kinds"][name][0]
        if kind == "ragged":
            return RaggedArray(*map(to_numpy, _core.rows(self._core, name, 0, len(self))))
        if kind == "text":
            return np.array(_core.texts(self._core, name, 0, len(self)), dtype=object)
        return to_numpy(_core.column(self._core, name))

    def _value(self, index: int, name: str) -> Any:
        """The column of one sample."""
        kind = self._info["kinds"][name][0]
        if kind == "text":
            return _core.texts(self._core, name, index, 1)[0]
        values = to_numpy(_core.rows(self._core, name, index, 1)[0])
        return values if kind == "ragged" else values[0]

    def shard_images(self, shard: int) -> np.ndarray[Any, Any]:
        """All samples of one shard, [sample, ...], as a read-only view of the mapping; a copy if only some of
        them are selected. UnsupportedError if they have a codec, or a size of their own."""
        at = _position(shard, len(self._info["shards"]), "shard")
        images = to_numpy(self._core.shard_images(at))
        return (
            images if len(images) == self._info["shards"][at][1] else images[_core.shard_rows(self._core, at)]
        )

    def verify(self, threads: int = 0) -> None:
        """Reads everything; checks every digest, and each label against the classes;
        of a whole data set also rejects.csv and inputs.csv.
        threads: 0 means one per core.

        Raises a CorruptError that names the first problems; its `findings` has all of them.
        """
        findings = [
            Finding(*found) for found in self._core.verify(check.whole("threads", threads, 0, 2**31 - 1))
        ]
        if findings:
            first = "; ".join(map(str, findings[:3]))
            more = f"; and {len(findings) - 3} more" if len(findings) > 3 else ""
            error = CorruptError(f"{self._path}: {len(findings)} problems: {first}{more}")
            error.findings = findings  # type: ignore[attr-defined]
            raise error


def _from_recipe(recipe: tuple[Any, ...]) -> Dataset:
    return Dataset._cooked(recipe)


def concat(*data: Dataset | str | os.PathLike[str]) -> Dataset:
    """Several data sets as one: the samples of the first, then those of the second, and so on.

    Sample shape, dtype, layout, normalisation and columns must agree. Classes are joined by name: those of
    the first data set keep their labels, and new ones follow. Codecs may differ; the host then decodes the
    samples (transport "staged" or "direct"). InvalidArgumentError names two data sets and what differs.
    """
    parts = [part if isinstance(part, Dataset) else Dataset(part) for part in data]
    if not parts:
        raise InvalidArgumentError("concat() needs at least one data set")
    core = _core.concat([part._core for part in parts])
    recipe = ("concat", tuple(part._recipe for part in parts))
    caches = tuple(cache for part in parts for cache in part._caches)
    return Dataset._made(core, " + ".join(part.path for part in parts), recipe, caches)


class Mix:
    """Data sets in stated proportions, for a Loader: see mix(). `data` is all of them as one."""

    def __init__(
        self, data: Dataset, sizes: list[int], proportions: list[float], epoch_size: int | None
    ) -> None:
        self.data = data
        #: Samples that all ranks together draw in an epoch. None: as many as there are.
        self.epoch_size = epoch_size
        self._sampling = _core.sampling_mix(sizes, proportions)

    def __len__(self) -> int:
        return len(self.data) if self.epoch_size is None else self.epoch_size


def mix(proportions: Mapping[Any, float], *, epoch_size: int | None = None) -> Mix:
    """Draws from several data sets in stated proportions: `sl.Loader(sl.mix({"a": 0.7, "b": 0.3}))`.

    proportions: by data set (a Dataset or a path), in any unit. Every 1,000 positions of an epoch have each
        proportion exactly (to the next whole number; of more than 100 data sets: docs/python.md). Inside a
        data set every sample is drawn once before any is drawn again, also from one epoch to the next.
    epoch_size: samples that all ranks together draw in an epoch. Default: as many as there are.

    InvalidArgumentError for proportions that are negative, not finite or all 0,
    and for data sets that cannot be one (concat()).
    """
    if not isinstance(proportions, Mapping):
        check.refuse("proportions", proportions, "a number for each data set, {data: number}")
    if not proportions:
        raise InvalidArgumentError(f"proportions is {proportions!r}; mix() needs at least one data set")
    shares = [check.number(f"the proportion of {part}", share) for part, share in proportions.items()]
    parts = [part if isinstance(part, Dataset) else Dataset(part) for part in proportions]
    return Mix(
        concat(*parts),
        [len(part) for part in parts],
        shares,
        None if epoch_size is None else check.whole("epoch_size", epoch_size, 1, 2**64 - 1),
    )
