"""Every example runs on a CPU with tiny data, and does what it says."""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import shardloader as sl
from conftest import CLASSES

LEARNED = pytest.StashKey[dict]()
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
torch = pytest.importorskip("torch", reason="PyTorch is not installed")


def example(name, *arguments):
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / name), *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def torchvision():
    return pytest.importorskip("torchvision", reason="torchvision is not installed")


def test_the_comparison_of_accuracies_runs(tmp_path, monkeypatch):
    torchvision()
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    script = EXAMPLES.parents[2] / "bench/scripts/accuracy.py"
    if not script.exists():
        pytest.skip("not in a checkout")
    small = (
        "--count",
        200,
        "--side",
        16,
        "--epochs",
        2,
        "--seeds",
        2,
        "--batch-size",
        20,
        "--width",
        4,
        "--workers",
        0,
        "--device",
        "cpu",
    )
    done = subprocess.run(
        [sys.executable, str(script), *map(str, small), "--json", str(tmp_path / "a.json")],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr  # two short runs tell nothing of accuracies
    found = json.loads((tmp_path / "a.json").read_text())
    assert found["overlap"] == (done.returncode == 0) and list(found["ways"]) == [
        "torchvision",
        "ours",
        "none",
    ]
    for way in found["ways"].values():
        low, high = way["interval"]
        assert len(way["accuracies"]) == 2 and low <= way["mean"] <= high


def test_they_are_short_enough_to_read():
    for script in EXAMPLES.glob("*.py"):
        assert len(script.read_text().splitlines()) < 190, script


TRAIN = ("--epochs", 2, "--batch-size", 8, "--size", 32, "--print-every", 3, "--device", "cpu")


def test_training_that_was_stopped_ends_in_the_same_weights(folder, tmp_path):
    torchvision()
    whole = example("train_imagefolder.py", folder, *TRAIN, "--checkpoint", tmp_path / "whole.pt")
    assert re.search(r"epoch 0 step 3: loss \d\.\d+, \d+ samples/s, starved \d+\.\d\d %", whole)
    out = example(
        "train_imagefolder.py", folder, *TRAIN, "--checkpoint", tmp_path / "parts.pt", "--stop-after", 4
    )
    assert "epoch 0 step 4" in out and "epoch 1" not in out
    example("train_imagefolder.py", folder, *TRAIN, "--checkpoint", tmp_path / "parts.pt")
    first, second = (torch.load(tmp_path / name, weights_only=True) for name in ("whole.pt", "parts.pt"))
    assert first["loader"] == second["loader"] and first["loader"]["batch"] == 7
    for name, weight in first["model"].items():
        assert torch.equal(weight, second["model"][name]), name


SCENES = ("--count", 256, "--side", 48, "--epochs", 5, "--width", 8, "--batch-size", 16)


@pytest.mark.parametrize(
    "name, says, learned",
    [
        ("segmentation.py", r"mean IoU (0\.\d+)", lambda share: share > 0.75),
        ("detection.py", r"precision 0\.\d+, recall (0\.\d+)", lambda recall: recall > 0.7),
        ("detection.py", r"precision (0\.\d+), recall", lambda precision: precision > 0.7),
        ("depth.py", r"error (\d+\.\d+) m", lambda error: error < 1.2),  # that of the mean depth is 3.4
    ],
)
def test_targets_are_learned(name, says, learned, tmp_path_factory, request):
    """Each program once, in a minute of a slow CPU."""
    key = f"shapes/{name}"
    if key not in request.config.stash.setdefault(LEARNED, {}):
        request.config.stash[LEARNED][key] = example(
            name, *SCENES, "--out", tmp_path_factory.getbasetemp() / "shapes"
        )
    figures = [float(figure) for figure in re.findall(says, request.config.stash[LEARNED][key])]
    assert len(figures) == 5 and learned(figures[-1]) and not learned(figures[0]), figures


def test_training_under_torchrun(folder, tmp_path):
    torchvision()
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "torch.distributed.run",
            "--standalone",
            "--nproc-per-node",
            "2",
            str(EXAMPLES / "train_imagefolder.py"),
            str(folder),
            *map(str, TRAIN),
            "--stop-after",
            "3",
            "--checkpoint",
            str(tmp_path / "run.pt"),
        ],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("epoch 0 step 3") == 1  # one rank speaks
    state = torch.load(tmp_path / "run.pt", weights_only=True)["loader"]
    assert state["batch"] == 3 and " 16 2 " in state["state"]  # the global batch, the world size


AUGMENTED = ("--policy", "rand_augment", "--mixup", "--cutmix", "--label-smoothing")


@pytest.mark.parametrize("options", [(), AUGMENTED])
def test_training_from_the_folder_of_images(images, options):
    torchvision()
    out = example(
        "train_imagefolder.py",
        images,
        *TRAIN,
        "--loader",
        "imagefolder",
        "--workers",
        1,
        "--stop-after",
        3,
        *options,
    )
    assert "epoch 0 step 3" in out


def test_augmented_training_that_was_stopped_ends_in_the_same_weights(folder, tmp_path):
    torchvision()
    options = (*TRAIN, *AUGMENTED, "--repeated-augmentation", 2)
    example("train_imagefolder.py", folder, *options, "--checkpoint", tmp_path / "whole.pt")
    for stop in (("--stop-after", 3), ()):
        example("train_imagefolder.py", folder, *options, "--checkpoint", tmp_path / "parts.pt", *stop)
    example("train_imagefolder.py", folder, *TRAIN, "--checkpoint", tmp_path / "plain.pt")
    whole, parts, plain = (
        torch.load(tmp_path / name, weights_only=True)["model"]["fc.weight"]
        for name in ("whole.pt", "parts.pt", "plain.pt")
    )
    assert torch.equal(whole, parts) and not torch.equal(whole, plain)


@pytest.mark.parametrize(
    "script, options",
    [("simclr.py", ("--batch-size", 64)), ("dino.py", ("--batch-size", 32, "--small-views", 4))],
)
def test_features_learned_without_labels_tell_classes_apart(script, options, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # threads of torch wait for each other where others are busy
    out = example(script, "--count", 800, "--epochs", 8, "--device", "cpu", *options)
    losses = [float(loss) for loss in re.findall(r"^epoch \d+: loss (\d+\.\d+)$", out, re.MULTILINE)]
    before, after = (
        float(share) for share in re.findall(r"^(?:before|after): (\d+\.\d) %", out, re.MULTILINE)
    )
    assert len(losses) == 8 and losses[-1] < losses[0] - 0.1, out
    assert after > before + 3 and after > 2 * 100 / 8, out  # 8 classes


@pytest.mark.parametrize("script", ["simclr.py", "dino.py"])
def test_features_of_a_given_data_set(folder, script):
    assert "after: " in example(
        script, "--data", folder, "--epochs", 1, "--batch-size", 20, "--device", "cpu"
    )


@pytest.mark.parametrize("bench", [False, True])
def test_pipelining_measures_every_way(images, folder, make, tmp_path, bench):
    torchvision()
    more = (
        ("--bench", "--batch-sizes", "8,4", "--seconds", 0.2, "--packed", make(codec="packed"))
        if bench
        else ("--batch-size", 8)
    )
    out = example(
        "pipelining.py",
        folder,
        "--images",
        images,
        "--workers",
        1,
        "--steps",
        2,
        "--device",
        "cpu",
        "--json",
        tmp_path / "r.json",
        *more,
    )
    results = json.loads((tmp_path / "r.json").read_text())
    assert len(results) == (18 if bench else 6) and "8 shardloader" in results and "8 numpy.memmap" in results
    for load, transfer, train, total, rate in results.values():
        assert rate > 0 and (bench or min(load, transfer) >= 0 and train > 0 and total > 0)
    assert not bench or re.search(
        r"^shardloader is .* times DataLoader decoding, 0 workers, .* times numpy.memmap$", out, re.MULTILINE
    )
    assert out.count("#\n") == 0 and out.count("# ") == len(results)


def test_every_way_delivers_the_same_samples(folder):
    sys.path.insert(0, str(EXAMPLES))
    try:
        import feeding
    finally:
        sys.path.pop(0)
    expected = sorted(image.tobytes() for image, _ in sl.Dataset(folder))
    for batches in (
        feeding.data_loader(feeding.Samples(folder), 10, 0),
        feeding.memmapped(folder, 10),
        feeding.sharded(folder, 10, torch.device("cpu")),
        feeding.prefetched(feeding.memmapped(folder, 10), torch.device("cpu")),
    ):
        seen = [image.numpy().tobytes() for _ in range(6) for image in next(batches)[0]]
        assert sorted(seen) == expected


def test_cifar_stand_in(tmp_path):
    out = example(
        "train_cifar.py", "--out", tmp_path / "data", "--count", 400, "--epochs", 2, "--batch-sizes", "16,32"
    )
    assert len(re.findall(r"^cpu +(16|32) +[01] .*%$", out, re.MULTILINE)) >= 4
    assert (
        sl.Dataset(tmp_path / "data").shape == (32, 32, 3)
        and len(sl.Dataset(tmp_path / "data").classes) == 10
    )


def test_cifar_files(tmp_path):
    random = np.random.default_rng(0)
    records = np.concatenate(
        [np.arange(100, dtype=np.uint8)[:, None] % 10, random.integers(0, 256, (100, 3072), np.uint8)], 1
    )
    (tmp_path / "cifar").mkdir()
    records.tofile(tmp_path / "cifar" / "data_batch_1.bin")
    example(
        "train_cifar.py", tmp_path / "cifar", "--out", tmp_path / "data", "--epochs", 1, "--batch-sizes", "50"
    )
    data = sl.Dataset(tmp_path / "data")
    image, label = data[data.keys[:].index("frog/000006.png")]
    assert data.classes[label] == "frog"
    np.testing.assert_array_equal(image.transpose(2, 0, 1).ravel(), records[6, 1:])


def test_inference(folder):
    torchvision()
    out = example(
        "inference.py",
        folder,
        "--batch-sizes",
        "4",
        "--dtypes",
        "float32,bfloat16",
        "--ways",
        "eager,TorchScript,TensorRT",
        "--batches",
        2,
        "--device",
        "cpu",
    )
    assert re.search(r"4  float32   eager +\d+ +100\.00 %", out) and re.search(
        r"4  bfloat16  eager +\d+ +\d+\.\d\d %", out
    )
    assert re.search(r"TensorRT +not here", out)


def test_profile_step(folder, tmp_path):
    out = example(
        "profile_step.py",
        folder,
        "--batch-size",
        4,
        "--steps",
        2,
        "--device",
        "cpu",
        "--trace",
        tmp_path / "trace.json",
    )
    assert "aten::convolution" in out and "transport mapped" in out
    names = {event.get("name") for event in json.loads((tmp_path / "trace.json").read_text())["traceEvents"]}
    assert {"load", "step"} <= names


def test_losses_are_those_of_the_pillow_pipeline(images, make):
    """Without augmentation, training from shards is training from the files,
    for the same samples in the same order."""
    image_module = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    loader = sl.Loader(make(preset="eval", dtype="float32"), batch_size=12, framework="torch", seed=1)
    keys, mean, std = loader.data.keys, torch.tensor(loader.data.mean), torch.tensor(loader.data.std)

    def by_pillow(batch):
        pictures = []
        for i in batch.ids:
            picture = image_module.open(images / keys[i]).convert("RGB")
            width, height = picture.size  # Resize(32), CenterCrop(32)
            short = min(width, height)
            picture = picture.resize(
                (int(32 * width / short), int(32 * height / short)), image_module.BILINEAR
            )
            left, top = round((picture.width - 32) / 2), round((picture.height - 32) / 2)
            pixels = np.array(picture.crop((left, top, left + 32, top + 32)))
            pictures.append(((torch.from_numpy(pixels).float() / 255 - mean) / std).permute(2, 0, 1))
        return torch.stack(pictures), torch.tensor([CLASSES.index(keys[i].split("/")[0]) for i in batch.ids])

    def losses(source):
        torch.manual_seed(0)
        net = torch.nn.Sequential(
            torch.nn.Conv2d(3, 8, 3, 2), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(8 * 15 * 15, 3)
        )
        optimizer = torch.optim.SGD(net.parameters(), 0.01, momentum=0.9)
        found = []
        for epoch in range(3):
            for batch in loader.epoch(epoch):
                pictures, labels = source(batch)
                loss = torch.nn.functional.cross_entropy(net(pictures), labels)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                found.append(loss.item())
        return found

    ours, theirs = losses(lambda batch: batch), losses(by_pillow)
    assert len(ours) == 15 and ours[-1] < ours[0]
    np.testing.assert_allclose(ours, theirs, rtol=1e-4)
