# %% [markdown]
# # One feature at a time
#
# Heads of attention fit three features. The loss rests at the level of each number of features that are learned: dotted lines
# are exact, half the sum of the squared gains that are missing.

# %%
import matplotlib.pyplot as plt

import stagescope as ss

gains = (2.0, 1.0, 0.5)
heads = ss.RegressionHeads(positions=6, gains=gains, heads=3)
run = ss.evolve(ss.RegressionLoss(model=heads), heads.init(seed=0), ss.GradientFlow(), until=200)

figure, axes = plt.subplots(figsize=(7, 3.4), layout="constrained")
for learned in range(4):
    axes.axhline(sum(gain**2 for gain in gains[learned:]) / 2, color="0.5", lw=0.8, ls=":")
axes.plot(run.t, run.series["loss"], lw=2)
axes.set(xscale="log", xlim=(1, 200), xlabel="flow time t", ylabel="loss")
plt.show()
