"""In-context Markov chains (arXiv 2402.11004, 2508.12837): uniform, unigrams, bigrams by two layers of attention."""

from stagescope.papers.markov_icl.study import STUDY
from stagescope.papers.markov_icl.tags import REFERENCE, TAGS
from stagescope.papers.paper import Paper

_HERE = "stagescope.papers.markov_icl"
PAPER = Paper(
    name="markov-icl",
    reference=REFERENCE,
    tags=TAGS,
    studies=(STUDY,),
    forms={
        "population": (
            f"{_HERE}.loss:LinearPopulation",
            f"{_HERE}.windows:SoftmaxPopulation",
            f"{_HERE}.windows:TwoHeadPopulation",
        ),
        "finite": (f"{_HERE}.finite:FiniteExact",),
        "sampled": (f"{_HERE}.finite:FiniteSampled",),
    },
)
