"""The loader: shuffled, transformed batches on a device."""

from __future__ import annotations

import functools
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from .. import _core
from .._augment import Augment
from .._augment.view_options import ViewOptions
from .._base import check
from .._base.arrays import Torch, framework_of
from .._base.declare import declared, taken, with_signature
from .._batch import Batch, ordinal_of
from .._cache import CacheProgress, CacheReporter
from .._dataset import Dataset, Mix
from .._errors import InvalidArgumentError
from .._fields import _LONG
from .._groups import Sampling
from .._progress import Progress, Reporter
from .._source import opened
from .._statistics import Stats
from .._targets import Geometry, Target, geometry_of
from .._targets import options_of as target_options
from .engine import Engine
from .options import (
    LoaderOptions,
    check_given_once,
    mean_and_std,
    options_of_mix,
    options_of_views,
    sampling_of,
    tail_of,
    unnamed_layout,
)

if TYPE_CHECKING:
    from typing_extensions import Unpack

#: This build has the CUDA device.
has_cuda: bool = _core.has_cuda


def cuda_device_count() -> int:
    """The number of GPUs that this process can use. 0 if there is no driver or the build has no
    CUDA. Never raises."""
    return int(_core.cuda_device_count())


class Epoch(Iterator[Batch]):
    """An iterator over the remaining batches of an epoch. len() is their number.

    It does not keep its loader alive. If the loader is gone,
    the next step starts its threads again and continues.
    """

    def __init__(self, engine: Engine, turn: int | None) -> None:
        self._engine = engine
        self._turn = turn  # None: it starts with its first batch

    def __iter__(self) -> Epoch:
        return self

    def __len__(self) -> int:
        return self._engine.left(self._turn)

    def __next__(self) -> Batch:
        return self._engine.next(self)


class Sampler:
    """For frameworks that expect a sampler or a batch sampler: set_epoch(e) is Loader.set_epoch(e)."""

    def __init__(self, engine: Engine, batch_size: int, drop_last: bool) -> None:
        self._engine = engine
        self.batch_size, self.drop_last = batch_size, drop_last

    @property
    def sampler(self) -> Sampler:
        return self

    def set_epoch(self, epoch: int) -> None:
        self._engine.set_epoch(_number(epoch))


@functools.lru_cache(maxsize=1)
def _sequential_sampler(torch: Any) -> type[Sampler]:
    class SequentialOrder(Sampler, torch.utils.data.SequentialSampler):  # type: ignore[misc]
        """In stored order."""

    return SequentialOrder


def sequential_sampler() -> type[Sampler]:
    """A Sampler that PyTorch's users know as sequential, where PyTorch is loaded."""
    torch = sys.modules.get("torch")
    return Sampler if torch is None or not hasattr(torch, "utils") else _sequential_sampler(torch)


# The parameters of Loader beside its options.
_NAMED = tuple(
    "data batch_size device framework shuffle sampling window_shards tail drop_last rank world_size augment "
    "views fields as_stored progress cache".split()
)


def _number(epoch: Any) -> int:
    return check.whole("epoch", epoch, 0, 2**64 - 1)


class Loader:
    """Batches of a data set, prefetched; the last, incomplete batch is dropped unless drop_last=False.

    Threads of the library prefetch to the device. There are no worker processes.

    data: a Dataset, its path, or a mix(). A folder of images, or what else convert() takes, needs no
        conversion: it is Source(path).
    batch_size: samples per batch of this rank. The global batch is batch_size x world_size.
    device: "cpu", "cuda" (torch's current device, else 0) or "cuda:N".
    framework: the kind of arrays: "torch", "numpy" (host only), "cupy" (GPU only), "jax"
        (copies), None (shardloader.types.Tensor, for any consumer of DLPack), or "auto": torch if it is
        installed, else numpy or cupy.

    Order. The same seed gives the same batches, bit for bit, for every transport, number of threads,
    world size, device and point of resume.
    shuffle: True: a new permutation of the whole data set in each epoch. False: in stored order.
    window_shards: with shuffle, permute the shards, and the samples inside each window of this many shards.
        Use it for data larger than memory.
    partition: "global" (each rank gets slices of one sequence)
        or "by_shard" (a rank reads only its shards of the epoch).
    tail: what happens to the last, incomplete global batch. "drop" (the default): it is left out. "short":
        it has fewer rows, and all ranks together deliver every sample once, for evaluation; some ranks may
        get 0 rows. "pad": it is filled up and masked, see Batch.mask. "wrap": it is filled up with the
        epoch's first samples.
    drop_last: as in torch: True is tail="drop", False is tail="short".
    sampling: what is drawn. None: every sample once in an epoch. "balanced": every class equally often.
        Sampling(weights, replacement): in proportion to weights, or independently of each other.
    samples_per_epoch: samples that all ranks together draw in an epoch. Default: as many as the data set has.
        Without sampling, an epoch goes on where the last one ended, so that samples are drawn equally often.
    repeats: each global batch has every one of its samples this many times, with different
        crops and flips, as in timm and DeiT. An epoch has as many batches as without.

    rank, world_size: by default those of torch.distributed if it is initialised, else RANK and WORLD_SIZE,
        else one rank. They are fixed when the first epoch starts. If torch.distributed has other values at a
        later epoch, that is an InvalidArgumentError.

    Transform, in one pass on the device. Sizes are N or (height, width).
    center_crop, random_crop, random_resized_crop: at most one of them, as in torchvision. scale (default:
        0.08 to 1) and ratio (3/4 to 4/3) belong to the last.
    shortest, longest, squash, letterbox, cover: at most one of them: the whole sample is resized first.
        shortest=256: the short side becomes 256, as torchvision's Resize(256); longest: the long side; both
        need center_crop or random_crop. squash=(h, w): to this size. letterbox=(h, w): as large as fits, in
        the middle. cover=(h, w): as small as covers it, and the middle of that, or random_crop=(h, w).
    padded: True, or what sides are multiples of: samples keep their shapes (with longest=N: are resized),
        lie at row 0 and column 0, and a batch has the size of its largest; Batch.view_sizes.
    length_window: with padded: of each so many samples of the order (some dozen batches), those of about the
        same size come in one batch, so that less is padded. Every sample comes as often per epoch as without,
        also of mix() and other sampling; not with repeats.
    patch, max_tokens: patch=16, max_tokens=256: each sample is resized to whole patches of 16 x 16 pixels,
        as many as fit into 256 with its aspect ratio (NaFlex), and Batch.images is [patches, 16 * 16 *
        channels]: those of all samples, one after the other. column("patch_offsets"), int32 [sample + 1],
        says where those of each begin (cu_seqlens of flash attention), column("patch_coords"), int32
        [patches, 2], has row and column, and column("patch_samples"), int32 [patches], the row of the
        batch.
    buckets: [(h, w), ...], or buckets(area=, step=, max_aspect=): each sample belongs to the size that keeps
        most of it, and each batch has one of these sizes. bucket_crop: "center" or "random": what is kept.
        batch_pixels: as many samples a batch as have so many pixels, instead of batch_size for all buckets.
        Any sampling, also of mix(); not with repeats.
    filter: "bilinear" (the default), "bicubic", "box" or "lanczos": Pillow's, bit for bit. Of samples of any
        size, and of the five above. fill: a byte, or one for each channel, where a view has no pixels (0).
        Samples of any size (docs/sizes.md) need one of these or a crop; Batch.sizes says how large each is.
    flip: True (half of the samples), or a probability. Default: never.
    augment: an Augment: operations on the pixels, such as color jitter or RandAugment. Crop, flip, dtype,
        layout, mean and std are given here or there, not both.
    views: several Augments: each sample is delivered once for each of them, with its own size, operations and
        dtype. Batch.views has their images; Batch.images is the first one. A sample crosses the link once.
    mixup, cutmix: neighbours of the global batch (rows 0 and 1, 2 and 3, ...) are mixed: parameters of the
        beta distributions from which each pair draws the share that its samples keep, for instance mixup=0.2,
        cutmix=1.0. 0: never. mix_probability: of a pair being mixed (1). cutmix_probability: of cutmix then,
        if both are given (0.5). A batch has column("labels_b"), the neighbours' labels, and column("share"),
        float32: what is left of each row's own sample. Batch.soft_labels(classes) makes float32 [sample,
        classes] of them. batch_size must be even.
    dtype: "uint8", "uint16", "float16", "bfloat16", "float32" (or "u8", "u16", "f16", "bf16", "f32"), or a
        numpy or torch dtype. Default: as stored. uint8 samples delivered as floats are (byte / 255 - mean) /
        std; uint16 ones are divided by 65535. Tensors are delivered as stored, or cast between float dtypes.
    layout: "nchw" or "nhwc". Default: "nchw" with PyTorch and for float dtypes;
        for uint8 with other frameworks, as stored.
    mean, std: a number for each channel. Default: those recorded in the data set.

    Targets (docs/targets.md). They follow crop, flip and geometric operations of each view.
    Batch.targets() has them.
    fields: by name: further image fields as "nearest" (masks), "bilinear" (depth) or "stored", or Pixels(...)
        with more options; ragged columns as Boxes(...); columns of keypoints as Keypoints(...); any column as
        "stored". Boxes and keypoints that the data set knows (--coco, --yolo, --voc) follow without being
        named here. A list of names is for what the data set knows: masks (nearest), boxes and keypoints.
    as_stored: columns that are delivered as stored, whatever the views do; ["*"]: all that fields does not
        name. A column that looks like boxes, points or masks, and of which the data set does not record what
        it is, must be named here or in fields if a view crops, flips or moves samples: InvalidArgumentError.
        All other columns are delivered as stored.
    correspondence: column("correspondence") is float32 [sample, views, 3, 3]:
        the matrix from the stored sample to each view.

    Columns. Batch.column() delivers them.
    max_rows: for ragged columns, by name: how many rows of a sample are delivered; further ones are left out.
        Default: as many as any sample has. A limit of boxes holds for the columns along, too, and the other
        way round: all have a row for each box.
    flat: names of ragged columns that are delivered flat, with offsets, instead of padded, with counts.

    Transport (docs/loader.md).
    transport: "auto", "mapped", "staged", "direct" or "resident". stats().reason says why it is used.
    prefetch: batches ahead of the consumer, at most 64. There are prefetch + 1 batches,
        and as many can be kept at once. 0: 4, or 4,096 rows, in 4 to 32 batches, where a GPU decodes JPEGs.
    together: batches that are made as one, at most 64, which costs the host less for small ones; `prefetch`
        then counts such groups. 0: on a GPU, with prefetch=0, as many as have 256 rows in 64 MiB.
    threads: for copies, decompression and the host's transforms.
        0: the number of CPUs, at most 8, on a GPU 12 (16 threads for requests to a server).
    verify: when samples are compared with their checksums: "never", "first_epoch" or "always".
    on_error: what becomes of an image of a Source that cannot be used: "raise" (CorruptError), or "skip": the
        next sample of the data set (after the last the first) that can be used takes its place, for every
        rank and in every epoch. stats().replaced_images counts them, and a RuntimeWarning names the first.
        A file that cannot be read (IoError) is tried again in the next epoch.
    rejects: a CSV file to which such images are appended, with path and reason, each once for all ranks and
        runs that use the file. It is opened when the loader is made.
    memory: MemoryOptions(registered_bytes, pinned_bytes, resident_bytes, readahead_bytes, batch_bytes):
        bounds of memory.
    remote: RemoteOptions(cache, cache_bytes, transit, transit_bytes): what is kept on this machine of a data
        set on a server (docs/remote.md).
    cache: where `data` is a path of images: the folder in which each sample is stored when it is first used,
        as Source(data, cache=) does.

    progress: of images with a cache: True writes a line to standard error while the first epoch runs (rank 0
        only): what is stored, and when all will be. A function gets a CacheProgress instead.
        Of a data set on a server: True writes a line to standard error while the first epoch runs (rank
        0 only): shards and bytes that came of those of the epoch, rate, time left. A function gets a Progress
        instead, on a thread of its own, about once a second and at the epoch's end.

    A batch's memory is reused when the last array that shares it is gone. On a GPU, work that is queued later
    in the current stream sees the batch. The memory is reused only after the work that is in two streams when
    the last array dies: the stream that was current when the batch was delivered, and the current stream of
    the thread in which the array dies. If you read a batch on another stream, keep it until that work is
    done, or make one of the two streams wait for it (as for torch's own allocator; Tensor.record_stream has
    no effect on a batch).

    Threads may share a loader: each batch goes to one of them. Each keeps its batch while it asks for the
    next one, so `prefetch` must be at least the number of threads (ResourceError). After fork() a loader must
    not be used in the child (UnsupportedError). Raises InvalidArgumentError (a ValueError) naming option and
    bounds, ResourceError, NotFoundError, CorruptError, IoError.
    """

    def __init__(
        self,
        data: Dataset | Mix | str | os.PathLike[str],
        batch_size: int = 256,
        *,
        device: Any = "cpu",
        framework: str | None = "auto",
        shuffle: bool = True,
        sampling: str | Sampling | None = None,
        window_shards: int | None = None,
        tail: str | None = None,
        drop_last: bool | None = None,
        rank: int | None = None,
        world_size: int | None = None,
        augment: Augment | None = None,
        views: Sequence[Augment] = (),
        fields: Mapping[str, Target] | Sequence[str] | None = None,
        as_stored: Sequence[str] = (),
        progress: bool | Callable[[Progress], None] | Callable[[CacheProgress], None] = False,
        cache: str | os.PathLike[str] | None = None,
        **options: Unpack[LoaderOptions],
    ) -> None:
        shuffle = check.flag("shuffle", shuffle)
        progress = check.flag_or_function("progress", progress)
        mixed = data if isinstance(data, Mix) else None
        self.data = opened(data.data if isinstance(data, Mix) else data, cache)
        if (rank is None) != (world_size is None):
            raise InvalidArgumentError("rank and world_size go together")
        if window_shards is not None and not shuffle:
            raise InvalidArgumentError("window_shards is a kind of shuffle, but shuffle is False")
        passed = taken("Loader()", options, LoaderOptions, _NAMED)
        mixed_pairs = options_of_mix(passed)
        of_view = {name: passed.pop(name) for name in declared(ViewOptions)}
        check_given_once(of_view, augment, views)
        of_view["mean"], of_view["std"] = mean_and_std(self.data, of_view["mean"], of_view["std"])
        ordinal = ordinal_of(device)
        arrays = framework_of(framework, ordinal)
        self._own = {**of_view, "data": self.data}
        wanted = {
            **passed,
            **(passed["memory"] or {}),
            **(passed["remote"] or {}),
            "batch_size": batch_size,
            "rejects": passed["rejects"] or "",
            "order": "windowed" if window_shards is not None else "shuffle" if shuffle else "sequential",
            "tail": tail_of(tail, drop_last),
            "sampling": sampling_of(self.data, mixed, sampling),
            "batch_pixels": passed["batch_pixels"] or 0,
            "length_window": passed["length_window"] or 0,
            "samples_per_epoch": passed["samples_per_epoch"] or (mixed and mixed.epoch_size) or 0,
            **options_of_views(self._own, augment, views),
            "unnamed_layout": unnamed_layout(arrays),
            "mix": mixed_pairs,
            **target_options(fields or {}, self.data, "nchw" if isinstance(arrays, Torch) else "", as_stored),
        }
        if window_shards is not None:
            wanted["window_shards"] = window_shards
        given = None if rank is None or world_size is None else (rank, world_size)
        self._engine = Engine(self.data, ordinal, wanted, arrays, given)
        if progress and self.data._caches:
            self._engine.reporter = CacheReporter(progress, self.data._caches)
        elif progress:
            ranks = self._engine.settled()[1] if passed["partition"] == "by_shard" else 1
            shards = max(1, -(-len(self.data.info["shards"]) // ranks))
            share = shards / max(1, len(self.data.info["shards"]))
            size = round(share * self.data.info["size_bytes"])
            self._engine.reporter = Reporter(cast("Any", progress), shards, size)
        #: "cpu" or "cuda:N".
        self.device = "cpu" if ordinal < 0 else f"cuda:{ordinal}"
        #: Samples per batch of this rank.
        self.batch_size = batch_size
        #: True if the last, incomplete batch is left out.
        self.drop_last = wanted["tail"] == "drop"
        self._sequential = wanted["order"] == "sequential" and wanted["sampling"] is None
        self._describe()

    def __len__(self) -> int:
        """Batches of this rank per epoch, including a last one that is smaller or padded."""
        self._engine.settled()
        return self._engine.length

    def __repr__(self) -> str:
        return (
            f"<Loader of {self.data.path!r} on {self.device}: {self._engine.length} batches of "
            f"{self.dtype} {list(self.shape)}>"
        )

    @property
    def dataset(self) -> Dataset:
        """`data`, under the name that torch's DataLoader uses."""
        return self.data

    @property
    def rank(self) -> int:
        """The rank, as given or found. It can still change before the first epoch starts."""
        return self._engine.settled()[0]

    @property
    def world_size(self) -> int:
        """The world size, like `rank`."""
        return self._engine.settled()[1]

    @property
    def sampler(self) -> Sampler:
        """For frameworks that call loader.sampler.set_epoch(e). With shuffle=False and PyTorch, it
        is a torch.utils.data.SequentialSampler too, by which Lightning knows the order
        (overfit_batches, validation)."""
        kind = sequential_sampler() if self._sequential else Sampler
        return kind(self._engine, self.batch_size, self.drop_last)

    batch_sampler = sampler  # of Lightning's interest where there is a sampler

    def epoch(self, epoch: int) -> Epoch:
        """Starts an epoch and returns an iterator over its batches: `for images, labels in loader.epoch(e)`.

        After load_state_dict() of a state inside this epoch, it is the rest of the epoch. If the state was
        taken at the end of the epoch, it is empty once. Another epoch than that, or from its end the next
        one, is an InvalidArgumentError. Prefetched batches of another epoch are dropped, and an earlier
        iterator ends with an InvalidArgumentError.

        Each step waits for the next batch, without the GIL. It raises errors of the library's threads, naming
        shard and sample, and the same error again until another epoch is started. ResourceError: all prefetch
        + 1 batches are kept.
        """
        engine, self = self._engine, None  # type: ignore[assignment]  # a traceback of what follows holds no loader
        return Epoch(engine, engine.begin(_number(epoch)))

    def __iter__(self) -> Epoch:
        """The next epoch: 0 at first, then the one after the last; after load_state_dict() the rest of the
        state's epoch; after set_epoch(e) epoch e. This is decided when the first batch is requested; nothing
        is started or dropped before."""
        return Epoch(self._engine, None)

    def set_epoch(self, epoch: int) -> None:
        """Sets the epoch of the next iteration over the loader, like DistributedSampler. An
        iteration that has already delivered a batch continues. Without a further call, the iteration
        after that is epoch + 1."""
        self._engine.set_epoch(_number(epoch))

    def set_augment(self, *views: Augment | None) -> None:
        """Other views (or one, as augment=) from the epoch on that starts next, for instance larger ones:
        progressive resizing. None: without operations.

        May be called at any time. An epoch that runs goes on with the views it has; shape, dtype and layout
        are those of the new ones at once. When the next epoch starts, the loader makes its threads and memory
        again (ResourceError if it does not suffice). A state has the views of its epoch and, where others
        were set, those of the next. Raises InvalidArgumentError naming view and bound, and leaves the views
        as they were, if one is not possible."""
        if not views:
            raise InvalidArgumentError("set_augment() needs an Augment or None")
        try:
            self._engine.set_views(options_of_views(self._own, None, views))  # type: ignore[arg-type]
            self._describe()
        except BaseException:
            self = None  # type: ignore[assignment]  # a traceback holds no loader
            raise

    def _describe(self) -> None:
        shape, delivered, self.layout = self._engine.core().delivered()
        #: Shape of a delivered sample: (channels, rows, columns) or (rows, columns, channels). Rows and
        #: columns are 0 if batches have sizes of their own (buckets, padded).
        self.shape: tuple[int, ...] = shape
        #: Dtype of delivered values: "uint8", "uint16", "float16", "bfloat16" or "float32".
        self.dtype: str = _LONG[delivered]

    def geometry(self, sample: int, *, epoch: int = 0, view: int = 0) -> Geometry:
        """Where the parts of a sample are in a view: its crop, flip and geometric instructions, with the
        loader's seed, and the matrix of all of them.
        sample: its index in the data set (batch.ids). With sampling and repeats,
        samples that are drawn again have other ones."""
        if 0 in self.data.shape:
            sample = check.whole("sample", sample, 0, len(self.data) - 1)
        one = self.data[sample][0].shape if 0 in self.data.shape else self.data.shape
        first, second, third = (*one, 1, 1)[:3]
        shape = (first, second, third) if self.data.layout == "nhwc" else (second, third, first)
        view = check.whole("view", view, 0, 2**32 - 1)
        if self.data.layout == "tensor":
            raise InvalidArgumentError(
                f"view {view} of samples with layout {self.data.layout}; only views of images have a geometry"
            )
        return geometry_of(
            self._engine.core().geometry(
                shape, _number(epoch), check.whole("sample", sample, 0, 2**64 - 1), view
            )
        )

    def state_dict(self) -> dict[str, Any]:
        """The position of the loader: plain values, the same on every rank, for torch.save, JSON or pickle.

        "epoch" is the epoch, and "batch" the number of its batches that were delivered. In the body of the
        loop, the current batch counts as delivered. "inputs" tells images and labels from others.
        """
        engine, self = self._engine, None  # type: ignore[assignment]
        epoch, batch, text = engine.core().state()
        return {"epoch": epoch, "batch": batch, "state": text, "inputs": engine.inputs}

    def load_state_dict(self, state: dict[str, Any], *, keep_views: bool | None = None) -> None:
        """Continues from a state: loader.epoch(state["epoch"]), or iterating over the loader, is then the
        rest of that epoch. Other epochs are refused. World size (partition "global"), device and transport
        may differ. Raises InvalidArgumentError if data set, seed or global batch size differ.

        The views (crop, flip, dtype, augment=, views=, set_augment()) are those of the state, so that its
        batches are the same; set_augment() sets others from the next epoch on. Where this loader was made
        with other views, a UserWarning says so. keep_views=True: this loader's views; False: the state's,
        without a warning. States of versions before 4 have no views."""
        try:
            if not isinstance(state, Mapping) or not isinstance(state.get("state"), str):
                check.refuse("state", state, "what state_dict() returns")
            keep_views = None if keep_views is None else check.flag("keep_views", keep_views)
            changed = self._engine.load(state["state"], state.get("inputs"), keep_views)
            self._describe()
            if changed and keep_views is None:
                warnings.warn(
                    "the state was taken with other views (crop, flip, dtype, "
                    "augment) than this loader was made with, and they are restored: "
                    "load_state_dict(state, keep_views=True) keeps this loader's, "
                    "keep_views=False is to restore them without this warning",
                    UserWarning,
                    stacklevel=2,
                )
        except BaseException:
            self = None  # type: ignore[assignment]  # a traceback holds no loader
            raise

    def stats(self) -> Stats:
        """Counters since the loader was made: who waited for whom, and for how long.
        May be called from any thread."""
        engine, self = self._engine, None  # type: ignore[assignment]
        return Stats(**engine.core().stats())

    def cancel(self) -> None:
        """Whoever waits for a batch gets a CancelledError, until another epoch is started.
        May be called from any thread."""
        self._engine.core().cancel()

    def close(self) -> None:
        """Stops and joins the threads. Existing batches stay valid. Called at the end of a `with` block, and
        when nothing refers to the loader any more."""
        self._engine.close()

    def __del__(self) -> None:
        engine = getattr(self, "_engine", None)
        if engine is not None and not sys.is_finalizing():
            engine.drop()

    def __enter__(self) -> Loader:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


with_signature(Loader.__init__, LoaderOptions)
