"""Images as a data set without a conversion."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from . import _core
from ._base import check, words
from ._base.declare import with_signature
from ._cache import ImageCache
from ._convert import absolute, notes
from ._convert.options import ConvertOptions, Path, for_library
from ._dataset import Dataset
from ._errors import InvalidArgumentError, ShardError

if TYPE_CHECKING:
    from typing_extensions import Unpack

# What concerns what a conversion writes, and who else converts.
_OF_CONVERSIONS = (
    "overwrite",
    "refresh",
    "append",
    "rank",
    "world_size",
    "claim",
    "work",
)
# One of them says how large samples are; without, images keep their size.
_SIZES = ("preset", "resize", "crop", "squash", "size", "longest", "shortest", "area", "multiple")


class Source(Dataset):
    """Images as a data set without a conversion: each sample is decoded when it is read.

    images, options: as in convert(), without those about what is written, and with the same default preset,
        "train". But if none says how large samples are (preset, resize, crop, squash, size, longest,
        shortest, area), images keep their size (size="original"). codec has no effect but that of "jpeg" on
        images that are no JPEG files; codecs with which a conversion gives other batches than pixels do
        ("packed" of float samples, and of float fields; "jpeg" of fields) are refused.

    Samples, keys, labels, columns and a loader's batches are those of convert() with the same options, as
    long as no image is a reject there, so training may begin before a conversion, and go on with its data
    set. rejects has the inputs that are left out because the listing or the labels say so. An image that
    turns out to be unusable is a CorruptError for data[i], and one that cannot be read an IoError; for a
    Loader see its on_error. Files must not change meanwhile: one with another size or other times than
    when it was listed is an InvalidArgumentError.

    Images are listed when the object is made, and their sizes in bytes are looked up; of samples that keep
    the sizes of their images, the header of each image is read too. It can be used after fork(), and pickled:
    the other side lists the images again. What was listed of tar archives is kept in $SHARDIFY_INDEX_DIR, or
    else in shardify in $XDG_CACHE_HOME or ~/.cache, so that the next time is quick (docs/sources.md).

    cache: a folder in which each sample is stored when it is first used. Shards are finished in the
        background, and when all are, the folder is the data set that convert() makes with the same options,
        byte for byte; from then on the Source is that data set, unless images were rejected. Any number of
        processes on any machines may use the folder at once, and what a killed one has stored is used. While
        the disk is full nothing is stored, and a RuntimeWarning says so. Without codec=, images that keep
        their size and are all JPEG files, by their names and first bytes, are stored with codec="jpeg" and
        no_sample_digest=True. Source.cache says how far it is.
    cache_jobs: threads that finish shards. None: an eighth of the CPUs, at least 1.

    Raises as convert() does. With a cache: InvalidArgumentError if the folder holds another data set, or
    one of other options, naming what differs, or samples of images that were replaced since. Once the
    folder is finished, only names and sizes of the images are compared: `shardctl compare` compares bytes.
    """

    def __init__(
        self,
        images: Path,
        *,
        cache: Path | None = None,
        cache_jobs: int | None = None,
        **options: Unpack[ConvertOptions],
    ) -> None:
        unfit = _OF_CONVERSIONS if cache is not None else (*_OF_CONVERSIONS, "no_sample_digest")
        for name in unfit:
            if options.get(name):
                raise InvalidArgumentError(
                    f"{name} is about a conversion, and Source() converts nothing: leave it out"
                )
        if cache is None and cache_jobs is not None:
            raise InvalidArgumentError("cache_jobs is for a cache: name its folder with cache=")
        if not any(options.get(name) is not None for name in _SIZES):
            options = {**options, "size": "original"}
        given = for_library("Source()", images, ".", options, ConvertOptions)
        del given["out"]
        given["images"] = _absolute(given["images"])
        if cache is not None:
            given["cache"] = absolute(check.path("cache", cache))
            given["cache_jobs"] = 0 if cache_jobs is None else check.whole("cache_jobs", cache_jobs, 1, 1024)
        self._list(given)

    def _list(self, given: dict[str, Any]) -> None:
        options = dict(given)
        folder, jobs = options.pop("cache", None), options.pop("cache_jobs", 0)
        try:
            core, listing, cache = _core.open_source(options, folder, jobs)
        except ShardError as error:
            raise words.of_convert(error) if folder is None else words.of_cache(error) from None
        self._adopt(core, given["images"], ("source", given))
        #: Where samples are stored. None: without cache=, or where all of them are.
        self.cache: ImageCache | None = None if cache is None else ImageCache(cache, folder)
        self._caches = () if self.cache is None else (self.cache,)
        #: (key, reason) of each input that is left out
        self.rejects: tuple[tuple[str, str], ...] = tuple(listing["rejects"])
        notes.found(listing, self._path)
        if self.rejects:
            notes.warn(
                f"{len(self.rejects)} of {len(self.rejects) + len(self)} inputs of {self._path!r} are left "
                f"out (Source.rejects), the first: {self.rejects[0][0]}: {self.rejects[0][1]}"
            )

    @staticmethod
    def _again(given: dict[str, Any]) -> Source:
        source = Source.__new__(Source)
        source._list(given)
        return source


with_signature(Source.__init__, ConvertOptions)


def _absolute(images: str) -> str:
    """The path from the root on, also of a list (@FILE)."""
    return "@" + absolute(images[1:]) if images.startswith("@") else absolute(images)


def opened(data: Dataset | str | os.PathLike[str], cache: Path | None = None) -> Dataset:
    """The data set at a path, converted or not."""
    images = None if isinstance(data, Dataset) else check.path("data", data)
    if images is not None and _core.names_images(images):
        return Source(images, cache=cache)
    if cache is not None:
        raise InvalidArgumentError(
            "cache is for a path of images: give it to Source() for one with options, and "
            "remote=RemoteOptions(cache=) for a data set on a server"
        )
    return data if isinstance(data, Dataset) else Dataset(check.path("data", data))
