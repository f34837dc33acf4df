"""The options of convert() and Writer, each declared once: its name, its type, and how the C++ library takes
its value. What they mean is in convert()'s docstring."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, TypedDict, Union

from .._base import check
from .._base.arrays import DTYPES, dtype_name
from .._base.declare import taken
from .._errors import InvalidArgumentError
from .._fields import column_text

Path = Union[str, "os.PathLike[str]"]
Size = Union[int, "tuple[int, int]"]  # N, or (height, width)
_SHORT = {long: short for short, long in DTYPES.items()}


def _word(name: str, value: Any) -> str:
    return value if isinstance(value, str) else check.refuse(name, value, "a word")


def _flag(name: str, value: Any) -> bool | None:
    """True; None for False, which is what the library does without the option."""
    return True if check.flag(name, value) else None


def _whole(name: str, value: Any) -> int:
    return check.whole(name, value, 0, 2**64 - 1)


def _jobs(name: str, value: Any) -> int:
    return check.whole(name, value, 0, 1024)


def _whole_word(name: str, value: Any) -> str:
    return str(_whole(name, value))


def _quality(name: str, value: Any) -> str:
    return str(check.whole(name, value, 1, 100))


def _number_or_word(name: str, value: Any) -> str:
    return value if isinstance(value, str) else str(check.whole(name, value, 1))


def _size(name: str, value: Any) -> str:
    """N, or (height, width) as everywhere in this package, in the words of shardify (WIDTHxHEIGHT)."""
    if isinstance(value, str):
        return value
    height, width = check.size(name, value)
    return f"{width}x{height}" if isinstance(value, (tuple, list)) else str(height)


def _both_sides(name: str, value: Any) -> str:
    if not isinstance(value, (tuple, list)):
        check.refuse(name, value, "(height, width)")
    return _size(name, value)


def _numbers(name: str, value: Any) -> str:
    return ",".join(repr(one) for one in check.numbers(name, value))


def _dtype(name: str, value: Any) -> str:
    return _SHORT[dtype_name(value)]


def _columns(name: str, value: Any) -> list[str] | None:
    if not isinstance(value, Mapping):
        check.refuse(name, value, 'kinds by name, such as {"caption": Text, "angle": "float32"}')
    return [column_text(column, kind) for column, kind in value.items()] or None


def _pairs(name: str, value: Any) -> list[str] | None:
    if not isinstance(value, Mapping):
        check.refuse(name, value, 'folders by name, such as {"depth": "scans/depth"}')
    return [f"{field}={check.path(f'{name}[{field!r}]', folder)}" for field, folder in value.items()] or None


def class_names(name: str, value: Any) -> dict[str, Any]:
    """Names, as UTF-8 with the bytes that are none; or where they are."""
    if isinstance(value, (str, os.PathLike)):
        return {"classes_from": check.path(name, value)}
    if isinstance(value, (bytes, Mapping)) or not isinstance(value, Iterable):
        check.refuse(name, value, "a list of names, a file with a name a line, or a data set")
    if isinstance(value, (set, frozenset)):  # each process has another order of it
        check.refuse(name, value, "names in the order of their labels: a set has no order, sorted(...) does")
    names = list(value)
    for one in names:
        if not isinstance(one, str):
            raise InvalidArgumentError(f"{name} has {one!r}; expected names")
    if not names:
        raise InvalidArgumentError(
            f"{name} is empty; give names, or None for the classes that the images have"
        )
    return {"classes": [one.encode("utf-8", "surrogateescape") for one in names]}


class SampleOptions(TypedDict, total=False):
    """What a sample is and how it is stored: of convert() and Writer. None leaves a part as it is."""

    preset: Annotated[str | None, _word]
    resize: Annotated[int | None, _whole_word]
    crop: Annotated[Size | str | None, _size]
    squash: Annotated[tuple[int, int] | None, _both_sides]
    size: Annotated[int | str | None, _number_or_word]
    longest: Annotated[int | None, _whole_word]
    shortest: Annotated[int | None, _whole_word]
    area: Annotated[int | str | None, _number_or_word]
    multiple: Annotated[int | None, _whole_word]
    filter: Annotated[str | None, _word]
    dtype: Annotated[Any, _dtype]
    channels: Annotated[int | str | None, _number_or_word]
    depth: Annotated[int | None, _whole]
    layout: Annotated[str | None, _word]
    normalize: Annotated[str | None, _word]
    mean: Annotated[Sequence[float] | None, _numbers]
    std: Annotated[Sequence[float] | None, _numbers]
    codec: Annotated[str | None, _word]
    quality: Annotated[int | None, _quality]
    no_sample_digest: Annotated[bool, _flag, False]
    shard_bytes: Annotated[int | str | None, _number_or_word]
    samples_per_shard: Annotated[int | None, _whole]
    classes: Annotated[Path | Sequence[str] | None, class_names]
    on_error: Annotated[str | None, _word]
    on_warning: Annotated[str | None, _word]
    max_pixels: Annotated[int | None, _whole]
    fast_decode: Annotated[bool, _flag, False]
    overwrite: Annotated[bool, _flag, False]
    jobs: Annotated[int | None, _jobs]


class ConvertOptions(SampleOptions, total=False):
    """Which images, their labels, and how the conversion runs: of convert() alone."""

    pages: Annotated[bool, _flag, False]
    labels: Annotated[Path | None, check.path]
    columns: Annotated[Mapping[str, Any] | None, _columns]
    coco: Annotated[Path | None, check.path]
    yolo: Annotated[Path | None, check.path]
    yolo_keypoints: Annotated[int | None, _whole]
    voc: Annotated[Path | None, check.path]
    box_classes: Annotated[Path | None, check.path]
    mask: Annotated[Path | None, check.path]
    pairs: Annotated[Mapping[str, Path] | None, _pairs]
    missing: Annotated[str | None, _word]
    unlisted: Annotated[str | None, _word]
    array_layout: Annotated[str | None, _word]
    root: Annotated[Path | None, check.path]
    strict: Annotated[bool, _flag, False]
    refresh: Annotated[bool, _flag, False]
    append: Annotated[bool, _flag, False]
    rank: Annotated[int | None, _whole]
    world_size: Annotated[int | None, _whole]
    claim: Annotated[bool, _flag, False]
    work: Annotated[Path | None, check.path]


# Their parameters beside the options.
_NAMED = {"convert()": ("progress",), "Source()": ("cache", "cache_jobs"), "Writer()": ("columns",)}


def for_library(who: str, images: Any, out: Any, given: Mapping[str, Any], options: type) -> dict[str, Any]:
    """The options as the C++ library takes them: only those that are given. who: named where one is not
    known."""
    if isinstance(images, (list, tuple, set, frozenset)):
        raise InvalidArgumentError(
            f"images is a {type(images).__name__} of {len(images)}; it is one name: of a folder, an archive, "
            "a pattern ('photos-{000..099}.tar'), or a file with a path a line ('@FILE')"
        )
    source = check.path("images", images)
    if source == "-":
        raise InvalidArgumentError(
            "images is '-': a list on standard input is for the program; write it to a file, '@FILE'"
        )
    wanted: dict[str, Any] = {"images": source, "out": check.path("out", out)}
    for name, value in taken(who, given, options, _NAMED.get(who, ())).items():
        if name == "classes" and value is not None:
            wanted.update(value)
        elif value is not None:
            wanted[name] = value
    if ("rank" in wanted) != ("world_size" in wanted):
        raise InvalidArgumentError("rank and world_size go together")
    return wanted
