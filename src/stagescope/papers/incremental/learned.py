"""How much of each feature a model has learned: its map from the tokens of a group to the scores, against the true one."""

import numpy as np

from stagescope.papers.incremental.observables import LagCurves
from stagescope.papers.incremental.regression.observables import HeadCurves
from stagescope.papers.incremental.students.positional import PositionalHeads


def learned_lags(curves: LagCurves) -> np.ndarray | None:
    """<M_i, w_i x beta_i A_i> / |w_i x beta_i A_i|^2 (frames, k): 1 where the map of group i is the true one [ISA:order].

    M_il = sum_h s_h(t - l) V_h, mean over targets, is what a token at lag l adds to the scores. None for models whose
    attention depends on the tokens.
    """
    model, process = curves.law.model, curves.law.process
    if not isinstance(model, PositionalHeads):
        return None
    targets, values = np.arange(model.targets), np.asarray(curves.params["V"])
    shares = []
    for number, (group, matrix) in enumerate(zip(process.groups, process.matrices, strict=True)):
        weights = np.array(process.group_weights(number))
        places = [curves.attention[:, :, targets, model.context + targets - lag].mean(axis=2) for lag in group]
        mixed = np.einsum("l,lfh->fh", weights, np.array(places))
        along = np.einsum("fhyx,yx->fh", values, matrix)
        shares.append(np.sum(mixed * along, axis=1) / (np.sum(weights**2) * np.sum(matrix**2)))
    return np.stack(shares, axis=1)


def learned_places(curves: HeadCurves) -> np.ndarray:
    """<P e_{p_i}, f_i> / g_i (frames, k) of the regression flow and its transformer [ISA:order]."""
    values = curves.model.reduce(curves.params)["V"]
    return curves.model.copies * np.einsum("fhi,fhi->fi", values, curves.mass) / np.array(curves.model.gains)
