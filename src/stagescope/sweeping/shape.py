"""The shape of a stored row. Whoever wrote it, a row that is read has texts, numbers and mappings where they are expected."""

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from stagescope.sweeping.axes import Axis

Whole = Annotated[int, Field(ge=0, lt=2**63)]
Number = Annotated[float, Field(allow_inf_nan=False)]
Integer = Annotated[int, Field(ge=-(2**63), lt=2**63)]
Scalar = bool | Integer | Number | str | None
Numbers = dict[str, Integer | Number | bool | None] | None


class _Row(BaseModel):
    """What is used of a row."""

    model_config = ConfigDict(strict=True)

    digest: str
    retry: Whole
    status: str
    reason: str
    renew: bool = False
    study: str = ""
    seed: Whole = 0
    at: dict[str, Scalar] = {}
    config: dict[str, Any] = {}
    clock: str | None = None
    version: str = ""
    end: Integer | Number | None = None
    seconds: Integer | Number | None = None
    started: Integer | Number | None = None
    committed: Integer | Number = 0
    events: Numbers = None
    starts: Numbers = None
    durations: Numbers = None
    numbers: Numbers = None
    stages: list[str] | None = None
    verdicts: dict[str, str] | None = None
    rules: dict[str, Integer] | None = None
    own: dict[str, str] | None = None
    measures: dict[str, dict[str, Scalar | list[Any] | dict[str, Any]]] | None = None


def is_row(found: Any) -> bool:
    """Whether a stored value has the shape of a row."""
    try:
        _Row.model_validate(found)
    except ValidationError:
        return False
    return True


def fits(row: dict[str, Any], axes: Sequence[Axis]) -> bool:
    """Whether a row can stand in the table of a sweep over these axes."""
    if not {"study", "seed", "at", "config"} <= row.keys():
        return False
    at = row["at"]
    return all(axis.name in at and (axis.kind == "categorical" or type(at[axis.name]) in (int, float)) for axis in axes)
