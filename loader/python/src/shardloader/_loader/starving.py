"""Whether images that are not converted keep a loader's GPU waiting, and what would help."""

from __future__ import annotations

import math
from typing import Any

# Shares of an epoch's time.
_PAYS = 0.1
_NO_WORK = 0.9


def starving_text(
    before: dict[str, Any], now: dict[str, Any], seconds: float, threads: int, cached: bool
) -> str:
    """What an epoch of `seconds` has lost by waiting for images. "": a tenth of it at most, or it waited for
    something else. before, now: stats() at its begin and at its end. cached: samples are stored meanwhile."""

    def grown(name: str) -> Any:
        return now[name] - before[name]

    decoded = grown("decoded_images")
    share = min(grown("starved_seconds") / seconds, 1.0) if seconds > 0 else 0.0
    if decoded == 0 or share <= _PAYS or grown("images_seconds") < grown("starved_seconds") / 2:
        return ""
    samples = grown("samples")
    said = (
        f"the training loop waited for images {share:.0%} of the epoch, in which it got "
        f"{samples / seconds:,.0f} a second: {threads} threads read files, and decoded {decoded:,} of "
        f"{samples:,} images. "
    )
    cure = (
        "From the next epoch on they come from the cache"
        if cached
        else "convert() them once, or name a cache= that is filled on the way"
    )
    if share > _NO_WORK:
        return f"{said}How many cores would keep up is not known of a loop that does next to nothing. {cure}"
    gain = 1 / (1 - share)
    return (
        f"{said}About {math.ceil(threads * gain)} cores would keep up. A converted data set makes an epoch "
        f"up to {gain:.1f} times as fast. {cure}"
    )
