"""What counts in a curve: the numbers that decide in this room."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Of the search for transitions, of the plateaus of a ladder, and of what is read of a run."""

    share: float = 0.05
    """Least change that counts, of the curve's range; least stay between a change and its opposite that counts, of the run: a
    briefer one moves the mean over the run by less than that share of its height."""
    records: int = 5
    """Records of a plateau: a median that two outliers do not move; of a slope on a plateau: two to each side of its middle."""
    misfit: float = 1 / 80
    """Of its height by which a change differs from the nearest shape over its rise: for the error function .011 to .017."""
    bins: int = 300
    """A longer curve is averaged in as many bins, half even in u and half in time."""
    events: int = 12
    """Of a curve; each costs a search."""
    curves: int = 24
    """Of a run that are searched: one of 300 bins takes up to .3 s."""
    jump: float = 1 / 3
    """Share of a curve's range between two records from which a note says so."""
    beginning: float = 0.05
    """Share of a run's length that is its beginning."""
    early_way: float = 0.5
    """Share of the way of a loss in it from which the sentence on the run says so."""

    @property
    def fewest(self) -> int:
        """Records of a curve with a transition: two plateaus, and a change of as many."""
        return 3 * self.records

    @property
    def early(self) -> float:
        """The share of a run that is its beginning, in which the clock is even: the least that all bins resolve."""
        return 1 / self.bins


LIMITS = Limits()
