"""A training step of focus and dilution on a text (windows of 256, batch 1024, width 32) against PyTorch and JAX.

At 200 types: PyTorch eager on count rows, on ready logarithms of counts (eager, compiled, and JAX compiled), with our own trick
(types and counts of each window, padded), and on the tokens of each window. At 10,000 types: PyTorch
with our own trick, eager and compiled. All are float32, plain steps, on batches that are ready; ours is also timed
with drawing, cutting and counting the windows, as a run does. One thread, CPU time, sides alternate,
minima. All must end at the same parameters. The texts are TinyStories and WikiText-2. Needs the extra `stagescope[benchmarks]`.
"""

import json
import os
from abc import ABC, abstractmethod
from itertools import pairwise
from typing import Any

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = os.environ["MKL_NUM_THREADS"] = "1"
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"

import numpy as np

import stagescope as ss
from benchmarks.timing import alternating, least
from stagescope.papers.focus_dilution.text.kernel import Supports
from stagescope.papers.focus_dilution.text.model import TextCounts

WIDTH, WINDOW, BATCH, RATE = 32, 256, 1024, 0.2
BLOCKS = ("W0", "W1", "WQ", "WK")


def law_of(corpus: str, vocab: int) -> TextCounts:
    model = ss.TokenAttention(vocab=vocab, width=WIDTH, scale=WIDTH**-0.5)
    return TextCounts(model=model, process=ss.read_corpus(corpus, vocab=vocab), length=WINDOW, batch=BATCH)


def supports(law: TextCounts, step: int) -> Supports:
    """The supports of a batch, in room of its own."""
    found: Any = law.passes.count(law.tokens, *law.spans(law.minibatch(step)))
    return found._replace(**{name: getattr(found, name).copy() for name in ("types", "counts")})


class Ours:
    """Steps on supports that are handed over."""

    def __init__(self, law: TextCounts, steps: int) -> None:
        self.law, self.steps = law, steps
        self.batches: list[Any] = [supports(law, step) for step in range(steps)]

    def reset(self) -> None:
        self.params = self.law.model.init(0, 0.3)

    def gradient(self, step: int) -> dict:
        return self.law.passes.gradient(self.params, self.batches[step])[1]

    def train(self) -> None:
        for step in range(self.steps):
            for name, gradient in self.gradient(step).items():
                self.params[name] -= RATE * gradient

    def end(self) -> dict:
        return self.params


class OursDrawing(Ours):
    """Steps as a run makes them: windows are drawn, cut and counted."""

    def gradient(self, step: int) -> dict:
        return self.law.of_windows(self.params, self.law.minibatch(step))[1]


class Torch(ABC):
    """The same steps by autograd."""

    compiled = False

    def __init__(self, law: TextCounts, steps: int) -> None:
        import torch

        torch.set_num_threads(1)
        self.torch, self.law = torch, law
        self.batches = [self.data(law, step) for step in range(steps)]
        self.run: Any = torch.compile(self.loss) if self.compiled else self.loss

    @abstractmethod
    def data(self, law: TextCounts, step: int) -> tuple:
        """A batch as tensors."""

    @abstractmethod
    def loss(self, w0: Any, w1: Any, wq: Any, wk: Any, *batch: Any) -> Any:
        """The loss of a batch."""

    def reset(self) -> None:
        start = self.law.model.init(0, 0.3)
        self.params = {name: self.torch.tensor(start[name], dtype=self.torch.float32, requires_grad=True) for name in BLOCKS}
        self.optimizer = self.torch.optim.SGD(self.params.values(), lr=RATE)

    def train(self) -> None:
        for batch in self.batches:
            loss = self.run(*self.params.values(), *batch)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()

    def end(self) -> dict:
        return {name: block.detach().numpy() for name, block in self.params.items()}


def count_rows(law: TextCounts, step: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Counts (batch, types) in float32, last tokens and targets."""
    rows, counts = supports(law, step), np.zeros((BATCH, law.model.vocab), np.float32)
    size = int(rows.begins[-1])
    counts[np.repeat(np.arange(BATCH), np.diff(rows.begins.astype(np.int64))), rows.types[:size]] = rows.counts[:size]
    return counts, rows.query, rows.target


class TorchCounts(Torch):
    """The count form, on count rows."""

    def data(self, law: TextCounts, step: int) -> tuple:
        return tuple(self.torch.tensor(part) for part in count_rows(law, step))

    def logs(self, counts: Any) -> Any:
        return self.torch.log(counts)

    def loss(self, w0: Any, w1: Any, wq: Any, wk: Any, *batch: Any) -> Any:
        counts, query, target = batch
        scores = self.law.model.scale * (w0 @ wq) @ (w0 @ wk).T
        attention = self.torch.softmax(scores.index_select(0, query) + self.logs(counts), dim=1)
        return self.torch.nn.functional.cross_entropy(attention @ w0 @ w1, target)


class TorchLogs(TorchCounts):
    """The same with the logarithms of counts ready made."""

    def data(self, law: TextCounts, step: int) -> tuple:
        counts, query, target = super().data(law, step)
        return self.torch.log(counts), query, target

    def logs(self, counts: Any) -> Any:
        return counts


class TorchLogsCompiled(TorchLogs):
    compiled = True


class TorchSupports(Torch):
    """Our own trick: types and logarithms of counts of each window, padded to the longest; Phi where there are few types."""

    def data(self, law: TextCounts, step: int) -> tuple:
        rows, most = supports(law, step), min(WINDOW, law.model.vocab)
        types, logs = np.zeros((BATCH, most), np.int64), np.full((BATCH, most), -np.inf, np.float32)
        begins = rows.begins.astype(np.int64)
        for row, (first, last) in enumerate(pairwise(begins.tolist())):
            types[row, : last - first], logs[row, : last - first] = rows.types[first:last], np.log(rows.counts[first:last])
        longest = int(np.diff(begins).max())
        longest += -longest % 16  # few shapes, so that little is compiled
        return tuple(map(self.torch.tensor, (types[:, :longest], logs[:, :longest], rows.query, rows.target)))

    def loss(self, w0: Any, w1: Any, wq: Any, wk: Any, *batch: Any) -> Any:
        torch, (types, logs, last, target) = self.torch, batch
        query, key = self.law.model.scale * (w0 @ wq), w0 @ wk
        if len(w0) <= 1000:
            scores = (query @ key.T).index_select(0, last).gather(1, types)
        else:
            keys = torch.nn.functional.embedding(types, key)
            scores = torch.bmm(keys, query.index_select(0, last).unsqueeze(2)).squeeze(2)
        attention = torch.softmax(scores + logs, dim=1)
        features = torch.nn.functional.embedding_bag(types, w0, per_sample_weights=attention, mode="sum")
        return torch.nn.functional.cross_entropy(features @ w1, target)


class TorchSupportsCompiled(TorchSupports):
    compiled = True


class TorchTokens(Torch):
    """Attention of the last token over the window, token by token."""

    def data(self, law: TextCounts, step: int) -> tuple:
        windows = law.tokens[law.minibatch(step)[:, None] + np.arange(WINDOW + 1)].astype(np.int64)
        return self.torch.tensor(windows[:, :-1]), self.torch.tensor(windows[:, -1])

    def loss(self, w0: Any, w1: Any, wq: Any, wk: Any, *batch: Any) -> Any:
        tokens, target = batch
        x = self.torch.nn.functional.embedding(tokens, w0)
        scores = self.law.model.scale * ((x @ wk) @ (x[:, -1] @ wq).unsqueeze(-1)).squeeze(-1)
        attention = self.torch.softmax(scores, dim=1)
        return self.torch.nn.functional.cross_entropy((attention.unsqueeze(1) @ x).squeeze(1) @ w1, target)


class Jax:
    """The count form on ready logarithms, a whole step compiled by JAX."""

    def __init__(self, law: TextCounts, steps: int) -> None:
        from stagescope.flow.autodiff import jax, jnp

        self.law, self.jnp = law, jnp

        def loss(params: Any, logs: Any, query: Any, target: Any) -> Any:
            w0 = params["W0"]
            scores = np.float32(law.model.scale) * (w0 @ params["WQ"]) @ (w0 @ params["WK"]).T
            logits = jax.nn.softmax(scores[query] + logs, axis=1) @ w0 @ params["W1"]
            return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits, axis=1), target[:, None], axis=1))

        def step(params: Any, *batch: Any) -> Any:
            slopes = jax.grad(loss)(params, *batch)
            return {name: params[name] - np.float32(RATE) * slopes[name] for name in params}

        with np.errstate(divide="ignore"):
            rows = [count_rows(law, step) for step in range(steps)]
            self.batches = [
                (jnp.asarray(np.log(counts)), jnp.asarray(query), jnp.asarray(target)) for counts, query, target in rows
            ]
        self.step = jax.jit(step, donate_argnums=0)

    def reset(self) -> None:
        self.params = {name: self.jnp.asarray(block, "float32") for name, block in self.law.model.init(0, 0.3).items()}

    def train(self) -> None:
        for batch in self.batches:
            self.params = self.step(self.params, *batch)
        _ = self.params["W0"].block_until_ready()

    def end(self) -> dict:
        return {name: np.asarray(block) for name, block in self.params.items()}


def milliseconds(law: TextCounts, kinds: tuple, steps: int, rounds: int) -> dict[str, float]:
    """Of a step of each side, after all have ended at the same parameters."""
    sides: dict[str, Any] = {kind.__name__: kind(law, steps) for kind in kinds}
    for side in sides.values():
        side.reset()
        side.train()
        for name, block in sides["Ours"].end().items():
            gap = np.abs(block - side.end()[name]).max() / np.abs(block).max()
            assert gap < 1e-4, f"{name} of {type(side).__name__} differs by {gap}: not the same work"
    work, before = ({name: getattr(side, what) for name, side in sides.items()} for what in ("train", "reset"))
    return {name: 1e3 * took / steps for name, took in alternating(work, rounds, before).items()}


def peak() -> float:
    """Floating point operations a second of a large float32 product by BLAS."""
    x = np.random.default_rng(0).normal(size=(1024, 1024)).astype(np.float32)
    return 2 * 1024**3 / least(lambda: x @ x, 20)


def shown(law: TextCounts, took: dict[str, float], best: tuple[str, ...]) -> dict[str, float]:
    """Ratios to ours, and the share of time that three products over all types would need at the peak of BLAS."""
    ours, vocab = took["Ours"], law.model.vocab
    print(f"{law.process.source}, {vocab:,} types, ms a step: {', '.join(f'{name} {ms:.2f}' for name, ms in took.items())}")
    share = 3 * 2 * BATCH * vocab * WIDTH / peak() / (ours / 1e3)
    rival = min(best, key=took.__getitem__)
    print(f"best alternative {rival}: {took[rival] / ours:.2f} times ours; the output's products at BLAS's peak: {share:.0%}")
    found = {f"{name}_over_ours_{vocab}": ms / ours for name, ms in took.items() if name != "Ours"}
    found |= {f"best_alternative_over_ours_{vocab}": took[rival] / ours, f"milliseconds_{vocab}": ours}
    return found | {f"output_products_share_{vocab}": share}


def main() -> None:
    few, many = law_of("tinystories", 200), law_of("wikitext-2", 10_000)
    rivals = (TorchLogs, TorchLogsCompiled, TorchSupports, TorchSupportsCompiled, Jax)
    took = milliseconds(few, (Ours, OursDrawing, TorchCounts, *rivals), steps=10, rounds=21)
    took |= {"TorchTokens": milliseconds(few, (Ours, TorchTokens), steps=2, rounds=2)["TorchTokens"]}
    found = shown(few, took, tuple(kind.__name__ for kind in rivals))
    large = (TorchSupports, TorchSupportsCompiled)
    took = milliseconds(many, (Ours, OursDrawing, *large), steps=2, rounds=4)
    found |= shown(many, took, tuple(kind.__name__ for kind in large))
    print(json.dumps({name: float(value) for name, value in found.items()}))


if __name__ == "__main__":
    main()
