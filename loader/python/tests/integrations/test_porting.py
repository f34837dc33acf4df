"""docs/porting.md: both scripts of each library run as they stand there, on small photographs,
and differ in what the page says."""

import importlib.util
import io
import re
import tarfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import shardloader as sl

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
Image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")

PAGE = Path(__file__).resolve().parents[4] / "docs" / "porting.md"
if not PAGE.exists():
    pytest.skip("not in a checkout", allow_module_level=True)

CLASSES = ("ant", "bee", "cow")
EACH = {"train": 20, "val": 5}
SAMPLES = EACH["train"] * len(CLASSES)
# The host for the GPU, small numbers for large ones, this process for many.
SMALLER = (
    ('"cuda:0"', '"cpu"'),
    ('device="mixed"', 'device="cpu"'),
    ("device_id=0", "device_id=None"),
    ("num_workers=16, pin_memory=True", "num_workers=0"),
    ("dataloader_num_workers=16", "dataloader_num_workers=0"),
    ("num_workers=16, device", "num_workers=0, persistent_workers=False, device"),
    ("num_workers=16", "num_workers=1"),
    ("num_threads=16", "num_threads=2"),
    ("max_epochs=90", "max_epochs=2, accelerator='cpu', logger=False, enable_checkpointing=False"),
    ("num_train_epochs=90", "num_train_epochs=2, use_cpu=True, report_to=[]"),
    ("range(90)", "range(2)"),
    ("Resize(256)", "Resize(40)"),
    ("shortest=256", "shortest=40"),
)


def sections():
    """{"timm": (before, after)}"""
    found = {}
    for part in re.split(r"^## ", PAGE.read_text(), flags=re.MULTILINE)[1:]:
        blocks = re.findall(r"^(\w+):\n\n```python\n(.*?)^```", part, re.DOTALL | re.MULTILINE)
        if blocks:
            assert [name for name, _ in blocks] == ["Before", "After"], part.splitlines()[0]
            found[part.splitlines()[0]] = tuple(code for _, code in blocks)
    return found


def smaller(code):
    for there, small in SMALLER:
        code = code.replace(there, small)
    return re.sub(r"\b256\b", "8", re.sub(r"(?<!\.)\b224\b", "32", code))  # not std 0.224


def photograph(label, number):
    """Noise of any size in the colour of its class, with a bright part."""
    draws = np.random.default_rng(100 * label + number)
    height, width = draws.integers(40, 90, 2)
    pixels = draws.normal(110, 25, (height, width, 3))
    pixels[..., label] += 60
    pixels[: height // 2] += 30
    return Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8))


@pytest.fixture(scope="session")
def photographs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("porting")
    for part, each in EACH.items():
        for label, name in enumerate(CLASSES):
            (folder / "photos" / part / name).mkdir(parents=True)
            for number in range(each):
                path = folder / "photos" / part / name / f"{number:03}.jpg"
                photograph(label, number + (50 if part == "val" else 0)).save(path, quality=92)
    files = sorted((folder / "photos" / "train").glob("*/*.jpg"), key=lambda path: path.name)
    (folder / "archives").mkdir()
    for archive in range(4):
        with tarfile.open(folder / "archives" / f"train-{archive:06}.tar", "w") as tar:
            for number, path in enumerate(files[archive::4]):
                label = str(CLASSES.index(path.parent.name)).encode()
                for ending, data in ((".jpg", path.read_bytes()), (".cls", label)):
                    member = tarfile.TarInfo(f"{archive}-{number:05}{ending}")
                    member.size = len(data)
                    tar.addfile(member, io.BytesIO(data))
    return folder


class Network(torch.nn.Sequential):
    def __init__(self):
        super().__init__(
            torch.nn.Conv2d(3, 8, 5, 2),
            torch.nn.ReLU(),
            torch.nn.AdaptiveAvgPool2d(1),
            torch.nn.Flatten(),
            torch.nn.Linear(8, len(CLASSES)),
        )


class Watched:
    """What the page's scripts expect to be there, and what they hand to it."""

    def __init__(self):
        torch.manual_seed(0)
        self.batches, self.scored = [], []
        self.net = Network()
        self.net.register_forward_pre_hook(lambda _, given: self.keep(given[0], None))
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)

    def keep(self, images, labels):
        """Copies: a loader lends few batches at once."""
        self.batches.append((images.clone(), None if labels is None else labels.clone()))

    def step(self, images, labels):
        self.optimizer.zero_grad()
        torch.nn.functional.cross_entropy(self.net(images), labels).backward()
        self.optimizer.step()
        self.batches.pop()
        self.keep(images, labels)

    @torch.no_grad()
    def score(self, images, labels):
        right = self.net(images).argmax(1) == labels
        self.batches.pop()
        self.scored.append((images.clone(), labels, right))

    def Model(self):
        import lightning.pytorch as lightning

        watched = self

        class Model(lightning.LightningModule):
            def __init__(self):
                super().__init__()
                self.net = Network()

            def training_step(self, batch, index):
                images, labels = batch
                watched.keep(images, labels)
                return torch.nn.functional.cross_entropy(self.net(images), labels)

            def configure_optimizers(self):
                return torch.optim.SGD(self.parameters(), lr=0.1)

        return Model()

    def forward_of(self, model):
        """The model of transformers, which the script makes itself."""
        forward = model.forward

        def watching(own, pixel_values=None, labels=None, **others):
            self.keep(pixel_values, labels)
            return forward(own, pixel_values=pixel_values, labels=labels, **others)

        return watching

    def run(self, code):
        missing = {
            name
            for name in re.findall(r"^(?:import|from) (\w+)", code, re.MULTILINE)
            if importlib.util.find_spec(name) is None
        }
        if missing or ("nvidia.dali" in code and importlib.util.find_spec("nvidia.dali") is None):
            pytest.skip(f"{', '.join(missing) or 'nvidia.dali'} not installed")
        seen = {"net": self.net, "step": self.step, "score": self.score, "Model": self.Model}
        exec(compile(smaller(code), "docs/porting.md", "exec"), seen)
        return SimpleNamespace(**seen)


@pytest.fixture
def run(photographs, tmp_path, monkeypatch):
    """Runs a script in a folder that has photos/ and archives/: (its names, what it handed over)."""
    for name in ("photos", "archives"):
        (tmp_path / name).symlink_to(photographs / name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")

    def run(code):
        watched = Watched()
        if "ResNetForImageClassification" in code:
            transformers = pytest.importorskip("transformers", reason="transformers is not installed")
            model = transformers.ResNetForImageClassification
            monkeypatch.setattr(model, "forward", watched.forward_of(model))
            small = {"embedding_size": 8, "hidden_sizes": [8, 8], "depths": [1, 1]}
            code = code.replace("ResNetConfig(", f"ResNetConfig(**{small}, ")
        return watched.run(code), watched

    return run


# Batches of an epoch before, its memory format (of images), and its labels.
BEFORE = {
    "torchvision ImageFolder": ([7, 7], "contiguous"),
    "timm": ([7, 7], "contiguous"),
    "Lightning": ([7, 7], "contiguous"),
    "Accelerate": ([8, 8], "contiguous"),
    "Trainer of transformers": ([8, 8], "contiguous"),
    "FFCV": ([7, 7], "channels_last"),
    "WebDataset": ([8, 8], "contiguous"),
    "DALI": ([8, 7], "contiguous"),  # epoch 0 takes four samples of epoch 1
}


def check(watched, batches, memory, rows):
    assert len(watched.batches) == sum(batches)
    for images, labels in watched.batches:
        assert images.dtype == torch.float32 and images.shape[1:] == (3, 32, 32)
        assert images.is_contiguous() == (memory == "contiguous")
        assert memory == "contiguous" or images.is_contiguous(memory_format=torch.channels_last)
        assert labels is None or (labels.dtype == torch.int64 and labels.shape == images.shape[:1])
        assert 0.1 < images.std() < 3 and images.min() < 0  # normalised
    assert sum(len(images) for images, _ in watched.batches) == rows


def test_the_page_has_a_pair_for_each_library_and_a_row_of_what_differs():
    assert set(sections()) == set(BEFORE)
    rows = re.findall(r"^\| ([^|]+) \|(?:[^|]+\|){5}$", PAGE.read_text(), re.MULTILINE)
    assert len(rows) == len(BEFORE) + 2  # the line below the heading, and shardloader


@pytest.mark.parametrize("library", BEFORE)
def test_before_runs_and_is_as_the_page_says(library, run):
    names, watched = run(sections()[library][0])
    batches, memory = BEFORE[library]
    check(watched, batches, memory, 112 if batches == [7, 7] else 120)
    if library == "WebDataset":  # one batch of each of its two workers is not full
        rows = [len(images) for images, _ in watched.batches]
        assert sorted(rows[:8]) == [6, 6] + [8] * 6
    if library == "DALI":
        (batch,) = next(iter(names.train))
        assert batch["labels"].dtype == torch.int32 and batch["labels"].shape == (8, 1)


@pytest.mark.parametrize("library", BEFORE)
def test_after_runs_and_is_as_the_page_says(library, run):
    names, watched = run(sections()[library][1])
    check(watched, [7, 7], "channels_last" if library == "FFCV" else "contiguous", 112)
    if library == "torchvision ImageFolder":  # nothing is converted
        data = names.train.data
        assert len(data) == SAMPLES and not Path("shards").exists()
    else:
        data = sl.Dataset("shards/train")
        assert len(data) == SAMPLES
        assert (data.codec, data.shape[:2]) == ("jpeg", (0, 0)) or data.codec == "jpeg:95"
    assert data.classes == (() if library == "WebDataset" else CLASSES)
    assert np.bincount(data.labels).tolist() == [EACH["train"]] * len(CLASSES)
    if library == "DALI":  # the files as they are
        assert data[0][0].shape == np.asarray(Image.open(f"photos/train/{data.keys[0]}")).shape


def test_a_training_with_imagefolder_and_its_port_give_the_same(run):
    before, after = sections()["torchvision ImageFolder"]
    pytest.importorskip("torchvision", reason="torchvision is not installed")
    longer = ("range(90)", "range(5)")
    results = [run(code.replace(*longer))[1].scored for code in (before, after)]
    for (images, labels, _), (ours, our_labels, _) in zip(*results, strict=True):
        assert torch.equal(labels, our_labels) and (images - ours).abs().max() < 1e-6
    for scored in results:
        right = torch.cat([row for _, _, row in scored])
        assert len(right) == EACH["val"] * len(CLASSES) and right.float().mean() > 0.8


def test_a_word_as_label_of_a_webdataset_is_a_reject(tmp_path):
    with tarfile.open(tmp_path / "a.tar", "w") as tar:
        for number, label in enumerate((b"0", b"1", b"ant")):
            picture = io.BytesIO()
            photograph(0, number).save(picture, "jpeg")
            for ending, data in ((".jpg", picture.getvalue()), (".cls", label)):
                member = tarfile.TarInfo(f"{number}{ending}")
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))
    with pytest.warns(sl.ConversionWarning, match="has no label: its .cls member is not"):
        done = sl.convert(tmp_path / "a.tar", tmp_path / "out", size="original", codec="jpeg")
    assert done.samples == 2


def test_the_port_of_ffcv_copies_nothing_for_channels_last(run):
    names, _ = run(sections()["FFCV"][1])
    images, _ = next(iter(names.train))
    assert images.permute(0, 3, 1, 2).data_ptr() == images.data_ptr()


@pytest.mark.parametrize(
    "options", ({"auto_augment": "rand-m9-mstd0.5"}, {"re_prob": 0.25}, {"interpolation": "bicubic"})
)
def test_what_the_page_says_of_timm_is_refused_by_name(options):
    data = pytest.importorskip("timm.data", reason="timm is not installed")
    with pytest.raises(sl.InvalidArgumentError, match="RandAugment|RandomErasing|interpolation"):
        sl.Augment.from_torchvision(
            data.create_transform(24, **{"is_training": True, "interpolation": "bilinear", **options})
        )


def test_the_calls_in_sentences_work(run):
    run(sections()["DALI"][1])
    (policy,) = re.findall(r"`(sl\.Augment\.rand_augment\([^`]*\))`", PAGE.read_text())
    augment = eval(policy, {"sl": sl})
    options = re.findall(r"`((?:window_shards|repeats|tail|drop_last|layout)=[^`]+)`", PAGE.read_text())
    assert len(options) > 6
    for option in options:
        loader = eval(
            f'sl.Loader("shards/train", batch_size=6, augment=augment, {option})',
            {"sl": sl, "augment": augment},
        )
        images, _ = next(iter(loader))
        assert tuple(images.shape) == ((6, 224, 224, 3) if "nhwc" in option else (6, 3, 224, 224))
