#!/usr/bin/env python3
"""Makes the pictures of docs/augment.md: a generated photograph,
and what the loader makes of it with each operation and policy.

  docs/augment/make.py BIN     # the folder of shardbench, shardify and shardctl

Each picture is a sheet of `shardctl show --augment`, stored as WebP: the sample,
then four epochs. Needs Pillow.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

OPERATIONS = (
    "brightness contrast saturation hue color-jitter grayscale gaussian-blur solarize posterize equalize "
    "auto-contrast sharpness invert permute channel-dropout affine "
    "rotation perspective erasing vertical-flip turns padded-crop rand-augment trivial-augment auto-augment "
    "aug-mix 3-augment crop"
).split()
SAMPLE = 12  # of the generated photographs
SEED = 9
SIDE = 72
QUALITY = 60


def main():
    programs, here = Path(sys.argv[1]), Path(__file__).resolve().parent

    def run(program, *arguments):
        subprocess.run([programs / program, *map(str, arguments)], check=True, stdout=subprocess.DEVNULL)

    with tempfile.TemporaryDirectory() as folder:
        run("shardbench", "synth", f"{folder}/photos", "--count", SAMPLE + 1, "--quiet")
        run(
            "shardify",
            f"{folder}/photos",
            f"{folder}/out",
            "--preset",
            "train",
            "--resize",
            SIDE,
            "--crop",
            SIDE,
        )
        for name in OPERATIONS:
            run(
                "shardctl",
                "show",
                f"{folder}/out",
                SAMPLE,
                "--augment",
                name,
                "--seed",
                SEED,
                "-o",
                f"{folder}/sheet.png",
            )
            sheet = Image.open(f"{folder}/sheet.png").convert("RGB")
            sheet.crop((0, 0, sheet.width, SIDE + 8)).save(
                here / f"{name}.webp", quality=QUALITY, method=6
            )  # without the captions
    print(f"{len(OPERATIONS)} pictures, {sum(file.stat().st_size for file in here.glob('*.webp'))} bytes")


if __name__ == "__main__":
    main()
