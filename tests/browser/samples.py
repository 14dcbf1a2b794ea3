"""Portraits made by hand, with numbers a test can compute again. Every text in them can be made hostile."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from stagescope.claims.claim import Verdict
from stagescope.claims.comparison import OverRuns
from stagescope.claims.ledger import Ledger
from stagescope.claims.reference import Reference
from stagescope.detect.stage import Stage, Stages
from stagescope.landscape.ladder import Ladder, Rung
from stagescope.runs.run import Arrays, Run
from stagescope.views.view import Caption, Curve, Curves, Explained, Level, Marks, Matrices, Points, Portrait, SmallTable, View

HEADS, TOKENS = 2, 5
FOCUS, DILUTION = 0.25, 0.6
"""Shares of a run's time at which its events are."""
Text = Callable[[str], str]


def plain(text: str) -> str:
    return text


def attention(frames: int, seed: int = 0) -> np.ndarray:
    """A smooth softmax trajectory (frames, heads, tokens, tokens)."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(HEADS, TOKENS, TOKENS))
    growth = np.linspace(0.0, 4.0, frames)[:, None, None, None]
    weights = np.exp(growth * scores)
    return weights / weights.sum(axis=-1, keepdims=True)


def run(time: np.ndarray, loss: np.ndarray, **facts: Any) -> Run:
    """An own objective's run; its one block is not what the portraits below show."""
    spec = {"field": {"type": "own", "name": "sample"}, "blocks": {"w": []}, "dynamics": {"type": "GradientFlow", "rates": {}}}
    return Run(
        params=Arrays.of({"w": loss.copy()}),
        series=Arrays.of({facts.get("clock", "t"): time, "loss": loss}),
        spec=spec,
        axes={"w": ("t",), "loss": ("t",)},
        **{"clock": "t", "status": "finished", **facts},
    )


def views(time: np.ndarray, loss: np.ndarray, text: Text = plain, seed: int = 0) -> tuple[View, ...]:
    frames = len(time)
    tokens = tuple(text(f"token {i}") for i in range(TOKENS))
    values = attention(frames, seed)
    gap = values[:, :1] - values[:, 1:]
    reach = float(np.abs(gap).max()) or 1.0
    angle = np.linspace(0, 1, frames)[:, None] + np.arange(TOKENS)
    kinds = Marks((text("common"), text("distinct")), np.arange(TOKENS * TOKENS).reshape(TOKENS, TOKENS) % 3)
    return (
        Curves(
            "loss",
            text("Loss"),
            text("The loss over time."),
            text("loss"),
            (Curve(text("population"), loss),),
            (Level(text("floor"), 0.1),),
            log=True,
        ),
        Matrices(
            "attention",
            text("Attention"),
            text("Each row sums to one."),
            values,
            (text("head 1"), text("head 2")),
            tokens,
            tokens,
            marks=kinds,
        ),
        Matrices(
            "gap",
            text("Difference"),
            text("The first head less the second."),
            gap,
            (text("gap"),),
            tokens,
            tokens,
            low=-reach,
            high=reach,
        ),
        Points(
            "plane",
            text("Embedding"),
            text("Tokens in their plane."),
            np.stack([np.cos(angle), np.sin(angle)], axis=-1),
            tokens,
            np.tile([0.7, 0.2], (frames, 1)),
        ),
    )


def verdicts(text: Text = plain) -> tuple[Verdict, ...]:
    facts = {"tag": "SnS:lemma-1", "regime": text("small start")}
    focus = Verdict(
        **facts,
        statement=text("attention focuses"),
        predicted=0.5,
        measured=0.4987,
        tolerance=0.01,
        verdict="confirmed",
        reason=text("within tolerance"),
        shown=(text("focus"),),
        over_runs=OverRuns((1.0, 10.0, 100.0), (2.0, 3.0, None), (2.1, 3.1, 4.1), text("scale"), text("delay"), log_x=True),
    )
    dilution = replace(focus, statement=text("attention dilutes"), measured=0.9, verdict="violated", over_runs=None)
    dilution = replace(dilution, shown=(text("focus"), text("dilution")), group=text("turns"))
    nothing = {"predicted": None, "measured": None, "tolerance": None, "shown": (), "group": text("rates")}
    open_ = replace(
        dilution, tag="SnS:data", statement=text("rates are equal"), verdict="inconclusive", reason=text("no rate"), **nothing
    )
    other = replace(open_, statement=text("speaks of Adam"), verdict="not applicable", reason=text("this is a flow"))
    return (focus, dilution, open_, other)


def explained(until: float, text: Text = plain) -> Explained:
    """A head, a table, a caption for each stage, and a symbol."""
    stops = (FOCUS * until, DILUTION * until, None)
    said = (text("attention gathers on token 1"), text("nothing happens"), text("attention spreads"))
    titles = (text("focus"), text("plateau"), text("dilution"))
    starts = (0.0, *stops[:2])
    tokens = (text("heads"), text("tails"))
    return Explained(
        text("Two heads learn a coin."),
        SmallTable(text("Coin"), tokens, tokens, np.array([[0.9, 0.1], [0.5, 0.5]])),
        tuple(Caption(*each) for each in zip(titles, starts, stops, said, strict=True)),
        {text("collapse"): text("all attention on one token"), "k#": text("a number")},
    )


def portrait(
    name: str = "first", *, frames: int = 41, until: float = 20.0, text: Text = plain, seed: int = 0, **facts: Any
) -> Portrait:
    """Stages, a ledger, a ladder, provenance and a note, over `frames` frames from 0 to `until`."""
    time = np.linspace(0.0, until, frames)
    loss = 0.1 + np.exp(-time / 4)
    made = run(time, loss, **facts)
    focus, dilution = FOCUS * until, DILUTION * until
    stages = (
        Stage(text("focus"), 0.0, focus, text("attention grows")),
        Stage(text("plateau"), focus, dilution, text("nothing moves")),
        Stage(text("dilution"), dilution, None, text("attention falls")),
    )
    events = {text("focus"): focus, text("dilution"): dilution, text("collapse"): None}
    rungs = (
        Rung(text("1 saddle"), 0.0, 1e-12, 0.01, 1.1, text("r"), (2.0, 0.5), 1.98, 2.01, (0.99,), 3.9, 4.0, text("as predicted")),
        Rung(text("2 minimum"), 0.75 * until, 1e-12, 0.02, 0.1, None, (), note=text("nothing grows")),
    )
    return Portrait(
        name=text(name),
        run=made,
        views=views(time, loss, text, seed),
        stages=Stages(made.status, made.clock, events, stages, {text("collapse"): text("the run ended before")}),
        ledger=Ledger(made.status, made.clock, verdicts(text)),
        ladder=Ladder(made.status, made.clock, rungs),
        provenance={text("versions"): {text("stagescope"): text("0.1.0")}, text("digest"): text("a1b2")},
        notes=(text("a note about this run"),),
        explained=explained(until, text),
        reference=Reference("key", text("On coins"), text("A. Author"), 2026, text("Journal"), "2600.00001"),
    )
