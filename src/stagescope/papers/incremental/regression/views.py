"""A run of the regression models on a page: heads on positions, the positions of the features, and plateaus in closed form."""

from functools import partial

import numpy as np

from stagescope.papers.incremental.head_views import agreement_view, heads_in_plane, learned_view, mass_view
from stagescope.papers.incremental.regression.observables import HeadCurves, head_curves
from stagescope.papers.reading import Reading
from stagescope.runs.run import Run
from stagescope.views.any_run import loss_view, matrix, norms_view, speed_view
from stagescope.views.curves import OBSERVED, shown
from stagescope.views.view import Curve, Level, Maker, Marks, View


def regression_views(reading: Reading) -> list[Maker]:
    """Loss with its plateaus, attention over positions, masses, agreement, values."""
    run = reading.run
    some = shown(run, sum(block[0].size for block in run.params.values()), OBSERVED)
    found, frames = head_curves(some.run), some.frames
    groups = tuple(f"feature {i + 1}" for i in range(len(found.model.gains)))
    values = found.model.reduce(found.params)["V"]
    return [
        partial(_loss, run, found),
        partial(_attention, found, frames),
        partial(mass_view, found, groups, "the positions of the features", frames),
        partial(agreement_view, found, frames),
        lambda: learned_view(found.learned, groups, frames),
        partial(_values, values, groups, frames),
        partial(heads_in_plane, values, frames),
        partial(norms_view, run),
        partial(speed_view, run),
    ]


def _levels(found: HeadCurves) -> tuple[Level, ...]:
    levels = enumerate(found.forms.levels)
    return tuple(Level(f"{j} feature{'' if j == 1 else 's'} fitted", float(level)) for j, level in levels)


def _loss(run: Run, found: HeadCurves) -> View | None:
    about = "Squared error of the map, |G - P|^2/2. On plateau j the first j features are fitted: the level is sum_{i>j} g_i^2/2."
    if "loss" in run.series:
        return loss_view(run, _levels(found), about)
    about += " The mirror law is no gradient of a loss: this loss is computed along the run."
    return loss_view(run, _levels(found), about, (Curve("loss", head_curves(run).loss),))


def _attention(found: HeadCurves, frames: np.ndarray | None) -> View:
    model, heads = found.model, found.attention.shape[1]
    cells = np.zeros((heads, model.positions), dtype=np.uint8)
    cells[:, model.at] = 1 + np.arange(len(model.gains))
    return matrix(
        "attention",
        "Attention of the heads over positions",
        "Row = head, column = position; the positions of the features are marked.",
        found.attention,
        rows=tuple(f"head {h + 1}" for h in range(heads)),
        columns=tuple(str(n) for n in range(model.positions)),
        row_axis="head",
        column_axis="position",
        marks=Marks(tuple(f"position of feature {i + 1}" for i in range(len(model.gains))), cells),
        frames=frames,
    )


def _values(values: np.ndarray, groups: tuple[str, ...], frames: np.ndarray | None) -> View:
    return matrix(
        "head-values",
        "Values of the heads",
        "V_h in the basis of the features: what each head adds for the positions it attends to.",
        values,
        rows=tuple(f"head {h + 1}" for h in range(values.shape[1])),
        columns=groups,
        row_axis="head",
        column_axis="feature",
        signed=True,
        frames=frames,
    )
