"""What a worker does with a batch, without any Dask."""

import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest

import stagescope as ss
from stagescope.readings.registry import study
from stagescope.runs.files import Lock
from stagescope.sweeping import worker
from stagescope.sweeping.plan import new_id, points
from stagescope.sweeping.rows import Attempts, Rows
from stagescope.sweeping.table import load_sweep
from stagescope.sweeping.worker import DEATHS, Mismatch, versions, work
from tests.sweeping.small import cheap_plan, task_of


def attempts(folder):
    return sum(path.read_bytes().count(b"\n") for path in (folder / "attempts").glob("*.jsonl"))


def test_a_row_holds_what_the_run_shows(tmp_path):
    plan = cheap_plan(tmp_path, grid={"rate_y": "1,10"}, measures=("events", "verdicts", "numbers"), until=5.0, frames=20)
    work(task_of(plan, tmp_path))
    sweep = load_sweep(tmp_path)
    for row in sweep.rows:
        run = ss.run_study("scan-snap", **row["config"], seed=row["seed"], progress=False)
        found = ss.stages(run)
        assert row["events"] == dict(found.events)
        assert row["stages"] == [stage.name for stage in found]
        assert row["verdicts"] == {verdict.tag: verdict.verdict for verdict in ss.check(run)}
        assert row["numbers"]["loss"] == run.series["loss"][-1]
        curves = ss.class_attention(run)
        assert row["numbers"]["entropy"] == pytest.approx(curves.mean(curves.entropy)[-1], rel=1e-12)
        assert row["numbers"]["common_mass"] == pytest.approx(curves.mean(curves.common_mass)[-1], rel=1e-12)
        assert [stage.start for stage in found][-1] == row["starts"][row["stages"][-1]]


def test_a_committed_point_is_not_begun_again(tmp_path):
    plan = cheap_plan(tmp_path, grid={"rate_y": "1,2,3"})
    first = work(task_of(plan, tmp_path))
    assert attempts(tmp_path) == 3
    assert work(task_of(plan, tmp_path)) == first
    assert attempts(tmp_path) == 3


@pytest.mark.long
def test_failures_are_rows(tmp_path):
    plan = cheap_plan(tmp_path, grid={"lr": "1,1e300"}, optimizer="heavy-ball", steps=20)
    assert [brief.status for brief in work(task_of(plan, tmp_path)).briefs] == ["finished", "diverged"]
    plan = cheap_plan(tmp_path / "b", grid={"init_scale": "0,.1"})
    briefs = work(task_of(plan, tmp_path / "b")).briefs
    assert [brief.status for brief in briefs] == ["finished", "failed"]
    assert "merged column" in briefs[1].reason


def test_an_error_of_ours_is_a_row_too(tmp_path, monkeypatch):
    monkeypatch.setattr(worker, "study_named", lambda name: replace(study(name), numbers=lambda run: 1 / 0))
    plan = cheap_plan(tmp_path, grid={"rate_y": "1,2"})
    for brief in work(task_of(plan, tmp_path)).briefs:
        assert brief.status == "failed"
        assert "cannot be read: ZeroDivisionError" in brief.reason


@pytest.mark.parametrize("part", ["numbers", "run"])
def test_code_that_leaves_the_program_is_a_failed_row(tmp_path, monkeypatch, part):
    known = study("scan-snap")
    leaving = replace(known, numbers=lambda run: sys.exit(3)) if part == "numbers" else known
    if part == "run":
        monkeypatch.setattr(type(known), "run", lambda *_, **__: sys.exit(3))
    monkeypatch.setattr(worker, "study_named", lambda name: leaving)
    (brief,) = work(task_of(cheap_plan(tmp_path, grid={"rate_y": "1"}), tmp_path)).briefs
    assert brief.status == "failed"
    assert "SystemExit: 3" in brief.reason


def test_a_point_that_kills_its_workers_is_given_up(tmp_path):
    plan = cheap_plan(tmp_path, grid={"rate_y": "1,2"})
    first, second = points(plan)
    call = new_id()
    for number in range(DEATHS):  # as many processes began it and were never heard of again
        Attempts(tmp_path, f"dead{number}").begin(call, first.digest)
    briefs = work(task_of(plan, tmp_path, call=call)).briefs
    assert f"died {DEATHS} times" in briefs[0].reason
    assert briefs[1].status == "finished"
    again = task_of(plan, tmp_path, [replace(first, retry=1), replace(second, retry=1)])
    assert [brief.status for brief in work(again).briefs] == ["finished", "finished"]
    assert attempts(tmp_path) == DEATHS + 3


def test_a_damaged_line_among_the_attempts_harms_nothing(tmp_path):
    plan = cheap_plan(tmp_path, grid={"rate_y": "1,2"})
    (tmp_path / "attempts").mkdir()
    (tmp_path / "attempts" / "a.jsonl").write_bytes(b'{"digest":"ab\n\xff\n3\n{}\n')
    assert [brief.status for brief in work(task_of(plan, tmp_path)).briefs] == ["finished", "finished"]


def test_a_point_that_takes_too_long_ends_its_process_and_is_a_row(tmp_path):
    plan = cheap_plan(tmp_path, grid={"until": "1e6"}, study_name="focus-dilution", pi=(0.5, 0.5))
    task = task_of(plan, tmp_path, timeout=0.01)
    code = (
        "import sys; from pathlib import Path; from tests.sweeping.small import task_of; "
        "from stagescope.sweeping import worker; from stagescope.sweeping.plan import load_plan; worker.START_SECONDS = 0; "
        "folder, call = Path(sys.argv[1]), sys.argv[2]; worker.work(task_of(load_plan(folder), folder, call=call, timeout=0.01))"
    )
    root = Path(__file__).parents[2]
    ended = subprocess.run([sys.executable, "-c", code, tmp_path, task.call], cwd=root, capture_output=True, text=True)
    assert ended.returncode != 0, "1, or a signal: the watchdog reads frames while they change, after it wrote that time was up"
    assert "Timeout" not in ended.stderr, "what ended it is in the trace, not on the screen"
    assert not Rows(tmp_path).refresh().current
    (brief,) = work(task).briefs
    assert brief.status == "timed out"
    assert "after 0.01 s" in brief.reason


def test_the_first_point_of_a_process_has_more_time(tmp_path, monkeypatch):
    """It imports and compiles."""
    given = []
    monkeypatch.setattr(worker.faulthandler, "dump_traceback_later", lambda seconds, **_: given.append(seconds))
    monkeypatch.setattr(worker, "_WARM", threading.Event())
    work(task_of(cheap_plan(tmp_path, grid={"rate_y": "1,2,3"}), tmp_path, timeout=3.0))
    assert given == [3 + worker.START_SECONDS, 3, 3]


def test_rows_of_a_worker_that_does_not_see_the_folder_come_back(tmp_path):
    plan = cheap_plan(tmp_path / "a", grid={"rate_y": "1,2"})
    for task in (task_of(plan, tmp_path / "elsewhere"), task_of(plan.model_copy(update={"id": "another"}), tmp_path / "a")):
        done = work(task)
        assert [row["status"] for row in done.rows] == ["finished"] * 2
    assert not (tmp_path / "a" / "rows").exists()


def test_versions_must_agree(tmp_path):
    plan = cheap_plan(tmp_path, grid={"rate_y": "1,2"})
    with pytest.raises(Mismatch, match=r"a worker has numpy .*, this client 1\.0; install the same"):
        work(task_of(plan.model_copy(update={"versions": {**versions(), "numpy": "1.0"}}), tmp_path))


def test_a_file_that_is_another_one_on_the_worker_ends_the_work(tmp_path):
    """Rows of two files would be one sweep."""
    path = tmp_path / "chain.csv"
    path.write_text(".9,.1\n.2,.8\n")
    plan = cheap_plan(tmp_path / "sweep", study_name="focus-dilution", grid={"scale": "1,2"}, transition=path, until=1.0)
    work(task_of(plan, tmp_path / "sweep", list(points(plan))[:1]))
    row = load_sweep(tmp_path / "sweep").rows[0]
    path.write_text(".8,.2\n.2,.8\n")
    with pytest.raises(Mismatch, match=r"chain\.csv was changed.*at the same path"):
        work(task_of(plan, tmp_path / "sweep"))
    with pytest.raises(ss.InputError, match="this would be another run"):
        load_sweep(tmp_path / "sweep").recreate(row)
    path.unlink()
    with pytest.raises(Mismatch, match="is missing"):
        work(task_of(plan, tmp_path / "sweep"))


def test_a_run_that_another_worker_is_writing_is_no_failure(tmp_path):
    """A worker whose client was killed may still be at it."""
    plan = cheap_plan(tmp_path, grid={"rate_y": "1"})
    (point,) = points(plan)
    (tmp_path / "runs" / point.digest).mkdir(parents=True)
    lock = Lock(tmp_path / "runs" / point.digest)
    assert [brief.status for brief in work(task_of(plan, tmp_path, keep_runs=True)).briefs] == ["finished"]
    lock.release()
    assert ss.load(tmp_path / "runs" / point.digest).done


def test_runs_are_kept(tmp_path):
    plan = cheap_plan(tmp_path, grid={"rate_y": "1,2"})
    work(task_of(plan, tmp_path, keep_runs=True))
    for row in load_sweep(tmp_path).rows:
        assert ss.load(tmp_path / "runs" / row["digest"]).series["loss"][-1] == row["numbers"]["loss"]
        assert not ss.verify(tmp_path / "runs" / row["digest"])


def test_many_points_in_one_call_are_the_points_one_by_one(tmp_path):
    """Sampled heavy-ball runs of two problems and one that no kernel call can do: numbers are the same, bit for bit."""
    lines = [
        {"num_last": last, "rate_y": y, "rate_z": 0.5, "seed": seed}
        for seed, (last, y) in enumerate([(1, 1.0), (2, 3.0), (1, 5.0)])
    ]
    found = []
    for name, measures in (("together", ("numbers",)), ("apart", ("events", "numbers"))):
        plan = cheap_plan(tmp_path / name, table=lines, preset="published-medium", measures=measures, steps=5)
        work(task_of(plan, tmp_path / name))
        found.append([row["numbers"] for row in load_sweep(tmp_path / name).rows])
    assert found[0] == found[1]
    of = study("scan-snap")
    diverging = of.configured("published-medium", rate_y=1e30)
    assert of.many is not None
    assert of.many([of.configured("syn-small-flow"), diverging], [0, 0]) == [None, None]


OWN = """
import stagescope as ss

def always(evidence):
    return ss.Regime(True, "any run")

def some(evidence):
    return ss.Comparison("some", evidence.run.frames, "exact", evidence.run.frames > 0, "frames")

def broken(evidence):
    return evidence.nothing

CLAIMS = [
    ss.Claim(tag="own:some", statement="The run has frames", regime=always, compare=some),
    ss.Claim(tag="own:broken", statement="Nothing", regime=always, compare=broken),
]
"""


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A folder with a module of claims, in which the worker stands."""
    (tmp_path / "own_worker_claims.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield tmp_path
    sys.modules.pop("own_worker_claims", None)


def own_task(folder, **more):
    plan = cheap_plan(folder, grid={"rate_y": "1"}, measures=["verdicts"], claims="own_worker_claims:CLAIMS")
    return task_of(plan, folder, **more)


def test_own_claims_are_columns(own):
    task = own_task(own / "sweep")
    assert [brief.status for brief in work(task).briefs] == ["finished"]
    (row,) = load_sweep(own / "sweep").rows
    run = ss.run_study("scan-snap", **row["config"], progress=False)
    written = {verdict.tag: verdict.verdict for verdict in ss.check(run)}
    assert row["verdicts"] == {**written, "own:some": "confirmed", "own:broken": "inconclusive"}
    assert load_sweep(own / "sweep").column("own:some") == ["confirmed"]


def test_a_worker_has_the_claims_of_the_call(own):
    work(own_task(own / "first"))
    (own / "own_worker_claims.py").write_text(OWN.replace("frames > 0", "frames > 1000"))
    work(own_task(own / "second"))
    assert load_sweep(own / "second").column("own:some") == ["violated"]


def test_other_claims_on_a_worker_are_refused(own):
    task = own_task(own / "sweep")
    with pytest.raises(Mismatch, match="own_worker_claims:CLAIMS"):
        work(replace(task, call=new_id(), plan=task.plan.model_copy(update={"claims_digest": "0" * 64})))
    (own / "own_worker_claims.py").unlink()
    with pytest.raises(ss.InputError, match="none is installed"):
        work(replace(task, call=new_id()))
    assert not load_sweep(own / "sweep").rows


def test_a_point_is_integrated_and_read_once(tmp_path, monkeypatch):
    """Events, verdicts and numbers of a row come from one reading of its run."""
    from stagescope.papers.scan_snap import reading

    made = []
    plain = reading.class_attention
    monkeypatch.setattr(reading, "class_attention", lambda run: (made.append(run), plain(run))[1])
    work(task_of(cheap_plan(tmp_path, ("events", "verdicts", "numbers"), grid={"rate_y": "1,2"}), tmp_path))
    assert len(made) == 2
