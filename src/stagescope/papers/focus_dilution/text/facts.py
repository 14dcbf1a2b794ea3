"""What is known of a text before anything is trained on it."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stagescope.corpora.corpus import TextCorpus

SHOWN, LAGS = 20, 8
"""Words, and lags, that are listed."""
WIDTH, START, STEP = 32, 1e-2, 0.2
"""Width and start of the model whose events are foretold: the defaults of `run text-focus`; its steps are those of a flow."""


def corpus_facts(corpus: "TextCorpus", window: int) -> dict[str, Any]:
    """Counts, vocabulary, entropies, importance of lags, and the predictions for windows of some length.

    The attention rates c are those at scale one, as in `check`: a model of scale s has s times as much.
    """
    from stagescope.papers.focus_dilution.text.forms import predict
    from stagescope.papers.incremental.text.information import lag_information

    made = predict(corpus, window)
    lags, raw = lag_information(corpus, LAGS), corpus.raw
    return {
        "corpus": {name: value for name, value in corpus.describe().items() if name != "type"},
        "parts": {name: {"tokens": len(part.ids), "documents": len(part.ends)} for name, part in raw.parts.items()},
        "types": len(raw.types),
        "vocabulary": len(corpus.words),
        "train_tokens": len(corpus.train),
        "held_out_tokens": len(corpus.held_out),
        "frequent": {corpus.label(token): float(corpus.stationary[token]) for token in range(min(SHOWN, corpus.vocab))},
        "entropy": {"of types": corpus.unigram_loss(), "given the last token": corpus.floor()},
        "predictions": {
            "window": window,
            "mu0": made.mu0,
            "c_bigram": made.c_bigram,
            "c_windows": made.c_windows,
            "c_error": made.c_error,
            "sign": made.sign,
            "separability": made.separability,
            "separability_residual": made.separability_residual,
        },
        "lags": {name: getattr(lags, name).tolist() for name in ("alone", "added", "errors")} | {"order": list(lags.order)},
    }


def bigram_events(corpus: "TextCorpus", until: float, seed: int = 0, progress: bool | None = False) -> dict[str, float | None]:
    """E_k and Q_k that the bigram chain of a text foretells for `run text-focus` under SGD, up to t = `until`."""
    from stagescope.dynamics.descent import Descent
    from stagescope.dynamics.evolve import evolve
    from stagescope.dynamics.record import Graded
    from stagescope.errors import StagescopeError
    from stagescope.papers.focus_dilution.loss import TokenPopulation
    from stagescope.papers.focus_dilution.model import TokenAttention
    from stagescope.papers.focus_dilution.text.observables import text_curves
    from stagescope.papers.focus_dilution.text.stages import TextStory

    model = TokenAttention(vocab=corpus.vocab, width=WIDTH, scale=WIDTH**-0.5)
    loss, steps = TokenPopulation(model=model, process=corpus), max(1, round(until / STEP))
    moves = Descent(lr=until / steps, steps=steps)
    run = evolve(loss, model.init(seed, START), moves, record=Graded(), progress=progress)
    if not run.done:
        raise StagescopeError(f"the bigram flow ended {run.status}: {run.reason}")
    return TextStory(text_curves(run)).opened
