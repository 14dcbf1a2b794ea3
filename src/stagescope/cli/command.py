"""What every command is, and how its answer is printed as JSON."""

import json
import math
from typing import Any

from pydantic import BaseModel, ConfigDict


class Command(BaseModel):
    """Arguments of one command."""

    model_config = ConfigDict(extra="forbid")

    def run(self) -> int:
        raise AssertionError("abstract")


def print_json(value: Any) -> None:
    print(json.dumps(_finite(value), indent=2, allow_nan=False))


def _finite(value: Any) -> Any:
    """JSON has no infinity: a number that overflowed, as in a run that diverged, is null."""
    if isinstance(value, dict):
        return {name: _finite(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
