"""Every run has stages: of its paper where it has one, otherwise of its loss; transitions stand beside both."""

import json
from dataclasses import replace

import numpy as np
import pytest

import stagescope as ss
from stagescope.cli.main import run as command
from stagescope.detect.limits import LIMITS
from stagescope.readings import reading as readings
from stagescope.runs.run import Arrays
from stagescope.sweeping.worker import _events
from tests.show.runs import changed, small

FALLS = (2.0, 0.5)
PRODUCT = ss.JaxObjective(lambda p: 0.5 * ((p["a"] * p["b"] - np.array(FALLS)) ** 2).sum(), name="product")


@pytest.fixture(scope="module")
def own():
    """Two numbers, each a product: each is learned at its own time, ln(s/start^2 - 1)/(2 s)."""
    start = {"a": np.full(2, 1e-4), "b": np.full(2, 1e-4)}
    return ss.evolve(PRODUCT, start, ss.GradientFlow(), until=100, record=ss.Uniform(frames=500), progress=False)


def test_an_own_objective_has_the_stages_of_its_loss(own):
    found = ss.stages(own)
    assert [stage.name for stage in found] == ["plateau 1", "transition 1", "plateau 2", "transition 2", "plateau 3"]
    for name, strength in zip(("transition 1", "transition 2"), FALLS, strict=True):
        half = 1 - 0.5**0.5  # of the product, where the loss is halfway: (s - ab)^2 = s^2/2
        learned = np.log((strength / 1e-8 - 1) * half / (1 - half)) / (2 * strength)
        assert found.events[name] == pytest.approx(learned, rel=0.03)
        assert found.states[name] == "reached"
    heights = [stage.facts["amplitude"] for stage in found if stage.name.startswith("transition")]
    assert heights == pytest.approx([-(s**2) / 2 for s in FALLS], rel=0.05)
    assert [curve for curve, _ in found.transitions] == ["loss", "loss"]


def test_the_answer_is_stable(own, tmp_path, capsys):
    assert command(["stages", str(own.save(tmp_path / "run").path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert set(found) == {"status", "clock", "events", "intervals", "states", "stages", "transitions", "notes"}
    assert set(found["events"]) == set(found["intervals"]) == set(found["states"]) == {"transition 1", "transition 2"}
    for name, row in zip(found["events"], found["transitions"], strict=True):
        assert set(row) == {"curve", "t", "low", "high", "start", "stop", "amplitude", "kind", "origin"}
        assert row["t"] == found["events"][name]
        assert [row["low"], row["high"]] == found["intervals"][name]


def test_every_recorded_curve_is_read(own):
    extra = {**own.series, "learned": own.params["a"][:, 0] * own.params["b"][:, 0], "maps": np.zeros((own.frames, 2, 2))}
    found = ss.stages(replace(own, series=Arrays.of(extra), memo={}))
    assert [curve for curve, _ in found.transitions] == ["loss", "loss", "learned"]
    assert list(found.events) == ["transition 1", "transition 2"]


def test_transitions_stand_beside_the_stages_of_a_paper():
    run = replace(small("token"), memo={})
    found = ss.stages(run)
    assert found.transitions == ss.reading(run).transitions
    assert found.stages == ss.reading(run).stages.stages
    assert found.events == ss.reading(run).stages.events
    assert ss.stages(run) is found


def test_a_sweep_does_not_pay_for_transitions(monkeypatch):
    def refuse(*_):
        raise AssertionError("searched")

    run = replace(small("token"), memo={})
    monkeypatch.setattr(readings, "curve_events", refuse)
    assert _events(run)["stages"]
    with pytest.raises(AssertionError, match="searched"):
        ss.stages(run)


def test_a_run_that_broke_down_has_no_reliable_event(own):
    found = ss.stages(replace(own, status="diverged", reason="the loss is infinite"))
    assert [stage.name for stage in found] == ["whole run"]
    assert (dict(found.events), found.transitions) == ({}, ())
    of_a_paper = ss.stages(replace(small("token"), status="failed", memo={}))
    assert of_a_paper.transitions == ()
    assert "reached" not in of_a_paper.states.values()


def test_a_run_without_a_frame_says_so(own):
    with pytest.raises(ss.InputError, match="no frames"):
        ss.stages(own.only(np.array([], dtype=int)))


@pytest.mark.parametrize("frames", [1, 2, 3, LIMITS.fewest])
def test_few_records(own, frames):
    few = own.only(np.unique(np.linspace(0, own.frames - 1, frames).astype(int)))
    assert len(ss.stages(few)) == 1


def test_a_loss_that_is_no_number_has_one_stage(own):
    found = ss.stages(changed(own, loss=np.full(own.frames, np.nan)))
    assert [stage.name for stage in found] == ["whole run"]
    assert "loss" in found.notes


def test_a_paper_whose_stages_cannot_be_read_leaves_those_of_the_loss(monkeypatch):
    """Such as a run on a text that is not at hand."""
    run = replace(small("token"), memo={})
    kind = type(ss.reading(run))

    def refuse(_):
        raise ss.InputError("the text is not at hand; fetch it")

    monkeypatch.setattr(kind, "stages", property(refuse))
    found = ss.stages(run)
    assert "fetch it" in found.notes["paper"]
    assert found.stages == ss.reading(run).free_stages.stages
