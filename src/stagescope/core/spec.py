"""Specs: what an object is, as a type id and numbers in JSON, and the object built again from it."""

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Iterator
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from stagescope.core.errors import InputError, shortened, unknown
from stagescope.core.ids import SCRIPT, type_id

Json = dict[str, Any]
"""A JSON object."""
Spec = Json


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


Numbers = Annotated[tuple[float, ...], BeforeValidator(_plain)]
Integers = Annotated[tuple[int, ...], BeforeValidator(_plain)]
Seed = Annotated[int, Field(ge=0, lt=2**63)]


class Described(BaseModel):
    """A frozen value whose invariants hold from construction on; `describe` and `build` are inverse to each other."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
    registry: ClassVar[dict[str, type["Described"]]] = {}

    def __init__(self, **fields: Any) -> None:
        try:
            super().__init__(**fields)
        except ValidationError as error:
            raise InputError(explain(error, type(self))) from None

    @classmethod
    def __pydantic_init_subclass__(cls, **options: Any) -> None:
        super().__pydantic_init_subclass__(**options)
        name = type_id(cls.__module__, cls.__name__)
        registered = Described.registry.get(name, cls)
        if (registered.__module__, registered.__qualname__) != (cls.__module__, cls.__qualname__):
            both = f"{registered.__module__}.{registered.__qualname__} and {cls.__module__}.{cls.__qualname__}"
            raise InputError(f"two types have the id {name!r} in a spec: {both}; rename one of them")
        Described.registry[name] = cls

    def __eq__(self, other: object) -> bool:
        """Equal descriptions: cached arrays play no part."""
        return type(other) is type(self) and Described.describe(self) == Described.describe(other)  # pyright: ignore[reportArgumentType]

    def __hash__(self) -> int:
        return hash(canonical(Described.describe(self)))

    def describe(self) -> Spec:
        fields = {name: _describe(getattr(self, name)) for name in type(self).model_fields}
        return {"type": type_id(type(self).__module__, type(self).__name__), **fields}

    @classmethod
    def restored(cls, fields: Spec) -> Self:
        """The object of a spec's fields. A type that got another default since older specs were written completes them here."""
        return cls(**fields)


def _describe(value: Any) -> Any:
    if isinstance(value, Described):
        return value.describe()
    if isinstance(value, tuple | list):
        return [_describe(item) for item in value]
    if isinstance(value, dict):
        return {name: _describe(item) for name, item in value.items()}
    return value


def build(spec: Any) -> Any:
    """The object a spec describes; only registered types with checked fields are ever made."""
    if isinstance(spec, list):
        return [build(item) for item in spec]
    if not isinstance(spec, dict):
        return spec
    fields = {name: build(item) for name, item in spec.items() if name != "type"}
    if "type" not in spec:
        return fields
    if not isinstance(spec["type"], str) or spec["type"] not in Described.registry:
        raise missing_type(str(spec["type"])) or unknown("type in a spec", str(spec["type"]), Described.registry)
    return Described.registry[spec["type"]].restored(fields)


def types_of(spec: Any) -> Iterator[str]:
    """The ids of all types in a spec."""
    if isinstance(spec, dict):
        if isinstance(spec.get("type"), str):
            yield spec["type"]
        spec = list(spec.values())
    if isinstance(spec, list):
        for item in spec:
            yield from types_of(item)


def missing_type(name: str, more: Iterable[str] = ()) -> InputError | None:
    """The error for a type of a package that is not imported; None for one that is known, and for a bare id, which is the core's.

    `more` are sentences that may explain why it is missing.
    """
    owner, _, bare = name.rpartition("/")
    if not owner or name in Described.registry:
        return None
    if owner == SCRIPT:
        return InputError(f"this run is of the type {bare} of a script or notebook; define {bare} first, then read the run there")
    package = owner.replace("-", "_")
    need = f"this run needs the type {bare} of the package {package!r}, which is not installed or has no such type"
    return InputError("; ".join((f"{need}; install the package, or import it first", *more)))


def explain(error: ValidationError, kind: type[BaseModel], spelled: Callable[[str], str] = str) -> str:
    """Pydantic's findings as one sentence each, naming field, value and what was expected; fields as the caller spells them."""
    sentences = []
    for item in error.errors():
        if item["type"] == "default_factory_not_called":  # the default depends on a field that is wrong itself
            continue
        place = spelled(".".join(str(part) for part in item["loc"]))
        message = item["msg"].removeprefix("Value error, ")
        if item["type"] == "extra_forbidden":
            sentences.append(str(unknown(f"field of {kind.__name__}", place, kind.model_fields)))
        elif item["type"] == "value_error":
            sentences.append(f"{place}: {message}" if place else message)
        else:
            # A value that would do: the default of the field, where it has one.
            field = kind.model_fields.get(str(item["loc"][0])) if item["loc"] else None
            has_default = field and not field.is_required() and field.default_factory is None and field.default is not None
            default = f"; the default is {shortened(repr(field.default), 60)}" if field and has_default else ""
            sentences.append(
                f"{place}: {message.replace('Input should', 'must')}, got {shortened(repr(item['input']), 60)}{default}"
            )
    return "; ".join(sentences)


def finite(value: Any) -> Any:
    """JSON has no infinity: a number that overflowed, as in a run that diverged, is null."""
    if isinstance(value, dict):
        return {name: finite(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def canonical(value: Any) -> bytes:
    """The one JSON text of a value: sorted names, no spaces, shortest floats, no NaN."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode()


def digest(value: Any) -> str:
    return hashlib.sha256(canonical(value)).hexdigest()
