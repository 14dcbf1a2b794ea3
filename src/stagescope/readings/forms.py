"""Losses by what they average over: exact in the limit of long contexts, exact at a length, sampled. Papers name them."""

from typing import Any

from stagescope.core.errors import InputError, sentence
from stagescope.core.ids import named_object
from stagescope.flow.field import Objective
from stagescope.readings.registry import papers


def population_loss(model: Any, process: Any) -> Objective:
    """The exact population loss of a model on a process in the limit of long contexts, in closed form.

    Args:
        model: a model of a paper.
        process: the process of this paper.

    Examples:
        >>> type(ss.population_loss(model, chain)).__name__
        'TokenPopulation'
    """
    return _form("population", model, process)


def finite_loss(model: Any, process: Any, length: int, **choices: Any) -> Objective:
    """The exact population loss at contexts of `length` tokens; `choices` are further fields of the form.

    Args:
        model: a model of a paper.
        process: the process of this paper.
        length: tokens of a context.
        choices: further fields of the loss.

    Examples:
        >>> type(ss.finite_loss(model, chain, length=4)).__name__
        'TokenFinite'
    """
    return _form("finite", model, process, length=length, **choices)


def sampled_loss(model: Any, process: Any, length: int, **choices: Any) -> Objective:
    """The loss on sampled contexts of `length` tokens; `choices` are the other fields of the form (seed, batch, ...).

    Each form states whether it draws its contexts once or anew for every step.

    Args:
        model: a model of a paper.
        process: the process of this paper.
        length: tokens of a context.
        choices: further fields of the loss.

    Examples:
        >>> type(ss.sampled_loss(model, chain, length=8, sequences=20)).__name__
        'TokenSampled'
    """
    return _form("sampled", model, process, length=length, **choices)


_WORDS = {"population": "closed-form population loss", "finite": "exact loss of finite length", "sampled": "sampled loss"}


def _form(name: str, model: Any, process: Any, **fields: Any) -> Objective:
    """The loss of that form whose fields `model` and `process` are of the types given; forms that cannot be used are left out."""
    pairs, problems = [], []
    for target in (target for paper in papers().values() for target in paper.forms.get(name, ())):
        try:
            kind = named_object(target)
            types = _type(kind, "model"), _type(kind, "process")
        except (Exception, SystemExit) as error:  # code of a paper runs here
            problems.append(f"{target} cannot be used: {sentence(error)}")
            continue
        if isinstance(model, types[0]) and isinstance(process, types[1]):
            return kind(model=model, process=process, **fields)
        pairs.append(f"{types[0].__name__} on {types[1].__name__}")
    problem = f"no {_WORDS[name]} for {type(model).__name__} on {type(process).__name__}; known: {'; '.join(pairs)}"
    raise InputError("; ".join((problem, *problems)))


def _type(kind: Any, field: str) -> type:
    annotation = kind.model_fields[field].annotation
    if not isinstance(annotation, type) or annotation is Any:  # Any is a class since Python 3.11
        raise InputError(f"its field {field!r} is of {annotation}, which is not a class")
    return annotation
