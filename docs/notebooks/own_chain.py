# %% [markdown]
# # Your own chain and your own claim
#
# The attention model of *Focus and Dilution* on a Markov chain of your choice, and a sentence of your own that the run may
# confirm or violate.

# %%
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
# The sentence: *when training ends, the frequent token gives itself at least .05 more attention than its frequency.* A claim
# has a regime, where it can be decided, and a comparison.


# %%
def is_done(evidence):
    done = evidence.run.done
    return ss.Regime(done, "the run reached its end" if done else "the run was cut")


def attended(evidence):
    curves = ss.reading(evidence.run).curves
    own = float(curves.attention[-1, curves.frequent, curves.frequent])
    frequency = float(curves.pi[curves.frequent])
    sentence = f"its attention on itself is {own:.3f}, its frequency {frequency:.3f}"
    return ss.Comparison(frequency + 0.05, own, 0.0, own > frequency + 0.05, sentence)


own = ss.Claim(
    tag="own:attended",
    statement="The frequent token attends to itself",
    regime=is_done,
    compare=attended,
)
row = ss.check(run, claims=[own])["own:attended"]
print(row.verdict, "-", row.reason)

# %% [markdown]
# Where a run contradicts the sentence the verdict is *violated*. That is news about the sentence, not an error.
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
