# %% [markdown]
# # Focus and dilution: theorem and experiment
#
# One attention layer learns a chain of four tokens. With Adam, as published, every query first looks at the frequent token
# alone, then leaves it, and the same happens with token 1 and token 2. Gradient flow, which the theorems are about, hardly
# focuses on the same chain from the same start.

# %%
import matplotlib.pyplot as plt

import stagescope as ss
from stagescope.papers.focus_dilution import last_token_losses, token_curves

adam = token_curves(ss.run_study("focus-dilution", "published", steps=1500, frames=501))
flow = token_curves(ss.run_study("focus-dilution", "published-flow", until=200.0))

figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), sharey=True, layout="constrained")
for ax, curves, clock in zip(axes, (adam, flow), ("step (Adam)", "time t (gradient flow)"), strict=True):
    for query in range(4):
        ax.plot(curves.time, curves.attention[:, query, 0], label=f"query {query}")
    ax.axhline(curves.pi[0], color="0.6", lw=0.8, ls="--")
    ax.set(xscale="log", xlim=(curves.time[-1] / 60, curves.time[-1]), xlabel=clock)
axes[0].set(title="experiment, as published", ylabel="attention on token 0")
axes[1].set(title="theorem")
axes[1].legend(frameon=False, loc="lower left")
plt.show()

# %% [markdown]
# Losses by the last token of the context, as in figure 1 of the paper: while all queries focus on token 0, only sequences
# that end with it gain. Then token 1 is learned, then token 2, then token 3.

# %%
losses = last_token_losses(adam)

figure, axes = plt.subplots(figsize=(7, 3.4), layout="constrained")
for token in range(4):
    axes.plot(adam.time, losses.by_token[:, token], label=f"last token {token}")
axes.set(xscale="log", xlim=(20, None), xlabel="step (Adam)", ylabel="loss of unseen sequences")
axes.legend(frameon=False)
plt.show()
