"""A process makes tokens and knows its own optimum."""

from abc import abstractmethod

from stagescope.spec import Described


class Process(Described):
    """Base of all token sources."""

    @abstractmethod
    def floor(self) -> float:
        """The least cross-entropy any predictor can reach on this process."""
