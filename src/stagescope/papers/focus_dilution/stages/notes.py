"""Why an event of focus and dilution was not reached, one sentence for each."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from stagescope.detect.events import Turn
from stagescope.papers.focus_dilution.stages.rows import THRESHOLDS, RowCycle

if TYPE_CHECKING:
    from stagescope.papers.focus_dilution.observables import TokenCurves


def missing_notes(
    curves: "TokenCurves",
    rows: Sequence[RowCycle],
    named: Mapping[str, tuple[int, Turn]],
    least: float,
    second: float | None,
    by: str,
) -> dict[str, str]:
    """A note for every event, for the case that it is missing."""
    return {**_opening_notes(curves, second, by), **_row_notes(rows, least, second, by), **_turn_notes(curves, named, second, by)}


def _opening_notes(curves: "TokenCurves", second: float | None, by: str) -> dict[str, str]:
    notes = {"onset": f"attention never grew tenfold {by if second is None else 'before the second embedding direction opened'}"}
    for letter, values in (("E", curves.embedding_values), ("Q", curves.score_values)):
        for k, most in enumerate(values.max(axis=0)):
            notes[f"{letter}{k + 1}"] = f"its singular value reached {most:.2e} {by}, below {THRESHOLDS.level}"
    return notes


def _row_notes(rows: Sequence[RowCycle], least: float, second: float | None, by: str) -> dict[str, str]:
    notes = {}
    for cycle in rows:
        name = str(cycle.row)
        no_focus = f"no focus: the gain {cycle.gain:.2e} of row {name} is not above {least:g} and the noise"
        if cycle.gain > least:
            no_focus = f"row {name} was still moving {by if second is None else 'when the second embedding direction opened'}"
        notes[f"focus{name}"] = no_focus
        kept = f"row {name} kept more than half of its gain {cycle.gain:.3f} {by}"
        notes[f"dilution{name}"] = no_focus if cycle.focus is None else kept
    return notes


def _turn_notes(curves: "TokenCurves", named: Mapping[str, tuple[int, Turn]], second: float | None, by: str) -> dict[str, str]:
    why = (
        "no second embedding direction opened" if second is None else f"no such turn by more than {THRESHOLDS.turn} after E2 {by}"
    )
    notes = {f"{kind}{row}": why for row in range(len(curves.pi)) for kind in ("refocus", "redilution")}
    for name, (_, turn) in named.items():
        notes[name] = f"in progress: the row moved from {turn.before:.3f} to {turn.after:.3f} {by} and has not turned"
    return notes
