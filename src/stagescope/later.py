"""Objects that are named now and imported when they are first used, so that listing papers loads none of them."""

from importlib import import_module
from typing import Any


class Later:
    """The object called `name` in `module`, written "module:name" as in an entry point.

    Calling it calls the object. `load` gives the object itself.
    """

    def __init__(self, target: str) -> None:
        self.module, _, self.name = target.partition(":")
        if not self.module or not self.name:
            raise ValueError(f"{target!r} does not name an object; write it as 'package.module:name'")

    def load(self) -> Any:
        return getattr(import_module(self.module), self.name)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return self.load()(*arguments, **named)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Later) and (other.module, other.name) == (self.module, self.name)

    def __hash__(self) -> int:
        return hash((self.module, self.name))

    def __repr__(self) -> str:
        return f"Later('{self.module}:{self.name}')"
