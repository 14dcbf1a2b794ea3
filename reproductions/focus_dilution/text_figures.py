"""Figures of focus and dilution on a text: plain steps against the bigram flow, the published curves of Adam, and a variant."""

from collections.abc import Callable
from typing import Any

import numpy as np

from stagescope.core.progress import Progress
from stagescope.papers.focus_dilution.text.claims import CLAIMS, TextEvidence
from stagescope.papers.focus_dilution.text.observables import text_curves
from stagescope.papers.focus_dilution.text.reading import probes, separability
from stagescope.papers.focus_dilution.text.stages import TextHistory
from stagescope.papers.focus_dilution.text.study import PARTS, PRESETS
from stagescope.readings.published import published
from stagescope.readings.reading import reading
from stagescope.readings.registry import run_study
from stagescope.runs.run import Run
from stagescope.views.figure import Figure, Numbers, rounded

_COST = "about 5 minutes"
VARIANT = {name: value for name, value in PRESETS["transformer"].items() if name != "corpus"}
"""Positions, residual and LayerNorm. The variant is slower, and what it shows comes early: its runs are short."""


def of_corpus(corpus: str) -> Callable[[Progress], Numbers]:
    """The numbers of the figure of one corpus."""

    def compute(progress: Progress) -> Numbers:
        progress.begin(f"{corpus}, {_COST}", 4, "runs")
        plain = run_study("text-focus", corpus, progress=False)
        progress.update(1)
        evidence = reading(plain).evidence
        flow = evidence.companion("bigram", evidence.end)
        progress.update(2)
        adam = run_study("text-focus", f"{corpus}-adam", progress=False)
        progress.update(3)
        variant = run_study("text-focus", corpus, progress=False, **VARIANT)
        progress.update(4)
        made = evidence.predictions
        sign = {"c_windows": made.c_windows, "c_error": made.c_error, "c_bigram": made.c_bigram}
        return {
            "corpus": corpus,
            "predictions": {"mu0": made.mu0, **sign, "separability": made.separability},
            "plain": {**_opened(plain, corpus), **_probed(plain)},
            "bigram": _opened(flow, None),
            "adam": _rows(adam),
            "variant": {**_opened(variant, None), "separability": separability(variant), "parts": list(PARTS)},
            "claims": {
                "plain": _verdicts(plain, evidence),
                "adam": _verdicts(adam, reading(adam).evidence),
            },
        }

    return compute


def _verdicts(run: Run, evidence: TextEvidence) -> list[dict[str, Any]]:
    return [claim.judge(run, evidence).json() for claim in CLAIMS]


def _opened(run: Run, corpus: str | None) -> dict[str, Any]:
    """Singular values and events; against those of the independent implementation where there are any."""
    curves = text_curves(run)
    events = TextHistory(curves).opened
    found: dict[str, Any] = {
        "clock": run.clock,
        "time": rounded(curves.time),
        "W0": rounded(curves.embedding_values[:, :3].T),
        "Phi": rounded(curves.score_values[:, :3].T),
        "alignment": rounded(curves.alignment),
        "events": events,
    }
    if corpus is not None:
        measured = published("stagescope.papers.focus_dilution")["text_events"].value[corpus]
        gaps = {name: ours / measured[name] - 1 for name, ours in events.items() if ours is not None and name in measured}
        found |= {"measured": measured, "relative_difference": gaps}
        found["mean_abs_difference"] = float(np.mean(np.abs(list(gaps.values())))) if gaps else None
    return found


def _probed(run: Run) -> dict[str, Any]:
    """Attention of the probe words' rows on the most frequent type and on themselves."""
    curves = text_curves(run)
    rows = {
        word: {"frequent": rounded(curves.on_frequent[:, token]), "itself": rounded(curves.on_itself[:, token])}
        for word, token in probes(run, curves).items()
    }
    return {"frequent": curves.words[curves.frequent], "base": float(curves.pi[curves.frequent]), "rows": rows}


def _rows(run: Run) -> dict[str, Any]:
    """All rows together: quantiles of attention on the most frequent type, mean entropy, norms of rare rows."""
    curves = text_curves(run)
    history = TextHistory(curves)
    return {
        "clock": run.clock,
        "time": rounded(curves.time),
        "quantiles": rounded(np.quantile(curves.on_frequent, (0.05, 0.25, 0.5, 0.75, 0.95), axis=1)),
        "entropy": rounded(curves.mean_entropy),
        "rare_norm": rounded(curves.rare_norm),
        "count": len(history.rows),
        "focused": [len(history.focused), history.mass(history.focused)],
        "diluted": [len(history.diluted), history.mass(history.diluted)],
        **_probed(run),
    }


def _figure(name: str, title: str, corpus: str) -> Figure:
    def draw(numbers: Numbers) -> Any:
        from . import text_drawings

        return text_drawings.draw(numbers)

    return Figure(f"-{name}", f"Focus and dilution on {title}", of_corpus(corpus), draw, _COST, needs=corpus)


TEXT_FIGURES = {
    "wikitext": _figure("wikitext", "WikiText-2", "wikitext-2"),
    "tinystories": _figure("tinystories", "TinyStories", "tinystories"),
}
