"""From the options of linear attention to what `evolve` needs: frames stand close where drops are predicted."""

import numpy as np

from stagescope.core.errors import InputError
from stagescope.core.params import Params
from stagescope.flow.record import Around, LogSpaced, Record
from stagescope.papers.linear_icl import forms
from stagescope.papers.linear_icl.cascade import SilentHead, cascade
from stagescope.papers.linear_icl.limits import LIMITS
from stagescope.papers.linear_icl.loss import LinearPopulation, LinearSampled
from stagescope.papers.linear_icl.model import LinearAttention
from stagescope.papers.linear_icl.process import RegressionTask
from stagescope.papers.linear_icl.study import PLAY, PRESETS, LinearOptions, check_use
from stagescope.readings.setup import make_dynamics
from stagescope.readings.study import Setup


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
        until = float(LIMITS.longer * (max(times) + 10 * widths[int(np.argmax(times))]))
    inside = [pair for pair in zip(times, widths, strict=True) if 0 < pair[0] < until]
    if not inside:
        return until, LogSpaced(frames=frames)
    centres, widths = zip(*inside, strict=True)
    return until, Around(at=centres, widths=widths, frames=frames)


def expected_drops(task: RegressionTask, model: LinearAttention, start: Params) -> tuple[list[float], list[float]]:
    """When drops are predicted, and about how long each takes."""
    if model.rank is None:
        time = forms.merged_drop_time(task, start)
        return ([time], [3 / forms.merged_rate(task)]) if np.isfinite(time) else ([], [])
    drops = cascade(task, SilentHead.all_of(start), model.rank)
    return [drop.time for drop in drops], [3 / forms.pace(task, drop.direction) for drop in drops]


def play_draws(seed: int) -> dict[str, np.ndarray]:
    """Starts of the largest models that the sliders reach; smaller ones have the first numbers of each block of a stream."""
    largest = {slider.option: int(slider.high) for slider in PLAY.sliders}
    dim = max(len(preset.get("eigenvalues", ())) for preset in PRESETS.values())
    models = [LinearAttention(dim=dim, heads=largest["heads"], rank=rank) for rank in (largest["rank"], None)]
    return {name: block.ravel() for model in models for name, block in model.init(seed, 1.0).items()}
