"""Every published figure and number of *Focus and Dilution* (arXiv 2605.01199), made again and compared."""

from .distances import distances as distances
from .figures import FIGURES as FIGURES
