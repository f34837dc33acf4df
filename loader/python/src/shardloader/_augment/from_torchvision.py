"""An Augment of a torchvision.transforms.v2.Compose. torchvision itself is not imported:
transforms are known by the names of their classes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from .._base.arrays import dtype_name
from .._errors import InvalidArgumentError
from .._operations import Operation, ops

# What the loader does anyway, or what has no effect on values.
_NOTHING = {
    "ToImage",
    "PILToTensor",
    "ToPILImage",
    "ToPureTensor",
    "Identity",
    "RGB",
    "ToImageTensor",
    "MaybePILToTensor",
    "ToNumpy",
}
_CROPS = {
    "CenterCrop": "center_crop",
    "RandomCrop": "random_crop",
    "RandomResizedCrop": "random_resized_crop",
    "RandomResizedCropAndInterpolation": "random_resized_crop",
}
_DTYPES = {"ToDtype", "ConvertImageDtype", "ToTensor", "MaybeToTensor"}
# Of timm; others of its transforms have names of torchvision and do other things.
_OF_TIMM = {"RandomResizedCropAndInterpolation", "MaybeToTensor", "MaybePILToTensor", "ToNumpy"}


def _of(transform: Any) -> str:
    return type(transform).__name__


def _known(transform: Any) -> bool:
    """It is one of torchvision's transforms (or torch's Identity), or of timm's that mean the same."""
    module = type(transform).__module__.partition(".")[0]
    return module in ("torchvision", "torch") or (module == "timm" and _of(transform) in _OF_TIMM)


def _numbers(values: Any) -> list[float]:
    """Of a number, a sequence or a tensor."""
    return [float(value) for value in values] if hasattr(values, "__len__") else [float(values)]


def _mode(transform: Any) -> str:
    mode = getattr(transform.interpolation, "value", transform.interpolation)
    if mode not in ("nearest", "bilinear"):
        raise InvalidArgumentError(
            f"{_of(transform)}: interpolation {mode!r}; only nearest and bilinear are there"
        )
    return str(mode)


def _fill(transform: Any) -> Any:
    fill = transform.fill
    if isinstance(fill, dict):
        raise InvalidArgumentError(
            f"{_of(transform)}: a fill by type; expected a number, or one for each channel"
        )
    return list(fill) if isinstance(fill, (list, tuple)) else fill


def _square(transform: Any) -> int:
    width, height = transform.kernel_size
    if width != height:
        raise InvalidArgumentError(
            f"GaussianBlur: kernel_size ({width}, {height}); only square kernels are there"
        )
    return int(width)


def _span(value: Any, otherwise: float) -> Any:
    return (otherwise, otherwise) if value is None else tuple(value)


def _centred(transform: Any) -> Any:
    if getattr(transform, "center", None) is not None:
        raise InvalidArgumentError(
            f"{_of(transform)}: center {transform.center}; only the image's own is there"
        )
    if getattr(transform, "expand", False):
        raise InvalidArgumentError(f"{_of(transform)}: expand=True changes the size, which is not possible")
    return transform


def _shears(t: Any) -> tuple[Any, Any]:
    """(low, high) along x, and along y."""
    shear = (0.0, 0.0) if t.shear is None else tuple(t.shear)
    return shear[:2], shear[2:] or (0.0, 0.0)


def _affine(t: Any) -> Operation:
    _centred(t)
    return ops.affine(
        tuple(t.degrees),
        (0, 0) if t.translate is None else tuple(t.translate),
        _span(t.scale, 1),
        *_shears(t),
        interpolation=_mode(t),
        fill=_fill(t),
    )


def _policy_name(t: Any) -> str:
    return str(t.policy.value)


_MAKERS: dict[str, Callable[[Any], Operation]] = {
    "ColorJitter": lambda t: ops.color_jitter(
        _span(t.brightness, 1), _span(t.contrast, 1), _span(t.saturation, 1), _span(t.hue, 0)
    ),
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
    "RandomRotation": lambda t: ops.rotation(
        tuple(_centred(t).degrees), interpolation=_mode(t), fill=_fill(t)
    ),
    "RandomPerspective": lambda t: ops.perspective(
        t.distortion_scale, interpolation=_mode(t), fill=_fill(t), p=t.p
    ),
    "RandomVerticalFlip": lambda t: ops.vertical_flip(t.p),
    "RandAugment": lambda t: ops.rand_augment(
        t.num_ops, t.magnitude, bins=t.num_magnitude_bins, interpolation=_mode(t), fill=_fill(t)
    ),
    "TrivialAugmentWide": lambda t: ops.trivial_augment(
        bins=t.num_magnitude_bins, interpolation=_mode(t), fill=_fill(t)
    ),
    "AutoAugment": lambda t: ops.auto_augment(_policy_name(t), interpolation=_mode(t), fill=_fill(t)),
    "AugMix": lambda t: ops.aug_mix(
        t.severity,
        t.mixture_width,
        max(t.chain_depth, 0),
        t.alpha,
        all_operations=t.all_ops,
        interpolation=_mode(t),
        fill=_fill(t),
    ),
}


def _three_augment(t: Any) -> Operation | None:
    """RandomChoice of grayscale, solarize and blur, as DeiT III draws them; None for any other choice."""
    made = {one.name: one.parameters for one in map(_operation, t.transforms) if one is not None}
    blur = made.get("gaussian_blur", {})
    if (
        len(t.transforms) != 3
        or made.keys() != {"grayscale", "solarize", "gaussian_blur"}
        or any(one["p"] != 1 for one in made.values())
    ):
        return None
    if (
        len({*t.p}) > 1
        or made["solarize"]["threshold"] != 128
        or blur["kernel_size"] != 13
        or blur["sigma"] != (0.1, 2.0)
    ):
        return None
    return ops.three_augment()


def _operation(t: Any) -> Operation | None:
    """None: there is none."""
    name = _of(t)
    if not _known(t):
        return None
    if name in _MAKERS:
        return _MAKERS[name](t)
    if name == "Grayscale" and t.num_output_channels == 3:
        return ops.grayscale()
    if name == "RandomChoice":
        return _three_augment(t)
    if name == "RandomApply":
        parts = list(_flat_all(t.transforms))
        one = _operation(parts[0]) if len(parts) == 1 else None
        return (
            None
            if one is None
            else Operation(one.name, {**one.parameters, "p": float(one.parameters["p"]) * float(t.p)})
        )
    return None


def _described(t: Any) -> str:
    """The name of a transform that has no counterpart, and what it is about it."""
    name, module = _of(t), type(t).__module__
    if not _known(t):
        return name if module == "builtins" else f"{module}.{name}"
    if _of(t) in ("RandomApply", "RandomChoice", "RandomOrder"):
        return f"{name} of {', '.join(map(_of, t.transforms))}"
    if _of(t) == "Grayscale":
        return f"{name} to 1 channel"
    return f"{name} (name the size of the stored samples, size=)" if _of(t) == "Resize" else name


def _in_bytes(one: Operation) -> Operation:
    """Of an operation on values from 0 to 1: its parameters that are such values, in bytes."""
    if one.name == "three_augment":
        raise InvalidArgumentError(
            "RandomSolarize: threshold 128 of values that are 0 to 1; put the RandomChoice before the float "
            "dtype"
        )
    parameters = dict(one.parameters)
    if one.name == "solarize":
        parameters["threshold"] *= 255
    if parameters.get("fill") is not None:
        fill = [255 * value for value in _numbers(parameters["fill"])]
        parameters["fill"] = fill if len(fill) > 1 else fill[0]
    return Operation(one.name, parameters)


def _lopsided(one: Operation) -> str:
    """The parameter of an operation that a horizontal flip turns into another one, as text;
    "": a flip and it commute, in distribution."""
    for name in ("degrees", "shear_x", "shear_y"):
        low, high = one.parameters.get(name, (0, 0))
        if low != -high and (name, low, high) != ("degrees", 180, 180):
            return f"{name} of ({low:g}, {high:g})"
    return ""


def _padding(t: Any) -> tuple[int, bool]:
    """How many pixels, and whether they mirror the sample."""
    padding = {int(side) for side in _numbers(t.padding)}
    mode = getattr(t.padding_mode, "value", t.padding_mode)
    if len(padding) != 1 or mode not in ("constant", "reflect"):
        raise InvalidArgumentError(
            f"RandomCrop: padding {t.padding} of mode {mode!r}; expected the same on all sides, "
            "constant or reflect"
        )
    return padding.pop(), mode == "reflect"


def _crop(t: Any) -> dict[str, Any]:
    given: dict[str, Any] = {_CROPS[_of(t)]: tuple(t.size)}
    if _CROPS[_of(t)] == "random_resized_crop":
        mode = getattr(t.interpolation, "value", t.interpolation)
        if mode != "bilinear" or getattr(t, "antialias", True) is False:
            raise InvalidArgumentError(
                f"{_of(t)}: interpolation {mode!r}, antialias={getattr(t, 'antialias', True)}; "
                "only bilinear with antialias is there"
            )
        given.update(scale=tuple(t.scale), ratio=tuple(t.ratio))
    return given


def _dtype_of_images(t: Any) -> Any:
    """What ToDtype makes of images. None: it leaves them."""
    if not isinstance(t.dtype, dict):
        return t.dtype
    by_name = {getattr(key, "__name__", key): dtype for key, dtype in t.dtype.items()}
    return next((by_name[name] for name in ("Image", "Tensor", "others") if name in by_name), None)


def _flat_all(transforms: Any) -> Iterator[Any]:
    for part in transforms:
        yield from _flat(part)


def _flat(transform: Any) -> Iterator[Any]:
    if _of(transform) in ("Compose", "Sequential"):
        yield from _flat_all(getattr(transform, "transforms", None) or transform)
    else:
        yield transform


class _Conversion:
    """The arguments of Augment, transform by transform."""

    def __init__(self, size: tuple[int, int] | None) -> None:
        self.size = size  # of the image that the next transform gets; None: not known
        self.given: dict[str, Any] = {}
        self.operations: list[Operation] = []
        self.unit: int | None = (
            None  # what 255 has become: 1, or 255 in floats without scaling; None: it is still a byte
        )
        self.normalised = False

    def take(self, t: Any) -> bool:
        """False: it has no counterpart."""
        name = _of(t)
        if not _known(t):
            return False
        if name == "ToPILImage" and self.unit is not None:
            raise InvalidArgumentError("ToPILImage after a float dtype rounds to bytes again; leave it out")
        if name in _NOTHING:
            return True
        if name in _CROPS:
            self._take_crop(t)
        elif name == "RandomHorizontalFlip":
            self._take_flip(float(t.p))
        elif name in _DTYPES:
            self._take_dtype(t)
        elif name == "Normalize":
            self._take_normalize(t)
        elif name == "RandomErasing":
            self.operations.append(self._erasing(t))
        elif name == "RandomApply" and [_of(part) for part in _flat_all(t.transforms)] == [
            "RandomHorizontalFlip"
        ]:
            self._take_flip(float(next(_flat_all(t.transforms)).p) * float(t.p))
        elif name == "Resize" and self.size is not None:
            self._take_resize(t)
        else:
            one = _operation(t)
            if one is not None:
                self._take_operation(t, one)
            return one is not None
        return True

    def _take_crop(self, t: Any) -> None:
        name = _of(t)
        if name == "RandomCrop" and t.pad_if_needed:
            raise InvalidArgumentError("RandomCrop: pad_if_needed=True; samples have one size here")
        if name == "RandomCrop" and any(_numbers(t.padding or 0)):
            self.operations.append(self._padded_crop(t))
            return
        if self.operations:
            raise InvalidArgumentError(
                f"{name} after {self.operations[-1].name}: crops come before operations here"
            )
        if set(_CROPS.values()) & self.given.keys():
            raise InvalidArgumentError(f"{name} is a second crop; one is possible")
        if (
            name == "CenterCrop"
            and "flip" in self.given
            and (self.size is None or (self.size[1] - t.size[1]) % 2 != 0)
        ):
            raise InvalidArgumentError(
                f"CenterCrop of {list(t.size)} after RandomHorizontalFlip: a flip comes after the crop here, "
                "which is another crop where an odd number of columns is cut off; "
                "put the flip behind "
                f"it{'' if self.size else ', or tell the size of the stored samples by size='}"
            )
        self.given.update(_crop(t))
        self.size = (int(t.size[0]), int(t.size[1]))

    def _padded_crop(self, t: Any) -> Operation:
        """Of a RandomCrop of the image's own size. Its fill counts in what the transform gets."""
        if self.size != tuple(t.size):
            raise InvalidArgumentError(
                f"RandomCrop of {list(t.size)} with padding: possible for images of this size; "
                f"tell that of the stored samples by size=. Here it is {self.size}"
            )
        padding, reflect = _padding(t)
        fill = [0.0] if reflect else self._bytes("RandomCrop: fill", _numbers(_fill(t) or 0))
        return ops.padded_crop(padding, reflect=reflect, fill=fill if len(fill) > 1 else fill[0])

    def _take_flip(self, p: float) -> None:
        if "flip" in self.given:
            raise InvalidArgumentError("a second RandomHorizontalFlip; one is possible")
        for one in self.operations:
            lopsided = _lopsided(one)
            if lopsided:
                raise InvalidArgumentError(
                    f"RandomHorizontalFlip after {one.name} with {lopsided}: a flip comes first here, "
                    "which would turn the other way; put it before"
                )
        self.given["flip"] = p

    def _take_resize(self, t: Any) -> None:
        assert self.size is not None
        sides = [int(side) for side in _numbers(t.size)]
        if (self.size if len(sides) == 2 else (min(self.size),)) != tuple(sides):
            raise InvalidArgumentError(
                f"Resize to {sides}: samples are stored as {list(self.size)} (size=); "
                "the loader resizes in random_resized_crop only"
            )

    def _take_dtype(self, t: Any) -> None:
        name = _of(t)
        if name in ("ToTensor", "MaybeToTensor"):
            if self.unit is not None:
                raise InvalidArgumentError(f"{name} after a float dtype: it takes bytes")
            self.given["dtype"], self.unit = "float32", 1
            return
        wanted, scale = _dtype_of_images(t), bool(getattr(t, "scale", True))
        if wanted is None:
            return
        dtype = dtype_name(wanted)
        if dtype not in ("uint8", "float16", "bfloat16", "float32"):
            raise InvalidArgumentError(f"{name} to {dtype}: expected uint8 or a float dtype")
        if dtype == "uint8" and self.unit is not None:
            if self.normalised or scale != (self.unit == 1):
                raise InvalidArgumentError(
                    f"{name} to uint8 with scale={scale} of values that are {self._said()}: "
                    "it would cut them off"
                )
            self.unit = None
        elif dtype != "uint8" and self.unit is None:
            self.unit = 1 if scale else 255  # from floats to floats nothing is scaled
        self.given["dtype"] = dtype

    def _said(self) -> str:
        return "normalised" if self.normalised else {None: "bytes", 1: "0 to 1", 255: "0 to 255"}[self.unit]

    def _take_normalize(self, t: Any) -> None:
        if self.normalised:
            raise InvalidArgumentError("a second Normalize; one is possible")
        if self.unit is None:
            raise InvalidArgumentError(
                "Normalize of bytes: torchvision takes floats only; put ToDtype(torch.float32, "
                "scale=True) before it"
            )
        self.normalised = True
        for name in ("mean", "std"):
            self.given[name] = tuple(value / self.unit for value in _numbers(getattr(t, name)))

    def _bytes(self, where: str, values: list[float]) -> list[float]:
        """Values that count in what the transform gets (bytes, 0 to 1, or normalised), as bytes."""
        made = values
        if self.normalised:
            mean, std = self.given["mean"], self.given["std"]
            both = made * len(mean) if len(made) == 1 else made
            if len(mean) == 1:
                mean, std = mean * len(both), std * len(both)
            if len(both) != len(mean):
                raise InvalidArgumentError(
                    f"{where} has {len(both)} numbers behind a Normalize of {len(mean)} channels"
                )
            made = [(value * s + m) * 255 for value, m, s in zip(both, mean, std)]
        elif self.unit == 1:
            made = [value * 255 for value in made]
        if not all(-1e-6 <= value <= 255 + 1e-6 for value in made):
            raise InvalidArgumentError(f"{where} {values} is {made} in bytes; it must be 0 to 255")
        return [min(max(value, 0.0), 255.0) for value in made]

    def _take_operation(self, t: Any, one: Operation) -> None:
        if self.normalised:
            raise InvalidArgumentError(f"{_of(t)} after Normalize: operations come before it here")
        if self.unit == 255:
            raise InvalidArgumentError(
                f"{_of(t)} after a dtype without scale=True: torchvision takes such values as 0 to 1"
            )
        self.operations.append(one if self.unit is None else _in_bytes(one))

    def _erasing(self, t: Any) -> Operation:
        """Its value counts in what the transform gets."""
        if t.value is None or t.value == "random":
            raise InvalidArgumentError(
                'RandomErasing: value="random" draws normal values there and uniform bytes here: '
                'name ops.erasing(value="random")'
            )
        values = self._bytes("RandomErasing: value", _numbers(t.value))
        if self.unit is None:
            values = [float(int(value)) for value in values]  # a tensor of bytes takes the whole part
        return ops.erasing(tuple(t.scale), tuple(t.ratio), values if len(values) > 1 else values[0], p=t.p)

    def arguments(self) -> dict[str, Any]:
        if self.unit is not None and not self.normalised:
            self.given.update(mean=0.0, std=1 / self.unit)
        return {**self.given, "ops": self.operations}


def arguments_of(compose: Any, size: tuple[int, int] | None) -> dict[str, Any]:
    """The arguments of Augment. Raises InvalidArgumentError naming every transform that has none here."""
    conversion = _Conversion(size)
    unknown = []
    for t in _flat(compose):
        try:
            if not conversion.take(t):
                unknown.append(t)
        except (AttributeError, TypeError) as error:  # of a version that has other members
            raise InvalidArgumentError(
                f"torchvision's {_described(t)} is not understood ({error}); "
                "name its counterpart of shardloader.ops"
            ) from error
    if unknown:
        whose = "torchvision's " if all(map(_known, unknown)) else ""
        raise InvalidArgumentError(
            f"{whose}{', '.join(map(_described, unknown))} {'have' if len(unknown) > 1 else 'has'} no "
            "counterpart here"
        )
    return conversion.arguments()
