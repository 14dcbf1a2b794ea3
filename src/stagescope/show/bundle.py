"""What a page is made of: its arrays as compressed typed blocks, the viewer as one script and one style sheet.

A block is {id, shape, encoding} and, where it says so below, `low`, `high` and `order`. Its bytes travel as
base64(zlib(bytes)); `viewer/blocks.js` undoes what is done here.

f64, i32   little endian, byte-shuffled: all first bytes of the items, then all second bytes, and so on. u8: as it is.
f32        the items as unsigned integers of 32 bits; `order` (0 to 3) times replaced by their differences along the first
           axis modulo 2^32, the first frame as it is; if order > 0 the sign moved to the last bit, so that small numbers
           of either sign have zeros in front: z = (d << 1) ^ (d >> 31) with d signed; then byte-shuffled. To undo:
           unshuffle; if order > 0, d = (z >>> 1) ^ -(z & 1); `order` times a running sum over frames. No bit is lost.
companded  8 bits, finest near `low`, or near zero where low = -high:
           low = -high   v = sign(c - 127) high ((c - 127) / 127)^2   c = 127 + round(127 sign(v) sqrt(|v| / high))
           otherwise     v = low + (high - low) (c / 254)^2           c = round(254 sqrt((v - low) / (high - low)))
           Code 255: not a finite number. Every finite value lies within low .. high, which are those of the block and may
           differ from those of the view's colours; high = low where all values are the same. Codes are replaced by their
           differences along the first axis modulo 256, the first frame as it is, and written cell by cell: all frames of
           the first cell, then of the second. Frame by frame, smooth attention is 1.4 to 1.8 times as large.

NaN and infinities travel as they are in f64 and f32.
"""

import base64
import hashlib
import re
import zlib
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from stagescope.core.errors import StagescopeError
from stagescope.core.spec import Json
from stagescope.views.curves import in_parts


class Blocks:
    """The blocks of one page, in order of their ids. Each method returns the entry of a block in the page's data."""

    def __init__(self) -> None:
        self.payloads: list[str] = []
        self._ids: dict[str, int] = {}

    def f64(self, values: np.ndarray) -> Json:
        return self._add(values, "f64", _shuffled(values.astype("<f8")))

    def i32(self, values: np.ndarray) -> Json:
        return self._add(values, "i32", _shuffled(values.astype("<i4")))

    def u8(self, values: np.ndarray) -> Json:
        return self._add(values, "u8", values.astype(np.uint8).tobytes())

    def f32(self, values: np.ndarray) -> Json:
        """Single precision; a number too large for it becomes infinite."""
        with np.errstate(over="ignore"):
            items = np.ascontiguousarray(values, "<f4").view("<u4")
        order = _best_order(items)
        return self._add(values, "f32", _shuffled(_differences(items, order)), order=order)

    def companded(self, values: np.ndarray, low: float, high: float) -> Json:
        """8 bits over the range the values have, which is symmetric if `low` = -`high`; else not above `low` at its foot."""
        low, high = _range(values, low, high)
        codes = np.concatenate([_codes(part, low, high) for part in in_parts(values)])
        codes[1:] -= codes[:-1].copy()
        return self._add(values, "companded", np.moveaxis(codes, 0, -1).tobytes(), low=low, high=high)

    def _add(self, values: np.ndarray, encoding: str, data: bytes, **facts: float) -> Json:
        place = self._ids.setdefault(f"{encoding} {hashlib.sha256(data).hexdigest()}", len(self.payloads))
        if place == len(self.payloads):
            # level 9 would make smooth attention 18 % smaller and take eight times as long
            self.payloads.append(base64.b64encode(zlib.compress(data, level=6)).decode())
        return {"id": place, "shape": list(values.shape), "encoding": encoding, **facts}


def _shuffled(items: np.ndarray) -> bytes:
    flat = np.ascontiguousarray(items).reshape(-1)
    return flat.view(np.uint8).reshape(-1, items.itemsize).T.tobytes()


def _differences(items: np.ndarray, order: int) -> np.ndarray:
    """`order` differences along the first axis, signs last; sums of them give back every bit."""
    if not order:
        return items
    items = items.copy()
    for _ in range(order):
        items[1:] -= items[:-1].copy()
    signed = items.view("<i4")
    return (signed << 1) ^ (signed >> 31)


def _best_order(items: np.ndarray) -> int:
    """How often to take differences: what compresses a sample of the items, at all frames, best."""
    if len(items) < 2 or not items.size:
        return 0
    flat = items.reshape(len(items), -1)
    sample = flat[:, :: -(-flat.size // 1_000_000)]
    sizes = [len(zlib.compress(_shuffled(_differences(sample, order)), 1)) for order in range(4)]
    return int(np.argmin(sizes))


def _range(values: np.ndarray, low: float, high: float) -> tuple[float, float]:
    """The range of a companded block: a foot not above `low` and the largest finite value; symmetric if `low` = -`high`."""
    finite = np.isfinite(values)
    least = float(np.min(values, where=finite, initial=np.inf))
    largest = float(np.max(values, where=finite, initial=-np.inf))
    if least > largest:  # no finite value at all
        return 0.0, 0.0
    if low == -high:
        size = max(abs(least), abs(largest))
        return -size, size
    foot = min(low, least)
    return foot, max(foot, largest)


def _codes(values: np.ndarray, low: float, high: float) -> np.ndarray:
    values = np.asarray(values, float)
    finite = np.isfinite(values)
    span = (high if low == -high else high - low) or 1.0
    if low == -high:
        share = np.where(finite, values, 0.0) / span
        codes = 127 + np.rint(127 * np.copysign(np.sqrt(np.abs(share)), share))
    else:
        codes = np.rint(254 * np.sqrt(np.clip((np.where(finite, values, low) - low) / span, 0.0, 1.0)))
    return np.where(finite, codes, 255).astype(np.uint8)


VIEWER = Path(__file__).parent / "viewer"
_IMPORT = re.compile(r'^import\s*\{[^}]*\}\s*from\s*"\./([\w-]+)\.js";\n?', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function|const|class)\b)", re.MULTILINE)
_UNBUNDLED = re.compile(r"^(?:import|export)\b.*|^(?:const|let|var) *[\[{].*", re.MULTILINE)


class BundleError(StagescopeError):
    """A module of the viewer is not written in the way the bundler understands."""


def bundle(folder: Path = VIEWER, entry: str = "main") -> str:
    """All modules that the entry needs, each after those it imports from."""
    bodies: dict[str, str] = {}
    _visit(entry, folder, bodies)
    return embeddable("\n".join(f"// {module}.js\n{body}" for module, body in bodies.items()), "the viewer's script")


def _visit(module: str, folder: Path, bodies: dict[str, str]) -> None:
    """Add a module behind everything it imports. That imports have no cycles and names are unique is tested."""
    if module in bodies:
        return
    text = (folder / f"{module}.js").read_text(encoding="utf-8")
    for imported in _IMPORT.findall(text):
        _visit(imported, folder, bodies)
    bodies[module] = unexported(_IMPORT.sub("", text), f"{module}.js")


def unexported(text: str, source: str) -> str:
    """A module without `export`, to stand inside another script; it must not import anything."""
    body = _EXPORT.sub("", text)
    statement = _UNBUNDLED.search(body)
    if statement:
        raise BundleError(
            f"{source}: cannot bundle {statement.group()!r}; use import {{ a }} and export function, const or class"
        )
    return body


def embeddable(text: str, source: str) -> str:
    """Text that may stand inside <script> or <style> as it is."""
    if re.search(r"</(?:script|style)|<!--", text, re.IGNORECASE):
        raise BundleError(f"{source} holds '</script', '</style' or '<!--', which would end it early inside a page")
    return text


@cache
def viewer_script(entry: str) -> str:
    """`main` shows runs, `diagram` a sweep, `play` a playground."""
    return bundle(entry=entry)


@cache
def viewer_style(*sheets: str) -> str:
    return "\n".join(embeddable((VIEWER / f"{name}.css").read_text(encoding="utf-8"), f"{name}.css") for name in sheets)


@cache
def uplot_file(name: str) -> str:
    """A file of uPlot as the package uplot-python ships it; the package itself, which loads IPython, is not imported."""
    spec = find_spec("uplot")
    if spec is None or spec.origin is None:
        raise BundleError("uPlot is not installed; pip install uplot-python")
    return embeddable((Path(spec.origin).parent / "static" / name).read_text(encoding="utf-8"), name)
