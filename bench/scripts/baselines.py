#!/usr/bin/env python3
"""What a person would write instead of shard::loader, timed on the same bytes:
samples/s to the GPU, shuffled, batch 256.

  bench/scripts/baselines.py SHARDBENCH DATASET [--packed DATASET] [--workers 4,8,16] [--seconds 5]
    [--json FILE]

DATASET: u8 samples stored without a codec, for example from `shardbench load DATASET --make-random N`.
  memmap + DataLoader        torch.utils.data.DataLoader over numpy.memmap, worker processes, pinned,
                             non_blocking
  index_select               one process: torch.index_select into two pinned buffers in turn, from one mapped
                             file of 4 GB, and from the same bytes in (anonymous) memory
  shard::loader              `shardbench load DATASET --transport mapped`; --packed: the same samples with
                             codec packed
Needs torch with CUDA, numpy, and the shardbench program.
The first batch of each baseline is compared with the samples' bytes.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
import warnings

import numpy as np
import torch

BATCH = 256
warnings.filterwarnings("ignore", message="The given NumPy array is not writable")


def shards_of(shardbench, dataset):
    """numpy arrays [sample, ...] over the mapping of every shard."""
    shardctl = shardbench.rsplit("/", 1)[0] + "/shardctl"
    info = json.loads(
        subprocess.run([shardctl, "info", dataset, "--json"], check=True, stdout=subprocess.PIPE).stdout
    )
    arrays = []
    for shard in info["shards"]:
        path = f"{dataset}/{shard['file']}"
        with open(path, "rb") as file:
            size = int.from_bytes(file.read(8), "little")
            images = json.loads(file.read(size))["images"]
        arrays.append(
            np.memmap(path, np.uint8, "r", 8 + size + images["data_offsets"][0], tuple(images["shape"]))
        )
    return arrays


class Samples(torch.utils.data.Dataset):
    def __init__(self, arrays):
        self.arrays = arrays
        self.ends = np.cumsum([len(array) for array in arrays])

    def __len__(self):
        return int(self.ends[-1])

    def __getitem__(self, index):
        shard = int(np.searchsorted(self.ends, index, "right"))
        return torch.from_numpy(self.arrays[shard][index - (self.ends[shard - 1] if shard else 0)])


def rate_of(batches, seconds):
    """samples/s from the second batch on, the copy to the GPU inside."""
    begin, samples = None, 0
    for batch in batches:
        samples += len(batch) if begin else 0
        begin = begin or time.perf_counter()
        if time.perf_counter() - begin > seconds:
            break
    torch.cuda.synchronize()
    return samples / (time.perf_counter() - begin)


def data_loader(samples, workers):
    loader = torch.utils.data.DataLoader(
        samples,
        BATCH,
        shuffle=True,
        num_workers=workers,
        pin_memory=True,
        drop_last=True,
        persistent_workers=True,
        prefetch_factor=4,
    )
    while True:
        for batch in loader:
            yield batch.to("cuda", non_blocking=True)


def index_select(array):
    source = torch.from_numpy(array)
    pinned = [torch.empty((BATCH, *array.shape[1:]), dtype=torch.uint8).pin_memory() for _ in range(2)]
    copied = [torch.cuda.Event(), torch.cuda.Event()]
    while True:
        order = torch.randperm(len(array))
        for turn, at in enumerate(range(0, len(array) - BATCH + 1, BATCH)):
            slot = turn % 2
            copied[slot].synchronize()
            torch.index_select(source, 0, order[at : at + BATCH], out=pinned[slot])
            batch = pinned[slot].to("cuda", non_blocking=True)
            copied[slot].record()
            yield batch


def ours(options, dataset):
    done = subprocess.run(
        [
            options.shardbench,
            "load",
            dataset,
            "--transport",
            "mapped",
            "--seconds",
            str(options.seconds / 2),
            "--json",
            "-",
        ],
        check=True,
        stdout=subprocess.PIPE,
    )
    rates = sorted(sample["samples_per_second"] for sample in json.loads(done.stdout)["samples"])
    return rates[len(rates) // 2]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("shardbench")
    parser.add_argument("dataset")
    parser.add_argument("--packed", help="the samples of DATASET with codec packed")
    parser.add_argument("--workers", default="4,8,16")
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--json")
    options = parser.parse_args()
    arrays = shards_of(options.shardbench, options.dataset)
    samples = Samples(arrays)
    first = next(index_select(arrays[0][:BATCH]))
    if sorted(row.tobytes() for row in first.cpu().numpy()) != sorted(
        row.tobytes() for row in arrays[0][:BATCH]
    ):
        sys.exit("index_select did not deliver the samples")
    rates = {"shard::loader": ours(options, options.dataset)}
    if options.packed:
        rates["shard::loader, codec packed"] = ours(options, options.packed)
    for workers in map(int, options.workers.split(",")):
        rates[f"memmap + DataLoader, {workers} workers"] = rate_of(
            data_loader(samples, workers), options.seconds
        )
    # index_select takes one array: some shards' samples behind each other, in a mapped file and in memory.
    joined = np.concatenate(arrays[: max(1, int(4e9 / arrays[0].nbytes))])
    with tempfile.NamedTemporaryFile(dir=options.dataset + "/..", suffix=".u8") as file:
        joined.tofile(file.name)
        mapped = np.memmap(file.name, np.uint8, "r", 0, joined.shape)
        rates["index_select from a mapped file"] = rate_of(index_select(mapped), options.seconds)
    rates["index_select from memory"] = rate_of(index_select(joined), options.seconds)
    rates["shard::loader, again"] = ours(options, options.dataset)
    best = min(rates["shard::loader"], rates["shard::loader, again"])
    packed = rates.get("shard::loader, codec packed")
    for name, rate in rates.items():
        print(
            f"{name:40} {rate:12.0f} samples/s   shard::loader is {best / rate:6.1f} times that"
            + (f", with codec packed {packed / rate:6.1f} times" if packed else "")
        )
    if options.json:
        with open(options.json, "w", encoding="utf-8") as out:
            json.dump(
                {
                    "torch": torch.__version__,
                    "gpu": torch.cuda.get_device_name(0),
                    "samples_per_second": rates,
                },
                out,
                indent=1,
            )


if __name__ == "__main__":
    main()
