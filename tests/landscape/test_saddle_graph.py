"""The saddle graph: all orbits and edges of a linear network, what a run took of it, valleys, and what is refused."""

import numpy as np
import pytest

import stagescope as ss
from tests.landscape.laws import deep_loss


@pytest.fixture(scope="module")
def loss():
    return ss.JaxObjective(lambda p, d: 0.5 * ((p["A"] @ p["B"] - d) ** 2).sum(), data=np.diag([2.0, 0.7]))


def start(eps):
    return {"A": eps * np.eye(2), "B": eps * np.eye(2)}


@pytest.fixture(scope="module")
def graph(loss):
    return ss.saddle_graph(loss, start(0.0))


@pytest.mark.long
def test_a_linear_network_has_a_node_for_each_set_of_strengths(graph):
    assert [node.loss for node in graph.nodes] == pytest.approx([2.245, 2.0, 0.245, 0.0], abs=1e-9)
    assert [node.index for node in graph.nodes] == [4, 2, 1, 0]
    assert [node.kind for node in graph.nodes] == ["saddle"] * 3 + ["minimum"]


def test_an_edge_opens_a_strength_or_exchanges_two(graph):
    found = {(edge.source, edge.target): edge.rate for edge in graph.edges}
    assert found == pytest.approx({(1, 3): 2.0, (1, 2): 0.7, (2, 4): 2.0, (2, 3): 1.3, (3, 4): 0.7})
    assert graph.json()["edges"][0]["from"] == 1


def test_the_nodes_that_a_run_passed(graph, loss):
    run = ss.evolve(loss, start(1e-4), ss.GradientFlow(), until=40, record=ss.Uniform(frames=400), progress=False)
    assert graph.visited(ss.critical_points(run, loss)) == (1, 3, 4)


def test_a_valley_without_end_is_said():
    loss = ss.JaxObjective(lambda p: 1 / (1 + (p["x"] ** 2).sum()))
    graph = ss.saddle_graph(loss, {"x": np.zeros(1)})
    assert [edge.target for edge in graph.edges] == [None]
    assert "valley without end" in graph.notes[-1]


def test_a_degenerate_node_has_no_edges_and_owns_its_cone():
    """Three layers: at W1 = W2 = 0 and any W3 the loss is that of the origin, and a rate there is at most as large as W3."""
    loss = deep_loss(3)
    cone = {"W1": np.zeros((2, 2)), "W2": np.zeros((2, 2)), "W3": np.diag([0.03, 0.0])}
    graph = ss.saddle_graph(loss, cone)
    assert [(node.kind, node.loss, node.rates) for node in graph.nodes] == [("degenerate", pytest.approx(0.625), ())]
    assert graph.edges == ()
    assert "at a degenerate node (1)" in graph.notes[-1]
    left = {name: np.diag([1.0, 0.0]) for name in ("W1", "W2", "W3")}
    passed = [ss.critical_point(loss, start) for start in (cone, left)]
    assert [point.index for point in passed] == [2, 0]
    assert (graph.visited(passed), graph.missing(passed)) == ((1,), 1)


def test_refusals(loss):
    with pytest.raises(ss.InputError, match=r"101 parameters.* read the ladder of a run"):
        ss.saddle_graph(ss.JaxObjective(lambda p: (p["x"] ** 4).sum()), {"x": np.zeros(101)})
    with pytest.raises(ss.InputError, match="no critical point is found"):
        ss.saddle_graph(ss.JaxObjective(lambda p: p["x"].sum()), {"x": np.zeros(2)})
