"""Which form of the loss belongs to which model and process: exact in the limit of long contexts, exact at a length, sampled."""

from typing import Any

from stagescope.errors import InputError
from stagescope.fields.objective import Objective


def population_loss(model: Any, process: Any) -> Objective:
    """The exact population loss of a model on a process in the limit of long contexts, in closed form."""
    from stagescope.papers.focus_dilution.loss import TokenPopulation
    from stagescope.papers.scan_snap.loss import PairwisePopulation

    forms = {"PairwiseAttention": PairwisePopulation, "TokenAttention": TokenPopulation}
    return _form("closed-form population loss", forms, model, process)


def finite_loss(model: Any, process: Any, length: int, **choices: Any) -> Objective:
    """The exact population loss at contexts of `length` tokens; `choices` are further fields of the form (TokenFinite)."""
    from stagescope.papers.focus_dilution.finite import TokenFinite

    return _form("exact loss of finite length", {"TokenAttention": TokenFinite}, model, process, length=length, **choices)


def sampled_loss(model: Any, process: Any, length: int, **choices: Any) -> Objective:
    """The loss on sampled contexts of `length` tokens; `choices` are the other fields of the form (seed, batch, ...).

    TokenSampled draws its sequences once, PairwiseSampled anew for every step.
    """
    from stagescope.papers.focus_dilution.sampled import TokenSampled
    from stagescope.papers.scan_snap.sampled import PairwiseSampled

    forms = {"PairwiseAttention": PairwiseSampled, "TokenAttention": TokenSampled}
    return _form("sampled loss", forms, model, process, length=length, **choices)


_PROCESSES = {"PairwiseAttention": ("SequenceClasses",), "TokenAttention": ("MarkovChain", "LazyChain")}


def _form(what: str, forms: dict[str, Any], model: Any, process: Any, **fields: Any) -> Objective:
    pair = type(model).__name__, type(process).__name__
    if pair[0] not in forms or pair[1] not in _PROCESSES[pair[0]]:
        known = "; ".join(f"{name} on {' or '.join(_PROCESSES[name])}" for name in forms)
        raise InputError(f"no {what} for {pair[0]} on {pair[1]}; known: {known}")
    return forms[pair[0]](model=model, process=process, **fields)
