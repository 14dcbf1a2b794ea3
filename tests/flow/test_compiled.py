"""SUNDIALS as a library: found without importing scikit-sundae, refused where it is another one."""

import subprocess
import sys

import numpy as np
import pytest

import stagescope as ss
from stagescope.flow import compiled, cvode


@pytest.fixture
def again(monkeypatch):
    """Looks for the library as if for the first time."""
    monkeypatch.setattr(compiled, "sundials", compiled.sundials.__wrapped__)
    monkeypatch.setattr(cvode, "functions", cvode.functions.__wrapped__)
    return compiled.sundials


def test_nothing_heavy_is_imported():
    heavy = ("sksundae", "scipy.sparse", "scipy.optimize", "jax")
    code = "import sys; from stagescope.flow import cvode; assert cvode.functions() is not None; "
    subprocess.run([sys.executable, "-c", f"{code}assert not set({heavy}) & set(sys.modules)"], check=True)


def test_the_module_can_still_be_imported(again):
    assert again() is not None
    from sksundae._cy_cvode import config

    assert config["SUNDIALS_VERSION"].startswith(f"{compiled.VERSION}.")
    assert config["SUNDIALS_FLOAT_TYPE"] == "double"


@pytest.mark.parametrize(
    ("name", "answer"),
    [("VERSION", 6), ("_takes_doubles", lambda _: False), ("find_spec", lambda _: None)],
    ids=["another version", "other numbers", "not installed so"],
)
def test_another_library_is_left_to_scikit_sundae(name, answer, again, monkeypatch):
    model = ss.TokenAttention(vocab=3, width=5, scale=4.0)
    loss = ss.population_loss(model, ss.LazyChain(pi=(0.5, 0.3, 0.2), persistence=0.6))
    how = {"until": 5.0, "record": ss.Uniform(frames=4)}
    direct = ss.evolve(loss, model.init(0, 1e-2), ss.GradientFlow(), **how)
    monkeypatch.setattr(compiled, name, answer)
    assert again() is None
    assert cvode.functions() is None
    other = ss.evolve(loss, model.init(0, 1e-2), ss.GradientFlow(), **how)
    np.testing.assert_allclose(direct.params["W0"], other.params["W0"], atol=1e-10)


def test_a_library_without_a_function_is_refused(again, monkeypatch):
    monkeypatch.setitem(cvode._FUNCTIONS, "CVodeOfTomorrow", (None,))
    assert cvode.functions() is None
