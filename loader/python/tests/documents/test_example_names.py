"""Names in the examples, also where there is no PyTorch to run them: each option that is read is declared,
and batches have what is asked of them."""

import ast
from pathlib import Path

import pytest

import shardloader as sl

EXAMPLES = sorted((Path(__file__).resolve().parents[2] / "examples").glob("*.py"))


def names_of(variable, path):
    return {
        node.attr
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == variable
    }


def test_there_are_examples():
    assert len(EXAMPLES) > 5


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_each_argument_that_is_read_is_declared(path):
    texts = {
        node.value.lstrip("-").replace("-", "_")
        for source in EXAMPLES  # support.py reads what the scripts declare
        for node in ast.walk(ast.parse(source.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    assert names_of("args", path) <= texts


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_batches_have_what_is_asked_of_them(path):
    missing = {name for name in names_of("batch", path) if name not in vars(sl.types.Batch)}
    assert not missing
