"""From the options of incremental learning on a text to what `evolve` needs."""

from stagescope.corpora.options import text_facts
from stagescope.dynamics.descent import Descent
from stagescope.dynamics.record import LogSpaced
from stagescope.papers.incremental.students.positional import PositionalHeads
from stagescope.papers.incremental.text.loss import TextHeads
from stagescope.papers.incremental.text.study import TextIncrementalOptions, check_use
from stagescope.papers.setup import make_descent
from stagescope.papers.study import Setup

RATES = {"adam": 0.01, "sgd": 5.0, "heavy-ball": 0.5}


def setup(options: TextIncrementalOptions, seed: int) -> Setup:
    check_use(options)
    corpus = options.read()
    model = PositionalHeads(vocab=corpus.vocab, heads=options.heads, context=options.window, targets=1)
    loss = TextHeads(model=model, process=corpus, batch=options.batch, seed=seed, watched=options.watched)
    for part in ("train", "held-out"):
        corpus.windows(options.window + 1, part)  # a part shorter than one window is refused here
    return Setup(
        what=loss,
        params=model.init(seed, options.init_scale),
        dynamics=_descent(options),
        record=LogSpaced(frames=options.frames),
        facts=text_facts(corpus),
    )


def _descent(options: TextIncrementalOptions) -> Descent:
    """Rates are relative to that of the values, so that t, where there is one, is its sum."""
    rate = options.rate_values or RATES[options.optimizer]
    attention = rate if options.rate_attention is None else options.rate_attention
    return make_descent(options, lr=rate, rates={"V": 1.0, "a": attention / rate})
