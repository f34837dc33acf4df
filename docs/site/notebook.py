"""The notebook, docs/first_look.ipynb: runs it, and shows an executed one as a page.

notebook.py NOTEBOOK OUT      runs all cells in a new folder, and writes the executed notebook to OUT
"""

import base64
import sys
import tempfile
from pathlib import Path

import nbformat


def run(source, out):
    from nbclient import NotebookClient

    book = nbformat.read(source, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        NotebookClient(
            book, timeout=100, kernel_name="python3", resources={"metadata": {"path": folder}}
        ).execute()
    Path(out).parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(book, out)


def output_of(output):
    if output["output_type"] == "stream":
        return f"`````text\n{output['text'].rstrip()}\n`````\n\n"
    data = output.get("data", {})
    if "text/html" in data:
        return f'<div class="notebook-html">{data["text/html"]}</div>\n\n'.replace("\n\n", "\n")[:-1] + "\n\n"
    if "image/png" in data:
        packed = base64.b64encode(base64.b64decode(data["image/png"])).decode()
        return f'<img alt="" src="data:image/png;base64,{packed}">\n\n'
    return f"`````text\n{data.get('text/plain', '').rstrip()}\n`````\n\n"


def as_markdown(path):
    text = ""
    for cell in nbformat.read(path, as_version=4)["cells"]:
        if cell["cell_type"] == "markdown":
            text += cell["source"] + "\n\n"
        elif cell["cell_type"] == "code":
            text += f"```python\n{cell['source']}\n```\n\n"
            text += "".join(output_of(output) for output in cell["outputs"])
    return text


if __name__ == "__main__":
    run(*sys.argv[1:])
