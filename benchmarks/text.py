"""A training step of focus and dilution on a text (count form, 200 types, 1024 windows of 256) against PyTorch eager.

Baselines, float32 like ours, autograd, plain steps, vectorised over the batch: the count form on the same count rows, the same
with the logarithms of counts ready made, and ordinary attention over the tokens of each window. Ours is timed twice: on these
count rows, and with drawing, cutting and counting the windows, as a run does. One thread, CPU time, the sides alternate, medians.
All must end at the same parameters. The text is TinyStories where it is at hand, else the one inside CPython. Needs the extra
`stagescope[benchmarks]`.
"""

import json
import os
import time
from abc import ABC, abstractmethod
from typing import Any

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np

import stagescope as ss
from stagescope.errors import InputError
from stagescope.papers.focus_dilution.text.loss import TextCounts

VOCAB, WIDTH, WINDOW, BATCH, RATE = 200, 32, 256, 1024, 0.2
STEPS, ROUNDS, TOKEN_ROUNDS = 10, 21, 3
BLOCKS = ("W0", "W1", "WQ", "WK")


def corpus():
    try:
        return ss.read_corpus("tinystories", vocab=VOCAB)
    except InputError:
        return ss.read_corpus("topics", vocab=VOCAB)


class Ours:
    """Steps on count rows that are handed over."""

    def __init__(self, law: TextCounts) -> None:
        self.law = law
        self.batches = [law.rows(law.minibatch(step)) for step in range(STEPS)]

    def reset(self) -> None:
        self.params = self.law.model.init(0, 0.3)

    def gradient(self, step: int) -> dict:
        return self.law.of_rows(self.params, self.batches[step])[1]

    def train(self) -> None:
        for step in range(STEPS):
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

    def __init__(self, law: TextCounts) -> None:
        import torch

        torch.set_num_threads(1)
        self.torch, self.law = torch, law
        self.batches = [self.data(law.minibatch(step)) for step in range(STEPS)]

    @abstractmethod
    def data(self, starts: np.ndarray) -> tuple:
        """A batch as tensors."""

    @abstractmethod
    def loss(self, batch: tuple) -> Any:
        """The loss of a batch."""

    def reset(self) -> None:
        start = self.law.model.init(0, 0.3)
        self.params = {name: self.torch.tensor(start[name], dtype=self.torch.float32, requires_grad=True) for name in BLOCKS}
        self.optimizer = self.torch.optim.SGD(self.params.values(), lr=RATE)

    def train(self) -> None:
        for batch in self.batches:
            loss = self.loss(batch)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()

    def end(self) -> dict:
        return {name: block.detach().numpy() for name, block in self.params.items()}


class TorchCounts(Torch):
    """The count form, on the same count rows as ours."""

    def data(self, starts: np.ndarray) -> tuple:
        rows = self.law.rows(starts)
        return tuple(self.torch.tensor(part) for part in (rows.counts.astype(np.float32), rows.query, rows.target))

    def logs(self, counts: Any) -> Any:
        return self.torch.log(counts)

    def loss(self, batch: tuple) -> Any:
        counts, query, target = batch
        logs = self.logs(counts)
        w0, w1, wq, wk = self.params.values()
        scores = self.law.model.scale * (w0 @ wq) @ (w0 @ wk).T
        attention = self.torch.softmax(scores.index_select(0, query) + logs, dim=1)
        return self.torch.nn.functional.cross_entropy(attention @ w0 @ w1, target)


class TorchLogs(TorchCounts):
    """The same with the logarithms of counts ready made."""

    def data(self, starts: np.ndarray) -> tuple:
        counts, query, target = super().data(starts)
        return self.torch.log(counts), query, target

    def logs(self, counts: Any) -> Any:
        return counts


class TorchTokens(Torch):
    """Attention of the last token over the window, token by token."""

    def data(self, starts: np.ndarray) -> tuple:
        windows = self.law.tokens[starts[:, None] + np.arange(WINDOW + 1)].astype(np.int64)
        return self.torch.tensor(windows[:, :-1]), self.torch.tensor(windows[:, -1])

    def loss(self, batch: tuple) -> Any:
        tokens, target = batch
        w0, w1, wq, wk = self.params.values()
        x = self.torch.nn.functional.embedding(tokens, w0)
        scores = self.law.model.scale * ((x @ wk) @ (x[:, -1] @ wq).unsqueeze(-1)).squeeze(-1)
        attention = self.torch.softmax(scores, dim=1)
        return self.torch.nn.functional.cross_entropy((attention.unsqueeze(1) @ x).squeeze(1) @ w1, target)


def seconds(side) -> float:
    side.reset()
    began = time.process_time()
    side.train()
    return (time.process_time() - began) / STEPS


def peak() -> float:
    """Floating point operations a second of a large float32 product."""
    x = np.random.default_rng(0).normal(size=(1024, 1024)).astype(np.float32)
    _ = x @ x
    times = []
    for _ in range(ROUNDS):
        began = time.process_time()
        _ = x @ x
        times.append(time.process_time() - began)
    return 2 * 1024**3 / min(times)


def operations() -> int:
    """Of the matrix products of a step: six over the batch, and those between types."""
    return 2 * (6 * BATCH * VOCAB * WIDTH + 3 * VOCAB**2 * WIDTH + 6 * VOCAB * WIDTH**2)


def main() -> None:
    text = corpus()
    model = ss.TokenAttention(vocab=VOCAB, width=WIDTH, scale=WIDTH**-0.5)
    law = TextCounts(model=model, process=text, length=WINDOW, batch=BATCH)
    sides = {kind.__name__: kind(law) for kind in (Ours, OursDrawing, TorchCounts, TorchLogs, TorchTokens)}
    for side in sides.values():
        side.reset()
        side.train()
        for name, block in sides["Ours"].end().items():
            gap = np.abs(block - side.end()[name]).max() / np.abs(block).max()
            assert gap < 1e-4, f"{name} differs by {gap}: not the same work"
    slow, rows, peaks = sides.pop("TorchTokens"), [], []
    for _ in range(ROUNDS):
        rows.append([seconds(side) for side in sides.values()])
        peaks.append(peak())
    given, drawn, counts, logs = np.median(rows, axis=0)
    tokens = np.median([seconds(slow) for _ in range(TOKEN_ROUNDS)])
    top = float(np.median(peaks))
    share, torch_share = operations() / given / top, operations() / counts / top
    print(f"{text.source}, a step on given count rows: {given * 1e3:.2f} ms, with drawing them {drawn * 1e3:.2f} ms")
    print(f"PyTorch on the same rows {counts * 1e3:.2f} ms, on logarithms {logs * 1e3:.2f} ms, on tokens {tokens * 1e3:.1f} ms")
    print(f"{BATCH * WINDOW / given / 1e6:.0f} M tokens/s at {share:.0%} of the matmul peak; PyTorch {torch_share:.0%}")
    found = {"count_form": counts / given, "against_ready_logarithms": logs / given}
    found |= {"with_drawing": counts / drawn, "token_form_with_drawing": tokens / drawn}
    found |= {"tokens_per_second": BATCH * WINDOW / given, "torch_tokens_per_second": BATCH * WINDOW / counts}
    found |= {"matmul_share": share, "torch_matmul_share": torch_share, "peak_gflops": top / 1e9}
    found |= {"milliseconds": given * 1e3, "milliseconds_with_drawing": drawn * 1e3, "torch_milliseconds": counts * 1e3}
    print(json.dumps({name: float(value) for name, value in found.items()}))


if __name__ == "__main__":
    main()
