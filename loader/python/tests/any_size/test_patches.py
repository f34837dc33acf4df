"""Samples of any size as patches, for NaFlex and NaViT."""

import math
from fractions import Fraction

import numpy as np
import pytest

import shardloader as sl
from any_size import CODECS, SIZES, options_of, resized
from conftest import MEAN, STD


def grid_of(height, width, most):
    """Rows and columns of patches at the largest scale s (in patches per pixel) at which ceil(height * s) *
    ceil(width * s) <= most. Either is a whole number there."""
    scales = {Fraction(k, side) for k in range(1, most + 1) for side in (height, width)}
    grids = ((math.ceil(height * scale), math.ceil(width * scale), scale) for scale in scales)
    return max((grid for grid in grids if grid[0] * grid[1] <= most), key=lambda grid: grid[2])[:2]


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize(
    "options",
    [
        {"patch": 8, "max_tokens": 25},
        {"patch": 5, "max_tokens": 1},
        {"patch": 16, "max_tokens": 12, "filter": "bicubic", "flip": 1.0},
        {"patch": 7, "max_tokens": 30, "dtype": "float32", "mean": MEAN, "std": STD},
        {"patch": 7, "max_tokens": 30, "dtype": "float16", "layout": "nhwc", "mean": MEAN, "std": STD},
    ],
    ids=str,
)
def test_samples_are_delivered_as_patches(options, codec, sets, pictures):
    side, seen = options["patch"], []
    loader = sl.Loader(sets[codec], **options_of(options))
    assert loader.shape == (side * side * 3,)
    for batch in loader.epoch(0):
        offsets, coords, owners = (batch.column(f"patch_{name}") for name in ("offsets", "coords", "samples"))
        assert offsets.dtype == coords.dtype == owners.dtype == np.int32
        assert len(batch.images) == len(coords) == len(owners) == offsets[-1]
        assert offsets[0] == 0 and len(offsets) == len(batch.ids) + 1
        for row, sample in enumerate(batch.ids.tolist()):
            whole, of = pictures[sample], slice(offsets[row], offsets[row + 1])
            rows, columns = grid_of(whole.height, whole.width, options["max_tokens"])
            assert (owners[of] == row).all()
            assert coords[of].tolist() == [[y, x] for y in range(rows) for x in range(columns)], whole.size
            filter = options.get("filter", "bilinear")
            pixels = np.asarray(resized(whole, rows * side, columns * side, filter))
            if options.get("flip"):
                pixels = pixels[:, ::-1]
            if "mean" in options:
                pixels = ((pixels.astype(np.float32) / 255 - MEAN) / STD).astype(options["dtype"])
            patches = pixels.reshape(rows, side, columns, side, 3).swapaxes(1, 2)
            np.testing.assert_array_equal(batch.images[of], patches.reshape(rows * columns, -1))
        seen += batch.ids.tolist()
    assert sorted(seen) == list(range(len(SIZES)))
