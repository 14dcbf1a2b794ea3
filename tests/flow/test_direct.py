"""Kernels that SUNDIALS calls without Python: the same bytes as through Python, and the same failures."""

import numpy as np
import pytest

import stagescope as ss
from stagescope.flow import compiled as module
from stagescope.flow import cvode
from stagescope.papers.scan_snap import kernel as pairwise_kernel
from stagescope.papers.scan_snap.model import PairwiseAttention
from stagescope.papers.scan_snap.process import SequenceClasses

CHAIN = ss.LazyChain(pi=(0.5, 0.3, 0.2), persistence=0.6)
TOKENS = ss.TokenAttention(vocab=3, width=5, scale=4.0)
HEADS = ss.RegressionHeads(positions=5, gains=(2.0, 1.0), heads=3)
CLASSES = SequenceClasses.synthetic(3, 2, 5, 4)
PAIRS = PairwiseAttention.every_output(CLASSES)
LAWS = {
    "tokens": ss.population_loss(TOKENS, CHAIN),
    "pairs": ss.PairwisePopulation(model=PAIRS, process=CLASSES),
    "pinv": ss.PairwisePinv(model=PAIRS, process=CLASSES),
    "heads": ss.RegressionLoss(model=HEADS),
    "mirror": ss.MirrorFlow(model=HEADS),
}


def evolved(law, **dynamics):
    start = law.model.init(0, 1e-2)
    return ss.evolve(law, start, ss.GradientFlow(**dynamics), until=30.0, record=ss.Uniform(frames=9), progress=False)


@pytest.mark.parametrize("name", LAWS)
def test_same_bytes_with_and_without_python_in_between(name, monkeypatch):
    """With fixed restarts, as in version 0.1: else the solver's own sums are others than those of scikit-sundae."""
    how = {"rates": dict.fromkeys(LAWS[name].model.shapes, 1.5), "segments": 2}
    direct = evolved(LAWS[name], **how)
    monkeypatch.setattr(cvode, "functions", lambda: None)
    other = evolved(LAWS[name], **how)
    assert direct.done
    assert other.done
    for block in direct.params:
        np.testing.assert_array_equal(direct.params[block], other.params[block])


@pytest.mark.parametrize("name", ["pairs", "pinv"])
def test_same_divergence(name, monkeypatch):
    rates = {"Y": 1e200, "Z": 1e200}
    found = [evolved(LAWS[name], rates=rates)]
    monkeypatch.setattr(cvode, "functions", lambda: None)
    found.append(evolved(LAWS[name], rates=rates))
    assert {run.status for run in found} == {"diverged"}
    assert found[0].reason == found[1].reason


def test_the_work_space_of_one_field_is_its_own():
    held = np.arange(4.0)
    first, second = (module.direct(lambda theta, out, held: 0.0, 2, held) for _ in range(2))
    first.constants[3] = 7.0
    assert second.constants.tolist()[:6] == [2, 4, 0, 1, 2, 3]
    assert held[1] == 1.0


def test_machine_code_of_each_kernel_has_a_file_of_its_own():
    names = {module._for_sundials(law)._cache._impl.filename_base for law in (pairwise_kernel.gradient, pairwise_kernel.pinv)}
    assert len(names) == 2


def test_without_the_library_nothing_is_compiled(monkeypatch):
    monkeypatch.setattr(module, "sundials", lambda: None)
    with pytest.raises(RuntimeError, match="cannot be called directly"):
        module.direct(lambda theta, out, held: 0.0, 1, np.zeros(1)).address()
