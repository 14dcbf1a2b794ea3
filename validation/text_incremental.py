"""Incremental learning on real text: every preset with its verdicts. The claims about the first two lags must be confirmed.

Corpora are read from the folder STAGESCOPE_DATA; a corpus that is not there is left out, with a line that says so.
"""

import stagescope as ss
from stagescope.core.errors import InputError

MUST = ("ISA:text-order", "ISA:text-competition", "ISA:text-parting")
PRESETS = ("topics", "characters", "tinystories", "wikitext-2")


def main() -> bool:
    held = [_shown(preset) for preset in PRESETS]
    return all(held)


def _shown(preset: str) -> bool:
    """One run; a corpus that is not here decides nothing."""
    try:
        run = ss.run_study("text-incremental", preset, progress=False)
    except InputError as error:
        print(f"\n{preset} is left out: {error}")
        return True
    events = {name: when and round(when) for name, when in ss.stages(run).events.items()}
    print(f"\n{preset}: {events}")
    found = list(ss.check(run))
    for row in found:
        print(f"  {row.verdict:<13} {row.tag:<21} {row.reason}", flush=True)
    return all(row.verdict == "confirmed" for row in found if row.tag in MUST)
