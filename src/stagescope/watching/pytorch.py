"""The one door to PyTorch: where it is missing, the error says how to install it."""

from stagescope.core.errors import InputError

try:
    import torch
    import torch.nn.functional as functional
    from torch import Tensor, nn
except ImportError:
    raise InputError("watching a training needs PyTorch, which is not installed; pip install 'stagescope[torch]'") from None

__all__ = ["Tensor", "functional", "nn", "torch"]
