"""Messages of the C++ library in the words of Python: options by the names that they have here."""

from __future__ import annotations

import re

from .._errors import ShardError
from .arrays import DTYPES

# Options of the C++ library that are called otherwise here, or take a value here.
_OPTIONS = {
    "overwrite": "overwrite=True",
    "refresh": "refresh=True",
    "append": "append=True",
    "claim": "claim=True",
    "resume": "resume=True",
    "fast_decode": "fast_decode=True",
}


def _told(error: ShardError, message: str) -> ShardError:
    return type(error)(message).with_traceback(error.__traceback__)


def in_python(text: str) -> str:
    """Names of options between backticks become those of this package.
    What stands in double quotes stays as it is."""
    parts = re.split(r'("[^"]*")', text)
    return "".join(
        part
        if part.startswith('"')
        else re.sub(r"`([a-z_]+)`", lambda found: _OPTIONS.get(found[1], found[1]), part)
        for part in parts
    )


def of_convert(error: ShardError) -> ShardError:
    return _told(error, in_python(str(error)))


def of_cache(error: ShardError) -> ShardError:
    """Of the folder that is `out` there, and in which a Source replaces nothing."""
    message = in_python(str(error)).replace(", or overwrite=True to replace the data set there", "")
    message = re.sub(r"use refresh=True to [^\"]*, or another folder", "use another folder", message)
    return _told(error, re.sub(r'^out (?=")', "cache ", message))


def of_loader(error: ShardError, crop: str | None) -> ShardError:
    """crop_height is center_crop (whichever was given), f16 is float16,
    ... For messages that hold no path."""
    crop = crop or "crop"
    message = str(error)
    for pattern, ours in (
        (r"\bcrop_height is (\d+) and crop_width (\d+)", rf"{crop} is (\1, \2)"),
        (r"\bcrop_height or crop_width\b", crop),
        (r" \(crop_height x crop_width\)", f" ({crop})"),
        (r"\bcrop_(height|width)\b", crop),
        (r"\brandom_resized\b", "random_resized_crop"),
        (r"\boption ragged names\b", "max_rows or flat names"),
        (
            r"\bneed order shuffle and partition global\b",
            'need shuffle=True without window_shards, and partition="global"',
        ),
        (r"\bnormalization has\b", "the normalisation has"),
        (r"\bnormalization applies\b", "mean and std apply"),
        (r"\bleave normalization out\b", "leave mean and std out"),
        (r"\btail pad(?: or wrap|, wrap or short)\b", 'tail="short" (drop_last=False), "pad" or "wrap"'),
        (r"\bdtype u8 or codec packed\b", 'dtype="uint8" or codec="packed"'),
    ):
        message = re.sub(pattern, ours, message)
    message = re.sub(
        r"(?<![\w\"'/.])(u8|u16|f16|bf16|f32)(?![\w\"'/])", lambda found: DTYPES[found[1]], message
    )
    return _told(error, message)


def of_ring(error: ShardError, threads: int = 1) -> ShardError:
    """A batch is released by letting go of its arrays. threads: that have asked for batches of this epoch."""
    message = str(error).replace(
        "release some", "let go of their arrays (keep copies: images.clone() or images.copy())"
    )
    if threads > 1:
        message += (
            f"; {threads} threads share this loader, and each keeps its batch while it asks for the "
            f"next one: prefetch must be at least {threads}"
        )
    return _told(error, message)
