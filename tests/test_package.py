"""The distributions: what is in them, and that an installed wheel works without the checkout."""

import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from tests.packaging import ROOT, built, names
from tests.third_party.installing import FLAGS

LARGEST = 3_000_000  # bytes of a wheel


@pytest.fixture(scope="module")
def distributions(tmp_path_factory):
    return built(tmp_path_factory.mktemp("dist"))


@pytest.mark.long
def test_the_wheel_has_the_package_and_nothing_else(distributions):
    wheel, _ = distributions
    found = names(wheel)
    assert wheel.stat().st_size < LARGEST
    assert {name.partition("/")[0].partition("-")[0] for name in found} == {"stagescope"}
    assert not [name for name in found if "__pycache__" in name or name.endswith((".pyc", ".nbi", ".nbc")) or "/test_" in name]
    tracked = subprocess.run(
        ["git", "ls-files", "src", "reproductions"], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.split()
    if tracked:  # not in an unpacked source distribution
        inside = {name.removeprefix("src/") if name.startswith("src/") else f"stagescope/{name}" for name in tracked}
        assert inside == {name for name in found if ".dist-info/" not in name}
    assert "stagescope/py.typed" in found


def test_the_source_distribution_has_the_tests_and_no_corpus(distributions):
    _, source = distributions
    found = {name.partition("/")[2] for name in names(source)}
    assert {"pyproject.toml", "Makefile", "LICENSE", "CITATION.cff", "tests/test_package.py", "docs/five-minutes.md"} <= found
    assert not [name for name in found if "__pycache__" in name or name.startswith(("site/", "runs/", "demo/", ".venv"))]


@pytest.mark.long
def test_an_installed_wheel_makes_the_quick_demo(distributions, tmp_path):
    """From files that cannot be written, and with a home that does not exist. `pip uninstall` leaves nothing of it."""
    wheel, _ = distributions
    venv.create(tmp_path / "env", with_pip=False, symlinks=True)
    python, (site,) = tmp_path / "env/bin/python", (tmp_path / "env/lib").glob("*/site-packages")
    (site / "needed.pth").write_text(sysconfig.get_path("purelib"))  # what it needs; not the checkout, which a file there names
    pip = [sys.executable, "-m", "pip", "--python", str(python)]
    subprocess.run([*pip, "install", *FLAGS, "--no-compile", str(wheel)], check=True)
    before = _bytes(site)
    for path in (site / "stagescope").rglob("*"):
        path.chmod(0o555 if path.is_dir() else 0o444)
    kept = {"STAGESCOPE_CACHE": os.environ.get("STAGESCOPE_CACHE") or str(Path.home() / ".cache")}
    env = {**os.environ, **kept, "HOME": "/nowhere", "PYTHONDONTWRITEBYTECODE": "1"}
    env.pop("PYTHONPATH", None)
    asked = [tmp_path / "env/bin/stagescope", "demo", "--quick", "--quiet"]
    done = subprocess.run(asked, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "10 confirmed" in done.stdout
    assert (tmp_path / "demo" / "report.html").stat().st_size > 100_000
    assert _bytes(site) == before
    subprocess.run([*pip, "uninstall", "--quiet", "--yes", "stagescope"], check=True)
    assert [path.name for path in site.iterdir()] == ["needed.pth"]


def _bytes(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
