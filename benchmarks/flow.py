"""The focus-dilution flows `ref` and `flow-skewed` against other solvers, and a hundred flows through the public API.

All sides give the states on the preset's grid of 1000 times with an error of at most 1e-6, in float64, on one core, CPU time,
compilation excluded, alternating, minima. Each has the loosest tolerance that reaches this error, with atol = rtol / 1000.

- Diffrax Tsit5 on the loss in JAX, in three ways: `plain`, as one first writes it (parameters by name, products with @);
  `sums`, products as broadcast sums, which XLA compiles better at these sizes; `tuned`, sums on a flat vector, PI controller.
- The best alternatives, on our own Numba gradient: `lsoda`, SciPy's LSODA by `odeint`, its fastest door; `solve_ivp`, the same
  by the usual one; `numbalsoda`, LSODA with no Python in between, if it is there (it has no wheels for Python 3.11, so
  the extra does not name it); `sundae`, our own solver and settings by the public interface of scikit-sundae.

Ours is `ss.evolve` as the package has it, loss and speed recorded too: once as it is by default, and once at equal error.
`ratio_ref_lsoda_equal_error` is to the fastest LSODA. Needs the extra `stagescope[benchmarks]`.
"""

import json
import os
from importlib.util import find_spec
from typing import Any

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"

import numpy as np

import stagescope as ss
from benchmarks.timing import least, seconds
from stagescope.core.params import Layout
from stagescope.flow.field import GradientField

ERROR = 1e-6
TOLERANCES = [digit * 10.0**-power for power in range(4, 11) for digit in (5, 2, 1)]
ROUNDS, REPEATS, SLOW = 3, 5, 5.0
"""What takes longer than SLOW seconds is timed once."""
DEFAULT = ss.GradientFlow().rtol
WAYS = ("plain", "sums", "tuned")
LSODA = ("lsoda", "solve_ivp", "numbalsoda")


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

    def at(self, rtol: float) -> ss.Run:
        """At the tolerances that the other sides have."""
        return self.run(rtol=rtol, atol=1e-3 * rtol)

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


class OnNumba:
    """Another solver on our own compiled gradient, called in the way that costs least."""

    def __init__(self, ours: Ours, way: str) -> None:
        from numba import njit

        from stagescope.papers.focus_dilution.kernel import WEIGHTS, gradient

        self.way, self.start, self.ts = way, ours.layout.pack(ours.params), ours.grid.times(ours.until)
        self.held, self.out = ours.loss._held.copy(), np.empty(ours.layout.size)
        self.held[WEIGHTS] = -1.0
        self.gradient = gradient

        @njit
        def lsoda(y, t, out, held):
            gradient(y, out, held)
            return out

        @njit
        def solve_ivp(t, y, out, held):
            gradient(y, out, held)
            return out

        @njit
        def sundae(t, y, out, held):
            gradient(y, out, held)

        self.rhs: Any = {"lsoda": lsoda, "solve_ivp": solve_ivp, "sundae": sundae}.get(way)
        self.address = self._address() if way == "numbalsoda" else 0
        self.states(1e-2)

    def _address(self):
        from numba import carray, cfunc  # pyright: ignore[reportPrivateImportUsage]
        from numbalsoda import lsoda_sig  # pyright: ignore[reportMissingImports]

        gradient, size, held = self.gradient, self.start.size, self.held.size

        @cfunc(lsoda_sig)
        def rhs(t, y, out, data):
            gradient(carray(y, size), carray(out, size), carray(data, held))

        self.kept = rhs
        return rhs.address

    def run(self, rtol: float) -> np.ndarray:
        rhs, y, ts, held, atol = self.rhs, self.start, self.ts, self.held, 1e-3 * rtol
        if self.way == "lsoda":
            from scipy.integrate import odeint

            return odeint(rhs, y, ts, args=(self.out, held), rtol=rtol, atol=atol, mxstep=10**6)
        if self.way == "solve_ivp":
            from scipy.integrate import solve_ivp

            return solve_ivp(rhs, ts[[0, -1]], y, "LSODA", ts, args=(self.out, held), rtol=rtol, atol=atol).y.T
        if self.way == "numbalsoda":
            from numbalsoda import lsoda  # pyright: ignore[reportMissingImports]

            return lsoda(self.address, y, ts, held, rtol, atol, 10**6)[0]
        from sksundae.cvode import CVODE

        settings = {"method": "BDF", "linsolver": "gmres", "krylov_dim": 20, "rtol": rtol, "atol": atol, "max_num_steps": 10**6}
        return CVODE(lambda t, y, out: rhs(t, y, out, held), **settings).solve(ts, y).y

    states = run


def loosest(states, truth: np.ndarray) -> tuple[float, float]:
    """The first tolerance of the list, loose to tight, that reaches the error, and its error."""
    for rtol in TOLERANCES:
        error = float(np.abs(states(rtol) - truth).max())
        if error <= ERROR:
            return rtol, error
    raise RuntimeError(f"no tolerance reaches {ERROR:g}")


def compare(preset: str) -> dict:
    ours = Ours(preset)
    there = [way for way in (*LSODA, "sundae") if way != "numbalsoda" or find_spec("numbalsoda")]
    theirs: dict = {way: Tsit5(ours, way) for way in WAYS} | {way: OnNumba(ours, way) for way in there}
    truth = ours.states(rtol=1e-13, atol=1e-16)
    doubt = np.abs(theirs["tuned"].states(1e-11) - truth).max()
    assert doubt < 0.05 * ERROR, f"the two references differ by {doubt}"
    found = {way: loosest(theirs[way].states, truth) for way in theirs if way != "plain"}
    found["plain"] = found["sums"]  # the same steps
    found["equal_error"] = loosest(lambda rtol: ours.states(rtol=rtol, atol=1e-3 * rtol), truth)
    found["ours"] = DEFAULT, float(np.abs(ours.states() - truth).max())
    assert found["ours"][1] <= ERROR
    works = {way: lambda way=way: theirs[way].run(found[way][0]) for way in theirs}
    works |= {"ours": ours.run, "equal_error": lambda: ours.at(found["equal_error"][0])}
    best: dict[str, float] = dict.fromkeys(works, np.inf)
    for _ in range(ROUNDS):
        for way, work in works.items():
            for _ in range(REPEATS if way in ("ours", "equal_error", *there) else 1):
                best[way] = min(best[way], seconds(work)) if not SLOW < best[way] < np.inf else best[way]
    print(f"{preset}: truth is CVODE at 1e-13, Tsit5 at 1e-11 differs by {doubt:.0e}")
    for way in theirs:
        ratios = f"{best[way] / best['ours']:.1f}x ours, {best[way] / best['equal_error']:.1f}x ours at equal error"
        print(f"  {way:11s} rtol {found[way][0]:.0e}: {best[way]:7.4f} s, error {found[way][1]:.0e}; {ratios}")
    for way in ("ours", "equal_error"):
        print(f"  {way:11s} rtol {found[way][0]:.0e}: {best[way]:7.4f} s, error {found[way][1]:.0e}")
    rtols, errors = ({way: pair[i] for way, pair in found.items()} for i in range(2))
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

    theta, held = ours.states()[500], ours.loss._held.copy()
    repeat(1, theta, np.empty_like(theta), held)
    return least(lambda: repeat(1000, theta, np.empty_like(theta), held), 50) / 1000


def arithmetic_seconds(ours: Ours) -> float:
    """The matrix products of one right-hand side at the rate of a large matrix product."""
    (d, m), (_, mk) = ours.loss.model.shapes["W0"], ours.loss.model.shapes["WQ"]
    square = np.ones((512, 512))
    rate = 512**3 / least(lambda: square @ square, 10)
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
    found: list[ss.Stages] = []
    points = [(first, persistence) for first in np.linspace(0.3, 0.75, 10) for persistence in np.linspace(0.1, 0.8, 10)]
    total = seconds(lambda: found.extend(one(*point) for point in points))
    second = sum(stages.events["E2"] is not None for stages in found)
    print(f"100 flows with events: {total:.1f} s of CPU; {second} reach the second embedding direction")
    return total


def main() -> None:
    found = {preset: compare(preset) for preset in ("ref", "flow-skewed")}
    numbers: dict = {}
    for preset, row in found.items():
        took = row["seconds"]
        took["lsoda"] = min(took[way] for way in LSODA if way in took)
        for side, suffix in (("ours", ""), ("equal_error", "_equal_error")):
            numbers |= {f"ratio_{preset}_{way}{suffix}": took[way] / took[side] for way in (*WAYS, "lsoda", "sundae")}
        numbers |= {f"seconds_{preset}": took["ours"], f"seconds_{preset}_equal_error": took["equal_error"]}
    where = {preset: limits(preset) for preset in found}
    numbers["seconds_100_flows"] = hundred_flows()
    print(json.dumps({**numbers, "details": found, "limits": where}))


if __name__ == "__main__":
    main()
