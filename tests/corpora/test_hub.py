"""Downloads: the library is replaced by one that answers from memory, or fails as it does offline."""

import sys
from types import SimpleNamespace

import pytest

from stagescope.core.errors import InputError
from stagescope.corpora import hub as corpus_hub
from stagescope.corpora.known import locate


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """Install an answer of the hub."""
    monkeypatch.delenv("STAGESCOPE_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(corpus_hub, "available", lambda: True)

    def answer(load_dataset):
        monkeypatch.setitem(sys.modules, "datasets", SimpleNamespace(load_dataset=load_dataset))
        return tmp_path / "stagescope" / "corpora"

    return answer


def test_stories_are_written_with_separators(hub):
    folder = hub(lambda *_: {"train": [{"text": " One day. "}, {"text": "Two."}], "validation": [{"text": "Three."}]})
    found = locate("tinystories")
    assert found["train"].read_text() == "One day.\n<|endoftext|>\nTwo.\n<|endoftext|>\n"
    assert found["valid"].read_text() == "Three.\n<|endoftext|>\n"
    assert sorted(path.name for path in (folder / "tinystories").iterdir()) == ["train.txt", "valid.txt"]


def test_lines_of_wikitext_become_those_of_the_published_file(hub):
    rows = [{"text": ""}, {"text": " = Title = \n"}, {"text": ""}]
    asked = []
    hub(lambda *name: asked.append(name) or {"train": rows, "validation": rows, "test": rows})
    assert locate("wikitext-2")["train"].read_text() == " \n = Title = \n \n"
    assert asked == [("Salesforce/wikitext", "wikitext-2-v1")]


def test_offline_is_said_in_one_sentence(hub):
    def offline(*_):
        raise ConnectionError("Couldn't reach the Hub\nwith a long trace")

    folder = hub(offline)
    with pytest.raises(InputError, match=r"could not be downloaded: Couldn't reach the Hub; be online, or put") as error:
        locate("wikitext-2")
    assert "\n" not in str(error.value)
    assert not folder.exists()


def test_a_broken_download_leaves_no_file(hub):
    def rows():
        yield {"text": "a"}
        raise OSError("the connection broke")

    folder = hub(lambda *_: {"train": rows()})
    with pytest.raises(InputError, match="could not be downloaded: the connection broke"):
        locate("tinystories")
    assert not list((folder / "tinystories").iterdir())
