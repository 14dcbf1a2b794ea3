"""Focus and dilution (arXiv 2605.01199): embeddings condense, attention focuses on the frequent token, then dilutes."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
