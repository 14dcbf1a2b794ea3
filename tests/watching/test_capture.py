"""Attention patterns seen from outside: models whose weights are known, and models that are refused."""

import copy

import numpy as np
import pytest
import torch
from torch import nn

from stagescope.core.errors import InputError
from stagescope.watching.capture import Capture, Plan, attend, tried
from stagescope.watching.observer import Observer
from stagescope.watching.probe import make_probe
from tests.watching.models import (
    CONTEXT,
    HEADS,
    VOCABULARY,
    WIDTH,
    ByHand,
    ByModule,
    Flattened,
    FourAxes,
    Fused,
    Grouped,
    Head,
    Listed,
    OfTorch,
    WithSink,
    above,
    made,
    tokens,
)

IDS = tokens(3)


def seen(model: nn.Module, ids=IDS):
    forward, _, plan = tried(model, ids, None)
    return attend(model, ids, forward, plan)


@pytest.mark.parametrize("attention", [FourAxes, Flattened, ByModule, Grouped, WithSink, Listed])
def test_hand_written_attention_is_seen_as_it_was_used(attention):
    model = made(attention)
    _, layers = seen(model)
    assert [one.path for one in layers] == [f"blocks.{i}.attn{'.heads' if attention is Listed else ''}" for i in range(2)]
    for one, block in zip(layers, model.blocks, strict=True):
        assert one.weights.shape == (3, HEADS, 24, 24)
        torch.testing.assert_close(one.weights, block.attn.used, atol=0, rtol=0)


def test_a_sink_takes_its_share_of_each_row():
    _, layers = seen(made(WithSink))
    sums = layers[0].weights.sum(-1)
    assert sums.max() < 1
    assert sums.min() > 0


def test_fused_attention_is_that_of_the_hand_written_one():
    model, plain = made(Fused), made(FourAxes)
    plain.load_state_dict(model.state_dict())
    logits, layers = seen(model)
    with torch.no_grad():
        expected = plain(IDS)
    for one, block in zip(layers, plain.blocks, strict=True):
        torch.testing.assert_close(one.weights, block.attn.used, atol=1e-6, rtol=0)
    torch.testing.assert_close(logits, expected, atol=1e-5, rtol=0)
    with torch.no_grad():
        torch.testing.assert_close(logits, model(IDS), atol=1e-5, rtol=0)


@pytest.mark.parametrize("kind", ["bool", "float", "none", "three axes"])
def test_masks_of_the_fused_call(kind):
    """Also rows that may look at nothing, which are zero."""

    class Masked(nn.Module):
        def forward(self, ids):
            query = torch.sin(ids[..., None] * torch.arange(1.0, 9.0))[:, None].expand(-1, HEADS, -1, -1)
            mask = ~above(ids.shape[1])
            mask[5] = False
            mask = {"bool": mask, "float": torch.zeros(mask.shape).masked_fill(~mask, -torch.inf)}.get(kind)
            if kind == "three axes":
                query = query.reshape(-1, *query.shape[2:])
            self.used = torch.nn.functional.scaled_dot_product_attention(
                query, query, torch.eye(24).expand_as(query @ query.mT), mask
            )
            return self.used

    model = Masked()
    layers = seen(model)[1]
    with torch.no_grad():
        expected = model(IDS).view(3, HEADS, 24, 24)
    torch.testing.assert_close(layers[0].weights, expected, atol=1e-6, rtol=0)
    assert bool((layers[0].weights[:, :, 5].sum(-1) == 0).all()) == (kind in ("bool", "float"))


def test_shared_keys_and_another_scale():
    class Shared(nn.Module):
        def forward(self, ids):
            query = torch.sin(ids[:, None, :, None] * torch.arange(1.0, 33.0).view(4, 1, 8))
            key = query[:, ::2]
            eye = torch.eye(24).expand(3, 2, -1, -1)
            return torch.nn.functional.scaled_dot_product_attention(query, key, eye, is_causal=True, scale=0.7, enable_gqa=True)

    layers = seen(Shared())[1]
    torch.testing.assert_close(layers[0].weights, Shared()(IDS), atol=1e-6, rtol=0)
    assert layers[0].key.shape == layers[0].query.shape == (3, 4, 24, 8)


def test_half_precision_is_recomputed_in_single_precision():
    model = made(Fused).bfloat16()
    whole = copy.deepcopy(model).float()
    found = seen(model)[1][0].weights
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, seen(whole)[1][0].weights, atol=0.05, rtol=0)
    torch.testing.assert_close(found.sum(-1), torch.ones(3, HEADS, 24), atol=1e-5, rtol=0)


def weights_of(layer: nn.MultiheadAttention, x):
    return layer(x, x, x, attn_mask=above(24), average_attn_weights=False)[1]


def test_attention_of_torch():
    model = made(OfTorch)
    logits, layers = seen(model)
    assert [one.path for one in layers] == ["blocks.0.attn.inner", "blocks.1.attn.inner"]
    with torch.no_grad():
        x = model.wte(IDS) + model.wpe(torch.arange(24))
        block = model.blocks[0]
        torch.testing.assert_close(layers[0].weights, weights_of(block.attn.inner, block.before(x)), atol=1e-6, rtol=0)
        torch.testing.assert_close(logits, model(IDS), atol=1e-5, rtol=0)


@pytest.mark.parametrize("first", [True, False])
def test_encoder_layer_with_its_fast_path(first):
    """In evaluation mode an encoder layer is one fused call, which would hide the attention."""

    class Encoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.wte = nn.Embedding(VOCABULARY, WIDTH)
            layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 32, batch_first=first)
            self.stack = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
            self.head = nn.Linear(WIDTH, VOCABULARY)

        def forward(self, ids):
            x = self.wte(ids if first else ids.T)
            found = self.head(self.stack(x, mask=above(ids.shape[1])))
            return found if first else found.transpose(0, 1)

    torch.manual_seed(0)
    model = Encoder().eval()
    before = torch.backends.mha.get_fastpath_enabled()
    logits, layers = seen(model)
    assert torch.backends.mha.get_fastpath_enabled() == before
    assert [one.path for one in layers] == [f"stack.layers.{i}.self_attn" for i in range(2)]
    with torch.no_grad():
        x = model.wte(IDS if first else IDS.T)
        torch.testing.assert_close(layers[0].weights, weights_of(model.stack.layers[0].self_attn, x), atol=1e-6, rtol=0)
        torch.testing.assert_close(logits, model(IDS), atol=1e-5, rtol=0)


def test_attention_that_is_not_seen_is_refused_by_name():
    with pytest.raises(InputError, match=r"no attention is seen in Gpt: .*ss.Recorder"):
        tried(made(ByHand), IDS, None)


def test_attention_to_another_sequence_is_passed_over():
    class Crossed(nn.Module):
        def __init__(self):
            super().__init__()
            self.own, self.cross = (nn.MultiheadAttention(WIDTH, HEADS, batch_first=True) for _ in range(2))
            self.wte, self.memory = nn.Embedding(VOCABULARY, WIDTH), nn.Parameter(torch.randn(7, WIDTH))

        def forward(self, ids):
            x = self.wte(ids)
            x = x + self.own(x, x, x)[0]
            memory = self.memory.expand(len(ids), -1, -1)
            return x + self.cross(x, memory, memory)[0]

    assert [one.path for one in seen(Crossed())[1]] == ["own"]


def test_probabilities_of_tokens_and_gates_are_no_attention():
    class Gated(nn.Module):
        def __init__(self):
            super().__init__()
            self.gpt, self.gate = made(Fused), nn.Linear(VOCABULARY, 25)

        def forward(self, ids):
            logits = self.gpt(ids)
            gates = torch.softmax(self.gate(logits), dim=-1)  # (3, 24, 25): as large as a pattern with a sink
            return torch.softmax(logits, dim=-1) * gates.sum(-1, keepdim=True) + torch.softmax(logits.mT, dim=1).mT

    assert len(seen(Gated())[1]) == 2


def test_positional_weights_hold_for_each_sequence():
    class Positional(nn.Module):
        def __init__(self, shape):
            super().__init__()
            torch.manual_seed(0)
            self.scores, self.wte = nn.Parameter(torch.randn(shape)), nn.Embedding(VOCABULARY, 24)

        def forward(self, ids):
            return torch.softmax(self.scores, dim=-1) @ self.wte(ids)[:, None]

    for shape, heads in (((24, 24), 1), ((1, 5, 24, 24), 5)):
        model = Positional(shape)
        weights = seen(model)[1][0].weights
        assert weights.shape == (3, heads, 24, 24)
        expected = torch.softmax(model.scores, dim=-1).expand(3, heads, 24, 24)
        torch.testing.assert_close(weights, expected)


def test_a_module_that_is_used_twice_is_two_layers():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.wte, self.attn = nn.Embedding(VOCABULARY, WIDTH), Fused()

        def forward(self, ids):
            x = self.wte(ids)
            return self.attn(self.attn(x))

    assert [one.path for one in seen(Tied())[1]] == ["attn", "attn #2"]


def test_single_heads_one_after_another_are_layers():
    """Only heads that get the same input are of one layer."""
    model = nn.Sequential(nn.Embedding(VOCABULARY, WIDTH), Head(), nn.Linear(4, WIDTH), Head())
    assert [one.path for one in seen(model)[1]] == ["1", "3"]


def test_a_model_that_was_changed_is_refused():
    model = made()
    forward, _, plan = tried(model, IDS, None)
    del model.blocks[1]
    with pytest.raises(InputError, match="1 patterns of attention are seen, 2 at first: the model was changed"):
        attend(model, IDS, forward, plan)


def test_no_plan_of_nothing():
    assert Plan.of([]).layers([]) == []
    assert Capture(3, CONTEXT).patterns == []


class HeadsFirst(FourAxes):
    """(head, batch, query, key): which axis is which shows only in how they move."""

    def attend(self, query, key, value):
        turned = [part.transpose(0, 1) for part in (query, key, value)]
        return super().attend(*turned).transpose(0, 1)


def test_heads_in_the_first_axis_are_refused_where_there_are_as_many_as_sequences():
    torch.manual_seed(0)
    with pytest.raises(InputError, match="does not have the sequences in its first axis"):
        tried(made(HeadsFirst), tokens(HEADS, 24), None)


def test_a_softmax_over_features_is_no_attention():
    class Linear(nn.Module):
        """Linear attention: keys are normalised over their 24 features."""

        def __init__(self):
            super().__init__()
            self.wte, self.head = nn.Embedding(VOCABULARY, 24), nn.Linear(24, VOCABULARY)

        def forward(self, ids):
            x = self.wte(ids)
            return self.head(x.softmax(-1) * x.cumsum(1))

    with pytest.raises(InputError, match="a softmax over 24 features is no attention"):
        tried(Linear(), tokens(3, 24), None)


def test_tokens_that_are_read_and_never_predicted():
    class Padded(nn.Module):
        """Three rows of the embedding, such as padding, have no logit."""

        def __init__(self):
            super().__init__()
            self.wte, self.attn, self.head = nn.Embedding(VOCABULARY + 3, WIDTH), Fused(), nn.Linear(WIDTH, VOCABULARY)

        def forward(self, ids):
            return self.head(self.attn(self.wte(ids)))

    torch.manual_seed(0)
    frame = Observer(Padded(), tokens(4, 24)).frame()
    assert np.isfinite(frame["loss"])
    assert np.isfinite(frame["repeat_loss"])


def test_the_token_embedding_is_the_one_that_gets_the_tokens():
    class Odd(nn.Module):
        """A table of places with more rows than there are tokens, and a name that tells nothing."""

        def __init__(self):
            super().__init__()
            self.one, self.other = nn.Embedding(VOCABULARY + 20, WIDTH), nn.Embedding(VOCABULARY, WIDTH)
            self.attn, self.head = Fused(), nn.Linear(WIDTH, VOCABULARY + 20)

        def forward(self, ids):
            return self.head(self.attn(self.one(torch.arange(ids.shape[1])) + self.other(ids)))

    torch.manual_seed(0)
    observer = Observer(Odd(), make_probe(tokens(4, 24), nn.Embedding(VOCABULARY, WIDTH)))
    assert observer.parameters.embedding == "other.weight"
