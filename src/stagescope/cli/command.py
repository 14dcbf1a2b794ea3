"""What every command is, and how its answer is printed as JSON."""

import json
from pathlib import Path
from typing import Annotated, Any

import tyro
from pydantic import BaseModel, ConfigDict

RunFolder = Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]


class Command(BaseModel):
    """Arguments of one command."""

    model_config = ConfigDict(extra="forbid")

    def run(self) -> int:
        raise AssertionError("abstract")


def print_json(value: Any) -> None:
    from stagescope.spec import finite

    print(json.dumps(finite(value), indent=2, allow_nan=False))
