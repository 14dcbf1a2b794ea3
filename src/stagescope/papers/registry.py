"""All studies by name."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from stagescope.errors import unknown
from stagescope.papers.focus_dilution import study as focus_dilution
from stagescope.papers.focus_dilution.text import study as text_focus
from stagescope.papers.incremental import study as incremental
from stagescope.papers.incremental.text import study as text_incremental
from stagescope.papers.scan_snap import study as scan_snap
from stagescope.papers.scan_snap.text import study as text_snap
from stagescope.papers.study import Study

if TYPE_CHECKING:
    from stagescope.runs.run import Run

_ALL = (focus_dilution.STUDY, incremental.STUDY, scan_snap.STUDY, text_focus.STUDY, text_incremental.STUDY, text_snap.STUDY)
STUDIES: dict[str, Study] = {study.name: study for study in _ALL}


def study(name: str) -> Study:
    """A study by name."""
    if name not in STUDIES:
        raise unknown("study", name, STUDIES)
    return STUDIES[name]


def run_study(
    name: str,
    preset: str | None = None,
    *,
    seed: int = 0,
    out: str | Path | None = None,
    overwrite: bool = False,
    progress: bool | None = None,
    **options: Any,
) -> "Run":
    """Run a study from Python as `stagescope run` does: `run_study("scan-snap", "syn-small-flow", rate_y=10)`."""
    found = study(name)
    chosen = found.configured(preset, **options)
    return found.run(chosen, seed=seed, out=out, overwrite=overwrite, progress=progress)
