"""Small transformers to be watched: a GPT, a GPT-2 of transformers, an attention-only model; and which weights make scores."""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

IGNORED = -1
"""A target that is not part of the loss."""


class CausalSelfAttention(nn.Module):
    """Attention with one projection for queries, keys and values, through the fused kernel of torch."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.c_attn = nn.Linear(width, 3 * width)
        self.c_proj = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        parts = self.c_attn(x).view(batch, length, 3, self.heads, width // self.heads)
        query, key, value = parts.permute(2, 0, 3, 1, 4)  # each (batch, head, token, width of a head)
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        return self.c_proj(mixed.transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    """Attention, then a perceptron, each on the normalised stream and added to it."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attn = CausalSelfAttention(width, heads)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    """A GPT with learned positions; the embedding of tokens is also the last layer."""

    def __init__(self, vocabulary: int, layers: int, heads: int, width: int, length: int) -> None:
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.h = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.ln_f = nn.LayerNorm(width)
        self.lm_head = nn.Linear(width, vocabulary, bias=False)
        self.apply(_small)
        self.lm_head.weight = self.wte.weight

    def forward(self, idx: Tensor, targets: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
        x = self.wte(idx) + self.wpe(torch.arange(idx.shape[1], device=idx.device))
        for block in self.h:
            x = block(x)
        logits = self.lm_head(self.ln_f(x))
        return logits, None if targets is None else cross_entropy(logits, targets)


class PlainAttention(nn.Module):
    """Attention written out, with a projection each for queries, keys and values."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.out = (nn.Linear(width, width, bias=False) for _ in range(4))

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        query, key, value = (
            layer(x).view(batch, length, self.heads, width // self.heads).transpose(1, 2)
            for layer in (self.query, self.key, self.value)
        )
        later = torch.ones(length, length, dtype=torch.bool, device=x.device).triu(1)
        scores = (query @ key.transpose(-2, -1) / math.sqrt(width // self.heads)).masked_fill(later, -math.inf)
        return self.out((scores.softmax(-1) @ value).transpose(1, 2).reshape(batch, length, width))


class AttentionOnly(nn.Module):
    """Layers of attention without perceptrons, learned positions, a last layer of its own."""

    def __init__(self, vocabulary: int, layers: int, heads: int, width: int, length: int) -> None:
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(layers))
        self.attention = nn.ModuleList(PlainAttention(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.unembedding = nn.Linear(width, vocabulary, bias=False)
        self.apply(_small)

    def forward(self, idx: Tensor, targets: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
        x = self.tokens(idx) + self.positions(torch.arange(idx.shape[1], device=idx.device))
        for norm, attention in zip(self.norms, self.attention, strict=True):
            x = x + attention(norm(x))
        logits = self.unembedding(self.norm(x))
        return logits, None if targets is None else cross_entropy(logits, targets)


def _small(module: nn.Module) -> None:
    """Normal weights of standard deviation 0.02, zero biases: as in GPT-2."""
    if isinstance(module, nn.Linear | nn.Embedding):
        nn.init.normal_(module.weight, std=0.02)
    if isinstance(module, nn.Linear) and module.bias is not None:
        nn.init.zeros_(module.bias)


def gpt2(vocabulary: int, layers: int, heads: int, width: int, length: int) -> nn.Module:
    """GPT-2 of transformers with random weights and no dropout."""
    from transformers import GPT2Config, GPT2LMHeadModel  # a second of import that two of three tasks do not need

    sizes = {"vocab_size": vocabulary, "n_layer": layers, "n_head": heads, "n_embd": width, "n_positions": length}
    off = {
        "resid_pdrop": 0.0,
        "embd_pdrop": 0.0,
        "attn_pdrop": 0.0,
        "use_cache": False,
        "activation_function": "gelu_pytorch_tanh",
    }
    return GPT2LMHeadModel(GPT2Config(**sizes, **off, bos_token_id=0, eos_token_id=0))


def cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    """Mean loss of targets that are not `IGNORED`, nats."""
    return functional.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=IGNORED)


def logits_of(model: nn.Module, idx: Tensor) -> Tensor:
    """The logits of any of these models."""
    out = model(idx)
    return out[0] if isinstance(out, tuple) else out.logits


def score_weights(model: nn.Module) -> dict[nn.Parameter, Tensor]:
    """Parameters that make queries and keys, each with a mask of its entries that do."""
    masks = {}
    for name, parameter in model.named_parameters():
        kind = name.split(".")[-2]
        if kind in ("query", "key"):
            masks[parameter] = torch.ones_like(parameter, dtype=torch.bool)
        elif kind == "c_attn":  # (3 width, width) in torch, (width, 3 width) in GPT-2 of transformers, (3 width,) in biases
            axis = max(range(parameter.ndim), key=lambda i: parameter.shape[i])
            mask = torch.zeros_like(parameter, dtype=torch.bool)
            mask.narrow(axis, 0, 2 * parameter.shape[axis] // 3).fill_(True)
            masks[parameter] = mask
    return masks
