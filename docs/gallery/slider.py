# %% [markdown]
# # What a slider does
#
# Attention of the frequent token on itself for three values of the persistence. [The playground](../live/playground.md) does
# this while you move the slider.

# %%
import matplotlib.pyplot as plt

import stagescope as ss

figure, axes = plt.subplots(figsize=(7, 3.4), layout="constrained")
for persistence in (0.3, 0.6, 0.8):
    curves = ss.reading(ss.run_study("focus-dilution", "ref", persistence=persistence, until=400)).curves
    axes.plot(curves.time, curves.attention[:, 0, curves.frequent], label=f"persistence {persistence}")
axes.set(xscale="log", xlim=(20, 400), xlabel="flow time t", ylabel="attention of token 0 on itself")
axes.legend(frameon=False)
plt.show()
