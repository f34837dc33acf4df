"""The converter, in this process."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import _core
from .._base import check, words
from .._base.declare import with_signature
from .._errors import ShardError
from .._progress import clock
from . import notes
from .options import ConvertOptions, Path, for_library

if TYPE_CHECKING:
    from typing_extensions import Unpack


class Conversion(NamedTuple):
    """What convert() did."""

    complete: bool  #: the data set is finished (False: other ranks still have shards to do)
    was_complete: bool  #: it was finished before: nothing was done
    inputs: int
    samples: int
    rejects: int  #: listed with reasons in rejects.csv
    #: images stored although there is a warning, per kind ("extraneous_bytes": 2);
    #: docs/pixels.md lists them
    warnings: dict[str, int]
    shards: int
    size_bytes: int  #: of all shards
    converted: int  #: images decoded by this call
    bytes_read: int
    scan_seconds: float
    convert_seconds: float
    converted_shards: int = 0  #: shards published by this call
    #: files and folders passed over: "hidden", "litter", "no_image", "walked", "unlisted" (docs/shardify.md)
    skipped: dict[str, int] = {}
    annotations: dict[str, int] = {}  #: of coco=, yolo= and voc=: objects, and what is left out
    #: what lost most of its values, or has missing pixels, although it is stored, with counts and what to do;
    #: also ConversionWarnings
    advice: tuple[str, ...] = ()
    #: codec "jpeg": images stored as the files that they are ("kept"), "transcoded" without loss, "encoded"
    jpeg: dict[str, int] = {}


def absolute(path: Path) -> str:
    """The path from the root on. The address of a server stays as it is."""
    path = os.fspath(path)
    return path if path.startswith(("https://", "http://", "s3://", "hf://")) else os.path.abspath(path)


class _Bar:
    """tqdm where it is installed, else a line on a terminal. Rates are of the images that this call converts,
    from the first one on: those of an earlier run are no work."""

    SETTLE = 0.5  # seconds; over less, a first handful of images looks like millions a second

    def __init__(self) -> None:
        self._bar: Any = None
        self._shown = 0.0
        self._first: tuple[float, int] | None = None  # when, and how many images there were
        try:
            from tqdm.auto import tqdm

            self._tqdm: Any = tqdm
        except ImportError:
            self._tqdm = None

    def __call__(self, done: int, planned: int, rejected: int) -> None:
        if planned == 0:
            return
        now = time.monotonic()
        if self._first is None:
            self._first = (now, done)
        if self._tqdm is not None:
            if self._bar is None:
                self._bar = self._tqdm(total=planned, initial=done, unit="images")
            self._bar.update(done - self._bar.n)
            if rejected:
                self._bar.set_postfix(rejected=rejected, refresh=False)
        elif sys.stderr.isatty() and now - self._shown > self.SETTLE:
            self._shown = now
            print(f"\r{self.line(now, done, planned, rejected)} ", end="", file=sys.stderr, flush=True)

    def line(self, now: float, done: int, planned: int, rejected: int) -> str:
        """What the terminal shows, `now` seconds on a clock."""
        text = f"{done} / {planned} images, {rejected} rejected"
        since, before = self._first or (now, done)
        if now - since < self.SETTLE or done <= before:
            return text
        rate = (done - before) / (now - since)
        return f"{text}, {rate:.0f} images/s, {clock((planned - done) / rate)} left"

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
        elif self._shown:
            print(file=sys.stderr)


def convert(
    images: Path,
    out: Path,
    *,
    progress: bool | Callable[[int, int, int], None] = False,
    **options: Unpack[ConvertOptions],
) -> Conversion:
    """Converts a folder of images (images/<class>/**) to a data set in `out`, as the program shardify does.

    images: a folder; a tar archive or several ("train-{000..146}.tar"), also WebDatasets; an array of images
        (.npy, .npz, IDX, CIFAR's files); or "@FILE": a list of paths, one a line. Archives and the files of a
        list can be on servers (docs/remote.md).
    out: a folder, or "s3://BUCKET/PREFIX", to which each shard is uploaded when it is finished.
    preset: "train" (short side 256, centre crop 256, uint8 NHWC, to be cropped and normalised while training)
        or "eval" (centre crop 224, float16 NCHW, normalised). None: "train". The options below change single
        parts of it; None leaves them as they are.
    progress: True for a bar (tqdm where it is installed), or a function (done, planned,
        rejected) that is called some times a second.

    What a sample is:
    resize: length of the short side in pixels. crop: N or (height, width) around the centre, or "none"; None:
        the preset's, at most resize. squash: the (height, width) to which images are resized without keeping
        their aspect ratio.
    size: "original" keeps each image's own size (docs/sizes.md); N is short for resize=N, crop=N. longest,
        shortest: pixels of that side, or area: of the image, to which larger images are resized. multiple: of
        which both sides are made multiples.
    filter: "bilinear", "bicubic", "lanczos", "box" or "nearest", as Pillow defines them.
    dtype: "uint8", "uint16", "float16", "bfloat16" or "float32", or numpy's or PyTorch's. "uint16" keeps all
        bits of images of 16 bits. layout: "nchw" or "nhwc".
    channels: "keep" for the channels of the first image (and without dtype its data type), or a number.
        None: RGB of 8 bits, except for dtype="uint16" and images that RGB cannot hold.
    depth: images of 16 bits have numbers of so many bits, 9 to 16,
        of which RGB of 8 bits keeps the highest 8. None: 16.
    normalize: "imagenet", "clip", "half" or "none"; or mean and std, a number for each channel.
    pages: each page of a TIFF file is a sample, with the key FILE#PAGE.

    What is stored:
    codec: "none", "zstd", "zstd:LEVEL" or "packed", all without loss; or "jpeg": with size="original" JPEG
        files are stored as they are, progressive ones as baseline with the same pixels, and all other
        images are encoded.
        quality: of the images that codec "jpeg" encodes, 1 to 100. None: 95.
        no_sample_digest: JPEG files that are stored as they are are not decoded, so their pixels have no
        digests.
    shard_bytes (a number, or "256MiB") or samples_per_shard: the size of a shard.

    Which images, and their labels:
    classes: the names of the labels 0, 1, ...: a list, a text file with one name a line, or another data set,
        classes="out/train", so that a label means the same in both. InvalidArgumentError for an image of
        another class. None: the classes that the images have, sorted.
    labels: a CSV file of labels, or for arrays also a .npy of whole numbers, in the order in which `images`
        gives its arrays. array_layout: "nhwc" or "nchw", for arrays whose shape does not say it. columns:
        further columns of that file, which its first line names, for instance {"caption": Text, "angle":
        "float32", "pose": ("float32", 7), "boxes": Ragged("float32", 4)}. unlisted: what to do with images
        that it does not list, "skip" or "reject".
    coco: a file of annotations in the format of COCO: its boxes, keypoints and captions become columns, in
        pixels of the stored sample. yolo, voc: the same from a folder with a file for each image, in the
        format of YOLO (with yolo_keypoints points for each object) or Pascal VOC. box_classes: a file with
        the names of their classes, one a line.
    mask: a folder with a mask for each image (PNG or TIFF), stored as the field "mask": the index in the
        palette, or the gray value, is the class. Settings stand behind it: "DIR,classes=21,ignore=255"
        (docs/targets.md).
    pairs: {"depth": "scans/depth,filter=nearest"}: folders with a second image for each image, stored as
        fields of these names, with the settings of shardify's --pair behind the folder.
    missing: what to do with images without annotation, mask or pair: "empty", "skip" or "fail".
    root: the folder that keys are relative to, for a list of paths.
    on_error: what to do with bad images, "skip" (they are listed in rejects.csv) or "fail". on_warning:
        "harmless", "accept" or "reject". strict: files that are no images are rejects.
    max_pixels: larger images are rejects. fast_decode: JPEGs are scaled while they are decoded,
        which changes pixels slightly.

    How it runs:
    overwrite: replaces another data set in `out`. refresh: compares all inputs and converts the
        shards that changed.
    append: adds the images to the finished data set in `out`, which must have the same options.
        The result counts the added images.
    jobs: threads; None: as many as this process may use CPUs.
    rank, world_size, claim: see below.
    work: with an `out` in an object store, the folder for shards until they are uploaded, four at most.
        None: in TMPDIR, or /tmp. The same call with the same folder goes on.

    This process does all of it, also under torchrun, mpirun or srun: call it in one process (rank 0) and let
    the others wait. To share the work, call it in every process, with claim=True or with rank= and
    world_size=. claim: each process takes the next free shard, processes may come and go, and the call
    returns when the data set is complete. rank and world_size: each converts its part, and the result says
    complete=False where others are still at work.

    What is not stored is in rejects.csv, and a ConversionWarning says how much it is. Other
    ConversionWarnings say that classes.txt or `train` beside the images gives their classes other numbers,
    that a tenth of them or more would be enlarged, and what annotations lose: those that belong to no image,
    objects that are left out, boxes that are cut.

    Interrupted at any moment, the same call goes on where it was. Raises InvalidArgumentError (a
    ValueError), NotFoundError, IoError, ResourceError; KeyboardInterrupt stops it within a moment, with
    nothing partial visible.
    """
    progress = check.flag_or_function("progress", progress)
    given = for_library("convert()", images, out, options, ConvertOptions)
    bar = _Bar() if progress and not callable(progress) else None
    try:
        done = notes.worded(_core.convert(given, progress if callable(progress) else bar))
    except ShardError as error:
        raise words.of_convert(error) from None
    finally:
        if bar is not None:
            bar.close()
    done |= notes.found(done.pop("found"), given["out"])
    notes.after(given["out"], done, "append" in given)
    return Conversion(**done)


with_signature(convert, ConvertOptions)
