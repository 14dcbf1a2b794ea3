"""The flow: two solvers, the dissipation identity, the scaling law, conserved sums, and failure as an outcome."""

import numpy as np
import pytest

import stagescope as ss
from stagescope.core.errors import InputError
from stagescope.core.params import Layout
from stagescope.flow.gradient_flow import GradientFlow
from tests.strategies import random_state

UNTIL = 200.0
BOWL = ss.JaxObjective(lambda p: 0.5 * sum((x**2).sum() for x in p.values())).field()
ALL = [
    GradientFlow(),
    GradientFlow(atol=1e-30),
    *(ss.Descent(optimizer=rule, steps=3) for rule in (ss.GD(), ss.HeavyBall(), ss.Adam())),
]


def small(shape=(2, 1, 10, 10), vocab=None):
    process = ss.SequenceClasses.synthetic(*shape, vocab=vocab)
    model = ss.PairwiseAttention.merged(process)
    return model, ss.population_loss(model, process)


def gap(a, b):
    return max(np.abs(a.params[name] - b.params[name]).max() for name in a.params)


@pytest.mark.parametrize("rates", [{}, {"Y": 10.0}, {"Y": 1.0, "Z": 5.0}])
def test_cvode_agrees_with_lsoda_and_dop853(rates):
    model, loss = small()
    runs = [ss.evolve(loss, model.init(), GradientFlow(method=m, rates=rates), until=UNTIL) for m in ("auto", "lsoda", "dop853")]
    assert gap(runs[0], runs[1]) < 1e-7
    assert gap(runs[0], runs[2]) < 1e-7


def test_radau_agrees_on_a_smaller_problem():
    model, loss = small((2, 1, 2, 3))
    cvode, radau = (ss.evolve(loss, model.init(), GradientFlow(method=m), until=50.0) for m in ("cvode", "radau"))
    assert gap(cvode, radau) < 1e-7


def test_dissipation_identity():
    """dL/dt = -sum_b rate_b |grad_b L|^2, dL/dt by central differences of the recorded loss."""
    model, loss = small()
    rates = {"Y": 2.0, "Z": 0.5}
    h = 1e-3
    centres = np.array([1.0, 5.0, 12.0, 40.0, 150.0])
    record = ss.AtTimes(at=tuple(np.sort(np.concatenate([centres - h, centres, centres + h]))))
    run = ss.evolve(loss, model.init(), GradientFlow(rates=rates, rtol=1e-12, atol=1e-14), until=UNTIL, record=record)
    for centre in centres:
        i = int(np.argmin(np.abs(run.t - centre)))
        slope = (run.series["loss"][i + 1] - run.series["loss"][i - 1]) / (run.t[i + 1] - run.t[i - 1])
        squares = loss.field().squares(loss.grad(run.at(i)))
        expected = -sum(rates[name] * squares[name] for name in rates)
        assert slope == pytest.approx(expected, rel=1e-6, abs=1e-8)


def test_loss_falls_and_row_sums_stay():
    model, loss = small()
    run = ss.evolve(loss, model.init(), GradientFlow(), until=UNTIL)
    assert np.all(np.diff(run.series["loss"]) < 0)
    assert np.abs(run.params["Y"] @ model.multiplicity).max() < 1e-12
    assert np.abs(run.params["Z"].sum(axis=2)).max() < 1e-12


def test_scaling_law():
    """Rates s times larger: the same trajectory s times faster."""
    model, loss = small()
    at = np.array([1.0, 10.0, 100.0])
    slow = ss.evolve(loss, model.init(), GradientFlow(), until=100.0, record=ss.AtTimes(at=tuple(at)))
    fast = ss.evolve(
        loss, model.init(), GradientFlow(rates={"Y": 7.0, "Z": 7.0}), until=100 / 7, record=ss.AtTimes(at=tuple(at / 7))
    )
    assert gap(slow, fast) < 1e-6


def test_merged_flow_is_the_full_flow():
    process = ss.SequenceClasses.synthetic(2, 1, 3, 4)
    merged, full = ss.PairwiseAttention.merged(process), ss.PairwiseAttention.full(process.vocab)
    record = ss.Uniform(frames=20)
    a, b = (
        ss.evolve(ss.population_loss(m, process), m.init(), GradientFlow(), until=100.0, record=record) for m in (merged, full)
    )
    np.testing.assert_allclose(a.params["Z"], b.params["Z"][:, merged.queries][:, :, merged.keys], atol=1e-6)
    np.testing.assert_allclose(a.params["Y"][:, :, 0], b.params["Y"][:, merged.keys][:, :, merged.outputs[0]], atol=1e-6)
    np.testing.assert_allclose(a.series["loss"], b.series["loss"], atol=1e-6)
    np.testing.assert_allclose(a.series["speed"], b.series["speed"], atol=1e-6)


def test_a_large_vocabulary_costs_the_same_arrays():
    """M = 10^5 against 10^3: same shapes, so the same work; the benchmark has the times."""
    shapes = [{n: b.shape for n, b in small(vocab=v)[0].init().items()} for v in (10**3, 10**5)]
    assert shapes[0] == shapes[1]


def test_pinv_is_a_field_without_objective():
    process = ss.SequenceClasses.synthetic(3, 1, 1, 4)
    model = ss.PairwiseAttention.merged(process)
    run = ss.evolve(ss.PairwisePinv(model=model, process=process), model.init(), GradientFlow(), until=10.0)
    assert run.done
    assert "loss" not in run.series


def test_frames_do_not_change_the_path():
    """Only the first step of a segment knows where the first frame is; beyond that, output is interpolated."""
    model, loss = small()
    few = ss.evolve(loss, model.init(), GradientFlow(), until=UNTIL, record=ss.Uniform(frames=3))
    many = ss.evolve(loss, model.init(), GradientFlow(), until=UNTIL, record=ss.Uniform(frames=201))
    np.testing.assert_allclose(few.params["Z"][-1], many.params["Z"][-1], atol=1e-10)
    np.testing.assert_allclose(few.params["Z"][1], many.params["Z"][100], atol=1e-10)


def test_stop_condition_ends_the_run():
    model, loss = small()
    run = ss.evolve(loss, model.init(), GradientFlow(), until=UNTIL, stop=ss.LossBelow(value=1.0))
    assert run.status == "stopped"
    assert run.series["loss"][-1] < 1.0 <= run.series["loss"][-2]
    assert "below 1" in run.reason
    at_once = ss.evolve(loss, model.init(), GradientFlow(), until=UNTIL, stop=ss.LossBelow(value=100.0))
    assert (at_once.status, at_once.frames) == ("stopped", 1)
    calm = ss.evolve(loss, model.init(), GradientFlow(), until=1e4, stop=ss.SpeedBelow(value=1e-2))
    assert calm.series["speed"][-1] < 1e-2 <= calm.series["speed"][-2]


def test_blow_up_is_an_outcome_with_time_and_norm():
    def explodes(params):
        return -(params["x"] ** 3).sum() / 3

    run = ss.evolve(ss.JaxObjective(explodes), {"x": np.ones(2)}, GradientFlow(), until=10.0)
    assert run.status in ("failed", "diverged")
    assert not run.done
    assert "t=" in run.reason
    assert "|theta|" in run.reason
    assert np.all(np.isfinite(run.params["x"]))
    assert run.t[-1] <= 1.0


def test_a_loss_that_is_not_finite_at_the_start():
    def logarithm(params):
        from jax import numpy as jnp

        return jnp.log(params["x"]).sum()

    with pytest.raises(InputError, match="the loss is nan at the initial parameters"):
        ss.evolve(ss.JaxObjective(logarithm), {"x": -np.ones(2)}, GradientFlow(), until=1.0)


@pytest.mark.parametrize("until", [0.0, -1.0, float("nan"), float("inf"), None])
def test_end_time_must_be_positive(until):
    model, loss = small()
    with pytest.raises(InputError, match="until"):
        ss.evolve(loss, model.init(), GradientFlow(), until=until)


def test_bad_arguments_are_named():
    model, loss = small()
    with pytest.raises(InputError, match="rate of Y is -1"):
        GradientFlow(rates={"Y": -1.0})
    with pytest.raises(InputError, match=r"did you mean 'Y'|known: Y, Z"):
        ss.evolve(loss, model.init(), GradientFlow(rates={"W": 1.0}), until=1.0)
    with pytest.raises(InputError, match="not finite"):
        ss.evolve(loss, {**model.init(), "Z": np.full((2, 30), np.nan)}, GradientFlow(), until=1.0)
    with pytest.raises(InputError, match="blocks"):
        ss.evolve(loss, {"Y": model.init()["Y"]}, GradientFlow(), until=1.0)
    with pytest.raises(InputError, match="shape"):
        ss.evolve(loss, {"Y": np.zeros((30, 1)), "Z": np.zeros((4, 30))}, GradientFlow(), until=1.0)
    with pytest.raises(InputError, match="by name"):
        ss.evolve(loss, np.ones(3), GradientFlow(), until=1.0)
    with pytest.raises(InputError, match="JaxObjective"):
        ss.evolve(lambda p: 0.0, {"x": np.ones(1)}, GradientFlow(), until=1.0)  # pyright: ignore[reportArgumentType]
    with pytest.raises(InputError, match="no steps"):
        ss.evolve(loss, model.init(), GradientFlow(), until=1.0, record=ss.Every(n=2))
    with pytest.raises(InputError, match="the run ends at"):
        ss.evolve(loss, model.init(), GradientFlow(), until=1.0, record=ss.AtTimes(at=(2.0,)))


def test_block_order_of_the_caller_does_not_matter():
    model, loss = small((2, 1, 2, 3))
    params = random_state(model, 1, 0.1)
    turned = {name: params[name] for name in ("Z", "Y")}
    a, b = (ss.evolve(loss, p, GradientFlow(), until=5.0) for p in (params, turned))
    assert gap(a, b) == 0


@pytest.mark.parametrize("until", ["x", None, 0.0, -1.0, float("nan"), 1e300])
def test_ends_that_are_no_time(until):
    with pytest.raises(ss.InputError, match="until is"):
        ss.evolve(ss.JaxObjective(lambda p: (p["w"] ** 2).sum()), {"w": np.ones(2)}, ss.GradientFlow(), until=until)


def test_seeds_are_whole_numbers():
    with pytest.raises(ss.InputError, match=r"seed is 1\.5"):
        ss.TokenAttention(vocab=3, width=2, scale=1.0).init(seed=1.5)  # pyright: ignore[reportArgumentType]


def test_a_tenfold_smaller_start_comes_later_by_the_same_time():
    """Near the origin one mode grows at rate |pi| |pi - 1/d|, so E1 moves by ln 10 over that rate, however small the start."""
    pi = np.array([0.5, 0.25, 0.15, 0.10])
    decade = np.log(10) / (np.linalg.norm(pi) * np.linalg.norm(pi - 1 / 4))
    starts = (1e-10, 1e-11, 1e-13)
    runs = [ss.run_study("focus-dilution", init_scale=start, until=170.0, frames=400, progress=False) for start in starts]
    first, second, third = (ss.stages(run).events["E1"] for run in runs)
    assert second - first == pytest.approx(decade, rel=1e-2)
    assert third - second == pytest.approx(2 * decade, rel=1e-3)


@pytest.mark.parametrize(
    ("sizes", "atol"),
    [((1e-3, 1e-3), 1e-13), ((10.0, 10.0), 1e-9), ((0.0, 0.0), 1e-13), ((0.0, 1e-9), 1e-13), ((1e-3, 1e-12), 1e-22)],
    ids=["usual", "large", "zero", "partly zero", "a tiny block"],
)
def test_the_absolute_tolerance_is_small_against_every_block(sizes, atol):
    """The first four are those of 0.1.0: stored runs are repeated bit for bit."""
    vector = np.repeat(sizes, 2)
    layout = Layout.of({"a": np.zeros(2), "b": np.zeros(2)})
    assert GradientFlow().settled(BOWL, layout, vector).atol == pytest.approx(atol, rel=1e-12)
    assert GradientFlow(atol=1e-5).settled(BOWL, layout, vector).atol == 1e-5


@pytest.mark.parametrize("dynamics", ALL, ids=str)
@pytest.mark.parametrize("size", [1e-15, 1e-20, 1e-300])
def test_a_start_that_rounding_decides_is_refused(dynamics, size):
    model, loss = small((2, 1, 2, 3))
    start = {**model.init(), "Z": np.full(model.init()["Z"].shape, size)}
    with pytest.raises(InputError, match=rf"the initial Z has rms {size:.2g}, but below 5e-15.*or at exactly 0"):
        ss.evolve(loss, start, dynamics, until=1.0 if isinstance(dynamics, GradientFlow) else None)


@pytest.mark.long
@pytest.mark.parametrize("dynamics", ALL, ids=str)
def test_rounding_noise_in_a_block_that_moves_anyway_is_no_tiny_start(dynamics):
    """The same run as from exactly 0; a block that moves from itself alone is refused, whatever the others are."""
    until = 1.0 if isinstance(dynamics, GradientFlow) else None
    pulled = ss.JaxObjective(lambda p: ((p["a"] - 1) ** 2).sum() + ((p["b"] - p["a"]) ** 2).sum())
    noise, zero = (ss.evolve(pulled, {"a": np.ones(2), "b": np.full(2, b)}, dynamics, until=until) for b in (1e-17, 0.0))
    assert noise.spec["dynamics"] == zero.spec["dynamics"]
    np.testing.assert_allclose(noise.params["b"], zero.params["b"], rtol=1e-9, atol=1e-16)
    saddle = ss.JaxObjective(lambda p: ((p["a"] - 1) ** 2).sum() - (p["b"] ** 2).sum())
    with pytest.raises(InputError, match=r"the initial b has rms 1e-17, but below 5e-15.*or at exactly 0"):
        ss.evolve(saddle, {"a": np.full(2, 0.5), "b": np.full(2, 1e-17)}, dynamics, until=until)


@pytest.mark.parametrize("dynamics", ALL, ids=str)
def test_tiny_differences_between_heads_that_move_alike_are_a_tiny_start(dynamics):
    """The block moves from 0, but the difference of its two entries grows from itself alone."""
    heads = ss.JaxObjective(lambda p: 0.5 * (p["w"].sum() - 1.1) ** 2 + 0.25 * ((p["w"][0] - p["w"][1]) ** 2 - 1) ** 2)
    until = 1.0 if isinstance(dynamics, GradientFlow) else None
    with pytest.raises(InputError, match=r"the initial w has rms 5e-17, but below 5e-15"):
        ss.evolve(heads, {"w": np.array([5e-17, -5e-17])}, dynamics, until=until)


def test_a_stored_run_from_a_tiny_start_is_said_to_be_unreliable(monkeypatch):
    monkeypatch.setattr("stagescope.flow.dynamics.TINIEST", 0.0)
    run = ss.run_study("focus-dilution", init_scale=1e-16, until=5.0, frames=4, progress=False)
    monkeypatch.undo()
    ledger = ss.check(run)
    assert ss.verify_replay(run).passes is None
    assert "began where rounding decides" in ledger.notes[0]
    assert "confirmed" not in {row.verdict for row in ledger}


def test_noise_that_rounding_takes_from_the_logits_is_refused():
    """exp(1e-20) is 1: heads would be equal for ever, under Adam too."""
    with pytest.raises(InputError, match=r"the initial a has rms .*, but below 5e-15"):
        ss.run_study("incremental", init_scale=1e-20, sequences=9, steps=2, progress=False)


@pytest.mark.parametrize(
    "options", [{"until": 1e-16}, {"rate_y": 1e-18, "rate_z": 1e-18, "until": 10.0}, {"optimizer": "gd", "lr": 1e-17, "steps": 5}]
)
def test_a_horizon_or_a_rate_that_leaves_everything_tiny_is_refused(options):
    with pytest.raises(
        InputError, match=r"every parameter starts at 0 and ends below .*, but below 5e-15 .* longer, or raise the rates"
    ):
        ss.run_study("scan-snap", **options, progress=False)


def test_a_start_at_rest_is_no_tiny_run():
    """A gradient of rounding size is not the fault of the horizon."""
    loss = ss.JaxObjective(lambda p: (1e-17 * p["a"]).sum() + (p["a"] ** 2).sum())
    assert ss.evolve(loss, {"a": np.zeros(2)}, GradientFlow(), until=1.0).done
