# %% [markdown]
# # Focus and dilution
#
# One attention layer learns a chain of four tokens. Every query first turns to the frequent token, then spreads again.

# %%
import matplotlib.pyplot as plt

import stagescope as ss

run = ss.run_study("focus-dilution", "ref")
curves, events = ss.reading(run).curves, ss.stages(run).events

figure, axes = plt.subplots(figsize=(7, 3.6), layout="constrained")
for query in range(4):
    axes.plot(curves.time, curves.attention[:, query, curves.frequent], label=f"query {query}")
for name in ("E1", "Q1", "E2"):
    axes.axvline(events[name], color="0.5", lw=0.8, ls=":")
    axes.text(events[name], 1.02, name, transform=axes.get_xaxis_transform(), ha="center")
axes.set(xscale="log", xlim=(20, None), xlabel="flow time t", ylabel="attention on token 0")
axes.legend(frameon=False, loc="lower left")
plt.show()
