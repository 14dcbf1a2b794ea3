"""Points in a plane that is the same for every frame, so that what moves on the page is what moved in the run."""

import numpy as np

MOST_POINTS = 300


def plane(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows (frames, n, w) in the plane of their largest variance, all frames together: (frames, n, 2), and shares (frames, 2).

    The axes are the two top eigenvectors of sum_frames sum_i (x_i - mean)(x_i - mean)^T, each signed so that its largest
    coordinate in the last frame is positive. Coordinates are taken from the origin, not from the mean: a row at zero is at
    zero. A share is that of the frame's own variance along an axis, nan where the frame has none.
    """
    rows = np.where(np.isfinite(rows).all(axis=(1, 2), keepdims=True), rows, np.nan)
    axes = _axes(rows)
    places = rows @ axes.T
    last = places[np.flatnonzero(np.isfinite(places).all(axis=(1, 2)))[-1]] if np.isfinite(rows).any() else np.zeros((1, 2))
    signs = np.sign(last[np.argmax(np.abs(last), axis=0), [0, 1]])
    places = places * np.where(signs == 0, 1.0, signs)
    centred = places - places.mean(axis=1, keepdims=True)
    total = np.sum((rows - rows.mean(axis=1, keepdims=True)) ** 2, axis=(1, 2))
    along = np.sum(centred**2, axis=1)
    return places, along / np.where(total > 0, total, np.nan)[:, None]


def _axes(rows: np.ndarray) -> np.ndarray:
    """The two axes (2, w); a second one that does not exist, where rows have a single number, is zero."""
    good = rows[np.isfinite(rows).all(axis=(1, 2))]
    centred = (good - good.mean(axis=1, keepdims=True)).reshape(-1, rows.shape[2])
    width = rows.shape[2]
    if centred.shape[0] >= width:
        _, vectors = np.linalg.eigh(centred.T @ centred)
        found = vectors[:, ::-1].T[:2]
    else:
        found = np.linalg.svd(centred, full_matrices=False)[2][:2]
    return np.vstack([found, np.zeros((2 - len(found), width))])
