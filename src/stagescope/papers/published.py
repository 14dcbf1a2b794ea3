"""Reference numbers of a paper: each stands once, in `reference.json` beside the paper, with its unit, tolerance and source."""

from functools import cache, partial
from importlib import resources
from typing import Annotated, Any

from pydantic import AfterValidator, ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from stagescope.errors import StagescopeError

_VALUE: Any = TypeAdapter(int | float | Annotated[list[Any] | dict[str, Any], Field(min_length=1)])


@dataclass(frozen=True, config=ConfigDict(extra="forbid", strict=True))
class Published:
    """A number to compare with, or a list or table of them.

    `tolerance` is relative or absolute as `source` states, and None where the number is only shown. `source` says where the
    number comes from: a figure or table of the paper, an independent implementation, or an earlier result of this package.
    """

    value: Annotated[Any, AfterValidator(partial(_VALUE.validate_python, strict=True))]
    unit: str
    tolerance: Annotated[float, Field(ge=0)] | None
    source: Annotated[str, Field(min_length=1)]


@cache
def published(package: str) -> dict[str, Published]:
    """The reference numbers of a paper by name, from the file `reference.json` of its package."""
    where = f"reference.json of {package}"
    try:
        return TypeAdapter(dict[str, Published]).validate_json(resources.files(package).joinpath("reference.json").read_bytes())
    except (OSError, ModuleNotFoundError) as error:
        raise StagescopeError(f"cannot read {where}: {error}") from None
    except ValidationError as error:
        wrong = (f"{'.'.join(map(str, item['loc']))}: {item['msg']}, got {item['input']!r:.60}" for item in error.errors())
        raise StagescopeError(f"{where} is wrong in {'; '.join(wrong)}") from None
