"""Check a built site without a network: `python docs/site/check.py site`.

Every link leads to a file and an anchor that exist, every picture and frame is there, and no page loads anything from elsewhere.
"""

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {
    ("script", "src"),
    ("img", "src"),
    ("iframe", "src"),
    ("source", "src"),
    ("link", "href"),
    ("embed", "src"),
    ("object", "data"),
}
NOT_LOADED = {"canonical", "prev", "next", "author", "license"}
STYLE = re.compile(r"url\(\s*['\"]?([^'\")]+)|@import\s+['\"]([^'\"]+)")


class Page(HTMLParser):
    """What a page links to, what it loads, and its anchors."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.loads: set[str] = set()
        self.anchors = {"", "top"}
        self.feed(path.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.add(given["href"])
        for name in ("src", "href", "data"):
            if (tag, name) in LOADED and name in given and given.get("rel") not in NOT_LOADED:
                self.loads.add(given[name])


def problems(site: Path) -> list[str]:
    """A sentence for each link that leads nowhere and each thing that comes from the network."""
    site = site.resolve()
    pages = {path: Page(path) for path in sorted(site.rglob("*.html"))}
    found = []
    for path, page in pages.items():
        if path.name == "404.html":  # a server shows it at any address, so its links begin at the root
            continue
        where = path.relative_to(site)
        own = "embedded" in where.parts  # a page of ours makes its anchors when it is opened
        found += [f"{where} loads {each} from the network" for each in sorted(page.loads) if outside(each)]
        for link in sorted((page.links if not own else set()) | page.loads):
            if not outside(link) and not link.startswith(("data:", "mailto:", "javascript:", "blob:")):
                found += missing(site, path, link, pages)
    for style in site.rglob("*.css"):
        every = [first or second for first, second in STYLE.findall(style.read_text())]
        found += [f"{style.relative_to(site)} loads {each} from the network" for each in every if outside(each)]
    return found


def outside(link: str) -> bool:
    return link.startswith(("http:", "https:", "//"))


def missing(site: Path, path: Path, link: str, pages: dict[Path, Page]) -> list[str]:
    parts = urlsplit(link)
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    target = target / "index.html" if target.is_dir() else target
    where = path.relative_to(site)
    if parts.path.startswith("/") or not target.is_relative_to(site) or not target.is_file():
        return [f"{where} links to {link}, which is not there"]
    if target in pages and unquote(parts.fragment) not in pages[target].anchors and "embedded" not in target.parts:
        return [f"{where} links to {link}: there is no such anchor"]
    return []


def main(folder: str) -> int:
    bad = problems(Path(folder))
    print(
        "\n".join(bad)
        or f"{len(list(Path(folder).rglob('*.html')))} pages: all links lead somewhere, nothing comes from the network"
    )
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
