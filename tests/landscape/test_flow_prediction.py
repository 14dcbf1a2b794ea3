"""A flow as the prediction: exact times, the order of events, and what float64 does not follow."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import stagescope as ss
from stagescope.detect.events import first_crossing
from stagescope.landscape.flow_prediction import FlowEvents, NotFollowed, flow_prediction
from stagescope.landscape.saddle_path import Predicted, SaddlePath, in_order

RATES = np.array([2.0, 1.0, 0.5])
GROWS, FALLS = np.array([np.cos(0.3), np.sin(0.3)]), np.array([-np.sin(0.3), np.cos(0.3)])


def wells():
    """Uncoupled x_k' = rate_k x_k (1 - x_k^2): when x_k passes 1/2 has a closed form."""
    return ss.JaxObjective(lambda p, rates: (rates * (1 - p["x"] ** 2) ** 2).sum() / 4, data=RATES)


def saddle():
    """One growing and one falling direction, at an angle to the axes."""
    return ss.JaxObjective(lambda p, h: p["x"] @ h @ p["x"] / 2, data=np.outer(FALLS, FALLS) - np.outer(GROWS, GROWS))


def halves(steps):
    x = steps.params["x"]
    return {f"X{k + 1}": first_crossing(steps.time, np.log(np.abs(x[:, k])), np.log(0.5), rising=True) for k in range(x.shape[1])}


EVENTS = FlowEvents(halves, lambda law, passed, coming: (str(len(passed)), coming))


def when(x, rates=RATES):
    return np.log((0.25 / 0.75) / (x**2 / (1 - x**2))) / (2 * rates)


def test_times_are_those_of_the_closed_form():
    start = np.array([1e-4, 1e-5, 1e-3])
    path = flow_prediction(wells(), {"x": start}, 100.0, ss.GradientFlow(), EVENTS)
    for name, exact in zip(("X1", "X2", "X3"), when(start), strict=True):
        assert path[name].t == pytest.approx(exact, rel=1e-6)
        assert path[name].low < exact < path[name].high
    assert [leg.opens for leg in path.legs] == [*path.sequence, None]
    assert [leg.t_in for leg in path.legs[1:]] == [leg.t_out for leg in path.legs[:-1]]


def test_what_comes_after_the_end_and_what_is_there_at_the_start_have_no_time():
    path = flow_prediction(wells(), {"x": np.array([1e-4, 0.7, 1e-9])}, 10.0, ss.GradientFlow(), EVENTS)
    assert path.sequence == ("X1",)
    assert "at the start" in path["X2"].reason
    assert path["X3"].beyond == 10.0


@pytest.mark.parametrize(("part", "followed"), [(1e-3, True), (0.0, False)])
def test_an_event_that_rounding_decides_is_refused(part, followed):
    def left(steps):
        return {"left": first_crossing(steps.time, np.abs(steps.params["x"] @ GROWS), 0.1, rising=True)}

    def predicted():
        start = {"x": FALLS + part * GROWS}
        events = FlowEvents(left, lambda law, passed, coming: ("", coming))
        return flow_prediction(saddle(), start, 45.0, ss.GradientFlow(), events)

    if followed:
        assert predicted()["left"].t == pytest.approx(np.log(100), rel=1e-5)
        return
    with pytest.raises(NotFollowed, match="left"):
        predicted()


@given(st.lists(st.tuples(st.floats(1, 100), st.floats(0.01, 5)), min_size=1, max_size=6))
def test_numbers_of_a_kind_are_in_the_order_of_their_times(drawn):
    events = {f"E{k + 1}": Predicted(t, t - half, t + half) for k, (t, half) in enumerate(drawn)}
    path = SaddlePath((), events, (), 0.1, np.zeros(0), {})
    for bound in ("low", "t", "high"):
        values = [getattr(event, bound) for event in path.events.values()]
        assert values == sorted(values)
    assert all(event.low <= event.t <= event.high for event in path.events.values())
    if all(events[name].t == event.t for name, event in path.events.items()):
        assert [event.t for event in in_order(events).values()] == [t for t, _ in drawn]
