"""The scripts that make what a paper shows: `reproductions/PAPER`, beside `src` in a checkout, inside an installed package."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import stagescope
from stagescope.errors import StagescopeError

PLACES = (Path(stagescope.__file__).parent / "reproductions", Path(stagescope.__file__).parents[2] / "reproductions")


def reproduction(paper: str) -> ModuleType:
    """The package of scripts of a paper; it is loaded when it is first asked for."""
    name = f"reproductions.{paper}"
    if name in sys.modules:
        return sys.modules[name]
    for place in PLACES:
        start = place / paper / "__init__.py"
        if start.is_file():
            spec = importlib.util.spec_from_file_location(name, start, submodule_search_locations=[str(start.parent)])
            assert spec is not None
            assert spec.loader is not None
            module = importlib.util.module_from_spec(spec)
            sys.modules[name] = module
            try:
                spec.loader.exec_module(module)
            except BaseException:
                del sys.modules[name]
                raise
            return module
    where = " or ".join(map(str, PLACES))
    raise StagescopeError(f"the scripts of {paper} are not in {where}: install the package again, or run in a checkout")
