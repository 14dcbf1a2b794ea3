"""Other chains with one stationary law: which of them focus and which move away [FD:attention-rate]."""

import numpy as np

from stagescope.dynamics.evolve import evolve
from stagescope.dynamics.flow import GradientFlow
from stagescope.dynamics.record import Uniform
from stagescope.papers.focus_dilution.forms import attention_rate
from stagescope.papers.focus_dilution.loss import TokenPopulation
from stagescope.papers.focus_dilution.model import TokenAttention
from stagescope.papers.focus_dilution.observables import token_curves
from stagescope.papers.focus_dilution.stages import passes, row_cycles
from stagescope.processes.markov_chain import MarkovChain
from stagescope.progress import Progress
from stagescope.views.figure import Numbers, rounded

PI = np.array([0.5, 0.25, 0.15, 0.10])
SCALE = 4.0


def joint_laws() -> dict[str, np.ndarray]:
    """Joint laws F_ij = pi_i P_ij of two neighbours, all with marginals pi: independent tokens plus moves that keep them.

    A swap s (E_ij + E_ji - E_ii - E_jj) makes i and j follow each other instead of themselves (s > 0) and stays
    reversible; a circulation s (C - C^T) along 0 -> 1 -> 2 -> 3 -> 0 does not.
    """
    base = np.outer(PI, PI)

    def swapped(*pairs: tuple[int, int, float]) -> np.ndarray:
        law = base.copy()
        for i, j, s in pairs:
            law[[i, j, i, j], [j, i, i, j]] += s, s, -s, -s
        return law

    cycle = np.roll(np.eye(len(PI)), 1, axis=1)
    circulation = 0.012 * (cycle - cycle.T)
    return {
        "reversible, clusters {0,1} {2,3}": swapped((0, 2, -0.05), (0, 3, -0.03), (1, 2, -0.02), (1, 3, -0.015)),
        "cyclic, 0→3→2→1→0": base - circulation,
        "the same cycle reversed": base + circulation,
        "anti-persistent": swapped((0, 1, 0.05), (0, 2, 0.012), (0, 3, 0.005), (1, 2, 0.005)),
    }


def transitions(progress: Progress) -> Numbers:
    """Attention on the frequent token in four chains with the law of ref, in units of 1/|c|: sign(c) decides the first move."""
    laws = progress.each(tuple(joint_laws().items()), "transitions", "flows")
    panels = [{"name": name, **_panel(law / PI[:, None])} for name, law in laws]
    agree = all(np.sign(panel["c"]) == np.sign(panel["first_move"]) for panel in panels)
    return {"pi": PI.tolist(), "scale": SCALE, "panels": panels, "sign_agrees": agree}


def _panel(transition: np.ndarray) -> Numbers:
    c = attention_rate(PI, transition, SCALE)
    model = TokenAttention(vocab=len(PI), width=8, scale=SCALE)
    problem = TokenPopulation(model=model, process=MarkovChain(rows=transition / transition.sum(axis=1, keepdims=True)))
    run = evolve(problem, model.init(0, 1e-3), GradientFlow(), until=14 / abs(c), record=Uniform(frames=3000), progress=False)
    curves = token_curves(run)
    opened, ends = (passes(curves.time, values)[0] for values in (curves.score_values, curves.embedding_values[:, 1:]))
    assert opened is not None
    until = float(curves.time[-1]) if ends is None else ends
    rows = curves.attention[:, :, 0]
    cycles = row_cycles(curves.time, rows, float(PI[0]), (opened / 2, until), float(np.sign(c)), 0)
    kept = np.flatnonzero((curves.time >= 0.6 * opened) & (curves.time <= 1.6 * opened))[::3]
    at = int(np.searchsorted(curves.time, opened))
    return {
        "c": c,
        "transition": rounded(transition),
        "reversible": bool(np.allclose(PI[:, None] * transition, (PI[:, None] * transition).T)),
        "Q1": opened,
        "E2": ends,
        "first_move": float(rows[at, 1] - PI[0]),
        "gain": {str(cycle.row): rounded(np.sign(c) * cycle.gain) for cycle in cycles if cycle.focus is not None},
        "ct": rounded(abs(c) * curves.time[kept]),
        "rows": rounded(rows[kept].T),
    }
