"""The full student: a transformer of one or two layers with embeddings, LayerNorm, MLP and residual stream [ISA:transformer]."""

from collections.abc import Iterator
from functools import cached_property
from typing import Any, Literal, Self

import numpy as np
from pydantic import Field as Limits
from pydantic import model_validator

from stagescope.core.params import Params, key
from stagescope.core.spec import Spec
from stagescope.papers.incremental.loss import LaggedModel


class Transformer(LaggedModel):
    """x = E[token] + position, in each layer heads and MLP add to it, and logits are read from it [ISA:transformer].

    Two students: the paper's, `published`, has x = norm(x + heads(x)), x = norm(x + MLP(x)), logits x U. Token embeddings are
    orthonormal, and so are the rows that read logits; all other matrices are drawn from Xavier's range. Dropout falls on the
    inputs, on attention weights, and on what heads and MLP add. `pre-norm` has x += heads(norm(x)), x += MLP(norm(x)), logits
    norm(x) U + u, normal embeddings, other matrices within 1/sqrt(inputs), and dropout only on what heads and MLP add.

    The MLP is ReLU with biases; the maps of the heads have none. Position
    encodings (`places`) are `learned`, `sinusoidal` (fixed sines and cosines) or `one-hot` (the s-th unit vector), all added to
    the tokens; `rotary`, which turns queries and keys by angles that grow with the position; or `relative`, a learned number B
    for each head and lag that is added to the scores. Parts are switched off by `mlp=0`, `norm="none"`, `residual=False`,
    `dropout=0`.

    Where nothing is dropped before the first layer, its norm, queries, keys and values depend on (token, position) alone: they
    are computed once per pair and gathered. The last layer computes only the rows that are scored.

    Args:
        vocab: number of tokens.
        heads: heads in a layer.
        context: tokens before the first target.
        targets: tokens that are scored.
        student: "published" or "pre-norm".
        layers: 1 or 2.
        width: of the stream.
        mlp: hidden width; 0 for no MLP.
        places: how positions are encoded.
        norm: "layer" or "none".
        residual: whether parts add to the stream.
        dropout: the share that is dropped.

    Examples:
        >>> student = ss.Transformer(vocab=3, heads=1, context=2, targets=2, width=4, mlp=0, dropout=0)
        >>> sorted(student.init(seed=0))
        ['E', 'K1', 'O1', 'P', 'Q1', 'U', 'V1', 'gain_heads1', 'shift_heads1']
    """

    student: Literal["published", "pre-norm"] = "published"
    layers: Literal[1, 2] = 1
    width: int = Limits(default=255, ge=1)
    mlp: int = Limits(default=64, ge=0)
    places: Literal["learned", "sinusoidal", "one-hot", "rotary", "relative"] = "learned"
    norm: Literal["layer", "none"] = "layer"
    residual: bool = True
    dropout: float = Limits(default=0.1, ge=0, lt=1)

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.width % self.heads:
            raise ValueError(f"width {self.width} is not a multiple of the {self.heads} heads")
        if self.places == "one-hot" and self.width < self.positions:
            raise ValueError(f"one-hot positions need a width of at least {self.positions}, got {self.width}")
        if self.places == "rotary" and self.width < 2 * self.heads:
            raise ValueError(f"rotary positions need a width of at least 2 for each of the {self.heads} heads, got {self.width}")
        return self

    @classmethod
    def restored(cls, fields: Spec) -> Self:
        """Specs of version 0.2.0 know one student."""
        return cls(**{"student": "pre-norm", **fields})

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        wide, part, heads = self.width, self.width // self.heads, self.heads
        shapes: dict[str, tuple[int, ...]] = {"E": (self.vocab, wide)}
        if self.places == "learned":
            shapes["P"] = (self.positions, wide)
        for i in range(1, self.layers + 1):
            shapes |= {f"{name}{i}": (heads, wide, part) for name in "QKV"} | {f"O{i}": (heads, part, wide)}
            if self.places == "relative":
                shapes[f"B{i}"] = (heads, self.positions)
            if self.mlp:
                shapes |= {f"M{i}": (wide, self.mlp), f"m{i}": (self.mlp,), f"N{i}": (self.mlp, wide), f"n{i}": (wide,)}
        shapes |= {f"{kind}_{name}": (wide,) for name in self.norms for kind in ("gain", "shift")}
        return shapes | {"U": (wide, self.vocab)} | ({} if self.published else {"u": (self.vocab,)})

    @property
    def published(self) -> bool:
        return self.student == "published"

    @property
    def norms(self) -> tuple[str, ...]:
        """Norms from first to last: after the part that they are named after (published), or before it, or before the output."""
        parts = ("heads", "mlp") if self.mlp else ("heads",)
        names = (*(f"{part}{i}" for i in range(1, self.layers + 1) for part in parts), *(() if self.published else ("out",)))
        return names if self.norm == "layer" else ()

    def norm_read(self, part: str) -> str | None:
        """The norm of what a part ("heads1", "mlp1", .. or "out") reads; None where it reads the stream as it is."""
        if not self.published or not self.norms:
            return part if part in self.norms else None
        place = self.norms.index(part) if part in self.norms else len(self.norms)
        return self.norms[place - 1] if place else None

    @property
    def drops(self) -> tuple[tuple[int, int], ...]:
        """What dropout falls on, in the order of the pass: rows of a sequence, and entries of a row."""
        masked = [(self.positions, self.width)] if self.published else []
        for i in range(1, self.layers + 1):
            rows = len(self.rows(i))
            weights = [(rows, self.heads * self.positions)] if self.published else []
            masked += weights + [(rows, self.width)] * (2 if self.mlp else 1)
        return tuple(masked)

    @property
    def axes(self) -> dict[str, tuple[str, ...]]:
        named = {"E": ("token", "stream"), "P": ("position", "stream"), "U": ("stream", "output"), "u": ("output",)}
        named |= dict.fromkeys("QKV", ("head", "stream", "inner")) | {"O": ("head", "inner", "stream")}
        named |= {"B": ("head", "lag"), "M": ("stream", "unit"), "m": ("unit",), "N": ("unit", "stream")}
        return {name: named.get(name.rstrip("12"), ("stream",)) for name in self.shapes}

    def init(self, seed: int = 0) -> dict[str, np.ndarray]:
        """Biases (also of lags) 0, gains 1, and matrices as the student says: see the class."""
        blocks = {}
        for name, shape in self.shapes.items():
            draw = key(seed, "init", name)
            if self.published and name in ("E", "U"):
                blocks[name] = _orthonormal(draw.normal(size=shape))
            elif name in ("E", "P") and not self.published:
                blocks[name] = draw.normal(size=shape)
            elif len(shape) > 1 and name[0] != "B":
                ends = (self.width, self.width) if len(shape) == 3 else shape  # all heads together are one matrix
                if name == "P":  # the authors' table has 50 rows, however many are used
                    ends = (max(50, self.positions), self.width)
                blocks[name] = draw.uniform(-1.0, 1.0, size=shape) / np.sqrt(sum(ends) / 6 if self.published else ends[0])
            else:
                blocks[name] = np.ones(shape) if name.startswith("gain") else np.zeros(shape)
        return blocks

    @cached_property
    def fixed_places(self) -> np.ndarray:
        """What is added to the tokens and not learned (positions, width); nothing for rotary and relative positions."""
        if self.places in ("rotary", "relative"):
            return np.zeros((self.positions, self.width))
        if self.places == "one-hot":
            return np.eye(self.positions, self.width)
        angles = self._angles((self.width + 1) // 2)
        return np.concatenate([np.sin(angles), np.cos(angles)], axis=1)[:, : self.width]

    def _angles(self, count: int) -> np.ndarray:
        """Angles that grow with the position, at `count` rates from 1 down to 1/10000 (positions, count)."""
        return np.arange(self.positions)[:, None] / 10000.0 ** (np.arange(count) / count)

    @cached_property
    def turns(self) -> tuple[np.ndarray, np.ndarray]:
        """cos and sin of the angles of rotary positions (positions, half of a head); an odd last entry is not turned."""
        angles = self._angles(self.width // self.heads // 2)
        return np.cos(angles), np.sin(angles)

    def forward(self, params: Any, tokens: Any, kept: Any = None) -> tuple[Any, Any]:
        """Logits (B, L, d) and the attention of the first layer (H, B, L, N) on tokens (B, N), traceable by JAX.

        `kept` are masks (B, rows, entries) of what survives dropout, in the order of `drops`; None: all.
        """
        from stagescope.flow.autodiff import jax, jnp

        everywhere = np.arange(self.positions)
        place = params["P"] if self.places == "learned" else jnp.asarray(self.fixed_places, params["E"].dtype)
        pairs = params["E"][:, None] + place  # (token, position, stream): every input of the first layer
        masks, tabled, attention = iter(kept or ()), kept is None or not self.published, None
        x = pairs if tabled else self._dropped(pairs[tokens, everywhere], masks)

        def norm(name: str, block: Any, after: bool) -> Any:
            return self._norm(params, name, block) if self.published == after else block

        for i in range(1, self.layers + 1):
            rows, gathered = self.rows(i), tabled and i == 1
            normed = norm(f"heads{i}", x, after=False)
            x = x[tokens[:, rows], rows] if gathered else x[:, rows]

            def project(name: str, at: np.ndarray, normed: Any = normed, i: int = i, gathered: bool = gathered) -> Any:
                part = jnp.einsum("ysw,hwp->hysp", normed[:, at], params[f"{name}{i}"])
                part = self._turned(part, at) if name in "QK" and self.places == "rotary" else part
                if not gathered:
                    return part  # (head, sequence, position, inner)
                flat = part.reshape(self.heads, -1, part.shape[-1])  # one index gathers faster than two
                return flat[:, tokens[:, at] * len(at) + np.arange(len(at))]

            scores = jnp.einsum(
                "hbqp,hbsp->hbqs", project("Q", rows) / np.sqrt(self.width // self.heads), project("K", everywhere)
            )
            if self.places == "relative":
                lags = np.maximum(rows[:, None] - everywhere, 0)
                scores = scores + params[f"B{i}"][:, None, lags]
            weights = jax.nn.softmax(jnp.where(everywhere <= rows[:, None], scores, -jnp.inf), axis=-1)
            attention = weights if attention is None else attention
            if self.published:
                by_row = jnp.moveaxis(weights, 0, 2)  # (sequence, row, head, position), as its mask is drawn
                flat = self._dropped(by_row.reshape(*by_row.shape[:2], -1), masks)
                weights = jnp.moveaxis(flat.reshape(by_row.shape), 2, 0)
            mixed = jnp.einsum("hbqs,hbsp->hbqp", weights, project("V", everywhere))
            part = self._dropped(sum(mixed[h] @ params[f"O{i}"][h] for h in range(self.heads)), masks)
            x = norm(f"heads{i}", x + part if self.residual else part, after=True)
            if self.mlp:
                units = jax.nn.relu(norm(f"mlp{i}", x, after=False) @ params[f"M{i}"] + params[f"m{i}"])
                part = self._dropped(units @ params[f"N{i}"] + params[f"n{i}"], masks)
                x = norm(f"mlp{i}", x + part if self.residual else part, after=True)
        return norm("out", x, after=False) @ params["U"] + params.get("u", 0), attention

    def _turned(self, part: Any, at: np.ndarray) -> Any:
        """Queries or keys (..., positions, inner), each turned by the angles of its position."""
        from stagescope.flow.autodiff import jnp

        cos, sin = (jnp.asarray(table[at], part.dtype) for table in self.turns)
        half = cos.shape[-1]
        one, two, unturned = part[..., :half], part[..., half : 2 * half], part[..., 2 * half :]
        return jnp.concatenate([one * cos - two * sin, two * cos + one * sin, unturned], axis=-1)

    def rows(self, layer: int) -> np.ndarray:
        """Positions that a layer computes: all, in the last one those that are scored."""
        return np.arange(self.context - 1 if layer == self.layers else 0, self.positions)

    @property
    def threshold(self) -> int:
        """Of 2^16 random numbers, how many mean that an entry is dropped."""
        return min(round(self.dropout * 2**16), 2**16 - 1)

    def _norm(self, params: Any, name: str, x: Any) -> Any:
        if self.norm == "none":
            return x
        from stagescope.flow.autodiff import jax, jnp

        centred = x - jnp.mean(x, axis=-1, keepdims=True)
        size = jax.lax.rsqrt(jnp.mean(centred**2, axis=-1, keepdims=True) + 1e-5)  # as in PyTorch's LayerNorm
        return centred * size * params[f"gain_{name}"] + params[f"shift_{name}"]

    def _dropped(self, part: Any, masks: Iterator[Any]) -> Any:
        """What the next mask keeps; entries that survive dropout are scaled up."""
        mask = next(masks, None)
        if mask is None:
            return part
        from stagescope.flow.autodiff import jnp

        return jnp.where(mask, part / (1 - self.dropout), 0)

    @cached_property
    def _compiled(self) -> Any:
        from stagescope.flow.autodiff import jax

        return jax.jit(self.forward)

    def _forward(self, params: Params, tokens: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Without dropout, in float64."""
        self.check_tokens(tokens)
        floats = {name: np.asarray(block, dtype=float) for name, block in params.items()}
        logits, attention = self._compiled(floats, tokens[:, : self.positions])
        return np.asarray(logits), np.asarray(attention)

    def logits(self, params: Params, tokens: np.ndarray) -> np.ndarray:
        return self._forward(params, tokens)[0]

    def seen(self, params: Params, tokens: np.ndarray) -> np.ndarray:
        """Attention of the rows that are scored, in the first layer."""
        return np.swapaxes(self._forward(params, tokens)[1], 0, 1)[:, :, -self.targets :]

    def token_maps(self, params: Params) -> np.ndarray | None:
        """E V_h O_h U of one layer, without norm and MLP; with them the map from token to logits is not linear."""
        if self.layers > 1 or self.mlp or self.norm != "none":
            return None
        return np.einsum("xw,hwp,hpv,vy->hyx", params["E"], params["V1"], params["O1"], params["U"], optimize=True)


def _orthonormal(normal: np.ndarray) -> np.ndarray:
    """Orthonormal rows, or columns where there are fewer of them, drawn uniformly; from a matrix of normal numbers."""
    wide = normal.shape[0] < normal.shape[1]
    q, r = np.linalg.qr(normal.T if wide else normal)
    q = q * np.sign(np.diag(r))  # without the signs the draw would not be uniform
    return q.T if wide else q
