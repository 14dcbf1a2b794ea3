"""The stages of focus and dilution [FD:stages].

E_k, Q_k    the k-th singular value of W0, of Phi, passes .1
onset       sv_1(WQ WK^T) last passes ten times its initial value before E2: also weakly driven chains have one
focus       of a row: attention on the frequent token is largest between E1 and E2 (smallest where it first moves away)
dilution    of a row: after its focus, half of the gain is lost; complete when attention is back at its base
"""

from dataclasses import dataclass

import numpy as np

from stagescope.detect.stage import Stage, Stages, first_crossing, peak

LEVEL, RISE, LEAST_GAIN = 0.1, 10.0, 0.005


@dataclass(frozen=True)
class RowCycle:
    """Focus and dilution of one query row in the first cycle; times are None where not reached."""

    row: int
    gain: float
    focus: float | None
    half: float | None
    complete: float | None


def passes(time: np.ndarray, values: np.ndarray, level: float = LEVEL) -> list[float | None]:
    """When each singular value first passes a level, interpolated in its logarithm, because it grows exponentially."""
    logs = np.log(np.maximum(values, 1e-300))
    return [first_crossing(time, logs[:, k], float(np.log(level)), rising=True) for k in range(values.shape[1])]


def row_cycles(
    time: np.ndarray, attention: np.ndarray, base: float, window: tuple[float, float], sign: float, frequent: int
) -> list[RowCycle]:
    """First-cycle focus and dilution of every row but the frequent token's own, from its attention on that token."""
    inside = np.flatnonzero((time >= window[0]) & (time <= window[1]))
    found = []
    for row in range(attention.shape[1]):
        if row == frequent:
            continue
        moved = sign * (attention[:, row] - base)
        top = int(inside[np.argmax(moved[inside])]) if inside.size else 0
        gain = float(moved[top]) if inside.size else 0.0
        if gain <= LEAST_GAIN or top in (0, len(time) - 1):
            found.append(RowCycle(row, gain, None, None, None))
            continue
        refined = peak(time[top - 1 : top + 2], moved[top - 1 : top + 2])
        after = refined[0] if refined is not None else float(time[top])
        half = first_crossing(time, moved, gain / 2, rising=False, after=after)
        found.append(RowCycle(row, gain, after, half, first_crossing(time, moved, 0.0, rising=False, after=after)))
    return found


def detect(
    time: np.ndarray,
    embedding: np.ndarray,
    scores: np.ndarray,
    keys: np.ndarray,
    attention: np.ndarray,
    pi: np.ndarray,
    sign: float,
    *,
    clock: str,
    status: str,
) -> Stages:
    """Stages of a run. `attention` is A_i,f (frames, d) on the frequent token f; `sign` is that of the attention rate c."""
    openings = {f"E{k + 1}": when for k, when in enumerate(passes(time, embedding))}
    openings |= {f"Q{k + 1}": when for k, when in enumerate(passes(time, scores))}
    frequent = int(np.argmax(pi))
    end = float(time[-1])
    second = openings.get("E2")
    events: dict[str, float | None] = {**openings, "onset": _onset(time, keys[:, 0], second if second is not None else end)}
    first = openings["E1"]
    rows = [] if first is None else row_cycles(time, attention, pi[frequent], (first, second or end), sign, frequent)
    for cycle in rows:
        events[f"focus{cycle.row}"], events[f"dilution{cycle.row}"] = cycle.focus, cycle.half
    notes = {name: _note(name, embedding, scores, rows, end, clock) for name, when in events.items() if when is None}
    return Stages(status, clock, events, _stages(events, rows, sign, end), notes)


def _onset(time: np.ndarray, top: np.ndarray, before: float) -> float | None:
    """The last upward crossing of ten times the initial value."""
    level = RISE * top[0]
    up = np.flatnonzero((top[:-1] < level) & (top[1:] >= level) & (time[1:] <= before))
    if not up.size:
        return None
    i = int(up[-1])
    share = np.log(level / top[i]) / np.log(top[i + 1] / top[i])
    return float(time[i] + share * (time[i + 1] - time[i]))


def _note(name: str, embedding: np.ndarray, scores: np.ndarray, rows: list[RowCycle], end: float, clock: str) -> str:
    if name[0] in "EQ" and name[1:].isdigit():
        values = embedding if name[0] == "E" else scores
        return f"its singular value reached {values[:, int(name[1:]) - 1].max():.2e} by {clock}={end:.4g}, below {LEVEL}"
    if name == "onset":
        return "attention never grew tenfold before the second embedding direction opened"
    cycle = next(cycle for cycle in rows if name.endswith(str(cycle.row)))
    if cycle.focus is None:
        return f"the row's gain {cycle.gain:.2e} is below {LEAST_GAIN} or still rising at the end"
    return f"the row kept more than half of its gain {cycle.gain:.3f} by {clock}={end:.4g}"


def _stages(events: dict[str, float | None], rows: list[RowCycle], sign: float, end: float) -> tuple[Stage, ...]:
    """Condensation, focus, dilution, lifting; then one stage for every further embedding direction."""
    opened = events["Q1"] if events["Q1"] is not None else events["onset"]
    found = [Stage("condensation", 0.0, opened, f"E1 at {_shown(events['E1'])}: one embedding direction, attention frozen")]
    if opened is None:
        return tuple(found)
    focused = [cycle for cycle in rows if cycle.focus is not None]
    name = "focus" if sign > 0 else "defocus"
    if focused:
        turned = max(cycle.focus for cycle in focused if cycle.focus is not None)
        gains = ", ".join(f"row {cycle.row} {sign * cycle.gain:+.3f}" for cycle in focused)
        found.append(Stage(name, opened, max(turned, opened), f"attention on the frequent token: {gains}"))
        halves = [cycle.half for cycle in focused]
        whole = None if None in halves else max(h for h in halves if h is not None)
        done = sum(half is not None for half in halves)
        found.append(Stage("dilution", max(turned, opened), whole, f"{done} of {len(focused)} rows lost half of their gain"))
    else:
        found.append(Stage(name, opened, events.get("E2"), "no row gained visibly"))
    later = [
        (key, when) for key, when in events.items() if key[0] == "E" and key[1:].isdigit() and key != "E1" and when is not None
    ]
    for number, (key, when) in enumerate(later):
        assert when is not None
        stop = later[number + 1][1] if number + 1 < len(later) else None
        found.append(
            Stage("lifting" if number == 0 else f"cycle {number + 2}", when, stop, f"{key}: embedding direction {key[1:]} opens")
        )
    return tuple(found)


def _shown(when: float | None) -> str:
    return "not reached" if when is None else f"{when:.4g}"
