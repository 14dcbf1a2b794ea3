"""A field on flat vectors with its derivatives: what every analysis near a point starts from."""

from collections.abc import Callable, Mapping
from functools import cached_property, lru_cache
from math import factorial
from typing import Any

import numpy as np

from stagescope.core.errors import InputError, StagescopeError, unknown
from stagescope.core.params import Layout, Params
from stagescope.core.spec import Described, digest
from stagescope.flow.field import Field, FlatField, Objective, TaylorField, as_field

DENSE = 500
"""Parameters up to which the whole Jacobian is formed; above it, only products with it are."""
ALL_RATES = 1600
"""Parameters up to which all rates are computed where the model has its own derivatives: about two seconds at this size."""


class NotFinite(StagescopeError):
    """A derivative at a point so far out that numbers overflow."""


class Derivatives:
    """theta' = F(theta) with block rates, J = F', and F''[v, v], by the model's own code where it has some, otherwise by JAX.

    Of a gradient field, J = -D H with the diagonal D = rate / multiplicity: it has the real spectrum of the symmetric
    -D^(1/2) H D^(1/2), and eigenvectors D^(1/2) times those. `products` counts those with J and J^T; a whole J is one of each
    column. `heard` gets their number after each.
    """

    def __init__(
        self,
        what: Objective | Field,
        params: Params,
        rates: Mapping[str, float] | None = None,
        heard: Callable[[int], None] = lambda products: None,
    ) -> None:
        self.field = as_field(what)
        names = list(self.field.axes) or list(params)  # kernels know their blocks by place
        if set(names) != set(params):
            raise InputError(f"this model has parameter blocks {names}, got {sorted(params)}")
        self.layout = Layout.of({name: params[name] for name in names})
        for name, rate in (rates or {}).items():
            if name not in names:
                raise unknown("parameter block", name, names)
            if not (np.isfinite(rate) and rate >= 0):
                raise InputError(f"rate of {name} is {rate}, but must be finite and >= 0")
        self.rates = {name: float((rates or {}).get(name, 1.0)) for name in names}
        self.products, self.heard = 0, heard

    @property
    def dense(self) -> bool:
        return self.layout.size <= DENSE

    @property
    def all_rates(self) -> bool:
        """Whether the whole Jacobian and all its rates take less time than the fastest of them by iteration."""
        return self.dense or (self._taylor is not None and self.layout.size <= ALL_RATES)

    @cached_property
    def _taylor(self) -> TaylorField | None:
        return self.field.taylor(self.layout)

    @cached_property
    def roots(self) -> np.ndarray | None:
        """D^(1/2) of a gradient field, entry by entry; None for a law that is no gradient."""
        if self.field.objective is None:
            return None
        return np.sqrt(self.layout.spread(self.rates) / self.field.weights(self.layout))

    def symmetric(self, vector: np.ndarray) -> tuple[Callable[[np.ndarray], np.ndarray], np.ndarray]:
        """Products with D^(-1/2) J D^(1/2) of a gradient field, and D^(1/2); a frozen block neither moves nor is moved."""
        assert self.roots is not None
        moving = self.roots > 0
        roots = np.where(moving, self.roots, 1.0)

        def times(x: np.ndarray) -> np.ndarray:
            return np.where(moving, self.jvp(vector, roots * np.where(moving, x, 0.0)) / roots, 0.0)

        return times, roots

    def _call(self, name: str, *vectors: np.ndarray) -> np.ndarray:
        return np.array(self._functions[name](*vectors, self.field.data))

    def _call_counted(self, products: int, name: str, *vectors: np.ndarray) -> np.ndarray:
        answer = self._call(name, *vectors)
        self.products += products
        self.heard(self.products)
        return answer

    @cached_property
    def _functions(self) -> dict[str, Any]:
        if self._taylor is not None:
            return _along_lines(self._taylor, self.layout.spread(self.rates), self.field.weights(self.layout))
        return _compiled(_Source(self.field.objective or self.field), self.layout, tuple(self.rates.items()))

    def velocity(self, vector: np.ndarray) -> np.ndarray:
        """F, by the field's kernel where it has one."""
        out = np.empty_like(vector)
        self._flat(vector, out)
        return out

    def law(self, vector: np.ndarray) -> np.ndarray:
        """F, by code that is compiled once for equal descriptions."""
        return self.velocity(vector) if hasattr(self.field.objective, "flat") else self._call("velocity", vector)

    @cached_property
    def _flat(self) -> FlatField:
        return self.field.flat(self.layout, self.rates)

    def jacobian(self, vector: np.ndarray) -> np.ndarray:
        matrix = self._call_counted(self.layout.size, "jacobian", vector)
        if not np.all(np.isfinite(matrix)):
            raise NotFinite("the Jacobian at this point is not finite")
        return matrix

    def jvp(self, vector: np.ndarray, direction: np.ndarray) -> np.ndarray:
        """J direction."""
        return self._call_counted(1, "jvp", vector, direction)

    def vjp(self, vector: np.ndarray, direction: np.ndarray) -> np.ndarray:
        """J^T direction."""
        return self._call_counted(1, "vjp", vector, direction)

    def operator(self, vector: np.ndarray, factor: float = 1.0, shift: float = 0.0) -> Any:
        """factor J + shift I as a SciPy operator, by products."""
        from scipy.sparse.linalg import LinearOperator

        make: Any = LinearOperator  # its stub does not know these arguments
        return make(
            (len(vector), len(vector)),
            matvec=lambda x: factor * self.jvp(vector, np.ravel(x)) + shift * np.ravel(x),
            rmatvec=lambda x: factor * self.vjp(vector, np.ravel(x)) + shift * np.ravel(x),
            dtype=float,
        )

    def second(self, vector: np.ndarray, direction: np.ndarray, other: np.ndarray | None = None) -> np.ndarray:
        """F''[direction, other], by default twice the same direction."""
        if other is None:
            return self._call("second", vector, direction)
        plus, minus = direction + other, direction - other
        return (self._call("second", vector, plus) - self._call("second", vector, minus)) / 4

    def series(self, vector: np.ndarray, displacement: np.ndarray, order: int) -> np.ndarray:
        """Taylor terms of F at `vector` for a displacement, one row each: F, J d, F''[d, d]/2, ... up to `order`."""
        return np.array(self._functions["series"](order)(vector, displacement, self.field.data))


class _Source:
    """An objective or field as a key: described ones are equal if their descriptions are, others only to themselves."""

    def __init__(self, what: Objective | Field) -> None:
        self.what = what
        self._key = digest(what.describe()) if isinstance(what, Described) else id(what)

    def __hash__(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Source) and other._key == self._key


def _along_lines(taylor: TaylorField, rates: np.ndarray, weights: np.ndarray) -> dict[str, Any]:
    """What `_compiled` gives, by Taylor terms of F at unit rates. There F' = -H / weights with a symmetric H."""

    def first(vector: np.ndarray, direction: np.ndarray) -> np.ndarray:
        return taylor(vector, direction[None], 1)[1, 0]

    return {
        "velocity": lambda vector, data: rates * taylor(vector, np.zeros((1, len(vector))), 0)[0, 0],
        "jacobian": lambda vector, data: rates[:, None] * taylor(vector, np.eye(len(vector)), 1)[1].T,
        "jvp": lambda vector, direction, data: rates * first(vector, direction),
        "vjp": lambda vector, direction, data: weights * first(vector, rates * direction / weights),
        "second": lambda vector, direction, data: 2 * rates * taylor(vector, direction[None], 2)[2, 0],
        "series": lambda order: lambda vector, displacement, data: rates * taylor(vector, displacement[None], order)[:, 0],
    }


@lru_cache(maxsize=64)
def _series(source: _Source, layout: Layout, rates: tuple[tuple[str, float], ...], order: int) -> Any:
    """Taylor terms along a line, by nested forward derivatives: compiled for every order that is asked for."""
    from stagescope.flow.autodiff import jax, jnp

    velocity = as_field(source.what).traced(layout, dict(rates))

    def series(vector: Any, displacement: Any, data: Any) -> Any:
        terms: Callable[[Any], tuple] = lambda share: (velocity(vector + share * displacement, data),)  # noqa: E731
        for _ in range(order):
            terms = with_next(terms)
        return jnp.stack([term / factorial(k) for k, term in enumerate(terms(0.0))])

    def with_next(terms: Callable[[Any], tuple]) -> Callable[[Any], tuple]:
        def more(share: Any) -> tuple:
            values, slopes = jax.jvp(terms, (share,), (1.0,))
            return (*values, slopes[-1])

        return more

    return jax.jit(series)


@lru_cache(maxsize=64)
def _compiled(source: _Source, layout: Layout, rates: tuple[tuple[str, float], ...]) -> dict[str, Any]:
    """Compiled once for equal descriptions."""
    from stagescope.flow.autodiff import jax, jnp

    velocity = as_field(source.what).traced(layout, dict(rates))

    def forward(vector: Any, direction: Any, data: Any) -> Any:
        return jax.jvp(lambda x: velocity(x, data), (vector,), (direction,))[1]

    def backward(vector: Any, direction: Any, data: Any) -> Any:
        return jax.vjp(lambda x: velocity(x, data), vector)[1](direction)[0]

    def second(vector: Any, direction: Any, data: Any) -> Any:
        return jax.jvp(lambda x: forward(x, direction, data), (vector,), (direction,))[1]

    def jacobian(vector: Any, data: Any) -> Any:
        """Column by column, up to 16 at once: all at once would hold the intermediate values of every column in memory.

        Batches are of one size, the last one filled up with zeros: another size would be compiled a second time.
        """
        batches = -(-layout.size // 16)
        per_batch = -(-layout.size // batches)
        basis = jnp.eye(batches * per_batch, layout.size)
        return jax.lax.map(lambda e: forward(vector, e, data), basis, batch_size=per_batch)[: layout.size].T

    jitted = {"velocity": velocity, "jacobian": jacobian, "jvp": forward, "vjp": backward, "second": second}
    compiled: dict[str, Any] = {name: jax.jit(function) for name, function in jitted.items()}
    return compiled | {"series": lambda order: _series(source, layout, rates, order)}
