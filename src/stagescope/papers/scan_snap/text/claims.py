"""Scan and snap on real text: statements of the paper as claims that can be checked on any corpus and query word.

Scores also fit the noise of their training windows. So every claim about types is judged on held-out windows, against the same
number with the scores of types of equal frequency in random order.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from stagescope.claims.claim import ClaimTable
from stagescope.claims.comparison import CHANCE, Comparison, Regime, beyond_chance, not_applicable, regime_of, undecided
from stagescope.core.params import key
from stagescope.detect.noise import TWO_SIDED
from stagescope.papers.scan_snap.companion_options import fewer_windows
from stagescope.papers.scan_snap.evidence import ADAM
from stagescope.papers.scan_snap.limits import LIMITS
from stagescope.papers.scan_snap.study import WORDS
from stagescope.papers.scan_snap.text.observables import TextAttention, TopicAttention, on_held_out
from stagescope.papers.scan_snap.text.stages import after_prior, last_tenth, peak_of
from stagescope.readings.evidence import Evidence
from stagescope.runs.run import Run

claim = ClaimTable(WORDS.claims)


def rank_correlation(x: np.ndarray, y: np.ndarray, control: np.ndarray | None = None) -> float:
    """Spearman's correlation; with `control`, the partial correlation at equal ranks of it [SnS:text-frequency]."""
    from scipy.stats import rankdata

    rows = [rankdata(values) for values in (x, y, *(() if control is None else (control,)))]
    if any(np.ptp(row) == 0 for row in rows):
        return float("nan")
    table = np.corrcoef(rows)
    if control is None:
        return float(table[0, 1])
    return float((table[0, 1] - table[0, 2] * table[1, 2]) / np.sqrt((1 - table[0, 2] ** 2) * (1 - table[1, 2] ** 2)))


@dataclass(frozen=True, eq=False)
class TextEvidence(Evidence):
    """A run with its held-out attention."""

    curves: TextAttention

    @property
    def topics(self) -> TopicAttention | None:
        """The curves of a run of topical classes; None for the transformer."""
        return self.curves if isinstance(self.curves, TopicAttention) else None

    @property
    def is_adam(self) -> bool:
        return self.dynamics["optimizer"]["type"].startswith("Adam")

    @property
    def decays(self) -> bool:
        return self.dynamics["half_life"] is not None

    @property
    def rate(self) -> float:
        return float(self.dynamics["lr"])

    @cached_property
    def unlearned(self) -> str | None:
        """Why nothing was learned that holds on held-out text; None where something was."""
        if self.topics is not None:
            gain, chance = held_out_gain(self.run, self.topics)
            if gain > 0 and float(np.mean(chance >= gain)) <= CHANCE:
                return None
            return f"the best held-out loss is {-gain:+.3f} nats from that of the prior: what was learned is of no use there"
        gain = 1 - self.curves.held_loss / self.curves.prior_loss
        if gain >= LIMITS.small:
            return None
        least = 1 - LIMITS.small
        return f"the held-out loss is {1 - gain:.1%} of the entropy of the words, above {least:.0%}: no context is used there"


def held_out_gain(run: Run, topics: TopicAttention) -> tuple[float, np.ndarray]:
    """By how much the loss of the prior is above the best held-out loss, in nats; and by chance.

    Chance has the next words of the held-out windows in another order: frequencies of types and of next words stay, and what
    windows tell about the next word is lost. On a text of words in random order these numbers are exchangeable.
    """
    law, process = topics.law, topics.process
    target, judge = process.part("held-out").target, on_held_out(law)
    frames = np.unique(np.linspace(0, run.frames - 1, min(LIMITS.frames, run.frames)).astype(int))
    logs = np.array([judge.log_laws(run.at(int(i)))[:, law.columns] for i in frames])  # (frames, windows, classes)
    logs = logs - np.log(process.prior)
    rows = np.arange(len(target))

    def best(words: np.ndarray) -> float:
        return float(logs[:, rows, words].mean(axis=1).max())

    return best(target), np.array([best(key(0, "next words", i).permutation(target)) for i in range(LIMITS.draws)])


def partial_ranks(topics: TopicAttention) -> tuple[float, np.ndarray]:
    """Rank correlation of the growth of scores with held-out distinctness, at equal frequency; and by chance.

    Chance has the scores of types of about equal frequency in another order.
    """
    process, growth, keys = topics.process, topics.growth, topics.process.known
    share, distinct = process.held_share[keys], process.held_distinctness[keys]
    order = keys[np.argsort(share, kind="stable")]
    strata, chance = np.array_split(order, max(1, len(order) // LIMITS.stratum)), []
    for i in range(LIMITS.draws):
        draw, places = key(0, "types", i), np.arange(len(growth))
        for stratum in strata:
            places[stratum] = draw.permutation(stratum)
        chance.append(rank_correlation(growth[places][keys], distinct, share))
    return rank_correlation(growth[keys], distinct, share), np.array(chance)


def late_motion(curves: TextAttention) -> float | None:
    """Mean total variation between checkpoints in the last tenth of a run; None if there are too few checkpoints."""
    variation = curves.motion.variation
    return float(np.mean(last_tenth(variation))) if len(variation) >= LIMITS.late else None


def late_entropy(curves: TextAttention) -> float:
    """Mean entropy of attention over the last tenth of the frames; at a constant rate it changes from frame to frame."""
    return float(np.mean(last_tenth(curves.entropy)))


def entropy_error(curves: TextAttention) -> float:
    """The 95 % half-width of the entropy from frame to frame at the end; at least three frames are looked at."""
    return TWO_SIDED * float(np.std(last_tenth(curves.entropy, 3), ddof=1))


_FULL = not_applicable("the claim is about the full transformer (--model transformer)")


def _topical(evidence: TextEvidence) -> Regime:
    """Gradient steps, and enough types whose distinctness is known on held-out windows."""
    if evidence.topics is None:
        return not_applicable("the claim is about topical classes (--model topics)")
    process, types = evidence.topics.process, len(evidence.topics.process.known)
    few = f"{types} types are in {process.least} or more held-out windows; {LIMITS.types} are needed: lower --least"
    return regime_of(
        (not evidence.is_adam, ADAM.sentence),
        (types >= LIMITS.types, few),
        holds=f"{len(process.nexts)} topical classes, {types} types in held-out windows, gradient steps",
    )


@claim("SnS:text-frequency", _topical, elsewhere=fewer_windows)
def _ranked_at_frequency(evidence: TextEvidence) -> Comparison:
    """A number on held-out windows against chance; it speaks against the claim only where the scan is over."""
    curves = evidence.topics
    assert curves is not None
    measured, chance = partial_ranks(curves)
    if not curves.loss[-1] < curves.prior_loss:
        obstacle = "the loss did not fall below that of the prior, so the model does not use the windows yet; take more --steps"
        return Comparison(None, measured, "above", None, obstacle)
    if not np.isfinite(measured):
        return undecided("all types are equally distinct, or no score moved", None, "above")
    reason = "at equal frequency the rank correlation of z with KL(next | type || next) of held-out windows"
    reason += f" is {measured:+.2f} over {len(curves.process.known)} types"
    if evidence.unlearned is not None:
        return Comparison(None, measured, "above", None, f"{reason}; {evidence.unlearned}")
    against_chance = beyond_chance(measured, chance, reason, measured_error=TWO_SIDED * float(np.std(chance)))
    peak = peak_of(curves.motion, after_prior(curves)[1]).time
    if against_chance.holds is False and (peak is None or 3 * peak > float(curves.time[-1])):
        obstacle = "undecided, because attention did not move most in the first third of the run; take more --steps"
        return replace(against_chance, holds=None, reason=f"{against_chance.reason}; {obstacle}")
    return against_chance


def _lowest(evidence: TextEvidence) -> str:
    """What a regime says of the layer that is judged, where there are several."""
    return "; judged by the lowest of the layers" if evidence.curves.whose else ""


def _rate_regime(evidence: TextEvidence) -> Regime:
    if evidence.topics is not None:
        return _FULL
    back = "the step size decays, and sparsity belongs to the current rate, so entropy rises again"
    about = f"constant rate {evidence.rate:g}, compared with half of it"
    return regime_of((not evidence.decays, back), holds=f"{about}{_lowest(evidence)}")


@claim("SnS:text-rate", _rate_regime)
def _larger_sparser(evidence: TextEvidence) -> Comparison:
    entropy, error = late_entropy(evidence.curves), entropy_error(evidence.curves)
    if evidence.decays:  # a companion run would decide nothing
        curve = evidence.curves.entropy
        course = f"entropy{evidence.curves.whose} goes {curve[0]:.3f} -> {curve.min():.3f} -> {entropy:.3f} nats"
        return Comparison("sparser", entropy, "sign", None, course, unit="nats")
    if evidence.unlearned is not None:
        return Comparison("sparser", entropy, "sign", None, evidence.unlearned, unit="nats")
    slower = evidence.companion("with_steps", {"lr": evidence.rate / 2})
    half, slower_error = late_entropy(slower), entropy_error(slower)
    both = float(np.hypot(error, slower_error))
    holds = True if entropy < half - both else False if entropy > half + both else None
    numbers = f"{entropy:.3f} nats at rate {evidence.rate:g} and {half:.3f} at half of it, with an error of {both:.3f}"
    reason = f"entropy of held-out attention{evidence.curves.whose} is {numbers}, with the same seed and steps"
    return Comparison(half, entropy, "below", holds, reason, slower_error, error, "nats")


def _freezing_regime(evidence: TextEvidence) -> Regime:
    if evidence.topics is not None:
        return _FULL
    return Regime(True, f"{'decaying' if evidence.decays else 'constant'} rate{_lowest(evidence)}")


@claim("SnS:text-freezing", _freezing_regime)
def _freezing(evidence: TextEvidence) -> Comparison:
    """Attention must not freeze at a constant rate; at a decaying one it must, where it does not at a constant one."""
    if evidence.unlearned is not None:
        return undecided(evidence.unlearned, LIMITS.small, "at least")
    companion = evidence.companion("with_steps", {"half_life": None}) if evidence.decays else evidence.curves
    motion, steady = late_motion(evidence.curves), late_motion(companion)
    if motion is None or steady is None:
        few = f"the run has fewer than {LIMITS.late} intervals of {LIMITS.interval} steps; take more --steps"
        return undecided(few, LIMITS.small, "at least")
    subject = f"total variation{evidence.curves.whose} per {LIMITS.interval} steps at the end"
    numbers = f"{subject} is {steady:.3f} at the constant rate {evidence.rate:g}"
    if np.max(companion.motion.variation) < LIMITS.small:
        return Comparison(LIMITS.small, motion, "at least", None, f"{numbers}; attention hardly moves, take a larger --lr")
    if not evidence.decays:
        state = "attention still moves" if steady >= LIMITS.small else "attention is frozen"
        reason = f"{numbers}, entropy is {late_entropy(evidence.curves):.3f} nats; {state}"
        return Comparison(LIMITS.small, steady, "at least", steady >= LIMITS.small, reason)
    holds = motion < LIMITS.small <= steady
    return Comparison(LIMITS.small, motion, "below", holds, f"{numbers} and {motion:.3f} at the decaying rate")


TEXT_CLAIMS = claim.claims
