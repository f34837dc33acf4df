"""What an epoch has brought from servers: a line on standard error, or a function of the caller."""

from __future__ import annotations

import sys
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple


class Progress(NamedTuple):
    """What came of the data of an epoch: fetched, or found in the cache."""

    epoch: int
    shards: int
    total_shards: int  #: that this rank reads in the epoch
    bytes: int
    total_bytes: int
    fetched_bytes: int  #: of them, received from servers by this process
    bytes_per_second: float  #: received, of the last seconds; at the end: of the whole epoch
    seconds: float  #: since the epoch began
    seconds_left: float | None  #: None: not known yet
    ended: bool  #: the last call


def _gib(count: float) -> str:
    return f"{count / 2**30:.2f} GiB" if count >= 2**30 else f"{count / 2**20:.1f} MiB"


def clock(seconds: float) -> str:
    """Minutes and seconds, or hours too."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}" if minutes >= 60 else f"{minutes}:{rest:02}"


def line_of(now: Progress) -> str:
    """One line of text."""
    rate = f"{now.bytes_per_second / 1e6:.1f} MB/s"
    if now.ended:
        return (
            f"epoch {now.epoch}: {now.shards} of {now.total_shards} shards came, "
            f"{_gib(now.fetched_bytes)} fetched in {clock(now.seconds)}, {rate}"
        )
    left = "" if now.seconds_left is None else f", {clock(now.seconds_left)} left"
    return (
        f"epoch {now.epoch}: {now.shards} of {now.total_shards} shards, "
        f"{_gib(now.bytes)} of {_gib(now.total_bytes)}, {rate}{left}"
    )


class Line:
    """Rewrites a line on a terminal; elsewhere writes one from time to time."""

    def __init__(self) -> None:
        self._next, self._width = 0.0, 0

    def write(self, text: str, seconds: float, ended: bool) -> None:
        """seconds: since the begin."""
        stream = sys.stderr
        if stream is None:
            return
        if stream.isatty():
            stream.write("\r" + text.ljust(self._width) + ("\n" if ended else ""))
            self._width = len(text)
        elif ended or seconds >= self._next:
            self._next = seconds + 15.0
            stream.write(text + "\n")
        stream.flush()

    def __call__(self, now: Progress) -> None:
        if not now.ended or now.fetched_bytes != 0:
            self.write(line_of(now), now.seconds, now.ended)


class Reporter:
    """Of one epoch. Thread safe; its thread ends with the epoch, or with the engine."""

    INTERVAL = 1.0  # seconds
    SPAN = 10  # intervals over which the rate is measured

    def __init__(self, show: bool | Callable[[Any], None], total_shards: int, total_bytes: int) -> None:
        self._line = show is True
        self._show: Any = Line() if self._line else show
        self._totals = (total_shards, total_bytes)
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._ended = False
        self._epoch, self._begin, self._before = 0, 0.0, 0
        self._seen: deque[tuple[float, int]] = deque(maxlen=self.SPAN)

    def start(self, engine: Any, epoch: int, rank: int) -> None:
        """engine: a weak reference to what has _core."""
        if self._line and rank != 0:
            return
        self._before = int(engine()._core.stats()["fetched_bytes"])
        self._epoch, self._begin = epoch, time.monotonic()
        threading.Thread(target=self._work, args=(engine,), name="shard-progress", daemon=True).start()

    def _work(self, engine: Any) -> None:
        while not self._over.wait(self.INTERVAL):
            alive = engine()
            core = None if alive is None else alive._core
            alive = None
            if core is None:
                return
            self._tell(core.stats(), False)
            core = None

    def end(self, stats: dict[str, Any] | None) -> None:
        """The epoch is over. Calls the function a last time, on this thread."""
        self._over.set()
        if self._begin != 0.0 and stats is not None:
            self._tell(stats, True)

    def _tell(self, stats: dict[str, Any], ended: bool) -> None:
        with self._lock:
            if self._ended or not self._has_come(stats):
                return
            self._ended = ended
            try:
                self._report(stats, ended)
            except Exception as error:  # training goes on
                self._ended = True
                warnings.warn(
                    f"progress: the function failed and is not called again: {error!r}",
                    RuntimeWarning,
                    stacklevel=1,
                )

    def _has_come(self, stats: dict[str, Any]) -> bool:
        return bool(stats["fetched_bytes"] != self._before or stats["arrived_shards"] != 0)

    def _report(self, stats: dict[str, Any], ended: bool) -> None:
        self._show(self._progress(stats, ended))

    def _progress(self, stats: dict[str, Any], ended: bool) -> Progress:
        now = time.monotonic()
        shards, total = self._totals
        fetched = int(stats["fetched_bytes"]) - self._before
        came = min(total, max(fetched, int(stats["arrived_bytes"])))
        self._seen.append((now, fetched))
        then, before = (self._begin, 0) if ended or len(self._seen) < 2 else self._seen[0]
        rate = (fetched - before) / max(now - then, 1e-9)
        left = (total - came) / rate if rate > 0 and not ended else None
        return Progress(
            self._epoch,
            min(shards, int(stats["arrived_shards"])),
            shards,
            came,
            total,
            fetched,
            rate,
            now - self._begin,
            left,
            ended,
        )
