"""Am I waiting for data? doctor() measures it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from .._base import check
from .._diagnosis import Diagnosis, half_width
from .._errors import InvalidArgumentError
from .._loader import Loader
from .stretches import measure


def described(loader: Any) -> str:
    """ "DataLoader of ImageFolder, 4 workers"."""
    if isinstance(loader, Loader):
        return f"shardloader.Loader of {loader.data.path!r}"
    data = getattr(loader, "dataset", None)
    workers = getattr(loader, "num_workers", None)
    return (
        type(loader).__name__
        + (f" of {type(data).__name__}" if data is not None else "")
        + (f", {workers} workers" if isinstance(workers, int) else "")
    )


def doctor(
    loader: Iterable[Any], step: Callable[[Any], Any], *, seconds: float = 20, quiet: bool = False
) -> Diagnosis:
    """Says whether a training loop waits for its data, and how much another loader could gain at most.

    loader: any iterable of batches: a torch DataLoader, a shardloader.Loader, a generator. One that can be
        iterated again is, as often as it takes; a generator must have enough batches.
    step: what the loop does with a batch: step(batch). It is called with the loader's batches, and again and
        again with the first one, which is kept. Its result is not used.
    seconds: about how long to measure. Slow steps take longer: at least three stretches of five steps.
    quiet: True: print nothing.

    Prints and returns a Diagnosis. The loop is run in stretches, alternately with the loader and with the
    batch that is kept: waiting is what the first take longer, per step. So it includes what data loading
    costs the step itself, such as cores that worker processes take from it. Drift cancels, because each
    stretch is compared with those around it; its uncertainty comes from the spread of the stretches.

    On a GPU, steps are queued and run later. The stretches begin and end with a synchronisation (of PyTorch,
    CuPy or JAX, whichever is loaded), and there is none inside: work that overlaps in your loop overlaps
    here. Copies to the GPU belong to the step if step(batch) makes them, and to the loader if that delivers
    batches on the GPU.

    The steps are real: a model is trained by them, on some batches many times, and the loader's epochs go by.
    Pass a copy of the model if it must stay as it is. A step that changes its batch in place changes the one
    that is replayed. If batches differ much in size, the first one should be a typical one. Where epochs are
    short, their starts (such as the start of worker processes) are part of what is measured; otherwise
    first_batch_seconds has them.

    Raises InvalidArgumentError if there are too few batches, and what loader and step raise.
    """
    quiet = check.flag("quiet", quiet)
    if not hasattr(loader, "__iter__") or isinstance(loader, (str, bytes, Mapping)):
        check.refuse("loader", loader, "an iterable of batches")
    if not callable(step):
        check.refuse("step", step, "a function that takes a batch")
    if not 0 < check.number("seconds", seconds) <= 3600:
        check.refuse("seconds", seconds, "a number above 0 and up to 3600")
    measured = measure(loader, step, seconds)
    shares = measured.shares()
    if not shares:
        raise InvalidArgumentError("no stretch was measured")
    batches = sum(stretch.steps for stretch in measured.loaded)
    replayed = sum(stretch.steps for stretch in measured.replays)
    found = Diagnosis(
        loader=described(loader),
        waiting=min(1.0, max(0.0, sum(shares) / len(shares))),
        uncertainty=half_width(shares),
        step_seconds=sum(stretch.seconds for stretch in measured.replays) / replayed,
        loop_seconds=sum(stretch.seconds for stretch in measured.loaded) / batches,
        cores=sum(measured.cores) / len(measured.cores),
        first_batch_seconds=measured.first_batch_seconds,
        stretches=len(measured.loaded),
        batches=batches,
        own=isinstance(loader, Loader),
    )
    if not quiet:
        print(found)
    return found
