"""The notebook, docs/first_look.ipynb: runs it, and shows an executed one as a page.

notebook.py NOTEBOOK OUT      runs all cells in a new folder, and writes the executed notebook to OUT
"""

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
        body = data["text/html"].replace("\n\n", "\n")  # an empty line would end it
        return f'<div class="notebook-html">{body}</div>\n\n'
    if "image/png" in data:
        return f'<img alt="" src="data:image/png;base64,{data["image/png"].strip()}">\n\n'
    return f"`````text\n{data.get('text/plain', '').rstrip()}\n`````\n\n"


def joined(outputs):
    """What is printed in pieces, as one."""
    done = []
    for output in outputs:
        if done and output["output_type"] == done[-1]["output_type"] == "stream":
            done[-1]["text"] += output["text"]
        else:
            done.append(output)
    return done


def as_markdown(path):
    text = ""
    for cell in nbformat.read(path, as_version=4)["cells"]:
        if cell["cell_type"] == "markdown":
            text += cell["source"] + "\n\n"
        elif cell["cell_type"] == "code":
            text += f"```python\n{cell['source']}\n```\n\n"
            text += "".join(output_of(output) for output in joined(cell["outputs"]))
    return text


if __name__ == "__main__":
    run(*sys.argv[1:])
