# %% [markdown]
# # A paper reproduced
#
# *Training Dynamics of In-Context Learning in Linear Attention* (Zhang, Singh, Latham, Saxe, ICML 2025, [arXiv
# 2501.16265](https://arxiv.org/abs/2501.16265)) says: attention with separate keys and queries learns in-context regression
# from saddle to saddle, one principal component after another. This notebook makes the run and puts the paper's sentences to
# it.

# %%
import stagescope as ss

print(ss.cite("linear-icl").splitlines()[0])

# %% [markdown]
# ## The run
#
# The loss is exact: no data is sampled. The run is a gradient flow from a small random start.

# %%
run = ss.run_study("linear-icl", "ref")
run

# %% [markdown]
# ## Its stages

# %%
for stage in ss.stages(run):
    print(stage)

# %% [markdown]
# On plateau m the model does regression on m principal components. The levels of the loss there are known exactly:

# %%
print(ss.reading(run).curves.levels.round(5))

# %% [markdown]
# ## The sentences of the paper
#
# Each is a claim with a regime, a comparison and a verdict.

# %%
ledger = ss.check(run)
for row in ledger:
    if row.verdict in ("confirmed", "violated"):
        print(f"{row.verdict:<10} {row.statement}  [{row.tag}]")
print(ledger.summary())

# %% [markdown]
# ## What must not hold
#
# Merged heads learn in one drop, so the same sentences about plateaus do not apply to them:

# %%
merged = ss.run_study("linear-icl", "merged")
for stage in ss.stages(merged):
    print(stage)
for row in ss.check(merged):
    if row.verdict in ("confirmed", "violated"):
        print(f"{row.verdict:<10} {row.statement}  [{row.tag}]")

# %% [markdown]
# How often each claim is confirmed where it should be, and where it must not be, is in [how sure are we?](../how-sure.md)
# `ss.reproduce("linear-icl", "figures")` draws the figures of the paper.
