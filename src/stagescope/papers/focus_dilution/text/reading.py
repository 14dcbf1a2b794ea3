"""Read a run of focus and dilution on a text: its stages, and the companion runs that its claims need."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NoReturn

import numpy as np

from stagescope.claims.comparison import Regime
from stagescope.corpora.corpus import written
from stagescope.corpora.vocabulary import tally
from stagescope.corpora.window_loss import WindowLoss
from stagescope.detect.stage import Stages
from stagescope.dynamics.descent import Descent
from stagescope.dynamics.evolve import evolve
from stagescope.dynamics.record import Graded, Uniform
from stagescope.errors import InputError
from stagescope.keys import key
from stagescope.papers.focus_dilution.loss import BLOCKS, TokenPopulation
from stagescope.papers.focus_dilution.model import TokenAttention
from stagescope.papers.focus_dilution.reading import initial_rms
from stagescope.papers.focus_dilution.text import forms, stages
from stagescope.papers.focus_dilution.text.forms import Predictions, predict
from stagescope.papers.focus_dilution.text.model import TextCausal, TextVariant
from stagescope.papers.focus_dilution.text.observables import TextCurves, text_curves
from stagescope.papers.focus_dilution.text.stages import TextHistory, smoothed
from stagescope.papers.reading import Reading
from stagescope.papers.rebuild import ended, rebuilt
from stagescope.runs.run import Run
from stagescope.spec import build

# What the claims on focus and dilution in a text need: a run's history, predictions from its corpus, companion runs.


@dataclass(frozen=True)
class TextLimits:
    """Where the claims on a text apply."""

    start: float = 2e-2  # largest rms of the initial parameters near enough to the origin
    window: int = 128  # windows of fewer tokens have counts too far from their mean for the times of the bigram flow
    apart: float = 0.03  # up to this separability r one mode grows alone
    together: float = 0.1  # from this separability r on modes grow together
    # Share of H(pi) - H(next | last token) that the loss must have gained before a missing turn violates a claim. Before that a
    # run may rest where all rows look at the most frequent type: attention then carries no information, and the loss is H(pi).
    learned: float = 0.1
    # Least share by which the held-out loss must end below the entropy of the types: Adam moves rows, norms and entropies on
    # words in random order too, where this share is 0.
    useful: float = 0.05
    # Pairs of types that the bigram flow may go through in all its steps: about an hour. 22,000 steps of 200 types have 9e8.
    pairs: float = 1e11
    types: int = 4096  # of the bigram flow: a matrix between them has 128 MiB


TEXT_LIMITS = TextLimits()
FLOW_STEP = 0.2
"""Largest step of a descent in place of a flow: the edge of stability of these losses is near .3."""
WATCHED = 4096
"""Positions of the held-out loss: the error of a mean loss is then about 1 %."""
ADAM = Regime(False, "Adam has no flow time and does not align W0 with pi")


@dataclass(frozen=True)
class TextEvidence:
    """A run on a text with its curves, and its companion runs.

    `early(steps)` repeats its first steps with more frames; `bigram(until)` is the flow on the bigram chain from the same
    start; `separability()` is r of what enters the output at the start.
    """

    run: Run
    curves: TextCurves
    early: Callable[[int], TextCurves]
    bigram: Callable[[float], TextCurves]
    separability: Callable[[], float]

    @cached_property
    def history(self) -> TextHistory:
        return TextHistory(self.curves)

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
        """(H(pi) - loss) / (H(pi) - H(next | last token)) at the middle of the run."""
        time, most = self.curves.time, self.curves.unigram - self.curves.floor
        loss = np.interp((time[0] + time[-1]) / 2, time, smoothed(self.run.series["loss"]))
        return float((self.curves.unigram - loss) / most)

    @cached_property
    def useless(self) -> str | None:
        """Why nothing was learned that holds on held-out text; None where something was."""
        fields = {name: getattr(self.law, name) for name in type(self.law).model_fields}
        judge = type(self.law)(**{**fields, "part": "held-out", "watched": max(self.law.watched, WATCHED // self._places)})
        law = tally(self.law.process.held_out, self.law.process.vocab) / len(self.law.process.held_out)
        entropy = float(-np.sum(law * np.log(self.law.process.stationary)))
        gain = 1 - judge.value(self.run.at(-1)) / entropy
        if gain >= TEXT_LIMITS.useful:
            return None
        return (
            f"the held-out loss ends {gain:+.1%} below that of the frequencies, not {TEXT_LIMITS.useful:.0%}: no context is used"
        )

    @property
    def _places(self) -> int:
        """Positions of a window with a loss."""
        return self.window if self.causal else 1

    @property
    def parts(self) -> list[str]:
        """What the model has beside attention."""
        model = self.run.spec["field"]["model"]
        return [name for name in ("positions", "residual", "norm") if model.get(name)]

    @cached_property
    def start(self) -> float:
        return initial_rms(self.run)

    @property
    def too_long(self) -> str | None:
        """Why there is no flow of the bigram chain: it goes through all pairs of types at every step. None where there is."""
        vocab, steps = len(self.curves.pi), int(np.ceil(float(self.curves.time[-1]) / FLOW_STEP))
        if vocab <= TEXT_LIMITS.types and steps * vocab**2 <= TEXT_LIMITS.pairs:
            return None
        what = f"the bigram flow would go through all pairs of {vocab:,} types in {steps:,} steps"
        return f"{what}, which takes hours or gigabytes; choose a smaller --vocab or fewer --steps"

    @cached_property
    def flow_history(self) -> TextHistory:
        """What the bigram flow did by the end of the run."""
        return TextHistory(self.bigram(float(self.curves.time[-1])))

    def failures(self) -> list[str]:
        """Why the theory of gradient descent from a small start does not apply to this run; empty where it does."""
        kinds = (
            (self.start <= TEXT_LIMITS.start, f"initial rms {self.start:.1e} is above {TEXT_LIMITS.start:g}"),
            (set(self.run.spec["dynamics"]["rates"].values()) <= {1.0}, "block rates differ"),
        )
        return [sentence for good, sentence in kinds if not good]


def descent(evidence: TextEvidence, *more: str, model: str = "") -> Regime:
    """Gradient steps from a small start; `more` says what else fails, `model` what else holds."""
    if evidence.run.clock != "t":
        return ADAM
    failed = [*evidence.failures(), *more]
    return Regime(not failed, "; ".join(failed) or f"{model}gradient steps from a small start")


def attention_only(evidence: TextEvidence) -> Regime:
    """The same, with nothing but attention between embedding and output."""
    more = [f"the model has {', '.join(evidence.parts)}"] if evidence.parts else []
    return descent(evidence, *more, model="attention alone, ")


def condensed(evidence: TextEvidence) -> Regime:
    """The same, where one mode grows alone: the theory of later openings is linearised at a point of rank one."""
    at = attention_only(evidence)
    if evidence.run.clock != "t" or evidence.r <= TEXT_LIMITS.apart:
        return at
    failed = [] if at.holds else [at.sentence]
    return Regime(
        False, "; ".join([*failed, f"r = {evidence.r:.3f} is above {TEXT_LIMITS.apart:g}: one mode need not grow alone"])
    )


def long_windows(evidence: TextEvidence) -> Regime:
    """The same, on windows whose counts are near their mean: the bigram flow is the limit of long windows."""
    at = condensed(evidence)
    if evidence.run.clock != "t":
        return at
    failed = [] if at.holds else [at.sentence]
    if evidence.causal:
        failed.append("the loss is at all positions, so most contexts are short")
    if evidence.window < TEXT_LIMITS.window:
        failed.append(f"windows of {evidence.window} tokens are short (below {TEXT_LIMITS.window})")
    return Regime(not failed, "; ".join(failed) or f"{at.sentence}, windows of {evidence.window} tokens")


def adaptive(evidence: TextEvidence) -> Regime:
    """Adam on attention alone, as for the published curves."""
    if evidence.run.clock == "t":
        return Regime(False, "gradient steps; the published curves were made with Adam")
    if evidence.parts:
        return Regime(False, f"the model has {', '.join(evidence.parts)}")
    return Regime(True, "Adam, attention alone")


def probes(run: Run, curves: TextCurves, most: int = 3) -> dict[str, int]:
    """The words whose rows are followed, with their tokens; by default the `most` frequent ones but the first type."""
    asked = (run.config or {}).get("probe")
    if asked:
        return {word: curves.words.index(written(word)) for word in asked}
    order = np.argsort(-curves.pi, kind="stable")[1:].tolist()
    labels = {curves.words[token]: token for token in order}
    ordered = sorted(labels, key=lambda word: not word[:1].isalpha())  # stable: by frequency, marks after words
    return {word: labels[word] for word in ordered[:most]}


def bigram_flow(run: Run, until: float) -> Run:
    """Descent on the population loss of the corpus's bigram chain from the same start, on the same clock [FD:text-bigram].

    Steps of at most .2 stand in for a flow, which is stiff at hundreds of types and slow to integrate.
    """
    law = rebuilt(run.spec["field"])
    model = TokenAttention(**{name: getattr(law.model, name) for name in TokenAttention.model_fields})
    start = {name: run.params[name][0] for name in BLOCKS}
    steps = max(1, int(np.ceil(until / min(FLOW_STEP, float(run.spec["dynamics"]["lr"])))))
    chain = TokenPopulation(model=model, process=law.process)
    record = Graded(frames=441)  # as many as the study records by default
    return ended(evolve(chain, start, Descent(lr=until / steps, steps=steps), record=record, progress=False))


def separability(run: Run) -> float:
    """r = sigma_2/sigma_1 of E[h (y - 1/d)^T], h the input of the output layer at the start [FD:text-separability]."""
    law = rebuilt(run.spec["field"])
    if not isinstance(law, TextVariant):
        return forms.separability(law.process, law.length)[0]
    count = 2**15  # windows: enough to know r to about .005
    starts = key(law.seed, "separability").integers(law.windows, size=count)
    excess = np.zeros((law.model.width, law.model.vocab))
    for part in np.array_split(starts, max(1, count // 1024)):
        tokens = law.arrays(part)["tokens"]
        features = np.asarray(law.model.features(run.at(0), tokens[:, :-1]))
        np.add.at(excess.T, np.asarray(tokens[:, -1]), features)
        excess -= features.sum(axis=0)[:, None] / law.model.vocab
    values = np.linalg.svd(excess, compute_uv=False)
    return float(values[1] / values[0])


class TextFocusReading(Reading):
    """Curves of a run on a text, its stages with those of the probe words, and its companion runs."""

    @cached_property
    def curves(self) -> TextCurves:
        return text_curves(self.run)

    @cached_property
    def stages(self) -> Stages:
        return stages.detect(self.curves, probes(self.run, self.curves), clock=self.run.clock, status=self.run.status)

    @cached_property
    def evidence(self) -> TextEvidence:
        return TextEvidence(
            self.run,
            self.curves,
            early=lambda steps: self.companion(self.early, steps),
            bigram=lambda until: self.companion(self.bigram, until),
            separability=lambda: self.companion(self.separability),
        )

    def early(self, steps: int) -> TextCurves:
        """The first steps again, on the same batches, with more frames."""
        dynamics = build(self.run.spec["dynamics"]).model_copy(update={"steps": steps})
        frames = Uniform(frames=min(60, steps + 1))
        return text_curves(ended(evolve(self.field, self.run.at(0), dynamics, record=frames, progress=False)))

    def bigram(self, until: float) -> TextCurves:
        return text_curves(bigram_flow(self.run, until))

    def separability(self) -> float:
        return separability(self.run)

    @property
    def has_own_ladder(self) -> bool:
        return True

    def own_ladder(self) -> NoReturn:
        """Refused: the gradient of a loss on batches does not vanish anywhere along a run."""
        raise InputError(
            f"a run on a text ({self.type}) makes noisy steps and has no ladder; "
            "`check` compares it with the flow of its bigram chain"
        )
