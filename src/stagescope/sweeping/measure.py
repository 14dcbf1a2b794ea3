"""From a point to its row. Whatever goes wrong on the way is a row too."""

import os
import shutil
import socket
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import stagescope
from stagescope.claims.claim import Claim
from stagescope.claims.ledger import Ledger
from stagescope.errors import sentence
from stagescope.papers.study import Study
from stagescope.runs.run import Run
from stagescope.spec import finite
from stagescope.sweeping.plan import MEASURES, Measure
from stagescope.sweeping.points import Point
from stagescope.sweeping.rows import Row
from stagescope.sweeping.rules import Rules

LONGEST_REASON = 400


def measured(
    study: Study,
    point: Point,
    measures: Sequence[Measure],
    keep: Path | None = None,
    claims: Sequence[Claim] = (),
    source: str | None = None,
) -> Row:
    """Run a point and measure it.

    `keep` is the folder that its whole run is stored in, `claims` are the caller's own, `source` is the digest of their module.
    """
    began, clock = time.time(), time.monotonic()
    own = None if keep is None else keep.with_name(f"{keep.name}.{socket.gethostname()}.{os.getpid()}")
    try:
        run = study.run(study.configured(None, **point.config), seed=point.seed, out=own, overwrite=True, progress=False)
    except (Exception, SystemExit) as error:
        found = {"status": "failed", "reason": reason(error)}
    else:
        found = _read(study, run, measures, claims, source)
        if own is not None and keep is not None and (wrong := _settle(own, keep)):
            found |= {"status": "failed", "reason": f"the run is {run.status}, but cannot be kept: {wrong}"}
    return row_at(study, point, {**found, "seconds": time.monotonic() - clock, "started": began})


def _settle(own: Path, keep: Path) -> str | None:
    """Move a stored run to its place; what went wrong, if it did.

    Until then it has a folder of its own, because another worker may be making the same run.
    """
    old = own.with_name(f"{own.name}.old")
    try:
        if keep.exists():  # of a try before, or of a worker that was faster
            keep.rename(old)
        own.rename(keep)
    except OSError as error:
        return None if keep.exists() else str(error)
    finally:
        shutil.rmtree(old, ignore_errors=True)
        shutil.rmtree(own, ignore_errors=True)
    return None


def row_at(study: Study, point: Point, found: Mapping[str, Any]) -> Row:
    """A row with what it always has; numbers that are not finite are null."""
    known = {"digest": point.digest, "study": study.name, "seed": point.seed, "at": dict(point.at), "config": dict(point.config)}
    made = {"host": socket.gethostname(), "version": stagescope.__version__}
    return finite({**known, **made, "retry": point.retry, "renew": point.renew, "reason": "", **found})


def _read(study: Study, run: Run, measures: Sequence[Measure], claims: Sequence[Claim], source: str | None) -> dict[str, Any]:
    """What a run shows. A finished run that cannot be read has failed: a row without events must not look like one."""
    found: dict[str, Any] = {"status": run.status, "reason": run.reason, "clock": run.clock, "end": float(run.time[-1])}
    try:
        if "numbers" in measures:
            found["numbers"] = study.numbers(run)
        if "events" in measures:
            found |= _events(run)
        if "verdicts" in measures:
            from stagescope.papers.answers import check

            found |= {"verdicts": _verdicts(check(run, claims)), **Rules.of(study.claims(), claims, source).row()}
        own = [name for name in measures if name not in MEASURES and run.done]
        if own:
            found["measures"] = {name: study.measures[name](run) for name in own}
    except (Exception, SystemExit) as error:
        if run.done:
            return {**found, "status": "failed", "reason": f"the run is {run.status}, but cannot be read: {reason(error)}"}
    return found


def _verdicts(ledger: Ledger) -> dict[str, str]:
    """Verdicts by tag; a tag that a paper uses twice is numbered."""
    seen: Counter[str] = Counter()
    found = {}
    for row in ledger:
        seen[row.tag] += 1
        found[row.tag if seen[row.tag] == 1 else f"{row.tag} ({seen[row.tag]})"] = row.verdict
    return found


def _events(run: Run) -> dict[str, Any]:
    """Events, names of stages in order, when each first began, and how long it lasted in all; None where the run ended inside."""
    from stagescope.papers.reading import reading

    seen = reading(run).stages  # without the transitions of all curves, which no column shows
    spans: dict[str, float | None] = {}
    starts: dict[str, float] = {}
    for stage in seen:
        starts.setdefault(stage.name, stage.start)
        before = spans.get(stage.name, 0.0)
        spans[stage.name] = None if stage.stop is None or before is None else before + stage.stop - stage.start
    return {"events": dict(seen.events), "stages": [stage.name for stage in seen], "starts": starts, "durations": spans}


def reason(error: BaseException) -> str:
    """A sentence for a row, not too long."""
    text = sentence(error)
    return text if len(text) <= LONGEST_REASON else text[: LONGEST_REASON - 3] + "..."
