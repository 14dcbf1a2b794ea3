"""Claims of focus and dilution on real text, for runs on any corpus."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from stagescope.claims.claim import ClaimTable
from stagescope.claims.comparison import Comparison, Condition, Regime, agreement, regime_of, undecided
from stagescope.corpora.vocabulary import tally
from stagescope.corpora.window_loss import WindowLoss
from stagescope.detect.noise import TWO_SIDED, variation
from stagescope.detect.stage import Event
from stagescope.papers.focus_dilution.family import condensation_directions, condensation_rate
from stagescope.papers.focus_dilution.limits import LIMITS
from stagescope.papers.focus_dilution.study import WORDS
from stagescope.papers.focus_dilution.text.forms import Predictions, predict
from stagescope.papers.focus_dilution.text.model import TextCausal
from stagescope.papers.focus_dilution.text.observables import TextCurves, before, text_curves
from stagescope.papers.focus_dilution.text.stages import TextHistory, smoothed
from stagescope.papers.focus_dilution.text.study import RATES, TextFocusOptions
from stagescope.readings.evidence import Evidence
from stagescope.readings.rebuild import rebuilt

claim = ClaimTable(WORDS.claims)
FLOW_STEP = RATES["sgd"]
"""Largest step of a descent in place of a flow: the edge of stability of these losses is near .3."""
WATCHED = int(TextFocusOptions.model_fields["watched"].default)
"""Positions of the held-out loss, as many as windows of the recorded one: the error of a mean loss is then about 1 %."""
ADAM = Regime(False, "Adam has no flow time and does not align W0 with pi")


@dataclass(frozen=True, eq=False)
class TextEvidence(Evidence):
    """A run on a text with its curves."""

    curves: TextCurves

    @property
    def time(self) -> np.ndarray:
        return self.curves.time

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
        """The separability of what enters the output at the start."""
        return self.companion("separability")

    @cached_property
    def learned(self) -> float:
        """(H(pi) - loss) / (H(pi) - H(next | last token)) at the middle of the run."""
        time, gain = self.time, self.curves.unigram - self.curves.floor
        loss = np.interp((time[0] + time[-1]) / 2, time, smoothed(self.run.series["loss"]))
        return float((self.curves.unigram - loss) / gain)

    @cached_property
    def useless(self) -> str | None:
        """Why nothing was learned that holds on held-out text; None where something was."""
        fields = {name: getattr(self.law, name) for name in type(self.law).model_fields}
        places = self.window if self.causal else 1  # positions of a window with a loss
        judge = type(self.law)(**{**fields, "part": "held-out", "watched": max(self.law.watched, WATCHED // places)})
        law = tally(self.law.process.held_out, self.law.process.vocab) / len(self.law.process.held_out)
        entropy = float(-np.sum(law * np.log(self.law.process.stationary)))
        gain = 1 - judge.value(self.run.at(-1)) / entropy
        if gain >= LIMITS.useful_share:
            return None
        return (
            f"the held-out loss ends {gain:+.1%} below that of the frequencies, not {LIMITS.useful_share:.0%}: no context is used"
        )

    @property
    def parts(self) -> list[str]:
        """What the model has beside attention."""
        model = self.run.spec["field"]["model"]
        return [name for name in ("positions", "residual", "norm") if model.get(name)]

    @property
    def too_long(self) -> str | None:
        """Why there is no flow of the bigram chain: it goes through all pairs of types at every step. None where there is."""
        vocab, steps = len(self.curves.pi), int(np.ceil(self.end / FLOW_STEP))
        if vocab <= LIMITS.types and steps * vocab**2 <= LIMITS.pairs:
            return None
        sentence = f"the bigram flow would go through all pairs of {vocab:,} types in {steps:,} steps"
        return f"{sentence}, which takes hours or gigabytes; choose a smaller --vocab or fewer --steps"

    @cached_property
    def flow_history(self) -> TextHistory:
        """What the bigram flow did by the end of the run."""
        return TextHistory(text_curves(self.companion("bigram", self.end)))

    @property
    def assumptions(self) -> tuple[Condition, ...]:
        """Of the theory of gradient descent from a small start."""
        small = self.scale <= LIMITS.text_start, f"initial rms {self.scale:.1e} is above {LIMITS.text_start:g}"
        return small, self.equal_rates


def descent(evidence: TextEvidence, *more: Condition, model: str = "") -> Regime:
    """Gradient steps from a small start under more conditions; `model` says what else holds."""
    if evidence.run.clock != "t":
        return ADAM
    return regime_of(*evidence.assumptions, *more, holds=f"{model}gradient steps from a small start")


def attention_only(evidence: TextEvidence) -> Regime:
    """The same, with nothing but attention between embedding and output."""
    return descent(evidence, (not evidence.parts, f"the model has {', '.join(evidence.parts)}"), model="attention alone, ")


def condensed(evidence: TextEvidence) -> Regime:
    """The same, where one mode grows alone: the theory of later openings is linearised at a point of rank one."""
    base = attention_only(evidence)
    if evidence.run.clock != "t" or evidence.r <= LIMITS.one_mode:
        return base
    alone = False, f"r = {evidence.r:.3f} is above {LIMITS.one_mode:g}: one mode need not grow alone"
    return regime_of((base.holds, base.sentence), alone, holds="")


def long_windows(evidence: TextEvidence) -> Regime:
    """The same, on windows whose counts are near their mean: the bigram flow is the limit of long windows."""
    base = condensed(evidence)
    if evidence.run.clock != "t":
        return base
    return regime_of(
        (base.holds, base.sentence),
        (not evidence.causal, "the loss is at all positions, so most contexts are short"),
        (evidence.window >= LIMITS.window, f"windows of {evidence.window} tokens are short (below {LIMITS.window})"),
        holds=f"{base.sentence}, windows of {evidence.window} tokens",
    )


def adaptive(evidence: TextEvidence) -> Regime:
    """Adam on attention alone, as for the published curves."""
    if evidence.run.clock == "t":
        return Regime(False, "gradient steps; the published curves were made with Adam")
    if evidence.parts:
        return Regime(False, f"the model has {', '.join(evidence.parts)}")
    return Regime(True, "Adam, attention alone")


NO_FLOW = "the steps of this optimiser have no flow time"
STILL_MOVING = "it still moved in the second half of the run"


@claim("FD:text-origin", attention_only)
def _origin(evidence: TextEvidence) -> Comparison:
    """The mode that grows at the origin, |W0^T u + W1 w| with u ~ pi, w ~ pi - 1/d, from the start to E1."""
    pi, first = evidence.curves.pi, evidence.history.embeddings[0]
    lr = float(evidence.dynamics.get("lr", 0.0))
    predicted = condensation_rate(pi)
    if evidence.dynamics.get("optimizer", {}).get("type") == "GD":
        predicted = float(np.log1p(lr * predicted) / lr)  # a step multiplies the mode by 1 + lr mu0
    if evidence.run.clock != "t" or first is None:
        words = NO_FLOW if evidence.run.clock != "t" else "E1 was not reached"
        return undecided(words, predicted, LIMITS.origin * predicted, "1/t")
    steps = int(np.ceil(np.interp(first, evidence.time, evidence.run.step)))
    early = evidence.companion("early", max(steps, 2))
    left, right = condensation_directions(pi)
    mode = np.einsum("kim,i->km", early.params["W0"], left) + early.params["W1"] @ right
    size = np.linalg.norm(mode, axis=1)
    if len(size) < 5 or size[-1] < np.e * size[0]:
        return undecided("the mode did not grow by a factor e before E1", predicted, LIMITS.origin * predicted)
    logs, span = np.log(size), float(early.time[-1] - early.time[0])
    rate = float(np.polyfit(early.time, logs, 1)[0])
    error = TWO_SIDED * float(np.sqrt(variation(early.time, logs)[-1])) / span  # the noise of batches in the logarithm
    reason = (
        f"rate predicted {predicted:.4f}, measured {rate:.4f} while the first mode grows from {size[0]:.2g} to {size[-1]:.2g}"
    )
    return agreement(predicted, rate, LIMITS.origin * predicted, reason, measured_error=error, unit="1/t")


@claim("FD:text-order", condensed)
def _order(evidence: TextEvidence) -> Comparison:
    """The first three openings come in order, with intervals that do not overlap; one that was not reached is after the end."""
    named, words = evidence.history.estimates, "E1 < Q1 < E2 < min(E3, Q2)"
    listed = ", ".join(f"{name} {named[name]}" for name in ("E1", "Q1", "E2", "E3", "Q2") if name in named)
    absent, end = Event.missing(), evidence.end
    first, attention, second = (named.get(name, absent) for name in ("E1", "Q1", "E2"))
    later = [event if event.time is not None else Event(end, end, end) for event in (named.get(n, absent) for n in ("E3", "Q2"))]
    orders = [before(first, attention), before(attention, second), *(before(second, event) for event in later)]
    holds = False if False in orders else None if None in orders else True
    reason = f"not all were reached, or intervals overlap: {listed}" if holds is None else listed
    return Comparison(words, listed, "order", holds, reason)


@claim("FD:text-bigram", long_windows)
def _bigram(evidence: TextEvidence) -> Comparison:
    """The logarithm of the ratio of E2 to that of the flow on the bigram chain; later openings are shown beside it."""
    tolerance, unit = LIMITS.flow_times, "ln of a ratio"
    without_flow = NO_FLOW if evidence.run.clock != "t" else evidence.too_long
    if without_flow is not None:
        return undecided(without_flow, 0.0, tolerance, unit)
    flow, text = evidence.flow_history.opened, evidence.history.estimates
    parts = [_beside(name, text.get(name, Event.missing()), flow.get(name)) for name in ("E2", "E3", "Q2")]
    in_text, in_flow = text.get("E2", Event.missing()), flow.get("E2")
    if in_text.time is None or in_flow is None:
        return undecided("; ".join(parts), 0.0, tolerance, unit)
    error = _relative_error(in_text)
    return agreement(0.0, float(np.log(in_text.time / in_flow)), tolerance, "; ".join(parts), measured_error=error, unit=unit)


def _beside(name: str, here: Event, there: float | None) -> str:
    """An event of the text beside that of the bigram flow, as words."""
    if here.time is None or there is None:
        sources = [source for source, time in (("in the text", here.time), ("in the bigram flow", there)) if time is None]
        return f"{name} was not reached {' and '.join(sources)}"
    return f"{name} predicted {there:.4g}, measured {here.time:.4g} (ratio {here.time / there:.3f})"


def _sign_regime(evidence: TextEvidence) -> Regime:
    """c is the rate at the condensed point: attention must open before a second embedding direction does."""
    base, predictions = attention_only(evidence), evidence.predictions
    attention, second = evidence.history.opened.get("Q1"), evidence.history.opened.get("E2")
    if base.holds and predictions.sign == 0:
        return Regime(
            False, f"c = {predictions.c_windows:+.2f} +- {predictions.c_error:.2f} on real windows: its sign is undecided"
        )
    if base.holds and evidence.causal:
        return Regime(False, "the loss is at all positions, so c on windows of full length is not the rate of attention")
    if base.holds and second is not None and (attention is None or attention >= second):
        return Regime(False, f"W0 is no longer of rank one when attention opens: E2 is at {second:.4g}")
    return base


@claim("FD:text-sign", _sign_regime)
def _sign(evidence: TextEvidence) -> Comparison:
    predictions, cosine = evidence.predictions, evidence.history.direction
    c = f"c = {predictions.c_windows:+.2f} +- {predictions.c_error:.2f} on real windows (bigram {predictions.c_bigram:+.2f})"
    least = LIMITS.cosine
    if cosine is None:
        return undecided(f"{c}; Q1 was not reached", f"{predictions.sign:+d}", least)
    sign = "not predicted" if predictions.sign == 0 else "as predicted" if predictions.sign * cosine > 0 else "not as predicted"
    size = "above" if abs(cosine) > least else "not above"
    reason = f"{c}; cos(Phi, pi pi^T) = {cosine:+.4f} at Q1: sign {sign}, size {size} {least}"
    return Comparison(f"{predictions.sign:+d}", cosine, least, predictions.sign * cosine > least, reason)


def _undecided(evidence: TextEvidence, curve: np.ndarray, least: float) -> str | None:
    """Why a turn of a curve that did not happen may still come; None where it would have come by now."""
    if evidence.history.opened_late:
        return "Q1 is in the second half of the run, or was not reached"
    if evidence.learned < LIMITS.learned_share:
        share = f"{max(evidence.learned, 0):.0%} of H(pi) - H(next | last token)"
        return f"by the middle of the run the loss has gained {share}, below {LIMITS.learned_share:.0%}"
    return STILL_MOVING if evidence.history.moves(curve, least) else None


@claim("FD:text-entropy", adaptive)
def _entropy(evidence: TextEvidence) -> Comparison:
    least = LIMITS.entropy
    expected, swings = f"falls, rises, falls by more than {least:g} nat", evidence.history.swings(least)
    listed = "; ".join(f"{turn.before:.2f} -> {turn.after:.2f}" for turn in evidence.history.entropy) or "it does not move"
    if evidence.useless is not None:
        return undecided(f"the mean entropy goes {listed}; {evidence.useless}", expected, least, "nat")
    if not swings:
        waiting = _undecided(evidence, evidence.history.mean_entropy, least)
        sentence = f"the mean entropy does not fall, rise and fall{' by the end' if waiting else ''}: {listed}"
        reason = f"{sentence}; {waiting}" if waiting else sentence
        return Comparison(expected, None, least, None if waiting else False, reason, unit="nat")
    sizes = ", ".join(f"{move:.2f}" for move in swings)
    return Comparison(expected, min(swings), least, True, f"the mean entropy falls, rises and falls by {sizes} nat", unit="nat")


@claim("FD:text-norms", adaptive)
def _norms(evidence: TextEvidence) -> Comparison:
    expected, tolerance = f"grow, retract by {LIMITS.retraction:.0%} or more, grow", LIMITS.retraction
    least = float(-np.log(1 - tolerance))
    turns = evidence.history.retraction(least)
    if evidence.useless is not None:
        return undecided(evidence.useless, expected, tolerance)
    if not turns:
        waiting = _undecided(evidence, evidence.history.log_norm, least)
        sentence = f"the mean norm of rare rows does not grow, retract and grow again{' by the end' if waiting else ''}"
        return Comparison(
            expected, None, tolerance, None if waiting else False, f"{sentence}; {waiting}" if waiting else sentence
        )
    lost = float(1 - np.exp(turns[1].after - turns[1].before))
    listed = " -> ".join(f"{np.exp(size):.3f}" for size in (turns[0].before, *(turn.after for turn in turns)))
    return Comparison(expected, lost, tolerance, lost >= tolerance, f"mean norm of the rarer half of rows {listed}")


def _separable(evidence: TextEvidence) -> Regime:
    base = descent(evidence)
    if base.holds and LIMITS.one_mode < evidence.r < LIMITS.many_modes:
        between = f"between {LIMITS.one_mode:g} and {LIMITS.many_modes:g}"
        return Regime(False, f"r = {evidence.r:.3f} is {between}, where neither is predicted")
    return base


@claim("FD:text-separability", _separable)
def _separability(evidence: TextEvidence) -> Comparison:
    """Whether there is a plateau with one embedding direction, and it ends: one that has no end says nothing about r."""
    history, r, least = evidence.history, evidence.r, LIMITS.plateau
    predicted = "a plateau" if r <= LIMITS.one_mode else "no plateau" if r >= LIMITS.many_modes else "neither"
    ratio = plateau(history)
    if ratio is None:
        return undecided(f"r = {r:.3f}; E1 or E2 was not reached", predicted, least, "E2/E1")
    error = ratio * math.hypot(*(_relative_error(history.estimates[name]) for name in ("E1", "E2")))
    outcome = "a plateau" if ratio - error >= least else "no plateau" if ratio + error < least else "undecided"
    reason = (
        f"r = {r:.3f} predicts {predicted}; E2/E1 = {ratio:.2f} +- {error:.2g} is {outcome} (a plateau has {least:g} or more)"
    )
    holds = None if outcome == "undecided" else outcome == predicted
    return Comparison(predicted, ratio, least, holds, reason, measured_error=error, unit="E2/E1")


def _relative_error(event: Event) -> float:
    """Half of the interval over the time; 0 for an event without."""
    if event.time is None or event.low is None or event.high is None:
        return 0.0
    return (event.high - event.low) / (2 * event.time)


def plateau(history: TextHistory) -> float | None:
    """E2/E1; None where one of them was not reached."""
    first, second = history.opened["E1"], history.opened.get("E2")
    return None if first is None or first <= 0 or second is None else second / first


CLAIMS = claim.claims
