"""Every published figure and number of *Incremental Learning of Sparse Attention* (arXiv 2602.19143), made again and compared."""

from .distances import distances as distances
from .figures import FIGURES as FIGURES
