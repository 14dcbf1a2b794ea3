"""The figure of lags: its numbers are those of the runs, and it draws them."""

from functools import partial

import numpy as np
import pytest

from stagescope.papers.incremental.text.claims import TEXT_CLAIMS
from stagescope.readings.registry import run_study
from stagescope.readings.study import reproduction
from tests.readings.drawing import drawn

text_figures = reproduction("incremental").text_figures


@pytest.mark.long
def test_numbers_and_pictures(monkeypatch):
    """With short runs in place of those of the preset."""

    def short(name, preset, **options):
        return run_study(name, preset, steps=40, frames=20, batch=256, watched=500, **options)

    monkeypatch.setattr(text_figures, "run_study", short)
    found = drawn(text_figures.TEXT_FIGURES["lags"], partial(text_figures.compute, seeds=2))
    assert [run["seed"] for run in found["runs"]] == [0, 1]
    assert np.array(found["runs"][0]["mass"]).shape[1:] == (3, 8)
    assert found["runs"][0]["loss"][0] == found["runs"][1]["loss"][0]
    assert set(found["runs"][0]["verdicts"]) == {claim.tag for claim in TEXT_CLAIMS}
    assert found["information"]["order"][0] == 1
