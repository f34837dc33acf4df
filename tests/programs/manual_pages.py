"""The documents agree with the programs and with each other: links of README.md and docs/ lead to files and
headings that exist, and docs/shardify.md, shardctl.md and shardbench.md name exactly the subcommands and
options that --help-all of the programs has, and its defaults. --help has one screen.

On a page, a table whose first column is headed "subcommand" lists the subcommands. A table whose first column
is headed "option" lists options: of the subcommands in its column "subcommands" ("all": of each), else of the
subcommand that the section's heading names, else of the program.
"""

import os
import re
import subprocess
import sys
import unittest
from pathlib import Path

BIN = Path(os.environ.get("SHARD_BIN", Path(__file__).resolve().parents[2] / "build" / "dev" / "bin"))
ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
EVERYWHERE = {"-h", "--help", "--help-all", "--version", "--completion"}
SCREEN = 40  # lines
OPTION = re.compile(r"--?[a-z][a-z-]*")


def help_of(program, *subcommand, option="--help-all"):
    return subprocess.run(
        [BIN / program, *subcommand, option], check=True, capture_output=True, text=True
    ).stdout


def options_in_help(text):
    """{"--jobs": "one per core"} of `  -j,--jobs N   Threads (default: one per core; 1 to 64)`,
    which may go on in indented lines."""
    found = {}
    for names, entry in re.findall(r"^  (-\S+)(.*(?:\n {3}.*)*)", text, re.MULTILINE):
        default = re.search(r"\((?:[^()]*; )?default: ([^;)]+)", re.sub(r"\s+", " ", entry))
        found.update(
            {name: default and default.group(1) for name in OPTION.findall(names) if name not in EVERYWHERE}
        )
    return found


def positionals_in_help(text):
    return set(re.findall(r"^  ([A-Z]+) ", text, re.MULTILINE))


def subcommands_in_help(text):
    return set(re.findall(r"^  ([a-z]+) ", text.partition("\nSubcommands:\n")[2], re.MULTILINE))


def cells_of(line):
    return [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def rows_of(page):
    """(heading, header of the table, cells) of each row of each table."""
    heading, header = "", None
    for line in page.splitlines():
        if line.startswith("#"):
            heading = line.lstrip("# ")
        if not line.startswith("|"):
            header = None
        elif header is None:
            header = cells_of(line)
        elif not line.startswith("| ---"):
            yield heading, header, cells_of(line)


def subcommands_on_page(page):
    return {
        re.match(r"`(\w+)", cells[0]).group(1)
        for _, header, cells in rows_of(page)
        if header[0] == "subcommand"
    }


def options_on_page(page, subcommand=None):
    """{"--threads": what its row says of the default}"""
    found = {}
    for heading, header, cells in rows_of(page):
        if header[0] != "option":
            continue
        concerned = None
        if "subcommands" in header:
            names = cells[header.index("subcommands")]
            concerned = subcommand in re.findall(r"\w+", names) or names == "all"
        elif subcommand is not None:
            concerned = heading == subcommand
        if concerned or subcommand is None:
            code = " ".join(re.findall(r"`([^`]*)`", cells[0]))
            default = cells[header.index("default")] if "default" in header else " ".join(cells)
            found.update(
                {name: default for name in OPTION.findall(code) if re.search(rf"(?<!\S){name}(?!\S)", code)}
            )
    return {name: default for name, default in found.items() if name not in EVERYWHERE}


class ManualPages(unittest.TestCase):
    maxDiff = None

    def check_options(self, program, page, subcommand=None):
        text = help_of(program, *([subcommand] if subcommand else []))
        on_page = options_on_page(page, subcommand)
        self.assertEqual(sorted(on_page), sorted(options_in_help(text)))
        for name, default in options_in_help(text).items():
            if default:
                self.assertIn(default, on_page[name].replace("`", ""), name)
        for name in positionals_in_help(text):
            self.assertRegex(page, rf"`[^`\n]*\b{name}\b", f"{name} is not on the page")
        return text

    def check(self, program):
        page = (DOCS / f"{program}.md").read_text()
        text = help_of(program, option="--help")
        self.assertEqual(subcommands_on_page(page), subcommands_in_help(text))
        self.assertTrue(subcommands_in_help(text))
        for subcommand in subcommands_in_help(text):
            with self.subTest(program=program, subcommand=subcommand):
                self.assertTrue(options_in_help(self.check_options(program, page, subcommand)))

    def test_shardify(self):
        text = self.check_options("shardify", (DOCS / "shardify.md").read_text())
        self.assertGreater(len(options_in_help(text)), 25)
        self.assertEqual(positionals_in_help(text), {"IMAGES", "OUT"})

    def test_shardctl(self):
        self.check("shardctl")

    def test_shardbench(self):
        self.check("shardbench")


class Screens(unittest.TestCase):
    """--help fits on a screen of 40 lines and 100 columns. --help-all says the same, and all the rest."""

    def check(self, program, *subcommand):
        text, whole = (help_of(program, *subcommand, option=option) for option in ("--help", "--help-all"))
        where = " ".join((program, *subcommand))
        self.assertLessEqual(len(text.splitlines()), SCREEN, f"{where} --help:\n{text}")
        self.assertLessEqual(max(map(len, text.splitlines())), 100, where)
        self.assertLessEqual(options_in_help(text).keys(), options_in_help(whole).keys(), where)
        own = whole.partition("\n" + 100 * "-")[0]  # not of its subcommands
        for name in positionals_in_help(own):
            self.assertRegex(text, rf"(?m)^  {name} ", where)
        if text.strip() != own.strip():
            self.assertIn(f"{where} --help-all", text)
        return text, whole

    def test_shardify_names_what_is_used_most(self):
        text, whole = self.check("shardify")
        shown, every = (set(options_in_help(one)) for one in (text, whole))
        self.assertLessEqual({"--preset", "--codec", "--labels", "--jobs", "--claim"}, shown)
        self.assertGreater(len(every - shown), 20)
        self.assertIn(f"{len(every - shown)} more options", text)
        self.assertIn("Exit codes:", whole)

    def test_programs_with_subcommands(self):
        for program in ("shardctl", "shardbench"):
            text, whole = self.check(program)
            for subcommand in subcommands_in_help(text):
                with self.subTest(program=program, subcommand=subcommand):
                    all_of_it = self.check(program, subcommand)[1]
                    self.assertIn(all_of_it, whole)


def anchors_of(page):
    """As GitHub makes them: lower case, punctuation dropped, blanks become dashes."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    headings = re.findall(r"^#+ (.*)", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


class Links(unittest.TestCase):
    def test_every_link_leads_to_a_file_and_a_heading(self):
        pages = [
            ROOT / "README.md",
            ROOT / "CONTRIBUTING.md",
            ROOT / "CODE_OF_CONDUCT.md",
            ROOT / "SECURITY.md",
            ROOT / "llms.txt",
            ROOT / "loader/python/README.md",
            *sorted(DOCS.glob("*.md")),
        ]
        links = 0
        for page in pages:
            for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
                if "://" in target:
                    continue
                links += 1
                name, _, anchor = target.partition("#")
                to = (page.parent / name).resolve() if name else page
                self.assertTrue(to.exists(), f"{page.name}: {target}")
                if anchor:
                    self.assertIn(anchor, anchors_of(to), f"{page.name}: {target}")
        self.assertGreater(links, 50)


if __name__ == "__main__":
    sys.exit(unittest.main())
