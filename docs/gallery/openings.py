# %% [markdown]
# # Directions open one after another
#
# Singular values of the embedding and of the attention scores. The slopes of the dashed lines are the rates that linearising
# at the critical points gives: they are known before the growth begins.

# %%
import matplotlib.pyplot as plt
import numpy as np

import stagescope as ss

run = ss.run_study("focus-dilution", "ref")
embedding = np.concatenate([run.params["W0"], np.swapaxes(run.params["W1"], 1, 2)], axis=1)
scores = np.concatenate([run.params["WQ"], run.params["WK"]], axis=1)

figure, axes = plt.subplots(1, 2, figsize=(8, 3.4), sharey=True, layout="constrained")
for ax, stack, name in zip(axes, (embedding, scores), ("embedding", "attention"), strict=True):
    values = np.linalg.svd(stack, compute_uv=False)[:, :2]
    ax.plot(run.t, values)
    for rung in list(ss.saddle_ladder(run))[:3]:
        if rung.opening == name and rung.rates:
            growing = values[:, 1 if rung.label == "(1,1)" else 0]
            level = np.interp(rung.t, run.t, growing)
            span = rung.t + np.linspace(0, np.log(1 / level) / rung.rates[0], 2)
            ax.plot(span, level * np.exp(rung.rates[0] * (span - rung.t)), "k--", lw=1)
    ax.set(title=name, yscale="log", xlim=(0, 400), ylim=(1e-4, 10), xlabel="flow time t")
axes[0].set_ylabel("two largest singular values")
plt.show()
