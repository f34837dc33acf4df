"""Writes the stubs _operations.pyi and _statistics.pyi into the folder of the built _core, which is
the argument: so type checkers and editors know what is made from the core's declarations.
"""

import sys
from pathlib import Path

TYPES = {
    "number": "float",
    "whole": "int",
    "switch": "bool",
    "span": "Span",
    "pair": "Sequence[float]",
    "fill": "Fill",
    "fill or none": "Fill",
    "span or none": "Span | None",
    "whole or none": "int | None",
    "channels or none": "Sequence[int] | None",
    "word": "str",
}
OPERATIONS = '''from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Union

Span = Union[float, Sequence[float]]
Fill = Union[None, float, Sequence[float]]

class Operation(NamedTuple):
    """One operation: its name and parameters. Made by the functions of shardloader.ops."""

    name: str
    parameters: Mapping[str, Any]

class Parameter(NamedTuple):
    name: str
    kind: str
    default: Any
    low: float
    high: float
    centre: float | None
    none: str
    by_name: bool
    required: bool
    def shown_default(self) -> Any: ...
    def taken(self, operation: str, value: Any) -> Any: ...

DECLARED: dict[str, tuple[Parameter, ...]]

class ops:
    """Operations for Augment(ops=[...]). p: the probability of being applied."""
'''
STATISTICS = '''from typing import NamedTuple

class Stats(NamedTuple):
    """Counters since the loader was made: what was delivered, and who waited for whom (docs/loader.md)."""

'''


def declaration(one):
    kind = f"{TYPES[one['kind']]} | str" if one["none"] else TYPES[one["kind"]]
    return f"{one['name']}: {kind}" + ("" if one["required"] else " = ...")


def function(name, sentence, parameters):
    by_place = [one for one in parameters if not one["by_name"]] or parameters
    by_name = [one for one in parameters if one not in by_place]
    words = [*map(declaration, by_place), *(["*"] if by_name else []), *map(declaration, by_name)]
    return f'''
    @staticmethod
    def {name}({", ".join(words)}) -> Operation:
        """{sentence}"""
'''


folder = Path(sys.argv[1])
sys.path.insert(0, str(folder))
import _core  # noqa: E402

(folder / "_operations.pyi").write_text(OPERATIONS + "".join(function(*one) for one in _core.operations()))
members = [f"    {name}: {kind}  #: {sentence}\n" for name, kind, sentence in _core.statistics()]
(folder / "_statistics.pyi").write_text(STATISTICS + "".join(members))
