# %% [markdown]
# # A phase diagram
#
# When linear attention learns its second direction, over the start and the data. Each point is computed from its start alone,
# without a run. `ss.sweep` and `ss.diagram` make such pictures from runs, with intervals over seeds.

# %%
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import LogNorm

import stagescope as ss

study = ss.study("linear-icl")
scales, second = np.geomspace(1e-3, 3e-2, 8), np.linspace(0.2, 0.38, 7)
times = np.full((len(second), len(scales)), np.nan)
for row, eigenvalue in enumerate(second):
    for column, scale in enumerate(scales):
        options = study.configured("ref", eigenvalues=(0.4, float(eigenvalue), 0.15, 0.1), init_scale=float(scale))
        setup = study.setup(options, 0)
        times[row, column] = ss.saddle_path(setup.what, setup.params)["d2"].t or np.nan

figure, axes = plt.subplots(figsize=(6, 3.8), layout="constrained")
mesh = axes.pcolormesh(scales, second, times, norm=LogNorm(), shading="nearest")
figure.colorbar(mesh, label="predicted time of the second drop")
axes.set(xscale="log", xlabel="scale of the start", ylabel="second eigenvalue (the first is 0.4)")
plt.show()
