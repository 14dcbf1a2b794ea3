"""Scan and snap on topical classes of a text: PairwiseAttention on the windows before a query word [SnS:text-windows]."""

from collections.abc import Mapping
from functools import cached_property, lru_cache, partial
from typing import Any, Literal, Self

import numpy as np
from pydantic import Field as Limits
from pydantic import model_validator

from stagescope.core.errors import InputError
from stagescope.core.memory import require_memory, require_parameters, require_work
from stagescope.core.params import Layout, Params, key
from stagescope.core.spec import Described, Seed
from stagescope.corpora.window_loss import TokenWindowLoss
from stagescope.flow.by_kernel import ByPasses
from stagescope.flow.field import Found, OfModel, StepGradient
from stagescope.papers.scan_snap.loss import cross_entropy
from stagescope.papers.scan_snap.model import PairwiseAttention
from stagescope.papers.scan_snap.text.process import PartName, TopicWindows, Windows


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


# The transformer of scan and snap's figures on text: one head in a layer, LayerNorm after each part [SnS:text-transformer].


class TextTransformer(Described):
    """x = sqrt(d) E[token] (+ place); in each layer h = norm(x + A x V O), x = norm(h + MLP(h)); logits = x U + u
    [SnS:text-transformer].

    A is causal attention, softmax(x Q (x K)^T/sqrt(d)) over the positions up to each one; the MLP is ReLU with biases. Places
    are fixed sines and cosines, or none. Blocks of layer i > 1 have names that end with i. Dropout falls on the inputs, on
    attention weights, on units of the MLP, and on what attention and MLP add, as in PyTorch's encoder layer.

    The student `published` is that of the authors: biases of V, O and Q, PyTorch's initial ranges, and layers that start as
    copies of each other. A bias of K would add the same number to all scores of a query, which the softmax does not see.

    Args:
        vocab: number of tokens.
        length: positions.
        width: of the stream.
        hidden: width of the MLP.
        places: "sinusoidal" or "none".
        layers: 1 to 3.
        dropout: the share that is dropped in a step.
        student: "plain" or "published".

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
    layers: int = Limits(default=1, ge=1, le=3)
    dropout: float = Limits(default=0.0, ge=0, lt=1)
    student: Literal["plain", "published"] = "plain"

    @model_validator(mode="after")
    def _small(self) -> Self:
        sizes = {"vocab": self.vocab, "width": self.width, "hidden": self.hidden}
        require_parameters(self.shapes, "take a smaller --width, --hidden or --vocab", **sizes)
        return self

    @property
    def suffixes(self) -> tuple[str, ...]:
        """What the names of the blocks of each layer end with."""
        return ("", "2", "3")[: self.layers]

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        wide, mlp = self.width, self.hidden
        layer: dict[str, tuple[int, ...]] = dict.fromkeys("QKVO", (wide, wide))
        layer |= dict.fromkeys("qvo", (wide,)) if self.student == "published" else {}
        layer |= {"M": (wide, mlp), "m": (mlp,), "N": (mlp, wide), "n": (wide,)}
        layer |= {f"{kind}_{part}": (wide,) for part in ("head", "mlp") for kind in ("gain", "shift")}
        shapes: dict[str, tuple[int, ...]] = {"E": (self.vocab, wide)}
        shapes |= {f"{name}{i}": shape for i in self.suffixes for name, shape in layer.items()}
        return shapes | {"U": (wide, self.vocab), "u": (self.vocab,)}

    @property
    def axes(self) -> dict[str, tuple[str, ...]]:
        named = {"E": ("token", "stream"), "U": ("stream", "output"), "u": ("output",), "O": ("inner", "stream")}
        named |= dict.fromkeys("QKV", ("stream", "inner")) | dict.fromkeys("qv", ("inner",))
        named |= {"M": ("stream", "unit"), "m": ("unit",), "N": ("unit", "stream")}
        return {name: named.get(name.rstrip("23"), ("stream",)) for name in self.shapes}

    def init(self, seed: int = 0) -> dict[str, np.ndarray]:
        """Embeddings and output uniform in +-0.1, as in the language-modelling example that the paper's code starts from; other
        matrices uniform in +-sqrt(6/(inputs + outputs)); biases 0, gains 1. For PyTorch Q, K and V are one matrix of three times
        as many outputs, and a linear map begins within 1/sqrt(inputs), with its bias in an MLP.
        """
        published, blocks = self.student == "published", {}
        for name, shape in self.shapes.items():
            kind = name.rstrip("23")
            draw = key(seed, "init", kind if published else name).uniform
            inputs = self.hidden if kind in "Nn" else self.width
            if kind in "EU":
                blocks[name] = 0.1 * draw(-1.0, 1.0, size=shape)
            elif published and kind in "OMmNn":
                blocks[name] = draw(-1.0, 1.0, size=shape) / np.sqrt(inputs)
            elif len(shape) > 1:
                blocks[name] = np.sqrt(6 / (4 * self.width if published else sum(shape))) * draw(-1.0, 1.0, size=shape)
            else:
                blocks[name] = np.ones(shape) if name.startswith("gain") else np.zeros(shape)
        return blocks

    @cached_property
    def fixed_places(self) -> np.ndarray:
        """Sines and cosines of position/10000^(2i/d) (length, width)."""
        half = (self.width + 1) // 2
        angles = np.arange(self.length)[:, None] / 10000.0 ** (np.arange(half) / half)
        return np.concatenate([np.sin(angles), np.cos(angles)], axis=1)[:, : self.width]

    def drops(self, batch: int) -> list[tuple[int, int, int]]:
        """Shapes of what dropout falls on in a step of so many windows, in the order of the pass."""
        stream, scores = (batch, self.length, self.width), (batch, self.length, self.length)
        return [stream, *([scores, stream, (batch, self.length, self.hidden), stream] * self.layers)]

    def forward(self, params: Any, tokens: Any, masks: Any = None) -> tuple[Any, Any]:
        """Logits (B, T, vocab) and attention (layers, B, T, T) before dropout on tokens (B, T), traceable by JAX.

        `masks` say what survives dropout, in the order of `drops`; None: all of it.
        """
        from stagescope.flow.autodiff import jax, jnp

        remaining = iter(masks or ())

        def dropped(part: Any) -> Any:
            mask = next(remaining, None)
            return part if mask is None else jnp.where(mask, part / (1 - self.dropout), 0)

        def linear(x: Any, name: str, i: str) -> Any:
            return x @ params[f"{name}{i}"] + params.get(f"{name.lower()}{i}", 0)

        x = np.sqrt(self.width).astype(params["E"].dtype) * params["E"][tokens]
        if self.places == "sinusoidal":
            x = x + jnp.asarray(self.fixed_places[: tokens.shape[1]], x.dtype)
        x, past, maps = dropped(x), np.tri(tokens.shape[1], dtype=bool), []
        for i in self.suffixes:
            scores = jnp.einsum("bqi,bsi->bqs", linear(x, "Q", i), linear(x, "K", i)) / np.sqrt(self.width).astype(x.dtype)
            attention = jax.nn.softmax(jnp.where(past, scores, -jnp.inf), axis=-1)
            maps.append(attention)
            x = _norm(params, f"head{i}", x + dropped(linear(dropped(attention) @ linear(x, "V", i), "O", i)))
            x = _norm(params, f"mlp{i}", x + dropped(linear(dropped(jax.nn.relu(linear(x, "M", i))), "N", i)))
        return x @ params["U"] + params["u"], jnp.stack(maps)


def _norm(params: Any, part: str, x: Any) -> Any:
    from stagescope.flow.autodiff import jax, jnp

    centred = x - jnp.mean(x, axis=-1, keepdims=True)
    size = jax.lax.rsqrt(jnp.mean(centred**2, axis=-1, keepdims=True) + 1e-5)  # added to the variance, as in PyTorch
    return centred * size * params[f"gain_{part}"] + params[f"shift_{part}"]


# The transformer on windows of a text: the mean cross-entropy of every next token [SnS:text-transformer].


class TextTransformerLoss(TokenWindowLoss):
    """- mean over windows and positions of log softmax(logits_t) of the token at t + 1 [SnS:text-transformer]. See WindowLoss.

    With `in_order` the text is cut into `batch` streams of equal length. A step reads the next window of each, and after the last
    whole window all streams begin again. Dropout is drawn from (seed, step); the recorded loss and its gradient are without it.

    Args:
        model: the transformer.
        process: the corpus.
        length: tokens of a window.
        batch: windows in a step.
        seed: of the draws.
        watched: windows on which the recorded loss is taken.
        part: "train" or "held-out".
        precision: of the whole pass.
        in_order: read parallel streams in order, in place of windows drawn from the text.

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
    in_order: bool = False

    @model_validator(mode="after")
    def _small(self) -> Self:
        size, flag = f"{self.batch:,} windows of {self.length:,} tokens", "--streams" if self.in_order else "--batch"
        require_memory(f"the logits of {size}", f"lower {flag}, --window or --vocab", self.batch, self.length, self.model.vocab)
        require_memory(f"the attention of {size}", f"lower {flag} or --window", self.batch, self.length, self.length)
        return self

    def minibatch(self, step: int) -> np.ndarray:
        if not self.in_order:
            return super().minibatch(step)
        stream = len(self.process.train) // self.batch
        passes = (stream - 1) // self.length  # the token after a window belongs to its stream
        if not passes:
            few = f"the {len(self.process.train):,} tokens of the train part give {self.batch:,} streams of {stream:,}"
            raise InputError(f"{few}, too few for one window of {self.length} and the token after it: take fewer --streams")
        return np.arange(self.batch) * stream + self.length * (step % passes)

    def step_arrays(self, step: int) -> dict[str, Any]:
        """What one step reads: its windows, and with dropout masks of what survives it."""
        arrays = self.arrays(self.minibatch(step))
        if self.model.dropout:
            draw, shapes = key(self.seed, "dropout", step), self.model.drops(self.batch)
            arrays["masks"] = [draw.random(shape, dtype=np.float32) >= self.model.dropout for shape in shapes]
        return arrays

    def draw(self, step: int) -> Any:
        return self.step_arrays(step)

    def loss(self, params: Any, data: Any) -> Any:
        cast = {name: block.astype(self.precision) for name, block in params.items()}
        return next_token_loss(self.model, cast, data)

    @cached_property
    def _compiled(self) -> Any:
        return _gradient(self.model)  # pyright: ignore[reportArgumentType]  # hashed by its description

    def step_gradient(self, layout: Layout) -> StepGradient:
        """The gradient that a step of a descent uses, from a flat vector to a flat vector."""
        gradient_of = _flat_gradient(self.model, layout, self.precision)  # pyright: ignore[reportArgumentType]

        def gradient(vector: np.ndarray, step: int, out: np.ndarray) -> None:
            out[:] = gradient_of(vector, self.step_arrays(step))

        return gradient

    def inputs(self, starts: np.ndarray) -> np.ndarray:
        """The input tokens (N, length) of some windows; the last token of a window is a target only."""
        return np.asarray(self.arrays(starts)["tokens"])[:, :-1]

    @property
    def watched_tokens(self) -> np.ndarray:
        """The input tokens of the watched windows."""
        return self.inputs(self.seen)

    def attention(self, params: Params, tokens: np.ndarray | None = None) -> np.ndarray:
        """Attention (layers, N, length, length) on windows, by default the watched ones; the lowest layer comes first."""
        cast = {name: np.asarray(block, self.precision) for name, block in params.items()}
        inputs = self.watched_tokens if tokens is None else tokens
        return np.asarray(_attention(self.model)(cast, inputs))  # pyright: ignore[reportArgumentType]


def next_token_loss(model: TextTransformer, params: Any, data: Any) -> Any:
    """- mean log softmax(logits_t) of the token at t + 1, tokens (B, T + 1), traceable by JAX."""
    from stagescope.flow.autodiff import jax, jnp

    tokens = data["tokens"]
    logits, _ = model.forward(params, tokens[:, :-1], data.get("masks"))
    target_logits = jnp.take_along_axis(logits, tokens[:, 1:, None], axis=2)[..., 0]
    return jnp.mean(jax.nn.logsumexp(logits, axis=2) - target_logits)


@lru_cache(maxsize=8)
def _gradient(model: TextTransformer) -> Any:
    """Loss and gradient, compiled once for all runs of a model, whatever their rates and seeds."""
    from stagescope.flow.autodiff import jax

    return jax.jit(jax.value_and_grad(partial(next_token_loss, model)))


@lru_cache(maxsize=8)
def _flat_gradient(model: TextTransformer, layout: Layout, precision: str) -> Any:
    from stagescope.flow.autodiff import jax, jnp

    def flat(vector: Any, data: Any) -> Any:
        blocks = jax.grad(partial(next_token_loss, model))(layout.unpack(vector.astype(precision)), data)
        return jnp.concatenate([blocks[name].ravel() for name in layout.names])

    return jax.jit(flat)


@lru_cache(maxsize=8)
def _attention(model: TextTransformer) -> Any:
    from stagescope.flow.autodiff import jax

    return jax.jit(lambda params, tokens: model.forward(params, tokens)[1])
