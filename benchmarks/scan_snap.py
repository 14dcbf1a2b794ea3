"""A training step of figure 6 (heavy ball, batch 128, contexts of 128 tokens) against PyTorch on the same batches.

Baseline: vectorised PyTorch, float64 as here, autograd, one-hot batch x length x vocabulary as in the authors' code; it is
given the batches ready drawn. Ours is timed twice: on the same batches, and with drawing them. One thread, CPU time, the
two alternate, medians. Both must end at the same parameters. Needs the extra `stagescope[benchmarks]`.
"""

import json
import os
import time

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np

import stagescope as ss
from stagescope.papers.scan_snap.sampled_kernel import _move, accumulate, draw_counts

BATCH = LENGTH = 128
STEPS, ROUNDS, MOMENTUM = 12, 7, 0.9


def problem(last: int) -> ss.PairwiseSampled:
    process = ss.SequenceClasses.synthetic(last, 2, 10, 10)
    model = ss.PairwiseAttention.every_output(process)
    return ss.PairwiseSampled(model=model, process=process, length=LENGTH, batch=BATCH)


class Kernel:
    """This package: counts, the support of each class, one kernel call a step."""

    def __init__(self, task: ss.PairwiseSampled, batches: list) -> None:
        self.task, self.batches = task, batches
        self.start, self.keys = task.kernel_arguments[1], task.kernel_arguments[2]

    def reset(self) -> None:
        start = self.task.model.init(0, self.task.process.vocab**-0.5)
        self.y, self.z = start["Y"], start["Z"]
        self.my, self.mz = np.zeros_like(self.y), np.zeros_like(self.z)

    def step(self, sizes: np.ndarray, counts: np.ndarray) -> None:
        rows = self.task.rows
        accumulate(self.y, self.z, self.my, self.mz, sizes, counts, self.start, self.keys, rows["query"], rows["target"])
        _move(self.y, self.my, 1.0, MOMENTUM)
        _move(self.z, self.mz, 1.0, MOMENTUM)

    def train(self) -> None:
        for sizes, counts in self.batches:
            self.step(sizes, counts)

    def draw_and_train(self) -> None:
        sizes, counts = self.batches[0][0].copy(), self.batches[0][1].copy()
        for k in range(STEPS):
            draw_counts(0, k, LENGTH, *self.task.tables, sizes, counts)
            self.step(sizes, counts)


class Torch:
    """The same steps on one-hot sequences, by autograd."""

    def __init__(self, task: ss.PairwiseSampled, batches: list) -> None:
        import torch

        torch.set_num_threads(1)
        self.torch, self.task = torch, task
        self.batches = [self.tokens(*batch) for batch in batches]

    def tokens(self, sizes: np.ndarray, counts: np.ndarray) -> tuple:
        """Token sequences with these counts, and each sample's query row and target."""
        start, keys = self.task.kernel_arguments[1], self.task.kernel_arguments[2]
        classes = np.repeat(np.arange(len(sizes)), sizes)
        names = np.array(self.task.model.keys)[keys]
        spread = [
            np.repeat(names[start[n] : start[n + 1]], row[: start[n + 1] - start[n]])
            for n, row in zip(classes, counts, strict=True)
        ]
        items = [self.task.process.classes[n] for n in classes]
        queries, targets = [item.query for item in items], [item.target for item in items]
        return tuple(self.torch.tensor(np.array(a)) for a in (spread, queries, targets))

    def reset(self) -> None:
        model, vocab = self.task.model, self.task.process.vocab
        start, square = model.init(0, vocab**-0.5), (vocab, vocab)
        y, z = self.torch.zeros(square, dtype=self.torch.float64), self.torch.zeros(square, dtype=self.torch.float64)
        y[list(model.keys)] = self.torch.tensor(start["Y"])
        z[np.ix_(model.queries, model.keys)] = self.torch.tensor(start["Z"])
        self.y, self.z = y.requires_grad_(), z.requires_grad_()
        self.optimizer = self.torch.optim.SGD([self.y, self.z], lr=1.0, momentum=MOMENTUM)

    def train(self) -> None:
        torch, functional = self.torch, self.torch.nn.functional
        for tokens, queries, targets in self.batches:
            x = functional.one_hot(tokens, len(self.z)).to(torch.float64)
            weights = torch.softmax((x @ self.z[queries].unsqueeze(-1)).squeeze(-1), dim=1)
            v = (weights.unsqueeze(1) @ x).squeeze(1)
            f = v / v.norm(dim=1, keepdim=True)
            loss = functional.cross_entropy(f @ self.y, targets)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()


def seconds(reset, work) -> float:
    reset()
    began = time.process_time()
    work()
    return (time.process_time() - began) / STEPS


def compare(last: int) -> dict[str, float]:
    task = problem(last)
    batches = [task.sample(k) for k in range(STEPS)]
    ours, theirs = Kernel(task, batches), Torch(task, batches)
    for side in (ours, theirs):
        side.reset()
        side.train()
    gap = np.abs(ours.y - theirs.y.detach().numpy()[list(task.model.keys)]).max()
    assert gap < 1e-9, f"the two sides differ by {gap}: not the same work"
    rows = [
        (seconds(ours.reset, ours.train), seconds(ours.reset, ours.draw_and_train), seconds(theirs.reset, theirs.train))
        for _ in range(ROUNDS)
    ]
    given, drawn, torch = np.median(rows, axis=0)
    print(
        f"num_last {last:2d}: {given * 1e3:6.3f} ms on given batches, {drawn * 1e3:6.3f} ms with drawing, "
        f"PyTorch {torch * 1e3:7.2f} ms -> {torch / given:5.0f}x, {torch / drawn:5.0f}x"
    )
    times = {"milliseconds": given * 1e3, "torch_milliseconds": torch * 1e3}
    return {"ratio": torch / given, "ratio_with_drawing": torch / drawn, **times}


def sweep_seconds() -> float:
    from stagescope.papers.scan_snap.figures.numbers import entropy_grid
    from stagescope.progress import Progress

    began = time.process_time()
    found = entropy_grid(Progress())
    print(f"figure 6: mean |difference| to the published means {found['mean_abs_difference']:.4f}")
    return time.process_time() - began


def main() -> None:
    found = {f"num_last_{last}": compare(last) for last in (1, 3, 5, 10)}
    total = sweep_seconds()
    print(f"figure 6, 640 runs x 100 steps: {total:.1f} s of CPU")
    print(json.dumps({**{k: v["ratio"] for k, v in found.items()}, "figure_6_seconds": total, "details": found}))


if __name__ == "__main__":
    main()
