#!/usr/bin/env python3
"""Puts what the site shows into one folder, as Sphinx takes it: the documents with their links turned to
pages of the site, the files that they link to, the reference (reference.py) and the notebook (notebook.py).

    stage.py FOLDER NOTEBOOK     NOTEBOOK: the executed one
"""

import os
import re
import shutil
import sys
from pathlib import Path

import notebook
import reference

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]

# The contents: heading, pages.
CONTENTS = (
    ("Start", "install notebook porting doctor"),
    ("Data sets", "shardify sources pixels sizes jpeg targets remote"),
    ("Training", "python loader augment cluster"),
    ("Look and check", "shardctl shardbench benchmarks"),
    ("The format", "format reading"),
    ("Reference", "reference/index"),
    ("Inside", "architecture decisions contributing changelog security code_of_conduct"),
)
# Pages that are not in docs/: their names on the site.
OTHERS = {
    "README.md": "index",
    "CONTRIBUTING.md": "contributing",
    "CHANGELOG.md": "changelog",
    "SECURITY.md": "security",
    "CODE_OF_CONDUCT.md": "code_of_conduct",
    "loader/python/README.md": "files/loader/python/README",
    "llms.txt": "files/llms.txt",
}
NOTEBOOK = "docs/first_look.ipynb"
CODE = {
    ".py": "python",
    ".cpp": "cpp",
    ".hpp": "cpp",
    ".cu": "cuda",
    ".txt": "cmake",
    ".md": "markdown",
    "": "sh",
}
LINK = re.compile(r"(!?\[(?:[^\[\]]|\[[^\]]*\])*\])\(([^()\s]+)\)")
FENCE = re.compile(r"^\s*(```|~~~)")


def page_of(path):
    """The page of a file of the tree: its name on the site, without ending. None: it has no page."""
    if path in OTHERS:
        return OTHERS[path]
    if path.startswith("docs/") and path.count("/") == 1 and path.endswith(".md"):
        return path.removeprefix("docs/").removesuffix(".md")
    here = ROOT / path
    return f"files/{path}" if here.is_dir() or here.suffix in CODE else None


class Stage:
    def __init__(self, folder):
        self.folder, self.done, self.pending = folder, set(), []

    def write(self, page, text):
        target = self.folder / f"{page}.md"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)

    def link(self, source, page, target):
        """The target of a link in the file `source`, as the page's own."""
        if re.match(r"[a-z]+:", target) or target.startswith("#"):
            return target
        path, _, anchor = target.partition("#")
        found = os.path.normpath(os.path.join(os.path.dirname(source), path))
        if not (ROOT / found).exists():
            sys.exit(f"{source}: links to {target}, and there is no {found}")
        to = page_of(found)
        if found == NOTEBOOK:
            to = "notebook.md"
        elif to is None:
            copy = self.folder / "files" / found
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / found, copy)
            to = f"files/{found}"
        else:
            self.pending.append(found)
            to += ".md"
        return os.path.relpath(to, os.path.dirname(page) or ".") + (f"#{anchor}" if anchor else "")

    def document(self, source, page):
        """A document whose links lead to pages of the site. Blocks of code stay as they are."""
        done, chunk, fenced = "", "", False
        for line in [*(ROOT / source).read_text().splitlines(keepends=True), "```"]:
            if FENCE.match(line):
                linked = LINK.sub(lambda m: f"{m[1]}({self.link(source, page, m[2])})", chunk)
                done += chunk if fenced else linked
                chunk, fenced = "", not fenced
            chunk += line
        return done

    def files(self, source, page):
        """A page of a file's text, or of the files in a folder."""
        top = ROOT / source
        text = f"# {source}\n\n"
        for path in sorted(path for path in top.rglob("*") if path.is_file()) if top.is_dir() else [top]:
            name = path.relative_to(ROOT).as_posix()
            if path.suffix in CODE:
                heading = f"## {path.relative_to(top)}\n\n" if top.is_dir() else ""
                text += f"{heading}`````{CODE[path.suffix]}\n{path.read_text()}`````\n\n"
            else:
                text += f"- [{path.name}]({self.link(name, page, path.name)})\n"
        return "---\norphan: true\n---\n" + text

    def page(self, source):
        page = page_of(source)
        if page in self.done:
            return
        self.done.add(page)
        if source.endswith(".md") or source == "llms.txt":
            text = self.document(source, page)
            text = contents(text) if page == "index" else text
            self.write(page, "---\norphan: true\n---\n" + text if page.startswith("files/") else text)
        else:
            self.write(page, self.files(source, page))

    def all(self):
        self.pending += ["README.md", *sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md"))]
        while self.pending:
            self.page(self.pending.pop())


def contents(text):
    """README.md as the first page: its picture by the theme's colours, and the tables of contents."""
    picture = (
        r'<picture><source [^>]*srcset="docs/speed/dark\.svg">'
        r'<img src="docs/speed/light\.svg" alt="([^"]*)"></picture>'
    )
    both = "".join(rf'<img class="{theme}-only" src="{theme}.svg" alt="\1">' for theme in ("light", "dark"))
    text, count = re.subn(picture, f'<p class="speed">{both}</p>', text)
    if count != 1:
        sys.exit("README.md: docs/site/stage.py does not find the picture of docs/speed")
    trees = "".join(
        f"```{{toctree}}\n:hidden:\n:caption: {heading}\n\n" + "\n".join(pages.split()) + "\n```\n\n"
        for heading, pages in CONTENTS
    )
    return f"{text}\n{trees}"


def main():
    folder, executed = map(Path, sys.argv[1:])
    shutil.rmtree(folder, ignore_errors=True)
    for name in ("extra", "static"):
        (folder / name).mkdir(parents=True)
    for theme in ("light", "dark"):
        shutil.copy(ROOT / "docs" / "speed" / f"{theme}.svg", folder / "extra")
    shutil.copy(HERE / "site.css", folder / "static")
    shutil.copy(HERE / "conf.py", folder)
    stage = Stage(folder)
    stage.all()
    stage.write("notebook", notebook.as_markdown(executed))
    for page, text in reference.pages().items():
        stage.write(f"reference/{page}", text)


if __name__ == "__main__":
    main()
