"""CVODE called directly: the same flow, the same failures and the same restarts as through scikit-sundae."""

import numpy as np
import pytest

import stagescope as ss
from stagescope.core.params import Layout
from stagescope.flow import cvode, solver

RATES = {"W0": 1e150, "W1": 1e155}
"""Far too large: the first steps leave what float64 can hold."""


def problem(vocab=4, width=8):
    chain = ss.LazyChain(pi=tuple(np.arange(vocab, 0, -1) / (vocab * (vocab + 1) / 2)), persistence=0.6)
    model = ss.TokenAttention(vocab=vocab, width=width, scale=4.0)
    return model, ss.population_loss(model, chain)


def evolved(vocab=4, width=8, until=120.0, frames=40, **dynamics):
    model, loss = problem(vocab, width)
    record = ss.Uniform(frames=frames)
    return ss.evolve(loss, model.init(0, 1e-2), ss.GradientFlow(**dynamics), until=until, record=record)


@pytest.fixture
def through_python(monkeypatch):
    """Makes the library unavailable when called."""
    return lambda: monkeypatch.setattr(cvode, "functions", lambda: None)


def test_the_library_is_there():
    assert cvode.functions() is not None


@pytest.mark.parametrize(("vocab", "width"), [(4, 8), (3, 5), (6, 1)])
def test_same_flow_with_and_without_python_in_between(vocab, width, through_python):
    direct = evolved(vocab, width, rates={"W1": 2.0})
    through_python()
    other = evolved(vocab, width, rates={"W1": 2.0})
    assert direct.done
    assert other.done
    for name in direct.params:
        np.testing.assert_allclose(direct.params[name], other.params[name], atol=1e-8)


def test_same_failures(through_python, monkeypatch):
    runs = [evolved(rates=RATES)]
    monkeypatch.setattr(solver, "MAX_STEPS", 100)
    runs.append(evolved(until=1e4, frames=3))
    through_python()
    runs.append(evolved(until=1e4, frames=3))
    monkeypatch.undo()
    through_python()
    runs.append(evolved(rates=RATES))
    blown, tired, tired_too, blown_too = [(run.status, run.reason) for run in runs]
    assert blown[0] == "diverged"
    assert "the gradient is not finite at |theta|=" in blown[1]
    assert tired[0] == "failed"
    assert "CVODE stopped at t=" in tired[1]
    assert (blown, tired) == (blown_too, tired_too)


def test_a_refused_setting_frees_the_solver(monkeypatch):
    """A negative tolerance is refused by the library after everything was allocated."""
    model, loss = problem()
    params = model.init(0, 1e-2)
    layout = Layout.of(params)
    field = loss.field().flat(layout, dict.fromkeys(layout.names, 1.0))
    freed = []
    monkeypatch.setattr(cvode.Cvode, "free", lambda self, free=cvode.Cvode.free: (freed.append(self), free(self)))
    with pytest.raises(RuntimeError, match="CVodeSStolerances returned"):
        cvode.Cvode(field, layout.pack(params), (0.0, 1.0), (-1.0, 1e-10), 20)
    assert len(freed) == 1
