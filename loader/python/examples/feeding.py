"""Ways to feed a network with batches (uint8 [sample, row, column, channel], labels),
without end. See pipelining.py."""

import warnings

import numpy as np
import torch

import shardloader as sl

warnings.filterwarnings("ignore", message="The given NumPy array is not writable")


class Samples(torch.utils.data.Dataset):
    """Samples of a data set through numpy's views of the mapping."""

    def __init__(self, path):
        self.data = sl.Dataset(path)

    def __len__(self):
        return len(self.data)

    def __getitem__(self, index):
        image, label = self.data[index]
        return torch.from_numpy(image), label


def decoded(folder, shape):
    """torchvision's fastest way: its JPEG decoder and uint8 transforms."""
    import torchvision
    from torchvision.transforms import v2

    steps = v2.Compose([v2.Resize(max(shape[:2]), antialias=True), v2.CenterCrop(shape[:2])])
    rgb = torchvision.io.ImageReadMode.RGB
    return torchvision.datasets.ImageFolder(
        folder,
        loader=lambda path: (
            steps(torchvision.io.decode_image(torchvision.io.read_file(path), rgb))
            .permute(1, 2, 0)
            .contiguous()
        ),
    )


def data_loader(source, batch, workers):
    more = {"num_workers": workers, "prefetch_factor": 4, "persistent_workers": True} if workers else {}
    loader = torch.utils.data.DataLoader(
        source,
        batch,
        shuffle=True,
        drop_last=True,
        pin_memory=bool(workers) and torch.cuda.is_available(),
        **more,
    )
    while True:
        yield from loader


def memmapped(path, batch):
    """One process gathers each batch from the mapping, and has no other thread."""
    data = sl.Dataset(path)
    shards = [data.shard_images(s) for s in range(len(data.info["shards"]))]
    first, labels = np.cumsum([0] + [len(shard) for shard in shards]), data.labels
    while True:
        order = np.random.permutation(len(data))
        for at in range(0, len(data) - batch + 1, batch):
            ids = order[at : at + batch]
            place = np.searchsorted(first, ids, "right") - 1
            yield (
                torch.from_numpy(np.stack([shards[s][i - first[s]] for s, i in zip(place, ids)])),
                torch.from_numpy(labels[ids]),
            )


def prefetched(batches, device):
    """The next batch is copied in a stream of its own while this one is used."""
    if device.type != "cuda":
        yield from batches
        return
    side, ahead = torch.cuda.Stream(), None
    for images, labels in batches:
        with torch.cuda.stream(side):
            coming = images.to(device, non_blocking=True), labels.to(device, non_blocking=True)
        if ahead is not None:
            yield ahead
        torch.cuda.current_stream().wait_stream(side)
        for tensor in coming:
            tensor.record_stream(torch.cuda.current_stream())
        ahead = coming


def sharded(path, batch, device, **options):
    """Begins when all is mapped, and on a GPU registered: threads of the loader do that during
    the first epochs."""
    loader = sl.Loader(
        path,
        batch_size=batch,
        device=device,
        framework="torch",
        **{"layout": sl.Dataset(path).layout, **options},
    )
    registered = -1
    while registered < loader.stats().registered_bytes:
        registered = loader.stats().registered_bytes
        for _ in loader:
            pass
    while True:
        yield from loader


def ways(args, device, batch):
    """Name -> a function that begins it. Contenders come in the order of the effort they take."""
    source = decoded(args.images, sl.Dataset(args.data).shape) if args.images else Samples(args.data)
    what = "decoding" if args.images else "samples"
    n = args.workers
    return {
        f"DataLoader {what}, 0 workers": lambda: data_loader(source, batch, 0),
        f"DataLoader {what}, {n} workers": lambda: data_loader(source, batch, n),
        "  and a prefetching stream": lambda: prefetched(data_loader(source, batch, n), device),
        f"memmap + DataLoader, {n} workers": lambda: data_loader(Samples(args.data), batch, n),
        "numpy.memmap": lambda: memmapped(args.data, batch),
        "shardloader": lambda: sharded(args.data, batch, device),
    }


def shard_ways(args, device, batch):
    """Name -> a function that begins it, and what shardbench load calls the same."""

    def half(path):
        return lambda: sharded(path, batch, device, dtype="float16", layout="nchw")

    halved = ["--dtype", "f16", "--layout", "nchw"]
    ways = {
        "shardloader": (lambda: sharded(args.data, batch, device), [args.data]),
        "shardloader, float16": (half(args.data), [args.data, *halved]),
    }
    if args.packed:
        ways["shardloader, packed"] = (lambda: sharded(args.packed, batch, device), [args.packed])
        ways["shardloader, packed, float16"] = (half(args.packed), [args.packed, *halved])
    return ways
