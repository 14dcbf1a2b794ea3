"""From the options of linear attention to what `evolve` needs: frames stand close where drops are predicted."""

import numpy as np

from stagescope.dynamics.record import Around, LogSpaced, Record
from stagescope.errors import InputError
from stagescope.papers.linear_icl import forms
from stagescope.papers.linear_icl.cascade import SilentHead, cascade
from stagescope.papers.linear_icl.loss import LinearPopulation, LinearSampled
from stagescope.papers.linear_icl.model import LinearAttention
from stagescope.papers.linear_icl.process import RegressionTask
from stagescope.papers.linear_icl.study import LinearOptions, check_use
from stagescope.papers.setup import make_dynamics
from stagescope.papers.study import Setup
from stagescope.params import Params

LONGER = 1.5
"""How much longer than the last drop predicted a flow is by default: later drops are predicted to a tenth or so."""


def study_setup(options: LinearOptions, seed: int) -> Setup:
    check_use(options)
    task = RegressionTask(eigenvalues=options.eigenvalues, contexts=options.contexts or (options.context,))
    model = LinearAttention(dim=task.dim, heads=options.heads, rank=None if options.merged else options.rank)
    params = model.init(seed, options.init_scale)
    if options.optimizer != "flow":
        law = LinearPopulation(model=model, process=task)
        if options.batch is not None:
            law = LinearSampled(model=model, process=task, batch=options.batch, seed=seed)
        return Setup(law, params, make_dynamics(options), record=LogSpaced(frames=options.frames))
    until, record = flow_frames(task, model, params, options.until, options.frames)
    return Setup(LinearPopulation(model=model, process=task), params, make_dynamics(options), until, record)


def flow_frames(
    task: RegressionTask, model: LinearAttention, start: Params, until: float | None = None, frames: int = 200
) -> tuple[float, Record]:
    """The end of a flow and its frames: close to each other around the drops that are predicted from a start."""
    times, widths = expected_drops(task, model, start)
    if until is None:
        if not times:
            raise InputError("no drop is predicted from this start, so the end of the flow is not known; give --until")
        until = float(LONGER * (max(times) + 10 * widths[int(np.argmax(times))]))
    inside = [pair for pair in zip(times, widths, strict=True) if 0 < pair[0] < until]
    if not inside:
        return until, LogSpaced(frames=frames)
    at, wide = zip(*inside, strict=True)
    return until, Around(at=at, widths=wide, frames=frames)


def expected_drops(task: RegressionTask, model: LinearAttention, start: Params) -> tuple[list[float], list[float]]:
    """When drops are predicted, and about how long each takes."""
    if model.rank is None:
        when = forms.merged_drop_time(task, start)
        return ([when], [3 / forms.merged_rate(task)]) if np.isfinite(when) else ([], [])
    found = cascade(task, SilentHead.all_of(start), model.rank)
    return [drop.time for drop in found], [3 / forms.pace(task, drop.direction) for drop in found]


DIM, HEADS, RANK = 8, 10, 4
"""The largest model that the sliders reach. A smaller one has the first numbers of each block: a stream is read in order."""


def play_draws(seed: int) -> dict[str, np.ndarray]:
    models = LinearAttention(dim=DIM, heads=HEADS, rank=RANK), LinearAttention(dim=DIM, heads=HEADS, rank=None)
    return {name: block.ravel() for model in models for name, block in model.init(seed, 1.0).items()}
