"""What a run is asked most often: its stages, its ledger, its ladder. Each is a short form of its reading."""

from pathlib import Path

from stagescope.claims.ledger import Ledger
from stagescope.claims.own import Claims
from stagescope.detect.stage import Stages
from stagescope.fields.field import Field, Objective
from stagescope.landscape.ladder import Ladder
from stagescope.papers.reading import reading
from stagescope.runs.run import Run


def stages(run: Run | str | Path) -> Stages:
    """Events and stages of a run, and the transitions of its recorded curves; an event that was not reached is None.

    Every run with a frame has stages: those of its paper, otherwise plateaus and transitions of its loss.

    Args:
        run: a run or its folder.

    Examples:
        >>> for stage in ss.stages(snap):
        ...     print(stage.name, round(stage.start, 1))
        uniform 0.0
        scan 4.1
        snapped 188.9
    """
    return reading(run).told_stages


def check(
    run: Run | str | Path,
    claims: Claims = (),
    elsewhere: bool = False,
    *,
    control: Run | str | Path | None = None,
    progress: bool | None = False,
) -> Ledger:
    """The ledger: every claim of the run's paper with its verdict, then your own claims.

    Args:
        run: any run; one of no paper needs claims of your own.
        claims: a `Claim`, several, or "module:NAME" of some. Their functions get `ss.reading(run).evidence`: what the paper
            prepares for its claims, and the reading itself for a run of no paper. It always has the run as `run`.
        elsewhere: where this run is out of a claim's regime and the claim names options of the study with which it is not,
            make that run too and show its verdict. Each such run costs about as much as this one.
        control: of a watched model, another watched run in which there is nothing to learn, such as the same training on
            shuffled text. Claims find it as `evidence.control`, which is None without one.
        progress: a bar over the claims, since some make companion runs; None shows it on a terminal.

    A claim whose function raises an error is inconclusive, and its row says why.

    Returns:
        A verdict for each claim.

    Examples:
        >>> print(ss.check(snap).summary())
        3 confirmed, 8 inconclusive (11 groups of 13 claims); 3 of 3 identities hold
    """
    found = reading(run)
    with found.showing(progress):
        return found.check(claims, elsewhere, control)


def saddle_ladder(run: Run | str | Path, what: Objective | Field | None = None, progress: bool | None = False) -> Ladder:
    """The critical points a run passed, what opens at each, and when it was and should have been left.

    A model that is known to pass critical points of small models inside it has a ladder of its own. Any other run, also of
    your own objective, which then is given as `what`, is searched for critical points where it is slow: `progress` shows how
    far that is.

    Args:
        run: a run or its folder.
        what: your own objective, where the run moves one.
        progress: show how far the search is.

    Examples:
        >>> print(next(iter(ss.saddle_ladder(run))).label)
        (0,0)
    """
    found = reading(run, what)
    found.need_frames()
    with found.showing(progress):
        return found.ladder
