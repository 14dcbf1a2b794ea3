"""The engine on a Dask cluster inside this process; real processes are in test_processes.py."""

import json
import platform
import sys
import threading
import time
from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

import stagescope as ss
from stagescope.cli.main import run
from stagescope.core.errors import InputError, StagescopeError, StoreError
from stagescope.runs.files import Lock
from stagescope.sweeping import dispatch, engine
from stagescope.sweeping import dispatch as cluster
from stagescope.sweeping.dispatch import Dispatch, Pool
from stagescope.sweeping.plan import CALL, points
from stagescope.sweeping.progress import SweepProgress
from stagescope.sweeping.rows import RowWriter
from stagescope.sweeping.table import verify_sweep
from stagescope.sweeping.worker import Brief, Done, versions
from tests.sweeping.small import CHEAP, cheap_plan, task_of


@pytest.fixture(scope="module")
def client():
    from distributed import Client

    with Client(processes=False, n_workers=2, threads_per_worker=1, dashboard_address=None, set_as_default=False) as made:
        yield made


@pytest.fixture
def sweep(client, monkeypatch, tmp_path):
    """`ss.sweep` of cheap points into one folder, on threads of this process."""
    monkeypatch.setattr(engine, "local_pool", lambda workers: nullcontext(Pool(client)))

    def sweep(*words, **given):
        options, study = given.pop("options", CHEAP), given.pop("study", "scan-snap")
        return ss.sweep(study, *words, out=tmp_path / "sweep", **{"progress": False, **options, **given})

    return sweep


def begun(folder):
    lines = [line for path in (folder / "attempts").glob("*.jsonl") for line in path.read_text().splitlines()]
    return sorted(json.loads(line)["digest"] for line in lines)


def test_a_sweep_continues_and_extends(sweep, tmp_path):
    first = sweep(grid={"rate_y": "1,2", "rate_z": "1,2"}, measure=["numbers"])
    assert len(first) == 4
    assert (tmp_path / "sweep" / "table.csv").read_text() == first.csv()
    assert sweep(grid={"rate_y": "1,2", "rate_z": "1,2"}).rows == first.rows
    finer = sweep(grid={"rate_y": "1:2:3", "rate_z": "1,2"}, seeds=2)
    assert len(finer) == 12
    assert {row["digest"]: row for row in first.rows}.items() <= {row["digest"]: row for row in finer.rows}.items()
    assert sweep(options={}).rows == finer.rows
    assert len(sweep(options={}, seeds=3)) == 18
    seen = begun(tmp_path / "sweep")
    assert len(seen) == len(set(seen)) == 18


def test_many_points_travel_in_batches(sweep, tmp_path):
    assert len(sweep(grid={"rate_y": "1:3:60"}, measure=["numbers"])) == 60
    assert len(begun(tmp_path / "sweep")) == 60


def test_slow_points_are_handed_out_one_at_a_time(client, monkeypatch, tmp_path):
    """At the end no worker holds a second one while another has none."""

    def slow(task):
        time.sleep(0.01)
        return Done(tuple(Brief(point.digest, "finished", "", 9.0) for point in task.points))

    monkeypatch.setattr(dispatch, "work", slow)
    plan, sent = cheap_plan(tmp_path, grid={"rate_y": "1:2:12"}), []
    crew = Dispatch(Pool(client), task_of(plan, tmp_path, []), RowWriter(tmp_path), SweepProgress())
    crew.run(list(points(plan)), lambda point, brief: sent.append(len(crew._flying)))
    assert len(sent) == 12
    assert max(sent[4:]) <= 2


def test_failed_points_are_retried_on_request_only(sweep, tmp_path):
    grid = {"init_scale": "0,.1"}  # a random start needs every column
    made = sweep(grid=grid)
    assert [row["status"] for row in made.rows] == ["finished", "failed"]
    assert sweep(grid=grid).rows == made.rows
    again = sweep(grid=grid, retry_failed=True)
    assert [row["retry"] for row in again.rows] == [0, 1]
    assert len(begun(tmp_path / "sweep")) == 3


def test_damaged_rows_are_said_and_computed_again(sweep, tmp_path, capsys):
    first = sweep(grid={"rate_y": "1,2"})
    path = next((tmp_path / "sweep" / "rows").iterdir())
    data = path.read_bytes()
    path.write_bytes(data.replace(b'"status":"f', b'"status":"g', 1))
    assert len(ss.load_sweep(tmp_path / "sweep").damaged) == 1
    again = sweep(grid={"rate_y": "1,2"})
    assert ": damaged, " in (said := capsys.readouterr().err)
    assert f"{path}, line" in said
    assert [row["numbers"] for row in again.rows] == [row["numbers"] for row in first.rows]
    assert len(sweep(grid={"rate_y": "1,2,3"}).damaged) == 1
    assert "damaged" not in capsys.readouterr().err  # no point is computed again because of it


def test_refinement_adds_points_where_cells_differ_and_a_repeat_adds_none(sweep, capsys):
    """Attention has slowed down before the end of the run from some rate on: bisection finds it."""
    asked = {"grid": {"until": "10:330:5"}, "refine": 3, "refine_by": "slow", "options": {"frames": 200}}
    made = sweep(**asked, progress=None)
    assert "neighbours that differ are at most 3.1 % of until apart" in capsys.readouterr().err
    slow = next(when for when in reversed(made.column("slow")) if when is not None)
    reached = [row["at"]["until"] for row in made.rows if row["events"]["slow"] is not None]
    missed = [row["at"]["until"] for row in made.rows if row["events"]["slow"] is None]
    assert len(made) == 8
    assert min(reached) - max(missed) == 10
    assert max(missed) < slow
    assert sweep(**asked).rows == made.rows
    with pytest.raises(InputError, match="unknown column"):
        sweep(**{**asked, "refine_by": "nope"})


def test_what_cannot_be_refined_is_refused_before_much_is_computed(sweep, tmp_path):
    with pytest.raises(InputError, match="nothing lies between the values of optimizer, rate_y"):
        sweep(grid={"optimizer": "flow,gd", "rate_y": "1"}, refine=1, options={})
    for by in ("until", "seconds", "digest", "reason", "seed"):
        with pytest.raises(InputError, match=f"refine_by '{by}' is nothing that a run shows"):
            sweep(grid={"until": "1:2:3"}, refine=1, refine_by=by, options={"frames": 3})
    assert not (tmp_path / "sweep").exists()
    with pytest.raises(InputError, match="unknown column of this sweep 'nope'"):
        sweep(grid={"until": "1:2:40"}, refine=1, refine_by="nope", options={"frames": 3})
    assert 0 < len(ss.load_sweep(tmp_path / "sweep")) < 40


def test_repeated_points_of_a_table_are_merged(sweep):
    assert len(sweep(table=[{"rate_y": 1}, {"rate_y": 2}, {"rate_y": 1}], progress=None)) == 2


def test_a_sweep_of_which_every_point_failed_ends_with_1(sweep, tmp_path, capsys):
    words = ["sweep", "scan-snap", "--until", ".01", "--frames", "3"]
    assert run([*words, "--grid", "init_scale=.1,.2", "--out", str(tmp_path / "bad")]) == 1
    assert "2 rows in 2 cells, 2 failed" in capsys.readouterr().out
    assert run([*words, "--grid", "init_scale=0,.1", "--seeds", "2", "--out", str(tmp_path / "some")]) == 0
    assert f"next: stagescope diagram {tmp_path / 'some'} --x init_scale" in capsys.readouterr().out


def test_refinement_finds_where_focus_becomes_defocus(sweep):
    """Real flows: attention first turns to the frequent token above persistence 0, away from it below [FD:attention-rate]."""
    asked = {"refine": 4, "refine_by": "first_move", "measure": ["numbers"], "options": {"until": 300.0, "frames": 60}}
    made = sweep(study="focus-dilution", grid={"persistence": "-.09:.71:5"}, **asked)
    focus = [row["at"]["persistence"] for row in made.rows if row["numbers"]["first_move"] > 0]
    defocus = [row["at"]["persistence"] for row in made.rows if row["numbers"]["first_move"] < 0]
    assert max(defocus) < 0 < min(focus)
    assert min(focus) - max(defocus) <= 0.02 * (0.71 + 0.09)
    assert len(made) == len(focus) + len(defocus) <= 101 / 6


def test_a_call_may_name_its_grids_in_another_order(sweep):
    sweep(grid={"rate_y": "1,2", "rate_z": "5,6"}, measure=["numbers"])
    made = sweep(grid={"rate_z": "7,8", "rate_y": "3"}, measure=["numbers"])
    assert [(axis.name, axis.values) for axis in made.axes] == [("rate_y", (1.0, 2.0, 3.0)), ("rate_z", (5.0, 6.0, 7.0, 8.0))]
    assert len(made) == len(made.cells) == 6
    assert made.find({"rate_y": 3, "rate_z": 8})["config"]["rate_z"] == 8


def test_tables_are_not_refined(sweep):
    with pytest.raises(InputError, match="cannot be refined"):
        sweep(table=[{"rate_y": 1}], refine=1)


def test_another_sweep_and_a_strange_folder_are_refused(sweep, tmp_path):
    sweep(grid={"rate_y": "1,2"})
    with pytest.raises(InputError, match=r"another sweep: the option until is 0\.01"):
        sweep(grid={"rate_y": "1,2"}, options={**CHEAP, "until": 6.0})
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").touch()
    with pytest.raises(InputError, match="not empty and holds no sweep"):
        ss.sweep("scan-snap", grid={"rate_y": "1,2"}, out=tmp_path / "other")
    with pytest.raises(InputError, match="file is a file"):
        ss.sweep("scan-snap", grid={"rate_y": "1,2"}, out=tmp_path / "other" / "file")


def test_one_client_at_a_time(sweep, tmp_path):
    sweep(grid={"rate_y": "1,2"})
    lock = Lock(tmp_path / "sweep" / CALL)
    with pytest.raises(StoreError, match="another call is computing this sweep"):
        sweep(grid={"rate_y": "1,2,3"})
    lock.release()


def test_workers_with_other_versions_end_the_sweep_with_a_sentence(sweep, monkeypatch):
    from stagescope.sweeping import plan

    monkeypatch.setattr(plan, "versions", lambda: {**versions(), "stagescope": "0.0"})
    with pytest.raises(StagescopeError, match=r"a worker has stagescope .*, this client 0\.0"):
        sweep(grid={"rate_y": "1,2"})


def test_an_interrupt_says_how_much_is_committed(sweep, monkeypatch, tmp_path):
    def stop(self, points, told):
        raise KeyboardInterrupt

    sweep(grid={"rate_y": "1"})
    monkeypatch.setattr(Dispatch, "run", stop)
    with pytest.raises(ss.Interrupted, match=r"1 row committed.*call again"):
        sweep(grid={"rate_y": "1,2"})
    assert (tmp_path / "sweep" / "table.csv").read_text().count("\n") == 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--grid rate_y=1,2 --workers 0", "at least 1 process"),
        ("--grid rate_y=1,2 --workers 1 --scheduler tcp://127.0.0.1:1", "has its own"),
        ("--grid rate_y=1,2 --timeout 0", "timeout is 0 s"),
        ("--grid rate_y=1,2 --refine -1", "refine is -1"),
        ("--grid rate_y=1,2 --refine-by snap", "needs --refine"),
        ("--grid rate_y=1,2 --grid rate_y=3", "rate_y is given twice"),
        ("--grid rate_y", "'rate_y=' names no value"),
        ("--grid rat_y=1,2", "did you mean 'rate_y'"),
        ("--grid classes=a,b", "is a file"),
        ("--grid rate_y=", "names no value"),
        ("--preset figure-66", "did you mean 'figure-6"),
        ("--table nowhere.csv", "nowhere.csv: No such file; give a CSV file"),
        ("--grid rate_y=1,2 --until 5 --refine 1 --refine-by seconds", "is nothing that a run shows"),
        ("--grid rate_y=1,2 --scheduler nonsense://x", "nonsense://x"),
    ],
)
def test_bad_words_on_the_command_line(capsys, tmp_path, words, said):
    code = run(["sweep", "scan-snap", "--out", str(tmp_path / "s"), *words.split()])
    error = capsys.readouterr().err
    assert code in (1, 2)
    assert error.startswith("stagescope: ")
    assert said in error
    assert len([line for line in error.splitlines() if "a sweep of" not in line]) == 1  # its size is said first


@pytest.mark.long
@pytest.mark.parametrize(
    ("listens", "says", "said"),
    [
        (False, b"", "no scheduler answers at"),
        (True, b"", "no scheduler answers at"),  # it accepts and waits for ever
        (True, b"SSH-2.0-OpenSSH_9.6 and more words\r\n", "is no Dask scheduler"),
    ],
)
def test_a_scheduler_that_does_not_answer(capsys, tmp_path, monkeypatch, listens, says, said):
    import socket

    assert cluster.CONNECT_SECONDS < 8  # with what starting takes, a message within ten seconds
    monkeypatch.setattr(cluster, "CONNECT_SECONDS", 0.5)
    with socket.socket() as port:
        port.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{port.getsockname()[1]}"
        if listens:
            port.listen()
            threading.Thread(target=lambda: port.accept()[0].sendall(says) if says else None, daemon=True).start()
        code = run(["sweep", "scan-snap", "--grid", "rate_y=1,2", "--scheduler", address, "--out", str(tmp_path / "s")])
    error = capsys.readouterr().err
    assert code == 1
    assert said in error
    assert address in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(("who", "package"), [("scheduler", "stagescope"), ("workers", "numpy"), ("workers", "stagescope")])
def test_a_cluster_of_other_versions_is_refused_on_connecting(who, package):
    mine = {"packages": {**versions(), "python": platform.python_version()}}
    other = {"packages": {**mine["packages"], package: None if package == "stagescope" else "1.0"}}
    found = {"scheduler": mine, "workers": {"tcp://a:1": mine}}
    client: Any = SimpleNamespace(get_versions=lambda packages: found)
    cluster._same_versions(client)
    found[who] = other if who == "scheduler" else {"tcp://a:1": mine, "tcp://b:2": other}
    there = "missing" if package == "stagescope" else "1.0"
    with pytest.raises(StagescopeError, match=rf"{'the scheduler' if who == 'scheduler' else 'tcp://b:2'} has {package} {there}"):
        cluster._same_versions(client)


def test_a_damaged_row_of_a_second_try_is_made_again(sweep, tmp_path):
    """The failure before it is intact, and would count in its place."""
    (good,) = sweep(grid={"rate_y": "1"}).rows
    (stored,) = (tmp_path / "sweep" / "rows").glob("*.jsonl")
    stored.unlink()
    RowWriter(tmp_path / "sweep").commit([{**good, "status": "failed", "reason": "the disk was full"}])
    RowWriter(tmp_path / "sweep").commit([{**good, "retry": 1}])
    second = next(path for path in (tmp_path / "sweep" / "rows").glob("*.jsonl") if b"finished" in path.read_bytes())
    second.write_bytes(second.read_bytes().replace(b"finished", b"Finished"))
    for _ in range(2):
        (again,) = sweep(grid={"rate_y": "1"}).rows
        assert (again["status"], again["retry"], again["numbers"]) == ("finished", 1, good["numbers"])


class Answer:
    def __init__(self, status):
        self.status = status


def test_an_answer_that_died_with_its_worker_is_waited_for(client, tmp_path):
    """The scheduler has it made again; that is not the end of the scheduler."""
    plan = cheap_plan(tmp_path, grid={"rate_y": "1"})
    crew = Dispatch(Pool(client), task_of(plan, tmp_path), RowWriter(tmp_path), SweepProgress())
    for status in ("lost", "pending"):
        lost: Any = Answer(status)
        crew._flying = {lost: tuple(points(plan))}
        assert crew._receive(lost) == []
        assert lost in crew._flying


@pytest.mark.long
def test_a_column_never_mixes_versions_of_rules_and_remeasure_renews_old_rows(sweep, monkeypatch):
    """Of two versions the newer is shown; rows judged by the older one are computed again on request."""
    from stagescope.papers.scan_snap import study as module

    asked = {"grid": {"rate_y": "1,2"}, "measure": ["verdicts"]}
    before = sweep(**asked)
    tag = "SnS:order"
    assert None not in before.column(tag)
    known = module.STUDY.kinds[0].claims()
    newer = tuple(replace(claim, rules=claim.rules + 1) if claim.tag == tag else claim for claim in known)
    monkeypatch.setattr("stagescope.papers.scan_snap.CLAIMS", newer)
    mixed = sweep(**{**asked, "grid": {"rate_y": "1,2,3"}})
    assert [value is None for value in mixed.column(tag)] == [True, True, False]
    renewed = sweep(**{**asked, "grid": {"rate_y": "1,2,3"}}, remeasure=True)
    assert None not in renewed.column(tag)
    assert [row["retry"] for row in renewed.rows] == [1, 1, 0]


OWN = """
import stagescope as ss

def always(evidence):
    return ss.Regime(True, "any run")

def some(evidence):
    return ss.Comparison("some", evidence.run.frames, "exact", evidence.run.frames > 0, "frames")

CLAIMS = ss.Claim(tag="own:some", statement="The run has frames", regime=always, compare=some)
"""


def test_changed_claims_of_your_own_are_judged_again_on_request(sweep, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    module = tmp_path / "own_engine_claims.py"
    module.write_text(OWN)
    asked = {"grid": {"rate_y": "1"}, "measure": ["verdicts"], "claims": "own_engine_claims:CLAIMS", "progress": None}
    assert sweep(**asked).column("own:some") == ["confirmed"]
    assert sweep(**asked, remeasure=True).renewed == 0
    assert "0 rows renewed: all were judged by the claims and rules of today" in capsys.readouterr().err
    module.write_text(OWN.replace("frames > 0", "frames > 1000"))
    with pytest.raises(InputError, match="--remeasure judges its rows again"):
        sweep(**asked)
    again = sweep(**asked, remeasure=True)
    assert (again.column("own:some"), again.renewed) == (["violated"], 1)
    assert "1 row renewed" in capsys.readouterr().err
    assert sweep(**asked).rows == again.rows
    sys.modules.pop("own_engine_claims", None)


def test_deleted_rows_are_said_and_computed_again(sweep, tmp_path, capsys):
    first = sweep(grid={"rate_y": "1,2"})
    assert verify_sweep(tmp_path / "sweep") == []
    for path in (tmp_path / "sweep" / "rows").iterdir():
        path.unlink()
    assert len(ss.load_sweep(tmp_path / "sweep").damaged) == 2
    again = sweep(grid={"rate_y": "1,2"})
    assert "is gone, and 1 more; points without an intact row are computed again" in capsys.readouterr().err
    assert [row["numbers"] for row in again.rows] == [row["numbers"] for row in first.rows]
    assert verify_sweep(tmp_path / "sweep") == []


def test_a_damaged_journal_is_said_and_written_again(sweep, tmp_path, capsys):
    sweep(grid={"rate_y": "1"})
    for path in (tmp_path / "sweep" / "journal").iterdir():
        path.write_bytes(path.read_bytes()[:-9])
    assert verify_sweep(tmp_path / "sweep")
    sweep(grid={"rate_y": "1"})
    assert "journal: damaged; it is written again" in capsys.readouterr().err
    assert verify_sweep(tmp_path / "sweep") == []
