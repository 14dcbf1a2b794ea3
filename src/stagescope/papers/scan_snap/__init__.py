"""Scan and snap (arXiv 2305.16380): attention in token-pair logits drops common tokens, then freezes."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
