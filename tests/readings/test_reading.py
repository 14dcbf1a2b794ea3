"""One reading per run: nothing is integrated, searched or judged twice."""

import gc
import hashlib
import time
import weakref
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path

import numpy as np
import pytest

import stagescope as ss
from stagescope.core.spec import canonical
from stagescope.flow.descent import Descent
from stagescope.flow.gradient_flow import GradientFlow
from stagescope.landscape import critical, ladder
from stagescope.readings.evidence import Evidence
from stagescope.readings.reading import Reading, reading
from stagescope.show import static
from tests.show.runs import small as small_run


def _motion(dynamics, field, layout, state, targets) -> str:
    """What is integrated, by the bytes of all that decides it."""
    parts = [canonical([dynamics.describe(), field.describe(), layout.names])]
    parts += [np.ascontiguousarray(array).tobytes() for array in (*state.values(), targets)]
    return hashlib.sha256(b"|".join(parts)).hexdigest()


@pytest.fixture
def walks(monkeypatch):
    """Every motion that is integrated, of any dynamics: its law, its start, its steps or tolerances, its frames."""
    counted = []
    for kind in (GradientFlow, Descent):

        def walk(self, *arguments, plain=kind.walk, **named):
            counted.append(_motion(self, *arguments))
            return plain(self, *arguments, **named)

        monkeypatch.setattr(kind, "walk", walk)
    return counted


def _cpu(work) -> float:
    """Seconds of this thread, which another process does not lengthen."""
    began = time.thread_time()
    work()
    return time.thread_time() - began


@pytest.fixture(scope="module")
def small():
    return {"width": 2, "until": 300.0, "frames": 60}


def test_the_report_integrates_nothing_that_was_read_before(walks, small, tmp_path):
    run = ss.run_study("focus-dilution", "ref", progress=False, **small)
    ss.stages(run)
    ss.saddle_ladder(run)
    first = _cpu(lambda: ss.check(run))
    made = len(walks)
    assert made > 1
    assert min(_cpu(lambda: ss.check(run)) for _ in range(5)) < 0.02 * first
    ss.report(run, tmp_path / "page.html", progress=False)
    assert len(walks) == made


@pytest.mark.long
@pytest.mark.parametrize("kind", ["token", "pairwise", "regression", "text"])
def test_no_motion_is_integrated_twice(walks, kind, tmp_path, monkeypatch):
    """Stages, ledger, ladder, page, figures and notebook read one reading: of the run, its replays and its companions."""
    run = replace(small_run(kind), memo={})
    monkeypatch.setattr(static, "drawings", lambda found: {})  # drawing takes long and integrates nothing
    ss.stages(run)
    ss.check(run)
    made = len(walks)
    assert made > 0
    if kind == "token":
        ss.saddle_ladder(run)
    ss.check(run)
    skip = () if kind == "token" else ("ladder",)
    ss.report(run, tmp_path / "page.html", skip=skip, progress=False)
    ss.figures(run, tmp_path / "figures", skip=skip, progress=False)
    assert "<table" in run._repr_html_()
    assert ss.reading(run).curves is ss.reading(run).curves
    assert len(walks) == made == len(set(walks))


@pytest.mark.long
def test_critical_points_of_a_paper_are_searched_once(monkeypatch):
    from stagescope.papers.focus_dilution import evidence

    searched = []
    plain = evidence.saddle_visit
    monkeypatch.setattr(
        evidence, "saddle_visit", lambda seen, law, stay, known: (searched.append(stay), plain(seen, law, stay, known))[1]
    )
    run = replace(small_run("token"), memo={})
    ss.saddle_ladder(run)
    ss.check(run)
    assert searched
    assert len(searched) == len(set(searched))


def test_a_copy_of_a_run_has_the_same_reading(small):
    run = ss.run_study("focus-dilution", "ref", progress=False, **small)
    found = ss.reading(run)
    assert ss.reading(replace(run, reason="another sentence")) is found
    assert ss.reading(replace(run, path=Path("elsewhere"), tags=("x",), provenance={})) is found
    assert ss.reading(run.only(np.arange(0, run.frames, 2))) is not found
    other = ss.run_study("focus-dilution", "ref", progress=False, **small)
    assert ss.reading(replace(run, series=other.series)) is not found
    assert ss.reading(replace(run, seed=7)) is not found
    assert ss.reading(run) is found


def test_a_copy_that_ended_otherwise_confirms_nothing():
    run = replace(small_run("pairwise"), memo={})
    whole = ss.check(run)
    for copy in (replace(run, status="failed", reason="one"), replace(run, status="failed", reason="two")):
        found = ss.check(copy)
        assert (found.status, ss.stages(copy).status) == ("failed", "failed")
        assert not {row.verdict for row in found} & {"confirmed", "violated"}
        assert any(copy.reason in row.reason for row in found)
    assert ss.check(run) is whole
    assert "failed" in replace(run, status="failed")._repr_html_()
    assert "failed" not in run._repr_html_()


def test_a_reading_is_freed_with_its_run(small):
    run = ss.run_study("focus-dilution", "ref", progress=False, **small)
    ss.check(run)
    held = [weakref.ref(ss.reading(run)), weakref.ref(ss.reading(run).curves)]
    del run
    gc.collect()
    assert [ref() for ref in held] == [None, None]


def test_critical_points_of_an_own_objective_are_searched_once(monkeypatch):
    searched = []
    plain = critical.critical_points
    monkeypatch.setattr(ladder, "critical_points", lambda *a, **k: (searched.append(1), plain(*a, **k))[1])
    loss = ss.JaxObjective(lambda params: ((params["x"] ** 2 - 1) ** 2).sum(), name="two wells")
    run = ss.evolve(loss, {"x": np.array([0.01])}, ss.GradientFlow(), until=10, progress=False)
    assert ss.saddle_ladder(run, loss) is ss.saddle_ladder(run, loss)
    assert len(searched) == 1


def test_a_companion_is_made_once(small):
    found = reading(ss.run_study("focus-dilution", "ref", progress=False, **small))
    made = []

    def companion(scale: float, until: float) -> float:
        made.append(scale)
        return scale * until

    assert found.companion(companion, 2.0, 3.0) == found.companion(companion, 2.0, 3.0) == 6.0
    assert found.companion(companion, 3.0, 3.0) == 9.0
    assert made == [2.0, 3.0]


def test_a_companion_that_fails_is_tried_once(small):
    found = reading(ss.run_study("focus-dilution", "ref", progress=False, **small))
    tried = []

    def companion(scale: float) -> float:
        tried.append(scale)
        raise ss.StagescopeError("it diverged")

    for _ in range(2):
        with pytest.raises(ss.StagescopeError, match="it diverged"):
            found.companion(companion, 2.0)
    assert tried == [2.0]


def test_companions_over_several_values_are_made_once_and_failures_left_out(small):
    found = reading(ss.run_study("focus-dilution", "ref", progress=False, **small))
    tried = []

    def companion(scale: float) -> float:
        tried.append(scale)
        if scale > 2:
            raise ss.StagescopeError("it diverged")
        return 2 * scale

    for _ in range(2):
        assert found.companions(companion, (1.0, 2.0, 3.0)) == [2.0, 4.0]
    assert tried == [1.0, 2.0, 3.0]


def test_evidence_makes_companions_by_its_reading_only():
    run = small_run("pairwise")
    with pytest.raises(ss.InputError, match="evidence of frames alone has no companion runs"):
        Evidence(run).companion("rerun_with", {})


TWO_WELLS = ss.JaxObjective(lambda params: ((params["x"] ** 2 - 1) ** 2).sum(), name="two wells")


def own_claim(tag="own:falls", judged=None, **more):
    def compare(evidence):
        if judged is not None:
            judged.append(tag)
        rise = np.diff(evidence.run.series["loss"]).max()
        return ss.Comparison(0.0, rise, 1e-12, rise <= 1e-12, f"the loss rises by at most {rise:.1e}")  # rounding

    always = lambda evidence: ss.Regime(True, "any run")  # noqa: E731
    return ss.Claim(**{"tag": tag, "statement": "The loss never rises", "regime": always, "compare": compare, **more})


def test_own_claims_on_a_run_of_ones_own_objective():
    run = ss.evolve(TWO_WELLS, {"x": np.array([0.01])}, ss.GradientFlow(), until=10, progress=False)
    with pytest.raises(ss.InputError, match="no claims are written for runs of 'own'"):
        ss.check(run)
    (row,) = ss.check(run, claims=[own_claim()])
    assert (row.tag, row.verdict, row.calibrated) == ("own:falls", "confirmed", False)
    assert [row.tag for row in ss.check(run, claims=own_claim())] == ["own:falls"]


def test_the_evidence_of_an_own_objective_is_its_reading():
    run = ss.evolve(TWO_WELLS, {"x": np.array([0.01])}, ss.GradientFlow(), until=10, progress=False)
    found = ss.reading(run, TWO_WELLS)

    def rungs(evidence):
        assert evidence is found
        return ss.Comparison("some", len(evidence.ladder), "exact", len(evidence.ladder) > 0, "rungs")

    (row,) = ss.check(run, claims=[own_claim(compare=rungs)])
    assert row.verdict == "confirmed"


def test_own_claims_follow_those_of_the_paper_and_are_judged_once(tmp_path):
    run, judged = replace(small_run("pairwise"), memo={}), []
    own = own_claim(judged=judged), own_claim(tag="own:other", judged=judged)
    written = [row.tag for row in ss.check(run)]
    assert [row.tag for row in ss.check(run, claims=own)] == [*written, "own:falls", "own:other"]
    ss.report(run, tmp_path / "page.html", claims=own, skip=("ladder",), progress=False)
    assert judged == ["own:falls", "own:other"]


def test_an_own_claim_with_the_tag_of_a_claim_of_the_paper_is_refused():
    with pytest.raises(ss.InputError, match="the tag 'SnS:order' is that of a claim of the paper; give your own claim another"):
        ss.check(small_run("pairwise"), claims=own_claim(tag="SnS:order"))


def test_an_objective_that_the_run_does_not_move_leaves_no_trace():
    run = replace(small_run("pairwise"), memo={})
    with pytest.raises(ss.InputError, match="leave yours out"):
        ss.saddle_ladder(run, TWO_WELLS)
    assert all(row.error is None for row in ss.check(run))


@pytest.mark.long
@pytest.mark.parametrize("kind", ["token", "pairwise", "regression", "heads", "text", "text-heads", "topics"])
def test_no_claim_of_a_paper_has_a_mistake(kind):
    assert [row.reason for row in ss.check(small_run(kind)) if row.error is not None] == []


class Unprepared(Reading):
    """A reading whose evidence cannot be computed."""

    error: BaseException
    tried = 0

    @cached_property
    def evidence(self):
        self.tried += 1
        raise self.error


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [(KeyError("x"), "KeyError", "evidence"), (SystemExit(2), "SystemExit", "2")],
)
def test_evidence_that_fails_leaves_a_row_for_each_claim(error, kind, words):
    found = Unprepared(small_run("pairwise"))
    found.error = error
    rows = list(found.judge([own_claim("own:a"), own_claim("own:b")]))
    assert [(row.tag, row.verdict, row.error) for row in rows] == [(tag, "inconclusive", kind) for tag in ("own:a", "own:b")]
    assert all(words in row.reason for row in rows)
    assert found.tried == 1
    for raised in (KeyboardInterrupt(), ss.StagescopeError("the text is gone")):
        found.error = raised
        with pytest.raises(type(raised)):
            found.judge([own_claim("own:c")])


def _named(module: str, value: int):
    def make() -> int:
        return value

    make.__module__ = module
    return make


def test_companions_of_two_modules_are_two():
    found = Reading(small_run("pairwise"))
    assert [found.companion(_named(module, value)) for value, module in enumerate(("one", "two"))] == [0, 1]


@pytest.mark.parametrize("make", [lambda: 1, partial(int, 1)])
def test_a_companion_needs_a_function_with_a_name(make):
    with pytest.raises(ss.InputError, match="function or method with a name"):
        Reading(small_run("pairwise")).companion(make)


@pytest.mark.parametrize("argument", [np.zeros(2), np.nan, np.inf])
def test_a_companion_takes_arguments_that_can_be_compared(argument):
    with pytest.raises(ss.InputError, match="arguments of the companion '_named' must be"):
        Reading(small_run("pairwise")).companion(_named, argument)


def _two_objectives():
    first, second = (ss.JaxObjective(lambda params, a=a: ((params["x"] ** 2 - a) ** 2).sum()) for a in (1, 2))
    return ss.evolve(first, {"x": np.array([0.01])}, ss.GradientFlow(), until=10, progress=False), first, second


def test_two_objectives_of_a_run_are_not_confused():
    run, first, second = _two_objectives()
    for _ in range(2):
        assert ss.reading(run, first).what is first
        assert ss.reading(replace(run, tags=("x",))).what is first
    one, two = ss.saddle_ladder(run, first), ss.saddle_ladder(run, second)
    assert one is not two
    with pytest.raises(ss.InputError, match="your own objective"):
        ss.saddle_ladder(run)
    assert ss.saddle_ladder(run, first) is one
    assert [row.verdict for row in ss.check(run, own_claim())] == ["confirmed"]


def test_an_objective_outlives_its_reading():
    run, first, _ = _two_objectives()
    ss.reading(run, first)
    for number in range(6):
        ss.reading(replace(run, seed=number))
    assert ss.reading(run).what is first


@pytest.mark.parametrize("ask", [ss.stages, ss.check, ss.saddle_ladder])
@pytest.mark.parametrize("kind", ["token", "pairwise", "regression"])
def test_a_run_without_frames_is_one_sentence(kind, ask):
    with pytest.raises(ss.InputError, match="the run has no frames"):
        ask(small_run(kind).only(np.arange(0)))


def test_bars_are_shown_only_where_they_are_wanted():
    run, first, _ = _two_objectives()
    ss.saddle_ladder(run, first, progress=True)
    assert ss.reading(run, first).progress is False


def test_another_run_in_the_place_of_one_is_read_anew(small, tmp_path):
    folder = tmp_path / "run"
    begun = ss.run_study("focus-dilution", "ref", progress=False, out=folder, **small).at(0)
    assert ss.stages(folder) == ss.stages(folder)
    other = ss.run_study("focus-dilution", "ref", progress=False, out=folder, overwrite=True, seed=1, **small)
    assert reading(folder).run.at(0)["W0"][0, 0] == other.at(0)["W0"][0, 0] != begun["W0"][0, 0]


def test_a_run_may_have_plain_dictionaries_of_arrays(small):
    run = ss.run_study("focus-dilution", "ref", progress=False, **small)
    plain = replace(run, params={name: 2 * run.params[name] for name in run.params})
    assert reading(plain) is not reading(run)
    assert reading(plain) is reading(plain)
