"""Small laws with known answers."""

from functools import cache
from typing import Any

import numpy as np

import stagescope as ss

VALUES = (2.0, 1.0, 0.3)


class Linear(ss.Field):
    """x' = A x: no loss behind it."""

    def __init__(self, matrix: np.ndarray) -> None:
        self.matrix = matrix

    def law(self, params: Any, data: Any) -> Any:
        return {"x": data @ params["x"]}

    @property
    def data(self) -> Any:
        return self.matrix

    def describe(self) -> dict[str, Any]:
        return {"type": "own", "name": "linear"}


class Forced(ss.Field):
    """x' = rate x, y' = -decay y + force x^2: at second order y follows x as force x^2 / (2 rate + decay)."""

    def __init__(self, rate: float, decay: float, force: float) -> None:
        self.rate, self.decay, self.force = rate, decay, force

    def law(self, params: Any, data: Any) -> Any:
        return {"x": self.rate * params["x"], "y": -self.decay * params["y"] + self.force * params["x"] ** 2}

    def describe(self) -> dict[str, Any]:
        return {"type": "own", "name": "forced"}


@cache
def product_loss() -> ss.JaxObjective:
    """|A B - diag(2, 1, .3)|^2 / 2, the two-layer linear network: k modes learnt is a saddle with rates VALUES[k:].

    One for all tests, so that it is compiled once.
    """

    def loss(params: Any) -> Any:
        from jax import numpy as jnp

        return 0.5 * jnp.sum((params["A"] @ params["B"] - jnp.diag(jnp.array(VALUES))) ** 2)

    return ss.JaxObjective(loss, name="product")


def product_start(scale: float = 1e-4, seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {name: scale * rng.normal(size=(3, 3)) for name in ("A", "B")}


def wide_point(vocab: int, width: int, key_width: int) -> tuple[ss.TokenPopulation, dict[str, np.ndarray]]:
    """A model of many parameters at a point (1,1): an orbit where most rates are zero and each opening comes width - 1 times."""
    from stagescope.papers.focus_dilution.family import place
    from stagescope.papers.focus_dilution.ladder import small_point

    weights = 1.0 / np.arange(1, vocab + 1)
    model = ss.TokenAttention(vocab=vocab, width=width, key_width=key_width, scale=4.0)
    loss = ss.TokenPopulation(model=model, process=ss.LazyChain(pi=tuple(weights / weights.sum()), persistence=0.6))
    start = model.init(0, 1e-3)
    return loss, dict(place(small_point(loss, start, 1, 1).point.params, start, 1, 1).params)


class Power(ss.Field):
    """x' = c x^p + force in one dimension: without force, a zero of order p."""

    def __init__(self, order: int, coefficient: float, force: float = 0.0) -> None:
        self.order, self.coefficient, self.force = order, coefficient, force

    def law(self, params: Any, data: Any) -> Any:
        return {"x": data[0] * params["x"] ** self.order + data[1]}

    @property
    def data(self) -> Any:
        return np.array([self.coefficient, self.force])

    def describe(self) -> dict[str, Any]:
        return {"type": "own", "name": f"power {self.order}"}


@cache
def deep_loss(depth: int) -> ss.JaxObjective:
    """|W_L .. W_1 - diag(1, .5)|^2 / 2 of 2 x 2 matrices: of order L - 1 at the origin."""

    def loss(params: Any) -> Any:
        from jax import numpy as jnp

        product = params["W1"]
        for k in range(2, depth + 1):
            product = params[f"W{k}"] @ product
        return 0.5 * jnp.sum((product - jnp.diag(jnp.array([1.0, 0.5]))) ** 2)

    return ss.JaxObjective(loss, name=f"deep {depth}")


def deep_start(depth: int, scale: float, seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {f"W{k}": scale * rng.normal(size=(2, 2)) for k in range(1, depth + 1)}


@cache
def attention_loss() -> ss.JaxObjective:
    """Linear attention of two heads on in-context regression, inputs with variances .6, .3 and infinite contexts."""

    def loss(params: Any) -> Any:
        from jax import numpy as jnp

        values = jnp.array([0.6, 0.3])
        whole = jnp.einsum("h,hi,hj->ij", params["v"], params["k"], params["q"])
        return 0.5 * jnp.sum(whole**2 * values * values[:, None] ** 2) - jnp.sum(values**2 * jnp.einsum("ii->i", whole))

    return ss.JaxObjective(loss, name="attention")
