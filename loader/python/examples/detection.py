#!/usr/bin/env python3
"""Detection: a small network finds the boxes of discs, squares and triangles, by heat maps of their centres.

    python detection.py [--device cuda:0] [--epochs 10]

After Zhou et al., "Objects as Points", 2019: for each class a map of centres with a stride of 4, and at a
centre the offset and the size of its box. The boxes follow crop and flip of the images, as cxcywh; those of
which less than 0.3 is visible are left out. Prints precision and recall at an intersection over union of 0.5
in scenes that were held out. Needs torch.
"""

import argparse

import torch
from torch import nn

import shardloader as sl
from networks import UNet
from shapes import CLASSES, loaders, options

STRIDE, KINDS = 4, len(CLASSES) - 1


def maps_of(targets, side):
    """Heat maps [batch, kind, row, column], and for each box its place in them, offset and size, in cells."""
    boxes, labels, counts = targets["boxes"] / STRIDE, targets["box_labels"] - 1, targets["boxes_counts"]
    cells = side // STRIDE
    sample, row = torch.nonzero(
        torch.arange(boxes.shape[1], device=boxes.device) < counts[:, None], as_tuple=True
    )
    box, kind = boxes[sample, row], labels[sample, row]
    centre = box[:, :2].floor().clamp(0, cells - 1)
    grid = torch.arange(cells, device=boxes.device)
    spread = (box[:, 2:] / 6).clamp(min=0.7)
    across = torch.exp(-(((grid - centre[:, :1]) / spread[:, :1]) ** 2) / 2)
    down = torch.exp(-(((grid - centre[:, 1:]) / spread[:, 1:]) ** 2) / 2)
    heat = torch.zeros(len(boxes) * KINDS, cells, cells, device=boxes.device)
    heat.index_reduce_(0, sample * KINDS + kind, down[:, :, None] * across[:, None], "amax")
    place = (sample, centre[:, 1].long(), centre[:, 0].long())
    return (
        heat.reshape(len(boxes), KINDS, cells, cells),
        place,
        torch.cat([box[:, :2] - centre, box[:, 2:].log()], 1),
    )


def loss_of(found, targets, side):
    """The focal loss of the centres, and how far offsets and sizes are off."""
    heat, (sample, row, column), values = maps_of(targets, side)
    scores = found[:, :KINDS].sigmoid().clamp(1e-4, 1 - 1e-4)
    centres = heat == 1
    focal = torch.where(
        centres, (1 - scores) ** 2 * scores.log(), (1 - heat) ** 4 * scores**2 * (1 - scores).log()
    )
    off = nn.functional.l1_loss(found[sample, KINDS:, row, column], values, reduction="sum")
    return (off - focal.sum()) / max(1, len(values))


def boxes_of(found, threshold=0.3):
    """Of one sample: xyxy and kinds, where a score is the highest around."""
    scores = found[:KINDS].sigmoid()
    peaks = (nn.functional.max_pool2d(scores[None], 3, 1, 1)[0] == scores) & (scores > threshold)
    kind, row, column = torch.nonzero(peaks, as_tuple=True)
    x, y, width, height = found[KINDS:, row, column]
    x, y, width, height = x + column, y + row, width.exp(), height.exp()
    return torch.stack([x - width / 2, y - height / 2, x + width / 2, y + height / 2], 1) * STRIDE, kind


def matches(found, kinds, boxes, labels):
    """Pairs of a box that was found and one that is there, each box in one of them at most."""
    low, high = (
        torch.maximum(found[:, None, :2], boxes[:, :2]),
        torch.minimum(found[:, None, 2:], boxes[:, 2:]),
    )
    shared = (high - low).clamp(min=0).prod(2)
    overlap = shared / (
        (found[:, 2:] - found[:, :2]).prod(1)[:, None] + (boxes[:, 2:] - boxes[:, :2]).prod(1) - shared
    )
    good = (overlap > 0.5) & (kinds[:, None] == labels)
    return min(int(good.any(0).sum()), int(good.any(1).sum())) if len(found) else 0


def measure(net, loader):
    right = said = there = 0
    net.eval()
    with torch.no_grad():
        for batch in loader.epoch(0):
            targets, found = batch.targets(), net(batch.images)
            for row in range(len(found)):
                count = int(targets["boxes_counts"][row])
                x, y, width, height = targets["boxes"][row, :count].T
                boxes = torch.stack([x - width / 2, y - height / 2, x + width / 2, y + height / 2], 1)
                seen, kinds = boxes_of(found[row])
                right += matches(seen, kinds, boxes, targets["box_labels"][row, :count] - 1)
                said, there = said + len(seen), there + count
    return right / max(1, said), right / max(1, there)


def main():
    args = options(
        argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ).parse_args()
    torch.manual_seed(0)
    train, held_out = loaders(args, {"boxes": sl.Boxes(format="cxcywh", min_size=2, min_visibility=0.3)}, [])
    net = UNet(KINDS + 4, stride=STRIDE, width=args.width).to(args.device)
    nn.init.constant_(net.last.bias[:KINDS], -3)
    optimizer = torch.optim.AdamW(net.parameters(), 3e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-2, total_steps=args.epochs * len(train))
    for epoch in range(args.epochs):
        net.train()
        total = torch.zeros((), device=args.device)
        for batch in train.epoch(epoch):
            loss = loss_of(net(batch.images), batch.targets(), args.side)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            schedule.step()
            total += loss.detach()
        precision, recall = measure(net, held_out)
        print(
            f"epoch {epoch}: loss {total.item() / len(train):.4f}, precision {precision:.3f}, "
            f"recall {recall:.3f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
