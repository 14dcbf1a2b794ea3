"""Where numbers lie on a bar of colours or along an axis of values: linear, logarithmic, and both with a sign.

`viewer/value_scale.js` does the same on the page.
"""

import math
from collections.abc import Sequence


class ValueScale:
    """Scale of the values that are shown. Where both signs occur, zero is in the middle; `log` counts decades of their sizes.

    It is logarithmic where the largest value is more than 10 times the smallest, or 100 times in size where signs differ.
    """

    def __init__(self, values: Sequence[float]) -> None:
        self.low, self.high = (min(values), max(values)) if values else (0.0, 1.0)
        self.constant = self.low == self.high
        self.signed = self.low < 0 < self.high
        sizes = [abs(value) for value in values if value] or [1.0]
        self.size = max(sizes)
        self.least = max(min(sizes), 1e-12 * self.size)  # below that, sizes may be rounding
        self.log = self.size > 100 * self.least if self.signed else 0 < 10 * self.low < self.high
        if self.signed:
            self.low, self.high = -self.size, self.size

    def place(self, value: float) -> float:
        """0 at the lowest, 1 at the highest."""
        if self.signed and self.log:
            far = math.log(max(abs(value) / self.least, 1.0)) / math.log(self.size / self.least)
            # the part next to zero is left out, so that the sign of the smallest size can be seen
            return 0.5 + 0.5 * math.copysign(0.3 + 0.7 * far, value) if value else 0.5
        if self.log:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return 0.5 if self.constant else (value - self.low) / (self.high - self.low)

    def marks(self, most: int = 6) -> list[float]:
        """Round values to write beside the scale, ascending, few enough to be read."""
        if self.signed and self.log:
            sizes = powers(self.least, self.size, max(most // 2, 1))
            return [*(-mark for mark in reversed(sizes)), 0.0, *sizes]
        if self.log:
            return powers(self.low, self.high, most)
        return steps(self.low, self.high, most)


def powers(low: float, high: float, most: int) -> list[float]:
    """1, 2 and 5 of every decade where that is not too much, else powers of ten, else some of them."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    for leading in ((1, 2, 5), (1, 3), (1,)):
        found = [float(f"{digit}e{power}") for power in range(first, last + 1) for digit in leading]
        found = [mark for mark in found if low * (1 - 1e-9) <= mark <= high * (1 + 1e-9)]
        if len(found) <= most:
            return found
    return found[:: -(-len(found) // most)]


def steps(low: float, high: float, most: int) -> list[float]:
    """Multiples of 1, 2 or 5 times a power of ten."""
    if not low < high:
        return [low]
    raw = (high - low) / most
    power = 10.0 ** math.floor(math.log10(raw))
    step = next((digit * power for digit in (1, 2, 5) if digit * power >= raw), 10 * power)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [float(f"{i * step:.12g}") for i in range(first, last + 1)]


def mark_text(value: float) -> str:
    """A mark as matplotlib sets it: powers of ten as such where digits would be many."""
    if value == 0 or 1e-3 <= abs(value) < 1e5:
        return f"{value:.6g}"
    digits, power = f"{value:.3e}".split("e")
    digits = digits.rstrip("0").rstrip(".")
    lead = {"1": "", "-1": "-"}.get(digits, rf"{digits}\cdot ")
    return rf"${lead}10^{{{int(power)}}}$"
