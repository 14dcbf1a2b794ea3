"""The numbers of focus and dilution that decide something, each with where it comes from. Sizes of drawings stand in place."""

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Fixed before the chains, seeds and texts were drawn on which the claims are calibrated."""

    # What is zero. Flows have relative errors of about 1e-10, and critical points are found to |F| <= 1e-10.
    equal: float = 1e-9  # probabilities that differ by no more are equal, as they need sum to 1 no better; a rate c is zero
    lost: float = 1e-10  # a size or a rate up to this is lost to those errors
    arrival: float = 1e-9  # a pattern has reached its size where it is so few e-folds below it
    settled: float = 1e-8  # half the digits: |F| of a flow at its critical point, losses of one family, errors of companion runs
    no_rate: float = 1e-7  # a rate up to this is zero: points found to |F| <= 1e-10 leave rates that are zero far smaller
    flow_noise: float = 1e-6  # what a flow shows above this is no error: that attention moves, that a small model has a way out

    # Directions. Saturated singular values are of order 1, and so are embeddings relative to the longest.
    level: float = 0.1  # from here on a direction is open; what is outside, of size s, acts at rate s^2 and shows after .1 / s^2
    start_multiple: float = 3.0  # a value of this multiple of the largest at the start is nine tenths new, by its square
    linear: float = 0.05  # up to this size, or relative distance from a point, the linear law holds: its square is a few 1e-3
    outside: float = 0.02  # up to a fifth of the level a direction lies outside the small model, which is not left
    growth: float = 10.0  # a rate is fitted over a rise by this factor; attention has begun to grow at this multiple of its start
    samples: int = 25  # times over a rise at which the flow is linearised at the run: a tenth of an e-fold apart

    # Rows of attention.
    gain: float = 0.005  # a row has a focus when its attention on the frequent token gains more than this
    solver_errors: float = 5.0  # and more than this multiple of the solver's relative tolerance
    total: float = 0.5  # a focus is total from half of what attention can gain, 1 - pi: of a token, from half of all attention
    turn: float = 0.03  # a rise or fall after E2 counts from here on; scores of this size move attention by less
    records: float = 3.3  # standard deviations that the highest of about a thousand noisy records stays below in the mean
    mark: float = 0.0005  # least redistribution D at which second order is read: a start of 1e-3 is gone, the next order small

    # Times, as multiples.
    margin: float = 1.5  # half as much again is clearly more: of a rank (1.00 on shuffled text), a size, a time
    time_factor: float = 1.25  # times further apart are clearly different: the interval of an event may reach back before it
    no_further_event: float = 2.0  # a run shows that no event follows if it lasts this many times as long as the last one took
    plateau: float = 3.0  # a stay that lasts up to this multiple of its beginning is a plateau, and a stall if nothing ends it
    companion_length: float = 4.0  # the run beside one that was too short is this many times longer
    patience: float = 10.0  # what takes so many times longer than all before it is not waited for

    # Starts: root mean squares of the parameters.
    start: float = 3e-3  # below it a start is at most .1 of the level of E1 in norm (8 entries a row): directions open in turn
    path_start: float = 1.2e-3  # the largest one drawn with standard deviation 1e-3
    rung_start: float = 1e-5  # of the path on which a rung is looked for: small enough that it passes all of them
    rung_until: float = 1e7  # how far that path is followed
    text_start: float = 2e-2  # the largest near enough to the origin on a text

    # Tolerances, relative unless they are of a cosine.
    rate: float = 0.1  # rates after the first: over a tenfold rise an opening of amplitude .05 to .1 moves them by its coupling
    origin: float = 0.05  # at the origin: the rise ends at .1, whose square has then moved rate and attention by a few per cent
    escape_size: float = 0.3  # what exp(Jt) predicts: a rate off by a tenth over three e-folds
    direction: float = 0.02  # cosine at (1,1): 11 degrees
    first_direction: float = 0.01  # cosine of what opens at (0,0) and (1,0): 8 degrees
    meeting: float = 0.02  # of the time: a row's return to its base and the zero of its embedding
    path_times: float = 0.05  # times on the saddle path from 1e-3: what directions that open together do to each other
    negligible: float = 0.01  # a share that is none: of the loss still to fall, of a rate beside that of the point, of attention

    # Where claims apply.
    clear_dilution: float = 0.5  # a row clearly dilutes, or not, if second order moves it at least half as fast as the fastest
    events: int = 3  # E1 and Q1 come on every chain: a sequence is of three events at least
    almost_equal: float = 0.3  # rare tokens are almost equal if none is further from their mean than this share of it
    separated: float = 2.0  # tokens have their cycles one after another where each is so many times as frequent as the next
    linear_delta: float = 0.2  # the rate at the least delta is this near to kappa delta; beyond it no limit is taken
    deltas: tuple[float, float] = (1e-5, 1e-4)  # relative deviations at which kappa is measured; the error is of order delta
    doublings: tuple[int, ...] = (1, 2, 4, 8)  # delta is divided by these, `mark` multiplied: four sizes give limit and error

    # Attention this near to the saturated end: rates inside the rank-one model are of the order of its square times E^2, 1e-5.
    saturated: float = 1e-4

    # Searches.
    tolerances: tuple[float, float] = (1e-6, 1e-10)  # of the flow of a small model towards its critical point
    steps: int = 3000  # of that flow; a leg of the path, with tighter tolerances, is given up after twice as many
    power: float = 3.0  # a speed that falls more slowly than this power of time has no end at a finite place
    starts: int = 5  # frames of a stay from which other critical points are searched for
    difference: float = 1e-4  # step of differences of fourth order: their error is about 1e-12 of what they differentiate

    # Texts, chosen on TinyStories and WikiText-2, not on Tiny Shakespeare; `attention` also for a watched transformer.
    noise: float = 3.0  # standard errors, one in 370
    median: int = 9  # frames of the running median
    openings: int = 5  # the first E_k and Q_k are events, later ones are not
    attention: float = 0.05  # least move of attention: a twentieth of all
    entropy: float = 0.1  # least turn of the mean entropy, in nats
    norm: float = 0.2  # least turn of the logarithm of a row norm
    retraction: float = 0.15  # least relative retraction of rare norms
    cosine: float = 0.949  # least size of cos(Phi, pi pi^T) at Q1: nine tenths of the square of Phi are along pi pi^T
    window: int = 128  # windows of fewer tokens have counts too far from their mean for the times of the bigram flow
    one_mode: float = 0.03  # up to this separability r one mode grows alone
    many_modes: float = 0.1  # from this separability r on modes grow together
    # Share of H(pi) - H(next | last token) that the loss must have gained before a missing turn violates a claim. Before that a
    # run may rest where all rows look at the most frequent type: attention then carries no information, and the loss is H(pi).
    learned_share: float = 0.1
    # Least share by which the held-out loss must end below the entropy of the types: Adam moves rows, norms and entropies on
    # words in random order too, where this share is 0.
    useful_share: float = 0.05
    # Pairs of types that the bigram flow may go through in all its steps: about an hour. 22,000 steps of 200 types have 9e8.
    pairs: float = 1e11
    types: int = 4096  # of the bigram flow: a matrix between them has 128 MiB
    stretches: int = 100  # overlapping windows are not independent: standard errors are those of means over so many stretches

    # Under Adam and other steps.
    columns: int = 32  # of queries and keys that stand for all: columns are drawn, so errors go like 1/sqrt(32) of those of one
    one_direction: float = 0.2  # sv_2/sv_1 of G up to which one direction condenses alone: G^2 leaves the second a share of .04
    predicted_times: float = (
        0.02  # by which intervals exceed both choices of columns: nine of ten events of 29 chains from seed 1000
    )
    small_eps: float = 1e-6  # below it attention is normalised as soon as it moves: its gradients pass 1e-6 before the focus
    condensation: float = (
        5.0  # the embedding has condensed where sv_1 is this multiple of the start: what else is in it is a fifth
    )
    early: float = 0.25  # share of the plateau that the embedding has then: p is nearly uniform below it
    steps_of_start: float = 10.0  # steps in which an entry passes its start: with fewer the first sign decides
    stationary: float = 0.1  # sv_2/sv_1 of G up to which rows move alike in finite contexts: .095 as published
    least_neurons: int = 16  # signs of 16 neurons agree by chance, in either sense, once in 30,000
    flat_law: float = 0.95  # cosine of pi with equal rows up to which the two can be told apart at .99
    sign_share: float = 0.95  # agreement of signs; .97 and more in 48 runs, and .5 by chance
    row_spread: float = 0.02  # of displacements of rows in long contexts, where they are equal up to eps
    row_spread_finite: float = 0.2  # in finite contexts, where stationarity is broken: .01 to .18
    rare_chance: float = 1e-3  # a deviation that chance exceeds more seldom is none of chance
    blind: float = 0.15  # share of the excess loss left at the focus above which it was blind to P in 16 chains of 16
    blind_times: float = 0.03  # of the step of the focus, with and without dependence
    head_tolerances: tuple[tuple[str, float], ...] = (("up", 0.03), ("dilution", 0.05), ("return", 0.05))
    head_neurons: int = 256  # it was tested with 256; with 64 one event in ten misses these tolerances
    peak_height: float = 0.03  # of attention: the largest error of a peak in 216 rows was .021
    transient: float = 0.3  # of the step of the focus: 40 steps as published, in which momentum and eps die out
    long_memory: float = 0.999  # beta2 from which sqrt(v) remembers the gradients before saturation
    frozen_norm: float = 0.02  # change of a rare norm in focus: .2 to 1 % at beta2 .999, 10 % and more for sign descent
    stall_loss: float = 1e-3  # nats: a thousandth of what there is to learn
    settled_share: float = 0.8  # a loss rests that does not move in the last fifth of a run
    unigram: float = 0.01  # share of the excess loss over H(pi) that is none
    path_rate: float = 0.05  # lr / eps at the end of the path: gradient descent in steps of .05
    path_eps: tuple[float, ...] = (1e-30, 1e-6, 1e-3, 1.0)  # one below each of its two thresholds, one between, one beyond
    path_steps: int = 3000  # of the path: t = 150 of the flow, twice what the published chain needs for its first focus
    cycle_times: float = 0.03  # of events of later cycles, as of the first focus
    least_cycle_events: int = 5  # a coin falls on one side five times once in 32: a start that says nothing is confirmed so often

    # A watched transformer.
    condensed: float = 0.5  # the embedding has condensed where its rank is this share of that at the start

    @property
    def flow_times(self) -> float:
        """Of the logarithm of event times over those of the bigram flow."""
        return round(math.log(self.time_factor), 3)


LIMITS = Limits()
