# %% [markdown]
# # Linear attention goes from saddle to saddle
#
# Separate keys and queries learn regression on one principal component after another. The drops were predicted from the start
# alone.

# %%
import matplotlib.pyplot as plt

import stagescope as ss

study = ss.study("linear-icl")
setup = study.setup(study.configured("ref"), 0)
path = ss.saddle_path(setup.what, setup.params)
run = ss.run_study("linear-icl", "ref")

figure, axes = plt.subplots(figsize=(7, 3.4), layout="constrained")
for level in ss.reading(run).curves.levels:
    axes.axhline(level, color="0.6", lw=0.8, ls=":")
for name in path.sequence:
    axes.axvline(path[name].t, color="C3", lw=1, ls="--")
    axes.text(path[name].t, 1.02, name, transform=axes.get_xaxis_transform(), ha="center", color="C3")
axes.plot(run.t, run.series["loss"], lw=2)
axes.set(xlim=(0, 6000), xlabel="flow time t", ylabel="loss")
plt.show()
