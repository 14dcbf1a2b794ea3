"""What the flow conserves."""

import numpy as np
import pytest

import stagescope as ss


@pytest.mark.parametrize("preset", ["ref", "merged"])
def test_a_flow_keeps_the_balance_of_each_head(preset):
    """v^2 - |k|^2 and v^2 - |q|^2 of each head, of merged heads v^2 - |U|^2: to 1e-7 of the largest v^2, or of 1."""
    run = ss.run_study("linear-icl", preset, progress=False)
    balance = ss.reading(run).law.model.conserved(run.params)
    largest = max(1.0, float(np.max(np.square(run.params["v"]))))
    assert np.max(np.abs(balance - balance[0])) <= 1e-7 * largest
