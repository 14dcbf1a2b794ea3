"""Saddle path: the sequence of events and their times, predicted from the start, against flows of the full model.

`python -m validation.saddle_path FIRST [COUNT]` runs the second table alone: random chains, widths, key widths, scales and
starts from the seeds FIRST, FIRST + 1, ...
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

import stagescope as ss
from stagescope.papers.focus_dilution.stages import passes
from stagescope.readings.registry import study

SCALES = (1e-3, 1e-4, 1e-5, 1e-6)
FIRST_SEED, CHAINS = 171_000, 60
LONGEST = 1e5
"""Flows are not run longer than this; later events are not compared."""
FRAMES = 4000
PRESETS = ("ref", "flow-skewed", "near-symmetric", "zipf", "delta", "stall")


@dataclass
class Tally:
    """What was found at one start scale."""

    right: int = 0
    chains: int = 0
    errors: list[float] = field(default_factory=list)
    covered: list[bool] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    def line(self) -> str:
        if not self.errors:
            return f"{self.right}/{self.chains} sequences, no events"
        median, most, worst = (100 * np.quantile(self.errors, share) for share in (0.5, 0.9, 1.0))
        share = 100 * np.mean(self.covered)
        times = f"time error median {median:.3f} %, 90 % {most:.3f} %, max {worst:.2f} %"
        return f"{self.right}/{self.chains} sequences, {len(self.errors)} events, {times}, inside the interval {share:.0f} %"


def main() -> bool:
    return listed() and fresh(FIRST_SEED, CHAINS)


def listed() -> bool:
    """Kinds of chains at four start scales."""
    tallies = {scale: Tally() for scale in SCALES}
    for name, loss in kinds():
        for scale, tally in tallies.items():
            compare(f"{name} {scale:g}", loss, loss.model.init(FIRST_SEED, scale), tally)
    return _shown(tallies)


def fresh(first: int, count: int) -> bool:
    """Random chains, each at one random start scale."""
    tallies = {"above 1e-4": Tally(), "up to 1e-4": Tally()}
    for seed in range(first, first + count):
        loss, scale = drawn(np.random.default_rng(seed))
        tally = tallies["above 1e-4" if scale > 1e-4 else "up to 1e-4"]
        shape = f"d {loss.model.vocab} width {loss.model.width} keys {loss.model.key_width} scale {loss.model.scale:.2f}"
        compare(f"seed {seed} {shape} start {scale:.1e}", loss, loss.model.init(seed, scale), tally)
        if (seed - first) % 10 == 9:
            print(f"  after {seed - first + 1} chains: {tally.line()}", flush=True)
    return _shown(tallies)


def _shown(tallies: dict) -> bool:
    for key, tally in tallies.items():
        print(f"start {key}: {tally.line()}", flush=True)
    every = [tally for key, tally in tallies.items() if key == "up to 1e-4" or (isinstance(key, float) and key <= 1e-4)]
    right = sum(tally.right for tally in every) >= 0.95 * sum(tally.chains for tally in every)
    errors = [error for tally in every for error in tally.errors]
    covered = [inside for tally in tallies.values() for inside in tally.covered]
    return bool(right and np.median(errors) <= 1.5e-3 and np.quantile(errors, 0.9) <= 5e-3 and np.mean(covered) >= 0.9)


def kinds() -> Iterator[tuple[str, ss.TokenPopulation]]:
    found = study("focus-dilution")
    for preset in PRESETS:
        what = found.setup(found.configured(preset), 0).what
        assert isinstance(what, ss.TokenPopulation)
        yield preset, what
    ref = (0.5, 0.25, 0.15, 0.1)
    yield "bottleneck", _loss(ss.LazyChain(pi=ref, persistence=0.6), 8, 1, 4.0)
    yield "narrow", _loss(ss.LazyChain(pi=ref, persistence=0.6), 3, 2, 4.0)
    yield "persistence -.1", _loss(ss.LazyChain(pi=ref, persistence=-0.1), 8, 8, 4.0)
    for first, persistence in ((0.7, 0.7), (0.5, 0.6), (0.4, 0.3)):
        pi = (first, *[(1 - first) / 3] * 3)
        yield f"equal rare tokens {first:g}", _loss(ss.LazyChain(pi=pi, persistence=persistence), 8, 8, 4.0)
    rng = np.random.default_rng(1)
    for d in (3, 3, 4, 5, 5, 6):
        yield f"lazy {d}", _loss(_lazy(rng, d), 8, 8, 4.0)
    for d in (3, 4, 4, 5, 6, 6):
        yield f"any {d}", _loss(_any(rng, d), 8, 8, 3.0)


def _lazy(rng: np.random.Generator, d: int) -> ss.LazyChain:
    pi = rng.dirichlet(np.full(d, 3.0)) + 0.02
    return ss.LazyChain(pi=tuple((pi / pi.sum()).tolist()), persistence=float(rng.uniform(0.2, 0.8)))


def _equal(rng: np.random.Generator, d: int) -> ss.LazyChain:
    """Rare tokens that are equally frequent, or almost."""
    first, apart = float(rng.uniform(1.3 / d, 0.85)), float(rng.choice([0.0, 0.001, 0.03]))
    pi = np.append(first, (1 - first) / (d - 1) * (1 + apart * rng.uniform(-1, 1, d - 1)))
    return ss.LazyChain(pi=tuple((pi / pi.sum()).tolist()), persistence=float(rng.uniform(0.1, 0.85)))


def _any(rng: np.random.Generator, d: int) -> ss.MarkovChain:
    return ss.MarkovChain(rows=tuple(tuple(row) for row in rng.dirichlet(np.full(d, 1.0), size=d).tolist()))


def _loss(chain: ss.Chain, width: int, keys: int, scale: float) -> ss.TokenPopulation:
    model = ss.TokenAttention(vocab=chain.vocab, width=width, key_width=keys, scale=scale)
    return ss.TokenPopulation(model=model, process=chain)


def drawn(rng: np.random.Generator) -> tuple[ss.TokenPopulation, float]:
    """A chain, a model and a start scale between 1e-6 and 1e-3."""
    d = int(rng.integers(3, 7))
    chain = (_lazy, _any, _equal)[int(rng.integers(3))](rng, d)
    width, keys = int(rng.integers(2, 13)), int(rng.integers(1, 9))
    scale = float(np.exp(rng.uniform(np.log(0.35), np.log(6.0))))
    return _loss(chain, width, keys, scale), float(10 ** rng.uniform(-6, -3))


def compare(name: str, loss: ss.TokenPopulation, start: dict[str, np.ndarray], tally: Tally) -> None:
    """One prediction against one flow, up to a little after the last predicted event."""
    path = ss.saddle_path(loss, start)
    times = {event: at.t for event, at in path.events.items() if at.t is not None and at.t < LONGEST / 1.1}
    until = 1.1 * max(times.values(), default=LONGEST / 1.1)
    flow = flow_events(loss, start, until)
    tally.chains += 1
    late = 1.05 * max(times.values(), default=LONGEST)
    seen = sorted((event for event, when in flow.items() if when < late), key=lambda event: flow[event])
    if seen == [event for event in path.sequence if event in times]:
        tally.right += 1
    else:
        flowed, walked = ({event: f"{when:.5g}" for event, when in found.items()} for found in (flow, times))
        print(f"  {name}: flow {flowed}, path {walked}", flush=True)
    for event in set(seen) & set(times):
        low, high = path.events[event].low or 0.0, path.events[event].high or 0.0
        tally.errors.append(abs(times[event] / flow[event] - 1))
        tally.covered.append(low <= flow[event] <= high)
        if tally.errors[-1] > 0.01:
            print(f"  {name}: {event} predicted {times[event]:.5g}, flow {flow[event]:.5g}", flush=True)


def flow_events(loss: ss.TokenPopulation, start: dict[str, np.ndarray], until: float) -> dict[str, float]:
    """The events of a flow; frames are dense at first in time and in its logarithm."""
    frames = np.unique(np.concatenate([np.linspace(0, until, FRAMES), np.geomspace(min(1.0, until * 1e-4), until, FRAMES)[:-1]]))
    run = ss.evolve(loss, start, ss.GradientFlow(), until=until, record=ss.AtTimes(at=tuple(frames.tolist())), progress=False)
    params = {name: run.params[name] for name in run.params}
    scores = np.linalg.svd(loss.model.scores(params), compute_uv=False)[:, : loss.model.shapes["WQ"][1]]
    found: dict[str, float] = {}
    for letter, values in (("E", np.linalg.svd(params["W0"], compute_uv=False)), ("Q", scores)):
        found |= {f"{letter}{k + 1}": when for k, when in enumerate(passes(run.time, values)) if when is not None}
    return found


if __name__ == "__main__":
    words = [int(word) for word in sys.argv[1:]]
    raise SystemExit(0 if (fresh(words[0], words[1] if len(words) > 1 else CHAINS) if words else main()) else 1)
