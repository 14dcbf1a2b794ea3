# %% [markdown]
# # Predicted before the run
#
# A linear network of two layers. From the start alone the saddle path says when the loss falls, and to which level.

# %%
import matplotlib.pyplot as plt
import numpy as np

import stagescope as ss

strengths, small = np.array([2.0, 1.0, 0.3]), 1e-4


def squares(params, target):
    return 0.5 * ((params["A"] @ params["B"] - target) ** 2).sum()


loss = ss.JaxObjective(squares, data=np.diag(strengths))
start = {"A": small * np.eye(3), "B": small * np.eye(3)}
path = ss.saddle_path(loss, start)
run = ss.evolve(loss, start, ss.GradientFlow(), until=45, record=ss.Uniform(frames=600))

figure, axes = plt.subplots(figsize=(7, 3.4), layout="constrained")
axes.plot(run.t, run.series["loss"], lw=2, label="run")
for name in path.sequence:
    axes.axvline(path[name].t, color="C3", lw=1, ls="--")
    axes.text(
        path[name].t,
        1.02,
        name.removeprefix("escape "),
        transform=axes.get_xaxis_transform(),
        ha="center",
        color="C3",
    )
axes.set(xlabel="flow time t", ylabel="loss")
plt.show()
