"""Options of a view: of Loader and of Augment."""

from __future__ import annotations

from typing import Annotated, Any, TypedDict, Union

from . import _check
from ._declare import as_it_is

Size = Union[int, "tuple[int, int]"]


def _checked_size(name: str, value: Any) -> Any:
    _check.size(name, value)
    return value


class ViewOptions(TypedDict, total=False):
    """None: not said here."""

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
