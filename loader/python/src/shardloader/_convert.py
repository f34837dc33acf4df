"""The converter, in this process."""

from __future__ import annotations

import operator
import os
import sys
import time
from typing import Any, Callable, NamedTuple, Optional, Union

from . import _core, _words
from ._arrays import DTYPES, dtype_name
from ._errors import InvalidArgumentError, ShardError

_WORDS = ("preset", "filter", "dtype", "layout", "normalize", "codec", "on_error", "on_warning", "unlisted")
_NUMBERS = ("max_pixels", "shard_size_bytes", "samples_per_shard", "jobs", "rank", "world_size")
_FLAGS = ("fast_decode", "overwrite", "refresh", "strict")
_PATHS = ("labels", "root")
_SHORT = {long: short for short, long in DTYPES.items()}


class Conversion(NamedTuple):
    """What convert() did."""

    complete: bool  #: the data set is finished (False: other ranks still have shards to do)
    was_complete: bool  #: it was finished before: nothing was done
    inputs: int
    samples: int
    rejects: int  #: listed with reasons in rejects.csv
    warnings: "dict[str, int]"  #: images stored although the decoder warned, per kind of warning ("extraneous_bytes": 2)
    shards: int
    size_bytes: int  #: of all shards
    converted: int  #: images decoded by this call
    bytes_read: int
    scan_seconds: float
    convert_seconds: float


def _size(name: str, value: Any) -> str:
    """N, or (height, width) as everywhere in this package, in the words of shardify (WIDTHxHEIGHT)."""
    if isinstance(value, (tuple, list)):
        if len(value) != 2:
            raise InvalidArgumentError(f"{name} is {value!r}; expected a size, or (height, width)")
        return f"{operator.index(value[1])}x{operator.index(value[0])}"
    return str(value)


class _Bar:
    """tqdm where it is installed, else a line on a terminal."""

    def __init__(self) -> None:
        self._bar: Any = None
        self._shown = 0.0
        try:
            from tqdm.auto import tqdm

            self._tqdm: Any = tqdm
        except ImportError:
            self._tqdm = None

    def __call__(self, done: int, planned: int, rejected: int) -> None:
        if planned == 0:
            return
        if self._tqdm is not None:
            if self._bar is None:
                self._bar = self._tqdm(total=planned, initial=0, unit="images")
            self._bar.update(done - self._bar.n)
            if rejected:
                self._bar.set_postfix(rejected=rejected, refresh=False)
        elif sys.stderr.isatty() and time.monotonic() - self._shown > 0.5:
            self._shown = time.monotonic()
            print(f"\r{done} / {planned} images, {rejected} rejected ", end="", file=sys.stderr, flush=True)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
        elif self._shown:
            print(file=sys.stderr)


def convert(
    images: Union[str, "os.PathLike[str]"],
    out: Union[str, "os.PathLike[str]"],
    *,
    preset: str = "eval",
    progress: Union[bool, Callable[[int, int, int], None]] = False,
    **options: Any,
) -> Conversion:
    """Converts a folder of images (images/<class>/**) to a data set in `out`, as the program shardify does.

    preset: "eval" (short side 256, centre crop 224, float16 NCHW, normalised) or "train" (256x256 uint8 NHWC, to be cropped
    and normalised while training). progress: True for a bar (tqdm where it is installed), or a function
    (done, planned, rejected) that is called some times a second.

    options, as shardify's of the same names: resize=N, crop=N or (height, width) or "none", squash=(height, width), filter,
    dtype, layout, normalize, mean and std (three numbers each), codec, shard_size_bytes, samples_per_shard, labels (a CSV
    file), unlisted, root, strict, on_error, on_warning ("harmless", "accept" or "reject"), max_pixels, fast_decode, overwrite,
    refresh, jobs (threads). `images` may be "@FILE": a list of paths, one a line.

    This process does all of it, also under torchrun, mpirun or srun: call it in one process (rank 0) and let the others
    wait. To share the work, call it in every process with rank= and world_size=: each converts its part, and the result says
    complete=False where others are still at work.

    Interrupted at any moment, the same call goes on where it was. Raises InvalidArgumentError (a ValueError), NotFoundError,
    IoError, ResourceError; KeyboardInterrupt stops it within a moment, with nothing partial visible.
    """
    if os.fspath(images) == "-":
        raise InvalidArgumentError("images is '-': a list on standard input is for the program; write it to a file, '@FILE'")
    given: dict[str, Any] = {"images": os.fspath(images), "out": os.fspath(out), "preset": preset}
    for name, value in options.items():
        if value is None:
            continue
        if name in ("resize", "crop", "squash"):
            given[name] = _size(name, value)
        elif name in ("mean", "std"):
            given[name] = ",".join(repr(float(channel)) for channel in value)
        elif name == "dtype":
            given[name] = _SHORT[dtype_name(value)]
        elif name in _WORDS:
            given[name] = str(value)
        elif name in _NUMBERS:
            given[name] = operator.index(value)
            if given[name] < 0:
                raise InvalidArgumentError(f"{name} is {value}; it must not be negative")
        elif name in _FLAGS:
            given[name] = bool(value)
        elif name in _PATHS:
            given[name] = os.fspath(value)
        else:
            raise TypeError(f"convert() has no option {name!r}")
    if ("rank" in given) != ("world_size" in given):
        raise InvalidArgumentError("rank and world_size go together")
    bar = _Bar() if progress and not callable(progress) else None
    try:
        return Conversion(**_core.convert(given, progress if callable(progress) else bar))
    except ShardError as error:
        raise _words.of_convert(error) from None
    finally:
        if bar is not None:
            bar.close()
