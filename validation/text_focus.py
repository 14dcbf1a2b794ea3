"""Focus and dilution on real text: TinyStories, WikiText-2 and Tiny Shakespeare, plain steps and Adam, and what r predicts.

Corpora are looked for in the folder named by STAGESCOPE_DATA; one that is missing is left out with a message. TinyStories
and WikiText-2 have targets; Tiny Shakespeare is only shown, because thresholds were chosen without it. Takes about 15 minutes.
"""

import stagescope as ss
from stagescope.claims.claim import Verdict
from stagescope.core.errors import InputError
from stagescope.corpora.known import locate
from stagescope.papers.focus_dilution.text.claims import CLAIMS
from stagescope.papers.focus_dilution.text.study import PRESETS
from stagescope.readings.reading import reading
from stagescope.readings.study import reproduction

VARIANT = reproduction("focus_dilution").text_figures.VARIANT
TARGETS = {"tinystories": True, "wikitext-2": True, "tiny-shakespeare": False}
"""Corpora, and whether every claim in its regime must be confirmed."""
PLAIN = ("FD:text-origin", "FD:text-order", "FD:text-bigram", "FD:text-sign", "FD:text-separability")
ADAM = ("FD:text-entropy", "FD:text-norms")
SEEDS = (0, 1)


def main() -> bool:
    held = True
    for corpus, must in TARGETS.items():
        try:
            locate(corpus)
        except InputError as error:
            print(f"{corpus} is left out: {error}")
            continue
        held &= _corpus(corpus) or not must
    return held


def _corpus(corpus: str) -> bool:
    held = True
    for seed in SEEDS:
        held &= _run(f"{corpus}, plain steps, seed {seed}", PLAIN, corpus=corpus, seed=seed) == {"confirmed"}
        adam = PRESETS.get(f"{corpus}-adam", {"corpus": corpus, "optimizer": "adam"})
        held &= _run(f"{corpus}, Adam, seed {seed}", ADAM, **adam, seed=seed) == {"confirmed"}
    title = f"{corpus}, with positions, residual and LayerNorm"
    return held & ("violated" not in _run(title, ("FD:text-separability",), corpus=corpus, **VARIANT))


def _run(title: str, tags: tuple[str, ...], **options) -> set[str]:
    """One run with its events and the verdicts of some claims; the others are out of regime."""
    run = ss.run_study("text-focus", progress=False, **options)
    evidence = reading(run).evidence
    found: list[Verdict] = [claim.judge(run, evidence) for claim in CLAIMS if claim.tag in tags]
    opened = {name: when for name, when in evidence.history.opened.items() if name[1] < "4"}
    events = ", ".join(f"{name} {'-' if when is None else f'{when:.4g}'}" for name, when in opened.items())
    print(f"\n{title}: {run.status}; {events}")
    for row in found:
        print(f"  {row.verdict:<13} {row.tag:<21} {row.reason}", flush=True)
    return {row.verdict for row in found}
