"""The matrices A_i through which past tokens change the scores of the next one [ISA:features]."""

from abc import abstractmethod
from io import BytesIO
from pathlib import Path
from typing import IO, Annotated, Literal
from zipfile import ZipFile, is_zipfile

import numpy as np
from pydantic import BeforeValidator, model_validator
from pydantic import Field as Limits

from stagescope.errors import InputError
from stagescope.keys import key
from stagescope.memory import require_memory
from stagescope.spec import Described, Numbers


def _nested(value: object) -> object:
    return value.tolist() if isinstance(value, np.ndarray) else value


class Features(Described):
    """Matrices A_i (d, d), one per group of lags, most important group first; column x is what token x adds to the scores."""

    @abstractmethod
    def stack(self, count: int, vocab: int) -> np.ndarray:
        """The matrices (count, vocab, vocab)."""


class RandomFeatures(Features):
    """Random matrices with |A_i|_F = sqrt(d) [ISA:features].

    `orthogonal`: uniform over the orthogonal matrices. `centred`: rows and columns sum to zero, and orthogonal (up to scale)
    on the vectors that sum to zero. `gram-schmidt`: centred, and tr(A_i^T A_j) = 0 for i != j. The matrices of a seed do not
    depend on their number.

    Args:
        kind: "orthogonal", "centred" or "gram-schmidt".
        seed: of the draw.

    Examples:
        >>> features = ss.RandomFeatures(kind="centred", seed=1)
        >>> made = ss.LaggedChain(vocab=3, groups=((1,),), importances=(2.0,), features=features)
        >>> bool(np.abs(made.matrices.sum(axis=1)).max() < 1e-12)
        True
    """

    kind: Literal["orthogonal", "centred", "gram-schmidt"] = "orthogonal"
    seed: int = Limits(default=0, ge=0)

    def stack(self, count: int, vocab: int) -> np.ndarray:
        require_memory("the features", "take a smaller vocabulary or fewer groups", count, vocab, vocab)
        if vocab < 2:
            raise InputError(f"vocab is {vocab}, but features need at least 2 tokens")
        draws = [key(self.seed, "features", i) for i in range(count)]
        if self.kind == "orthogonal":
            return np.array([_orthogonal(draw, vocab) for draw in draws])
        centred = np.array([_centred(draw, vocab) for draw in draws])
        return centred if self.kind == "centred" else self._mutually_orthogonal(centred)

    def _mutually_orthogonal(self, matrices: np.ndarray) -> np.ndarray:
        """Gram-Schmidt in the Frobenius product, done twice to remove rounding errors."""
        count, vocab, _ = matrices.shape
        found: list[np.ndarray] = []
        for matrix in matrices:
            rest = matrix
            for _ in range(2):
                rest = rest - sum((np.sum(rest * other) / vocab * other for other in found), start=np.zeros_like(rest))
            size = np.linalg.norm(rest)
            if size < 1e-6 * np.sqrt(vocab):  # what is left of the matrix is rounding, not a direction
                way = f"take another seed than {self.seed} or a larger vocabulary"
                raise InputError(f"{count} centred matrices on {vocab} tokens cannot be made orthogonal to each other; {way}")
            found.append(rest * np.sqrt(vocab) / size)
        return np.array(found)


def _orthogonal(draw: np.random.Generator, size: int) -> np.ndarray:
    """Uniform over the orthogonal group: QR of normal numbers, with the signs of R's diagonal moved into Q."""
    q, r = np.linalg.qr(draw.normal(size=(size, size)))
    return q * np.where(np.diag(r) < 0, -1.0, 1.0)


def _centred(draw: np.random.Generator, size: int) -> np.ndarray:
    """U Q U^T sqrt(d/(d-1)): Q orthogonal, the columns of U an orthonormal basis of the vectors that sum to zero."""
    basis = np.linalg.svd(np.ones((1, size)))[2][1:].T
    return basis @ _orthogonal(draw, size - 1) @ basis.T * np.sqrt(size / (size - 1))


class GivenFeatures(Features):
    """Matrices given by the caller, most important group first, used as they are.

    Args:
        matrices: of shape (groups, d, d).

    Examples:
        >>> features = ss.GivenFeatures(matrices=(((1.0, 0.0), (0.0, 1.0)),))
        >>> ss.LaggedChain(vocab=2, groups=((1,),), importances=(2.0,), features=features).reach
        1
    """

    matrices: Annotated[tuple[tuple[Numbers, ...], ...], BeforeValidator(_nested)]

    @model_validator(mode="after")
    def _valid(self) -> "GivenFeatures":
        if not self.matrices:
            raise ValueError("no matrices given; one per group of lags is needed")
        size = len(self.matrices[0])
        for number, matrix in enumerate(self.matrices):
            widths = {len(row) for row in matrix}
            if len(matrix) != size or widths != {size} or size < 2:
                shape = f"{len(matrix)} rows of {' or '.join(map(str, sorted(widths)))} entries"
                raise ValueError(f"matrix {number} has {shape}; expected square matrices of one size, at least 2 x 2")
        return self

    def stack(self, count: int, vocab: int) -> np.ndarray:
        found = np.array(self.matrices)
        if found.shape != (count, vocab, vocab):
            raise InputError(
                f"features have shape {found.shape}, but {count} groups of lags on {vocab} tokens need {(count, vocab, vocab)}"
            )
        return found


def read_features(path: str | Path, reverse: bool = False) -> GivenFeatures:
    """The matrices of an .npy file, or of an .npz file that holds one array, of shape (groups, d, d).

    Most important group first; `reverse` is for files that list them the other way round.

    Args:
        path: the file.
        reverse: whether the most important group is last in the file.

    Examples:
        >>> np.save("features.npy", np.eye(2)[None])
        >>> len(ss.read_features("features.npy").matrices)
        1
    """
    path = Path(path)
    expected = "expected one array of finite numbers of shape (groups, d, d) in an .npy or .npz file"
    try:
        with path.open("rb") as file:
            if not file.read(6).startswith((b"\x93NUMPY", b"PK")):
                raise InputError(f"cannot read the features in {path}: it is neither an .npy nor an .npz file; {expected}")
            file.seek(0)
            _check_size(path, file)
            file.seek(0)
            found = np.load(file, allow_pickle=False)
            if isinstance(found, np.lib.npyio.NpzFile):
                if len(found.files) != 1:
                    raise InputError(f"{path} holds {len(found.files)} arrays {sorted(found.files)}; {expected}")
                found = found[found.files[0]]
    except InputError:
        raise
    except Exception as error:  # a damaged archive can fail in zipfile, zlib, struct or NumPy, each in its own way
        why = "it holds Python objects, not numbers" if "allow_pickle" in str(error) else error
        raise InputError(f"cannot read the features in {path}: {why}; {expected}") from None
    if found.dtype.kind not in "fiu":
        raise InputError(f"{path} has entries of type {found.dtype}; {expected}")
    if found.ndim != 3 or found.shape[1] != found.shape[2] or 0 in found.shape:
        raise InputError(f"{path} has shape {found.shape}; {expected}")
    if not np.isfinite(found).all():
        raise InputError(f"{path} of shape {found.shape} has {np.sum(~np.isfinite(found))} entries not finite; {expected}")
    matrices = (found[::-1] if reverse else found).astype(float).tolist()
    return GivenFeatures(matrices=tuple(tuple(tuple(row) for row in matrix) for matrix in matrices))


PER_NUMBER = 5
"""Numbers of eight bytes that one number of a given matrix takes: its array, and a Python float in a tuple."""


def _check_size(path: Path, file: IO[bytes]) -> None:
    """Refuse an array by the shape in its header, whatever few bytes it is packed into."""
    if not is_zipfile(file):
        file.seek(0)
        return _check_header(path, file)
    with ZipFile(file) as archive:
        for name in archive.namelist():
            with archive.open(name) as member:
                _check_header(path, member)
    return None


def _check_header(path: Path, file: IO[bytes]) -> None:
    start = BytesIO(file.read(2**16))  # a header that is longer is refused
    old = np.lib.format.read_magic(start) == (1, 0)
    shape = (np.lib.format.read_array_header_1_0 if old else np.lib.format.read_array_header_2_0)(start)[0]
    require_memory(f"the features in {path}", "take a smaller vocabulary or fewer groups", PER_NUMBER, *shape)
