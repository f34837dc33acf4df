"""Shuffled, transformed batches of a shardify data set, on a GPU or on the host.

    import shardloader as sl
    sl.convert("images/train", "out/train")
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
is a ConversionWarning. Classes of what is returned (Batch, Conversion, Stats, ...) are in shardloader.types.
"""

from typing import TYPE_CHECKING

from . import _core, types
from ._augment import Augment
from ._buckets import buckets
from ._convert import convert
from ._dataset import Dataset, concat, mix
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
from ._fields import ImageField, Ragged, Text
from ._groups import MemoryOptions, RemoteOptions, Sampling
from ._jpeg import decode_jpeg
from ._loader import Loader, cuda_device_count, has_cuda
from ._operations import ops
from ._plan import convert_shard, finish, plan
from ._source import Source
from ._targets import Boxes, Keypoints, Pixels
from ._writer import Writer, write

__version__ = _core.version

__all__ = [
    "Augment",
    "Boxes",
    "CancelledError",
    "ConversionWarning",
    "CorruptError",
    "Dataset",
    "ImageField",
    "InvalidArgumentError",
    "IoError",
    "Keypoints",
    "Loader",
    "MemoryOptions",
    "NotFoundError",
    "Pixels",
    "Ragged",
    "RemoteOptions",
    "ResourceError",
    "Sampling",
    "ShardError",
    "Source",
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
    "types",
    "write",
]

if not TYPE_CHECKING:

    def __getattr__(name):
        instead = f": it is shardloader.types.{name}" if name in types.__all__ else ""
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{instead}")
