"""Merged heads: one hyperbolic saddle, one curve for all small starts, one drop without a fitted constant [LIN:merged]."""

from dataclasses import dataclass
from functools import cache

import numpy as np

from stagescope.papers.linear_icl import forms
from stagescope.papers.linear_icl.process import RegressionTask
from stagescope.params import Params

SMALL = 1e-6
"""Size at which the common curve starts, beside the final value of a head: it is exponential there to the square of this."""
STEPS = 1500
"""Steps of the common curve, in Runge and Kutta's way: one is a sixtieth of 1/r, so its drop is right to 1e-7."""


def growth_rate(task: RegressionTask) -> float:
    """r = |Lambda^2|_F: how fast a small merged start grows [LIN:merged]."""
    return float(np.linalg.norm(task.spectrum**2))


def amplitude(task: RegressionTask, start: Params) -> float:
    """c, with c^2 = sum_h ((v_h + <U_h, Lambda^2>/r)/2)^2: the part of a start that grows."""
    along = np.einsum("hii,i->h", np.asarray(start["U"]), task.spectrum**2) / growth_rate(task)
    return float(np.linalg.norm((np.asarray(start["v"]) + along) / 2))


@dataclass(frozen=True)
class CommonCurve:
    """sigma' = sum_i V_i g_i, V_i' = sigma g_i, g_i = lambda_i^2 - lambda_i^3 a_i sigma V_i, from sigma = |V| = SMALL units."""

    time: np.ndarray
    loss: np.ndarray


def common_curve(task: RegressionTask) -> CommonCurve:
    """The curve that all heads of small merged starts follow, to well after its drop."""
    rate, square = growth_rate(task), task.spectrum**2
    stiff = task.spectrum**3 * task.amplification
    y = SMALL * forms.start_unit(task, True) * np.concatenate([[1.0], square / rate])

    def law(y: np.ndarray) -> np.ndarray:
        push = square - stiff * y[0] * y[1:]
        return np.concatenate([[y[1:] @ push], y[0] * push])

    end = (-np.log(SMALL) + 12) / rate
    step, found = end / STEPS, [y]
    for _ in range(STEPS):
        a = law(y)
        b = law(y + step / 2 * a)
        c = law(y + step / 2 * b)
        y = y + step / 6 * (a + 2 * b + 2 * c + law(y + step * c))
        found.append(y)
    learned = np.array([one[0] * one[1:] for one in found]) / forms.final_map(task)
    gains = task.spectrum / task.amplification
    loss = task.spectrum.sum() - (1 - (1 - learned) ** 2) @ gains
    return CommonCurve(step * np.arange(STEPS + 1), loss)


def drop_time(task: RegressionTask, start: Params) -> float:
    """Half of l_0 - l_D: t_ref + ln(eps/c)/r, eps the size at which the common curve starts [LIN:merged-drop]."""
    grown = amplitude(task, start)
    if grown == 0:
        return np.inf
    return _half(task.eigenvalues, task.contexts) + float(np.log(SMALL * forms.start_unit(task, True) / grown)) / growth_rate(
        task
    )


@cache
def _half(eigenvalues: tuple[float, ...], contexts: tuple[int, ...]) -> float:
    """The drop of the common curve of a task, to the level l_D itself and not to where the curve ends."""
    task = RegressionTask(eigenvalues=eigenvalues, contexts=contexts)
    curve, ends = common_curve(task), forms.levels(task)[[0, -1]]
    middle = float(np.mean(ends))
    place = int(np.argmax(curve.loss < middle))
    x, y = curve.time[place - 2 : place + 2], curve.loss[place - 2 : place + 2]
    return float(np.polyval(np.polyfit(y - middle, x, 3), 0.0))


def logistic(task: RegressionTask, first: float, time: np.ndarray) -> np.ndarray:
    """m(t) of M = m I for equal eigenvalues, from an aligned balanced start with M = first I [LIN:logistic]."""
    last = float(forms.final_map(task)[0])
    rate = 2 * np.sqrt(task.dim) * task.spectrum[0] ** 2
    return last / (1 + (last / first - 1) * np.exp(-rate * np.asarray(time)))
