"""The numbers that decide what is read in a run of scan and snap, on chains and on text, each with its derivation."""

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """How far a prediction can be trusted is computed for each run: that is no limit."""

    # errors of the computation
    rounding: float = 1e-9  # a change of a score, a relative velocity or an error of a sum this small is rounding
    solver: float = 1e-6  # error of a curve of a flow, relative to its largest value; trajectories agree to 3e-7
    entropy: float = 10 * solver  # nats: ten times the error of the entropy of a flow
    # what is small beside what it is a share of
    small: float = 0.05  # error of a closed form in its limit, and what one batch in twenty moves the wrong way. Attention that
    # moves less is almost fixed: after a decay it moves by .01 to .02 in 50 steps on a text. Where a held-out loss falls less
    # nothing was learned: heads also move on words in random order, where it does not fall.
    growth: float = 2 * small  # B(t0) is integrated from two such numbers
    order: float = 1 - small  # share of pairs of distinct tokens that must keep the order of P(l|n)
    combination: int = 3  # tokens on which a head ends: section 7 names the 1st, 3rd and 5th instead of the first three
    half: float = 0.5  # of the entropy at the start: with less, attention is closer to one token than to the start
    transition: float = 0.25  # of K ln M / eta_Y: the paper gives an order of magnitude, and a quarter is well below it
    fast_decoder: float = 2.0 / half  # eta_Y/eta_Z; theorem 3 is wrong by about 2 eta_Z/eta_Y: 70, 20, 2 % at ratio 1, 10, 100
    order_one: float = 2.0  # a factor that O(.) of theorem 1 leaves open: the law of its second stage is .6 to 1 times gamma
    outputs: int = 100  # theorem 1 asks for M >> 100
    first_laws: float = 0.134  # x over each law of eq. 14 at its end, t0' and t0, is off by .134 and .107 at M = 100, where
    # theorem 1 begins, and by less at larger M: this is the o(1) of theorem 4
    # events; the levels of `onset`, `winner` and `slow` are those of the independent implementation
    material: float = 0.01  # share of attention that must have moved: a map of attention with 1 % steps shows it
    onset_loss: float = 2 * material  # share of their first attention that common tokens have lost at `onset`: two such steps
    winner_ratio: float = 1.25  # attention of the strongest distinct token over that of the strongest common one at `winner`
    late: int = 10  # the end of a run is its last tenth
    slow_speed: float = 1 / late  # speed over its peak at `slow`
    snap_behind: float = 0.75  # share of the way to ten times this time that attention has gone at `snap`: well over half
    longer: float = 3.0  # time must triple after a snap on a text: a way that grows like log t never seems to end
    ahead: float = 1 - snap_behind ** math.log10(longer)  # of its way on a text: an eighth while time triples
    above: float = 2.0  # a peak on a text moves so many times as much as the end, where batches alone move attention
    # records: the motion of attention and the change of its speed over its peak, between two frames
    move: float = onset_loss  # an onset is not missed
    speed: float = small
    most_steps: int = 3000  # a descent up to this long is replayed at every step, a longer one at so many steps
    corners: int = 20  # of the polygon along which the way of attention is measured, per decade: sides of 12 % of the time
    per_decade: int = 20 * corners  # frames of a replayed flow
    replicas: int = 8  # descents on other batches: their spread is known to 25 %, and Student's factor for 95 % is 2.4
    replica: int = 6 * corners  # frames of a replica: where it is read 2 % of the time apart at most, less than its noise
    interval: int = 50  # steps between two checkpoints of a text
    fine: int = interval // 5  # steps between two frames of topical classes; with more than `most_frames` it is `interval`
    most_frames: int = 1000
    # companion runs and chance
    classes: int = 10  # of a companion run at most: more cost more than they show
    draws: int = 499  # random orders: of these and the true one, one in a hundred (`comparison.CHANCE`) is five
    permutations: int = 2 * draws + 1
    stratum: int = 8  # types of about equal frequency that are permuted: fewer leave scores near their own place
    types: int = 30  # with fewer the standard error of a rank correlation is .2 or more
    frames: int = 60  # at which the held-out loss is looked at; the best of them counts, also of permuted words
    # windows of a text
    common: float = 0.15  # a type is common if it is in more than this share of the windows; as in the independent numbers
    distinct: float = 0.3  # a type is distinct if KL(next | type || next) is above this, in nats; as in the independent numbers
    held_every: int = 4  # one stretch of the text in so many is held out
    stretches: int = 10 * held_every
    sampled: int = 200_000  # windows used to choose next words; the standard error of a share is then below 0.12 %


LIMITS = Limits()
