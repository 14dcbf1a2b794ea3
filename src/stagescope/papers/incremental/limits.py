"""The limits of incremental learning: every number that decides a stage, a claim or a path, with its derivation."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Read by stages, claims, paths, early stopping and text."""

    # tolerances, relative or in shares of a step of the ladder, from what holds exactly to what holds to leading order
    exact: float = 0.02
    """Of t_2 from one path of equal heads (science page landscape, section 2: up to .011 at noise .01). H - 1 rates count as
    equal, and features as centred and orthogonal, within this."""
    sharp: float = 0.03
    """Of levels, for flows and gradient steps on single lags: an independent implementation had 2.1 %. A difference of heads
    that is no larger grows linearly: what is left out is of its square."""
    sampled: float = 0.05
    """Of t_j for batches of contexts against their mean: an independent implementation had .014. A loss on text that moves by no
    more rests, and a gain on held-out text that is no larger is none: heads also turn to lags of words in random order."""
    fair: float = 0.1
    """Of t_1, of the escape slope and of t_2 by WKB, which are limits (science page, section 3); WKB had up to .05 in an
    independent implementation. Losses this near are at one place of the ladder."""
    broad: float = 0.15
    """Of levels for Adam, spans of lags and text, where plateaus are shoulders (science page, section 5); of rates at which heads
    part (section 3); of t_j for cross-entropy, where an independent implementation had .08 to .13: the average of softmax is
    linear in centred logits up to their square, which is the relative error of the flow's times."""

    # heads
    majority: float = 0.5
    """More than half: of a head's attention, which then attends to no other group; of a true map, which then is acquired (its
    time is that of half of what is learned: a class that lacks other features has a smaller map). A larger difference of
    heads is no longer small."""
    together: float = 0.8
    """Least agreement at the start for claims about competing heads, and cosine between moves of heads that move together: they
    are more alike than apart. Chosen without a run."""
    alike_cosine: float = 0.95
    """Heads are alike if the mean cosine between their masses on the groups is at least this: for two heads on one group, a
    quarter of the mass of one is elsewhere. `onset` is when they last are (science page, section 5)."""
    nearly_equal: float = 0.99
    """Least agreement at the start for rates of the linearisation at equal heads."""
    moved_distance: float = 0.1
    """Heads have moved: watched ones by this root mean square distance of rows, the mean over a layer; those of a flow by this
    distance from their mean, from which on all of them are followed."""
    parted: float = 0.2
    """Fall of the cosine between moves of watched heads to the end of the run."""
    rounding: float = 1e-6
    """Relative difference of heads up to which they count as equal; only rounding parts them later."""
    lost: float = 1e-12
    """Initial difference below which only the direction that parts heads first is told from rounding."""

    # runs
    distinct: float = 1.3
    """Least ratio of an importance to the next: the smallest above 1 for which the paper shows plateaus (figure 4)."""
    before: int = 5
    """Least number of frames before t_1: a coarser record fakes the first transition."""
    decade: float = 10.0
    """A stay on plateau 1 needs a run of this many t_1; the parting rate is that of the last rise by this factor."""
    dominant: float = 3.0
    """A mode dominates once it is this many times what does not grow: heads are followed from this many times their difference
    at the start on, and the difference must grow this many times more than the rise on which its rate is measured."""
    logits: float = 0.01
    """Largest initial noise on the logits for the closed forms; the root mean square of a run may be 1.5 times this."""
    noises: tuple[float, float] = (1e-5, 1e-11)
    """The initial noises on the logits between which escapes are timed. Below 1e-11 rounding decides."""
    resolved: float = 0.002
    """Relative error of a t_2 of the companion flows: 2000 frames over five decades, interpolated."""
    longer: float = 2.0
    """The flow of the clock is followed for this multiple of the length of the run."""
    late: float = 0.2
    """The share of a run on text over which its loss must rest. The last lag must also be acquired within this share from the
    start: the next one may take several times as long as those before."""

    # early stopping
    patience: float = 0.1
    """The held-out rule waits for a new least value for this share of the steps; the adaptive one looks at every such step of
    ln step: a transition is then seen at most a tenth of its time late."""
    held_share: float = 0.25
    """Held-out sequences per training sequence; a ridge fit sets as many aside."""
    counts: float = 0.01
    """Differences in loss below this share of the whole ladder l_0 - l_k are no gain and no loss."""
    ridges: tuple[float, float, float] = (1e-4, 1e-5, 1e-6)
    """Of the likelihood fits. The last two are nearly none: the fit is settled if they agree on the best class. Drawn tokens of
    few sequences are separable: as the ridge vanishes, W and with it the loss grow without end, but by a multiple of ln(1/ridge)
    that depends on the class, so that the order of the classes settles. Below 1e-6 the ridge is lost in the tolerance of the
    fit; at 1e-4 it already regularises."""

    # how many
    held_out: int = 3000
    """Sequences with their true law of the held-out loss; of early stopping, too, the same ones for all runs of a task."""
    uniform: int = 1500
    """Sequences of the best loss of uniform attention: above Bayes it is then known to about 2 %."""
    compared: int = 500
    """Sequences of the divergences between model and classes: the error is 1 to 2 %."""
    attended: int = 100
    """Sequences of attention that depends on tokens, the first of those above: the error is 1 % of a mass."""
    redrawn: int = 3
    """Replays of the regression transformer with other batches, a second each: a standard deviation with three degrees."""
    orders: int = 499
    """Orders of lags by chance."""
    frames: int = 1500
    """Of the replay of a flow, at equal ratios from `first` of its length: .9 % apart, less than the width of a fall."""
    first: float = 1e-6

    @property
    def growth(self) -> float:
        """How much the difference of heads must grow for a parting rate."""
        return self.dominant * self.decade


LIMITS = Limits()
