"""The saddle path of TokenAttention: its linear laws, its predictions beside flows, and what it refuses."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import stagescope as ss
from stagescope.landscape.graded import Graded
from stagescope.papers.focus_dilution.family import slopes
from stagescope.papers.focus_dilution.kernel import population_slopes
from stagescope.papers.focus_dilution.limits import LIMITS
from stagescope.papers.focus_dilution.saddle_path import State
from stagescope.papers.focus_dilution.stages import passes
from tests.processes.test_markov_chain import chains

REF = ss.LazyChain(pi=(0.5, 0.25, 0.15, 0.1), persistence=0.6)
SEEDS = st.integers(0, 1000)


def loss_of(chain=REF, width=5, key_width=3, scale=4.0):
    return ss.population_loss(ss.TokenAttention(vocab=chain.vocab, width=width, key_width=key_width, scale=scale), chain)


@pytest.fixture(scope="module")
def path():
    return ss.saddle_path(loss_of(), scale=1e-5)


def flow_values(loss, start, until):
    """Times, and singular values of W0 and Phi, of a flow of the whole model."""
    flow = ss.GradientFlow(rtol=1e-9)
    run = ss.evolve(loss, start, flow, until=until, record=ss.Uniform(frames=3000), progress=False)
    params = {name: run.params[name] for name in run.params}
    values = {"E": params["W0"], "Q": loss.model.scores(params)}
    return run.time, {name: np.linalg.svd(matrix, compute_uv=False) for name, matrix in values.items()}


def stacked(params):
    return np.vstack([params["W0"], params["W1"].T, params["WQ"].T, params["WK"].T])


@settings(max_examples=20, deadline=None)
@given(chains(), SEEDS, st.booleans())
def test_the_flow_is_a_linear_law_on_the_stacked_blocks(chain, seed, finite):
    """E' = N(E) E, an identity: with S and U whole, the laws are those of the model itself."""
    loss = loss_of(chain, scale=2.0)
    if finite:
        loss = ss.finite_loss(loss.model, chain, 3)
    point, down = loss.model.init(seed, 0.7), loss.grad(loss.model.init(seed, 0.7))
    none = Graded(np.zeros(0), np.zeros((0, 2 * 4 + 2 * 3)), np.zeros((0, 5)))
    keys = Graded(np.zeros(0), np.zeros((0, 10)), np.zeros((0, 3)))
    b, f = State(point, np.eye(5), np.eye(3), none, keys).laws(loss, point)
    e, d = stacked(point), chain.vocab
    assert np.allclose(np.vstack([b @ e[d:], b.T @ e[:d]]), -stacked(down), atol=1e-13)
    assert np.allclose(f @ point["WK"], -down["WQ"], atol=1e-13)
    assert np.allclose(f.T @ point["WQ"], -down["WK"], atol=1e-13)


@settings(max_examples=20, deadline=None)
@given(chains(), SEEDS)
def test_the_compiled_slopes_are_those_of_the_family(chain, seed):
    loss = loss_of(chain)
    small = {name: block.copy() for name, block in loss.model.init(seed, 0.8).items()}
    found = population_slopes(chain.stationary, chain.transition, 4.0, *(small[name] for name in ("W0", "W1", "WQ", "WK")))
    for mine, known in zip(found, slopes(loss, small), strict=True):
        assert np.allclose(mine, known, atol=1e-13)


@settings(max_examples=20, deadline=None)
@given(SEEDS)
def test_what_is_outside_obeys_the_laws_to_second_order(seed):
    """A state split into a small model (1,1) and stacks of size 1e-5: the laws miss the velocity by the square only."""
    loss, rng = loss_of(), np.random.default_rng(seed)
    state = State.at(loss.model.init(seed, 1e-5)).opened("embedding").opened("attention")
    small = {name: rng.normal(size=block.shape) for name, block in state.small.items()}
    b, _ = state.laws(loss, small)
    inside = {"W0": small["W0"] @ state.s, "W1": state.s.T @ small["W1"]}
    inside |= {name: state.s.T @ small[name] @ state.u for name in ("WQ", "WK")}
    outside, beside = state.embedding.matrix, state.attention.matrix
    queries = {"WQ": state.s.T @ (state.s @ beside[:5]), "WK": state.s.T @ (state.s @ beside[5:])}
    parts = dict(zip(("W0", "W1", "WQ", "WK"), np.split(outside, [4, 8, 11]), strict=True))
    whole = {name: inside[name] + (parts[name] if name == "W0" else parts[name].T) + queries.get(name, 0.0) for name in inside}
    project = np.eye(5) - state.s.T @ state.s
    wanted = -stacked(loss.grad(whole)) @ project
    found = np.vstack([b @ outside[4:], b.T @ outside[:4]])
    assert np.allclose(found, wanted, atol=2e-8 * np.linalg.norm(np.hstack([b, b])))


@pytest.mark.long
def test_ref_comes_as_its_flow(path):
    loss = loss_of()
    time, values = flow_values(loss, loss.model.init(0, 1e-5), 800.0)
    seen = {f"{name}{k + 1}": when for name in "EQ" for k, when in enumerate(passes(time, values[name])) if when is not None}
    assert set(path.sequence) == set(seen) == {"E1", "Q1", "E2", "Q2", "E3"}
    assert list(path.sequence) == sorted(seen, key=lambda name: seen[name])
    for name, when in seen.items():
        assert path[name].t == pytest.approx(when, rel=1e-3)
        assert path[name].low <= when <= path[name].high


def test_legs_are_joined_and_end_at_the_floor(path):
    assert [leg.label for leg in path.legs] == ["(0,0)", "(1,0)", "(1,1)", "(2,1)", "(2,2)", "(3,2)"]
    assert [leg.t_out for leg in path.legs[:-1]] == [leg.t_in for leg in path.legs[1:]]
    assert [leg.opens for leg in path.legs] == ["embedding", "attention", "embedding", "attention", "embedding", None]
    assert path.legs[0].rates == pytest.approx([0.18104], rel=1e-3)
    assert path.legs[1].loss == pytest.approx(1.208, abs=2e-3)
    assert path.legs[-1].loss == pytest.approx(REF.floor(), abs=1e-4)
    assert {leg.state for leg in path.legs} <= {"settled", "passed", "at infinity"}


@pytest.mark.long
def test_beside_a_run_a_path_ends_at_the_first_event_after_it(path):
    """What comes before is the same; what comes later is not known, and nothing is called absent."""
    order = path.sequence
    middle = (path[order[1]].t + path[order[2]].t) / 2
    found = ss.saddle_path(loss_of(), scale=1e-5, seen=middle)
    assert LIMITS.time_factor * middle < path[order[2]].t
    assert found.sequence == order[:3]
    for name in order[:3]:
        assert found[name] == path[name]
    assert [leg.t_out for leg in found.legs[:2]] == [leg.t_out for leg in path.legs[:2]]
    later = found[order[3]]
    assert later.t is None
    assert not later.absent
    assert LIMITS.time_factor * middle < later.beyond < (path[order[3]].t or 0.0)
    assert "followed to the first event well after" in later.reason


@pytest.mark.long
def test_a_path_that_ends_before_is_whole_beside_a_run(path):
    assert ss.saddle_path(loss_of(), scale=1e-5, seen=2 * path[path.sequence[-1]].t).json() == path.json()


def test_what_is_not_reached_has_a_reason(path):
    assert path["E4"].t is None
    assert "nothing grows" in path["E4"].reason
    assert any(note.startswith("E4") for note in path.notes)


@pytest.mark.long
def test_a_start_of_1e_60_follows_the_rate_at_the_origin(path):
    tiny = ss.saddle_path(loss_of(), scale=1e-60)
    assert tiny.sequence == path.sequence
    rate = np.log(10) * 55 / (tiny["E1"].t - path["E1"].t)
    assert rate == pytest.approx(0.18104, rel=1e-3)
    assert tiny.legs[1].state == "settled"
    assert tiny.legs[1].local_rate == pytest.approx(tiny.legs[1].rates[0], rel=1e-2)


@pytest.mark.long
def test_the_same_start_given_as_blocks(path):
    loss = loss_of()
    assert ss.saddle_path(loss, loss.model.init(0, 1e-5)).json() == path.json()


@pytest.mark.long
def test_finite_contexts_have_a_path():
    chain = ss.LazyChain(pi=(0.5, 0.3, 0.2), persistence=0.6)
    loss = ss.finite_loss(loss_of(chain, 3, 2).model, chain, 4)
    found = ss.saddle_path(loss, scale=1e-4, until=60.0)
    time, values = flow_values(loss, loss.model.init(0, 1e-4), 60.0)
    assert found["E1"].t == pytest.approx(passes(time, values["E"])[0], rel=1e-3)


@pytest.mark.long
def test_below_the_critical_scale_the_event_never_comes():
    """Two paths on either side, and two flows that agree."""
    chain = ss.LazyChain(pi=(0.494172992146468, 0.052613012837949, 0.453213995015583), persistence=0.29083272603994414)
    loss = loss_of(chain, 4, 4)
    for scale, comes in ((5e-4, False), (2e-3, True)):
        assert (ss.saddle_path(loss, scale=scale)["Q2"].t is not None) == comes
        values = flow_values(loss, loss.model.init(0, scale), 20_000.0)[1]
        assert bool(np.any(values["Q"][:, 1] > 0.1)) == comes


def test_a_start_that_is_too_large_is_refused_by_how_much():
    with pytest.raises(ss.InputError, match=r"rms 0.0\d+, .* times the largest"):
        ss.saddle_path(loss_of(), scale=0.03)


def test_a_start_without_embeddings_is_refused():
    with pytest.raises(ss.InputError, match="nothing ever moves"):
        ss.saddle_path(loss_of(), scale={"W0": 0.0, "W1": 0.0, "WQ": 1e-3, "WK": 1e-3})


def test_a_start_of_other_blocks_is_refused():
    with pytest.raises(ss.InputError, match="the model has"):
        ss.saddle_path(loss_of(), loss_of(width=4).model.init(0, 1e-4))


def test_a_field_that_drifts_from_the_origin_is_refused():
    plan = ss.study("scan-snap").setup(ss.study("scan-snap").configured("syn-small-flow"), 0)
    with pytest.raises(ss.InputError, match="no critical point"):
        ss.saddle_path(plan.what, plan.params)


def test_a_batch_is_refused():
    loss = ss.TokenSampled(model=loss_of().model, process=REF, sequences=20, length=4, batch=5)
    with pytest.raises(ss.InputError, match="batch"):
        ss.saddle_path(loss)


@pytest.fixture(scope="module")
def symmetric():
    """Three equal rare tokens: the point (1,1) can be left inside its own model, along what tells them apart."""
    return loss_of(ss.LazyChain(pi=(0.55, 0.15, 0.15, 0.15), persistence=0.6), 3, 2)


@pytest.mark.long
def test_a_way_out_inside_the_small_model_is_followed(symmetric):
    found = ss.saddle_path(symmetric, scale=1e-7, until=2500.0)
    time, values = flow_values(symmetric, symmetric.model.init(0, 1e-7), 2000.0)
    assert found["E2"].t == pytest.approx(passes(time, values["E"])[1], rel=2e-3)


def test_a_way_out_that_is_lost_to_rounding_is_not_predicted(symmetric):
    found = ss.saddle_path(symmetric, scale=1e-40)
    assert found["Q1"].t is not None
    assert found["E2"].t is None
    assert "lost to rounding" in found["E2"].reason


def test_the_critical_scale_is_found(monkeypatch):
    """Bisection with a stand-in for paths, where the event comes from a scale of 3e-9 on."""
    from stagescope.landscape.saddle_path import Predicted, SaddlePath
    from stagescope.readings import predicting

    def stand_in(what, *, scale, seed, until):
        absent = Predicted(None, absent=True)
        events = {"Q2": Predicted(1.0, 1.0, 1.0) if scale > 3e-9 else absent, "E9": absent, "E8": Predicted(None, reason="lost")}
        events["Q3"] = events["Q2"] if not 1e-9 < scale < 1e-5 else Predicted(None, reason="not decided")
        return SaddlePath((), events, (), 0.02, np.zeros(0), {})

    monkeypatch.setattr(predicting, "saddle_path", stand_in)
    found = ss.critical_scale(loss_of(), "Q2")
    assert found.low is not None
    assert found.high is not None
    assert found.low <= 3e-9 <= found.high
    assert found.high / found.low <= 1.02
    assert ss.critical_scale(loss_of(), "E9").note.startswith("E9 does not come at scale 0.002")
    assert ss.critical_scale(loss_of(), "E8").note == "whether E8 comes at scale 0.002 is not known: lost"
    band = ss.critical_scale(loss_of(), "Q3")
    assert (band.low, band.high) == (pytest.approx(1e-9, rel=0.02), pytest.approx(1e-5, rel=0.02))
    assert band.note == "between the two it is not known: not decided"
    with pytest.raises(ss.InputError, match="E7"):
        ss.critical_scale(loss_of(), "E7")


@pytest.mark.long
def test_with_equal_rare_tokens_a_path_leaves_inside_its_own_model():
    """Above lambda_c the rates outside fall at first, and rise when the small model has moved on; E2 as the flow has it."""
    loss = loss_of(ss.LazyChain(pi=(0.7, 0.1, 0.1, 0.1), persistence=0.7), 8, 8)
    found = ss.saddle_path(loss, loss.model.init(0, 1e-3))["E2"]
    assert found.t == pytest.approx(932.3, rel=1e-3)


def test_the_end_of_a_path_is_known_for_a_while():
    """Below lambda_c E2 comes at 3.9e6 from 1e-4: what lies outside the path acts on it at second order."""
    loss = loss_of(ss.LazyChain(pi=(0.5, 0.25, 0.25), persistence=0.38), 8, 8, 6.0)
    found = ss.saddle_path(loss, loss.model.init(0, 1e-4))["E2"]
    assert found.absent
    assert found.beyond < 3.9e6
