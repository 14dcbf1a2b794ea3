"""The study's options: chains in three ways, forms of the loss, scales per block, and what is refused."""

import subprocess
import sys

import numpy as np
import pytest

import stagescope as ss


def plan(preset=None, seed=0, **options):
    study = ss.study("focus-dilution")
    return study.setup(study.configured(preset, **options), seed)


def test_every_preset_sets_up():
    for preset in ss.study("focus-dilution").presets:
        assert np.isfinite(sum(block.sum() for block in plan(preset).params.values()))


def test_three_ways_to_give_a_chain(tmp_path):
    lazy = plan(pi=(0.4, 0.2, 0.2, 0.2), persistence=0.3).what.process
    family = plan(pi0=0.4, persistence=0.3).what.process
    np.savetxt(tmp_path / "p.csv", lazy.transition, delimiter=",", fmt="%.17g")
    table = plan(transition=tmp_path / "p.csv")
    for chain in (family, table.what.process):
        np.testing.assert_allclose(chain.transition, lazy.transition, atol=1e-15)
    assert len(table.facts["transition_digest"]) == 64


def test_the_asymmetric_family():
    assert plan("delta").what.process.pi == pytest.approx((0.55, 0.17, 0.15, 0.13))
    assert plan(pi0=0.4, tokens=6, delta=0.01).what.process.pi == pytest.approx((0.4, 0.13, 0.12, 0.12, 0.12, 0.11))
    assert plan(pi0=0.4, delta=0.01, shape=(1, 1, -2)).what.process.pi == pytest.approx((0.4, 0.21, 0.21, 0.18))
    assert plan(pi0=0.4, tokens=2).what.process.pi == pytest.approx((0.4, 0.6))
    assert plan(pi0=0.4, tokens=3, delta=-0.1).what.process.pi == pytest.approx((0.4, 0.2, 0.4))


def test_scales_per_block():
    one, two = plan(init_scale=1e-2), plan(init_scale=1e-2, init_scale_wq=0.5, init_scale_w1=0.0)
    for name, factor in {"W0": 1, "W1": 0, "WQ": 50, "WK": 1}.items():
        np.testing.assert_allclose(two.params[name], factor * one.params[name])


def test_forms_of_the_loss():
    assert plan().what.describe()["type"] == "focus-dilution/TokenPopulation"
    finite, sampled = plan(form="finite", start="uniform").what, plan("sampled", seed=7).what
    assert (finite.length, finite.start) == (16, "uniform")
    assert (sampled.length, sampled.sequences, sampled.seed, sampled.batch) == (256, 8192, 7, None)
    assert plan(form="sampled", optimizer="sgd").what.batch == 128
    assert plan(form="sampled", optimizer="sgd", sequences=50).what.batch == 50
    assert plan(form="sampled", optimizer="adam", batch=9, length=5).what.batch == 9
    assert plan(form="sampled").until == 800  # a flow on the whole sample
    assert plan(optimizer="heavy-ball", momentum=0.5).dynamics.optimizer == ss.HeavyBall(momentum=0.5)


@pytest.mark.parametrize(
    "optimizer", ["flow", "sgd", *(pytest.param(name, marks=pytest.mark.long) for name in ("gd", "heavy-ball", "adam"))]
)
def test_small_runs_of_every_kind_have_stages(optimizer):
    steps = {"until": 30.0} if optimizer == "flow" else {"steps": 60, "lr": 0.5 if "gd" in optimizer else 0.1}
    run = ss.run_study("focus-dilution", form="sampled", sequences=100, length=8, optimizer=optimizer, **steps)
    assert run.done
    assert run.clock == ("step" if optimizer == "adam" else "t")
    assert ss.stages(run).events["E1"] is not None


@pytest.mark.long
@pytest.mark.parametrize("form", ["finite", "sampled"])
def test_a_run_can_be_observed_in_a_fresh_process(tmp_path, form):
    ss.run_study("focus-dilution", form=form, length=3, optimizer="gd", steps=3, out=tmp_path / "run")
    code = "import stagescope as ss; from stagescope.papers.focus_dilution.observables import token_curves; "
    code += f"print(token_curves(ss.load({str(tmp_path / 'run')!r})).attention.shape)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "(4, 4, 4)"


def test_claims_speak_of_infinitely_long_contexts():
    run = ss.run_study("focus-dilution", form="finite", length=2, optimizer="gd", lr=0.5, steps=60)
    assert {row.verdict for row in ss.check(run)} <= {"inconclusive", "not applicable"}


def test_equal_rare_tokens_stall():
    """delta = 0 at pi_0 .4, persistence .3: attention opens at 730-810, the second embedding direction never."""
    run = ss.run_study("focus-dilution", "stall", frames=400)
    assert np.linalg.svd(run.params["W0"], compute_uv=False)[:, 1].max() < 0.1
    scores = np.linalg.svd(plan("stall").what.model.scores(run.params), compute_uv=False)[:, 0]
    assert 720 < run.t[np.argmax(scores > 0.1)] < 820


@pytest.mark.parametrize(
    "options",
    [
        {"steps": 50},
        {"momentum": 0.5},
        {"optimizer": "gd", "until": 50.0},
        {"optimizer": "gd", "momentum": 0.5},
        {"tokens": 5},
        {"delta": 0.1},
        {"shape": (1.0, 0.0, -1.0)},
        {"pi0": 0.4, "pi": (0.5, 0.5)},
        {"transition": "p.csv", "pi0": 0.4},
        {"transition": "p.csv", "persistence": 0.1},
        {"length": 8},
        {"start": "uniform"},
        {"form": "finite", "sequences": 10},
        {"form": "finite", "batch": 10},
        {"form": "sampled", "batch": 10},
        {"form": "sampled", "batch": 10, "optimizer": "gd"},
        {"init_scale": 0.1, "init_scale_w0": 1.0, "init_scale_w1": 1.0, "init_scale_wq": 1.0, "init_scale_wk": 1.0},
    ],
)
def test_options_without_effect_are_refused(options):
    with pytest.raises(ss.InputError, match="has no effect here"):
        ss.run_study("focus-dilution", **options)


def test_a_start_at_the_origin_is_refused():
    with pytest.raises(ss.InputError, match="every block starts at 0"):
        ss.run_study("focus-dilution", init_scale=0.0)
