"""Read a run of incremental learning: students of a lagged chain, and the regression models."""

from abc import abstractmethod
from functools import cached_property, partial
from typing import Any

import numpy as np

from stagescope.claims.claim import Claim
from stagescope.claims.ledger import Ledger
from stagescope.detect.levels import transitions
from stagescope.detect.stage import Stage, Stages
from stagescope.dynamics.evolve import evolve
from stagescope.dynamics.record import LogSpaced
from stagescope.papers.incremental.claims import HEAD_CLAIMS, STOPPING_CLAIMS
from stagescope.papers.incremental.evidence import Companions, Evidence, Task, clock, companions
from stagescope.papers.incremental.levels import uniform_excess
from stagescope.papers.incremental.limits import LIMITS
from stagescope.papers.incremental.observables import STEPS, HeadCurves, LagCurves, dense, head_curves, lag_curves
from stagescope.papers.incremental.process import LaggedChain
from stagescope.papers.incremental.regression import RegressionSampled
from stagescope.papers.incremental.stages import Heads, detect
from stagescope.papers.incremental.stopping import StoppingEvidence
from stagescope.papers.incremental.students import HeadsLoss
from stagescope.papers.reading import Reading
from stagescope.papers.rebuild import ended
from stagescope.runs.run import Run
from stagescope.spec import build
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

    @cached_property
    def companion_makers(self) -> Companions:
        return companions(self.dense)

    def make_companion(self, name: str, *given: float | None) -> Any:
        """A companion run by its name in `Companions`."""
        return getattr(self.companion_makers, name)(*given)

    @property
    def cached_companions(self) -> Companions:
        """The companion runs, each made once."""
        names = [name for name, make in vars(self.companion_makers).items() if make is not None]
        return Companions(**{name: partial(self.companion, self.make_companion, name) for name in names})


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
        known = law.fresh or law.labels == "soft"
        task = Task(
            process.importances,
            model.heads,
            span=max(map(len, process.groups)),
            parameters=len(process.groups) * process.vocab**2,
            disjoint=process.disjoint,
            targets=None if known else law.sequences * model.targets,
            fitted=levels.converged,
            uniform=uniform_excess(process, model.targets, model.context - process.reach),
            predicts=True,
            errors=tuple(np.abs((levels.losses - levels.losses[-1]) - (levels.training - levels.training[-1])).tolist()),
        )
        return Evidence(self.dense, self.heads, task, self.cached_companions, clock(self.dense))


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
        dynamics = build(run.spec["dynamics"]).shortened(int(run.step[-1]))
        made = ended(evolve(law, run.at(0), dynamics, record=LogSpaced(frames=STEPS), progress=False))
        curves = head_curves(made)
        return transitions(curves.time, curves.loss, curves.forms.levels)

    @cached_property
    def curves(self) -> HeadCurves:
        return head_curves(self.dense)

    @cached_property
    def evidence(self) -> Evidence:
        curves = self.curves
        forms = None if isinstance(self.law, RegressionSampled) else curves.forms
        task = Task(curves.model.gains, curves.model.heads, forms=forms)
        return Evidence(self.dense, self.heads, task, self.cached_companions, clock(self.dense))


GLOSSARY = {
    "t_#": "Event: the loss is halfway between two neighbouring levels, so a further group is being learned.",
    "onset": "Event: heads begin to differ.",
    "group #": "Lags that matter equally for the next token; groups are numbered by importance.",
    "start": "Stage before the first group is learned: the model predicts without context.",
    "passage #": "A stretch between two levels that is too short or too steep to be a plateau.",
    "agreement": "How alike the heads attend: 1 where all look at the same lags.",
    "contrast": "How much the heads differ in what they do with what they see.",
    "competitive": "All heads look mostly at the most important group.",
    "cooperative": "Each group has a head of its own.",
    "lag": "How many positions back a token is: lag 1 is the token before.",
}


def explain_run(reading: IncrementalReading) -> Explained:
    process, heads = getattr(reading.law, "process", None), reading.law.model.heads
    what = "a regression in which groups of positions matter differently"
    if process is not None:
        groups = f"{len(process.groups)} groups of lags of different importance"
        what = f"to predict a process on {process.vocab} tokens whose next token depends on {groups}"
    many = f"{heads} attention heads learn" if heads > 1 else "One attention head learns"
    sentence = f"{many} {what}. {motion_words(reading.run)}"
    return Explained(sentence, _table(process), captions(reading.told_stages, _said), GLOSSARY)


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


def _said(stage: Stage) -> str:
    facts = stage.facts
    if stage.name == "start" and "level" in facts:
        return f"The model predicts without context; the loss is near {facts['level']:.4g}, the level of group 0."
    if "plateau" not in facts or "loss" not in facts:
        return plain(stage)
    j = facts["plateau"]
    known = "the most important group of lags" if j == 1 else f"the {j} most important groups of lags"
    rest = "The loss rests" if stage.name.startswith("plateau") else "The loss passes"
    said = f"{rest} at {facts['loss']:.4g}: the best that is possible with {known} is {facts['level']:.4g}."
    if "heads" in facts:
        words = {"cooperative": "Each group has a head of its own.", "competitive": "All heads look mostly at the first group."}
        said += f" {words[facts['heads']]}" if facts["heads"] in words else ""
    return said
