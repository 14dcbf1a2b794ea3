"""How a browser is found and installed, on machines this one is not."""

import shutil
import subprocess

import pytest

from tests.browser import chromium


@pytest.fixture
def machine(monkeypatch):
    """A machine: who one is, whether there is apt, and after which command a browser starts."""

    def machine(user: int = 0, apt: bool = True, works_after: str | None = None) -> list[str]:
        ran: list[str] = []
        monkeypatch.delenv(chromium.SKIP, raising=False)
        monkeypatch.setattr(chromium.os, "geteuid", lambda: user)
        monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}" if apt else None)
        monkeypatch.setattr(subprocess, "run", lambda command, **_: ran.append(" ".join(command)))
        monkeypatch.setattr(chromium, "starts", lambda: works_after is not None and any(works_after in line for line in ran))
        return ran

    return machine


def test_root_installs_through_apt(machine):
    ran = machine(works_after="apt-get install")
    assert chromium.install(chromium.ways(), chromium.starts)
    assert len(ran) == 1
    assert ran[0].endswith("chromium")


def test_stale_lists_are_renewed(machine):
    ran = machine(works_after="apt-get update")
    assert chromium.install(chromium.ways(), chromium.starts)
    assert [line.split()[1] for line in ran] == ["install", "update", "install"]


def test_before_packages_are_there_only_apt_is_tried(machine, monkeypatch):
    for how, commands in (({}, ["install", "update", "install"]), ({"user": 1000}, []), ({"apt": False}, [])):
        ran = machine(**how)
        monkeypatch.setattr(chromium, "there", lambda: False)
        chromium.main(["--apt"])
        assert [line.split()[1] for line in ran] == commands
        ran.clear()
        monkeypatch.setattr(chromium, "there", lambda: True)
        chromium.main(["--apt"])
        assert ran == []


def test_others_and_other_systems_use_playwright(machine):
    for how in ({"user": 1000}, {"apt": False}):
        ran = machine(**how, works_after="playwright install")
        assert chromium.install(chromium.ways(), chromium.starts)
        assert len(ran) == 1
        assert ("--with-deps" in ran[0]) == (how != {"user": 1000})


def test_where_nothing_works_it_says_so(machine, capsys):
    machine()
    chromium.main([])
    assert chromium.REMEDY in capsys.readouterr().err


def test_who_wants_no_browser_gets_none(machine, monkeypatch, capsys):
    ran = machine()
    monkeypatch.setenv(chromium.SKIP, "1")
    chromium.main([])
    assert ran == []
    assert capsys.readouterr().err == ""
