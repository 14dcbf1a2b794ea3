"""Linear attention in context (arXiv 2501.16265): abrupt learning of merged heads, saddle to saddle of separate ones."""

from stagescope.papers.linear_icl.study import STUDY
from stagescope.papers.linear_icl.tags import REFERENCE, TAGS
from stagescope.papers.paper import Paper

_HERE = "stagescope.papers.linear_icl"
PAPER = Paper(
    name="linear-icl",
    reference=REFERENCE,
    tags=TAGS,
    studies=(STUDY,),
    forms={"population": (f"{_HERE}.loss:LinearPopulation",), "sampled": (f"{_HERE}.sampled:LinearSampled",)},
)
