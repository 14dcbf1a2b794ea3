"""Small models of other people: each writes its attention in another way and keeps the weights it used in `used`."""

from types import SimpleNamespace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

VOCABULARY, WIDTH, HEADS, CONTEXT = 40, 16, 4, 32
SIZE = WIDTH // HEADS


def above(length: int) -> Tensor:
    return torch.ones(length, length, dtype=torch.bool).triu(1)


class Attention(nn.Module):
    """Queries, keys and values of all heads; subclasses attend."""

    def __init__(self, dropout: float = 0.0) -> None:
        super().__init__()
        self.qkv, self.out, self.dropout = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH), dropout
        self.used: Tensor | None = None

    def forward(self, x: Tensor) -> Tensor:
        batch, length, _ = x.shape
        query, key, value = (part.view(batch, length, HEADS, SIZE).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1))
        mixed = self.attend(query * SIZE**-0.5, key, value)
        return self.out(mixed.transpose(1, 2).reshape(batch, length, WIDTH))

    def attend(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        raise NotImplementedError


class Fused(Attention):
    def attend(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        dropout = self.dropout if self.training else 0.0
        return F.scaled_dot_product_attention(query, key, value, dropout_p=dropout, is_causal=True, scale=1.0)


class FourAxes(Attention):
    """(batch, head, query, key) and `F.softmax`."""

    def attend(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        scores = (query @ key.transpose(-2, -1)).masked_fill(above(query.shape[-2]), -torch.inf)
        self.used = F.softmax(scores, dim=-1)
        return self.used @ value


class Flattened(Attention):
    """(batch * heads, query, key) and the method of a tensor."""

    def attend(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        flat = [part.reshape(-1, *part.shape[2:]) for part in (query, key, value)]
        scores = torch.baddbmm(above(query.shape[-2]).float() * -1e30, flat[0], flat[1].transpose(1, 2))
        weights = scores.softmax(-1)
        self.used = weights.view(query.shape[0], HEADS, *weights.shape[1:])
        return torch.bmm(weights, flat[2]).view(value.shape)


class ByModule(Attention):
    """A module nn.Softmax and `einsum`; heads first."""

    def __init__(self, dropout: float = 0.0) -> None:
        super().__init__(dropout)
        self.softmax = nn.Softmax(dim=-1)

    def attend(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        scores = torch.einsum("bhqd,bhkd->hbqk", query, key).masked_fill(above(query.shape[-2]), -torch.inf)
        weights = self.softmax(scores)
        self.used = weights.transpose(0, 1)
        return torch.einsum("hbqk,bhkd->bhqd", weights, value)


class Grouped(Attention):
    """Two groups of two heads in an axis of their own."""

    def attend(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        query, key, value = (part.unflatten(1, (2, 2)) for part in (query, key, value))
        scores = torch.einsum("bghqd,bghkd->bghqk", query, key).masked_fill(above(query.shape[-2]), -torch.inf)
        weights = torch.softmax(scores, dim=-1)
        self.used = weights.flatten(1, 2)
        return (weights @ value).flatten(1, 2)


class WithSink(Attention):
    """A learned score of attending to nothing stands behind the keys."""

    def __init__(self, dropout: float = 0.0) -> None:
        super().__init__(dropout)
        self.sinks = nn.Parameter(torch.randn(HEADS))

    def attend(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        scores = (query @ key.transpose(-2, -1)).masked_fill(above(query.shape[-2]), -torch.inf)
        sinks = self.sinks.view(1, HEADS, 1, 1).expand(*scores.shape[:3], 1)
        self.used = F.softmax(torch.cat([scores, sinks], dim=-1), dim=-1)[..., :-1]
        return self.used @ value


class ByHand(Attention):
    """Exponentials and their sum: no call that can be seen."""

    def attend(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        scores = (query @ key.transpose(-2, -1)).masked_fill(above(query.shape[-2]), -torch.inf)
        weights = scores.exp()
        return weights / weights.sum(-1, keepdim=True) @ value


class Head(nn.Module):
    """One head, as in lectures."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(WIDTH, SIZE, bias=False) for _ in range(3))
        self.used: Tensor | None = None

    def forward(self, x: Tensor) -> Tensor:
        scores = self.query(x) @ self.key(x).transpose(-2, -1) * SIZE**-0.5
        self.used = F.softmax(scores.masked_fill(above(x.shape[1]), -torch.inf), dim=-1)
        return self.used @ self.value(x)


class Listed(nn.Module):
    """A list of single heads."""

    def __init__(self, dropout: float = 0.0) -> None:
        super().__init__()
        self.heads = nn.ModuleList(Head() for _ in range(HEADS))

    @property
    def used(self) -> Tensor:
        return torch.stack([head.used for head in self.heads], dim=1)

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([head(x) for head in self.heads], dim=-1)


class OfTorch(nn.Module):
    """nn.MultiheadAttention with a causal mask, without weights."""

    def __init__(self, dropout: float = 0.0) -> None:
        super().__init__()
        self.inner = nn.MultiheadAttention(WIDTH, HEADS, dropout=dropout, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(x, x, x, attn_mask=above(x.shape[1]), need_weights=False, is_causal=True)[0]


class Block(nn.Module):
    def __init__(self, attention: type[nn.Module], dropout: float) -> None:
        super().__init__()
        self.before, self.attn, self.after = nn.LayerNorm(WIDTH), attention(dropout), nn.LayerNorm(WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 2 * WIDTH), nn.GELU(), nn.Dropout(dropout), nn.Linear(2 * WIDTH, WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.before(x))
        return x + self.mlp(self.after(x))


class Gpt(nn.Module):
    """A language model of two layers. Its table of positions has more rows than its vocabulary."""

    def __init__(self, attention: type[nn.Module] = Fused, dropout: float = 0.0, context: int = 64) -> None:
        super().__init__()
        self.wte, self.wpe = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(context, WIDTH)
        self.blocks = nn.ModuleList(Block(attention, dropout) for _ in range(2))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, ids: Tensor) -> Any:
        x = self.wte(ids) + self.wpe(torch.arange(ids.shape[1], device=ids.device))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


class Scripted(Gpt):
    """As in a known training script: logits and loss, and without targets only the logits of the last position."""

    def __init__(self) -> None:
        super().__init__(dropout=0.1)
        self.config = SimpleNamespace(block_size=64, vocab_size=VOCABULARY)

    def forward(self, ids: Tensor, targets: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
        logits = super().forward(ids)
        if targets is None:
            return logits[:, [-1], :], None
        return logits, F.cross_entropy(logits.view(-1, VOCABULARY), targets.view(-1), ignore_index=-1)


def made(attention: type[nn.Module] = Fused, dropout: float = 0.0, seed: int = 0, scale: float = 0.3, **more: int) -> Gpt:
    """A model with weights large enough that its attention is far from uniform."""
    torch.manual_seed(seed)
    model = Gpt(attention, dropout, **more)
    for value in model.parameters():
        nn.init.normal_(value, std=scale)
    return model


def tokens(sequences: int = 6, length: int = 24, seed: int = 1, vocabulary: int = VOCABULARY) -> Tensor:
    return torch.randint(0, vocabulary, (sequences, length), generator=torch.Generator().manual_seed(seed))


def equal(one: nn.Module, other: nn.Module) -> bool:
    """Whether two models have the same parameters and buffers, bit by bit."""
    first, second = one.state_dict(), other.state_dict()
    return first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)
