"""A batch as Python sees it."""

from __future__ import annotations

import sys
from typing import Any, Optional

from ._arrays import Framework
from ._errors import InvalidArgumentError


def ordinal_of(device: Any) -> int:
    """Of "cpu" (-1), "cuda" (torch's current device, else 0), "cuda:N", a torch.device of these, or a GPU's number."""
    name = f"cuda:{device}" if isinstance(device, int) and not isinstance(device, bool) else str(device)
    if name == "cpu":
        return -1
    if name == "cuda":
        torch = sys.modules.get("torch")
        return int(torch.cuda.current_device()) if torch is not None and torch.cuda.is_available() else 0
    if name.startswith("cuda:") and name[5:].isdecimal():
        return int(name[5:])
    raise InvalidArgumentError(f'device is {name!r}; expected "cpu", "cuda" or "cuda:N"')


class Batch(tuple):
    """(images, labels), and what else there is to know of a batch.

    images [sample, channel, row, column] or [sample, row, column, channel], as the loader's `shape` and `dtype` say, in C
    order, on the loader's device. The memory is the batch's own: it may be written to, and is not used again while the
    array, anything that shares its memory, or this object lives.
    labels int64 [sample] (float32 [sample, k] from a table), on the same device: a copy, which may be kept.

    Frameworks that move batches call to(): on the loader's device it gives this very object, so nothing is lost or copied.
    """

    _core: Any = None
    _framework: Optional[Framework] = None
    _names: "tuple[str, ...]" = ()
    _moved: "Optional[dict[str, Any]]" = None  # what to() has copied: "ids", "mask", and the columns by ("column", name)

    @classmethod
    def _made(cls, core: Any, framework: Framework, names: "tuple[str, ...]") -> "Batch":
        batch = cls((framework.images(core.images), framework.labels(core.column("labels"))))
        batch._core, batch._framework, batch._names = core, framework, names
        return batch

    def _origin(self) -> Any:
        if self._core is None:
            raise AttributeError("this batch was rebuilt from its images and labels, and knows nothing else; see Batch.to()")
        return self._core

    @property
    def images(self) -> Any:
        """batch[0]."""
        return self[0]

    @property
    def labels(self) -> Any:
        """batch[1]."""
        return self[1]

    @property
    def epoch(self) -> int:
        return self._origin().epoch

    @property
    def index(self) -> int:  # type: ignore[override]
        """Of this rank's batches in the epoch."""
        return self._origin().index

    @property
    def ids(self) -> Any:
        """Which samples of the data set these are: int64 [sample], an array like the labels, on the same device; a copy."""
        core = self._origin()
        return self._moved["ids"] if self._moved is not None else self._framework.labels(core.ids)  # type: ignore[union-attr]

    @property
    def mask(self) -> Any:
        """True for real samples, False for the padding of tail="pad": bool [sample], an array like the labels, on the same
        device; a copy."""
        core = self._origin()
        return self._moved["mask"] if self._moved is not None else self._framework.mask(core)  # type: ignore[union-attr]

    def column(self, name: str) -> Any:
        """The batch's rows of a column [sample, ...], on the device: a copy. KeyError where there is none of that name."""
        core = self._origin()
        if self._moved is not None:
            if name == "labels":
                return self[1]
            if ("column " + name) not in self._moved:
                raise KeyError(f"the data set has no column {name!r}")
            return self._moved["column " + name]
        try:
            tensor = core.column(name)
        except FileNotFoundError as error:
            raise KeyError(str(error)) from None
        return self._framework.labels(tensor)  # type: ignore[union-attr]

    def to(self, device: Any, *, non_blocking: bool = False) -> "Batch":
        """This batch on a device, as torch.Tensor.to: itself where it is there already, else a copy with all that belongs to
        it. Only PyTorch's batches can be moved elsewhere (UnsupportedError). Its dtype is the loader's to decide."""
        images = self[0]
        if not hasattr(images, "to"):
            try:
                there = f"cuda:{ordinal_of(device)}" if ordinal_of(device) >= 0 else "cpu"
            except InvalidArgumentError:
                there = str(device)
            here = self._framework.device if self._framework is not None else "cpu"
            if there == here:
                return self
            raise InvalidArgumentError(
                f'this batch is on {here} and cannot be moved to {device}: make the loader with device="{device}", or with framework="torch"'
            )
        import torch

        target = torch.device("cuda", device) if isinstance(device, int) else torch.device(device)
        if target.type == "cuda" and target.index is None:
            target = torch.device("cuda", torch.cuda.current_device())
        if target == images.device:
            return self

        def moved(array: Any) -> Any:
            return array.to(target, non_blocking=non_blocking)

        batch = Batch(moved(part) for part in self)
        if self._core is not None:
            batch._moved = {name: moved(getattr(self, name)) for name in ("ids", "mask")}
            batch._moved.update({"column " + name: moved(self.column(name)) for name in self._names if name != "labels"})
            batch._core, batch._framework, batch._names = _Facts(self.epoch, self.index), self._framework, self._names
        return batch


class _Facts:
    """What a batch that was moved knows without its origin, whose memory it does not hold."""

    def __init__(self, epoch: int, index: int) -> None:
        self.epoch, self.index = epoch, index
