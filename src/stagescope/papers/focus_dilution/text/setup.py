"""From the options of focus and dilution on a text to what `evolve` needs."""

from typing import Any

from stagescope.corpora.corpus import TextCorpus
from stagescope.corpora.options import text_facts
from stagescope.corpora.window_loss import WindowLoss
from stagescope.dynamics.record import Graded
from stagescope.memory import require_work
from stagescope.papers.focus_dilution.model import TokenAttention
from stagescope.papers.focus_dilution.text.loss import TextCausal, TextCounts
from stagescope.papers.focus_dilution.text.model import AttentionVariant
from stagescope.papers.focus_dilution.text.study import PARTS, TextFocusOptions, check_use
from stagescope.papers.focus_dilution.text.variant import TextVariant
from stagescope.papers.setup import make_descent
from stagescope.papers.study import Setup

RATES = {"sgd": 0.2, "heavy-ball": 0.02, "adam": 1e-3}
STEPS = {"sgd": 22000, "heavy-ball": 22000, "adam": 10000}


def setup(options: TextFocusOptions, seed: int) -> Setup:
    check_use(options)
    corpus = options.read()
    for word in options.probe:
        corpus.token(word)
    window = options.window or (256 if options.form == "last" else 128)
    corpus.windows(window + 1)  # a corpus shorter than one window is refused here
    model = _model(options, corpus, window)
    rate, steps = options.lr or RATES[options.optimizer], options.steps or STEPS[options.optimizer]
    return Setup(
        what=_loss(options, model, corpus, window, seed),
        params=model.init(seed, options.init_scale),
        dynamics=make_descent(options, lr=rate, steps=steps),
        record=Graded(frames=options.frames),
        facts={**text_facts(corpus), "frequencies": corpus.stationary.tolist(), "last_token_loss": corpus.floor()},
    )


def _model(options: TextFocusOptions, corpus: TextCorpus, window: int) -> TokenAttention:
    scale = options.scale or (options.key_width or options.width) ** -0.5
    sizes = {"vocab": corpus.vocab, "width": options.width, "key_width": options.key_width, "scale": scale}
    parts = {name: getattr(options, name) for name in PARTS}
    return AttentionVariant(**sizes, length=window, **parts) if any(parts.values()) else TokenAttention(**sizes)


def _loss(options: TextFocusOptions, model: Any, corpus: TextCorpus, window: int, seed: int) -> WindowLoss:
    batch = options.batch or (32 if options.form == "causal" else 512 if options.optimizer == "adam" else 1024)
    kind = TextVariant if isinstance(model, AttentionVariant) else TextCausal if options.form == "causal" else TextCounts
    contexts = window if kind is TextCausal else 1
    watched, most = max(1, options.watched // contexts), max(window, corpus.vocab)
    seen = min(watched, len(corpus.train)) * contexts
    require_work(f"the recorded loss (watched {options.watched:,})", "lower --watched or --vocab", seen, most)
    return kind(model=model, process=corpus, length=window, batch=batch, seed=seed, watched=watched)
