"""The simplified model: heads that fit G = sum_i g_i f_i x e_{p_i}, its flows, its closed forms, and a transformer on vectors."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field as Limits
from pydantic import model_validator

from stagescope.core.errors import InputError, unknown
from stagescope.core.memory import require_memory, require_parameters
from stagescope.core.params import Layout, Params, key
from stagescope.core.spec import Described, Integers, Numbers
from stagescope.flow.by_kernel import ByPasses
from stagescope.flow.field import Compiled, Field, Found, Objective, OfModel
from stagescope.flow.softmax import softmax
from stagescope.papers.incremental.limits import LIMITS
from stagescope.papers.incremental.process import RandomFeatures


def noises(sigma: float) -> np.ndarray:
    """The noise of a run, the one of LIMITS.noises that is farther from it, and their geometric mean, in the middle."""
    far = max(LIMITS.noises, key=lambda end: abs(np.log(end / sigma)))
    return np.array([sigma, np.sqrt(sigma * far), far])


@dataclass(frozen=True)
class RegressionForms:
    """Predictions for gains g_1 > ... > g_k, N positions and H heads, under the mirror law or the exact gradient."""

    gains: tuple[float, ...]
    positions: int
    heads: int
    mirror: bool

    @property
    def levels(self) -> np.ndarray:
        """l_0 .. l_k, l_j = sum_{i>j} g_i^2 / 2: the loss once the first j features are fitted [ISA:plateaus]."""
        squares = np.square(self.gains)
        return np.append(np.cumsum(squares[::-1])[::-1], 0.0) / 2

    @property
    def reachable(self) -> int:
        """The last plateau that H heads can reach, min(H, k): P has rank H at most [ISA:plateaus]."""
        return min(self.heads, len(self.gains))

    @property
    def first_time(self) -> float:
        """t_1 from V = 0 and many positions: (pi/sqrt 2) sqrt(N)/g_1 (mirror) or c N/g_1 (exact) [ISA:first].

        While s_1 = e^a/N is small, the mirror law is a'' = (g_1^2/N) e^a, which blows up at integral da/sqrt(2(e^a - 1)). The
        exact one, with v = V_1 and time in N/g_1, is a' = e^a v, v' = e^a - (H/g_1) v: the last term is what all heads together
        already predict at every position. It blows up at c = sqrt(pi/2) + (1 - pi/4) H/g_1 + ..., to first order in H/g_1.
        Fitting g_1 then takes a time that does not grow with N, which is what is missing at finite N.
        """
        gain = self.gains[0]
        if self.mirror:
            return float(np.pi * np.sqrt(self.positions / 2) / gain)
        return float((np.sqrt(np.pi / 2) + (1 - np.pi / 4) * self.heads / gain) * self.positions / gain)

    def gap(self, position: int = 1) -> float:
        """D = (g_1^2 - g_j^2)/H with g_j = 0 at a position without a feature; positions count from 0."""
        gain = self.gains[position] if position < len(self.gains) else 0.0
        difference = (self.gains[0] ** 2 - gain**2) / self.heads
        if not (position > 0 and difference > 0):
            raise InputError(f"attention stays on position {position}: it leaves only positions with a gain below the first")
        return difference

    def leftover(self, time: np.ndarray, position: int = 1) -> np.ndarray:
        """s_j ~ 1/(D t) (mirror), 1/sqrt(2 N D t) (exact): attention left on position j on plateau 1 [ISA:leftover].

        From V quasi-static, (R^T V)_j = -D_j s_j. Mirror: (ln s_j)' = -D_j s_j. Exact: (ln s_j)' = -D_j s_j^2 - sum_i D_i s_i^2,
        as a_1 rises by what the others lose; all D_j s_j^2 tend to 1/(2 N t). Both are limits: the mirror law has corrections
        log(t)/t, and under the exact one the differences between the D_j s_j^2 die out like t^(-1/N) only.
        """
        spread = self.gap(position) * np.asarray(time, dtype=float)
        return 1 / spread if self.mirror else 1 / np.sqrt(2 * self.positions * spread)

    def rate(self, mass: np.ndarray, position: int = 1) -> np.ndarray:
        """g_j sqrt(s_j) (mirror), sqrt(2) g_j s_j (exact): growth of head differences on plateau 1 [ISA:escape].

        sqrt 2, because under the exact law the first logit falls by as much as logit j rises.
        """
        gain = self.gains[position]
        return gain * np.sqrt(mass) if self.mirror else np.sqrt(2.0) * gain * np.asarray(mass)

    def fastest(self, masses: np.ndarray) -> np.ndarray:
        """The same with all features at once, from the masses (..., k) of equal heads on their positions [ISA:escape].

        Under the exact law J e_j = s_j (e_j - e_1) to leading order, so R J^2 R^T is w_i w_j (1 + delta_ij) with w_j = g_j s_j:
        features share the first logit. Under the mirror law it is diagonal.
        """
        gains, masses = np.array(self.gains[1:]), np.asarray(masses)[..., 1:]
        if self.mirror:
            return np.max(gains * np.sqrt(masses), axis=-1)
        weights = gains * masses
        products = weights[..., :, None] * weights[..., None, :]
        return np.sqrt(np.linalg.eigvalsh(products * (1 + np.eye(len(gains))))[..., -1])

    @property
    def first_error(self) -> float:
        """What the closed form of t_1 leaves out, in its unit [ISA:first].

        Mirror: near the blow-up s_1 = 2/(g_1 (t_b - t))^2, which is of order 1 at t_b - t = sqrt 2/g_1. Exact: the form is of
        first order in H/g_1, so its second order is the square of the first, (1 - pi/4)^2/(pi/2) (H/g_1)^2 of it; s_1 is of
        order 1 at 1/(g_1 sqrt(2 ln N)) before the blow-up; and heads then fit g_1 at the rate H.
        """
        gain, heads = self.gains[0], self.heads
        if self.mirror:
            return float(np.sqrt(2) / gain)
        second = self.first_time * ((1 - np.pi / 4) / np.sqrt(np.pi / 2) * heads / gain) ** 2
        return float(second + 1 / heads + 1 / (gain * np.sqrt(2 * np.log(max(self.positions, 2)))))

    @property
    def escape_slope(self) -> float:
        """d sqrt(t_2) / d ln(1/sigma) = sqrt(D)/(2 g_2), times sqrt(N) under the exact law [ISA:escape].

        From integral rate dt = 2 g_2 sqrt(t/D) (over sqrt N) = ln(1/sigma) + const. Under the mirror law it is reached only
        once D t_2 is much larger than 1/s_2 at the beginning of the plateau; `wkb_times` needs no such limit.
        """
        slope = np.sqrt(self.gap()) / (2 * self.gains[1])
        return float(slope if self.mirror else slope * np.sqrt(self.positions))

    def escape_time(self, sigma: float) -> float:
        """t_2 to leading order, (slope ln(1/sigma))^2 [ISA:escape]."""
        return float((self.escape_slope * np.log(1 / sigma)) ** 2)

    def slope_between(self, sigmas: np.ndarray) -> float:
        """The escape slope between noises if s_2 starts from 1/N: what of the limit is reached at these noises.

        s_2 = 1/(D t + N) (mirror) or 1/sqrt(2 N D t + N^2) (exact) in place of 1/(D t) or 1/sqrt(2 N D t).
        """
        gap, gain, wide = self.gap(), self.gains[1], self.positions
        phase = np.log(1 / np.asarray(sigmas, dtype=float))
        if self.mirror:
            times = ((np.sqrt(wide) + phase * gap / (2 * gain)) ** 2 - wide) / gap
        else:
            times = ((wide + phase * wide * gap / (np.sqrt(2) * gain)) ** 2 - wide**2) / (2 * wide * gap)
        return float(np.polyfit(phase, np.sqrt(times), 1)[0])

    def limit_error(self, sigma: float) -> float:
        """Relative difference between the slope at the noises beside `sigma`, from the leftover 1/N, and its limit."""
        return abs(self.slope_between(noises(sigma)) / self.escape_slope - 1)


def wkb_times(time: np.ndarray, rate: np.ndarray, observed_escape: tuple[float, float], sigmas: np.ndarray) -> np.ndarray:
    """t_2 at other initial noises from one known (sigma, t_2): integral_0^t_2 rate dt = ln(1/sigma) + const [ISA:wkb].

    `rate` is the growth rate along the symmetric trajectory. NaN where the trajectory ends before the escape.
    """
    from scipy.integrate import cumulative_trapezoid

    phase = cumulative_trapezoid(rate, time, initial=0.0)
    sigma, escape_time = observed_escape
    if not time[0] <= escape_time <= time[-1]:
        raise InputError(f"the escape at t={escape_time:g} is not on the trajectory, which covers {time[0]:g} to {time[-1]:g}")
    escape_phases = np.interp(escape_time, time, phase) + np.log(sigma / np.asarray(sigmas, dtype=float))
    return np.interp(escape_phases, phase, time, left=np.nan, right=np.nan)


Noise = Literal["logits", "weights"]


class RegressionHeads(Described):
    """Logits a (H, N) and values V (H, k) that fit G = sum_i g_i f_i x e_{p_i} by P = sum_h V_h x softmax(a_h) [ISA:heads].

    The features f_i are orthonormal and V_h is written in their basis: V_h' = (G - P) s_h lies in the span of the f_i and of
    the V's themselves, so components orthogonal to all f_i that start at zero stay zero. Positions count from 0; `places` are
    the p_i, by default 0..k-1 (positions are exchangeable: the choice only decides which noise they get). The model
    may stand for a larger one in which every head occurs `copies` times: equal heads stay equal, P = copies sum_h V_h x s_h,
    and each listed head moves as each of its copies does [ISA:symmetric].

    Args:
        positions: number N of positions.
        gains: a positive number for each feature, largest first.
        heads: number H of heads.
        places: the position of each feature.
        copies: how often each head occurs.

    Examples:
        >>> heads = ss.RegressionHeads(positions=3, gains=(2.0, 1.0), heads=2)
        >>> {name: block.shape for name, block in heads.init(seed=0).items()}
        {'a': (2, 3), 'V': (2, 2)}
    """

    positions: int = Limits(ge=1)
    gains: Numbers
    heads: int = Limits(ge=1)
    places: Integers | None = None
    copies: int = Limits(default=1, ge=1)

    @model_validator(mode="after")
    def _valid(self) -> "RegressionHeads":
        gains, places = self.gains, self.at.tolist()
        if not gains or min(gains) <= 0 or any(a < b for a, b in pairwise(gains)):
            raise ValueError(f"gains must be positive and not increase, at least one, got {gains}")
        if len(places) != len(gains) or len(set(places)) != len(places):
            raise ValueError(f"{len(gains)} gains need as many different places, got {places}")
        if self.places is None and len(gains) > self.positions:
            way = f"raise positions (--positions) to {len(gains)} or more, or list fewer gains (--gains)"
            raise ValueError(f"{len(gains)} gains need at least {len(gains)} positions, got {self.positions}; {way}")
        if min(places) < 0 or max(places) >= self.positions:
            raise ValueError(f"places must be among the positions 0..{self.positions - 1}, got {places}")
        require_parameters(self.shapes, "take fewer positions or heads")
        return self

    @property
    def at(self) -> np.ndarray:
        """The positions p_i of the features."""
        return np.arange(len(self.gains)) if self.places is None else np.array(self.places, dtype=int)

    @property
    def shapes(self) -> dict[str, tuple[int, int]]:
        return {"a": (self.heads, self.positions), "V": (self.heads, len(self.gains))}

    @property
    def axes(self) -> dict[str, tuple[str, ...]]:
        return {"a": ("head", "position"), "V": ("head", "feature")}

    @property
    def multiplicity(self) -> dict[str, np.ndarray]:
        return {name: np.array(float(self.copies)) for name in self.shapes}

    @cached_property
    def target(self) -> np.ndarray:
        """G (k, N)."""
        target = np.zeros((len(self.gains), self.positions))
        target[np.arange(len(self.gains)), self.at] = self.gains
        return target

    def forms(self, mirror: bool) -> RegressionForms:
        """The closed forms, under the mirror law or the exact gradient."""
        return RegressionForms(self.gains, self.positions, self.heads * self.copies, mirror)

    def symmetric(self) -> "RegressionHeads":
        """One head for all: the exact motion of this model from equal heads, which rounding cannot split [ISA:symmetric]."""
        return self.model_copy(update={"heads": 1, "copies": self.heads * self.copies})

    def init(self, seed: int = 0, sigma: float = 1e-2, noise: Noise = "logits") -> dict[str, np.ndarray]:
        """V = 0 and a = sigma n, n normal; or attention 1/N + sigma n, scaled to sum 1, where the noise is on the weights.

        Logits are then log weights less their mean, which changes no attention. It keeps them small: the tolerance of a flow
        is measured by the initial parameters, and log(1/N) would make it coarser than the noise that decides the escape.
        """
        if not (np.isfinite(sigma) and sigma >= 0):
            raise InputError(f"sigma is {sigma}, but must be finite and >= 0")
        draw = sigma * key(seed, "init", "a").normal(size=self.shapes["a"])
        if noise == "weights":
            weights = 1 / self.positions + draw
            if np.min(weights) <= 0:
                raise InputError(f"noise {sigma:g} makes attention weights negative: they are 1/{self.positions} without it")
            logs = np.log(weights)
            draw = logs - logs.mean(axis=1, keepdims=True)
        elif noise != "logits":
            raise unknown("noise", noise, ("logits", "weights"))
        return {"a": draw, "V": np.zeros(self.shapes["V"])}

    def reduce(self, params: Params) -> Params:
        """Values in the basis of the features: unchanged here."""
        return params

    def attention(self, params: Params) -> np.ndarray:
        """s = softmax(a) (..., H, N)."""
        return softmax(params["a"])

    def residual(self, params: Params) -> np.ndarray:
        """R = G - P (..., k, N)."""
        return self.target - self.copies * np.einsum("...hi,...hn->...in", params["V"], self.attention(params))

    def losses(self, params: Params) -> np.ndarray:
        """|R|^2/2 of each frame: also of a run whose law has no objective."""
        return np.sum(self.residual(params) ** 2, axis=(-2, -1)) / 2


BLOCKS = ("a", "V")


class Regression(OfModel, Described):
    """What both laws share: the model, its arrays, and one kernel."""

    model: RegressionHeads

    mirror: ClassVar[bool] = False

    @property
    def multiplicity(self) -> Mapping[str, np.ndarray]:
        return self.model.multiplicity

    @property
    def forms(self) -> RegressionForms:
        """The closed forms of this model and law."""
        return self.model.forms(self.mirror)

    @property
    def data(self) -> Any:
        return {"target": self.model.target}

    @cached_property
    def _memory(self) -> np.ndarray:
        from stagescope.papers.incremental.regression_kernel import hold

        model = self.model
        return hold((model.heads, model.positions, len(model.gains)), model.copies, self.mirror, model.gains, model.at)

    def move(self, params: Params) -> tuple[float, dict[str, np.ndarray]]:
        """Loss and velocity at unit rates, by the kernel."""
        from stagescope.papers.incremental.regression_kernel import velocity

        layout = Layout.of({name: params[name] for name in BLOCKS})
        out = np.empty(layout.size)
        return velocity(layout.pack(params), out, self._memory.copy()), layout.unpack(out)

    def flat(self, layout: Layout, rates: Mapping[str, float]) -> Compiled:
        """The kernel with everything but parameters bound; each has its own work space."""
        from stagescope.flow.compiled import direct
        from stagescope.papers.incremental.regression_kernel import RATES, velocity

        if layout.names != BLOCKS:
            raise ValueError(f"the kernel reads blocks in the order a, V, got {', '.join(layout.names)}")
        memory = self._memory.copy()
        memory[RATES] = [rates[name] for name in BLOCKS]
        return direct(velocity, layout.size, memory)


class RegressionLoss(Regression, Objective):
    """L = |R|^2/2, R = G - P; descending it, V_h' = R s_h and a_h' = J(s_h) R^T V_h, J = diag s - s s^T [ISA:flow].

    Conserved: the sum of each head's logits. Equal heads in a reduced model share the gradient; the multiplicity counts them.

    Args:
        model: the heads.

    Examples:
        >>> heads = ss.RegressionHeads(positions=3, gains=(2.0, 1.0), heads=2)
        >>> print(f"{ss.RegressionLoss(model=heads).value(heads.init(seed=0)):.2f}")  # (2^2 + 1^2) / 2 at a small start
        2.50
    """

    def loss(self, params: Any, data: Any) -> Any:
        from stagescope.flow.autodiff import jnp

        return jnp.sum(_residual(params, data, self.model.copies)[1] ** 2) / 2

    def value(self, params: Params) -> float:
        return self.move(params)[0]

    def grad(self, params: Params) -> dict[str, np.ndarray]:
        return {name: -block for name, block in self.move(params)[1].items()}


class MirrorFlow(Regression, Field):
    """V_h' = R s_h and a_h' = R^T V_h: the exact law without its factor J(s_h), a field that is no gradient [ISA:mirror].

    Conserved: |V_h|^2/2 - log sum_n exp(a_hn) of each head. Runs record no loss; `model.losses(run.params)` gives it.

    Args:
        model: the heads.

    Examples:
        >>> heads = ss.RegressionHeads(positions=3, gains=(2.0, 1.0), heads=2)
        >>> "loss" in ss.evolve(ss.MirrorFlow(model=heads), heads.init(seed=0), ss.GradientFlow(), until=1).series
        False
    """

    mirror: ClassVar[bool] = True

    def law(self, params: Any, data: Any) -> Any:
        attention, residual = _residual(params, data, self.model.copies)
        return {"a": params["V"] @ residual, "V": attention @ residual.T}

    def rhs(self, params: Params) -> dict[str, np.ndarray]:
        return self.move(params)[1]


def _residual(params: Any, data: Any, copies: int) -> tuple[Any, Any]:
    """s (H, N) and R (k, N), as JAX expressions."""
    from stagescope.flow.autodiff import jax

    attention = jax.nn.softmax(params["a"], axis=1)
    return attention, data["target"] - copies * params["V"].T @ attention


class RegressionTransformer(Described):
    """y = sum_i g_i F_i x_{p_i} of tokens x_1 .. x_N in R^d, predicted by sum_h V_h sum_n softmax(a_h)_n x_n [ISA:regression].

    V_h is d x d and the F_i are random with <F_i, F_j> = delta_ij, centred. For i.i.d. tokens with E x x^T = I the mean of
    |error|^2/2 is |G - P|^2/2 of `reduced`, whose features are the F_i: V_h = sum_i V_hi F_i stays of this form on average.

    Args:
        reduced: the heads that it is on average.
        dim: dimension of the tokens.
        feature_seed: of the features.

    Examples:
        >>> whole = ss.RegressionTransformer(reduced=ss.RegressionHeads(positions=3, gains=(2.0, 1.0), heads=2), dim=4)
        >>> {name: block.shape for name, block in whole.init(seed=0).items()}
        {'a': (2, 3), 'V': (2, 4, 4)}
    """

    reduced: RegressionHeads
    dim: int = Limits(ge=2)
    feature_seed: int = Limits(default=0, ge=0)

    @model_validator(mode="after")
    def _valid(self) -> "RegressionTransformer":
        if self.reduced.copies != 1:
            raise ValueError(f"the reduced model stands for {self.reduced.copies} copies of a head; list every head here")
        require_parameters(self.shapes, "take fewer heads or shorter tokens")
        require_memory("the target map", "take fewer positions or shorter tokens", self.positions, self.dim, self.dim)
        _ = self.features  # too many for the tokens are refused
        return self

    @property
    def gains(self) -> tuple[float, ...]:
        return self.reduced.gains

    @property
    def positions(self) -> int:
        return self.reduced.positions

    @property
    def heads(self) -> int:
        return self.reduced.heads

    @property
    def copies(self) -> int:
        """Every head is listed."""
        return 1

    @property
    def at(self) -> np.ndarray:
        """The positions p_i of the features."""
        return self.reduced.at

    @cached_property
    def features(self) -> np.ndarray:
        """F_i (k, d, d), orthonormal in the Frobenius product."""
        stack = RandomFeatures(kind="gram-schmidt", seed=self.feature_seed).stack(len(self.gains), self.dim)
        return stack / np.sqrt(self.dim)

    @cached_property
    def target(self) -> np.ndarray:
        """G (N, d, d): g_i F_i at p_i."""
        target = np.zeros((self.positions, self.dim, self.dim))
        target[self.at] = np.array(self.gains)[:, None, None] * self.features
        return target

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        return {"a": (self.heads, self.positions), "V": (self.heads, self.dim, self.dim)}

    @property
    def axes(self) -> dict[str, tuple[str, ...]]:
        return {"a": ("head", "position"), "V": ("head", "output", "input")}

    def init(self, seed: int = 0, sigma: float = 1e-2, noise: Noise = "logits") -> dict[str, np.ndarray]:
        """The same logits as those of `reduced`, and V = 0."""
        return {"a": self.reduced.init(seed, sigma, noise)["a"], "V": np.zeros(self.shapes["V"])}

    def reduce(self, params: Params) -> dict[str, np.ndarray]:
        """Parameters of `reduced`: the logits, and V_hi = <V_h, F_i>."""
        return {"a": np.asarray(params["a"]), "V": np.einsum("...hyx,iyx->...hi", params["V"], self.features)}

    def attention(self, params: Params) -> np.ndarray:
        """s = softmax(a) (..., H, N)."""
        return self.reduced.attention(params)

    def residual(self, params: Params) -> np.ndarray:
        """R = G - P (..., N, d, d)."""
        return self.target - np.einsum("...hyx,...hn->...nyx", params["V"], self.attention(params))

    def losses(self, params: Params) -> np.ndarray:
        """|R|^2/2 of each frame, the mean over all contexts."""
        return np.sum(self.residual(params) ** 2, axis=(-3, -2, -1)) / 2


class RegressionSampled(OfModel, Described, ByPasses):
    """Mean of |y - prediction|^2/2 over contexts of standard normal tokens, `batch` new ones at every step [ISA:regression].

    `value` and `grad`, and so the recorded loss, are those of all contexts: |G - P|^2/2. Without `batch` steps see that too.

    Args:
        model: the transformer.
        batch: contexts in a step; None takes the mean over all.
        seed: of the draws.

    Examples:
        >>> heads = ss.RegressionHeads(positions=3, gains=(2.0, 1.0), heads=2)
        >>> whole = ss.RegressionTransformer(reduced=heads, dim=4)
        >>> print(f"{ss.RegressionSampled(model=whole, batch=16).value(whole.init(seed=0)):.2f}")
        2.50
    """

    model: RegressionTransformer
    batch: int | None = Limits(default=None, ge=1)
    seed: int = Limits(default=0, ge=0, lt=2**63)

    @model_validator(mode="after")
    def _fits(self) -> "RegressionSampled":
        require_memory("a batch", "take fewer contexts", self.batch or 1, self.model.positions, self.model.dim)
        return self

    @cached_property
    def seen(self) -> None:
        """All contexts, of which the mean is known."""

    def minibatch(self, step: int) -> np.ndarray | None:
        """The contexts of one step (batch, N, d), None where every step sees all of them."""
        if self.batch is None:
            return None
        return key(self.seed, "contexts", step).normal(size=(self.batch, self.model.positions, self.model.dim))

    def arrays(self, on: np.ndarray | None) -> Any:
        """Tokens and target; for all contexts sqrt(N d) e_n x e_i, once each: their second moments are exactly those of all."""
        size = self.model.positions * self.model.dim
        tokens = (np.sqrt(size) * np.eye(size)).reshape(size, self.model.positions, -1) if on is None else on
        return {"tokens": tokens, "target": self.model.target}

    def loss(self, params: Any, data: Any) -> Any:
        """The definition, token by token."""
        from stagescope.flow.autodiff import jax, jnp

        attention = jax.nn.softmax(params["a"], axis=1)
        predicted = jnp.einsum("hn,bnx,hyx->by", attention, data["tokens"], params["V"])
        true = jnp.einsum("nyx,bnx->by", data["target"], data["tokens"])
        return jnp.mean(jnp.sum((true - predicted) ** 2, axis=1)) / 2

    def value(self, params: Params) -> float:
        return float(self.model.losses(params))

    def _kernel(self, params: Params, on: np.ndarray | None, wanted: bool = True, gradient: bool = True) -> Found:
        """|R|^2/2, and minus V_h' = R s_h and a_h' = J(s_h) R^T V_h.

        A batch acts as R times its own second moments, mean over it of error x tokens.
        """
        residual, attention = self.model.residual(params), self.model.attention(params)
        if on is not None:
            rows = on.reshape(len(on), -1)
            errors = rows @ residual.transpose(0, 2, 1).reshape(rows.shape[1], -1)
            residual = (errors.T @ rows / len(rows)).reshape(-1, *on.shape[1:]).transpose(1, 0, 2)
        pull = np.einsum("hyx,nyx->hn", params["V"], residual)
        centred = pull - np.sum(attention * pull, axis=1, keepdims=True)
        grad = {"a": -attention * centred, "V": -np.einsum("hn,nyx->hyx", attention, residual)}
        return float(np.sum(residual**2)) / 2, grad
