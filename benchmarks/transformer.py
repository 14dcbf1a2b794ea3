"""A training step of the pre-norm student at the sizes of `published-transformer` (batch 3000, float32, AdamW, clip 1) against
PyTorch, one thread each.

Sides, on the same sequences from the same parameters, checked to give the same gradient without dropout:
- eager: the model as one writes it, every row through every layer;
- plain: the fastest without tables: only rows that are scored, small chunks, torch.compile;
- best: the fastest of all, also with our own tricks (tables of (token, position) pairs, output projection folded into the values,
  chunks that share the tables).
CPU time, the sides alternating, minima; for the best also the median over rounds of its time over ours. Needs
`stagescope[benchmarks]` and a C++ compiler.
"""

import json
import os
from functools import partial

os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = os.environ["MKL_NUM_THREADS"] = "1"

import numpy as np
import torch
from torch.nn import functional as F

import stagescope as ss
from benchmarks.timing import seconds
from stagescope.core.params import Layout
from stagescope.flow.descent import loop_for

ROUNDS, LONG_ROUNDS, FASTEST = 12, 3, 3
"""Rounds of ours beside the fastest three, of which the best counts, and of the two slower ones."""
CHUNKS = (500, 200, 100)
LARGE = np.ones((1024, 1024), np.float32)


class Eager(torch.nn.Module):
    """The model as one writes it; `scored`: no row that is not scored asks or goes on."""

    def __init__(self, model, start, scored: bool = False) -> None:
        super().__init__()
        self.model, self.scored = model, scored
        self.visible = torch.tensor(model.visible)
        self.blocks = torch.nn.ParameterDict(
            {n: torch.nn.Parameter(torch.tensor(b, dtype=torch.float32)) for n, b in start.items()}
        )
        self.keep = 0.0

    def norm(self, name, x):
        return F.layer_norm(x, (self.model.width,), self.blocks[f"gain_{name}"], self.blocks[f"shift_{name}"])

    def drop(self, x):
        return F.dropout(x, self.keep)

    def mlp(self, x):
        b = self.blocks
        return F.relu(self.norm("mlp1", x) @ b["M1"] + b["m1"]) @ b["N1"] + b["n1"]

    def logits(self, x):
        return self.norm("out", x) @ self.blocks["U"] + self.blocks["u"]

    def forward(self, tokens, *tables):
        del tables  # there are none
        model, b = self.model, self.blocks
        first = model.context - 1 if self.scored else 0
        x = b["E"][tokens] + b["P"]
        y = self.norm("heads1", x)
        q, k, v = (
            (rows @ b[f"{n}1"].transpose(0, 1).flatten(1)).unflatten(2, (model.heads, -1)).transpose(1, 2)
            for n, rows in (("Q", y[:, first:]), ("K", y), ("V", y))
        )
        seen = {"attn_mask": self.visible} if self.scored else {"is_causal": True}
        mixed = F.scaled_dot_product_attention(q, k, v, **seen).transpose(1, 2).flatten(2)
        x = x[:, first:] + self.drop(mixed @ b["O1"].flatten(0, 1))
        x = x + self.drop(self.mlp(x))
        return self.logits(x)[:, model.context - 1 - first :]


class Tables(Eager):
    """Queries, keys and values once for each (token, position) pair, and scored rows only; `folded`: O is in the values."""

    def __init__(self, model, start, folded: bool, scores: bool = False) -> None:
        super().__init__(model, start)
        self.folded, self.scores = folded, scores
        self.mask = torch.zeros(self.visible.shape).masked_fill(~self.visible, -torch.inf)

    def tables(self):
        """Inputs, queries and keys, or scores, and values, by pair."""
        model, b, first = self.model, self.blocks, self.model.context - 1
        part = model.width // model.heads
        pairs = (b["E"] + b["P"][:, None]).flatten(0, 1)
        y = self.norm("heads1", pairs)
        q, k, v = (y @ b[f"{n}1"] for n in "QKV")  # (head, pair, inner)
        v = v @ b["O1"] if self.folded else v
        if self.scores:
            return pairs, (q[:, first * model.vocab :] @ k.transpose(1, 2) / part**0.5).flatten(1), v.transpose(0, 1).flatten(1)
        return pairs, (q / part**0.5).transpose(0, 1).flatten(1), k.transpose(0, 1).flatten(1), v.transpose(0, 1).flatten(1)

    def forward(self, tokens, *tables):
        pairs, *found = tables
        model, first, heads = self.model, self.model.context - 1, self.model.heads
        at = tokens + model.vocab * torch.arange(model.positions)
        asks = at[:, first:]

        def by_head(where, table):
            return F.embedding(where, table).unflatten(2, (heads, -1)).transpose(1, 2)

        if self.scores:
            where = (asks - first * model.vocab)[:, :, None] * len(pairs) + at[:, None]
            scores = found[0][:, where.flatten()].view(heads, *where.shape).transpose(0, 1)
        else:
            scores = by_head(asks, found[0]) @ by_head(at, found[1]).transpose(2, 3)
        weights = torch.softmax(scores + self.mask, dim=-1)
        if self.folded:
            rows = F.embedding(at, found[-1]).view(len(tokens), model.positions * heads, -1)
            mixed = weights.permute(0, 2, 3, 1).flatten(2) @ rows
        else:
            mixed = (weights @ by_head(at, found[-1])).transpose(1, 2).flatten(2) @ self.blocks["O1"].flatten(0, 1)
        x = F.embedding(asks, pairs) + self.drop(mixed)
        x = x + self.drop(self.mlp(x))
        return self.logits(x)


class Side:
    """Steps of one way to write it, in chunks whose gradients add up; tables are made once a step, and so are their gradients."""

    def __init__(self, module, chunk: int, compiled: bool = False) -> None:
        self.module, self.chunk = module, chunk
        self.call = torch.compile(self._loss) if compiled else self._loss
        self.optimizer = torch.optim.AdamW(module.parameters(), lr=0.003, weight_decay=0.01)

    def _loss(self, tokens, targets, *tables):
        return F.cross_entropy(self.module(tokens, *tables).flatten(0, 1), targets.flatten(), reduction="sum")

    def gradient(self, tokens, dropout: float) -> float:
        """Of the mean loss, and its value."""
        self.module.keep, model = dropout, self.module.model
        total, made = 0.0, self.module.tables() if isinstance(self.module, Tables) else ()
        leaves = [table.detach().requires_grad_() for table in made]
        self.optimizer.zero_grad()
        for part in tokens.split(self.chunk):
            targets = part[:, model.context :].contiguous()
            loss = self.call(part[:, : model.positions].contiguous(), targets, *leaves) / (len(tokens) * targets.shape[1])
            loss.backward()
            total += float(loss.detach())
        if made:
            torch.autograd.backward(made, [leaf.grad for leaf in leaves])
        return total

    def step(self, tokens) -> None:
        self.gradient(tokens, 0.1)
        torch.nn.utils.clip_grad_norm_(self.module.parameters(), 1.0)
        self.optimizer.step()


def sides(model, start) -> dict[str, Side]:
    found = {"eager": Side(Eager(model, start), 3000)}
    for chunk in CHUNKS:
        found[f"plain, scored rows, chunks of {chunk}"] = Side(Eager(model, start, scored=True), chunk)
    found["plain, scored rows, compiled, chunks of 500"] = Side(Eager(model, start, scored=True), 500, True)
    for folded in (False, True):
        for chunk in CHUNKS:
            found[f"tables{', folded' * folded}, chunks of {chunk}"] = Side(Tables(model, start, folded), chunk)
        found[f"tables{', folded' * folded}, compiled, chunks of 500"] = Side(Tables(model, start, folded), 500, True)
    found["tables, folded, scores, chunks of 500"] = Side(Tables(model, start, True, scores=True), 500)
    return found


def main() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    plan = ss.study("incremental")
    setup = plan.setup(plan.configured("published-transformer", student="pre-norm"), 0)
    loss, layout = setup.what, Layout.of(setup.params)
    assert isinstance(loss, ss.TransformerLoss)
    assert isinstance(setup.dynamics, ss.Descent)
    batch = loss.minibatch(0)
    assert batch is not None
    tokens = torch.tensor(batch.by_sequence.astype(np.int64))
    value, expected = loss._kernel(setup.params, batch)
    found = {}
    for name, side in sides(loss.model, setup.params).items():
        theirs = side.gradient(tokens, 0.0)
        assert abs(theirs - value) < 1e-4, f"{name}: loss {theirs} instead of {value}"
        for block, gradient in expected.items():
            gap = np.abs(side.module.blocks[block].grad.numpy() - gradient).max() / np.abs(gradient).max()
            assert gap < 2e-3, f"{name}: the gradient in {block} differs by {gap:.1e} of its largest entry"
        side.step(tokens)
        found[name] = side, min(seconds(lambda side=side: side.step(tokens)) for _ in range(2))
        print(f"{found[name][1]:.3f} s  {name}", flush=True)
    first = sorted((name for name in found if name != "eager"), key=lambda name: found[name][1])[:FASTEST]
    plain = min((name for name in found if name.startswith("plain")), key=lambda name: found[name][1])
    ours = _stepper(setup, loss, layout)
    rounds = _timed(ROUNDS, ours, _large_product, *(partial(found[name][0].step, tokens) for name in first))
    fastest = 2 + int(np.argmin(rounds.min(axis=0)[2:]))
    best, median = first[fastest - 2], float(np.median(rounds[:, fastest] / rounds[:, 0]))
    mine, peak, tuned = (float(rounds[:, side].min()) for side in (0, 1, fastest))
    slower = (found["eager"][0], found[plain][0])
    eager, usual = _timed(LONG_ROUNDS, *(partial(side.step, tokens) for side in slower)).min(axis=0).tolist()
    work = flops(loss.model, len(tokens))
    share = work * peak / (2 * 1024**3) / mine
    print(f"step of batch 3000: {mine:.3f} s; PyTorch eager {eager:.3f} s, {plain} {usual:.3f} s, best ({best}) {tuned:.3f} s")
    print(f"best over ours: minima {tuned / mine:.2f}, median of {ROUNDS} rounds {median:.2f}")
    print(f"{work / 1e9:.1f} GFlop of products at {share:.0%} of the speed of a large product, {2.147 / peak:.0f} GFlop/s")
    ratios = {"ratio_eager": eager / mine, "ratio_plain": usual / mine, "ratio_best": tuned / mine, "ratio_best_median": median}
    print(json.dumps({**ratios, "seconds_step": mine, "share_of_peak": share}))


def _stepper(setup, loss, layout):
    """A call that takes one step of ours, always the second."""
    loop = loop_for(setup.dynamics, loss.field(), layout)
    carry, _ = loop.advance(loop.restore(loop.start(layout.pack(setup.params))), 0, 1)
    return lambda: loop.advance(carry, 1, 1)


def _timed(rounds: int, *calls) -> np.ndarray:
    """Seconds (round, call), the calls alternating."""
    return np.array([[seconds(call) for call in calls] for _ in range(rounds)])


def _large_product() -> np.ndarray:
    """2 x 1024^3 operations in the BLAS of NumPy."""
    return LARGE @ LARGE


def flops(model, batch: int) -> float:
    """Operations in matrix products of a step, forward and back: pairs that are seen, values, MLP, output."""
    width, seen, rows = model.width, model.visible.sum(), batch * model.targets
    mixed = 2 * batch * model.heads * seen * width
    mlp, out = 4 * rows * width * model.mlp, 2 * rows * width * model.vocab
    pairs = model.vocab * model.positions
    table = 2 * model.vocab**2 * seen * width
    projections = 2 * width**2 * (3 * pairs + model.vocab * model.targets)
    return 3.0 * (mixed + mlp + out + table + projections)


if __name__ == "__main__":
    main()
