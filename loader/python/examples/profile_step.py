#!/usr/bin/env python3
"""A trace of some training steps: what the loop, the GPU and the loader do at the same time.

    python profile_step.py out/train --trace trace.json        # open in https://ui.perfetto.dev or chrome://tracing
    nsys profile python profile_step.py out/train --steps 50   # the loader's NVTX ranges: "shard: next",
                                                               "shard: begin batch", ...

Prints the time of load and step, the operators that take most of it,
and who waited for whom in the loader. Needs torch.
"""

import argparse

import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile, record_function, schedule

import shardloader as sl
from support import small_cnn


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data")
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--steps", type=int, default=10, help="in the trace, after a warm-up of 3")
    parser.add_argument("--device", default="cuda:0" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--trace", help="a file for the trace")
    args = parser.parse_args()
    device = torch.device(args.device)
    cuda = device.type == "cuda"

    data = sl.Dataset(args.data)
    loader = sl.Loader(
        data,
        batch_size=args.batch_size,
        device=device,
        framework="torch",
        flip=True,
        layout="nchw",
        dtype="float32" if data.dtype == "uint8" else None,
    )
    net = small_cnn(device, max(2, int(data.labels.max()) + 1)).to(getattr(torch, loader.dtype))
    optimizer = torch.optim.SGD(net.parameters(), 0.01)

    def batches():
        while True:
            yield from loader

    feed = batches()
    activities = [ProfilerActivity.CPU] + ([ProfilerActivity.CUDA] if cuda else [])
    with profile(
        activities=activities, schedule=schedule(wait=1, warmup=2, active=args.steps), record_shapes=True
    ) as profiler:
        for _ in range(3 + args.steps):
            with record_function("load"):
                images, labels = next(feed)
            with record_function("step"):
                loss = nn.functional.cross_entropy(net(images), labels)
                optimizer.zero_grad(set_to_none=True)
                loss.backward()
                optimizer.step()
            del images, labels
            profiler.step()
    print(
        profiler.key_averages().table(
            sort_by="self_device_time_total" if cuda else "self_cpu_time_total", row_limit=15
        )
    )
    if args.trace:
        profiler.export_chrome_trace(args.trace)
    stats = loader.stats()
    print(f"transport {stats.transport} ({stats.reason})")
    print(
        f"{stats.batches} batches, {stats.bytes / 1e6:.1f} MB: the loader waited {stats.storage_seconds:.3f} "
        "s for storage, "
        f"{stats.link_seconds:.3f} s for the link, {stats.consumer_seconds:.3f} s for the loop; "
        f"the loop waited {stats.starved_seconds:.3f} s"
    )


if __name__ == "__main__":
    main()
