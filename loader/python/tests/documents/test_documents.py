"""Every block of Python that the documents show works as it stands,
in the folders that tools/quickstart makes."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import types
from pathlib import Path

import numpy as np
import pytest

import shardloader as sl
from conftest import make_images

ROOT = Path(__file__).resolve().parents[4]
DOCUMENTS = ("README.md", "docs/augment.md", "docs/python.md", "docs/sizes.md", "loader/python/README.md")
FRAMEWORKS = (
    "DDP under torchrun",
    "PyTorch Lightning",
    "transformers",
    "JAX",
    "CuPy",
)
# The host for the GPU and small numbers for large ones.
SMALLER = (
    ('"cuda:0"', '"cpu"'),
    ("batch_size=256", "batch_size=8"),
    ('"batch_size": 256', '"batch_size": 8'),
    ("range(90)", "range(2)"),
    ("epochs=90", "epochs=2"),
)


def section_of(document, heading):
    """Its text up to the next heading of the same level, which `heading` has too: "## Frameworks"."""
    level = heading.split()[0]
    text = (ROOT / document).read_text()
    found = re.search(rf"^{re.escape(heading)}\n(.*?)(?=^{level} |\Z)", text, re.DOTALL | re.MULTILINE)
    return found.group(1) if found else ""


def blocks_of(text):
    return re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def smaller(code):
    for there, small in SMALLER:
        code = code.replace(there, small)
    return code


@pytest.fixture
def quickstart(tmp_path, monkeypatch):
    """As tools/quickstart leaves it: photos of both parts, preset train and preset eval.
    It is the working folder."""
    for part, each in (("train", 8), ("val", 3)):
        for picture in make_images(tmp_path / "out" / "photos" / part, each=each).rglob("*.png"):
            picture.rename(picture.with_suffix(".jpg"))  # as they are called there
        assert sl.convert(
            tmp_path / "out" / "photos" / part,
            tmp_path / "out" / part,
            preset={"train": "train", "val": "eval"}[part],
        ).complete
    monkeypatch.chdir(tmp_path)
    return tmp_path / "out"


def needs_what_is_not_here(code):
    modules = re.findall(r"^(?:import|from) (\w+)", code, re.MULTILINE)
    return [name for name in modules if importlib.util.find_spec(name) is None]


def run_document(document):
    """Runs the blocks one after the other, without those of frameworks,
    which are programs of their own: the names they leave."""
    seen = {}
    for code in blocks_of(
        (ROOT / document).read_text().replace(section_of(document, "## Frameworks") or "\0", "")
    ):
        if needs_what_is_not_here(code):
            continue
        exec(compile(smaller(code), document, "exec"), seen)
    return seen


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_block_works_on_what_quickstart_makes(document, quickstart):
    if not (ROOT / document).exists():
        pytest.skip("not in a checkout")
    before = {path: path.stat().st_mtime_ns for path in quickstart.rglob("*.safetensors")}
    seen = run_document(document)
    assert isinstance(seen["train"], sl.Loader) and len(seen["train"]) == 3
    after = {path: path.stat().st_mtime_ns for path in before}
    assert before == after  # convert() had nothing to do for what quickstart has made


def test_the_blocks_about_rows_of_the_reader_work_with_rows(tmp_path, monkeypatch):
    """Those that are marked py and not python, because they use what a reader has."""
    if not (ROOT / "docs/python.md").exists():
        pytest.skip("not in a checkout")
    monkeypatch.chdir(tmp_path)
    (images,) = (path.parent for path in make_images(tmp_path / "photos", each=2).glob("ant/000.png"))
    files = sorted(images.iterdir())
    row = types.SimpleNamespace(name="a", jpeg=files[0].read_bytes(), boxes=[[1, 2, 3, 4]], emb=np.ones(768))
    section = section_of("docs/python.md", "### Writing a data set")
    (block,) = re.findall(r"^```py\n(.*?)^```", section, re.DOTALL | re.MULTILINE)
    (latents,) = re.findall(r"^ {6}(sl\.write\(.*\))", section, re.MULTILINE)
    with_writer, in_one_call = block.split("sl.write(")
    seen = {
        "sl": sl,
        "rows": [row],
        "pairs": [(path.name, path) for path in files],
        "latents": [("x", np.ones((4, 8, 8), np.float16))],
    }
    exec(compile(with_writer, "docs/python.md", "exec"), seen)
    data = sl.Dataset("out")
    assert (
        data.classes == ("ant", "bee")
        and data.column("caption")[0] == "an ant on a leaf"
        and data.fields[0]["boxes"].tolist() == [[1, 2, 3, 4]]
    )
    shutil.move("out", "first")
    for code in ("sl.write(" + in_one_call, latents):
        exec(compile(code, "docs/python.md", "exec"), seen)
    assert list(sl.Dataset("out/short").keys) == [path.name for path in files] and sl.Dataset(
        "out/latents"
    ).shape == (4, 8, 8)


def test_the_commands_of_the_package_work(quickstart):
    text = (ROOT / "docs/python.md").read_text() if (ROOT / "docs/python.md").exists() else ""
    commands = [
        line.split("#")[0].split() for line in re.findall(r"^(python -m shardloader .*)", text, re.MULTILINE)
    ]
    for _, *arguments in commands:
        if "--parquet" in arguments and needs_what_is_not_here("import pyarrow"):
            continue
        done = subprocess.run(
            [sys.executable, *arguments], capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == 0, done.stderr
    assert commands or not text


def test_the_loops_of_the_guide_deliver_what_a_torchvision_model_takes(quickstart):
    if not (ROOT / "docs/python.md").exists():
        pytest.skip("not in a checkout")
    seen = run_document("docs/python.md")
    for loader, rows in ((seen["train"], [8, 8, 8]), (seen["val"], [8, 1])):
        assert (loader.layout, loader.shape, loader.dtype) == ("nchw", (3, 224, 224), "float16")
        batches = [(np.asarray(images), np.asarray(labels)) for images, labels in loader]
        assert [len(labels) for _, labels in batches] == rows
        for images, labels in batches:
            assert (
                images.shape == (len(labels), 3, 224, 224)
                and images.dtype == np.float16
                and labels.dtype == np.int64
            )
            assert np.isfinite(images).all() and 0.3 < images.astype(np.float32).std() < 3  # normalised
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    images, labels = next(iter(seen["train"]))
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 7, 4), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(8, 3)
    )
    assert torch.nn.functional.cross_entropy(model(images.float()), labels).isfinite()


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_the_example_of_a_framework_is_a_program_that_runs(framework, quickstart):
    if not (ROOT / "docs/python.md").exists():
        pytest.skip("not in a checkout")
    (code,) = blocks_of(section_of("docs/python.md", f"### {framework}"))
    missing = needs_what_is_not_here(code)
    if missing:
        pytest.skip(f"{', '.join(missing)} not installed")
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    if framework == "CuPy":
        if sl.cuda_device_count() == 0:
            pytest.skip("CuPy's arrays are on a GPU, and there is none")
        code = code.replace("batch_size=256", "batch_size=8")
    else:
        environment["CUDA_VISIBLE_DEVICES"] = ""
        code = smaller(code).replace("crop=224", "crop=64")  # the network is the largest part of the time
    Path("program.py").write_text(code)
    command = [sys.executable, "program.py"]
    if framework == "DDP under torchrun":
        assert "torchrun --nproc-per-node 8 ddp.py" in code
        command[1:1] = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]


def test_every_option_is_explained():
    import inspect

    text = sl.Loader.__doc__
    for name in inspect.signature(sl.Loader).parameters:
        assert re.search(rf"\b{name}\b", text), name
    for name in sl.__all__:
        assert getattr(sl, name).__doc__ or not callable(getattr(sl, name)), name
