"""Sizes for Loader(buckets=...)."""

from __future__ import annotations

from . import _core
from ._base import check


def buckets(*, area: int, step: int = 64, max_aspect: float = 2.0) -> list[tuple[int, int]]:
    """Sizes (height, width) of about the same area, for Loader(buckets=...), from tall to wide.

    For each width that is a multiple of `step` there is the largest height that is one too and makes at most
    `area` pixels, the same with both exchanged, and the largest square; long sides are at most `max_aspect`
    times the short ones. This is NovelAI's algorithm with a bound of the ratio instead of the sides.
    InvalidArgumentError names values and bounds.

        sl.buckets(area=512 * 512, step=64, max_aspect=2.0)
    """
    return _core.buckets(
        check.whole("area", area, 1, 2**32),
        check.whole("step", step, 1, 65_535),
        check.number("max_aspect", max_aspect),
    )
