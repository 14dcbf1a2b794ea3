"""Linear attention in context (arXiv 2501.16265): abrupt learning of merged heads, saddle to saddle of separate ones."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
