"""The published figures of linear attention in context (arXiv 2501.16265), made again, and two of our own."""

from .figures import FIGURES as FIGURES
