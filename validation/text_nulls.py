"""Claims about real text on words in random order, and on the real text beside it.

Shuffled WikiText-2, TinyStories and Tiny Shakespeare, three seeds each, through all three studies: of all pairs of a pattern and
a run at most 5 % may be confirmed, and no pattern in more than 2 of its runs. The same runs on the real texts are printed beside.
Corpora are read from the folder STAGESCOPE_DATA; a missing one is skipped, and then the check does not hold.
"""

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator

import stagescope as ss
from stagescope.core.errors import InputError
from stagescope.runs.run import Run
from validation.nulls import focus_dilution_text as focus
from validation.nulls import incremental_text as incremental
from validation.nulls import scan_snap_text as snap

SEEDS = (140_001, 140_002, 140_003)
CORPORA = ("wikitext-2", "tinystories", "tiny-shakespeare")
KINDS: dict[str, Callable[..., Run]] = {
    "text-snap": snap.make,
    "text-snap, transformer": snap.transformer,
    "text-focus": focus.make,
    "text-focus, Adam": focus.adam,
    "text-incremental": incremental.make,
}
MOST_PAIRS, MOST_RUNS = 0.05, 2
Counts = dict[tuple[str, str], Counter[str]]


def main() -> bool:
    real, shuffled = defaultdict(Counter), defaultdict(Counter)
    complete = True
    for name, corpus, seed in _cases():
        try:
            _count(real, name, KINDS[name](seed, corpus=corpus))
            _count(shuffled, name, KINDS[name](seed, corpus=corpus, shuffle=seed))
        except InputError as error:
            print(f"{name}, {corpus}, seed {seed} is left out: {error}")
            complete = False
    _table(real, shuffled)
    return _holds(shuffled) and complete


def _cases() -> Iterator[tuple[str, str, int]]:
    return ((name, corpus, seed) for name in KINDS for corpus in CORPORA for seed in SEEDS)


def _count(into: Counts, name: str, run: Run) -> None:
    """The verdicts on a run; a claim that is about another kind of run is left out."""
    began = time.monotonic()
    for row in ss.check(run):
        if row.verdict != "not applicable" and row.kind != "identity":
            into[f"{row.tag} ({row.kind})", name][row.verdict] += 1
    assert run.config is not None
    how = "shuffled" if run.config["shuffle"] is not None else "real"
    print(f"{name}, {run.config['corpus']}, {how}, seed {run.seed}: read in {time.monotonic() - began:.1f} s", flush=True)


def _table(real: Counts, shuffled: Counts) -> None:
    print(f"\n{'claim':<36}{'run':<26}{'real: confirmed violated undecided':<36}shuffled")
    for key in sorted(real | shuffled):
        print(f"{key[0]:<36}{key[1]:<26}{_numbers(real.get(key)):<36}{_numbers(shuffled.get(key))}")


def _numbers(found: Counter[str] | None) -> str:
    return "-" if found is None else "  ".join(f"{found[what]:>3}" for what in ("confirmed", "violated", "inconclusive"))


def _holds(shuffled: Counts) -> bool:
    patterns = {key: found for key, found in shuffled.items() if "(pattern)" in key[0]}
    confirmed, pairs = sum(found["confirmed"] for found in patterns.values()), sum(map(Counter.total, patterns.values()))
    worst = max((found["confirmed"] for found in patterns.values()), default=0)
    print(f"\non shuffled text {confirmed} of {pairs} pairs of a pattern and a run are confirmed, at most {worst} of one pattern")
    return pairs > 0 and confirmed <= MOST_PAIRS * pairs and worst <= MOST_RUNS
