"""Options of a Loader that belong together."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable
from typing import Any

from ._base import check


@dataclasses.dataclass(frozen=True)
class MemoryOptions:
    """Bounds of a loader's memory, in bytes. None: the library's own (docs/loader.md, "Memory").

    registered_bytes: transport "mapped": of shards that the device reads where they are.
    pinned_bytes: transports "staged" and "direct": of the pinned ring; "mapped": of the memory in which
        samples are staged until all shards are registered.
    resident_bytes: transport "resident": of device memory for samples.
    readahead_bytes: transport "direct": of reads in flight.
    batch_bytes: samples of any size: those of a batch that are on the device at a time, decoded. What a batch
        has beyond them is made afterwards, in groups. Default: what nearly all batches have.
    """

    registered_bytes: int | None = None
    pinned_bytes: int | None = None
    resident_bytes: int | None = None
    readahead_bytes: int | None = None
    batch_bytes: int | None = None


@dataclasses.dataclass(frozen=True)
class RemoteOptions:
    """What is kept on this machine of a data set on a server (docs/remote.md).

    cache: the folder for whole shards, which all processes of a node may share. Nothing is removed from it.
    cache_bytes: the most bytes in it. Default: what the disk has.
    transit: the folder through which shards pass that do not fit in the cache. Default: the cache folder, or
        without a cache TMPDIR.
    transit_bytes: the most bytes in it at a time. Default: what two windows of shards need.
    """

    cache: str | os.PathLike[str] | None = None
    cache_bytes: int | None = None
    transit: str | os.PathLike[str] | None = None
    transit_bytes: int | None = None


@dataclasses.dataclass(frozen=True, eq=False)
class Sampling:
    """Samples that are drawn, where an epoch does not have each of them once (docs/python.md).

    weights: one number per sample (an array or a tensor): each is drawn in proportion to it. None: all alike.
    replacement: True: draws are independent of each other, so that a sample may come twice in an epoch.
        False: no sample comes twice in an epoch (with weights), or before all were drawn (without).
    """

    weights: Any = None
    replacement: bool = True


def members_of(kind: type[MemoryOptions] | type[RemoteOptions]) -> Callable[[str, Any], dict[str, Any]]:
    """takes(name, value) of an option that is such a group."""

    def takes(name: str, value: Any) -> dict[str, Any]:
        if not isinstance(value, kind):
            check.refuse(name, value, f"{kind.__name__}(...)")
        members: dict[str, Any] = {one.name: getattr(value, one.name) for one in dataclasses.fields(kind)}
        members = {option: given for option, given in members.items() if given is not None}
        for path in ("cache", "transit"):
            if members.get(path) is not None:
                members[path] = os.path.abspath(check.path(path, members[path]))
        return members

    return takes
