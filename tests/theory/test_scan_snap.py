"""Claims of scan and snap on runs where the answer is known."""

import pytest

import stagescope as ss


def verdicts(**options):
    return {row.tag: row for row in ss.check(ss.run_study("scan-snap", **options))}


def test_syn_small_flow_confirms_its_regime():
    found = verdicts()
    assert {row.verdict for row in found.values()} == {"confirmed"}


def test_a_single_common_token_falls_whatever_the_classes():
    found = verdicts(num_last=3, num_common=1, common_p=2.0, rate_y=30.0, until=300.0)
    assert found["SnS:theorem-2-common"].verdict == "confirmed"


def test_unequal_common_tokens_are_out_of_regime():
    found = verdicts(num_last=2, num_next_per_last=2, num_common_per_last=2)
    assert found["SnS:theorem-2-common"].verdict == "inconclusive"
    assert "share a query" in found["SnS:theorem-2-common"].reason
    assert found["SnS:theorem-2-distinct"].verdict == "inconclusive"


def test_adam_is_not_what_the_paper_speaks_of():
    found = verdicts(optimizer="adam", lr=0.1)
    assert found["SnS:lemma-1"].verdict == "not applicable"
    assert found["SnS:theorem-2-common"].verdict == "not applicable"


def test_a_short_run_decides_nothing_about_the_snap():
    assert verdicts(until=3.0)["SnS:snap"].verdict == "inconclusive"


@pytest.mark.parametrize("decoder", ["gradient", "pinv"])
def test_row_sums_are_conserved_under_both_decoders(decoder):
    assert verdicts(num_last=3, decoder=decoder, until=50.0)["SnS:lemma-1"].verdict == "confirmed"
