"""Whether images that are not converted keep a loader's GPU waiting, and what would help."""

from __future__ import annotations

import math
from typing import Any

_PAYS = 0.1  # of an epoch's time


def starving_text(
    before: dict[str, Any], now: dict[str, Any], seconds: float, threads: int, cached: bool
) -> str:
    """What an epoch of `seconds` has lost by waiting for images. "": a tenth of it at most, or it waited for
    something else. before, now: stats() at its begin and at its end. cached: samples are stored meanwhile."""
    starved = now["starved_seconds"] - before["starved_seconds"]
    for_images = now["images_seconds"] - before["images_seconds"]
    decoded = now["decoded_images"] - before["decoded_images"]
    share = starved / seconds if seconds > 0 else 0.0
    if decoded == 0 or share <= _PAYS or for_images < starved / 2:
        return ""
    # Of a loop that took no time itself nothing can be said but that it waits.
    gain = min(1 / max(1 - share, 0.01), 100.0)
    cores = math.ceil(threads * gain)
    cure = (
        "from the next epoch on they come from the cache"
        if cached
        else "convert() them once, or name a cache= that is filled on the way"
    )
    return (
        f"the training loop waited for images {share:.0%} of the epoch: {threads} threads read and decode "
        f"{decoded / seconds:,.0f} images a second. About {cores} cores would keep up. A converted data set "
        f"makes an epoch up to {gain:.1f} times as fast: {cure}"
    )
