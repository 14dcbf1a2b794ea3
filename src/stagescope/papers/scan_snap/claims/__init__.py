"""The statements of the scan-and-snap paper as claims that can be checked on a run."""

from stagescope.papers.scan_snap.claims import freezing, identities, scanning, sparsity, theorems
from stagescope.papers.scan_snap.claims.identities import row_sums

__all__ = ["CLAIMS", "row_sums"]

CLAIMS = (*identities.CLAIMS, *scanning.CLAIMS, *theorems.CLAIMS, *freezing.CLAIMS, *sparsity.CLAIMS)
