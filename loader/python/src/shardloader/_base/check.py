"""Arguments of any kind, checked: what is wrong is an InvalidArgumentError that names the argument,
its value and what is allowed."""

from __future__ import annotations

import operator
import os
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

from .._errors import InvalidArgumentError
from .numpy import np


def refuse(name: str, value: Any, expected: str) -> NoReturn:
    shown = repr(value)
    raise InvalidArgumentError(
        f"{name} is {shown if len(shown) <= 200 else shown[:200] + '...'}; expected {expected}"
    ) from None


def listed(names: Iterable[str]) -> str:
    """The first ten."""
    every = list(names)
    return ", ".join(every[:10]) + (", ..." if len(every) > 10 else "")


def whole(name: str, value: Any, least: int = 0, most: int | None = None) -> int:
    """A whole number, also numpy's; no bool."""
    expected = f"a whole number from {least} on" if most is None else f"a whole number from {least} to {most}"
    try:
        number = operator.index(value)
    except TypeError:
        refuse(name, value, expected)
    if isinstance(value, bool) or number < least or (most is not None and number > most):
        refuse(name, value, expected)
    return number


def axis(name: str, value: Any, least: int = 1) -> int:
    """The length of an axis, which the library counts with 64 bits."""
    return whole(name, value, least, 2**63 - 1)


def number(name: str, value: Any) -> float:
    try:
        return float(value) if not isinstance(value, (bool, str, bytes)) else refuse(name, value, "a number")
    except (TypeError, ValueError, OverflowError):
        refuse(name, value, "a number")


def numbers(name: str, value: Any, count: int | None = None) -> tuple[float, ...]:
    expected = "numbers" if count is None else f"{count} numbers"
    if isinstance(value, (str, bytes, dict, set, frozenset)):
        refuse(name, value, f"{expected} in an order, such as a list")
    try:
        found = tuple(float(one) for one in value)
    except (TypeError, ValueError, OverflowError):
        refuse(name, value, expected)
    if count is not None and len(found) != count:
        refuse(name, value, expected)
    return found


def size(name: str, value: Any, most: int | None = None) -> tuple[int, int]:
    """(height, width) of a size, or of both."""
    both = value if isinstance(value, (tuple, list)) else (value, value)
    expected = f"a size from 1 {'on' if most is None else f'to {most}'}, or (height, width)"
    if len(both) != 2:
        refuse(name, value, expected)
    try:
        height, width = (operator.index(side) for side in both)
    except TypeError:
        refuse(name, value, expected)
    if height < 1 or width < 1 or any(isinstance(side, bool) for side in both):
        refuse(name, value, expected)
    if most is not None and max(height, width) > most:
        refuse(name, value, expected)
    return height, width


def flag(name: str, value: Any) -> bool:
    """True or False, also numpy's: "no" and "false" are no booleans."""
    if not isinstance(value, bool) and not isinstance(value, np.bool_):
        refuse(name, value, "True or False")
    return bool(value)


def flag_or_function(name: str, value: Any) -> Any:
    return value if callable(value) else flag(name, value)


def unmasked(what: str, value: Any) -> None:
    """Refuses an array of numpy.ma, or a list of them, that hides values: they would be taken for data."""
    for one in value if isinstance(value, (list, tuple)) else (value,):
        hidden = int(np.count_nonzero(one.mask)) if isinstance(one, np.ma.MaskedArray) else 0
        if hidden:
            raise InvalidArgumentError(
                f"{what} is a masked array that hides {hidden} of {one.size} values: fill it, x.filled(0)"
            )


def path(name: str, value: Any) -> str:
    try:
        found = os.fsdecode(os.fspath(value))
    except TypeError:
        refuse(name, value, "a path")
    if not found or "\0" in found:
        refuse(name, value, r"a path of at least one character, none of which is \0")
    return found


def text(name: str, value: Any, expected: str) -> str:
    """A str of at least one character: the library takes UTF-8, which has no half of a surrogate pair."""
    try:
        if isinstance(value, str) and value.encode():
            return value
    except UnicodeEncodeError:
        pass
    return refuse(name, value, expected)


def names(name: str, value: Any) -> list[str]:
    """A list of names; a single one too."""
    if isinstance(value, str):
        return [value]
    if (
        not isinstance(value, Sequence)
        or isinstance(value, bytes)
        or not all(isinstance(one, str) for one in value)
    ):
        refuse(name, value, "a list of names")
    return list(value)
