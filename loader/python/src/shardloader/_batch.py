"""A batch as Python sees it."""

from __future__ import annotations

import operator
import sys
from typing import Any

from ._base import check
from ._base.arrays import Framework
from ._errors import InvalidArgumentError, UnsupportedError


def ordinal_of(device: Any) -> int:
    """Of "cpu" or "cpu:0" (-1), "cuda" (torch's current device, else 0), "cuda:N",
    a torch.device of these, or a GPU's number."""
    name = f"cuda:{device}" if isinstance(device, int) and not isinstance(device, bool) else str(device)
    if name in ("cpu", "cpu:0"):
        return -1
    if name == "cuda":
        torch = sys.modules.get("torch")
        return int(torch.cuda.current_device()) if torch is not None and torch.cuda.is_available() else 0
    if name.startswith("cuda:") and name[5:].isdecimal() and len(name) <= 13:
        return int(name[5:])
    raise InvalidArgumentError(f'device is {name!r}; expected "cpu", "cuda" or "cuda:N"')


class Batch(tuple[Any, Any]):
    """The tuple (images, labels), with further properties of a batch.

    images: [sample, channel, row, column] or [sample, row, column, channel], with the loader's `shape` and
        `dtype`, in C order, on the loader's device. You may write to this memory. It is not reused while the
        array, anything that shares its memory, or this object lives.
    labels: int64 [sample] (float32 [sample, k] from a table), on the same device.
        They are a copy, which you may keep.

    Frameworks that move batches call to(). On the loader's device it returns this object itself,
    so nothing is lost or copied.
    """

    _core: Any = None
    _framework: Framework | None = None
    _names: tuple[str, ...] = ()
    _texts: frozenset[str] = frozenset()
    _views: tuple[Any, ...] = ()
    _targets: tuple[tuple[str, ...], tuple[str, ...]] = (
        (),
        (),
    )  # names of image fields, and of columns that follow the views
    _moved: dict[str, Any] | None = (
        None  # what to() has copied: "ids", "mask", and by "column NAME" and "field NAME" the others
    )

    @classmethod
    def _made(
        cls,
        core: Any,
        framework: Framework,
        names: tuple[str, ...],
        texts: frozenset[str],
        targets: tuple[tuple[str, ...], tuple[str, ...]] = ((), ()),
    ) -> Batch:
        batch = cls((framework.images(core.images), framework.labels_of(core)))
        batch._core, batch._framework, batch._names, batch._texts = core, framework, names, texts
        if (views := core.views) > 1:
            batch._views = tuple(framework.images(core.view(number)) for number in range(1, views))
        batch._targets = targets
        return batch

    def _origin(self) -> Any:
        if self._core is None:
            raise AttributeError(
                "this batch was rebuilt from its images and labels, and knows nothing else; see Batch.to()"
            )
        return self._core

    @property
    def images(self) -> Any:
        """batch[0]."""
        return self[0]

    @property
    def views(self) -> tuple[Any, ...]:
        """The images of every view, with Loader(views=[...]): views[0] is batch[0]. They share one lease: the
        memory is not reused while one of them lives."""
        return (self[0], *self._views)

    @property
    def labels(self) -> Any:
        """batch[1]."""
        return self[1]

    @property
    def epoch(self) -> int:
        return int(self._origin().epoch)

    @property
    def batch_index(self) -> int:
        """The position among this rank's batches of the epoch."""
        return int(self._origin().index)

    @property
    def ids(self) -> Any:
        """The samples' indices in the data set: int64 [sample], an array like the labels,
        on the same device; a copy."""
        core = self._origin()
        return self._moved["ids"] if self._moved is not None else self._framework.labels(core.ids)  # type: ignore[union-attr]

    @property
    def sizes(self) -> Any:
        """column("stored_sizes") of samples of any size: the rows and columns that each has in the data set,
        int64 [sample, 2]."""
        return self.column("stored_sizes")

    @property
    def view_sizes(self) -> Any:
        """column("view_sizes"), of padded views: the rows and columns of images that have pixels of the
        sample, int64 [sample, 2]; the rest is fill."""
        return self.column("view_sizes")

    @property
    def mask(self) -> Any:
        """True for real samples, False for the padding of tail="pad": bool [sample],
        an array like the labels, on the same device; a copy."""
        core = self._origin()
        return self._moved["mask"] if self._moved is not None else self._framework.mask(core)  # type: ignore[union-attr]

    def _place(self, name: Any, view: Any, kind: str) -> tuple[str, int]:
        """The name of a column or field, and the number of a view, checked."""
        views = 1 + len(self._views)
        try:
            number = check.whole("view", view, 0, views - 1)
        except InvalidArgumentError as error:
            count = "1 view" if views == 1 else f"{views} views"
            raise InvalidArgumentError(f"{error}: the batch has {count}") from None
        return check.text("name", name, f"the name of a {kind}"), number

    def field(self, name: str, view: int = 0) -> Any:
        """A further image field with a view's crop, flip and operations: [sample, channel, row, column] or
        [sample, row, column, channel], and masks [sample, row, column]. It shares the batch's memory, like
        the images. KeyError if Loader(fields=...) does not have it."""
        core = self._origin()
        name, view = self._place(name, view, "field")
        if self._moved is not None:
            if f"field {name} {view}" not in self._moved:
                raise KeyError(f"the batch has no field {name!r} of view {view}")
            return self._moved[f"field {name} {view}"]
        try:
            tensor = core.field(name, view)
        except FileNotFoundError as error:
            raise KeyError(str(error)) from None
        return self._framework.images(tensor)  # type: ignore[union-attr]

    def targets(self, view: int = 0) -> dict[str, Any]:
        """What Loader(fields=..., correspondence=...) delivers with a view, by name: image fields, boxes,
        keypoints, the columns that go along with boxes, and the counts or offsets of ragged columns."""
        fields, columns = self._targets
        return {
            **{name: self.field(name, view) for name in fields},
            **{name: self.column(name, view) for name in columns},
        }

    def column(self, name: str, view: int = 0) -> Any:
        """The batch's rows of a column, [sample, ...] on the device; a copy. Boxes and keypoints of
        Loader(fields=...) are those of the view, other columns are the same for all of them. KeyError if
        there is no such column.

        A ragged column is [sample, max_rows, ...] with zeros after the rows of a sample, and
        column("NAME_counts") says how many each has; with Loader(flat=["NAME"]) it is the rows of all
        samples, and column("NAME_offsets"), int64 [sample + 1], says where those of each begin. A text column
        is a list of str."""
        core = self._origin()
        name, view = self._place(name, view, "column")
        if self._moved is not None:
            if name == "labels":
                return self[1]
            key = f"column {name}" if f"column {name} {view}" not in self._moved else f"column {name} {view}"
            if key not in self._moved:
                raise KeyError(f"the data set has no column {name!r}")
            return self._moved[key]
        try:
            if name in self._texts:
                return core.texts(name)
            tensor = core.column(name, view)
        except FileNotFoundError as error:
            raise KeyError(str(error)) from None
        return self._framework.labels(tensor)  # type: ignore[union-attr]

    def soft_labels(self, classes: int, smoothing: float = 0.0) -> Any:
        """float32 [sample, classes], which sum to 1: the shares of the labels of a loader with mix=, or 1
        for the label without. smoothing: this part is divided among all classes, as in torch's
        CrossEntropyLoss. For torch and numpy. Labels are compared with `classes` on the host; on a GPU this
        would wait for the batch."""
        own = self[1]
        if operator.index(classes) < 1 or not 0 <= smoothing <= 1:
            raise InvalidArgumentError(
                f"soft_labels: classes is {classes} and smoothing {smoothing}; they must be at least 1, "
                "and 0 to 1"
            )
        if len(own.shape) != 1:
            raise InvalidArgumentError(
                f"soft_labels: the labels are vectors, {list(own.shape)}; expected one number for each sample"
            )
        mixed = "share" in self._names
        other, share = (self.column("labels_b"), self.column("share")) if mixed else (own, None)
        if len(own) > 0 and not getattr(own, "is_cuda", False):
            low, high = (int(bound) for bound in (min(own.min(), other.min()), max(own.max(), other.max())))
            if low < 0 or high >= classes:
                raise InvalidArgumentError(
                    f"soft_labels: there are labels from {low} to {high}; they must be 0 to {classes - 1}, "
                    "one less than classes"
                )
        if hasattr(own, "new_full"):
            rows = own.float().new_full((len(own), classes), smoothing / classes)
            share = own.float().fill_(1) if share is None else share
            rows.scatter_add_(1, own[:, None], (share * (1 - smoothing))[:, None])
            return rows.scatter_add_(1, other[:, None], ((1 - share) * (1 - smoothing))[:, None])
        import numpy as np

        if not isinstance(own, np.ndarray):
            raise UnsupportedError(
                f"soft_labels() makes arrays of torch and numpy, not of {type(own).__name__}"
            )
        result = np.full((len(own), classes), smoothing / classes, np.float32)
        shares = np.ones(len(own), np.float32) if share is None else share
        np.add.at(result, (np.arange(len(own)), own), shares * np.float32(1 - smoothing))
        np.add.at(result, (np.arange(len(own)), other), (1 - shares) * np.float32(1 - smoothing))
        return result

    def to(self, device: Any, *, non_blocking: bool = False) -> Batch:
        """This batch on a device, like torch.Tensor.to: the batch itself if it is already there, else a copy
        with ids, mask and columns. Only batches of PyTorch can be moved to another device (UnsupportedError).
        The loader decides the dtype."""
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
                f"this batch is on {here} and cannot be moved to {device}: "
                f'make the loader with device="{device}", or with framework="torch"'
            )
        import torch

        target = torch.device("cuda", device) if isinstance(device, int) else torch.device(device)
        if target.type == "cuda" and target.index is None:
            target = torch.device("cuda", torch.cuda.current_device())
        if target.type == "cpu":
            target = torch.device("cpu")  # "cpu:0" is the same
        if target == images.device:
            return self

        def moved(array: Any) -> Any:
            return array if isinstance(array, list) else array.to(target, non_blocking=non_blocking)

        batch = Batch(moved(part) for part in self)
        batch._views = tuple(moved(view) for view in self._views)
        if self._core is not None:
            batch._moved = {name: moved(getattr(self, name)) for name in ("ids", "mask")}
            batch._moved.update(
                {"column " + name: moved(self.column(name)) for name in self._names if name != "labels"}
            )
            for view in range(1 + len(self._views)):
                batch._moved.update(
                    {f"field {name} {view}": moved(self.field(name, view)) for name in self._targets[0]}
                )
                batch._moved.update(
                    {f"column {name} {view}": moved(self.column(name, view)) for name in self._targets[1]}
                )
            batch._targets = self._targets
            batch._core, batch._framework, batch._names = (
                _Facts(self.epoch, self.batch_index),
                self._framework,
                self._names,
            )
            batch._texts = self._texts
        return batch


class _Facts:
    """Epoch and index of a batch that was moved, which does not keep the memory of the original."""

    def __init__(self, epoch: int, index: int) -> None:
        self.epoch, self.index = epoch, index
