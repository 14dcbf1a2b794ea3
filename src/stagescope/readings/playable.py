"""What a study declares so that its flow can be played in a page: sliders, a law in JavaScript, and starts drawn here.

The page integrates the flow itself, without Python. The core knows no paper: the law is a text file of the paper's package.
Nothing heavy is imported here.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

from stagescope.core.errors import InputError

SEEDS = 10
"""Seeds whose starts travel with a page."""


@dataclass(frozen=True)
class Slider:
    """An option that is moved between two numbers.

    Args:
        option: the name of the option, or of an element of it: "pi.0". "pi.*" stands for all elements, a slider each.
        low: the least value.
        high: the largest value.
        step: distance of two values; of a logarithmic slider, the number of values.
        log: equal ratios instead of equal distances.
        whole: only whole numbers.
        where: options that must have a value (True) or none (False) for this slider to be there: {"pi0": True}.
        like: the option whose value is used while this one has none.
        longest: most elements of a list.
        more: folded away with the others that are rarely moved.

    Examples:
        >>> ss.Slider("persistence", 0.0, 0.95, 0.01).high
        0.95
    """

    option: str
    low: float
    high: float
    step: float = 0.01
    log: bool = False
    whole: bool = False
    where: Mapping[str, bool] = field(default_factory=dict)
    like: str = ""
    longest: int = 8
    more: bool = False


@dataclass(frozen=True)
class Playable:
    """How the flow of a study is played.

    Args:
        script: the law as a text file of a package, "package.module:play.js". It exports `prepare` and `settle`, see
            docs/play.md.
        sliders: what can be moved, in the order of the page.
        fixed: options with the values that the law assumes; presets with other values are left out.
        draws: from a seed to the random numbers of each block, before any scale, as many as the largest model needs. They
            are drawn here because the page has no generator of its own. None where a start has no randomness.
        constants: numbers that the law shares with Python, such as the levels of events.

    Examples:
        >>> ss.study("linear-icl").play.sliders[0].option
        'eigenvalues.*'
    """

    script: str
    sliders: tuple[Slider, ...]
    fixed: Mapping[str, Any] = field(default_factory=dict)
    draws: Callable[[int], Mapping[str, Any]] | None = None
    constants: Callable[[], Mapping[str, float]] = dict

    def text(self) -> str:
        """The law as it is written."""
        package, _, name = self.script.partition(":")
        try:
            return files(package).joinpath(name).read_text(encoding="utf-8")
        except (OSError, ImportError, ValueError) as error:
            raise InputError(f"the law {self.script!r} of a playable study cannot be read: {error}") from None

    def fits(self, options: Mapping[str, Any]) -> bool:
        """Whether the law is that of these options."""
        return all(_plain(options.get(name)) == _plain(value) for name, value in self.fixed.items())


def _plain(value: Any) -> Any:
    """Options of a stored run have lists where options have tuples."""
    return list(value) if isinstance(value, tuple) else value
