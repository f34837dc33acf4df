"""What tests of samples of any size share: images, epochs, and what Pillow and torchvision make of them."""

import numpy as np
import pytest

import shardloader as sl

Image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
PIL = pytest.importorskip("PIL")

# Width and height, as in Pillow.
SIZES = [(1, 1), (300, 1), (1, 300), (700, 30), (30, 700), (640, 480), (480, 640), (37, 53), (2, 3), (64, 64)]
SIZES += [tuple(int(side) for side in np.random.default_rng(i).integers(5, 200, 2)) for i in range(26)]
CODECS = ("none", "zstd", "packed")
FILTERS = {"bilinear": Image.BILINEAR, "bicubic": Image.BICUBIC, "box": Image.BOX, "lanczos": Image.LANCZOS}
FILL = (9, 200, 77)


def picture(number, width, height, mode):
    """Waves and noise."""
    noise = np.random.default_rng(number).integers(0, 90, (height, width, 3))
    y, x = np.mgrid[:height, :width]
    waves = np.stack([x * 3 + number, y * 5, x + y], -1) % 160
    return Image.fromarray((waves + noise).astype(np.uint8)).convert(mode)


def options_of(options):
    return {"framework": "numpy", "batch_size": 5, "seed": 3, "threads": 2, "drop_last": False, **options}


def samples(data, epoch=0, **options):
    """(sample, image, batch, row) of an epoch, which has every sample once, and whose sizes are right."""
    data = data if isinstance(data, sl.Dataset) else sl.Dataset(data)
    ids = []
    for batch in sl.Loader(data, **options_of(options)).epoch(epoch):
        assert batch.sizes.dtype == np.int64
        for row, sample in enumerate(batch.ids.tolist()):
            assert tuple(batch.sizes[row]) == data[sample][0].shape[:2]
            ids.append(sample)
            yield sample, batch.images[row], batch, row
    assert sorted(ids) == list(range(len(data)))


def contents(data, epoch=0, batches=None, **options):
    """All that the batches of an epoch have, as bytes."""
    found = []
    for batch in batches or sl.Loader(data, **options_of(options)).epoch(epoch):
        parts = [batch.images, batch.labels, batch.ids, batch.sizes]
        found.append((batch.images.shape, *(np.array(part).tobytes() for part in parts)))
    return found


def resized(image, height, width, filter="bilinear"):
    """Image.resize. From Pillow 12 on it may resize rows before columns, which rounds otherwise: there, both
    are asked for one after the other."""
    if int(PIL.__version__.split(".")[0]) >= 12:
        image = image.resize((width, image.height), FILTERS[filter])
    return image.resize((width, height), FILTERS[filter])


def placed(image, height, width, top, left, fill=0):
    """A view of height x width, in which the image begins at row `top` and column `left`."""
    canvas = Image.new(image.mode, (width, height), fill)
    canvas.paste(image, (left, top))
    return canvas


def begin(side, view):
    """Where torchvision's CenterCrop puts an image: it pads what is too small."""
    return (view - side) // 2 if view > side else -round((side - view) / 2)


def center(image, height, width, fill=0):
    return placed(image, height, width, begin(image.height, height), begin(image.width, width), fill)


def size_of(kind, height, width, to):
    """Rows and columns that a resize makes of height x width; shortest as torchvision's Resize."""
    if kind in ("shortest", "longest"):
        side = (min if kind == "shortest" else max)(height, width)
        return tuple(to if one == side else max(1, int(to * one / side)) for one in (height, width))
    if kind == "squash":
        return to
    ratios = to[0] / height, to[1] / width
    if kind == "letterbox":
        return tuple(max(1, round(side * min(ratios))) for side in (height, width))
    return tuple(max(most, round(side * max(ratios))) for side, most in zip((height, width), to))


def shape(kind, image, to, filter="bilinear"):
    return resized(image, *size_of(kind, image.height, image.width, to), filter)


def letterbox(image, to, filter="bilinear", fill=0):
    inner = shape("letterbox", image, to, filter)
    return placed(inner, *to, (to[0] - inner.height) // 2, (to[1] - inner.width) // 2, fill)


def cover(image, to, filter="bilinear"):
    return center(shape("cover", image, to, filter), *to)


def boxes_of(number, width, height):
    """Some boxes of an image, one of them all of it."""
    draw = np.random.default_rng(1000 + number)
    corners = np.sort(draw.uniform(0, 1, (1 + number % 4, 2, 2)), 1) * (width, height)
    return np.concatenate([corners.reshape(-1, 4), [[0, 0, width, height]]]).astype(np.float32)
