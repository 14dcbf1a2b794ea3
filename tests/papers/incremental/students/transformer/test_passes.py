"""The transformer's kernel against its definition: parts switched off, positions, labels, precision, chunks, dropout."""

import numpy as np
import pytest

import stagescope as ss
from stagescope.flow.autodiff import jax
from stagescope.papers.incremental import transformer_passes
from stagescope.papers.incremental.transformer_parts import Room
from stagescope.papers.incremental.transformer_passes import TABLE, kept_entries, transformer_pass

SIZES = {name: getattr(transformer_passes, name) for name in ("CHUNK", "BLOCK", "TABLE")}
CHAIN = ss.LaggedChain.spans(4, spans=(1, 2), scale=2.0)
OURS = {"student": "pre-norm"}
KINDS = [
    {},
    {"layers": 2, "places": "relative"},
    {"layers": 2, "targets": 9, "width": 70, "mlp": 20},  # stripes and their rest, several stretches
    {"layers": 2, "places": "sinusoidal", "mlp": 0, "dropout": 0.0},
    {"places": "rotary", "residual": False, "heads": 1, "width": 17},
    OURS,
    {**OURS, "layers": 2, "places": "relative", "labels": "hard"},
    {**OURS, "places": "rotary", "heads": 1, "width": 17, "norm": "none", "mlp": 0},
    {**OURS, "places": "sinusoidal", "dropout": 0.0, "residual": False, "targets": 16, "width": 20},  # more rows than a tile has
    {**OURS, "layers": 2, "targets": 9, "width": 70, "mlp": 20},
]


def problem(labels="soft", sequences=13, **kind):
    model = ss.Transformer(**{"vocab": 4, "heads": 2, "context": 3, "targets": 3, "width": 6, "mlp": 5, "dropout": 0.3, **kind})
    loss = ss.TransformerLoss(model=model, process=CHAIN, sequences=sequences, seed=7, precision="float64", labels=labels)
    rng = np.random.default_rng(0)
    params = {name: 0.6 * rng.normal(size=shape) for name, shape in model.shapes.items()}
    keys = rng.integers(2**64, size=len(model.drops), dtype=np.uint64) if model.dropout else None
    return loss, params, keys


def farthest(found, expected):
    """The largest difference over the largest entry of all blocks."""
    assert set(found) == set(expected)
    scale = max(np.abs(block).max() for block in expected.values())
    return max(np.abs(found[name] - expected[name]).max() for name in expected) / scale


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_it_is_the_definition_with_and_without_a_table(kind, monkeypatch):
    loss, params, keys = problem(**kind)
    data = loss.data if keys is None else {**loss.data, "kept": kept_entries(loss.model, keys, 13)}
    value, gradient = jax.jit(jax.value_and_grad(loss.loss))(params, data)
    few = {"CHUNK": 300, "BLOCK": 1200}  # several chunks and blocks, the last ones smaller; else all sequences together
    for sizes in (few, {**few, "TABLE": 0}, {}, {"TABLE": 0}):
        for name in ("CHUNK", "BLOCK", "TABLE"):
            monkeypatch.setattr(transformer_passes, name, sizes.get(name, SIZES[name]))
        for precision, close in (("float64", 1e-12), ("float32", 4e-6)):
            found = transformer_pass(loss.model, params, loss.seen, Room(precision), keys)
            assert found[0] == pytest.approx(float(value), rel=close)
            assert farthest(found[1], gradient) < close
            alone = transformer_pass(loss.model, params, loss.seen, Room(precision), keys, gradient=False)
            assert alone == (found[0], {})


@pytest.mark.parametrize(("precision", "close"), [pytest.param("float64", 1e-12, marks=pytest.mark.long), ("float32", 1e-5)])
def test_scores_out_of_reach_of_the_exponential(precision, close):
    """Single precision ends at 88, double at 709; the largest score is taken off first."""
    loss, params, _ = problem(dropout=0.0, mlp=0)
    params = {name: 60.0 * block if name in ("Q1", "U") else block for name, block in params.items()}
    value = float(jax.jit(loss.loss)(params, loss.data))
    assert transformer_pass(loss.model, params, loss.seen, Room(precision))[0] == pytest.approx(value, rel=close)
    params["Q1"][0, 0, 0] = np.inf
    found = transformer_pass(loss.model, params, loss.seen, Room(precision))
    assert np.isnan(found[0])
    assert np.isnan(found[1]["U"]).all()


@pytest.mark.parametrize("table", [TABLE, 0])
def test_a_pass_that_overflowed_leaves_nothing_behind(table, monkeypatch):
    monkeypatch.setattr(transformer_passes, "TABLE", table)
    loss, params, keys = problem()
    room, fresh = Room("float32"), Room("float32")
    with np.errstate(all="ignore"):
        large = {name: 1e25 * block if name[0] in "EOU" else block for name, block in params.items()}
        assert np.isnan(transformer_pass(loss.model, large, loss.seen, room, keys)[1]["Q1"]).any()
    found, expected = (transformer_pass(loss.model, params, loss.seen, each, keys)[1] for each in (room, fresh))
    assert all(np.array_equal(found[name], expected[name]) for name in expected)


def test_dropout_depends_on_key_and_row_alone():
    loss, _, keys = problem(width=255, heads=3, layers=2, dropout=0.1, **OURS)
    few, many = (kept_entries(loss.model, keys, count) for count in (40, 41))
    assert [part.shape for part in few] == [(40, 5, 255)] * 2 + [(40, 3, 255)] * 2
    for one, two in zip(few, many, strict=True):
        np.testing.assert_array_equal(one, two[:40])
        assert one.mean() == pytest.approx(0.9, abs=4 * (0.09 / one.size) ** 0.5)
        flat = one.reshape(-1, 255) - 0.9
        for lag in ((0, 1), (1, 0), (0, 127), (0, 128), (1, 128)):  # neighbours, other halves of a word, next rows
            ahead = flat[lag[0] :, lag[1] :]
            pairs = flat[: len(flat) - lag[0], : 255 - lag[1]] * ahead
            assert abs(pairs.mean()) < 4.5 * 0.09 / pairs.size**0.5
    assert abs(np.mean(few[0] != few[1]) - 0.18) < 0.01


def test_single_precision_is_not_lost_in_long_sums():
    """A chunk may have many rows: their gradients go on in double precision. Expected is the mean over parts of few rows."""
    kind = {"heads": 1, "targets": 2, "width": 16, "mlp": 16, "norm": "none", "dropout": 0.0}
    loss, params, _ = problem("hard", sequences=40000, **kind)
    room = Room("float32")
    whole = transformer_pass(loss.model, params, loss.seen, room)[1]
    parts = [transformer_pass(loss.model, params, loss.seen.take(slice(i, i + 400)), room)[1] for i in range(0, 40000, 400)]
    for name in ("U", "M1", "N1"):
        expected = np.mean([part[name] for part in parts], axis=0, dtype=np.float64)
        assert np.abs(whole[name] - expected).max() < 3e-6 * np.abs(expected).max(), name
