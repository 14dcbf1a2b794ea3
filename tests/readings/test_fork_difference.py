"""A fork beside its parent."""

import json

import numpy as np
import pytest

import stagescope as ss
from stagescope.core.errors import InputError


def bowl(params):
    return 0.5 * (params["x"] ** 2).sum()


BOWL = ss.JaxObjective(bowl)
RUN = ss.evolve(BOWL, {"x": np.array([3.0, 4.0])}, ss.Descent(lr=0.1, steps=20))


def test_distance_is_that_at_equal_times():
    """x_k = .9^k in the parent, and .8^k' of what it was at step 10 in the fork, whose clock is twice as fast then."""
    made = ss.fork(RUN, BOWL, at="step=10", changes={"lr": 0.2}, steps=13, progress=False)
    found = ss.fork_difference(RUN, made)
    size = 5 * 0.9**10
    np.testing.assert_allclose(found.time, [*np.arange(11) / 10, 1.2, 1.4, 1.6])
    np.testing.assert_allclose(found.distance[:11], 0, atol=0)
    np.testing.assert_allclose(found.distance[11:], [size * (0.9 ** (2 * k) - 0.8**k) for k in (1, 2, 3)], rtol=1e-9)
    np.testing.assert_allclose(found.relative[11:], [1 - (0.8 / 0.81) ** k for k in (1, 2, 3)], rtol=1e-9)
    assert found.parted == pytest.approx(1.2)
    assert found.at == pytest.approx(1.0)
    assert found.loss == pytest.approx((0.5 * (size * 0.9**6) ** 2, 0.5 * (size * 0.8**3) ** 2))
    assert "apart by 1 % at t = 1.2" in str(found)
    assert json.loads(json.dumps(found.json()))["end"]["t"] == pytest.approx(1.6)


def test_a_longer_fork_is_compared_as_far_as_its_parent_goes():
    made = ss.fork(RUN, BOWL, at="step=10", steps=40, progress=False)
    found = ss.fork_difference(RUN, made)
    assert found.time[-1] == RUN.t[-1]
    assert found.parted is None
    assert np.all(found.distance == 0)
    assert "apart by 1 % nowhere" in str(found)


def test_only_a_fork_of_this_run():
    with pytest.raises(InputError, match="not a fork of the first"):
        ss.fork_difference(RUN, RUN)
