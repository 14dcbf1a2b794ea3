"""The tuned numbers of the landscape in one frozen value. Lengths are relative: to a parameter vector, a way, a span or |F|."""

from dataclasses import dataclass

import numpy as np

EPS = float(np.finfo(float).eps)
"""Rounding of a number of size one."""


@dataclass(frozen=True)
class Limits:
    """One line for each number; what is derived from another has no line of its own."""

    # what is zero, what is the same
    exact: float = 1e-15  # |F| at which a search ends: rounding of parameters of size one
    polished: float = 1e-12  # |F| after polishing, and noise on a path: rounding of sums of some thousand terms
    critical: float = 1e-10  # |F| of a critical point; of a rate it is the relative accuracy
    coupling: float = 1e-9  # a smaller share is what many steps with such noise add up to: in its place stands a zero
    free: float = 1e-8  # directions are free, and rates have no sign, below this share of the largest: about the root of rounding
    flat: float = 1e-7  # rates along the orbit of a symmetry are zero up to this share of the largest; |F| of a search there
    equal: float = 1e-6  # rates that differ by less than this share of the largest are one; products alone find them to as much
    place: float = 1e-4  # places nearer than this share of a way or span are one
    small: float = 1e-3  # a share that is none: of F by its other parity at a tip, of a rate beside those that bracket its zero
    agree: float = 0.01  # two computations of one number agree to one percent
    half: float = 0.5  # a marked change of |F|, of a distance or of a direction is by a factor of two

    # searches for a zero of F
    steps: int = 300  # with the whole Jacobian; by products, a space of more is not cheaper than all of a model of 300 parameters
    patience: int = 30  # steps that do not halve |F|; a factor of .98 a step needs as many
    settled: int = 5  # the same below `polished`, where rounding decides
    window: int = 3  # steps over which a search is judged to be in a valley; a branch is a loop from as many points on
    gain: float = 1e-4  # share of the predicted fall of |F|^2 that a step must bring, and to which it is solved by products
    shrink: float = 0.1  # least factor of the damping after an accepted step
    damping: float = 1e-6  # and its least size: along an orbit a step without it is as long as the parameters
    iterations: int = 60  # steps of a large model; whole Jacobians beside a path; vectors and restarts of an eigenvalue iteration
    inner: int = 200  # products with J and J^T in a step of a large model
    corrections: int = 8  # Newton steps that bring a trial back; five doublings make all digits of half a one
    resolved: float = 1e3  # they use singular values so many times larger than the cut of the trial

    # which frames of a run they start from
    most_slow: int = 8  # slow frames, the most marked ones
    starts: int = 5  # of the searches from a slow frame up to the next peak of |F|; directions in which a tip is tested
    close: float = 0.05  # a point so near to the slow frame ends them
    products: int = 10_000  # with J, in all searches along a run
    reach: float = 0.5  # a valley of |F| is not followed further
    led_away: int = 2  # searches of a slow frame that end in such a valley, after which no more are made

    # laws of an escape. A remainder is the mean share of F that a law leaves out, about the relative error of its time
    near: float = 0.3  # distance up to which laws at a point are believed, and the share of F they may miss there
    size: float = 0.1  # an escape ends, an arrival begins, at this share of the longest parameter vector or way
    holds: float = 0.1  # largest remainder of a linear law or a drift, and spread of the orders that tests find at a tip
    precise: float = 0.02  # of a law of a higher order, and where a path arrives; a rung says so where it is more
    orders: int = 5  # that are tried,
    drift_orders: int = 3  # and of a drift
    horizon: float = 10.0  # a law is followed for so many lengths of the run
    calls: int = 4000  # of a polynomial, or steps of a solver, for one path
    drift_calls: int = 500  # of a polynomial for a drift
    points: int = 60  # along a path at which the remainder is taken
    accuracy: float = 1e-7  # of such a path: far below any remainder
    displacement: float = 0.005  # at which the order of a tip is tested, and at twice and four times as much
    kernel: float = 1e-4  # singular values and errors of an eigenvector that are zero at a tip: a rate is right to the square

    # branches, in units of the length of the point and of the span of the value
    first: float = 0.01  # step
    longest: float = 0.08  # about a dozen of them cross the range
    shortest: float = 1e-5  # a thousandth of the first
    turn: float = 0.95  # least cosine between the tangents of neighbours, 18 degrees
    branch: int = 200  # points to either side
    far: float = 5.0  # a point so many times longer than the first runs off to infinity; none is begun at so far from its start
    located: int = 12  # trials for a place between two points

    # saddle paths
    linear: float = 0.05  # the linear law of what opens holds up to where it misses this share of F
    largest_eta: float = 0.25  # in shares of the size up to which the linear law holds; the smallest is one percent of it
    room: float = 1.5  # eta / 2 is so many times what grows of the start
    slower: float = 0.8  # a slow point of a path: |F| is so many times smaller than before and after it
    power: float = 3.0  # a speed that falls more slowly than this power of time has no end at a finite place
    change: float = 0.1  # of J h over one product of the deviations beside a path


LIMITS = Limits()
