"""Options of a study: flat, typed, checked; and how options that would have no effect are refused."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, model_validator

from stagescope.core.errors import InputError


class Options(BaseModel):
    """Flat, typed options of a study; every field has a default and a description, which is the docstring below it."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True, use_attribute_docstrings=True)

    @model_validator(mode="before")
    @classmethod
    def _one_word(cls, given: Any) -> Any:
        """A single word where several may be given."""
        several = {name for name, info in cls.model_fields.items() if info.annotation == tuple[str, ...]}
        if not isinstance(given, dict):
            return given
        return {name: (value,) if name in several and isinstance(value, str) else value for name, value in given.items()}

    def prepare(self, progress: bool | None) -> None:
        """Read what takes long before the run is set up, with a bar; nothing by default."""

    @classmethod
    def anchored(cls, name: str, value: Any) -> Any:
        """The value of an option such that it means the same in every folder: absolute, where it is a path."""
        return value.resolve() if isinstance(value, Path) else value

    def files(self) -> dict[str, dict[str, Path]]:
        """Files that are read, by option and what each is: the config is known by their bytes, not by where they lie."""
        values = {name: getattr(self, name) for name in type(self).model_fields}
        return {name: {"": value} for name, value in values.items() if isinstance(value, Path)}

    def with_elements(self, name: str, elements: Mapping[int, Any]) -> tuple[Any, ...]:
        """The list of that name with some elements changed, as a sweep over `name.0` asks for."""
        listed = list(getattr(self, name))
        for place, value in elements.items():
            if place >= len(listed):
                raise InputError(f"{name}.{place}: {name} has {len(listed)} elements, numbered from 0")
            listed[place] = value
        return tuple(listed)


def option(name: str) -> str:
    """The name of an option as the command line spells it; a message in Python says the same."""
    return f"--{name.replace('_', '-')}"


def option_words(name: str, value: Any) -> list[str]:
    """A setting as the command line takes it: `--spans 2 2 2`; a switch is its name alone, where it is on."""
    if isinstance(value, bool) or value is None:
        return [option(name)] if value else []
    return [option(name), *map(str, value if isinstance(value, list | tuple) else (value,))]


def field_name(word: str) -> str:
    """The name of an option as Python spells it, from what a person writes: `init-scale` is init_scale."""
    return word.strip().replace("-", "_")


class Unused(InputError):
    """An option was given that would have no effect; `name` is that option."""

    def __init__(self, name: str, value: object, why: str) -> None:
        super().__init__(f"{option(name)} {value} (given, or set by the preset) has no effect here: {why}")
        self.name, self.why = name, why


def refuse_unused(options: Options, names: tuple[str, ...], why: str) -> None:
    """An option that would be ignored is an error: a changed value without effect is worse than a refusal."""
    for name in names:
        if getattr(options, name) != type(options).model_fields[name].default:
            raise Unused(name, getattr(options, name), why)
