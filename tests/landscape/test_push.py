"""A push along a direction of the spectrum: it grows at the rate of that direction, and its sign is fixed."""

import numpy as np
import pytest

import stagescope as ss
from stagescope.core.errors import InputError
from stagescope.core.params import Layout
from stagescope.flow.field import as_field
from stagescope.landscape import derivatives
from stagescope.landscape.spectrum import direction


def pass_between(params):
    """A saddle at 0 with rates .5 and .3, and y that falls into it at rate 4."""
    x, y = params["x"], params["y"]
    return -0.25 * x[0] ** 2 - 0.15 * x[1] ** 2 + 0.25 * (x**4).sum() + 2 * (y**2).sum()


SADDLE = ss.JaxObjective(pass_between)
RUN = ss.evolve(SADDLE, {"x": np.zeros(2), "y": np.array([1.0])}, ss.GradientFlow(), until=30, record=ss.Uniform(frames=61))


@pytest.mark.long
@pytest.mark.parametrize(("along", "entry", "rate"), [(1, 0, 0.5), (2, 1, 0.3)])
def test_a_push_grows_at_the_rate_of_its_direction(along, entry, rate):
    with pytest.warns(UserWarning, match=rf"along direction {along}, which grows at rate {rate}"):
        made = ss.fork(RUN, SADDLE, at="t=10", perturb=1e-6, along=along, progress=False)
    assert np.array_equal(made.params["x"][:21], RUN.params["x"][:21])
    grown = made.params["x"][21:41, entry]
    assert np.all(made.params["x"][21:, 1 - entry] == 0)
    found, log_size = np.polyfit(made.t[21:41] - 10, np.log(grown), 1)
    assert found == pytest.approx(rate, rel=0.01)
    assert np.exp(log_size) == pytest.approx(1e-6, rel=0.01)
    if along == 2:
        with pytest.warns(UserWarning, match="pushed by -1e-06"):
            back = ss.fork(RUN, SADDLE, at="t=10", perturb=-1e-6, along=along, progress=False)
        np.testing.assert_allclose(back.params["x"], -made.params["x"], rtol=1e-6)


@pytest.mark.parametrize("dense", [True, False])
def test_directions_leave_frozen_blocks_alone_and_have_a_fixed_sign(monkeypatch, dense):
    rng = np.random.default_rng(0)
    matrix = rng.normal(size=(8, 8))
    matrix += matrix.T

    def loss(params, a):
        from jax import numpy as jnp

        z = jnp.concatenate([params["u"], params["v"]])
        return -0.5 * z @ a @ z

    layout = Layout((("u", (5,)), ("v", (3,))))
    if not dense:
        monkeypatch.setattr(derivatives, "DENSE", 1)
    values, vectors = np.linalg.eigh(matrix[:5, :5])
    unit, rate, alike = direction(as_field(ss.JaxObjective(loss, data=matrix)), layout, np.ones(8), {"v": 0.0}, 1)
    assert rate == pytest.approx(values[-1])
    assert alike == 1
    assert np.all(unit[5:] == 0)
    np.testing.assert_allclose(np.abs(unit[:5]), np.abs(vectors[:, -1]), atol=1e-7)
    assert unit[np.argmax(np.abs(unit) >= 0.5 * np.abs(unit).max())] > 0


def test_more_directions_than_parameters_that_move():
    with pytest.raises(InputError, match="along is 3, but 2 parameters move"):
        ss.fork(RUN, SADDLE, at="t=10", perturb=1e-6, along=3, freeze=("y",))
