"""A training step of figure 6 (heavy ball, batch 128, contexts of 128 tokens) against PyTorch and JAX on the same batches.

- The authors' way: vectorised PyTorch, autograd, one-hot batch x length x vocabulary as in their code.
- The best alternative: what a user could write with counts on supports, in float32, by `jax.lax.scan` or `torch.compile`; the
  fastest of six (`scan_snap_alternatives.py`) for each size.
Both are given the batches ready drawn, and so is ours; ours with drawing is timed too. Ratios are between sides of the precision
named; `authors` is their float64 against our float32. One thread, CPU time, the sides alternate, minima. All sides must end at
the same parameters. Needs the extra `stagescope[benchmarks]` and, for `torch.compile`, a C++ compiler.
"""

import json
import os
from collections.abc import Callable
from typing import Any

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = os.environ["MKL_NUM_THREADS"] = "1"
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"

import numpy as np
from numba import njit

import stagescope as ss
from benchmarks.scan_snap_alternatives import LAYOUTS, jax_steps, torch_steps
from benchmarks.timing import alternating, least, seconds
from stagescope.flow.lanes_kernel import LANES
from stagescope.papers.scan_snap.sampled_kernel import (
    accumulate,
    accumulate_single,
    heavy_ball,
    heavy_ball_single,
    move,
    padded,
    workspace,
)

BATCH = LENGTH = 128
STEPS, ROUNDS, MOMENTUM = 40, 7, 0.9


def problem(last: int) -> ss.PairwiseSampled:
    process = ss.SequenceClasses.synthetic(last, 2, 10, 10)
    model = ss.PairwiseAttention.every_output(process)
    return ss.PairwiseSampled(model=model, process=process, length=LENGTH, batch=BATCH)


@njit
def steps_double(y, z, my, mz, sizes, counts, layout, outputs, lr, momentum):
    """What `heavy_ball` does, on batches that are given."""
    for k in range(len(sizes)):
        accumulate(y, z, my, mz, sizes[k], counts[k], *layout)
        move(y, my, lr, momentum)
        move(z, mz, lr, momentum)


@njit
def steps_single(y, z, my, mz, sizes, counts, layout, outputs, lr, momentum):
    size, work = np.float32(np.inf), workspace(counts.shape[1], counts.shape[2], y.shape[1], outputs)
    for k in range(len(sizes)):
        accumulate_single(y, z, my, mz, sizes[k], counts[k], *layout, size, work)
        size = move(y, my, lr, momentum)
        move(z, mz, lr, momentum)


class Kernel:
    """This package: counts, the support of each class, one kernel call for all steps."""

    def __init__(self, task: ss.PairwiseSampled, batches: list, single: bool) -> None:
        self.task, self.single = task, single
        sizes, counts = (np.stack(each) for each in zip(*batches, strict=True))
        spare = -counts.shape[2] % LANES if single else 0
        self.batches = sizes, np.pad(counts, ((0, 0), (0, 0), (0, spare)))
        self.layout = (task.kernel_arguments[1], task.kernel_arguments[2], task.rows["query"], task.rows["target"])

    def reset(self) -> None:
        start = self.task.model.init(0, self.task.process.vocab**-0.5)
        self.y, self.z = (padded(start["Y"]), start["Z"].astype(np.float32)) if self.single else (start["Y"], start["Z"])
        self.my, self.mz = np.zeros_like(self.y), np.zeros_like(self.z)

    def train(self) -> None:
        steps, number = steps_single if self.single else steps_double, self.y.dtype.type
        rest = self.layout, self.task.process.vocab, number(1.0), number(MOMENTUM)
        steps(self.y, self.z, self.my, self.mz, *self.batches, *rest)

    def draw_and_train(self) -> None:
        tables, (key, query, target) = self.task.tables, self.layout[1:]
        drawn, number = (0, STEPS, 0, LENGTH, BATCH, tables, (key, query, target)), self.y.dtype.type
        rates, blocks = (number(MOMENTUM), number(1.0), number(1.0)), (self.y, self.z, self.my, self.mz)
        if self.single:
            heavy_ball_single(*blocks, self.task.process.vocab, *drawn, *rates)
        else:
            heavy_ball(*blocks, *drawn, *rates)

    @property
    def end(self) -> np.ndarray:
        return self.y[:, : self.task.process.vocab]


class Torch:
    """The same steps on one-hot sequences, by autograd."""

    def __init__(self, task: ss.PairwiseSampled, batches: list, single: bool) -> None:
        import torch

        torch.set_num_threads(1)
        self.torch, self.task, self.kind = torch, task, torch.float32 if single else torch.float64
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
        y, z = self.torch.zeros(square, dtype=self.kind), self.torch.zeros(square, dtype=self.kind)
        y[list(model.keys)] = self.torch.tensor(start["Y"], dtype=self.kind)
        z[np.ix_(model.queries, model.keys)] = self.torch.tensor(start["Z"], dtype=self.kind)
        self.y, self.z = y.requires_grad_(), z.requires_grad_()
        self.optimizer = self.torch.optim.SGD([self.y, self.z], lr=1.0, momentum=MOMENTUM)

    def train(self) -> None:
        torch, functional = self.torch, self.torch.nn.functional
        for tokens, queries, targets in self.batches:
            x = functional.one_hot(tokens, len(self.z)).to(self.kind)
            weights = torch.softmax((x @ self.z[queries].unsqueeze(-1)).squeeze(-1), dim=1)
            v = (weights.unsqueeze(1) @ x).squeeze(1)
            f = v / v.norm(dim=1, keepdim=True)
            loss = functional.cross_entropy(f @ self.y, targets)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()

    @property
    def end(self) -> np.ndarray:
        return self.y.detach().numpy()[list(self.task.model.keys)]


class Alternative:
    """Steps by JAX or torch.compile in one layout."""

    def __init__(self, make: Callable, layout: str, task: ss.PairwiseSampled, batches: list) -> None:
        self.name = f"{make.__name__.partition('_')[0]}, {layout}"
        self.steps = make(task, batches, layout, MOMENTUM)

    def reset(self) -> None: ...

    def train(self) -> None:
        self.end = self.steps()


def alternatives(task: ss.PairwiseSampled, batches: list) -> list[Alternative]:
    """The three fastest alternatives, by four rounds after the first, which compiles."""
    found = []
    for make in (jax_steps, torch_steps):
        for layout in LAYOUTS:
            side = Alternative(make, layout, task, batches)
            side.train()
            found.append((least(side.train, 4), len(found), side))
    return [side for *_, side in sorted(found)[:3]]


def compare(last: int) -> dict[str, Any]:
    task = problem(last)
    batches = [task.sample(k) for k in range(STEPS)]
    sides: dict[str, Any] = {"float64": Kernel(task, batches, False), "float32": Kernel(task, batches, True)}
    sides |= {"torch64": Torch(task, batches, False), "torch32": Torch(task, batches, True)}
    sides |= {side.name: side for side in alternatives(task, batches)}
    for name, side in sides.items():
        side.reset()
        side.train()
        gap, most = np.abs(sides["float64"].end - side.end).max(), 1e-9 if name.endswith("64") else 1e-4
        assert gap < most, f"{name} differs by {gap}: not the same work"
    work, before = ({name: getattr(side, what) for name, side in sides.items()} for what in ("train", "reset"))
    for name in ("float64", "float32"):
        work[f"{name} drawn"], before[f"{name} drawn"] = sides[name].draw_and_train, sides[name].reset
    ms = {name: 1e3 * took / STEPS for name, took in alternating(work, ROUNDS, before).items()}
    best = min(list(sides)[4:], key=ms.__getitem__)
    ratios = {
        "authors": ms["torch64"] / ms["float32"],
        "authors_float64": ms["torch64"] / ms["float64"],
        "authors_float32": ms["torch32"] / ms["float32"],
        "best": ms[best] / ms["float32"],
        "authors_with_drawing": ms["torch64"] / ms["float32 drawn"],
    }
    print(
        f"num_last {last:2d}: ours {ms['float64']:.3f} ms (float32 {ms['float32']:.3f}, with drawing {ms['float32 drawn']:.3f}), "
        f"authors' way {ms['torch64']:.2f} (float32 {ms['torch32']:.2f}), best alternative {ms[best]:.3f} ({best}) -> "
        f"{ratios['authors']:.0f}x ({ratios['authors_float64']:.0f}x in float64, {ratios['authors_float32']:.0f}x in float32), "
        f"{ratios['best']:.1f}x the best"
    )
    return {**ratios, "alternative": best, **{f"{name} ms".replace(" ", "_"): value for name, value in ms.items()}}


def sweep_seconds() -> float:
    from stagescope.core.progress import Progress
    from stagescope.readings.study import reproduction

    entropy_grid = reproduction("scan_snap").figures.entropy_grid
    found: list[dict] = []
    total = seconds(lambda: found.append(entropy_grid(Progress())))
    print(f"figure 6: mean |difference| to the published means {found[0]['mean_abs_difference']:.4f}")
    return total


def main() -> None:
    found = {f"num_last_{last}": compare(last) for last in (1, 3, 5, 10)}
    total = sweep_seconds()
    print(f"figure 6, 640 runs x 100 steps: {total:.1f} s of CPU")
    whole = {name: sum(each[f"{name}_ms"] for each in found.values()) for name in ("torch64", "float64", "float32")}
    authors, least = whole["torch64"] / whole["float32"], min(each["best"] for each in found.values())
    print(f"a step of all four sizes: {authors:.0f}x the authors' way, at least {least:.1f}x the best alternative")
    print(json.dumps({"authors": authors, "best_alternative": least, "figure_6_seconds": total, "details": found}))


if __name__ == "__main__":
    main()
