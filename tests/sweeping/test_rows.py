"""Rows on disk: whole lines only, checked, one that counts for each point."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stagescope.errors import StoreError
from stagescope.sweeping.rows import Rows, RowWriter, line_of, row_of

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


def test_a_line_cut_short_was_never_committed(tmp_path):
    writer = RowWriter(tmp_path)
    writer.commit([row("a"), row("b")])
    path = next((tmp_path / "rows").iterdir())
    path.write_bytes(path.read_bytes()[:-5])
    rows = Rows(tmp_path).refresh()
    assert list(rows.current) == ["a"]
    assert not rows.damaged


def test_damage_is_named_and_the_point_counts_as_missing(tmp_path):
    RowWriter(tmp_path).commit([row("a", loss=0.5), row("b", loss=0.5)])
    path = next((tmp_path / "rows").iterdir())
    path.write_bytes(path.read_bytes().replace(b"0.5", b"0.7", 1))
    rows = Rows(tmp_path).refresh()
    assert list(rows.current) == ["b"]
    assert rows.damaged == [f"{path}, line 1"]


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
