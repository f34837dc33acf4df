"""Alternating stretches of a training loop: with the loader, and with one batch that is replayed.

    replay | loader | replay | loader | ... | replay

Each stretch with the loader is compared with the mean of the two replays around it, so that a drift of the
machine (clocks, other programs) cancels. Two things would make the loader look better or worse than it is:

- While a batch is replayed, the loader goes on until its queues are full. The replay starts when it has come
  to rest, and before a stretch with the loader these batches are taken out of the queues without a step.
- A GPU works behind the host's back. So every stretch begins and ends with a synchronisation.

An epoch that is shorter than a stretch is measured from its start to its end, and the start counts.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from .._errors import InvalidArgumentError
from .._loader import Loader
from .processor_time import cores_of, processor_seconds

_PAIRS = 6  # stretches with the loader, if the time suffices
_FEWEST_PAIRS = 3
_FEWEST_STEPS = 5  # in a stretch
_QUEUE = 32  # batches that an unknown loader is thought to have ready at most


class Stretch(NamedTuple):
    seconds: float
    processor_seconds: float
    steps: int

    @property
    def step_seconds(self) -> float:
        return self.seconds / self.steps


def synchronize(result: Any = None) -> None:
    """Waits until the GPU has done what was queued. result: what the step returned (JAX)."""
    torch, cupy, jax = (sys.modules.get(name) for name in ("torch", "cupy", "jax"))
    if torch is not None and hasattr(torch, "cuda") and torch.cuda.is_initialized():
        torch.cuda.synchronize()
    if cupy is not None and hasattr(cupy, "cuda"):
        cupy.cuda.Device().synchronize()
    if jax is not None and hasattr(jax, "block_until_ready"):
        jax.block_until_ready(result)


def workers_of(loader: Any) -> int:
    count = getattr(loader, "num_workers", 0)
    return count if isinstance(count, int) else 0


def queue_of(loader: Any) -> int:
    """How many batches it may have ready."""
    if isinstance(loader, Loader):
        options, on_gpu = loader._engine._options, loader._engine._ordinal >= 0
        if not options["prefetch"] and not options["together"]:
            return 80 if on_gpu else 33  # 5 slots of 16 batches; 33 slots of one
        return (int(options["prefetch"] or 32) + 1) * int(options["together"] or 1)
    if hasattr(loader, "num_workers") and hasattr(loader, "prefetch_factor"):
        return workers_of(loader) * int(loader.prefetch_factor or 0)
    return _QUEUE


class Loop:
    """A loop over `loader` that calls step(batch), in stretches."""

    def __init__(self, loader: Iterable[Any], step: Callable[[Any], Any]) -> None:
        self.loader, self.step = loader, step
        self.queue, self.workers = queue_of(loader), workers_of(loader)
        self.iterator = self._start()
        self.again = self.iterator is not loader  # it can be iterated again
        begin = time.perf_counter()
        try:
            # No copy: the time of a step does not depend on what a loader writes into it later.
            self.batch = next(self.iterator)
        except StopIteration:
            raise InvalidArgumentError("the loader has no batches; expected some dozens") from None
        self.first_batch_seconds = self._iter_seconds + time.perf_counter() - begin

    def _start(self) -> Iterator[Any]:
        begin = time.perf_counter()
        iterator = iter(self.loader)
        self._iter_seconds = time.perf_counter() - begin
        return iterator

    def _timed(self, run: Callable[[], tuple[int, Any]]) -> Stretch:
        synchronize()
        used, begin = processor_seconds(), time.perf_counter()
        steps, result = run()
        synchronize(result)
        seconds = time.perf_counter() - begin
        return Stretch(seconds, processor_seconds() - used, steps)

    def replay(self, steps: int) -> Stretch:
        def run() -> tuple[int, Any]:
            result = None
            for _ in range(steps):
                result = self.step(self.batch)
            return steps, result

        return self._timed(run)

    def _loop(self, steps: int) -> tuple[int, Any]:
        result = None
        for _ in range(steps):
            result = self.step(next(self.iterator))
        return steps, result

    def inside(self, steps: int) -> tuple[Stretch, int]:
        """A stretch inside of an epoch, from empty queues on. Also how many batches were taken before it.
        Raises StopIteration where the epoch ends before."""
        taken = self.drain()
        warm = max(2, self.workers)
        self._loop(warm)
        return self._timed(lambda: self._loop(steps)), taken + warm

    def epochs(self, count: int) -> Stretch:
        """Whole epochs, from before iter() to after the last step."""

        def run() -> tuple[int, Any]:
            steps, result = 0, None
            for _ in range(count):
                for batch in self.loader:
                    result = self.step(batch)
                    steps += 1
            return steps, result

        return self._timed(run)

    def drain(self) -> int:
        """Takes the batches that are ready, until one must be waited for."""
        longest = 0.0
        for taken in range(1, self.queue + 2):
            begin = time.perf_counter()
            next(self.iterator)
            waited = time.perf_counter() - begin
            if taken > 1 and waited > 0.001 and waited > 3 * longest:
                return taken
            longest = max(longest, waited)
        return self.queue + 1

    def restart(self) -> None:
        self.iterator = self._start()
        next(self.iterator)

    def rest(self, most_seconds: float) -> None:
        """Waits until the loader has filled its queues and come to rest."""
        deadline = time.perf_counter() + most_seconds
        window = 0.05
        used = processor_seconds()
        while time.perf_counter() < deadline:
            time.sleep(window)
            now = processor_seconds()
            if now - used < 0.4 * window:
                return
            used = now


class Measured(NamedTuple):
    replays: list[Stretch]  # one more than `loaded`
    loaded: list[Stretch]
    cores: list[float]  # of data loading, for each of `loaded`
    first_batch_seconds: float

    def shares(self) -> list[float]:
        """Of waiting, for each stretch with the loader."""
        return [
            1 - (before.step_seconds + after.step_seconds) / 2 / stretch.step_seconds
            for before, stretch, after in zip(self.replays, self.loaded, self.replays[1:])
        ]


def _replay_steps(loop: Loop, stretch_seconds: float) -> int:
    loop.replay(2)  # compiles, allocates
    steps = 1
    while True:
        tried = loop.replay(steps)
        if tried.seconds >= min(0.2, stretch_seconds / 2) or steps >= 100_000:
            break
        steps *= 2
    return max(_FEWEST_STEPS, math.ceil(stretch_seconds / max(tried.step_seconds, 1e-9)))


def measure(loader: Iterable[Any], step: Callable[[Any], Any], seconds: float) -> Measured:
    began = time.perf_counter()
    loop = Loop(loader, step)
    stretch_seconds = seconds / (2 * _PAIRS + 3)
    replay_steps = _replay_steps(loop, stretch_seconds)
    plan = _Plan(loop, stretch_seconds)
    measured = Measured([], [], [], loop.first_batch_seconds)
    try:
        plan.prepare()
        while len(measured.loaded) < _FEWEST_PAIRS or (
            time.perf_counter() - began < seconds and len(measured.loaded) < 4 * _PAIRS
        ):
            used = processor_seconds()
            loop.rest(most_seconds=stretch_seconds)
            resting = processor_seconds() - used
            replay = loop.replay(replay_steps)
            used = processor_seconds()
            stretch, before = plan.loaded()
            total = resting + processor_seconds() - used
            batches = before + stretch.steps
            of_steps = (stretch.steps + plan.warm) * replay.processor_seconds / replay.steps
            measured.replays.append(replay)
            measured.loaded.append(stretch)
            measured.cores.append(cores_of(total - of_steps, batches * stretch.step_seconds))
    except StopIteration:  # of an iterator, which cannot begin again
        if len(measured.loaded) < 2:
            raise InvalidArgumentError(
                f"the loader ended after {len(measured.loaded)} stretches of about {stretch_seconds:.2g} s; "
                "expected at least 2: pass something that can be iterated again, more batches, or fewer "
                "seconds"
            ) from None
    loop.rest(most_seconds=stretch_seconds)
    measured.replays.append(loop.replay(replay_steps))
    return measured


class _Plan:
    """How a stretch with the loader is measured: inside of an epoch, or whole epochs."""

    def __init__(self, loop: Loop, stretch_seconds: float) -> None:
        self.loop, self.seconds = loop, stretch_seconds
        self.steps, self.epochs = _FEWEST_STEPS, 0
        self.warm = max(2, loop.workers)

    def prepare(self) -> None:
        loop = self.loop
        try:
            tried, _ = loop.inside(max(_FEWEST_STEPS, loop.workers))
        except StopIteration:
            if not loop.again:
                raise
            self._whole_epochs(loop.epochs(1))
            return
        several = max(1, loop.workers)  # their batches come in bursts
        steps = max(2 * several, _FEWEST_STEPS, math.ceil(self.seconds / tried.step_seconds))
        self.steps = math.ceil(steps / several) * several
        try:
            batches = len(loop.loader)  # type: ignore[arg-type]
        except TypeError:
            return
        if loop.again and batches < self.steps + self.warm + loop.queue + 1:
            self._whole_epochs(loop.epochs(1))

    def _whole_epochs(self, tried: Stretch) -> None:
        self.loop.iterator = iter(())  # its worker processes end
        self.epochs = max(1, round(self.seconds / tried.seconds))
        self.warm = 0

    def loaded(self) -> tuple[Stretch, int]:
        """The stretch, and how many batches were taken before it."""
        loop = self.loop
        if self.epochs:
            return loop.epochs(self.epochs), 0
        for last in (False, True):
            try:
                return loop.inside(self.steps)
            except StopIteration:
                if last or not loop.again:
                    raise
                loop.restart()
        raise AssertionError
