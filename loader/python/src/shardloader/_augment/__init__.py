"""Augmentation: operations on the pixels of each sample, drawn from (seed, epoch,
sample, view, operation)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import _core
from .._base import check
from .._base.declare import taken, with_signature
from .._base.numpy import np
from .._errors import InvalidArgumentError
from .._operations import Fill, Operation, Span, ops
from .view_options import Size, ViewOptions

if TYPE_CHECKING:
    from typing_extensions import Unpack


class Instruction(NamedTuple):
    """One step of a drawn program, with all parameters (docs/augment.md)."""

    opcode: str
    whole: tuple[int, ...]
    real: tuple[float, ...]


def _or(value: Any, otherwise: Any) -> Any:
    return otherwise if value is None else value


def _number_or_numbers(name: str, value: Any) -> Any:
    return value if value is None or isinstance(value, (int, float)) else check.numbers(name, value)


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
    return (
        check.whole("seed", seed, 0, 2**64 - 1),
        check.whole("epoch", epoch, 0, 2**64 - 1),
        check.whole("sample", sample, 0, 2**64 - 1),
        check.whole("view", view, 0, 2**32 - 1),
    )


def _shape(shape: Any) -> tuple[int, int, int]:
    try:
        rows, columns, channels = shape
    except (TypeError, ValueError):
        check.refuse("shape", shape, "(rows, columns, channels)")
    return (
        check.whole("shape's number of rows", rows, 1, 65_535),
        check.whole("shape's number of columns", columns, 1, 65_535),
        check.whole("shape's number of channels", channels, 1, 65_535),
    )


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
        check.refuse("color_jitter", spans, "one to four: brightness, contrast, saturation, hue")
    return ops.color_jitter(*spans, p=p)


def _solarize(threshold: float, p: float) -> Operation:
    if not isinstance(threshold, (int, float)) or isinstance(threshold, bool) or 0 < threshold < 1:
        check.refuse(
            "solarize",
            threshold,
            "a threshold of bytes, 1 to 255 (or 0, which inverts all); "
            "for a probability give 128 and solarize_p",
        )
    return ops.solarize(threshold, p=p)


class Augment:
    """What is done with each sample: crop and flip, then operations on its pixels, in this order.

        sl.Augment(random_resized_crop=224, flip=0.5, color_jitter=(0.4, 0.4, 0.4, 0.1), grayscale=0.2)
        sl.Augment.rand_augment(2, 9)
        sl.Augment(ops=[sl.ops.posterize(4, p=0.5), sl.ops.affine(10, scale=(0.9, 1.1))])

    center_crop, random_crop, random_resized_crop, scale, ratio, shortest, longest, squash, letterbox,
        cover, padded, patch, max_tokens, filter, fill, flip, dtype, layout, mean, std: as for Loader; not
        given: what the Loader says. mean and std may be one number for all channels.
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
        from .from_torchvision import arguments_of

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
        drawn = _core.draw_program(self._core(), _shape(shape), *_key(seed, epoch, sample, view))
        return [Instruction(*one) for one in drawn]

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
