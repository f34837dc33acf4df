"""Shuffled, transformed batches of a shardify data set, on a GPU or on the host.

    import shardloader as sl
    sl.convert("images/train", "out/train", preset="train")
    train = sl.Loader(
        "out/train", batch_size=256, device="cuda:0", random_resized_crop=224, flip=True, dtype="float16"
    )
    for epoch in range(90):
        for images, labels in train.epoch(epoch):
            ...

Dataset opens a data set and gives access to samples, labels and keys, and to parts of it. concat() and mix()
put several together. Loader delivers batches. convert() converts a folder of images into a data set; plan(),
convert_shard() and finish() do the same under a scheduler. Writer and write() make a data set of images that
a program hands over. decode_jpeg() decodes JPEG files without a data set. doctor() says whether a training
loop waits for its data. Every error is a ShardError and
also one of Python's own (ValueError, FileNotFoundError, OSError, RuntimeError). What a conversion leaves out
is a ConversionWarning.
"""

from . import _core
from ._augment import Augment, Instruction, MixPairs
from ._batch import Batch
from ._buckets import buckets
from ._cache import CacheProgress, ImageCache
from ._convert import Conversion, convert
from ._core import Tensor
from ._dataset import Columns, Dataset, Finding, Keys, Mix, concat, mix
from ._diagnosis import Diagnosis
from ._doctor import doctor
from ._errors import (
    CancelledError,
    ConversionWarning,
    CorruptError,
    InvalidArgumentError,
    IoError,
    NotFoundError,
    ResourceError,
    ShardError,
    UnsupportedError,
)
from ._export import to_parquet
from ._fields import Field, Fields, ImageField, Ragged, RaggedArray, Text
from ._groups import MemoryOptions, RemoteOptions, Sampling
from ._jpeg import DecodedImages, decode_jpeg
from ._loader import Epoch, Loader, cuda_device_count, has_cuda
from ._operations import Operation, ops
from ._plan import Plan, ShardResult, convert_shard, finish, plan
from ._progress import Progress
from ._source import Source
from ._statistics import Stats
from ._targets import Boxes, Geometry, Keypoints, Pixels
from ._writer import Writer, write

__version__ = _core.version

__all__ = [
    "Augment",
    "Batch",
    "Boxes",
    "CacheProgress",
    "CancelledError",
    "Columns",
    "Conversion",
    "ConversionWarning",
    "CorruptError",
    "Dataset",
    "DecodedImages",
    "Diagnosis",
    "Epoch",
    "Field",
    "Fields",
    "Finding",
    "Geometry",
    "ImageCache",
    "ImageField",
    "Instruction",
    "InvalidArgumentError",
    "IoError",
    "Keypoints",
    "Keys",
    "Loader",
    "MemoryOptions",
    "Mix",
    "MixPairs",
    "NotFoundError",
    "Operation",
    "Pixels",
    "Plan",
    "Progress",
    "Ragged",
    "RaggedArray",
    "RemoteOptions",
    "ResourceError",
    "Sampling",
    "ShardError",
    "ShardResult",
    "Source",
    "Stats",
    "Tensor",
    "Text",
    "UnsupportedError",
    "Writer",
    "buckets",
    "concat",
    "convert",
    "convert_shard",
    "cuda_device_count",
    "decode_jpeg",
    "doctor",
    "finish",
    "has_cuda",
    "mix",
    "ops",
    "plan",
    "to_parquet",
    "write",
]
