"""Heads on a text from options to verdicts: it runs, resumes, reads and answers."""

import numpy as np
import pytest

import stagescope as ss
from stagescope.core.errors import InputError
from stagescope.flow import evolve as evolving
from stagescope.papers.incremental.text.stages import text_lag_curves
from stagescope.readings.registry import study
from validation import killing

SMALL = {"vocab": 30, "window": 4, "steps": 300, "batch": 1024, "watched": 4000, "frames": 80, "heads": 4}


@pytest.fixture(scope="module")
def run():
    return ss.run_study("text-incremental", **SMALL, progress=False)


def test_all_heads_first_turn_to_the_most_informative_lag(run):
    found = ss.stages(run)
    assert found.clock == "step"
    assert found.events["t1"] is not None
    assert found.stages[1].facts["acquired"] == [1]
    verdicts = {row.tag: row.verdict for row in ss.check(run)}
    assert verdicts["ISA:text-competition"] == "confirmed"
    assert set(verdicts.values()) <= {"confirmed", "inconclusive", "violated"}


def test_curves_start_at_chance_and_end_below_the_entropy_of_types(run):
    curves = text_lag_curves(run)
    assert curves.loss[0] == pytest.approx(np.log(30), rel=1e-12)
    assert curves.loss[-1] < curves.levels[0]
    corpus, windows = curves.law.process, curves.law.seen_windows
    by_hand = [-np.log(corpus.transition[before, own]) for before, own in windows[:, -2:]]
    assert curves.levels[1] == pytest.approx(np.mean(by_hand), abs=1e-9)
    np.testing.assert_allclose(curves.mass.sum(axis=2), 1)
    assert curves.held_out.shape == curves.loss.shape


def test_a_run_keeps_the_words_but_not_the_text(run):
    assert run.config["words"][:2] == list(ss.read_corpus(vocab=30).words[:2])
    assert len(run.config["words"]) == 30
    assert run.spec["field"]["process"]["source"] == "topics"
    assert "train" not in run.spec["field"]["process"]


def test_it_resumes_bit_for_bit(tmp_path, monkeypatch):
    options = SMALL | {"steps": 60, "watched": 500}
    whole = ss.run_study("text-incremental", **options, out=tmp_path / "whole", progress=False)
    walk = evolving.Journey.walk

    def cut(journey, state):
        for i, point in enumerate(walk(journey, state)):
            if i == 25:
                raise KeyboardInterrupt
            yield point

    with monkeypatch.context() as armed:
        armed.setattr(evolving.Journey, "walk", cut)
        armed.setattr(evolving, "FIRST_COMMIT", 0.0)
        armed.setattr(evolving, "NEXT_COMMIT", 0.0)
        with pytest.raises(ss.Interrupted):
            ss.run_study("text-incremental", **options, out=tmp_path / "cut", progress=False)
    assert 1 < ss.load(tmp_path / "cut").frames < whole.frames
    assert ss.resume(tmp_path / "cut").done
    assert ss.verify(tmp_path / "cut") == []
    assert killing.arrays(tmp_path / "cut") == killing.arrays(tmp_path / "whole")


def test_a_file_of_ones_own_and_another_lag(tmp_path):
    """Two texts take turns word by word: the word two before is the one that tells, and heads find it."""
    corpus = ss.read_corpus(vocab=30)
    words = [corpus.words[token] for token in corpus.train[:30000]]
    half = len(words) // 2
    mixed = [word for pair in zip(words[:half], words[half:], strict=False) for word in pair]
    (tmp_path / "turns.txt").write_text(" ".join(mixed))
    run = ss.run_study("text-incremental", corpus=str(tmp_path / "turns.txt"), tokens="word", **SMALL, progress=False)
    found = ss.stages(run)
    assert found.stages[1].facts["acquired"] == [2]
    assert next(row.verdict for row in ss.check(run) if row.tag == "ISA:text-competition") == "confirmed"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"momentum": 0.5}, "--momentum 0.5 .* has no effect"),
        ({"window": 1}, "greater than or equal to 2"),
        ({"corpus": "nowhere"}, "there is no corpus 'nowhere'"),
        ({"vocab": 10**6}, "cannot be made"),
    ],
)
def test_bad_options_are_refused(options, words):
    with pytest.raises(InputError, match=words):
        ss.run_study("text-incremental", **options, progress=False)


def test_every_preset_is_valid():
    found = study("text-incremental")
    for preset in found.presets:
        assert found.configured(preset)
