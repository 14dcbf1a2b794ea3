"""The study's options, what is refused, and the stages its two presets show."""

from itertools import pairwise

import numpy as np
import pytest

import stagescope as ss
from stagescope.described import build


def plan(preset=None, seed=0, **options):
    study = ss.study("incremental")
    return study.setup(study.configured(preset, **options), seed)


def test_options_reach_the_task_and_the_model():
    made = plan("gd-ladder", seed=4, heads=2, batch=10, reverse=True)
    chain, model = made.what.process, made.what.model
    assert chain.groups == ((3,), (2,), (1,))
    assert chain.importances == pytest.approx((1.7**2, 1.7, 1.0))
    assert (model.heads, model.context, model.targets) == (2, 8, 1)
    assert (made.what.seed, made.what.batch, made.what.labels) == (4, 10, "soft")
    assert made.params["a"].shape == (2, 1, 8)
    stepped = plan(spans=(4, 4), stride=2, span_weights=(0.4, 0.3, 0.2, 0.1), fresh=True).what
    assert stepped.process.groups == ((1, 2, 3, 4), (3, 4, 5, 6))
    assert stepped.process.weights == ((0.4, 0.3, 0.2, 0.1),) * 2
    assert stepped.fresh


def test_rates_are_step_sizes():
    adam = plan("ladder").dynamics
    assert (adam.lr, adam.lr * adam.rates["a"], adam.clip, adam.clock) == (0.05, pytest.approx(0.01), 1.0, "step")
    assert plan(optimizer="adamw", weight_decay=0.2).dynamics.optimizer == ss.AdamW(weight_decay=0.2)
    ball = plan(optimizer="heavy-ball", momentum=0.5, rate_values=2.0).dynamics
    assert (ball.clock, ball.times(10)["t"]) == ("t", pytest.approx(40.0))


def test_features_from_a_file(tmp_path):
    given = np.random.default_rng(0).normal(size=(3, 20, 20))
    np.save(tmp_path / "a.npy", given)
    made = plan(features=tmp_path / "a.npy")
    np.testing.assert_allclose(made.what.process.matrices, given * np.array([14.45, 8.5, 5.0])[:, None, None])
    assert len(made.facts["features_digest"]) == 64


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"momentum": 0.5}, "--momentum 0.5 .* has no effect here: adam"),
        ({"weight_decay": 0.5}, "choose --optimizer adamw"),
        ({"features": "a.npy", "feature_kind": "centred"}, "the features come from --features"),
        ({"record": "every-step", "frames": 7}, "every step is recorded"),
        ({"batch": 4000}, "batch 4000 is larger than the 3000 sequences"),
        ({"model": "full"}, "model"),
    ],
)
def test_what_would_be_ignored_is_refused(options, words):
    with pytest.raises(ss.InputError, match=words):
        plan(**options)


def staircase(preset, seed, sequences, **options):
    """Held-out losses, computed levels, and the steps at which the loss is half-way between two levels."""
    run = ss.run_study("incremental", preset, seed=seed, progress=False, **options)
    law = build(run.spec["field"])
    levels = ss.class_levels(law.process, law.model.targets, law.model.context - law.process.reach).losses
    judge = ss.held_out(law.model, law.process, sequences, seed)
    loss = judge.values(run.params) - judge.floor + levels[-1]  # without the noise of the contexts drawn
    events = [run.step[np.argmax(loss < middle)] for middle in (levels[1:] + levels[:-1]) / 2]
    assert np.sum(run.step < events[0]) >= 5
    return run.step, loss, levels, [*events, run.step[-1] + 1]


def shoulders(step, loss, events):
    """The loss where it moves least per ln(step) between two events."""
    slope = np.abs(np.gradient(loss, np.log(np.maximum(step, 0.5))))
    between = [(step > first) & (step < last) for first, last in pairwise(events)]
    return [loss[inside][np.argmin(slope[inside])] for inside in between]


def test_the_ladder_has_three_stages():
    step, loss, levels, events = staircase("ladder", 0, 2000, feature_seed=7, frames=120)
    for event, low, high in zip(events, (20, 150, 330), (33, 340, 620), strict=False):
        assert low < event < high
    gaps = (shoulders(step, loss, events) - levels[1:]) / -np.diff(levels)
    assert np.all(gaps > -0.02)
    assert np.all(gaps < 0.12)


def test_gradient_descent_waits_at_the_levels_of_the_classes():
    step, loss, levels, events = staircase("gd-ladder", 1, 10000, feature_seed=1, frames=100)
    assert events[0] < events[1] < events[2] < 3000
    gaps = (shoulders(step, loss, events) - levels[1:]) / -np.diff(levels)
    np.testing.assert_allclose(gaps, 0, atol=0.021)
