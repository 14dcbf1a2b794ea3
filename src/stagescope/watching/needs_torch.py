"""Imported first by what needs PyTorch: where it is missing, the error says how to install it."""

from importlib.util import find_spec

from stagescope.errors import InputError

if find_spec("torch") is None:
    raise InputError("watching a training needs PyTorch, which is not installed; pip install 'stagescope[torch]'")
