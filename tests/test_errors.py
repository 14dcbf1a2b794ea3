"""Sentences about what went wrong cannot steer a terminal."""

import sys

import numpy as np
import pytest

import stagescope as ss
from stagescope.core.errors import InputError, printable, sentence, unknown
from stagescope.corpora.pieces import learn_pieces
from stagescope.watching.logs import event_type


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain, α ≤ 5 % 漢字 é", "plain, α ≤ 5 % 漢字 é"),
        ("two\nlines", "two\nlines"),
        ("\x1b[2Jgone", r"\x1b[2Jgone"),
        ("bell\a back\b return\r tab\t del\x7f", r"bell\x07 back\x08 return\r tab\t del\x7f"),
        ("C1 \x9b31m", r"C1 \x9b31m"),
        ("turned \u202egnp.exe\u2066", r"turned \u202egnp.exe\u2066"),
        ("half \ud800", r"half \ud800"),
        ("line\u2028line\u2029", r"line\u2028line\u2029"),
        ("hidden\u200b\ufeff\U000e0041", r"hidden\u200b\ufeff\U000e0041"),
    ],
)
def test_what_a_terminal_would_obey_is_spelled_out(text, shown):
    assert printable(text) == shown
    assert printable(shown) == shown
    assert str(InputError(text)) == shown
    assert sentence(KeyError(text)).isprintable()


@pytest.mark.parametrize(("name", "meant"), [("e2", "E2"), ("predicted e2", "predicted E2"), ("Ledgr", "ledger")])
def test_the_nearest_name_is_found_in_upper_or_lower_case(name, meant):
    assert f"did you mean {meant!r}?" in str(unknown("event", name, ["E1", "E2", "Q2", "predicted E2", "predicted Q2", "ledger"]))


@pytest.mark.parametrize(("name", "meant"), [("focus", "focus-dilution"), ("text-f", "text-focus"), ("text-fokus", "text-focus")])
def test_a_name_that_was_begun_comes_before_one_that_is_alike(name, meant):
    known = ["text-focus", "text-focus-long", "focus-dilution", "scan-snap"]
    assert f"did you mean {meant!r}?" in str(unknown("study", name, known))


@pytest.mark.parametrize(
    ("package", "extra", "work"),
    [
        ("distributed", "sweep", lambda folder: ss.sweep("focus-dilution", grid={"persistence": "0,.5"}, out=folder / "sweep")),
        ("tokenizers", "text", lambda folder: learn_pieces(("one", "two"), np.array([3, 2]), 6)),
        ("xarray", "xarray", lambda folder: ss.from_arrays(step=[0, 1], loss=[2.0, 1.0]).to_xarray()),
        ("tensorboard", "tensorboard", lambda folder: event_type()),
    ],
)
def test_work_of_an_extra_names_the_extra_and_writes_nothing(package, extra, work, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, package, None)  # an import of it fails, as where it is not installed
    with pytest.raises(InputError, match=rf"needs the package {package}, .* pip install 'stagescope\[{extra}\]'"):
        work(tmp_path)
    assert not list(tmp_path.iterdir())
