#!/usr/bin/env python3
"""Says what an operation of augmentation lacks: each that is declared has a row with its parameters and a
picture in docs/augment.md, and a test of its effect (policies are compared with torchvision's instead).

    operations.py [ROOT]     exit code 1 and a line for each thing that is missing
"""

import re
import sys
from pathlib import Path

DECLARED = "loader/include/shard/loader/operations.hpp"
TESTS = "tests/unit/loader/transform/augment"
DOCS = "docs/augment.md"


def operations(text):
    """(struct, name, parameters, whether it is a policy) of each declared operation."""
    for struct, body in re.findall(r"^struct (\w+) \{\n(.*?)^\};", text, re.DOTALL | re.MULTILINE):
        described = re.search(r"kDescription\{\s*(.*?)\};", body, re.DOTALL)
        if described:
            name = re.match(r'"(\w+)"', described[1])[1]
            parameters = re.findall(r'visit\("(\w+)"', body)
            yield struct, name, parameters, described[1].count("true") == 2 or name == "three_augment"


def problems(root):
    tests = "".join(file.read_text() for file in sorted((root / TESTS).glob("*_test.cpp")))
    docs = (root / DOCS).read_text()
    found = list(operations((root / DECLARED).read_text()))
    assert len(found) > 20, f"the operations of {DECLARED} are not found"
    for struct, name, parameters, is_policy in found:
        row = re.search(rf"^\| `{name}(\(.*?\))?` \|.*$", docs, re.MULTILINE)
        if not row:
            yield f"operation {name} has no row in {DOCS}"
            continue
        # The common ones stand once, above the tables.
        for one in set(parameters) - {
            "interpolation",
            "fill",
            "bins",
            "random_order",
            "all_operations",
            "policy",
        }:
            if not re.search(one.replace("_", "[_ ]"), row[0]):
                yield f"operation {name}: its row in {DOCS} does not name {one}"
        if name != "three_augment" and f"augment/{name.replace('_', '-')}.webp" not in row[0]:
            yield f"operation {name}: its row in {DOCS} has no picture (docs/augment/make.py)"
        if not is_policy and f"ops::{struct}" not in tests:
            yield f"operation {name} has no host test: {TESTS} has no ops::{struct}"


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    found = list(problems(root))
    print("\n".join(found) or "every operation has a test, a row and a picture")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
