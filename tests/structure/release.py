#!/usr/bin/env python3
"""tools/release, with programs in place of those that build; and what has to agree before a release: one
version, one address, the recipe."""

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import tomllib

ROOT = Path(__file__).resolve().parents[2]
ADDRESS = "https://example.org/someone/shardify"
WHEEL = "shardloader-{}-cp312-abi3-manylinux_2_28_x86_64.whl"
# Makes a wheel that has its list of components.
MAKE_WHEEL = """#!/usr/bin/env python3
import pathlib, sys, zipfile
machine = "aarch64" if sys.argv[1:2] == ["--aarch64"] else "x86_64"
assert sys.argv[-2:] == ["3.11", "3.12"], sys.argv
pathlib.Path("dist").mkdir(exist_ok=True)
with zipfile.ZipFile("dist/WHEEL".replace("x86_64", machine), "w") as wheel:
    wheel.writestr("shardloader-VERSION.dist-info/sboms/shardloader.cdx.json", '{"components": []}')
"""
TEST_WHEEL = '#!/bin/sh\necho "$@" >build/tested\n'
NOTHING = "#!/bin/sh\nexit 0\n"
NO_DAEMON = "#!/bin/sh\nexit 1\n"


def version():
    text = (ROOT / "libshard/include/shard/version.hpp").read_text()
    return re.search(r'VERSION_STRING "(.*)"', text).group(1)


class Release(unittest.TestCase):
    """In a repository of its own, which has what tools/release reads."""

    def setUp(self):
        if shutil.which("git") is None:
            self.skipTest("no git here")
        folder = tempfile.TemporaryDirectory(prefix="shard-test.")
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        for name in (
            "CHANGELOG.md",
            "LICENSE",
            "libshard/include/shard/version.hpp",
            "loader/python/pyproject.toml",
            "tools/release",
            "tools/release.d",
        ):
            to = self.root / name
            to.parent.mkdir(parents=True, exist_ok=True)
            (shutil.copytree if (ROOT / name).is_dir() else shutil.copy)(ROOT / name, to)
        wheel = MAKE_WHEEL.replace("WHEEL", WHEEL.format("VERSION")).replace("VERSION", version())
        self.program("tools/wheel", wheel)
        self.program("tools/test-wheel", TEST_WHEEL)
        self.program("build/release-python/bin/twine", NOTHING)
        self.program("build/bin/docker", NO_DAEMON)
        (self.root / ".gitignore").write_text("/build/\n/dist/\n")
        self.git("init", "-q")
        self.ready()

    def program(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)

    def git(self, *arguments):
        who = ("-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
        done = subprocess.run(["git", *who, *arguments], cwd=self.root, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)

    def replace(self, name, pattern, text):
        path = self.root / name
        new, count = re.subn(pattern, text, path.read_text(), count=1, flags=re.MULTILINE)
        self.assertEqual(count, 1, f"{name}: {pattern}")
        path.write_text(new)

    def commit(self):
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", "x")

    def ready(self):
        """Nothing is missing."""
        self.replace(
            "CHANGELOG.md", rf"^## \[{re.escape(version())}\] - .*", f"## [{version()}] - 2030-01-02"
        )
        path = self.root / "loader/python/pyproject.toml"
        if not re.search(r"^Repository = ", path.read_text(), re.MULTILINE):
            self.replace(path, r"^\[project\.urls\]\n", '[project.urls]\nRepository = ""\n')
        self.replace(path, r'^Repository = ".*"', f'Repository = "{ADDRESS}/"')
        self.commit()

    def release(self, *arguments):
        environment = {**os.environ, "PATH": f"{self.root}/build/bin:{os.environ['PATH']}"}
        return subprocess.run(
            ["tools/release", *arguments], cwd=self.root, capture_output=True, text=True, env=environment
        )

    def test_it_makes_all_but_the_upload(self):
        done = self.release("--make")
        self.assertEqual(done.returncode, 0, done.stderr)
        folder, wheel = self.root / "dist/release", WHEEL.format(version())
        sums = dict(line.split("  ")[::-1] for line in (folder / "SHA256SUMS").read_text().splitlines())
        other = wheel.replace("x86_64", "aarch64")
        names = {wheel, other, f"shardify-{version()}.tar.gz", f"shardloader-{version()}.cdx.json"}
        self.assertEqual(set(sums), names | {"recipe.yaml", "NOTES.md"})
        for name, digest in sums.items():
            self.assertEqual(hashlib.sha256((folder / name).read_bytes()).hexdigest(), digest)
        self.assertEqual((self.root / "build/tested").read_text().split(), [f"dist/{other}", f"dist/{wheel}"])
        self.assertIn('"components"', (folder / f"shardloader-{version()}.cdx.json").read_text())
        recipe = (folder / "recipe.yaml").read_text()
        self.assertNotIn("env.get", recipe)
        self.assertIn(f"wheel: {ADDRESS}/releases/download/v{version()}/{wheel}\n", recipe)
        self.assertIn(f"    sha256: {sums[wheel]}\n", recipe)
        self.assertNotIn("## [", (folder / "NOTES.md").read_text())
        self.assertGreater(len((folder / "NOTES.md").read_text()), 100)
        self.assertIn("no Docker daemon", done.stderr)
        tags = subprocess.run(["git", "tag"], cwd=self.root, capture_output=True, text=True, check=True)
        self.assertEqual(tags.stdout, "")
        self.assertIn(f"git push origin v{version()}", done.stdout)

    def test_without_make_nothing_is_made(self):
        done = self.release()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("would be made", done.stdout)
        self.assertFalse((self.root / "dist").exists())

    def test_what_is_missing_is_named_with_its_cure(self):
        toml, changes, header = (
            "loader/python/pyproject.toml",
            "CHANGELOG.md",
            "libshard/include/shard/version.hpp",
        )
        for name, pattern, text, message in (
            (toml, r"^Repository.*\n", "", 'write Repository = "https://HOST/OWNER/NAME"'),
            (toml, r"^Repository.*", 'Repository = "http://x"', "no address of the repository"),
            (changes, r"^(## \[.*\]) - .*", r"\1 - unreleased", f"write '## [{version()}] - YYYY-MM-DD'"),
            (header, r"VERSION_MINOR \d+", "VERSION_MINOR 97", "make them equal"),
        ):
            with self.subTest(message):
                self.replace(name, pattern, text)
                self.commit()
                done = self.release("--make")
                self.assertEqual(done.returncode, 1, done.stdout)
                self.assertIn(f"missing: {name}: ", done.stdout)
                self.assertIn(message, done.stdout)
                self.assertFalse((self.root / "dist").exists())
                self.git("reset", "-q", "--hard", "HEAD~1")

    def test_changed_files_and_an_older_tag_are_named(self):
        self.git("tag", f"v{version()}")
        self.assertEqual(self.release().returncode, 0)
        self.commit()
        (self.root / "new").write_text("")
        done = self.release()
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"missing: the tag v{version()} is there", done.stdout)
        self.assertIn("commit them (?? new)", done.stdout)

    def test_the_recipe_is_one(self):
        if importlib.util.find_spec("rattler_build") is None:
            self.skipTest("no py-rattler-build here")
        import rattler_build

        done = self.release("--make")
        self.assertEqual(done.returncode, 0, done.stderr)
        here, released = (
            self.root / "tools/release.d/recipe/recipe.yaml",
            self.root / "dist/release/recipe.yaml",
        )
        os.environ.update(SHARD_VERSION="1.2.3", SHARD_WHEEL="/x.whl", SHARD_REPOSITORY=ADDRESS)
        for path, expected in ((here, "1.2.3"), (released, version())):
            (variant,) = rattler_build.Stage0Recipe.from_file(str(path)).render()
            recipe = variant.recipe.to_dict()
            self.assertEqual(recipe["package"], {"name": "shardloader", "version": expected})
            self.assertEqual(recipe["about"]["repository"], ADDRESS)
            self.assertEqual(len(recipe["source"]), 2)


class Agreement(unittest.TestCase):
    def test_the_version_is_in_one_place(self):
        places = [ROOT / name for name in ("CITATION.cff", "CMakeLists.txt", "loader/python/pyproject.toml")]
        for folder in (".github", "tools", "loader/python/src"):
            places += [path for path in (ROOT / folder).rglob("*") if path.is_file()]
        self.assertGreater(len(places), 100)
        for path in places:
            text = path.read_text(errors="replace")
            self.assertNotRegex(text, rf"(?<![\w.]){re.escape(version())}(?![\w.])", path)
        self.assertRegex((ROOT / "CHANGELOG.md").read_text(), rf"(?m)^## \[{re.escape(version())}\] - ")

    def test_the_package_says_what_it_is(self):
        project = tomllib.loads((ROOT / "loader/python/pyproject.toml").read_text())["project"]
        self.assertLessEqual(set(project["urls"]), {"Repository"})  # the others follow from it
        supported = re.search(
            r"Python 3\.(\d+) to 3\.(\d+) are supported", (ROOT / "loader/python/README.md").read_text()
        )
        first, last = map(int, supported.groups())
        self.assertEqual(project["requires-python"], f">=3.{first}")
        named = re.findall(r"Python :: 3\.(\d+)", "\n".join(project["classifiers"]))
        self.assertEqual([int(minor) for minor in named], list(range(first, last + 1)))

    def test_workflows_run_programs_that_exist(self):
        said = "".join(path.read_text() for path in (ROOT / ".github/workflows").glob("*.yml"))
        programs = set(re.findall(r"(?<![\w/.])((?:tools|\.ci)/[\w-]+)", said))
        self.assertGreaterEqual(programs, {".ci/run", "tools/test", "tools/release"})
        for program in programs:
            path = ROOT / program
            self.assertTrue(os.access(path, os.X_OK) or path.is_dir(), program)
        phases = re.findall(r"^phase_(\w+)\(\)", (ROOT / ".ci/run").read_text(), re.MULTILINE)
        (matrix,) = re.findall(r"phases: \[(.*)\]", said)
        self.assertEqual(sorted(re.findall(r"\w+", matrix)), sorted(set(phases) - {"wheel"}))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
