#!/usr/bin/env python3
"""Opens shards with the reference safetensors implementation and numpy.

check_with_safetensors.py            the golden shards: every tensor against its known content
check_with_safetensors.py SHARD...   any shards: the reference accepts them, and shapes and dtypes are those
                                     of the profile
"""

import json
import pathlib
import struct
import sys

import numpy as np
import safetensors
from safetensors.numpy import load_file

DTYPES = {
    "u8": ("U8", 1),
    "u16": ("U16", 2),
    "f16": ("F16", 2),
    "bf16": ("BF16", 2),
    "f32": ("F32", 4),
    "i64": ("I64", 8),
}


def sample_bytes(size, index):
    """tests/support/format/shard_samples.hpp, sample_bytes."""
    state = (index * 0x9E3779B97F4A7C15 + 1) % 2**64
    out = bytearray(size)
    for i in range(size):
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        out[i] = index if i % 2 == 0 else state >> 56
    return bytes(out)


def read(path):
    """{name: {"dtype", "shape", "data"}} by the reference; the metadata; the file offset of the data."""
    raw = path.read_bytes()
    (length,) = struct.unpack("<Q", raw[:8])
    metadata = json.loads(raw[8 : 8 + length])["__metadata__"]
    return dict(safetensors.deserialize(raw)), metadata, 8 + length


def is_free(shape):
    """Samples of any size: rows and columns are 0."""
    return len(shape) == 3 and shape.count(0) == 2


def frames_of(tensors, frames, offsets):
    """The stored frames, one after the other."""
    ends = np.frombuffer(bytes(tensors[offsets]["data"]), "<u8")
    data = bytes(tensors[frames]["data"])
    assert ends[0] == 0 and ends[-1] == len(data)
    return [data[ends[i] : ends[i + 1]] for i in range(len(ends) - 1)]


def check_frames(path, tensors, codec, shape, prefix, frames):
    """Frames, and what the head says of each: its size, the file in it."""
    samples = tensors["checksums"]["shape"][0]
    stored = frames_of(tensors, frames, prefix + "frame_offsets")
    assert len(stored) == samples, path
    if is_free(shape):
        table = tensors[prefix + "shapes"]
        assert (table["dtype"], list(table["shape"])) == ("U32", [samples, 2]), path
    if codec.startswith("jpeg:"):
        table = tensors[prefix + "jpeg_files"]
        assert (table["dtype"], list(table["shape"])) == ("U32", [samples, 4]), path
        rows = np.frombuffer(bytes(table["data"]), "<u4").reshape(samples, 4)
        for frame, (size, *_) in zip(stored, rows, strict=True):
            file = frame[:size]
            assert file.startswith(b"\xff\xd8\xff") and b"\xff\xd9" in file and len(frame) % 16 == 0, path


def check_field(path, tensors, metadata, name):
    """A further image field: its tensors have the dtypes and shapes of its metadata; the padding is zero."""
    shape = [int(axis) for axis in metadata[f"image.{name}.shape"].split(",")]
    samples = tensors["checksums"]["shape"][0]
    dtype, width = DTYPES[metadata[f"image.{name}.dtype"]]
    assert tensors[f"{name}.checksums"]["shape"] == [samples], path
    assert not any(bytes(tensors[f"{name}.padding"]["data"])), path
    codec = metadata[f"image.{name}.codec"]
    if codec == "none" and not is_free(shape):
        assert (tensors[name]["dtype"], list(tensors[name]["shape"])) == (dtype, [samples] + shape), path
        assert len(tensors[name]["data"]) == samples * width * int(np.prod(shape)), path
    else:
        check_frames(path, tensors, codec, shape, f"{name}.", f"{name}.frames")


def profile_of(metadata, shape, fields, images):
    """The lowest version that has all of it."""
    shapes = [shape] + [[int(a) for a in metadata[f"image.{name}.shape"].split(",")] for name in images]
    codecs = [metadata["codec"]] + [metadata[f"image.{name}.codec"] for name in images]
    if any(is_free(of) for of in shapes) or any(codec.startswith("jpeg:") for codec in codecs):
        return "3"
    tensor = metadata["layout"] == "tensor"
    wide = tensor or metadata["dtype"] == "u16" or shape[0 if metadata["layout"] == "nchw" else 2] > 4
    return "2" if fields or wide or metadata["mean"].count(",") != 2 else "1"


def check_any(path):
    tensors, metadata, _ = read(path)
    fields = {key[6:]: value for key, value in metadata.items() if key.startswith("field.")}
    shape = [int(axis) for axis in metadata["shape"].split(",")]
    images = {name: role for name, role in fields.items() if role in ("image", "mask")}
    assert metadata["shard.profile"] == profile_of(metadata, shape, fields, images), path
    assert len(shape) == 3 or metadata["layout"] == "tensor" and 1 <= len(shape) <= 4, path
    for name in images:
        check_field(path, tensors, metadata, name)
    for name in fields.keys() - images.keys():
        ends = np.frombuffer(bytes(tensors[f"{name}_offsets"]["data"]), "<u8")
        assert len(ends) == tensors["checksums"]["shape"][0] + 1 and ends[-1] == tensors[name]["shape"][0], (
            path
        )
    samples = tensors["checksums"]["shape"][0]
    offsets = np.frombuffer(bytes(tensors["key_offsets"]["data"]), "<u8")
    assert len(offsets) == samples + 1
    dtype, width = DTYPES[metadata["dtype"]]
    if metadata["codec"] == "none" and not is_free(shape):
        assert tensors["images"]["dtype"] == dtype, path
        assert list(tensors["images"]["shape"]) == [samples] + shape, path
        assert len(tensors["images"]["data"]) == samples * width * int(np.prod(shape)), path
    else:
        assert tensors["image_frames"]["dtype"] == "U8", path
        check_frames(path, tensors, metadata["codec"], shape, "", "image_frames")
    if metadata["dtype"] != "bf16":  # numpy has no bfloat16
        assert set(load_file(path)) == set(tensors), path
    return tensors, metadata


def check_golden(path):
    tensors, metadata = check_any(path)
    samples = tensors["checksums"]["shape"][0]
    keys = bytes(tensors["keys"]["data"])
    offsets = np.frombuffer(bytes(tensors["key_offsets"]["data"]), "<u8")
    for i in range(samples):
        assert keys[offsets[i] : offsets[i + 1]].decode() == f"class/photo {i * i}.jpg", path
    assert not any(keys[offsets[-1] :]), path
    if tensors["labels"]["dtype"] == "I64":
        assert np.frombuffer(bytes(tensors["labels"]["data"]), "<i8").tolist() == list(range(samples)), path
    if metadata["codec"] != "none":
        return
    if "image_frames" in tensors:
        for i, frame in enumerate(frames_of(tensors, "image_frames", "frame_offsets")):
            assert frame == sample_bytes(len(frame), i), (path, i)
        return
    images = bytes(tensors["images"]["data"])
    size = len(images) // samples
    for i in range(samples):
        assert images[i * size : (i + 1) * size] == sample_bytes(size, i), (path, i)
    roles = [key[6:] for key in metadata if key.startswith("field.") and metadata[key] in ("image", "mask")]
    # In the order in which they are stored; sample i of field f is sample_bytes(i + 50 (f + 1)).
    with open(path, "rb") as f:
        header = json.loads(f.read(int.from_bytes(f.read(8), "little")))

    def begin(name):
        return header[name if name in header else f"{name}.frames"]["data_offsets"][0]

    for f, name in enumerate(sorted(roles, key=begin)):
        if name in tensors:
            data = bytes(tensors[name]["data"])
            size = len(data) // samples
            for i in range(samples):
                assert data[i * size : (i + 1) * size] == sample_bytes(size, i + 50 * (f + 1)), (
                    path,
                    name,
                    i,
                )
    # numpy.memmap, as in docs/format.md
    with open(path, "rb") as f:
        length = int.from_bytes(f.read(8), "little")
        images_info = json.loads(f.read(length))["images"]
    mapped = np.memmap(path, np.uint8, "r", offset=8 + length + images_info["data_offsets"][0])
    assert mapped.tobytes() == images, path


def main():
    given = [pathlib.Path(argument) for argument in sys.argv[1:]]
    golden = pathlib.Path(__file__).parent
    for path in given:
        check_any(path)
    if not given:
        given = sorted((golden / "shards").glob("*.safetensors"))
        assert given, "no golden shards"
        for path in given:
            check_golden(path)
        for path in sorted(golden.glob("dataset*/*.safetensors")):
            check_any(path)
    print(f"{len(given)} shards read equal by safetensors {safetensors.__version__}")


if __name__ == "__main__":
    main()
