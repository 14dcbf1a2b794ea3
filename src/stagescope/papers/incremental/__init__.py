"""Incremental learning of sparse attention patterns (arXiv 2602.19143): one lag group at a time, by competing heads."""

from stagescope.later import Later
from stagescope.papers.incremental.study import REFERENCE, STUDY, TAGS
from stagescope.papers.incremental.text.study import STUDY as TEXT
from stagescope.papers.paper import Paper

PAPER = Paper(
    name="incremental",
    reference=REFERENCE,
    tags=TAGS,
    studies=(STUDY, TEXT),
    about_text=Later("stagescope.papers.incremental.text.reading:about_text"),
    watched=Later("stagescope.papers.incremental.watched:claims"),
)
