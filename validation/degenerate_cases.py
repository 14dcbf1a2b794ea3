"""Objectives whose saddles are degenerate, with starts: linear networks, linear attention, tensors, quadratic units, lags."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

import stagescope as ss

Start = Callable[[np.random.Generator, float], dict[str, np.ndarray]]


@dataclass(frozen=True)
class Case:
    """An objective, how it is started at a scale, how long it is followed, and the coefficient at its origin if it is known."""

    name: str
    loss: ss.JaxObjective
    start: Start
    until: Callable[[float], float]
    origin: float | None = None

    def run(self, seed: int, scale: float) -> ss.Run:
        start = self.start(np.random.default_rng(seed), scale)
        return ss.evolve(self.loss, start, ss.GradientFlow(), until=self.until(scale), record=ss.Uniform(frames=8000))


def normal(**shapes: tuple[int, ...]) -> Start:
    return lambda rng, scale: {name: scale * rng.normal(size=shape) for name, shape in shapes.items()}


@cache
def linear_network(depth: int, strengths: tuple[float, ...]) -> Case:
    """|W_L .. W_1 - diag(strengths)|^2 / 2: of order L - 1 at the origin, s' = sigma_1 L^(-(L-2)/2) s^(L-1)."""

    def loss(params: Any, target: Any) -> Any:
        product = params["W1"]
        for k in range(2, depth + 1):
            product = params[f"W{k}"] @ product
        return 0.5 * ((product - target) ** 2).sum()

    shapes = {f"W{k}": (len(strengths),) * 2 for k in range(1, depth + 1)}
    slow = strengths[-1]

    def until(scale: float) -> float:
        return {2: 12 / slow * np.log10(1 / scale), 3: 12 / slow / scale, 4: 7 / slow / scale**2}[depth]

    made = ss.JaxObjective(loss, data=np.diag(strengths), name=f"linear-{depth}")
    return Case(f"linear network, depth {depth}", made, normal(**shapes), until, strengths[0] * depth ** (-(depth - 2) / 2))


@cache
def attention(spectrum: tuple[float, ...], length: int, heads: int) -> Case:
    """Linear attention with separate key and query of rank one on in-context regression; inputs have this spectrum."""
    values = np.array(spectrum)
    second = (1 + 1 / length) * values**2 + values.sum() / length * values

    def loss(params: Any, data: Any) -> Any:
        from jax import numpy as jnp

        values, second = data
        whole = jnp.einsum("h,hi,hj->ij", params["v"], params["k"], params["q"])
        fit = (values**2 * jnp.einsum("ii->i", whole)).sum()
        return 0.5 * (values.sum() - 2 * fit + (whole**2 * values * second[:, None]).sum())

    shapes = {"v": (heads,), "k": (heads, len(spectrum)), "q": (heads, len(spectrum))}
    made = ss.JaxObjective(loss, data=(values, second), name="attention")
    return Case(
        "linear attention", made, normal(**shapes), lambda scale: 5 / spectrum[-1] ** 2 / scale, spectrum[0] ** 2 / 3**0.5
    )


@cache
def tensor(strengths: tuple[float, ...], units: int) -> Case:
    """|sum_r u_r^3 - sum_i strength_i e_i^3|^2 / 6, symmetric tensors: u' = T[u, u] at the origin, c = strength_1."""

    def loss(params: Any, data: Any) -> Any:
        from jax import numpy as jnp

        found = jnp.einsum("ri,rj,rk->ijk", params["u"], params["u"], params["u"])
        return ((found - data) ** 2).sum() / 6

    target = np.zeros((len(strengths),) * 3)
    for i, strength in enumerate(strengths):
        target[i, i, i] = strength
    made = ss.JaxObjective(loss, data=target, name="tensor")
    shapes = {"u": (units, len(strengths))}
    return Case("symmetric tensor", made, normal(**shapes), lambda scale: 8 / strengths[-1] / scale, strengths[0])


@cache
def quadratic_units(strengths: tuple[float, ...], units: int) -> Case:
    """E (sum_j a_j (w_j x)^2 - x^T diag(strengths) x)^2 / 2 over normal x: of order 2 at the origin."""

    def loss(params: Any, target: Any) -> Any:
        from jax import numpy as jnp

        gap = jnp.einsum("j,ji,jk->ik", params["a"], params["w"], params["w"]) - target
        return (gap**2).sum() + jnp.einsum("ii->", gap) ** 2 / 2

    made = ss.JaxObjective(loss, data=np.diag(strengths), name="quadratic")
    shapes = {"a": (units,), "w": (units, len(strengths))}
    return Case("quadratic units", made, normal(**shapes), lambda scale: 6 / strengths[-1] / scale)


@cache
def lags(window: int, rate: float) -> Case:
    """Chains of two tokens read through softmax weights on lags: a plateau without a critical point, left by a drift.

    logits a pi_j + b pi_i sum_d A_d (P^d)_ij, A the softmax of alpha = rate^(1/2) x over the lags 1 to `window`.
    """
    nodes, weights = np.polynomial.legendre.leggauss(12)
    nodes, weights = (nodes + 1) / 2, weights / 2
    first, second = (part.ravel() for part in np.meshgrid(nodes, nodes))
    chains = np.stack([np.stack([1 - first, first], -1), np.stack([second, 1 - second], -1)], axis=1)
    stationary = np.stack([second, first], -1) / (first + second)[:, None]
    powers = np.stack([np.linalg.matrix_power(chains, d) for d in range(1, window + 1)])
    data = (np.outer(weights, weights).ravel(), chains, stationary, powers)

    def loss(params: Any, data: Any) -> Any:
        import jax
        from jax import numpy as jnp

        share, chains, pi, powers = data
        mixed = jnp.einsum("d,dcij->cij", jax.nn.softmax(rate**0.5 * params["x"]), powers)
        logits = params["a"][0] * pi[:, None, :] + params["b"][0] * pi[:, :, None] * mixed
        return -(share[:, None, None] * pi[:, :, None] * chains * jax.nn.log_softmax(logits, axis=-1)).sum()

    def start(rng: np.random.Generator, scale: float) -> dict[str, np.ndarray]:
        return {"a": np.zeros(1), "b": np.zeros(1), "x": scale * rng.normal(size=window)}

    made = ss.JaxObjective(loss, data=data, name="lags")
    return Case(f"{window} lags", made, start, lambda _: 60 * window / rate)
