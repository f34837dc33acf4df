"""Options of a view: of Loader and of Augment."""

from __future__ import annotations

from typing import Annotated, Any, TypedDict, Union

from .._base import check
from .._base.declare import as_it_is

Size = Union[int, "tuple[int, int]"]


def _checked_size(name: str, value: Any) -> Any:
    check.size(name, value)
    return value


def _checked_resize(name: str, value: Any) -> Any:
    if max(check.size(name, value)) > 8192:
        check.refuse(name, value, "sides of at most 8192")
    return value


def _checked_side(name: str, value: Any) -> int:
    return check.whole(name, value, 1, 8192)


def _checked_multiple(name: str, value: Any) -> int:
    return int(value) if isinstance(value, bool) else check.whole(name, value, 0, 8192)


def _checked_patch(name: str, value: Any) -> int:
    return check.whole(name, value, 1, 256)


def _checked_tokens(name: str, value: Any) -> int:
    return check.whole(name, value, 1, 65_536)


def _checked_fill(name: str, value: Any) -> list[int]:
    value = value.tolist() if hasattr(value, "tolist") else value
    values = value if isinstance(value, (list, tuple)) else [value]
    return [check.whole(name, one, 0, 255) for one in values]


class ViewOptions(TypedDict, total=False):
    """None: not said here."""

    shortest: Annotated[int | None, _checked_side]
    longest: Annotated[int | None, _checked_side]
    squash: Annotated[Size | None, _checked_resize]
    letterbox: Annotated[Size | None, _checked_resize]
    cover: Annotated[Size | None, _checked_resize]
    padded: Annotated[bool | int | None, _checked_multiple]
    patch: Annotated[int | None, _checked_patch]
    max_tokens: Annotated[int | None, _checked_tokens]
    filter: Annotated[str | None, as_it_is]
    fill: Annotated[Any, _checked_fill]
    center_crop: Annotated[Size | None, _checked_size]
    random_crop: Annotated[Size | None, _checked_size]
    random_resized_crop: Annotated[Size | None, _checked_size]
    scale: Annotated[tuple[float, float] | None, as_it_is]
    ratio: Annotated[tuple[float, float] | None, as_it_is]
    flip: Annotated[bool | float | None, as_it_is]
    dtype: Annotated[Any, as_it_is]
    layout: Annotated[str | None, as_it_is]
    # A number for each channel; of an Augment also one for all.
    mean: Annotated[Any, as_it_is]
    std: Annotated[Any, as_it_is]
