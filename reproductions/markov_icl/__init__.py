"""Published figures of in-context Markov chains (arXiv 2402.11004, 2508.12837), made again with the minimal models."""

from .figures import FIGURES as FIGURES
