"""Windows before a query word: what is counted, what is held out, and which next words are taken."""

import numpy as np
import pytest

import stagescope as ss
from stagescope.core.errors import InputError
from stagescope.papers.scan_snap.limits import LIMITS
from stagescope.papers.scan_snap.text.process import TopicWindows, choose_nexts, divergence, topic_windows
from tests.planted import COMMON, NEXTS, PURE, own_words, planted_text


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    path = tmp_path_factory.mktemp("text") / "planted.txt"
    path.write_text(planted_text())
    return ss.read_corpus(path, vocab=65, layout="text", tokens="lower")


@pytest.fixture(scope="module")
def process(corpus):
    return topic_windows(corpus, "the", NEXTS, window=20, least=15)


def windows_by_hand(process, held):
    """Target and counts of every window, one token after the other."""
    query, targets, keys, found = process.token, process.targets, set(process.keys), []
    stream = process.corpus.train.tolist()
    for i, token in enumerate(stream):
        if token != query or i < process.window or i + 1 >= len(stream) or stream[i + 1] not in targets:
            continue
        cut = {j * process.stretches // len(stream) for j in range(i - process.window, i + 2)}
        if len(cut) > 1 or (cut.pop() % LIMITS.held_every == LIMITS.held_every - 1) != held:
            continue
        inside = [t for t in stream[i - process.window : i] if t in keys]
        if inside:
            found.append((targets.index(stream[i + 1]), {t: inside.count(t) for t in inside}))
    return found


@pytest.mark.parametrize("part", ["train", "held-out"])
def test_windows_are_those_counted_by_hand(process, part):
    found, expected = process.part(part), windows_by_hand(process, part == "held-out")
    assert len(found) == len(expected) > 100
    keys = np.array(process.keys)
    for i, (target, counts) in enumerate(expected):
        inside = slice(found.start[i], found.start[i + 1])
        assert found.target[i] == target
        assert dict(zip(keys[found.key[inside]].tolist(), found.count[inside], strict=True)) == counts


def test_the_query_is_no_key_and_types_are_in_enough_windows(process):
    assert process.token not in process.keys
    assert np.all(process.share * len(process.part("train")) >= process.least)


def test_common_and_distinct_types_are_the_planted_ones(process):
    named = [{process.label(process.keys[i]) for i in np.flatnonzero(where)} for where in (process.common, process.distinct)]
    assert set(COMMON) <= named[0]
    assert {word for topic in NEXTS for word in own_words(topic)[:PURE]} <= named[1]
    assert not set(COMMON) & named[1]


def test_divergence_is_that_of_the_definition():
    inside, prior = np.array([[8, 5, 0], [2, 5, 7]]), np.array([0.5, 0.5])
    assert divergence(inside, prior)[0] == pytest.approx(0.8 * np.log(1.6) + 0.2 * np.log(0.4))
    assert divergence(inside, prior)[1] == 0
    assert divergence(inside, prior)[2] == pytest.approx(np.log(2))


def test_content_bearing_nexts_are_chosen_over_more_frequent_ones(tmp_path):
    """Every other sentence goes on with one of four words that nothing tells apart."""
    draw = np.random.default_rng(3)
    lines = planted_text(2000).splitlines()
    idle = planted_text(2400, topical=False, seed=1).splitlines()
    idle = [" ".join([*line.split()[:-1], ("same", "other", "first", "last")[draw.integers(4)]]) for line in idle]
    mixed = [*lines, *idle]
    draw.shuffle(mixed)
    path = tmp_path / "mixed.txt"
    path.write_text("\n".join(mixed))
    corpus = ss.read_corpus(path, vocab=69, layout="text", tokens="lower")
    assert sorted(choose_nexts(corpus, "the", topics=4, window=20)) == sorted(NEXTS)


def test_equal_descriptions_make_equal_windows(process):
    again = TopicWindows(**{name: getattr(process, name) for name in TopicWindows.model_fields})
    assert again == process
    assert again.part("train") is process.part("train")


def test_entropy_of_the_classes(process):
    shares = np.bincount(process.part("train").target) / len(process.part("train"))
    assert process.prior_loss == pytest.approx(-sum(p * np.log(p) for p in shares))
    assert process.prior_loss < np.log(4)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"query": "nowhere"}, "'nowhere' is no token"),
        ({"query": "the", "nexts": ("storm",)}, "two or more different ones"),
        ({"query": "the", "nexts": ("storm", "the")}, "is the query and cannot be a next word"),
        ({"query": "the", "nexts": ("storm", "ca")}, "never followed by 'ca'"),
        ({"query": "the", "nexts": NEXTS, "least": 10**6}, "lower --least"),
        ({"query": "storm"}, "take a more frequent --query"),
        ({"query": "the", "window": 10**6}, "take a shorter --window"),
    ],
)
def test_what_is_missing_is_said(corpus, options, said):
    with pytest.raises(InputError, match=said):
        topic_windows(corpus, **options)
