"""Reads the samples of data sets whose samples have sizes of their own, with numpy alone."""

import numpy as np

from shardify_support import keys_of, read_shard, shards


def free_samples(out, field=""):
    """{key: array [rows, columns, channels]} of a data set with codec none and layout nhwc."""
    prefix = field + "." if field else ""
    found = {}
    for path in shards(out):
        metadata, tensors = read_shard(path)
        dtype = metadata[f"image.{field}.dtype" if field else "dtype"]
        shape = metadata[f"image.{field}.shape" if field else "shape"]
        assert shape.startswith("0,0,"), shape
        numpy_dtype = {"u8": np.uint8, "u16": np.uint16, "f16": np.float16, "f32": np.float32}[dtype]
        sizes = np.frombuffer(tensors[prefix + "shapes"][2], "<u4").reshape(-1, 2)
        offsets = np.frombuffer(tensors[prefix + "frame_offsets"][2], "<u8")
        frames = tensors[prefix + "frames" if field else "image_frames"][2]
        for i, key in enumerate(keys_of(path)):
            values = np.frombuffer(frames[int(offsets[i]) : int(offsets[i + 1])], numpy_dtype)
            found[key] = values.reshape(*map(int, sizes[i]), int(shape.split(",")[2]))
    return found
