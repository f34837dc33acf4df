"""What doctor() found out about a loader, in numbers and in words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

_PAYS = 0.05  # a share of waiting below it is not worth a change
# Quantiles of Student's t for 97.5 %, by degrees of freedom from 1 on.
_STUDENT = (12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.20, 2.18, 2.16, 2.14, 2.13)


def half_width(values: Sequence[float]) -> float:
    """Of the 95 % confidence interval of their mean. Infinite for a single value."""
    count = len(values)
    if count < 2:
        return math.inf
    mean = sum(values) / count
    variance = sum((value - mean) ** 2 for value in values) / (count - 1)
    return (_STUDENT[count - 2] if count - 2 < len(_STUDENT) else 2.0) * math.sqrt(variance / count)


def _gain(waiting: float) -> float:
    return 1 / (1 - min(max(waiting, 0.0), 0.999))


class Diagnosis(NamedTuple):
    """What doctor() found out. str() of it is the text that it prints."""

    loader: str
    """Which loader: its class and what it reads."""
    waiting: float
    """The share of the loop's time that it waits for data, 0 to 1."""
    uncertainty: float
    """Half the width of the 95 % confidence interval of `waiting`, from the spread of the stretches."""
    step_seconds: float
    """Seconds of a step whose batch is at hand."""
    loop_seconds: float
    """Seconds of a step together with getting its batch from the loader."""
    cores: float
    """CPU cores that data loading uses while the loop runs, in this process and its children."""
    first_batch_seconds: float
    """Seconds from the start of an iteration to its first batch."""
    stretches: int
    """How many stretches with the loader were measured."""
    batches: int
    """How many batches of the loader were measured."""
    own: bool
    """The loader is shardloader.Loader."""

    @property
    def gain(self) -> float:
        """How many times as fast the loop can get at most, with a loader that never lets it wait:
        1 / (1 - waiting), and 1,000 at most."""
        return _gain(self.waiting)

    @property
    def gain_range(self) -> tuple[float, float]:
        """The gain at both ends of the confidence interval."""
        return _gain(self.waiting - self.uncertainty), _gain(self.waiting + self.uncertainty)

    @property
    def verdict(self) -> str:
        """One of three words. "stay": waiting is less than 5 % of the time, so another loader does not pay.
        "switch": it is more, also at the lower end of the interval. "unclear": the interval is too wide."""
        if self.waiting < _PAYS:
            return "stay" if self.uncertainty < 2 * _PAYS else "unclear"
        return "switch" if self.waiting - self.uncertainty >= _PAYS else "unclear"

    @property
    def advice(self) -> str:
        """What to do, in one sentence or two."""
        if self.verdict == "unclear":
            return (
                "unclear: measure for longer (seconds=, --seconds), or end the other programs of this machine"
            )
        if self.verdict == "stay":
            free = (
                f" It takes {self.cores:.1f} cores: if something else needs them, a converted data set frees "
                "most of them."
                if self.cores >= 1 and not self.own
                else ""
            )
            return "stay with this loader: the loop hardly waits for it." + free
        if self.own:
            return (
                "this is shardloader already, so look at Loader.stats(), which says who waits for whom; more "
                "threads, a larger prefetch or a data set that fits into memory may help"
            )
        return (
            "switch: sl.convert(images, out) once, then sl.Loader(out) in place of this loader; the gain is "
            "less if the loop then waits for something else"
        )

    def __str__(self) -> str:
        low, high = self.gain_range
        spread = f"± {self.uncertainty:.1%}" if math.isfinite(self.uncertainty) else "uncertainty not known"
        lines = {
            "loader": self.loader,
            "waiting for data": f"{self.waiting:.1%} of the time ({spread}; {self.batches} batches in "
            f"{self.stretches} stretches)",
            "a step": f"{self.step_seconds * 1000:.4g} ms with the batch at hand, "
            f"{self.loop_seconds * 1000:.4g} ms with the loader",
            "data loading uses": f"{self.cores:.2f} CPU cores, in this process and its children",
            "first batch": f"{self.first_batch_seconds:.3g} s after the start of an iteration",
            "gain of switching": f"at most {self.gain:.2f} times as fast ({low:.2f} to {high:.2f})",
            "advice": self.advice,
        }
        if self.own:
            del lines["gain of switching"]
        return "\n".join(f"{name + ':':<19}{value}" for name, value in lines.items())
