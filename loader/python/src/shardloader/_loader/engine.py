"""What a loader and its epochs share: the C++ loader, which epoch it is at, and how to make it again.

    Loader ----> Engine <---- Epoch        nothing points back: each dies when its last holder lets go

The Loader is what a program holds. When it is gone, the C++ loader ends at once (threads, memory), even
though an iterator may be left in a traceback or a notebook's variable. An epoch that is iterated on all the
same makes it again, where it was and of the same data set: `for batch in sl.Loader(...)` is such a loop.
"""

from __future__ import annotations

import gc
import os
import sys
import threading
import time
import warnings
import weakref
from typing import Any

from .. import _core
from .._base import words
from .._base.arrays import Framework
from .._batch import Batch
from .._cache import finished_recipe
from .._dataset import Dataset
from .._errors import InvalidArgumentError, ResourceError, ShardError
from .._fields import delivered_names
from .._progress import Reporter
from .._targets import target_names
from .starving import starving_text

Placement = tuple[int, int]  # rank, world size
_LETS_GO = 1.0  # seconds
_LAST_EPOCH = 2**64 - 1


def distributed() -> Placement | None:
    """Rank and world size of torch.distributed where it runs."""
    torch = sys.modules.get("torch")
    found = getattr(torch, "distributed", None)
    if found is not None and found.is_available() and found.is_initialized():
        return found.get_rank(), found.get_world_size()
    return None


def placement(begins: bool = False) -> Placement:
    """Rank and world size: of torch.distributed where it runs, else RANK and WORLD_SIZE, else 0 of 1.

    Lightning names WORLD_SIZE alone to the processes that it starts, and the rank by torch.distributed later.
    Until an epoch begins, such a process is rank 0; then (begins) what is still not known is an
    InvalidArgumentError."""
    running = distributed()
    if running is not None:
        return running
    rank, world = os.environ.get("RANK"), os.environ.get("WORLD_SIZE")
    if (
        rank is None
        and world is not None
        and world.isdecimal()
        and (int(world) == 1 or (int(world) > 1 and not begins))
    ):
        return 0, int(world)
    if rank is None and world is None:
        return 0, 1
    if rank is None or world is None or not rank.isdecimal() or not world.isdecimal():
        raise InvalidArgumentError(
            f"RANK is {rank!r} and WORLD_SIZE is {world!r}; expected two whole numbers, or neither"
            f"{' (or torch.distributed, which is not initialised)' if begins else ''}: "
            "or name rank= and world_size="
        )
    return int(rank), int(world)


def _views_of(state: str) -> str:
    """The views of a state, as text."""
    return state.partition(" views ")[2]


def _in_words(error: InvalidArgumentError, options: dict[str, Any]) -> ShardError:
    crop = options["crop"]
    return words.of_loader(error, None if crop == "none" else f"{crop}_crop")


def _columns_of_views(options: dict[str, Any]) -> tuple[str, ...]:
    """Columns that batches have because of what their views are."""
    views = (options, *(options.get("further_views") or ()))
    padded = ("view_sizes",) if any(view.get("padded") for view in views) else ()
    patches = ("patch_offsets", "patch_coords", "patch_samples")
    return (*padded, *(patches if any(view.get("patch") for view in views) else ()))


class Engine:
    """Thread safe. `lock` guards the fields below it; it is not held while a batch is waited for."""

    def __init__(
        self,
        data: Dataset,
        ordinal: int,
        options: dict[str, Any],
        framework: Framework,
        given: Placement | None,
    ) -> None:
        self._recipe, self._caches = data._recipe, data._caches
        self._path, self.inputs = data.path, str(_core.source_digest(data._core))
        self._columns, self._texts = delivered_names(data, options.get("flat") or ())
        if options.get("mix"):
            self._columns = (*self._columns, "labels_b", "share")
        if options.get("correspondence"):
            self._columns = (*self._columns, "correspondence")
        if 0 in data.shape:
            self._columns = (*self._columns, "stored_sizes")
        self._ordinal, self._options, self._framework = ordinal, options, framework
        self._fixed = given is not None  # rank and world size were named by the caller

        self.lock = threading.Lock()
        self._data = data  # as it was opened: opened again it might be another one
        self._core: Any = None
        self._closed = False
        self._placement = placement() if given is None else given
        self._decided = False  # an epoch was begun: rank and world size stay
        self._turn = 0  # counts begun epochs and loaded states: older iterators are over
        self._upcoming = 0  # the epoch that iter() begins
        self._wanted: int | None = None  # the same, by set_epoch()
        self._loaded: tuple[int, int] | None = (
            None  # epoch and batch of a state that no epoch has taken up yet
        )
        self._restore: str | None = None  # the state in which the C++ loader is made again
        self._going: int | None = None  # the epoch it was in
        self._inside: set[object] = set()  # a mark of each thread that waits for a batch
        self._threads: set[int] = set()  # that have asked for a batch of this epoch
        self._orphan = False  # the Loader went while a thread was inside
        self._names = self._columns  # and what the views of the epoch add
        self._asked, self._said = 0, False  # batches, and the warning about storage
        self._said_of_cache = self._said_few_bits = False
        self._tried_finished = False
        self._asks_starved = ordinal >= 0  # whether an epoch waited for images
        self._epoch_began: tuple[float, dict[str, Any]] | None = None  # on a GPU, with the statistics of then
        self.length = 0  # batches of this rank in an epoch
        self.reporter: Reporter | None = None  # of the first epoch
        self._alive()
        self._targets = target_names(options, data)
        _engines.add(self)

    def __reduce__(self) -> Any:
        raise TypeError(
            "a Loader cannot be pickled, it has threads and buffers: pickle its Dataset (loader.data), and "
            "make the Loader in the other process"
        )

    # --- the C++ loader; the lock is held, but in the constructor -------------------------------------------

    def _alive(self) -> Any:
        if self._closed:
            raise InvalidArgumentError("the loader was closed")
        if self._core is None:
            rank, world_size = self._placement
            options = {**self._options, "rank": rank, "world_size": world_size}
            try:
                core = _core.Loader(self._data._core, self._ordinal, options, self._framework.current_stream)
            except InvalidArgumentError as error:
                raise _in_words(error, options) from None
            if self._restore is not None:
                core.resume(self._restore, False)
                if self._going is not None:
                    core.begin(self._going, True)
            self.length = core.batches()
            self._core = core
        return self._core

    def _settle(self, begins: bool) -> None:
        """Follows rank and world size until the first epoch begins, and says so where they change later."""
        if self._fixed:
            return
        if self._decided:
            running = distributed()
            if running is not None and running != self._placement:
                raise InvalidArgumentError(
                    f"torch.distributed says rank {running[0]} of {running[1]}, "
                    "but this loader began its first epoch as rank "
                    f"{self._placement[0]} of {self._placement[1]}: make the Loader "
                    "(or begin its first epoch) after "
                    "init_process_group(), or name rank= and world_size="
                )
            return
        now = placement(begins)
        if now != self._placement:
            self._alive()
            core, self._core, self._placement = self._core, None, now
            core.close()
        self._alive()
        self._decided = begins

    def _park(self) -> None:
        """Ends the C++ loader for now."""
        self._end_report()
        core, self._core, self._orphan = self._core, None, False
        if core is None:
            return
        try:
            if self._turn > 0:
                self._restore = core.state()[2]
            core.close()
        except ShardError:  # a child of fork(), where it is not to be used anyway
            pass

    def drop(self) -> None:
        """The Loader is gone. May be called by the garbage collector, at any point of any thread."""
        if not self.lock.acquire(blocking=False):
            self._orphan = True  # whoever holds the lock works with it just now
            return
        try:
            if self._inside:
                self._orphan = True
            else:
                self._park()
        finally:
            self.lock.release()

    def after_fork_in_child(self) -> None:
        self.lock = threading.Lock()
        self._inside = set()

    # --- epochs ---------------------------------------------------------------------------------------------

    def _begin(self, number: int) -> int:
        if number > _LAST_EPOCH:
            raise InvalidArgumentError(
                f"epoch {_LAST_EPOCH} was the last one: begin an earlier one with loader.epoch(number)"
            )
        self._settle(begins=True)
        core = self._alive()
        resumed = False
        if self._loaded is not None:
            at, batch = self._loaded
            ended = batch >= self.length
            if number != at and not (ended and number == at + 1):
                where = (
                    f"at the end of epoch {at}"
                    if ended
                    else f"in epoch {at}, before batch {batch} of {self.length}"
                )
                cure = (
                    f"go on with loader.epoch({at + 1})" if ended else f"loader.epoch({at}) is the rest of it"
                )
                raise InvalidArgumentError(
                    f"epoch {number} was asked for, but the state that was loaded stands {where}: {cure}; "
                    "to begin elsewhere, make a new Loader"
                )
            resumed = number == at
        if not resumed:
            self._take_finished(core)
        self._framework.forget()
        looks = self._asks_starved and not resumed
        began = (time.monotonic(), core.stats()) if looks else None  # begin() starts to decode
        core.begin(number, resumed)
        self._epoch_began = began
        self._loaded = self._wanted = None
        self._names = (*self._columns, *_columns_of_views(self._options))
        self._going = number
        self._upcoming = number + 1
        self._turn += 1
        self._threads = set()
        if self.reporter is not None:
            if self._turn == 1:
                self.reporter.start(weakref.ref(self), number, self._placement[0])
            else:
                self._end_report()
        return self._turn

    def _end_report(self) -> None:
        reporter, self.reporter = self.reporter, None
        if reporter is not None:
            reporter.end(None if self._core is None or self._closed else self._core.stats())

    def begin(self, number: int) -> int:
        """Begins an epoch; its turn, by which an iterator knows whether it is still meant."""
        with self.lock:
            return self._begin(number)

    def _next_number(self) -> int:
        return self._upcoming if self._wanted is None else self._wanted

    def _require(self, turn: int | None) -> None:
        if turn is not None and turn != self._turn:
            raise InvalidArgumentError("another epoch was begun, or a state loaded: this iterator is over")

    def left(self, turn: int | None) -> int:
        with self.lock:
            self._require(turn)
            if turn is None:
                self._settle(begins=False)
                number, loaded = self._next_number(), self._loaded
                return (
                    max(0, self.length - loaded[1])
                    if loaded is not None and loaded[0] == number
                    else self.length
                )
            return max(0, self.length - int(self._alive().state()[1]))

    def next(self, epoch: Any) -> Batch:
        mark = object()  # a signal may arrive anywhere here
        try:
            with self.lock:
                self._require(epoch._turn)
                if epoch._turn is None:
                    epoch._turn = self._begin(self._next_number())
                core = self._alive()
                self._threads.add(threading.get_ident())
                self._inside.add(mark)
            stream = self._framework.stream()
            try:
                found = core.next(stream)
            except ResourceError:
                gc.collect()  # batches may hang in reference cycles
                found = self._next_where_few_are_free(core, stream)
            self._say_problem(core, ended=found is None)
            if found is None:
                self._say_starved(core)
            if found is None:
                self._end_report()
                raise StopIteration
            return Batch._made(found, self._framework, self._names, self._texts, self._targets)
        finally:
            self._inside.discard(mark)
            with self.lock:
                if self._orphan and not self._inside:
                    self._park()

    def _next_where_few_are_free(self, core: Any, stream: int | None) -> Any:
        """A thread that has just got a batch lets go of the one before only then: of threads that share a
        loader, one waits for that."""
        until = time.monotonic() + (_LETS_GO if len(self._threads) > 1 else 0.0)
        while True:
            try:
                return core.next(stream)
            except ResourceError as error:
                if time.monotonic() >= until or "of the ring are held" not in str(error):
                    raise words.of_ring(error, len(self._threads)) from None
            time.sleep(0.0005)

    def _say_problem(self, core: Any, ended: bool) -> None:
        """Says once why shards or samples are not kept on this machine, or which images cannot be used.
        Looks after 1, 2, 4, 8, ... batches, and where an epoch ends."""
        self._asked += 1
        if not (ended or self._asked & (self._asked - 1) == 0):
            return
        for cache in self._caches:
            problem = cache.progress().problem
            if problem and not self._said_of_cache:
                self._said_of_cache = True
                warnings.warn(
                    f"the cache {cache.path!r} does not get all samples, which are used all the same: "
                    f"{problem}",
                    RuntimeWarning,
                    stacklevel=4,
                )
        if self._said:
            return
        stats = core.stats()
        if stats["few_bits_images"] and not self._said_few_bits:
            self._said_few_bits = True
            warnings.warn(
                "images of 16 bits have values below 16384 only, and as 8 bits they keep the high byte: at "
                "most 64 of 256 levels (stats().few_bits_images). depth= says how many bits the values have; "
                'channels="keep" or dtype="uint16" keeps them all',
                RuntimeWarning,
                stacklevel=4,
            )
        if stats["replaced_images"]:
            self._said = True
            first = stats["unusable_images"].partition("\n")[0]
            warnings.warn(
                f"unusable images were replaced by the next one (stats().unusable_images): {first}",
                RuntimeWarning,
                stacklevel=4,
            )
            return
        problem = stats["storage_problem"]
        if problem:
            self._said = True
            warnings.warn(
                f"shards are not kept on this machine, but read by range: {problem}",
                RuntimeWarning,
                stacklevel=4,
            )

    def _say_starved(self, core: Any) -> None:
        """Says once where an epoch waits for images that are not converted, on a GPU."""
        began, self._epoch_began = self._epoch_began, None
        if began is None:
            return
        now, seconds = core.stats(), time.monotonic() - began[0]
        threads = self._options.get("threads") or len(os.sched_getaffinity(0))
        text = starving_text(began[1], now, seconds, threads, bool(self._caches))
        # No image was decoded: all samples are stored, and stay so.
        self._asks_starved = not text and now["decoded_images"] > began[1]["decoded_images"]
        if text:
            warnings.warn(text, RuntimeWarning, stacklevel=4)

    def _take_finished(self, core: Any) -> None:
        """Where all samples are stored meanwhile, the epoch that starts is one of the finished data set."""
        caches = self._caches
        if not caches or self._tried_finished or not all(cache.progress().complete for cache in caches):
            return
        self._tried_finished = True
        try:
            data = Dataset._cooked(finished_recipe(self._recipe))
            core.set_data(data._core)
        except InvalidArgumentError:  # with rejects: only the source has samples in their places
            return
        self._data, self._caches = data, ()

    def set_epoch(self, number: int) -> None:
        with self.lock:
            self._wanted = number

    # --- the rest -------------------------------------------------------------------------------------------

    def settled(self) -> Placement:
        """Rank and world size as they are now; `length` belongs to them.
        Waits for nobody once an epoch was begun."""
        if self._fixed or self._closed:
            return self._placement
        if self._decided:
            self._settle(begins=False)
            return self._placement
        with self.lock:
            self._settle(begins=False)
            return self._placement

    def core(self) -> Any:
        """For calls that may be made while another thread waits in the loader (cancel,
        stats): does not wait itself."""
        core = self._core
        if core is not None and not self._closed:
            return core
        with self.lock:
            return self._alive()

    def load(self, text: str, inputs: Any, keep_views: bool | None) -> bool:
        """True: the views are those of the state, and not those that this loader had. inputs: None of a state
        that does not say."""
        if inputs not in (None, self.inputs):
            raise InvalidArgumentError(
                f"cannot resume: the state is of a data set of other images or labels than {self._path!r} "
                f"has (digest {inputs!r}, here {self.inputs!r}): open the data set of the run that wrote it; "
                'without "inputs" in the state its positions are taken as they are'
            )
        with self.lock:
            self._settle(begins=False)
            before = _views_of(self._alive().state()[2])
            self._resume(text, bool(keep_views))
            return _views_of(str(self._restore)) != before

    def seek(self, epoch: int, batch: int) -> None:
        """Continues before a batch of an epoch, as from a state that was taken there;
        with the views that are in use."""
        with self.lock:
            self._settle(begins=False)
            parts = str(self._alive().state()[2]).split(" ")
            parts[3], parts[4] = str(epoch), str(batch * int(parts[6]))  # epoch, position, global batch
            self._resume(" ".join(parts), True)

    def _resume(self, text: str, keep_views: bool) -> None:
        core = self._alive()
        core.resume(text, keep_views)
        epoch, batch, self._restore = core.state()
        self._turn += 1
        self._loaded, self._wanted, self._going = (epoch, batch), None, None
        self._upcoming = epoch if batch < self.length else epoch + 1

    def set_views(self, views: dict[str, Any]) -> None:
        """The options of the views from the epoch on that starts next."""
        with self.lock:
            core = self._alive()
            try:
                core.set_views(views)
            except InvalidArgumentError as error:
                raise _in_words(error, views) from None
            self._options = {**self._options, **views}
            if self._restore is not None:
                self._restore = core.state()[2]

    def close(self) -> None:
        self._end_report()
        self._closed = True  # also where another thread waits for a batch: it is told
        core, self._core = self._core, None
        if core is not None:
            core.close()


_engines: weakref.WeakSet[Engine] = weakref.WeakSet()


def _after_fork() -> None:
    for engine in list(_engines):
        engine.after_fork_in_child()


os.register_at_fork(after_in_child=_after_fork)
