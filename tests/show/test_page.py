"""The page: its policy, its escapes, its data, and which runs share a scene."""

import base64
import hashlib
import json
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stagescope.core.errors import InputError, first_names
from stagescope.show.page import cell, clean, label, page, safe_json
from stagescope.views.view import Matrices, Points, View
from tests.browser.samples import attention, portrait
from tests.show.decode import Parts, precision

HOSTILE = (
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(2)>",
    "\"'><svg onload=alert(3)>",
    "\u202eright to left",
    "half of a pair \ud800",
    "<!--<script>",
    "]]>&lt;\u2028\u2029\x00",
    "x" * 10_000,
)


def test_the_policy_allows_what_is_inside_and_nothing_else():
    parts = Parts(page([portrait()]))
    policies = [has["content"] for tag, has in parts.tags if has.get("http-equiv") == "Content-Security-Policy"]
    assert len(policies) == 1
    rules = dict(rule.split(" ", 1) for rule in policies[0].split("; "))
    inside = {"script-src": parts.inside("script", type="module") + _plain_scripts(parts), "style-src": parts.inside("style")}
    for rule, texts in inside.items():
        hashes = {f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'" for text in texts}
        assert set(rules[rule].split()) == hashes
        assert len(texts) == 2
    assert rules["default-src"] == rules["base-uri"] == rules["form-action"] == "'none'"
    assert set(rules) == {"default-src", "script-src", "style-src", "img-src", "base-uri", "form-action"}


def _plain_scripts(parts: Parts) -> list[str]:
    return [text for (tag, has), text in zip(parts.tags, parts.texts, strict=True) if tag == "script" and not has]


def test_nothing_is_loaded_from_elsewhere():
    parts = Parts(page([portrait()]))
    loads = [value for _, has in parts.tags for name, value in has.items() if name in ("src", "href", "srcset", "action")]
    assert loads == ["data:,"]


def test_hostile_text_adds_no_element():
    """With hostile text in every place the page has the very elements of a plain one, and the data says the text."""
    plain = portrait()
    words = iter(HOSTILE * 100)
    evil = portrait(text=lambda text: next(words) + text)
    made = page([evil], title=HOSTILE[0])
    parts = Parts(made)
    assert parts.tags == Parts(page([plain], title="plain")).tags
    assert parts.inside("title") == [HOSTILE[0]]
    data = parts.data()
    assert data["title"] == HOSTILE[0]
    assert data["scenes"][0]["runs"][0]["name"] == clean(evil.name)
    assert not set("<>&\u2028\u2029") & set(parts.inside("script", id="data")[0])
    made.encode()  # no half of a pair is left


@pytest.mark.long
@given(
    st.recursive(
        st.none() | st.integers() | st.text(st.characters()), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    )
)
def test_json_is_the_same_value_and_holds_no_sign_of_html(value):
    text = safe_json(value)
    assert json.loads(text) == value
    assert text.isascii()
    assert not set("<>&") & set(text)


@given(st.text(st.characters(categories=("L", "S", "Cs"))))
def test_clean_text_can_be_written_and_only_halves_change(text):
    made = clean(text)
    made.encode()
    whole = "".join("\ufffd" if "\ud800" <= sign <= "\udfff" else sign for sign in text)
    paired = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "ignore")
    assert made == whole or made.replace("\ufffd", "") == paired.replace("\ufffd", "")


def test_long_names_are_cut_and_say_how_long_they_were():
    assert label("x" * 2000) == "x" * 2000
    assert label("x" * 10_000).startswith("x" * 2000 + "…")
    assert label("x" * 10_000).endswith("(10,000 characters)")


def test_the_same_portraits_give_the_same_bytes():
    first = page([portrait("a"), portrait("b", seed=1)])
    assert first == page([portrait("a"), portrait("b", seed=1)])
    assert first != page([portrait("a"), portrait("b", seed=2)])


# the data


def test_arrays_come_back_from_the_page():
    made = portrait()
    parts = Parts(page([made]))
    run = parts.data()["scenes"][0]["runs"][0]
    np.testing.assert_array_equal(parts.array(run["time"]), made.run.time)
    loss, heads, _, plane = run["views"]
    np.testing.assert_array_equal(parts.array(loss["curves"][0]["values"]), made.run.series["loss"])
    shown, true = parts.array(heads["values"]), attention(made.run.frames)
    assert np.all(np.abs(shown - true) <= precision(heads["values"], shown) + 1e-12)
    np.testing.assert_array_equal(parts.array(plane["values"]), np.float32(made.views[3].values))
    assert (heads["shown"], heads["of"], heads["frames"]) == (made.run.frames, made.run.frames, None)


def test_exact_pages_hold_single_precision():
    parts = Parts(page([portrait()], exact=True))
    block = parts.data()["scenes"][0]["runs"][0]["views"][1]["values"]
    np.testing.assert_array_equal(parts.array(block), np.float32(attention(41)))


def test_thinned_views_say_which_frames():
    made = portrait()
    kept = np.array([0, 20, 40])
    thin = replace(made.views[1], values=made.views[1].values[kept], frames=kept)
    parts = Parts(page([replace(made, views=(thin,))]))
    view = parts.data()["scenes"][0]["runs"][0]["views"][0]
    assert (view["shown"], view["of"]) == (3, 41)
    np.testing.assert_array_equal(parts.array(view["frames"]), kept)


def test_views_that_do_not_fit_their_run_are_refused():
    made = portrait()
    with pytest.raises(InputError, match="attention: a view of 41 frames holds an array of 40"):
        page([replace(made, views=(replace(made.views[1], values=made.views[1].values[1:]),))])
    with pytest.raises(InputError, match="plane: a view of 41 frames holds an array of 1"):
        page([replace(made, views=(replace(made.views[3], explained=np.ones((1, 2))),))])
    with pytest.raises(InputError, match="cannot draw View"):
        page([replace(made, views=(View("x", "X", "Nothing."),))])


def test_what_was_not_computed_is_null_and_what_is_infinite_is_said():
    made = portrait()
    bare = replace(made, stages=None, ledger=None, ladder=None, provenance={}, views=())
    run = Parts(page([bare])).data()["scenes"][0]["runs"][0]
    assert (run["ledger"], run["ladder"], run["stages"], run["events"]) == (None, None, [], {})
    assert [cell(value) for value in (math.inf, -math.inf, 1.5, None, "word", np.float64(2))] == [
        "inf",
        "-inf",
        1.5,
        None,
        "word",
        2.0,
    ]
    rung = replace(made.ladder.rungs[0], residual=math.inf, rates=(math.nan, 1.0))
    ladder = replace(made.ladder, rungs=(rung,))
    found = Parts(page([replace(made, ladder=ladder)])).data()["scenes"][0]["runs"][0]["ladder"][0]
    assert (found["residual"], found["rates"]) == (None, [1.0])


def test_a_page_has_the_law_of_a_rung():
    made = portrait()
    rung = replace(made.ladder.rungs[0], rates=(), law="order 3", order=3, coefficient=0.25, remainder=0.004)
    found = Parts(page([replace(made, ladder=replace(made.ladder, rungs=(rung,)))])).data()["scenes"][0]["runs"][0]["ladder"][0]
    assert (found["law"], found["rates"], found["remainder"]) == ("order 3, c = 0.25", [], 0.004)


def test_numbers_that_are_none_do_not_stop_a_page():
    """Also as a range of colours, a level, or the time of an event."""
    made = portrait()
    values = np.full((41, 1, 1, 1), np.nan)
    matrices = Matrices("m", "M", "All NaN.", values=values, panels=("p",), rows=("r",), columns=("c",), low=np.nan, high=np.nan)
    points = Points("p", "P", "All NaN.", values=np.full((41, 1, 2), np.nan), labels=("a",), explained=np.full((41, 2), np.nan))
    stages = replace(made.stages, events={"when": np.nan})
    parts = Parts(page([replace(made, views=(matrices, points), stages=stages)]))
    run = parts.data()["scenes"][0]["runs"][0]
    assert run["events"] == {"when": None}
    assert np.all(np.isnan(parts.array(run["views"][0]["values"])))
    assert run["views"][0]["low"] < run["views"][0]["high"]


def test_a_stage_without_an_end_lasts_and_one_without_a_start_begins_with_the_run():
    made = portrait()
    odd = [replace(made.stages.stages[0], stop=stop) for stop in (math.inf, math.nan, None, 3.0)]
    odd.append(replace(odd[-1], start=-math.inf))
    run = Parts(page([replace(made, stages=replace(made.stages, stages=tuple(odd)))])).data()["scenes"][0]["runs"][0]
    assert [stage["stop"] for stage in run["stages"]] == [None, None, None, 3.0, 3.0]
    assert run["stages"][-1]["start"] == made.run.time[0]


def test_provenance_is_rows_or_text():
    facts = {"rows": [("seed", "3"), ("rates", {"a": 1.0})], "table": {"numpy": "2"}, "cite": "long " * 1000}
    run = Parts(page([replace(portrait(), provenance=facts)])).data()["scenes"][0]["runs"][0]
    rows, table, text = run["provenance"]
    assert rows == {"title": "rows", "rows": [["seed", "3"], ["rates", '{"a": 1.0}']]}
    assert table == {"title": "table", "rows": [["numpy", "2"]]}
    assert text == {"title": "cite", "text": "long " * 1000}


def test_a_title_names_the_runs():
    assert first_names(["a"]) == "a"
    assert first_names(list("abcde")) == "a, b, c and 2 more"
