"""From the options to what `evolve` needs. This is where heavy imports begin."""

from stagescope.dynamics.flow import GradientFlow
from stagescope.papers.study import Setup
from unigram_paper.loss import BiasPopulation
from unigram_paper.model import Bias
from unigram_paper.process import Unigram
from unigram_paper.sampled import BiasSampled
from unigram_paper.study import UnigramOptions


def setup(options: UnigramOptions, seed: int) -> Setup:
    process = Unigram.ramp(options.top, options.vocab)
    model = Bias(vocab=options.vocab)
    if options.length is None:
        loss = BiasPopulation(model=model, process=process)
    else:
        loss = BiasSampled(model=model, process=process, length=options.length, seed=seed)
    return Setup(what=loss, params=model.init(seed), dynamics=GradientFlow(), until=options.until)
