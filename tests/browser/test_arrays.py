"""The page of a run from plain arrays: its stages, its events with intervals, and every array."""

import numpy as np
import pytest

import stagescope as ss

STEP = np.unique(np.geomspace(1, 3000, 120).round())
RISE = 1 / (1 + np.exp(-(np.log(STEP) - np.log(300)) / 0.1))


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    rng = np.random.default_rng(0)
    loss = 2 - RISE + 0.01 * rng.normal(size=len(STEP))
    run = ss.from_arrays(step=STEP, loss=loss, accuracy=RISE, maps=rng.random((len(STEP), 3, 3)))
    return run, ss.report(run, tmp_path_factory.mktemp("arrays") / "page.html", progress=False)


def test_stages_events_and_arrays_are_on_the_page(page, visit):
    run, path = page
    seen = visit(path).page
    chip = seen.locator(".chip[data-event='transition 1']")
    low, high = ss.stages(run).json()["intervals"]["transition 1"]
    assert f"95 % interval {low:.4g} to {high:.4g}" in chip.get_attribute("data-says")
    text = seen.locator("body").inner_text()
    for title in ("Loss", "accuracy", "maps", "plateau 1", "plateau 2"):
        assert title in text


def test_an_event_is_a_place_to_go_to(page, visit):
    run, path = page
    seen = visit(path)
    seen.click(seen.page.locator(".chip[data-event='transition 1']"))
    nearest = int(np.argmin(np.abs(run.time - ss.stages(run).events["transition 1"])))
    assert f"frame {nearest + 1} of {run.frames}" in seen.page.locator(".player").inner_text()
