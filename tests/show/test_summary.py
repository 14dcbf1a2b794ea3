"""A run in a notebook: figure, stages and ledger as static HTML, escaped, and never an error."""

import base64
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

import stagescope as ss
from stagescope.core.errors import DamagedRun
from stagescope.runs.run import Arrays
from tests.runs.samples import memory_run
from tests.show.runs import broken, small

ALLOWED = {"div", "p", "strong", "code", "em", "img", "table", "thead", "tbody", "tr", "th", "td", "pre", "details", "summary"}


class Seen(HTMLParser):
    """The elements of a page, and its text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        assert not any(name.startswith("on") for name, _ in attrs)

    def handle_data(self, data):
        self.text += data


def test_what_a_notebook_shows():
    run = small("pairwise")
    html = run._repr_html_()
    seen = Seen(html)
    assert set(seen.tags) <= ALLOWED
    picture = re.search(r"data:image/png;base64,([^\"]+)", html)
    assert picture is not None
    assert base64.b64decode(picture[1]).startswith(b"\x89PNG")
    for row in ss.check(run):
        assert row.statement in seen.text
    assert all(stage.name in seen.text for stage in ss.stages(run))
    assert run._repr_html_() is html, "made once"
    again = ss.summary(run)
    assert again.html == html == again._repr_html_()


@pytest.mark.long
@pytest.mark.parametrize("hostile", ["</script><img src=x onerror=alert(1)>", "\ud800", "&lt;", "'\"" * 5000])
def test_text_is_escaped(hostile):
    run = replace(memory_run(), status="failed", reason=hostile)
    seen = Seen(run._repr_html_())
    assert set(seen.tags) <= ALLOWED
    assert seen.tags.count("img") <= 1
    seen.text.encode()


def test_a_note_that_speaks_of_ladders_is_shown():
    """Only the note that the ladder was left out is not."""
    run = replace(memory_run(), status="failed", reason="the ladder fell over")
    text = Seen(run._repr_html_()).text
    assert "nothing after its last frame is known" in text
    assert "saddle_ladder" not in text


@pytest.mark.long
@pytest.mark.parametrize("frames", [0, 1, 2])
def test_odd_runs(frames):
    for run in (memory_run(frames=frames), broken(memory_run(frames=frames), first=0)):
        assert "Run" in Seen(run._repr_html_()).text


def test_a_run_that_cannot_be_read_shows_why():
    def damaged(name):
        raise DamagedRun(f"{name} is <damaged>")

    run = replace(memory_run(), params=Arrays(("W",), damaged), series=Arrays(("t", "loss"), damaged))
    seen = Seen(run._repr_html_())
    assert "is <damaged>" in seen.text
    assert set(seen.tags) == {"pre"}
