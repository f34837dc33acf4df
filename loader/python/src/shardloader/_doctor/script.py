"""Runs a script as `python SCRIPT` does, and measures how long its loops wait for their loaders.

Found are loops over a torch.utils.data.DataLoader and a shardloader.Loader. The time in next() is waiting;
the time between two calls is the step. Nothing is replayed, so this needs no changes of the script.

On a GPU, steps are queued and run later: while next() makes the host wait, the GPU may still work, and then
nothing is lost. So where PyTorch uses a GPU, an event is recorded in the current stream before and after
next(), and what counts is the time in which the GPU had nothing to do between the two, if that is less than
the host's. No synchronisation is added to the loop. Work in other streams is not seen.
"""

from __future__ import annotations

import os
import runpy
import sys
import time
import traceback
from collections.abc import Iterator
from typing import Any

from .._diagnosis import Diagnosis, half_width
from .._loader import Loader
from . import described
from .processor_time import cores_of, library_seconds, processor_seconds

_BLOCKS = 10  # of consecutive batches, whose spread gives the uncertainty


class _Enough(BaseException):
    """Ends the script when it was measured for long enough."""


def _loading_seconds() -> float:
    """Processor time of children, and of this library's threads."""
    return processor_seconds() - time.process_time() + library_seconds()


class Watch:
    """What was seen of one loader."""

    def __init__(self, loader: Any) -> None:
        self.name, self.own = described(loader), isinstance(loader, Loader)
        self.waits: list[float] = []
        self.steps: list[float] = []
        self.first_batch_seconds = 0.0
        self.processor_seconds = 0.0  # of children, our threads, and next()
        self._events: list[tuple[int, Any, Any]] = []
        self._starts: set[int] = set()  # the first batches of iterations

    def start(self, wait: float) -> None:
        """The first batch of an iteration."""
        self.first_batch_seconds = wait
        self._starts.add(len(self.waits))
        self.add(wait, None)

    def add(self, wait: float, events: tuple[Any, Any] | None) -> None:
        if events is not None:
            self._events.append((len(self.waits), *events))
        self.waits.append(wait)
        self.steps.append(0.0)
        if len(self._events) >= 1000:
            self.settle()

    def settle(self) -> None:
        """Replaces the host's time by the GPU's where that waited less."""
        for index, before, after in self._events:
            after.synchronize()
            idle = before.elapsed_time(after) / 1000
            lost = max(0.0, self.waits[index] - idle)  # while the GPU worked on
            self.waits[index] -= lost
            self.steps[index] += lost
        self._events = []

    def diagnosis(self) -> Diagnosis | None:
        """Nothing where there are too few batches."""
        self.settle()
        count = len(self.waits)
        total = sum(self.waits) + sum(self.steps)
        if count < 2 or total <= 0:
            return None
        blocks = min(_BLOCKS, count // 5)
        shares = []
        for number in range(blocks):
            part = range(count * number // blocks, count * (number + 1) // blocks)
            # The start of an iteration is no sample of what the others take.
            waited = sum(self.waits[index] for index in part if index not in self._starts)
            worked = sum(self.steps[index] for index in part if index not in self._starts)
            shares.append(waited / max(waited + worked, 1e-9))
        return Diagnosis(
            loader=self.name,
            waiting=sum(self.waits) / total,
            uncertainty=half_width(shares),
            step_seconds=sum(self.steps) / count,
            loop_seconds=total / count,
            cores=cores_of(self.processor_seconds, total),
            first_batch_seconds=self.first_batch_seconds,
            stretches=blocks,
            batches=count,
            own=self.own,
        )


class Watches:
    """All loaders that a script iterates, in the order of their first batch."""

    def __init__(self, seconds: float) -> None:
        self.by_loader: dict[int, tuple[Any, Watch]] = {}  # keeps the loader, so that its id stays its own
        self._seconds, self._deadline = seconds, 0.0

    def of(self, loader: Any) -> Watch:
        return self.by_loader.setdefault(id(loader), (loader, Watch(loader)))[1]

    def check_time(self) -> None:
        now = time.perf_counter()
        if not self._deadline:
            self._deadline = now + self._seconds
        if self._seconds and now > self._deadline:
            raise _Enough

    def diagnoses(self) -> list[Diagnosis]:
        found = [watch.diagnosis() for _, watch in self.by_loader.values()]
        return [one for one in found if one is not None]


def _gpu_event() -> Any:
    """Recorded in the current stream; None where PyTorch uses no GPU."""
    torch = sys.modules.get("torch")
    if torch is None or not hasattr(torch, "cuda") or not torch.cuda.is_initialized():
        return None
    event = torch.cuda.Event(enable_timing=True)
    event.record()
    return event


class Watched(Iterator[Any]):
    """An iterator whose next() is timed. Everything else is that of the iterator."""

    def __init__(self, iterator: Iterator[Any], began: float, watch: Watch, watches: Watches) -> None:
        self._iterator, self._watch, self._watches = iterator, watch, watches
        self._began: float | None = began  # of iter(), until the first batch
        self._last = began
        self._loading, self._counted = _loading_seconds(), began

    def __iter__(self) -> Watched:
        return self

    def __len__(self) -> int:
        return len(self._iterator)  # type: ignore[arg-type]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._iterator, name)

    def __next__(self) -> Any:
        self._watches.check_time()
        began = time.perf_counter()
        used, before = time.thread_time(), _gpu_event()
        try:
            batch = next(self._iterator)
        except StopIteration:
            if self._watch.steps:
                self._watch.steps[-1] += began - self._last  # of the last batch
            self._count_processors(used, ended=True)
            raise
        after, now = _gpu_event(), time.perf_counter()
        if self._began is not None:
            self._watch.start(now - self._began)
            self._began = None
        else:
            if self._watch.steps:
                self._watch.steps[-1] += began - self._last
            events = None if before is None or after is None else (before, after)
            self._watch.add(now - began, events)
        self._count_processors(used)
        self._last = time.perf_counter()
        return batch

    def _count_processors(self, used: float, ended: bool = False) -> None:
        self._watch.processor_seconds += time.thread_time() - used
        now = time.perf_counter()
        if now - self._counted < 0.5 and not ended:
            return  # reading /proc costs milliseconds
        self._counted = now
        loading = _loading_seconds()
        self._watch.processor_seconds += max(0.0, loading - self._loading)
        self._loading = loading


def _patch(watches: Watches) -> None:
    """From now on, loops over loaders are watched, in this process."""

    def watched(function: Any, loader_of: Any) -> Any:
        def call(*arguments: Any, **options: Any) -> Any:
            began = time.perf_counter()
            made = function(*arguments, **options)
            loader = loader_of(*arguments)
            return made if isinstance(made, Watched) else Watched(made, began, watches.of(loader), watches)

        return call

    Loader.__iter__ = watched(Loader.__iter__, lambda self: self)  # type: ignore[method-assign]
    Loader.epoch = watched(Loader.epoch, lambda self, *_: self)  # type: ignore[method-assign]
    try:
        from torch.utils.data import DataLoader
    except ImportError:
        return
    DataLoader.__iter__ = watched(DataLoader.__iter__, lambda self: self)


def run(script: str, arguments: list[str], seconds: float) -> tuple[int, list[Diagnosis]]:
    """Runs the script as __main__, for at most `seconds` from its first batch on (0: to its end).
    Returns its exit code, and what was found for each of its loaders."""
    watches = Watches(seconds)
    _patch(watches)
    sys.argv = [script, *arguments]
    sys.path[0] = os.path.dirname(os.path.abspath(script))
    code = 0
    try:
        runpy.run_path(script, run_name="__main__")
    except _Enough:
        print(f"doctor: {script} was ended after {seconds:g} s of its loops (--seconds)", file=sys.stderr)
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 0 if ended.code is None else 1
        if isinstance(ended.code, str):
            print(ended.code, file=sys.stderr)
    except KeyboardInterrupt:
        code = 130
    except BaseException:
        traceback.print_exc()
        code = 1
    return code, watches.diagnoses()
