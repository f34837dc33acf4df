#!/usr/bin/env python3
"""Compares targets of random pipelines with torchvision.transforms.v2 on tv_tensors,
with the same parameters.

    PYTHONPATH=build/dev/python python3 tests/golden/check_targets_with_torchvision.py [--pipelines 300]
        [--device cpu] [--seed 0]

Needs torch and torchvision >= 0.20. Each pipeline has a random crop, flip and up to three geometric
operations. What a loader delivers is made again by torchvision.transforms.v2.functional, one step after the
other, for each sample:

    masks       bit for bit; nearest geometry may differ where a place is half-way between two pixels (at most
                1 in 10,000 pixels)
    depth       u16 and float32, within 1 unit of u16 and 1e-3 of the range of float32
    boxes       within 1e-4 of the size of the view, and the same ones kept by ClampBoundingBoxes and
                SanitizeBoundingBoxes; a box of which one step leaves nothing is gone, although torchvision
                makes it wide again if a later step turns it
    keypoints   within 1e-4 likewise; torchvision's flips of keypoints count from the centres of pixels (width
                - 1 - x) and its other operations from their edges, so that 1 is added there
    matrices    map the same points
"""

import argparse
import random
import sys
import tempfile

import numpy as np
import torch
from torchvision import tv_tensors
from torchvision.transforms import InterpolationMode
from torchvision.transforms.v2 import SanitizeBoundingBoxes
from torchvision.transforms.v2 import functional as F

import shardloader as sl
from shardloader import ops

HEIGHT, WIDTH, SAMPLES, BOXES = 96, 80, 24, 12
FILL = 255


def write(folder, rng):
    """Blocks of colour, so that resizes have something to find; boxes of all sizes, some degenerate."""
    columns = {
        "mask": sl.ImageField("uint8", HEIGHT, WIDTH, 1, role="mask", codec="packed"),
        "wide": sl.ImageField("uint16", HEIGHT, WIDTH, 1, role="mask"),
        "depth": sl.ImageField("uint16", HEIGHT, WIDTH, 1),
        "metres": sl.ImageField("float32", HEIGHT, WIDTH, 1),
        "boxes": sl.Ragged("float32", 4),
        "box_labels": sl.Ragged("int64"),
        "points": sl.Ragged("float32", 3),
    }
    kept = []
    with sl.Writer(
        folder, columns=columns, squash=(HEIGHT, WIDTH), dtype="uint8", layout="nhwc", samples_per_shard=10
    ) as writer:
        for number in range(SAMPLES):
            image = rng.integers(0, 256, (HEIGHT, WIDTH, 3), dtype=np.uint8)
            corner = rng.uniform(0, (WIDTH, HEIGHT), (BOXES, 2))
            size = rng.uniform(0, 50, (BOXES, 2)) ** rng.choice([0.2, 1], (BOXES, 1))
            boxes = np.concatenate([corner, np.minimum(corner + size, (WIDTH, HEIGHT))], 1).astype(np.float32)
            row = {
                "mask": rng.integers(0, 21, (HEIGHT, WIDTH, 1), dtype=np.uint8),
                "wide": rng.integers(0, 65536, (HEIGHT, WIDTH, 1)).astype(np.uint16),
                "depth": rng.integers(0, 65536, (HEIGHT, WIDTH, 1)).astype(np.uint16),
                "metres": rng.uniform(0, 80, (HEIGHT, WIDTH, 1)).astype(np.float32),
                "boxes": boxes,
                "box_labels": np.arange(BOXES),
                "points": np.concatenate(
                    [rng.uniform(0, (WIDTH, HEIGHT), (BOXES, 2)), np.full((BOXES, 1), 2)], 1
                ).astype(np.float32),
            }
            writer.add(f"{number}", image, number % 2, **row)
            kept.append(row)
    return kept


def pipeline(rng):
    """Crop options, and the operations with what the steps below must know of them."""
    size = rng.choice([(48, 48), (64, 40), (33, 57), (96, 96)])
    crop = rng.choice(
        [
            {},
            {"center_crop": (64, 64)},
            {"random_crop": (48, 56)},
            {"random_resized_crop": size},
            {"random_resized_crop": size},
        ]
    )
    view = next(iter(crop.values()), (HEIGHT, WIDTH))
    chosen = []
    for _ in range(rng.randint(0, 3)):
        kind = rng.choice(["affine", "rotation", "perspective", "vertical_flip", "turns", "padded_crop"])
        if kind == "affine":
            of = {
                "degrees": rng.uniform(-180, 180),
                "scale": rng.uniform(0.5, 2),
                "shear": (rng.uniform(-30, 30), rng.uniform(-30, 30)),
            }
            along_x, along_y = of["shear"]
            made = ops.affine(
                (of["degrees"],) * 2, (0.2, 0.2), of["scale"], (along_x, along_x), (along_y, along_y)
            )
        elif kind == "rotation":
            of = {"degrees": rng.choice([90, 180, 270, rng.uniform(-180, 180), rng.uniform(-180, 180)])}
            made = ops.rotation((of["degrees"],) * 2)
        elif kind == "perspective":
            of, made = {}, ops.perspective(rng.uniform(0.05, 0.7), p=1)
        elif kind == "vertical_flip":
            of, made = {}, ops.vertical_flip(p=1)
        elif kind == "turns":
            turns = rng.choice([1, 2, 3]) if view[0] == view[1] else 2
            of, made = {"turns": turns}, ops.turns(turns)
        else:
            of, made = {"padding": 9}, ops.padded_crop(9)
        chosen.append((kind, of, made))
    return {**crop, "flip": 0.5}, view, chosen


def fill_of(value):
    return FILL if isinstance(value, tv_tensors.Mask) else 0


def interpolation_of(value):
    return InterpolationMode.NEAREST if isinstance(value, tv_tensors.Mask) else InterpolationMode.BILINEAR


def flipped(value, vertical):
    moved = (F.vertical_flip if vertical else F.horizontal_flip)(value)
    if isinstance(value, tv_tensors.KeyPoints):
        moved = moved + torch.tensor([0.0, 1.0] if vertical else [1.0, 0.0])
        moved = tv_tensors.KeyPoints(moved, canvas_size=value.canvas_size)
    return moved


def affine(value, degrees, translate, scale, shear):
    if isinstance(value, (tv_tensors.BoundingBoxes, tv_tensors.KeyPoints)):
        return F.affine(value, degrees, translate, scale, shear)
    return F.affine(
        value, degrees, translate, scale, shear, interpolation=interpolation_of(value), fill=fill_of(value)
    )


def turned(value, degrees):
    if isinstance(value, (tv_tensors.BoundingBoxes, tv_tensors.KeyPoints)):
        return F.rotate(value, degrees)
    return F.rotate(value, degrees, interpolation=interpolation_of(value), fill=fill_of(value))


def stepped(value, kind, of, step, view):
    real = np.array(step.real, np.float64)
    height, width = view
    if kind == "perspective":
        coefficients = [float(c) for c in (*(real[:3] * width / 2), *(real[3:6] * height / 2), *real[6:8])]
        if isinstance(value, (tv_tensors.BoundingBoxes, tv_tensors.KeyPoints)):
            return F.perspective(value, None, None, coefficients=coefficients)
        return F.perspective(
            value,
            None,
            None,
            coefficients=coefficients,
            interpolation=interpolation_of(value),
            fill=fill_of(value),
        )
    if kind == "vertical_flip":
        return flipped(value, True)
    if kind == "turns":
        return turned(value, 90 * of["turns"])
    if kind == "rotation":
        return turned(value, of["degrees"])
    if kind == "padded_crop":
        down, right = step.whole[:2]
        padding = of["padding"]
        return F.crop(
            F.pad(value, [padding] * 4, fill=fill_of(value)), padding - down, padding - right, height, width
        )
    matrix = real[:6] * ([width / 2] * 3 + [height / 2] * 3)
    translate = -np.linalg.solve(matrix[[0, 1, 3, 4]].reshape(2, 2), matrix[[2, 5]])
    return affine(value, of["degrees"], [int(round(t)) for t in translate], of["scale"], list(of["shear"]))


def todo_of(geometry, chosen):
    """What torchvision does to a value, as functions."""
    view = geometry.size
    todo = [lambda value: F.crop(value, *geometry.crop)]
    if tuple(geometry.crop[2:]) != tuple(view):
        todo.append(lambda value: resized(value, view))
    if geometry.flip:
        todo.append(lambda value: flipped(value, False))
    steps = list(geometry.steps)
    opcodes = {"affine": ["affine"], "rotation": ["affine", "quarter_turns"], "perspective": ["perspective"]}
    opcodes.update({"vertical_flip": ["flip_rows"], "turns": ["quarter_turns"], "padded_crop": ["shift"]})
    for kind, of, _ in chosen:
        if steps and steps[0].opcode in opcodes[kind]:  # else it changes nothing, and was left out
            step = steps.pop(0)
            todo.append(lambda value, kind=kind, of=of, step=step: stepped(value, kind, of, step, view))
    assert not steps, steps
    return todo


def resized(value, view):
    if isinstance(value, (tv_tensors.BoundingBoxes, tv_tensors.KeyPoints)):
        return F.resize(value, list(view))
    return F.resize(value, list(view), interpolation=interpolation_of(value), antialias=True)


def images_after(value, todo, whole_numbers=False):
    """whole_numbers: each operation rounds, as torchvision does with uint8."""
    for do in todo:
        value = do(value)
        if whole_numbers:
            value = tv_tensors.Image(value.round())
    return value.numpy()


def boxes_after(boxes, todo):
    """Boxes, and their numbers, without those of which a step has left nothing."""
    value = tv_tensors.BoundingBoxes(torch.from_numpy(boxes), format="XYXY", canvas_size=(HEIGHT, WIDTH))
    numbers = torch.arange(len(boxes))
    for do in todo:
        value = do(value)
        there = (value[:, 2] > value[:, 0]) & (value[:, 3] > value[:, 1])
        numbers = numbers[there]
        value = tv_tensors.BoundingBoxes(value[there], format="XYXY", canvas_size=value.canvas_size)
    # A resize in float32 may end a rounding error beyond the border.
    sane = SanitizeBoundingBoxes()({"boxes": F.clamp_bounding_boxes(value), "labels": numbers})
    return sane["boxes"].numpy(), sane["labels"].numpy()


def points_after(points, todo):
    """NaN once they have left."""
    value = tv_tensors.KeyPoints(torch.from_numpy(points), canvas_size=(HEIGHT, WIDTH))
    gone = torch.zeros(len(points), dtype=torch.bool)
    for do in todo:
        value = do(value)
        height, width = value.canvas_size
        gone |= (value[:, 0] < 0) | (value[:, 0] >= width) | (value[:, 1] < 0) | (value[:, 1] >= height)
    result = torch.as_tensor(value).clone()
    result[gone] = float("nan")
    return result.numpy()


class Found:
    """Sums over all samples. most: the largest difference; at: where."""

    def __init__(self, name, allowed, share=0.0):
        self.name, self.allowed, self.share = name, allowed, share
        self.values = self.beyond = 0
        self.most, self.at = 0.0, ""

    def add(self, ours, theirs, where):
        gap = np.abs(np.asarray(ours, np.float64) - np.asarray(theirs, np.float64))
        self.values += gap.size
        self.beyond += int((gap > self.allowed).sum())
        if gap.size and gap.max() > self.most:
            self.most, self.at = float(gap.max()), where

    def good(self):
        return self.values > 0 and self.beyond <= self.share * self.values

    def __str__(self):
        verdict = "ok" if self.good() else "DIFFERS"
        return (
            f"{self.name:12} {self.values:10} values, {self.beyond} beyond {self.allowed}, "
            f"at most {self.most:.6g} {verdict} {'' if self.good() else self.at}"
        )


def compare(batch, rows, loader, chosen, found, epoch, where):
    got = {name: value.cpu().numpy() for name, value in batch.targets().items()}
    side = max(loader.geometry(0).size)
    for row, sample in enumerate(batch.ids.tolist()):
        stored = rows[sample]
        geometry = loader.geometry(sample, epoch=epoch)
        todo = todo_of(geometry, chosen)
        here = f"{where}, sample {sample}"
        for name in ("mask", "wide"):
            mask = torch.from_numpy(stored[name][..., 0].astype(np.int32 if name == "wide" else np.uint8))
            found["masks"].add(got[name][row] != images_after(tv_tensors.Mask(mask), todo), False, here)
        for name in ("depth", "metres"):
            image = tv_tensors.Image(torch.from_numpy(stored[name][None, ..., 0].astype(np.float32)))
            found[name].add(got[name][row][0], images_after(image, todo, name == "depth")[0], here)
        boxes, numbers = boxes_after(stored["boxes"], todo)
        count = int(got["boxes_counts"][row])
        kept = got["box_labels"][row][:count]
        found["kept"].add(np.isin(np.arange(BOXES), kept) != np.isin(np.arange(BOXES), numbers), False, here)
        both = np.intersect1d(kept, numbers)
        found["boxes"].add(
            got["boxes"][row][np.searchsorted(kept, both)] / side,
            boxes[np.searchsorted(numbers, both)] / side,
            here,
        )
        points = points_after(stored["points"][:, :2], todo)
        seen, there = got["points"][row][:, 2] > 0, ~np.isnan(points[:, 0])
        found["seen"].add(seen != there, False, here)
        found["points"].add(got["points"][row][seen & there][:, :2] / side, points[seen & there] / side, here)
        matrix = got["correspondence"][row][0].astype(np.float64)
        mapped = np.concatenate([stored["points"][:, :2], np.ones((BOXES, 1))], 1) @ matrix.T
        found["matrices"].add(
            (mapped[:, :2] / mapped[:, 2:])[seen] / side, got["points"][row][seen][:, :2] / side, here
        )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pipelines", type=int, default=300)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    rng = random.Random(arguments.seed)
    found = {
        "masks": Found("masks", 0, 1e-4),
        "depth": Found("depth u16", 1),
        "metres": Found("depth f32", 80 * 1e-3),
        "kept": Found("kept boxes", 0, 1e-3),
        "boxes": Found("boxes", 1e-4),
        "seen": Found("seen points", 0, 1e-3),
        "points": Found("keypoints", 1e-4),
        "matrices": Found("matrices", 1e-4),
    }
    targets = {
        "mask": sl.Pixels("nearest", fill=FILL),
        "wide": sl.Pixels("nearest", fill=FILL),
        "depth": "bilinear",
        "metres": "bilinear",
    }
    with tempfile.TemporaryDirectory() as folder:
        rows = write(folder + "/set", np.random.default_rng(arguments.seed))
        for number in range(arguments.pipelines):
            view, _, chosen = pipeline(rng)
            augment = sl.Augment(**view, ops=[made for _, _, made in chosen])
            loader = sl.Loader(
                folder + "/set",
                batch_size=8,
                framework="torch",
                device=arguments.device,
                seed=number,
                augment=augment,
                fields={**targets, "boxes": sl.Boxes(), "points": sl.Keypoints()},
                correspondence=True,
                threads=1,
            )
            where = f"pipeline {number}: {view}, {[kind for kind, _, _ in chosen]}"
            batch = next(loader.epoch(number % 3))
            compare(batch, rows, loader, chosen, found, number % 3, where)
            loader.close()
    for one in found.values():
        print(one)
    if not all(one.good() for one in found.values()):
        sys.exit("FAILED")


if __name__ == "__main__":
    main()
