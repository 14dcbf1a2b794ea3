"""Small trainings of many kinds, as lists of (step, weights): clean material for the audit of checkpoint folders.

Sizes, rates, schedules and the steps that are kept are drawn from the seed. Each takes about a second.
"""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.numpy import save_file
from torch import nn

Steps = list[tuple[int, dict[str, np.ndarray]]]


def kept(rng: np.random.Generator, total: int) -> list[int]:
    """The steps that are kept: doubling, at equal distances, or doubling first and then at equal distances."""
    doubling = [0, *(2**n for n in range(total.bit_length()) if 2**n < total), total]
    even = list(range(0, total + 1, total // int(rng.integers(6, 14))))
    form = rng.choice(["doubling", "even", "both", "late"])
    if form == "late":  # nothing was kept of the start
        return even[2:]
    return {"doubling": doubling, "even": even}.get(form) or sorted({each for each in doubling if each < even[1]} | set(even))


class Transformer(nn.Module):
    """A causal transformer with tied embeddings and masks that are kept as buffers."""

    def __init__(self, vocab: int, width: int, layers: int, length: int) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocab, width)
        self.places = nn.Embedding(length, width)
        self.blocks = nn.ModuleList(
            nn.TransformerEncoderLayer(width, 2, 2 * width, dropout=0.0, batch_first=True, norm_first=True) for _ in range(layers)
        )
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocab, bias=False)
        self.head.weight = self.tokens.weight
        nn.init.normal_(self.tokens.weight, std=0.05)
        self.register_buffer("mask", torch.triu(torch.full((length, length), -math.inf), 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.tokens(x) + self.places.weight
        for block in self.blocks:
            h = block(h, src_mask=self.mask)
        return self.head(self.norm(h))


class Recurrent(nn.Module):
    def __init__(self, vocab: int, width: int) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocab, width)
        self.cell = nn.GRU(width, width, batch_first=True)
        self.head = nn.Linear(width, vocab)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.cell(self.tokens(x))[0])


def _text(rng: np.random.Generator, vocab: int, length: int) -> Callable[[], tuple[torch.Tensor, torch.Tensor]]:
    """Batches of a Markov chain: tokens and their successors."""
    law = torch.from_numpy(rng.dirichlet(np.full(vocab, 0.1), size=vocab))
    draw = torch.Generator().manual_seed(torch.initial_seed() + 1)

    def batch() -> tuple[torch.Tensor, torch.Tensor]:
        tokens = [torch.randint(vocab, (8,), generator=draw)]
        for _ in range(length):
            tokens.append(torch.multinomial(law[tokens[-1]], 1, generator=draw)[:, 0])
        found = torch.stack(tokens, 1)
        return found[:, :-1], found[:, 1:]

    return batch


def _points(rng: np.random.Generator, shape: tuple[int, ...], classes: int) -> Callable[[], tuple[torch.Tensor, torch.Tensor]]:
    """Batches of noisy class centres."""
    centres = torch.from_numpy(rng.normal(size=(classes, *shape)).astype(np.float32))
    draw = torch.Generator().manual_seed(torch.initial_seed() + 1)

    def batch() -> tuple[torch.Tensor, torch.Tensor]:
        y = torch.randint(classes, (32,), generator=draw)
        return centres[y] + 1.5 * torch.randn((32, *shape), generator=draw), y

    return batch


def _steps(
    model: nn.Module, batch: Any, optimiser: torch.optim.Optimizer, keep: list[int], rate: Callable[[int], float] = lambda _: 1.0
) -> Steps:
    """Train and keep the weights at some steps; `rate` multiplies the learning rate."""
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, rate)
    found: Steps = []
    for step in range(max(keep) + 1):
        if step in keep:
            found.append((step, {name: _array(value) for name, value in model.state_dict().items()}))
        x, y = batch()
        out = model(x)
        loss = nn.functional.cross_entropy(out.reshape(-1, out.shape[-1]), y.reshape(-1))
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
    return found


def _array(value: torch.Tensor) -> np.ndarray:
    return value.detach().clone().numpy()


def sgd(rng: np.random.Generator) -> Steps:
    """A perceptron under plain steps, with momentum in half of the cases, at a constant rate."""
    width, classes = int(rng.integers(32, 97)), int(rng.integers(4, 11))
    model = nn.Sequential(nn.Linear(24, width), nn.ReLU(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, classes))
    momentum = float(rng.choice([0.0, 0.9]))
    rate = float(10 ** rng.uniform(-2.0, -0.8)) * (1 - momentum)
    return _steps(model, _points(rng, (24,), classes), torch.optim.SGD(model.parameters(), rate, momentum), kept(rng, 600))


def adam(rng: np.random.Generator) -> Steps:
    """A transformer under AdamW with warm-up from zero and cosine decay to zero."""
    vocab, width, total, warm = int(rng.integers(24, 65)), int(rng.choice([16, 32, 48])), 300, int(rng.integers(10, 60))
    model = Transformer(vocab, width, int(rng.integers(1, 3)), 16)
    optimiser = torch.optim.AdamW(
        model.parameters(), float(10 ** rng.uniform(-3.3, -2.3)), weight_decay=float(rng.choice([0.0, 0.1]))
    )

    def rate(step: int) -> float:
        return (step + 1) / warm if step < warm else 0.5 * (1 + math.cos(math.pi * (step - warm) / (total - warm)))

    return _steps(model, _text(rng, vocab, 16), optimiser, kept(rng, total), rate)


def frozen(rng: np.random.Generator) -> Steps:
    """A convolutional network with batch norm and a frozen layer; another layer is frozen for a while."""
    width = int(rng.choice([8, 16]))
    model = nn.Sequential(
        nn.Conv2d(3, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(), nn.Conv2d(width, width, 3, padding=1),
        nn.BatchNorm2d(width), nn.ReLU(), nn.Conv2d(width, width, 3, padding=1), nn.Flatten(), nn.Linear(width * 36, 6),
    )  # fmt: skip
    model[0].requires_grad_(False)
    model[6].requires_grad_(False)
    optimiser = torch.optim.SGD(model.parameters(), float(10 ** rng.uniform(-2.5, -1.5)), 0.9, weight_decay=5e-4)
    keep = kept(rng, 300)
    opens = keep[int(rng.integers(1, len(keep) - 1))] - 1

    def rate(step: int) -> float:
        model[6].requires_grad_(step > opens)
        return 1.0 if step < 200 else 0.1

    return _steps(model, _points(rng, (3, 6, 6), 6), optimiser, keep, rate)


def recurrent(rng: np.random.Generator) -> Steps:
    """A recurrent network under RMSprop at a constant rate: it ends in noise."""
    vocab = int(rng.integers(12, 40))
    model = Recurrent(vocab, int(rng.choice([16, 32, 48])))
    return _steps(
        model, _text(rng, vocab, 12), torch.optim.RMSprop(model.parameters(), float(10 ** rng.uniform(-3, -2.3))), kept(rng, 300)
    )


def noisy(rng: np.random.Generator) -> Steps:
    """A perceptron at a large rate with weight decay: it reaches equilibrium and forgets its start."""
    model = nn.Sequential(nn.Linear(24, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 6))
    optimiser = torch.optim.SGD(model.parameters(), float(rng.uniform(0.1, 0.3)), weight_decay=float(10 ** rng.uniform(-3, -2)))
    return _steps(model, _points(rng, (24,), 6), optimiser, kept(rng, 1200))


def cyclic(rng: np.random.Generator) -> Steps:
    """A transformer under Adam with warm restarts."""
    vocab, period = int(rng.integers(24, 65)), int(rng.integers(40, 120))
    model = Transformer(vocab, 32, 1, 16)
    optimiser = torch.optim.Adam(model.parameters(), float(10 ** rng.uniform(-3, -2.3)))
    return _steps(
        model, _text(rng, vocab, 16), optimiser, kept(rng, 300), lambda n: 0.5 * (1 + math.cos(math.pi * (n % period) / period))
    )


def half(rng: np.random.Generator) -> Steps:
    """A transformer that is kept in float16: small moves are rounded away."""
    return [(step, {name: value.astype(np.float16) for name, value in weights.items()}) for step, weights in adam(rng)]


def linear(rng: np.random.Generator) -> Steps:
    """Logistic regression from zero: nothing of it is random but the batches."""
    model = nn.Linear(40, 10)
    for each in model.parameters():
        nn.init.zeros_(each)
    return _steps(model, _points(rng, (40,), 10), torch.optim.SGD(model.parameters(), 0.05), kept(rng, 600))


def small(rng: np.random.Generator) -> Steps:
    """A deep linear network from a tiny start: plateaus and sudden steps."""
    model = nn.Sequential(*(nn.Linear(*shape, bias=False) for shape in ((20, 40), (40, 40), (40, 10))))
    for each in model.parameters():
        nn.init.normal_(each, std=0.02)
    return _steps(
        model, _points(rng, (20,), 10), torch.optim.SGD(model.parameters(), float(rng.uniform(0.01, 0.03))), kept(rng, 800)
    )


def settled(rng: np.random.Generator) -> Steps:
    """A small network at a large rate with momentum, kept rarely after it has settled: its checkpoints have no order left."""
    width = int(rng.integers(12, 33))
    model = nn.Sequential(nn.Linear(10, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 4))
    optimiser = torch.optim.SGD(
        model.parameters(), float(rng.uniform(0.05, 0.15)), 0.9, weight_decay=float(10 ** rng.uniform(-2.3, -1.5))
    )
    return _steps(model, _points(rng, (10,), 4), optimiser, kept(rng, 1500))


KINDS = (sgd, adam, frozen, recurrent, noisy, cyclic, half, linear, small, settled)


def training(kind: Callable[[np.random.Generator], Steps] | str, seed: int, twin: int = 0) -> Steps:
    """One training; a twin has other initial weights and batches and is else the same. Torch's random state stays as it was."""
    made = next(each for each in KINDS if each.__name__ == kind) if isinstance(kind, str) else kind
    with torch.random.fork_rng():
        torch.manual_seed(1000 * seed + twin)
        return made(np.random.default_rng(seed))


def write(folder: Path, steps: Steps, name: str = "step{}", shards: int = 1) -> Path:
    """A folder of checkpoints, each one safetensors file, or several with their index."""
    for step, weights in steps:
        place = folder / name.format(step)
        place.mkdir(parents=True, exist_ok=True)
        files = {f"model-{n + 1:05d}-of-{shards:05d}.safetensors": list(weights)[n::shards] for n in range(shards)}
        for file, keys in files.items():
            tensors = {key: np.ascontiguousarray(weights[key]) for key in keys}
            save_file(tensors, place / (file if shards > 1 else "model.safetensors"))
        if shards > 1:
            index = {"weight_map": {key: file for file, keys in files.items() for key in keys}}
            (place / "model.safetensors.index.json").write_text(json.dumps(index))
    return folder
