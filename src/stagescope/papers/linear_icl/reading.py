"""The reading of a run of linear attention: frames where its curves move, companion runs, and the path from its start."""

from collections.abc import Callable
from functools import cached_property

import numpy as np

from stagescope.detect.stage import Stages
from stagescope.dynamics.evolve import evolve
from stagescope.dynamics.flow import GradientFlow
from stagescope.errors import InputError, StagescopeError
from stagescope.landscape.saddle_path import SOLVER, AtRest, Leg, Predicted, SaddlePath, unsure
from stagescope.papers.linear_icl import forms
from stagescope.papers.linear_icl.cascade import SilentHead, cascade
from stagescope.papers.linear_icl.evidence import LIMITS, Evidence, root_mean_square
from stagescope.papers.linear_icl.loss import LinearLoss, LinearSampled
from stagescope.papers.linear_icl.setup import expected_drops, flow_frames
from stagescope.papers.reading import Reading
from stagescope.papers.rebuild import ended, forked
from stagescope.params import Params
from stagescope.readings.replay import Replay
from stagescope.runs.run import Run

MOVE = 0.01
"""Between two frames a loss may fall by this share of the whole; a run that falls faster is replayed with more frames there."""
GROWTH, FLOOR = 0.4, 1e-4
"""Between two frames ln(M_ii + FLOOR of its end) may change by this: openings are seen while they are small."""
REPLAYS, MOST_FRAMES = 3, 8000


def refined(run: Run, law: LinearLoss, replay: Callable[[np.ndarray], Run | None]) -> Run:
    """The run itself, or a replay of a flow with more frames where its loss or its map moves between two."""
    if run.clock != "t" or "step" in run.series or run.frames < 2 or forked(run) is not None:
        return run
    frames = run
    for _ in range(REPLAYS):
        curves = Evidence(run, frames, law)
        # how far the curves go between two frames, in units of what they may
        falls = np.abs(np.diff(curves.loss)) / (MOVE * float(curves.levels[0]))
        grown = np.abs(np.diff(np.log(np.abs(curves.learned) + FLOOR), axis=0)).max(axis=1) / GROWTH
        pieces = np.ceil(np.maximum(falls, grown)).astype(int)
        cut = np.flatnonzero(pieces > 1)
        if not cut.size or len(curves.time) + pieces[cut].sum() > MOST_FRAMES:
            break
        more = [np.linspace(curves.time[i], curves.time[i + 1], min(int(pieces[i]), 50) + 1) for i in cut]
        wanted = np.unique(np.concatenate([curves.time, *more]))
        again = replay(wanted)
        if again is None:
            return run
        frames = again
    return frames


class LinearReading(Reading):
    """Curves with frames where they move, the plateaus and drops, and companion runs from other starts."""

    @cached_property
    def curves(self) -> Evidence:
        def seeded(seeds: tuple[int, ...]) -> list[Evidence]:
            return [flow for flow in self.companions(self.from_seed, seeds) if not isinstance(flow, StagescopeError)]

        frames = refined(self.run, self.law, self.replay)
        return Evidence(self.run, frames, self.law, lambda factor: self.companion(self.from_scaled, factor), seeded)

    @cached_property
    def evidence(self) -> Evidence:
        return self.curves

    @cached_property
    def stages(self) -> Stages:
        return self.curves.stages(self.run.status)

    def from_scaled(self, factor: float) -> Evidence:
        """The flow from the same start times a factor, to a fifth after its first drop is predicted."""
        start = {name: factor * np.asarray(block) for name, block in self.run.at(0).items()}
        return self._flow(start, 1.2 * min(expected_drops(self.law.task, self.law.model, start)[0]))

    def from_seed(self, seed: int) -> Evidence:
        """The flow from another start of the same size; seeds do not meet those of other runs of the study."""
        return self._flow(self.law.model.init(10_000 + 100 * (self.run.seed or 0) + seed, self.curves.scale))

    def _flow(self, start: Params, until: float | None = None) -> Evidence:
        law = self.law
        end, record = flow_frames(law.task, law.model, start, until)
        run = ended(evolve(law, start, GradientFlow(rtol=1e-11), until=end, record=record, progress=False))
        return Evidence(run, refined(run, law, Replay(run, law.field()).refined), law)


FIRST, MERGED = 0.01, 5e-3
"""Half of the interval of the first drop, and of the drop of merged heads, relatively; of later drops it is `LIMITS.later`."""


def linear_path(law: LinearLoss, start: Params, until: float, seen: float = np.inf) -> SaddlePath:
    """Events d1, d2, ...: the loss is halfway between two levels, as for runs [LIN:stages]. All of them, whatever was `seen`."""
    if isinstance(law, LinearSampled):
        raise InputError("this loss draws a batch for every step, so it has no flow to predict; leave out --batch")
    scale, task, model = root_mean_square(start), law.task, law.model
    most = LIMITS.spread * LIMITS.first * forms.start_unit(task, model.merged)
    if not 0 < scale <= most:
        raise InputError(f"the start has rms {scale:.3g}; a path begins near the origin, above 0 and up to {most:.2g} here")
    levels = forms.levels(task)
    if model.merged:
        rate, ends = forms.merged_rate(task), levels[[0, -1]]
        event = _event(forms.merged_drop_time(task, start), MERGED, until)
        legs = [Leg("plateau 0", 0.0, event.t, float(ends[0]), "all directions", rate, lambda: ("settled", (rate,)))]
        if event.t is not None:
            legs.append(Leg(f"plateau {task.dim}", event.t, None, float(ends[1]), None, None, _settled))
        return _path(legs, {"d1": event}, ends, [])
    drops = cascade(task, SilentHead.all_of(start), model.rank or 1)
    room = f"{model.heads} heads of rank {model.rank} hold {model.reach} directions"
    events: dict[str, Predicted] = {}
    for m in range(task.dim):
        if m < len(drops):
            events[f"d{m + 1}"] = _event(drops[m].time, LIMITS.later if m else FIRST, until)
        else:
            why = room if m >= model.reach else "no head can grow"
            events[f"d{m + 1}"] = Predicted(None, reason=why, beyond=until, absent=True)
    # where the intervals of later drops are not to be believed
    doubts = []
    if close := [f"d{m + 1}" for m, drop in enumerate(drops) if drop.ratio < LIMITS.apart]:
        doubts.append(f"two heads are close to each other at {', '.join(close)}: drops after it may be off by a fifth or more")
    if (share := forms.purity(task, scale, len(drops))) > LIMITS.purity:
        doubts.append(f"eigenvalues are not separated at this scale (purity {share:.2g}): directions may come in another order")
    if (model.rank or 1) > 1:
        doubts.append("times of directions that open inside a head are estimates: their intervals were not tried")
    # no plateau is left at a linear rate: a silent head blows up at a finite time
    times = [0.0, *(event.t for event in events.values() if event.t is not None)]
    legs = []
    for m, begin in enumerate(times):
        end, opens = (times[m + 1], f"direction {m + 1}") if m + 1 < len(times) else (None, None)
        legs.append(Leg(f"plateau {m}", begin, end, float(levels[m]), opens, None, _settled))
    return _path(legs, events, levels, doubts)


def _path(legs: list[Leg], events: dict[str, Predicted], levels: np.ndarray, doubts: list[str]) -> SaddlePath:
    middles = (levels[:-1] + levels[1:]) / 2
    halves = dict(zip(events, middles.tolist(), strict=True))
    return SaddlePath(tuple(legs), events, (*unsure(events), *doubts), 0.0, np.zeros(0), {}, halves)


def _event(when: float, error: float, until: float) -> Predicted:
    if not when <= until:
        return Predicted(None, reason=f"it does not come by t={until:g}", beyond=until)
    half = (error + SOLVER) * when
    return Predicted(when, when - half, when + half)


def _settled() -> AtRest:
    """A plateau at a fixed point that has no linear rate."""
    return "settled", ()
