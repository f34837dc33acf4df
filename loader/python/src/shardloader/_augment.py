"""Augmentation: operations on the pixels of each sample, drawn from (seed, epoch,
sample, view, operation)."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Union

from . import _check, _core
from ._declare import taken, with_signature
from ._errors import InvalidArgumentError
from ._numpy import np
from ._view_options import Size, ViewOptions

if TYPE_CHECKING:
    from typing_extensions import Unpack

Span = Union[float, "Sequence[float]"]
Fill = Union[None, float, "Sequence[float]"]


class Operation(NamedTuple):
    """One operation: its name and parameters. Made by the functions of shardloader.ops."""

    name: str
    parameters: Mapping[str, Any]


class Instruction(NamedTuple):
    """One step of a drawn program, with all parameters (docs/augment.md)."""

    opcode: str
    whole: tuple[int, ...]
    real: tuple[float, ...]


def _span(where: str, value: Span, centre: float | None = None) -> tuple[float, float]:
    """(low, high). A single number v is (centre - v, centre + v), and not below 0 around 1,
    as in torchvision. where: named in errors."""
    if isinstance(value, (int, float)):
        if centre is None:
            return (float(value), float(value))
        if value < 0:
            raise InvalidArgumentError(f"{where} is {value}; expected a number from 0 on, or (low, high)")
        low = centre - value
        return (max(low, 0.0) if centre == 1 else low, centre + value)
    try:
        low, high = (float(bound) for bound in value)
    except (TypeError, ValueError):
        raise InvalidArgumentError(f"{where} is {value!r}; expected a number, or (low, high)") from None
    return (low, high)


def _or(value: Any, otherwise: Any) -> Any:
    return otherwise if value is None else value


def _number_or_numbers(name: str, value: Any) -> Any:
    return value if value is None or isinstance(value, (int, float)) else _check.numbers(name, value)


def _check_pairs(**of: tuple[Any, dict[str, Any]]) -> None:
    """What belongs to an operation is not given without it."""
    for name, (value, further) in of.items():
        for other, given in further.items():
            if value is None and given is not None:
                raise InvalidArgumentError(
                    f"{other} is {given!r}, but {name} is not given; give both or neither"
                )


def _check_probabilities(**of: Any) -> None:
    for name, p in of.items():
        if isinstance(p, bool) or not isinstance(p, (int, float)) or not 0 <= p <= 1:
            raise InvalidArgumentError(f"{name} is {p!r}; expected a probability, 0 to 1 (1: always)")


def _key(seed: int, epoch: int, sample: int, view: int) -> tuple[int, int, int, int]:
    """What keys the draws, checked."""
    numbers = tuple(operator.index(number) for number in (seed, epoch, sample, view))
    for name, number, bits in zip(("seed", "epoch", "sample", "view"), numbers, (64, 64, 64, 32)):
        if not 0 <= number < 2**bits:
            raise InvalidArgumentError(f"{name} is {number}; it must be 0 to 2^{bits} - 1")
    return numbers  # type: ignore[return-value]


class ops:
    """Operations for Augment(ops=[...]). p: the probability of being applied.
    Each has torchvision's definition (docs/augment.md)."""

    @staticmethod
    def color_jitter(
        brightness: Span = 0,
        contrast: Span = 0,
        saturation: Span = 0,
        hue: Span = 0,
        *,
        random_order: bool = True,
        p: float = 1,
    ) -> Operation:
        """torchvision's ColorJitter. A number v: factors from 1 - v to 1 + v, and hues from -v to v."""
        given: dict[str, Any] = {"random_order": random_order, "p": p}
        for name, value, centre in (
            ("brightness", brightness, 1.0),
            ("contrast", contrast, 1.0),
            ("saturation", saturation, 1.0),
            ("hue", hue, 0.0),
        ):
            span = _span(f"color_jitter: {name}", value, centre)
            if span != (centre, centre):
                given[name] = span
        return Operation("color_jitter", given)

    @staticmethod
    def grayscale(p: float = 1) -> Operation:
        """All channels become the gray value."""
        return Operation("grayscale", {"p": p})

    @staticmethod
    def gaussian_blur(kernel_size: int = 23, sigma: Span = (0.1, 2.0), *, p: float = 1) -> Operation:
        """kernel_size: odd, up to 31. sigma: a number, or bounds."""
        return Operation(
            "gaussian_blur",
            {"kernel_size": kernel_size, "sigma": _span("gaussian_blur: sigma", sigma), "p": p},
        )

    @staticmethod
    def solarize(threshold: float = 128, *, p: float = 1) -> Operation:
        """Inverts values of at least `threshold`."""
        return Operation("solarize", {"threshold": threshold, "p": p})

    @staticmethod
    def posterize(bits: int, *, p: float = 1) -> Operation:
        """Keeps the upper bits of each value."""
        return Operation("posterize", {"bits": bits, "p": p})

    @staticmethod
    def equalize(p: float = 1) -> Operation:
        """Makes the histogram of each channel flat."""
        return Operation("equalize", {"p": p})

    @staticmethod
    def auto_contrast(p: float = 1) -> Operation:
        """Stretches each channel to 0 to 255."""
        return Operation("auto_contrast", {"p": p})

    @staticmethod
    def sharpness(factor: Span = 2, *, p: float = 1) -> Operation:
        """0 blurs, 1 changes nothing."""
        return Operation("sharpness", {"factor": _span("sharpness: factor", factor), "p": p})

    @staticmethod
    def invert(p: float = 1) -> Operation:
        """255 - value."""
        return Operation("invert", {"p": p})

    @staticmethod
    def permute(order: Sequence[int] | None = None, *, p: float = 1) -> Operation:
        """Output channel c is input channel order[c]. None: a random order."""
        channels = (
            None
            if order is None
            else list(order)
            if isinstance(order, (list, tuple))
            else _check.refuse("permute: order", order, "a list of channels")
        )
        return Operation("permute", {"order": channels, "p": p})

    @staticmethod
    def affine(
        degrees: Span = 0,
        translate: Sequence[float] = (0, 0),
        scale: Span = 1,
        shear: float | Sequence[float] = 0,
        *,
        interpolation: str = "nearest",
        fill: Fill = 0,
        p: float = 1,
    ) -> Operation:
        """torchvision's RandomAffine. shear: a number, (low, high) along x,
        or four numbers: those of x and y."""
        if not isinstance(shear, (int, float)) and (
            not isinstance(shear, (list, tuple)) or len(shear) not in (2, 4)
        ):
            _check.refuse("affine: shear", shear, "a number, two or four of them")
        shears = (
            (-shear, shear, 0.0, 0.0)
            if isinstance(shear, (int, float))
            else tuple(shear) + (0.0, 0.0) * (len(shear) == 2)
        )
        if not isinstance(translate, (list, tuple)):
            _check.refuse("affine: translate", translate, "two numbers")
        given = {
            "degrees": _span("affine: degrees", degrees, 0.0),
            "translate": tuple(translate),
            "scale": _span("affine: scale", scale),
            "shear_x": shears[:2],
            "shear_y": shears[2:],
        }
        return Operation("affine", {**given, "interpolation": interpolation, "fill": fill, "p": p})

    @staticmethod
    def rotation(degrees: Span, *, interpolation: str = "nearest", fill: Fill = 0, p: float = 1) -> Operation:
        """Counter-clockwise, about the centre. A number v: from -v to v."""
        return Operation(
            "rotation",
            {
                "degrees": _span("rotation: degrees", degrees, 0.0),
                "interpolation": interpolation,
                "fill": fill,
                "p": p,
            },
        )

    @staticmethod
    def perspective(
        distortion: float = 0.5, *, interpolation: str = "bilinear", fill: Fill = 0, p: float = 0.5
    ) -> Operation:
        """torchvision's RandomPerspective."""
        return Operation(
            "perspective", {"distortion": distortion, "interpolation": interpolation, "fill": fill, "p": p}
        )

    @staticmethod
    def erasing(
        scale: Span = (0.02, 0.33),
        ratio: Span = (0.3, 3.3),
        value: float | Sequence[float] | str = 0,
        *,
        p: float = 0.5,
    ) -> Operation:
        """A rectangle gets `value` (of bytes, 0 to 255), or with "random" uniform bytes."""
        if isinstance(value, str) and value != "random":
            raise InvalidArgumentError(
                f'erasing: value is {value!r}; expected a number, one for each channel, or "random"'
            )
        return Operation(
            "erasing",
            {
                "scale": _span("erasing: scale", scale),
                "ratio": _span("erasing: ratio", ratio),
                "value": None if isinstance(value, str) else value,
                "p": p,
            },
        )

    @staticmethod
    def vertical_flip(p: float = 0.5) -> Operation:
        """The first row becomes the last."""
        return Operation("vertical_flip", {"p": p})

    @staticmethod
    def turns(turns: int | None = None, *, p: float = 1) -> Operation:
        """Quarter turns counter-clockwise: 0 to 3. None: each equally often."""
        return Operation("turns", {"turns": turns, "p": p})

    @staticmethod
    def padded_crop(padding: int = 4, *, reflect: bool = False, fill: Fill = 0, p: float = 1) -> Operation:
        """torchvision's RandomCrop of the sample's own size with padding."""
        return Operation(
            "padded_crop",
            {"padding": padding, "reflect": reflect, "fill": 0 if fill is None else fill, "p": p},
        )

    @staticmethod
    def rand_augment(
        count: int = 2,
        magnitude: int = 9,
        *,
        bins: int = 31,
        interpolation: str = "nearest",
        fill: Fill = None,
        p: float = 1,
    ) -> Operation:
        """torchvision's RandAugment."""
        return Operation(
            "rand_augment",
            {
                "count": count,
                "magnitude": magnitude,
                "bins": bins,
                "interpolation": interpolation,
                "fill": fill,
                "p": p,
            },
        )

    @staticmethod
    def trivial_augment(
        *, bins: int = 31, interpolation: str = "nearest", fill: Fill = None, p: float = 1
    ) -> Operation:
        """torchvision's TrivialAugmentWide."""
        return Operation(
            "trivial_augment", {"bins": bins, "interpolation": interpolation, "fill": fill, "p": p}
        )

    @staticmethod
    def auto_augment(
        policy: str = "imagenet", *, interpolation: str = "nearest", fill: Fill = None, p: float = 1
    ) -> Operation:
        """torchvision's AutoAugment: "imagenet", "cifar10" or "svhn"."""
        return Operation(
            "auto_augment", {"policy": policy, "interpolation": interpolation, "fill": fill, "p": p}
        )

    @staticmethod
    def aug_mix(
        severity: int = 3,
        width: int = 3,
        depth: int = 0,
        alpha: float = 1,
        *,
        all_operations: bool = True,
        interpolation: str = "bilinear",
        fill: Fill = None,
        p: float = 1,
    ) -> Operation:
        """torchvision's AugMix. depth: operations in each of `width` chains; 0: 1 to 3."""
        given = {
            "severity": severity,
            "width": width,
            "depth": depth,
            "alpha": alpha,
            "all_operations": all_operations,
        }
        return Operation("aug_mix", {**given, "interpolation": interpolation, "fill": fill, "p": p})

    @staticmethod
    def three_augment(p: float = 1) -> Operation:
        """DeiT III: grayscale, solarize or gaussian blur. A color_jitter(0.3, 0.3, 0.3) follows it there."""
        return Operation("three_augment", {"p": p})


def _of_policy(policy: str) -> Operation:
    if policy not in ("rand_augment", "trivial_augment", "auto_augment", "aug_mix", "three_augment"):
        raise InvalidArgumentError(
            f'policy is {policy!r}; expected "rand_augment", "trivial_augment", "auto_augment", '
            '"aug_mix" or "three_augment"'
        )
    made: Operation = getattr(ops, policy)()
    return made


def _jitter(spans: Sequence[Span], p: float) -> Operation:
    if not isinstance(spans, (list, tuple)) or not 1 <= len(spans) <= 4:
        _check.refuse("color_jitter", spans, "one to four: brightness, contrast, saturation, hue")
    return ops.color_jitter(*spans, p=p)


def _solarize(threshold: float, p: float) -> Operation:
    if not isinstance(threshold, (int, float)) or isinstance(threshold, bool) or 0 < threshold < 1:
        _check.refuse(
            "solarize",
            threshold,
            "a threshold of bytes, 1 to 255 (or 0, which inverts all); "
            "for a probability give 128 and solarize_p",
        )
    return ops.solarize(threshold, p=p)


class MixPairs(NamedTuple):
    """Mixup and cutmix of neighbours in the global batch: rows 0 and 1, 2 and 3, ...

    mixup, cutmix: parameters of the beta distribution of a sample's share; 0: never.
        probability: of a pair being mixed.
    cutmix_probability: of cutmix then, if both are given.

    A batch then has column("labels_b"), the neighbours' labels, and column("share"), float32: what is left of
    each row's own sample. Batch.soft_labels(classes) makes float32 [sample, classes] of them."""

    mixup: float = 0
    cutmix: float = 0
    probability: float = 1
    cutmix_probability: float = 0.5


class Augment:
    """What is done with each sample: crop and flip, then operations on its pixels, in this order.

        sl.Augment(random_resized_crop=224, flip=0.5, color_jitter=(0.4, 0.4, 0.4, 0.1), grayscale=0.2)
        sl.Augment.rand_augment(2, 9)
        sl.Augment(ops=[sl.ops.posterize(4, p=0.5), sl.ops.affine(10, scale=(0.9, 1.1))])

    center_crop, random_crop, random_resized_crop, scale, ratio, flip, dtype, layout, mean, std: as for
        Loader; not given: what the Loader says. mean and std may be one number for all channels.
    color_jitter: brightness, contrast, saturation and hue, with probability color_jitter_p (default: 1).
        grayscale, equalize, auto_contrast, invert, vertical_flip: probabilities; vertical_flip=True is 0.5,
        as for flip. gaussian_blur: a kernel size, with gaussian_blur_sigma (default: 0.1 to 2) and
        gaussian_blur_p (1). solarize: a threshold of bytes, 0 to 255, with solarize_p (1). They are applied
        in the order of these sentences.
    policy: "rand_augment", "trivial_augment", "auto_augment", "aug_mix" or "three_augment", before those.
    ops: further operations, made by the functions of shardloader.ops; they follow.
        erasing: the probability of ops.erasing(), at the end.

    The same (seed, epoch, sample, view) gives the same result on every device, bit for bit. Raises
    InvalidArgumentError (a ValueError) naming operation, value and bounds.
    """

    def __init__(
        self,
        *,
        policy: str | None = None,
        color_jitter: Sequence[Span] | None = None,
        color_jitter_p: float | None = None,
        grayscale: float = 0,
        equalize: float = 0,
        auto_contrast: float = 0,
        invert: float = 0,
        vertical_flip: bool | float = 0,
        gaussian_blur: int | None = None,
        gaussian_blur_sigma: Span | None = None,
        gaussian_blur_p: float | None = None,
        solarize: float | None = None,
        solarize_p: float | None = None,
        ops: Iterable[Operation] = (),
        erasing: float = 0,
        **view: Unpack[ViewOptions],
    ) -> None:
        make = globals()["ops"]
        _check_pairs(
            color_jitter=(color_jitter, {"color_jitter_p": color_jitter_p}),
            gaussian_blur=(
                gaussian_blur,
                {"gaussian_blur_sigma": gaussian_blur_sigma, "gaussian_blur_p": gaussian_blur_p},
            ),
            solarize=(solarize, {"solarize_p": solarize_p}),
        )
        _check_probabilities(
            grayscale=grayscale,
            equalize=equalize,
            auto_contrast=auto_contrast,
            invert=invert,
            erasing=erasing,
        )
        given = taken("Augment()", view, ViewOptions)
        for name in ("mean", "std"):
            given[name] = _number_or_numbers(name, given[name])
        #: What the Loader's options of the same names become.
        self.geometry: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        all_of: list[Operation] = []
        if policy is not None:
            all_of.append(_of_policy(policy))
        if color_jitter is not None:
            all_of.append(_jitter(color_jitter, _or(color_jitter_p, 1)))
        vertical = (0.5 if vertical_flip else 0) if isinstance(vertical_flip, bool) else vertical_flip
        for name, p in (
            ("grayscale", grayscale),
            ("equalize", equalize),
            ("auto_contrast", auto_contrast),
            ("invert", invert),
            ("vertical_flip", vertical),
        ):
            if p != 0:
                all_of.append(getattr(make, name)(p=p))
        if gaussian_blur is not None:
            all_of.append(
                make.gaussian_blur(
                    gaussian_blur, _or(gaussian_blur_sigma, (0.1, 2.0)), p=_or(gaussian_blur_p, 1)
                )
            )
        if solarize is not None:
            all_of.append(_solarize(solarize, _or(solarize_p, 1)))
        if isinstance(ops, Operation) or not isinstance(ops, Iterable):
            raise InvalidArgumentError(f"ops is {ops!r}; expected a list of operations")
        all_of.extend(ops)
        if erasing != 0:
            all_of.append(make.erasing(p=erasing))
        for number, one in enumerate(all_of):
            if not isinstance(one, Operation):
                raise InvalidArgumentError(
                    f"operation {number} is {one!r}; expected what a function of shardloader.ops returns"
                )
        #: The operations, in their order.
        self.operations: tuple[Operation, ...] = tuple(all_of)

    @classmethod
    def rand_augment(
        cls,
        count: int = 2,
        magnitude: int = 9,
        *,
        bins: int = 31,
        interpolation: str = "nearest",
        fill: Fill = None,
        **more: Any,
    ) -> Augment:
        """RandAugment of `count` operations with this magnitude of `bins`;
        further keywords are those of Augment."""
        return cls(
            ops=[
                ops.rand_augment(count, magnitude, bins=bins, interpolation=interpolation, fill=fill),
                *more.pop("ops", ()),
            ],
            **more,
        )

    @classmethod
    def trivial_augment(
        cls, *, bins: int = 31, interpolation: str = "nearest", fill: Fill = None, **more: Any
    ) -> Augment:
        """TrivialAugmentWide; further keywords are those of Augment."""
        return cls(
            ops=[
                ops.trivial_augment(bins=bins, interpolation=interpolation, fill=fill),
                *more.pop("ops", ()),
            ],
            **more,
        )

    @classmethod
    def auto_augment(
        cls, policy: str = "imagenet", *, interpolation: str = "nearest", fill: Fill = None, **more: Any
    ) -> Augment:
        """AutoAugment; further keywords are those of Augment."""
        return cls(
            ops=[ops.auto_augment(policy, interpolation=interpolation, fill=fill), *more.pop("ops", ())],
            **more,
        )

    @classmethod
    def aug_mix(
        cls, severity: int = 3, width: int = 3, depth: int = 0, alpha: float = 1, **more: Any
    ) -> Augment:
        """AugMix; further keywords are those of Augment."""
        return cls(ops=[ops.aug_mix(severity, width, depth, alpha), *more.pop("ops", ())], **more)

    @classmethod
    def three_augment(cls, **more: Any) -> Augment:
        """3-Augment with its color_jitter(0.3, 0.3, 0.3); further keywords are those of Augment."""
        return cls(ops=[ops.three_augment(), ops.color_jitter(0.3, 0.3, 0.3), *more.pop("ops", ())], **more)

    @classmethod
    def from_torchvision(cls, compose: Any, *, size: Size | None = None) -> Augment:
        """The Augment of a torchvision.transforms.v2.Compose (or of one transform): crop, flip,
        operations, dtype and normalisation.

        size: of the stored samples, a side or (rows, columns). With it, RandomCrop with padding (of this
        size) and Resize (to this size, so that nothing is left to do) are taken too.

        Crop and flip come first here, whatever their place was; a flip commutes with the other operations, in
        distribution. A crop after an operation, and transforms that have no counterpart, are an
        InvalidArgumentError that names them. Operations have the definitions of torchvision on uint8 tensors;
        those on floats and on Pillow's images do not round, or round in another way."""
        from ._from_torchvision import arguments_of

        return cls(
            **arguments_of(
                compose,
                None if size is None else (size, size) if isinstance(size, int) else (size[0], size[1]),
            )
        )

    def __repr__(self) -> str:
        parts = [f"{name}={value!r}" for name, value in self.geometry.items()]
        return f"Augment({', '.join(parts + [one.name for one in self.operations])})"

    def _core(self) -> list[tuple[str, dict[str, Any]]]:
        return [(one.name, dict(one.parameters)) for one in self.operations]

    def draw(
        self, shape: tuple[int, int, int], sample: int, *, seed: int = 0, epoch: int = 0, view: int = 0
    ) -> list[Instruction]:
        """The program of one sample: what the operations will do, with all drawn parameters.
        shape: (rows, columns, channels) after the crop."""
        rows, columns, channels = (operator.index(side) for side in shape)
        return [
            Instruction(*one)
            for one in _core.draw_program(
                self._core(), (rows, columns, channels), *_key(seed, epoch, sample, view)
            )
        ]

    def apply(
        self, image: Any, sample: int = 0, *, seed: int = 0, epoch: int = 0, view: int = 0
    ) -> np.ndarray[Any, Any]:
        """The operations (not crop and flip) on a uint8 image [rows, columns, channels], on the host:
        what a Loader gives for this sample."""
        pixels = np.ascontiguousarray(image)
        if pixels.dtype != np.uint8 or pixels.ndim != 3:
            raise InvalidArgumentError(
                f"the image is {pixels.dtype} {list(pixels.shape)}; expected uint8 [rows, columns, channels]"
            )
        done = _core.apply_operations(
            self._core(), pixels.tobytes(), pixels.shape, *_key(seed, epoch, sample, view)
        )
        return np.frombuffer(done, np.uint8).reshape(pixels.shape).copy()


with_signature(Augment.__init__, ViewOptions)
