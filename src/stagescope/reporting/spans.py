"""From when to when a run shows what a claim is about."""

from stagescope.claims.claim import Verdict
from stagescope.detect.stage import Stages
from stagescope.runs.run import Run


def span_of(verdict: Verdict, stages: Stages | None, run: Run) -> tuple[float, float] | None:
    """The span of the events and stages that a verdict names, on the run's clock, cut to its recorded frames.

    None where the first of them was not reached: the run does not show it. A later one that was not reached lasts until the
    end of the run.
    """
    if not verdict.shown or run.frames == 0:
        return None
    begin, end = float(run.time[0]), float(run.time[-1])
    first, *later = [_found(name, stages, begin, end) for name in verdict.shown]
    if first is None:
        return None
    spans = [first, *((end, end) if one is None else one for one in later)]
    start, stop = min(span[0] for span in spans), max(span[1] for span in spans)
    return min(max(start, begin), end), min(max(stop, begin), end)


def landing(verdict: Verdict, stages: Stages | None, run: Run) -> float | None:
    """Where in its span a reader lands: at its start, or where the stage of the run begins that the verdict names last.

    A claim on "focus*" and "dilution*" is about the dilution: that is where it is seen, though its span has both.
    """
    span = span_of(verdict, stages, run)
    if span is None:
        return None
    own = [stage.start for stage in stages or () if not stage.track and _matches(verdict.shown[-1], stage.name)]
    return next((start for start in own if span[0] <= start < span[1]), span[0])


def _found(name: str, stages: Stages | None, begin: float, end: float) -> tuple[float, float] | None:
    if name in ("start", "end"):
        return (begin, begin) if name == "start" else (end, end)
    if stages is None:
        return None
    spans = [(when, when) for event, when in stages.events.items() if when is not None and _matches(name, event)]
    spans += [(stage.start, end if stage.stop is None else stage.stop) for stage in stages if _matches(name, stage.name)]
    return (min(span[0] for span in spans), max(span[1] for span in spans)) if spans else None


def _matches(name: str, other: str) -> bool:
    return name == other or (name.endswith("*") and other.startswith(name[:-1]))
