# %% [markdown]
# # Your own chain and your own claim
#
# The attention model of *Focus and Dilution* on a Markov chain of your choice, and a sentence of your own that the run may
# confirm or violate.

# %%
import numpy as np

import stagescope as ss

chain = ss.MarkovChain(rows=((0.7, 0.2, 0.1), (0.3, 0.6, 0.1), (0.25, 0.15, 0.6)))
print("frequencies", chain.stationary.round(3), " least loss", round(chain.floor(), 4))

# %%
model = ss.TokenAttention(vocab=3, width=6, scale=4.0)
loss = ss.population_loss(model, chain)
run = ss.evolve(loss, model.init(seed=0, scale=1e-3), ss.GradientFlow(), until=2000)
for stage in ss.stages(run):
    print(stage)

# %% [markdown]
# ## A claim
#
# The sentence: *when training ends, every query gives the frequent token at least .05 more attention than its frequency.* A
# claim has a regime, where it can be decided, and a comparison.


# %%
def is_done(evidence):
    return ss.Regime(evidence.run.done, "the run reached its end" if evidence.run.done else "the run was cut")


def attended(evidence):
    curves = ss.reading(evidence.run).curves
    least = float(curves.attention[-1, :, curves.frequent].min())
    frequency = float(curves.pi[curves.frequent])
    sentence = f"the least attention on the frequent token is {least:.3f}, its frequency {frequency:.3f}"
    return ss.Comparison(frequency + 0.05, least, 0.0, least > frequency + 0.05, sentence)


own = ss.Claim(tag="own:attended", statement="Every query prefers the frequent token", regime=is_done, compare=attended)
row = ss.check(run, claims=[own])["own:attended"]
print(row.verdict, "-", row.reason)

# %% [markdown]
# The verdict is *violated* if one query does not, and that is news about the sentence, not an error.
#
# ## A null
#
# A claim is worth something if it fails where it must. Before training, attention follows the frequencies, so a run that is
# cut at the start must not confirm the sentence:

# %%
early = ss.evolve(loss, model.init(seed=0, scale=1e-3), ss.GradientFlow(), until=1)
row = ss.check(early, claims=[own])["own:attended"]
print(row.verdict, "-", row.reason)

# %% [markdown]
# `null=ss.Inputs(...)` makes it part of the claim, and `ss.calibrate` counts how often it is confirmed there. See
# [extending](../extending.md).

# %%
print(np.round(ss.reading(run).curves.attention[-1], 3))
