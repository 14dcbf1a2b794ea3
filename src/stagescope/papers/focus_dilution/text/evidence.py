"""What the claims on focus and dilution in a text look at: a run's story, predictions from its corpus, and runs beside it."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from stagescope.claims.claim import Regime
from stagescope.corpora.window_loss import WindowLoss
from stagescope.papers.focus_dilution.text.forms import Predictions, predict
from stagescope.papers.focus_dilution.text.loss import TextCausal
from stagescope.papers.focus_dilution.text.observables import TextCurves
from stagescope.papers.focus_dilution.text.stages import TextStory, smoothed
from stagescope.papers.rebuild import rebuilt
from stagescope.runs.run import Run

SMALL_START = 2e-2
"""Largest rms of the initial parameters for which a run on text begins near the origin."""
SHORT = 128
"""Windows of fewer tokens have counts too far from their mean for the times of the bigram flow."""
APART, TOGETHER = 0.03, 0.1
"""Separability r below which one mode grows alone, above which modes grow together."""
LEARNED = 0.1
"""Share of what the last token tells that a run must have learned before a missing turn counts against it.

Before that it may rest where all rows look at the most frequent type: attention then tells nothing, and the loss is H(pi).
"""
ADAM = Regime(False, "Adam has no flow time and does not align W0 with pi")


@dataclass(frozen=True)
class TextEvidence:
    """A run on a text with its curves, and what can be made beside it.

    `early(steps)` repeats its first steps with more frames; `bigram(until)` is the flow on the bigram chain from the same
    start; `separability()` is r of what enters the output at the start.
    """

    run: Run
    curves: TextCurves
    early: Callable[[int], TextCurves]
    bigram: Callable[[float], TextCurves]
    separability: Callable[[], float]

    @cached_property
    def story(self) -> TextStory:
        return TextStory(self.curves)

    @property
    def window(self) -> int:
        return int(self.run.spec["field"]["length"])

    @cached_property
    def law(self) -> WindowLoss:
        return rebuilt(self.run.spec["field"])

    @property
    def causal(self) -> bool:
        """Whether the loss is at all positions."""
        return isinstance(self.law, TextCausal)

    @cached_property
    def predictions(self) -> Predictions:
        return predict(self.law.process, self.window)

    @cached_property
    def r(self) -> float:
        return self.separability()

    @cached_property
    def learned(self) -> float:
        """By the middle of the run, how far the loss is below H(pi), as a share of what the last token alone tells."""
        time, told = self.curves.time, self.curves.unigram - self.curves.floor
        loss = np.interp((time[0] + time[-1]) / 2, time, smoothed(self.run.series["loss"]))
        return float((self.curves.unigram - loss) / told)

    @property
    def parts(self) -> list[str]:
        """What the model has beside attention."""
        model = self.run.spec["field"]["model"]
        return [name for name in ("positions", "residual", "norm") if model.get(name)]

    @cached_property
    def start(self) -> float:
        blocks = [self.run.params[name][0].ravel() for name in self.run.params]
        return float(np.sqrt(np.mean(np.concatenate(blocks) ** 2)))

    @cached_property
    def flow_story(self) -> TextStory:
        """What the bigram flow did by the end of the run."""
        return TextStory(self.bigram(float(self.curves.time[-1])))

    def failures(self) -> list[str]:
        """Why the theory of gradient descent from a small start does not speak of this run; empty where it does."""
        kinds = (
            (self.start <= SMALL_START, f"initial rms {self.start:.1e} is above {SMALL_START:g}"),
            (set(self.run.spec["dynamics"]["rates"].values()) <= {1.0}, "block rates differ"),
        )
        return [sentence for good, sentence in kinds if not good]


def descent(evidence: TextEvidence) -> Regime:
    """Gradient steps from a small start."""
    if evidence.run.clock != "t":
        return ADAM
    failed = evidence.failures()
    return Regime(not failed, "; ".join(failed) or "gradient steps from a small start")


def attention_only(evidence: TextEvidence) -> Regime:
    """The same, with nothing but attention between embedding and output."""
    if evidence.run.clock != "t":
        return ADAM
    failed = evidence.failures()
    if evidence.parts:
        failed.append(f"the model has {', '.join(evidence.parts)}")
    return Regime(not failed, "; ".join(failed) or "attention alone, gradient steps from a small start")


def condensed(evidence: TextEvidence) -> Regime:
    """The same, where one mode grows alone: what is said of later openings is linearised at a point of rank one."""
    at = attention_only(evidence)
    if evidence.run.clock != "t" or evidence.r <= APART:
        return at
    failed = [] if at.holds else [at.sentence]
    return Regime(False, "; ".join([*failed, f"r = {evidence.r:.3f} is above {APART:g}: one mode need not grow alone"]))


def long_windows(evidence: TextEvidence) -> Regime:
    """The same, on windows whose counts are near their mean: the bigram flow is the limit of long windows."""
    at = condensed(evidence)
    if evidence.run.clock != "t":
        return at
    failed = [] if at.holds else [at.sentence]
    if evidence.causal:
        failed.append("the loss is at all positions, so most contexts are short")
    if evidence.window < SHORT:
        failed.append(f"windows of {evidence.window} tokens are short (below {SHORT})")
    return Regime(not failed, "; ".join(failed) or f"{at.sentence}, windows of {evidence.window} tokens")


def adaptive(evidence: TextEvidence) -> Regime:
    """The published curves are those of Adam on attention alone."""
    if evidence.run.clock == "t":
        return Regime(False, "gradient steps; the published curves of all rows together are Adam's")
    if evidence.parts:
        return Regime(False, f"the model has {', '.join(evidence.parts)}")
    return Regime(True, "Adam, attention alone")
