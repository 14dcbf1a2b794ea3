"""In-context Markov chains (arXiv 2402.11004, 2508.12837): uniform, unigrams, bigrams by two layers of attention."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
