"""Incremental learning: a step of setting A, and the flows of heads.

**Step** of the preset `ladder` (3000 sequences, 3 heads, Adam, clip 1). Baseline: PyTorch in float64, of two vectorised ways the
faster one. Best alternatives, in float32 as ours: with W[s, x, t] = sum_h attention[h, t, s] V_h[:, x], the trick of our own
kernel, logits are one-hot tokens times W: `jax`, one product of matrices, jitted with Adam; `bag`, `embedding_bag`; `sparse`,
PyTorch's sparse matrices (MKL), forwards and backwards. `torch.compile` made none of them faster (15.0 for 14.8 ms of the dense
product, 10.7 for 9.7 of `bag`), and one-hot tokens that attention mixes first were slower (17 ms).

**Flows** of figure 10's size to t = 2e5, exact and mirror, and to t = 1, there with scan and snap. Best alternative: SciPy's
LSODA by `odeint`, its fastest door, on our own Numba kernel. Each side has the tolerances with which it reaches ERROR fastest.

One thread, CPU time, sides alternating, minima, compilation excluded. Needs `stagescope[benchmarks]`.
"""

import json
import os
import warnings

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = os.environ["MKL_NUM_THREADS"] = "1"
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"

import numpy as np

import stagescope as ss
from benchmarks.timing import alternating
from stagescope.core.params import Layout
from stagescope.flow.descent import loop_for
from stagescope.flow.field import Compiled
from stagescope.papers.incremental.regression_kernel import velocity
from stagescope.papers.scan_snap.kernel import gradient

ROUNDS, STEPS = 15, 5
UNTIL, SIGMA, ERROR, TIGHT = 2e5, 1e-5, 1e-6, (1e-13, 1e-16)
TOLERANCES = [(10.0**-power, atol) for power in range(6, 13) for atol in (10.0 ** -(power + 3), None)]
"""rtol and atol; None is the default of a flow here, 1e-13."""
RATES = {"V": 0.05, "a": 0.01}
MODEL = ss.RegressionHeads(positions=40, gains=(2.89, 1.7, 1.0), heads=3)
LAWS = {"exact": ss.RegressionLoss(model=MODEL), "mirror": ss.MirrorFlow(model=MODEL)}


class Ours:
    """`STEPS` steps from where twenty have led."""

    def __init__(self, setup, precision: str) -> None:
        layout, loss = Layout.of(setup.params), setup.what.model_copy(update={"precision": precision})
        self.loop = loop_for(setup.dynamics, loss.field(), layout)
        start = self.loop.restore(self.loop.start(layout.pack(setup.params)))
        self.carry, _ = self.loop.advance(start, 0, 20)
        self.values = layout.unpack(self.loop.vector(self.carry))["V"]

    def run(self) -> None:
        self.loop.advance(self.carry, 20, STEPS)


class Torch:
    """The training step in PyTorch."""

    def __init__(self, setup, way: str) -> None:
        import torch

        torch.set_num_threads(1)
        loss, self.torch, self.logits = setup.what, torch, getattr(self, way)
        kind = torch.float64 if way in ("mixed", "gathered") else torch.float32
        model, tokens = loss.model, torch.tensor(loss.all.tokens.T.astype(np.int64))
        self.sizes = model.positions * model.vocab, model.targets * model.vocab
        self.hidden, self.targets = torch.tensor(~model.visible), tokens[:, model.context :].flatten()
        self.a, self.v = (torch.tensor(setup.params[name], dtype=kind, requires_grad=True) for name in ("a", "V"))
        self.tokens = tokens[:, : model.positions]
        self.rows = self.tokens + torch.arange(model.positions) * model.vocab
        self.one_hot = torch.nn.functional.one_hot(self.tokens, model.vocab).to(kind)
        groups = [{"params": [block], "lr": RATES[name]} for name, block in (("V", self.v), ("a", self.a))]
        self.optimizer = torch.optim.Adam(groups, fused=kind == torch.float32)
        self.product = self._sparse() if way == "sparse" else None
        for _ in range(20):
            self.step()
        self.values = self.v.detach().numpy().copy()

    def _sparse(self):
        """One-hot tokens times W, by sparse matrices both ways."""
        flat = self.one_hot.flatten(1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # they are called experimental
            forth, back = flat.to_sparse_csr(), flat.T.contiguous().to_sparse_csr()

        class Product(self.torch.autograd.Function):
            @staticmethod
            def forward(ctx, w):
                return forth @ w

            @staticmethod
            def backward(ctx, *g):
                return back @ g[0]

        return Product.apply

    def gathered(self, attention):
        """Rows of the values by token, mixed by attention."""
        return self.torch.einsum("hts,hnsj->ntj", attention, self.v.transpose(1, 2)[:, self.tokens])

    def mixed(self, attention):
        """One-hot tokens mixed by attention, then read by the values."""
        return self.torch.einsum("nhtx,hjx->ntj", self.torch.einsum("hts,nsx->nhtx", attention, self.one_hot), self.v)

    def _table(self, attention):
        return self.torch.einsum("hts,hjx->sxtj", attention, self.v).reshape(self.sizes)

    def bag(self, attention):
        return self.torch.nn.functional.embedding_bag(self.rows, self._table(attention), mode="sum")

    def sparse(self, attention):
        assert self.product
        return self.product(self._table(attention))

    def step(self) -> None:
        attention = self.torch.softmax(self.a.masked_fill(self.hidden, -self.torch.inf), dim=-1)
        found = self.logits(attention).reshape(len(self.targets), -1)
        loss = self.torch.nn.functional.cross_entropy(found, self.targets)
        self.optimizer.zero_grad()
        loss.backward()
        self.torch.nn.utils.clip_grad_norm_([self.v, self.a], 1.0)
        self.optimizer.step()

    def run(self) -> None:
        for _ in range(STEPS):
            self.step()


class Jax:
    """The training step in JAX, float32, one product of matrices, everything jitted."""

    def __init__(self, setup) -> None:
        import jax
        import jax.numpy as jnp

        model, tokens = setup.what.model, setup.what.all.tokens.T.astype(np.int64)
        one_hot = np.eye(model.vocab, dtype=np.float32)[tokens[:, : model.positions]]
        self.jax, self.visible, self.shape = jax, model.visible, (len(tokens), model.targets, model.vocab)
        self.data = jnp.asarray(one_hot.reshape(len(tokens), -1)), jnp.asarray(tokens[:, model.context :, None])
        start = {name: jnp.asarray(block, jnp.float32) for name, block in setup.params.items()}
        zero = jax.tree.map(jnp.zeros_like, start)
        self.advance, self.carry = jax.jit(self._step), (start, zero, zero)
        for step in range(20):
            self.carry = self.advance(self.carry, np.float32(step), self.data)
        self.values = np.asarray(self.carry[0]["V"])

    def _loss(self, params, data):
        jax, jnp = self.jax, self.jax.numpy
        attention = jax.nn.softmax(jnp.where(self.visible, params["a"], -jnp.inf), axis=-1)
        table = jnp.einsum("hts,hjx->sxtj", attention, params["V"]).reshape(data[0].shape[1], -1)
        predicted = jax.nn.log_softmax((data[0] @ table).reshape(self.shape), axis=-1)
        return -jnp.mean(jnp.take_along_axis(predicted, data[1], axis=-1))

    def _step(self, carry, step, data):
        jax, jnp = self.jax, self.jax.numpy
        gradient = jax.grad(self._loss)(carry[0], data)
        share = jnp.minimum(1.0, 1.0 / jnp.sqrt(sum(jnp.sum(block**2) for block in gradient.values())))
        now, first, second = {}, {}, {}
        for name, block in gradient.items():
            first[name] = 0.9 * carry[1][name] + 0.1 * share * block
            second[name] = 0.999 * carry[2][name] + 0.001 * (share * block) ** 2
            size = jnp.sqrt(second[name] / (1 - 0.999 ** (step + 1))) + 1e-8
            now[name] = carry[0][name] - RATES[name] * first[name] / (1 - 0.9 ** (step + 1)) / size
        return now, first, second

    def run(self) -> None:
        carry = self.carry
        for step in range(STEPS):
            carry = self.advance(carry, np.float32(20 + step), self.data)
        self.jax.block_until_ready(carry)


def step() -> dict[str, float]:
    """Milliseconds of a step on all sides, after checking that twenty of them end at the same values."""
    plan = ss.study("incremental")
    setup = plan.setup(plan.configured("ladder"), 0)
    sides: dict = {f"ours {kind}": Ours(setup, kind) for kind in ("float64", "float32")}
    sides |= {way: Torch(setup, way) for way in ("mixed", "gathered", "bag", "sparse")} | {"jax": Jax(setup)}
    for name, side in sides.items():
        gap = np.abs(side.values - sides["ours float64"].values).max()
        assert gap < 1e-4, f"{name} differs by {gap}: not the same work"  # PyTorch clips at norm + 1e-6
    took = alternating({name: side.run for name, side in sides.items()}, ROUNDS)
    found = {name: 1e3 * seconds / STEPS for name, seconds in took.items()}
    print("ladder step, ms:", ", ".join(f"{name} {value:.2f}" for name, value in found.items()))
    torch, other = min(found["mixed"], found["gathered"]), min(found[name] for name in ("bag", "sparse", "jax"))
    ratios = {"ratio_step": torch / found["ours float64"], "ratio_step_best_alternative": other / found["ours float32"]}
    ratios["ratio_step_jax_float32"] = found["jax"] / found["ours float32"]
    return ratios | {f"milliseconds_step_{name.replace(' ', '_')}": value for name, value in found.items()}


class Flow:
    """One flow on a grid of times: ours, and LSODA on the same kernel."""

    def __init__(self, law, kernel, start, until: float, record) -> None:
        from numba import njit

        self.law, self.start, self.until, self.record, self.layout = law, start, until, record, Layout.of(start)
        field = law.field() if isinstance(law, ss.Objective) else law
        flat = field.flat(self.layout, dict.fromkeys(self.layout.names, 1.0))
        assert isinstance(flat, Compiled)
        self.out, self.held = np.empty(self.layout.size), flat.constants[2:-3].copy()

        @njit
        def rhs(y, t, out, held):
            kernel(y, out, held)
            return out

        self.rhs = rhs

    def ours(self, rtol: float, atol: float | None) -> np.ndarray:
        flow = ss.GradientFlow(rtol=rtol, atol=atol)
        params = ss.evolve(self.law, self.start, flow, until=self.until, record=self.record, progress=False).params
        return np.concatenate([params[name].reshape(len(params[name]), -1) for name in self.layout.names], axis=1)

    def lsoda(self, rtol: float, atol: float | None) -> np.ndarray:
        from scipy.integrate import odeint

        y, ts, arguments = self.layout.pack(self.start), self.record.times(self.until), (self.out, self.held)
        return odeint(self.rhs, y, ts, args=arguments, rtol=rtol, atol=atol or 1e-13, mxstep=10**6)

    def compare(self, rounds: int) -> dict[str, float]:
        """Seconds of both at the tolerances that reach the error fastest, and of ours at the default ones."""
        truth, works = self.ours(*TIGHT), {"usual": lambda: self.ours(ss.GradientFlow().rtol, None)}
        for name, run in (("ours", self.ours), ("lsoda", self.lsoda)):
            enough = [pair for pair in TOLERANCES if np.abs(run(*pair) - truth).max() <= ERROR]
            times = alternating({pair: lambda run=run, pair=pair: run(*pair) for pair in enough}, 1)
            fastest = min(enough, key=times.__getitem__)
            works[name] = lambda run=run, pair=fastest: run(*pair)
        return alternating(works, rounds)


def flow() -> dict[str, float]:
    """Seconds of the long flows, and the ratio to LSODA at equal error."""
    found = {}
    for name, law in LAWS.items():
        seconds = Flow(law, velocity, MODEL.init(0, SIGMA), UNTIL, ss.LogSpaced(frames=400, first=1e-2)).compare(5)
        ratio = seconds["lsoda"] / seconds["ours"]
        print(f"{name} flow to t={UNTIL:g}: {seconds['usual']:.3f} s; at error {ERROR:g} {seconds['ours']:.3f} s,", end=" ")
        print(f"LSODA {seconds['lsoda']:.3f} s, {ratio:.1f}x")
        found |= {f"seconds_{name}_flow": seconds["usual"], f"ratio_{name}_flow_lsoda_equal_error": ratio}
    return found


def short() -> dict[str, float]:
    """Milliseconds of a flow to t = 1 with two frames, as points of a sweep have; LSODA records no loss and has no restarts."""
    plan = ss.study("scan-snap")
    snap = plan.setup(plan.configured("syn-small-flow"), 0)
    sides: dict = {name: (law, velocity, MODEL.init(0, SIGMA)) for name, law in LAWS.items()}
    sides["scan_snap"] = (snap.what, gradient, snap.params)
    found = {}
    for name, (law, kernel, start) in sides.items():
        seconds = Flow(law, kernel, start, 1.0, ss.Uniform(frames=2)).compare(30)
        print(f"{name} flow to t=1: {1e3 * seconds['usual']:.2f} ms, LSODA alone {1e3 * seconds['lsoda']:.2f} ms")
        found |= {
            f"milliseconds_short_{name}": 1e3 * seconds["usual"],
            f"milliseconds_short_{name}_lsoda": 1e3 * seconds["lsoda"],
        }
    return found


PARTS = (step, flow, short)


def main() -> None:
    print(json.dumps({name: value for part in PARTS for name, value in part().items()}))


if __name__ == "__main__":
    main()
