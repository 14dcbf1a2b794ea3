"""Losses by what they average over: exact in the limit of long contexts, exact at a length, sampled. Papers name them."""

from typing import Any

from stagescope.errors import InputError
from stagescope.fields.objective import Objective
from stagescope.later import Later
from stagescope.papers.registry import papers


def population_loss(model: Any, process: Any) -> Objective:
    """The exact population loss of a model on a process in the limit of long contexts, in closed form."""
    return _form("population", model, process)


def finite_loss(model: Any, process: Any, length: int, **choices: Any) -> Objective:
    """The exact population loss at contexts of `length` tokens; `choices` are further fields of the form (TokenFinite)."""
    return _form("finite", model, process, length=length, **choices)


def sampled_loss(model: Any, process: Any, length: int, **choices: Any) -> Objective:
    """The loss on sampled contexts of `length` tokens; `choices` are the other fields of the form (seed, batch, ...).

    TokenSampled draws its sequences once, PairwiseSampled anew for every step.
    """
    return _form("sampled", model, process, length=length, **choices)


_WORDS = {"population": "closed-form population loss", "finite": "exact loss of finite length", "sampled": "sampled loss"}


def _form(name: str, model: Any, process: Any, **fields: Any) -> Objective:
    """The loss of that form whose fields `model` and `process` are of the types given."""
    found = [Later(target).load() for paper in papers().values() for target in paper.forms.get(name, ())]
    for kind in found:
        if isinstance(model, _type(kind, "model")) and isinstance(process, _type(kind, "process")):
            return kind(model=model, process=process, **fields)
    known = "; ".join(f"{_type(kind, 'model').__name__} on {_type(kind, 'process').__name__}" for kind in found)
    raise InputError(f"no {_WORDS[name]} for {type(model).__name__} on {type(process).__name__}; known: {known}")


def _type(kind: Any, field: str) -> type:
    return kind.model_fields[field].annotation
