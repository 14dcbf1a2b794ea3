"""The saddle graph of a small loss: its critical points, what opens at each, and where the flow along it goes. Experimental."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from stagescope.errors import InputError
from stagescope.fields.field import Field, Objective
from stagescope.landscape.critical import CriticalPoint
from stagescope.landscape.derivatives import Derivatives
from stagescope.landscape.general_path import reach
from stagescope.landscape.general_walk import Law, Settled, Stretch
from stagescope.landscape.growth import threshold
from stagescope.landscape.tangents import Eigen, Tangents
from stagescope.params import Params
from stagescope.threads import one_blas_thread

MISSES = (
    "points that no flow from those found falls onto are not in the graph",
    "of directions that share a rate only one and its opposite are followed",
    "along a slow direction rounding grows at the faster rates beside it, so a flow may miss the point it would fall onto",
)
"""What a saddle graph may lack, whatever the loss."""


@dataclass(frozen=True)
class GraphRule:
    """How nodes are found, and when two points are one node."""

    largest: int = 100  # parameters
    zero: float = 1e-10  # |F| of a critical point
    same: float = 1e-5  # losses of one node, relative to the largest |loss|, and its rates, relative to the largest rate
    line: tuple[float, ...] = (
        0.25,
        0.5,
        0.75,
    )  # shares of the way to a degenerate point: F is zero there too on a cone through it
    push: float = 0.05  # the step out of a point, in shares of the size to which the linear law holds
    until: float = 1e5  # a flow that has fallen onto no point by then follows a valley without end
    most: int = 60  # nodes


RULE = GraphRule()


@dataclass(frozen=True)
class Node:
    """Critical points that are one by loss and rates, as those of a symmetry are; `params` is one, `index` counts what grows.

    At a degenerate node every rate is zero. Points on a cone of zeros through it belong to it: their rates are no law.
    """

    number: int
    loss: float
    index: int
    kind: str
    rates: tuple[float, ...]
    params: Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Edge:
    """What opens at a node, a rate that `copies` directions share, and the node that the flow along it falls onto.

    `target` is None where the flow follows a valley without end, or is given up, with the loss down to `loss`.
    """

    source: int
    target: int | None
    rate: float
    copies: int
    loss: float


@dataclass(frozen=True)
class SaddleGraph:
    """Nodes by falling loss, edges, and notes on what is not in it.

    Examples:
        >>> graph = ss.saddle_graph(well, {"x": np.full(1, 0.5)})
        >>> [(node.kind, round(node.loss, 3)) for node in graph.nodes]
        [('maximum', 0.25), ('minimum', 0.0)]
    """

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    notes: tuple[str, ...]

    def visited(self, points: Sequence[CriticalPoint]) -> tuple[int, ...]:
        """The nodes of critical points, such as those that a run passed, by loss and index; those that are in the graph."""
        return tuple(dict.fromkeys(number for point in points if (number := self._number(point)) is not None))

    def missing(self, points: Sequence[CriticalPoint]) -> int:
        """How many of these critical points are not in the graph."""
        return sum(point.found and self._number(point) is None for point in points)

    def _number(self, point: CriticalPoint) -> int | None:
        scale = max(abs(node.loss) for node in self.nodes)
        for node in self.nodes:
            same = point.loss is not None and abs(point.loss - node.loss) <= RULE.same * scale
            if point.found and same and (point.index == node.index or node.kind == "degenerate"):
                return node.number
        return None

    def json(self) -> dict[str, Any]:
        names = ("number", "loss", "index", "kind")
        nodes = [{**{name: getattr(node, name) for name in names}, "rates": list(node.rates)} for node in self.nodes]
        edges = [{"from": e.source, "to": e.target, "rate": e.rate, "copies": e.copies, "loss": e.loss} for e in self.edges]
        return {"nodes": nodes, "edges": edges, "notes": list(self.notes)}

    def __str__(self) -> str:
        nodes = [f"{node.number}  {node.kind:<8} index {node.index}  loss {node.loss:.6g}" for node in self.nodes]
        edges = [f"{e.source} -> {'valley' if e.target is None else e.target}  rate {e.rate:.4g}" for e in self.edges]
        return "\n".join([*nodes, *edges, *(f"note: {note}" for note in self.notes)])


@one_blas_thread()
def saddle_graph(what: Objective | Field, start: Params) -> SaddleGraph:
    """The saddle graph from the origin, where it is critical, and from the critical point near `start`; experimental.

    It is for losses of up to 100 parameters.

    From every critical point the flow along each rate that grows is followed, both ways, to the next one. Points with the same
    loss and rates are one node, so an orbit of a symmetry is one, and a family along which rates change is several. Missed are
    points that no such flow falls onto, also minima that only mixtures of directions lead to, and, of directions that share a
    rate, all but one.

    Args:
        what: an objective or a field.
        start: parameters near a critical point.

    Returns:
        Critical points and the flows between them.

    Examples:
        >>> graph = ss.saddle_graph(well, {"x": np.full(1, 0.5)})
        >>> len(graph.nodes), len(graph.edges)
        (2, 1)
    """
    near = Derivatives(what, start)
    if near.field.objective is None:
        raise InputError(f"{type(what).__name__} is no gradient of a loss, and a saddle graph needs one")
    if near.layout.size > RULE.largest:
        much = f"the model has {near.layout.size} parameters, and a saddle graph is for {RULE.largest} at most"
        raise InputError(f"{much}; take a smaller model, or read the ladder of a run")
    law = Law(near)
    first = law.refined(near.layout.pack(start) / law.roots)
    speed = float(np.linalg.norm(law.velocity(first)))
    if not speed <= RULE.zero:
        raise InputError(f"no critical point is found from the start: |F| = {speed:.2g} where the search ends; start near one")
    origin = np.zeros_like(first)  # its zeros are exact, also those of symmetry
    critical = np.linalg.norm(law.velocity(origin)) <= RULE.zero
    return _Search(law).graph([origin, first] if critical else [first])


class _Search:
    def __init__(self, law: Law) -> None:
        self.law = law
        self.points: list[np.ndarray] = []
        self.found: list[tuple[float, Eigen]] = []
        self.edges: list[Edge] = []

    def graph(self, first: list[np.ndarray]) -> SaddleGraph:
        for point in first:
            self._number(point)
        done = 0
        while done < min(len(self.points), RULE.most):
            self.edges += self._edges(done)
            done += 1
        notes: list[str] = list(MISSES)
        if len(self.points) > done:
            notes.append(f"more than {RULE.most} nodes: what opens at the others is not followed")
        if any(edge.target is None for edge in self.edges):
            notes.append("some flows follow a valley without end, or were given up: their edges have no target")
        return self._sorted(notes)

    def _degenerate(self, number: int) -> bool:
        return self.found[number][1].largest <= threshold(0.0)

    def _on_cone(self, point: np.ndarray, tip: int) -> bool:
        """Whether F vanishes all the way from a point to a degenerate one."""
        way = self.points[tip] - point
        return all(np.linalg.norm(self.law.velocity(point + share * way)) <= RULE.zero for share in RULE.line)

    def _number(self, point: np.ndarray) -> int:
        """The node of a point; a new one where its loss or rates are not those of another, and it is on no cone of zeros."""
        loss, eigen = self.law.loss(point), Eigen.of(self.law.jacobian(point))
        scale = max([abs(loss), *(abs(other) for other, _ in self.found)])
        for number, (other, rates) in enumerate(self.found):
            close = np.abs(eigen.rates - rates.rates).max() <= np.sqrt(RULE.same) * max(eigen.largest, 1e-300)
            if abs(loss - other) <= RULE.same * scale and (close or (self._degenerate(number) and self._on_cone(point, number))):
                return number
        self.points.append(point)
        self.found.append((loss, eigen))
        return len(self.points) - 1

    def _edges(self, number: int) -> Iterator[Edge]:
        point, (loss, eigen) = self.points[number], self.found[number]
        seen = set()
        for places in eigen.clusters(threshold(eigen.largest)):
            unit, rate = eigen.vectors[:, places[-1]], float(eigen.rates[places].mean())
            for sign in (1.0, -1.0):
                target, low = self._falls(point, eigen, loss, sign * unit, rate)
                if (target, rate) not in seen:
                    seen.add((target, rate))
                    yield Edge(number, target, rate, len(places), low)

    def _falls(self, point: np.ndarray, eigen: Eigen, loss: float, unit: np.ndarray, rate: float) -> tuple[int | None, float]:
        """The node that the flow from a point along a direction falls onto, and its loss there or where it was left."""
        size = float(np.log(RULE.push * reach(self.law, point, eigen, unit)))
        stay = Settled(point, 0.0, 0.0, loss, eigen, (size, size), unit, rate)
        stretch = Stretch(self.law, stay, Tangents.of(np.zeros_like(unit)), np.inf, RULE.until)
        low = stretch.walked().losses[-1]
        return (None, low) if stretch.arrived is None else (self._number(stretch.arrived), self.law.loss(stretch.arrived))

    def _sorted(self, notes: list[str]) -> SaddleGraph:
        order = sorted(range(len(self.points)), key=lambda k: -self.found[k][0])
        place = {old: new + 1 for new, old in enumerate(order)}
        nodes = [self._node(place[old], old) for old in order]
        edges = [
            Edge(place[e.source], None if e.target is None else place[e.target], e.rate, e.copies, e.loss) for e in self.edges
        ]
        edges.sort(key=lambda edge: (edge.source, -edge.rate))
        flat = [str(node.number) for node in nodes if node.kind == "degenerate"]
        if flat:
            notes.append(
                f"no rate is the law of what opens at a degenerate node ({', '.join(flat)}), so nothing is followed from it; "
                "run it and read its ladder"
            )
        return SaddleGraph(tuple(nodes), tuple(edges), tuple(notes))

    def _node(self, number: int, old: int) -> Node:
        loss, eigen = self.found[old]
        zero = threshold(eigen.largest)
        rates = tuple(float(rate) for rate in eigen.rates[::-1] if rate > zero)
        falls = bool(np.any(eigen.rates < -zero))
        kind = "saddle" if rates and falls else "maximum" if rates else "minimum" if falls else "degenerate"
        params = self.law.near.layout.unpack(self.law.roots * self.points[old])
        return Node(number, loss, len(rates), kind, rates, params)
