"""This machine compared with what conversion and loading need: as `shardctl doctor`, and the GPUs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import threading
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

from .. import _core
from .._base import check
from .._loader import cuda_device_count, has_cuda

# GB/s of a lane in one direction, by generation: without the line code, with packet headers.
_LANE = {1: 0.25, 2: 0.5, 3: 0.985, 4: 1.969, 5: 3.938, 6: 7.563}
_GOOD = 0.75  # of the link: what a copy should reach
_DRIVERS = {11: 450, 12: 525, 13: 580}  # the oldest driver of each CUDA
_QUERY = (
    "index,name,driver_version,pcie.link.gen.current,pcie.link.gen.max,"
    "pcie.link.width.current,pcie.link.width.max"
)
_COPY_BYTES = 1 << 28


class MachineCheck(NamedTuple):
    name: str
    what_is: str
    should_be: str
    advice: str  # empty: it is as it should be


class Gpu(NamedTuple):
    """A line of nvidia-smi. 0: not known."""

    ordinal: int
    name: str
    driver: str
    generation: int  # now; an idle link uses a lower one
    generation_most: int  # that GPU and slot have in common
    width: int
    width_most: int


def read_gpus(text: str) -> list[Gpu]:
    """From the output of nvidia-smi --query-gpu=... --format=csv,noheader."""

    def number(word: str) -> int:
        return int(word) if word.isdecimal() else 0

    rows = [[word.strip() for word in line.split(",")] for line in text.splitlines()]
    return [Gpu(number(row[0]), row[1], row[2], *map(number, row[3:])) for row in rows if len(row) == 7]


def _nvidia_smi() -> list[Gpu]:
    if shutil.which("nvidia-smi") is None:
        return []
    try:
        done = subprocess.run(
            ["nvidia-smi", f"--query-gpu={_QUERY}", "--format=csv,noheader"],
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    return read_gpus(done.stdout) if done.returncode == 0 else []


def check_driver(gpu: Gpu, cuda: str | None) -> MachineCheck:
    """cuda: the version that PyTorch was built for."""
    generation = int(cuda.split(".")[0]) if cuda else 12
    oldest = _DRIVERS.get(generation, max(_DRIVERS.values()))
    have = re.match(r"\d+", gpu.driver)
    old = have is not None and int(have[0]) < oldest
    return MachineCheck(
        "driver",
        gpu.driver,
        f"at least {oldest}, for CUDA {cuda or generation}",
        f"install a driver from {oldest} on, or a PyTorch for an older CUDA" if old else "",
    )


def check_link(gpu: Gpu, gigabytes_per_second: float | None) -> MachineCheck:
    """gigabytes_per_second: what a copy from pinned memory reached, if one was made."""
    width, generation = gpu.width, max(gpu.generation, 0)
    most = _LANE.get(gpu.generation_most, 0.0) * gpu.width_most
    now = f"PCIe generation {generation} x{width}" if width else "not known: nvidia-smi does not say"
    if gigabytes_per_second is not None:
        now += f", {gigabytes_per_second:.1f} GB/s measured (256 MiB of pinned memory to the GPU)"
    elif width:
        now += ", idle; not measured, because PyTorch with CUDA is not there"
    should = "not known"
    if most:
        should = f"PCIe generation {gpu.generation_most} x{gpu.width_most}, at least {_GOOD * most:.1f} GB/s"
    advice = ""
    if width and width < gpu.width_most:
        advice = (
            f"only {width} of {gpu.width_most} lanes are in use: put the card into another slot, seat it "
            "anew, or look at the slot's settings in the firmware"
        )
    elif gigabytes_per_second is not None and most and gigabytes_per_second < _GOOD * most:
        slower = generation and generation < gpu.generation_most
        advice = (
            f"the link stays at generation {generation} under load: look at the slot's settings in the "
            "firmware"
            if slower
            else "end other programs that use this GPU or its switch, and run on the CPUs of its NUMA node"
        )
    return MachineCheck(f"link of GPU {gpu.ordinal}", now, should, advice)


def _torch_with_gpu() -> Any:
    try:
        import torch
    except ImportError:
        return None
    return torch if torch.cuda.is_available() else None


def _measured(torch: Any, ordinal: int) -> tuple[float, list[Gpu]]:
    """GB/s of copies to a GPU, and what nvidia-smi says while they run: an idle link is slower."""
    source = torch.empty(_COPY_BYTES, dtype=torch.uint8, pin_memory=True)
    target = torch.empty(_COPY_BYTES, dtype=torch.uint8, device=f"cuda:{ordinal}")
    seen: list[Gpu] = []
    asking = threading.Thread(target=lambda: seen.extend(_nvidia_smi()))
    best = 0.0
    asking.start()
    while asking.is_alive() or not best:
        torch.cuda.synchronize(ordinal)
        began = time.perf_counter()
        for _ in range(4):
            target.copy_(source, non_blocking=True)
        torch.cuda.synchronize(ordinal)
        best = max(best, 4 * _COPY_BYTES / (time.perf_counter() - began) / 1e9)
    asking.join()
    return best, seen


def _check_gpus() -> list[MachineCheck]:
    gpus = _nvidia_smi()
    if not gpus:
        there = os.path.exists("/dev/nvidia0") or os.path.exists("/dev/dxg")
        return [
            MachineCheck(
                "GPU",
                "there is one, but nvidia-smi does not answer" if there else "none",
                "an NVIDIA GPU, for batches on the GPU",
                "install the driver's programs, or see why nvidia-smi fails" if there else "",
            )
        ]
    torch = _torch_with_gpu()
    visible = cuda_device_count()
    checks = [
        MachineCheck(
            "GPU",
            f"{len(gpus)} ({gpus[0].name}); "
            + (f"{visible} for shardloader" if has_cuda else "shardloader was built without CUDA"),
            "each GPU that you use is there for shardloader",
            ""
            if visible
            else "look at CUDA_VISIBLE_DEVICES, which is "
            + repr(os.environ.get("CUDA_VISIBLE_DEVICES", "not set"))
            if has_cuda
            else 'build it where nvcc is found (docs/python.md), or use device="cpu"',
        ),
        check_driver(gpus[0], torch.version.cuda if torch is not None else None),
    ]
    hidden = "CUDA_VISIBLE_DEVICES" in os.environ  # then PyTorch numbers them otherwise
    for gpu in gpus:
        rate = None
        if torch is not None and not hidden and gpu.ordinal < torch.cuda.device_count():
            rate, seen = _measured(torch, gpu.ordinal)
            gpu = next((one for one in seen if one.ordinal == gpu.ordinal), gpu)
        checks.append(check_link(gpu, rate))
    return checks


def machine_checks(folder: str) -> list[MachineCheck]:
    """folder: whose disk is looked at."""
    return _check_gpus() + [
        MachineCheck(*row) for row in _core.machine_checks(os.fsencode(check.path("folder", folder)))
    ]


def text_of(checks: Sequence[MachineCheck]) -> str:
    lines = []
    for each in checks:
        lines.append(f"{'LOOK' if each.advice else 'ok  '} {each.name}: {each.what_is}")
        lines.append(f"       should be: {each.should_be}")
        if each.advice:
            lines.append(f"       to do: {each.advice}")
    return "\n".join(lines)
