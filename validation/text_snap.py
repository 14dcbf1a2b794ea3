"""Scan and snap on real text: topical classes of several query words and corpora, and the one-layer transformer over its rate.

On WikiText-2 with the query "the" the numbers of an independent implementation must be met and every claim confirmed; the other
words and corpora are shown with their verdicts. Corpora are read from the folder STAGESCOPE_DATA; a missing one is skipped.
"""

import stagescope as ss
from stagescope.corpora.known import locate
from stagescope.errors import InputError
from stagescope.papers.published import published
from stagescope.papers.scan_snap.text.figures import entropies
from stagescope.papers.scan_snap.text.stages import FREEZE
from stagescope.progress import Progress

TARGETS = ("SnS:text-distinct", "SnS:text-frequency", "SnS:text-held", "SnS:text-common", "SnS:text-mass", "SnS:text-snap")
MUST = (("wikitext-2-named", 0), ("wikitext-2-named", 1), ("wikitext-2", 0), ("wikitext-2", 1))
SHOWN = {
    "wikitext-2": ("of", "in", "a", "and"),
    "tinystories": ("the", "to", "a", "was"),
    "tiny-shakespeare": ("the", "my", "to"),
    "topics": ("the", "of", "is"),
}
REFERENCE = {
    "SnS:text-distinct": "text_rank_correlation",
    "SnS:text-frequency": "text_rank_correlation",
    "SnS:text-mass": "text_mass_growth",
    "SnS:text-snap": "text_late_motion",
}
"""The reference number of each claim, for the next words of wikitext-2-named."""


def main() -> bool:
    held = True
    if _there("wikitext-2"):
        for preset, seed in MUST:
            expected = REFERENCE if preset == "wikitext-2-named" else {}
            held &= _topics(f"{preset}, seed {seed}", expected, preset=preset, seed=seed)
    for corpus, words in SHOWN.items():
        if _there(corpus):
            for word in words:
                _topics(f"{corpus}, {word!r}", {}, corpus=corpus, query=word)
    return _transformer() and held if _there("wikitext-2") else held


def _there(corpus: str) -> bool:
    try:
        locate(corpus) if corpus != "topics" else None
    except InputError as error:
        print(f"{corpus} is skipped: {error}")
        return False
    return True


def _topics(title: str, expected: dict[str, str], **options) -> bool:
    """Whether one run confirms all claims on its topical classes and meets the reference numbers `expected` of them."""
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
    meets = [_meets(row, expected) for row in found]
    return all(row.verdict == "confirmed" for row in found) and all(meets)


def _meets(row: ss.Verdict, expected: dict[str, str]) -> bool:
    """Whether a measured value is within the tolerance of its reference number, if it has one."""
    if row.tag not in expected:
        return True
    number = published("stagescope.papers.scan_snap")[expected[row.tag]]
    assert number.tolerance is not None
    holds = isinstance(row.measured, float) and abs(row.measured - number.value) <= number.tolerance
    mark = "" if holds else "   DOES NOT HOLD"
    print(f"  {row.tag}: expected {number.value} (absolute tolerance {number.tolerance}), measured {row.measured}{mark}")
    return holds


def _transformer() -> bool:
    """Whether attention is sparser at larger rates in every seed, and frozen only where the rate decays."""
    found = entropies("figure-10", rates=(1.0, 2.0, 5.0), seeds=2)(Progress())
    print("\none-layer transformer, wikitext-2, 1500 steps: entropy and total variation per 50 steps at the end, by seed")
    for row in found["rows"]:
        how = "constant" if row["decay"] is None else f"decaying to {row['decay']:.0%}"
        print(f"  rate {row['rate']:g} {how:<16} entropy {row['entropy']}  variation {row['motion']}")
    constant = [row for row in found["rows"] if row["decay"] is None]
    moves = all(min(row["motion"]) >= FREEZE.variation for row in constant)
    freezes = all(max(row["motion"]) < FREEZE.variation for row in found["rows"] if row["decay"] is not None)
    sparser = all(found["largest_sparser_than_smallest"]) and all(found["falls_at_every_rate"])
    for what, holds in (
        ("larger rates are sparser in every seed", sparser),
        ("attention does not freeze at a constant rate", moves),
        ("attention freezes at a decaying rate", freezes),
    ):
        print(f"  {what}: {'yes' if holds else 'DOES NOT HOLD'}")
    return sparser and moves and freezes
