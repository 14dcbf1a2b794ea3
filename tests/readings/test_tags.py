"""Tags: what the code cites is in the table of its paper, and what is in the table is cited."""

import re
from pathlib import Path

from stagescope.readings.registry import papers, studies, tags

ROOT = Path(__file__).parent.parent.parent / "src" / "stagescope"
PREFIXES = "|".join(sorted({tag.partition(":")[0] for tag in tags()}))
CITED = re.compile(rf"[\[\"']((?:{PREFIXES}):[a-z0-9-]+)[\]\"']")


def cited() -> set[str]:
    files = [path for path in ROOT.rglob("*.py") if path.name != "reference.py"]
    return {tag for path in files for tag in CITED.findall(path.read_text())}


def test_every_cited_tag_is_in_the_table():
    assert cited() - set(tags()) == set()


def test_every_tag_in_the_table_is_cited():
    assert set(tags()) - cited() == set()


def test_studies_name_tags_that_exist():
    for study in studies().values():
        assert set(study.tags) <= set(tags())


def test_references_are_complete():
    for paper in papers().values():
        assert paper.reference.arxiv in paper.reference.text
        assert paper.reference.bibtex.count("{") == paper.reference.bibtex.count("}")


def test_the_citation_file_lists_every_paper():
    listed = (ROOT.parent.parent / "CITATION.cff").read_text()
    readme = (ROOT.parent.parent / "README.md").read_text()
    for paper in papers().values():
        assert f'title: "{paper.reference.title}"' in listed
        assert f"arXiv:{paper.reference.arxiv}" in listed
        assert f"*{paper.reference.title}*" in readme
