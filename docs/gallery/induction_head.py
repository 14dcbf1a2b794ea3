# %% [markdown]
# # An induction head forms on a plateau
#
# Every sequence has a Markov chain of its own. The loss rests at the level of unigrams until layer 1 finds the token before.

# %%
import matplotlib.pyplot as plt

import stagescope as ss

run = ss.run_study("markov-icl", "ref")

figure, axes = plt.subplots(figsize=(7, 3.4), layout="constrained")
axes.plot(run.t[1:], run.series["loss"][1:], lw=2)
for stage in ss.stages(run):
    axes.axvline(max(stage.start, run.t[1]), color="0.6", lw=0.8, ls=":")
    axes.text(max(stage.start, run.t[1]), 1.02, f" {stage.name}", transform=axes.get_xaxis_transform())
axes.set(xscale="log", xlabel="flow time t", ylabel="loss")
plt.show()
