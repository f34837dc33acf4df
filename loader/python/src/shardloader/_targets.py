"""Targets: masks, depth, boxes and keypoints that follow crop,
flip and operations of each view (docs/targets.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ._augment import Instruction
from ._base import check
from ._base.arrays import dtype_name
from ._errors import InvalidArgumentError


class Pixels(NamedTuple):
    """How a further image field is delivered: fields={"mask": sl.Pixels("nearest", fill=255)}.
    "nearest" alone is sl.Pixels("nearest").

    filter: "nearest" keeps stored values, as masks need it; bit for bit torchvision's tv_tensors.Mask.
        "bilinear" interpolates: depth, cameras. "stored" leaves crop, flip and operations out: latents, and
        fields of another size than the images.
    fill: the stored value of what comes in from outside of the sample.
    dtype, layout, mean, std: as of a Loader. Default: as stored; "nearest" and "bilinear" images are nchw
        with PyTorch. Masks have none of them.
    """

    filter: str
    fill: float = 0
    dtype: Any = None
    layout: str | None = None
    mean: Sequence[float] | None = None
    std: Sequence[float] | None = None


class Boxes(NamedTuple):
    """How a ragged column of boxes (float32 [4], xyxy in pixels of the stored sample) is delivered: moved,
    clipped, and without those of which too little is left. column("boxes_counts") says how many are left.

    format: "xyxy", "xywh" or "cxcywh", in pixels of the view.
    min_size, min_area: both sides of a box and its area, as in torchvision's SanitizeBoundingBoxes.
    min_visibility: the share of the box that is not clipped, 0 to 1.
    along: ragged columns with a row for each box, which lose the same rows. Default: those of "box_labels",
        "areas", "crowd" and "keypoints" that there are.
    """

    format: str = "xyxy"
    min_size: float = 1
    min_area: float = 1
    min_visibility: float = 0
    along: Sequence[str] | None = None


class Keypoints(NamedTuple):
    """How a column of keypoints is delivered: float32 [2], [3], [k, 2] or [k, 3], x, y and visibility. Points
    that left the sample become 0, 0, 0; without a visibility NaN. Coordinates are those of boxes: the centre
    of the first pixel is (0.5, 0.5).

    swap: pairs of points that change places if the sample is mirrored: left and right eye.
    """

    swap: Sequence[tuple[int, int]] = ()


class Geometry(NamedTuple):
    """What happens to the places of one sample in one view."""

    crop: tuple[int, int, int, int]  #: top, left, height, width, in the stored sample
    flip: bool  #: the resized crop is mirrored
    size: tuple[int, int]  #: rows and columns of the view
    steps: tuple[Instruction, ...]  #: geometric instructions after that
    matrix: tuple[float, ...]  #: 3 x 3, in C order: from the stored sample to the view


Target = str | Pixels | Boxes | Keypoints


def _pixels(name: str, of: Pixels, layout: str) -> dict[str, Any]:
    if (of.mean is None) != (of.std is None):
        raise InvalidArgumentError(f"field {name!r}: mean and std go together")
    return {
        "sampling": of.filter,
        "fill": of.fill,
        "dtype": None if of.dtype is None else dtype_name(of.dtype),
        "layout": of.layout if of.layout is not None else layout or None,
        "mean": None if of.mean is None else check.numbers(f"mean of field {name!r}", of.mean),
        "std": None if of.std is None else check.numbers(f"std of field {name!r}", of.std),
    }


def _along(name: str, of: Boxes) -> list[str] | None:
    return None if of.along is None else check.names(f"along of field {name!r}", of.along)


def _swap(name: str, of: Keypoints) -> list[tuple[int, int]]:
    most = 2**32 - 1
    try:
        return [(check.whole("swap", a, 0, most), check.whole("swap", b, 0, most)) for a, b in of.swap]
    except (TypeError, ValueError):
        return check.refuse(
            f"swap of field {name!r}", of.swap, "a list of pairs of whole numbers, such as [(0, 1)]"
        )


def _known(name: Any, data: Any) -> Target:
    """How a target is delivered of which nothing but its name is given: as the data set knows it."""
    role, kind = data._info["images"].get(name, ("",))[0], data._info["targets"].get(name)
    if role == "mask":
        return "nearest"
    if kind is not None:
        return Boxes() if kind == "boxes" else Keypoints()
    what = (
        "an image, which may be depth, a camera or a latent"
        if role
        else "not a mask, and not known to be boxes or keypoints"
    )
    raise InvalidArgumentError(
        f"fields is a list, and {name!r} is {what}: say how it is delivered, as in fields={{{name!r}: "
        f'"bilinear"}}, "nearest", "stored", Boxes() or Keypoints()'
    )


def options_of(
    fields: Mapping[str, Target] | Sequence[str],
    data: Any,
    layout: str,
    as_stored: Sequence[str] = (),
) -> dict[str, Any]:
    """fields, boxes, keypoints and as_stored as the C++ loader takes them.
    layout: of image fields; "" as stored."""
    if isinstance(fields, (list, tuple)):
        fields = {name: _known(name, data) for name in fields}
    if not isinstance(fields, Mapping):
        raise InvalidArgumentError(
            f'fields is {fields!r}; expected a dict such as {{"mask": "nearest", "boxes": Boxes()}}, '
            "or a list of names"
        )
    names = check.names("as_stored", as_stored)
    result: dict[str, Any] = {"fields": {}, "boxes": {}, "keypoints": {}, "as_stored": names}
    for name, of in fields.items():
        if isinstance(of, Boxes):
            result["boxes"][name] = {**of._asdict(), "along": _along(name, of)}
        elif isinstance(of, Keypoints):
            result["keypoints"][name] = _swap(name, of)
        elif isinstance(of, (str, Pixels)):
            pixels = Pixels(of) if isinstance(of, str) else of
            if name not in data._info["images"] and name in data._info["kinds"]:
                if pixels != Pixels("stored"):
                    raise InvalidArgumentError(
                        f"field {name!r} is {of!r}, but it is a column, which has no pixels; "
                        'expected Boxes() or Keypoints(), or "stored" to deliver it as stored'
                    )
                names.append(name)
                continue
            role = data._info["images"].get(name, ("image",))[0]
            result["fields"][name] = _pixels(
                name, pixels, layout if role == "image" and pixels.filter != "stored" else ""
            )
        else:
            raise InvalidArgumentError(
                f'field {name!r} is {of!r}; expected "nearest", "bilinear", "stored", Pixels(), '
                "Boxes() or Keypoints()"
            )
    return result


_ALONG = ("box_labels", "areas", "crowd", "keypoints")


def target_names(options: dict[str, Any], data: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Of image fields, and of columns that follow the views."""
    kinds, as_stored = data._info["kinds"], options.get("as_stored", ())
    asked: dict[str, Any] = options.get("boxes", {})
    known = [name for name in data._info["targets"] if name not in as_stored and "*" not in as_stored]
    columns: list[str] = [*asked, *options.get("keypoints", {}), *known]
    boxes = {
        name: {"along": None}
        for name in known
        if data._info["targets"][name] == "boxes" and name not in options.get("keypoints", {})
    }
    for of in {**boxes, **asked}.values():
        along = of["along"]
        if along is None:
            along = [
                name
                for name in _ALONG
                if name in kinds and kinds[name][0] == "ragged" and name not in as_stored
            ]
        columns.extend(along)
    names: list[str] = []
    for name in dict.fromkeys(columns):
        names.append(name)
        if kinds[name][0] == "ragged":
            names.append(name + ("_offsets" if name in options["flat"] else "_counts"))
    if options.get("correspondence"):
        names.append("correspondence")
    return tuple(options.get("fields", {})), tuple(names)


def geometry_of(drawn: tuple[Any, ...]) -> Geometry:
    """Of what the C++ loader drew for a sample."""
    (top, left, height, width, flip), size, steps, matrix = drawn
    return Geometry((top, left, height, width), flip, size, tuple(Instruction(*one) for one in steps), matrix)
