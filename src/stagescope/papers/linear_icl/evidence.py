"""A run of linear attention as its claims read it: curves, drops and plateaus [LIN:stages], and what its start predicts.

d_m   the loss is halfway between l_{m-1} and l_m; merged heads have one drop, d1, halfway between l_0 and l_D
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from stagescope.claims.comparison import Regime, regime_of
from stagescope.core.params import Params
from stagescope.detect.events import crossing
from stagescope.detect.stage import Event, Stage, Stages
from stagescope.papers.linear_icl import forms
from stagescope.papers.linear_icl.cascade import Drop, SilentHead, cascade, growing_part
from stagescope.papers.linear_icl.limits import LIMITS
from stagescope.papers.linear_icl.loss import LinearLoss, LinearSampled
from stagescope.papers.linear_icl.model import LinearAttention
from stagescope.papers.linear_icl.process import RegressionTask
from stagescope.readings.evidence import Evidence as BaseEvidence
from stagescope.runs.run import Run


@dataclass(frozen=True, eq=False)
class Evidence(BaseEvidence):
    """A run, its frames or those of a replay with more of them, and what its start predicts."""

    frames: Run
    law: LinearLoss

    @property
    def time(self) -> np.ndarray:
        return self.frames.time

    @cached_property
    def loss(self) -> np.ndarray:
        return np.asarray(self.frames.series["loss"])

    @property
    def params(self) -> Params:
        return self.frames.params

    @property
    def model(self) -> LinearAttention:
        return self.law.model

    @property
    def task(self) -> RegressionTask:
        return self.law.task

    @property
    def trace(self) -> float:
        return float(self.task.spectrum.sum())

    @cached_property
    def map(self) -> np.ndarray:
        """M (frames, D, D)."""
        return self.model.map(self.params)

    @cached_property
    def shares(self) -> np.ndarray:
        """v_h (U_h)_ii over M_ii of a learned direction (frames, H, D): who holds what."""
        return np.einsum("thii->thi", self.model.maps(self.params)) / forms.final_map(self.task)

    @cached_property
    def learned(self) -> np.ndarray:
        """M_ii over its final value (frames, D)."""
        return np.einsum("tii->ti", self.map) / forms.final_map(self.task)

    @cached_property
    def levels(self) -> np.ndarray:
        """The losses between which the run falls: l_0 .. l_reach, of merged heads l_0 and l_D."""
        return forms.levels_of(self.task, self.model)

    @cached_property
    def owners(self) -> list[int]:
        """The head with the largest share of each direction at the end."""
        return np.argmax(np.abs(self.shares[-1]), axis=0).tolist()

    @cached_property
    def size(self) -> float:
        """The rms of the start in units of the final value of a head on direction 1 [LIN:scaling]."""
        return self.scale / forms.start_unit(self.task, self.model.merged)

    @cached_property
    def purity(self) -> float:
        """The largest of all directions that the heads reach [LIN:purity]."""
        return forms.purity(self.task, self.scale, self.model.reach)

    @cached_property
    def drops(self) -> dict[str, Event]:
        """d1, d2, ...: as many as the heads can hold directions."""
        middles, error = (self.levels[:-1] + self.levels[1:]) / 2, LIMITS.solver * float(self.levels[0])
        return {
            f"d{m}": crossing(self.time, self.loss, float(middle), rising=False, error=error, how="half of a loss step")
            for m, middle in enumerate(middles, start=1)
        }

    @cached_property
    def times(self) -> list[float | None]:
        """d1, d2, ... of the run."""
        return [event.time for event in self.drops.values()]

    @property
    def drops_reached(self) -> int:
        """How many drops came, one after the other."""
        return next((m for m, time in enumerate(self.times) if time is None), len(self.times))

    @cached_property
    def predicted(self) -> list[Drop]:
        """The cascade from the start [LIN:cascade]."""
        return [] if self.model.merged else cascade(self.task, SilentHead.all_of(self.start), self.model.rank or 1)

    @cached_property
    def mixed(self) -> float:
        """What the first winner has of other directions when its value is half of its end, over what it has of its own.

        By the law of silent heads, from the start: `purity` is the same for a start without chance.
        """
        drop = self.predicted[0]
        grown = growing_part(SilentHead.all_of(self.start)[drop.head], self.task.spectrum)
        rates, d = self.task.spectrum**2, drop.direction
        if grown[d] == 0:
            return np.inf
        tau = np.log(forms.head_value(self.task, (d,)) / 2 / np.sqrt(grown[d])) / rates[d]
        parts = np.sqrt(grown / grown[d]) * np.exp((rates - rates[d]) * tau)
        return float(np.linalg.norm(np.delete(parts, d)))

    def slowest(self, begin: float, end: float | None) -> int | None:
        """The frame between two times, or after the first, at which the loss changes least per unit of ln t.

        None where fewer than three frames are.
        """
        time = self.time
        inside = np.flatnonzero((time > begin) & (time < (time[-1] if end is None else end)) & (time > 0))
        if inside.size < 3:
            return None
        slope = np.abs(np.gradient(self.loss[inside], np.log(time[inside])))
        return int(inside[int(np.argmin(slope))])

    def plateau(self, m: int) -> int | None:
        """The frame of plateau m: where the loss falls least between two drops, or after the last."""
        begin, end = self._span(m)
        return None if begin is None else self.slowest(begin, end)

    def _span(self, m: int) -> list[float | None]:
        """When plateau m begins and ends; None where it does not."""
        return [0.0, *self.times, None][m : m + 2]

    def is_short(self, m: int) -> bool:
        """Whether plateau m lasts less than a tenth of its end time, or is one inside a head."""
        begin, end = self._span(m)
        return self.is_inside(m) or begin is None or end is None or end - begin < LIMITS.tenth * end

    def is_inside(self, m: int) -> bool:
        """Whether a head of rank above one still has room on plateau m, so that the next direction opens exponentially."""
        return m % (self.model.rank or 1) != 0

    def is_settled(self, m: int) -> bool:
        """Whether plateau m is so long that heads have lost what they had of directions that are not learned."""
        begin, end = self._span(m)
        if self.is_inside(m) or begin is None or end is None:
            return False
        return (end - begin) * forms.settling_rate(self.task, m) >= LIMITS.settled

    @property
    def exact_flow(self) -> Regime:
        """Whether the theory of the flow applies to this run."""
        return regime_of(
            (self.is_flow, "not a gradient flow"),
            self.equal_rates,
            (not isinstance(self.law, LinearSampled), "sequences are sampled"),
            holds="exact flow",
        )

    def stages(self, status: str) -> Stages:
        """Plateau m from d_m to d_{m+1}."""
        events, model = dict(self.drops), self.model
        notes = {name: f"the loss ended at {self.loss[-1]:.4g}" for name, event in events.items() if event.time is None}
        if not model.merged:
            for m in range(model.reach + 1, self.task.dim + 1):
                events[f"d{m}"] = Event.missing("not counted")
                notes[f"d{m}"] = f"{model.heads} heads of rank {model.rank} hold {model.reach} directions"
        times = [float(self.time[0]), *self.times[: self.drops_reached], None]
        stages = tuple(self._stage(m, times[m], times[m + 1]) for m in range(self.drops_reached + 1))
        return Stages.of(status, self.run.clock, events, stages, notes)

    def _stage(self, m: int, begin: float, end: float | None) -> Stage:
        frame, level = self.slowest(begin, end), float(self.levels[m])
        loss = level if frame is None else float(self.loss[frame])
        components = (0, self.task.dim)[m] if self.model.merged else m
        diagonal = np.round(self.learned[-1 if frame is None else frame], 4).tolist()
        facts = {"loss": loss, "level": level, "components": components, "learned": diagonal}
        words = f"loss {loss:.6g} where it falls least, level {level:.6g}"
        return Stage(f"plateau {components}", begin, end, words, facts=facts)
