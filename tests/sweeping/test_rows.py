"""Rows on disk: whole lines only, checked, one that counts for each point."""

import csv
import hashlib
import io
import json
import os
import shutil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stagescope.core.errors import StoreError
from stagescope.sweeping.rows import Rows, RowWriter, _Row, line_of, row_of
from stagescope.sweeping.table import load_sweep, verify_sweep
from tests.sweeping.small import cheap_plan

NUMBERS = st.one_of(st.none(), st.floats(allow_nan=False, allow_infinity=False), st.text(max_size=8))


def row(digest="a", retry=0, status="finished", **more):
    return {"digest": digest, "retry": retry, "status": status, "reason": "", **more}


@given(st.dictionaries(st.text(max_size=5), NUMBERS, max_size=5))
def test_a_line_gives_back_its_row(found):
    assert row_of(line_of(found)[:-1]) == found


@given(st.integers(0, 10_000), st.integers(1, 255))
def test_a_changed_byte_is_seen(place, change):
    line = bytearray(line_of(row(loss=0.25))[:-1])
    line[place % len(line)] ^= change
    assert row_of(bytes(line)) is None


def test_two_writers_cannot_both_commit_a_point(tmp_path):
    first, second = RowWriter(tmp_path), RowWriter(tmp_path)
    assert [each["loss"] for each in first.commit([row("a", loss=1), row("b", loss=1)])] == [1, 1]
    assert [each["digest"] for each in second.commit([row("b", loss=2), row("c", loss=2)])] == ["c"]
    found = Rows(tmp_path).refresh().current
    assert {digest: each["loss"] for digest, each in found.items()} == {"a": 1, "b": 1, "c": 2}
    assert len(list((tmp_path / "rows").iterdir())) == 2


def test_a_line_cut_short_before_the_journal_named_it_was_never_committed(tmp_path):
    writer = RowWriter(tmp_path)
    writer.commit([row("a")])
    path = next((tmp_path / "rows").iterdir())
    path.write_bytes(path.read_bytes() + line_of(row("b"))[:-5])
    rows = Rows(tmp_path).refresh()
    assert list(rows.current) == ["a"]
    assert not rows.damaged
    assert not rows.problems()


@pytest.mark.parametrize(("cut", "gone"), [("all", "abc"), ("newline", "c"), ("two", "bc")])
def test_rows_that_were_committed_and_are_gone_are_damage(tmp_path, cut, gone):
    RowWriter(tmp_path).commit([row("a"), row("b"), row("c")])
    path = next((tmp_path / "rows").iterdir())
    data = path.read_bytes()
    path.write_bytes({"all": b"", "newline": data[:-1], "two": data[: data.index(b"\n") + 1]}[cut])
    rows = Rows(tmp_path).refresh()
    assert rows.lost == dict.fromkeys(gone, 0)
    assert rows.problems() == rows.gone() == [f"{path.parent}: the committed row of point {each} is gone" for each in gone]
    path.unlink()
    assert Rows(tmp_path).refresh().lost == dict.fromkeys("abc", 0)
    RowWriter(tmp_path).commit([row(each) for each in "abc"])
    assert not Rows(tmp_path).refresh().problems()


def test_the_journal_is_written_again_where_it_is_damaged(tmp_path):
    for each in "ab":
        RowWriter(tmp_path).commit([row(each)])
    size = RowWriter(tmp_path).settle()
    assert size == Rows(tmp_path).refresh().journal.size
    path = min((tmp_path / "journal").iterdir())
    path.write_bytes(path.read_bytes().replace(b",0]", b",1]"))
    rows = Rows(tmp_path).refresh()
    assert len(rows.journal.damaged) == 1
    assert not rows.problems()
    RowWriter(tmp_path).settle()
    rows = Rows(tmp_path).refresh()
    assert not rows.journal.damaged
    assert rows.journal.tries == {"a": 0, "b": 0}


def test_rows_without_a_journal_are_named_in_it(tmp_path):
    """Those of a process that was killed between the two."""
    RowWriter(tmp_path).commit([row("a"), row("b", retry=2)])
    shutil.rmtree(tmp_path / "journal")
    assert Rows(tmp_path).refresh().unnamed() == {"a": 0, "b": 2}
    RowWriter(tmp_path).settle()
    assert Rows(tmp_path).refresh().journal.tries == {"a": 0, "b": 2}


ODD = [None, 3, "text", [1], {"a": [1]}, True, 10**400, -(10**400), float("nan"), float("inf")]


def test_rows_of_odd_types_raise_nothing(tmp_path):
    """A line may have a right check and still be nobody's row: it counts as damaged, or can be read in every column."""
    cheap_plan(tmp_path, grid={"rate_y": "1,2"})
    good = {**row("d"), "study": "scan-snap", "seed": 0, "at": {"rate_y": 1.0}, "config": {}, "numbers": {"loss": 1.0}}
    found = list(ODD)
    for key in _Row.model_fields:
        found.append({name: value for name, value in good.items() if name != key})
        found += [{**good, key: value} for odd in ODD for value in (odd, {"rate_y": odd}, [odd], {"a": {"a": odd}})]
    named = [{**each, "digest": f"{number}"} if each.get("digest") == "d" else each for number, each in enumerate(found[10:])]
    lines = []
    for each in (*found[:10], *named):
        body = json.dumps(each).encode()
        lines.append(b'{"check":"%s","row":%s}\n' % (hashlib.sha256(body).hexdigest()[:16].encode(), body))
    (tmp_path / "rows").mkdir()
    (tmp_path / "rows" / "a.jsonl").write_bytes(b"".join(lines))
    made = load_sweep(tmp_path)
    assert 50 < len(made.rows) < 300 < len(made.damaged)
    for name in made.columns:
        made.statistics(name, by=[])
    assert len(list(csv.reader(io.StringIO(made.csv())))) == 1 + len(made.rows)
    assert len(verify_sweep(tmp_path)) > 300


def test_damage_is_named_and_the_point_counts_as_missing(tmp_path):
    RowWriter(tmp_path).commit([row("a", loss=0.5), row("b", loss=0.5)])
    path = next((tmp_path / "rows").iterdir())
    path.write_bytes(path.read_bytes().replace(b"0.5", b"0.7", 1))
    rows = Rows(tmp_path).refresh()
    assert list(rows.current) == ["b"]
    assert list(rows.damaged) == [f"{path}, line 1"]


def test_a_retry_replaces_a_failure_and_never_a_result(tmp_path):
    writer = RowWriter(tmp_path)
    writer.commit([row("a", status="failed"), row("b")])
    assert not writer.commit([row("a", status="finished")])
    assert [each["digest"] for each in writer.commit([row("a", retry=1), row("b", retry=1)])] == ["a"]
    assert Rows(tmp_path).refresh().current["a"]["status"] == "finished"


def test_reading_on_reads_only_what_is_new(tmp_path):
    writer, reader = RowWriter(tmp_path), Rows(tmp_path)
    assert not reader.refresh().current
    writer.commit([row("a")])
    assert list(reader.refresh().current) == ["a"]
    writer.commit([row("b")])
    assert list(reader.refresh().current) == ["a", "b"]


def test_a_full_disk_leaves_no_half_line(tmp_path, monkeypatch):
    writer = RowWriter(tmp_path)
    writer.commit([row("a")])
    real = os.write

    def full(handle, data):
        real(handle, data[:7])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(StoreError, match="disk is full"):
        writer.commit([row("b")])
    monkeypatch.undo()
    writer.commit([row("b")])
    rows = Rows(tmp_path).refresh()
    assert list(rows.current) == ["a", "b"]
    assert not rows.damaged
