"""llms.txt: its program runs, and links, names and options in it exist."""

import ast
import builtins
import inspect
import re
from pathlib import Path

import numpy as np
import pytest

import shardloader as sl
from conftest import make_images
from test_documents import smaller

ROOT = Path(__file__).resolve().parents[4]
PAGE = ROOT / "llms.txt"
if not PAGE.exists():
    pytest.skip("not in a checkout", allow_module_level=True)
TEXT = PAGE.read_text()
(PROGRAM,) = re.findall(r"^```python\n(.*?)^```", TEXT, re.DOTALL | re.MULTILINE)
BEFORE_AND_AFTER = re.findall(r"^\| (.+?) \| (.+) \|$", TEXT, re.MULTILINE)[2:]
# What is ours: all but the left column of the table.
OURS = TEXT
for left, _ in BEFORE_AND_AFTER:
    OURS = OURS.replace(f"| {left} |", "| |")
CODE = re.findall(r"`([^`\n]+)`", OURS) + PROGRAM.splitlines()
# Variables of the page: the class whose members they have.
KINDS = {
    "data": sl.Dataset,
    "batch": sl.types.Batch,
    "train": sl.Loader,
    "loader": sl.Loader,
    "writer": sl.Writer,
    "images": None,  # torch's
    "self": None,
    "accelerator": None,
    "strategy": None,
}
OPTIONS = {
    name for of in (sl.Loader, sl.convert, sl.Augment, sl.Writer) for name in inspect.signature(of).parameters
}


def named(path):
    """sl.Augment.from_torchvision"""
    found = sl
    for name in path.split(".")[1:]:
        found = getattr(found, name)
    return found


def test_it_has_the_form_of_llms_txt():
    lines = TEXT.splitlines()
    assert lines[0].startswith("# ") and lines[2].startswith("> ")
    assert [line for line in lines if line.startswith("## ")][-1] == "## Optional"
    assert len(TEXT) < 10_000


def test_every_link_leads_to_a_file():
    links = re.findall(r"\]\(([^)]+)\)", TEXT)
    assert len(links) > 10
    for link in links:
        assert (ROOT / link).is_file(), link


def test_the_program_runs(tmp_path, monkeypatch):
    for part, each in (("train", 8), ("val", 3)):
        make_images(tmp_path / "photos" / part, each=each)
    monkeypatch.chdir(tmp_path)
    seen = {}
    exec(compile(smaller(PROGRAM), "llms.txt", "exec"), seen)
    images, labels = next(iter(seen["train"]))
    assert np.asarray(images).shape == (8, 3, 224, 224) and np.asarray(images).dtype == np.float32
    assert np.asarray(labels).dtype == np.int64 and len(np.asarray(seen["labels"])) == 1


def test_names_exist():
    names = set(re.findall(r"\bsl(?:\.\w+)+", OURS))
    assert len(names) > 8
    for name in names:
        assert named(name) is not None
    (trainer,) = re.findall(r"shardloader\.transformers\.(\w+)", OURS)
    module = ast.parse((Path(sl.__file__).parent / "transformers.py").read_text())
    assert trainer in {node.name for node in module.body if isinstance(node, ast.ClassDef)}
    for error in re.findall(r"\b(\w+(?:Error|Warning))\b", OURS):
        assert hasattr(sl, error) or hasattr(builtins, error), error


def test_members_exist():
    members = {found for line in CODE for found in re.findall(r"\b([a-z]+)\.([a-z]\w*)", line)}
    members = {
        (of, name) for of, name in members if of not in ("sl", "shardloader", "torch", "docs", "rejects")
    }
    assert len(members) > 10
    for of, name in members:
        kind = KINDS[of]
        assert kind is None or hasattr(kind, name) or f"self.{name}" in inspect.getsource(kind), (of, name)


def test_options_exist():
    options = {name for line in CODE for name in re.findall(r"\b([a-z]\w*)=", line)}
    assert len(options) > 20
    assert options - OPTIONS == {"train_dataset", "is_training", "interpolation"}  # of a Trainer, of timm
    for line in CODE:
        for node in (node for node in _expressions(line) if isinstance(node, ast.Call)):
            text = ast.unparse(node.func)
            if text.startswith("sl."):
                parameters = inspect.signature(named(text)).parameters
                taken = set(parameters) | (OPTIONS if "more" in parameters else set())
                assert {word.arg for word in node.keywords} <= taken, line


def _expressions(line):
    """All nodes of the code that begins with the line's first call of ours, if it is whole there."""
    start = line.find("sl.")
    for end in range(len(line), start, -1) if start >= 0 else ():
        try:
            return list(ast.walk(ast.parse(line[start:end], mode="eval")))
        except SyntaxError:
            continue
    return []


def test_options_of_the_program_exist():
    (command,) = re.findall(r"`(shardify [^`]+)`", TEXT)
    table = (ROOT / "docs/shardify.md").read_text()  # compared with --help by tests/programs/manual_pages.py
    for option in re.findall(r"--[\w-]+", command):
        assert re.search(rf"`[^`]*{option}\b", table), option


def test_each_library_of_the_page_about_porting_is_there():
    headings = re.findall(r"^## (.+)", (ROOT / "docs/porting.md").read_text(), re.MULTILINE)
    assert len(headings) == 9
    left = " ".join(left for left, _ in BEFORE_AND_AFTER)
    for heading in headings[1:]:
        assert heading.split()[-1] in left, heading
