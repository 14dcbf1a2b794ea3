"""The statements of the papers on in-context Markov chains as claims that can be checked on a run."""

from stagescope.papers.markov_icl.claims import laws, several, stages

CLAIMS = (*stages.CLAIMS, *laws.CLAIMS, *several.CLAIMS)
