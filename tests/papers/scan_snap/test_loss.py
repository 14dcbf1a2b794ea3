"""Lemma 1 and its company: kernel = definition = closed form, sums, merged columns, curvature."""

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stagescope.core.errors import InputError
from stagescope.core.params import Layout
from stagescope.flow.field import Objective
from stagescope.papers.scan_snap.loss import PairwiseHeads, PairwisePinv, PairwisePopulation, PairwiseResidual
from stagescope.papers.scan_snap.model import PairwiseAttention, attention
from stagescope.papers.scan_snap.process import SequenceClasses
from stagescope.readings.forms import population_loss
from tests.strategies import random_state, sequence_classes

SHAPES = [(2, 1, 10, 10), (3, 2, 5, 4), (1, 3, 1, 6), (4, 1, 0, 3)]
SEEDS = st.integers(0, 1000)
COMPILED = settings(max_examples=6)
"""Every new shape is a new compilation."""


@cache
def problem(shape=(2, 1, 10, 10), vocab=None):
    """The same one for every example: it is compiled once."""
    process = SequenceClasses.synthetic(*shape, vocab=vocab)
    model = PairwiseAttention.merged(process)
    return process, model, PairwisePopulation(model=model, process=process)


def lemma_1(loss: PairwisePopulation, params):
    """-dL/dY and -dL/dZ written down from the paper, dense, in the unreduced coordinates."""
    process, model = loss.process, loss.model
    c = attention(params["Z"][loss.rows["query"]], process.table(model.keys))
    f = c / np.linalg.norm(c, axis=1, keepdims=True)
    logits = f @ params["Y"]
    weighted = model.multiplicity * np.exp(logits - logits.max(axis=1, keepdims=True))
    alpha = weighted / weighted.sum(axis=1, keepdims=True) / model.multiplicity
    y, z = np.zeros_like(params["Y"]), np.zeros_like(params["Z"])
    for n, p in enumerate(process.weights):
        error = -alpha[n]
        error[loss.rows["target"][n]] += 1
        g = params["Y"] @ (error * model.multiplicity)
        y += p * np.outer(f[n], error)
        z[loss.rows["query"][n]] += p * np.diag(f[n]) @ (np.eye(len(g)) - np.outer(f[n], f[n])) @ g
    return {"Y": y, "Z": z}


@pytest.mark.long
@pytest.mark.parametrize("shape", SHAPES)
@given(seed=SEEDS)
def test_autodiff_equals_lemma_1_on_four_shapes(shape, seed):
    _, model, loss = problem(shape)
    params = random_state(model, seed)
    written, found = lemma_1(loss, params), Objective.grad(loss, params)
    for name in params:
        np.testing.assert_allclose(-found[name], written[name], atol=1e-10, rtol=0)


@pytest.mark.long
@COMPILED
@given(sequence_classes(), SEEDS)
def test_kernel_equals_definition(process, seed):
    model = PairwiseAttention.merged(process)
    loss = PairwisePopulation(model=model, process=process)
    params = random_state(model, seed, scale=2.0)
    assert loss.value(params) == pytest.approx(Objective.value(loss, params), abs=1e-12)
    kernel, definition = loss.grad(params), Objective.grad(loss, params)
    for name in params:
        np.testing.assert_allclose(kernel[name], definition[name], atol=1e-12, rtol=0)


@pytest.mark.long
@COMPILED
@given(sequence_classes(shared_query=False), SEEDS)
def test_pinv_kernel_equals_its_law(process, seed):
    model = PairwiseAttention.merged(process)
    field = PairwisePinv(model=model, process=process)
    params = random_state(model, seed)
    layout = Layout.of(params)
    out = np.empty(layout.size)
    field.flat(layout, {"Y": 1.0, "Z": 1.0})(layout.pack(params), out)
    np.testing.assert_allclose(out, layout.pack(field.rhs(params)), atol=1e-12, rtol=0)


@given(sequence_classes(), SEEDS)
def test_row_sums_of_both_derivatives_vanish(process, seed):
    model = PairwiseAttention.merged(process)
    grad = PairwisePopulation(model=model, process=process).grad(random_state(model, seed))
    assert np.abs(grad["Y"] @ model.multiplicity).max() <= 1e-12
    assert np.abs(grad["Z"].sum(axis=1)).max() <= 1e-12


@given(sequence_classes(), SEEDS)
def test_gradient_is_the_slope(process, seed):
    """Central differences along a random direction, counted with the multiplicity of the merged column."""
    model = PairwiseAttention.merged(process)
    loss = PairwisePopulation(model=model, process=process)
    params, way = random_state(model, seed), random_state(model, seed + 1)
    h = 1e-5
    ahead, behind = ({n: params[n] + s * h * way[n] for n in params} for s in (1, -1))
    slope = (loss.value(ahead) - loss.value(behind)) / (2 * h)
    grad = loss.grad(params)
    expected = np.sum(grad["Y"] * way["Y"] * model.multiplicity) + np.sum(grad["Z"] * way["Z"])
    assert slope == pytest.approx(expected, rel=1e-6, abs=1e-8)


@given(SEEDS)
def test_curvature_is_symmetric_and_the_slope_of_the_gradient(seed):
    _, model, loss = problem((2, 1, 3, 4))
    params, v, w = (random_state(model, seed + i) for i in range(3))
    weights = {"Y": model.multiplicity, "Z": 1.0}

    def inner(a, b):
        return sum(np.sum(a[n] * b[n] * weights[n]) for n in a)

    assert inner(loss.hvp(params, v), w) == pytest.approx(inner(loss.hvp(params, w), v), abs=1e-12)
    h = 1e-5
    ahead, behind = (loss.grad({n: params[n] + s * h * v[n] for n in params}) for s in (1, -1))
    for name, value in loss.hvp(params, v).items():
        np.testing.assert_allclose(value, (ahead[name] - behind[name]) / (2 * h), atol=1e-8)


@given(sequence_classes(), SEEDS)
def test_merged_columns_are_the_full_model(process, seed):
    """Loss, and gradient entry by entry, of the model with every token a row and a column."""
    small, whole = PairwiseAttention.merged(process), PairwiseAttention.full(process.vocab)
    params = random_state(small, seed)
    rest = [i for i in range(process.vocab) if i not in small.outputs]
    full = {name: np.zeros(block.shape) for name, block in whole.init().items()}
    rows = np.array(small.keys)
    full["Y"][np.ix_(rows, small.outputs)] = params["Y"][:, : len(small.outputs)]
    full["Y"][np.ix_(rows, rest)] = params["Y"][:, -1:]
    full["Z"][np.ix_(small.queries, rows)] = params["Z"]
    merged_loss = PairwisePopulation(model=small, process=process)
    full_loss = PairwisePopulation(model=whole, process=process)
    assert merged_loss.value(params) == pytest.approx(full_loss.value(full), abs=1e-12)
    a, b = merged_loss.grad(params), full_loss.grad(full)
    np.testing.assert_allclose(a["Y"][:, :-1], b["Y"][np.ix_(rows, small.outputs)], atol=1e-13)
    np.testing.assert_allclose(np.repeat(a["Y"][:, -1:], len(rest), 1), b["Y"][np.ix_(rows, rest)], atol=1e-13)
    np.testing.assert_allclose(a["Z"], b["Z"][np.ix_(small.queries, rows)], atol=1e-13)


def test_relabelling_tokens_changes_nothing():
    process, model, loss = problem((2, 1, 3, 4))
    order = np.random.default_rng(0).permutation(process.vocab)
    items = [
        item.model_copy(
            update={
                "query": int(order[item.query]),
                "target": int(order[item.target]),
                "tokens": tuple(int(order[t]) for t in item.tokens),
            }
        )
        for item in process.classes
    ]
    moved = SequenceClasses(vocab=process.vocab, classes=tuple(items))
    other = PairwiseAttention.merged(moved)
    params = random_state(model, 5)
    rows = [other.keys.index(int(order[k])) for k in model.keys]
    columns = [*(other.outputs.index(int(order[o])) for o in model.outputs), len(model.outputs)]
    queries = [other.queries.index(int(order[q])) for q in model.queries]
    shuffled = {"Y": np.empty_like(params["Y"]), "Z": np.empty_like(params["Z"])}
    shuffled["Y"][np.ix_(rows, columns)] = params["Y"]
    shuffled["Z"][np.ix_(queries, rows)] = params["Z"]
    assert loss.value(params) == pytest.approx(population_loss(other, moved).value(shuffled), abs=1e-14)


def test_loss_at_zero_is_log_vocabulary_and_floor_is_below():
    process, model, loss = problem(vocab=500)
    assert loss.value(model.init()) == pytest.approx(np.log(500))
    assert process.floor() == 0


def test_pinv_refuses_dependent_contexts_and_forms_refuse_strangers():
    process = SequenceClasses.synthetic(2, 1, 3, 2)
    with pytest.raises(InputError, match="no closed-form"):
        population_loss(process, process)
    other = PairwiseAttention.merged(SequenceClasses.synthetic(2, 1, 3, 3))
    with pytest.raises(InputError, match="lack token"):
        PairwisePopulation(model=other, process=process)


@settings(max_examples=5)
@given(sequence_classes(), SEEDS)
def test_residual_gradient_equals_a_torch_module(process, seed):
    """u = LN(LN(u~) + u_xT) in token space, LN divides by the length; every token has its own direction."""
    torch = pytest.importorskip("torch")
    model = PairwiseResidual.widened(PairwiseAttention.every_output(process))
    loss = PairwiseResidual(model=model, process=process)
    params = random_state(model, seed)
    grad = loss.grad(params)
    y, z = (torch.zeros((process.vocab, process.vocab), dtype=torch.float64) for _ in range(2))
    keys, queries = list(model.keys), list(model.queries)
    y[keys] = torch.tensor(params["Y"])
    for row, token in enumerate(queries):
        z[token, keys] = torch.tensor(params["Z"][row])
    y.requires_grad_()
    z.requires_grad_()
    total = torch.zeros((), dtype=torch.float64)
    for weight, item in zip(process.weights, process.classes, strict=True):
        tokens = list(item.tokens)
        attention = torch.zeros(process.vocab, dtype=torch.float64)
        attention[tokens] = torch.softmax(
            torch.log(torch.tensor(item.probabilities, dtype=torch.float64)) + z[item.query, tokens], 0
        )
        u = attention / attention.norm()
        u = u + torch.nn.functional.one_hot(torch.tensor(item.query), process.vocab)
        logits = (u / u.norm()) @ y
        total = total - weight * torch.log_softmax(logits, 0)[item.target]
    total.backward()
    assert loss.value(params) == pytest.approx(float(total.detach()), abs=1e-12)
    np.testing.assert_allclose(grad["Y"], y.grad[keys].numpy(), atol=1e-10, rtol=0)
    np.testing.assert_allclose(grad["Z"], z.grad[queries][:, keys].numpy(), atol=1e-10, rtol=0)


def test_the_residual_connection_needs_the_queries_among_the_keys():
    process = SequenceClasses.synthetic(2, 1, 3, 2)
    with pytest.raises(InputError, match="not among the keys"):
        PairwiseResidual(model=PairwiseAttention.merged(process), process=process)


@settings(max_examples=5)
@given(sequence_classes(), SEEDS, st.integers(1, 3))
def test_gradient_of_several_heads_equals_a_torch_module(process, seed, heads):
    """Every head has its own scores and its own decoder of u_h = X^T b_h / |X^T b_h|; logits add up."""
    torch = pytest.importorskip("torch")
    law = PairwiseHeads(model=PairwiseAttention.every_output(process), process=process, heads=heads)
    random = np.random.default_rng(seed)
    params = {name: random.normal(size=shape) for name, shape in law.shapes.items()}
    grad, (rows, outputs) = law.grad(params), law.model.shapes["Y"]
    queries, keys = law.model.queries, law.model.keys
    y = torch.tensor(params["Y"].reshape(heads, rows, outputs), requires_grad=True)
    z = torch.tensor(params["Z"].reshape(heads, len(queries), rows), requires_grad=True)
    total = torch.zeros((), dtype=torch.float64)
    for weight, item in zip(process.weights, process.classes, strict=True):
        places, logits = [keys.index(token) for token in item.tokens], torch.zeros(outputs, dtype=torch.float64)
        for h in range(heads):
            scores = z[h, queries.index(item.query)][places]
            b = torch.softmax(torch.log(torch.tensor(item.probabilities, dtype=torch.float64)) + scores, 0)
            logits = logits + (b / b.norm()) @ y[h, places]
        total = total - weight * torch.log_softmax(logits, 0)[item.target]
    total.backward()
    assert law.value(params) == pytest.approx(float(total.detach()), abs=1e-12)
    np.testing.assert_allclose(grad["Y"], y.grad.reshape(-1, outputs).numpy(), atol=1e-10, rtol=0)
    np.testing.assert_allclose(grad["Z"], z.grad.reshape(-1, rows).numpy(), atol=1e-10, rtol=0)
