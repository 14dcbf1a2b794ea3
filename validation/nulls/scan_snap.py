"""Runs on which the claims of scan and snap are tried: settings the paper is about, and nulls, drawn by seed."""

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from stagescope.claims.inputs import Inputs
from stagescope.core.params import key
from stagescope.flow.descent import GD, Descent
from stagescope.flow.evolve import evolve
from stagescope.flow.gradient_flow import GradientFlow
from stagescope.flow.record import Every, LogSpaced
from stagescope.papers.scan_snap.forms import t0_prime
from stagescope.papers.scan_snap.loss import PairwisePinv, PairwisePopulation, PairwiseResidual
from stagescope.papers.scan_snap.model import PairwiseAttention
from stagescope.papers.scan_snap.observables import law_of
from stagescope.papers.scan_snap.process import SequenceClass, SequenceClasses
from stagescope.readings.rebuild import replay
from stagescope.readings.registry import run_study
from stagescope.runs.run import Run

Random = np.random.Generator


def _between(random: Random, low: float, high: float) -> float:
    """Equally likely in every decade."""
    return float(np.exp(random.uniform(np.log(low), np.log(high))))


def _shape(random: Random) -> dict[str, Any]:
    """Classes of the generator: 2 to 8 with a query each, 1 to 8 common tokens (one in half of the draws), 2 to 12 distinct."""
    last, unique = int(random.integers(2, 9)), int(random.integers(2, 13))
    common = 1 if random.random() < 0.5 else int(random.integers(2, 9))
    needed = common + last * unique + 2 * last
    weights = {"common_p": _between(random, 0.2, 2), "umin": float(random.uniform(0.05, 0.5))}
    vocab = int(needed * _between(random, 1, 30))
    return {"num_last": last, "num_common": common, "num_unique": unique, "vocab": vocab, **weights}


def _flow(random: Random, decoder: str, **changes: Any) -> dict[str, Any]:
    """A flow at eta_Y/eta_Z from .5 to 100, to 10 to 10^5 times K ln M / eta_Y: the snap takes decades of time."""
    made = _shape(random)
    rate_z = _between(random, 0.3, 3)
    rate_y = rate_z * _between(random, 0.5, 100)
    until = _between(random, 10, 1e5) * t0_prime(made["vocab"], made["num_last"], rate_y)
    return {**made, "rate_y": rate_y, "rate_z": rate_z, "until": until, "decoder": decoder, **changes}


def _run(**options: Any) -> Run:
    return run_study("scan-snap", progress=False, **options)


def _flows(decoder: str, seed: int) -> Run:
    return _run(**_flow(key(seed, "inputs", decoder), decoder), seed=seed)


def _theorem_options(random: Random) -> dict[str, Any]:
    """What theorems 1, 3 and 4 assume: modified decoder, one common token, a decoder 10 to 1000 times as fast as attention."""
    made = _flow(random, "pinv", num_common=1)
    made |= {"rate_y": made["rate_z"] * _between(random, 10, 1000), "vocab": max(100, made["vocab"])}
    end = t0_prime(made["vocab"], made["num_last"], made["rate_y"])
    return {**made, "until": _between(random, 2, 30) * end}


def _theorems(seed: int) -> Run:
    return _run(**_theorem_options(key(seed, "inputs", "theorems")), seed=seed)


def _tables(seed: int) -> Run:
    """Flow on classes with random laws, commons in some of the classes only, by either decoder."""
    random = key(seed, "inputs", "tables")
    count, commons, unique = int(random.integers(2, 7)), int(random.integers(1, 6)), int(random.integers(2, 8))
    queries = commons + count * unique
    classes = []
    for n in range(count):
        shared = [token for token in range(commons) if token == 0 or random.random() < 0.7]
        tokens = (*shared, *range(commons + n * unique, commons + (n + 1) * unique))
        law = random.dirichlet(np.ones(len(tokens))) + 0.02
        law = tuple((law / law.sum()).tolist())
        classes.append(SequenceClass(query=queries + n, target=queries + count + n, tokens=tokens, probabilities=law))
    process = SequenceClasses(vocab=int((queries + 2 * count) * _between(random, 1, 30)), classes=tuple(classes))
    model = PairwiseAttention.merged(process)
    kind = PairwisePinv if random.random() < 0.5 else PairwisePopulation
    rate_y = _between(random, 0.5, 300)
    until = _between(random, 10, 1e5) * t0_prime(process.vocab, count, rate_y)
    flow = GradientFlow(rates={"Y": rate_y, "Z": 1.0})
    return evolve(kind(model=model, process=process), model.init(), flow, until=until, seed=seed, progress=False)


def _steps(seed: int) -> Run:
    """100 to 300 steps in the long-sequence limit, or on batches, as in figures 4 and 6."""
    random = key(seed, "inputs", "steps")
    sampled = random.random() < 0.5
    options = {**_shape(random), "vocab": None, "rate_y": _between(random, 1, 10), "lr": _between(random, 0.5, 3)}
    options |= {"optimizer": "heavy-ball", "steps": int(random.integers(100, 301))}
    if sampled:
        options |= {"length": int(_between(random, 32, 512)), "batch": int(_between(random, 32, 256))}
    return _run(**options, seed=seed)


def _large_steps(seed: int) -> Run:
    """100 to 300 gradient steps in the long-sequence limit, with strong common tokens so that attention moves."""
    random = key(seed, "inputs", "large steps")
    made = {**_shape(random), "num_common": int(random.integers(2, 9)), "common_p": _between(random, 0.7, 2)}
    made |= {"vocab": None, "rate_y": _between(random, 1, 10), "lr": _between(random, 0.5, 5)}
    made |= {"optimizer": str(random.choice(["gd", "heavy-ball"])), "steps": int(random.integers(100, 301))}
    return _run(**made, seed=seed)


def _process(laws: list[tuple[int, dict[int, float]]], tokens: int, vocab: int) -> SequenceClasses:
    """Classes from the number of their query and P(l|n) each; queries and targets are numbered after the tokens."""
    queries = 1 + max(query for query, _ in laws)
    classes = tuple(
        SequenceClass(query=tokens + query, target=tokens + queries + n, tokens=tuple(law), probabilities=tuple(law.values()))
        for n, (query, law) in enumerate(laws)
    )
    return SequenceClasses(vocab=max(vocab, tokens + queries + len(laws)), classes=classes)


def _evolved(law: Any, rate_y: float, until: float, seed: int, start: float = 0.0, **record: Any) -> Run:
    """The flow of a law at eta_Z = 1, scores normal at the start with a standard deviation."""
    params = law.model.init()
    if start:
        params["Z"] = start * key(seed, "start").normal(size=params["Z"].shape)
    return evolve(law, params, GradientFlow(rates={"Y": rate_y, "Z": 1.0}), until=until, seed=seed, progress=False, **record)


def _one_query(seed: int) -> Run:
    """Corollary 2: one query for all classes, equal up to the names of their distinct tokens, common tokens of unequal P."""
    random = key(seed, "inputs", "one query")
    count, commons, unique = int(random.integers(2, 7)), int(random.integers(1, 6)), int(random.integers(2, 8))
    law = random.dirichlet(np.ones(commons + unique)) + 0.02
    law = (law / law.sum()).tolist()
    laws = [
        (0, dict(zip([*range(commons), *range(commons + n * unique, commons + (n + 1) * unique)], law, strict=True)))
        for n in range(count)
    ]
    process = _process(laws, commons + count * unique, int(_between(random, 100, 3000)))
    kind = PairwisePinv if random.random() < 0.7 else PairwisePopulation
    rate_y = _between(random, 1, 1000)
    until = _between(random, 3, 300) * t0_prime(process.vocab, count, rate_y)
    return _evolved(kind(model=PairwiseAttention.merged(process), process=process), rate_y, until, seed)


def _residual_law(random: Random) -> tuple[PairwiseResidual, float, float]:
    """Two queries with two classes each: a token common across queries only, one common to a query's classes, one to all."""
    p, q, r = (float(random.uniform(0.05, 0.3)) for _ in range(3))
    own = [1 - p - q - r, 1 - q - r, 1 - p - r, 1 - r]
    shared = [{0: p, 1: q, 2: r}, {1: q, 2: r}, {0: p, 2: r}, {2: r}]
    laws = [(n // 2, {**law, 3 + n: rest}) for n, (law, rest) in enumerate(zip(shared, own, strict=True))]
    process = _process(laws, 7, int(_between(random, 50, 1000)))
    rate_y = _between(random, 0.5, 100)
    until = _between(random, 2, 30) * t0_prime(process.vocab, 4, rate_y)
    model = PairwiseResidual.widened(PairwiseAttention.merged(process))
    return PairwiseResidual(model=model, process=process), rate_y, until


def _residual(seed: int) -> Run:
    return _evolved(*_residual_law(key(seed, "inputs", "residual")), seed)


def _absent(seed: int) -> Run:
    """The spec says that there is a residual connection; the parameters moved without one."""
    law, rate_y, until = _residual_law(key(seed, "null", "absent"))
    without = _evolved(PairwisePopulation(model=law.model, process=law.process), rate_y, until, seed)
    return replace(_evolved(law, rate_y, until, seed), params=without.params, series=without.series, memo={})


def _heads_options(random: Random) -> dict[str, Any]:
    """Two to four heads on the generator's classes, started apart, to 10 to 100 t0'."""
    made: dict[str, Any] = {"num_last": int(random.integers(2, 5)), "num_unique": int(random.integers(5, 11))}
    made |= {"num_common": int(random.integers(1, 6)), "umin": float(random.uniform(0.2, 1)), "heads": int(random.integers(2, 5))}
    made |= {
        "start_scores": _between(random, 0.1, 0.7),
        "rate_y": _between(random, 0.5, 5),
        "vocab": int(_between(random, 60, 600)),
    }
    made["vocab"] = max(made["vocab"], 6 + made["num_last"] * 12)
    return {**made, "until": _between(random, 10, 100) * t0_prime(made["vocab"], made["num_last"], made["rate_y"]), "frames": 100}


def _heads(seed: int) -> Run:
    return _run(**_heads_options(key(seed, "inputs", "heads")), seed=seed)


def _exchanged(seed: int) -> Run:
    """In the course of the run every head takes over the scores of the next one."""
    options = {**_heads_options(key(seed, "null", "exchanged")), "start_scores": 0.5}
    run = _run(**options, seed=seed)
    z, gone = run.params["Z"], (run.t / run.t[-1])[:, None, None]
    return _with(run, (1 - gone) * z + gone * np.roll(z, options["num_last"], axis=1))


def _single_class(seed: int) -> Run:
    """Figure 8: gradient steps of one class with attention at rest."""
    random = key(seed, "inputs", "single class")
    made = {"num_last": 1, "num_common": 0, "num_unique": 1, "rate_z": 0.0, "optimizer": "gd", "record": "uniform"}
    vocab, rate_y = int(_between(random, 20, 3000)), _between(random, 0.05, 5)
    steps = int(min(3000, _between(random, 2, 10) * t0_prime(vocab, 1, rate_y) + 10))
    return _run(**made, vocab=vocab, rate_y=rate_y, steps=steps, frames=steps + 1, seed=seed)


def _stretched_steps(seed: int) -> Run:
    run = _single_class(seed)
    return replace(run, series={**run.series, "t": 3 * run.t}, memo={})


def _started_options(random: Random, **changes: Any) -> dict[str, Any]:
    """A flow whose scores start at random, with equally frequent distinct tokens in half of the draws."""
    made = {**_flow(random, str(random.choice(["gradient", "pinv"]))), "start_scores": _between(random, 0.03, 0.5)}
    made["num_unique"] = max(4, made["num_unique"])
    made["vocab"] += made["num_last"] * 4
    end = t0_prime(made["vocab"], made["num_last"], made["rate_y"])
    equal = {"umin": 1.0, "umax": 1.0} if random.random() < 0.5 else {}
    return {**made, **equal, "until": _between(random, 1, 100) * end, **changes}


def _started(seed: int) -> Run:
    return _run(**_started_options(key(seed, "inputs", "started")), seed=seed)


def _equal(seed: int) -> Run:
    return _run(**_started_options(key(seed, "inputs", "equal"), umin=1.0, umax=1.0), seed=seed)


def _reshuffled(seed: int) -> Run:
    """Growth of the distinct tokens of a class given to others of them: the one ahead grows no more than another."""
    random = key(seed, "null", "reshuffled")
    run = _run(**_started_options(random, umin=1.0, umax=1.0), frames=3000, seed=seed)
    z = np.array(run.params["Z"])
    for row, own, _ in _distinct(run):
        z[:, row, own] = z[0, row, own] + (z - z[0])[:, row, random.permutation(own)]
    return _with(run, z)


def _halved_start(seed: int) -> Run:
    """The first frame shows half of the scores at which the run started."""
    run = _run(**_started_options(key(seed, "null", "halved start")), frames=3000, seed=seed)
    z = np.array(run.params["Z"])
    z[0] /= 2
    return _with(run, z)


def _turned_back(seed: int) -> Run:
    """Scores of distinct tokens are multiplied by 1.5 - t/T: late in the run they fall."""
    run = _theorem_flow(key(seed, "null", "turned back"), seed)
    z = np.array(run.params["Z"])
    for row, own, _ in _distinct(run):
        z[:, row, own] *= (1.5 - run.t / run.t[-1])[:, None]
    return _with(run, z)


def _bent(seed: int) -> Run:
    """The clock shows the power 2/3 of the time that has passed, so every power law in time is half as steep again."""
    random = key(seed, "null", "bent")
    made = _theorem_options(random)
    made["until"] = _between(random, 100, 3000) * t0_prime(made["vocab"], made["num_last"], made["rate_y"])
    run = _dense(made, seed)
    return replace(run, series={**run.series, "t": run.t[-1] * (run.t / run.t[-1]) ** (2 / 3)}, memo={})


def _decoded(run: Run, y: np.ndarray) -> Run:
    """A run whose decoder is another."""
    return replace(run, params={"Y": y, "Z": run.params["Z"]}, memo={})


def _negated(seed: int) -> Run:
    """The decoder with the other sign: it pulls towards the targets of others."""
    run = _theorem_flow(key(seed, "null", "negated"), seed)
    return _decoded(run, -run.params["Y"])


def _rewired(seed: int) -> Run:
    """Rows of the decoder reversed among the distinct tokens of each class: rare tokens have what frequent ones learned."""
    random = key(seed, "null", "rewired")
    options = {**_theorem_options(random), "umin": float(random.uniform(0.05, 0.3))}
    run = _run(
        **{**options, "num_unique": max(3, options["num_unique"]), "vocab": options["vocab"] + 100}, frames=3000, seed=seed
    )
    y = np.array(run.params["Y"])
    for _, own, chance in _distinct(run):
        ranked = own[np.argsort(chance, kind="stable")]
        y[:, ranked] = run.params["Y"][:, ranked[::-1]]
    return _decoded(run, y)


def _frozen(seed: int) -> Run:
    return _run(**_flow(key(seed, "null", "frozen"), "gradient", rate_z=0.0), seed=seed)


def _cut(seed: int) -> Run:
    """A flow that ends before the transition: the paper says that nothing is frozen yet."""
    random = key(seed, "null", "cut")
    made = _flow(random, str(random.choice(["gradient", "pinv"])))
    end = t0_prime(made["vocab"], made["num_last"], made["rate_y"])
    return _run(**{**made, "until": float(random.uniform(0.1, 0.5)) * end}, seed=seed)


def _frozen_late(random: Random, low: float, high: float, **changes: Any) -> dict[str, Any]:
    """A flow that freezes: modified decoder, several strong common tokens, to 300 to 3000 t0; ratios from low to high."""
    made = _flow(random, "pinv", num_common=int(random.integers(2, 7)), common_p=_between(random, 0.7, 2))
    made |= {"num_unique": max(4, made["num_unique"]), "vocab": int(_between(random, 1e3, 1e4))}
    made["rate_y"] = made["rate_z"] * _between(random, low, high)
    end = t0_prime(made["vocab"], made["num_last"], made["rate_y"])
    return {**made, "until": _between(random, 300, 3000) * end, **changes}


def _dense(options: dict[str, Any], seed: int) -> Run:
    """A flow recorded so densely, from t0/1000 on, that its reading does not replay it."""
    first = 1e-3 * t0_prime(options["vocab"], options["num_last"], options["rate_y"])
    return replay(_run(**options, frames=3, seed=seed), LogSpaced(frames=4000, first=first))


def _exchangeable(seed: int) -> Run:
    """All distinct tokens of a class are equally likely, so none is preferred and entropy stays."""
    return _run(**_frozen_late(key(seed, "null", "exchangeable"), 4, 12, umin=1.0, umax=1.0), seed=seed)


def _misstated(seed: int) -> Run:
    """The spec says a ninth of the ratio at which the run was made, so a companion at three times that has a smaller one."""
    options = _frozen_late(key(seed, "null", "misstated"), 4, 12)
    said = options["rate_y"]
    run = _dense({**options, "rate_y": 9 * said}, seed)
    rates = {**run.spec["dynamics"]["rates"], "Y": said}
    return replace(run, spec={**run.spec, "dynamics": {**run.spec["dynamics"], "rates": rates}}, memo={})


def _thawed(seed: int) -> Run:
    """In every class the rarest distinct token goes on growing, in proportion to time, to as much attention as the winner."""
    run = _dense(_frozen_late(key(seed, "null", "thawed"), 0.5, 5), seed)
    z = np.array(run.params["Z"])
    for row, own, chance in _distinct(run):
        final = z[-1, row, own] + np.log(chance)
        rare = int(np.argmin(final))
        z[:, row, own[rare]] += (final.max() - final[rare]) * run.t / run.t[-1]
    return _with(run, z)


def _descent(random: Random, seed: int) -> Run:
    """400 gradient steps in the long-sequence limit, all recorded, so that nothing is replayed."""
    process = SequenceClasses.synthetic(
        int(random.integers(2, 7)), 1, 1 if random.random() < 0.5 else int(random.integers(2, 7)), int(random.integers(3, 11))
    )
    model = PairwiseAttention.merged(process)
    rates = {"Y": _between(random, 1, 30), "Z": 1.0}
    last = 30 * t0_prime(process.vocab, len(process.classes), rates["Y"])
    steps = Descent(optimizer=GD(), lr=last / 400, rates=rates, steps=400)
    law = PairwisePopulation(model=model, process=process)
    return evolve(law, model.init(), steps, record=Every(), seed=seed, progress=False)


def _with(run: Run, z: np.ndarray) -> Run:
    """A run whose scores are others; its reading is a new one."""
    return replace(run, params={"Y": run.params["Y"], "Z": z}, memo={})


def _distinct(run: Run) -> list[tuple[int, np.ndarray, np.ndarray]]:
    """For every class the row of its query in Z, the columns of its distinct tokens, and their P(l|n)."""
    return [(row, own, table[own]) for row, _, own, table in _tokens(run)]


def _tokens(run: Run) -> list[tuple[int, np.ndarray, np.ndarray, np.ndarray]]:
    """For every class the row of its query in Z, the columns of its common and of its distinct tokens, and P(l|n) of all."""
    law = law_of(run)
    common, tables = np.isin(law.model.keys, sorted(law.process.common)), law.process.table(law.model.keys)
    return [
        (int(row), np.flatnonzero((table > 0) & common), np.flatnonzero((table > 0) & ~common), table)
        for row, table in zip(law.rows["query"], tables, strict=True)
    ]


def _walk(seed: int) -> Run:
    """Scores walk at random, as far as those of the run have moved by its end."""
    random = key(seed, "null", "walk")
    run = _descent(random, seed)
    z = run.params["Z"]
    steps = random.normal(size=(len(z) - 1, *z.shape[1:]))
    steps -= steps.mean(axis=2, keepdims=True)
    way = np.concatenate([np.zeros((1, *z.shape[1:])), np.cumsum(steps, axis=0)])
    return _with(run, way * np.abs(z[-1]).max() / np.abs(way[-1]).max())


def _permuted_columns(run: Run, random: Random) -> Run:
    """Scores of each query given to other tokens: a common token gets those of a distinct one, distinct ones are reordered."""
    z = np.array(run.params["Z"])
    for row, shared, own, table in _tokens(run):
        ranked = own[np.argsort(-table[own], kind="stable")]  # the most frequent distinct token gets the least growth
        given = np.concatenate([ranked[::-1], shared])
        got = np.concatenate([shared, ranked]) if random.random() < 0.5 else np.concatenate([ranked, shared])
        z[:, row, got] = run.params["Z"][:, row, given]
        if len(shared):
            place = int(random.choice(own))
            z[:, row, [shared[0], place]] = z[:, row, [place, shared[0]]]
    return _with(run, z)


def _permuted(seed: int) -> Run:
    random = key(seed, "null", "permuted")
    return _permuted_columns(_descent(random, seed), random)


def _theorem_flow(random: Random, seed: int) -> Run:
    """The setting of the theorems, recorded so densely that nothing is replayed."""
    return _run(**_theorem_options(random), frames=3000, seed=seed)


def _stretched(seed: int) -> Run:
    """The clock says three times the time that has passed: the rates in the spec are not those of the motion."""
    run = _theorem_flow(key(seed, "null", "stretched"), seed)
    return replace(run, series={**run.series, "t": 3 * run.t}, memo={})


def _swapped(seed: int) -> Run:
    random = key(seed, "null", "swapped")
    return _permuted_columns(_theorem_flow(random, seed), random)


def _chased(seed: int) -> Run:
    """The other distinct tokens of a class have half the way to the winner's score: its lead is half of what it was."""
    options = _theorem_options(key(seed, "null", "chased"))
    run = _run(**{**options, "rate_y": 10 * options["rate_y"], "until": options["until"] / 10}, frames=3000, seed=seed)
    z = np.array(run.params["Z"])
    for row, own, chance in _distinct(run):
        winner = own[np.argmax(z[-1, row, own] + np.log(chance))]
        z[:, row, own] = (z[:, row, own] + z[:, row, [winner]]) / 2
    return _with(run, z)


def _sharpened(seed: int) -> Run:
    """Scores scaled until one distinct token of every class has 99 % of the attention on them."""
    run = _descent(key(seed, "null", "sharpened"), seed)
    scale = 1.0
    for row, own, _ in _distinct(run):
        first, second = own[np.argsort(-run.params["Z"][-1, row, own])[:2]]
        gap = float(run.params["Z"][-1, row, first] - run.params["Z"][-1, row, second])
        scale = max(scale, np.log(99 * len(own)) / max(gap, 1e-6))
    return _with(run, run.params["Z"] * scale)


FROZEN = Inputs("frozen attention", "eta_Z = 0: attention never moves, so nothing scans or snaps", _frozen)
CUT = Inputs("cut before the transition", "a flow to .1 to .5 t0: nothing is frozen yet", _cut)
EXCHANGEABLE = Inputs("exchangeable tokens", "distinct tokens of a class are equally likely: none is preferred", _exchangeable)
WALK = Inputs("random walk", "scores walk at random: no sign, no order", _walk)
THAWED = Inputs("thawed attention", "the rarest distinct token goes on growing in proportion to time: nothing freezes", _thawed)
MISSTATED = Inputs(
    "misstated rates", "made at nine times the ratio that the spec says: more sparse at three times it", _misstated
)
CHASED = Inputs("half the lead", "all distinct tokens have half the way to the winner's score: its lead is halved", _chased)
PERMUTED = Inputs("permuted tokens", "scores of distinct tokens reversed, and a common token has one of them", _permuted)
STRETCHED = Inputs("stretched clock", "three times the time that has passed: rates and times do not fit", _stretched)
SWAPPED = Inputs("swapped tokens", "as permuted tokens, on the flows of theorems 1 and 4", _swapped)
SHARPENED = Inputs("winner takes all", "scores scaled until one distinct token of every class takes all", _sharpened)
BENT = Inputs("bent clock", "shows the power 2/3 of time: powers of time are half as steep again", _bent)
NEGATED = Inputs("negated decoder", "Y has the other sign, so it pulls towards the targets of others", _negated)
REWIRED = Inputs("rewired decoder", "rows of Y reversed among the distinct tokens of each class", _rewired)
TURNED_BACK = Inputs("turned back", "scores of distinct tokens fall again: they are multiplied by 1.5 - t/T", _turned_back)
RESHUFFLED = Inputs("reshuffled growth", "growth of equally frequent tokens given to others of the class", _reshuffled)
HALVED_START = Inputs("halved start", "the first frame shows half of the scores at which the run started", _halved_start)
ABSENT = Inputs("absent connection", "the spec says residual, and the parameters moved without", _absent)
STRETCHED_STEPS = Inputs("stretched steps", "three times the time that the steps have gone", _stretched_steps)
EXCHANGED = Inputs("exchanged heads", "every head takes over the scores of the next one", _exchanged)
INPUTS: dict[str, tuple[Inputs, ...]] = {
    "scan-snap": (
        Inputs("gradient flows", "generator, 2 to 8 classes, ratios .5 to 100, to 10 to 10^5 t0", partial(_flows, "gradient")),
        Inputs("modified flows", "the same with the modified decoder", partial(_flows, "pinv")),
        Inputs("theorems", "what theorems 1, 3, 4 assume: one common token, modified decoder, ratios 10 to 1000", _theorems),
        Inputs("random tables", "flows on classes with random laws, by either decoder", _tables),
        Inputs("steps", "heavy-ball in the long-sequence limit or on batches", _steps),
        Inputs("large steps", "gradient steps or heavy-ball in the long-sequence limit, rates .5 to 5", _large_steps),
        Inputs("one query", "corollary 2: one query, symmetric classes, unequal common tokens, ratios 1 to 1000", _one_query),
        Inputs("equal tokens", "equally frequent distinct tokens whose scores start at random", _equal, "SnS:prior"),
        Inputs("started scores", "flows whose scores start at random", _started, "SnS:bias"),
        Inputs(
            "residual", "two queries, two classes each, tokens common in one query, across and in all", _residual, "SnS:residual"
        ),
        Inputs("heads", "two to four heads that start apart, ratios .5 to 5", _heads, "SnS:heads"),
        Inputs("single class", "figure 8: gradient steps of one class, attention at rest", _single_class, "SnS:lemma-7"),
    )
}
"""Settings the paper is about, by study."""
NULLS: dict[str, dict[str, tuple[Inputs, ...]]] = {
    "scan-snap": {
        "SnS:theorem-2-distinct": (PERMUTED, WALK),
        "SnS:theorem-2-common": (PERMUTED, WALK),
        "SnS:order": (PERMUTED, WALK),
        "SnS:rates": (REWIRED,),
        "SnS:prior": (RESHUFFLED,),
        "SnS:bias": (HALVED_START,),
        "SnS:residual": (ABSENT,),
        "SnS:heads": (EXCHANGED,),
        "SnS:lemma-6": (STRETCHED,),
        "SnS:gamma": (STRETCHED,),
        "SnS:corollary-1": (BENT,),
        "SnS:lemma-7": (STRETCHED_STEPS,),
        "SnS:theorem-1": (STRETCHED, REWIRED),
        "SnS:xi": (NEGATED,),
        "SnS:lemma-4": (STRETCHED, REWIRED),
        "SnS:theorem-3": (CHASED, SWAPPED),
        "SnS:sandwich": (STRETCHED, SWAPPED),
        "SnS:monotone": (TURNED_BACK,),
        "SnS:theorem-4": (STRETCHED, SWAPPED),
        "SnS:theorem-4-early": (STRETCHED, SWAPPED),
        "SnS:theorem-4-late": (STRETCHED, SWAPPED),
        "SnS:transition": (STRETCHED,),
        "SnS:snap": (THAWED, FROZEN, CUT),
        "SnS:fixed": (THAWED, FROZEN, CUT),
        "SnS:several": (SHARPENED,),
        "SnS:sparsity": (MISSTATED, EXCHANGEABLE),
    }
}
"""Runs on which a claim is false, by study and tag of the claim."""
