"""Completes the metadata of an unpacked wheel: what it carries, under which licences, and where its
project is.

    python metadata.py DIST_INFO COMPONENTS

COMPONENTS has a line NAME VERSION ORIGIN DIGEST for each library inside: ORIGIN is "debian" (a source
package; DIGEST is the SHA-256 of its .dsc, or "-"), "pypi" or "generic". The text of each licence is
DIST_INFO/licenses/NAME.txt. Written are

- License-File in METADATA for each of these texts;
- sboms/shardloader.cdx.json (CycloneDX 1.6, PEP 770), the same for the same components;
- where loader/python/pyproject.toml has [project.urls] Repository: the other addresses, which follow from it,
  and links to files of the repository in the description, which lead nowhere outside of it.
"""

import json
import posixpath
import re
import sys
from pathlib import Path
from urllib.parse import quote

HERE = Path(__file__).resolve().parent
PACKAGE = "loader/python"  # where the description is written
PURLS = {
    "debian": "pkg:deb/debian/{name}@{version}?arch=source",
    "pypi": "pkg:pypi/{name}@{version}",
    "generic": "pkg:generic/{name}@{version}",
}


class Wrong(Exception):
    pass


def rows_of(path):
    return [line.split() for line in path.read_text().splitlines() if line and not line.startswith("#")]


def licences(path=HERE / "licences"):
    """{"zlib": "Zlib"}"""
    return {name: " ".join(words) for name, *words in rows_of(path)}


def component(name, version, origin, digest, expressions, texts):
    if name not in expressions:
        raise Wrong(f"{HERE / 'licences'} has no row for {name}, which the wheel carries: add its licence")
    if not (texts / f"{name}.txt").is_file():
        raise Wrong(f"{texts}: {name}.txt is missing, the text of the licence {expressions[name]}")
    if origin not in PURLS:
        raise Wrong(f"{name} is from {origin!r}; expected {', '.join(PURLS)}")
    purl = PURLS[origin].format(name=quote(name), version=quote(version))
    found = {
        "type": "library",
        "bom-ref": purl,
        "name": name,
        "version": version,
        "licenses": [{"expression": expressions[name]}],
        "purl": purl,
    }
    if digest != "-":
        found["properties"] = [{"name": "shardify:dsc:sha256", "value": digest}]
    return found


def sbom(version, components, repository):
    purl = f"pkg:pypi/shardloader@{version}"
    root = {
        "type": "library",
        "bom-ref": purl,
        "name": "shardloader",
        "version": version,
        "licenses": [{"expression": "Apache-2.0"}],
        "purl": purl,
    }
    if repository:
        root["externalReferences"] = [{"type": "vcs", "url": repository}]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": root},
        "components": components,
        "dependencies": [{"ref": purl, "dependsOn": [each["bom-ref"] for each in components]}],
    }


def addresses(repository, version):
    return {
        "Documentation": f"{repository}/tree/v{version}/docs",
        "Changelog": f"{repository}/blob/v{version}/CHANGELOG.md",
        "Issues": f"{repository}/issues",
    }


def outside(text, repository, version):
    """The description, with links that lead to the files of this version."""

    def absolute(found):
        path, mark, anchor = found.group(1).partition("#")
        inside = posixpath.normpath(posixpath.join(PACKAGE, path))
        return f"]({repository}/blob/v{version}/{inside}{mark}{anchor})"

    return re.sub(r"\]\((?![a-z]+:|#)([^)\s]+)\)", absolute, text)


def field(head, name):
    found = re.search(rf"^{name}: (.*)$", head, re.MULTILINE)
    return found.group(1) if found else None


def complete(folder, components):
    """DIST_INFO as it should be; the number of components."""
    head, blank, body = (folder / "METADATA").read_text().partition("\n\n")
    version, expressions = field(head, "Version"), licences()
    repository = (re.search(r"^Project-URL: Repository, (\S+?)/?$", head, re.MULTILINE) or [None, ""])[1]
    found = [component(*row, expressions, folder / "licenses") for row in components]
    known = {each["name"] for each in found}
    for text in (folder / "licenses").glob("*.txt"):
        if text.stem not in known:
            raise Wrong(f"{text.name} is the licence of nothing in the list of components")
    lines = [f"License-File: {name}.txt" for name in sorted(known)]
    if repository:
        lines += [f"Project-URL: {name}, {url}" for name, url in addresses(repository, version).items()]
        body = outside(body, repository, version)
    (folder / "METADATA").write_text("\n".join([head, *lines]) + blank + body)
    (folder / "sboms").mkdir(exist_ok=True)
    made = json.dumps(sbom(version, found, repository), indent=1, ensure_ascii=False)
    (folder / "sboms" / "shardloader.cdx.json").write_text(made + "\n")
    return len(found)


if __name__ == "__main__":
    try:
        print(f"{complete(Path(sys.argv[1]), rows_of(Path(sys.argv[2])))} components in the SBOM")
    except Wrong as error:
        sys.exit(f"tools/wheel: {error}")
