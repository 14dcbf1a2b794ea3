"""Scan and snap on real text: topical classes of several query words and corpora, and the one-layer transformer over its rate.

WikiText-2 with "the" has targets, measured by an independent implementation; the other words and corpora are shown with their
verdicts. Corpora are looked for in the folder named by STAGESCOPE_DATA; those that are not there are left out and said.
"""

import stagescope as ss
from stagescope.corpora.known import locate
from stagescope.errors import InputError
from stagescope.papers.scan_snap.text.figures import entropies
from stagescope.progress import Progress

TARGETS = ("SnS:text-distinct", "SnS:text-frequency", "SnS:text-held", "SnS:text-common", "SnS:text-mass", "SnS:text-snap")
MUST = (("wikitext-2-named", 0), ("wikitext-2-named", 1), ("wikitext-2", 0), ("wikitext-2", 1))
SHOWN = {
    "wikitext-2": ("of", "in", "a", "and"),
    "tinystories": ("the", "to", "a", "was"),
    "tiny-shakespeare": ("the", "my", "to"),
    "topics": ("the", "of", "is"),
}
SEEDS = 2


def main() -> bool:
    held = True
    if _there("wikitext-2"):
        for preset, seed in MUST:
            held &= _topics(f"{preset}, seed {seed}", preset=preset, seed=seed)
    for corpus, words in SHOWN.items():
        if _there(corpus):
            for word in words:
                _topics(f"{corpus}, {word!r}", corpus=corpus, query=word)
    return _transformer() and held if _there("wikitext-2") else held


def _there(corpus: str) -> bool:
    try:
        locate(corpus) if corpus != "topics" else None
    except InputError as error:
        print(f"{corpus} is left out: {error}")
        return False
    return True


def _topics(title: str, **options) -> bool:
    """One run with the verdicts on its topical classes."""
    try:
        run = ss.run_study("text-snap", progress=False, **options)
    except InputError as error:
        print(f"\n{title}: refused: {error}")
        return False
    assert run.config is not None
    windows = f"{run.config['train_windows']} + {run.config['held_out_windows']} windows"
    print(f"\n{title}: {' '.join(run.config['next_words'])}; {windows}; {ss.stages(run).events}")
    found = [row for row in ss.check(run) if row.tag in TARGETS]
    for row in found:
        print(f"  {row.verdict:<13} {row.tag:<20} {row.reason}", flush=True)
    return all(row.verdict == "confirmed" for row in found)


def _transformer() -> bool:
    """Sparser at larger rates in every seed; frozen only where the rate decays."""
    found = entropies("figure-10", rates=(1.0, 2.0, 5.0), seeds=SEEDS)(Progress())
    print("\none-layer transformer, wikitext-2, 1500 steps: entropy and total variation per 50 steps at the end, by seed")
    for row in found["rows"]:
        how = "constant" if row["decay"] is None else f"decaying to {row['decay']:.0%}"
        print(f"  rate {row['rate']:g} {how:<16} entropy {row['entropy']}  variation {row['motion']}")
    constant = [row for row in found["rows"] if row["decay"] is None]
    hops = all(min(row["motion"]) >= 0.05 for row in constant)
    rests = all(max(row["motion"]) < 0.05 for row in found["rows"] if row["decay"] is not None)
    sparser = all(found["largest_sparser_than_smallest"]) and all(found["falls_at_every_rate"])
    for what, holds in (
        ("larger rates are sparser in every seed", sparser),
        ("no constant rate freezes", hops),
        ("decay does", rests),
    ):
        print(f"  {what}: {'yes' if holds else 'DOES NOT HOLD'}")
    return sparser and hops and rests
