"""What a conversion says besides its result, as warnings of Python."""

from __future__ import annotations

import csv
import itertools
import os
import sys
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .._base import words
from .._errors import ConversionWarning

_PACKAGE = f"{Path(__file__).absolute().parents[1]}{os.sep}"


def warn(message: str) -> None:
    """The warning names the line outside of this package that led to it."""
    level, frame = 2, sys._getframe(1)
    while frame is not None and os.path.abspath(frame.f_code.co_filename).startswith(_PACKAGE):
        level, frame = level + 1, frame.f_back  # type: ignore[assignment]
    warnings.warn(message, ConversionWarning, stacklevel=level)


# What annotations lose, in the order of the warnings.
_LOST = {
    "without_image": "{n} annotations belong to no image of {where} and are left out",
    "unknown_category": "{n} objects of categories that the annotations do not name are left out of {where}",
    "invalid_boxes": "{n} objects with boxes without area are left out of {where}",
    "beyond_image": "{n} boxes reach beyond their image; what is beyond it is cut in {where}: "
    "is their format right?",
    "beside_folders": "{n} images lie beside the folders of others, so folders are no classes: every label "
    "in {where} is 0",
}


def found(listing: Mapping[str, Any], where: str, told: bool = False) -> dict[str, Any]:
    """Warns of what the list of inputs says: its notes, unless they have been told, and what is lost of
    annotations, masks and pairs. Returns the counts that are members of a Conversion."""
    for note in () if told else listing["notes"]:
        warn(words.in_python(note))
    if empty := listing["empty_folders"]:
        warn(
            f"{len(empty)} folders of {where!r} have no images and are no classes, so classes behind them "
            f"have smaller numbers (the first: {empty[0]!r}): classes= names all classes"
        )
    counts, firsts = listing["annotations"], listing["firsts"]
    for name, text in _LOST.items():
        if name in counts:
            warn(f"{text.format(n=counts[name], where=repr(where))} (the first: {firsts[name]})")
    for field, count, first in listing["unused"]:
        warn(
            f"{count} files of {field} belong to no image of {where!r} and are left out (the first: {first})"
        )
    return {"skipped": listing["skipped"], "annotations": counts}


def _first_rejects(path: str, count: int) -> list[str]:
    try:
        with open(path, newline="", encoding="utf-8") as file:
            return [
                f"{row[0]}: {row[1]}"
                for row in itertools.islice(csv.reader(file), 1, 1 + count)
                if len(row) == 2
            ]
    except (OSError, ValueError):  # out is an address
        return []


def worded(result: dict[str, Any]) -> dict[str, Any]:
    """The same, with its advice in the words of Python."""
    result["advice"] = tuple(words.in_python(text) for text in result["advice"])
    return result


def after(out: str, result: Mapping[str, Any], appended: bool = False) -> None:
    """What loses most of its values, and the inputs that are not in the data set."""
    for text in result["advice"]:
        warn(text)
    if not result["complete"] or not result["rejects"]:
        return
    table = os.path.join(out, "rejects.csv")
    first = [] if appended else _first_rejects(table, 2)
    which = f", the first: {'; '.join(first)}" if first else ""
    warn(
        f"{result['rejects']} of {result['inputs']} inputs are not in the data set {out!r}: "
        f"{table!r} lists them with their reasons{which}"
    )
