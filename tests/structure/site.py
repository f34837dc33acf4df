#!/usr/bin/env python3
"""tools/site makes pages of all documents and of every public name of the Python package.

Exit code 77: what it needs (docs/site/requirements.txt) is not in build/site-env, or the package is not
built; .ci/run site installs and builds both. SHARD_SITE_MADE=1: the site is there, and is not made again.
"""

import filecmp
import html
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(sys.argv.pop(1) if len(sys.argv) > 1 else Path(__file__).resolve().parents[2]).resolve()
PACKAGE = Path(sys.argv.pop(1) if len(sys.argv) > 1 else ROOT / "build" / "dev" / "python").resolve()
SITE = ROOT / "build" / "site" / "html"
PYTHON = ROOT / "build" / "site-env" / "bin" / "python"


def text_of(page):
    """What a reader sees of it."""
    return html.unescape(re.sub(r"<[^>]*>", "", (SITE / page).read_text()))


class Site(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if os.environ.get("SHARD_SITE_MADE"):
            return
        made = subprocess.run(
            [ROOT / "tools" / "site", PACKAGE], capture_output=True, text=True, cwd=ROOT, check=False
        )
        if made.returncode != 0:
            raise AssertionError(made.stdout[-2000:] + made.stderr[-4000:])

    def test_every_document_is_a_page_of_the_contents(self):
        contents = (SITE / "index.html").read_text()
        pages = [path.stem for path in (ROOT / "docs").glob("*.md")]
        self.assertGreater(len(pages), 15)
        for page in [*pages, "notebook", "contributing", "changelog"]:
            self.assertIn(f'href="{page}.html"', contents)
            self.assertTrue((SITE / f"{page}.html").exists(), page)

    def test_the_reference_has_every_public_name_with_its_options(self):
        script = (
            "import shardloader as sl; print(*(n for n in sl.__all__ if n != 'types'), "
            "*('types.' + n for n in sl.types.__all__), *('ops.' + n for n in dir(sl.ops) if n[0] != '_'))"
        )
        names = subprocess.run(
            [PYTHON, "-c", script],
            env={"PYTHONPATH": str(PACKAGE)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split()
        self.assertGreater(len(names), 60)
        headings = "".join(path.read_text() for path in (SITE / "reference").glob("*.html"))
        headings = {
            re.sub(r"<[^>]*>|[#¶]", "", found).strip()
            for found in re.findall(r"<h[23]>(.*?)</h[23]>", headings, re.DOTALL)
        }
        self.assertEqual([name for name in names if name not in headings], [])
        loading = text_of("reference/loading.html")
        for piece in ("random_resized_crop: ", "batch_size: int", "Loader.state_dict"):
            self.assertIn(piece, loading)

    def test_the_notebook_has_what_it_has_printed(self):
        self.assertRegex(text_of("notebook.html"), r"epoch 19: loss [\d.]+, \d+% of the held-out pictures")
        self.assertGreater((SITE / "notebook.html").read_text().count('<img src="data:image/png;base64,'), 15)

    def test_links_to_files_lead_to_their_text(self):
        self.assertIn("train_imagefolder", text_of("files/loader/python/examples/train_imagefolder.py.html"))

    def test_a_link_that_leads_nowhere_ends_it(self):
        script = "import sys; sys.path.insert(0, 'docs/site'); import stage; from pathlib import Path; "
        with tempfile.TemporaryDirectory() as folder:
            script += (
                f"print(stage.Stage(Path({folder!r})).link('docs/python.md', 'python', 'nowhere.md#there'))"
            )
            done = subprocess.run(
                [PYTHON, "-c", script],
                env={"PYTHONPATH": str(PACKAGE)},
                cwd=ROOT,
                capture_output=True,
                text=True,
                check=False,
            )
        self.assertEqual(done.returncode, 1)
        self.assertIn(
            "docs/python.md: links to nowhere.md#there, and there is no docs/nowhere.md", done.stderr
        )


if __name__ == "__main__":
    installed = ROOT / "build" / "site-env" / "done"
    wanted = ROOT / "docs" / "site" / "requirements.txt"
    if not installed.exists() or not filecmp.cmp(installed, wanted, shallow=False):
        print("skipped: build/site-env is not there or another version's: tools/site makes it")
        sys.exit(77)
    if not (PACKAGE / "shardloader" / "__init__.py").exists():
        print(f"skipped: {PACKAGE} has no shardloader: loader/python/test.sh builds it")
        sys.exit(77)
    unittest.main()
