"""The exact loss: equal to its definition by the kernel, to sampled sequences, and to the closed levels."""

import numpy as np
import pytest

import stagescope as ss
from stagescope.core.params import Layout, key
from stagescope.flow.field import as_field
from stagescope.papers.linear_icl import forms
from stagescope.papers.linear_icl.loss import LinearPopulation, LinearSampled, draw_sequences
from stagescope.papers.linear_icl.model import LinearAttention
from stagescope.papers.linear_icl.process import RegressionTask

REF = RegressionTask(eigenvalues=(0.4, 0.3, 0.2, 0.1))
THREE = RegressionTask(eigenvalues=(1.0, 0.5, 0.25), contexts=(10,))


@pytest.mark.long
@pytest.mark.parametrize(("heads", "rank"), [(3, 2), (2, None)])
def test_the_kernel_is_the_definition(heads, rank):
    """Loss and velocity to 1e-12, at rates that differ; the flow descends half of the loss."""
    law = LinearPopulation(model=LinearAttention(dim=4, heads=heads, rank=rank), process=REF)
    params = law.model.init(1, 0.8)
    layout = Layout.of(params)
    rates = {name: 1.0 + place for place, name in enumerate(params)}
    out = np.empty(layout.size)
    loss = law.flat(layout, rates)(layout.pack(params), out)
    assert loss == pytest.approx(float(law.loss(params, law.data)), rel=1e-12)
    moved = as_field(law).law(params, law.data)
    for name, block in layout.unpack(out).items():
        assert block == pytest.approx(rates[name] * np.asarray(moved[name]), rel=1e-12, abs=1e-13)
    assert law.grad(params)["v"] == pytest.approx(-2 * np.asarray(moved["v"]), rel=1e-12, abs=1e-13)


@pytest.mark.parametrize("contexts", [(8,), (3, 20)])
def test_the_exact_loss_is_that_of_sampled_sequences(contexts):
    """Within three standard errors; lengths that vary enter by the mean of 1/N."""
    task = RegressionTask(eigenvalues=(0.7, 0.4), contexts=contexts)
    model = LinearAttention(dim=2, heads=2, rank=1)
    params = model.init(3, 0.9)
    drawn = draw_sequences(task, key(0, "test"), 60_000)
    seen = np.einsum("si,ij,sj->s", drawn["beta"], model.map(params), drawn["query"])
    errors = (drawn["answer"] - seen) ** 2
    exact = LinearPopulation(model=model, process=task).value(params)
    assert abs(errors.mean() - exact) <= 3 * errors.std() / np.sqrt(len(errors))


def test_levels_are_those_of_the_science_page():
    assert forms.levels(REF) == pytest.approx([1, 0.640580, 0.377372, 0.209805, 0.135995], abs=1e-6)
    assert forms.levels(THREE) == pytest.approx([1.75, 0.965686, 0.620859, 0.481970], abs=1e-6)


@pytest.mark.parametrize("learned", [(), (0,), (1, 3), (0, 1, 2, 3)])
def test_every_subset_of_directions_is_a_fixed_point(learned):
    law = LinearPopulation(model=LinearAttention(dim=4, heads=4, rank=1), process=REF)
    size = np.where(np.isin(np.arange(4), learned), forms.final_map(REF), 0.0) ** (1 / 3)
    params = {"v": size, "K": np.diag(size)[:, None], "Q": np.diag(size)[:, None]}
    assert law.value(params) == pytest.approx(1 - np.sum((REF.spectrum / REF.amplification)[list(learned)]), rel=1e-12)
    assert max(np.abs(block).max() for block in law.grad(params).values()) < 1e-14


@pytest.mark.long
@pytest.mark.parametrize("rank", [2, None])
def test_the_gradient_of_a_batch_is_half_of_that_of_its_definition(rank):
    law = LinearSampled(model=LinearAttention(dim=3, heads=2, rank=rank), process=THREE, batch=16, seed=2)
    params = law.model.init(0, 0.5)
    layout, out = Layout.of(params), np.empty(Layout.of(params).size)
    law.step_gradient(layout)(layout.pack(params), 5, out)
    wanted = as_field(law).law(params, law.draw(5))
    for name, block in layout.unpack(out).items():
        assert block == pytest.approx(-np.asarray(wanted[name]), rel=1e-10, abs=1e-13)


def test_the_sampled_loss_records_that_of_all_sequences():
    model = LinearAttention(dim=3, heads=2, rank=1)
    law = ss.sampled_loss(model, THREE, 20, batch=8)
    assert isinstance(law, LinearSampled)
    other = RegressionTask(eigenvalues=THREE.eigenvalues, contexts=(20,))
    params = model.init(0, 0.5)
    assert law.value(params) == LinearPopulation(model=model, process=other).value(params)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"eigenvalues": (0.1, 0.2)}, "list the largest first"),
        ({"eigenvalues": (0.2, -0.1)}, "all above 0"),
        ({"eigenvalues": ()}, "at least one"),
        ({"eigenvalues": (0.2,), "contexts": (0,)}, "each 1 or more"),
    ],
)
def test_bad_tasks_are_refused(given, said):
    with pytest.raises(ss.InputError, match=said):
        RegressionTask(**given)


def test_model_and_task_must_fit():
    with pytest.raises(ss.InputError, match="4 directions and the task 3"):
        LinearPopulation(model=LinearAttention(dim=4, heads=1), process=THREE)
