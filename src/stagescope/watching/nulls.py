"""Trainings in which attention has nothing to learn, or cannot: claims about attention must not be confirmed on them."""

from stagescope.claims.inputs import Inputs
from stagescope.later import Later

SHUFFLED = Inputs(
    "shuffled text",
    "characters of a text in random order: no token says anything of another",
    Later(f"{__package__}.small:shuffled"),
)
BIGRAM = Inputs(
    "bigram text",
    "text drawn from its own pairs of characters: the last token says all that can be known, so attention is not needed",
    Later(f"{__package__}.small:bigram"),
)
FROZEN = Inputs(
    "frozen attention",
    "real text, but the weights of queries and keys stay as they were drawn, so attention learns nothing of its own",
    Later(f"{__package__}.small:frozen"),
)
