"""A generated data set of eight patterns, such as stripes and rings,
of any two colours, angle, place and scale.

Crops, flips and changed colours leave the class as it is: a set that networks can learn without
labels. Needs numpy.
"""

import numpy as np

import shardloader as sl


def smooth(random, side, cells):
    """Noise of so many cells, linearly between them."""
    at = (np.arange(side) + 0.5) / side * cells
    nodes, first = random.normal(size=(cells + 1, cells + 1)), at.astype(int)
    part = at - first
    rows = nodes[first] * (1 - part)[:, None] + nodes[first + 1] * part[:, None]
    return rows[:, first] * (1 - part) + rows[:, first + 1] * part


# The share of the second colour, from 0 to 1. u, v: coordinates whose unit is the period of the pattern.
PATTERNS = {
    "stripes": lambda random, u, v: np.sin(2 * np.pi * u) > 0,
    "checks": lambda random, u, v: np.sin(2 * np.pi * u) * np.sin(2 * np.pi * v) > 0,
    "dots": lambda random, u, v: np.hypot(u % 1 - 0.5, v % 1 - 0.5) < 0.28,
    "grid": lambda random, u, v: np.minimum(u % 1, v % 1) < 0.22,
    "rings": lambda random, u, v: np.sin(2 * np.pi * np.hypot(u, v)) > 0,
    "waves": lambda random, u, v: np.sin(2 * np.pi * (u + 0.4 * np.sin(2 * np.pi * v))) > 0,
    "clouds": lambda random, u, v: smooth(random, len(u), 4) / 3 + 0.5,
    "grain": lambda random, u, v: random.random(u.shape) < 0.3,
}


def picture(label, side, random):
    """uint8 [side, side, 3]."""
    row, column = np.mgrid[:side, :side]
    angle, period = random.uniform(0, 2 * np.pi), side * random.uniform(0.18, 0.26)
    x, y = column - random.uniform(0, side), row - random.uniform(0, side)
    u, v = (np.cos(angle) * x + np.sin(angle) * y) / period, (np.cos(angle) * y - np.sin(angle) * x) / period
    share = np.clip(list(PATTERNS.values())[label](random, u, v), 0, 1)[..., None]
    dark, light = (
        random.uniform(0, 110, 1) + random.normal(0, 20, 3),
        random.uniform(140, 255, 1) + random.normal(0, 20, 3),
    )
    first, second = (dark, light) if random.random() < 0.5 else (light, dark)
    return np.clip(
        first * (1 - share) + second * share + random.normal(0, 10, (side, side, 3)), 0, 255
    ).astype(np.uint8)


def make(out, count, side, seed=0):
    """Writes the data set into the folder `out`."""
    random = np.random.default_rng(seed)
    with sl.Writer(out, preset="train", resize=side, crop=side, classes=list(PATTERNS)) as writer:
        for i in range(count):
            writer.add(f"{i:06}", picture(i % len(PATTERNS), side, random), i % len(PATTERNS))
    return sl.Dataset(out)
