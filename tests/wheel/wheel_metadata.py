"""tools/wheel.d/metadata.py: the licences, the SBOM and the addresses of a wheel."""

import importlib.util
import json
import re
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools/wheel.d"))
import metadata  # noqa: E402

HEAD = """Metadata-Version: 2.4
Name: shardloader
Version: 1.2.3
License-Expression: Apache-2.0
License-File: LICENSE
Description-Content-Type: text/markdown"""
BODY = """# shardloader

[guide](../../docs/python.md#layout), [an example](examples/dino.py),
[a site](https://example.org/x), [below](#tests)
"""
DIGEST = "3f" * 32
COMPONENTS = [
    ["zlib", "1:1.2.13.dfsg-1", "debian", DIGEST],
    ["libboost", "1.74.0.3", "debian", "-"],
    ["nanobind", "3.1.0", "pypi", "-"],
    ["libstdc++", "12.2.0", "generic", "-"],
]


class Metadata(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        (self.folder / "licenses").mkdir()
        for name, *_ in COMPONENTS:
            (self.folder / "licenses" / f"{name}.txt").write_text("text")
        self.write(HEAD)

    def write(self, head):
        (self.folder / "METADATA").write_text(f"{head}\n\n{BODY}")

    def complete(self, components=COMPONENTS):
        metadata.complete(self.folder, components)
        head, _, body = (self.folder / "METADATA").read_text().partition("\n\n")
        made = json.loads((self.folder / "sboms/shardloader.cdx.json").read_text())
        return head.splitlines(), body, made

    def test_each_component_is_named_with_version_and_licence(self):
        head, body, made = self.complete()
        self.assertEqual(head[: len(HEAD.splitlines())], HEAD.splitlines())
        self.assertEqual(
            head[len(HEAD.splitlines()) :],
            [f"License-File: {name}.txt" for name in sorted(row[0] for row in COMPONENTS)],
        )
        self.assertEqual(body, BODY)  # no address is known
        found = {each["name"]: each for each in made["components"]}
        self.assertEqual(found["zlib"]["purl"], "pkg:deb/debian/zlib@1%3A1.2.13.dfsg-1?arch=source")
        self.assertEqual(found["zlib"]["properties"][0]["value"], DIGEST)
        self.assertNotIn("properties", found["libboost"])
        self.assertEqual(
            found["libstdc++"]["licenses"],
            [{"expression": "GPL-3.0-or-later WITH GCC-exception-3.1"}],
        )
        self.assertEqual(made["metadata"]["component"]["version"], "1.2.3")
        self.assertEqual(len(made["dependencies"][0]["dependsOn"]), len(COMPONENTS))

    def test_the_other_addresses_follow_from_the_repository(self):
        self.write(
            HEAD.replace("License-Ex", "Project-URL: Repository, https://example.org/a/b/\nLicense-Ex")
        )
        head, body, made = self.complete()
        self.assertIn("Project-URL: Changelog, https://example.org/a/b/blob/v1.2.3/CHANGELOG.md", head)
        self.assertIn("Project-URL: Issues, https://example.org/a/b/issues", head)
        self.assertEqual(
            re.findall(r"\]\(([^)]*)\)", body),
            [
                "https://example.org/a/b/blob/v1.2.3/docs/python.md#layout",
                "https://example.org/a/b/blob/v1.2.3/loader/python/examples/dino.py",
                "https://example.org/x",
                "#tests",
            ],
        )
        self.assertEqual(
            made["metadata"]["component"]["externalReferences"][0]["url"], "https://example.org/a/b"
        )

    def test_what_is_not_known_is_refused_by_name(self):
        for components, message in (
            ([*COMPONENTS, ["newlib", "1", "generic", "-"]], "no row for newlib"),
            ([*COMPONENTS, ["curl", "8", "debian", "-"]], "curl.txt is missing"),
            (COMPONENTS[1:], "zlib.txt is the licence of nothing"),
            ([["zlib", "1", "somewhere", "-"]], "from 'somewhere'"),
        ):
            with self.subTest(message), self.assertRaisesRegex(metadata.Wrong, re.escape(message)):
                self.complete(components)

    def test_each_library_that_is_built_has_its_licence(self):
        built = {row[0] for row in metadata.rows_of(ROOT / "tools/wheel.d/sources")}
        script = (ROOT / "tools/wheel.d/libraries").read_text()
        headers = re.search(r"^header_packages=\((.*)\)", script, re.MULTILINE).group(1)
        headers = {name.removesuffix("-dev") for name in headers.split()}
        wheel = set(re.findall(r"licenses/([\w+-]+)\.txt", (ROOT / "tools/wheel").read_text()))
        self.assertGreater(len(built), 10)
        self.assertEqual(set(metadata.licences()), built | headers | wheel)

    def test_the_sbom_fits_the_schema_of_cyclonedx(self):
        if importlib.util.find_spec("cyclonedx") is None:
            self.skipTest("no cyclonedx-python-lib here")
        from cyclonedx.schema import SchemaVersion
        from cyclonedx.validation.json import JsonStrictValidator

        self.complete()
        text = (self.folder / "sboms/shardloader.cdx.json").read_text()
        check = JsonStrictValidator(SchemaVersion.V1_6)
        self.assertIsNone(check.validate_str(text))
        self.assertIsNotNone(check.validate_str(text.replace('"library"', '"book"')))


if __name__ == "__main__":
    unittest.main()
