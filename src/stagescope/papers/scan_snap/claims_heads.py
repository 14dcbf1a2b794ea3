"""What section 7 of scan and snap says of several heads, as a claim on the frames of a run."""

from dataclasses import replace
from itertools import combinations

import numpy as np

from stagescope.claims.claim import ClaimTable
from stagescope.claims.comparison import Comparison, Regime, at_least, not_applicable, regime_of
from stagescope.papers.scan_snap.limits import LIMITS
from stagescope.papers.scan_snap.loss import PairwiseHeads
from stagescope.papers.scan_snap.study import WORDS
from stagescope.readings.reading import Reading

claim = ClaimTable(WORDS.claims)


def leading_tokens(law: PairwiseHeads, z: np.ndarray) -> np.ndarray:
    """Whether a token is one of the three distinct ones with most attention (heads, classes, keys), at the scores Z."""
    distinct = np.isin(law.model.keys, sorted(law.process.distinct)) & (law.arrays["table"] > 0)
    c = np.where(distinct, law.attention(z), -1.0)
    places = np.argsort(-c, axis=-1, kind="stable")[..., : LIMITS.combination]
    leads = np.zeros(c.shape, dtype=bool)
    np.put_along_axis(leads, places, True, axis=-1)
    return leads


def overlap(leads: np.ndarray) -> float:
    """The share of the leading tokens that two heads have in common, mean over classes and pairs of heads."""
    pairs = [np.sum(leads[a] & leads[b], axis=-1) for a, b in combinations(range(len(leads)), 2)]
    return float(np.mean(pairs)) / LIMITS.combination if pairs else 1.0


class HeadsReading(Reading):
    """The reading of a run with several heads; its stages are those of the loss.

    Examples:
        >>> run = ss.run_study("scan-snap", heads=2, start_scores=0.1, until=5.0, frames=5)
        >>> ss.reading(run).attention(0).shape  # heads, classes, tokens
        (2, 2, 30)
    """

    def attention(self, frame: int) -> np.ndarray:
        """c_{l|n} of every head (heads, classes, keys) at a frame."""
        return self.law.attention(self.run.params["Z"][frame])

    def leads(self, frame: int) -> np.ndarray:
        """The leading tokens of every head at a frame."""
        return leading_tokens(self.law, self.run.params["Z"][frame])


def _regime(reading: HeadsReading) -> Regime:
    law, start = reading.law, reading.run.at(0)
    process = law.process
    few = min(len(process.distinct & set(item.tokens)) for item in process.classes)
    if reading.run.spec["dynamics"]["type"] != "GradientFlow":
        return not_applicable("it takes finite steps, not gradient flow")
    conditions = (
        (few > LIMITS.combination, f"a class has {few} distinct tokens, too few to choose {LIMITS.combination} of"),
        (not np.any(start["Y"]), "the decoder does not start at zero"),
        (len({item.query for item in process.classes}) == len(process.classes), "classes share a query"),
        (len({item.target for item in process.classes}) == len(process.classes), "classes share a target"),
    )
    if not np.any(start["Z"]):
        return not_applicable("all heads start equal, and stay so")
    first, last = reading.attention(0), reading.attention(-1)
    moved_share = float(np.mean(np.abs(last - first).sum(axis=-1))) / 2
    return regime_of(
        *conditions,
        (overlap(reading.leads(0)) < 1, "all heads start with the same leading tokens, so none of them is to end on others"),
        (moved_share >= LIMITS.material, f"only {moved_share:.2g} of all attention has moved"),
        holds="flow, the decoder starts at zero, a query and a target per class, attention has moved",
    )


@claim("SnS:heads", _regime)
def _heads(reading: HeadsReading) -> Comparison:
    """The share of the three leading tokens of each head and class at the start that lead at the end; heads must differ there."""
    first, last = reading.leads(0), reading.leads(-1)
    lasting = float(np.mean(np.sum(first & last, axis=-1))) / LIMITS.combination
    reason = f"{lasting:.1%} of the three leading tokens of each head still lead at the end"
    reason += f"; two heads share {overlap(first):.1%} of them at the start and {overlap(last):.1%} at the end"
    compared = at_least(lasting, LIMITS.order, reason, unit="of the leading tokens")
    return compared if overlap(last) < 1 else replace(compared, holds=False)


HEADS_CLAIMS = claim.claims
