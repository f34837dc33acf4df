"""The functions of shardloader.ops, made from what the core knows of each operation
(shard/loader/operations.hpp)."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Union

from . import _core
from ._base import check
from ._errors import InvalidArgumentError

Span = Union[float, "Sequence[float]"]
Fill = Union[None, float, "Sequence[float]"]


class Operation(NamedTuple):
    """One operation: its name and parameters. Made by the functions of shardloader.ops."""

    name: str
    parameters: Mapping[str, Any]


def _span(where: str, value: Span, centre: float | None) -> tuple[float, float]:
    """(low, high). A single number v is (centre - v, centre + v), and not below 0 around 1,
    as in torchvision. where: named in errors."""
    if isinstance(value, (int, float)):
        if centre is None:
            return (float(value), float(value))
        if value < 0:
            raise InvalidArgumentError(f"{where} is {value}; expected a number from 0 on, or (low, high)")
        low = centre - value
        return (max(low, 0.0) if centre == 1 else low, centre + value)
    try:
        low, high = (float(bound) for bound in value)
    except (TypeError, ValueError):
        raise InvalidArgumentError(f"{where} is {value!r}; expected a number, or (low, high)") from None
    return (low, high)


class Parameter(NamedTuple):
    """What is declared of a parameter."""

    name: str
    kind: str
    default: Any
    low: float
    high: float
    centre: float | None
    none: str
    by_name: bool
    required: bool

    def shown_default(self) -> Any:
        """As one would write it: 0 for (-0, 0) around 0, and a number for (v, v)."""
        if self.kind == "span or none":
            return 0
        if self.none and self.default is None:
            return self.none
        if self.kind == "span" and self.default[0] == self.default[1]:
            return self.default[0]
        return self.default

    def taken(self, operation: str, value: Any) -> Any:
        """The value as the core takes it."""
        where = f"{operation}: {self.name}"
        if self.kind == "span":
            return _span(where, value, self.centre)
        if self.kind == "span or none":
            span = None if value is None else _span(where, value, self.centre)
            return None if span == (self.centre, self.centre) else span
        if self.kind == "pair" and not isinstance(value, (list, tuple)):
            check.refuse(where, value, "two numbers")
        if self.kind == "channels or none" and not (value is None or isinstance(value, (list, tuple))):
            check.refuse(where, value, "a list of channels")
        if self.none and isinstance(value, str):
            if value != self.none:
                check.refuse(where, value, f'a number, one for each channel, or "{self.none}"')
            return None
        if self.kind == "fill" and value is None:
            return 0
        return value


def _function(name: str, sentence: str, parameters: Sequence[Parameter]) -> Callable[..., Operation]:
    alone = len(parameters) == 1  # p may then be given by place
    signature = inspect.Signature(
        [
            inspect.Parameter(
                one.name,
                inspect.Parameter.KEYWORD_ONLY
                if one.by_name and not alone
                else inspect.Parameter.POSITIONAL_OR_KEYWORD,
                default=inspect.Parameter.empty if one.required else one.shown_default(),
            )
            for one in parameters
        ],
        return_annotation=Operation,
    )

    def make(*values: Any, **named: Any) -> Operation:
        try:
            bound = signature.bind(*values, **named)
        except TypeError as error:
            raise TypeError(f"ops.{name}{signature}: {error}") from None
        bound.apply_defaults()
        return Operation(name, {one.name: one.taken(name, bound.arguments[one.name]) for one in parameters})

    make.__name__, make.__qualname__, make.__doc__ = name, f"ops.{name}", sentence
    make.__signature__ = signature  # type: ignore[attr-defined]
    return make


DECLARED: dict[str, tuple[Parameter, ...]] = {}


class ops:
    """Operations for Augment(ops=[...]). p: the probability of being applied.
    Each has torchvision's definition (docs/augment.md)."""


for _name, _sentence, _parameters in _core.operations():
    DECLARED[_name] = tuple(Parameter(**one) for one in _parameters)
    setattr(ops, _name, staticmethod(_function(_name, _sentence, DECLARED[_name])))
