"""From the options of focus and dilution on a text to what `evolve` needs."""

from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

from stagescope.core.memory import require_work
from stagescope.corpora.corpus import AboutText, TextCorpus
from stagescope.corpora.options import text_facts
from stagescope.corpora.window_loss import WindowLoss
from stagescope.flow.descent import Descent
from stagescope.flow.evolve import evolve
from stagescope.flow.record import Graded
from stagescope.papers.focus_dilution.limits import LIMITS
from stagescope.papers.focus_dilution.loss import TokenPopulation
from stagescope.papers.focus_dilution.model import TokenAttention
from stagescope.papers.focus_dilution.text.claims import FLOW_STEP
from stagescope.papers.focus_dilution.text.forms import Predictions, predict
from stagescope.papers.focus_dilution.text.model import AttentionVariant, TextCausal, TextCounts, TextVariant
from stagescope.papers.focus_dilution.text.observables import text_curves
from stagescope.papers.focus_dilution.text.stages import TextHistory
from stagescope.papers.focus_dilution.text.study import PARTS, RATES, STEPS, TextFocusOptions, check_use
from stagescope.readings.rebuild import ended
from stagescope.readings.setup import make_descent
from stagescope.readings.study import Setup


def study_setup(options: TextFocusOptions, seed: int) -> Setup:
    check_use(options)
    corpus = options.read()
    for word in options.probe:
        corpus.token(word)
    window = options.window or (256 if options.form == "last" else 128)
    corpus.windows(window + 1)  # a corpus shorter than one window is refused here
    scale = options.scale or (options.key_width or options.width) ** -0.5
    sizes = {"vocab": corpus.vocab, "width": options.width, "key_width": options.key_width, "scale": scale}
    parts = {name: getattr(options, name) for name in PARTS}
    model = AttentionVariant(**sizes, length=window, **parts) if any(parts.values()) else TokenAttention(**sizes)
    rate, steps = options.lr or RATES[options.optimizer], options.steps or STEPS[options.optimizer]
    return Setup(
        what=_loss(options, model, corpus, window, seed),
        params=model.init(seed, options.init_scale),
        dynamics=make_descent(options, lr=rate, steps=steps),
        record=Graded(frames=options.frames),
        facts={**text_facts(corpus), "frequencies": corpus.stationary.tolist(), "last_token_loss": corpus.floor()},
    )


def _loss(options: TextFocusOptions, model: Any, corpus: TextCorpus, window: int, seed: int) -> WindowLoss:
    batch = options.batch or (32 if options.form == "causal" else 512 if options.optimizer == "adam" else 1024)
    kind = TextVariant if isinstance(model, AttentionVariant) else TextCausal if options.form == "causal" else TextCounts
    contexts = window if kind is TextCausal else 1
    watched, largest = max(1, options.watched // contexts), max(window, corpus.vocab)
    positions = min(watched, len(corpus.train)) * contexts
    require_work(f"the recorded loss (watched {options.watched:,})", "lower --watched or --vocab", positions, largest)
    return kind(model=model, process=corpus, length=window, batch=batch, seed=seed, watched=watched)


# What focus and dilution predicts for a text before anything is trained on it.

_SIGNS = {1: "focus comes first", -1: "attention first leaves the frequent token", 0: "sign undecided"}


def about_text(corpus: TextCorpus, window: int, until: float | None = None, progress: bool | None = False) -> AboutText:
    """Rates and separability for windows of some length and, up to t = `until`, the events of the bigram flow.

    The attention rates c are those at scale one, as in `check`: a model of scale s has s times as much.
    """
    predictions = predict(corpus, window)
    names = ("mu0", "c_bigram", "c_windows", "c_error", "sign", "separability", "separability_residual")
    facts = {"predictions": {"window": window, **{name: getattr(predictions, name) for name in names}}}
    parts: list[Any] = [_table(predictions, window)]
    if until is not None:
        events = bigram_events(corpus, until, progress=progress)
        facts["bigram_events"] = events
        listed = ", ".join(f"{name} {'not reached' if t is None else f'{t:.4g}'}" for name, t in events.items())
        parts.append(Text(f"\nevents of the bigram flow, a prediction for SGD (t): {listed}"))
    return AboutText(facts, tuple(parts))


def _table(made: Predictions, window: int) -> Table:
    table = Table("before training", "", "", box=box.SIMPLE_HEAD, pad_edge=False)
    residual = f"with the last token added; {_modes(made.separability_residual)}"
    rows = (
        ("mu0", f"{made.mu0:.4g}", "growth from a small start"),
        ("c on the bigram chain", f"{made.c_bigram:+.3f}", "opening of attention, scale one"),
        ("c on real windows", f"{made.c_windows:+.3f} +- {made.c_error:.3f}", f"of {window}: {_SIGNS[made.sign]}"),
        ("separability r", f"{made.separability:.3f}", _modes(made.separability)),
        ("r with residual", f"{made.separability_residual:.3f}", residual),
    )
    for row in rows:
        table.add_row(*map(Text, row))
    return table


def _modes(r: float) -> str:
    low, high = LIMITS.one_mode, LIMITS.many_modes
    if r < low:
        return f"below {low:g}: one mode grows alone, a plateau follows"
    return f"above {high:g}: modes grow together, no stages" if r > high else f"from {low:g} to {high:g}: neither is predicted"


def bigram_events(corpus: TextCorpus, until: float, progress: bool | None = False) -> dict[str, float | None]:
    """E_k and Q_k that the bigram chain of a text predicts for `run text-focus` under SGD, up to t = `until`.

    Width and initial scale are the defaults of `run text-focus`.
    """
    width, start = (TextFocusOptions.model_fields[name].default for name in ("width", "init_scale"))
    model = TokenAttention(vocab=corpus.vocab, width=width, scale=width**-0.5)
    loss, steps = TokenPopulation(model=model, process=corpus), max(1, round(until / FLOW_STEP))
    moves = Descent(lr=until / steps, steps=steps)
    run = evolve(loss, model.init(0, start), moves, record=Graded(), progress=progress)
    return TextHistory(text_curves(ended(run, "the bigram flow"))).opened
