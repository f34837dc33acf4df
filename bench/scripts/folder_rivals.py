#!/usr/bin/env python3
"""What others deliver from a folder of photographs that nobody converted: photographs/s to a GPU.

    folder_rivals.py IMAGES [--tar FILE] [--seconds S] [--workers N] [--only NAME,...] [--json FILE]

Random-resized crop of 224, flip, shuffled batches of 256 on the GPU, each loader set up as its documentation
recommends, in a process of its own; a loader that is not installed is left out with the reason. Epoch 0
counts from the making of the loader, epoch 1 from its first batch; both end S seconds after their first batch
or with the epoch. Cores are those that the whole machine used. Pixels: of 240 photographs decoded whole, the
values that are not Pillow's and the mean and the largest difference in levels. FILE holds the same
photographs for WebDataset.
"""

import argparse
import io
import json
import os
import pathlib
import random
import subprocess
import sys
import time

import numpy as np
import torch
from PIL import Image

BATCH, SIDE = 256, 224


def busy_seconds():
    """CPU seconds that all processes of the machine have used."""
    fields = pathlib.Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]
    user, nice, system, _, _, irq, soft, steal = map(int, fields)
    return (user + nice + system + irq + soft + steal) / os.sysconf("SC_CLK_TCK")


def paths_of(images):
    """Of the files in the class folders of images."""
    classes = sorted(each for each in images.iterdir() if each.is_dir())
    return [str(path) for each in classes for path in sorted(each.iterdir())]


def on_gpu(batch):
    return (batch.float() / 255).half() if batch.dtype == torch.uint8 else batch.half()


def torchvision_view():
    from torchvision import transforms

    return transforms.Compose(
        [transforms.RandomResizedCrop(SIDE), transforms.RandomHorizontalFlip(), transforms.PILToTensor()]
    )


def data_loader(data, workers, **more):
    return torch.utils.data.DataLoader(
        data,
        BATCH,
        num_workers=workers,
        pin_memory=True,
        drop_last=True,
        persistent_workers=True,
        prefetch_factor=4,
        **more,
    )


def image_folder(images, given):
    from torchvision.datasets import ImageFolder

    loader = data_loader(ImageFolder(images, torchvision_view()), given.workers, shuffle=True)

    def epoch(_):
        for batch, _ in loader:
            yield on_gpu(batch.cuda(non_blocking=True))

    return epoch


def dali(images, given):
    """The file reader, the hardware decoder and the pipeline of DALI's own ImageNet example."""
    from nvidia.dali import fn, pipeline_def, types
    from nvidia.dali.plugin.pytorch import DALIGenericIterator, LastBatchPolicy

    @pipeline_def(batch_size=BATCH, num_threads=given.workers, device_id=0, prefetch_queue_depth=3)
    def pipeline():
        files, labels = fn.readers.file(file_root=str(images), random_shuffle=True, name="reader")
        pixels = fn.decoders.image_random_crop(
            files, device="mixed", output_type=types.RGB, hw_decoder_load=given.hardware_share
        )
        pixels = fn.resize(pixels, size=[SIDE, SIDE], antialias=True)
        mirror = fn.random.coin_flip(probability=0.5)
        pixels = fn.crop_mirror_normalize(pixels, dtype=types.FLOAT16, mirror=mirror, std=[255.0] * 3)
        return pixels, labels.gpu()

    built = pipeline()
    built.build()
    loader = DALIGenericIterator(
        [built],
        ["images", "labels"],
        reader_name="reader",
        auto_reset=True,
        last_batch_policy=LastBatchPolicy.DROP,
    )

    def epoch(_):
        for batch in loader:
            yield batch[0]["images"]

    return epoch


def dali_pixels(files):
    from nvidia.dali import fn, pipeline_def, types

    @pipeline_def(batch_size=1, num_threads=1, device_id=0)
    def pipeline():
        data = fn.external_source(source=[[np.frombuffer(each, np.uint8)] for each in files], batch=True)
        return fn.decoders.image(data, device="mixed", output_type=types.RGB)

    built = pipeline()
    built.build()
    for _ in files:
        (decoded,) = built.run()
        yield np.asarray(decoded.as_cpu().at(0))


def webdataset(_, given):
    import webdataset

    view = torchvision_view()
    data = (
        webdataset.WebDataset(given.tar, shardshuffle=100, resampled=True, nodesplitter=None)
        .shuffle(1000)
        .decode("pil")
        .to_tuple("jpg")
        .map(lambda sample: (view(sample[0].convert("RGB")),))
        .batched(BATCH, partial=False)
    )
    loader = webdataset.WebLoader(data, batch_size=None, num_workers=given.workers, pin_memory=True)
    stream = iter(loader)

    def epoch(_):
        for _ in range(given.count // BATCH):
            (batch,) = next(stream)
            yield on_gpu(batch.cuda(non_blocking=True))

    return epoch


def litdata(images, given):
    """StreamingRawDataset: a folder as it is."""
    from litdata import StreamingRawDataset

    view = torchvision_view()
    data = StreamingRawDataset(
        str(images), transform=lambda data: view(Image.open(io.BytesIO(data)).convert("RGB"))
    )
    loader = data_loader(data, given.workers, shuffle=True)

    def epoch(_):
        for batch in loader:
            yield on_gpu(batch.cuda(non_blocking=True))

    return epoch


def spdl(images, given):
    """Threads that decode by FFmpeg, which resizes whole images: no crop and no flip."""
    import spdl.io
    from spdl.pipeline import PipelineBuilder

    paths = paths_of(images)

    def batches(number):
        order = list(paths)
        random.Random(number).shuffle(order)
        for at in range(0, len(order) - BATCH + 1, BATCH):
            yield order[at : at + BATCH]

    def decode(batch):
        frames = spdl.io.load_image_batch(batch, width=SIDE, height=SIDE, pix_fmt="rgb24", strict=False)
        return spdl.io.to_torch(frames)

    def epoch(number):
        pipeline = (
            PipelineBuilder()
            .add_source(batches(number))
            .pipe(decode, concurrency=given.workers, output_order="completion")
            .add_sink(8)
            .build(num_threads=given.workers)
        )
        with pipeline.auto_stop():
            for batch in pipeline:
                yield on_gpu(batch.pin_memory().cuda(non_blocking=True))

    return epoch


def nvjpeg(images, given):
    """torchvision.io.decode_jpeg on the GPU (nvJPEG) and a crop of each photograph there."""
    from concurrent.futures import ThreadPoolExecutor

    from torchvision.io import ImageReadMode, decode_jpeg, read_file
    from torchvision.transforms import v2

    paths = paths_of(images)
    view = v2.Compose([v2.RandomResizedCrop(SIDE, antialias=True), v2.RandomHorizontalFlip()])

    def epoch(number):
        order = list(paths)
        random.Random(number).shuffle(order)
        with ThreadPoolExecutor(given.workers) as readers:
            for at in range(0, len(order) - BATCH + 1, BATCH):
                files = list(readers.map(read_file, order[at : at + BATCH]))
                whole = decode_jpeg(files, mode=ImageReadMode.RGB, device="cuda")
                yield on_gpu(torch.stack([view(each) for each in whole]))

    return epoch


def nvjpeg_pixels(files):
    from torchvision.io import ImageReadMode, decode_jpeg

    for each in files:
        data = torch.frombuffer(bytearray(each), dtype=torch.uint8)
        yield decode_jpeg(data, mode=ImageReadMode.RGB, device="cuda").permute(1, 2, 0).cpu().numpy()


def spdl_pixels(files):
    import spdl.io

    for each in files:
        yield spdl.io.to_numpy(spdl.io.load_image_batch([each], width=None, height=None, pix_fmt="rgb24"))


def pillow_pixels(files):
    for each in files:
        yield np.asarray(Image.open(io.BytesIO(each)).convert("RGB"))


def shardify(images, given):
    import shardloader as sl

    loader = sl.Loader(
        str(images),
        batch_size=BATCH,
        device="cuda:0",
        random_resized_crop=SIDE,
        flip=True,
        dtype="float16",
        tail="drop",
        threads=given.workers - 1,
        prefetch=8,
    )

    def epoch(number):
        for batch, _ in loader.epoch(number):
            yield torch.as_tensor(batch)

    return epoch


def shardify_pixels(files):
    import shardloader as sl

    for image in sl.decode_jpeg(list(files), "cuda:0").images:
        yield image.cpu().numpy()


RIVALS = {  # name: (loader, its decoder)
    "shardify": (shardify, shardify_pixels),
    "torchvision ImageFolder": (image_folder, pillow_pixels),
    "torchvision, nvJPEG": (nvjpeg, nvjpeg_pixels),
    "DALI": (dali, dali_pixels),
    "SPDL": (spdl, spdl_pixels),
    "LitData raw": (litdata, pillow_pixels),
    "WebDataset": (webdataset, pillow_pixels),
}


def rate_of(epoch, number, seconds, made=None):
    """Until `seconds` after the first batch, or the epoch's end. made: when the making of the loader began;
    without it the first batch starts the clock."""
    first = None
    done, cpu = 0, busy_seconds()
    begin = made
    for batch in epoch(number):
        assert batch.shape[0] == BATCH and batch.ndim == 4 and batch.is_cuda
        if first is None:
            first = time.perf_counter()
            if made is None:
                begin, cpu = first, busy_seconds()
                continue
        done += BATCH
        if time.perf_counter() - first > seconds:
            break
    torch.cuda.synchronize()
    wall = time.perf_counter() - begin
    found = {"photographs/s": round(done / wall), "cores": round((busy_seconds() - cpu) / wall, 1)}
    return {**found, "first batch, s": round(first - made, 2)} if made is not None else found


def pixels_of(decoder, files):
    values = different = most = 0
    total = 0.0
    for data, got in zip(files, decoder(files), strict=True):
        right = np.asarray(Image.open(io.BytesIO(data)).convert("RGB")).astype(np.int16)
        off = np.abs(np.asarray(got).reshape(right.shape).astype(np.int16) - right)
        values, different = values + off.size, different + int((off > 0).sum())
        most, total = max(most, int(off.max())), total + float(off.sum())
    return {"values": values, "different": different, "mean": round(total / values, 3), "most": most}


def one(name, images, given):
    make, decoder = RIVALS[name]
    begin = time.perf_counter()
    epoch = make(images, given)
    found = {"epoch 0": rate_of(epoch, 0, given.seconds, begin)}
    found["epoch 1"] = rate_of(epoch, 1, given.seconds)
    files = [pathlib.Path(path).read_bytes() for path in random.Random(0).sample(paths_of(images), 240)]
    try:
        found["pixels"] = pixels_of(decoder, files)
    except Exception as error:  # the rate stands without them
        found["pixels"] = f"{type(error).__name__}: {error}"[:300]
    return found


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("images", type=pathlib.Path)
    parser.add_argument("--tar")
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--hardware-share", type=float, default=1.0, help="DALI's hw_decoder_load")
    parser.add_argument("--only", default="", help="parts of their names")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--rival", help=argparse.SUPPRESS)
    given = parser.parse_args()
    given.count = len(paths_of(given.images))
    if given.rival:
        print(json.dumps(one(given.rival, given.images, given)), flush=True)
        return
    wanted = [each.strip().lower() for each in given.only.split(",")]
    results = {"device": torch.cuda.get_device_name(0), "workers": given.workers, "photographs": given.count}
    for name in RIVALS:
        if not any(each in name.lower() for each in wanted):
            continue
        command = [sys.executable, "-W", "ignore", *sys.argv, "--rival", name]
        done = subprocess.run(command, capture_output=True, text=True)
        last = (done.stdout.strip() or "{").splitlines()[-1]
        if last.startswith('{"epoch 0"'):  # some fail when their workers end
            results[name] = json.loads(last)
        else:
            results[name] = (
                "left out: " + (done.stderr.strip() or str(done.returncode)).splitlines()[-1][:300]
            )
            print(done.stderr[-1500:], file=sys.stderr)
        print(f"{name:26} {results[name]}", flush=True)
    if given.json:
        given.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
