"""Loss and gradient of the transformer on sequences, by Numba and BLAS: chunk by chunk, forward and back.

A chunk is as many sequences as keep one array of the stream within CHUNK numbers, so that it stays in the processor's cache. A
block is as many chunks as keep the attention of the first layer within BLOCK numbers: its scores are looked up in a table that is
larger than the cache.
Dropout depends on the key of the step, the part and the row alone: neither chunks nor the order of the work change it.
"""

import math
from functools import cached_property
from typing import Any

import numpy as np

from stagescope.fields.lanes import padded as whole_lanes
from stagescope.papers.incremental.loss import Found, Sequences
from stagescope.papers.incremental.students.transformer import stream_kernel as loops
from stagescope.papers.incremental.students.transformer.draws_kernel import draw_numbers
from stagescope.papers.incremental.students.transformer.model import Transformer
from stagescope.papers.incremental.students.transformer.pairs import PairHeads
from stagescope.papers.incremental.students.transformer.parts import Mlp, Reader, Room, RowHeads, padded
from stagescope.papers.incremental.students.transformer.places import Blocks, added_places, inputs
from stagescope.params import Params

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
    if not all(np.isfinite(block).all() for block in params.values()):  # the exponential takes numbers only
        return np.nan, {name: np.full(np.shape(block), np.nan) for name, block in params.items()}
    tokens, count, total = on.by_sequence, on.tokens.shape[1], 0.0
    work = _Pass(model, params, room, keys, count)
    for first in range(0, count, work.block):
        part = slice(first, first + work.block)
        total += work.run(tokens[part].astype(np.int64), on.soft[part] if on.soft.size else on.soft, first, gradient)
    share = 1 / (count * model.targets)
    return total * share, {name: share * block for name, block in work.gradients().items()} if gradient else {}


def has_table(model: Transformer, sequences: int) -> bool:
    """Whether the first layer has a table of scores, by head, row, token that asks, position and token that are seen.

    With fewer sequences than tokens there would be more pairs than rows.
    """
    size = math.prod((model.heads, len(model.rows(1)), model.vocab, model.positions, model.vocab))
    return size <= TABLE and model.vocab <= sequences


def chunk_size(model: Transformer, sequences: int) -> int:
    """Sequences in a chunk. The order of sums depends on the model and the number of sequences alone."""
    rows = len(model.rows(1)) if has_table(model, sequences) else model.positions
    return max(1, CHUNK // (rows * whole_lanes(model.width)))


def block_size(model: Transformer, sequences: int) -> int:
    """Sequences in a block: whole chunks."""
    chunk, seen = chunk_size(model, sequences), len(model.rows(1)) * model.heads * whole_lanes(model.positions)
    return chunk * (max(1, BLOCK // (seen * chunk)) if has_table(model, sequences) else 1)


def kept_entries(model: Transformer, keys: np.ndarray, sequences: int) -> tuple[np.ndarray, ...]:
    """Which entries survive dropout, for each part that is added to the stream (sequences, rows, width)."""
    found = []
    for number, part in enumerate(keys):
        rows = sequences * len(model.rows(1 + number // model.parts))
        numbers = np.empty((rows, model.width), np.uint16)
        draw_numbers(part, 0, model.width, numbers)
        found.append((numbers >= model.threshold).reshape(sequences, -1, model.width))
    return tuple(found)


class _Pass:
    """The matrices of one pass, made ready once, and the sums of their gradients over chunks."""

    def __init__(self, model: Transformer, params: Params, room: Room, keys: np.ndarray | None, sequences: int) -> None:
        self.model, self.room, self.keys, kind = model, room, keys, room.kind
        self.params: Blocks = {name: np.asarray(block, kind) for name, block in params.items()}
        self.out = Reader(model, self.params, "out", self.params["U"], self.params["u"], self.room)
        self.wide, self.chunk = self.out.matrix.shape[0], chunk_size(model, sequences)
        self.block, self.numbers = block_size(model, sequences), dict[Any, np.ndarray]()
        self.zeros, self.d_zeros = np.zeros(self.wide, kind), np.zeros(model.width)
        self.inside = padded(np.full(model.width, model.norm == "layer", kind), 0)
        self.d_rows = {name: np.zeros(self.params[name].shape) for name in ("E", "P") if name in params}
        self.pairs = self._pairs() if has_table(model, sequences) else None
        first = 2 if self.pairs else 1
        self.heads = [RowHeads(model, self.params, i, self.room) for i in range(first, model.layers + 1)]
        self.mlps = [Mlp(model, self.params, i, self.room) for i in range(1, model.layers + 1)] if model.mlp else []

    def _pairs(self) -> PairHeads:
        raw = padded(inputs(self.model, self.params), 1)
        x, size, _ = self._add(raw, np.arange(len(raw)), raw, self.zeros, None, 0, 0)
        return PairHeads(self.model, self.params, self.room, x, size)

    @cached_property
    def _place(self) -> np.ndarray:
        return added_places(self.model, self.params)

    def run(self, tokens: np.ndarray, law: np.ndarray, first: int, gradient: bool) -> float:
        """The sum of the losses of a block, whose first sequence has this number; gradients are added up."""
        loss, model = 0.0, self.model
        at = np.arange(model.positions) * model.vocab + tokens[:, : model.positions]
        if self.pairs:
            self.pairs.begin(at)
        for start in range(0, len(at), self.chunk):
            part = slice(start, start + self.chunk)
            drawn, soft = tokens[part, model.context :].reshape(-1), law[part] if law.size else law
            loss += self._run_chunk(at[part], drawn, soft.reshape(-1), (start, first), gradient)
        if self.pairs and gradient:
            self.pairs.end(at)
        return loss

    def _run_chunk(self, at: np.ndarray, drawn: np.ndarray, law: np.ndarray, place: tuple[int, int], gradient: bool) -> float:
        """`place`: how many sequences come before the chunk in its block, and before the block."""
        stream = self._forward(at, *place)
        x, size, _ = stream[-1]
        z, p = (self.room.take(name, len(x), self.model.vocab) for name in ("logits", "labels"))
        tops = self.room.take("tops", len(x))
        self.out.forward(x, size, z)
        loops.shift_logits(z, self.room.low, p, tops)
        self.room.exp(p)
        loss = loops.residuals(z, tops, p, drawn, law)
        if gradient:
            g = self.room.take("g", len(x), self.wide)
            self.out.backward(p, z, x, size, g, fresh=True)
            self._backward(at, place[0], stream, g)
        return loss

    def _forward(self, at: np.ndarray, start: int, block: int) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """The stream before the first part, where rows need it, and after each: rows, 1/deviation, and where rows come from."""
        model, count, first = self.model, len(at), block + start
        if self.pairs is None:
            raw = self.room.take("raw", at.size, self.wide)
            raw.reshape(*at.shape, -1)[..., : model.width] = self.params["E"][at % model.vocab] + self._place
            stream = [self._add(raw, np.arange(at.size), raw, self.zeros, None, 0, 0)]
        else:
            stream = []
        for i in range(1, model.layers + 1):
            rows = model.rows(i)
            part = self.room.take("part", count * len(rows), self.wide)
            if i == 1 and self.pairs is not None:
                self.pairs.forward(at, start, part)
                x, source = self.pairs.x, at[:, rows].reshape(-1)
            else:
                x, size, _ = stream[-1]
                self.heads[i - model.layers - 1].forward(x, size, part, count)
                source = (np.arange(count)[:, None] * model.positions + rows).reshape(-1)
            stream.append(self._add(x, source, part, self.zeros, i, 0, first * len(rows)))
            if model.mlp:
                x, size, _ = stream[-1]
                self.mlps[i - 1].forward(x, size, part)
                stream.append(self._add(x, np.arange(len(x)), part, self.mlps[i - 1].bias, i, 1, first * len(rows)))
        return stream

    def _add(self, x: Any, source: np.ndarray, part: Any, bias: np.ndarray, layer: int | None, place: int, first: int) -> Any:
        model, name = self.model, f"x{layer}{place}"
        out, size = self.room.take(name, len(source), self.wide), self.room.take(f"size_{name}", len(source))
        residual = model.residual and layer is not None
        numbers, threshold, scale = self._dropout(layer, place, len(source))
        if self.keys is not None and layer is not None:
            draw_numbers(self.keys[(layer - 1) * model.parts + place], first, model.width, numbers)
        loops.add_part(x, source, part, bias, numbers, threshold, scale, residual, self.inside, model.width, out, size)
        return out, size, source

    def _dropout(self, layer: int | None, place: int, rows: int) -> tuple[np.ndarray, np.uint16, Any]:
        """Random numbers of a part, and the threshold and scale of what is kept."""
        drops, model = self.keys is not None and layer is not None, self.model
        name = (layer, place) if drops else None
        if name not in self.numbers or len(self.numbers[name]) < rows:
            self.numbers[name] = np.zeros((rows, self.wide), np.uint16)
        threshold, scale = (model.threshold, 1 / (1 - model.dropout)) if drops else (0, 1)
        return self.numbers[name][:rows], np.uint16(threshold), self.room.kind(scale)

    def _backward(self, at: np.ndarray, start: int, stream: list[Any], g: np.ndarray) -> None:
        model, count = self.model, len(at)
        for i in range(model.layers, 0, -1):
            rows = model.rows(i)
            part = self.room.take("part", count * len(rows), self.wide)
            if model.mlp:
                mlp, (x, size, _) = self.mlps[i - 1], stream[-2]
                loops.take_part(g, *self._dropout(i, 1, len(part)), part, mlp.d_bias)
                mlp.backward(part, x, size, g, fresh=not model.residual)
                stream.pop()
            source = stream.pop()[2]
            loops.take_part(g, *self._dropout(i, 0, len(part)), part, self.d_zeros)
            if i == 1 and self.pairs is not None:
                self.pairs.backward(part, at, start)
                if model.residual:
                    loops.add_rows(self.pairs.d_x, source, g)
                return
            x, size, _ = stream[-1]
            before = self.room.take(f"g{i}", len(x), self.wide)
            before[:] = 0
            if model.residual:
                loops.add_rows(before, source, g)
            self.heads[i - model.layers - 1].backward(part, x, size, before, count)
            g = before
        self._add_inputs(at, g[:, : model.width])

    def _add_inputs(self, at: np.ndarray, g: np.ndarray) -> None:
        """To the gradients in tokens and positions, without a table of pairs."""
        np.add.at(self.d_rows["E"], at.reshape(-1) % self.model.vocab, g)
        if "P" in self.d_rows:
            self.d_rows["P"] += g.reshape(len(at), self.model.positions, -1).sum(axis=0)

    def gradients(self) -> Blocks:
        """Of the sum of the losses so far, by block."""
        found = {name: np.zeros(block.shape) for name, block in self.params.items()} | self.d_rows
        for part in (*self.heads, *self.mlps, *([self.pairs] if self.pairs else [])):
            part.gradient(found)
        found["U"] += self.out.gradient(found)
        found["u"] += self.out.d_offset
        return found
