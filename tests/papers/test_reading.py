"""One reading per run: nothing is integrated, searched or judged twice."""

import time
from dataclasses import replace

import numpy as np
import pytest

import stagescope as ss
from stagescope.dynamics.descent import Descent
from stagescope.dynamics.flow import GradientFlow
from stagescope.landscape import critical
from stagescope.papers.reading import reading


@pytest.fixture
def walks(monkeypatch):
    """How many motions are integrated, of any dynamics."""
    counted = []
    for kind in (GradientFlow, Descent):

        def walk(self, *arguments, plain=kind.walk, **named):
            counted.append(type(self).__name__)
            return plain(self, *arguments, **named)

        monkeypatch.setattr(kind, "walk", walk)
    return counted


@pytest.fixture(scope="module")
def small():
    return {"width": 2, "until": 300.0, "frames": 60}


def test_the_report_integrates_nothing_that_was_read_before(walks, small, tmp_path):
    run = ss.run_study("focus-dilution", "ref", progress=False, **small)
    ss.stages(run)
    ss.saddle_ladder(run)
    first = time.perf_counter()
    ss.check(run)
    first = time.perf_counter() - first
    made = len(walks)
    assert made > 1
    second = time.perf_counter()
    ss.check(run)
    assert time.perf_counter() - second < 0.02 * first
    ss.report(run, tmp_path / "page.html", progress=False)
    assert len(walks) == made


@pytest.mark.parametrize(
    ("study", "preset", "options"),
    [
        ("scan-snap", "syn-small-heavy-ball", {"steps": 60}),
        ("incremental", "ode-mirror", {"until": 200.0, "frames": 40}),
    ],
)
def test_other_papers_integrate_once(walks, study, preset, options, tmp_path):
    run = ss.run_study(study, preset, progress=False, **options)
    ss.stages(run)
    ss.check(run)
    made = len(walks)
    ss.check(run)
    ss.report(run, tmp_path / "page.html", skip=("ladder",), progress=False)
    assert len(walks) == made


def test_the_reading_survives_a_copy_of_the_run(small):
    run = ss.run_study("focus-dilution", "ref", progress=False, **small)
    found = reading(run)
    assert reading(replace(run, reason="another sentence")) is found
    assert reading(run.only(np.arange(0, run.frames, 2))) is not found
    assert reading(replace(run, status="diverged")) is not found
    assert reading(replace(run, series=ss.run_study("focus-dilution", "ref", progress=False, **small).series)) is not found


def test_critical_points_of_an_own_objective_are_searched_once(monkeypatch):
    searched = []
    plain = critical.critical_points
    from stagescope.landscape import ladder

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
