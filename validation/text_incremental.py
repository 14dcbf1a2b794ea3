"""Incremental learning on real text: every preset with its verdicts. The beginning of the staircase must show, its end need not.

Corpora are looked for in the folder named by STAGESCOPE_DATA; those that are not there are left out and said.
"""

import stagescope as ss
from stagescope.errors import InputError

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
