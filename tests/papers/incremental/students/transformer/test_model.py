"""The full student: a pass written out row by row, parts that can be switched off, what dropout keeps."""

import numpy as np
import pytest

import stagescope as ss
from stagescope.papers.incremental.transformer_passes import kept_entries

SIZES = {"vocab": 4, "heads": 2, "context": 3, "targets": 2}


def transformer(**more):
    return ss.Transformer(**{**SIZES, "width": 6, "mlp": 5, **more})


def some_params(model, seed=0):
    rng = np.random.default_rng(seed)
    return {name: 0.6 * rng.normal(size=shape) for name, shape in model.shapes.items()}


def normed(model, params, name, x):
    if model.norm == "none":
        return x
    centred = x - x.mean(axis=-1, keepdims=True)
    return centred / np.sqrt(centred.var(axis=-1, keepdims=True) + 1e-5) * params[f"gain_{name}"] + params[f"shift_{name}"]


def same(model, params, name, x):
    return x


def turned(rows, model):
    """Rotary positions as complex numbers: entries i and i + half of row s are turned by s / 10000^(i / half)."""
    if model.places != "rotary":
        return rows
    half = rows.shape[1] // 2
    angles = np.arange(len(rows))[:, None] / 10000 ** (np.arange(half) / half)
    both = (rows[:, :half] + 1j * rows[:, half : 2 * half]) * np.exp(1j * angles)
    return np.concatenate([both.real, both.imag, rows[:, 2 * half :]], axis=1)


def written_out(model, params, row, kept=None):
    """All rows of one sequence through all layers, one head and one row at a time."""
    n = model.positions
    places = params["P"] if model.places == "learned" else model.fixed_places
    before, after = (same, normed) if model.student == "published" else (normed, same)
    masks, first = list(kept or []), None

    def drop(part):
        if masks:
            mask = masks.pop(0)
            part[-len(mask) :] = np.where(mask, part[-len(mask) :] / (1 - model.dropout), 0)
        return part

    x = params["E"][row[:n]] + places
    x = drop(x) if model.student == "published" else x
    for i in range(1, model.layers + 1):
        y = before(model, params, f"heads{i}", x)
        seen = np.zeros((model.heads, n, n))
        for h in range(model.heads):
            q, k = (y @ params[f"{name}{i}"][h] for name in "QK")
            q, k = (turned(row, model) for row in (q, k))
            for t in range(n):
                bias = params[f"B{i}"][h, t::-1] if model.places == "relative" else 0.0
                weights = np.exp(k[: t + 1] @ q[t] / np.sqrt(model.width / model.heads) + bias)
                seen[h, t, : t + 1] = weights / weights.sum()
        first = seen if first is None else first
        by_row = np.swapaxes(seen, 0, 1).reshape(n, -1)
        mixing = np.swapaxes((drop(by_row) if model.student == "published" else by_row).reshape(n, model.heads, n), 0, 1)
        part = sum(mixing[h] @ (y @ params[f"V{i}"][h]) @ params[f"O{i}"][h] for h in range(model.heads))
        x = after(model, params, f"heads{i}", drop(part) + (x if model.residual else 0))
        if model.mlp:
            units = np.maximum(before(model, params, f"mlp{i}", x) @ params[f"M{i}"] + params[f"m{i}"], 0)
            part = drop(units @ params[f"N{i}"] + params[f"n{i}"])
            x = after(model, params, f"mlp{i}", part + (x if model.residual else 0))
    logits = before(model, params, "out", x) @ params["U"] + params.get("u", 0)
    return logits[model.context - 1 :], first[:, model.context - 1 :]


OURS = {"student": "pre-norm"}
KINDS = [
    {},
    {"layers": 2, "places": "sinusoidal"},
    OURS,
    {**OURS, "layers": 2, "places": "relative"},
    {**OURS, "places": "sinusoidal", "mlp": 0},
    {"places": "one-hot", "norm": "none", "layers": 2},
    {"places": "rotary", "width": 10, "residual": False, "norm": "none", "mlp": 0},
]


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_tables_and_scored_rows_change_nothing(kind):
    model = transformer(**kind)
    params, tokens = some_params(model), np.random.default_rng(1).integers(4, size=(5, 5))
    logits, attention = model.logits(params, tokens), model.seen(params, tokens)
    for n in range(5):
        expected = written_out(model, params, tokens[n])
        np.testing.assert_allclose(logits[n], expected[0], atol=1e-12)
        np.testing.assert_allclose(attention[n], expected[1], atol=1e-14)


@pytest.mark.long
@pytest.mark.parametrize("student", ["published", "pre-norm"])
def test_dropout_scales_up_what_it_keeps(student):
    model = transformer(layers=2, dropout=0.3, student=student)
    params, tokens = some_params(model), np.random.default_rng(1).integers(4, size=(3, 5))
    stream, weights = [(3, 4, 6), (3, 2, 6)], [(3, 4, 8), (3, 2, 8)]
    shapes = {
        "published": [stream[0], weights[0], stream[0], stream[0], weights[1], stream[1], stream[1]],
        "pre-norm": [stream[0], stream[0], stream[1], stream[1]],
    }[student]
    keys = np.arange(len(shapes), dtype=np.uint64)
    kept = kept_entries(model, keys, 3)
    assert [part.shape for part in kept] == shapes
    found = np.asarray(model.forward(params, tokens[:, :4], kept)[0])
    for n in range(3):
        np.testing.assert_allclose(found[n], written_out(model, params, tokens[n], [part[n] for part in kept])[0], atol=1e-12)
    many = kept_entries(model, keys, 4000)
    assert np.mean([part.mean() for part in many]) == pytest.approx(0.7, abs=0.003)


@pytest.mark.parametrize("student", ["published", "pre-norm"])
def test_token_maps_where_the_model_is_linear(student):
    """Without norm, MLP and residual stream the logits are attention times what tokens and places add."""
    model = transformer(residual=False, norm="none", mlp=0, student=student)
    params, tokens = some_params(model), np.random.default_rng(1).integers(4, size=(3, 5))
    maps, attention = model.token_maps(params), model.seen(params, tokens)
    places = np.einsum("sw,hwp,hpv,vy->hsy", params["P"], params["V1"], params["O1"], params["U"])
    rows = np.swapaxes(maps, 1, 2)[:, tokens[:, :4]] + places[:, None]
    expected = np.einsum("bhts,hbsy->bty", attention, rows) + params.get("u", 0)
    np.testing.assert_allclose(model.logits(params, tokens), expected, atol=1e-11)
    assert transformer().token_maps(some_params(transformer())) is None


def test_published_start():
    """Ranges of the authors' student at its sizes: 50 tokens, width 255, MLP 64; their table of positions has 50 rows."""
    model = ss.Transformer(vocab=50, heads=3, context=12, targets=20)
    start = model.init(3)
    np.testing.assert_allclose(start["E"] @ start["E"].T, np.eye(50), atol=1e-12)
    np.testing.assert_allclose(start["U"].T @ start["U"], np.eye(50), atol=1e-12)
    reach = {"P": 0.1403, "Q1": 0.1085, "K1": 0.1085, "V1": 0.1085, "O1": 0.1085, "M1": 0.1371, "N1": 0.1371}
    assert {name: np.abs(start[name]).max() for name in reach} == pytest.approx(reach, rel=2e-3)
    assert np.linalg.norm(start["P"], axis=1).mean() == pytest.approx(1.29, abs=0.02)
    assert not start["m1"].any()
    assert not start["n1"].any()
    assert "u" not in start
    wide = ss.Transformer(vocab=9, heads=1, context=2, targets=1, width=4).init(0)
    np.testing.assert_allclose(wide["E"].T @ wide["E"], np.eye(4), atol=1e-12)  # no room for nine orthonormal rows


def test_init_and_places():
    model = transformer(width=60, mlp=64, student="pre-norm")
    start = model.init(3)
    assert set(start) == set(model.shapes) == set(model.axes)
    assert all(start[name].shape == shape and len(model.axes[name]) == len(shape) for name, shape in model.shapes.items())
    np.testing.assert_array_equal(start["Q1"], model.init(3)["Q1"])
    assert np.abs(start["O1"]).max() == pytest.approx(60**-0.5, rel=0.01)
    assert np.abs(start["N1"]).max() == pytest.approx(1 / 8, rel=0.01)
    assert start["E"].std() == pytest.approx(1, rel=0.2)
    np.testing.assert_array_equal(transformer(places="one-hot").fixed_places, np.eye(4, 6))
    waves = transformer(places="sinusoidal").fixed_places
    np.testing.assert_allclose(waves[:, :3] ** 2 + waves[:, 3:] ** 2, 1)
    assert "P" not in transformer(places="sinusoidal").shapes
    relative = transformer(places="relative", layers=2)
    assert relative.shapes["B2"] == (2, 4)
    assert not relative.init(0)["B2"].any()
    assert relative.axes["B2"] == ("head", "lag")


def test_bad_sizes():
    with pytest.raises(ss.InputError, match="width 7 is not a multiple of the 2 heads"):
        transformer(width=7)
    with pytest.raises(ss.InputError, match="one-hot positions need a width of at least 4, got 2"):
        transformer(width=2, places="one-hot")
    with pytest.raises(ss.InputError, match="rotary positions need a width of at least 2 for each of the 2 heads, got 2"):
        transformer(width=2, places="rotary")
    with pytest.raises(ss.InputError, match="layers"):
        transformer(layers=3)
