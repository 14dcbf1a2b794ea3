"""Claims on texts whose topics are known: planted ones confirm, a text without topics does not."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import stagescope as ss
from stagescope.papers.reading import check, reading, stages
from stagescope.papers.scan_snap.text.claims import CLAIMS, NEEDS
from stagescope.papers.scan_snap.text.evidence import TextEvidence, highest, late_motion, late_rise, rank_correlation
from stagescope.papers.scan_snap.text.observables import Motion, TextAttention, text_attention
from tests.planted import NEXTS, planted_text


def run_on(folder, topical=True, **options):
    path = folder / f"planted-{topical}.txt"
    path.write_text(planted_text(topical=topical))
    chosen = {"vocab": 65, "window": 20, "nexts": NEXTS, "steps": 1200, "layout": "text", "tokens": "lower"}
    return ss.run_study("text-snap", corpus=str(path), progress=False, **{**chosen, **options})


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    return run_on(tmp_path_factory.mktemp("planted"))


def verdicts(run):
    return {row.tag: row for row in check(run)}


def test_planted_topics_confirm_what_the_paper_says(planted):
    found = verdicts(planted)
    assert {tag for tag, row in found.items() if row.verdict == "confirmed"} == {
        "SnS:lemma-1",
        "SnS:text-distinct",
        "SnS:text-frequency",
        "SnS:text-held",
        "SnS:text-common",
        "SnS:text-mass",
        "SnS:text-snap",
    }
    assert {row.verdict for tag, row in found.items() if tag in ("SnS:text-rate", "SnS:text-freezing")} == {"not applicable"}
    assert list(stages(planted).events) == ["prior", "onset", "doubled", "peak", "snap"]
    assert None not in stages(planted).events.values()


def test_a_text_without_topics_confirms_nothing_about_them(tmp_path):
    """Scores rank types by the chance in the training windows, and only there: the held-out claim tells."""
    found = verdicts(run_on(tmp_path, topical=False, steps=1800))
    assert found["SnS:text-distinct"].measured > NEEDS.rank
    assert {row.verdict for tag, row in found.items() if "text" in tag} <= {"inconclusive", "not applicable"}
    assert found["SnS:text-held"].measured < 0


def test_adam_and_decay_are_out_of_regime(tmp_path):
    with_adam, with_decay = run_on(tmp_path, optimizer="adam", lr=0.05, steps=300), run_on(tmp_path, decay=0.01, steps=500)
    adam, decay = verdicts(with_adam), verdicts(with_decay)
    assert adam["SnS:lemma-1"].verdict == "not applicable"
    assert adam["SnS:text-distinct"].verdict == decay["SnS:text-snap"].verdict == "inconclusive"
    assert adam["SnS:text-distinct"].measured > NEEDS.rank  # in regime this would be confirmed
    assert reading(with_adam).evidence.is_adam
    assert reading(with_decay).evidence.decays


def test_a_run_that_is_too_short_decides_nothing(tmp_path):
    found = verdicts(run_on(tmp_path, steps=20))
    assert {row.verdict for tag, row in found.items() if "text" in tag} <= {"inconclusive", "not applicable"}


def test_what_has_not_come_yet_is_not_violated(planted):
    """The whole run confirms every claim, so no early part of it may violate one."""
    for last in (150, 250, 400, 600, 900):
        cut = planted.only(np.flatnonzero(planted.step <= last))
        assert not [row.tag for row in check(cut) if row.verdict == "violated"], last


def risen(planted, length):
    """Scores of which all common types' stay up from the start on, in a run of `length` times the steps."""
    curves = text_attention(planted)
    common = curves.process.common  # pyright: ignore[reportAttributeAccessIssue]
    scores = curves.scores + np.where(common, 1.0 - curves.scores[-1], 0.0) * (np.arange(len(curves.time)) > 0)[:, None]  # pyright: ignore[reportAttributeAccessIssue]
    late = replace(curves, time=np.append(curves.time[:-1], length * curves.time[-1]), scores=scores)
    evidence = TextEvidence(planted, late, at_rate=lambda rate: late, constant=lambda: late)
    return {claim.tag: claim.judge(planted, evidence).verdict for claim in CLAIMS}["SnS:text-common"]


def test_common_types_that_stay_up_violate_once_the_run_rests(planted):
    assert (risen(planted, 1), risen(planted, 100)) == ("inconclusive", "violated")


def test_coarse_runs_are_read_as_fine_ones(tmp_path):
    run = run_on(tmp_path, steps=500)
    coarse, fine = (ss.replay(run, ss.Every(n=n)) for n in (133, 50))
    assert coarse.frames < 6
    assert stages(coarse).events == stages(fine).events
    assert stages(fine).events["doubled"] is not None


def test_rank_correlation_is_spearmans():
    draw = np.random.default_rng(0)
    x, z = draw.integers(0, 9, 60), draw.normal(size=60)
    y = x + 3 * draw.normal(size=60)
    assert rank_correlation(x, y) == pytest.approx(stats.spearmanr(x, y)[0], rel=1e-12)
    left, right = ((r := stats.rankdata(v)) - np.polyval(np.polyfit(stats.rankdata(z), r, 1), stats.rankdata(z)) for v in (x, y))
    assert rank_correlation(x, y, z) == pytest.approx(np.corrcoef(left, right)[0, 1], rel=1e-10)
    assert np.isnan(rank_correlation(np.ones(60), y))


def test_two_standard_errors_above_a_rank_correlation():
    """Of samples of two normal numbers, whose rank correlation is 6/pi asin(r/2), 2.3 % have all of it below the true one."""
    draw, true = np.random.default_rng(1), 6 / np.pi * np.arcsin(0.55 / 2)
    pairs = draw.multivariate_normal([0, 0], [[1, 0.55], [0.55, 1]], size=(1000, 100))
    found = [highest(rank_correlation(x[:, 0], x[:, 1]), 100) < true for x in pairs]
    assert np.mean(found) == pytest.approx(0.023, abs=0.012)
    assert highest(1.0, 50) == highest(0.2, 3) == 1.0


def test_the_rise_over_the_last_doubling():
    """A curve that grows by the logarithm of time rises by ln 2 in every doubling."""
    curve = np.log(np.arange(1, 3001))
    assert late_rise(curve) == pytest.approx(np.log(2), rel=0.01)
    np.testing.assert_allclose(late_rise(np.stack([curve, -curve], axis=1)), late_rise(curve) * np.array([1, -1]))


# the transformer: verdicts by what its curves would be


def seen(variation, entropy):
    time = np.arange(0, 50.0 * (len(variation) + 1), 50)
    motion = Motion(time[:-1], time[1:], np.asarray(variation, dtype=float))
    return TextAttention(time, time.astype(int), np.linspace(7, 3, len(time)), 5.0, np.full(len(time), entropy), motion)


def judged(here, half, constant, half_life=None):
    spec = {"dynamics": {"lr": 4.0, "half_life": half_life, "optimizer": {"type": "GD"}}}
    run = ss.Run(params=None, series=None, spec=spec, clock="step", status="finished")  # pyright: ignore[reportArgumentType]
    evidence = TextEvidence(run, here, at_rate=lambda rate: {2.0: half}[rate], constant=lambda: constant)
    return {claim.tag: claim.judge(run, evidence).verdict for claim in CLAIMS if claim.tag.startswith("SnS:text")}


HOPS, RESTS = np.full(40, 0.3), np.linspace(0.3, 0.001, 40)


def test_a_constant_rate_that_hops_is_no_snap_and_shows_that_freezing_needs_decay():
    found = judged(seen(HOPS, 1.0), seen(HOPS, 2.0), None)
    assert (found["SnS:text-snap"], found["SnS:text-rate"], found["SnS:text-freezing"]) == ("violated", "confirmed", "confirmed")
    assert found["SnS:text-mass"] == "not applicable"


def test_attention_that_still_slows_down_has_not_failed_to_snap():
    for motion, verdict in ((np.linspace(0.4, 0.1, 40), "inconclusive"), (np.linspace(0.2, 0.4, 40), "violated")):
        assert judged(seen(motion, 1.0), seen(HOPS, 2.0), None)["SnS:text-snap"] == verdict


def test_a_constant_rate_that_freezes_speaks_against_it():
    found = judged(seen(RESTS, 2.0), seen(HOPS, 1.0), None)
    assert (found["SnS:text-snap"], found["SnS:text-rate"], found["SnS:text-freezing"]) == ("confirmed", "violated", "violated")


def test_decay_that_freezes_is_compared_with_a_constant_rate():
    found = judged(seen(RESTS, 2.0), None, seen(HOPS, 1.0), half_life=100.0)
    found = [found[f"SnS:text-{name}"] for name in ("snap", "rate", "freezing")]
    assert found == ["inconclusive", "inconclusive", "confirmed"]
    assert judged(seen(RESTS, 2.0), None, seen(RESTS, 1.0), half_life=100.0)["SnS:text-freezing"] == "violated"


def test_rates_that_hardly_move_attention_decide_nothing_about_freezing():
    slow = seen(np.full(40, 0.02), 2.0)
    assert judged(slow, slow, None)["SnS:text-freezing"] == "inconclusive"
    assert judged(seen(RESTS, 2.0), None, slow, half_life=100.0)["SnS:text-freezing"] == "inconclusive"


def test_a_transformer_that_learned_nothing_decides_nothing():
    idle = replace(seen(HOPS, 1.0), loss=np.full(41, 6.0))
    found = judged(idle, seen(HOPS, 2.0), None)
    assert (found["SnS:text-snap"], found["SnS:text-rate"], found["SnS:text-freezing"]) == ("inconclusive",) * 3


def test_late_motion_needs_enough_checkpoints():
    assert late_motion(seen(HOPS[:9], 1.0)) is None
    assert late_motion(seen(RESTS, 1.0)) == pytest.approx(RESTS[-4:].mean())


def test_masses_are_those_of_every_window(planted):
    """By a loop over held-out windows at the last frame."""
    curves = text_attention(planted)
    process, score = curves.process, curves.scores[-1]  # pyright: ignore[reportAttributeAccessIssue]
    windows, total = process.part("held-out"), np.zeros(3)
    for i in range(len(windows)):
        inside = slice(windows.start[i], windows.start[i + 1])
        weights = windows.count[inside] * np.exp(score[windows.key[inside]])
        share = weights / weights.sum()
        kinds = process.common[windows.key[inside]], process.distinct[windows.key[inside]]
        total += [share[kinds[0]].sum(), share[kinds[1]].sum(), -np.sum(share * np.log(share))]
    found = [curves.common_mass[-1], curves.distinct_mass[-1], curves.entropy[-1]]  # pyright: ignore[reportAttributeAccessIssue]
    np.testing.assert_allclose(found, total / len(windows), rtol=1e-10)
