"""Linear attention in context against its reference numbers (reference.json of the paper): page, ours, difference.

The starts are those of the independent implementation behind the numbers: numpy's default generator, v, then K, then Q.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

import stagescope as ss
from stagescope.core.params import Params, key
from stagescope.core.progress import Progress
from stagescope.papers.linear_icl import forms
from stagescope.papers.linear_icl.cascade import SilentHead, blow_up_time, cascade
from stagescope.papers.linear_icl.claims import opening_fits
from stagescope.papers.linear_icl.loss import LinearPopulation, draw_sequences
from stagescope.papers.linear_icl.model import LinearAttention
from stagescope.papers.linear_icl.process import RegressionTask
from stagescope.papers.linear_icl.reading import LinearReading
from stagescope.papers.linear_icl.setup import flow_frames
from stagescope.papers.linear_icl.study import PRESETS
from stagescope.readings.published import published
from stagescope.readings.study import reproduction

figures = reproduction("linear_icl").figures
KNOWN = published("stagescope.papers.linear_icl")
Row = tuple[str, float, float, float]
"""What is compared, the page's number, ours, and how far apart they may be."""


def main() -> bool:
    rows = [*_forms(), *_losses(), *_drops(), *_ranked(), *_merged(), *_saddles(), *_competition(), *_figures()]
    print(f"{'what':<58} {'page':>12} {'ours':>12} {'difference':>11} {'allowed':>9}")
    for what, page, ours, room in rows:
        mark = "" if abs(ours - page) <= room else "   DOES NOT HOLD"
        print(f"{what:<58} {page:>12.6g} {ours:>12.6g} {ours - page:>11.2g} {room:>9.2g}{mark}")
    return all(abs(ours - page) <= room for _, page, ours, room in rows)


def _row(what: str, name: str, page: float, ours: float, *, relative: bool) -> Row:
    tolerance = KNOWN[name].tolerance
    assert tolerance is not None
    return what, page, ours, tolerance * (abs(page) if relative else 1.0)


def task_of(preset: str) -> RegressionTask:
    made: dict[str, Any] = {"eigenvalues": (0.4, 0.3, 0.2, 0.1), "context": 31, **PRESETS[preset]}
    return RegressionTask(eigenvalues=made["eigenvalues"], contexts=(made["context"],))


def drawn(seed: int, heads: int, dim: int, scale: float, rank: int | None = 1) -> dict[str, np.ndarray]:
    """A start of the independent implementation."""
    random = np.random.default_rng(seed)
    shapes = LinearAttention(dim=dim, heads=heads, rank=rank).shapes
    return {name: scale * random.normal(size=shape) for name, shape in shapes.items()}


def flow(task: RegressionTask, start: Params, rank: int | None = 1, until: float | None = None) -> LinearReading:
    model = LinearAttention(dim=task.dim, heads=len(start["v"]), rank=rank)
    end, record = flow_frames(task, model, start, until)
    law = LinearPopulation(model=model, process=task)
    return LinearReading(ss.evolve(law, start, ss.GradientFlow(), until=end, record=record, progress=False))


def _forms() -> Iterator[Row]:
    for preset, values in [*KNOWN["levels"].value.items(), ("eight", KNOWN["levels_eight"].value)]:
        name = "levels_eight" if preset == "eight" else "levels"
        for m, (page, ours) in enumerate(zip(values, forms.levels(task_of(preset)), strict=True)):
            yield _row(f"{preset}: l_{m}", name, page, float(ours), relative=False)
    ref = task_of("ref")
    for i, page in enumerate(KNOWN["plateau_map"].value):
        yield _row(f"ref: M_{i + 1}{i + 1}", "plateau_map", page, float(forms.final_map(ref)[i]), relative=False)
    for d, page in enumerate(KNOWN["scalar_half_steps"].value):
        ours = (forms.course(forms.HALF_U) - forms.course(0.02 / forms.head_value(ref, (d,)))) / forms.pace(ref, d)
        yield _row(f"ref: half-step of the scalar law, direction {d + 1}", "scalar_half_steps", page, float(ours), relative=True)
    for name, page in KNOWN["rank_rates_predicted"].value.items():
        held, opens = name.split()
        ours = forms.opening_rate(ref, [int(i) for i in held.split(",")], int(opens))
        yield _row(f"ref: rate of direction {int(opens) + 1} beside {held}", "rank_rates_predicted", page, ours, relative=True)


def _losses() -> Iterator[Row]:
    """The exact loss against 2e5 sampled sequences: within three standard errors."""
    for preset, rank in (("ref", 1), ("three", 2), ("white", None)):
        task = task_of(preset)
        model = LinearAttention(dim=task.dim, heads=3, rank=rank)
        params = model.init(1, 0.7)
        sample = draw_sequences(task, key(0, "validation", preset), 200_000)
        seen = np.einsum("si,ij,sj->s", sample["beta"], model.map(params), sample["query"])
        errors = (sample["answer"] - seen) ** 2
        room = 3 * float(errors.std()) / np.sqrt(len(errors))
        exact = LinearPopulation(model=model, process=task).value(params)
        yield f"{preset}, rank {rank}: exact loss, and sampled", float(errors.mean()), exact, room


def _drops() -> Iterator[Row]:
    heads = {"ref": 5, "flat": 6, "three": 4}
    for name, page in KNOWN["drops"].value.items():
        preset, seed, scale = name.split()
        task, start = task_of(preset), drawn(int(seed), heads[preset], task_of(preset).dim, float(scale))
        found = flow(task, start)
        said = cascade(task, SilentHead.all_of(start))
        for m, value in enumerate(page):
            ours = found.evidence.times[m]
            yield _row(f"{name}: drop {m + 1}", "drops", value, np.nan if ours is None else ours, relative=True)
            yield _row(f"{name}: drop {m + 1}, cascade", "cascade", KNOWN["cascade"].value[name][m], said[m].time, relative=True)
        held = found.law.model.conserved(found.curves.params)
        yield _row(f"{name}: drift of what is conserved", "conserved", 0.0, float(np.max(np.abs(held - held[0]))), relative=False)
    ref = task_of("ref")
    for scale in (0.1, 0.03, 0.01):
        first = flow(ref, drawn(0, 5, 4, scale)).evidence.times[0]
        assert first is not None
        ours = (first - forms.delay(ref, 0)) * scale
        yield _row(f"ref 0 {scale}: (d1 - delay) s", "scale_law", KNOWN["scale_law"].value, ours, relative=True)


def _ranked() -> Iterator[Row]:
    for name, page in KNOWN["rank_drops"].value.items():
        preset, heads, rank, scale = name.split()
        task = task_of(preset)
        start = drawn(0, int(heads), task.dim, float(scale), int(rank))
        found = flow(task, start, int(rank)).evidence
        for m, value in enumerate(page):
            ours = found.times[m]
            yield _row(f"{name}: drop {m + 1}", "rank_drops", value, np.nan if ours is None else ours, relative=True)
        fits = opening_fits(found)
        for i, (seen, _) in fits.items():
            known = KNOWN["rank_rates"].value.get(f"{name} {i + 1}")
            if known is not None:
                yield _row(f"{name}: rate of direction {i + 1}", "rank_rates", known, seen, relative=True)


def _merged() -> Iterator[Row]:
    for preset in ("ref", "three", "white", "flat"):
        task = task_of(preset)
        for heads, scale in ((1, 1e-3), (1, 1e-5), (8, 1e-3), (8, 1e-5)):
            found = flow(task, drawn(0, heads, task.dim, scale, None), None)
            seen, said = found.evidence.times[0], forms.merged_drop_time(task, found.run.at(0))
            assert seen is not None
            what = f"merged {preset}, {heads} heads, {scale:g}"
            yield _row(f"{what}: drop over prediction", "merged_ratio", 1.0, seen / said, relative=False)
            (rate,) = found.judge(_claims("LIN:merged-rate"))
            if isinstance(rate.measured, float) and isinstance(rate.predicted, float):
                yield _row(f"{what}: rate over r", "merged_rate", 1.0, rate.measured / rate.predicted, relative=False)
            held = found.law.model.conserved(found.curves.params)
            drift = float(np.max(np.abs(held - held[0]))) / max(1.0, float(np.max(np.square(found.curves.params["v"]))))
            yield _row(f"{what}: drift", "conserved", 0.0, drift, relative=False)
    white, v = task_of("white"), np.array([1e-3, -5e-4])
    found = flow(white, {"v": v, "U": v[:, None, None] * np.eye(4) / 2}, None)
    (row,) = found.judge(_claims("LIN:logistic"))
    yield _row("white: largest error of the logistic curve", "logistic_error", 0.0, float(row.measured or np.nan), relative=False)


def _claims(*tags: str) -> list[ss.Claim]:
    from stagescope.papers.linear_icl.claims import CLAIMS

    return [claim for claim in CLAIMS if claim.tag in tags]


def _saddles() -> Iterator[Row]:
    """The order and its constant at each saddle, the predicted escape, and the one saddle that has a rate."""
    for preset, heads, seed, scale in (("ref", 5, 0, 0.03), ("ref", 5, 1, 0.01), ("three", 4, 1, 0.01)):
        task = task_of(preset)
        found = flow(task, drawn(seed, heads, task.dim, scale))
        for rung in found.ladder:
            if rung.predicted_escape is None or rung.measured_escape is None:
                continue
            what = f"{preset} {seed} {scale}: rung at t={rung.t:.4g}"
            yield f"{what}, predicted escape", rung.measured_escape, rung.predicted_escape, 0.02 * rung.measured_escape
            yield f"{what}, linear rates", 0, len(rung.rates), 0
            if rung.coefficient is not None:
                constants = KNOWN["order_constants"].value[preset]
                page = min(constants, key=lambda c: abs(np.log(c / rung.coefficient)))
                yield _row(f"{what}, c", "order_constants", page, rung.coefficient, relative=True)
    ref = task_of("ref")
    size = forms.head_value(ref, (1,))
    point = {"v": np.array([size, 0.0]), "K": np.zeros((2, 1, 4)), "Q": np.zeros((2, 1, 4))}
    point["K"][0, 0, 1] = point["Q"][0, 0, 1] = size
    law = LinearPopulation(model=LinearAttention(dim=4, heads=2), process=ref)
    rate = float(np.max(np.real(ss.spectrum(law, point, 1).rates)))
    yield _row("ref: rate at the saddle of direction 2 alone", "skipped_rate", KNOWN["skipped_rate"].value, rate, relative=True)


def _competition() -> Iterator[Row]:
    ref, scale = task_of("ref"), 0.01
    for heads, page in KNOWN["competition"].value.items():
        least = [
            min(blow_up_time(head, ref.spectrum) for head in SilentHead.all_of(drawn(seed, int(heads), 4, scale)))
            for seed in range(1000)
        ]
        ours = float(np.median(least)) * scale * ref.spectrum[0] ** 2
        yield _row(f"ref, {heads} heads: median lambda_1^2 s T_1", "competition", page, ours, relative=True)


def _figures() -> Iterator[Row]:
    found = figures.abrupt(Progress())
    half = found["over_starts"][1]
    yield _row("figure merged: step of half the drop", "figure_merged_step", found["published"]["half"], half, relative=True)
    for step, page in found["published"]["at"].items():
        yield _row(f"figure merged: loss at step {step}", "figure_merged_levels", page, found["at"][step], relative=False)
    spread = figures.separate(Progress())["over_starts"]
    for m, (page, (low, middle, high)) in enumerate(zip(KNOWN["figure_separate_ratios"].value, spread, strict=True)):
        room = max(high - middle, 0.0) if page > middle else max(middle - low, 0.0)
        yield f"figure separate: drop {m + 1} over the first, 10-90 %", page, middle, room
