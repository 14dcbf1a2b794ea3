"""The published student and its gradients against a PyTorch module written from the paper's description, in float64."""

import math

import numpy as np
import pytest
import torch

import stagescope as ss
from stagescope.papers.incremental.transformer_parts import Room
from stagescope.papers.incremental.transformer_passes import kept_entries, transformer_pass

CHAIN = ss.LaggedChain.spans(6, spans=(1, 2), scale=2.0)


class Masked(torch.nn.Module):
    """Dropout with masks that are given."""

    def __init__(self, rate, masks):
        super().__init__()
        self.rate, self.masks = rate, masks

    def forward(self, x):
        return x * torch.tensor(self.masks.pop(0)).reshape(x.shape) / (1 - self.rate) if self.masks else x


class Block(torch.nn.Module):
    """x = LN(x + heads(x)), x = LN(x + MLP(x)); one matrix each of queries, keys, values and outputs for all heads, no bias."""

    def __init__(self, width, heads, hidden, drop):
        super().__init__()
        self.heads, self.drop = heads, drop
        self.q, self.k, self.v, self.o = (torch.nn.Linear(width, width, bias=False) for _ in range(4))
        self.up, self.down = torch.nn.Linear(width, hidden), torch.nn.Linear(hidden, width)
        self.norm1, self.norm2 = torch.nn.LayerNorm(width), torch.nn.LayerNorm(width)

    def forward(self, x):
        count, length, width = x.shape
        q, k, v = (m(x).reshape(count, length, self.heads, -1).transpose(1, 2) for m in (self.q, self.k, self.v))
        scores = q @ k.transpose(2, 3) / math.sqrt(width // self.heads)
        future = torch.ones(length, length, dtype=torch.bool).triu(1)
        weights = scores.masked_fill(future, -math.inf).softmax(-1)
        weights = self.drop(weights.transpose(1, 2)).transpose(1, 2)  # masks are drawn row by row
        mixed = (weights @ v).transpose(1, 2).reshape(count, length, width)
        x = self.norm1(x + self.drop(self.o(mixed)))
        return self.norm2(x + self.drop(self.down(torch.relu(self.up(x)))))


class Published(torch.nn.Module):
    """One-hot tokens through a matrix without bias, plus learned positions, dropout, blocks, and a matrix without bias."""

    def __init__(self, model, masks):
        super().__init__()
        self.drop = Masked(model.dropout, masks)
        self.embed = torch.nn.Linear(model.vocab, model.width, bias=False)
        self.places = torch.nn.Embedding(model.positions, model.width)
        self.blocks = torch.nn.ModuleList(Block(model.width, model.heads, model.mlp, self.drop) for _ in range(model.layers))
        self.out = torch.nn.Linear(model.width, model.vocab, bias=False)
        self.vocab = model.vocab

    def forward(self, tokens):
        x = self.embed(torch.nn.functional.one_hot(tokens, self.vocab).double())
        x = self.drop(x + self.places(torch.arange(tokens.shape[1])))
        for block in self.blocks:
            x = block(x)
        return self.out(x)

    def blocks_by_name(self, heads):
        """Every parameter under the name, and in the layout, of ours; a function, so that it serves gradients too."""
        named = {"E": (self.embed.weight, "t"), "P": (self.places.weight, ""), "U": (self.out.weight, "t")}
        for i, block in enumerate(self.blocks, start=1):
            named |= {f"{n}{i}": (getattr(block, n.lower()).weight, "in") for n in "QKV"} | {f"O{i}": (block.o.weight, "out")}
            named |= {f"M{i}": (block.up.weight, "t"), f"m{i}": (block.up.bias, "")}
            named |= {f"N{i}": (block.down.weight, "t"), f"n{i}": (block.down.bias, "")}
            for norm, part in ((block.norm1, f"heads{i}"), (block.norm2, f"mlp{i}")):
                named |= {f"gain_{part}": (norm.weight, ""), f"shift_{part}": (norm.bias, "")}
        return named


def ours(block, how, heads):
    """From PyTorch's (out, in) to ours: heads first, as (head, stream, inner) or (head, inner, stream)."""
    if how == "in":
        return np.swapaxes(block.T.reshape(block.shape[1], heads, -1), 0, 1)
    if how == "out":
        return block.T.reshape(heads, -1, block.shape[0])
    return block.T if how == "t" else block


def all_rows(mask, positions):
    """With rows before the scored ones, which ours leaves out of the last layer; they change nothing."""
    return np.concatenate([np.ones((len(mask), positions - mask.shape[1], mask.shape[2]), bool), mask], axis=1)


@pytest.mark.parametrize("dropout", [0.0, 0.3])
@pytest.mark.parametrize("layers", [1, 2])
def test_gradients_are_those_of_the_published_module(layers, dropout):
    sizes = {"vocab": 6, "heads": 3, "context": 4, "targets": 3, "width": 21, "mlp": 8}
    model = ss.Transformer(**sizes, layers=layers, dropout=dropout)
    loss = ss.TransformerLoss(model=model, process=CHAIN, sequences=11, seed=3, precision="float64", labels="hard")
    keys = np.random.default_rng(1).integers(2**64, size=len(model.drops), dtype=np.uint64) if dropout else None
    kept = [] if keys is None else [all_rows(mask, model.positions) for mask in kept_entries(model, keys, 11)]
    torch.manual_seed(0)
    module = Published(model, kept).double()
    for norm in (part for block in module.blocks for part in (block.norm1, block.norm2)):
        torch.nn.init.normal_(norm.weight)
        torch.nn.init.normal_(norm.bias)
    named = module.blocks_by_name(model.heads)
    params = {name: ours(block.detach().numpy(), how, model.heads) for name, (block, how) in named.items()}
    tokens = torch.tensor(loss.seen.by_sequence.astype(np.int64))
    logits = module(tokens[:, :-1])[:, model.context - 1 :]
    value = torch.nn.functional.cross_entropy(logits.reshape(-1, 6), tokens[:, model.context :].reshape(-1))
    value.backward()
    found = transformer_pass(model, params, loss.seen, Room("float64"), keys)
    assert found[0] == pytest.approx(float(value.detach()), abs=1e-12)
    assert set(found[1]) == set(named)
    for name, (block, how) in named.items():
        np.testing.assert_allclose(found[1][name], ours(block.grad.numpy(), how, model.heads), atol=1e-10, err_msg=name)
