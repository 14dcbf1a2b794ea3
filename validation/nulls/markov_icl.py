"""Settings on which the claims of in-context chains are tried, and nulls, on which they are false."""

from dataclasses import replace
from typing import Any

import numpy as np

from stagescope.claims.inputs import Inputs
from stagescope.core.params import key
from stagescope.papers.markov_icl.study import STUDY
from stagescope.runs.run import Arrays, Run

Random = np.random.Generator
HURRY = 30.0
"""The largest ratio of the two priors is about 14 (at rho = .01)."""
SLOWER = 3.0
"""How much slower a stretched clock runs: beyond every tolerance of a time."""


def _run(seed: int, **options: Any) -> Run:
    return STUDY.run(STUDY.configured(None, **options), seed=seed, progress=False)


def _between(random: Random, low: float, high: float) -> float:
    """Log-uniform, to three digits."""
    return float(f"{np.exp(random.uniform(np.log(low), np.log(high))):.3g}")


def _whole(random: Random, low: int, high: int) -> int:
    return round(_between(random, low, high))


def _prior(random: Random) -> dict[str, Any]:
    """Two tokens mostly, three at times; concentration about one."""
    tokens = 2 if random.random() < 0.75 else 3
    more = {"draws": 300, "chain_seed": int(random.integers(1000))} if tokens > 2 else {"nodes": 20}
    return {"tokens": tokens, "prior": _between(random, 0.6, 2.0), **more}


def _slow(random: Random) -> dict[str, Any]:
    """R with slow lags: the regime of the plateau law, mostly."""
    return {**_prior(random), "lags": _whole(random, 25, 160), "ratio": _between(random, 0.003, 0.2)}


def _reduced(seed: int) -> Run:
    return _run(seed, **_slow(key(seed, "reduced")))


def _noisy(seed: int) -> Run:
    random = key(seed, "noisy")
    return _run(seed, **_slow(random), init_scale=_between(random, 1e-4, 1.0))


def _fast(seed: int) -> Run:
    """R with ratios up to ten, where layer 2 is still first."""
    random = key(seed, "fast")
    return _run(seed, **_prior(random), lags=_whole(random, 25, 100), ratio=_between(random, 0.2, 10))


def _doubly(seed: int) -> Run:
    random = key(seed, "doubly")
    return _run(seed, doubly_stochastic=True, lags=_whole(random, 20, 120), ratio=_between(random, 0.05, 10))


def _window(random: Random) -> dict[str, Any]:
    shape = {"tokens": 2, "lags": int(random.integers(4, 10)), "nodes": 10}
    if random.random() < 0.25:
        shape = {"tokens": 3, "lags": int(random.integers(3, 6)), "draws": 100, "chain_seed": int(random.integers(1000))}
    return {"model": "S", **shape, "prior": _between(random, 0.7, 2.0), "ratio": _between(random, 1, 10)}


def _softmax(seed: int) -> Run:
    return _run(seed, **_window(key(seed, "softmax")))


def _finite(seed: int) -> Run:
    random = key(seed, "finite")
    tokens, length = (2, int(random.integers(6, 10))) if random.random() < 0.7 else (3, 6)
    chosen = {"prior": _between(random, 0.6, 1.6), "ratio": _between(random, 0.2, 1.0)}
    return _run(seed, model="F", tokens=tokens, length=length, **chosen, until=_ends(chosen["ratio"]))


def _ends(ratio: float) -> float:
    return float(f"{1500 / ratio:.3g}")


def _trigram(seed: int) -> Run:
    random = key(seed, "trigram")
    return _run(seed, model="S3", lags=4, nodes=4, prior=_between(random, 0.6, 1.3), ratio=_between(random, 0.7, 4), until=3000.0)


def _shown(run: Run, **changed: Any) -> Run:
    """The run with arrays or a spec of another; its reading is a new one."""
    return replace(run, **changed, memo={})


def _stretched(run: Run) -> Run:
    return _shown(run, series=Arrays.of({**run.series, "t": SLOWER * run.t}))


def _misstated(run: Run, concentration: float) -> Run:
    """The spec and the options say another prior than the one the run was made under."""
    spec, process = run.spec, {**run.spec["field"]["process"], "concentration": concentration}
    config = {**(run.config or {}), "prior": concentration}
    return _shown(run, spec={**spec, "field": {**spec["field"], "process": process}}, config=config)


def _other_prior(seed: int) -> Run:
    random = key(seed, "null", "other prior")
    options = {**_slow(random), "tokens": 2, "nodes": 20, "lags": _whole(random, 30, 60), "ratio": 0.01}
    for name in ("draws", "chain_seed"):
        options.pop(name, None)
    return _misstated(_run(seed, **options), options["prior"] * _between(random, 1.15, 1.5))


def _other_prior_softmax(seed: int) -> Run:
    random = key(seed, "null", "other prior", "S")
    options = _window(random)
    return _misstated(_run(seed, **options), options["prior"] * _between(random, 1.15, 1.5))


def _backwards(seed: int) -> Run:
    """All frames but the first and the last in the opposite order: from uniform to bigram, and back, and again."""
    random = key(seed, "null", "backwards")
    run = _run(seed, **{**_slow(random), "lags": _whole(random, 25, 60)})
    order = np.concatenate([[0], np.arange(run.frames - 2, 0, -1), [run.frames - 1]])
    turned = Arrays.of({name: np.asarray(run.params[name])[order] for name in run.params})
    series = Arrays.of({**run.series, "loss": np.asarray(run.series["loss"])[order]})
    return _shown(run, params=turned, series=series)


def _faster(seed: int) -> Run:
    random = key(seed, "null", "faster")
    return _run(seed, **_prior(random), lags=_whole(random, 10, 80), ratio=_between(random, 200, 2000))


def _exchanged(seed: int) -> Run:
    run = _trigram(seed)
    return _shown(run, params=Arrays.of({**run.params, "v": np.asarray(run.params["v"])[:, ::-1]}))


def _slow_clock(seed: int) -> Run:
    random = key(seed, "null", "slow clock")
    return _stretched(_run(seed, **{**_slow(random), "ratio": _between(random, 0.003, 0.05)}))


def _slow_two_step(seed: int) -> Run:
    random = key(seed, "null", "slow two-step")
    return _stretched(_run(seed, doubly_stochastic=True, lags=_whole(random, 20, 120), ratio=_between(random, 1, 10)))


def _hurried(seed: int) -> Run:
    random = key(seed, "null", "hurried")
    run = _run(seed, **{**_slow(random), "tokens": 2, "nodes": 20, "draws": 1500, "chain_seed": 0})
    return _shown(run, series=Arrays.of({**run.series, "t": run.t / HURRY}))


def _adam_options(random: Random) -> dict[str, Any]:
    chosen = {"lags": _whole(random, 20, 100), "ratio": _between(random, 0.5, 2), "lr": _between(random, 0.01, 0.04)}
    return {**chosen, "optimizer": "adam", "steps": round(12 / chosen["lr"])}


def _adam(seed: int) -> Run:
    return _run(seed, **_adam_options(key(seed, "adam")))


def _other_step(seed: int) -> Run:
    """Made at a third of the step size that spec and options say."""
    options = _adam_options(key(seed, "null", "other step"))
    run = _run(seed, **{**options, "lr": options["lr"] / 3, "steps": 3 * options["steps"]})
    dynamics = {**run.spec["dynamics"], "lr": options["lr"]}
    return _shown(run, spec={**run.spec, "dynamics": dynamics}, config={**(run.config or {}), "lr": options["lr"]})


def _flat(seed: int) -> Run:
    """Layer 1 as it was at the start, in every frame."""
    run = _softmax(seed)
    v = np.asarray(run.params["v"])
    return _shown(run, params=Arrays.of({**run.params, "v": np.broadcast_to(v[:1], v.shape).copy()}))


HURRIED = Inputs("hurried clock", "all times of R are shown thirty times as short: earlier than under any prior", _hurried)
OTHER_STEP = Inputs(
    "another step size", "made at a third of the step size that the spec says: later than its fellows", _other_step
)
FLAT_LAGS = Inputs("flat lags", "layer 1 of S is shown as it was at the start: layer 2 finds no match", _flat)
BACKWARDS = Inputs("backwards", "frames between the first and the last are shown in the opposite order", _backwards)
OTHER_PRIOR = Inputs("another prior", "the spec says another concentration than that of the run", _other_prior)
OTHER_PRIOR_S = Inputs("another prior of windows", "the same for S", _other_prior_softmax)
FAST_LAGS = Inputs("faster lags", "ratios of 200 to 2000: attention moves before the match has grown", _faster)
EXCHANGED_HEADS = Inputs("exchanged heads", "the two heads of S3 are shown exchanged", _exchanged)
STRETCHED = Inputs("slow clock", "all times of R are shown three times as long", _slow_clock)
STRETCHED_TWO_STEP = Inputs("slow two-step clock", "the same under the doubly stochastic prior", _slow_two_step)
INPUTS: dict[str, tuple[Inputs, ...]] = {
    "markov-icl": (
        Inputs("slow lags", "R with 25 to 160 lags, ratios .003 to .2, two or three tokens", _reduced),
        Inputs("noisy starts", "the same with noise of 1e-4 to 1 on the scores of the lags", _noisy),
        Inputs("fast lags", "R with ratios .2 to 10", _fast),
        Inputs("doubly stochastic", "R under the doubly stochastic prior, ratios .05 to 10", _doubly),
        Inputs("windows", "S with 3 to 9 lags, ratios 1 to 10", _softmax),
        Inputs("short sequences", "F on all sequences of 6 to 9 tokens, ratios .2 to 1", _finite),
        Inputs("order 2", "S3 with 4 lags", _trigram),
        Inputs("adam", "R with Adam, 20 to 100 lags", _adam),
    )
}
NULLS: dict[str, dict[str, tuple[Inputs, ...]]] = {
    "markov-icl": {
        "MIC:order": (BACKWARDS,),
        "MIC:levels": (OTHER_PRIOR,),
        "MIC:layers": (FAST_LAGS,),
        "MIC:trigram": (EXCHANGED_HEADS,),
        "MIC:induction": (FLAT_LAGS,),
        "MIC:lag-gradient": (OTHER_PRIOR, OTHER_PRIOR_S),
        "MIC:near-stationary": (OTHER_PRIOR_S,),
        "MIC:plateau-law": (STRETCHED,),
        "MIC:two-step": (STRETCHED_TWO_STEP,),
        "MIC:start-noise": (STRETCHED,),
        "MIC:doubly-stochastic": (HURRIED,),
        "MIC:adam": (OTHER_STEP,),
    }
}
