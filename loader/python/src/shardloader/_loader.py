"""The loader: shuffled, transformed batches on a device."""

from __future__ import annotations

import operator
import os
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple, Optional, Union

from . import _core
from ._arrays import DTYPES, Framework, Torch, dtype_name, framework_of
from ._batch import Batch, ordinal_of
from ._dataset import Dataset
from ._engine import Engine
from ._errors import InvalidArgumentError

#: This build has the CUDA device.
has_cuda: bool = _core.has_cuda

Size = Union[int, "tuple[int, int]"]


def cuda_device_count() -> int:
    """GPUs that this process can use; 0 where there is no driver or the build has no CUDA. Raises nothing."""
    return _core.cuda_device_count()


class Stats(NamedTuple):
    """Who waited for whom since the loader was made (docs/loader.md)."""

    batches: int
    samples: int
    bytes: int  #: stored bytes moved to the device
    storage_seconds: float  #: waiting for pages, reads, decompression
    link_seconds: float  #: the loader waiting for copies and transforms of earlier batches
    consumer_seconds: float  #: the loader waiting for a batch to be given back
    starved_seconds: float  #: the training loop waiting for a batch
    transport: str
    reason: str  #: why this transport
    registered_bytes: int
    pinned_bytes: int
    device_bytes: int


class Epoch(Iterator[Batch]):
    """The batches of an epoch that are left, once. len() is how many.

    It does not keep its loader: where that is gone, an epoch that is iterated on starts the threads again, where they were.
    """

    def __init__(self, engine: Engine, turn: Optional[int]) -> None:
        self._engine = engine
        self._turn = turn  # None: it begins with its first batch

    def __iter__(self) -> "Epoch":
        return self

    def __len__(self) -> int:
        return self._engine.left(self._turn)

    def __next__(self) -> Batch:
        return self._engine.next(self)


class Sampler:
    """What frameworks look for in a loader, as its sampler or its batch sampler: set_epoch(e) is Loader.set_epoch(e)."""

    def __init__(self, engine: Engine, batch_size: int, drop_last: bool) -> None:
        self._engine = engine
        self.batch_size, self.drop_last = batch_size, drop_last

    @property
    def sampler(self) -> "Sampler":
        return self

    def set_epoch(self, epoch: int) -> None:
        self._engine.set_epoch(_number(epoch))


def _number(epoch: Any) -> int:
    epoch = operator.index(epoch)
    if epoch < 0:
        raise InvalidArgumentError(f"epoch is {epoch}; epochs begin at 0")
    return epoch


def _crop(choices: "dict[str, Optional[Size]]") -> "dict[str, Any]":
    given = {name: size for name, size in choices.items() if size is not None}
    if len(given) > 1:
        raise InvalidArgumentError(f"{' and '.join(given)} exclude each other")
    for name, size in given.items():
        both = size if isinstance(size, (tuple, list)) else (size, size)
        if len(both) != 2:
            raise InvalidArgumentError(f"{name} is {size!r}; expected a size, or (height, width)")
        height, width = (operator.index(side) for side in both)
        if height < 1 or width < 1:
            raise InvalidArgumentError(f"{name} is {size!r}; sizes begin at 1")
        return {"crop": name.removesuffix("_crop") if name != "center_crop" else "center", "crop_height": height, "crop_width": width}
    return {"crop": "none"}


def _layout(layout: Optional[str], dtype: Optional[str], data: Dataset, framework: Framework) -> Optional[str]:
    """None: as stored."""
    if layout is None and (isinstance(framework, Torch) or (dtype or data.dtype) != "uint8"):
        return "nchw"
    return layout


def _tail(tail: Optional[str], drop_last: Optional[bool]) -> str:
    if drop_last is None:
        return "drop" if tail is None else tail
    if tail is not None and (tail == "drop") != bool(drop_last):
        raise InvalidArgumentError(f"tail is {tail!r} and drop_last is {drop_last}: name one of them")
    return tail if tail is not None else "drop" if drop_last else "short"


class Loader:
    """Batches of a data set on a device, prefetched by threads of the library; no worker processes.

    data: a Dataset, or its path.
    batch_size: samples a batch of this rank. The global batch is batch_size x world_size.
    device: "cpu", "cuda" (torch's current device, else 0) or "cuda:N".
    framework: whose arrays images and labels are: "torch", "numpy" (host only), "cupy" (GPU only), "jax" (copies), None
        (shardloader.Tensor: any consumer of DLPack), or "auto": torch where it is installed, else numpy or cupy.

    Order. The same seed gives the same batches, bit for bit, for every transport, number of threads, world size, device and
    point of resume.
    shuffle: a new permutation of the whole data set each epoch; False: in stored order.
    window_shards: with shuffle: permute the shards, and the samples inside each window of so many shards: for data larger
        than memory.
    partition: "global" (every rank takes slices of one sequence) or "by_shard" (a rank reads only its shards of the epoch).
    tail: the last, incomplete global batch is left out ("drop", the default), has fewer rows ("short": every sample once over
        all ranks, for evaluation; of several ranks some may get 0 rows), is filled up and masked ("pad", see Batch.mask), or
        filled up with the epoch's first samples ("wrap").
    drop_last: as torch's: True is tail="drop", False is tail="short".
    rank, world_size: default: torch.distributed where it is initialised, else RANK and WORLD_SIZE, else one rank: as they are
        when the first epoch begins. Where torch.distributed says otherwise at a later epoch, that is an InvalidArgumentError.

    Transform, in one pass on the device. Sizes are N or (height, width).
    center_crop, random_crop, random_resized_crop: one of them, as torchvision's; scale and ratio: of the last.
    flip: True (half of the samples), or a probability.
    dtype: "uint8", "float16", "bfloat16", "float32" (or "u8", "f16", "bf16", "f32"), or a numpy or torch dtype; default as
        stored. uint8 samples delivered as floats are (byte / 255 - mean) / std.
    layout: "nchw" or "nhwc". Default "nchw", as PyTorch's models take images, with PyTorch and for float dtypes; uint8 for other
        frameworks as stored.
    mean, std: three numbers each; default what the data set recorded.

    Transport (docs/loader.md).
    transport: "auto", "mapped", "staged", "direct" or "resident"; stats().reason says why it is the one it is.
    prefetch: batches ahead of the consumer, 1 to 64. prefetch + 1 batches exist; so many may be held at once.
    threads: for copies, decompression and the host's transforms; 0: min(8, cores).
    verify: hold checksums against the samples: "never", "first_epoch" or "always".
    registered_bytes, pinned_bytes, resident_bytes, readahead_bytes: bounds of memory, in bytes; default the library's.

    A batch's memory is used again when the last array that shares it is gone. On a GPU it is ordered after the copy on the
    stream that is current when it is handed out, and is used again only after the work that stands, at the moment in which
    the last array dies, in that stream and in the one that is current in the thread in which it dies. Who reads it on a
    further stream keeps it until that work is done, or makes one of these streams wait for it (as for torch's own
    allocator; Tensor.record_stream has no effect on a batch).

    Threads may share a loader: each batch goes to one of them. After fork() it must not be used in the child
    (UnsupportedError). Raises InvalidArgumentError (a ValueError) naming option and bounds, ResourceError, NotFoundError,
    CorruptError, IoError.
    """

    def __init__(
        self,
        data: Union[Dataset, str, "os.PathLike[str]"],
        *,
        batch_size: int = 256,
        device: Any = "cpu",
        framework: Optional[str] = "auto",
        shuffle: bool = True,
        seed: int = 0,
        window_shards: Optional[int] = None,
        partition: str = "global",
        tail: Optional[str] = None,
        drop_last: Optional[bool] = None,
        rank: Optional[int] = None,
        world_size: Optional[int] = None,
        center_crop: Optional[Size] = None,
        random_crop: Optional[Size] = None,
        random_resized_crop: Optional[Size] = None,
        scale: "tuple[float, float]" = (0.08, 1.0),
        ratio: "tuple[float, float]" = (3 / 4, 4 / 3),
        flip: Union[bool, float] = False,
        dtype: Any = None,
        layout: Optional[str] = None,
        mean: Optional["tuple[float, float, float]"] = None,
        std: Optional["tuple[float, float, float]"] = None,
        transport: str = "auto",
        prefetch: int = 4,
        threads: int = 0,
        verify: str = "never",
        registered_bytes: Optional[int] = None,
        pinned_bytes: Optional[int] = None,
        resident_bytes: Optional[int] = None,
        readahead_bytes: Optional[int] = None,
    ) -> None:
        self.data = data if isinstance(data, Dataset) else Dataset(data)
        if (rank is None) != (world_size is None):
            raise InvalidArgumentError("rank and world_size go together")
        if window_shards is not None and not shuffle:
            raise InvalidArgumentError("window_shards is a kind of shuffle, but shuffle is False")
        if mean is not None or std is not None:
            mean = tuple(self.data.mean if mean is None else mean)  # type: ignore[assignment]
            std = tuple(self.data.std if std is None else std)  # type: ignore[assignment]
        ordinal = ordinal_of(device)
        arrays = framework_of(framework, ordinal)
        options = {
            "batch_size": batch_size,
            "order": "windowed" if window_shards is not None else "shuffle" if shuffle else "sequential",
            "seed": seed,
            "window_shards": window_shards,
            "partition": partition,
            "tail": _tail(tail, drop_last),
            **_crop({"center_crop": center_crop, "random_crop": random_crop, "random_resized_crop": random_resized_crop}),
            "scale": tuple(scale),
            "ratio": tuple(ratio),
            "flip": (0.5 if flip else 0.0) if isinstance(flip, bool) else flip,
            "dtype": None if dtype is None else dtype_name(dtype),
            "layout": _layout(layout, None if dtype is None else dtype_name(dtype), self.data, arrays),
            "mean": mean,
            "std": std,
            "transport": transport,
            "prefetch": prefetch,
            "threads": threads,
            "verify": verify,
            "registered_bytes": registered_bytes,
            "pinned_bytes": pinned_bytes,
            "resident_bytes": resident_bytes,
            "readahead_bytes": readahead_bytes,
        }
        given = None if rank is None or world_size is None else (rank, world_size)
        self._engine = Engine(self.data, ordinal, options, arrays, given)
        #: "cpu" or "cuda:N".
        self.device = "cpu" if ordinal < 0 else f"cuda:{ordinal}"
        #: Of this rank.
        self.batch_size = batch_size
        #: The last, incomplete batch is left out.
        self.drop_last = options["tail"] == "drop"
        shape, delivered, self.layout = self._engine.core().delivered()
        #: Of a delivered sample: (channels, rows, columns) or (rows, columns, channels).
        self.shape: tuple[int, int, int] = shape
        #: Of delivered values: "uint8", "float16", "bfloat16" or "float32".
        self.dtype: str = DTYPES[delivered]

    def __len__(self) -> int:
        """Batches of this rank in an epoch, the last, smaller or padded one too."""
        self._engine.settled()
        return self._engine.length

    def __repr__(self) -> str:
        return f"<Loader of {self.data.path!r} on {self.device}: {self._engine.length} batches of {self.dtype} {list(self.shape)}>"

    @property
    def dataset(self) -> Dataset:
        """`data`, by the name that torch's DataLoader has for it."""
        return self.data

    @property
    def rank(self) -> int:
        """As it was given or found; may still change before the first epoch begins."""
        return self._engine.settled()[0]

    @property
    def world_size(self) -> int:
        """As `rank`."""
        return self._engine.settled()[1]

    @property
    def sampler(self) -> Sampler:
        """For frameworks that call loader.sampler.set_epoch(e)."""
        return Sampler(self._engine, self.batch_size, self.drop_last)

    batch_sampler = sampler  # of Lightning's interest where there is a sampler

    def epoch(self, epoch: int) -> Epoch:
        """An iterator over the batches of an epoch: `for images, labels in loader.epoch(e)`.

        After load_state_dict() of a state inside this epoch, the rest of it; nothing, once, where the state stood at its
        end; InvalidArgumentError for another epoch than that and (from its end) the next. What is prefetched of another epoch
        is dropped; an iterator that was made before ends in an InvalidArgumentError.

        Each step waits for the next batch, without the GIL, and raises what went wrong on the library's threads, naming
        shard and sample; it repeats until another epoch is begun. ResourceError: all prefetch + 1 batches are held.
        """
        engine, self = self._engine, None  # type: ignore[assignment]  # a traceback of what follows holds no loader
        return Epoch(engine, engine.begin(_number(epoch)))

    def __iter__(self) -> Epoch:
        """The next epoch: 0 at first, then the one behind the last; after load_state_dict() the rest of the state's; after
        set_epoch(e) epoch e. Which one that is, is decided when the first batch is asked for, and so nothing is begun or
        dropped before."""
        return Epoch(self._engine, None)

    def set_epoch(self, epoch: int) -> None:
        """The epoch that the next iteration of the loader begins, as DistributedSampler's. An iteration that has had a batch
        goes on. Without a further call the next one is epoch + 1."""
        self._engine.set_epoch(_number(epoch))

    def state_dict(self) -> "dict[str, Any]":
        """Where the loader stands: plain values, the same on every rank, good for torch.save, JSON or pickle.

        "epoch" and "batch" are for people: the batches handed out of that epoch; taken in the loop's body, the batch at hand
        counts as done.
        """
        engine, self = self._engine, None  # type: ignore[assignment]
        epoch, batch, text = engine.core().state()
        return {"epoch": epoch, "batch": batch, "state": text}

    def load_state_dict(self, state: "dict[str, Any]") -> None:
        """Goes on from there: loader.epoch(state["epoch"]), or iterating the loader, is the rest of that epoch; another epoch
        is refused then. Also with another world size (partition "global"), device or transport. Raises InvalidArgumentError
        when data set, seed or global batch size differ."""
        engine, self = self._engine, None  # type: ignore[assignment]
        engine.load(state["state"])

    def stats(self) -> Stats:
        """Counters since the loader was made: who waited for whom, and for how long. From any thread."""
        engine, self = self._engine, None  # type: ignore[assignment]
        return Stats(**engine.core().stats())

    def cancel(self) -> None:
        """From any thread: who waits for a batch gets CancelledError, until another epoch is begun."""
        self._engine.core().cancel()

    def close(self) -> None:
        """Stops and joins the threads. Batches that are held stay valid. Also at the end of a `with` block, and by itself when
        the loader is no longer held by anyone."""
        self._engine.close()

    def __del__(self) -> None:
        engine = getattr(self, "_engine", None)
        if engine is not None and not sys.is_finalizing():
            engine.drop()

    def __enter__(self) -> "Loader":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
