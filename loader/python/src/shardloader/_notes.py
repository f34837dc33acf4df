"""What a conversion says besides its result, as warnings of Python."""

from __future__ import annotations

import csv
import itertools
import os
import sys
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from . import _words
from ._errors import ConversionWarning

_HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep


def warn(message: str) -> None:
    """The warning names the line outside of this package that led to it."""
    level, frame = 2, sys._getframe(1)
    while frame is not None and os.path.abspath(frame.f_code.co_filename).startswith(_HERE):
        level, frame = level + 1, frame.f_back  # type: ignore[assignment]
    warnings.warn(message, ConversionWarning, stacklevel=level)


def before(notes: Sequence[str]) -> None:
    for note in notes:
        warn(_words.in_python(note))


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
    result["advice"] = tuple(_words.in_python(text) for text in result["advice"])
    return result


def after(out: str, result: Mapping[str, Any], appended: bool = False) -> None:
    """What loses most of its values, and the inputs and objects that are not in the data set."""
    for text in result["advice"]:
        warn(text)
    annotations = result.get("annotations", {})
    for name, what in (
        ("unknown_category", "of categories that the annotations do not name"),
        ("invalid_boxes", "with boxes without area"),
    ):
        if annotations.get(name, 0):
            warn(f"{annotations[name]} objects {what} are left out of {out!r}")
    if annotations.get("beyond_image", 0):
        warn(
            f"{annotations['beyond_image']} boxes reach beyond their image; "
            f"what is beyond it is cut in {out!r}: is their format right?"
        )
    if annotations.get("beside_folders", 0):
        warn(
            f"{annotations['beside_folders']} images lie beside the folders of others, "
            f"so folders are no classes: every label in {out!r} is 0"
        )
    if not result["complete"] or not result["rejects"]:
        return
    table = os.path.join(out, "rejects.csv")
    first = [] if appended else _first_rejects(table, 2)
    which = f", the first: {'; '.join(first)}" if first else ""
    warn(
        f"{result['rejects']} of {result['inputs']} inputs are not in the data set {out!r}: "
        f"{table!r} lists them with their reasons{which}"
    )
