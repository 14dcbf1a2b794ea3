"""Runs on which the claims about linear attention are tried: settings the paper is about, and nulls, drawn by seed."""

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from stagescope.claims.inputs import Inputs
from stagescope.core.params import Params, key
from stagescope.flow.evolve import evolve
from stagescope.flow.gradient_flow import GradientFlow
from stagescope.papers.linear_icl.evidence import Evidence
from stagescope.papers.linear_icl.loss import LinearPopulation
from stagescope.papers.linear_icl.model import LinearAttention
from stagescope.papers.linear_icl.process import RegressionTask
from stagescope.papers.linear_icl.setup import flow_frames
from stagescope.readings.rebuild import rebuilt
from stagescope.runs.run import Run

Random = np.random.Generator
STRETCH = 1.5
"""How many times as long as it was a stretched clock says."""


def _between(random: Random, low: float, high: float) -> float:
    """Equally likely in every decade."""
    return float(np.exp(random.uniform(np.log(low), np.log(high))))


def _task(random: Random, most: int = 6, least: int = 2, length: int | None = None) -> RegressionTask:
    """D directions, each eigenvalue .35 to .75 of the one before, contexts of 5 to 200."""
    dim = int(random.integers(least, most + 1))
    ratios = np.concatenate([[_between(random, 0.2, 1.0)], random.uniform(0.35, 0.75, size=dim - 1)])
    return RegressionTask(eigenvalues=tuple(np.cumprod(ratios).tolist()), contexts=(length or int(_between(random, 5, 200)),))


def _flow(
    task: RegressionTask,
    heads: int,
    rank: int | None,
    scale: float,
    seed: int,
    *,
    longer: float = 1.0,
    start: Params | None = None,
) -> Run:
    """A flow to the end that the study would choose, or a longer one, recorded so densely that it may be read as it is."""
    model = LinearAttention(dim=task.dim, heads=heads, rank=rank)
    begin = model.init(seed, scale) if start is None else start
    until, _ = flow_frames(task, model, begin)
    until, record = flow_frames(task, model, begin, longer * until, frames=1200)
    law = LinearPopulation(model=model, process=task)
    return evolve(law, begin, GradientFlow(rtol=1e-11), until=until, record=record, seed=seed, progress=False)


def _separate_options(random: Random, **changes: Any) -> dict[str, Any]:
    task = _task(random, **changes)
    return {"task": task, "heads": task.dim + int(random.integers(0, 5)), "rank": 1, "scale": _between(random, 1e-3, 3e-2)}


def _separate(seed: int) -> Run:
    return _flow(**_separate_options(key(seed, "inputs", "separate")), seed=seed)


def _ranked_options(random: Random) -> dict[str, Any]:
    task = _task(random, most=8, least=4)
    return {
        "task": task,
        "heads": int(random.integers(3, 7)),
        "rank": int(random.integers(2, 5)),
        "scale": _between(random, 1e-3, 1e-2),
    }


def _ranked(seed: int) -> Run:
    return _flow(**_ranked_options(key(seed, "inputs", "ranked")), seed=seed)


def _few_options(random: Random, **changes: Any) -> dict[str, Any]:
    task = _task(random, **{"least": 3, **changes})
    return {
        "task": task,
        "heads": int(random.integers(1, task.dim)),
        "rank": 1,
        "scale": _between(random, 1e-3, 3e-2),
        "longer": 3.0,
    }


def _few(seed: int) -> Run:
    return _flow(**_few_options(key(seed, "inputs", "few")), seed=seed)


def _merged_options(random: Random) -> dict[str, Any]:
    return {"task": _task(random), "heads": int(random.integers(1, 9)), "rank": None, "scale": _between(random, 1e-6, 1e-2)}


def _merged(seed: int) -> Run:
    return _flow(**_merged_options(key(seed, "inputs", "merged")), seed=seed)


def _white(random: Random, seed: int) -> Run:
    """Equal eigenvalues, merged heads, a start that is aligned and balanced: U_h = v_h I / sqrt(D)."""
    dim, heads = int(random.integers(2, 7)), int(random.integers(1, 9))
    task = RegressionTask(eigenvalues=(_between(random, 0.2, 1.0),) * dim, contexts=(int(_between(random, 5, 200)),))
    v = _between(random, 1e-5, 1e-2) * random.normal(size=heads)
    start = {"v": v, "U": v[:, None, None] * np.eye(dim) / np.sqrt(dim)}
    return _flow(task, heads, None, 0.0, seed, start=start)


def _white_input(seed: int) -> Run:
    return _white(key(seed, "inputs", "white"), seed)


def _stretched(run: Run) -> Run:
    return replace(run, series={**run.series, "t": STRETCH * run.t}, memo={})


def _null_stretched(seed: int) -> Run:
    return _stretched(_flow(**_separate_options(key(seed, "null", "stretched")), seed=seed))


def _null_small(seed: int) -> Run:
    """From scales 1e-3 to .01, for what is claimed of small starts only."""
    random = key(seed, "null", "small")
    return _stretched(_flow(**{**_separate_options(random), "scale": _between(random, 1e-3, 1e-2)}, seed=seed))


def _null_merged(seed: int) -> Run:
    return _stretched(_flow(**_merged_options(key(seed, "null", "merged")), seed=seed))


def _null_white(seed: int) -> Run:
    return _stretched(_white(key(seed, "null", "white"), seed))


def _null_ranked(seed: int) -> Run:
    return _stretched(_flow(**_ranked_options(key(seed, "null", "ranked")), seed=seed))


def _other_contexts(purpose: str, seed: int) -> Run:
    """Made on contexts of 20 to 200 pairs, while the spec says 2 to 4."""
    random = key(seed, "null", purpose)
    said = int(random.integers(2, 5))
    made = (_few_options if purpose == "few" else _separate_options)(random, length=int(_between(random, 20, 200)))
    run = _flow(**made, seed=seed)
    field = {**run.spec["field"], "process": {**run.spec["field"]["process"], "contexts": [said]}}
    return replace(run, spec={**run.spec, "field": field}, memo={})


def _reversed(seed: int) -> Run:
    """Directions in the opposite order, in keys and queries of every frame."""
    run = _flow(**_separate_options(key(seed, "null", "reversed")), seed=seed)
    turned = {name: block[..., ::-1] if name in ("K", "Q") else block for name, block in run.params.items()}
    return replace(run, params=turned, memo={})


def _other_heads(seed: int) -> Run:
    """From the second frame on every head has the parameters of the next one."""
    made = _separate_options(key(seed, "null", "heads"))
    run = _flow(**{**made, "heads": max(2, made["heads"])}, seed=seed)
    moved = {name: np.concatenate([block[:1], np.roll(block[1:], 1, axis=1)]) for name, block in run.params.items()}
    return replace(run, params=moved, memo={})


def _paused(seed: int) -> Run:
    """In the middle of its drop the clock of a merged run goes on while nothing moves."""
    run = _flow(**_merged_options(key(seed, "null", "paused")), seed=seed)
    loss = np.asarray(run.series["loss"])
    middle = int(np.argmax(loss < (loss[0] + loss[-1]) / 2))
    later = np.arange(len(loss)) >= middle
    return replace(run, series={**run.series, "t": run.t + later * 0.1 * run.t[-1]}, memo={})


def _warped(seed: int) -> Run:
    """Plateaus at multiples of the rank are made half as long as the longest inside the head before."""
    made = _ranked_options(key(seed, "null", "warped"))
    run = _flow(**made, seed=seed)
    law, rank = rebuilt(run.spec["field"]), made["rank"]
    times = Evidence(run, run, law).times
    known = [when for when in times if when is not None]
    gaps, new = np.diff([0.0, *known, float(run.t[-1])]), [float(known[0])] if known else []
    for m in range(1, len(gaps)):
        inside = [gap for j, gap in enumerate(gaps[:m], start=1) if m - rank < j - 1 and j > 1]
        new.append(0.5 * max(inside) if m % rank == 0 and m < len(known) and inside else float(gaps[m]))
    knots = np.concatenate([[0.0], np.cumsum(gaps)])
    warped = np.interp(run.t, knots, np.concatenate([[0.0], np.cumsum(new)])) if known else run.t
    return replace(run, series={**run.series, "t": warped}, memo={})


CLOCK = f"the clock says {STRETCH:g} times the time that has passed"
STRETCHED = Inputs("stretched clock", f"separate heads; {CLOCK}: neither times nor rates fit", _null_stretched)
SMALL_STRETCHED = Inputs("small start, stretched clock", f"separate heads from 1e-3 to .01; {CLOCK}", _null_small)
MERGED_STRETCHED = Inputs("merged, stretched clock", f"merged heads; {CLOCK}", _null_merged)
WHITE_STRETCHED = Inputs("white, stretched clock", f"white inputs; {CLOCK}", _null_white)
RANK_STRETCHED = Inputs("higher rank, stretched clock", f"heads of higher rank; {CLOCK}", _null_ranked)
RANK_WARPED = Inputs(
    "higher rank, warped clock", "plateaus at multiples of the rank are shortened to half of those before", _warped
)
OTHER_CONTEXTS = Inputs(
    "other contexts",
    "made on contexts of 20 to 200 pairs while the spec says 2 to 4: levels and maps are others",
    partial(_other_contexts, "separate"),
)
FEW_OTHER_CONTEXTS = Inputs(
    "few heads, other contexts", "the same with fewer heads than directions", partial(_other_contexts, "few")
)
REVERSED = Inputs("reversed directions", "keys and queries with the directions in opposite order", _reversed)
OTHER_HEADS = Inputs(
    "other heads", "after the start every head has the parameters of the next one: another head wins", _other_heads
)
PAUSED = Inputs("paused clock", "the clock of merged heads goes on for a tenth of the run in the middle of the drop", _paused)
SPECTRA = "2 to 6 directions, each eigenvalue .35 to .75 of the one before, contexts of 5 to 200"
INPUTS: dict[str, tuple[Inputs, ...]] = {
    "linear-icl": (
        Inputs(
            "separate heads", f"rank one, {SPECTRA}, as many heads as directions or up to 4 more, scales 1e-3 to .03", _separate
        ),
        Inputs("heads of higher rank", "3 to 6 heads of rank 2 to 4 on 4 to 8 directions, scales 1e-3 to .01", _ranked),
        Inputs("few heads", f"fewer heads of rank one than directions, {SPECTRA}, three times as long", _few),
        Inputs("merged heads", f"1 to 8 heads, {SPECTRA}, scales 1e-6 to .01", _merged),
        Inputs("white inputs", "equal eigenvalues, merged heads, an aligned and balanced start", _white_input),
    )
}
NULLS: dict[str, dict[str, tuple[Inputs, ...]]] = {
    "linear-icl": {
        "LIN:levels": (OTHER_CONTEXTS,),
        "LIN:order": (REVERSED,),
        "LIN:pcr": (OTHER_CONTEXTS, REVERSED),
        "LIN:few-heads": (FEW_OTHER_CONTEXTS,),
        "LIN:merged": (PAUSED,),
        "LIN:merged-drop": (MERGED_STRETCHED,),
        "LIN:merged-rate": (MERGED_STRETCHED,),
        "LIN:logistic": (WHITE_STRETCHED,),
        "LIN:first-drop": (STRETCHED,),
        "LIN:blow-up": (OTHER_HEADS,),
        "LIN:scalar": (SMALL_STRETCHED, OTHER_HEADS),
        "LIN:cascade": (STRETCHED,),
        "LIN:scale-law": (STRETCHED, MERGED_STRETCHED),
        "LIN:rank": (RANK_STRETCHED,),
        "LIN:rank-plateaus": (RANK_WARPED,),
    }
}
