"""An Augment of a torchvision.transforms.v2.Compose. torchvision itself is not imported: transforms are known by the names of their classes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ._augment import Operation, ops
from ._errors import InvalidArgumentError

# What the loader does anyway, or what has no effect on values.
_NOTHING = {"ToImage", "PILToTensor", "ToTensor", "ToPureTensor", "Identity", "RGB", "ToImageTensor"}
_CROPS = {"CenterCrop": "center_crop", "RandomCrop": "random_crop", "RandomResizedCrop": "random_resized_crop"}


def _of(transform: Any) -> str:
    return type(transform).__name__


def _mode(transform: Any) -> str:
    mode = getattr(transform.interpolation, "value", transform.interpolation)
    if mode not in ("nearest", "bilinear"):
        raise InvalidArgumentError(f"{_of(transform)}: interpolation {mode!r}; only nearest and bilinear are there")
    return str(mode)


def _fill(transform: Any) -> Any:
    fill = transform.fill
    if isinstance(fill, dict):
        raise InvalidArgumentError(f"{_of(transform)}: a fill by type; expected a number, or one for each channel")
    return list(fill) if isinstance(fill, (list, tuple)) else fill


def _square(transform: Any) -> int:
    width, height = transform.kernel_size
    if width != height:
        raise InvalidArgumentError(f"GaussianBlur: kernel_size ({width}, {height}); only square kernels are there")
    return int(width)


def _span(value: Any, otherwise: float) -> Any:
    return (otherwise, otherwise) if value is None else tuple(value)


def _centred(transform: Any) -> Any:
    if getattr(transform, "center", None) is not None:
        raise InvalidArgumentError(f"{_of(transform)}: center {transform.center}; only the image's own is there")
    if getattr(transform, "expand", False):
        raise InvalidArgumentError(f"{_of(transform)}: expand=True changes the size, which is not possible")
    return transform


def _affine(t: Any) -> Operation:
    _centred(t)
    return ops.affine(
        tuple(t.degrees), (0, 0) if t.translate is None else tuple(t.translate), _span(t.scale, 1), (0.0, 0.0) if t.shear is None else tuple(t.shear),
        interpolation=_mode(t), fill=_fill(t),
    )


def _policy_name(t: Any) -> str:
    return str(t.policy.value)


_MAKERS: "dict[str, Callable[[Any], Operation]]" = {
    "ColorJitter": lambda t: ops.color_jitter(_span(t.brightness, 1), _span(t.contrast, 1), _span(t.saturation, 1), _span(t.hue, 0)),
    "RandomGrayscale": lambda t: ops.grayscale(t.p),
    "GaussianBlur": lambda t: ops.gaussian_blur(_square(t), tuple(t.sigma)),
    "RandomSolarize": lambda t: ops.solarize(t.threshold, p=t.p),
    "RandomPosterize": lambda t: ops.posterize(t.bits, p=t.p),
    "RandomEqualize": lambda t: ops.equalize(t.p),
    "RandomAutocontrast": lambda t: ops.auto_contrast(t.p),
    "RandomAdjustSharpness": lambda t: ops.sharpness(t.sharpness_factor, p=t.p),
    "RandomInvert": lambda t: ops.invert(t.p),
    "RandomChannelPermutation": lambda t: ops.permute(),
    "RandomAffine": _affine,
    "RandomRotation": lambda t: ops.rotation(tuple(_centred(t).degrees), interpolation=_mode(t), fill=_fill(t)),
    "RandomPerspective": lambda t: ops.perspective(t.distortion_scale, interpolation=_mode(t), fill=_fill(t), p=t.p),
    "RandomVerticalFlip": lambda t: ops.vertical_flip(t.p),
    "RandAugment": lambda t: ops.rand_augment(t.num_ops, t.magnitude, bins=t.num_magnitude_bins, interpolation=_mode(t), fill=_fill(t)),
    "TrivialAugmentWide": lambda t: ops.trivial_augment(bins=t.num_magnitude_bins, interpolation=_mode(t), fill=_fill(t)),
    "AutoAugment": lambda t: ops.auto_augment(_policy_name(t), interpolation=_mode(t), fill=_fill(t)),
    "AugMix": lambda t: ops.aug_mix(t.severity, t.mixture_width, max(t.chain_depth, 0), t.alpha, all_operations=t.all_ops, interpolation=_mode(t), fill=_fill(t)),
}


def _erasing(t: Any, normalised: Any) -> Operation:
    """Its value counts in what the transform gets: bytes, 0 to 1, or normalised values. Here it counts in bytes."""
    if t.value is None:
        raise InvalidArgumentError('RandomErasing: value="random" draws normal values there and uniform bytes here: name ops.erasing(value="random")')
    values = list(t.value)
    if normalised is not None:
        mean, std = normalised
        values = values * len(mean) if len(values) == 1 else values
        values = [(value * s + m) * 255 for value, m, s in zip(values, mean, std)]
    return ops.erasing(tuple(t.scale), tuple(t.ratio), values if len(values) > 1 else values[0], p=t.p)


def _crop(t: Any) -> "dict[str, Any]":
    given: "dict[str, Any]" = {_CROPS[_of(t)]: tuple(t.size)}
    if _of(t) == "RandomResizedCrop":
        if _mode(t) != "bilinear" or t.antialias is False:
            raise InvalidArgumentError("RandomResizedCrop: only bilinear with antialias is there")
        given.update(scale=tuple(t.scale), ratio=tuple(t.ratio))
    elif _of(t) == "RandomCrop" and (t.padding or t.pad_if_needed):
        raise InvalidArgumentError("RandomCrop with padding: use ops.padded_crop(), for a crop of the sample's own size")
    return given


def _flat(transform: Any) -> "Iterator[Any]":
    if _of(transform) in ("Compose", "Sequential"):
        for part in getattr(transform, "transforms", None) or transform:
            yield from _flat(part)
    else:
        yield transform


def arguments_of(compose: Any) -> "dict[str, Any]":
    """The arguments of Augment. Raises InvalidArgumentError naming every transform that has none here."""
    given: "dict[str, Any]" = {}
    operations: "list[Operation]" = []
    unknown = []
    normalised: Any = None
    scaled = False
    for t in _flat(compose):
        name = _of(t)
        if name in _NOTHING:
            scaled = scaled or name == "ToTensor"
        elif name in _CROPS:
            if operations:
                raise InvalidArgumentError(f"{name} after {operations[-1].name}: crops come before operations here")
            if set(_CROPS.values()) & given.keys():
                raise InvalidArgumentError(f"{name} is a second crop; one is possible")
            given.update(_crop(t))
        elif name == "RandomHorizontalFlip":
            if "flip" in given:
                raise InvalidArgumentError("a second RandomHorizontalFlip; one is possible")
            given["flip"] = float(t.p)
        elif name in ("ToDtype", "ConvertImageDtype"):
            dtype = t.dtype if not isinstance(t.dtype, dict) else next(iter(t.dtype.values()))
            given["dtype"] = str(dtype).rpartition(".")[2]
            scaled = True
        elif name == "Normalize":
            normalised = (list(t.mean), list(t.std))
            given.update(mean=tuple(t.mean), std=tuple(t.std))
        elif name == "RandomErasing":
            operations.append(_erasing(t, normalised if normalised is not None else ([0.0], [1.0]) if scaled else None))
        elif name == "RandomApply" and len(t.transforms) == 1 and _of(t.transforms[0]) in _MAKERS:
            one = _MAKERS[_of(t.transforms[0])](t.transforms[0])
            operations.append(Operation(one.name, {**one.parameters, "p": float(one.parameters.get("p", 1)) * float(t.p)}))
        elif name in _MAKERS:
            if normalised is not None:
                raise InvalidArgumentError(f"{name} after Normalize: operations come before it here")
            operations.append(_MAKERS[name](t))
        elif name == "Grayscale" and t.num_output_channels == 3:
            operations.append(ops.grayscale())
        else:
            unknown.append(name)
    if unknown:
        raise InvalidArgumentError(f"torchvision's {', '.join(unknown)} {'have' if len(unknown) > 1 else 'has'} no counterpart here")
    return {**given, "ops": operations}
