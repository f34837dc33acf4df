#!/usr/bin/env python3
"""check_with_pillow.py SHARDIFY IMAGES [--workdir DIR]: holds every sample against the installed Pillow.

Converts IMAGES with both presets, every filter and every dtype, and computes each sample again as torchvision
does on PIL images: Image.open, ImageOps.exif_transpose, convert("RGB"), resize of the short side, centre
crop; for floats (u8 / 255 - mean) / std in float32. uint8, float16 and bfloat16 must be equal bit for bit,
float32 within 1 ulp. Exit code 0: all equal; 1: a difference (the worst sample is named) or nothing to
compare; 2: shardify failed. Needs Pillow and numpy.
"""

import argparse
import functools
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np
from PIL import Image, ImageOps

FILTERS = {"bilinear": Image.BILINEAR, "bicubic": Image.BICUBIC, "lanczos": Image.LANCZOS, "box": Image.BOX}
TYPES = {
    "U8": np.uint8,
    "F16": np.float16,
    "BF16": np.uint16,
    "F32": np.float32,
    "U64": np.uint64,
    "I64": np.int64,
}
MEAN = np.array([0.485, 0.456, 0.406], np.float32)
STD = np.array([0.229, 0.224, 0.225], np.float32)
IMAGENET = ["--normalize", "imagenet"]

# Name, options of shardify, short side, crop.
RUNS = [(f"train, {name}", ["--preset", "train", "--filter", name], name, 256, 256) for name in FILTERS]
RUNS += [(f"eval, {name}", ["--preset", "eval", "--filter", name], name, 256, 224) for name in FILTERS]
RUNS += [
    (
        f"eval, {dtype} {layout}",
        ["--preset", "eval", "--dtype", dtype, "--layout", layout, *IMAGENET],
        "bilinear",
        256,
        224,
    )
    for dtype, layout in (("f32", "nchw"), ("f32", "nhwc"), ("bf16", "nchw"), ("f16", "nhwc"), ("u8", "nchw"))
]
RUNS += [("odd sizes", ["--preset", "train", "--resize", "131", "--crop", "100"], "bilinear", 131, 100)]


def read_shard(path):
    """Tensors of a safetensors file by name, as views of the mapped file, with their dtypes."""
    data = np.memmap(path, np.uint8, "r")
    begin = 8 + int(data[:8].view("<u8")[0])
    header = json.loads(bytes(data[8:begin]))
    tensors = {}
    for name, info in header.items():
        if name == "__metadata__":
            continue
        first, last = (begin + offset for offset in info["data_offsets"])
        tensors[name] = (data[first:last].view(TYPES[info["dtype"]]).reshape(info["shape"]), info["dtype"])
    return tensors


def unescape(key):
    return re.sub(rb"\\x([0-9a-f]{2})", lambda match: bytes([int(match[1], 16)]), key)


def samples(folder):
    """(source path, array [row, column, channel], dtype) of every sample."""
    for path in sorted(folder.glob("*.safetensors")):
        tensors = read_shard(path)
        images, dtype = tensors["images"]
        keys, offsets = bytes(tensors["keys"][0]), tensors["key_offsets"][0].tolist()
        for index, image in enumerate(images):
            if image.shape[0] == 3 and image.shape[2] != 3:
                image = image.transpose(1, 2, 0)
            yield unescape(keys[offsets[index] : offsets[index + 1]]), image, dtype


def open_upright(folder, key):
    path = pathlib.Path(folder) / key.decode("utf-8", "surrogateescape")
    return ImageOps.exif_transpose(Image.open(path)).convert("RGB")


def pillow_sample(image, method, short, crop):
    width, height = image.size
    size = (short, int(short * height / width)) if width <= height else (int(short * width / height), short)
    image = image.resize(size, method)
    top, left = int(round((size[1] - crop) / 2.0)), int(round((size[0] - crop) / 2.0))
    return np.asarray(image.crop((left, top, left + crop, top + crop)))


def to_bf16(values):
    """Round to nearest, ties to even."""
    bits = values.view(np.uint32).astype(np.uint64)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def ordered(array):
    """Bit patterns of floats as integers in the order of their values; what differs by 1 is 1 ulp apart."""
    bits = np.ascontiguousarray(array).view({2: np.int16, 4: np.int32}[array.itemsize]).astype(np.int64)
    sign = 1 << (8 * array.itemsize - 1)
    return np.where(bits < 0, -(bits + sign), bits)


def difference(stored, dtype, pixels):
    """Largest difference in steps of the dtype, and how much of it is allowed."""
    if dtype == "U8":
        return int(np.abs(stored.astype(np.int64) - pixels).max()), 0
    values = (pixels.astype(np.float32) / np.float32(255) - MEAN) / STD
    expected = {
        "F32": lambda: values,
        "F16": lambda: values.astype(np.float16),
        "BF16": lambda: to_bf16(values),
    }[dtype]()
    return int(np.abs(ordered(stored) - ordered(expected)).max()), 1 if dtype == "F32" else 0


def convert(shardify, images, out, options):
    command = [shardify, images, str(out), "--quiet", "--codec", "none", *options]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
    if done.returncode not in (0, 1):
        sys.stderr.write(
            f"{' '.join(command)}: exit code {done.returncode}\n{done.stderr.decode(errors='replace')}"
        )
        sys.exit(2)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("shardify")
    parser.add_argument("images")
    parser.add_argument("--workdir", help="where the converted folders go (default: a temporary folder)")
    options = parser.parse_args()
    failed = False
    with tempfile.TemporaryDirectory(prefix="check-pillow-", dir=options.workdir) as workdir:
        open_source = functools.lru_cache(maxsize=512)(lambda key: open_upright(options.images, key))
        for number, (name, arguments, filter_name, short, crop) in enumerate(RUNS):
            out = pathlib.Path(workdir) / str(number)
            convert(options.shardify, options.images, out, arguments)
            count, different, worst = 0, 0, (0, b"")
            for key, stored, dtype in samples(out):
                pixels = pillow_sample(open_source(key), FILTERS[filter_name], short, crop)
                found, allowed = difference(stored, dtype, pixels)
                count += 1
                different += found > allowed
                worst = max(worst, (found, key))
            rejects = (
                max(0, len((out / "rejects.csv").read_bytes().splitlines()) - 1)
                if (out / "rejects.csv").exists()
                else 0
            )
            verdict = "equal" if count and not different else "DIFFERENT" if count else "NOTHING TO COMPARE"
            failed |= verdict != "equal"
            print(
                f"{name:22} {count:6} samples, {rejects} rejects, largest difference {worst[0]}: {verdict}",
                flush=True,
            )
            if different:
                print(f"    {different} differ, the worst is {worst[1].decode('utf-8', 'backslashreplace')}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
