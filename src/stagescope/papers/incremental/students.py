"""Heads that read positions, heads that also read tokens, and their losses on a lagged chain."""

from collections.abc import Iterator
from functools import cached_property
from typing import Any, Literal

import numpy as np

from stagescope.core.params import Params, key
from stagescope.flow.softmax import softmax
from stagescope.papers.incremental.loss import (
    Found,
    LaggedLoss,
    LaggedModel,
    NgramLoss,
    SequenceLoss,
    Sequences,
    broken,
    check_scale,
    windows_of,
)
from stagescope.papers.incremental.process import LaggedChain
from stagescope.papers.incremental.transformer import Transformer
from stagescope.papers.incremental.transformer_passes import TransformerLoss


class PositionalHeads(LaggedModel):
    """a (H, L, P + L - 1) positional scores and V (H, d, d) values [ISA:positional-heads].

    logits_t = sum_h V_h sum_{s < P + t} softmax(a_h[t])_s e_{x_s} for the targets t = 0 .. L - 1 after a context of P tokens:
    what one-hot positions and a free query matrix reduce to. Scores of positions a target does not see have no effect.

    Args:
        vocab: number of tokens d.
        heads: number of heads H.
        context: tokens P before the first target.
        targets: tokens L that are scored.

    Examples:
        >>> student = ss.PositionalHeads(vocab=3, heads=2, context=2, targets=4)
        >>> {name: block.shape for name, block in student.init(seed=0).items()}
        {'a': (2, 4, 5), 'V': (2, 3, 3)}
    """

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        return {"a": (self.heads, self.targets, self.positions), "V": (self.heads, self.vocab, self.vocab)}

    @property
    def axes(self) -> dict[str, tuple[str, ...]]:
        return {"a": ("head", "target", "position"), "V": ("head", "output", "token")}

    def init(self, seed: int = 0, scale: float = 1e-3) -> dict[str, np.ndarray]:
        """V = 0 and normal numbers times `scale` in a, zero where a target sees nothing."""
        check_scale(scale)
        normal = key(seed, "init", "a").normal(size=self.shapes["a"])
        return {"a": np.where(self.visible, scale * normal, 0.0), "V": np.zeros(self.shapes["V"])}

    def attention(self, params: Params) -> np.ndarray:
        """softmax(a) over the visible positions (..., H, L, P + L - 1)."""
        return softmax(np.where(self.visible, params["a"], -np.inf))

    def seen(self, params: Params, tokens: np.ndarray) -> np.ndarray:
        return self.attention(params)[None]

    def token_maps(self, params: Params) -> np.ndarray:
        return np.asarray(params["V"], dtype=float)

    def logits(self, params: Params, tokens: np.ndarray) -> np.ndarray:
        """Output logits (B, L, d) for tokens (B, P + L - 1 or more): one gather of rows per position."""
        attention, values = self.attention(params), np.asarray(params["V"], dtype=float)
        self.check_tokens(tokens)
        total = np.zeros((len(tokens), self.targets, self.vocab))
        for s in range(self.positions):
            rows = np.einsum("ht,hjx->xtj", attention[:, :, s], values)
            total += rows[tokens[:, s]]
        return total


class HeadsKernel(SequenceLoss):
    """The loss of PositionalHeads on any sequences, by a kernel [ISA:loss].

    `precision` is that of the steps of a descent: of logits, residuals and their sums over sequences. Parameters, sums over
    heads, `value`, `grad` and all that is read of a run are float64 in both.
    """

    model: PositionalHeads  # pyright: ignore[reportIncompatibleVariableOverride]  # frozen
    precision: Literal["float32", "float64"] = "float64"

    def predict(self, params: Any, data: Any) -> Any:
        """Rows of V gathered by token, mixed by attention."""
        from stagescope.flow.autodiff import jax, jnp

        attention = jax.nn.softmax(jnp.where(self.model.visible, params["a"], -jnp.inf), axis=-1)
        rows = jnp.swapaxes(params["V"], 1, 2)[:, data["tokens"][:, : self.model.positions]]
        return jnp.einsum("hts,hnsj->ntj", attention, rows)

    def _kernel(self, params: Params, on: Sequences, wanted: bool = True, gradient: bool = True) -> Found:
        """The kernel's derivatives in attention and values, taken back through the softmax. Only steps do without the loss."""
        from stagescope.papers.incremental.positional_kernel import heads_pass

        if (not_finite := broken(params)) is not None:
            return not_finite
        attention = self.model.attention(params)
        values = np.ascontiguousarray(np.swapaxes(np.asarray(params["V"], dtype=float), 1, 2))
        cast = values if wanted else values.astype(self.precision)
        loss, d_attention, d_values = heads_pass(attention, cast, on, self.model.context, wanted, gradient)
        centred = d_attention - np.sum(attention * d_attention, axis=-1, keepdims=True)
        return loss, {"a": attention * centred, "V": np.swapaxes(d_values, 1, 2)}


class HeadsLoss(HeadsKernel, LaggedLoss):  # pyright: ignore[reportIncompatibleVariableOverride]  # frozen
    """On sequences of a lagged chain. See LaggedLoss for the choices.

    Args:
        model: the student.
        process: the chain that it learns.
        sequences: how many sequences are drawn.
        seed: of the draw.
        labels: "hard", the tokens drawn, or "soft", the true law of each.
        batch: sequences in a step of a descent; None takes all.
        fresh: draw new sequences for every step.
        part: "train" or "held-out": two samples of one seed.
        watched: sequences on which the recorded loss is taken.
        precision: of the products in the kernel.

    Examples:
        >>> student = ss.PositionalHeads(vocab=3, heads=2, context=2, targets=4)
        >>> law = ss.HeadsLoss(model=student, process=lagged, sequences=50)
        >>> print(f"{law.value(student.init(seed=0)):.2f}")
        1.10
    """

    def _largest(self) -> Iterator[tuple[str, str, tuple[int, ...]]]:
        yield from super()._largest()
        size = (self.model.positions, self.model.vocab, self.model.vocab)
        yield "the work space of the heads", "take shorter spans, less padding or a smaller vocabulary", size


class ContentHeads(LaggedModel):
    """W (H, d + N, d + N) queries, V (H, d, d + N) values on inputs u_s = (token one-hot ; position one-hot) [ISA:content-heads].

    N = P + L - 1 positions. The query of target t is the last token it sees, at q = P + t - 1: its score for position s <= q is
    u_q^T W_h u_s / sqrt(d + N), and logits_t = sum_h V_h sum_s softmax(scores)_s u_s. Keys are the inputs themselves. As u holds
    two ones, every product is a sum of two gathered rows; no one-hot is ever made.

    With two layers, W1 and V1 (H, d + N, d + N) make x_q = sum_h V1_h sum_{s <= q} softmax(scores)_s u_s for every position, and
    W2 and V2 read x in place of u. Nothing skips a layer: tokens reach the second one through V1 alone.

    Args:
        vocab: number of tokens d.
        heads: number of heads H.
        context: tokens P before the first target.
        targets: tokens L that are scored.
        layers: 1 or 2.

    Examples:
        >>> student = ss.ContentHeads(vocab=3, heads=2, context=2, targets=4)
        >>> {name: block.shape for name, block in student.init(seed=0).items()}
        {'W': (2, 8, 8), 'V': (2, 3, 8)}
    """

    layers: Literal[1, 2] = 1

    @property
    def inputs(self) -> int:
        """Length of [token ; position]."""
        return self.vocab + self.positions

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        size = self.inputs
        square, out = (self.heads, size, size), (self.heads, self.vocab, size)
        return {"W": square, "V": out} if self.layers == 1 else {"W1": square, "V1": square, "W2": square, "V2": out}

    @property
    def axes(self) -> dict[str, tuple[str, ...]]:
        named = {"W": ("head", "query", "key"), "V": ("head", "output", "input")}
        return {name: named[name[0]] for name in self.shapes}

    def init(self, seed: int = 0, scale: float = 1e-3, kind: Literal["scale", "xavier"] = "scale") -> dict[str, np.ndarray]:
        """V = 0 and W uniform within +- scale; with `xavier` both are within sqrt(6 / (inputs + outputs)) = sqrt(3 / (d + N)).

        That is the range of a square value matrix, as in the authors' code, of which the first d rows are read. With V = 0 two
        layers never learn: the second sees nothing.
        """
        check_scale(scale)
        xavier = float(np.sqrt(3.0 / self.inputs))
        reach = {"W": scale, "V": 0.0} if kind == "scale" else {"W": xavier, "V": xavier}
        return {
            name: reach[name[0]] * key(seed, "init", name).uniform(-1.0, 1.0, size=shape) for name, shape in self.shapes.items()
        }

    def forward(self, params: Any, tokens: Any, xp: Any = np) -> tuple[Any, Any]:
        """Logits (B, L, d) and attention of the first layer (H, B, L, N) on tokens (B, N), by NumPy or by JAX (`xp`)."""
        places, first = np.arange(self.positions), "" if self.layers == 1 else "1"
        query_places = places[self.context - 1 if self.layers == 1 else 0 :]
        queries, values = params[f"W{first}"], xp.swapaxes(params[f"V{first}"], 1, 2)
        rows = queries[:, tokens[:, query_places]] + queries[:, None, self.vocab + query_places]
        scores = xp.take_along_axis(rows, tokens[None, :, None, :], axis=-1) + rows[..., self.vocab + places]
        attention = self._attention(scores, query_places, xp)
        x: Any = sum(attention[h] @ (values[h][tokens] + values[h][self.vocab + places]) for h in range(self.heads))
        if self.layers == 1:
            return x, attention
        scored = places[self.context - 1 :]
        again = self._attention(xp.stack([x[:, scored] @ w @ xp.swapaxes(x, 1, 2) for w in params["W2"]]), scored, xp)
        logits = sum(again[h] @ x @ params["V2"][h].T for h in range(self.heads))
        return logits, attention[:, :, self.context - 1 :]

    def _attention(self, scores: Any, places: np.ndarray, xp: Any) -> Any:
        """Softmax of scores/sqrt(d + N) over the positions up to the one that asks."""
        scores = xp.where(np.arange(self.positions) <= places[:, None], scores / np.sqrt(self.inputs), -np.inf)
        powers = xp.exp(scores - scores.max(axis=-1, keepdims=True))
        return powers / powers.sum(axis=-1, keepdims=True)

    def _forward(self, params: Params, tokens: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        self.check_tokens(tokens)
        return self.forward({name: np.asarray(params[name], dtype=float) for name in self.shapes}, tokens[:, : self.positions])

    def seen(self, params: Params, tokens: np.ndarray) -> np.ndarray:
        return np.swapaxes(self._forward(params, tokens)[1], 0, 1)

    def token_maps(self, params: Params) -> np.ndarray | None:
        """The part of V that reads tokens; with two layers no head has a map of its own."""
        return np.asarray(params["V"], dtype=float)[:, :, : self.vocab] if self.layers == 1 else None

    def logits(self, params: Params, tokens: np.ndarray) -> np.ndarray:
        return self._forward(params, tokens)[0]


PASS = 500
"""Sequences that pass together through two layers of content heads: their arrays stay small, and JAX compiles one size."""


class ContentLoss(LaggedLoss):
    """The loss of ContentHeads [ISA:loss]: of one layer by a kernel, of two by JAX. See LaggedLoss for the choices.

    `precision` is that of the products inside the kernel; parameters, exponentials and sums over sequences are float64 in both.
    Of two layers it is that of the whole pass, and sums over blocks of sequences are float64.

    Args:
        model: the student.
        process: the chain that it learns.
        sequences: how many sequences are drawn.
        seed: of the draw.
        labels: "hard", the tokens drawn, or "soft", the true law of each.
        batch: sequences in a step of a descent; None takes all.
        fresh: draw new sequences for every step.
        part: "train" or "held-out": two samples of one seed.
        watched: sequences on which the recorded loss is taken.
        precision: of the products in the kernel.

    Examples:
        >>> student = ss.ContentHeads(vocab=3, heads=2, context=2, targets=4)
        >>> law = ss.ContentLoss(model=student, process=lagged, sequences=50)
        >>> print(f"{law.value(student.init(seed=0)):.2f}")  # ln 3 at a small start
        1.10
    """

    model: ContentHeads  # pyright: ignore[reportIncompatibleVariableOverride]  # frozen
    precision: Literal["float32", "float64"] = "float64"

    def predict(self, params: Any, data: Any) -> Any:
        from stagescope.flow.autodiff import jnp

        return self.model.forward(params, data["tokens"][:, : self.model.positions], jnp)[0]

    def _kernel(self, params: Params, on: Sequences, wanted: bool = True, gradient: bool = True) -> Found:
        from stagescope.papers.incremental.content_kernel import content_pass

        if (failure := broken(params)) is not None:
            return failure
        if self.model.layers == 2:
            return self._two_layers(params, on, gradient)
        root = np.sqrt(self.model.inputs)
        queries = np.asarray(params["W"], dtype=float) / root
        values = np.swapaxes(np.asarray(params["V"], dtype=float), 1, 2)
        d_queries, d_values = np.empty(queries.shape), np.empty(values.shape)
        cast = np.ascontiguousarray(values, dtype=self.precision)
        loss = content_pass(queries, cast, on.by_sequence, on.soft, self.model.context, gradient, d_queries, d_values)
        return loss, {"W": d_queries / root, "V": np.swapaxes(d_values, 1, 2)}

    @cached_property
    def _compiled(self) -> tuple[Any, Any]:
        from stagescope.flow.autodiff import jax

        return jax.jit(self.loss), jax.jit(jax.value_and_grad(self.loss))

    def _two_layers(self, params: Params, on: Sequences, gradient: bool) -> Found:
        """The definition, a block of sequences at a time: dense products leave a kernel little to gain."""
        cast: Any = {name: np.asarray(block, self.precision) for name, block in params.items()}
        value, with_gradient = self._compiled
        count, total, sums = on.tokens.shape[1], 0.0, {name: np.zeros(np.shape(block)) for name, block in params.items()}
        for first in range(0, count, PASS):
            part = on.take(slice(first, first + PASS))
            share = part.tokens.shape[1] / count
            data = self.arrays(part)
            loss, grads = with_gradient(cast, data) if gradient else (value(cast, data), {})
            total += share * float(loss)
            for name, block in grads.items():
                sums[name] += share * np.asarray(block, dtype=float)
        return total, sums if gradient else {}


class ContentNgram(NgramLoss, ContentLoss):  # pyright: ignore[reportIncompatibleVariableOverride]  # frozen
    """Content heads on the nearest lags alone [ISA:ngram]."""


class TransformerNgram(NgramLoss, TransformerLoss):  # pyright: ignore[reportIncompatibleVariableOverride]  # frozen
    """A transformer on the nearest lags alone [ISA:ngram]."""


def student_loss(model: LaggedModel, process: LaggedChain, **choices: Any) -> LaggedLoss:
    """The loss of a student on a chain; `choices` are fields of the loss, such as sequences, batch, labels and seed.

    Args:
        model: the student.
        process: the chain.
        choices: fields of the loss.

    Examples:
        >>> student = ss.PositionalHeads(vocab=3, heads=2, context=2, targets=4)
        >>> type(ss.student_loss(student, lagged, sequences=50)).__name__
        'HeadsLoss'
    """
    losses: dict[type[LaggedModel], type[LaggedLoss]] = {
        PositionalHeads: HeadsLoss,
        ContentHeads: ContentLoss,
        Transformer: TransformerLoss,
    }
    return losses[type(model)](model=model, process=process, **choices)


def nearest_lags(process: LaggedChain, spans: int) -> int:
    """How far back the nearest spans of lags reach, so many of them."""
    return max(max(group) for group in sorted(process.groups, key=min)[:spans])


def ngram_loss(model: ContentHeads | Transformer, process: LaggedChain, spans: int, **choices: Any) -> NgramLoss:
    """A learned n-gram: a model like the student on windows of the nearest `spans` spans, one for each target [ISA:ngram].

    Examples:
        >>> student = ss.ContentHeads(vocab=3, heads=2, context=2, targets=4)
        >>> from stagescope.papers.incremental.students import ngram_loss
        >>> loss = ngram_loss(student, lagged, 1, sequences=50)
        >>> loss.model.context, loss.seen.tokens.shape  # one lag; four windows of two tokens in each of 50 sequences
        (1, (2, 200))
    """
    small = model.model_copy(update={"context": nearest_lags(process, spans), "targets": 1})
    kind: type[Any] = ContentNgram if isinstance(model, ContentHeads) else TransformerNgram
    return kind(
        model=type(model)(**{name: getattr(small, name) for name in type(model).model_fields}),
        process=process,
        drawn=model.targets,
        **choices,
    )


def ngram_law(loss: NgramLoss, params: Params, tokens: np.ndarray) -> np.ndarray:
    """What a learned n-gram predicts of the last targets of sequences (sequences, targets, d)."""
    logits = loss.model.logits(params, windows_of(tokens, loss.model.context + 1, loss.drawn))
    return softmax(logits.reshape(len(tokens), loss.drawn, -1))


def held_out(model: LaggedModel, process: LaggedChain, sequences: int = 3000, seed: int = 0, **choices: Any) -> LaggedLoss:
    """The loss on held-out sequences with the true law as label: `held_out(...).values(run.params)` [ISA:loss].

    Args:
        model: the student.
        process: the chain.
        sequences: how many are held out.
        seed: of the draw.
        choices: further fields of the loss.

    Examples:
        >>> student = ss.PositionalHeads(vocab=3, heads=2, context=2, targets=4)
        >>> print(f"{ss.held_out(student, lagged, sequences=100).value(student.init(seed=0)):.2f}")
        1.10
    """
    return student_loss(model, process, sequences=sequences, seed=seed, labels="soft", part="held-out", **choices)
