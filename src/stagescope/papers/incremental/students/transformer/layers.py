"""What follows the heads of a layer, and the output: matrices made ready for the kernel, and their gradients."""

import numpy as np

from stagescope.fields.lanes_kernel import LANES
from stagescope.papers.incremental.students.transformer.layer_kernel import Layer, Reading
from stagescope.papers.incremental.students.transformer.model import Transformer
from stagescope.papers.incremental.students.transformer.parts import Reader, Room, padded
from stagescope.papers.incremental.students.transformer.places import Blocks
from stagescope.papers.incremental.students.transformer.products_kernel import STRIPE


class Output:
    """Logits of rows of the stream."""

    def __init__(self, model: Transformer, params: Blocks, room: Room) -> None:
        self.reader = Reader(model, params, "out", params["U"], params["u"], room)
        self.arrays = reading(self.reader, "out", LANES, room, rectify=False, alone=True)

    def gradient(self, found: Blocks) -> None:
        found["U"] += read_gradient(self.reader, self.arrays, LANES, found)
        found["u"] += self.reader.d_offset


class AfterHeads:
    """How the heads of a layer and its MLP add to the stream; `keys` are those of dropout, none where nothing is dropped."""

    def __init__(self, model: Transformer, params: Blocks, layer: int, keys: np.ndarray, room: Room) -> None:
        self.layer, self.units, kind = layer, model.mlp, room.kind
        shapes = {"M": (model.width, 0), "m": (0,), "N": (0, model.width), "n": (0,)}  # without an MLP
        matrix, offset, out, bias = (params.get(f"{name}{layer}", np.zeros(shape, kind)) for name, shape in shapes.items())
        self.reader = Reader(model, params, f"mlp{layer}" if model.mlp else "out", matrix, offset, room)
        inside, out = padded(np.full(model.width, model.norm == "layer", kind), 0), padded(out, 1)
        self.arrays = Layer(
            keys=keys,
            threshold=np.uint16(model.threshold if keys.size else 0),
            scale=kind(1 / (1 - model.dropout) if keys.size else 1),
            residual=model.residual,
            zeros=np.zeros_like(inside),
            inside=inside,
            width=model.width,
            units=reading(self.reader, f"units{layer}", STRIPE, room, rectify=True, alone=not model.residual),
            out=in_stripes(out, STRIPE, f"mlp{layer}", room),
            back=in_stripes(out.T, LANES, f"mlp_back{layer}", room),
            bias=padded(bias, 0) if model.mlp else bias,
            d_out=np.zeros(out.size),
            d_bias=np.zeros(len(bias)),
        )

    def gradient(self, found: Blocks) -> None:
        if self.units:
            i = self.layer
            found[f"M{i}"] += read_gradient(self.reader, self.arrays.units, STRIPE, found)
            found[f"m{i}"] += self.reader.d_offset
            found[f"N{i}"] += from_stripes(self.arrays.d_out, self.units, STRIPE)[:, : self.arrays.width]
            found[f"n{i}"] += self.arrays.d_bias


def reading(reader: Reader, name: str, stripe: int, room: Room, **how: bool) -> Reading:
    """The arrays of a reader; those of the way back are in stripes of so many columns."""
    matrix = in_stripes(reader.matrix, LANES, f"read_{name}", room)
    back = in_stripes(reader.matrix.T, stripe, f"read_back_{name}", room)
    sums = np.zeros(reader.matrix.size)
    return Reading(matrix, back, reader.offset, reader.share, d_matrix=sums, d_offset=reader.d_offset, **how)


def read_gradient(reader: Reader, arrays: Reading, stripe: int, found: Blocks) -> np.ndarray:
    reader.d_matrix[:] = from_stripes(arrays.d_matrix, len(reader.offset), stripe).T
    return reader.gradient(found)


def in_stripes(matrix: np.ndarray, stripe: int, name: str, room: Room) -> np.ndarray:
    """Stripes of columns, one after the other: as wide as asked, those at the end of `LANES` columns, filled up with zeros."""
    rows, full = matrix.shape[0], padded(matrix, 1)
    out = room.take(name, full.size)
    for first, width in _stripes(full.shape[1], stripe):
        out[rows * first : rows * (first + width)] = full[:, first : first + width].reshape(-1)
    return out


def from_stripes(flat: np.ndarray, rows: int, stripe: int) -> np.ndarray:
    """Back from `in_stripes`."""
    columns = flat.size // rows
    blocks = (flat[rows * first : rows * (first + width)] for first, width in _stripes(columns, stripe))
    return np.concatenate([block.reshape(rows, -1) for block in blocks], axis=1)


def _stripes(columns: int, stripe: int) -> list[tuple[int, int]]:
    whole = columns - columns % stripe
    return [(at, stripe) for at in range(0, whole, stripe)] + [(at, LANES) for at in range(whole, columns, LANES)]
