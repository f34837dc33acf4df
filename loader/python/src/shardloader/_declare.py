"""Options that are declared once, as the keys of a TypedDict: name: Annotated[type, takes] or
Annotated[type, takes, default]. takes(name, value) checks a value and gives what is passed on."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, get_args, get_type_hints


class Option(NamedTuple):
    type: Any
    takes: Callable[[str, Any], Any]
    default: Any


def as_it_is(name: str, value: Any) -> Any:
    """For what is checked where it is used."""
    return value


@functools.cache
def declared(options: type) -> dict[str, Option]:
    hints = get_type_hints(options, include_extras=True)
    return {
        name: Option(*get_args(hint), *((None,) * (3 - len(get_args(hint))))) for name, hint in hints.items()
    }


def with_signature(function: Any, options: type) -> None:
    """help() and editors show the options as the keywords that they are."""
    signature = inspect.signature(function)
    known = [one for one in signature.parameters.values() if one.kind is not inspect.Parameter.VAR_KEYWORD]
    further = [
        inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=option.default, annotation=option.type
        )
        for name, option in declared(options).items()
    ]
    function.__signature__ = signature.replace(parameters=known + further)


def taken(who: str, given: Mapping[str, Any], options: type) -> dict[str, Any]:
    """What is passed on, by name: of each option, also of one that is not given. None stays None. who: named
    where an option is not known."""
    known = declared(options)
    for name in given:
        if name not in known:
            raise TypeError(f"{who} got an unexpected keyword argument {name!r}; expected {', '.join(known)}")
    passed = {}
    for name, option in known.items():
        value = given.get(name, option.default)
        passed[name] = None if value is None else option.takes(name, value)
    return passed
