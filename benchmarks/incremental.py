"""Incremental learning: the head flow of figure 10's size to t = 2e5 (bar: under 1 s of CPU at error <= 1e-5).

The baseline of the flow is a bar in seconds, not another program. A training step of the preset `ladder` (3000 sequences,
3 heads, Adam, clip 1) stands against PyTorch in float64, on the same data from the same parameters, one thread each, CPU
time, the two alternating, medians; of two vectorised ways to write it there, the faster one. Needs `stagescope[benchmarks]`.
"""

import json
import os
import time

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np

import stagescope as ss
from stagescope.dynamics.loops import loop_for
from stagescope.params import Layout

ROUNDS = 9
UNTIL, SIGMA = 2e5, 1e-5
MODEL = ss.RegressionHeads(positions=40, gains=(2.89, 1.7, 1.0), heads=3)


def _run(law, **choices) -> tuple[float, ss.HeadCurves]:
    began = time.process_time()
    record = ss.LogSpaced(frames=400, first=1e-2)
    run = ss.evolve(law, MODEL.init(0, SIGMA), ss.GradientFlow(**choices), until=UNTIL, record=record, progress=False)
    return time.process_time() - began, ss.head_curves(run)


def flow() -> dict[str, float]:
    """Seconds at rtol 1e-12, no more than at the default, and the error of loss and attention against LSODA at rtol 1e-13."""
    found = {}
    for name, law in (("exact", ss.RegressionLoss(model=MODEL)), ("mirror", ss.MirrorFlow(model=MODEL))):
        _run(law)
        seconds, curves = min((_run(law, rtol=1e-12) for _ in range(3)), key=lambda pair: pair[0])
        _, tight = _run(law, rtol=1e-13, atol=1e-15, method="lsoda")
        error = max(np.abs(getattr(curves, what) - getattr(tight, what)).max() for what in ("loss", "attention"))
        print(f"{name} flow, N=40, H=3, sigma={SIGMA:g}, to t={UNTIL:g}: {seconds:.3f} s of CPU, error {error:.1e}")
        found |= {f"seconds_{name}_flow": seconds, f"error_{name}_flow": float(error)}
    return found


class Torch:
    """The training step in PyTorch, vectorised over sequences, targets and heads."""

    def __init__(self, loss: ss.HeadsLoss, start) -> None:
        import torch

        torch.set_num_threads(1)
        model, tokens = loss.model, loss.all.tokens.T.astype(np.int64)
        self.torch, self.hidden = torch, torch.tensor(~model.visible)
        self.a, self.values = (torch.tensor(start[name], requires_grad=True) for name in ("a", "V"))
        self.tokens, self.targets = torch.tensor(tokens[:, : model.positions]), torch.tensor(tokens[:, model.context :])
        self.one_hot = torch.nn.functional.one_hot(self.tokens, model.vocab).to(torch.float64)
        self.optimizer = torch.optim.Adam([{"params": [self.values], "lr": 0.05}, {"params": [self.a], "lr": 0.01}])

    def gathered(self, attention):
        """Rows of the values by token, mixed by attention."""
        return self.torch.einsum("hts,hnsj->ntj", attention, self.values.transpose(1, 2)[:, self.tokens])

    def mixed(self, attention):
        """One-hot tokens mixed by attention, then read by the values."""
        return self.torch.einsum("nhtx,hjx->ntj", self.torch.einsum("hts,nsx->nhtx", attention, self.one_hot), self.values)

    def step(self, logits) -> None:
        attention = self.torch.softmax(self.a.masked_fill(self.hidden, -self.torch.inf), dim=-1)
        found = logits(attention).flatten(0, 1)
        loss = self.torch.nn.functional.cross_entropy(found, self.targets.flatten())
        self.optimizer.zero_grad()
        loss.backward()
        self.torch.nn.utils.clip_grad_norm_([self.values, self.a], 1.0)
        self.optimizer.step()


def step() -> dict[str, float]:
    """Milliseconds of a step here and in PyTorch, after checking that twenty of them end at the same values."""
    plan = ss.study("incremental")
    setup = plan.setup(plan.configured("ladder"), 0)
    assert isinstance(setup.what, ss.HeadsLoss)
    assert isinstance(setup.dynamics, ss.Descent)
    layout, theirs = Layout.of(setup.params), Torch(setup.what, setup.params)
    loop = loop_for(setup.dynamics, setup.what.field(), layout)
    carry, _ = loop.advance(loop.restore(loop.start(layout.pack(setup.params))), 0, 20)
    for _ in range(20):
        theirs.step(theirs.mixed)
    gap = np.abs(layout.unpack(loop.vector(carry))["V"] - theirs.values.detach().numpy()).max()
    assert gap < 1e-4, f"the two sides differ by {gap}: not the same work"  # PyTorch clips at norm + 1e-6
    rows = [
        (
            _cpu(lambda: loop.advance(carry, 20, 5)),
            _cpu(lambda: [theirs.step(theirs.mixed) for _ in range(5)]),
            _cpu(lambda: [theirs.step(theirs.gathered) for _ in range(5)]),
        )
        for _ in range(ROUNDS)
    ]
    ours, mixed, gathered = (float(1e3 * seconds / 5) for seconds in np.median(rows, axis=0))
    print(f"ladder step: {ours:.2f} ms; PyTorch {mixed:.1f} ms (one-hot einsum), {gathered:.1f} ms (gathers)")
    return {"ratio_step": min(mixed, gathered) / ours, "milliseconds_step": ours, "torch_milliseconds_step": min(mixed, gathered)}


def _cpu(work) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


PARTS = (step, flow)


def main() -> None:
    print(json.dumps({name: value for part in PARTS for name, value in part().items()}))


if __name__ == "__main__":
    main()
