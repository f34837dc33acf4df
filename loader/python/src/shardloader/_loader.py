"""The loader: shuffled, transformed batches on a device."""

from __future__ import annotations

import gc
import operator
import os
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple, Optional, Union

import numpy as np

from . import _core
from ._arrays import DTYPES, Framework, framework_of, to_numpy
from ._dataset import Dataset
from ._errors import InvalidArgumentError, ResourceError

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


class Batch(tuple):
    """(images, labels), and what else there is to know of a batch.

    images [sample, channel, row, column] or [sample, row, column, channel], as the loader's `shape` and `dtype` say, in C
    order, on the loader's device. The memory is the batch's own: it may be written to, and is not used again while the
    array, anything that shares its memory, or this object lives.
    labels int64 [sample] (float32 [sample, k] from a table), on the same device: a copy, which may be kept.
    """

    _core: Any
    _framework: Framework

    @property
    def epoch(self) -> int:
        return self._core.epoch

    @property
    def index(self) -> int:  # type: ignore[override]
        """Of this rank's batches in the epoch."""
        return self._core.index

    @property
    def ids(self) -> np.ndarray:
        """Which samples of the data set these are: uint64 [sample], a copy on the host."""
        return to_numpy(self._core.ids).copy()

    @property
    def mask(self) -> np.ndarray:
        """True for real samples, False for the padding of tail="pad": bool [sample], a copy on the host."""
        return to_numpy(self._core.mask).copy()

    def column(self, name: str) -> Any:
        """The batch's rows of a column [sample, ...], on the device: a copy. KeyError where there is none of that name."""
        try:
            tensor = self._core.column(name)
        except FileNotFoundError as error:
            raise KeyError(str(error)) from None
        return self._framework.labels(tensor)


class Epoch(Iterator[Batch]):
    """The batches of an epoch that are left, once. len() is how many."""

    def __init__(self, loader: "Loader") -> None:
        self._loader = loader

    def __iter__(self) -> "Epoch":
        return self

    def __len__(self) -> int:
        return self._loader._left(self)

    def __next__(self) -> Batch:
        return self._loader._next(self)


def _ordinal(device: Any) -> int:
    """-1: the host."""
    name = str(device)
    if name == "cpu":
        return -1
    if name == "cuda":
        torch = sys.modules.get("torch")
        return int(torch.cuda.current_device()) if torch is not None and torch.cuda.is_available() else 0
    if name.startswith("cuda:") and name[5:].isdecimal():
        return int(name[5:])
    raise InvalidArgumentError(f'device is {name!r}; expected "cpu", "cuda" or "cuda:N"')


def _placement() -> "tuple[int, int]":
    """Rank and world size: of torch.distributed where it runs, else RANK and WORLD_SIZE, else 0 of 1."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.distributed.is_available() and torch.distributed.is_initialized():
        return torch.distributed.get_rank(), torch.distributed.get_world_size()
    rank, world = os.environ.get("RANK"), os.environ.get("WORLD_SIZE")
    if rank is None and world is None:
        return 0, 1
    if rank is None or world is None or not rank.isdecimal() or not world.isdecimal():
        raise InvalidArgumentError(f"RANK is {rank!r} and WORLD_SIZE is {world!r}; expected two whole numbers, or neither")
    return int(rank), int(world)


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


def _dtype(dtype: Any) -> Optional[str]:
    if dtype is None or isinstance(dtype, str):
        return dtype
    name = str(dtype)
    return name[len("torch.") :] if name.startswith("torch.") else np.dtype(dtype).name


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
    tail: the last, incomplete global batch is left out ("drop"), filled up and masked ("pad", see Batch.mask), or filled up
        with the epoch's first samples ("wrap").
    rank, world_size: default: torch.distributed where it is initialised, else RANK and WORLD_SIZE, else one rank.

    Transform, in one pass on the device. Sizes are N or (height, width).
    center_crop, random_crop, random_resized_crop: one of them, as torchvision's; scale and ratio: of the last.
    flip: True (half of the samples), or a probability.
    dtype: "uint8", "float16", "bfloat16", "float32", or a numpy or torch dtype; default as stored. uint8 samples delivered as
        floats are (byte / 255 - mean) / std.
    layout: "nchw" or "nhwc"; default as stored.
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
        tail: str = "drop",
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
        if rank is None or world_size is None:
            rank, world_size = _placement()
        if window_shards is not None and not shuffle:
            raise InvalidArgumentError("window_shards is a kind of shuffle, but shuffle is False")
        if mean is not None or std is not None:
            mean = tuple(self.data.mean if mean is None else mean)  # type: ignore[assignment]
            std = tuple(self.data.std if std is None else std)  # type: ignore[assignment]
        options = {
            "batch_size": batch_size,
            "order": "windowed" if window_shards is not None else "shuffle" if shuffle else "sequential",
            "seed": seed,
            "window_shards": window_shards,
            "partition": partition,
            "tail": tail,
            "rank": rank,
            "world_size": world_size,
            **_crop({"center_crop": center_crop, "random_crop": random_crop, "random_resized_crop": random_resized_crop}),
            "scale": tuple(scale),
            "ratio": tuple(ratio),
            "flip": (0.5 if flip else 0.0) if isinstance(flip, bool) else flip,
            "dtype": _dtype(dtype),
            "layout": layout,
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
        ordinal = _ordinal(device)
        self.device = "cpu" if ordinal < 0 else f"cuda:{ordinal}"
        self.rank, self.world_size = rank, world_size
        self._framework = framework_of(framework, ordinal)
        self._core = _core.Loader(self.data._core, ordinal, options, self._framework.current_stream)
        shape, delivered, self.layout = self._core.delivered()
        #: Of a delivered sample: (channels, rows, columns) or (rows, columns, channels).
        self.shape: tuple[int, int, int] = shape
        #: Of delivered values: "uint8", "float16", "bfloat16" or "float32".
        self.dtype: str = DTYPES[delivered]
        self._length: int = self._core.batches()
        self._current: Optional[Epoch] = None
        self._resumed = False  # a state was loaded, and no epoch begun since
        self._upcoming = 0  # the epoch that iter() begins

    def __len__(self) -> int:
        """Batches of this rank in an epoch."""
        return self._length

    def __repr__(self) -> str:
        return f"<Loader of {self.data._path!r} on {self.device}: {len(self)} batches of {self.dtype} {list(self.shape)}>"

    def epoch(self, epoch: int) -> Epoch:
        """An iterator over the batches of an epoch: `for images, labels in loader.epoch(e)`.

        After load_state_dict() of a state inside this epoch, the rest of it; nothing, once, where the state stood at its
        end. What is prefetched of another epoch is dropped; an iterator that was made before ends in an
        InvalidArgumentError.

        Each step waits for the next batch, without the GIL, and raises what went wrong on the library's threads, naming
        shard and sample; it repeats until another epoch is begun. ResourceError: all prefetch + 1 batches are held.
        """
        epoch = operator.index(epoch)
        if epoch < 0:
            raise InvalidArgumentError(f"epoch is {epoch}; epochs begin at 0")
        resumed, self._resumed = self._resumed, False
        self._core.begin(epoch, resumed)
        self._upcoming = epoch + 1
        self._current = Epoch(self)
        return self._current

    def __iter__(self) -> Epoch:
        """The next epoch: 0 at first, then the one behind the last; after load_state_dict() the rest of the state's."""
        return self.epoch(self._upcoming)

    def _require_current(self, epoch: Epoch) -> None:
        if epoch is not self._current:
            raise InvalidArgumentError("another epoch was begun, or a state loaded: this iterator is over")

    def _left(self, epoch: Epoch) -> int:
        self._require_current(epoch)
        return max(0, self._length - int(self._core.state()[1]))

    def _next(self, epoch: Epoch) -> Batch:
        self._require_current(epoch)
        stream = self._framework.stream()
        try:
            core = self._core.next(stream)
        except ResourceError:  # batches may hang in reference cycles
            gc.collect()
            core = self._core.next(stream)
        if core is None:
            raise StopIteration
        framework = self._framework
        batch = Batch((framework.images(core.images), framework.labels(core.column("labels"))))
        batch._core = core
        batch._framework = framework
        return batch

    def state_dict(self) -> "dict[str, Any]":
        """Where the loader stands: plain values, the same on every rank, good for torch.save, JSON or pickle.

        "epoch" and "batch" are for people: the batches handed out of that epoch; taken in the loop's body, the batch at hand
        counts as done.
        """
        epoch, batch, text = self._core.state()
        return {"epoch": epoch, "batch": batch, "state": text}

    def load_state_dict(self, state: "dict[str, Any]") -> None:
        """Goes on from there: loader.epoch(state["epoch"]) is the rest of that epoch. Also with another world size (partition
        "global"), device or transport. Raises InvalidArgumentError when data set, seed or global batch size differ."""
        self._core.resume(state["state"])
        self._current = None
        self._resumed = True
        epoch, batch, _ = self._core.state()
        self._upcoming = epoch if batch < self._length else epoch + 1

    def stats(self) -> Stats:
        """Counters since the loader was made: who waited for whom, and for how long. From any thread."""
        return Stats(**self._core.stats())

    def cancel(self) -> None:
        """From any thread: who waits for a batch gets CancelledError, until another epoch is begun."""
        self._core.cancel()

    def close(self) -> None:
        """Stops and joins the threads. Batches that are held stay valid. Also at the end of a `with` block, and by itself."""
        self._core.close()

    def __enter__(self) -> "Loader":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
