#!/usr/bin/env python3
"""No function of ours has more than 80 lines. Docstrings do not count, tests neither.

C++ is formatted by clang-format, so a function ends with a brace alone in its column, and its first line is
the last one before it in that column."""

import ast
import subprocess
import sys
from pathlib import Path

MOST = 80
ROOT = Path(__file__).resolve().parents[2]


def of_python(text):
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            first = node.body[0]
            is_doc = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
            doc = first.end_lineno - first.lineno + 1 if is_doc else 0
            yield node.name, node.lineno, node.end_lineno - node.lineno + 1 - doc


def of_cpp(text):
    lines = text.split("\n")
    for end, line in enumerate(lines):
        if line.strip() != "}" or len(line) > 5:
            continue
        column = len(line) - 1
        begin = end - 1
        while begin >= 0 and not (
            lines[begin][:column].isspace() * column == column
            and lines[begin][column : column + 1].strip()
            and not lines[begin].lstrip().startswith(("#", "//", "public:", "private:", "protected:"))
        ):
            begin -= 1
        if begin >= 0 and "(" in lines[begin]:
            yield lines[begin].strip(), begin + 1, end - begin + 1


def main():
    names = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    readers = {".py": of_python, ".cpp": of_cpp, ".hpp": of_cpp, ".cu": of_cpp, ".cuh": of_cpp}
    found, seen = [], 0
    for name in map(Path, names.splitlines()):
        if name.suffix not in readers or "tests" in name.parts or not (ROOT / name).exists():
            continue
        for function, line, length in readers[name.suffix]((ROOT / name).read_text(encoding="utf-8")):
            seen += 1
            if length > MOST:
                found.append(f"{name}:{line}: {function}: {length} lines; a function has at most {MOST}")
    print("\n".join(found) or f"{seen} functions")
    if seen < 5000:
        print("too few functions were found: does this test still see them?")
    return 1 if found or seen < 5000 else 0


if __name__ == "__main__":
    sys.exit(main())
