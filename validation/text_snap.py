"""Scan and snap on real text: topical classes of several query words and corpora, and the one-layer transformer over its rate.

On WikiText-2 with the query "the" the numbers of an independent implementation must be met and the claim about types
confirmed; the other words and corpora are shown with their verdicts. Corpora are read from the folder
STAGESCOPE_DATA; a missing one is skipped.
"""

import numpy as np

import stagescope as ss
from stagescope.core.errors import InputError
from stagescope.corpora.known import locate
from stagescope.papers.scan_snap.limits import LIMITS
from stagescope.papers.scan_snap.text.claims import late_entropy, late_motion, rank_correlation
from stagescope.papers.scan_snap.text.observables import TopicAttention, text_attention
from stagescope.readings.published import published

MUST_HOLD = "SnS:text-frequency"
MUST = (("wikitext-2-named", 0), ("wikitext-2-named", 1), ("wikitext-2", 0), ("wikitext-2", 1))
SHOWN = {
    "wikitext-2": ("of", "in", "a", "and"),
    "tinystories": ("the", "to", "a", "was"),
    "tiny-shakespeare": ("the", "my", "to"),
    "topics": ("the", "of", "is"),
}
REFERENCE = ("text_rank_correlation", "text_mass_growth", "text_late_motion")
"""Reference numbers of the next words of wikitext-2-named, measured on training windows, or on types that are distinct there."""


def main() -> bool:
    held = True
    if _there("wikitext-2"):
        for preset, seed in MUST:
            expected = REFERENCE if preset == "wikitext-2-named" else ()
            held &= _topics(f"{preset}, seed {seed}", expected, preset=preset, seed=seed)
    for corpus, words in SHOWN.items():
        if _there(corpus):
            for word in words:
                _topics(f"{corpus}, {word!r}", (), corpus=corpus, query=word)
    return _transformer() and held if _there("wikitext-2") else held


def _there(corpus: str) -> bool:
    try:
        locate(corpus) if corpus != "topics" else None
    except InputError as error:
        print(f"{corpus} is skipped: {error}")
        return False
    return True


def _topics(title: str, expected: tuple[str, ...], **options) -> bool:
    """Whether one run confirms the claim about types and meets the reference numbers `expected`."""
    try:
        run = ss.run_study("text-snap", progress=False, **options)
    except InputError as error:
        print(f"\n{title}: refused: {error}")
        return False
    assert run.config is not None
    windows = f"{run.config['train_windows']} + {run.config['held_out_windows']} windows"
    print(f"\n{title}: {' '.join(run.config['next_words'])}; {windows}; {ss.stages(run).events}")
    found = [row for row in ss.check(run) if row.verdict != "not applicable"]
    for row in found:
        print(f"  {row.verdict:<13} {row.tag:<20} {row.reason}", flush=True)
    meets = [_meets(name, _measured(run)[name]) for name in expected]
    return all(row.verdict == "confirmed" for row in found if row.tag == MUST_HOLD) and all(meets)


def _measured(run: ss.Run) -> dict[str, float | None]:
    seen = text_attention(run)
    assert isinstance(seen, TopicAttention)
    return {
        "text_rank_correlation": rank_correlation(seen.growth, seen.process.distinctness),
        "text_mass_growth": float(seen.distinct_mass[-1] / seen.distinct_mass[0]),
        "text_late_motion": late_motion(seen),
    }


def _meets(name: str, measured: float | None) -> bool:
    """Whether a measured value is within the tolerance of its reference number."""
    number = published("stagescope.papers.scan_snap")[name]
    assert number.tolerance is not None
    holds = measured is not None and abs(measured - number.value) <= number.tolerance
    mark = "" if holds else "   DOES NOT HOLD"
    print(f"  {name}: expected {number.value} (absolute tolerance {number.tolerance}), measured {measured}{mark}")
    return holds


def _transformer() -> bool:
    """Whether attention is sparser at larger rates in every seed, and frozen only where the rate decays."""
    print("\none-layer transformer, wikitext-2, 1500 steps: entropy and total variation per 50 steps at the end, by seed")
    entropies, motions = {}, {}
    for rate, decay in ((1.0, None), (2.0, None), (5.0, None), (5.0, 0.01)):
        options = {"lr": rate, "decay": decay, "progress": False}
        runs = [text_attention(ss.run_study("text-snap", "wikitext-2-transformer", seed=seed, **options)) for seed in range(2)]
        entropies[rate, decay] = ends = [late_entropy(curves) for curves in runs]
        motions[rate, decay] = moved = [late_motion(curves) or 0.0 for curves in runs]
        how = "constant" if decay is None else f"decaying to {decay:.0%}"
        print(f"  rate {rate:g} {how:<16} entropy {np.round(ends, 3)}  variation {np.round(moved, 3)}")
    constant = [key for key in entropies if key[1] is None]
    moves = all(min(motions[key]) >= LIMITS.small for key in constant)
    freezes = max(motions[5.0, 0.01]) < LIMITS.small
    sparser = bool(np.all(np.diff([entropies[key] for key in constant], axis=0) < 0))
    for what, holds in (
        ("larger rates are sparser in every seed", sparser),
        ("attention does not freeze at a constant rate", moves),
        ("attention freezes at a decaying rate", freezes),
    ):
        print(f"  {what}: {'yes' if holds else 'DOES NOT HOLD'}")
    return sparser and moves and freezes
