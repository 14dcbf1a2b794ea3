"""The verdicts of a reading: each claim is judged once, and those that the run cannot decide on a run beside it."""

from dataclasses import replace
from typing import TYPE_CHECKING

from stagescope.claims.claim import Claim, Verdict
from stagescope.errors import StagescopeError
from stagescope.progress import progress_for
from stagescope.threads import one_blas_thread

if TYPE_CHECKING:
    from stagescope.papers.reading import Reading


class Verdicts:
    """What was found of the claims that were put to a reading so far."""

    def __init__(self) -> None:
        self._found: dict[int, tuple[Claim, Verdict]] = {}

    def of(self, claims: tuple[Claim, ...], here: "Reading") -> tuple[Verdict, ...]:
        """The verdicts of some claims; see `Reading.judge`."""
        new = [claim for claim in claims if id(claim) not in self._found]
        evidence = None
        try:
            evidence = here.evidence if new else None
        except StagescopeError:
            raise
        except (Exception, SystemExit) as error:
            self._found |= {id(claim): (claim, claim.without_evidence(error)) for claim in new}
        with one_blas_thread(), progress_for(here.progress) as bar:  # matrices are small: more threads only cost
            for claim in bar.each(new, "claims", "claims"):
                if id(claim) not in self._found:
                    self._found[id(claim)] = claim, claim.judge(here.run, evidence)
        return tuple(self._found[id(claim)][1] for claim in claims)

    def elsewhere(self, row: Verdict, here: "Reading") -> Verdict:
        """A verdict with that of a run beside this one, where the claim names options with which it can be decided."""
        if row.elsewhere is None:
            return row
        claim = next((claim for claim, _ in self._found.values() if claim.tag == row.tag), None)
        if claim is None:  # a row that another kind of evidence decided
            return row
        try:
            beside = here.companion(here.beside, dict(row.elsewhere.options))
            found = beside.judge([claim]).verdicts[0]
        except Exception as error:  # a run with other options may fail in any way; this one's ledger stands
            found = claim.without_evidence(error)
        return replace(row, elsewhere=replace(row.elsewhere, verdict=found))
