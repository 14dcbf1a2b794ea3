# %% [markdown]
# # Your own PyTorch model
#
# A small transformer, trained in a loop of your own, is watched. Three lines are added to the training; it stays bitwise the
# same.
#
# The task: every sequence is a random block of tokens, said twice. The second half can be predicted only by looking back.

# %%
import torch
from torch import nn
from torch.nn.functional import cross_entropy, scaled_dot_product_attention

import stagescope as ss

torch.manual_seed(0)
torch.set_num_threads(1)  # the fastest for a model this small
TOKENS, HALF, WIDTH, HEADS = 12, 8, 32, 2


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.qkv, self.out = (
            nn.LayerNorm(WIDTH),
            nn.Linear(WIDTH, 3 * WIDTH),
            nn.Linear(WIDTH, WIDTH),
        )

    def forward(self, x):
        q, k, v = self.qkv(self.norm(x)).unflatten(-1, (3, HEADS, WIDTH // HEADS)).permute(2, 0, 3, 1, 4)
        return x + self.out(scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.places = nn.Embedding(TOKENS, WIDTH), nn.Embedding(2 * HALF, WIDTH)
        self.blocks, self.head = nn.Sequential(Block(), Block()), nn.Linear(WIDTH, TOKENS)

    def forward(self, ids):
        return self.head(self.blocks(self.tokens(ids) + self.places(torch.arange(ids.shape[1]))))


def batch(size):
    half = torch.randint(0, TOKENS, (size, HALF))
    return torch.cat([half, half], dim=1)


# %% [markdown]
# ## Training, watched

# %%
STEPS = 600
model = Transformer()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
with ss.watch(model, probe=batch(6), steps=STEPS, optimizer=optimizer) as watcher:  # watched
    for _ in range(STEPS):
        ids = batch(32)
        loss = cross_entropy(model(ids)[:, :-1].flatten(0, 1), ids[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        watcher.step(loss)  # watched
        optimizer.step()
run = watcher.run  # watched
run

# %% [markdown]
# ## What it did

# %%
for stage in ss.stages(run):
    print(stage)

# %%
for head in ss.heads(run):
    print(head)

# %%
import matplotlib.pyplot as plt

figure, axes = plt.subplots(figsize=(7, 3.2), layout="constrained")
axes.plot(run.step, run.series["loss"], lw=2)
axes.set(xlabel="step", ylabel="loss on the probe")
plt.show()

# %% [markdown]
# `ss.report(run, "mine.html")` writes the page of the run. [Watching a training](../watch.md) has the details; a Trainer of
# Lightning or transformers is watched by [one callback](../watch-trainers.md).
