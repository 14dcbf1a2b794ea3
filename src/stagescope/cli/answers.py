"""What a finished command prints about a run, without heavy imports."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stagescope.errors import printable

if TYPE_CHECKING:
    from stagescope.runs.run import Run


def info(run: "Run") -> dict[str, Any]:
    """A run in a few facts, the same for people and for --json."""
    series = {name: float(values[-1]) for name, values in run.series.items() if run.frames and values.ndim == 1}
    return {
        "run": str(run.path) if run.path else None,
        "study": run.study,
        "status": run.status,
        "reason": run.reason,
        "clock": run.clock,
        "frames": run.frames,
        "last": series,
        "params": {name: list(values.shape[1:]) for name, values in run.params.items()},
        "field": run.spec["field"] and run.spec["field"]["type"],
        "source": run.spec.get("source"),
        "dynamics": {name: value for name, value in (run.spec["dynamics"] or {}).items() if value not in ({}, None)} or None,
        "seed": run.seed,
        "config": dict(run.config) if run.config is not None else None,
        "config_digest": run.config_digest,
        "environment": run.provenance.get("environment"),
    }


def outcome(run: "Run") -> str:
    """How a run ended, and what to do next."""
    last = f"{run.clock} = {run.time[-1]:.6g}" if run.frames else "nothing"
    loss = f", loss {run.series['loss'][-1]:.6g}" if "loss" in run.series and run.frames else ""
    said = printable(f"{run.status}: {run.frames} frame{'' if run.frames == 1 else 's'} to {last}{loss}")
    return f"{said}\nnext: stagescope stages {run.path}  |  stagescope check {run.path}" if run.done else said


def open_page(path: Path) -> None:
    """Show a file in the browser, or say that there is none."""
    import webbrowser

    if not webbrowser.open(path.resolve().as_uri()):
        print(f"stagescope: no browser was found; open {path} by hand", file=sys.stderr)
