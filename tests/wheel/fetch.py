#!/usr/bin/env python3
"""tools/wheel.d/fetch: the pinned version with the pinned digest, else the newest that can be fetched.
With programs in place of apt's."""

import hashlib
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

FETCH = Path(__file__).resolve().parents[2] / "tools" / "wheel.d" / "fetch"

# `apt-get source ... NAME=VERSION` copies what is in $ARCHIVE, as an archive would give it.
APT_GET = """#!/bin/bash
case " $* " in
  *" update "*) [ ! -e "$ARCHIVE/down" ]; exit ;;
esac
name=${*: -1}; version=${name#*=}; name=${name%%=*}
cp "$ARCHIVE/${name}_${version#*:}.dsc" . 2>/dev/null || { echo "E: 404 Not Found" >&2; exit 100; }
"""
APT_CACHE = """#!/bin/bash
sed -n "s/^/Version: /p" "$ARCHIVE/${*: -1}.versions" 2>/dev/null
"""
DPKG_SOURCE = """#!/bin/bash
mkdir "$3" && cp "$2" "$3/dsc"
"""


class Fetch(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="shard-test.")
        self.addCleanup(folder.cleanup)
        self.path = Path(folder.name)
        self.archive, self.bin, self.out, self.list = (
            self.path / name for name in ("archive", "bin", "out", "sources")
        )
        self.archive.mkdir()
        self.bin.mkdir()
        for name, text in (("apt-get", APT_GET), ("apt-cache", APT_CACHE), ("dpkg-source", DPKG_SOURCE)):
            (self.bin / name).write_text(text)
            (self.bin / name).chmod(0o755)

    def offer(self, name, *versions, listed=()):
        """Versions that can be fetched; `listed` ones are in the list only."""
        for version in versions:
            (self.archive / f"{name}_{version.rpartition(':')[2]}.dsc").write_text(f"{name} {version}")
        (self.archive / f"{name}.versions").write_text(
            "".join(f"{version}\n" for version in (*versions, *listed))
        )

    @staticmethod
    def line(name, version):
        return f"{name} {version} {hashlib.sha256(f'{name} {version}'.encode()).hexdigest()}"

    def fetch(self, *lines, code=0):
        self.list.write_text("# a remark\n\n" + "".join(f"{line}\n" for line in lines))
        result = subprocess.run(
            [FETCH, self.out, self.list],
            capture_output=True,
            text=True,
            timeout=60,
            env={**os.environ, "PATH": f"{self.bin}:{os.environ['PATH']}", "ARCHIVE": str(self.archive)},
        )
        self.assertEqual(result.returncode, code, result)
        return result.stderr

    def taken(self, name):
        return (self.out / name / "dsc").read_text()

    def test_the_pinned_version_is_taken_also_where_there_is_a_newer_one(self):
        self.offer("expat", "2.5.0-1+deb12u2", "2.5.0-1+deb12u5")
        self.offer("zlib", "1:1.2.13.dfsg-1")
        said = self.fetch(self.line("expat", "2.5.0-1+deb12u2"), self.line("zlib", "1:1.2.13.dfsg-1"))
        self.assertEqual(said, "")
        self.assertEqual(
            (self.taken("expat"), self.taken("zlib")), ("expat 2.5.0-1+deb12u2", "zlib 1:1.2.13.dfsg-1")
        )

    def test_where_it_is_gone_the_newest_that_can_be_fetched_is_taken(self):
        self.offer("expat", "2.5.0-1+deb12u2", "2.5.0-1+deb12u10", listed=["2.5.0-1+deb12u11"])
        said = self.fetch(self.line("expat", "2.5.0-1+deb12u1"))
        self.assertEqual(self.taken("expat"), "expat 2.5.0-1+deb12u10")
        self.assertIn("do not have expat 2.5.0-1+deb12u1, which is pinned", said)
        self.assertIn(self.line("expat", "2.5.0-1+deb12u10"), said)

    def test_another_digest_is_an_error(self):
        self.offer("expat", "2.5.0-1+deb12u2", "2.5.0-1+deb12u5")
        said = self.fetch(self.line("expat", "2.5.0-1+deb12u2")[:-1] + "x", code=1)
        self.assertIn("it is not what was pinned", said)
        self.assertFalse((self.out / "expat").exists())

    def test_a_source_that_nobody_has_is_an_error(self):
        self.offer("zlib", "1")
        said = self.fetch(self.line("zlib", "1"), self.line("expat", "2"), code=1)
        self.assertIn("have no source of expat that can be fetched", said)

    def test_archives_that_cannot_be_reached_are_an_error(self):
        (self.archive / "down").touch()
        self.assertIn("cannot be fetched", self.fetch(self.line("zlib", "1"), code=1))


if __name__ == "__main__":
    unittest.main()
