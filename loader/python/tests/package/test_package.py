"""The package as it is installed: its extension, its module, its types,
and what is in the process beside it."""

import importlib.metadata
import io
import json
import os
import pydoc
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import shardloader as sl

PACKAGE = Path(sl.__file__).parent
EXTENSION = Path(sl._core.__file__)


def run_module(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "shardloader", *map(str, arguments)], capture_output=True, text=True
    )


def test_output_that_cannot_be_written_is_one_line(folder):
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "shardloader", "info", str(folder)],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert done.returncode == 2 and done.stderr.splitlines() == [
        "error: cannot write to standard output: No space left on device; the output is incomplete"
    ]
    gone, write = os.pipe()
    os.close(gone)
    done = subprocess.run(
        [sys.executable, "-m", "shardloader", "info", str(folder)], stdout=write, stderr=subprocess.PIPE
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (141, b"")


def test_the_extension_has_the_limited_api_where_its_wheel_says_so():
    try:
        tags = importlib.metadata.distribution("shardloader").read_text("WHEEL")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("not installed by pip")
    assert EXTENSION.name.endswith(".abi3.so") == ("-abi3-" in tags) == (sys.version_info >= (3, 12))


def test_names():
    """What is written by hand is at the top; what is only received is in shardloader.types. New names go to
    one of the two lists, and after 0.1 none leaves them."""
    assert sorted(sl.__all__) == sl.__all__ and sorted(sl.types.__all__) == sl.types.__all__
    errors = {
        name
        for name in sl.__all__
        if isinstance(getattr(sl, name), type) and issubclass(getattr(sl, name), Exception)
    }
    assert errors == {
        "CancelledError",
        "ConversionWarning",
        "CorruptError",
        "InvalidArgumentError",
        "IoError",
        "NotFoundError",
        "ResourceError",
        "ShardError",
        "UnsupportedError",
    }
    assert set(sl.__all__) - errors == {
        *("Augment", "Boxes", "Dataset", "ImageField", "Keypoints", "Loader", "MemoryOptions", "Pixels"),
        *("Ragged", "RemoteOptions", "Sampling", "Source", "Text", "Writer"),
        *("buckets", "concat", "convert", "convert_shard", "cuda_device_count", "decode_jpeg", "doctor"),
        *("finish", "has_cuda", "mix", "ops", "plan", "to_parquet", "types", "write"),
    }
    assert set(sl.types.__all__) == {
        *(
            "Batch",
            "CacheProgress",
            "Columns",
            "Conversion",
            "DecodedImages",
            "Diagnosis",
            "Epoch",
            "Field",
            "Fields",
            "Finding",
        ),
        *(
            "Geometry",
            "ImageCache",
            "Instruction",
            "Keys",
            "Mix",
            "Operation",
            "Plan",
            "Progress",
            "RaggedArray",
        ),
        *("ShardResult", "Sheet", "Stats", "Tensor"),
    }


def test_a_name_that_is_in_types_says_so():
    with pytest.raises(AttributeError, match="no attribute 'Batch': it is shardloader.types.Batch"):
        sl.Batch  # noqa: B018
    with pytest.raises(AttributeError, match="no attribute 'Bach'$"):
        sl.Bach  # noqa: B018


def test_what_is_returned_is_of_the_types(folder):
    data = sl.Dataset(folder)
    loader = sl.Loader(data, 8, framework="numpy")
    epoch = loader.epoch(0)
    seen = []
    data.where(lambda columns: seen.append(columns) or columns["labels"] == 0)
    for value, name in (
        (next(epoch), "Batch"),
        (epoch, "Epoch"),
        (loader.stats(), "Stats"),
        (loader.geometry(0), "Geometry"),
        (data.keys, "Keys"),
        (seen[0], "Columns"),
        (sl.mix({str(folder): 1.0}), "Mix"),
        (sl.ops.posterize(4), "Operation"),
        (sl.Augment(grayscale=1).draw((8, 8, 3), 0)[0], "Instruction"),
    ):
        assert isinstance(value, getattr(sl.types, name)), name


@pytest.mark.skipif(shutil.which("nm") is None, reason="no nm here (binutils)")
def test_the_extension_exports_one_symbol():
    lines = subprocess.run(
        ["nm", "-D", "--defined-only", EXTENSION], check=True, capture_output=True, text=True
    ).stdout.splitlines()
    exported = [line.split()[-1] for line in lines if line.split()[-2].isupper()]
    assert exported == ["PyInit__core"]


def test_the_import_brings_neither_numpy_nor_a_framework():
    code = (
        "import sys, shardloader; print([name for name in ('numpy', 'torch', 'jax', 'cupy', "
        "'PIL') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_pillow_and_we_decode_the_same_jpegs_in_one_process(tmp_path):
    # Pillow has a libjpeg of its own. Ours must neither use that nor be used by it:
    # both orders of the first call.
    pytest.importorskip("PIL", reason="Pillow is not installed")
    from PIL import Image

    (tmp_path / "a").mkdir()
    ramp = np.add.outer(np.arange(64) * 2, np.arange(80))[..., None] + np.array([0, 20, 40])
    Image.fromarray(ramp.astype(np.uint8)).save(tmp_path / "a" / "ramp.jpg", quality=95, subsampling=0)
    program = """
import sys, numpy as np
first, images = sys.argv[1:]
def pillow():
    from PIL import Image
    return np.asarray(Image.open(images + "/a/ramp.jpg").convert("RGB").crop((8, 0, 72, 64)))
def ours():
    import shardloader as sl
    sl.convert(images, images + "-" + first, preset="train", resize=64, crop=64)
    return sl.Dataset(images + "-" + first)[0][0]
a, b = (pillow(), ours()) if first == "pillow" else (ours(), pillow())
again = pillow()
assert np.abs(a.astype(int) - b).max() <= 2, np.abs(a.astype(int) - b).max()
assert np.abs(again.astype(int) - a).max() <= 2
"""
    for first in ("pillow", "ours"):
        done = subprocess.run(
            [sys.executable, "-c", program, first, tmp_path], capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr


def test_a_forked_child_can_import_the_package_and_load(folder):
    # Nothing of it is in the parent yet.
    program = """
import os, sys
child = os.fork()
if child == 0:
    import shardloader as sl
    loader = sl.Loader(sys.argv[1], batch_size=10, device="cpu", drop_last=False)
    rows = sum(len(batch) and len(batch.labels) for batch in loader.epoch(0))
    os._exit(0 if rows == 60 else 1)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    assert subprocess.run([sys.executable, "-c", program, folder]).returncode == 0


def test_the_package_writes_nothing_beside_itself(tmp_path, folder):
    # A site-packages that is read-only: for root too, everything that would be written shows.
    copy = tmp_path / "site" / "shardloader"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__", "lib", "include"))
    before = sorted(copy.rglob("*"))
    for path in [*before, copy, copy.parent]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    program = (
        "import sys, shardloader as sl; assert sl.__file__.startswith(sys.argv[2]); "
        "next(iter(sl.Loader(sys.argv[1], batch_size=4, device='cpu')))"
    )
    environment = {**os.environ, "PYTHONPATH": str(copy.parent), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", program, folder, str(copy)], capture_output=True, text=True, env=environment
    )
    for path in [copy.parent, copy, *before]:
        path.chmod(0o755)
    assert done.returncode == 0, done.stderr
    assert sorted(copy.rglob("*")) == before


def test_the_module_prints_what_a_data_set_is(folder):
    done = run_module("info", folder)
    assert done.returncode == 0, done.stderr
    facts = dict(line.split("  ", 1) for line in done.stdout.splitlines())
    assert facts["data set"].strip() == str(folder)
    assert facts["samples"].strip() == "60 of 60 inputs, 0 rejects"
    assert facts["shards"].strip().startswith("8, ")
    assert facts["sample"].strip() == "uint8 [32, 32, 3] nhwc, codec none"
    assert facts["labels"].strip() == "3 classes: ant, bee, cow"
    whole = json.loads(run_module("info", folder, "--json").stdout)
    assert whole["samples"] == 60 and whole["classes"] == ["ant", "bee", "cow"] and len(whole["shards"]) == 8


def test_the_module_says_in_one_line_what_is_wrong(tmp_path):
    done = run_module("info", tmp_path / "nothing")
    assert done.returncode == 2 and done.stdout == ""
    assert (
        done.stderr.startswith("error: ") and "nothing" in done.stderr and len(done.stderr.splitlines()) == 1
    )
    assert run_module().returncode == 2


def test_help_renders_every_public_name():
    text = pydoc.render_doc(sl, renderer=pydoc.plaintext)
    for name in sl.__all__:
        assert name in text
        page = io.StringIO()
        pydoc.Helper(output=page).help(getattr(sl, name))
        assert len(page.getvalue()) > 40, name
    for name in ("Dataset", "Loader", "convert"):
        assert (getattr(sl, name).__doc__ or "").strip(), name
    for name in sl.types.__all__:
        assert (getattr(sl.types, name).__doc__ or "").strip(), name


TYPED = """
from typing import Any
import numpy as np
import shardloader as sl

def count(path: str) -> int:
    data: sl.Dataset = sl.Dataset(path)
    image, label = data[0]
    values: "np.ndarray[Any, Any]" = image
    loader: sl.Loader = sl.Loader(
        data, batch_size=2, device="cpu", random_resized_crop=(24, 24), flip=True, dtype="float32"
    )
    rows: int = 0
    for epoch in range(2):
        for images, labels in loader.epoch(epoch):
            rows += len(labels)
    state: dict[str, Any] = loader.state_dict()
    loader.load_state_dict(state)
    made: sl.types.Conversion = sl.convert("in", "out", preset="train")
    complete: bool = made.complete
    return rows + values.size + len(data.keys) if complete and not sl.has_cuda else 0
"""


def mypy(*arguments, folder):
    pytest.importorskip("mypy", reason="mypy is not installed")
    environment = dict(os.environ)
    if (
        PACKAGE.parent.name != "site-packages"
    ):  # mypy finds installed packages itself, and refuses their folder
        environment["MYPYPATH"] = str(PACKAGE.parent)
    settings = (
        Path(__file__).resolve().parents[2] / "pyproject.toml"
    )  # strict, and which packages may be missing
    return subprocess.run(
        [
            sys.executable,
            "-m",
            "mypy",
            "--strict",
            "--config-file",
            settings,
            "--cache-dir",
            os.devnull,
            *map(str, arguments),
        ],
        capture_output=True,
        text=True,
        cwd=folder,
        env=environment,
    )


def test_mypy_takes_a_program_in_strict_mode_and_sees_its_mistakes(tmp_path):
    program = tmp_path / "typed.py"
    program.write_text(TYPED)
    done = mypy(program, folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    program.write_text(TYPED.replace("batch_size=2", 'batch_size="2"').replace("rows: int", "rows: str"))
    wrong = mypy(program, folder=tmp_path)
    assert (
        wrong.returncode == 1 and "batch_size" in wrong.stdout and 'variable has type "str"' in wrong.stdout
    ), wrong.stdout


def test_mypy_takes_the_package_in_strict_mode(tmp_path):
    done = mypy("-p", "shardloader", folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
