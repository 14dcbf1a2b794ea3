"""Claims of scan and snap on runs where the answer is known."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import stagescope as ss
from stagescope.papers.published import published
from stagescope.papers.scan_snap.evidence import LIMITS, Evidence
from tests.strategies import sequence_classes


def verdicts(**options):
    return {row.tag: row for row in ss.check(ss.run_study("scan-snap", **options))}


def test_syn_small_flow_decides_the_claims_in_regime():
    """Ten common tokens and equal rates are outside the regime of the theorems for one common token and a fast decoder."""
    run = ss.run_study("scan-snap")
    seen = Evidence.of(run)
    assert (seen.ratio, seen.commons) == (1.0, 10)
    found = {row.tag: row for row in ss.check(run)}
    names = {
        kind: {tag for tag, row in found.items() if row.verdict == kind} for kind in ("confirmed", "violated", "inconclusive")
    }
    in_regime = {"lemma-1", "lemma-2", "theorem-2-distinct", "theorem-2-common", "order", "snap", "scaling"}
    assert names["confirmed"] == {f"SnS:{name}" for name in in_regime}
    assert names["violated"] == {"SnS:assumption-2", "SnS:sparsity"}
    assert names["inconclusive"] == {f"SnS:{name}" for name in ("theorem-1", "theorem-3", "theorem-4", "sandwich", "transition")}


def test_fast_decoder_with_one_common_token_is_the_theorems_regime():
    made = {"num_last": 5, "num_common": 1, "vocab": 1000, "rate_y": 100.0, "until": 3.0}
    modified, gradient = verdicts(decoder="pinv", **made), verdicts(**made)
    for name in ("theorem-1", "theorem-3", "theorem-4", "sandwich"):
        assert modified[f"SnS:{name}"].verdict == "confirmed", name
    for name in ("theorem-1", "theorem-4", "sandwich"):
        assert gradient[f"SnS:{name}"].verdict == "violated", name
    assert gradient["SnS:transition"].verdict == "confirmed"
    assert modified["SnS:transition"].verdict == "inconclusive"


def test_larger_rates_are_sparser_only_by_finite_steps():
    coarse = verdicts(optimizer="heavy-ball", lr=1.0, steps=100)["SnS:finite-step"]
    fine = verdicts(optimizer="heavy-ball", lr=0.1, steps=1000)["SnS:finite-step"]
    flow = published("stagescope.papers.scan_snap")["flow_entropy"]
    assert coarse.verdict == "confirmed"
    assert coarse.measured < flow.value["1"] - LIMITS.follows
    assert fine.verdict == "inconclusive"
    assert fine.measured == pytest.approx(flow.value["1"], abs=LIMITS.follows + flow.tolerance)


def test_ratio_three_to_thirty_ends_less_sparse():
    """The entropy over eta_Y/eta_Z is U-shaped with its minimum at 2 to 5: the paper's statement holds beyond it."""
    assert verdicts(rate_y=5.0)["SnS:sparsity"].verdict == "confirmed"


def test_several_unequal_common_tokens_can_grow_and_are_out_of_regime(tmp_path):
    """Common tokens of very different P(l|n): at least one of them grows."""
    rows = ["query,target,token,probability"]
    laws = ({"a": 0.7, "b": 0.05, "x": 0.25}, {"a": 0.05, "b": 0.7, "y": 0.25})
    rows += [f"q{n},t{n},{token},{p}" for n, law in enumerate(laws) for token, p in law.items()]
    table = tmp_path / "classes.csv"
    table.write_text("\n".join(rows))
    run = ss.run_study("scan-snap", classes=table, until=300.0)
    row = {row.tag: row for row in ss.check(run)}["SnS:theorem-2-common"]
    assert row.verdict == "inconclusive"
    assert row.measured > 0
    seen = Evidence.of(run)
    assert not seen.symmetric
    assert np.any((seen.curves.scores[-1] - seen.curves.scores[0])[seen.curves.common] > 0)


def test_a_single_common_token_falls_whatever_the_classes():
    found = verdicts(num_last=3, num_common=1, common_p=2.0, rate_y=30.0, until=300.0)
    assert found["SnS:theorem-2-common"].verdict == "confirmed"


def test_unequal_common_tokens_are_out_of_regime():
    run = ss.run_study("scan-snap", num_last=2, num_next_per_last=2, num_common_per_last=2)
    found = {row.tag: row for row in ss.check(run)}
    assert not Evidence.of(run).own_query
    assert found["SnS:theorem-2-common"].verdict == "inconclusive"
    assert found["SnS:theorem-2-distinct"].verdict == "inconclusive"


def test_adam_is_outside_the_paper():
    found = verdicts(optimizer="adam", lr=0.1)
    assert found["SnS:lemma-1"].verdict == "not applicable"
    assert found["SnS:theorem-2-common"].verdict == "not applicable"


def test_a_short_run_decides_nothing_about_the_snap():
    assert verdicts(until=3.0)["SnS:snap"].verdict == "inconclusive"


@settings(max_examples=8)
@given(sequence_classes(), st.sampled_from(["flow", "heavy-ball"]), st.floats(0.1, 100), st.floats(1.0, 300))
def test_any_classes_get_a_ledger_and_stages(process, optimizer, rate_y, until):
    """Random classes: every claim has a reason, a flow conserves and scales, nothing raises."""
    model = ss.PairwiseAttention.merged(process)
    loss = ss.population_loss(model, process)
    if optimizer == "flow":
        run = ss.evolve(loss, model.init(), ss.GradientFlow(rates={"Y": rate_y}), until=until)
    else:
        run = ss.evolve(loss, model.init(), ss.Descent(optimizer=ss.HeavyBall(), lr=0.1, rates={"Y": rate_y}, steps=20))
    rows = {row.tag: row for row in ss.check(run)}
    assert all(row.reason for row in rows.values())
    assert rows["SnS:lemma-1"].verdict == "confirmed"
    if optimizer == "flow":
        assert rows["SnS:scaling"].verdict == "confirmed"
    found = ss.stages(run)
    assert set(found.events) == {"onset", "winner", "peak", "snap"}
    for name, when in found.events.items():
        assert when is not None or found.notes[name]
    if found.events["peak"] is not None and found.events["snap"] is not None:
        assert found.events["peak"] < found.events["snap"]


@pytest.mark.parametrize("options", [{"num_last": 1, "num_common": 0}, {"num_last": 2, "num_common": 0}, {"rate_z": 0.0}])
def test_degenerate_settings_are_judged_without_confirming_nonsense(options):
    rows = verdicts(until=20.0, **options)
    for name in ("theorem-4", "sandwich", "transition"):
        assert rows[f"SnS:{name}"].verdict in ("inconclusive", "not applicable"), name


@pytest.mark.parametrize("decoder", ["gradient", "pinv"])
def test_row_sums_are_conserved_under_both_decoders(decoder):
    assert verdicts(num_last=3, decoder=decoder, until=50.0)["SnS:lemma-1"].verdict == "confirmed"


def test_short_contexts_are_not_blamed_on_steps():
    length = 8
    assert length < LIMITS.long_context
    found = verdicts(optimizer="heavy-ball", length=length, batch=32, lr=0.01, steps=1000)
    assert found["SnS:finite-step"].verdict == "inconclusive"
    assert found["SnS:theorem-2-common"].verdict == "inconclusive"


def test_frozen_attention_and_zero_entropy_decide_nothing():
    frozen = verdicts(rate_z=0.0, rate_y=100.0)
    single = verdicts(num_unique=1)
    assert frozen["SnS:theorem-3"].verdict == "inconclusive"
    assert single["SnS:sparsity"].verdict == "inconclusive"


def test_uneven_priors_and_shared_targets_are_out_of_regime(tmp_path):
    table = tmp_path / "classes.csv"
    head = "query,target,token,probability,prior"
    table.write_text("\n".join((head, "a,t,c,0.2,0.9", "a,t,x,0.8,0.9", "b,u,c,0.2,0.1", "b,u,y,0.8,0.1")))
    assert verdicts(classes=table, rate_y=100.0, vocab=100)["SnS:transition"].verdict == "inconclusive"
    table.write_text("\n".join((head, "a,t,c,0.2,0.5", "a,t,x,0.8,0.5", "b,t,c,0.2,0.5", "b,t,y,0.8,0.5")))
    shared = verdicts(classes=table, rate_y=100.0, vocab=100)
    for name in ("theorem-1", "theorem-2-distinct", "theorem-2-common"):
        assert shared[f"SnS:{name}"].verdict == "inconclusive", name


@pytest.mark.parametrize(("vocab", "common_p", "num_unique"), [(100, 0.3, 10), (30, 0.6, 10), (60, 0.3, 5)])
def test_theorem_4_holds_on_small_vocabularies(vocab, common_p, num_unique):
    """The factor 1 + 1/((M-1) f_c^2), up to 2 here, that the large-M form drops."""
    made = {"num_last": 2, "num_common": 1, "common_p": common_p, "num_unique": num_unique, "vocab": vocab}
    row = verdicts(decoder="pinv", rate_y=100.0, until=1.0, **made)["SnS:theorem-4"]
    assert row.verdict == "confirmed"
    assert row.measured == pytest.approx(1, abs=0.1)
