"""The path of equal heads: its law, t_1 .. t_3 against flows, and what is refused."""

import json

import numpy as np
import pytest

import stagescope as ss
from stagescope.cli.main import run as command
from stagescope.detect.levels import transitions
from stagescope.papers.incremental.observables import head_curves
from stagescope.papers.incremental.regression_paths import EqualHeadsPath, head_deviations, parting_times

LAWS = (ss.RegressionLoss, ss.MirrorFlow)


def law_of(kind, positions=8, heads=3, gains=(2.89, 1.7, 1.0)):
    return kind(model=ss.RegressionHeads(positions=positions, gains=gains, heads=heads))


@pytest.mark.parametrize("kind", LAWS)
def test_the_law_of_a_deviation_is_that_of_the_whole_model(kind):
    law = law_of(kind)
    rng = np.random.default_rng(1)
    head = {"a": rng.normal(size=8), "V": rng.normal(size=3)}
    path = EqualHeadsPath(law, head, 1.0)
    apart = rng.normal(size=(3, 11))
    apart -= apart.mean(axis=0)
    step, equal = 1e-6, np.tile(np.concatenate([head["a"], head["V"]]), (3, 1))

    def velocity(heads):
        found = law.move({"a": heads[:, :8].copy(), "V": heads[:, 8:].copy()})[1]
        return np.hstack([found["a"], found["V"]])

    measured = (velocity(equal + step * apart) - velocity(equal - step * apart)) / (2 * step)
    assert np.allclose(apart @ path.jacobian(path.places[0].point).T, measured, atol=1e-7)


@pytest.mark.long
@pytest.mark.parametrize("kind", LAWS)
@pytest.mark.parametrize("sigma", [1e-3, 1e-6])
def test_times_are_those_of_the_flow(kind, sigma):
    law = law_of(kind)
    start = law.model.init(5, sigma)
    path = ss.saddle_path(law, start)
    until = 1.1 * path["t3"].t
    record = ss.LogSpaced(frames=2000, first=until * 1e-4)
    flow = head_curves(ss.evolve(law, start, ss.GradientFlow(rtol=1e-12), until=until, record=record, progress=False))
    times = transitions(flow.time, flow.loss, flow.forms.levels)
    for name, when, close in zip(("t1", "t2", "t3"), times, (1e-3, 3e-3, 1e-2), strict=True):
        assert path[name].t == pytest.approx(when, rel=close)
    assert path.crossings(flow.time, flow.loss) == dict(zip(path.events, times, strict=True))


@pytest.mark.long
def test_one_path_serves_all_noises():
    law = law_of(ss.MirrorFlow)
    start = law.model.init(5, 1e-4)
    _, apart, size = head_deviations(start)
    found = parting_times(law, apart, size + np.log([1.0, 1e-4]), 1e4)
    for each, factor in zip(found, (1.0, 1e-4), strict=True):
        scaled = {"a": factor * start["a"], "V": start["V"]}
        assert each.t == pytest.approx(ss.saddle_path(law, scaled)["t2"].t, rel=1e-4)


@pytest.mark.long
def test_a_start_of_1e_60_parts_but_says_what_is_lost():
    path = ss.saddle_path(law_of(ss.MirrorFlow), scale=1e-60)
    assert path.sequence == ("t1", "t2")
    assert "lost to rounding" in path.notes[0]


@pytest.mark.parametrize(("heads", "scale", "said"), [(1, 1e-4, "one head"), (3, 0.0, "exactly equal")])
def test_equal_heads_stay_on_plateau_one(heads, scale, said):
    law = law_of(ss.MirrorFlow, heads=heads)
    path = ss.saddle_path(law, law.model.init(0, scale))
    assert path.sequence == ("t1",)
    assert said in path.notes[0]
    assert path.legs[-1].loss == pytest.approx((1.7**2 + 1) / 2)


def test_two_heads_reach_plateau_two():
    path = ss.saddle_path(law_of(ss.MirrorFlow, heads=2), scale=1e-4)
    assert path.sequence == ("t1", "t2")
    assert "2 heads reach plateau 2 at most" in path.notes[0]
    assert [leg.opens for leg in path.legs] == [None, "heads part", None]


def test_a_start_that_is_too_large():
    with pytest.raises(ss.InputError, match="times the most"):
        ss.saddle_path(law_of(ss.MirrorFlow), scale=0.1)


@pytest.mark.long
def test_the_command(capsys):
    words = ["predict", "incremental", "--model", "mirror", "--init-scale", "1e-4", "1e-6", "--json"]
    assert command(words) == 0
    found = json.loads(capsys.readouterr().out)["predictions"]
    assert [each["init_scale"] for each in found] == [1e-4, 1e-6]
    assert [leg["label"] for leg in found[0]["legs"]] == [f"plateau {j}" for j in range(4)]
    assert found[0]["events"]["t2"]["t"] < found[1]["events"]["t2"]["t"]


@pytest.mark.parametrize("preset", ["gd-ladder", "regression-transformer"])
def test_models_without_a_path_name_those_that_have_one(preset, capsys):
    assert command(["predict", "incremental", "--preset", preset]) == 2
    assert "ode-exact" in capsys.readouterr().err
