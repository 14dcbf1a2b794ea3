"""Train a small transformer in a loop of your own, watch it, and open its page.

    python examples/watch_own_loop.py

It needs `pip install 'stagescope[torch]'` and no file: the text is the reference manual inside Python. It takes about a minute.
Three lines make the training watched; they end with `# watched`.
"""

import pydoc_data.topics

import torch
import torch.nn.functional as F
from torch import nn

import stagescope as ss

STEPS, BATCH, LENGTH, WIDTH, HEADS, LAYERS = 1500, 16, 64, 64, 4, 2

text = "\n".join(pydoc_data.topics.topics.values())
letters = sorted(set(text))
stream = torch.tensor([letters.index(letter) for letter in text[:400_000]])
train, held_out = stream[:-10_000], stream[-10_000:]


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.before, self.after = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        heads = self.qkv(self.before(x)).view(*x.shape[:2], 3, HEADS, -1).permute(2, 0, 3, 1, 4)  # 3, batch, head, token, width
        mixed = F.scaled_dot_product_attention(*heads, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).flatten(2))
        return x + self.mlp(self.after(x))


class GPT(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(len(letters), WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, len(letters), bias=False)
        self.apply(lambda module: [nn.init.normal_(p, std=0.02) for p in module.parameters(recurse=False) if p.ndim > 1])

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.tokens(ids) + self.places(torch.arange(ids.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def batch(source: torch.Tensor, size: int) -> tuple[torch.Tensor, torch.Tensor]:
    starts = torch.randint(0, len(source) - LENGTH - 1, (size, 1))
    windows = source[starts + torch.arange(LENGTH + 1)]
    return windows[:, :-1], windows[:, 1:]


torch.manual_seed(0)
model = GPT()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 100))
probe = batch(held_out, 6)[0]
options = {"tokenizer": letters, "optimizer": optimizer, "steps": STEPS, "overwrite": True}
with ss.watch(model, probe=probe, out="runs/own", **options) as watcher:  # watched
    for step in range(STEPS):
        inputs, targets = batch(train, BATCH)
        loss = F.cross_entropy(model(inputs).flatten(0, 1), targets.flatten())
        optimizer.zero_grad()
        loss.backward()
        watcher.step(loss)  # watched
        optimizer.step()
        schedule.step()
        if step % 300 == 0:
            print(f"step {step:5} loss {loss.item():.3f}", flush=True)

run = watcher.run  # watched
print(ss.stages(run))
print(ss.report(run, "own.html"))
