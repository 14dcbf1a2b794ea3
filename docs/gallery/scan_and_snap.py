# %% [markdown]
# # Scan and snap
#
# Attention of one class of sequences. Common tokens (grey) lose it; the most frequent distinct tokens win, then attention
# freezes.

# %%
import matplotlib.pyplot as plt
import numpy as np

import stagescope as ss

run = ss.run_study("scan-snap", "syn-small-flow")
curves = ss.class_attention(run)
common, distinct = np.flatnonzero(curves.common[0]), np.flatnonzero(curves.distinct[0])

figure, axes = plt.subplots(figsize=(7, 3.6), layout="constrained")
axes.plot(curves.time, curves.attention[:, 0, common], color="0.6")
shades = plt.get_cmap("viridis_r")(curves.table[0, distinct] / curves.table[0].max())
for token, shade in zip(distinct, shades, strict=True):
    axes.plot(curves.time, curves.attention[:, 0, token], color=shade)
for name, when in ss.stages(run).events.items():
    if when and name in ("onset", "peak", "snap"):
        axes.axvline(when, color="0.5", lw=0.8, ls=":")
        axes.text(when, 1.02, name, transform=axes.get_xaxis_transform(), ha="center")
axes.set(xscale="log", xlim=(1, 1000), xlabel="flow time t", ylabel="attention of class 0 on each token")
plt.show()
