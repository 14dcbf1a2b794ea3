"""Companion runs: what a claim makes beside a run, each once."""

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from stagescope.errors import InputError, StagescopeError, message
from stagescope.spec import canonical

Made = TypeVar("Made")


class Companions:
    """What functions gave for their arguments, such as runs from smaller starts or with other seeds.

    A claim states their cost in `Claim.cost`. A failure is remembered too, and raised again.
    """

    def __init__(self) -> None:
        self._made: dict[bytes, Any] = {}

    def get(self, make: Callable[..., Made], *arguments: Any) -> Made:
        """What `make(*arguments)` gives; made once for the same function and arguments.

        `make` is a function or method with a name; the arguments are texts, finite numbers, or lists or dictionaries of them.
        """
        key = _key(make, arguments)
        if key not in self._made:
            try:
                self._made[key] = make(*arguments)
            except StagescopeError as error:
                self._made[key] = error
        if isinstance(self._made[key], StagescopeError):
            raise self._made[key]
        return self._made[key]

    def each(self, make: Callable[..., Made], values: Iterable[Any]) -> "list[Made | StagescopeError]":
        """What `make(value)` gives for each value, for a claim over several runs; the error where one could not be made."""
        return [self._tried(make, value) for value in values]

    def _tried(self, make: Callable[..., Made], value: Any) -> "Made | StagescopeError":
        try:
            return self.get(make, value)
        except StagescopeError as error:
            return error


def _key(make: Callable[..., Any], arguments: tuple[Any, ...]) -> bytes:
    """The name and module of a function with its arguments."""
    name, module = getattr(make, "__qualname__", None), getattr(make, "__module__", None)
    if name is None or module is None or name.endswith("<lambda>"):
        raise InputError(f"a companion is made by a function or method with a name, not by {make!r}; define one with `def`")
    try:
        return canonical([module, name, *arguments])
    except (TypeError, ValueError) as error:
        wanted = "texts, finite numbers, or lists or dictionaries of them"
        raise InputError(f"the arguments of the companion {name!r} must be {wanted}: {message(error)}") from None
