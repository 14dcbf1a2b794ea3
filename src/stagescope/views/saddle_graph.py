"""A saddle graph as a figure: loss downwards, the index of each critical point across, and the way a run took."""

from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from stagescope.landscape.saddle_graph import Node, SaddleGraph
from stagescope.views.figure import COLORS, FORMATS, GREY, check_replaceable, save

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing


def save_graph(graph: SaddleGraph, stem: str | Path, visited: tuple[int, ...] = ()) -> Path:
    """Write STEM.pdf, STEM.svg and STEM.png; returns the last. `visited` are the nodes that a run passed."""
    stem = Path(stem)
    for kind in FORMATS:
        check_replaceable(stem.with_suffix(f".{kind}"))
    save(lambda: draw_graph(graph, visited), stem)
    return stem.with_suffix(".png")


def draw_graph(graph: SaddleGraph, visited: tuple[int, ...] = ()) -> "Drawing":
    from matplotlib import pyplot

    drawing, axes = pyplot.subplots(figsize=(6.4, 4.4), layout="constrained")
    at = _places(graph)
    taken, low, high = set(pairwise(visited)), min(y for _, y in at.values()), max(y for _, y in at.values())
    for edge in graph.edges:
        on = (edge.source, edge.target) in taken
        begin = at[edge.source]
        end = at[edge.target] if edge.target is not None else (begin[0] - 0.4, max(edge.loss, low))
        style = {"arrowstyle": "-|>", "color": COLORS[1] if on else GREY, "linewidth": 2.2 if on else 0.9}
        style |= {
            "shrinkA": 9,
            "shrinkB": 9,
            "connectionstyle": "arc3,rad=0.08",
            "linestyle": "--" if edge.target is None else "-",
        }
        axes.annotate("", end, begin, arrowprops=style, zorder=3 if on else 1)
        x, y = (0.6 * a + 0.4 * b for a, b in zip(begin, end, strict=True))
        label = {"color": COLORS[1] if on else GREY, "fontsize": 7, "ha": "center", "va": "center", "zorder": 4}
        axes.text(x, y, f"{edge.rate:.3g}", **label, bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.6})
    for node in graph.nodes:
        color = COLORS[1] if node.number in visited else COLORS[0]
        axes.plot([at[node.number][0]], [at[node.number][1]], "o", color=color, markersize=15, zorder=5)
        axes.text(at[node.number][0], at[node.number][1], str(node.number), color="white", ha="center", va="center", zorder=6)
    axes.set_xticks(sorted({node.index for node in graph.nodes}))
    axes.set(xlabel="growing directions", ylabel="loss", title="Saddle graph: rates of what opens; orange: the way of the run")
    if not visited:
        axes.set_title("Saddle graph: rates of what opens")
    axes.margins(0.12, 0.12 if high > low else 1.0)
    axes.invert_xaxis()
    return drawing


def _places(graph: SaddleGraph) -> dict[int, tuple[float, float]]:
    """Index and loss; nodes that would cover each other are moved apart across."""
    groups: defaultdict[tuple[int, float], list[Node]] = defaultdict(list)
    span = max((node.loss for node in graph.nodes), default=1.0) - min((node.loss for node in graph.nodes), default=0.0) or 1.0
    for node in graph.nodes:
        groups[node.index, round(node.loss / span, 1)].append(node)
    return {
        node.number: (node.index + 0.3 * (place - (len(nodes) - 1) / 2), node.loss)
        for nodes in groups.values()
        for place, node in enumerate(nodes)
    }
