"""The reading of a watched transformer: stages of its probe loss, its attention and its learning rate. Knows no paper.

Claims of papers on such runs come from their column `watched`; they get this reading as evidence.
"""

from collections.abc import Iterator, Mapping
from copy import copy
from dataclasses import replace
from functools import cached_property
from pathlib import Path

import numpy as np

from stagescope.claims.ledger import Ledger
from stagescope.claims.own import Claims
from stagescope.core.errors import InputError
from stagescope.detect.stage import Event, Stage, Stages, Transition, span_text
from stagescope.readings.reading import Reading, reading
from stagescope.runs.run import Run
from stagescope.views.view import Explained, any_explained, captions, listed, plain
from stagescope.watching.events import FLOORS, HeadEvent, Rate, head_curves, head_events, rates_of, warm_up_end
from stagescope.watching.events import TRACK as RATES
from stagescope.watching.heads import Head, Heads, heads
from stagescope.watching.source import Gate, Model, gate_of, model_of

ATTENTION = "attention"
SEARCHED = ("loss", "repeat_loss", "embedding_rank")
"""Series that are searched for transitions: the loss of a batch, its gradient and the learning rate have none to find."""
HOW = "fast changes of curves of heads, decided by likelihood"
_BY_CONTROL = ("evidence", "ledger", "decided_ledger")
"""Parts that depend on a control."""


class WatchedReading(Reading):
    """Everything that can be said of a run of `ss.watch` or `ss.read_checkpoints`.

    `control` is the reading of another such run that was given to `check`, or None.
    """

    control: "WatchedReading | None" = None

    @cached_property
    def heads(self) -> Heads:
        """What each head does, and since when."""
        return heads(self.run)

    @cached_property
    def gate(self) -> Gate:
        """Whether events of attention count: the model must have learned something, from context."""
        return gate_of(self.run)

    @cached_property
    def rates(self) -> tuple[Rate, ...]:
        """Warm-up, decay and jumps of the learning rate."""
        return rates_of(self.run)

    @cached_property
    def head_events(self) -> tuple[HeadEvent, ...]:
        """Fast changes of attention, whether they count or not."""
        return head_events(self.run)

    @property
    def searched(self) -> Mapping[str, np.ndarray]:
        run = self.run
        return {name: run.series[name] for name in (run.clock, *SEARCHED) if name in run.series}

    @cached_property
    def curve_events(self) -> tuple[tuple[str, Transition], ...]:
        """The fast changes of the losses on the probe and of the embedding's rank, where they exceed their floors."""
        loss = np.asarray(self.run.series.get("loss", ()), dtype=float)
        rank = np.asarray(self.run.series.get("embedding_rank", ()), dtype=float)
        good = loss[np.isfinite(loss)]
        largest = float(np.max(rank, where=np.isfinite(rank), initial=0.0))
        floors = {
            "repeat_loss": FLOORS.loss * float(np.ptp(good)) if len(good) else 0.0,
            "embedding_rank": FLOORS.rank * largest,
        }
        return tuple((name, change) for name, change in super().curve_events if abs(change.amplitude) >= floors.get(name, 0.0))

    @cached_property
    def stages(self) -> Stages:
        """Plateaus and transitions of the probe loss, events of attention, names of heads, and the learning rate.

        An event of attention counts only where the gate is open; otherwise it is listed as not counted.
        """
        free, counts = self.free_stages, self.gate.open
        events = {f"{ATTENTION} {k}": event for k, event in enumerate(self.head_events, 1)}
        estimates = dict(free.estimates)
        for name, event in events.items():
            not_counted = Event.missing("not counted", HOW)
            estimates[name] = Event(event.t, event.low, event.high, how=HOW) if counts else not_counted
        # A flag on each event that came while the learning rate was still rising.
        end = warm_up_end(self.rates)
        inside = {name for name, event in estimates.items() if end is not None and event.time is not None and event.time < end}
        until = "" if end is None or end == np.inf else f", until {end:.5g}"
        flags = dict.fromkeys(sorted(inside), f"inside the warm-up: the learning rate is still rising{until}")
        notes = {**free.notes, **flags, **self._further(events)}
        stages = [*free.stages, *(rate.stage for rate in self.rates)]
        if counts:
            stages += [_stage(name, event, notes.get(name, "")) for name, event in events.items()]
            stages += [stage for head in self.heads for stage in _spells(head, float(self.run.time[0]))]
        return replace(Stages.of(free.status, free.clock, estimates, tuple(stages), notes), transitions=free.transitions)

    def _further(self, events: Mapping[str, HeadEvent]) -> dict[str, str]:
        """What the gate says, why events do not count, and what is not known."""
        notes = {"gate": self.gate.sentence}
        if (curves := len(head_curves(self.run))) > FLOORS.curves:
            notes["curves of heads"] = f"{FLOORS.curves} of {curves:,} that move were searched, those that move most"
        if not self.gate.open:
            for name, event in events.items():
                notes[name] = f"at {event.t:.5g} [{span_text(event.low, event.high)}] {event.sentence}; the gate is closed"
            named = sum(bool(head.spells) for head in self.heads)
            if named:
                notes["heads"] = f"{named} of {len(self.heads)} heads have names, which are no stages: the gate is closed"
        if not self.rates:
            recorded = "learning_rate" in self.run.series and np.isfinite(self.run.series["learning_rate"]).sum() > 1
            notes[RATES] = (
                "it has no schedule to show" if recorded else "it was not recorded, so what lies inside a warm-up is not marked"
            )
        return notes

    def check(self, claims: Claims = (), elsewhere: bool = False, control: Run | str | Path | None = None) -> Ledger:
        """The verdicts of all papers' claims on watched models, then your own; `control` is a run with nothing to learn."""
        return super().check(claims, elsewhere) if control is None else self.with_control(control).check(claims, elsewhere)

    def with_control(self, control: Run | str | Path) -> "WatchedReading":
        """This reading with a control; what it has computed is kept, its verdicts are not."""
        control_reading = reading(control)
        if not isinstance(control_reading, WatchedReading):
            raise InputError(f"the control is a run of {control_reading.type!r}; give one of ss.watch or ss.read_checkpoints")
        if control_reading is self or control_reading.run.series is self.run.series:
            raise InputError("the control is the run itself; give another run, such as the same training on shuffled text")
        controlled: list[WatchedReading] = vars(self).setdefault("_controlled", [])
        for earlier in controlled:
            if earlier.control is control_reading:
                return earlier
        twin = copy(self)
        twin.control, twin._verdicts = control_reading, {}
        for name in _BY_CONTROL:
            vars(twin).pop(name, None)
        controlled.append(twin)
        return twin


def _stage(name: str, event: HeadEvent, flag: str) -> Stage:
    moves = [
        {
            "curve": move.measure,
            "layer": move.layer,
            "head": move.head,
            "t": move.transition.t,
            "amplitude": move.transition.amplitude,
        }
        for move in event.moves
    ]
    facts = {"t": event.t, "low": event.low, "high": event.high, "moves": moves, "warm_up": bool(flag)}
    sentence = f"{event.sentence}." + (f" It lies {flag}." if flag else "")
    return Stage(name, event.start, event.stop, sentence, ATTENTION, facts)


def _spells(head: Head, begin: float) -> Iterator[Stage]:
    for spell in head.spells:
        start = begin if spell.step is None else spell.step
        begin_text = "at the first record" if spell.step is None else f"[{span_text(spell.low or 0.0, spell.high or 0.0)}]"
        sentence = f"Began {begin_text}; score {spell.score:.2f}, by chance {spell.chance:.2f}."
        facts = {"score": spell.score, "chance": spell.chance, "low": spell.low, "high": spell.high}
        yield Stage(spell.name, start, spell.stop, sentence, head.label, facts, aside=True)


GLOSSARY = {
    "attention #": "Event: numbers of one or more heads change fast, together.",
    "gate": "Changes of attention count only where the model has learned something from its context.",
    "induction": "A head that looks at what came after the last time the present token was seen.",
    "previous token": "A head that looks at the token just before.",
    "sink": "Attention on the first token, where a head looks when it has nothing to say.",
    "learning rate": "The size of a step of the optimiser; often raised at first (warm-up) and lowered later (decay).",
    "context gain": "How much lower the loss is late in a sequence than early: what the model takes from context.",
}
MOST_NAMES = 3
"""Heads with a name that a caption lists."""


def explain(reading: WatchedReading) -> Explained:
    try:
        model = model_of(reading.run)
    except InputError:  # somebody else wrote the run
        return any_explained(reading)
    stage_captions = captions(reading.told_stages, lambda stage: _words(stage, reading))
    return Explained(_sentence(reading, model), captions=stage_captions, glossary=GLOSSARY)


def _sentence(reading: WatchedReading, model: Model) -> str:
    run, layers = reading.run, len(model.heads)
    heads = sorted(set(model.heads))
    head_counts = f"{heads[0]} heads in each" if len(heads) == 1 else f"{sum(model.heads)} heads in all"
    words = "" if model.vocabulary is None else f", {model.vocabulary:,} tokens"
    source = "watched while it trained" if run.type == "watched" else "read from its checkpoints"
    span = f"{run.frames:,} records from {run.clock} {run.time[0]:,.0f} to {run.time[-1]:,.0f}"
    probe = f"The loss and the heads are those on a fixed probe of sequences of {model.length} tokens"
    return f"{model.name}: {layers} layer{'s' * (layers != 1)}, {head_counts}{words}, {source}; {span}. {probe}."


def _words(stage: Stage, reading: WatchedReading) -> str:
    stop = float(reading.run.time[-1]) if stage.stop is None else stage.stop
    stages = [one for one in reading.told_stages if one.track and stage.start <= one.start <= stop]
    times = [one.facts["t"] for one in stages if one.track == ATTENTION]
    named = [f"{one.name} ({one.track}, {one.start:,.0f})" for one in stages if one.aside]
    heads = f" New names of heads: {listed(named, most=MOST_NAMES)}." if named else ""
    changes = f"Attention changes fast {len(times)} time{'s' * (len(times) != 1)}, first at {min(times):,.0f}." if times else ""
    return f"{plain(stage)} {changes}{heads}".strip()
