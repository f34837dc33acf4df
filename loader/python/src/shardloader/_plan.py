"""A conversion whose shards are handed out by a scheduler: Dask, Ray, Spark, ..."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from typing import Any, NamedTuple

from . import _core
from ._base import check, words
from ._convert import Conversion, absolute, notes
from ._convert.options import ConvertOptions, Path, for_library
from ._errors import InvalidArgumentError, ShardError


class Plan(NamedTuple):
    """What plan() returns. Small, and can be pickled: it has the options and not the list of images."""

    shards: int  #: convert_shard() takes 0 to shards - 1
    inputs: int  #: images that will be decoded
    digest: str  #: over the options, and names, sizes and labels of the images
    options: dict[str, Any]


class ShardResult(NamedTuple):
    """What convert_shard() returns."""

    shard: int
    samples: int
    rejects: int
    size_bytes: int  #: of the file; 0 if every image was a reject
    was_complete: bool  #: the shard was finished before


_KEPT = 4  # plans whose lists of images a process keeps
_plans: dict[str, Any] = {}
_lock = threading.Lock()


def _listed(given: Plan) -> Any:
    """The plan with its list of images, which each process makes once."""
    if not isinstance(given, Plan):
        check.refuse("plan", given, "a Plan, which plan() returns")
    with _lock:
        known = _plans.pop(given.digest, None)
        if known is None:
            known = _core.WorkPlan(given.options)
            if known.digest != given.digest:
                raise InvalidArgumentError(
                    f"the images in {given.options['images']} are not those of the plan: "
                    f"{known.inputs} images, planned {given.inputs}, "
                    "or other names, sizes or labels; does this machine see the same files, "
                    "and the same version of them?"
                )
        _plans[given.digest] = known  # the one used last is the last one
        for digest in list(_plans)[:-_KEPT]:
            del _plans[digest]
        return known


def plan(images: Path, out: Path, **options: Any) -> Plan:
    """Lists the images of a conversion and divides them into shards. Writes nothing.

    Takes the arguments of convert(), except progress, claim, rank, world_size, overwrite, refresh, append and
    work; `out` is a folder. jobs is the number of threads of each convert_shard(); give jobs=1 if your
    scheduler runs a task per CPU.

        plan = sl.plan("images/train", "out/train", jobs=1)
        client.gather(client.map(sl.convert_shard, [plan] * plan.shards, range(plan.shards)))    # Dask
        sl.finish(plan)
    """
    for name in ("progress", "claim", "rank", "world_size", "overwrite", "refresh", "append", "work"):
        if name in options:
            raise InvalidArgumentError(f"{name} is no option of plan()")
    images, out = check.path("images", images), check.path("out", out)
    there = (
        "@" + os.path.abspath(images[1:])
        if images.startswith("@")
        else images
        if images == "-"
        else absolute(images)
    )
    for name in ("labels", "root", "coco", "yolo", "voc", "box_classes", "mask"):
        if options.get(name) is not None:
            options[name] = absolute(check.path(name, options[name]))
    if isinstance(options.get("classes"), (str, os.PathLike)):
        options["classes"] = absolute(check.path("classes", options["classes"]))
    if isinstance(options.get("pairs"), Mapping):
        options["pairs"] = {
            name: os.path.abspath(check.path(f"pairs[{name!r}]", folder))
            for name, folder in options["pairs"].items()
        }
    try:
        given = for_library("plan()", there, absolute(out), options, ConvertOptions)
        listed = _core.WorkPlan(given)
    except ShardError as error:
        raise words.of_convert(error) from None
    with _lock:
        _plans[listed.digest] = listed
    notes.found(listed.found(), given["out"])
    return Plan(listed.shards, listed.inputs, listed.digest, given)


def convert_shard(plan: Plan, shard: int) -> ShardResult:
    """Converts one shard of a plan.

    It may be called anywhere that sees the images and `out` under the same paths, in any order, several
    times, and at the same time: the files that it writes depend on its arguments only. A shard that is
    finished is not converted again. The first call in a process lists the images; InvalidArgumentError if
    they are not those of the plan.
    """
    try:
        listed = _listed(plan)
        return ShardResult(**listed.convert_shard(check.whole("shard", shard, 0, 2**64 - 1)))
    except ShardError as error:
        raise words.of_convert(error) from None


def finish(plan: Plan) -> Conversion:
    """Completes the data set when all shards are converted: writes dataset.json.

    InvalidArgumentError names the first shard that is missing. It may be called again. ConversionWarnings
    say how many images are not in the data set, and what annotations lose.
    """
    try:
        listed = _listed(plan)
        done = notes.worded(listed.finish())
        listing = listed.found()
    except ShardError as error:
        raise words.of_convert(error) from None
    out = plan.options["out"]
    done |= notes.found(listing, out, told=True)
    notes.after(out, done)
    return Conversion(**done)
