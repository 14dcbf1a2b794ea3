"""Statements of scan and snap that cannot fail: they check the numerics, not the theory."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import stagescope as ss
from stagescope.core.params import key
from stagescope.papers.scan_snap.model import attention
from stagescope.papers.scan_snap.observables import law_of
from tests.planted import NEXTS, planted_text
from tests.strategies import sequence_classes


def row_sum_drift(run, model):
    """Drift of the row sums of Y and Z, relative to the largest parameter."""
    sums = (run.params["Y"] @ model.multiplicity, run.params["Z"].sum(axis=2))
    size = max(1.0, *(float(np.max(np.abs(run.params[name]))) for name in ("Y", "Z")))
    return max(float(np.max(np.abs(total - total[0]))) for total in sums) / (size * np.sqrt(model.vocab))


@pytest.mark.parametrize(
    "options",
    [
        {"num_last": 3, "until": 50.0},
        {"num_last": 3, "decoder": "pinv", "until": 50.0},
        {"optimizer": "heavy-ball", "length": 128},
        {"optimizer": "gd", "steps": 50},
    ],
)
def test_row_sums_are_conserved(options):
    """Lemma 1, under both decoders and by steps."""
    run = ss.run_study("scan-snap", **options)
    assert row_sum_drift(run, law_of(run).model) <= 1e-9


def test_row_sums_are_conserved_in_single_precision():
    """About 100 roundings of 6e-8."""
    run = ss.run_study("scan-snap", optimizer="heavy-ball", length=128, precision="float32")
    assert 1e-9 < row_sum_drift(run, law_of(run).model) <= 1e-5


def test_row_sums_are_conserved_on_a_text(tmp_path):
    path = tmp_path / "planted.txt"
    path.write_text(planted_text())
    chosen = {"vocab": 65, "window": 20, "nexts": NEXTS, "steps": 300, "layout": "text", "tokens": "lower"}
    run = ss.run_study("text-snap", corpus=str(path), progress=False, **chosen)
    assert row_sum_drift(run, ss.text_attention(run).law.model) <= 1e-9  # pyright: ignore[reportAttributeAccessIssue]


def test_attention_of_long_contexts_tends_to_the_limit_like_the_root_of_their_length():
    """Lemma 2: the slope of mean |v - c|_1 over the length of contexts, drawn with the scores of the last frame."""
    run, lengths = ss.run_study("scan-snap"), (2048, 8192, 32768)
    curves = ss.class_attention(run)
    on, gaps = curves.supports, []
    for length in lengths:
        random, gap = key(0, "claims", "length", length), 0.0
        for n, p in enumerate(curves.table):
            own = slice(*on.start[n : n + 2])
            counts = random.multinomial(length, p / p.sum(), size=200)[:, on.key[own]]
            gap += float(np.mean(np.abs(attention(curves.z[-1, own], counts) - curves.c[-1, own]).sum(axis=1)))
        gaps.append(gap)
    assert np.polyfit(np.log(lengths), np.log(gaps), 1)[0] == pytest.approx(-0.5, abs=0.1)


@settings(max_examples=5)
@given(sequence_classes(), st.floats(0.1, 100), st.floats(1.0, 300))
def test_any_flow_conserves_and_scales(process, rate_y, until):
    """Only eta_Y/eta_Z and time matter: with four times the rates for a quarter of the time, Z ends where it did."""
    model = ss.PairwiseAttention.merged(process)
    loss = ss.population_loss(model, process)
    run, faster = (
        ss.evolve(loss, model.init(), ss.GradientFlow(rates={"Y": s * rate_y, "Z": s}), until=until / s) for s in (1.0, 4.0)
    )
    assert row_sum_drift(run, model) <= 1e-9
    np.testing.assert_allclose(faster.params["Z"][-1], run.params["Z"][-1], rtol=0, atol=1e-6)
