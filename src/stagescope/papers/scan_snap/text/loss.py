"""Scan and snap on topical classes of a text: PairwiseAttention on the windows before a query word [SnS:text-windows]."""

from collections.abc import Mapping
from functools import cached_property, lru_cache, partial
from typing import Any, Literal, Self

import numpy as np
from pydantic import Field as Limits
from pydantic import model_validator

from stagescope.corpora.window_loss import TokenWindowLoss
from stagescope.fields.by_kernel import ByPasses
from stagescope.fields.field import Found, OfModel, StepGradient
from stagescope.memory import require_memory, require_parameters, require_work
from stagescope.papers.scan_snap.loss import cross_entropy
from stagescope.papers.scan_snap.model import PairwiseAttention
from stagescope.papers.scan_snap.text.process import PartName, TopicWindows, Windows
from stagescope.params import Layout, Params, key
from stagescope.spec import Described, Seed


def on_windows(process: TopicWindows) -> PairwiseAttention:
    """The model of one query: the types in its windows, the next words and one column for all other outputs."""
    return PairwiseAttention(vocab=process.vocab, keys=process.keys, queries=(process.token,), outputs=process.targets)


class PairwiseWindows(OfModel, Described, ByPasses):
    """L = - mean over windows of log softmax(Y^T f)_next, f ~ N_l exp(z_l) of unit length [SnS:text-windows].

    The softmax is over the whole vocabulary; words that are never next share the merged column. A step of a descent uses
    `batch` windows, drawn from (seed, step), or all if `batch` is None. `value`, `grad` and the recorded loss are over all.

    Args:
        model: the attention.
        process: the windows.
        batch: windows in a step; None takes all.
        seed: of the draws.
        part: "train" or "held-out".

    Examples:
        >>> from stagescope.papers.scan_snap.text.loss import on_windows
        >>> windows = ss.topic_windows(ss.read_corpus("words.txt", vocab=9), "the", ("cat", "dog"), window=4, least=1)
        >>> pairwise = on_windows(windows)
        >>> law = ss.PairwiseWindows(model=pairwise, process=windows, batch=None)
        >>> print(f"{law.value(pairwise.init()):.2f}")
        2.20
    """

    model: PairwiseAttention
    process: TopicWindows
    batch: int | None = Limits(default=256, ge=1)
    seed: Seed = 0
    part: PartName = "train"

    @model_validator(mode="after")
    def _fits(self) -> "PairwiseWindows":
        if self.model.vocab != self.process.vocab:
            raise ValueError(f"model vocabulary {self.model.vocab} differs from the corpus's {self.process.vocab}")
        if len(self.model.queries) != 1:
            raise ValueError(f"windows have one query word, but the model has {len(self.model.queries)} queries")
        step = f"a step on {self.batch or 1:,} windows of {self.process.window:,} tokens"
        require_work(step, "lower --batch or --window", self.batch or 1, self.process.window)
        return self

    @property
    def multiplicity(self) -> Mapping[str, np.ndarray]:
        return {"Y": self.model.multiplicity}

    @cached_property
    def windows(self) -> Windows:
        return self.process.part(self.part)

    @cached_property
    def rows(self) -> np.ndarray:
        """The rows of the model's Y that belong to the keys of the windows."""
        return np.array([self.model.keys.index(token) for token in self.process.keys])

    @cached_property
    def columns(self) -> np.ndarray:
        """The columns of the model's Y that belong to the next words."""
        return np.array([self.model.outputs.index(token) for token in self.process.targets])

    @cached_property
    def _columns(self) -> tuple[np.ndarray, ...]:
        """Windows as the kernel reads them: keys and targets as rows and columns of the model's Y."""
        windows = self.windows
        return windows.start, self.rows[windows.key], windows.count, self.columns[windows.target]

    @cached_property
    def seen(self) -> np.ndarray:
        return np.arange(len(self.windows))

    def minibatch(self, step: int) -> np.ndarray | None:
        return None if self.batch is None else key(self.seed, "windows", step).integers(len(self.windows), size=self.batch)

    def arrays(self, on: np.ndarray) -> dict[str, np.ndarray]:
        """Keys and counts (B, widest) of some windows, with zero counts in narrower windows."""
        start, keys, count, target = self._columns
        sizes = np.diff(start)[on]
        inside = np.arange(sizes.max()) < sizes[:, None]
        place = np.where(inside, start[on][:, None] + np.arange(sizes.max()), 0)
        return {"keys": keys[place], "counts": np.where(inside, count[place], 0.0), "target": target[on]}

    def loss(self, params: Any, data: Any) -> Any:
        """The definition, window by window."""
        scores = params["Z"][0][data["keys"]]
        return cross_entropy(params["Y"], scores, **data, multiplicity=self.model.multiplicity)

    def _kernel(self, params: Params, on: np.ndarray, wanted: bool = True, gradient: bool = True) -> Found:
        from stagescope.papers.scan_snap.kernel import window_gradient

        out = self.model.init()
        y, z = (np.array(block, dtype=float) for block in (params["Y"], params["Z"][0]))  # recorded arrays are read-only
        start, keys, count, target = self._columns
        loss = window_gradient(y, z, on, start, keys, count, target, self.model.multiplicity, out["Y"], out["Z"][0])
        return float(loss), out

    def log_laws(self, params: Params) -> np.ndarray:
        """The logarithm of the predicted law of the outputs on every window (windows, outputs)."""
        start, keys, count, _ = self._columns
        f = self.windows.features(self.windows.attend(count, np.asarray(params["Z"][0])[keys]))
        logits = np.add.reduceat(f[:, None] * np.asarray(params["Y"])[keys], start[:-1], axis=0)
        top = logits.max(axis=1, keepdims=True)
        return logits - top - np.log(np.exp(logits - top) @ self.model.multiplicity)[:, None]


# The transformer of scan and snap's figures on text: one layer, one head, LayerNorm after each part [SnS:text-transformer].


class TextTransformer(Described):
    """x = sqrt(d) E[token] (+ place); h = norm(x + A x V O); logits = norm(h + MLP(h)) U + u [SnS:text-transformer].

    A is causal attention, softmax(x Q (x K)^T/sqrt(d)) over the positions up to each one; the MLP is ReLU with biases. Places
    are fixed sines and cosines, or none.

    Args:
        vocab: number of tokens.
        length: positions.
        width: of the stream.
        hidden: width of the MLP.
        places: "sinusoidal" or "none".

    Examples:
        >>> text = ss.TextTransformer(vocab=20, length=8, width=4, hidden=8)
        >>> text.init(seed=0)["E"].shape
        (20, 4)
    """

    vocab: int = Limits(ge=2)
    length: int = Limits(default=35, ge=2)
    width: int = Limits(default=64, ge=1)
    hidden: int = Limits(default=128, ge=1)
    places: Literal["sinusoidal", "none"] = "none"

    @model_validator(mode="after")
    def _small(self) -> Self:
        sizes = {"vocab": self.vocab, "width": self.width, "hidden": self.hidden}
        require_parameters(self.shapes, "take a smaller --width, --hidden or --vocab", **sizes)
        return self

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        wide, mlp = self.width, self.hidden
        shapes: dict[str, tuple[int, ...]] = {"E": (self.vocab, wide), **dict.fromkeys("QKVO", (wide, wide))}
        shapes |= {"M": (wide, mlp), "m": (mlp,), "N": (mlp, wide), "n": (wide,)}
        shapes |= {f"{kind}_{part}": (wide,) for part in ("head", "mlp") for kind in ("gain", "shift")}
        return shapes | {"U": (wide, self.vocab), "u": (self.vocab,)}

    @property
    def axes(self) -> dict[str, tuple[str, ...]]:
        named = {"E": ("token", "stream"), "U": ("stream", "output"), "u": ("output",), "O": ("inner", "stream")}
        named |= dict.fromkeys("QKV", ("stream", "inner")) | {"M": ("stream", "unit"), "m": ("unit",), "N": ("unit", "stream")}
        return {name: named.get(name, ("stream",)) for name in self.shapes}

    def init(self, seed: int = 0) -> dict[str, np.ndarray]:
        """Embeddings and output uniform in +-0.1, as in the language-modelling example that the paper's code starts from; other
        matrices uniform in +-sqrt(6/(inputs + outputs)); biases 0, gains 1.
        """
        blocks = {}
        for name, shape in self.shapes.items():
            if len(shape) > 1:
                reach = 0.1 if name in "EU" else np.sqrt(6 / sum(shape))
                blocks[name] = reach * key(seed, "init", name).uniform(-1.0, 1.0, size=shape)
            else:
                blocks[name] = np.ones(shape) if name.startswith("gain") else np.zeros(shape)
        return blocks

    @cached_property
    def fixed_places(self) -> np.ndarray:
        """Sines and cosines of position/10000^(2i/d) (length, width)."""
        half = (self.width + 1) // 2
        angles = np.arange(self.length)[:, None] / 10000.0 ** (np.arange(half) / half)
        return np.concatenate([np.sin(angles), np.cos(angles)], axis=1)[:, : self.width]

    def forward(self, params: Any, tokens: Any) -> tuple[Any, Any]:
        """Logits (B, T, vocab) and attention (B, T, T) on tokens (B, T), traceable by JAX."""
        from stagescope.autodiff import jax, jnp

        x = np.sqrt(self.width).astype(params["E"].dtype) * params["E"][tokens]
        if self.places == "sinusoidal":
            x = x + jnp.asarray(self.fixed_places[: tokens.shape[1]], x.dtype)
        scores = jnp.einsum("bqi,bsi->bqs", x @ params["Q"], x @ params["K"]) / np.sqrt(self.width).astype(x.dtype)
        past = np.tri(tokens.shape[1], dtype=bool)
        attention = jax.nn.softmax(jnp.where(past, scores, -jnp.inf), axis=-1)
        h = _norm(params, "head", x + (attention @ (x @ params["V"])) @ params["O"])
        mlp = jax.nn.relu(h @ params["M"] + params["m"]) @ params["N"] + params["n"]
        return _norm(params, "mlp", h + mlp) @ params["U"] + params["u"], attention


def _norm(params: Any, part: str, x: Any) -> Any:
    from stagescope.autodiff import jax, jnp

    centred = x - jnp.mean(x, axis=-1, keepdims=True)
    size = jax.lax.rsqrt(jnp.mean(centred**2, axis=-1, keepdims=True) + 1e-5)  # added to the variance, as in PyTorch
    return centred * size * params[f"gain_{part}"] + params[f"shift_{part}"]


# The one-layer transformer on windows of a text: the mean cross-entropy of every next token [SnS:text-transformer].


class TextTransformerLoss(TokenWindowLoss):
    """- mean over windows and positions of log softmax(logits_t) of the token at t + 1 [SnS:text-transformer]. See WindowLoss.

    Args:
        model: the transformer.
        process: the corpus.
        length: tokens of a window.
        batch: windows in a step.
        seed: of the draws.
        watched: windows on which the recorded loss is taken.
        part: "train" or "held-out".
        precision: of the whole pass.

    Examples:
        >>> corpus = ss.read_corpus("words.txt", vocab=9)
        >>> text = ss.TextTransformer(vocab=corpus.size, length=8, width=4, hidden=8)
        >>> law = ss.TextTransformerLoss(model=text, process=corpus, length=8, batch=2, watched=4)
        >>> law.batch, law.watched
        (2, 4)
    """

    model: TextTransformer
    batch: int = Limits(default=20, ge=1)
    watched: int = Limits(default=100, ge=1)

    @model_validator(mode="after")
    def _small(self) -> Self:
        what = f"{self.batch:,} windows of {self.length:,} tokens"
        require_memory(f"the logits of {what}", "lower --batch, --window or --vocab", self.batch, self.length, self.model.vocab)
        require_memory(f"the attention of {what}", "lower --batch or --window", self.batch, self.length, self.length)
        return self

    def loss(self, params: Any, data: Any) -> Any:
        cast = {name: block.astype(self.precision) for name, block in params.items()}
        return next_token_loss(self.model, cast, data["tokens"])

    @cached_property
    def _compiled(self) -> Any:
        return _gradient(self.model)  # pyright: ignore[reportArgumentType]  # hashed by its description

    def step_gradient(self, layout: Layout) -> StepGradient:
        """The gradient that a step of a descent uses, from a flat vector to a flat vector."""
        gradient_of = _flat_gradient(self.model, layout, self.precision)  # pyright: ignore[reportArgumentType]

        def gradient(vector: np.ndarray, step: int, out: np.ndarray) -> None:
            out[:] = gradient_of(vector, self.arrays(self.minibatch(step)))

        return gradient

    @property
    def watched_tokens(self) -> np.ndarray:
        """The input tokens (N, length) of the watched windows; the last token of a window is a target only."""
        return np.asarray(self.arrays(self.seen)["tokens"])[:, :-1]

    def attention(self, params: Params) -> np.ndarray:
        """Attention (N, length, length) on the watched windows."""
        cast = {name: np.asarray(block, self.precision) for name, block in params.items()}
        return np.asarray(_attention(self.model)(cast, self.watched_tokens))  # pyright: ignore[reportArgumentType]


def next_token_loss(model: TextTransformer, params: Any, tokens: Any) -> Any:
    """- mean log softmax(logits_t) of the token at t + 1, tokens (B, T + 1), traceable by JAX."""
    from stagescope.autodiff import jax, jnp

    logits, _ = model.forward(params, tokens[:, :-1])
    own = jnp.take_along_axis(logits, tokens[:, 1:, None], axis=2)[..., 0]
    return jnp.mean(jax.nn.logsumexp(logits, axis=2) - own)


@lru_cache(maxsize=8)
def _gradient(model: TextTransformer) -> Any:
    """Loss and gradient, compiled once for all runs of a model, whatever their rates and seeds."""
    from stagescope.autodiff import jax

    return jax.jit(jax.value_and_grad(lambda params, data: next_token_loss(model, params, data["tokens"])))


@lru_cache(maxsize=8)
def _flat_gradient(model: TextTransformer, layout: Layout, precision: str) -> Any:
    from stagescope.autodiff import jax, jnp

    def flat(vector: Any, data: Any) -> Any:
        blocks = jax.grad(partial(next_token_loss, model))(layout.unpack(vector.astype(precision)), data["tokens"])
        return jnp.concatenate([blocks[name].ravel() for name in layout.names])

    return jax.jit(flat)


@lru_cache(maxsize=8)
def _attention(model: TextTransformer) -> Any:
    from stagescope.autodiff import jax

    return jax.jit(lambda params, tokens: model.forward(params, tokens)[1])
