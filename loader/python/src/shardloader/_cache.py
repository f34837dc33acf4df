"""What a Source stores while it is used: ImageCache."""

from __future__ import annotations

import atexit
import time
import weakref
from typing import Any, NamedTuple

from ._progress import Line, Reporter, clock


class CacheProgress(NamedTuple):
    """What is stored of a Source. str() of it is one line."""

    inputs: int
    """Images of the source."""
    stored: int
    """Of them, those that are in the folder, by any process."""
    shards: int
    """Of the whole data set."""
    finished_shards: int
    """Of them, those that are finished."""
    decoded: int
    """Images that this process has read and decoded for batches."""
    decoded_for_shards: int
    """Images that this process has read and decoded only to finish a shard."""
    found: int
    """Samples that this process has taken from the folder."""
    complete: bool
    """The folder is a finished data set."""
    seconds_left: float | None
    """Until all images are stored, by the rate of the last half minute. None: not known."""
    problem: str
    """Why this process stores nothing any more, such as a full disk. "": it does."""

    def __str__(self) -> str:
        share = self.stored / max(1, self.inputs)
        text = (
            f"{share:.1%} of {self.inputs:,} images stored, {self.finished_shards} of {self.shards} shards "
            "finished"
        )
        if self.complete:
            return f"{text}, complete"
        if self.problem:
            return f"{text}, a problem: {self.problem}"
        if self.seconds_left is None:
            return text
        return f"{text}, finished in about {clock(self.seconds_left)}"


class ImageCache:
    """The folder in which a Source stores samples when they are first used."""

    def __init__(self, core: Any, path: str) -> None:
        self._core = core
        #: The folder.
        self.path = path
        _open.add(self)

    def progress(self) -> CacheProgress:
        """What is stored now. May be called from any thread, and while a loader runs."""
        now = self._core.progress()
        left = now.pop("seconds_left")
        return CacheProgress(**now, seconds_left=None if left < 0 else left)

    def stop(self) -> None:
        """Ends the threads that finish shards. Samples can still be used and stored; the next run finishes
        the shards. Called when the program ends, and when nothing refers to the source any more."""
        self._core.stop()

    def __repr__(self) -> str:
        return f"<ImageCache {self.path!r}: {self.progress()}>"


def finished_recipe(recipe: tuple[Any, ...]) -> tuple[Any, ...]:
    """The recipe of the same data set (Dataset._cooked) whose sources are read from their finished caches."""
    kind, of, *rest = recipe
    if kind == "open":
        return recipe
    if kind == "source":
        return ("open", of["cache"]) if "cache" in of else recipe
    if kind == "concat":
        return (kind, tuple(finished_recipe(part) for part in of))
    return (kind, finished_recipe(of), *rest)


class CacheReporter(Reporter):
    """What an epoch has stored: a line on standard error, or CacheProgress to a function."""

    def __init__(self, show: Any, caches: tuple[ImageCache, ...]) -> None:
        super().__init__(show, 1, 1)
        self._caches = caches

    def _has_come(self, stats: dict[str, Any]) -> bool:
        return True

    def _report(self, stats: dict[str, Any], ended: bool) -> None:
        for cache in self._caches:
            now = cache.progress()
            if isinstance(self._show, Line):
                self._show.write(f"{cache.path}: {now}", time.monotonic() - self._begin, ended)
            else:
                self._show(now)


_open: weakref.WeakSet[ImageCache] = weakref.WeakSet()


@atexit.register
def _stop_all() -> None:
    """Before the interpreter goes, under which no thread of the library may run."""
    for cache in list(_open):
        cache.stop()
