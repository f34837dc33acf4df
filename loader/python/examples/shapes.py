"""Scenes whose answer is known: coloured shapes over clouds, with the class, the box and the depth of each.
For segmentation.py, detection.py and depth.py."""

import numpy as np

import shardloader as sl

CLASSES = ["background", "disc", "square", "triangle"]
NEAR, FAR = 2.0, 20.0  # metres
#: Depth is stored as u16: this is what 65535 stands for.
METRES = 25.0


def clouds(random, side):
    """Smooth noise that gets darker with the distance, and the floor's depth:
    far at the top, near at the bottom."""
    coarse = random.normal(0, 1, (side // 8 + 1, side // 8 + 1, 3)).repeat(8, 0).repeat(8, 1)[:side, :side]
    smooth = (coarse + np.roll(coarse, 4, 0) + np.roll(coarse, 4, 1) + np.roll(coarse, (4, 4), (0, 1))) / 4
    depth = np.linspace(FAR, FAR / 2, side)[:, None].repeat(side, 1)
    return 110 + 35 * smooth + random.normal(0, 6, (side, side, 3)), depth


def inside(kind, x, y, size):
    """Where a shape is, with its centre at 0."""
    if kind == 1:
        return x**2 + y**2 < size**2
    if kind == 2:
        return np.maximum(abs(x), abs(y)) < 0.9 * size
    return (y < 0.8 * size) & (y > 2 * abs(x) - size)


def scene(random, side):
    """Image uint8, mask uint8, depth uint16, boxes and their classes."""
    image, depth = clouds(random, side)
    mask = np.zeros((side, side), np.uint8)
    across, down = np.meshgrid(np.arange(side) + 0.5, np.arange(side) + 0.5)
    boxes, labels = [], []
    for distance in sorted(
        random.uniform(NEAR, FAR / 2, random.integers(1, 4)), reverse=True
    ):  # the nearest last
        kind, size = int(random.integers(1, 4)), side * (0.08 + 0.3 / distance)
        x, y = random.uniform(size, side - size, 2)
        there = inside(kind, across - x, down - y, size)
        colour = {1: (230, 60, 60), 2: (60, 210, 80), 3: (70, 90, 240)}[kind]
        image[there] = np.array(colour) * (1.15 - 0.6 * distance / FAR) + random.normal(
            0, 8, (int(there.sum()), 3)
        )  # far ones are darker
        mask[there], depth[there] = kind, distance
        boxes.append(
            (
                across[there].min() - 0.5,
                down[there].min() - 0.5,
                across[there].max() + 0.5,
                down[there].max() + 0.5,
            )
        )
        labels.append(kind)
    return (
        image.clip(0, 255).astype(np.uint8),
        mask,
        (depth / METRES * 65535).astype(np.uint16),
        np.array(boxes, np.float32),
        np.array(labels),
    )


def make(out, count, side, seed):
    """A data set of scenes; not made again if it is there."""
    try:
        return sl.Dataset(out)
    except sl.NotFoundError:
        pass
    columns = {
        "mask": sl.ImageField("uint8", side, side, 1, role="mask", codec="packed"),
        "depth": sl.ImageField("uint16", side, side, 1),
        "boxes": sl.Ragged("float32", 4),
        "box_labels": sl.Ragged("int64"),
    }
    random = np.random.default_rng(seed)
    with sl.Writer(
        out,
        columns=columns,
        squash=(side, side),
        dtype="uint8",
        layout="nhwc",
        mean=[0.45] * 3,
        std=[0.25] * 3,
    ) as writer:
        for number in range(count):
            image, mask, depth, boxes, labels = scene(random, side)
            writer.add(
                f"{number}",
                image,
                0,
                mask=mask[..., None],
                depth=depth[..., None],
                boxes=boxes,
                box_labels=labels,
            )
    return sl.Dataset(out)


def options(parser):
    """What the three programs share."""
    parser.add_argument(
        "--out", default="out/shapes", help="folder of the two data sets; made where they are not"
    )
    parser.add_argument("--count", type=int, default=4000, help="scenes to train with")
    parser.add_argument("--side", type=int, default=96)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--width", type=int, default=16, help="channels of the network at full size")
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--device", default="cpu")
    return parser


def loaders(args, fields, moves):
    """To train with, moved and coloured; and to measure with, as stored."""
    train, held_out = (
        make(f"{args.out}/{part}-{args.side}", count, args.side, seed)
        for part, count, seed in (("train", args.count, 0), ("val", 128, 1))
    )
    same = {
        "batch_size": args.batch_size,
        "device": args.device,
        "framework": "torch",
        "dtype": "float32",
        "layout": "nchw",
        "fields": fields,
        "as_stored": ["*"],
    }
    augment = sl.Augment(
        flip=0.5, color_jitter=(0.2, 0.2, 0.2, 0.02), ops=moves, random_resized_crop=args.side, scale=(0.6, 1)
    )
    return sl.Loader(train, augment=augment, **same), sl.Loader(
        held_out, shuffle=False, drop_last=False, **same
    )
