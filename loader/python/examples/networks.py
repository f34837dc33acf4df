"""A small U-Net (Ronneberger et al., 2015), for segmentation.py, detection.py and depth.py."""

import torch
from torch import nn


def block(inputs, outputs):
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, padding=1, bias=False),
        nn.BatchNorm2d(outputs),
        nn.ReLU(True),
        nn.Conv2d(outputs, outputs, 3, padding=1, bias=False),
        nn.BatchNorm2d(outputs),
        nn.ReLU(True),
    )


class UNet(nn.Module):
    """outputs: channels per pixel. stride: of the result, 1, 2 or 4."""

    def __init__(self, outputs, stride=1, width=12):
        super().__init__()
        widths = [width, 2 * width, 4 * width, 4 * width]
        self.down = nn.ModuleList([block(before, after) for before, after in zip([3, *widths], widths)])
        steps = {1: 3, 2: 2, 4: 1}[stride]
        self.up = nn.ModuleList([block(widths[3 - k] + widths[2 - k], widths[2 - k]) for k in range(steps)])
        self.last = nn.Conv2d(widths[3 - steps], outputs, 1)

    def forward(self, pixels):
        levels = []
        for level, convolutions in enumerate(self.down):
            pixels = convolutions(nn.functional.max_pool2d(pixels, 2) if level else pixels)
            levels.append(pixels)
        for k, convolutions in enumerate(self.up):
            wider = nn.functional.interpolate(pixels, scale_factor=2, mode="nearest")
            pixels = convolutions(torch.cat([wider, levels[2 - k]], 1))
        return self.last(pixels)
