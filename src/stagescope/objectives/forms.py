"""Which closed form belongs to which model and process."""

from typing import Any

from stagescope.errors import InputError
from stagescope.objectives.objective import Objective


def population_loss(model: Any, process: Any) -> Objective:
    """The exact population loss of a model on a process, in closed form."""
    from stagescope.objectives.pairwise import PairwisePopulation
    from stagescope.objectives.token import TokenPopulation

    forms: dict[tuple[str, str], Any] = {
        ("PairwiseAttention", "SequenceClasses"): PairwisePopulation,
        ("TokenAttention", "MarkovChain"): TokenPopulation,
        ("TokenAttention", "LazyChain"): TokenPopulation,
    }
    pair = type(model).__name__, type(process).__name__
    if pair not in forms:
        known = "; ".join(" on ".join(names) for names in forms)
        raise InputError(f"no closed-form population loss for {pair[0]} on {pair[1]}; known: {known}")
    return forms[pair](model=model, process=process)
