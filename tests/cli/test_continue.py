"""`stagescope continue`: the keys of its JSON, its table, its figures, and what it refuses."""

import json

import pytest

SMALL = ("continue", "focus-dilution", "--pi", "0.5", "0.3", "0.2", "--rung", "1,1", "--over", "persistence")
NARROW = (*SMALL, "--from", "0.55", "--to", "0.65")


def test_json(ask):
    code, out, err = ask(*NARROW, "--json")
    assert (code, err) == (0, "")
    (found,) = json.loads(out)["branches"]
    assert {"points", "folds", "crossings"} <= set(found)
    assert {"value", "loss", "index", "rates", "stable"} <= set(found["points"][0])
    assert [found["points"][0]["value"], found["points"][-1]["value"]] == [0.55, 0.65]


def test_the_table(ask):
    code, out, err = ask(
        "continue", "focus-dilution", "--preset", "stall", "--rung", "1,1", "--over", "persistence", "--to", "0.4"
    )
    assert (code, err) == (0, "")
    assert "bifurcation at persistence = 0.34602" in out
    assert "none: stable" in out


@pytest.mark.parametrize("kind", [*(pytest.param(each, marks=pytest.mark.long) for each in ("png", "svg")), "html"])
def test_figures(ask, tmp_path, kind):
    out = tmp_path / f"branch.{kind}"
    assert ask(*NARROW, "--out", out)[0] == 0
    first = out.read_bytes()
    assert b"Stagescope" in first
    assert ask(*NARROW, "--out", out)[0] == 0, "a diagram of ours is replaced"
    assert out.read_bytes() == first
    out.write_text("mine")
    code, _, err = ask(*NARROW, "--out", out)
    assert code == 2
    assert str(out) in err
    assert out.read_text() == "mine"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((*SMALL[:-1], "persistance"), "persistence"),
        ((*SMALL[:-1], "init_scale"), "choose among pi.0, pi.1, pi.2, persistence, scale"),
        ((*SMALL[:-1], "width"), "cannot be continued"),
        ((*SMALL[:2], *SMALL[6:-1], "delta"), "--pi0, which is not given"),
        ((*SMALL[:-1], "pi0"), "it has no value; give --pi0"),
        ((*SMALL, "--from", "0.9", "--to", "0.5"), "from 0.9 to 0.5 is empty: exchange its ends"),
        ((*SMALL[:2], "--rung", "2,1", *SMALL[8:]), "begin at another value of what is varied, or at another rung"),
        ((*SMALL[:-1], "pi.7"), "cannot be continued"),
        ((*SMALL[:6], "--rung", "one", *SMALL[8:]), "such as 1,1"),
        ((*SMALL[:6], "--rung", "4,1", *SMALL[8:]), "does not exist"),
        ((*SMALL, "--to", "2"), "below 1"),
        ((*SMALL, "--from", "0.7"), "starts inside its range"),
        ((*SMALL, "--out", "branch.gif"), ".svg, .png, .pdf or .html"),
        ((*SMALL, "--out", "nowhere/branch.png"), "does not exist"),
        (("continue", "scan-snap", "--rung", "1,1", "--over", "c"), "focus-dilution has"),
        (("continue", "focus-dilution", "--preset", "reff", "--rung", "1,1", "--over", "persistence"), "ref"),
    ],
)
def test_refusals(ask, words, said):
    code, out, err = ask(*words)
    assert code == 2
    assert out == ""
    assert said in err
