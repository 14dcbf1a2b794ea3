"""Each recorded number against a slow second opinion, and on planted patterns whose values are known."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from stagescope.watching.capture import Attention
from stagescope.watching.heads import prefix_match
from stagescope.watching.observer import AXES, HeadNumbers, Parameters, Sizes, _by_layer, _grouped
from stagescope.watching.probe import Probe
from tests.watching import slow
from tests.watching.models import VOCABULARY, made, tokens

SMALL = Sizes(lags=6, types=3, signs=16, values=3, embedding=5, rows=7, groups=4, after=3, settled=4)


def probe_of(count: int, length: int, vocabulary: int, seed: int) -> Probe:
    half = torch.stack([torch.randperm(length // 2, generator=torch.Generator().manual_seed(i)) for i in range(2)])
    return Probe(tokens(count, length, seed, vocabulary), torch.cat([half, half], dim=1), str)


def random_layers(count: int, length: int, heads: list[int], seed: int, sharp: float = 2.0) -> list[Attention]:
    """Causal patterns of layers with so many heads, with queries and keys that have nothing to do with them."""
    draw = torch.Generator().manual_seed(seed)
    found = []
    for place, each in enumerate(heads):
        scores = sharp * torch.randn(count + 2, each, length, length, generator=draw)
        weights = torch.softmax(scores.masked_fill(torch.ones(length, length).triu(1).bool(), -torch.inf), dim=-1)
        pair = (torch.randn(count + 2, each, length, 5, generator=draw) for _ in range(2))
        found.append(Attention(f"layer {place}", weights, *pair))
    return found


def numbers(probe: Probe, layers: list[Attention], shown: int = 4, sizes: Sizes = SMALL) -> dict[str, np.ndarray]:
    return HeadNumbers(probe, shown, sizes).of(layers)


def second_opinion(probe: Probe, layer: Attention, sizes: Sizes) -> dict[str, np.ndarray]:
    count, half = len(probe.ids), probe.period
    text, twice = layer.weights[:count].double().numpy(), layer.weights[count:].double().numpy()
    ids, types = probe.ids.tolist(), probe.types(sizes.types)
    assert layer.query is not None
    assert layer.key is not None
    mean = np.repeat(text.mean(0, keepdims=True), count, axis=0)
    return {
        "lag_mass": slow.lag_mass(text, sizes.lags),
        "entropy": slow.entropy(text),
        "sink": slow.sink(text, sizes.after),
        "prefix_match": slow.prefix_match(text, ids),
        "induction": slow.at_distance(twice, half - 1, half),
        "duplicate": slow.at_distance(twice, half, half),
        "content": slow.content(text, sizes.settled),
        "type_mass": slow.type_mass(text, ids, types),
        "type_mass_mean": slow.type_mass(mean, ids, types),
        "agreement": slow.agreement(text),
        "pattern": text[0, :, :4, :4],
        "score_values": slow.score_values(layer.query[:count].numpy(), layer.key[:count].numpy(), sizes.values),
    }


@given(
    count=st.integers(1, 4),
    half=st.integers(4, 7),
    heads=st.lists(st.integers(1, 3), min_size=1, max_size=3),
    seed=st.integers(0, 99),
)
def test_against_a_slow_second_opinion(count, half, heads, seed):
    probe = probe_of(count, 2 * half, 6, seed)
    layers = random_layers(count, 2 * half, heads, seed)
    found = numbers(probe, layers)
    assert set(found) == set(AXES) - {"embedding_values", "group_norms"}
    for place, layer in enumerate(layers):
        for name, expected in second_opinion(probe, layer, SMALL).items():
            mine = found[name][place, : heads[place]]
            mine = mine[:, : heads[place]] if name == "agreement" else mine
            np.testing.assert_allclose(mine, expected, atol=2e-5, err_msg=name)
        assert all(np.isnan(value[place, heads[place] :]).all() for value in found.values())


def test_the_score_of_patterns_at_hand_is_the_recorded_one():
    probe, layers = probe_of(3, 12, 4, 5), random_layers(3, 12, [2], 5)
    found = numbers(probe, layers)["prefix_match"][0]
    for head, recorded in enumerate(found):
        assert prefix_match(layers[0].weights[:3, head].double().numpy(), probe.ids.numpy()) == pytest.approx(recorded, abs=1e-6)


def test_names_axes_and_types():
    layers = random_layers(2, 12, [2, 2], 0)
    for name, value in numbers(probe_of(2, 12, 6, 0), layers).items():
        assert (value.dtype, value.ndim, value.shape[:2]) == (np.float32, len(AXES[name]), (2, 2)), name


def planted(choose, count: int = 3, length: int = 24, seed: int = 0):
    """Numbers of one head whose query attends to one key alone: `choose(ids, query)`."""
    probe = probe_of(count, length, 9, seed)
    weights = torch.zeros(count + 2, 1, length, length)
    for b, row in enumerate(probe.all.tolist()):
        for q in range(length):
            weights[b, 0, q, choose(row, q)] = 1.0
    return numbers(probe, [Attention("planted", weights)], sizes=Sizes()), probe


def test_a_head_that_attends_to_the_previous_token():
    found, _ = planted(lambda ids, q: max(q - 1, 0))
    assert found["lag_mass"][0, 0, 1] == pytest.approx(1.0)
    assert found["lag_mass"][0, 0, 2:].max() == 0
    assert found["lag_mass"][0, 0, 0] == pytest.approx(1 / 24)  # the first token has itself alone
    assert found["entropy"][0, 0] == found["content"][0, 0] == found["sink"][0, 0] == found["induction"][0, 0] == 0
    np.testing.assert_allclose(found["type_mass"], found["type_mass_mean"], atol=1e-6)


def test_a_head_that_attends_to_the_first_token():
    found, _ = planted(lambda ids, q: 0)
    assert found["sink"][0, 0] == 1.0
    assert found["content"][0, 0] == 0.0
    np.testing.assert_allclose(found["lag_mass"][0, 0], 1 / (24 - np.arange(24)), rtol=1e-6)


def test_a_head_that_completes_what_was_said_before():
    """Attention to the token after the last occurrence of the current one, to itself where there is none."""
    found, probe = planted(lambda ids, q: max((k for k in range(1, q + 1) if ids[k - 1] == ids[q]), default=q))
    assert found["induction"][0, 0] == 1.0
    assert found["duplicate"][0, 0] == 0.0
    assert found["prefix_match"][0, 0] == pytest.approx(1.0)
    assert found["content"][0, 0] > 0.5
    assert probe.period == 12


def test_a_head_that_attends_to_the_same_token():
    found, _ = planted(lambda ids, q: max((k for k in range(q) if ids[k] == ids[q]), default=q))
    assert found["duplicate"][0, 0] == 1.0
    assert found["induction"][0, 0] == 0.0


def test_a_head_that_attends_to_one_type():
    probe = probe_of(3, 24, 9, 0)
    favourite = probe.types(32)[1]
    found, _ = planted(lambda ids, q: max((k for k in range(q + 1) if ids[k] == favourite), default=q))
    assert found["type_mass"][0, 0, 1] > 2 * found["type_mass_mean"][0, 0, 1]
    assert found["type_mass"].sum() == pytest.approx(1.0, abs=1e-5)
    assert found["type_mass"][0, 0, -1] == 0.0


def test_uniform_attention():
    length = 24
    weights = (torch.ones(length, length).tril() / torch.arange(1, length + 1)[:, None]).expand(5, 2, -1, -1)
    found = numbers(probe_of(3, length, 9, 0), [Attention("uniform", weights)], sizes=Sizes())
    assert found["entropy"][0, 0] == pytest.approx(np.mean(np.log(np.arange(1, length + 1))), abs=1e-5)
    assert found["sink"][0, 0] == pytest.approx(np.mean(1 / np.arange(5, length + 1)), abs=1e-6)
    np.testing.assert_allclose(found["agreement"], 1.0, atol=1e-5)
    assert found["content"].max() < 1e-6


def test_a_sketch_keeps_distances_in_the_mean():
    probe = probe_of(6, 24, 9, 0)
    one, other = (random_layers(6, 24, [8], seed)[0] for seed in (1, 2))
    sketched = [numbers(probe, [layer], sizes=Sizes())["sketch"][0] for layer in (one, other)]
    exact = (one.weights - other.weights)[:6].square().sum((0, 2, 3)) / (6 * 24)
    ratio = ((sketched[0] - sketched[1]) ** 2).sum(1) / exact.numpy()
    assert abs(ratio.mean() - 1) < 0.2
    assert ratio.min() > 0.4
    assert ratio.max() < 1.8


def test_a_pattern_without_queries_has_no_score_values():
    layer = random_layers(2, 12, [2], 0)[0]
    assert "score_values" not in numbers(probe_of(2, 12, 6, 0), [Attention("softmax", layer.weights)])


def test_patterns_that_are_no_numbers_give_no_error():
    layer = random_layers(2, 12, [2], 0)[0]
    broken = Attention("", *(torch.full_like(one, torch.nan) for one in (layer.weights, layer.query, layer.key)))
    found = numbers(probe_of(2, 12, 6, 0), [broken])
    assert all(np.isnan(found[name]).all() for name in found)


def test_heads_of_unequal_layers_are_padded():
    values = np.arange(10, dtype=np.float32).reshape(5, 2)
    found = _by_layer(values, [2, 3], square=False)
    assert found.shape == (2, 3, 2)
    assert np.isnan(found[0, 2]).all()
    np.testing.assert_array_equal(found[1], values[2:])
    table = np.arange(25, dtype=np.float32).reshape(5, 5)
    np.testing.assert_array_equal(_by_layer(table, [2, 3], square=True)[1], table[2:, 2:])


def test_sizes_of_parameters():
    model = made()
    found = Parameters(model).numbers()
    table = model.wte.weight.detach().numpy().astype(float)
    values = np.linalg.svd(table - table.mean(0), compute_uv=False)
    np.testing.assert_allclose(found["embedding_values"], values, rtol=1e-4)
    assert found["embedding_rank"] == pytest.approx((values**2).sum() ** 2 / (values**4).sum(), rel=1e-4)
    total = sum(float(value.detach().double().square().sum()) for value in model.parameters())
    assert float((found["group_norms"].astype(float) ** 2).sum()) == pytest.approx(total, rel=1e-5)
    assert Parameters(model).embedding == "wte.weight"


def test_large_embeddings_are_sampled_and_broken_ones_are_no_error():
    model = nn.ModuleDict({"wte": nn.Embedding(40, 3), "head": nn.Linear(3, 40)})
    table = model["wte"].weight.detach().numpy()[::6]
    expected = np.linalg.svd(table - table.mean(0), compute_uv=False)
    np.testing.assert_allclose(Parameters(model, sizes=SMALL).numbers()["embedding_values"], expected, rtol=1e-4)
    nn.init.constant_(model["wte"].weight, torch.inf)
    found = Parameters(model, sizes=SMALL).numbers()
    assert np.isnan(found["embedding_values"]).all()
    assert found["embedding_values"].shape == (3,)
    assert np.isnan(found["embedding_rank"])


def test_a_model_without_parameters_has_no_sizes():
    assert Parameters(nn.Identity()).numbers() == {}
    assert np.isnan(Parameters(nn.Identity()).gradient_norm())


def test_a_module_that_is_exchanged_is_looked_up_again():
    model = made()
    sizes = Parameters(model)
    model.wte = nn.Embedding(VOCABULARY, 16)
    nn.init.zeros_(model.wte.weight)
    found = sizes.numbers()
    assert found["embedding_values"].max() == 0
    assert found["group_norms"][list(sizes.groups).index("wte.weight")] == 0


def test_the_norm_of_the_gradient():
    model = made()
    model(tokens()).square().mean().backward()
    expected = torch.nn.utils.clip_grad_norm_(model.parameters(), 1e9)
    assert Parameters(model).gradient_norm() == pytest.approx(float(expected), rel=1e-5)
    sparse = nn.Embedding(5, 2, sparse=True)
    sparse(torch.tensor([1, 1, 3])).sum().backward()
    assert Parameters(sparse).gradient_norm() == pytest.approx(np.sqrt(2 * 4 + 2))


def test_groups_of_parameters():
    names = ["a.x.p", "a.x.q", "a.y.p", "b.p"]
    assert list(_grouped(names, 2)) == ["a", "b"]
    assert list(_grouped(names, 3)) == ["a.x", "a.y", "b.p"]
    assert len(_grouped(names, 99)) == 4
    assert list(_grouped(names, 1)) == ["a", "b"]
    assert _grouped([], 3) == {}
