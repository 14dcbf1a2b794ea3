"""Loss and gradient of the transformer on sequences, by Numba and BLAS: chunk by chunk, forward and back.

A chunk is as many sequences as keep one array of the stream within CHUNK numbers, so that it stays in the processor's cache. A
block is as many chunks as keep the attention of the first layer within BLOCK numbers: its scores are looked up in a table that is
larger than the cache. With one layer on tables of pairs a chunk is a block: the more sequences look up values one after the
other, the more of these they find in the cache.
Dropout depends on the key of the step, the part and the row alone: neither chunks nor the order of the work change it.
"""

import math
from collections.abc import Iterator
from functools import cached_property
from typing import Any, Literal, Self

import numpy as np

from stagescope.core.params import Params, key
from stagescope.core.spec import Spec
from stagescope.flow.lanes_kernel import padded as whole_lanes
from stagescope.papers.incremental.loss import Found, LaggedLoss, Sequences, broken
from stagescope.papers.incremental.transformer import Transformer
from stagescope.papers.incremental.transformer_layers_kernel import Kept, kept_room, pass_back, pass_last, pass_layer
from stagescope.papers.incremental.transformer_parts import (
    AfterHeads,
    Blocks,
    Output,
    PairHeads,
    Room,
    RowHeads,
    carry_of,
    kept_factors,
    padded,
)
from stagescope.papers.incremental.transformer_rows_kernel import add_part, add_rows, draw_numbers

CHUNK = 2**18
"""Numbers in one array of the stream of a chunk: a megabyte in single precision."""
BLOCK = 2**21
"""Numbers in the attention of a block of sequences."""
TABLE = 2**25
"""Scores that a table of pairs by pairs may hold. With more of them each row has queries, keys and values of its own."""


def transformer_pass(
    model: Transformer, params: Params, on: Sequences, room: Room, keys: np.ndarray | None = None, gradient: bool = True
) -> Found:
    """Mean cross-entropy over sequences and targets, and its gradient, in the precision of the room.

    The room is for arrays, which the next pass of the same model may use again; `keys` are those of the dropout of each part.
    """
    if (not_finite := broken(params)) is not None:
        return not_finite
    tokens, count, total = on.by_sequence, on.tokens.shape[1], 0.0
    work = _Pass(model, params, room, keys, count)
    for first in range(0, count, work.block):
        part = slice(first, first + work.block)
        total += work.run(tokens[part].astype(np.int64), on.soft[part] if on.soft.size else on.soft, first, gradient)
    share = 1 / (count * model.targets)
    return total * share, {name: share * block for name, block in work.gradients().items()} if gradient else {}


def has_table(model: Transformer, sequences: int, dropping: bool) -> bool:
    """Whether the first layer has a table of scores, by head, row, token that asks, position and token that are seen.

    With fewer sequences than tokens there would be more pairs than rows; where dropout falls on inputs, no two are equal.
    """
    if dropping and model.published:
        return False
    size = math.prod((model.heads, len(model.rows(1)), model.vocab, model.positions, model.vocab))
    return size <= TABLE and model.vocab <= sequences


def chunk_size(model: Transformer, table: bool) -> int:
    """Sequences in a chunk. The order of sums depends on the model and on whether there is a table."""
    if table and model.layers == 1:
        return max(1, BLOCK // _attention(model))
    return max(1, CHUNK // ((len(model.rows(1)) if table else model.positions) * whole_lanes(model.width)))


def block_size(model: Transformer, table: bool) -> int:
    """Sequences in a block: whole chunks."""
    chunk = chunk_size(model, table)
    return chunk * (max(1, BLOCK // (_attention(model) * chunk)) if table else 1)


def _attention(model: Transformer) -> int:
    """Numbers in the attention of a sequence in the first layer."""
    return len(model.rows(1)) * model.heads * whole_lanes(model.positions)


def kept_entries(model: Transformer, keys: np.ndarray, sequences: int) -> tuple[np.ndarray, ...]:
    """Which entries survive dropout (sequences, rows, entries), in the order of the model's `drops`."""
    survivors = []
    for part, (rows, entries) in zip(keys, model.drops, strict=True):
        numbers = np.empty((sequences * rows, entries), np.uint16)
        draw_numbers(part, 0, entries, numbers)
        survivors.append((numbers >= model.threshold).reshape(sequences, rows, entries))
    return tuple(survivors)


class _Pass:
    """The matrices of one pass, made ready once, and the sums of their gradients over chunks."""

    def __init__(self, model: Transformer, params: Params, room: Room, keys: np.ndarray | None, sequences: int) -> None:
        self.model, self.room, kind = model, room, room.kind
        self.params: Blocks = {name: np.asarray(block, kind) for name, block in params.items()}
        self.out = Output(model, self.params, room)
        table = has_table(model, sequences, keys is not None)
        self.chunk, self.block = chunk_size(model, table), block_size(model, table)
        of_stream = np.zeros((model.layers, 0), np.uint64) if keys is None else keys[model.published :].reshape(model.layers, -1)
        of_inputs, of_weights = (keys[0], of_stream[:, 0]) if keys is not None and model.published else (None, None)
        if of_weights is not None:
            of_stream = of_stream[:, 1:]
        self.drop = of_inputs
        self.after = [
            AfterHeads(model, self.params, i, np.ascontiguousarray(of_stream[i - 1]), room) for i in range(1, model.layers + 1)
        ]
        self.kept = dict[int, Kept]()
        self.wide = len(self.after[0].arrays.zeros)
        self.d_rows = {name: np.zeros(self.params[name].shape) for name in ("E", "P") if name in params}
        self.pairs, self.places = None, self.params["P"] if "P" in params else model.fixed_places.astype(kind)
        if table:  # what enters the first layer, by pair, ordered by position, then token
            inputs = (self.places[:, None] + self.params["E"]).reshape(-1, model.width)
            self.pairs = PairHeads(model, self.params, room, *self._centred("pairs", padded(inputs, 1)))
        first = 2 if self.pairs else 1
        self.heads = [
            RowHeads(model, self.params, i, None if of_weights is None else of_weights[i - 1], self.room)
            for i in range(first, model.layers + 1)
        ]

    def _centred(self, name: str, raw: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Rows of the stream less their means, and 1/deviation; as they are, and 1, where the first layer has no norm."""
        x, size, layer = self.room.take(name, *raw.shape), self.room.take(f"size_{name}", len(raw)), self.after[0].arrays
        all_rows, none, kind = np.arange(len(raw)), np.zeros(raw.shape, np.uint16), self.room.kind
        inside, no = layer.zeros if self.model.norm_read("heads1") is None else layer.inside, carry_of({}, None, kind)
        add_part(raw, size, all_rows, no, raw, layer.zeros, none, np.uint16(0), kind(1), False, inside, layer.width, x, size)
        return x, size

    def run(self, tokens: np.ndarray, law: np.ndarray, first: int, gradient: bool) -> float:
        """The sum of the losses of a block, whose first sequence has this number; gradients are added up."""
        loss, model = 0.0, self.model
        ids = np.arange(model.positions) * model.vocab + tokens[:, : model.positions]
        if self.pairs:
            self.pairs.begin(ids)
        for start in range(0, len(ids), self.chunk):
            part = slice(start, start + self.chunk)
            targets, soft = tokens[part, model.context :].reshape(-1), law[part] if law.size else law
            loss += self._run_chunk(ids[part], (targets, soft.reshape(-1)), (start, first), gradient)
        if self.pairs and gradient:
            self.pairs.end(ids)
        return loss

    def _run_chunk(self, ids: np.ndarray, labels: Any, place: tuple[int, int], gradient: bool) -> float:
        """`place`: how many sequences come before the chunk in its block, and before the block."""
        stream = []
        if self.pairs is None:  # without a table of pairs
            raw = self.room.take("raw", ids.size, self.wide)
            inputs = raw[:, : self.model.width]
            inputs.reshape(*ids.shape, -1)[:] = self.params["E"][ids % self.model.vocab] + self.places
            if self.drop is not None:
                inputs *= self._kept_inputs(ids, sum(place))
            stream.append(self._centred("inputs", raw))
        for i in range(1, self.model.layers):
            (x, sizes), source, part = self._pass_heads(i, ids, stream, place)
            out, size = self.room.take(f"x{i}", len(part), self.wide), self.room.take(f"size{i}", len(part))
            arrays = self.after[i - 1].arrays
            if i not in self.kept:
                self.kept[i] = kept_room(len(part), arrays)  # no chunk is larger than the first
            pass_layer(x, sizes, source, part, sum(place) * self.model.positions, arrays, self.kept[i], out, size)
            stream.append((out, size))
        last, output = self.after[-1].arrays, self.out.arrays
        (x, sizes), source, part = self._pass_heads(self.model.layers, ids, stream, place)
        before, first = self._before(self.model.layers, stream), sum(place) * self.model.targets
        loss = pass_last(x, sizes, source, part, first, last, output, labels, self.room.low, gradient, before)
        if gradient:
            self._backward(ids, place, stream, part, before)
        return loss

    def _before(self, layer: int, stream: Any) -> np.ndarray:
        """Where the gradient in the stream before a layer is added up."""
        if layer == 1 and self.pairs is not None:
            return self.pairs.d_x
        return self.room.zeros(f"g{layer}", len(stream[-1][0]), self.wide)

    def _source(self, layer: int, ids: np.ndarray) -> np.ndarray:
        """Which rows of the stream before a layer go on."""
        rows = self.model.rows(layer)
        if layer == 1 and self.pairs is not None:
            return ids[:, rows].reshape(-1)
        return (np.arange(len(ids))[:, None] * self.model.positions + rows).reshape(-1)

    def _kept_inputs(self, ids: np.ndarray, first: int) -> np.ndarray:
        """Factors of the dropout of inputs, where so many sequences come before."""
        assert self.drop is not None
        room = self.room.take("kept_inputs", ids.size, self.model.width)
        return kept_factors(self.model, self.drop, first * self.model.positions, room, self.room)

    def _pass_heads(self, layer: int, ids: np.ndarray, stream: Any, place: tuple[int, int]) -> tuple[Any, np.ndarray, np.ndarray]:
        """The stream before a layer and its 1/deviation, its rows that go on, and what the heads add to them."""
        source = self._source(layer, ids)
        part = self.room.take("part", len(source), self.wide)
        if layer == 1 and self.pairs is not None:
            self.pairs.forward(ids, place[0], part)
            return (self.pairs.x, self.pairs.size), source, part
        x, size = stream[-1]
        self.heads[layer - self.model.layers - 1].forward(x, size, part, len(ids), sum(place))
        return (x, size), source, part

    def _backward(self, ids: np.ndarray, place: tuple[int, int], stream: Any, part: np.ndarray, before: np.ndarray) -> None:
        """From the gradients in the last heads' part, and in the stream before them."""
        for i in range(self.model.layers, 0, -1):
            if i < self.model.layers:
                source, g = self._source(i, ids), before
                part, before = self.room.take("part", len(source), self.wide), self._before(i, stream)
                x, sizes = (self.pairs.x, self.pairs.size) if i == 1 and self.pairs is not None else stream[-1]
                pass_back(g, x, sizes, source, self.after[i - 1].arrays, self.kept[i], part, before)
            if i == 1 and self.pairs is not None:
                self.pairs.backward(part, ids, place[0])
                return
            x, size = stream.pop()
            self.heads[i - self.model.layers - 1].backward(part, x, size, before, len(ids))
        g = before[:, : self.model.width]  # in tokens and positions, without a table of pairs
        if self.drop is not None:
            g *= self._kept_inputs(ids, sum(place))
        by_token = self.room.zeros("by_token", self.model.vocab, self.wide)
        add_rows(by_token, ids.reshape(-1) % self.model.vocab, before)
        self.d_rows["E"] += by_token[:, : self.model.width]
        if "P" in self.d_rows:
            self.d_rows["P"] += g.reshape(len(ids), self.model.positions, -1).sum(axis=0)

    def gradients(self) -> Blocks:
        """Of the sum of the losses so far, by block."""
        gradients = {name: np.zeros(block.shape) for name, block in self.params.items()} | self.d_rows
        for part in (*self.heads, *self.after, *([self.pairs] if self.pairs else []), self.out):
            part.gradient(gradients)
        return gradients


class TransformerLoss(LaggedLoss):
    """The loss of Transformer [ISA:loss]. See LaggedLoss for the choices.

    It is computed by a kernel of Numba and BLAS. `precision` is that of the whole pass; parameters and the optimiser's memory are
    float64 in both. Each step drops other parts of the stream, by keys of (seed, step) and the row, so a resumed run drops the
    same; `value` and `grad` drop nothing.

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
        precision: of the whole pass.
        dropout_steps: "all", or "first-of-pass": dropout acts in the first step of each pass over the sequences. So does the
            authors' loop, which leaves the model in evaluation until the next pass begins.

    Examples:
        >>> student = ss.Transformer(vocab=3, heads=1, context=2, targets=2, width=4, mlp=0, dropout=0)
        >>> law = ss.TransformerLoss(model=student, process=lagged, sequences=8)
        >>> law.value(student.init(seed=0)) > 0
        True
    """

    model: Transformer  # pyright: ignore[reportIncompatibleVariableOverride]  # frozen
    precision: Literal["float32", "float64"] = "float32"
    dropout_steps: Literal["all", "first-of-pass"] = "all"

    @classmethod
    def restored(cls, fields: Spec) -> Self:
        """Specs of version 0.2.0 name the engine."""
        return cls(**{name: value for name, value in fields.items() if (name, value) != ("engine", "kernel")})

    def _largest(self) -> Iterator[tuple[str, str, tuple[int, ...]]]:
        yield from super()._largest()
        model, count = self.model, max(self.sequences, self.batch or 1)
        rows = model.positions if model.layers > 1 else model.targets
        narrower = "take a smaller width, shorter spans or less padding"
        dropping = bool(model.dropout)
        table = has_table(model, count, dropping)
        if has_table(model, count, False):
            yield "the inputs of the first layer", narrower, (model.heads, model.vocab, model.positions, model.width)
        yield "the stream", narrower, (min(chunk_size(model, table), count), rows, max(model.width, model.mlp))
        block = min(block_size(model, table), count)
        yield "the attention", "take fewer heads, shorter spans or less padding", (model.heads, block, rows, model.positions)

    def predict(self, params: Any, data: Any) -> Any:
        cast = {name: block.astype(self.precision) for name, block in params.items()}
        return self.model.forward(cast, data["tokens"][:, : self.model.positions], data.get("kept"))[0]

    def draw(self, step: int) -> Any:
        """The data of one step; with dropout every step has its own, also where it sees all sequences."""
        batch, keys = super().draw(step), self._keys(step)
        if keys is None:
            return batch
        data = self.arrays(self.all) if batch is None else batch
        return {**data, "kept": kept_entries(self.model, keys, len(data["tokens"]))}

    def _keys(self, step: int) -> np.ndarray | None:
        """Keys of the dropout, in the order of the model's `drops`; None where this step drops nothing."""
        if self.dropout_steps == "first-of-pass" and step % max(1, self.sequences // (self.batch or self.sequences)):
            return None
        count = len(self.model.drops)
        return key(self.seed, "dropout", step).integers(2**64, size=count, dtype=np.uint64) if self.model.dropout else None

    @cached_property
    def _room(self) -> Room:
        return Room(self.precision)

    def _kernel(self, params: Params, on: Sequences, wanted: bool = True, gradient: bool = True) -> Found:
        return transformer_pass(self.model, params, on, self._room, gradient=gradient)

    def _step_gradient(self, params: Params, step: int) -> dict[str, np.ndarray]:
        batch = self.minibatch(step)
        return transformer_pass(self.model, params, self.all if batch is None else batch, self._room, self._keys(step))[1]
