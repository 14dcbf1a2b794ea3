"""Scan and snap (arXiv 2305.16380): attention in token-pair logits drops common tokens, then freezes."""

from stagescope.papers.paper import Paper
from stagescope.papers.scan_snap.study import STUDY
from stagescope.papers.scan_snap.tags import REFERENCE, TAGS
from stagescope.papers.scan_snap.text.study import STUDY as TEXT

PAPER = Paper(
    name="scan-snap",
    reference=REFERENCE,
    tags=TAGS,
    studies=(STUDY, TEXT),
    forms={
        "population": ("stagescope.papers.scan_snap.loss:PairwisePopulation",),
        "sampled": ("stagescope.papers.scan_snap.sampled:PairwiseSampled",),
    },
)
