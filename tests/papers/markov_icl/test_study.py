"""Options, presets and views of markov-icl."""

import numpy as np
import pytest

import stagescope as ss
from stagescope.core.errors import InputError
from stagescope.papers.markov_icl.claims import induction_score, layer_two
from stagescope.papers.markov_icl.setup import study_setup
from stagescope.readings.reading import reading
from stagescope.readings.registry import study
from stagescope.watching.heads import even_patterns, prefix_match

STUDY = study("markov-icl")


@pytest.mark.parametrize("preset", list(STUDY.presets))
def test_presets_can_be_set_up(preset):
    made = study_setup(STUDY.configured(preset), 0)
    assert set(made.params) == set(made.what.model.shapes)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"length": 20}, "infinite context"),
        ({"model": "F", "nodes": 5}, "integrated out"),
        ({"tokens": 3, "nodes": 5}, "--draws"),
        ({"draws": 7}, "--nodes"),
        ({"model": "S3", "doubly_stochastic": True}, "order 1"),
        ({"model": "T"}, "--optimizer"),
        ({"model": "F", "length": 30}, "--batch"),
        ({"model": "S", "whole_match": True}, "R and F"),
        ({"prior": 1e9}, "--prior: must be less than"),
        ({"ratio": 1e300}, "--ratio: must be less than"),
        ({"init_scale": 1e308}, "--init-scale: must be less than"),
        ({"init_scale": 100.0, "lags": 40}, "by its law t_2 is .* --until"),
        ({"lags": 10_000}, "--lags: must be less than"),
        ({"model": "T", "optimizer": "gd", "length": 10_000}, "--length 10,000 asks for as many lags"),
    ],
)
def test_options_without_effect_or_out_of_bounds_are_refused(options, words):
    with pytest.raises(InputError, match=words):
        study_setup(STUDY.configured(None, **options), 0)


@pytest.mark.long
def test_a_sampled_model_takes_steps():
    run = ss.run_study("markov-icl", "readout", length=12, batch=8, watched=50, steps=3)
    assert run.frames == 4
    found = reading(run).curves
    assert found.divergences.shape == (4, 3)
    made = [view() for view in reading(run).views]
    assert {"attention", "match", "path", "strategies"} <= {view.slot for view in made if view is not None}
    assert "match" not in reading(run).stages.events, "T has no value of the match on a unigram plateau"
    words = reading(run).explained.sentence
    assert "Model T has" in words
    assert "Sequences have 12 tokens" in words


def test_both_papers_are_cited():
    assert ss.cite("markov-icl").count("@misc{") == 2
    assert "arXiv:2508.12837" in ss.cite("markov-icl").splitlines()[0]


def test_an_induction_head_has_a_score_near_one():
    """The first place has no token before it: its layer 1 holds itself, and some of layer 2 goes there."""
    law = study_setup(STUDY.configured("readout", length=20, watched=50), 0).what
    scores = np.zeros(20)
    scores[1] = 60.0
    params = {"W": 60.0 * np.eye(2), "v": scores, "U": np.eye(2)}
    assert 0.7 < induction_score(law, params) < 1
    assert induction_score(law, law.model.init()) == pytest.approx(0, abs=1e-12)
    tokens = law.data["tokens"][:4]
    np.testing.assert_allclose(layer_two(law, law.model.init(), tokens), even_patterns(4, 20), atol=1e-12)
    assert prefix_match(even_patterns(4, 20), tokens) == pytest.approx(0.5, abs=0.2)
