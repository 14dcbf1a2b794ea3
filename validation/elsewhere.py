"""Claims with a narrow regime: how many readings decide them, with the runs beside that `check --elsewhere` makes."""

from collections import Counter

import stagescope as ss

NAMED = {
    "scan-snap": (
        "SnS:lemma-6",
        "SnS:theorem-3",
        "SnS:theorem-4",
        "SnS:sandwich",
        "SnS:transition",
        "SnS:snap",
        "SnS:sparsity",
    ),
    "incremental": ("ISA:first", "ISA:clock", "ISA:escape-law"),
}
FIRST, DRAWS = 163_000, 5
MOST = 0.5
"""Each of them should be decided in more than this share of the readings to which it applies."""


def main() -> bool:
    print(f"{'claim':<16} {'readings':>8} {'applies':>8} {'decided here':>12} {'or beside':>9} {'violated':>8}")
    held = [_study(name, tags) for name, tags in NAMED.items()]
    return all(held)


def _study(name: str, tags: tuple[str, ...]) -> bool:
    applies, here, beside, violated, readings = Counter(), Counter(), Counter(), Counter(), 0
    for inputs in ss.study(name).inputs():
        for seed in range(FIRST, FIRST + DRAWS):
            run = inputs.make(seed)
            if run.study is None:
                continue  # a run of no study has no options to change
            readings += 1
            for row in ss.check(run, elsewhere=True):
                said = [row.verdict, row.elsewhere.verdict.verdict if row.elsewhere and row.elsewhere.verdict else ""]
                applies[row.tag] += row.verdict != "not applicable" or row.elsewhere is not None
                here[row.tag] += said[0] in ("confirmed", "violated")
                beside[row.tag] += any(word in ("confirmed", "violated") for word in said)
                violated[row.tag] += "violated" in said
    for tag in tags:
        print(f"{tag:<16} {readings:>8} {applies[tag]:>8} {here[tag]:>12} {beside[tag]:>9} {violated[tag]:>8}", flush=True)
    return all(beside[tag] > MOST * applies[tag] > 0 for tag in tags)
