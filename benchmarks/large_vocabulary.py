"""Focus and dilution on many tokens: the flow before and after, beside the best alternatives, and what `stages` adds.

CPU time on one core, compilation excluded, sides alternating, minima. The chain is lazy (persistence .6) with pi ~ 1/rank, or
not lazy, width 8, start 1e-3. `before` is the kernel of up to 16 tokens, which runs of older versions resume with. The
alternatives at 256 tokens have the JAX gradient of the definition in float64, compiled, with products as XLA has them: our
CVODE calling it through Python, and Diffrax Tsit5; all have the loosest tolerance of a list that gives the end to 1e-6.
These flows are hardly stiff, so an explicit method is a good choice; our default of 1e-10 is beside it. LSODA would form a
Jacobian of 4224 columns. Memory is the peak of a process that does nothing else, with kernels in the cache. Needs the extra
`stagescope[benchmarks]`.
"""

import json
import os
import subprocess
import sys

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"

import numpy as np

import stagescope as ss
from benchmarks.timing import least, seconds
from stagescope.core.params import Layout
from stagescope.flow.field import Objective

ERROR = 1e-6
TOLERANCES = (1e-4, 3e-5, 1e-5, 3e-6, 1e-6, 3e-7, 1e-7)
ROUNDS = 2
PEAK = """
from pathlib import Path
from benchmarks.large_vocabulary import Problem, ss
def peak():  # not that of getrusage, which begins with the parent's
    return next(line.split()[1] for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
run = Problem(256).run(800.0, 1000)
flow = peak()
ss.stages(run)
print(flow, peak())
"""


class Definition(Objective):
    """The same loss without its kernels: the JAX expression alone."""

    def __init__(self, loss: ss.TokenPopulation) -> None:
        self.law = loss

    def describe(self):
        return {"type": "own", "name": "definition"}

    def loss(self, params, data):
        return self.law.loss(params, data)

    @property
    def data(self):
        return self.law.data


class Problem:
    def __init__(self, tokens: int, lazy: bool = True) -> None:
        law = 1 / np.arange(1.0, tokens + 1)
        law /= law.sum()
        rows = np.random.default_rng(tokens).gamma(0.3, size=(tokens, tokens)) * law + 0.01 * law
        chain = ss.LazyChain(pi=tuple(law), persistence=0.6)
        if not lazy:
            chain = ss.MarkovChain(rows=rows / rows.sum(axis=1, keepdims=True))
        self.model = ss.TokenAttention(vocab=tokens, width=8, scale=4.0)
        self.loss = ss.TokenPopulation(model=self.model, process=chain)
        self.before = ss.TokenPopulation(model=self.model, process=chain, kernel="plain")
        self.start = self.model.init(0, 1e-3)

    def run(self, until: float, frames: int, loss=None, **dynamics) -> ss.Run:
        flow, record = ss.GradientFlow(**dynamics), ss.Uniform(frames=frames)
        return ss.evolve(loss or self.loss, self.start, flow, until=until, record=record, progress=False)

    def tsit5(self, until: float):
        """A function of the tolerance that gives the end of the flow."""
        import diffrax
        import jax
        import jax.numpy as jnp

        jax.config.update("jax_enable_x64", True)
        layout = Layout.of(self.start)
        where, shapes, data = layout.slices(), dict(layout.shapes), jax.tree.map(jnp.asarray, self.loss.data)

        def value(y, data):
            return self.loss.loss({name: y[where[name]].reshape(shapes[name]) for name in shapes}, data)

        term = diffrax.ODETerm(lambda t, y, data: -jax.grad(value)(y, data))

        @jax.jit
        def solve(y, rtol, data):
            controller = diffrax.PIDController(rtol, 1e-3 * rtol, pcoeff=0.3, icoeff=0.4)
            options = {"args": data, "stepsize_controller": controller, "max_steps": 10**6}
            ends = diffrax.diffeqsolve(term, diffrax.Tsit5(), 0.0, until, None, y, **options).ys
            assert ends is not None
            return ends[0]

        first = jnp.asarray(layout.pack(self.start))
        return lambda rtol: np.asarray(solve(first, rtol, data))


def before_and_after(tokens: int, lazy: bool, until: float = 800.0) -> dict[str, float]:
    problem, best = Problem(tokens, lazy), {"before": np.inf, "after": np.inf}
    sides = {"before": problem.before, "after": problem.loss}
    ends = {side: problem.run(until, 2, loss) for side, loss in sides.items()}
    apart = max(float(np.abs(ends["before"].params[name][-1] - ends["after"].params[name][-1]).max()) for name in problem.start)
    for _ in range(ROUNDS):
        for side, loss in sides.items():
            best[side] = min(best[side], seconds(lambda loss=loss: problem.run(until, 1000, loss)))
    run = problem.run(until, 1000)
    ss.stages(problem.run(until / 10, 1000))
    stages = seconds(lambda: ss.stages(run))
    ratio = best["before"] / best["after"]
    kind = "lazy" if lazy else "not lazy"
    print(
        f"{tokens} tokens, {kind}: before {best['before']:.2f} s, after {best['after']:.2f} s, {ratio:.1f}x; ends differ by "
        f"{apart:.0e}; stages {stages:.2f} s, {stages / best['after']:.2f} of the flow",
        flush=True,
    )
    return {**best, "ratio": ratio, "ends_apart": apart, "stages": stages, "stages_over_flow": stages / best["after"]}


def alternatives(until: float = 200.0) -> dict[str, float]:
    """At 256 tokens, past Q1, the end state alone."""
    problem = Problem(256)
    definition, tsit5 = Definition(problem.loss), problem.tsit5(until)
    layout = Layout.of(problem.start)
    end = layout.pack(problem.run(until, 2, rtol=1e-12).at(-1))

    def loosest(states) -> float:
        return next(rtol for rtol in TOLERANCES if np.abs(states(rtol) - end).max() <= ERROR)

    rtol, equal = loosest(tsit5), loosest(lambda rtol: layout.pack(problem.run(until, 2, rtol=rtol).at(-1)))
    problem.run(1.0, 2, definition)
    sides = {
        "ours": lambda: problem.run(until, 2),
        "equal_error": lambda: problem.run(until, 2, rtol=equal),
        "cvode_jax": lambda: problem.run(until, 2, definition, rtol=equal),
        "tsit5": lambda: tsit5(rtol),
    }
    found = dict.fromkeys(sides, np.inf)
    for _ in range(ROUNDS):
        for side, work in sides.items():
            found[side] = min(found[side], seconds(work))
    best = min(found["cvode_jax"], found["tsit5"])
    print(
        f"256 tokens to t = {until:g}, error {ERROR:g}: ours at {equal:g} {found['equal_error']:.2f} s (at the default 1e-10 "
        f"{found['ours']:.2f} s), the same CVODE on the JAX gradient {found['cvode_jax']:.2f} s, Tsit5 at {rtol:g} "
        f"{found['tsit5']:.2f} s; {best / found['equal_error']:.1f}x the better one, {best / found['ours']:.1f}x at the default",
        flush=True,
    )
    ratios = {"ratio_equal_error": best / found["equal_error"], "ratio_default": best / found["ours"]}
    return {**found, "tsit5_rtol": rtol, "equal_rtol": equal, **ratios}


def condensation(tokens: int = 1024, until: float = 160.0) -> dict[str, float | None]:
    """Past E1, with events."""
    problem = Problem(tokens)
    made: list[ss.Run] = []
    flow = seconds(lambda: made.append(problem.run(until, 200)))
    first = ss.stages(made[0]).events["E1"]
    print(f"{tokens} tokens to t = {until:g}: {flow:.1f} s, E1 at {first}", flush=True)
    return {"seconds": flow, "E1": first}


def reference() -> float:
    """`evolve` on the preset ref: .050 s on the core for which absolute seconds are stated."""
    study = ss.study("focus-dilution")
    made = study.setup(study.configured("ref"), 0)
    assert made.until
    work = {"until": made.until, "record": made.record, "progress": False}
    return least(lambda: ss.evolve(made.what, made.params, ss.GradientFlow(), **work), 10)


def main() -> None:
    numbers: dict = {"seconds_ref": reference()}
    for tokens, lazy in ((24, True), (64, True), (64, False), (256, True)):
        numbers[f"flow_{tokens}{'' if lazy else '_not_lazy'}"] = before_and_after(tokens, lazy)
    numbers["alternatives_256"] = alternatives()
    numbers["flow_1024"] = condensation()
    answer = subprocess.run([sys.executable, "-c", PEAK], capture_output=True, text=True, check=True).stdout
    flow, stages = (float(kilobytes) / 1024 for kilobytes in answer.split())
    print(f"peak memory at 256 tokens: flow {flow:.0f} MB, with stages {stages:.0f} MB")
    numbers |= {"peak_flow_mb": flow, "peak_stages_mb": stages}
    print(json.dumps(numbers))


if __name__ == "__main__":
    main()
