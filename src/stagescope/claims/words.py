"""The words of a paper, in `words.toml` beside its code: what to cite, statements by tag, claims, and symbols of its pages."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from stagescope.claims.reference import Reference, Tag


@dataclass(frozen=True)
class Words:
    """`claims` has by tag what a paper says of each claim; `glossary` has the symbols of the pages of each of its studies."""

    reference: Reference
    tags: Mapping[str, Tag]
    claims: Mapping[str, Mapping[str, Any]]
    glossary: Mapping[str, Mapping[str, str]]


@cache
def read_words(package: str) -> Words:
    """The words of a paper, from the file of its package."""
    words = tomllib.loads(resources.files(package).joinpath("words.toml").read_text(encoding="utf-8"))
    cited = words["reference"]
    if "also" in cited:
        cited = {**cited, "also": Reference(**cited["also"])}
    tags = {tag: Tag(*entry) for tag, entry in words["tags"].items()}
    return Words(Reference(**cited), tags, words["claims"], words["glossary"])
