from collections.abc import Callable
from typing import Any

import numpy as np

class LinearOperator:
    shape: tuple[int, int]
    def __init__(
        self,
        shape: tuple[int, int],
        matvec: Callable[[np.ndarray], np.ndarray],
        rmatvec: Callable[[np.ndarray], np.ndarray] | None = None,
        matmat: Callable[[np.ndarray], np.ndarray] | None = None,
        dtype: Any = None,
        rmatmat: Callable[[np.ndarray], np.ndarray] | None = None,
    ) -> None: ...
    def __matmul__(self, other: Any) -> Any: ...
    def __getattr__(self, name: str) -> Any: ...

def expm_multiply(A: Any, B: np.ndarray, *, traceA: float | None = None) -> np.ndarray: ...
def lsmr(A: Any, b: np.ndarray, damp: float = 0.0, **bounds: Any) -> tuple[np.ndarray, *tuple[Any, ...]]: ...
def __getattr__(name: str) -> Any: ...
