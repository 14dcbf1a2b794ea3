"""Incremental learning of sparse attention patterns (arXiv 2602.19143): one lag group at a time, by competing heads."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
