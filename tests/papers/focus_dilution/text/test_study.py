"""The study text-focus: options, probes, what a run keeps of its text, and what is refused."""

import pytest

import stagescope as ss
from stagescope.papers.focus_dilution.text.model import TextCausal, TextCounts, TextVariant
from stagescope.papers.focus_dilution.text.study import STUDY
from stagescope.readings.reading import stages
from tests.texts import needs

SMALL = {"vocab": 20, "width": 4, "window": 16, "steps": 60, "batch": 16, "watched": 64, "frames": 30}


def setup(**options):
    return STUDY.setup(STUDY.configured(None, **{**SMALL, **options}), 3)


@pytest.mark.parametrize("preset", STUDY.presets)
def test_presets_are_options(preset):
    chosen = STUDY.configured(preset)
    assert chosen.corpus in ("topics", "tinystories", "wikitext-2")


@pytest.mark.parametrize(
    ("options", "kind"),
    [({}, TextCounts), ({"form": "causal"}, TextCausal), ({"residual": True}, TextVariant), ({"positions": True}, TextVariant)],
)
def test_forms(options, kind):
    made = setup(**options)
    assert type(made.what) is kind
    assert made.what.seed == 3
    assert set(made.params) == set(made.what.shapes)


def test_defaults_follow_the_optimiser():
    plain, adam = (STUDY.setup(STUDY.configured(None, vocab=20, optimizer=name), 0) for name in ("sgd", "adam"))
    assert (plain.dynamics.lr, plain.dynamics.clock, plain.what.batch, plain.what.length) == (0.2, "t", 1024, 256)
    assert (adam.dynamics.lr, adam.dynamics.clock, adam.what.batch) == (1e-3, "step", 512)
    assert plain.what.model.scale == pytest.approx(32**-0.5)


def test_a_run_keeps_words_and_probes(tmp_path):
    run = ss.run_study("text-focus", out=tmp_path / "run", progress=False, probe=("the", "in"), **SMALL)
    loaded = ss.load(tmp_path / "run")
    assert loaded.config["words"] == run.config["words"]
    assert len(loaded.config["words"]) == 20
    assert "the" in loaded.config["words"]
    assert {"focus:the", "dilution:the", "focus:in"} <= set(stages(loaded).events)
    assert ss.verify(tmp_path / "run") == []


def test_early_frames_are_dense():
    made = setup(steps=2000, frames=101)
    steps = made.record.steps(2000)
    assert set(range(0, 2001, 20)) <= set(steps.tolist())
    assert (steps < 20).sum() > 10


def test_default_probes_are_frequent_words():
    run = ss.run_study("text-focus", progress=False, **SMALL)
    words = [name.removeprefix("focus:") for name in stages(run).events if name.startswith("focus:")]
    assert len(words) == 3
    assert set(words) <= set(run.config["words"])


@needs("wikitext-2")
def test_a_probe_outside_the_vocabulary_says_its_rank_and_the_size_needed():
    with pytest.raises(ss.InputError, match=r"'continue' is outside .* rank is 1,240, .*use --vocab 1241 or more"):
        setup(corpus="wikitext-2", probe=("the", "continue"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"probe": ("zebrafish",)}, "'zebrafish' is no token"),
        ({"window": 10**7}, "shorter than one window"),
        ({"momentum": 0.5}, "--momentum 0.5 .*heavy-ball"),
        ({"form": "causal", "residual": True}, "--form causal is for attention alone"),
        ({"init_scale": 0}, "nothing ever moves"),
        ({"corpus": "no-such-text"}, "no-such-text"),
        ({"vocab": 10**6}, "types"),
    ],
)
def test_what_would_mean_nothing_is_refused(options, message):
    with pytest.raises(ss.InputError, match=message):
        setup(**options)


def test_a_ladder_is_refused():
    run = ss.run_study("text-focus", progress=False, **SMALL)
    with pytest.raises(ss.InputError, match="noisy steps"):
        ss.saddle_ladder(run)
