# %% [markdown]
# # Critical points meet in a fold
#
# The tilted double well x⁴/4 - x²/2 - v x. Its minimum is followed over v: at v = ±2/√27 it meets the maximum and vanishes.

# %%
import matplotlib.pyplot as plt
import numpy as np

import stagescope as ss


def family(v):
    return ss.JaxObjective(lambda params: (params["x"] ** 4 / 4 - params["x"] ** 2 / 2 - v * params["x"]).sum())


branch = ss.continue_point(family, 0.0, {"x": np.ones(1)}, low=-0.8, high=0.8)

figure, axes = plt.subplots(figsize=(6, 3.6), layout="constrained")
value = np.array([point.value for point in branch.points])
place = np.array([point.params["x"][0] for point in branch.points])
stable = np.array([point.stable for point in branch.points])
axes.plot(value, np.where(stable, place, np.nan), lw=2, label="minimum")
axes.plot(value, np.where(stable, np.nan, place), "--", lw=2, label="maximum")
for fold in branch.folds:
    axes.axvline(fold.value, color="0.6", lw=0.8, ls=":")
axes.set(xlabel="tilt v", ylabel="critical point x")
axes.legend(frameon=False)
plt.show()
