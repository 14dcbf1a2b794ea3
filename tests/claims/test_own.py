"""Claims of one's own, by name: found in the current folder or installed, and one sentence for what is wrong."""

import sys

import pytest

import stagescope as ss
from stagescope.claims.own import own_claims, source_digest

MODULE = """
import stagescope as ss

def always(evidence):
    return ss.Regime(True, "any run")

def long(evidence):
    frames = evidence.run.frames
    return ss.Comparison("at least 2", frames, "exact", frames > 1, f"{frames} frames")

ONE = ss.Claim(tag="own:long", statement="The run has frames", regime=always, compare=long)
SEVERAL = [ONE, ss.Claim(tag="own:other", statement="It has them again", regime=always, compare=long)]
NUMBER = 3
MIXED = (ONE, 4)
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with a module of claims, in which the test stands; nothing of it stays imported."""
    (tmp_path / "own_claims_here.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield tmp_path
    for name in ("own_claims_here", "own_claims_broken"):
        sys.modules.pop(name, None)


def test_claims_by_name(here):
    assert [claim.tag for claim in own_claims("own_claims_here:ONE")] == ["own:long"]
    assert [claim.tag for claim in own_claims("own_claims_here:SEVERAL")] == ["own:long", "own:other"]
    assert sys.path[0] != str(here)


def test_claims_as_objects(here):
    (one,) = own_claims("own_claims_here:ONE")
    assert own_claims(one) == own_claims([one]) == own_claims(iter([one])) == (one,)
    assert own_claims(()) == ()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("own_claims_here", "write module:NAME"),
        (":ONE", "write module:NAME"),
        ("own_claims_here:", "write module:NAME"),
        ("no_such_module_here:ONE", "there is none in .* and none is installed"),
        ("own_claims_here:TWO", "has no 'TWO'; it has ONE, SEVERAL, MIXED"),
        ("own_claims_here:NUMBER", "of type int; give a Claim"),
        ("own_claims_here:MIXED", "number 2 is of type int"),
        ([4], "number 1 is of type int"),
        (4, "of type int"),
        ({"a": 1}, "of type dict"),
    ],
)
def test_what_is_wrong_is_one_sentence(here, given, words):
    with pytest.raises(ss.InputError, match=words) as error:
        own_claims(given)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("text", ["1 / 0", "import no_such_module_here", "raise SystemExit(3)", "def ("])
def test_a_module_that_cannot_be_imported(here, text):
    (here / "own_claims_broken.py").write_text(text)
    with pytest.raises(ss.InputError, match=r"own_claims_broken.* cannot be imported: [A-Z]"):
        own_claims("own_claims_broken:ONE")


def test_a_change_of_the_file_is_noticed(here):
    before = source_digest("own_claims_here:ONE")
    assert source_digest("own_claims_here:SEVERAL") == before
    (here / "own_claims_here.py").write_text(MODULE + "# changed\n")
    assert source_digest("own_claims_here:ONE") != before
    with pytest.raises(ss.InputError, match="a file of their own"):
        source_digest("__main__:ONE")
