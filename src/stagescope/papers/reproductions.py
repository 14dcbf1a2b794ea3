"""The scripts that make what a paper shows: `reproductions/PAPER`, beside `src` in a checkout, inside an installed package."""

import importlib
import sys
from pathlib import Path
from types import ModuleType

import stagescope
from stagescope.errors import StagescopeError

PACKAGE = "stagescope.reproductions"
PLACES = (Path(stagescope.__file__).parent / "reproductions", Path(stagescope.__file__).parents[2] / "reproductions")


def reproduction(paper: str) -> ModuleType:
    """The package of scripts of a paper; it is loaded when it is first asked for."""
    if not any((place / paper / "__init__.py").is_file() for place in PLACES):
        where = " or ".join(map(str, PLACES))
        raise StagescopeError(f"the scripts of {paper} are not in {where}: install the package again, or run in a checkout")
    if PACKAGE not in sys.modules:
        package = ModuleType(PACKAGE, __doc__)
        package.__path__ = [str(place) for place in PLACES if place.is_dir()]
        sys.modules[PACKAGE] = package
    return importlib.import_module(f"{PACKAGE}.{paper}")
