"""What a page shows, before it is drawn: curves, matrices and points over the frames of a run, and the run explained in words.

Papers fill in the explanation; any run has a general one. It is data for a page: sentences with the numbers of the run, a small
table of the process, captions of stretches of time.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from stagescope.claims.ledger import Ledger
from stagescope.claims.reference import Reference
from stagescope.core.errors import InputError
from stagescope.detect.stage import Stage, Stages
from stagescope.landscape.ladder import Ladder
from stagescope.landscape.saddle_path import SaddlePath
from stagescope.runs.run import Run


@dataclass(frozen=True)
class Caption:
    """What happens from `start` to `stop` (None: to the end), in a sentence or two; `title` is the stage, or what is between."""

    title: str
    start: float
    stop: float | None
    text: str


LARGEST_TABLE = 12
"""Rows and columns up to which a table is small."""


@dataclass(frozen=True)
class SmallTable:
    """A table of the process for the head of a page, such as a transition matrix: values (rows, columns) with names."""

    title: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    values: np.ndarray

    def __post_init__(self) -> None:
        if self.values.shape != (len(self.rows), len(self.columns)):
            names = f"{len(self.rows)} x {len(self.columns)} names"
            raise InputError(f"{self.title}: a table of shape {self.values.shape} has {names}")


@dataclass(frozen=True)
class Explained:
    """`sentence` names model and process. `lead` is the slot of the curves that a guided tour shows beside the first matrices.

    `glossary` has symbols of the paper and what they mean; `#` in a symbol stands for a number: `E#` is E1, E2 and so on. What
    every run has (rung, nats, ...) is in `GLOSSARY`.
    """

    sentence: str
    table: SmallTable | None = None
    captions: tuple[Caption, ...] = ()
    glossary: Mapping[str, str] = field(default_factory=dict)
    lead: str = "loss"


GLOSSARY: Mapping[str, str] = json.loads(Path(__file__).with_name("glossary.json").read_bytes())
"""What symbols and words mean on every page."""


def occurring(glossary: Mapping[str, str], texts: Iterable[str]) -> dict[str, tuple[list[str], str]]:
    """Symbols of a glossary that occur in texts, in its order: the words that were met, and what they mean.

    A longer symbol is looked for first: "cycle 3" is not a "cycle", and "focus1" is the event, not the stage.
    """
    patterns = {symbol: re.escape(symbol).replace(r"\#", r"\d+") for symbol in sorted(glossary, key=len, reverse=True)}
    if not patterns:
        return {}
    either = re.compile(rf"(?<!\w)(?:{'|'.join(patterns.values())})(?!\w)")
    met = sorted({word for text in texts for word in either.findall(text)}, key=lambda word: (len(word), word))
    named = {symbol: [word for word in met if re.fullmatch(pattern, word)] for symbol, pattern in patterns.items()}
    return {symbol: (named[symbol], says) for symbol, says in glossary.items() if named[symbol]}


class Told(Protocol):
    """What an explanation is made of: the reading of a run."""

    run: Run
    told_stages: Any  # Stages, computed when first used


def any_explained(reading: Told) -> Explained:
    """The explanation of any run: its type, how it moves, and the evidence of its stages."""
    run = reading.run
    kind = run.type if run.spec.get("field") is not None else str((run.spec.get("source") or {}).get("model") or run.type)
    return Explained(f"A run of {kind}. {motion_words(run)}", captions=captions(reading.told_stages, plain))


def plain(stage: Stage) -> str:
    """The evidence of a stage as a sentence."""
    text = stage.evidence.strip()
    return text if not text or text[-1] in ".!?" else f"{text}."


def captions(
    stages: Stages, text_of: Callable[[Stage], str], between: Callable[[Stage, Stage | None], str] = lambda before, after: ""
) -> tuple[Caption, ...]:
    """A caption for each stage of the run itself, in order; gaps between them have what `between` says of their neighbours."""
    run_stages = sorted((stage for stage in stages if not stage.track), key=lambda stage: stage.start)
    entries: list[Caption] = []
    for stage, after in pairwise([*run_stages, None]):
        if stage is None:
            continue
        entries.append(Caption(stage.name, stage.start, stage.stop, text_of(stage)))
        begins = None if after is None else after.start
        gap = stage.stop is not None and (begins is None or begins > stage.stop)
        text = between(stage, after) if gap else ""
        if text and stage.stop is not None:
            entries.append(Caption(f"after {stage.name}", stage.stop, begins, text))
    return tuple(entries)


def motion_words(run: Run) -> str:
    """How the parameters move, in a sentence; empty for a run that was recorded elsewhere."""
    moves: Mapping[str, Any] = run.spec.get("dynamics") or {}
    if moves.get("type") == "GradientFlow":
        end = f" up to t = {run.time[-1]:g}" if run.frames else ""
        return f"Its parameters follow gradient flow{end}."
    if moves.get("type") == "Descent":
        rule = (moves.get("optimizer") or {}).get("type", "descent")
        return f"Its parameters take {moves.get('steps', 0):,} steps of {rule} of size {moves.get('lr', 0):g}."
    return ""


def listed(words: Sequence[str], most: int = 4) -> str:
    """Words as a sentence has them: "a, b and c"."""
    parts = list(words[:most]) + ([f"{len(words) - most} more"] if len(words) > most else [])
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}" if parts else ""


@dataclass(frozen=True)
class Curve:
    """One number a frame. Curves of a `family` belong together (one colour family); `faint` ones are drawn behind the others.

    `dashed` ones were not measured: they are predicted. `token` is the token that a curve is about, if it is about one: it has
    one colour in all views of a run.
    """

    name: str
    values: np.ndarray
    family: str = ""
    faint: bool = False
    dashed: bool = False
    token: str = ""


@dataclass(frozen=True)
class Level:
    """A computed floor or plateau, drawn as a line across."""

    name: str
    value: float


@dataclass(frozen=True)
class View:
    """Something over the frames of a run. `frames` are the places in the run of the frames shown; None: every one.

    `slot` names what is shown ("loss", "attention", ...): views of several runs in one slot are shown together.
    `about` is one sentence on what it is and how to read it.
    """

    slot: str
    title: str
    about: str
    frames: np.ndarray | None = field(default=None, kw_only=True)


@dataclass(frozen=True)
class Curves(View):
    """Curves with one axis; `log` where all values of interest are positive, so that a logarithmic axis makes sense."""

    axis: str
    curves: tuple[Curve, ...]
    levels: tuple[Level, ...] = ()
    log: bool = False


@dataclass(frozen=True)
class Marks:
    """Kinds of cells, such as common and distinct tokens: `cells` (rows, columns) holds 0 or 1 + a place in `names`."""

    names: tuple[str, ...]
    cells: np.ndarray


@dataclass(frozen=True)
class Matrices(View):
    """Matrices (frames, panels, rows, columns), one panel for a head or for the whole; `low` and `high` bound the colours.

    A range with low = -high is drawn with a diverging map. `across` is how many panels belong into a row, such as the heads of
    a layer; None where that does not matter. `tokens`: rows and columns are tokens, which have one colour in all views.
    """

    values: np.ndarray
    panels: tuple[str, ...]
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    row_axis: str = "query"
    column_axis: str = "key"
    low: float = 0.0
    high: float = 1.0
    marks: Marks | None = None
    across: int | None = None
    tokens: bool = False

    def __post_init__(self) -> None:
        expected = (len(self.panels), len(self.rows), len(self.columns))
        if self.values.shape[1:] != expected:
            raise InputError(f"{self.slot}: matrices of shape {self.values.shape[1:]} do not fit their labels {expected}")


@dataclass(frozen=True)
class Points(View):
    """Points in the plane (frames, n, 2) with a label each, and the shares of variance (frames, 2) the two axes explain.

    `tokens`: the points are tokens, which have one colour in all views.
    """

    values: np.ndarray
    labels: tuple[str, ...]
    explained: np.ndarray
    tokens: bool = False


class HasRun(Protocol):
    """What views are made of: the reading of a run."""

    run: Run


Maker = Callable[[], View | None]
"""Makes one view when called, or None where a run has nothing to show in it: one that fails takes no other with it."""


@dataclass(frozen=True)
class Portrait:
    """Everything a page says about one run. What could not be computed is None or empty, and `notes` say why."""

    name: str
    run: Run
    views: tuple[View, ...]
    stages: Stages | None = None
    ledger: Ledger | None = None
    ladder: Ladder | None = None
    provenance: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    prediction: SaddlePath | None = None
    explained: Explained | None = None
    reference: Reference | None = None
