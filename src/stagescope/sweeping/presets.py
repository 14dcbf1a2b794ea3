"""Named sweeps by study and name."""

from stagescope.errors import unknown
from stagescope.papers.registry import studies
from stagescope.papers.study import NamedSweep


def preset_of(study: str, name: str | None) -> NamedSweep | None:
    """The named sweep; None where the name is a preset of the study alone, or none is given."""
    if name is None:
        return None
    found = studies()[study]
    if name not in {**found.sweeps, **found.presets}:
        raise unknown(f"preset of {study}", name, {**found.sweeps, **found.presets})
    return found.sweeps.get(name)


def color_of(study: str, name: str | None) -> str | None:
    """The column that answers the question of a named sweep; None of any other, also of one that is no longer there."""
    found = studies().get(study)
    named = None if found is None else found.sweeps.get(name or "")
    return None if named is None else named.color
