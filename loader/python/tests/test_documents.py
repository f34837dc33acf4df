"""The lines that the documents show work as they stand, on a small data set."""

import re
from pathlib import Path

import pytest

import shardloader as sl

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize("document", ["README.md", "docs/python.md", "loader/python/README.md"])
def test_the_three_lines(document, folder, tmp_path, monkeypatch):
    if not (ROOT / document).exists():
        pytest.skip("not in a checkout")
    blocks = [block for block in re.findall(r"```python\n(.*?)```", (ROOT / document).read_text(), re.DOTALL) if "sl.Loader" in block]
    assert len(blocks) == 1
    code = blocks[0]
    for there, small in (("cuda:0", "cpu"), ("224", "24"), ("256", "8"), ("range(90)", "range(2)"), ('"out/shards"', repr(str(folder))),
                         ('"out"', repr(str(folder)))):
        code = code.replace(there, small)
    seen = {"count": 0}
    exec(re.sub(r"^( +)\.\.\.$", r"\1count += len(labels)", "count = 0\n" + code, flags=re.MULTILINE), seen)
    assert seen["count"] == 2 * 56 and tuple(seen["images"].shape) == (8, 24, 24, 3) and "float16" in str(seen["images"].dtype)


def test_every_option_is_explained():
    import inspect

    text = sl.Loader.__doc__
    for name in inspect.signature(sl.Loader).parameters:
        assert re.search(rf"\b{name}\b", text), name
    for name in sl.__all__:
        assert getattr(sl, name).__doc__ or not callable(getattr(sl, name)), name
