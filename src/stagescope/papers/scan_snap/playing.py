"""What the page that plays scan and snap is given: the levels of its events. Starts are zero, so nothing is drawn."""

from stagescope.papers.scan_snap.stages import LEVELS


def constants() -> dict[str, float]:
    return {"onset_loss": LEVELS.onset_loss, "winner_ratio": LEVELS.winner_ratio}
