"""The saddle ladder: the critical points a run passes, how it leaves each, and when theory says it should."""

import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from stagescope.core.errors import InputError, unknown
from stagescope.core.markup import block, number, table, title
from stagescope.core.progress import progress_for
from stagescope.flow.field import Field, Objective, as_field
from stagescope.landscape.critical import CRITICAL, critical_points, slow_frames
from stagescope.landscape.derivatives import Derivatives
from stagescope.landscape.escape import NEAR, NO_CLOCK, Visit, escape_law
from stagescope.landscape.limits import LIMITS
from stagescope.runs.run import Run

BATCHES = (
    "every step of this run sees a batch of its own, so the run follows no single field whose critical points it could pass; "
    "`stagescope stages` reads its plateaus, and the same model has a saddle ladder when it is trained without batches"
)
"""Why critical points of a run are not searched where its loss draws a batch for every step."""


@dataclass(frozen=True)
class Rung:
    """One critical point near a run.

    `t` is when the run is slowest there, `residual` is |F| at the critical point, `distance` that of the run from it at t
    (relative); where `found` is False they are of the place where the search ended. `opening` says what grows there (None:
    nothing does, or no critical point is near). `law` is how: "linear", with `rates`, fastest first; "order 2" and so on, by
    the Taylor polynomial of F of that order, where no rate is the law; "drift", by that at the run itself where no critical
    point is near; None, where nothing grows or none of these holds. `remainder` is the mean share of F that the law leaves
    out on its way. `order` p and `coefficient` c are those of s' = c s^p at the tip of the zeros, where it was
    reached; elsewhere `order` is that of the law.
    `measured_rate`, the cosines of the directions and the escape are the run's own. `local_rate` is what linearising at the
    run itself gives, averaged over the rise that is measured. What cannot be said is None; `note` says why.

    Examples:
        >>> rung = next(iter(ss.saddle_ladder(run)))
        >>> print(rung.label, rung.opening, f"{rung.rates[0]:.3f}")
        (0,0) embedding 0.133
    """

    label: str
    t: float
    residual: float
    distance: float
    loss: float | None
    opening: str | None
    rates: tuple[float, ...]
    measured_rate: float | None = None
    local_rate: float | None = None
    cosines: tuple[float, ...] = ()
    predicted_escape: float | None = None
    measured_escape: float | None = None
    note: str = ""
    law: str | None = None
    order: float | None = None
    coefficient: float | None = None
    remainder: float | None = None

    @property
    def law_words(self) -> str:
        """The law where it is not linear, in short: `order 2, c = 0.092`."""
        if self.law in (None, "linear"):
            return ""
        has_coefficient = self.coefficient is not None and self.law == f"order {self.order}"
        return f"{self.law}, c = {self.coefficient:.3g}" if has_coefficient else str(self.law)

    @property
    def found(self) -> bool:
        """Whether the point is critical."""
        return self.residual <= CRITICAL

    @property
    def near(self) -> bool:
        """Whether laws at the point may be believed: it is critical and the run is close to it."""
        return self.found and self.distance <= NEAR

    def noted(self, sentence: str) -> "Rung":
        return replace(self, note="; ".join(part for part in (self.note, sentence) if part))

    def timeless(self) -> "Rung":
        """The same rung of a run without flow time: its rates cannot be compared with anything."""
        return replace(self, measured_rate=None, local_rate=None, predicted_escape=None).noted(NO_CLOCK)

    def __str__(self) -> str:
        law = "a drift" if self.law == "drift" else f"a law of {self.law_words}"
        by_law = f" at {self.rates[0]:.4g}" if self.rates else f" by {law}" if self.law_words else ""
        rate = f"{self.opening} opens{by_law}" if self.opening else self.law_words or "nothing opens"
        measured = "" if self.measured_rate is None else f" (measured {self.measured_rate:.4g})"
        note = f"; {self.note}" if self.note else ""
        away = f"{self.distance:.2g}" if self.found else "-"
        rough = self.remainder is not None and self.law is not None and self.remainder > LIMITS.precise
        share = f"; remainder {self.remainder:.2g}" if rough else ""
        return f"{self.label:<8} t {self.t:<8.4g} distance {away:<7} {rate}{measured}{share}{note}"


@dataclass(frozen=True)
class Ladder:
    """The rungs of a run, in the order it passes them.

    Examples:
        >>> ladder = ss.saddle_ladder(run)
        >>> [rung.label for rung in ladder]
        ['(0,0)', '(1,0)', '(1,1)']
    """

    status: str
    clock: str
    rungs: tuple[Rung, ...]

    def __iter__(self) -> Iterator[Rung]:
        return iter(self.rungs)

    def __len__(self) -> int:
        return len(self.rungs)

    def __getitem__(self, label: str) -> Rung:
        rung_of_label = next((rung for rung in self.rungs if rung.label == label), None)
        if rung_of_label is None:
            raise unknown("rung", label, [rung.label for rung in self.rungs])
        return rung_of_label

    def __str__(self) -> str:
        return "\n".join(map(str, self.rungs))

    def _repr_html_(self) -> str:
        """What a notebook shows: a rung a row, rates and times as predicted and as measured."""
        heads = ("rung", self.clock, "opens", "rate", "measured", f"leaves at {self.clock}", "left at", "note")
        rows = [
            (
                *(rung.label, number(rung.t), rung.opening or "nothing"),
                rung.law_words or number(rung.rates[0] if rung.rates else None),
                *map(number, (rung.measured_rate, rung.predicted_escape, rung.measured_escape)),
                rung.note,
            )
            for rung in self.rungs
        ]
        about = "critical points that the run passed, and how it left each" if rows else "the run passes no critical point"
        return block(title("Saddle ladder", about), table(heads, rows) if rows else "")

    def json(self) -> dict[str, Any]:
        rungs = [{**asdict(rung), "rates": list(rung.rates), "cosines": list(rung.cosines)} for rung in self.rungs]
        return {"status": self.status, "clock": self.clock, "rungs": rungs}


def field_ladder(run: Run, what: Objective | Field, progress: bool | None = False) -> Ladder:
    """The ladder of any run: critical points from its slow points, and escape along their growing directions.

    `progress` shows bars, one for the searches and one for the escapes; None: on a terminal.
    """
    if drawn_afresh(what):
        raise InputError(BATCHES)
    rates, speed, rungs = _rates(run), run.series["speed"], []
    frames = slow_frames(speed, LIMITS.most_slow)
    with progress_for(progress) as bar:
        bar.begin("searching critical points", LIMITS.products, "products")
        points = critical_points(run, what, rates, lambda products: bar.update(min(products, LIMITS.products)))
        bar.update(LIMITS.products)  # searches that succeed need fewer
    with progress_for(progress) as bar:
        bar.begin("following escapes", len(points), "rungs")
        for point, frame in zip(points, frames, strict=True):
            rungs.append(_rung(Visit(run, what, rates, point, frame), len(rungs) + 1))
            bar.update(len(rungs))
    if (slow := len(slow_frames(speed))) > len(frames):
        rungs[-1] = rungs[-1].noted(f"of {slow} slow points only the {LIMITS.most_slow} most marked are used")
    return Ladder(run.status, run.clock, tuple(rungs))


def _rates(run: Run) -> Mapping[str, float]:
    """The rates of blocks with which a run moved."""
    return run.spec["dynamics"].get("rates", {})


def drawn_afresh(what: Objective | Field) -> bool:
    """Whether every step of a descent sees data of its own."""
    return as_field(what).draw(0) is not None


def search_cost(run: Run, what: Objective | Field) -> tuple[float, str]:
    """Seconds that the searches of `field_ladder` take at most, by timing products with J, and a sentence that says so."""
    if drawn_afresh(what):
        return 0.0, BATCHES
    near, slow = Derivatives(what, run.at(0), _rates(run)), len(slow_frames(run.series["speed"], LIMITS.most_slow))
    start, kinds = near.layout.pack(run.at(0)), (near.jvp,) if near.dense else (near.jvp, near.vjp)
    for product in kinds:
        product(start, start)  # compiles
    begun = time.perf_counter()
    for product in kinds:
        product(start, start)
    seconds = LIMITS.products * (time.perf_counter() - begun) / len(kinds) if slow else 0.0
    long = f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"
    what_for = f"searching critical points of {near.layout.size:,} parameters from {slow} slow point{'s' if slow > 1 else ''}"
    work = f"at most about {LIMITS.products:,} products with the Jacobian"
    return seconds, f"{what_for}: {work}, about {long}; what opens at each is computed after that"


def _rung(visit: Visit, number: int) -> Rung:
    point, t = visit.point, float(visit.run.time[visit.frame])
    rung = Rung(f"{number}", t, point.residual, point.distance, point.loss, opening=None, rates=())
    rung = replace(rung, **escape_law(visit))
    if not rung.near:
        return rung
    # Degenerate where no rate grows and yet the run leaves, or where the tip of its zeros has an order.
    leaves_minimum = point.kind in ("minimum", "sink") and visit.escapes
    return replace(rung, label=f"{number} {'degenerate' if leaves_minimum or rung.coefficient is not None else point.kind}")
