"""Runs and sweeps that version 0.1.0 wrote: read, verified, continued, judged and drawn as that version did."""

import hashlib
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import stagescope as ss
from stagescope.cli.command import info
from stagescope.errors import DamagedRun, StoreError
from stagescope.runs import files, manifest

OLD = Path(__file__).parent / "data" / "v0.1.0"
EXPECTED = json.loads((OLD / "expected.json").read_text())
RUNS, SWEEPS = sorted(EXPECTED["runs"]), sorted(EXPECTED["sweeps"])


def digests(run: ss.Run) -> dict[str, str]:
    found = {}
    for name, values in {**run.series, **run.params}.items():
        found[name] = f"{values.dtype.str} {values.shape} {hashlib.sha256(values.tobytes()).hexdigest()}"
    return found


def same_events(found: dict, expected: dict, rel: float = 1e-9) -> None:
    assert list(found) == list(expected)
    for name, when in expected.items():
        assert found[name] == (None if when is None else pytest.approx(when, rel=rel)), name


def same_libraries(folder: Path) -> bool:
    """Whether a run was made with the numerical libraries of today: only then are numbers equal to the last bit.

    Not so `speed`, whose sum BLAS takes in an order that depends on the processor.
    """
    then, now = (found["packages"] | {"stagescope": ""} for found in (manifest.read(folder).environment, manifest.environment()))
    return then == now


@pytest.fixture
def copy(tmp_path):
    """A copy to write to: the runs of version 0.1.0 stay as they are."""
    return lambda name: Path(shutil.copytree(OLD / name, tmp_path / name))


@pytest.mark.parametrize("name", RUNS)
def test_an_old_run_opens_intact(name):
    expected, run = EXPECTED["runs"][name], ss.load(OLD / name)
    assert ss.verify(OLD / name) == []
    assert (run.status, run.frames, run.clock) == (expected["status"], expected["frames"], expected["clock"])
    assert digests(run) == expected["arrays"]
    assert info(run)["last"] == expected["last"]


@pytest.mark.parametrize("name", RUNS)
def test_ids_of_an_old_run_are_those_of_today(name):
    """The file has bare names, a reader sees those of the papers."""
    run, stored = ss.load(OLD / name), json.loads((OLD / name / "manifest.json").read_text())
    assert stored["schema_version"] == 1
    assert info(run)["field"] == f"{name.partition('-')[0]}{_PAPER[name.partition('-')[0]]}/{stored['spec']['field']['type']}"
    assert run.spec["dynamics"] == stored["spec"]["dynamics"]
    assert run.config_digest == stored["config_digest"]


_PAPER = {"focus": "-dilution", "scan": "-snap", "incremental": ""}


SAME = ("E1", "E2", "E3", "Q1", "Q2", "winner", "peak")
"""Events that mean what they meant in version 0.1.0, whose t_j moved with the recording; all else is read by other rules."""


@pytest.mark.parametrize("name", RUNS)
def test_events_of_an_old_run(name):
    expected, run = EXPECTED["runs"][name], ss.load(OLD / name)
    found = ss.stages(run).events
    for event, when in expected["events"].items():
        if event in SAME and when is not None:
            assert found[event] == pytest.approx(when, rel=5e-3), event


@pytest.mark.long
@pytest.mark.parametrize("name", RUNS)
def test_claims_on_an_old_run_have_no_mistake(name):
    assert [row.tag for row in ss.check(ss.load(OLD / name)) if row.error is not None] == []


@pytest.mark.parametrize("name", RUNS)
def test_the_page_of_an_old_run(name, tmp_path):
    made = ss.report(OLD / name, tmp_path / "page.html", skip=("ladder", "ledger"), progress=False)
    assert Path(made).stat().st_size > 10_000


@pytest.mark.parametrize("name", ["focus-dilution-gd", "scan-snap-adam"])
def test_an_old_run_that_was_killed_ends_as_the_whole_one(name, copy):
    folder = copy(f"{name}-killed")
    run = ss.resume(folder, progress=False)
    assert run.status == "finished"
    whole = ss.load(OLD / f"{name}-whole")
    for block in ({**run.params, **run.series}) if same_libraries(folder) else ():
        assert block == "speed" or digests(run)[block] == digests(whole)[block], block
    for block, values in {**run.series, **run.params}.items():
        np.testing.assert_allclose(values, {**whole.series, **whole.params}[block], rtol=1e-9, err_msg=block)
    assert json.loads((folder / "manifest.json").read_text())["schema_version"] == manifest.SCHEMA
    assert ss.verify(folder) == []


def test_a_copy_of_an_old_run_is_of_the_new_schema(tmp_path):
    run = ss.load(OLD / "scan-snap-flow")
    run.save(tmp_path / "new")
    again = ss.load(tmp_path / "new")
    assert (again.spec, again.config_digest, digests(again)) == (run.spec, run.config_digest, digests(run))
    assert manifest.read(tmp_path / "new").schema_version == manifest.SCHEMA


def test_every_changed_byte_of_an_old_manifest_is_seen(copy):
    folder = copy("scan-snap-adam")
    path = folder / "manifest.json"
    good = path.read_bytes()
    rng = np.random.default_rng(0)
    for place in range(0, len(good), 7):
        bad = bytearray(good)
        bad[place] ^= int(rng.integers(1, 256))
        path.write_bytes(bad)
        with pytest.raises(StoreError):
            manifest.read(folder)


def test_an_old_manifest_with_another_number_is_damaged(copy):
    """Also with a digest that fits: schema 1 is checked as schema 1, and there was no schema 0."""
    path = copy("scan-snap-adam") / "manifest.json"
    old = json.loads(path.read_text())
    for version in (0, -1, "1", 1.0, None):
        body = {**old, "schema_version": version}
        body.pop("digest")
        sealed = {**body, "digest": files.digest(json.dumps(body, indent=1).encode())}
        path.write_text(json.dumps(sealed, indent=1) + "\n")
        with pytest.raises(DamagedRun):
            manifest.read(path.parent)


@pytest.mark.parametrize("name", SWEEPS)
def test_an_old_sweep_opens(name):
    expected, sweep = EXPECTED["sweeps"][name], ss.load_sweep(OLD / name)
    assert {axis.name: list(axis.values) for axis in sweep.axes} == expected["axes"]
    assert (len(sweep.cells), list(sweep.damaged)) == (expected["cells"], expected["damaged"])
    assert list(sweep.columns) == expected["columns"]
    kept = ("at", "seed", "status", "events", "verdicts", "numbers")
    assert {row["digest"]: {key: row[key] for key in kept} for row in sweep.rows} == expected["rows"]
    assert sweep.csv() == (OLD / name / "table.csv").read_text()


def test_a_row_of_an_old_sweep_can_be_run_again():
    sweep = ss.load_sweep(OLD / "sweep-finished")
    row = sweep.find({"pi.0": 0.5, "persistence": 0.6})
    again = dict(ss.stages(sweep.recreate(row, progress=False)).events)
    same_events(again, row["events"], rel=1e-7)  # a flow of today restarts elsewhere, and differs within its tolerance


def test_the_diagram_of_an_old_sweep(tmp_path):
    ss.diagram(OLD / "sweep-finished", "pi.0", "persistence", "E1", out=tmp_path / "map", page=tmp_path / "map.html")
    assert (tmp_path / "map.html").stat().st_size > 10_000
    assert list((tmp_path / "map").rglob("*.pdf"))


@pytest.mark.long
def test_an_old_sweep_that_was_interrupted_goes_on(copy):
    """Its points are known by the digests of version 0.1.0, so those committed are not computed again."""
    folder, old = copy("sweep-interrupted"), EXPECTED["sweeps"]
    sweep = ss.sweep("focus-dilution", out=folder, workers=1, progress=False)
    assert (len(sweep), sweep.missing, sweep.failed) == (6, 0, ())
    rows = {row["digest"]: row for row in sweep.rows}
    assert old["sweep-interrupted"]["rows"].keys() <= rows.keys()
    assert sum(len(path.read_text().splitlines()) for path in (folder / "rows").iterdir()) == 6
    for digest, expected in old["sweep-interrupted"]["rows"].items():
        same_events(rows[digest]["events"], expected["events"])
        assert rows[digest]["verdicts"] == expected["verdicts"]
    judged = {digest: row["verdicts"] for digest, row in rows.items() if "rules" in row}
    assert judged.keys() == rows.keys() - old["sweep-interrupted"]["rows"].keys()
    assert json.loads((folder / "sweep.json").read_text())["schema_version"] == 3
