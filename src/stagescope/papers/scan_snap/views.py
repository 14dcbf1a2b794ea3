"""Views of a scan-and-snap run: class attention with common and distinct tokens, its speed, scores and decoder."""

from dataclasses import dataclass
from functools import partial

import numpy as np

from stagescope.detect.stage import Stage
from stagescope.papers.scan_snap.loss import Pairing, PairwisePopulation
from stagescope.papers.scan_snap.observables import ClassAttention, class_attention, law_of
from stagescope.papers.scan_snap.process import SequenceClasses
from stagescope.papers.scan_snap.reading import ScanSnapReading
from stagescope.papers.scan_snap.study import WORDS
from stagescope.readings.reading import Reading
from stagescope.runs.run import Run
from stagescope.views.any_run import excess_view, largest, loss_view, matrix, norms_view, speed_view, values_view
from stagescope.views.curves import CELLS, MOST, MOST_POINTS, NAMED, OBSERVED, curves, left_out, many_curves, plane, shown
from stagescope.views.view import (
    LARGEST_TABLE,
    Curve,
    Explained,
    Level,
    Maker,
    Marks,
    Points,
    SmallTable,
    View,
    captions,
    listed,
    motion_words,
    plain,
)

WIDEST = 1200
"""Rows and columns of the decoder that are drawn."""


@dataclass(frozen=True)
class _Page:
    """The curves of the frames shown, and the names on the page."""

    run: Run
    curves: ClassAttention
    law: Pairing
    frames: np.ndarray | None

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(map(self.law.process.label, self.law.model.keys))

    @property
    def outputs(self) -> tuple[str, ...]:
        model = self.law.model
        rest_label = (f"each of {model.rest} others",) if model.rest else ()
        return (*map(self.law.process.label, model.outputs), *rest_label)

    @property
    def classes(self) -> tuple[str, ...]:
        label = self.law.process.label
        return tuple(f"{label(item.query)} -> {label(item.target)}" for item in self.law.process.classes)

    def attention(self) -> View:
        curves, attention = self.curves, self.curves.attention
        cells = np.where(curves.common, 1, np.where(curves.distinct, 2, 0)).astype(np.uint8)
        return matrix(
            "attention",
            "Class attention",
            "c_n in the long-sequence limit: row = class (query -> target), column = token of its contexts.",
            attention,
            rows=self.classes,
            columns=self.keys,
            row_axis="class",
            column_axis="token",
            high=largest(attention),
            marks=Marks(("common token", "distinct token"), cells),
            frames=self.frames,
        )

    def by_class(self, name: str) -> View:
        """A curve of class attention: the mean over classes, then each class."""
        slot, title, about, axis = {
            "common_mass": (
                "common-mass",
                "Attention on common tokens",
                "Attention on tokens that several classes share. It falls during the scan and hardly changes after the snap.",
                "attention",
            ),
            "speed": (
                "attention-speed",
                "Speed of attention",
                "Sum of |dc_n/dt| over tokens. It is largest at `peak` and below 10 % of that after `snap`.",
                f"per unit of {self.curves.clock}",
            ),
            "entropy": (
                "entropy",
                "Entropy on distinct tokens",
                "Entropy of class attention on the class's distinct tokens, in nats. Lower is sparser.",
                "nats",
            ),
        }[name]
        values, log = getattr(self.curves, name), name == "speed"
        lines = [Curve("mean", self.curves.mean(values))]
        if len(self.classes) > 1:
            lines += many_curves(values, [f"class {name}" for name in self.classes], named=NAMED - 1)
        return curves(slot, title, about + left_out(len(self.classes), what="classes"), axis, lines, log=log, frames=self.frames)

    def tokens(self) -> View:
        """The two strongest distinct tokens of the first classes by name; their other tokens are drawn faintly."""
        attention, named, faint = self.curves, [], []
        supports, last = attention.supports, np.nan_to_num(attention.c[-1])
        for n, name in enumerate(self.classes[: NAMED // 2]):
            entries = np.arange(supports.start[n], supports.start[n + 1])
            distinct = sorted(entries[~supports.common[entries]].tolist(), key=lambda entry: -last[entry])
            for place, entry in enumerate(distinct):
                curve = Curve(f"token {self.keys[supports.key[entry]]}", attention.c[:, entry], f"class {name}", faint=place > 1)
                (faint if curve.faint else named).append(curve)
            shared = entries[supports.common[entries]]
            faint += [
                Curve(f"common {self.keys[supports.key[e]]}", attention.c[:, e], f"class {name}", faint=True) for e in shared
            ]
        lines = [*named, *faint][:MOST]
        about = "Attention of each class on its tokens. The two distinct tokens that end strongest are named."
        note = left_out(len(self.classes), NAMED // 2, "classes") + left_out(len(named) + len(faint))
        return curves("tokens", "Attention token by token", about + note, "attention", lines, frames=self.frames)

    def scores(self) -> View:
        label, values = self.law.process.label, np.asarray(self.run.params["Z"])
        return matrix(
            "scores",
            "Attention scores Z",
            "Before the softmax: row = query, column = token. Scores of distinct tokens grow, those of common tokens fall.",
            values,
            rows=tuple(map(label, self.law.model.queries)),
            columns=self.keys,
            column_axis="token",
            signed=True,
            frames=self.frames,
        )

    def rows(self) -> View:
        first = slice(0, MOST_POINTS)
        places, shares = plane(np.asarray(self.run.params["Y"])[:, first])
        about = "Rows of Y in the plane of their largest variance over all frames. Tokens of one class move together."
        about += left_out(len(self.keys), MOST_POINTS, "tokens")
        return Points("embedding", "Tokens by their decoder rows", about, places, self.keys[first], shares, frames=self.frames)


def pairwise_views(reading: Reading) -> list[Maker]:
    """Loss, class attention, common mass, speed, single tokens, scores and decoder."""
    run = reading.run
    law = law_of(run)
    size = len(law.process.classes) * len(law.model.keys) + run.params["Y"][0].size
    some = shown(run, size, OBSERVED)
    page = _Page(some.run, class_attention(some.run), law, some.frames)
    return [
        partial(_loss, run, law),
        page.attention,
        partial(page.by_class, "common_mass"),
        page.tokens,
        partial(page.by_class, "speed"),
        partial(page.by_class, "entropy"),
        page.scores,
        partial(_decoder, run, page),
        partial(values_view, run),
        page.rows,
        partial(norms_view, run),
        partial(_excess, run, law),
        partial(speed_view, run),
    ]


def _loss(run: Run, law: Pairing) -> View | None:
    floor, start = law.process.floor(), float(np.log(law.model.vocab))
    levels = (Level("uniform prediction, ln M", start), Level("floor", floor))
    about = "Cross-entropy of the target in nats. The floor is the least loss on contexts of any length."
    if "loss" in run.series:
        return loss_view(run, levels, about)
    about += " The modified decoder does not descend a loss; this one is computed at its frames."
    return loss_view(run, levels, about, (Curve("loss", _losses(run, law)),))


def _losses(run: Run, law: Pairing) -> np.ndarray:
    """The recorded loss; for the modified decoder, which records none, it is computed."""
    if "loss" in run.series:
        return np.asarray(run.series["loss"], dtype=float)
    objective = PairwisePopulation(model=law.model, process=law.process)
    return np.array([objective.value(run.at(frame)) for frame in range(run.frames)])


def _excess(run: Run, law: Pairing) -> View | None:
    """None where the floor is zero, because the loss itself is then the excess."""
    floor, start = law.process.floor(), float(np.log(law.model.vocab))
    if floor == 0:
        return None
    return excess_view(_losses(run, law) - floor, "the floor", (Level("uniform prediction", start - floor),))


def _decoder(run: Run, page: _Page) -> View:
    """At most WIDEST rows and columns; with more, a cell is smaller than a pixel."""
    rows, columns = (min(size, WIDEST) for size in run.params["Y"].shape[1:])
    some = shown(run, rows * columns, CELLS)
    values = np.asarray(some.run.params["Y"])[:, :rows, :columns]
    note = left_out(len(page.keys), WIDEST, "tokens") + left_out(len(page.outputs), WIDEST, "outputs")
    return matrix(
        "decoder",
        "Decoder Y",
        "What a token adds to the logit of each output if it has all the attention." + note,
        values,
        rows=page.keys[:rows],
        columns=page.outputs[:columns],
        row_axis="token",
        column_axis="output",
        signed=True,
        frames=some.frames,
    )


# A run of scan and snap in words: its classes, its model, and what happens in each stage.


def explain_run(reading: ScanSnapReading) -> Explained:
    process = reading.law.process
    layer = f"One attention layer (scores Z, decoder Y) reads a context and a query and predicts one of {process.vocab:,} tokens"
    shared = f"{len(process.common)} tokens are common to several, {len(process.distinct)} are distinct"
    counts = f"There are {len(process.classes)} classes of contexts; {shared}"
    sentences = captions(reading.told_stages, _said)
    return Explained(
        f"{layer}. {counts}. {motion_words(reading.run)}", _table(process), sentences, WORDS.glossary["run"], "common-mass"
    )


def _table(process: SequenceClasses) -> SmallTable | None:
    keys = process.keys
    if max(len(process.classes), len(keys)) > LARGEST_TABLE:
        return None
    rows = tuple(f"{item.query} → {item.target}" for item in process.classes)
    values = np.asarray(process.table(keys))
    return SmallTable("P(token | class): row = class (query → target)", rows, tuple(map(process.label, keys)), values)


def _said(stage: Stage) -> str:
    facts = stage.facts
    if "common_mass_start" not in facts:
        return plain(stage)
    fell = f"attention on common tokens goes from {facts['common_mass_start']:.3f} to {facts['common_mass_stop']:.3f}"
    if stage.name == "uniform":
        return f"Attention is still spread by frequency, while the decoder begins to tell the classes apart: {fell}."
    if stage.name == "scan":
        lead = facts.get("distinct_over_common")
        note = f"; the strongest distinct token ends with {lead:.3g} times the strongest common one" if lead is not None else ""
        return f"Scan: common tokens say little about the class and lose attention, distinct ones gain it. Now {fell}{note}."
    winners = listed([str(name) for name in facts.get("winners", ())])
    won = f" The strongest tokens are {winners}." if winners else ""
    return f"Snap: the loss is small, so almost nothing drives attention any more; {fell}.{won}"
