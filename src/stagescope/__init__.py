"""Stagescope: a laboratory for how attention learns.

The public names stand in `__init__.pyi`. Importing this package imports nothing heavy: each name is loaded when first used.
"""

import lazy_loader

__version__ = "0.3.0.dev0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
