"""JPEG files to pixels on a device, without a data set."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from . import _core, _errors
from ._base import check
from ._base.arrays import dtype_name, framework_of
from ._batch import ordinal_of
from ._errors import InvalidArgumentError, ShardError

_FILTERS = ("bilinear", "bicubic", "box", "lanczos")
# Decoders that no call uses: (process, device, threads, framework) -> decoders. They keep their memory.
_idle: dict[tuple[Any, ...], list[_core.JpegDecoder]] = {}


class DecodedImages(Sequence[Any]):
    """What decode_jpeg() returns: a sequence of images.

    images: with `size` one array of all images; else a list with an array of each, or None where a file
        could not be decoded.
    failures: of on_error="report": the number of each file that could not be decoded, and why.
    on_host: how many images threads of the host decoded, because they are of a kind that kernels do not take.
        On the host all of them.
    """

    def __init__(self, images: Any, failures: dict[int, ShardError], on_host: int) -> None:
        self.images, self.failures, self.on_host = images, failures, on_host

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: Any) -> Any:
        return self.images[index]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.images)

    def __repr__(self) -> str:
        return f"<{len(self)} images, {len(self.failures)} failures, {self.on_host} decoded on the host>"


def _box(box: Any) -> tuple[int, int, int, int] | None:
    if box is None:
        return None
    if type(box) is tuple and len(box) == 4:  # the quick way of nearly all
        left, top, right, bottom = box
        whole = type(left) is type(top) is type(right) is type(bottom) is int
        if whole and 0 <= left < right < 2**32 and 0 <= top < bottom < 2**32:
            return box
    expected = "None or (left, top, right, bottom) for each file"
    try:
        left, top, right, bottom = (check.whole("crop", side, 0, 2**32 - 1) for side in box)
    except (TypeError, ValueError):
        check.refuse("crop", box, expected)
    if right <= left or bottom <= top:
        check.refuse("crop", box, expected + ", with right > left and bottom > top")
    return left, top, right, bottom


def _options(
    size: Any, dtype: Any, layout: str, filter: str, mean: Any, std: Any, upright: Any
) -> dict[str, Any]:
    options = {
        "size": (0, 0) if size is None else check.size("size", size, 65_535),
        "dtype": dtype_name(dtype),
        "layout": layout,
        "filter": filter,
        "upright": check.flag("upright", upright),
    }
    if layout not in ("nhwc", "nchw"):
        check.refuse("layout", layout, '"nhwc" or "nchw"')
    if filter not in _FILTERS:
        check.refuse("filter", filter, "one of " + ", ".join(_FILTERS))
    if options["dtype"] == "uint16":
        check.refuse("dtype", dtype, '"uint8", "float16", "bfloat16" or "float32"')
    if mean is not None or std is not None:
        options["mean"] = check.numbers("mean", (0.0,) * 3 if mean is None else mean, 3)
        options["std"] = check.numbers("std", (1.0,) * 3 if std is None else std, 3)
    return options


def _bytes_of(number: int, file: Any) -> Any:
    """The file, or of a tensor in host memory, such as torchvision.io.read_file() returns, its array."""
    try:
        if memoryview(file).c_contiguous:
            return file
    except (TypeError, ValueError, BufferError):
        pass
    try:
        array = file.numpy()
        if array.dtype == "uint8" and array.ndim == 1 and array.flags.c_contiguous:
            return array
    except Exception:  # no tensor, or one on a GPU, or that needs its gradient: each has its own error
        pass
    check.refuse(
        f"files[{number}]",
        type(file).__name__,
        "the bytes of a file (path.read_bytes()), in one piece, with the buffer protocol, or a tensor of "
        "them in host memory (uint8, one axis)",
    )


def decode_jpeg(
    files: Sequence[Any],
    device: Any = "cpu",
    *,
    size: Any = None,
    crop: Sequence[Any] | None = None,
    dtype: Any = "uint8",
    layout: str = "nhwc",
    filter: str = "bilinear",
    mean: Any = None,
    std: Any = None,
    upright: bool = True,
    on_error: str = "raise",
    framework: str | None = "auto",
    threads: int = 0,
) -> DecodedImages:
    """Decodes JPEG files that are in memory. Returns RGB, equal to Pillow's, bit for bit, on every device:

        images = sl.decode_jpeg([path.read_bytes() for path in paths], device="cuda:0", size=224)
        images.images  # uint8 [file, row, column, channel]

    files: objects with the buffer protocol (bytes, memoryview, mmap, arrays of bytes), or tensors of bytes in
        host memory, one for each image. Pinned memory is read by the GPU as it is.
    device: "cpu", "cuda" or "cuda:N". On a GPU kernels decode baseline files from their bytes as they are.
        Other kinds (progressive, arithmetic codes, several scans) are decoded by threads of the host into the
        same result, and counted (on_host).
    size: N or (height, width). Each image is resized to it, as Pillow's resize() does with `filter`:
        "bilinear", "bicubic", "box" or "lanczos". (Pillow 12.3 and later resize some images rows first, which
        gives other values.) None: images keep their sizes.
    crop: for each file (left, top, right, bottom) of the upright image, as Pillow's crop() has it, or None:
        the whole image. Before the resize. Only the part of a file that its box needs becomes pixels.
    dtype: "uint8"; or "float16", "bfloat16" or "float32": value / 255, and with `mean` and `std` (three
        numbers each) (value / 255 - mean) / std.
    layout: "nhwc" or "nchw".
    upright: turn images by their EXIF orientation, as Pillow's ImageOps.exif_transpose().
    on_error: "raise" the error of the first file that cannot be decoded, with its number; or "report" all of
        them in `failures`, where images are None, or with `size` zeros.
    framework: of the arrays: "torch", "numpy", "jax", "cupy", "auto" (torch where it is installed), or None
        for objects with DLPack.
    threads: that copy files and decode on the host, 1 to 64. 0: as many as the process may use, at most 8.

    The call returns when the images are complete. For several batches in flight, call it from several
    threads: each has a decoder of its own, which keeps its memory.

    Raises CorruptError, UnsupportedError (no JPEG, 12 bits), ResourceError (more than 178,956,970 pixels; no
    memory), InvalidArgumentError, IoError (the GPU).
    """
    ordinal = ordinal_of(device)
    threads = check.whole("threads", threads, 0, 64)
    if on_error not in ("raise", "report"):
        check.refuse("on_error", on_error, '"raise" or "report"')
    if isinstance(files, (bytes, bytearray, memoryview, str)):
        check.refuse("files", type(files).__name__, "a list with the bytes of each file")
    if not isinstance(files, Iterable):
        check.refuse("files", files, "a list with the bytes of each file")
    if crop is not None and not isinstance(crop, Iterable):
        check.refuse("crop", crop, "a list with None or (left, top, right, bottom) for each file")
    files = list(files)
    boxes = None if crop is None else [_box(box) for box in crop]
    if boxes is not None and len(boxes) != len(files):
        raise InvalidArgumentError(
            f"crop has {len(boxes)} boxes for {len(files)} files; give one for each, or None"
        )
    options = _options(size, dtype, layout, filter, mean, std, upright)
    made = framework_of(framework, ordinal)
    idle = _idle.setdefault((os.getpid(), ordinal, threads, framework), [])
    try:
        decoder = idle.pop()
    except IndexError:
        decoder = _core.JpegDecoder(ordinal, threads, made.current_stream)
    try:
        images, failed, on_host = decoder.decode(files, boxes, options)
    except (TypeError, ValueError, BufferError):
        given, files = files, [_bytes_of(number, file) for number, file in enumerate(files)]
        if all(one is other for one, other in zip(given, files, strict=True)):
            raise
        images, failed, on_host = decoder.decode(files, boxes, options)
    idle.append(decoder)
    failures = {number: getattr(_errors, kind)(message) for number, kind, message in failed}
    if failures and on_error == "raise":
        raise failures[min(failures)]
    if size is not None:
        return DecodedImages(made.images(images), failures, on_host)
    return DecodedImages([one if one is None else made.images(one) for one in images], failures, on_host)
