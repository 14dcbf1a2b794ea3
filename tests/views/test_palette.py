"""Figures on paper have the colours of the page."""

import json
import re

import numpy as np
import pytest

from stagescope.show.bundle import VIEWER
from stagescope.views.figure import CATEGORIES, DIVERGING, SEQUENTIAL, TINTS, ramp

SOURCE = (VIEWER / "colours.js").read_text(encoding="utf-8")


@pytest.mark.parametrize(("name", "own"), [("SEQUENTIAL", SEQUENTIAL), ("DIVERGING", DIVERGING), ("CATEGORIES", CATEGORIES)])
def test_anchors_are_those_of_the_page(name, own):
    found = re.search(rf"const {name} = \{{\s*light: (\[.*\]),", SOURCE)
    assert found is not None
    assert np.array(json.loads(found[1])).tolist() == np.array(own).tolist()


def test_each_category_has_its_tint():
    """A tint is its colour on white: what is missing to white is the same share in each channel. No two stages share one."""
    for tint, strong in zip(TINTS, CATEGORIES, strict=True):
        pale, full = (255 - np.array(list(bytes.fromhex(each[1:]))) for each in (tint, strong))
        assert pale == pytest.approx(0.2 * full, abs=0.51)
    assert len(set(TINTS)) == 8


def test_ramps_go_from_the_paper_to_the_strongest_colour():
    """Ends by hand: lightness .975 is almost white; lightness only falls along the ramp of numbers."""
    colours = ramp(signed=False)
    assert colours.shape == (255, 3)
    assert colours[0].min() > 0.93
    assert np.all(np.diff(colours @ [0.2126, 0.7152, 0.0722]) < 0)
    assert ramp(signed=True)[127].min() > 0.95
    assert ramp(signed=False, foot=0.1)[0] == pytest.approx(colours[25], abs=0.01)
