"""Read a run of incremental learning: students of a lagged chain, and the regression models."""

import math
from abc import abstractmethod
from functools import cached_property
from typing import Any

import numpy as np

from stagescope.claims.claim import Claim
from stagescope.claims.ledger import Ledger
from stagescope.core.params import Params
from stagescope.detect.levels import transitions
from stagescope.detect.stage import Stage, Stages
from stagescope.flow.descent import Descent
from stagescope.flow.gradient_flow import GradientFlow
from stagescope.flow.record import AtTimes, LogSpaced
from stagescope.papers.incremental.claims import HEAD_CLAIMS, STOPPING_CLAIMS
from stagescope.papers.incremental.evidence import Curve, EqualHeads, Evidence, Task, clock
from stagescope.papers.incremental.levels import uniform_excess
from stagescope.papers.incremental.limits import LIMITS
from stagescope.papers.incremental.observables import STEPS, HeadCurves, LagCurves, dense, head_curves, lag_curves
from stagescope.papers.incremental.process import LaggedChain
from stagescope.papers.incremental.regression import Regression, RegressionHeads, RegressionLoss, RegressionSampled
from stagescope.papers.incremental.stages import Heads, detect
from stagescope.papers.incremental.stopping import StoppingEvidence
from stagescope.papers.incremental.students import HeadsLoss
from stagescope.papers.incremental.study import WORDS
from stagescope.readings.reading import Reading
from stagescope.readings.rebuild import companion_run
from stagescope.runs.run import Run
from stagescope.views.view import Explained, SmallTable, captions, motion_words, plain


class IncrementalReading(Reading):
    """The part that students and regression models share: heads that descend a ladder of levels."""

    @cached_property
    @abstractmethod
    def heads(self) -> Heads:
        """Loss, levels and heads of the replay: stages and claims read the same events."""

    def heads_from(self, curves: LagCurves | HeadCurves, loss: np.ndarray, levels: np.ndarray, **more: Any) -> Heads:
        """Those of some curves, with a loss and its levels."""
        parts, smooth = curves.parts, "step" not in self.dense.series
        attention = (curves.agreement, curves.contrast, curves.mass)
        return Heads(curves.time, loss, levels, *attention, parts=parts, smooth=smooth, **more)

    @cached_property
    def stages(self) -> Stages:
        return detect(self.heads, clock=self.run.clock, status=self.run.status)

    def judge_paper(self, claims: tuple[Claim, ...]) -> Ledger:
        """Claims about early stopping have evidence of their own."""
        stops = Ledger.of(self.run, STOPPING_CLAIMS, StoppingEvidence(self.run))
        return Ledger(self.run.status, self.run.clock, (*self.judge(HEAD_CLAIMS), *stops))

    @cached_property
    def dense(self) -> Run:
        """The run replayed at frames that do not depend on its own record, so that one event has one time."""
        return dense(self.run, self.replay) if self.replays else self.run

    def equal_heads(self, until: float | None) -> EqualHeads:
        """The companion run from equal heads: at the steps of a descent; of a flow to `until`, or to its end at its frames.

        It is one head. For a regression by the exact reduction [ISA:symmetric]; otherwise by U = H V: V_h' = F_V gives
        U' = H F_V, and a' = F_a(U)/H, so rates are H and 1/H times those of the run.
        """
        law: Any = self.law
        run, dynamics, heads = self.dense, self.dynamics, law.model.heads
        start = {name: np.mean(run.params[name][0], axis=0, keepdims=True) for name in run.params}
        reduced = isinstance(law, Regression)
        if reduced:
            one: Any = type(law)(model=law.model.symmetric())
        else:
            single: dict[str, Any] = {"heads": 1}
            if isinstance(law, RegressionSampled):
                single = {"reduced": law.model.reduced.model_copy(update=single)}
            one = law.model_copy(update={"model": law.model.model_copy(update=single)})
            start["V"] = np.sum(run.params["V"][0], axis=0, keepdims=True)
            rates = {"a": dynamics.rates.get("a", 1.0) / heads, "V": dynamics.rates.get("V", 1.0) * heads}
            dynamics = dynamics.model_copy(update={"rates": rates})
        if isinstance(dynamics, Descent):
            record, until = AtTimes(at=tuple(run.step[1:].astype(float).tolist())), None
        else:
            record = AtTimes(at=tuple(run.time[1:].tolist())) if until is None else _log_spaced(until)
            until = until or float(run.time[-1])
        companion = companion_run(one, start, dynamics, until=until, record=record)
        params = {name: np.repeat(companion.params[name], heads, axis=1) for name in companion.params}
        if reduced:
            return EqualHeads(companion.time, one.model.losses(companion.params), params)
        return EqualHeads(companion.time, np.asarray(companion.series["loss"]), {"a": params["a"], "V": params["V"] / heads})

    def scaled(self, sigma: float, until: float) -> Curve:
        """The same regression flow from the same draw at another initial noise."""
        start = self.dense.at(0)
        return _curve(self.law, {**start, "a": start["a"] * (sigma / np.sqrt(np.mean(np.asarray(start["a"]) ** 2)))}, until)

    def regression_flow(self, until: float) -> Curve:
        """The regression flow from the same logits; for cross-entropy on t/d^2 with g_i = beta_i sqrt(d) [ISA:clock]."""
        law, logits, pace = self.law, np.asarray(self.dense.params["a"][0]), 1.0
        if isinstance(law, RegressionSampled):
            reduced = law.model.reduced
        else:
            chain, model = law.process, law.model
            pace, logits = float(chain.vocab**2), logits[:, 0]
            gains = tuple(beta * float(np.sqrt(chain.vocab)) for beta in chain.importances)
            places = tuple(model.context - group[0] for group in chain.groups)
            reduced = RegressionHeads(positions=model.positions, gains=gains, heads=model.heads, places=places)
        start = {"a": logits, "V": np.zeros(reduced.shapes["V"])}
        return _curve(RegressionLoss(model=reduced), start, until / pace, pace)


def _log_spaced(until: float) -> LogSpaced:
    return LogSpaced(frames=2000, first=until * 1e-5)


def _curve(law: Any, start: Params, until: float, pace: float = 1.0) -> Curve:
    """A regression flow to its time `until`, on a clock that runs `pace` times as fast."""
    flow = GradientFlow(rtol=1e-12)  # no slower than a coarser tolerance
    curves = head_curves(companion_run(law, start, flow, until=until, record=_log_spaced(until)))
    return Curve(curves.time * pace, curves.loss, curves.forms.levels)


class StudentReading(IncrementalReading):
    """A student of a lagged chain: attention on lag groups, and the levels of the restricted classes."""

    @cached_property
    def heads(self) -> Heads:
        curves = self.curves
        return self.heads_from(
            curves,
            curves.excess,
            curves.steps,
            nearest=lambda frame: curves.nearest(frame)[0],
            clear=lambda frame: curves.nearest(frame)[1],
        )

    @property
    def replays(self) -> bool:
        """A replay costs as much as the run: heads that read tokens and transformers, of minutes to hours, are not replayed.

        The intervals of their events are at least the spacing of their records.
        """
        return isinstance(self.law, HeadsLoss)

    @cached_property
    def curves(self) -> LagCurves:
        return lag_curves(self.dense)

    @cached_property
    def evidence(self) -> Evidence:
        law, levels = self.curves.law, self.curves.levels
        model, process = law.model, law.process
        unlimited = law.fresh or law.labels == "soft"
        task = Task(
            process.importances,
            model.heads,
            span=max(map(len, process.groups)),
            parameters=len(process.groups) * process.vocab**2,
            of_student=sum(math.prod(shape) for shape in model.shapes.values()),
            disjoint=process.disjoint,
            targets=None if unlimited else law.sequences * model.targets,
            fitted=levels.converged,
            uniform=uniform_excess(process, model.targets, model.context - process.reach),
            predicts=True,
            errors=tuple(np.abs((levels.losses - levels.losses[-1]) - (levels.training - levels.training[-1])).tolist()),
        )
        return Evidence(self.dense, self.heads, task, clock(self.dense), reading=self)


class RegressionReading(IncrementalReading):
    """A run of the regression models: heads on positions, and plateaus in closed form."""

    @cached_property
    def heads(self) -> Heads:
        curves = self.curves
        sampled = isinstance(self.law, RegressionSampled) and self.law.batch is not None and self.dense.done
        redrawn = self.redrawn if sampled else tuple
        return self.heads_from(curves, curves.loss, curves.forms.levels, nearest=lambda _: None, redrawn=redrawn)

    def redrawn(self) -> tuple[tuple[float | None, ...], ...]:
        """t_j of the same run with other batches: what the draw of the batches does to an event is not seen in one run."""
        return tuple(self.companion(self.other_batches, draw) for draw in range(1, LIMITS.redrawn + 1))

    def other_batches(self, draw: int) -> tuple[float | None, ...]:
        run, law = self.dense, self.law.model_copy(update={"seed": self.law.seed + draw})
        dynamics = self.dynamics.shortened(int(run.step[-1]))
        redrawn_run = companion_run(law, run.at(0), dynamics, record=LogSpaced(frames=STEPS))
        curves = head_curves(redrawn_run)
        return transitions(curves.time, curves.loss, curves.forms.levels)

    @cached_property
    def curves(self) -> HeadCurves:
        return head_curves(self.dense)

    @cached_property
    def evidence(self) -> Evidence:
        curves = self.curves
        forms = None if isinstance(self.law, RegressionSampled) else curves.forms
        task = Task(curves.model.gains, curves.model.heads, forms=forms)
        return Evidence(self.dense, self.heads, task, clock(self.dense), reading=self)


def explain_run(reading: IncrementalReading) -> Explained:
    process, heads = getattr(reading.law, "process", None), reading.law.model.heads
    task = "a regression in which groups of positions matter differently"
    if process is not None:
        groups = f"{len(process.groups)} groups of lags of different importance"
        task = f"to predict a process on {process.vocab} tokens whose next token depends on {groups}"
    subject = f"{heads} attention heads learn" if heads > 1 else "One attention head learns"
    sentence = f"{subject} {task}. {motion_words(reading.run)}"
    return Explained(sentence, _table(process), captions(reading.told_stages, _sentence), WORDS.glossary["run"])


def _table(process: LaggedChain | None) -> SmallTable | None:
    lags = [] if process is None else sorted(lag for group in process.groups for lag in group)
    if process is None or len(lags) > 12:  # no small table any more
        return None
    values = np.zeros((len(process.groups), len(lags)))
    for row, (group, importance) in enumerate(zip(process.groups, process.importances, strict=True)):
        for lag, weight in zip(group, process.group_weights(row), strict=True):
            values[row, lags.index(lag)] = importance * weight
    rows = tuple(f"group {i + 1}" for i in range(len(process.groups)))
    return SmallTable("Importance of each lag", rows, tuple(f"lag {lag}" for lag in lags), values)


def _sentence(stage: Stage) -> str:
    facts = stage.facts
    if stage.name == "start" and "level" in facts:
        return f"The model predicts without context; the loss is near {facts['level']:.4g}, the level of group 0."
    if "plateau" not in facts or "loss" not in facts:
        return plain(stage)
    j = facts["plateau"]
    groups = "the most important group of lags" if j == 1 else f"the {j} most important groups of lags"
    motion = "The loss rests" if stage.name.startswith("plateau") else "The loss passes"
    sentence = f"{motion} at {facts['loss']:.4g}: the best that is possible with {groups} is {facts['level']:.4g}."
    if "heads" in facts:
        words = {"cooperative": "Each group has a head of its own.", "competitive": "All heads look mostly at the first group."}
        sentence += f" {words[facts['heads']]}" if facts["heads"] in words else ""
    return sentence
