"""Images as a data set without a conversion."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from . import _check, _core, _notes, _words
from ._convert import absolute
from ._convert_options import ConvertOptions, Path, for_library
from ._dataset import Dataset
from ._declare import with_signature
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
    "no_sample_digest",
)
# One of them says how large samples are; without, images keep their size.
_SIZES = ("preset", "resize", "crop", "squash", "size", "longest", "shortest", "area", "multiple")


class Source(Dataset):
    """Images as a data set without a conversion: each sample is decoded when it is read.

    images, options: as in convert(), without those about what is written, and with the same default preset,
        "train". But if none says how large samples are (preset, resize, crop, squash, size, longest,
        shortest, area), images keep their size (size="original"). codec has no effect but that of "jpeg" on
        images that are no JPEG files.

    Samples, keys, labels, columns and a loader's batches are those of convert() with the same options, as
    long as no image is a reject there, so training may begin before a conversion, and go on with its data
    set. rejects has the inputs that are left out because the listing or the labels say so. An image that
    turns out to be unusable is a CorruptError for data[i]; for a Loader see its on_error. Files must not
    change meanwhile: one with another size in bytes is an InvalidArgumentError.

    Images are listed when the object is made, and their sizes in bytes are looked up; of samples that keep
    the sizes of their images, the header of each image is read too. It can be used after fork(), and pickled:
    the other side lists the images again.

    Raises as convert() does.
    """

    def __init__(self, images: Path, **options: Unpack[ConvertOptions]) -> None:
        for name in _OF_CONVERSIONS:
            if options.get(name):
                raise InvalidArgumentError(
                    f"{name} is about a conversion, and Source() converts nothing: leave it out"
                )
        if not any(options.get(name) is not None for name in _SIZES):
            options = {**options, "size": "original"}
        given = for_library("Source()", images, ".", options, ConvertOptions)
        del given["out"]
        given["images"] = _absolute(given["images"])
        self._list(given)

    def _list(self, given: dict[str, Any]) -> None:
        try:
            core, found = _core.open_source(given)
        except ShardError as error:
            raise _words.of_convert(error) from None
        self._adopt(core, given["images"], ("source", given))
        #: (key, reason) of each input that is left out
        self.rejects: tuple[tuple[str, str], ...] = tuple(found["rejects"])
        _notes.before(found["notes"])
        if self.rejects:
            _notes.warn(
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


def opened(data: Dataset | str | os.PathLike[str]) -> Dataset:
    """The data set at a path, converted or not."""
    if isinstance(data, Dataset):
        return data
    path = _check.path("data", data)
    return Source(path) if _core.names_images(path) else Dataset(path)
