"""softmax in NumPy against SciPy's."""

import numpy as np
import pytest
from scipy import special

from stagescope.flow.softmax import log_softmax, log_sum_exp, softmax


@pytest.mark.parametrize("scale", [0.1, 3.0, 1e4])
def test_as_scipy(scale):
    scores = scale * np.random.default_rng(0).normal(size=(3, 4, 5))
    np.testing.assert_allclose(softmax(scores), special.softmax(scores, axis=-1), rtol=1e-14)
    np.testing.assert_allclose(log_softmax(scores), special.log_softmax(scores, axis=-1), rtol=1e-14)
    np.testing.assert_allclose(log_sum_exp(scores), special.logsumexp(scores, axis=-1), rtol=1e-14)


def test_hidden_entries_have_no_weight():
    np.testing.assert_array_equal(softmax(np.array([0.0, -np.inf, 0.0])), [0.5, 0.0, 0.5])
