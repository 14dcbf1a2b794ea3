"""Saddle paths of losses without a known structure, against closed forms and flows: when each place is left."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

import stagescope as ss
from stagescope.flow.autodiff import jnp
from stagescope.landscape.derivatives import Derivatives
from stagescope.landscape.general_walk import Law, Moved, Tangents, walk
from stagescope.papers.focus_dilution.stages import passes
from validation.saddle_path import flow_events

STRENGTHS = np.array([2.0, 1.0, 0.3])
TINY = (1e-2, 1e-3, 1e-4, 1e-8, 1e-20, 1e-60)
SEED = 21_000
FRAMES = 4000


@dataclass(frozen=True)
class Case:
    """A loss, the shape of its start, and the largest relative error of a time that holds for it."""

    name: str
    loss: ss.JaxObjective
    start: dict[str, np.ndarray]
    bar: float


def factorisation() -> ss.JaxObjective:
    """The loss of docs/own-objective.md."""

    def factorisation(params, target):
        return 0.5 * ((params["A"] @ params["B"] - target) ** 2).sum()

    return ss.JaxObjective(factorisation, data=np.diag(STRENGTHS))


def exact_loss(eps: float, time: np.ndarray) -> np.ndarray:
    """Of the factorisation from eps I: each a b is logistic."""
    folds = 2 * STRENGTHS[:, None] * time - np.log(STRENGTHS[:, None] / eps**2 - 1)
    left = STRENGTHS[:, None] / (1 + np.exp(np.minimum(folds, 700)))
    return 0.5 * (left**2).sum(axis=0)


def closed_form() -> bool:
    """Times of escape from eps I, the closed form of the loss read at the same levels."""
    worst, covered = 0.0, []
    for eps in TINY:
        path = ss.saddle_path(factorisation(), {"A": eps * np.eye(3), "B": eps * np.eye(3)})
        for name, event in path.events.items():
            around = np.linspace(0.8, 1.2, 20_001) * (event.t or np.nan)
            true = path.crossings(around, exact_loss(eps, around))[name]
            assert event.t is not None
            assert true is not None
            worst = max(worst, abs(event.t / true - 1))
            covered.append((event.low or 0.0) <= true <= (event.high or 0.0))
        print(f"  start {eps:g}: {len(path.events)} escapes, worst so far {worst:.1e}", flush=True)
    print(f"factorisation, closed form: time error at most {worst:.1e}, inside the interval {np.mean(covered):.0%}")
    return worst <= 2e-3 and len(covered) == 3 * len(TINY)


def cases(seed: int) -> Iterator[Case]:
    rng = np.random.default_rng(seed)

    def normal(**shapes: tuple[int, ...]) -> dict[str, np.ndarray]:
        return {name: rng.normal(size=shape) for name, shape in shapes.items()}

    yield Case("factorisation, random start", factorisation(), normal(A=(3, 4), B=(4, 3)), 2e-3)
    yield Case("tanh network, two neurons", _tanh(rng), normal(w=(2, 3), v=(2,)), 1e-3)
    yield Case("matrix sensing", _sensing(rng), normal(U=(4, 3)), 5e-3)
    yield Case("linear autoencoder", _autoencoder(rng), normal(E=(2, 4), D=(4, 2)), 5e-3)


def _tanh(rng: np.random.Generator) -> ss.JaxObjective:
    x = rng.normal(size=(60, 3))
    y = np.tanh(x @ np.array([1.5, 0.0, 0.0])) + 0.4 * np.tanh(x @ np.array([0.0, 1.0, -0.5]))

    def tanh(params, data):
        return 0.5 * ((jnp.tanh(data["x"] @ params["w"].T) @ params["v"] - data["y"]) ** 2).mean()

    return ss.JaxObjective(tanh, data={"x": x, "y": y})


def _sensing(rng: np.random.Generator) -> ss.JaxObjective:
    maps = rng.normal(size=(60, 4, 4))
    maps = (maps + maps.transpose(0, 2, 1)) / 2
    turn = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    target = turn @ np.diag([2.0, 0.8, 0.0, 0.0]) @ turn.T

    def sensing(params, data):
        off = params["U"] @ params["U"].T - data["target"]
        return 0.25 * ((data["maps"] * off).sum(axis=(1, 2)) ** 2).mean()

    return ss.JaxObjective(sensing, data={"maps": maps, "target": target})


def _autoencoder(rng: np.random.Generator) -> ss.JaxObjective:
    turn = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    spread = turn @ np.diag([2.0, 1.2, 0.5, 0.2]) @ turn.T

    def autoencoder(params, spread):
        left = jnp.eye(4) - params["D"] @ params["E"]
        return 0.5 * jnp.trace(left @ spread @ left.T)

    return ss.JaxObjective(autoencoder, data=spread)


def against_flows(seed: int) -> bool:
    good = True
    for case in cases(seed):
        for eps in (1e-4, 1e-6):
            start = {name: eps * block for name, block in case.start.items()}
            path = ss.saddle_path(case.loss, start)
            errors, covered = compared(case.loss, start, path)
            worst = max(errors, default=np.nan)
            print(f"  {case.name}, start {eps:g}: {len(errors)} escapes, worst {worst:.1e}, inside {sum(covered)}", flush=True)
            good = good and worst <= case.bar
    return good


def compared(loss: ss.JaxObjective, start: dict[str, np.ndarray], path: ss.SaddlePath) -> tuple[list[float], list[bool]]:
    """Relative errors of the times against a flow, and whether the flow's are inside the intervals."""
    until = 1.2 * max(event.t or 0.0 for event in path.events.values())
    run = ss.evolve(loss, start, ss.GradientFlow(), until=until, record=ss.Uniform(frames=FRAMES), progress=False)
    flow = path.crossings(run.time, run.series["loss"])
    pairs = [(event, flow[name]) for name, event in path.events.items() if event.t is not None]
    errors = [np.inf if when is None else abs((event.t or 0.0) / when - 1) for event, when in pairs]
    return errors, [when is not None and (event.low or 0.0) <= when <= (event.high or 0.0) for event, when in pairs]


def unknown_family() -> bool:
    """TokenAttention of width 4 as a loss of which nothing is known: E1, E2, E3 against its flow."""
    chain = ss.LazyChain(pi=(0.5, 0.25, 0.15, 0.1), persistence=0.6)
    model = ss.TokenAttention(vocab=4, width=4, key_width=4, scale=4.0)
    known = ss.TokenPopulation(model=model, process=chain)
    plain, good = ss.JaxObjective(lambda params, data: known.loss(params, data), data=known.data), True
    for eps in (1e-4, 1e-5):
        start = model.init(SEED, eps)
        near = Derivatives(plain, start)
        begin = Tangents.of(near.layout.pack(start))
        path = list(walk(Law(near), np.zeros(near.layout.size), begin, 0.01, 1e5))
        legs = [leg for leg in path if isinstance(leg, Moved)]
        time = np.concatenate([leg.time for leg in legs])
        points = near.layout.unpack(np.concatenate([leg.points for leg in legs]))
        found = passes(time, np.linalg.svd(points["W0"], compute_uv=False))
        flow = flow_events(known, start, 1.2 * max(when for when in found[:3] if when is not None))
        errors = [abs((found[k] or np.inf) / flow[f"E{k + 1}"] - 1) for k in range(3)]
        print(f"  attention, width 4, start {eps:g}: E1-E3 off by {', '.join(f'{error:.1e}' for error in errors)}", flush=True)
        good = good and max(errors) <= 1e-3
    return good


def main() -> bool:
    return all([closed_form(), against_flows(SEED), against_flows(SEED + 1), unknown_family()])
