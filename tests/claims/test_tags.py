"""Tags: what the code cites is in the table, and what is in the table is cited."""

import re
from pathlib import Path

from stagescope.claims.tags import PAPERS, TAGS

from stagescope.papers.registry import STUDIES

ROOT = Path(__file__).parent.parent.parent / "src" / "stagescope"
CITED = re.compile(r"[\[\"']((?:SnS|flow|FD|ISA):[a-z0-9-]+)[\]\"']")


def cited() -> set[str]:
    files = [path for path in ROOT.rglob("*.py") if path.name != "tags.py"]
    return {tag for path in files for tag in CITED.findall(path.read_text())}


def test_every_cited_tag_is_in_the_table():
    assert cited() - set(TAGS) == set()


def test_every_tag_in_the_table_is_cited():
    assert set(TAGS) - cited() == set()


def test_tags_and_studies_point_to_papers():
    assert {tag.paper for tag in TAGS.values()} - {""} <= set(PAPERS)
    for study in STUDIES.values():
        assert study.paper in PAPERS
        assert set(study.tags) <= set(TAGS)


def test_references_are_complete():
    for paper in PAPERS.values():
        assert paper.arxiv in paper.text
        assert paper.bibtex.count("{") == paper.bibtex.count("}")
