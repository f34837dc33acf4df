"""What an installed wheel delivers from data sets, one digest for each way to load: the same everywhere.

    python batches.py DATA ...

DATA: data sets with codecs that the host decodes. Prints NAME DIGEST for each way and data set.
"""

import hashlib
import sys
from pathlib import Path

import numpy as np

import shardloader as sl

EPOCHS = 2


def ways_for_any_size():
    return {
        "bicubic": {"random_resized_crop": 96, "filter": "bicubic", "dtype": "float32"},
        "lanczos": {"squash": 90, "filter": "lanczos"},
        "box": {"cover": 64, "filter": "box", "dtype": "float16"},
        "letterbox": {"letterbox": 100},
    }


def ways_for_one_size():
    crop = {"random_resized_crop": 160, "flip": 0.5}
    geometry = (
        sl.ops.affine(20, scale=(0.8, 1.2), interpolation="bilinear"),
        sl.ops.perspective(0.5, interpolation="bilinear"),
        sl.ops.rotation(30),
    )
    colours = (
        sl.ops.color_jitter((0.6, 1.4), (0.6, 1.4), (0.6, 1.4), (-0.1, 0.1)),
        sl.ops.gaussian_blur(9),
        sl.ops.equalize(p=0.5),
        sl.ops.auto_contrast(p=0.5),
    )
    return {
        "stored": {},
        "float16": {"dtype": "float16", **crop},
        "float32": {"dtype": "float32", **crop},
        "bfloat16": {"dtype": "bfloat16", **crop},
        "geometry": {"augment": sl.Augment(ops=geometry, **crop)},
        "colours": {"augment": sl.Augment(ops=colours, **crop)},
        "rand_augment": {
            "augment": sl.Augment.rand_augment(2, 9, interpolation="bilinear", erasing=0.5, **crop)
        },
        "auto_augment": {"augment": sl.Augment.auto_augment(**crop)},
        "aug_mix": {"augment": sl.Augment.aug_mix(**crop)},
        "mixed": {"mixup": 0.2, "cutmix": 1.0, "dtype": "float32", **crop},
    }


def digest(data, options):
    found = hashlib.sha256()
    loader = sl.Loader(data, batch_size=8, device="cpu", seed=7, **options)
    for epoch in range(EPOCHS):
        for batch in loader.epoch(epoch):
            found.update(np.asarray(batch.images).tobytes())
            found.update(np.asarray(batch.labels).tobytes())
    return found.hexdigest()


if __name__ == "__main__":
    for data in map(Path, sys.argv[1:]):
        ways = ways_for_any_size() if 0 in sl.Dataset(data).shape else ways_for_one_size()
        for name, options in ways.items():
            print(f"{data.name} {name} {digest(data, options)}", flush=True)
