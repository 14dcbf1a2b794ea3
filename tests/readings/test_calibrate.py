"""Draws of inputs and nulls: one draw of a null for all its claims, kept in a file, made again where that is needed."""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import stagescope as ss
from stagescope.claims.claim import Claim
from stagescope.claims.comparison import Comparison, Regime
from stagescope.readings import calibrate as module


def _loss(size: float) -> ss.Run:
    return ss.from_arrays(step=np.arange(20), loss=size * np.exp(-np.arange(20) / 5.0))


class Made:
    """Inputs that count how often they are drawn."""

    def __init__(self, size: float) -> None:
        self.size, self.seeds = size, []

    def __call__(self, seed: int) -> ss.Run:
        self.seeds.append(seed)
        return _loss(self.size)


@pytest.fixture
def study(monkeypatch):
    good, flat = Made(1.0), Made(0.1)
    null = ss.Inputs("small", "it is small", flat)

    def large(evidence) -> Comparison:
        size = float(evidence.run.series["loss"][0])
        return Comparison("> .5", size, "bound", size > 0.5, f"the loss begins at {size}")

    first = Claim(tag="own:a", statement="s", regime=lambda e: Regime(True, ""), compare=large, kind="pattern", null=null)
    claims = [first, replace(first, tag="own:b")]
    made = SimpleNamespace(
        name="toy", kinds=(), good=good, flat=flat, claims=lambda: tuple(claims), inputs=lambda: (ss.Inputs("any", "any", good),)
    )
    made.change = lambda: claims.__setitem__(0, replace(first, rules=2))
    monkeypatch.setattr(module, "study_named", lambda name: made)
    return made


def test_inputs_and_nulls_are_drawn_once_for_all_claims(study):
    found = module.calibrate("toy", draws=3, first=5, progress=False)
    assert (study.good.seeds, study.flat.seeds) == ([5, 6, 7], [5, 6, 7])
    assert [(line.confirmed, line.nulls[0].violated) for line in found.lines] == [(3, 3), (3, 3)]
    assert found.holds


def test_a_second_call_goes_on_and_draws_again_what_was_judged_by_older_rules(study, tmp_path):
    keep = tmp_path / "draws.jsonl"
    module.calibrate("toy", draws=2, keep=keep, progress=False)
    keep.write_text(keep.read_text() + '{"study": "toy", "ro')
    module.calibrate("toy", draws=3, keep=keep, progress=False)
    module.calibrate("toy", draws=3, keep=keep, progress=False)
    assert study.good.seeds == [0, 1, 2]
    study.change()
    found = module.calibrate("toy", draws=3, keep=keep, progress=False)
    assert study.good.seeds == [0, 1, 2, 0, 1, 2]
    assert found.lines[0].rules == 2


def test_nulls_may_be_drawn_less_often(study):
    module.calibrate("toy", draws=3, nulls=1, progress=False)
    assert (len(study.good.seeds), len(study.flat.seeds)) == (3, 1)


def test_own_claims_are_judged_on_the_inputs_of_a_study(study, tmp_path):
    """Their nulls are drawn too; draws of other claims in the same file do not count for them."""
    keep = tmp_path / "draws.jsonl"
    module.calibrate("toy", draws=2, keep=keep, progress=False)
    own = replace(study.claims()[0], tag="own:c")
    found = module.calibrate("toy", draws=2, claims=own, keep=keep, progress=False)
    assert [(line.tag, line.confirmed, line.nulls[0].violated) for line in found.lines] == [("own:c", 2, 2)]
    assert study.good.seeds == [0, 1, 0, 1]
    with pytest.raises(ss.InputError, match="by name"):
        module.calibrate("toy", claims=own, workers=2)


OWN = """
import stagescope as ss

def small(evidence):
    size = float(evidence.run.series["loss"][0])
    return ss.Comparison("at most", size, "bound", size <= {bound}, f"the loss begins at {{size}}")

ONE = ss.Claim(tag="own:small", statement="small", regime=lambda evidence: ss.Regime(True, ""), compare=small)
"""


def test_own_claims_that_were_edited_are_judged_again(study, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    keep, file = tmp_path / "draws.jsonl", tmp_path / "edited_claims_here.py"
    for bound, confirmed, drawn in ((2.0, 2, 2), (2.0, 2, 2), (0.05, 0, 4)):
        file.write_text(OWN.format(bound=bound))
        found = module.calibrate("toy", draws=2, claims="edited_claims_here:ONE", keep=keep, progress=False)
        assert (found.lines[0].confirmed, len(study.good.seeds)) == (confirmed, drawn)


def test_own_claims_in_no_file_cannot_be_kept(study, tmp_path):
    space: dict = {"__name__": "nowhere"}
    exec(OWN.format(bound=2.0), space)
    module.calibrate("toy", draws=1, claims=space["ONE"], progress=False)
    with pytest.raises(ss.InputError, match="own:small is in no file"):
        module.calibrate("toy", draws=1, claims=space["ONE"], keep=tmp_path / "draws.jsonl", progress=False)


def test_the_tag_of_a_claim_of_the_study_is_taken(study):
    with pytest.raises(ss.InputError, match="the tag 'own:a' is that of a claim of the paper"):
        module.calibrate("toy", draws=1, claims=replace(study.claims()[0], statement="another"), progress=False)
    assert module.calibrate("toy", draws=1, claims=study.claims()[0], progress=False).holds, "one of the study's own"


def test_a_draw_that_fails_is_named_and_made_again(study, tmp_path, monkeypatch):
    keep, inputs = tmp_path / "draws.jsonl", study.inputs
    study.inputs = lambda: (ss.Inputs("any", "any", lambda seed: 1 / 0),)
    found = module.calibrate("toy", draws=1, keep=keep, progress=False)
    assert len(found.failed) == 1
    assert "division by zero" in found.failed[0]
    assert not found.holds
    study.inputs = inputs
    assert module.calibrate("toy", draws=1, keep=keep, progress=False).holds
    assert all(isinstance(json.loads(line), dict) for line in keep.read_text().splitlines())


@pytest.mark.parametrize("given", [{"draws": 0}, {"nulls": 0}, {"first": -1}, {"workers": 0}])
def test_numbers_that_make_no_sense_are_refused(study, given):
    ((name, value),) = given.items()
    with pytest.raises(ss.InputError, match=f"^{name} is {value}; give at least {value + 1}$"):
        module.calibrate("toy", **given)


@pytest.mark.parametrize("text", ["my notes\n", "my notes", "[1, 2]\n", '{"a": 1}\n'])
def test_a_file_of_something_else_is_refused_and_stays_as_it_is(study, tmp_path, text):
    keep = tmp_path / "notes.txt"
    keep.write_text(text)
    with pytest.raises(ss.InputError, match="something else than draws"):
        module.calibrate("toy", draws=1, keep=keep, progress=False)
    assert keep.read_text() == text
    assert study.good.seeds == []


def test_a_folder_is_no_file_for_draws(study, tmp_path):
    with pytest.raises(ss.StoreError, match=str(tmp_path)):
        module.calibrate("toy", draws=1, keep=tmp_path, progress=False)


def test_a_claim_whose_code_has_a_mistake_is_said(study):
    broken = replace(study.claims()[0], tag="own:c", compare=lambda evidence: 1 / 0)
    found = module.calibrate("toy", draws=1, claims=broken, progress=False)
    assert "ZeroDivisionError" in found.failed[0]
    assert not found.holds


def test_inputs_about_some_claims_are_tried_on_those_alone(study):
    """A family that is about other claims is not drawn."""
    claims = tuple(replace(study.claims()[0], tag=tag, null=()) for tag in ("one:a", "two:a"))
    inputs = tuple(ss.Inputs(f"of {about or 'all'}", "any", _loss, about) for about in ("", "one:", "three:"))
    named = SimpleNamespace(inputs=lambda: inputs, kinds=())
    drawn = {found.name: tags for found, role, tags in module.families(named, claims) if role == "input"}
    assert drawn == {"of all": ("one:a", "two:a"), "of one:": ("one:a",)}
