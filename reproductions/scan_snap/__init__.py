"""The published figures of scan and snap (arXiv 2305.16380), on synthetic sequences and on text, made again."""

from .distances import distances as distances
from .figures import FIGURES as FIGURES
from .text_figures import TEXT_FIGURES as TEXT_FIGURES
from .text_figures import text_distances as text_distances
