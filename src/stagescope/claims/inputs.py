"""Inputs on which claims are tried: those that a paper is about, and nulls, on which a claim is false; and how it fared there."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stagescope.runs.run import Run


@dataclass(frozen=True)
class Inputs:
    """Runs drawn by seed: `make(seed)` draws the setting and gives its run.

    Args:
        name: a short name, such as "shuffled words".
        sentence: what is drawn; for a null, why the claims that name it are false there.
        make: a function of a seed that returns a run.
        about: the beginning of the tags of the claims that are tried on them, where they are not for all claims of the study.

    Examples:
        >>> def slow(seed):
        ...     return ss.run_study("focus-dilution", persistence=0.9, seed=seed, until=5)
        >>> ss.Inputs("slow", "chains that nearly always stay", slow).make(0).seed
        0
    """

    name: str
    sentence: str
    make: "Callable[[int], Run]"
    about: str = ""


@dataclass(frozen=True)
class Rates:
    """How a claim fared when it was calibrated: violated on inputs that are in its regime, confirmed on nulls."""

    inputs: int
    violated: int
    nulls: int
    null_confirmed: int
