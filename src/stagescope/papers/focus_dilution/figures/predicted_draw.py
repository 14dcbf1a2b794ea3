"""The drawing of the figure of saddle paths."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure as Drawing
from matplotlib.lines import Line2D

from stagescope.papers.focus_dilution.figures.predicted import EVENTS
from stagescope.views.figure import COLORS, GREY, Numbers

DARK = "#333333"


def predicted(numbers: Numbers) -> Drawing:
    """Times over the logarithm of the start; on the right flows over predictions."""
    drawing, (left, right) = plt.subplots(1, 2, figsize=(9.4, 4.0), layout="constrained", width_ratios=(1.5, 1))
    eps, flow_eps = np.array(numbers["eps"]), np.array(numbers["flow_eps"])
    both = [each for each in numbers["flow_eps"] if each in numbers["eps"]]
    right.axhline(1, color=GREY, lw=0.9)
    for place, name in enumerate(EVENTS):
        color, times = COLORS[place], np.array(numbers["events"][name])
        left.plot(eps, times, color=color, lw=1.3)
        left.plot(flow_eps, numbers["flows"][name], "o", color=color, ms=4)
        left.annotate(
            f"${name[0]}_{name[1]}$", (eps[-1], times[-1]), (6, 0), textcoords="offset points", va="center", color=color
        )
        at = [numbers["eps"].index(each) for each in both]
        shares = np.array(numbers["half_widths"][name])[at] / times[at]
        moved = np.array(both) * 10 ** (0.11 * (place - 2))
        right.errorbar(moved, numbers["measured_over_predicted"][name], shares, fmt="o", color=color, ms=4, lw=0.9, capsize=2)
    left.set(xscale="log", xlabel=r"initial scale $\epsilon$", ylabel="t")
    left.set_xticks([10.0**-k for k in range(0, 61, 10)])
    left.set_xlim(1e-1, 1e-66)
    left.set_ylim(bottom=0)
    handles = [Line2D([], [], color=DARK, lw=1.3, label="predicted from the start, without a run")]
    handles += [Line2D([], [], color=DARK, marker="o", ls="", ms=4, label="flows")]
    left.legend(handles=handles, loc="upper left")
    right.set(xscale="log", xlabel=r"initial scale $\epsilon$", ylabel="flow / predicted (bars: intervals)")
    right.set_xlim(4e-3, 3e-7)
    worst = numbers["largest_difference"]
    drawing.suptitle(f"Event times of ref from the saddle path; flows differ by at most {100 * worst:.2f} %")
    return drawing
