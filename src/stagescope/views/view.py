"""What a page shows, before it is drawn: curves, matrices and points over the frames of a run.

A view is data with labels. It knows neither HTML nor matplotlib: the page, the static figures and the summary in a notebook
draw the same views.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from stagescope.claims.ledger import Ledger
from stagescope.claims.reference import Reference
from stagescope.detect.stage import Stages
from stagescope.errors import InputError
from stagescope.landscape.ladder import Ladder
from stagescope.landscape.saddle_path import SaddlePath
from stagescope.runs.run import Run
from stagescope.views.explained import Explained


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
