"""Folders that somebody sent: nothing outside them is written or read, nothing hangs, and `verify` names each trap."""

import json
import os
import shutil
import socket
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy as safetensors

from stagescope.cli.main import run as command
from stagescope.core.errors import DamagedRun, InputError, StoreError
from stagescope.runs import files, store
from stagescope.runs.export import export
from stagescope.runs.manifest import Manifest
from stagescope.runs.manifest import read as read_manifest
from stagescope.runs.run import Arrays
from stagescope.runs.writer import Writer
from tests.runs import samples

LINKS = (
    "manifest.json",
    "manifest.json.new",
    "events.jsonl",
    "events.jsonl.new",
    "checkpoint",
    "checkpoint/000003.safetensors",
    "checkpoint/000004.safetensors.new",
    "data.zarr",
    "data.zarr/W",
    "data.zarr/W/c",
    "data.zarr/W/c/0/0/0",
    "data.zarr/W/c/2/0/0.new",
    "data.zarr/W/zarr.json",
    "data.zarr/W/zarr.json.new",
    "notes/by/somebody.txt",
)
"""Places in a run, some of which it has, some of which it will write to, one that is none of its own."""
READ = tuple(name for name in LINKS if not name.endswith((".new", ".txt")))
"""Places that are read when a run is opened."""


@pytest.fixture(autouse=True)
def _no_waiting_for_the_disk(monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda handle: None)


def outside(tmp_path: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted((tmp_path / "mine").rglob("*")) if path.is_file()}


def trap(tmp_path: Path, name: str, make: str) -> Path:
    """A run that can be resumed, with a trap at one place; a link leads to a copy of what was there, or to a file."""
    folder, mine = samples.unfinished(tmp_path / "run"), tmp_path / "mine"
    mine.mkdir()
    place = folder / name
    place.parent.mkdir(parents=True, exist_ok=True)
    if place.exists():
        shutil.move(place, mine / "notes")
    else:
        (mine / "notes").write_text("ten years of work")
    if make == "link":
        place.symlink_to(mine / "notes")
    elif make == "FIFO":
        os.mkfifo(place)
    elif make == "socket":
        os.chdir(place.parent)  # the path of a socket is short
        socket.socket(socket.AF_UNIX).bind(place.name)
    return folder


@pytest.mark.parametrize(("name", "make"), [*((name, "link") for name in LINKS), ("events.jsonl", "FIFO"), ("x", "socket")])
def test_a_trap_is_refused_by_resume_and_named_by_verify(tmp_path, monkeypatch, capsys, name, make):
    monkeypatch.chdir(tmp_path)
    folder = trap(tmp_path, name, make)
    before = outside(tmp_path)
    with pytest.raises(StoreError, match=f"it is a {make}, which Stagescope never makes"):
        Writer.reopen(folder)
    assert any(f"{folder / name}: it is a {make}" in problem for problem in store.verify(folder))
    assert command(["resume", str(folder)]) == 1
    said = capsys.readouterr().err
    assert said.startswith(f"stagescope: {folder / name}")
    assert said.count("\n") == 1
    assert outside(tmp_path) == before


def test_a_link_is_to_be_removed_and_not_restored(tmp_path):
    folder = trap(tmp_path, "data.zarr/W/c/0/0/0", "link")
    with pytest.raises(DamagedRun, match=r"and remove it \(`stagescope verify .*` names all of them\)$"):
        store.load(folder)


@pytest.mark.parametrize("make", ["link", "FIFO"])
@pytest.mark.parametrize("name", LINKS)
def test_reading_follows_no_link_and_waits_for_nobody(tmp_path, name, make):
    """A trap at a place that is not read does no harm: the run opens."""
    folder = trap(tmp_path, name, make)
    if name not in READ:
        assert samples.equal(store.load(folder), 8)
        return
    with pytest.raises(StoreError, match=f"it is a {make}"):
        store.load(folder)


def test_overwriting_refuses_a_run_with_a_trap(tmp_path):
    folder = trap(tmp_path, "data.zarr/W/c/0/0/0", "link")
    with pytest.raises(InputError, match=r"not \(only\) a run \(data.zarr/W/c/0/0/0\)"):
        samples.started(folder, overwrite=True)


def test_a_second_name_of_a_file_outside_is_not_written_through(tmp_path):
    """A hard link looks like any file; the log is copied before it is continued."""
    folder = samples.unfinished(tmp_path / "run")
    os.link(folder / "events.jsonl", tmp_path / "backup")
    os.link(folder / "manifest.json", tmp_path / "other")
    os.link(folder / "manifest.json", folder / "manifest.json.new")
    before = (tmp_path / "backup").read_bytes(), (tmp_path / "other").read_bytes()
    writer, _ = Writer.reopen(folder)
    samples.extend(writer, 8, 10)
    writer.finish("finished", "", samples.state(10))
    assert ((tmp_path / "backup").read_bytes(), (tmp_path / "other").read_bytes()) == before
    assert store.verify(folder) == []


def test_strays_are_named_by_verify_and_do_no_harm(tmp_path):
    folder = samples.unfinished(tmp_path / "run")
    (folder / "data.zarr/W/notes.txt").write_text("mine")
    (folder / "readme").write_text("mine")
    assert store.verify(folder) == [
        f"{folder / name}: not a file of this run; move it elsewhere" for name in ("data.zarr/W/notes.txt", "readme")
    ]
    assert samples.equal(store.load(folder), 8)
    Writer.reopen(folder)[0].close()


@pytest.mark.parametrize("name", ["../../../x", "..", ".", "a/b", "", "a\0b", "/etc/x"])
def test_a_name_that_leaves_the_folder_is_refused_before_anything_is_made(tmp_path, name):
    run = samples.memory_run(3)
    odd = replace(run, params=Arrays.of({name: run.params["W"]}), axes={**run.axes, name: run.axes["W"]})
    with pytest.raises(InputError, match="cannot name a stored array"):
        odd.save(tmp_path / "a/b/run")
    assert list(tmp_path.iterdir()) == []


# manifests that somebody wrote: coherent, with a digest that fits


def forged(folder: Path, **changes: object) -> Path:
    found = Manifest(**{**read_manifest(folder).model_dump(), **changes})
    found.write(folder)
    return folder


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"arrays": {"../../x": ("t",), "t": ("t",)}}, "outside the run"),
        ({"arrays": {"W/c": ("t",), "t": ("t",)}}, "name with a slash"),
        ({"arrays": {"W": ("t", "W_0", "W_1")}}, "no array of its clock"),
        ({"files": {"../notes": ""}}, "outside the run"),
        ({"files": {"data.zarr//etc": ""}}, "outside the run"),
        ({"files": {"notes.txt": ""}}, "outside the run"),
        ({"trimmed": {"data.zarr/../../x": ""}}, "outside the run"),
        ({"checkpoint": "data.zarr/t/c/0"}, "no name of a checkpoint"),
        ({"checkpoint": "checkpoint/../../x.safetensors"}, "no name of a checkpoint"),
        ({"checkpoint": "checkpoint/" + "9" * 5000 + ".safetensors"}, "no name of a checkpoint"),
        ({"seed": 10**400}, "not a readable manifest"),
        ({"config": {"until": 10**400}}, "not a readable manifest"),
    ],
)
def test_a_manifest_with_odd_names_or_numbers(tmp_path, changes, words):
    folder = forged(samples.unfinished(tmp_path / "run"), **changes)
    for use in (store.load, Writer.reopen):
        with pytest.raises(DamagedRun, match=words):
            use(folder)
    assert words in store.verify(folder)[0]


@pytest.mark.parametrize("part", ["chunk", "committed", "events_bytes", "planned"])
def test_a_manifest_with_a_negative_count(tmp_path, part):
    folder = samples.unfinished(tmp_path / "run")
    body = json.loads((folder / "manifest.json").read_text()) | {part: -1}
    body.pop("digest")
    seal = files.digest(json.dumps(body, indent=1).encode())
    (folder / "manifest.json").write_text(json.dumps({**body, "digest": seal}, indent=1) + "\n")
    with pytest.raises(DamagedRun, match="not a manifest of schema 2"):
        store.load(folder)


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("data.zarr/W/zarr.json", b"{}", "describes no array"),
        ("data.zarr/W/c/0/0/0", bytes(8), "has 8 bytes, expected 144"),
        ("checkpoint/000003.safetensors", b"no tensors", "not a checkpoint of a run"),
        ("checkpoint/000003.safetensors", bytes(9) + b"\xff" * 90, "not a checkpoint of a run"),
        ("checkpoint/000003.safetensors", safetensors.save({"pending/W": np.zeros((2, 5))}), "another shape in the checkpoint"),
    ],
)
def test_files_that_are_not_what_their_names_say(tmp_path, name, data, words):
    """Their digests fit, so that only their form can tell."""
    folder = samples.unfinished(tmp_path / "run")
    assert (folder / name).exists()
    (folder / name).write_bytes(data)
    forged(folder, files={**read_manifest(folder).files, name: files.digest(data)})
    with pytest.raises(DamagedRun, match=words):
        _ = store.load(folder).params["W"]


# files that a user names


@pytest.mark.parametrize("make", ["link", "FIFO"])
def test_only_regular_files_are_replaced(tmp_path, monkeypatch, capsys, make):
    monkeypatch.chdir(tmp_path)
    samples.finished(tmp_path / "run")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/notes").write_text("ten years of work")
    places = [tmp_path / "out.csv", tmp_path / "out.html", tmp_path / "figures/ledger.md"]
    (tmp_path / "figures").mkdir()
    for place in places:
        place.symlink_to(tmp_path / "mine/notes") if make == "link" else os.mkfifo(place)
    for words in (
        ["export", "run", "--to", "csv", "--out", "out.csv", "--overwrite"],
        ["report", "run", "--out", "out.html"],
        ["figures", "run", "--out", "figures"],
    ):
        assert command([*words, *(["--quiet"] if words[0] != "export" else [])]) == 2
        said = capsys.readouterr().err
        assert f"is a {make}, and only a regular file is ever replaced" in said
        assert said.count("\n") == 1
    assert outside(tmp_path) == {str(tmp_path / "mine/notes"): b"ten years of work"}
    assert all(place.is_symlink() or place.is_fifo() for place in places)


def test_a_device_is_not_replaced(tmp_path):
    with pytest.raises(InputError, match="/dev/null is a device"):
        export(samples.memory_run(), "csv", Path("/dev/null"), overwrite=True)
    (tmp_path / "link").symlink_to("nowhere")
    with pytest.raises(InputError, match="is a link"):
        files.publish(tmp_path / "link", b"")
