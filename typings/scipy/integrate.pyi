from collections.abc import Callable
from typing import Any

import numpy as np

def cumulative_trapezoid(y: Any, x: Any = None, dx: float = 1.0, axis: int = -1, initial: float | None = None) -> np.ndarray: ...
def solve_ivp(
    fun: Callable[..., Any], t_span: tuple[float, float], y0: Any, method: Any = "RK45", t_eval: Any = None, **options: Any
) -> Any: ...
def __getattr__(name: str) -> Any: ...
