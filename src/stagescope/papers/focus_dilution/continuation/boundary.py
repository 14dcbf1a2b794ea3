"""Lines of theory over options of the study [FD:lambda-c]."""

from collections.abc import Mapping, Sequence
from typing import Any

from stagescope.errors import InputError
from stagescope.papers.focus_dilution.forms import stall_boundary
from stagescope.papers.focus_dilution.study import FocusDilutionOptions

TOKENS = int(FocusDilutionOptions.model_fields["tokens"].default)


def stall(options: Mapping[str, Any], values: Sequence[float]) -> list[float | None]:
    """lambda_c over pi0."""
    if options.get("transition") is not None:
        raise InputError("the boundary stall is one of lazy chains, and this sweep has a --transition of its own")
    tokens = options.get("tokens")
    return [stall_boundary(value, TOKENS if tokens is None else int(tokens)) if 0 < value < 1 else None for value in values]
