"""The blocks of a page decoded once more, in NumPy and from the description alone: nothing of blocks.py is used."""

import base64
import json
import zlib
from html.parser import HTMLParser
from typing import Any

import numpy as np

DTYPES = {"f64": "<f8", "f32": "<f4", "i32": "<i4", "u8": "u1"}


def decoded(block: dict[str, Any], payload: str) -> np.ndarray:
    """The array of a block; companded ones as the values their codes stand for."""
    data = zlib.decompress(base64.b64decode(payload, validate=True))
    if block["encoding"] == "companded":
        return levels(block)[codes(block, data)]
    dtype = np.dtype(DTYPES[block["encoding"]])
    items = b"".join(bytes(item) for item in zip(*np.array_split(np.frombuffer(data, "u1"), dtype.itemsize), strict=True))
    if block.get("order"):
        signed = np.array([(z >> 1) ^ -(z & 1) for z in np.frombuffer(items, "<u4").tolist()]).reshape(block["shape"])
        for _ in range(block["order"]):
            signed = np.cumsum(signed, axis=0)
        items = (signed % 2**32).astype("<u4").tobytes()
    return np.frombuffer(items, dtype).reshape(block["shape"])


def codes(block: dict[str, Any], data: bytes) -> np.ndarray:
    frames, *cells = block["shape"]
    by_cell = np.frombuffer(data, "u1").reshape(*cells, frames)
    return np.moveaxis(np.cumsum(by_cell, axis=-1, dtype=int) % 256, -1, 0)


def levels(block: dict[str, Any]) -> np.ndarray:
    """The value of each code; NaN for 255."""
    low, high = block["low"], block["high"]
    if low == -high:
        values = [high * abs(c - 127) * (c - 127) / 127**2 for c in range(255)]
    else:
        values = [low + (high - low) * (c / 254) ** 2 for c in range(255)]
    return np.array([*values, np.nan])


def precision(block: dict[str, Any], values: np.ndarray) -> np.ndarray:
    """How far a shown value can be from the true one: half the distance to the farther neighbouring level."""
    steps = np.diff(levels(block)[:255])
    wide = np.maximum(np.concatenate([[0], steps]), np.concatenate([steps, [0]])) / 2
    return wide[np.searchsorted(levels(block)[:255], values)]


class Parts(HTMLParser):
    """The elements of a page as a browser sees them: tags with attributes, and the text inside scripts and styles."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.open = False
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self.texts.append("")
        self.open = True

    def handle_endtag(self, tag: str) -> None:
        self.open = False

    def handle_data(self, data: str) -> None:
        if self.open:
            self.texts[-1] += data

    def inside(self, tag: str, **wanted: str) -> list[str]:
        pairs = zip(self.tags, self.texts, strict=True)
        return [text for (name, has), text in pairs if name == tag and wanted.items() <= has.items()]

    def data(self) -> dict[str, Any]:
        return json.loads(self.inside("script", id="data")[0])

    def array(self, block: dict[str, Any]) -> np.ndarray:
        return decoded(block, self.inside("script", id=f"block-{block['id']}")[0])
