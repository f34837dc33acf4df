"""Stats, made from what the core counts (shard/loader/stats.hpp)."""

import builtins
from typing import NamedTuple

from . import _core

_ROWS = _core.statistics()

Stats = NamedTuple("Stats", [(name, getattr(builtins, kind)) for name, kind, _ in _ROWS])
Stats.__doc__ = (
    "Counters since the loader was made: what was delivered, and who waited for whom (docs/loader.md)."
)
for _name, _, _sentence in _ROWS:
    getattr(Stats, _name).__doc__ = _sentence
