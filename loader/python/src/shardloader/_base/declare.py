"""Options that are declared once, as the keys of a TypedDict: name: Annotated[type, takes] or
Annotated[type, takes, default]. takes(name, value) checks a value and gives what is passed on."""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, get_args, get_type_hints


class Option(NamedTuple):
    type: Any
    takes: Callable[[str, Any], Any]
    default: Any


def as_it_is(name: str, value: Any) -> Any:
    """For what is checked where it is used."""
    return value


@functools.cache
def declared(options: type) -> dict[str, Option]:
    hints = get_type_hints(options, include_extras=True)
    return {
        name: Option(*get_args(hint), *((None,) * (3 - len(get_args(hint))))) for name, hint in hints.items()
    }


def with_signature(function: Any, options: type) -> None:
    """help() and editors show the options as the keywords that they are."""
    signature = inspect.signature(function)
    known = [one for one in signature.parameters.values() if one.kind is not inspect.Parameter.VAR_KEYWORD]
    further = [
        inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=option.default, annotation=option.type
        )
        for name, option in declared(options).items()
    ]
    function.__signature__ = signature.replace(parameters=known + further)


_OF_A_VIEW = "shortest=, longest=, squash=, letterbox=, center_crop= or random_resized_crop= gives the size"

# Options that torch.utils.data, torchvision and other converters have, and what stands for them here.
_INSTEAD = {
    "Loader()": {
        "num_workers": "threads= counts threads; there are no worker processes",
        "pin_memory": "leave it out: batches are copied through pinned memory anyway",
        "persistent_workers": "leave it out: there are no worker processes",
        "worker_init_fn": "leave it out: there are no worker processes; seed= makes runs repeatable",
        "generator": "seed= makes runs repeatable",
        "prefetch_factor": "prefetch= counts batches",
        "collate_fn": "leave it out: batches are arrays; column(name) has what else a sample has",
        "transform": "augment=Augment.from_torchvision(compose) takes the operations of torchvision",
        "sampler": "sampling= says what is drawn",
        "batch_sampler": "sampling= says what is drawn",
        "num_replicas": "world_size= and rank= divide the samples",
        "workers": "threads= counts threads; there are no worker processes",
        "batch": "batch_size= is the samples of a batch",
        "path": "the data set is the first argument",
        "transforms": "augment=Augment.from_torchvision(compose) takes the operations of torchvision",
        "crop": "center_crop=, random_crop= or random_resized_crop= gives the size",
        "size": _OF_A_VIEW,
        "image_size": _OF_A_VIEW,
        "resize": _OF_A_VIEW,
        "interpolation": "filter= names it",
        "normalize": "mean= and std= normalise",
        "horizontal_flip": "flip= is its probability",
        "color_jitter": "augment=Augment(...) has the operations",
        "channels_last": 'layout="nhwc" is that',
        "precision": "dtype= names the type of the images",
        "weights": "sampling=Sampling(weights) draws by weights",
        **{
            name: f"sl.Source(path, {name}=...) takes it for images that are not converted"
            for name in "preset codec quality classes labels columns channels depth jobs pages".split()
        },
    },
    "convert()": {
        "workers": "jobs= counts threads",
        "num_workers": "jobs= counts threads",
        "image_size": "resize= and crop= give the size, or squash=",
        "threads": "jobs= counts threads",
        "interpolation": "filter= names it",
        "format": "codec= says how samples are stored",
        "force": "overwrite= replaces a data set",
        "shard_size": "shard_bytes= or samples_per_shard= says how large shards are",
        "recursive": "leave it out: folders are walked to their ends",
        "transform": "convert first; augment= of the Loader changes images while training",
    },
}


def taken(who: str, given: Mapping[str, Any], options: type, named: Sequence[str] = ()) -> dict[str, Any]:
    """What is passed on, by name: of each option, also of one that is not given. None stays None. who: named
    where an option is not known. named: its further parameters."""
    known = declared(options)
    for name in given:
        if name not in known:
            every = (*named, *known)
            close = difflib.get_close_matches(name, every, 1, 0.7)
            instead = f"did you mean {close[0]}?" if close else "there is no such option"
            raise TypeError(
                f"{who} got an unexpected keyword argument {name!r}: "
                f"{_INSTEAD.get(who, {}).get(name, instead)}; expected {', '.join(every)}"
            )
    passed = {}
    for name, option in known.items():
        value = given.get(name, option.default)
        passed[name] = None if value is None else option.takes(name, value)
    return passed
