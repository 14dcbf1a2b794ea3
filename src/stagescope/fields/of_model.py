"""What losses and laws of a model share: the parameters are the model's."""

from collections.abc import Mapping
from typing import Any


class OfModel:
    """Names and shapes of the blocks, read off `model`."""

    model: Any

    @property
    def axes(self) -> Mapping[str, tuple[str, ...]]:
        return self.model.axes

    @property
    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        return self.model.shapes
