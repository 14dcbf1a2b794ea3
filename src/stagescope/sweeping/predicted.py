"""Columns `predicted EVENT` of a sweep: when events should come, from the start of each point alone."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import stagescope
from stagescope.errors import InputError, StagescopeError, message
from stagescope.papers.registry import stored_study
from stagescope.progress import progress_for
from stagescope.runs.files import publish
from stagescope.sweeping.columns import Column, Lack
from stagescope.sweeping.rows import Row

PREFIX = "predicted "
FILE = "predicted.json"
Paths = dict[str, dict[str, Any]]
"""By the digest of a row: `events` with the time of each, or null if it does not come, or the `reason` why nothing is predicted.

Events of which the path cannot say whether they come are left out.
"""


def predictions(folder: Path, rows: Sequence[Row]) -> Paths:
    """The prediction of every row, a second or more each; those made before by this version are kept in the sweep's folder."""
    known = _kept(folder / FILE)
    left = [row for row in rows if row["digest"] not in known]
    with progress_for(None) as bar:
        for row in bar.each(left, "predicting", "points"):
            known[row["digest"]] = _predicted(row)
    if left and folder.is_dir():
        publish(folder / FILE, json.dumps({"version": stagescope.__version__, "paths": known}).encode())
    return known


def _predicted(row: Row) -> dict[str, Any]:
    from stagescope.papers.predicting import UNTIL, planned_path

    try:
        study = stored_study(row["study"])
        path = planned_path(study.setup(study.configured(None, **row["config"]), row["seed"]))
    except StagescopeError as error:
        return {"reason": message(error)}
    return {"events": {name: event.t for name, event in path.events.items() if event.t is not None or event.beyond >= UNTIL}}


def _kept(file: Path) -> Paths:
    """What an earlier call of this version has found; a file that is none of ours counts for nothing."""
    try:
        found = json.loads(file.read_text())
        if found["version"] == stagescope.__version__:
            return {digest: path for digest, path in found["paths"].items() if _is_path(path)}
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        pass
    return {}


def _is_path(path: Any) -> bool:
    events = path.get("events", {}) if isinstance(path, dict) else None
    return isinstance(events, dict) and all(when is None or isinstance(when, int | float) for when in events.values())


def predicted_columns(found: Mapping[str, Mapping[str, Any]]) -> dict[str, Column]:
    """One column an event of any point; an error says why where nothing is predicted of any."""
    names = dict.fromkeys(name for path in found.values() for name in path.get("events", {}))
    if not names:
        reasons = dict.fromkeys(path.get("reason", "it has no rows") for path in found.values())
        raise InputError(f"nothing is predicted of this sweep: {next(iter(reasons), 'it has no rows')}")
    return {f"{PREFIX}{name}": _column(found, name) for name in names}


def _column(found: Mapping[str, Mapping[str, Any]], name: str) -> Column:
    """Not of the run, so a run that failed has a value too. An event that does not come is later than all others."""

    def events(row: Row) -> Mapping[str, Any]:
        return found.get(row["digest"], {}).get("events", {})

    def lacks(row: Row) -> Lack:
        return "not reached" if name in events(row) else "none"

    from stagescope.papers.predicting import UNTIL

    return Column(f"{PREFIX}{name}", "time", None, lambda row: events(row).get(name), lacks, horizon=UNTIL)
