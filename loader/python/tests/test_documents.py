"""Every block of Python that the documents show works as it stands, in the folders that tools/quickstart makes."""

import importlib.util
import re
from pathlib import Path

import numpy as np
import pytest

import shardloader as sl
from conftest import make_images

ROOT = Path(__file__).resolve().parents[3]
DOCUMENTS = ("README.md", "docs/python.md", "loader/python/README.md")


def blocks_of(document):
    return re.findall(r"^```python\n(.*?)^```", (ROOT / document).read_text(), re.DOTALL | re.MULTILINE)


@pytest.fixture
def quickstart(tmp_path, monkeypatch):
    """As tools/quickstart leaves it: photos of both parts, preset train and preset eval. It is the working folder."""
    for part, each in (("train", 8), ("val", 3)):
        make_images(tmp_path / "out" / "photos" / part, each=each)
        assert sl.convert(tmp_path / "out" / "photos" / part, tmp_path / "out" / part, preset={"train": "train", "val": "eval"}[part]).complete
    monkeypatch.chdir(tmp_path)
    return tmp_path / "out"


def needs_what_is_not_here(code):
    modules = re.findall(r"^(?:import|from) (\w+)", code, re.MULTILINE)
    return [name for name in modules if importlib.util.find_spec(name) is None]


def run_document(document):
    """Runs the blocks one after the other, with the host for the GPU and small numbers for large ones: the names they leave."""
    seen = {}
    for code in blocks_of(document):
        if needs_what_is_not_here(code):
            continue
        for there, small in (('"cuda:0"', '"cpu"'), ("batch_size=256", "batch_size=8"), ("range(90)", "range(2)")):
            code = code.replace(there, small)
        exec(compile(code, document, "exec"), seen)
    return seen


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_block_works_on_what_quickstart_makes(document, quickstart):
    if not (ROOT / document).exists():
        pytest.skip("not in a checkout")
    before = {path: path.stat().st_mtime_ns for path in quickstart.rglob("*.safetensors")}
    seen = run_document(document)
    assert isinstance(seen["train"], sl.Loader) and len(seen["train"]) == 3
    assert before == {path: path.stat().st_mtime_ns for path in quickstart.rglob("*.safetensors")}  # convert() had nothing to do


def test_the_loops_of_the_guide_deliver_what_a_torchvision_model_takes(quickstart):
    if not (ROOT / "docs/python.md").exists():
        pytest.skip("not in a checkout")
    seen = run_document("docs/python.md")
    for loader, rows in ((seen["train"], [8, 8, 8]), (seen["val"], [8, 1])):
        assert (loader.layout, loader.shape, loader.dtype) == ("nchw", (3, 224, 224), "float16")
        batches = [(np.asarray(images), np.asarray(labels)) for images, labels in loader]
        assert [len(labels) for _, labels in batches] == rows
        for images, labels in batches:
            assert images.shape == (len(labels), 3, 224, 224) and images.dtype == np.float16 and labels.dtype == np.int64
            assert np.isfinite(images).all() and 0.3 < images.astype(np.float32).std() < 3  # normalised
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    images, labels = next(iter(seen["train"]))
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 7, 4), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(8, 3))
    assert torch.nn.functional.cross_entropy(model(images.float()), labels).isfinite()


def test_every_option_is_explained():
    import inspect

    text = sl.Loader.__doc__
    for name in inspect.signature(sl.Loader).parameters:
        assert re.search(rf"\b{name}\b", text), name
    for name in sl.__all__:
        assert getattr(sl, name).__doc__ or not callable(getattr(sl, name)), name
