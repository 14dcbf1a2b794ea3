"""The transformer on a text: gradients are those of PyTorch and of the definition, all positions count, streams are in order."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import stagescope as ss
from stagescope.core.params import Layout
from stagescope.papers.scan_snap.text.loss import TextTransformer, TextTransformerLoss
from stagescope.readings.registry import study
from tests.texts import needs


@pytest.fixture(scope="module")
def loss():
    corpus = ss.read_corpus("topics", vocab=12)
    model = TextTransformer(vocab=12, length=5, width=4, hidden=3)
    return TextTransformerLoss(model=model, process=corpus, length=5, batch=3, watched=7, precision="float64")


def somewhere(loss):
    draw = np.random.default_rng(0)
    return {name: block + 0.3 * draw.normal(size=block.shape) for name, block in loss.model.init(1).items()}


@pytest.mark.long
def test_value_is_the_mean_over_windows_and_positions(loss):
    params, total = somewhere(loss), []
    for start in loss.seen:
        window = np.asarray(loss.tokens[start : start + 6], dtype=int)
        logits = np.asarray(loss.model.forward(params, window[None, :-1])[0])[0]
        total += [np.log(np.sum(np.exp(row))) - row[following] for row, following in zip(logits, window[1:], strict=True)]
    assert len(total) == 7 * 5
    assert loss.value(params) == pytest.approx(np.mean(total), rel=1e-12)


@pytest.mark.long
def test_steps_go_down_the_loss_of_their_windows(loss):
    """Central differences along a random direction, on the windows of one step."""
    params = somewhere(loss)
    layout = Layout.of(params)
    vector, found = layout.pack(params), np.empty(layout.size)
    loss.step_gradient(layout)(vector, 4, found)
    direction = np.random.default_rng(1).normal(size=layout.size)

    def value(along):
        return loss.of_windows(layout.unpack(vector + along * direction), loss.minibatch(4))[0]

    assert found @ direction == pytest.approx((value(1e-6) - value(-1e-6)) / 2e-6, rel=1e-6)
    np.testing.assert_allclose(found, layout.pack(loss.of_windows(params, loss.minibatch(4))[1]), atol=1e-13)


SIZES = {"vocab": 12, "length": 5, "width": 4, "hidden": 3, "places": "sinusoidal", "student": "published"}


def deep(layers, dropout=0.0, **more):
    model = TextTransformer(**{**SIZES, "layers": layers, "dropout": dropout})
    corpus = ss.read_corpus("topics", vocab=12)
    return TextTransformerLoss(model=model, process=corpus, length=5, batch=3, watched=7, precision="float64", **more)


def torch_loss(model, blocks, tokens, masks=None):
    """The authors' student from its description: inputs + places, then layers with a norm after each part; masks as given."""
    left, share = iter(masks or ()), 1 - model.dropout

    def dropped(x):
        mask = next(left, None)
        return x if mask is None else x * torch.from_numpy(mask) / share

    width, length = model.width, tokens.shape[1] - 1
    place = torch.arange(length, dtype=torch.float64)[:, None] * 10000.0 ** (
        -torch.arange(0, width, 2, dtype=torch.float64) / width
    )
    x = dropped(blocks["E"][tokens[:, :-1]] * width**0.5 + torch.cat([torch.sin(place), torch.cos(place)], dim=1))
    later = torch.full((length, length), -torch.inf, dtype=torch.float64).triu(1)
    for i in model.suffixes:
        q, v = (x @ blocks[name + i] + blocks[name.lower() + i] for name in "QV")
        attention = dropped(torch.softmax(q @ (x @ blocks["K" + i]).transpose(1, 2) / width**0.5 + later, dim=-1))
        x = x + dropped(attention @ v @ blocks["O" + i] + blocks["o" + i])
        x = F.layer_norm(x, (width,), blocks["gain_head" + i], blocks["shift_head" + i])
        units = dropped(torch.relu(x @ blocks["M" + i] + blocks["m" + i]))
        x = x + dropped(units @ blocks["N" + i] + blocks["n" + i])
        x = F.layer_norm(x, (width,), blocks["gain_mlp" + i], blocks["shift_mlp" + i])
    return F.cross_entropy((x @ blocks["U"] + blocks["u"]).flatten(0, 1), tokens[:, 1:].flatten())


@pytest.mark.parametrize(("layers", "dropout"), [(1, 0.3), (3, 0.3), (2, 0.0)])
def test_gradients_are_those_of_pytorch(layers, dropout):
    loss = deep(layers, dropout)
    params, step = somewhere(loss), 4
    data, layout = loss.step_arrays(step), Layout.of(params)
    blocks = {name: torch.tensor(block, requires_grad=True) for name, block in params.items()}
    expected = torch_loss(loss.model, blocks, torch.from_numpy(np.asarray(data["tokens"], dtype=np.int64)), data.get("masks"))
    expected.backward()
    assert float(loss.loss(params, data)) == pytest.approx(expected.item(), rel=1e-12)
    found = np.empty(layout.size)
    loss.step_gradient(layout)(layout.pack(params), step, found)
    assert ("masks" in data) == bool(dropout)
    for name, block in layout.unpack(found).items():
        np.testing.assert_allclose(block, blocks[name].grad.numpy(), atol=1e-10, err_msg=name)


def test_without_dropout_it_is_the_encoder_of_pytorch():
    """Logits and attention of torch.nn.TransformerEncoderLayer with the same numbers; its bias of the keys has no effect."""
    loss = deep(1)
    params = {name: torch.tensor(block) for name, block in somewhere(loss).items()}
    layer = torch.nn.TransformerEncoderLayer(4, 1, 3, dropout=0.0, batch_first=True, dtype=torch.float64)
    bias = torch.tensor([0.7, -0.2, 0.4, 0.1], dtype=torch.float64)
    state = {
        "self_attn.in_proj_weight": torch.cat([params[name].T for name in "QKV"]),
        "self_attn.in_proj_bias": torch.cat([params["q"], bias, params["v"]]),
        "self_attn.out_proj.weight": params["O"].T,
        "self_attn.out_proj.bias": params["o"],
        "linear1.weight": params["M"].T,
        "linear1.bias": params["m"],
        "linear2.weight": params["N"].T,
        "linear2.bias": params["n"],
    }
    state |= {
        f"norm{i}.{a}": params[f"{b}_{part}"]
        for i, part in ((1, "head"), (2, "mlp"))
        for a, b in (("weight", "gain"), ("bias", "shift"))
    }
    layer.load_state_dict(state)
    tokens = loss.watched_tokens
    x = params["E"][torch.from_numpy(tokens.astype(np.int64))] * 2.0 + torch.from_numpy(loss.model.fixed_places)
    mask = torch.nn.Transformer.generate_square_subsequent_mask(5, dtype=torch.float64)
    logits, attention = loss.model.forward({name: block.numpy() for name, block in params.items()}, tokens)
    expected = layer(x, src_mask=mask) @ params["U"] + params["u"]
    np.testing.assert_allclose(np.asarray(logits), expected.detach().numpy(), atol=1e-12)
    weights = layer.self_attn(x, x, x, attn_mask=mask)[1]
    np.testing.assert_allclose(np.asarray(attention)[0], weights.detach().numpy(), atol=1e-12)


def test_the_published_start_has_the_ranges_of_pytorch():
    model = TextTransformer(vocab=30, width=64, hidden=48, layers=2, student="published")
    params = model.init(3)
    layer = torch.nn.TransformerEncoderLayer(64, 1, 48)
    own = {"Q": layer.self_attn.in_proj_weight, "O": layer.self_attn.out_proj.weight, "o": layer.self_attn.out_proj.bias}
    own |= {"M": layer.linear1.weight, "m": layer.linear1.bias, "N": layer.linear2.weight, "n": layer.linear2.bias}
    for name, tensor in own.items():
        few = 0.15 if tensor.ndim == 1 else 0.02  # the largest of n uniform numbers is about 1/n below the end
        assert np.abs(params[name]).max() == pytest.approx(float(tensor.detach().abs().max()), rel=few), name
        np.testing.assert_array_equal(params[name], params[f"{name}2"])
    assert not np.array_equal(params["Q"], params["K"])


def test_dropout_drops_its_share_by_seed_and_step_and_only_in_steps():
    loss = deep(2, 0.3)
    masks = loss.step_arrays(5)["masks"]
    assert [mask.shape for mask in masks] == loss.model.drops(3)
    many = TextTransformerLoss(model=loss.model, process=loss.process, length=5, batch=400).step_arrays(5)["masks"]
    for mask in many:
        assert np.mean(mask) == pytest.approx(0.7, abs=5 * (0.21 / mask.size) ** 0.5)
    for mask, again in zip(masks, loss.step_arrays(5)["masks"], strict=True):
        np.testing.assert_array_equal(mask, again)
    assert not np.array_equal(masks[0], loss.step_arrays(6)["masks"][0])
    params = somewhere(loss)
    assert loss.value(params) == deep(2).value(params)


def test_streams_are_read_in_order_and_again():
    """By cutting the text: every token of a stream but the rest is an input once in a pass."""
    loss = deep(1, in_order=True)
    text, stream = np.asarray(loss.process.train), len(loss.process.train) // 3
    passes = (stream - 1) // 5
    windows = [np.asarray(loss.arrays(loss.minibatch(step))["tokens"]) for step in range(passes)]
    for row in range(3):
        cut = text[row * stream : (row + 1) * stream]
        np.testing.assert_array_equal(np.concatenate([window[row, :-1] for window in windows]), cut[: 5 * passes])
        np.testing.assert_array_equal([window[row, -1] for window in windows], cut[5 : 5 * passes + 1 : 5])
    np.testing.assert_array_equal(loss.minibatch(passes), loss.minibatch(0))
    with pytest.raises(ss.InputError, match="take fewer --streams"):
        loss.model_copy(update={"batch": len(text) // 4}).minibatch(0)


@needs("wikitext-2")
def test_the_watched_window_is_the_published_one():
    """Frequent words have the numbers that the authors' notebook prints for its window; rare ones of equal count may not."""
    options = study("text-snap").configured("published-figure-7")
    law = study("text-snap").setup(options, 0).what
    assert (len(law.process.train), law.model.vocab) == (2_049_990, 28_782)
    printed = [43, 6971, 3, 66, 407, 1, 3476, 2, 1, 319, 157, 29, 842, 19, 13722, 7, 294, 24, 14, 5902, 14, 687, 2, 18, 1, 5832]
    found = law.inputs(law.minibatch(100))[0].tolist()
    assert [a for a, b in zip(found, printed, strict=False) if b < 600] == [b for b in printed if b < 600]
