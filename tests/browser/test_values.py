"""What a person reads off the page is what was recorded: at a known frame, known cells have the known values."""

import re

import numpy as np
import pytest

from stagescope.show.page import page
from tests.browser.samples import attention, portrait

FRAMES = 41
CELLS = [(0, 0, 0), (0, 4, 1), (1, 2, 3), (1, 4, 4)]
"""Head, row, column."""


@pytest.fixture(scope="module", params=[False, True], ids=["display", "exact"])
def sample(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("values") / "page.html"
    path.write_text(page([portrait(frames=FRAMES)], exact=request.param), encoding="utf-8")
    return path, request.param


def read(text: str) -> tuple[float, float]:
    """The number a sentence begins with and the precision it states."""
    plain = text.replace("\u2212", "-").replace("\u00b7", "")
    for digit, raised in enumerate("\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079"):
        plain = plain.replace(raised, str(digit))
    plain = re.sub(r"(\d)10\u207b(\d+)", r"\1e-\2", plain)
    found = re.match(r"(-?[\d.]+(?:e-?\d+)?)(?: ± ([\d.]+(?:e-?\d+)?))?", plain)
    assert found, text
    return float(found[1]), float(found[2] or 0.0)


@pytest.mark.long
@pytest.mark.parametrize("frame", [0, 17, FRAMES - 1])
def test_cells_have_the_recorded_values(visit, sample, frame):
    path, exact = sample
    seen, truth = visit(path), attention(FRAMES)[frame]
    seen.scrub(frame)
    canvases = seen.panel("attention").locator("canvas.tile-cells")
    for head, row, column in CELLS:
        expected = truth[head, row, column]
        told = seen.value("attention", 0, head, row, column)
        assert abs(told["value"] - expected) <= (1e-7 if exact else told["precision"] + 1e-12)
        assert exact == (told["precision"] == 0)

        box = canvases.nth(head).bounding_box()
        at = {"x": (column + 0.5) * box["width"] / 5, "y": (row + 0.5) * box["height"] / 5}
        seen.hover(canvases.nth(head), position=at)
        tip = seen.panel("attention").locator(".tip")
        value, within = read(tip.locator("b").inner_text())
        assert abs(value - expected) <= (1e-6 * expected if exact else within + 1e-12)
        assert f"query token {row}" in tip.inner_text()
        assert f"key token {column}" in tip.inner_text()


@pytest.mark.long
def test_differences_keep_their_sign(visit, sample):
    path, exact = sample
    seen, truth = visit(path), attention(FRAMES)[30]
    seen.scrub(30)
    for row, column in np.ndindex(5, 5):
        told = seen.value("gap", 0, 0, row, column)
        assert abs(told["value"] - (truth[0] - truth[1])[row, column]) <= (1e-7 if exact else told["precision"] + 1e-12)


def test_display_precision_is_better_than_one_percent(visit, sample):
    """Of the range: what is stated is also small."""
    path, _ = sample
    seen = visit(path)
    seen.scrub(FRAMES - 1)
    stated = [seen.value("attention", 0, head, row, column)["precision"] for head, row, column in CELLS]
    assert max(stated) <= 0.01


def test_the_keyboard_reads_cells(visit, sample):
    """Focus on the map, arrows to a cell; the status read aloud says the same as the tip."""
    path, _ = sample
    seen, truth = visit(path), attention(FRAMES)[0, 0]
    map_ = seen.panel("attention").locator("canvas.tile-cells").first
    map_.focus()
    seen.press("ArrowDown", "ArrowDown", "ArrowRight", "ArrowRight", "ArrowRight")
    said = seen.panel("attention").locator(".heat [role=status]").text_content()
    value, within = read(said)
    assert abs(value - truth[2, 3]) <= max(within, 1e-6)
    assert "query token 2" in said
    assert "key token 3" in said
    assert seen.position == 0


@pytest.mark.long
def test_rows_of_a_softmax_sum_to_one(visit, sample):
    """A second opinion on all cells of a frame: each row sums to one within the stated precision."""
    path, _ = sample
    seen = visit(path)
    seen.scrub(25)
    for head, row in np.ndindex(2, 5):
        told = [seen.value("attention", 0, head, row, column) for column in range(5)]
        assert abs(sum(one["value"] for one in told) - 1) <= sum(one["precision"] for one in told) + 1e-6


def test_every_frame_is_there(visit, sample):
    """No frame is left out or shown twice: one cell over all frames against the record."""
    path, exact = sample
    seen, truth = visit(path), attention(FRAMES)[:, 1, 2, 2]
    told = seen.page.evaluate(
        """() => Array.from({length: window.stagescope.scene().times.length}, (_, i) => {
            window.stagescope.go(i); return window.stagescope.value('attention', 0, 1, 2, 2); })"""
    )
    assert len(told) == FRAMES
    for one, expected in zip(told, truth, strict=True):
        assert abs(one["value"] - expected) <= (1e-7 if exact else one["precision"] + 1e-12)


@pytest.mark.long
@pytest.mark.parametrize("frame", [5, FRAMES - 1])
def test_what_is_painted_follows_the_values(visit, sample, frame):
    """On paper, a larger share is darker: the pixels of a map, one a cell, have the order of the recorded values."""
    path, _ = sample
    seen, truth = visit(path), attention(FRAMES)[frame]
    seen.scrub(frame)
    for head in range(2):
        pixels = (
            seen.panel("attention")
            .locator("canvas.tile-cells")
            .nth(head)
            .evaluate("map => Array.from(map.getContext('2d').getImageData(0, 0, map.width, map.height).data)")
        )
        light = np.reshape(pixels, (5, 5, 4))[..., :3] @ [0.2126, 0.7152, 0.0722]
        by_value = light.ravel()[np.argsort(truth[head].ravel())]
        assert np.all(np.diff(by_value) <= 1.0)  # rounding of colours
        assert by_value[0] - by_value[-1] > (50 if frame > 5 else 5)
