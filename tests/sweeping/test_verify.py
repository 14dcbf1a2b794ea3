"""Stored sweeps: what is damaged, cut or deleted is found, in the plan, the rows, the journal and the runs that were kept."""

import json
import random
import shutil

import pytest

from stagescope.cli.main import run
from stagescope.core.errors import InputError, NotARun, StoreError
from stagescope.sweeping.plan import load_plan, points
from stagescope.sweeping.rows import RowWriter
from stagescope.sweeping.table import load_sweep, verify_sweep
from tests.runs import samples
from tests.sweeping.small import cheap_plan


@pytest.fixture
def folder(tmp_path):
    """A sweep of four points, as a call leaves it, without their runs."""
    plan = cheap_plan(tmp_path / "sweep", grid={"rate_y": "1,2,3,4"})
    writer = RowWriter(tmp_path / "sweep")
    settled = {"status": "finished", "reason": "", "numbers": {"loss": 0.5}, "retry": 0}
    for point in points(plan):
        place = {
            "digest": point.digest,
            "study": plan.study,
            "seed": point.seed,
            "at": dict(point.values),
            "config": dict(point.config),
        }
        writer.commit([{**place, **settled}])
    plan.model_copy(update={"journal": writer.settle()}).save(tmp_path / "sweep")
    return tmp_path / "sweep"


def flipped(data: bytes, draw: random.Random) -> bytes:
    place = draw.randrange(len(data))
    return data[:place] + bytes([data[place] ^ (1 << draw.randrange(8))]) + data[place + 1 :]


def test_an_intact_sweep(folder, capsys):
    assert verify_sweep(folder) == []
    assert run(["verify", str(folder)]) == 0
    assert run(["verify", str(folder), "--json"]) == 0
    said, _, found = capsys.readouterr().out.partition("\n")
    assert said == f"{folder}: every row is as it was committed"
    assert json.loads(found) == {"sweep": str(folder), "intact": True, "problems": []}


def test_no_flipped_plan_is_served(folder):
    path, draw = folder / "sweep.json", random.Random(0)
    whole = path.read_bytes()
    for _ in range(100):
        path.write_bytes(flipped(whole, draw))
        with pytest.raises((NotARun, InputError)):
            load_plan(folder)
    path.write_bytes(whole[:-1])
    assert "sweep.json is damaged" in verify_sweep(folder)[0]
    path.write_bytes(whole)
    assert load_plan(folder).journal


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"schema_version": 3, "id": ' + "9" * 5000 + "}", "null", '{"schema_version": [3]}']
)
def test_a_plan_of_odd_types(folder, text):
    (folder / "sweep.json").write_text(text)
    with pytest.raises(NotARun, match="damaged"):
        load_plan(folder)


UNEVEN = {"axes": (), "seeds": (0,), "columns": ("a",), "lines": ((1, 2),)}


@pytest.mark.filterwarnings("ignore:Pydantic serializer")
@pytest.mark.parametrize("grids", [(), (UNEVEN,)])
def test_a_plan_that_makes_no_sense(folder, grids):
    """Its digest is right, but no call of `sweep` writes such grids."""
    load_plan(folder).model_copy(update={"grids": grids}).save(folder)
    with pytest.raises(NotARun, match="damaged"):
        load_plan(folder)


@pytest.mark.parametrize("part", ["rows", "journal"])
def test_every_flip_truncation_and_deletion_is_found(folder, part):
    (path,), draw = (folder / part).iterdir(), random.Random(1)
    whole = path.read_bytes()
    for changed in (*(flipped(whole, draw) for _ in range(25)), whole[:-1], whole[: len(whole) // 2], b""):
        path.write_bytes(changed)
        assert verify_sweep(folder), changed
        assert len(load_sweep(folder)) < 4 or part == "journal"
    path.unlink()
    assert verify_sweep(folder)
    shutil.rmtree(folder / part)
    assert run(["verify", str(folder)]) == 1
    path.parent.mkdir()
    path.write_bytes(whole)
    assert verify_sweep(folder) == []


def test_rows_and_journal_gone_together_are_found(folder):
    for part in ("rows", "journal"):
        shutil.rmtree(folder / part)
    assert verify_sweep(folder)


def test_runs_that_were_kept_are_checked(folder):
    kept = samples.finished(folder / "runs" / "a")
    assert verify_sweep(folder) == []
    (kept / "data.zarr/t/c/0").write_bytes(b"")
    assert "data.zarr/t/c/0: damaged" in verify_sweep(folder)[0]


def test_a_run_that_was_kept_and_has_no_manifest(folder):
    kept = samples.finished(folder / "runs" / "a")
    (folder / "runs" / ".b.unfinished").mkdir()
    assert verify_sweep(folder) == []
    (kept / "manifest.json").unlink()
    assert verify_sweep(folder) == [
        f"{kept} holds no run (no manifest.json); give a folder written by `stagescope run` or `Run.save`"
    ]


@pytest.mark.parametrize("place", ["sweep.json", "rows", "rows/b.jsonl", "journal", "runs", "runs/a", "lock", "table.csv"])
def test_links_are_reported_and_not_followed(folder, tmp_path, place):
    path, elsewhere = folder / place, tmp_path / "elsewhere"
    if path.exists():
        path.rename(elsewhere)
    else:
        path.parent.mkdir(exist_ok=True)
        elsewhere.write_bytes(b"".join(each.read_bytes() for each in (folder / "rows").iterdir()))
    path.symlink_to(elsewhere)
    assert run(["verify", str(folder)]) == 1
    assert verify_sweep(folder)[0].startswith(f"{path}: it is a link")
    if place == "sweep.json":
        with pytest.raises(StoreError, match="it is a link"):
            load_sweep(folder)
    else:
        assert len(load_sweep(folder)) == (0 if place == "rows" else 4)


def test_the_lock_of_rows_follows_no_link(folder, tmp_path):
    (folder / "lock").unlink(missing_ok=True)
    (folder / "lock").symlink_to(tmp_path / "outside")
    with pytest.raises(StoreError, match="it is a link"):
        RowWriter(folder).settle()
    assert not (tmp_path / "outside").exists()


def test_a_folder_without_a_sweep(tmp_path):
    with pytest.raises(NotARun, match="holds no sweep"):
        verify_sweep(tmp_path)
