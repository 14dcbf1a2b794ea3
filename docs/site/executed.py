"""Notebooks and the gallery: Python files in cells, run when the site is built, and shown with what they print and draw.

A notebook has a kernel of its own; the files of the gallery share one. Reports and playgrounds, which pages embed, are made here.
"""

import base64
import io
import re
import tempfile
from pathlib import Path
from typing import Any

import jupytext
import nbformat
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from nbclient import NotebookClient
from PIL import Image

DOCS = Path(__file__).resolve().parents[1]
THUMBNAIL = 420
"""Width in pixels."""
REPORTS = {
    "focus-dilution": ("focus-dilution", "ref"),
    "scan-snap": ("scan-snap", "syn-small-flow"),
    "linear-icl": ("linear-icl", "ref"),
}
PLAYGROUNDS = ("focus-dilution", "scan-snap", "linear-icl")
HIGH_RESOLUTION = "%config InlineBackend.print_figure_kwargs = {'dpi': 130}"


def run(paths: list[Path]) -> list[Any]:
    """The cells of each file with their outputs; all files are run by one kernel, in a folder of their own."""
    books = [jupytext.read(path) for path in paths]
    whole = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(HIGH_RESOLUTION), *(cell for book in books for cell in book.cells)]
    )
    with tempfile.TemporaryDirectory() as folder:
        place = {"metadata": {"path": folder}}
        NotebookClient(whole, startup_timeout=180, kernel_name="python3", timeout=600, resources=place).execute()
    cells = iter(whole.cells[1:])
    return [[next(cells) for _ in book.cells] for book in books]


def text_of(output: Any) -> str:
    if output.output_type == "stream":
        return output.text
    return output.get("data", {}).get("text/plain", "")


def page(cells: list[Any], name: str, source: str) -> tuple[str, dict[str, bytes]]:
    """The Markdown of an executed file, and its pictures by file name."""
    out, pictures = [], {}
    for cell in cells:
        if cell.cell_type == "markdown":
            out.append(cell.source)
            continue
        out.append(f"```python\n{cell.source}\n```")
        for output in cell.outputs:
            data = output.get("data", {})
            if "image/png" in data:
                file = f"{name}-{len(pictures)}.png"
                pictures[file] = base64.b64decode(data["image/png"])
                out.append(f"![Picture made by the code above]({file})")
            elif "text/html" in data:
                out.append(f'<div class="output" markdown="0">{data["text/html"]}</div>')
            elif text := text_of(output).strip("\n"):
                out.append(f'<div class="output" markdown="1">\n\n```text\n{text}\n```\n\n</div>')
    out.append(f"[Download this page as a Python file]({source}){{ download }}")
    return "\n\n".join(out) + "\n", pictures


def thumbnail(picture: bytes) -> bytes:
    image = Image.open(io.BytesIO(picture)).convert("RGB")
    image.thumbnail((THUMBNAIL, THUMBNAIL))
    out = io.BytesIO()
    image.save(out, "PNG", optimize=True)
    return out.getvalue()


def title(cells: list[Any]) -> str:
    return re.search(r"^# (.+)$", cells[0].source, re.MULTILINE)[1]  # type: ignore[index]


def index(entries: dict[str, str]) -> str:
    cards = [
        f'<a class="card" href="{name}.html"><img src="{name}-small.png" alt=""><span>{words}</span></a>'
        for name, words in entries.items()
    ]
    return (
        "# Gallery\n\nEvery picture is made by the code beside it when this site is built.\n\n"
        f'<div class="gallery">{"".join(cards)}</div>\n'
    )


def embedded() -> dict[str, str]:
    """Reports and playgrounds as pages of their own."""
    import stagescope as ss

    made = {}
    for name, (study, preset) in REPORTS.items():
        made[f"embedded/{name}.html"] = ss.report(ss.run_study(study, preset), title=study).html
    with tempfile.TemporaryDirectory() as folder:
        for study in PLAYGROUNDS:
            made[f"embedded/play-{study}.html"] = Path(ss.play(study, Path(folder) / f"{study}.html")).read_text()  # type: ignore[arg-type]
    return made


def on_files(files: Files, config: MkDocsConfig) -> Files:
    def add(where: str, content: str | bytes) -> None:
        files.append(File.generated(config, where, content=content))

    shown = re.findall(r"gallery/(\w+)\.md", str(config.nav))  # in the order of the navigation
    gallery = [DOCS / "gallery" / f"{name}.py" for name in shown if name != "index"]
    books = sorted((DOCS / "notebooks").glob("*.py"))
    entries = {}
    for path, cells in [*zip(gallery, run(gallery), strict=True), *((path, run([path])[0]) for path in books)]:
        folder = path.parent.name
        text, pictures = page(cells, path.stem, path.name)
        add(f"{folder}/{path.stem}.md", text)
        for name, picture in pictures.items():
            add(f"{folder}/{name}", picture)
        if folder == "gallery":
            entries[path.stem] = title(cells)
            add(f"gallery/{path.stem}-small.png", thumbnail(pictures[f"{path.stem}-0.png"]))
    add("gallery/index.md", index(entries))
    for where, html in embedded().items():
        add(where, html)
    return files
