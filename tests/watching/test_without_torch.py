"""Whoever reads a watched run needs no PyTorch: neither the package nor stages nor the page import it."""

import subprocess
import sys

import pytest

import stagescope as ss
from tests.watching.models import made, tokens

HEAVY = ("torch", "transformers", "lightning", "accelerate", "tokenizers")
CODE = """
import sys
import stagescope as ss
def heavy():
    return [name for name in {heavy} if name in sys.modules]
assert heavy() == []
run = ss.load({run!r})
ss.stages(run)
ss.report(run, {page!r})
print(heavy())
"""


@pytest.mark.long
def test_stages_and_page_of_a_watched_run_import_no_torch(tmp_path):
    with ss.watch(made(), probe=tokens(), out=tmp_path / "run", steps=70, record=ss.Every(n=1)) as watcher:
        for step in range(70):
            watcher.step(1 / (1 + step))
    code = CODE.format(heavy=HEAVY, run=str(tmp_path / "run"), page=str(tmp_path / "page.html"))
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.splitlines()[-1] == "[]"
    assert (tmp_path / "page.html").is_file()
