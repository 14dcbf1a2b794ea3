"""Figures of scan and snap on a text: figures 7 and 10 of the paper, and one of topical classes, which is not in the paper."""

from collections.abc import Callable
from typing import Any

import numpy as np

from stagescope.later import Later
from stagescope.papers.answers import check, stages
from stagescope.papers.rebuild import rebuilt
from stagescope.papers.registry import run_study
from stagescope.papers.scan_snap.text.evidence import late_entropy, late_motion
from stagescope.papers.scan_snap.text.observables import (
    TextAttention,
    TopicAttention,
    checkpoints,
    held_out,
    known_windows,
    text_attention,
)
from stagescope.progress import Progress
from stagescope.runs.run import Run
from stagescope.views.figure import Figure, Numbers


def _rounded(values: Any, digits: int = 4) -> Any:
    return np.round(np.asarray(values, dtype=float), digits).tolist()


def _motion(seen: TextAttention) -> Numbers:
    """Total variation of attention, at the step where each interval ends."""
    return {"step": seen.step[checkpoints(seen.step)][1:].tolist(), "variation": _rounded(seen.motion.variation)}


def maps(preset: str, decay: float = 0.01, **changes: Any) -> Callable[[Progress], Numbers]:
    """Figure 7: attention maps of one held-out window over training; entropy and motion at a constant and a decaying rate."""

    def compute(progress: Progress) -> Numbers:
        progress.begin("figure 7", 2, "runs")
        curves = {}
        constant = run_study("text-snap", preset, progress=False, **changes)
        progress.update(1)
        decaying = run_study("text-snap", preset, progress=False, decay=decay, **changes)
        progress.update(2)
        for name, run in (("constant", constant), ("decaying", decaying)):
            seen = text_attention(run)
            ends = {"final_motion": late_motion(seen), "final_entropy": late_entropy(seen)}
            curves[name] = {"step": run.step.tolist(), "entropy": _rounded(seen.entropy), "motion": _motion(seen), **ends}
        facts = {"rate": constant.spec["dynamics"]["lr"], "decay": decay, "width": constant.spec["field"]["model"]["width"]}
        return {"corpus": constant.spec["field"]["process"]["source"], **facts, **_maps(constant), "curves": curves}

    return compute


def _maps(run: Run) -> Numbers:
    """Four attention maps of the held-out window with the most known words, equally spaced from the first to the last step."""
    judge = held_out(rebuilt(run.spec["field"]))
    windows = judge.watched_tokens
    (best,) = known_windows(windows, judge.process.words, 1)
    frames = [int(np.argmin(np.abs(run.step - at))) for at in np.linspace(0, int(run.step[-1]), 4)]
    words = [judge.process.label(int(token)) for token in windows[best]]
    return {
        "words": words,
        "steps": run.step[frames].tolist(),
        "maps": [_rounded(judge.attention(run.at(f))[best]) for f in frames],
    }


def entropies(
    preset: str, rates: tuple[float, ...] = (1.0, 2.0, 3.0, 4.0, 5.0), seeds: int = 3, decay: float = 0.01, **changes: Any
) -> Callable[[Progress], Numbers]:
    """Figure 10: entropy of held-out attention against the learning rate; the largest rate also with decay."""

    def compute(progress: Progress) -> Numbers:
        settings = (*((rate, None) for rate in rates), (rates[-1], decay))
        every = [(rate, falls_to, seed) for rate, falls_to in settings for seed in range(seeds)]
        seen = [
            text_attention(run_study("text-snap", preset, progress=False, seed=seed, lr=rate, decay=falls_to, **changes))
            for rate, falls_to, seed in progress.each(every, "figure 10", "runs")
        ]
        rows = []
        for place, (rate, falls_to) in enumerate(settings):
            found = seen[place * seeds : (place + 1) * seeds]
            ends = {
                "entropy": _rounded([late_entropy(seen) for seen in found]),
                "motion": _rounded(list(map(late_motion, found))),
            }
            rows.append({"rate": rate, "decay": falls_to, "start": _rounded([seen.entropy[0] for seen in found]), **ends})
        table = np.array([row["entropy"] for row in rows[:-1]])
        falls = [bool(np.all(np.diff(table[:, seed]) < 0)) for seed in range(seeds)]
        extremes = [bool(table[-1, seed] < table[0, seed]) for seed in range(seeds)]
        return {"rows": rows, "falls_at_every_rate": falls, "largest_sparser_than_smallest": extremes}

    return compute


def topics(preset: str, **changes: Any) -> Callable[[Progress], Numbers]:
    """Topical classes: scores against distinctness, attention on common and distinct types, motion."""

    def compute(progress: Progress) -> Numbers:
        progress.begin("topical classes", 1, "runs")
        run = run_study("text-snap", preset, progress=False, **changes)
        seen = text_attention(run)
        assert isinstance(seen, TopicAttention)
        progress.update(1)
        process = seen.process
        kinds = {"common": process.common.tolist(), "distinct": process.distinct.tolist()}
        types = {"words": [process.label(token) for token in process.keys], "share": _rounded(process.share)}
        masses = {"common": _rounded(seen.common_mass), "distinct": _rounded(seen.distinct_mass)}
        return {
            "corpus": process.corpus.source,
            "query": process.query,
            "nexts": list(process.nexts),
            "windows": {part: len(process.part(part)) for part in ("train", "held-out")},
            "types": {**types, "score": _rounded(seen.growth), "distinctness": _rounded(process.distinctness), **kinds},
            "step": run.step.tolist(),
            "masses": masses,
            "motion": _motion(seen),
            "events": {
                name: None if when is None else when / run.spec["dynamics"]["lr"] for name, when in stages(run).events.items()
            },
            "claims": check(run).json()["claims"],
        }

    return compute


def _figure(name: str, title: str, compute: Callable[[Progress], Numbers], draw: str, cost: str = "") -> Figure:
    """Matplotlib is imported when a figure is drawn, not when figures are listed."""
    drawn = Later(f"stagescope.papers.scan_snap.text.figures.draw:{draw}")
    return Figure(name, title, compute, drawn, cost, needs="wikitext-2")


FIGURES = {
    "7": _figure("7", "Attention of a one-layer transformer over training", maps("figure-7"), "maps", "3 minutes"),
    "10": _figure("10", "Attention entropy against the learning rate", entropies("figure-10"), "entropies", "6 minutes"),
    "topics": _figure("-topics", "Topical classes of a query word", topics("wikitext-2-named"), "topics"),
}
