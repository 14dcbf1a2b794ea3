"""Focus and dilution (arXiv 2605.01199): embeddings condense, attention focuses on the frequent token, then dilutes."""

from stagescope.later import Later
from stagescope.papers.focus_dilution.study import STUDY
from stagescope.papers.focus_dilution.tags import REFERENCE, TAGS
from stagescope.papers.focus_dilution.text.study import STUDY as TEXT
from stagescope.papers.paper import Paper

_HERE = "stagescope.papers.focus_dilution"
PAPER = Paper(
    name="focus-dilution",
    reference=REFERENCE,
    tags=TAGS,
    studies=(STUDY, TEXT),
    about_text=Later(f"{_HERE}.text.facts:about_text"),
    forms={
        "population": (f"{_HERE}.loss:TokenPopulation",),
        "finite": (f"{_HERE}.finite:TokenFinite",),
        "sampled": (f"{_HERE}.sampled:TokenSampled",),
    },
    watched=Later(f"{_HERE}.watched:claims"),
)
