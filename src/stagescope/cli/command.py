"""What every command is, and how its answer is printed as JSON."""

import json
from typing import Any

from pydantic import BaseModel, ConfigDict


class Command(BaseModel):
    """Arguments of one command."""

    model_config = ConfigDict(extra="forbid")

    def run(self) -> int:
        raise AssertionError("abstract")


def print_json(value: Any) -> None:
    from stagescope.described import finite

    print(json.dumps(finite(value), indent=2, allow_nan=False))
