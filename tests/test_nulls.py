"""Nulls are runs, judged by what a user calls: no null, and nothing that draws them, reaches into a reading."""

import ast
import json
from pathlib import Path

import numpy as np
import pytest

import stagescope as ss
from stagescope.readings.calibrate import with_nulls
from stagescope.readings.rebuild import field_of
from stagescope.readings.registry import studies
from validation import how_sure, replay_nulls
from validation.nulls.falsified import FALSIFIED, falsified

ROOT = Path(__file__).parents[1]
FILES = sorted((ROOT / "validation" / "nulls").glob("*.py"))
INSIDE = {"reading", "Reading", "vars", "setattr", "__dict__"}
"""Names by which a reading, or what it keeps, is reached."""


def names(file: Path) -> set[str]:
    """Every name, attribute and part of an import in a file; `memo={}` drops what a run keeps, any other `memo` is named."""
    used = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Name):
            used.add(node.id)
        elif isinstance(node, ast.Attribute):
            used.add(node.attr)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            paths = [alias.name for alias in node.names] + [getattr(node, "module", None) or ""]
            used |= {part for path in paths for part in path.split(".")}
        elif isinstance(node, ast.keyword) and node.arg == "memo" and ast.unparse(node.value) != "{}":
            used.add("memo")
    return used


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_no_null_touches_a_reading(file):
    assert not names(file) & {*INSIDE, "memo"}


def test_the_inspection_sees_a_patched_reading(tmp_path):
    file = tmp_path / "patched.py"
    file.write_text("from stagescope.readings.reading import reading\nvars(reading(run))['curves'] = replace(run, memo=old)\n")
    assert names(file) >= {"reading", "vars", "memo"}


@pytest.mark.parametrize("name", list(studies()))
def test_every_null_is_made_by_a_module_that_was_inspected(name):
    modules = {f"validation.nulls.{file.stem}" for file in FILES}
    for claim in with_nulls(studies()[name]):
        for null in claim.nulls:
            make = getattr(null.make, "func", null.make)
            assert make.__module__ in modules, null.name


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    root = tmp_path_factory.mktemp("falsified")
    for name, rate in (("true", 10.0), ("other", 16.0)):
        ss.run_study("scan-snap", rate_y=rate, until=20.0, frames=12, progress=False).save(root / name)
    return root


@pytest.mark.parametrize("null", FALSIFIED)
def test_a_falsified_folder_keeps_its_ends_clock_and_spec_and_is_consistent(null, folders):
    falsified(null, folders / "true", folders / "other", folders / null, 3)
    true, false = ss.load(folders / "true"), ss.load(folders / null)
    assert ss.verify(folders / null) == []
    assert false.spec == true.spec
    assert np.array_equal(false.t, true.t)
    for name in true.params:
        assert np.allclose(false.params[name][[0, -1]], true.params[name][[0, -1]], rtol=1e-6, atol=1e-12)
    assert any(not np.allclose(false.params[name], true.params[name], rtol=1e-3, atol=1e-9) for name in true.params)
    law = field_of(true.spec).objective
    assert np.allclose(false.series["loss"], [law.value(false.at(i)) for i in range(false.frames)], rtol=1e-12)


def test_counts_of_falsified_runs_are_of_claims_that_read_a_clock_and_apply():
    verdicts = {"FD:origin": "confirmed", "FD:stages": "confirmed", "FD:delta-law": "not applicable"}
    false = dict.fromkeys(FALSIFIED, dict.fromkeys(verdicts, "violated")) | {"jittered": verdicts}
    rows = [{"study": "s", "seed": seed, "verdicts": {"true": verdicts, **false}} for seed in range(30)]
    for row in rows[:5]:
        row["verdicts"] = {**row["verdicts"], "straight line": verdicts}
    body = replay_nulls.counted(rows)["s"]
    assert list(body["claims"]) == ["FD:origin"]
    assert (body["claims"]["FD:origin"]["straight line"], body["any"]["jittered"]) == (5, 30)
    assert how_sure.misses(body) == ["FD:origin on 5 of 30, straight line"]
    assert how_sure.misses(replay_nulls.counted(rows[1:])["s"]) == ["FD:origin on 4 of 29, straight line"]
    assert how_sure.misses(replay_nulls.counted(rows[2:])["s"]) == []


def test_claims_that_read_a_clock_are_claims_of_the_studies():
    tags = {claim.tag for name in replay_nulls.SETTINGS for claim in studies()[name].claims()}
    assert set(replay_nulls.TIMED) <= tags


def test_rows_of_other_sources_and_cut_lines_are_left_out(tmp_path):
    file = tmp_path / "rows.jsonl"
    rows = [{"commit": commit, "seed": seed, "verdicts": {}} for seed, commit in enumerate("aab")]
    file.write_text("\n".join(map(json.dumps, rows)) + '\n{"commit": "b", "fai')
    assert [row["seed"] for row in replay_nulls.rows_of(file, "a")] == [0, 1]
    assert [row["seed"] for row in replay_nulls.rows_of(file)] == [2]


def test_a_process_of_its_own_judges_as_check_does(tmp_path):
    ss.run_study("scan-snap", until=20.0, frames=40, progress=False).save(tmp_path / "run")
    verdicts = replay_nulls._judged(tmp_path / "run", process=True)
    assert verdicts == replay_nulls._judged(tmp_path / "run", process=False)
    assert "confirmed" in verdicts.values()
