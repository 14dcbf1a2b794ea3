"""The runs behind the figures of arXiv 2602.19143, by name and variant: presets of the study with the changes named here.

Steps of the paper are counted from 0 after the first update: published step s is after s + 1 updates, on drawn targets.
"""

from typing import Any

from stagescope.core.progress import Progress
from stagescope.papers.incremental.panels import Panel, Trial, panels, trial, value

NGRAM_STEPS = 2000
"""Of the learned n-grams, before the student starts [ISA:ngram]."""
NONE: dict[str, Any] = {"dropout": 0.0}
"""The authors' settings name dropout .1, but figures 3, 9 and 12 are met up to step 100 without it."""


def _trials() -> dict[str, dict[str, tuple[Trial, ...]]]:
    """Where the step of a transition depends on the initial draw there are several draws."""
    fitted: dict[str, Any] = {"levels": True, "compared": 3000}
    minimal = trial("noise 1e-9", "published", 1010, maps=(150, 500, 1000), **fitted)
    online = trial("new sequences at every step", "published-online", 2000, maps=(0, 270, 580, 1500), **fitted)
    xavier = tuple(trial("Xavier", "published-xavier", 1010 if i == 0 else 610, levels=i == 0, init_seed=i) for i in range(5))
    few = {
        str(size): tuple(
            trial(f"{size} sequences", "published-xavier", steps, 5, levels=True, sequences=size, batch=size, init_seed=i)
            for i in range(3)
        )
        for size, steps in ((600, 200), (2000, 500))
    }
    noises = {
        name: trial(f"noise {name}", "published", 1010, levels=True, init_scale=float(name)) for name in ("1e-3", "1e-6")
    } | {"1e-9": minimal, "0": trial("no noise", "published", 1010, levels=True, init_scale=0.0)}
    alone = {
        "minimal": minimal,  # figure 1, and noise 1e-9 of figure 4
        # figures 2 and 3
        "one_layer": trial("one layer", "published-transformer", 1010, maps=(0, 60, 300, 1000), levels=True, **NONE),
        "online": online,  # figures 6 and 7
        # figures 8 and 9
        "reversed": trial("farthest span first", "published-reversed", 1010, maps=(0, 70, 375, 1000), **NONE),
        "two_minimal": trial("content heads, two layers", "published-two-layers", 1000),  # figure 11
        "two_layers": trial("transformer, two layers", "published-transformer-2", 1000, **NONE),  # figure 12
        # figures 13 and 14
        "weighted": trial("weights .3 .7", "published-weighted", 1010, maps=(0, 100, 200, 1000), ngrams=NGRAM_STEPS),
        # figures 18 and 19
        "sgd": trial("heavy ball", "published-sgd", 7000, 50, maps=(0, 600, 3800, 6600), levels=True, **NONE),
    }
    return {
        **{name: {name: (item,)} for name, item in alone.items()},
        "xavier": {"Xavier": xavier},  # figure 4 left, five draws; the first is also figure 5 at 9000 sequences
        "noises": {name: (item,) for name, item in noises.items()},  # figure 4 left
        "ratios": {  # figure 4 right, three draws each
            ratio: tuple(
                trial(f"ratio {ratio}", "published-xavier", 410, importance_ratio=float(ratio), init_seed=i) for i in range(3)
            )
            for ratio in value("figure-4-ratios")
        },
        # figure 5: few sequences are overfitted, so the best loss depends on the draw
        "sizes": {**few, "9000": xavier[:1], "online": (online,)},
        "overlapping": {"4": (trial("four heads", "published-overlapping", 1900, maps=(100, 400, 1900), ngrams=NGRAM_STEPS),)},
        "overlapping_3": {"3": (trial("three heads", "published-overlapping-3", 1900, maps=(100, 400, 1900)),)},  # figure 16
    }


TRIALS = _trials()
SMALL: dict[str, Any] = {"batch": 300, "watched": 300}
"""Of the quick versions; noise is larger, so heads of a small start part earlier."""
QUICK = {
    "minimal": trial("noise 1e-9", "published", 600, 10, maps=(150, 500, 600), compared=200, **SMALL),
    "reversed": trial(
        "farthest span first", "published-reversed", 300, 10, maps=(0, 70, 200, 300), compared=200, **SMALL, **NONE
    ),
    "weighted": trial("weights .3 .7", "published-weighted", 400, 10, maps=(0, 100, 200, 400), compared=200, ngrams=200, **SMALL),
}


def quick_note(name: str) -> str:
    """What a quick version leaves out."""
    ((item, *_),) = TRIALS[name].values()
    return f"quick version: batches of 300, {QUICK[name].steps} of {item.steps} steps; published values belong to the whole run"


LONG = ("one_layer", "reversed", "two_minimal", "two_layers", "sgd")
"""From ten minutes to hours of one core."""


def measurements(name: str, progress: Progress) -> dict[str, list[Panel]]:
    """The panels of the runs of a name, by variant and draw."""
    trials = TRIALS[name]
    made = iter(panels(tuple(item for draws in trials.values() for item in draws), progress))
    return {variant: [next(made) for _ in draws] for variant, draws in trials.items()}
