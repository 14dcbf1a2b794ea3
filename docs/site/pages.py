"""Pages of the site that are no file of `docs`: documents of the repository, lists of Python names, and source files.

Documents link to files of the repository. In the site such a link leads to a page that shows the file, so that nothing is needed
but the site.
"""

import re
from pathlib import Path, PurePosixPath
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = {
    "README.md": "index.md",
    "CHANGELOG.md": "project/changelog.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "SECURITY.md": "project/security-policy.md",
    "CODE_OF_CONDUCT.md": "project/code-of-conduct.md",
}
"""Documents of the repository, and their pages."""
NAMES = {
    "motion": ("Runs and motion", ("flow", "runs")),
    "landscape": ("Fields and critical points", ("flow.field", "landscape")),
    "stages": ("Stages", ("detect",)),
    "claims": ("Claims", ("claims",)),
    "papers": ("Studies and papers", ("readings", "papers")),
    "pages": ("Pages, figures and sweeps", ("show", "sweeping")),
    "watching": ("Watching PyTorch", ("watching",)),
    "processes": ("Processes and text", ("processes", "corpora")),
    "focus_dilution": ("Focus and dilution", ("papers.focus_dilution",)),
    "scan_snap": ("Scan and snap", ("papers.scan_snap",)),
    "incremental": ("Incremental learning", ("papers.incremental",)),
    "errors": ("Errors", ("core.errors",)),
}
"""Pages of Python names: the title of each, and the parts of the package whose names it has."""
SHOWN = {".py": "python", ".js": "javascript", ".toml": "toml", ".json": "json", ".cff": "yaml", ".md": "markdown", "": "text"}
FENCED = re.compile(r"^(```|~~~).*?^\1", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"(\]\()(?!https?:|mailto:|#)([^)#\s]+)(#[^)\s]*)?(\))")
TIGHT = re.compile(r"^(#{1,6} .+)\n(?=[-*] )", re.MULTILINE)


def public_names() -> dict[str, str]:
    """Every public name, and the module it comes from."""
    stub = (ROOT / "src/stagescope/__init__.pyi").read_text()
    return {name: module for module, name in re.findall(r"^from \.([a-z_.]+) import (\w+) as", stub, re.MULTILINE)}


def page_of_name(module: str) -> str:
    """The page of a name: that of the longest part of the package that its module is in."""
    parts = {part: page for page, (_, every) in NAMES.items() for part in every}
    return parts[max((part for part in parts if f"{module}.".startswith(f"{part}.")), key=len)]


def names_pages() -> dict[str, str]:
    """The Markdown of the pages of Python names."""
    listed: dict[str, list[str]] = {page: [] for page in NAMES}
    for name, module in public_names().items():
        listed[page_of_name(module)].append(name)
    return {
        f"api/{page}.md": f"# {title}\n\nThe examples follow the lines of [Python names](../api.md).\n\n"
        + "\n".join(f"::: stagescope.{name}\n" for name in sorted(listed[page], key=str.lower))
        for page, (title, _) in NAMES.items()
    }


def address(path: PurePosixPath) -> str:
    """The page of the site, or its file, for a path of the repository."""
    if str(path) in DOCUMENTS:
        return DOCUMENTS[str(path)]
    if path.parts[0] == "docs" and path.suffix not in (".py", ".json"):
        return str(path.relative_to("docs"))
    return f"source/{path}.md"


def resolved(link: str, origin: PurePosixPath) -> PurePosixPath:
    """The path of the repository that a link of a document leads to."""
    return PurePosixPath((ROOT / origin.parent / link).resolve().relative_to(ROOT))


def rewritten(text: str, origin: PurePosixPath, page: str) -> str:
    """Markdown whose links lead to pages of the site; blocks of code stay as they are."""

    def one(match: re.Match[str]) -> str:
        target = address(resolved(match[2], origin))
        up = "../" * (len(PurePosixPath(page).parts) - 1)
        return f"{match[1]}{up}{target}{match[3] or ''}{match[4]}"

    return outside_code(text, lambda prose: LINK.sub(one, TIGHT.sub(r"\1\n\n", prose)))


def outside_code(text: str, change: Any) -> str:
    out, end = [], 0
    for block in FENCED.finditer(text):
        out += [change(text[end : block.start()]), block[0]]
        end = block.end()
    return "".join([*out, change(text[end:])])


def linked(text: str, origin: PurePosixPath) -> set[PurePosixPath]:
    """Files and folders of the repository that a document links to and that are no page yet."""
    found = {resolved(match[2], origin) for match in LINK.finditer(FENCED.sub("", text))}
    return {path for path in found if address(path).startswith("source/")}


def source_pages(paths: set[PurePosixPath]) -> dict[str, str]:
    """A page for each file, and for each folder one that lists its files."""
    pages, waiting = {}, sorted(paths)
    while waiting:
        path = waiting.pop()
        place, head = ROOT / path, f"---\nsearch:\n  exclude: true\n---\n\n# {path}\n\n"
        if place.is_dir():
            inside = [
                each
                for each in sorted(place.rglob("*"))
                if each.is_file() and each.suffix in SHOWN and "egg-info" not in str(each)
            ]
            files = [PurePosixPath(each.relative_to(ROOT)) for each in inside if "__pycache__" not in each.parts]
            up = "../" * len(path.parts)
            pages[address(path)] = head + "\n".join(f"- [{file.relative_to(path)}]({up}{address(file)})" for file in files) + "\n"
            waiting += [file for file in files if address(file) not in pages]
        else:
            pages[address(path)] = f"{head}~~~~~~ {SHOWN.get(path.suffix, 'text')}\n{place.read_text()}\n~~~~~~\n"
    return pages


def on_files(files: Files, config: MkDocsConfig) -> Files:
    made = {page: rewritten((ROOT / name).read_text(), PurePosixPath(name), page) for name, page in DOCUMENTS.items()}
    seen = set()
    for origin in [*DOCUMENTS, *(f"docs/{file.src_uri}" for file in files.documentation_pages())]:
        seen |= linked((ROOT / origin).read_text(), PurePosixPath(origin))
    for page, text in (made | names_pages() | source_pages(seen)).items():
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(text: str, page: Any, config: MkDocsConfig, files: Files) -> str:
    if page.file.generated_by is not None:
        return text
    return rewritten(text, PurePosixPath("docs") / page.file.src_uri, page.file.src_uri)
