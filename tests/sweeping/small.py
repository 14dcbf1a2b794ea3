"""Small sweeps of cheap points for tests."""

from pathlib import Path
from typing import Any

from stagescope.readings.registry import study
from stagescope.sweeping.plan import Plan, Point, new_id, points, requested
from stagescope.sweeping.worker import Task

CHEAP: dict[str, Any] = {"until": 0.01, "frames": 3}
"""A flow of scan and snap that takes milliseconds."""


def cheap_plan(folder: Path | None = None, measures=("events", "numbers"), study_name="scan-snap", **given: Any) -> Plan:
    of = study(study_name)
    options = {name: given.pop(name) for name in list(given) if name in of.options.model_fields}
    plan = requested(of, given.pop("preset", None), measures=measures, options=options or CHEAP, **given)
    if folder is not None:
        folder.mkdir(exist_ok=True)
        plan.save(folder)
    return plan


def task_of(plan: Plan, folder: Path, chosen: list[Point] | None = None, **more: Any) -> Task:
    fields = {"folder": str(folder), "plan": plan, "call": new_id(), "points": tuple(points(plan) if chosen is None else chosen)}
    return Task(**{**fields, **more})
