"""Figures 7 and 10 of scan and snap (arXiv 2305.16380): the transformer on WikiText, drawn and compared with what is published.

A run at the authors' sizes takes a quarter of an hour to an hour. What figures and table need of one is a panel, kept in the
user's cache. Rows of attention are those after the first, whose one token has all of it.
"""

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from stagescope.core.caches import cache_folder, read_entry, write_entry
from stagescope.core.params import Layout
from stagescope.core.progress import Progress
from stagescope.core.spec import digest
from stagescope.corpora.known import files_here
from stagescope.detect.noise import TWO_SIDED
from stagescope.flow.evolve import frames
from stagescope.flow.record import Every
from stagescope.papers.scan_snap.limits import LIMITS
from stagescope.papers.scan_snap.text.observables import argmax_kept, held_out, row_entropy, variation
from stagescope.papers.scan_snap.text.stages import last_tenth
from stagescope.readings.published import Row, published
from stagescope.readings.registry import study
from stagescope.views.figure import COLORS, GREY, Figure, Numbers, colour_map, coloured, rounded, subplots

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

Panel = dict[str, Any]
VERSION = 1
"""Of what a panel holds: raise it when a panel of the same run changes, so that those in the cache are made again."""
BATCH = 100
"""The authors' maps are of the first window of the 101st training batch."""

MAPS = 4
"""Maps in a row of figure 7, at equal distances from the start to the end."""


def _entry(options: Any, seed: int) -> Path | None:
    folder = cache_folder("panels")
    made_of = {"study": "text-snap", "options": options.model_dump(mode="json"), "seed": seed, "version": VERSION}
    return None if folder is None else folder / f"{digest(made_of)}.sealed"


def panel(preset: str, seed: int = 0, make: bool = True, **changes: Any) -> Panel | None:
    """A run of the transformer as the figures need it, from the user's cache or made; None where it is not to be made."""
    options = study("text-snap").configured(preset, **changes)
    path = _entry(options, seed)
    body = None if path is None else read_entry(path)
    if body is None and make:
        body = json.dumps(_measured(options, seed)).encode()
        if path is not None:
            write_entry(path, body)
    return None if body is None else json.loads(body)


def _measured(options: Any, seed: int) -> Panel:
    """Attention of every layer on held-out windows, and of the lowest on the windows of the 101st batch, at every checkpoint."""
    setup = study("text-snap").setup(options, seed)
    law: Any = setup.what
    judge, own, layout = held_out(law), law.inputs(law.minibatch(BATCH)), Layout.of(setup.params)
    steps, entropy, moved, same, maps, before, params = [], [], [], [], [], None, setup.params
    for clock, vector in frames(law, setup.params, setup.dynamics, record=Every(n=LIMITS.interval)):
        params = layout.unpack(vector)
        now = judge.attention(params)[:, :, 1:]  # the first token attends to itself
        steps.append(clock["step"])
        entropy.append(row_entropy(now).mean(axis=(1, 2)))
        if before is not None:
            moved.append(variation(before, now).mean(axis=(1, 2)))
            same.append(argmax_kept(before, now).mean(axis=(1, 2)))
        before = now
        maps.append(law.attention(params, own)[0])
    chosen = [int(np.argmin(np.abs(np.array(steps) - at))) for at in np.linspace(0, steps[-1], MAPS)]
    pictures = np.array(maps)[chosen]  # (maps, windows of the batch, queries, tokens)
    rows = pictures[:, :, 1:]
    return {
        "corpus": law.process.title,
        "words": [law.process.label(int(token)) for token in own[0]],
        "step": steps,
        "entropy": rounded(np.transpose(entropy), 4),
        "variation": rounded(np.transpose(moved), 4),
        "argmax_kept": rounded(np.transpose(same), 4),
        "map_step": [steps[i] for i in chosen],
        "maps": rounded(pictures[:, 0], 4),
        "batch": {
            "entropy": rounded(row_entropy(rows).mean(axis=-1), 4),
            "variation": rounded(variation(rows[:-1], rows[1:]).mean(axis=-1), 4),
            "argmax_kept": rounded(argmax_kept(rows[:-1], rows[1:]).mean(axis=-1), 4),
        },
        "held_loss": judge.value(params),
        "prior_loss": law.process.unigram_loss(),
    }


DEPTHS = {"1 layer": "published-figure-7", "3 layers": "published-figure-7-deep"}
QUICK: dict[str, Any] = {"vocab": 1000, "width": 64, "hidden": 64, "steps": 300}
QUICK_NOTE = "quick version: 1,000 words, width 64, 300 steps"
READ = published("stagescope.papers.scan_snap")["figure_7_maps"]
CURVES = ("entropy", "variation", "argmax_kept")


def maps(progress: Progress, quick: bool = False, **changes: Any) -> Numbers:
    """Figure 7: attention of the lowest layer in one training window over training, with one layer and with three."""
    options = {**(QUICK if quick else {}), **changes}
    runs = {depth: panel(DEPTHS[depth], **options) for depth in progress.each(tuple(DEPTHS), "figure 7", "runs")}
    note = {"quick": QUICK_NOTE} if quick else {}
    return {"runs": runs, "published": None if options else READ.value, "frozen_below": LIMITS.small, **note}


def late_motion(run: Panel) -> float:
    """Total variation of held-out attention of the lowest layer from checkpoint to checkpoint, over the last tenth of a run."""
    return float(np.mean(last_tenth(np.array(run["variation"][0]))))


def learned(run: Panel) -> bool:
    """Whether a run predicts held-out text better than the frequencies of its words."""
    return run["held_loss"] <= (1 - LIMITS.small) * run["prior_loss"]


def frozen(run: Panel) -> bool:
    return late_motion(run) < LIMITS.small


def sparse(run: Panel) -> bool:
    return final_entropy(run) < LIMITS.half * run["entropy"][0][0]


def sentence(run: Panel) -> str:
    """What became of attention, in a few words."""
    ends = f"{'sparse' if sparse(run) else 'not sparse'} and {'frozen' if frozen(run) else 'moving'} at the end"
    if learned(run):
        return ends
    return f"{ends}; no context is used (held-out loss {run['held_loss']:.2f}, entropy of the words {run['prior_loss']:.2f})"


def draw_maps(numbers: Numbers) -> "Drawing":
    """A row of maps for each depth, and below them entropy and motion of the lowest layer on held-out windows."""
    from matplotlib import pyplot

    drawing = pyplot.figure(figsize=(10.5, 8.4), layout="constrained")
    halves: Any = drawing.subfigures(2, 1, height_ratios=(2.6, 1))
    axes, shown = halves[0].subplots(len(numbers["runs"]), MAPS), None
    for row, (depth, run) in zip(axes, numbers["runs"].items(), strict=True):
        read = numbers["published"] if depth == "1 layer" else None
        for i, (axis, step, rows) in enumerate(zip(row, run["map_step"], run["maps"], strict=True)):
            values = np.array(rows)
            hidden = np.ma.masked_where(np.triu(np.ones_like(values, dtype=bool), 1), values)
            shown = axis.imshow(hidden, cmap=colour_map(), vmin=0, vmax=1, interpolation="nearest", aspect="equal")
            lines = [f"{depth}, step {step:,}"]
            for j, (name, word) in enumerate(zip(CURVES, ("entropy", "moved by", "argmax kept"), strict=True)):
                at = i if j == 0 else i - 1
                if at >= 0:
                    own = f"{word} {run['batch'][name][at][0]:.2f}"
                    lines.append(own + (f" (published {read[name][at]:.2f})" if read else ""))
            axis.set_title("\n".join(lines + [""] * (4 - len(lines))), fontsize=8)
            axis.set_xticks([])
            words = run["words"] if i == 0 else []
            axis.set_yticks(range(len(words)), words, fontsize=3.8)
            axis.tick_params(length=0, pad=1)
            axis.grid(visible=False)
    assert shown is not None
    halves[0].colorbar(shown, ax=axes, shrink=0.5, pad=0.01, label="attention")
    sparse, moving = halves[1].subplots(1, 2)
    for color, (depth, run) in coloured(numbers["runs"].items()):
        sparse.plot(run["step"], run["entropy"][0], color=color, label=depth)
        moving.plot(run["step"][1:], run["variation"][0], color=color, label=depth)
    moving.axhline(numbers["frozen_below"], color=GREY, lw=0.9, ls="--")
    place = moving.get_yaxis_transform()
    moving.text(1, numbers["frozen_below"], "frozen below", color=GREY, va="bottom", ha="right", fontsize=8, transform=place)
    sparse.set(xlabel="step", ylabel="entropy (nats)", ylim=(0, None))
    moving.set(xlabel="step", ylabel=f"moved per {LIMITS.interval} steps", yscale="log")
    sparse.legend()
    ends = "\n".join(f"{depth}: {sentence(run)}" for depth, run in numbers["runs"].items())
    halves[1].suptitle(f"Lowest layer on held-out windows, constant rate\n{ends}", fontsize=8.5)
    corpus = next(iter(numbers["runs"].values()))["corpus"]
    drawing.suptitle(f"Attention of the lowest layer in the first window of the 101st training batch of {corpus}")
    return drawing


RATES, SEEDS = (1.0, 2.0, 3.0, 4.0, 5.0), 5
CORPORA = {"wikitext-2": "WikiText-2", "wikitext-103": "WikiText-103"}
WORDS: dict[str, Any] = {"vocab": 1000}
"""Of figure 10, in place of the whole vocabulary: 25 runs of a quarter of an hour each would be needed for either text."""


def entropies(
    progress: Progress, rates: tuple[float, ...] = RATES, seeds: int = SEEDS, quick: bool = False, **changes: Any
) -> Numbers:
    """Figure 10: entropy of held-out attention at the end against the rate, on each text that is here."""
    options = {**WORDS, **(QUICK if quick else {}), **changes}
    texts: dict[str, Any] = {}
    for corpus, title in CORPORA.items():
        name = changes.get("corpus", corpus) if corpus == "wikitext-2" else corpus
        if name in CORPORA and not files_here(name):
            texts[title] = f"{title} is not on this machine: put its files into a folder {corpus} of $STAGESCOPE_DATA"
            continue
        ends = []
        for rate in progress.each(rates, f"figure 10, {title}", "rates"):
            runs = (panel("published-figure-10", seed, **{**options, "corpus": name, "lr": rate}) for seed in range(seeds))
            ends.append([final_entropy(run) for run in runs if run is not None])
        texts[title] = rounded(ends, 4)
    note = {"quick": f"{QUICK_NOTE}, {len(rates)} rates, {seeds} seeds"} if quick else {}
    return {"rates": rates, "vocab": options["vocab"], "texts": texts, **note}


def final_entropy(run: Panel) -> float:
    """Entropy of held-out attention of the lowest layer, mean over the last tenth of a run: it changes from frame to frame."""
    return float(np.mean(last_tenth(np.array(run["entropy"][0]))))


def draw_entropies(numbers: Numbers) -> "Drawing":
    drawing, axes = subplots(1, len(numbers["texts"]), figsize=(7.6, 3.2), sharey=True)
    rates, falls = numbers["rates"], []
    for axis, (title, ends) in zip(axes, numbers["texts"].items(), strict=True):
        axis.set(title=title, xlabel=r"learning rate $\eta$", xticks=rates, xlim=(rates[0] - 0.3, rates[-1] + 0.3))
        if isinstance(ends, str):
            axis.text(0.5, 0.5, ends.replace(": ", ":\n"), transform=axis.transAxes, ha="center", fontsize=7, color=GREY)
            continue
        table = np.array(ends)
        axis.errorbar(rates, table.mean(axis=1), yerr=table.std(axis=1), color=COLORS[0], marker="o", ms=4, capsize=3)
        count = int(np.sum(np.diff(table.mean(axis=1)) < 0))
        falls.append(f"{title}: the mean falls in {count} of {len(rates) - 1} steps to a larger rate")
    axes[0].set(ylim=(0, None), ylabel="entropy of validation attention (nats)")
    drawing.suptitle(f"{'; '.join(falls)}\n{numbers['vocab']:,} words, bars: one standard deviation over seeds", fontsize=9)
    return drawing


TEXT_FIGURES = {
    figure.name: figure
    for figure in (
        Figure(
            "7",
            "Attention of a transformer of one layer and of three over training",
            maps,
            draw_maps,
            cost="about an hour and a half of one core",
            full=True,
            needs="wikitext-2",
            quick=partial(maps, quick=True),
        ),
        Figure(
            "10",
            "Attention entropy against the learning rate",
            entropies,
            draw_entropies,
            cost="about half an hour of one core for a text",
            needs="wikitext-2",
            quick=partial(entropies, rates=(1.0, 3.0, 5.0), seeds=2, quick=True),
        ),
    )
}

NOT_RUN = "not run here: `reproduce text-snap --figure {}` makes it"
ONE_RUN = "one run of each: their tolerance is the scatter of windows, how runs scatter is not known"


def text_distances(progress: Progress, quick: bool = False) -> list[Row]:
    """Published numbers of figures 7 and 10, compared where a figure has made the runs before."""
    return [*map_rows(), *rate_rows()]


def map_rows() -> Iterator[Row]:
    """The picture of figure 7, and the sentence about it: attention freezes and becomes sparse at a constant rate.

    A number of one window may differ from that of another: the tolerance is the scatter over the 20 windows of the batch, and
    the last digit of the published one.
    """
    runs = {depth: panel(preset, make=False) for depth, preset in DEPTHS.items()}
    shallow, missing = runs["1 layer"], NOT_RUN.format("7 --full")
    named = zip(CURVES, ("entropy", "total variation of maps", "share of rows whose argmax is kept"), strict=True)
    for name, quantity in named:
        for i, number in enumerate(READ.value[name]):
            ours = limit = None
            if shallow is not None:
                windows = np.array(shallow["batch"][name][i])
                ours, limit = float(windows[0]), float(np.hypot(TWO_SIDED * windows.std(ddof=1), 0.01))
            at = f"step {500 * i:,}" if name == "entropy" else f"steps {500 * i:,} to {500 * (i + 1):,}"
            yield Row(
                "Figure 7", quantity, at, number, ours, 0.01 if limit is None else limit, missing if shallow is None else ONE_RUN
            )
    for depth, run in runs.items():
        verdicts, cause = (None, None), missing
        if run is not None:
            numbers = f"entropy {run['entropy'][0][0]:.2f} -> {final_entropy(run):.2f}, total variation {late_motion(run):.2f}"
            cause = f"{sentence(run)}: {numbers} per {LIMITS.interval} steps"
            if learned(run) or not frozen(run):  # attention that rests because nothing is learned decides nothing
                verdicts = float(frozen(run)), float(sparse(run))
        for what, ours in zip(("freezes", "becomes sparse"), verdicts, strict=True):
            yield Row("Figure 7", f"section 8: attention {what} (1 if it does)", depth, 1, ours, 0, f"{depth}, {cause}")


def rate_rows() -> Iterator[Row]:
    """Of figure 10 the message: mean entropy falls from every rate to the next."""
    for corpus, title in CORPORA.items():
        runs = [
            [panel("published-figure-10", seed, make=False, **WORDS, corpus=corpus, lr=rate) for seed in range(SEEDS)]
            for rate in RATES
        ]
        ours, cause = None, NOT_RUN.format("10") if files_here(corpus) else f"{title} is not on this machine"
        if all(run is not None for row in runs for run in row):
            means = [np.mean([final_entropy(run) for run in row if run is not None]) for row in runs]
            ours, cause = float(np.sum(np.diff(means) >= 0)), "1,000 words in place of the whole vocabulary"
        yield Row("Figure 10", "rates after which entropy does not fall", title, 0, ours, 0, cause)
