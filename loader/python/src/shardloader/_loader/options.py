"""From the arguments of a Loader to the options of the C++ loader."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from .. import _core
from .._augment import Augment
from .._augment.view_options import Size, ViewOptions
from .._base import check
from .._base.arrays import Framework, Torch, dtype_name
from .._base.declare import as_it_is
from .._base.numpy import np
from .._convert.options import Path
from .._dataset import Dataset, Mix
from .._errors import InvalidArgumentError
from .._groups import MemoryOptions, RemoteOptions, Sampling, members_of


def _rows(name: str, value: Any) -> Any:
    return dict(value) if isinstance(value, Mapping) else value


def _from_one(name: str, value: Any) -> int:
    return check.whole(name, value, 1)


def _buckets(name: str, value: Any) -> list[tuple[int, int]]:
    value = value.tolist() if hasattr(value, "tolist") else value
    if not isinstance(value, (list, tuple)) or not value:
        check.refuse(name, value, "a list of (height, width), or shardloader.buckets(...)")
    return [check.size(f"{name}[{number}]", one) for number, one in enumerate(value)]


def _number(name: str, value: Any) -> float:
    if not isinstance(value, (bool, str)) and hasattr(value, "__float__"):
        try:
            return float(value)
        except (TypeError, ValueError):  # an array of several
            pass
    return check.refuse(name, value, "a number")


class LoaderOptions(ViewOptions, total=False):
    """Options of a Loader that need nothing else of it. The C++ library checks those that are as they are."""

    seed: Annotated[int, as_it_is, 0]
    partition: Annotated[str, as_it_is, "global"]
    samples_per_epoch: Annotated[int | None, _from_one]
    repeats: Annotated[int, as_it_is, 1]
    buckets: Annotated[Sequence[tuple[int, int]] | None, _buckets]
    batch_pixels: Annotated[int | None, _from_one]
    bucket_crop: Annotated[str, as_it_is, "center"]
    length_window: Annotated[int | None, _from_one]
    mixup: Annotated[float | None, _number, 0]
    cutmix: Annotated[float | None, _number, 0]
    mix_probability: Annotated[float | None, _number]
    cutmix_probability: Annotated[float | None, _number]
    correspondence: Annotated[bool, check.flag, False]
    transport: Annotated[str, as_it_is, "auto"]
    prefetch: Annotated[int, as_it_is, 0]
    together: Annotated[int, as_it_is, 0]
    threads: Annotated[int, as_it_is, 0]
    verify: Annotated[str, as_it_is, "never"]
    on_error: Annotated[str, as_it_is, "raise"]
    rejects: Annotated[Path | None, check.path]
    memory: Annotated[MemoryOptions | None, members_of(MemoryOptions)]
    remote: Annotated[RemoteOptions | None, members_of(RemoteOptions)]
    max_rows: Annotated[Mapping[str, int] | None, _rows]
    flat: Annotated[Sequence[str], check.names, ()]


def _crop(choices: dict[str, Size | None]) -> dict[str, Any]:
    given = {name: size for name, size in choices.items() if size is not None}
    if len(given) > 1:
        values = " and ".join(f"{name} is {size}" for name, size in given.items())
        raise InvalidArgumentError(f"{values}; they exclude each other: give one of them")
    for name, size in given.items():
        height, width = check.size(name, size)
        return {
            "crop": name.removesuffix("_crop") if name != "center_crop" else "center",
            "crop_height": height,
            "crop_width": width,
        }
    return {"crop": "none"}


def _resize(choices: dict[str, Size | None]) -> dict[str, Any]:
    given = {name: size for name, size in choices.items() if size is not None}
    if len(given) > 1:
        values = " and ".join(f"{name} is {size}" for name, size in given.items())
        raise InvalidArgumentError(f"{values}; they exclude each other: give one of them")
    for name, size in given.items():
        height, width = check.size(name, size)
        return {"resize": name, "resize_height": height, "resize_width": width}
    return {"resize": "none"}


def mean_and_std(data: Dataset, mean: Any, std: Any) -> tuple[Any, Any]:
    """The one that is not given: as recorded, if they are as many.
    Both None: the library takes those of the data set."""

    def other(recorded: tuple[float, ...], given: Any, default: float) -> tuple[float, ...]:
        return recorded if len(recorded) == len(given) else (default,) * len(given)

    if mean is None and std is None:
        return None, None
    mean, std = (
        value if value is None else check.numbers(name, value)
        for name, value in (("mean", mean), ("std", std))
    )
    mean = tuple(other(data.mean, std, 0.0) if mean is None else mean)
    return mean, tuple(other(data.std, mean, 1.0) if std is None else std)


def unnamed_layout(framework: Framework) -> str:
    """The layout of views that name none: it is the framework's,
    and not that of a state which another one has written."""
    return "nchw" if isinstance(framework, Torch) else "nchw_if_float"


def _each(value: Any, data: Dataset) -> Any:
    """A number for each channel, of one for all."""
    return (value,) * len(data.mean) if isinstance(value, (int, float)) else value


_CROPS = ("center_crop", "random_crop", "random_resized_crop")
_RESIZES = ("shortest", "longest", "squash", "letterbox", "cover")
# What an Augment says of these replaces all that the Loader says of them.
_PLACES = (*_CROPS, *_RESIZES, "padded", "patch")
# Further options of a Loader that an Augment can have too.
_SHARED = ("scale", "ratio", "filter", "fill", "flip", "dtype", "layout", "mean", "std")


def _plain(name: str, value: Any) -> Any:
    """A value that compares with others of this option."""
    return (
        dtype_name(value) if name == "dtype" else tuple(value) if isinstance(value, (list, tuple)) else value
    )


def check_given_once(own: dict[str, Any], augment: Augment | None, views: Sequence[Augment]) -> None:
    """What a Loader says and each of its views says otherwise would be dropped in silence.
    own: the options as they were given."""
    every = [
        one.geometry
        for one in (views if isinstance(views, (list, tuple)) and views else [augment])
        if isinstance(one, Augment)
    ]
    if not every:
        return
    of_all = "each of its views" if views else "its augment"
    for name in (name for name in _PLACES if own[name] is not None):
        if all(of.keys() & set(_PLACES) for of in every):
            raise InvalidArgumentError(
                f"{name} is given to the Loader, but {of_all} has a crop or resize of its own: give it once"
            )
    for name in _SHARED:
        if own[name] is not None and all(
            name in of and _plain(name, of[name]) != _plain(name, own[name]) for of in every
        ):
            raise InvalidArgumentError(
                f"{name} is {own[name]!r} for the Loader and {every[0][name]!r} for {of_all}: give it once"
            )
    resized = own["random_resized_crop"] is not None or any("random_resized_crop" in of for of in every)
    for name in ("scale", "ratio"):
        if own[name] is not None and not resized:
            raise InvalidArgumentError(
                f"{name} is {own[name]!r}, but it belongs to random_resized_crop, which is not given"
            )


def _view(own: dict[str, Any], augment: Augment | None, number: int) -> dict[str, Any]:
    """The options of one view: those of its Augment, and for what that does not say those of the Loader."""
    geometry = {} if augment is None else augment.geometry
    of = {**own, **geometry}
    if any(name in geometry for name in _PLACES):
        of.update({name: geometry.get(name) for name in _PLACES})
    of_itself = own if augment is None else geometry
    if of["random_resized_crop"] is None:
        for name in ("scale", "ratio"):
            if of_itself.get(name) is not None:
                raise InvalidArgumentError(
                    f"{name} is {of_itself[name]!r}, but it belongs to random_resized_crop, "
                    "which is not given"
                )
    if ("mean" in geometry) != ("std" in geometry):
        raise InvalidArgumentError("mean and std of an Augment go together")
    if of["layout"] not in (None, "nchw", "nhwc"):
        raise InvalidArgumentError(f'layout is {of["layout"]!r}; expected "nchw" or "nhwc"')
    flip, dtype = of["flip"], None if of["dtype"] is None else dtype_name(of["dtype"])
    return {
        "view": number,
        **_crop({name: of[name] for name in _CROPS}),
        **_resize({name: of[name] for name in _RESIZES}),
        "padded": of["padded"] or 0,
        "patch": of["patch"] or 0,
        "max_tokens": of["max_tokens"] or 0,
        "filter": "bilinear" if of["filter"] is None else of["filter"],
        "fill": [] if of["fill"] is None else list(of["fill"]),
        "scale": (0.08, 1.0) if of["scale"] is None else check.numbers("scale", of["scale"], 2),
        "ratio": (3 / 4, 4 / 3) if of["ratio"] is None else check.numbers("ratio", of["ratio"], 2),
        "flip": (0.5 if flip else 0.0) if flip is None or isinstance(flip, bool) else flip,
        "operations": None if augment is None else augment._core(),
        "dtype": dtype,
        "layout": of["layout"],
        "mean": _each(of["mean"], own["data"]),
        "std": _each(of["std"], own["data"]),
    }


def options_of_mix(passed: dict[str, Any]) -> dict[str, float] | None:
    """Takes what is about mixup and cutmix from the options. None: neither."""
    mixup, cutmix = passed.pop("mixup") or 0.0, passed.pop("cutmix") or 0.0
    further = {name: passed.pop(name) for name in ("mix_probability", "cutmix_probability")}
    if mixup == 0 and cutmix == 0:
        for name, value in further.items():
            if value is not None:
                raise InvalidArgumentError(
                    f"{name} is {value}, but neither mixup nor cutmix is given: give one of them, as "
                    "mixup=0.2 or cutmix=1.0"
                )
        return None
    given = {name: value for name, value in further.items() if value is not None}
    return {"mixup": mixup, "cutmix": cutmix, **given}


def options_of_views(
    own: dict[str, Any], augment: Augment | None, views: Sequence[Augment]
) -> dict[str, Any]:
    """The options of view 0, and further_views."""
    if not isinstance(views, (list, tuple)):
        check.refuse("views", views, "a list of Augments")
    if augment is not None and views:
        raise InvalidArgumentError("augment and views exclude each other: augment is for one view")
    chosen: list[Augment | None] = [*views] or [augment]
    every = []
    for number, one in enumerate(chosen):
        if one is not None and not isinstance(one, Augment):
            raise InvalidArgumentError(
                f"{f'view {number}' if views else 'augment'} is {one!r}; expected an Augment, such as "
                "Augment.rand_augment() or Augment.from_torchvision(compose)"
            )
        try:
            every.append(_view(own, one, number))
        except InvalidArgumentError as error:
            raise InvalidArgumentError(f"view {number}: {error}" if views else str(error)) from None
    return {**every[0], "further_views": every[1:]}


def _weights(weights: Any, samples: int) -> bytes:
    if hasattr(weights, "detach"):  # a torch tensor, also one on a GPU
        weights = weights.detach().cpu().numpy()
    check.unmasked("weights", weights)
    try:
        numbers = np.ascontiguousarray(weights, dtype=np.float64)
    except (TypeError, ValueError):
        check.refuse("weights", weights, "a number for each sample")
    if numbers.shape != (samples,):
        raise InvalidArgumentError(
            f"weights have the shape {numbers.shape}; expected ({samples},), one for each sample"
        )
    return numbers.tobytes()


def sampling_of(data: Dataset, mixed: Mix | None, sampling: str | Sampling | None) -> Any:
    """What the C++ loader takes: None for every sample once in an epoch."""
    if mixed is not None:
        if sampling is not None:
            raise InvalidArgumentError("a mix and sampling exclude each other: a mix says what is drawn")
        return mixed._sampling
    if sampling is None:
        return None
    if isinstance(sampling, Sampling):
        replacement = check.flag("replacement", sampling.replacement)
        if sampling.weights is None:
            return _core.sampling_uniform(len(data), replacement)
        return _core.sampling_weighted(_weights(sampling.weights, len(data)), replacement)
    if not isinstance(sampling, str) or sampling != "balanced":
        check.refuse("sampling", sampling, '"balanced" or Sampling(...)')
    return _core.sampling_balanced(data._core)


def tail_of(tail: str | None, drop_last: bool | None) -> str:
    if drop_last is None:
        return "drop" if tail is None else tail
    drop_last = check.flag("drop_last", drop_last)
    if tail is not None and (tail == "drop") != drop_last:
        raise InvalidArgumentError(f"tail is {tail!r} and drop_last is {drop_last}: name one of them")
    return tail if tail is not None else "drop" if drop_last else "short"
