"""A reading that makes nothing: companion runs are given by name."""

from types import SimpleNamespace
from typing import Any


class StandIn(SimpleNamespace):
    """Its companions are what functions given by name return."""

    def companion(self, make: Any, *arguments: Any) -> Any:
        return make(*arguments)
