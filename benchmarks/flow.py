"""The focus-dilution flows `ref` and `paper` against Diffrax Tsit5, and a hundred flows through the public API.

Both sides give the states on the preset's grid of 1000 times with an error of at most 1e-6, in float64, on one core, CPU
time, compilation excluded, alternating, minima. Tsit5 has the loosest tolerance that reaches this error and is run on the
loss in three ways: `plain`, as the package defines it in JAX and as one first writes it (parameters by name, products with
@); `sums`, rewritten with products as broadcast sums, which XLA compiles better at these sizes; `tuned`, sums on one flat
vector with a PI controller. `ratio_ref` and `ratio_paper` are to `plain`; those to the other two are beside them.

Ours is timed as the package has it, `ss.evolve` with the default tolerance and restart points, recording loss and speed
as well; and once more at equal error, without restart points, which Tsit5 does not have either. Needs the extra
`stagescope[benchmarks]`.
"""

import json
import os
import time

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"

import numpy as np

import stagescope as ss
from stagescope.fields.objective import GradientField
from stagescope.params import Layout

ERROR = 1e-6
TOLERANCES = [digit * 10.0**-power for power in range(4, 11) for digit in (5, 2, 1)]
ROUNDS, REPEATS, SLOW = 3, 5, 5.0
"""What takes longer than SLOW seconds is timed once."""
DEFAULT = ss.GradientFlow().rtol
WAYS = ("plain", "sums", "tuned")
SLOW = 5.0
"""A baseline that takes longer than this is timed once."""


def seconds(work) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


class Ours:
    """CVODE with the Numba kernel, by `ss.evolve`."""

    def __init__(self, preset: str) -> None:
        study = ss.study("focus-dilution")
        setup = study.setup(study.configured(preset), 0)
        assert isinstance(setup.what, ss.TokenPopulation)
        assert setup.until
        assert setup.record
        self.loss, self.params, self.layout = setup.what, setup.params, Layout.of(setup.params)
        self.until, self.grid = setup.until, setup.record

    def run(self, field=None, record=None, **dynamics) -> ss.Run:
        flow = ss.GradientFlow(**dynamics)
        return ss.evolve(field or self.loss, self.params, flow, until=self.until, record=record or self.grid)

    def states(self, **dynamics) -> np.ndarray:
        params = self.run(**dynamics).params
        return np.concatenate([params[name].reshape(len(params[name]), -1) for name in self.layout.names], axis=1)


class Tsit5:
    """Diffrax on the JAX gradient of the same loss."""

    def __init__(self, ours: Ours, way: str) -> None:
        import jax
        import jax.numpy as jnp

        jax.config.update("jax_enable_x64", True)
        self.jax, self.way, self.layout = jax, way, ours.layout
        where = ours.layout.slices()
        self.data = {name: jnp.asarray(array) for name, array in ours.loss.data.items()}
        self.ts = jnp.asarray(ours.grid.times(ours.until))
        self.unpack = lambda y: {name: y[where[name]].reshape(shape) for name, shape in ours.layout.shapes}
        flat = jnp.asarray(ours.layout.pack(ours.params))
        self.start = flat if way == "tuned" else self.unpack(flat)
        self.field, self.solve = self._field(ours.loss.model.scale), jax.jit(self._solve)
        self.states(1e-2)

    def _field(self, scale: float):
        jax, jnp = self.jax, self.jax.numpy

        def product(a, b):
            return a @ b if self.way == "plain" else jnp.sum(a[:, :, None] * b[None, :, :], axis=1)

        def loss(y, data):
            p = self.unpack(y) if self.way == "tuned" else y
            scores = scale * product(product(p["W0"], p["WQ"]), product(p["W0"], p["WK"]).T)
            attention = jax.nn.softmax(scores + jnp.log(data["pi"]), axis=1)
            predicted = jax.nn.log_softmax(product(product(attention, p["W0"]), p["W1"]), axis=1)
            return -jnp.sum(data["pi"][:, None] * data["transition"] * predicted)

        return lambda t, y, data: jax.tree.map(jnp.negative, jax.grad(loss)(y, data))

    def _solve(self, start, ts, rtol, data):
        import diffrax

        p, i = (0.3, 0.4) if self.way == "tuned" else (0.0, 1.0)
        controller = diffrax.PIDController(rtol, 1e-3 * rtol, pcoeff=p, icoeff=i)  # parameters start at 1e-3
        term, saveat = diffrax.ODETerm(self.field), diffrax.SaveAt(ts=ts)
        options = {"args": data, "saveat": saveat, "stepsize_controller": controller, "max_steps": 10**7}
        return diffrax.diffeqsolve(term, diffrax.Tsit5(), ts[0], ts[-1], None, start, **options).ys

    def run(self, rtol: float):
        return self.jax.block_until_ready(self.solve(self.start, self.ts, rtol, self.data))

    def states(self, rtol: float) -> np.ndarray:
        found = self.run(rtol)
        if self.way == "tuned":
            return np.asarray(found)
        return np.concatenate([np.asarray(found[name]).reshape(len(self.ts), -1) for name in self.layout.names], axis=1)


def loosest(states, truth: np.ndarray) -> tuple[float, float]:
    """The first tolerance of the list, loose to tight, that reaches the error, and its error."""
    for rtol in TOLERANCES:
        error = float(np.abs(states(rtol) - truth).max())
        if error <= ERROR:
            return rtol, error
    raise RuntimeError(f"no tolerance reaches {ERROR:g}")


def compare(preset: str) -> dict:
    ours = Ours(preset)
    theirs = {way: Tsit5(ours, way) for way in WAYS}
    truth = ours.states(rtol=1e-13, atol=1e-16, segments=1)
    doubt = np.abs(theirs["tuned"].states(1e-11) - truth).max()
    assert doubt < 0.05 * ERROR, f"the two references differ by {doubt}"
    rtol = {way: loosest(theirs[way].states, truth)[0] for way in ("sums", "tuned")}
    rtol["plain"] = rtol["sums"]  # the same steps
    equal, equal_error = loosest(lambda rtol: ours.states(rtol=rtol, segments=1), truth)
    error = float(np.abs(ours.states() - truth).max())
    assert error <= ERROR
    best: dict[str, float] = dict.fromkeys(("ours", "equal_error", *WAYS), np.inf)
    for _ in range(ROUNDS):
        for _ in range(REPEATS):
            best["ours"] = min(best["ours"], seconds(ours.run))
            best["equal_error"] = min(best["equal_error"], seconds(lambda: ours.run(rtol=equal, segments=1)))
        for way in WAYS[1:] if SLOW < best["plain"] < np.inf else WAYS:
            best[way] = min(best[way], seconds(lambda way=way: theirs[way].run(rtol[way])))
    print(f"{preset}: truth is CVODE at 1e-13, Tsit5 at 1e-11 differs by {doubt:.0e}")
    for way in WAYS:
        print(f"  Tsit5 {way:6s} rtol {rtol[way]:.0e}: {best[way]:7.3f} s")
    errors, rtols = {"ours": error, "equal_error": equal_error}, {**rtol, "ours": DEFAULT, "equal_error": equal}
    for side, found in errors.items():
        ratios = ", ".join(f"{best[way] / best[side]:.1f}x to {way}" for way in WAYS)
        print(f"  {side:12s} rtol {rtols[side]:.0e}: {best[side]:7.4f} s, error {found:.0e}; {ratios}")
    return {"seconds": best, "rtol": rtols, "error": errors}


class Counted(GradientField):
    """The same field as a Python function, which scikit-sundae calls; counts the calls."""

    calls = 0

    def flat(self, layout, rates):
        inner = super().flat(layout, rates)

        def flat(vector, out):
            self.calls += 1
            return inner(vector, out)

        return flat


def kernel_seconds(ours: Ours) -> float:
    """One right-hand side, called from compiled code."""
    from numba import njit

    from stagescope.papers.focus_dilution.kernel import gradient

    @njit
    def repeat(times, theta, out, held):
        total = 0.0
        for _ in range(times):
            total += gradient(theta, out, held)
        return total

    field = ours.loss.flat(ours.layout, dict.fromkeys(ours.layout.names, 1.0))
    theta = ours.states()[500]
    repeat(1, theta, np.empty_like(theta), field.held)
    return min(seconds(lambda: repeat(1000, theta, np.empty_like(theta), field.held)) for _ in range(50)) / 1000


def arithmetic_seconds(ours: Ours) -> float:
    """The matrix products of one right-hand side at the rate of a large matrix product."""
    (d, m), (_, mk) = ours.loss.model.shapes["W0"], ours.loss.model.shapes["WQ"]
    square = np.ones((512, 512))
    rate = 512**3 / min(seconds(lambda: square @ square) for _ in range(10))
    return (6 * d * m * mk + 3 * d * d * mk + 6 * d * d * m) / rate


def limits(preset: str) -> dict[str, float]:
    """Where the time goes: few frames, so that it is the solver's."""
    ours, few, best = Ours(preset), ss.Uniform(frames=3), {"python": np.inf, "direct": np.inf}
    field = Counted(ours.loss)
    ours.run(field, few)
    calls = field.calls
    for _ in range(REPEATS):
        best["python"] = min(best["python"], seconds(lambda: ours.run(field, few)))
        best["direct"] = min(best["direct"], seconds(lambda: ours.run(record=few)))
    found = {f"{way}_us": best[way] / calls * 1e6 for way in best}
    found |= {"kernel_us": kernel_seconds(ours) * 1e6, "arithmetic_us": arithmetic_seconds(ours) * 1e6}
    print(
        f"{preset}: {calls} right-hand sides; each {found['python_us']:.2f} us of solver and kernel with Python in between, "
        f"{found['direct_us']:.2f} without, of which the kernel {found['kernel_us']:.2f}, its products at peak "
        f"{found['arithmetic_us']:.2f}"
    )
    return {"rhs": calls, **found}


def hundred_flows() -> float:
    """`ref` over pi_0 and persistence, with events."""

    def one(first: float, persistence: float) -> ss.Stages:
        pi = (first, *(np.array([0.5, 0.3, 0.2]) * (1 - first)).tolist())
        model = ss.TokenAttention(vocab=4, width=8, scale=4.0)
        loss = ss.population_loss(model, ss.LazyChain(pi=pi, persistence=persistence))
        run = ss.evolve(loss, model.init(0, 1e-3), ss.GradientFlow(), until=800.0, record=ss.Uniform(frames=1000))
        assert run.done, run.reason
        return ss.stages(run)

    one(0.5, 0.6)
    began = time.process_time()
    found = [one(first, persistence) for first in np.linspace(0.3, 0.75, 10) for persistence in np.linspace(0.1, 0.8, 10)]
    total = time.process_time() - began
    second = sum(stages.events["E2"] is not None for stages in found)
    print(f"100 flows with events: {total:.1f} s of CPU; {second} reach the second embedding direction")
    return total


def main() -> None:
    found = {preset: compare(preset) for preset in ("ref", "paper")}
    numbers: dict = {}
    for preset, row in found.items():
        took = row["seconds"]
        numbers[f"ratio_{preset}"] = took["plain"] / took["ours"]
        for way in WAYS[1:]:
            numbers[f"ratio_{preset}_to_{way}"] = took[way] / took["ours"]
        numbers |= {f"ratio_{preset}_to_{way}_equal_error": took[way] / took["equal_error"] for way in WAYS}
        numbers |= {f"seconds_{preset}": took["ours"], f"seconds_{preset}_tsit5": took["plain"]}
    where = {preset: limits(preset) for preset in found}
    numbers["seconds_100_flows"] = hundred_flows()
    print(json.dumps({**numbers, "details": found, "limits": where}))


if __name__ == "__main__":
    main()
