"""The saddle path of a run on its page: the predicted loss beside the measured one, legs as stages, events in a table."""

from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from stagescope.detect.stage import Stage, Stages
from stagescope.landscape.saddle_path import Leg, SaddlePath
from stagescope.papers.predicting import UNTIL
from stagescope.papers.reading import Reading
from stagescope.runs.run import Run
from stagescope.views.view import Curve, Curves, View

TRACK = "predicted"
LEFT_OUT = "the prediction was left out as asked; `stagescope predict` makes it from the options of the run"
ABOUT = " Dashed, and the ticks at the bottom: loss and events predicted from the start, without the run."


def path_of(seen: Reading, skip: Collection[str], notes: list[str]) -> SaddlePath | None:
    """The prediction that a page shows: of gradient flows whose paper gives a path; a note says why a flow has none.

    Where the claims on a kind of runs are slow, so are its paths, and none is made for a page.
    """
    moved = (seen.run.spec["dynamics"] or {}).get("type") == "GradientFlow"
    if not moved or not seen.run.frames or seen.kind is None or seen.kind.path is None or seen.cost.slow_claims:
        return None
    if "prediction" in skip:
        notes.append(LEFT_OUT)
        return None
    if seen.prediction is None:
        notes.append(f"nothing is predicted from the start: {seen.unpredicted}")
    return seen.prediction


def with_predicted_loss(views: Iterable[View], path: SaddlePath, run: Run) -> tuple[View, ...]:
    """The views, the loss with that of the path; beyond the end of a path that does not end at rest there is none."""
    return tuple(_with_loss(view, path, run) if isinstance(view, Curves) and view.slot == "loss" else view for view in views)


def _with_loss(view: Curves, path: SaddlePath, run: Run) -> Curves:
    if not path.losses.size:
        return view
    time = run.time if view.frames is None else run.time[view.frames]
    rests = any(event.never for event in path.events.values())
    values = np.interp(time, path.time, path.losses, right=None if rests else np.nan)
    return replace(view, about=view.about + ABOUT, curves=(*view.curves, Curve("predicted", values, dashed=True)))


def legs_as_stages(path: SaddlePath, run: Run) -> list[Stage]:
    """The legs of a path that begin before the run ends, on a track of their own."""
    return [
        Stage(f"predicted {leg.label}", leg.t_in, leg.t_out, _leg_words(leg), TRACK)
        for leg in path.legs
        if leg.t_in < run.time[-1]
    ]


def _leg_words(leg: Leg) -> str:
    rate = "" if leg.local_rate is None else f", {leg.opens} opens at rate {leg.local_rate:.3g}"
    return f"predicted from the start: loss {leg.loss:.4f} at its end, {leg.state}{rate}"


def predicted_events(path: SaddlePath, found: Stages | None, run: Run) -> list[dict[str, Any]]:
    """One row an event, in order of the predicted time: when it should come, and when it came."""
    measured = {} if found is None else found.events
    names = [*path.sequence, *(name for name in path.events if path.events[name].t is None)]
    return [
        {**path.events[name].json(), "name": name, "measured": measured.get(name), "said": _said(path, name, measured, run)}
        for name in names
    ]


def _said(path: SaddlePath, name: str, measured: Any, run: Run) -> str:
    event, came = path.events[name], measured.get(name)
    if event.t is None:
        return f"does not come by t = {UNTIL:g}: {event.reason}" if event.never else event.reason
    if came is None:
        return "after the end of the run" if event.t > run.time[-1] else "did not come"
    return ""
