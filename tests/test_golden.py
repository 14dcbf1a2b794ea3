"""A part of the golden answers: presets answer what they answered. `python -m validation.golden compare` has all of them."""

import pytest

from validation import golden

PRESETS = (
    "focus-dilution/ref",
    "incremental/gd-ladder",
    "linear-icl/merged",
    "markov-icl/fast-lags",
    "markov-icl/ref",
    "scan-snap/published-small",
    "scan-snap/single-common-pinv",
    "scan-snap/syn-small-flow",
    "text-focus/topics",
    "text-incremental/topics",
    "text-snap/topics",
)


def test_every_preset_is_stored():
    assert sorted(golden.stored_answers()) == sorted(golden.presets())


@pytest.mark.parametrize("key", PRESETS)
def test_a_preset_answers_what_it_answered(key):
    stored = golden.stored_answers()[key]
    if not stored.same_text(key):
        pytest.skip("this Python comes with another text")
    assert list(golden.differences(stored.answers[0], golden.answer(key, golden.SEEDS[0]), tolerance=stored.tolerance)) == []


def test_what_moves_is_noticed():
    stored = {
        "check": [{"tag": "a", "verdict": "confirmed", "measured": 1.0}],
        "arrays": {"w": golden.digest(golden.np.ones(30))},
    }
    assert not list(golden.differences(stored, stored))
    for moved, path in (
        ({**stored, "check": [{"tag": "a", "verdict": "violated", "measured": 1.0}]}, "check[a].verdict"),
        ({**stored, "check": [{"tag": "a", "verdict": "confirmed", "measured": 1.0 + 1e-8}]}, "check[a].measured"),
        ({**stored, "arrays": {"w": golden.digest(golden.np.ones(30) + 1e-7 * golden.np.eye(30)[4])}}, "arrays.w"),
    ):
        assert [where for where, _, _ in golden.differences(stored, moved)] == [path]
