"""A toy paper as a package of its own: output logits learn the frequencies of independent tokens."""

from stagescope.papers.paper import Paper
from unigram_paper.study import STUDY
from unigram_paper.tags import REFERENCE, TAGS

PAPER = Paper(
    name="unigram",
    reference=REFERENCE,
    tags=TAGS,
    studies=(STUDY,),
    forms={"population": ("unigram_paper.loss:BiasPopulation",), "sampled": ("unigram_paper.sampled:BiasSampled",)},
)
