"""Claims on texts whose topics are known: planted ones confirm, a text without topics does not."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import stagescope as ss
from stagescope.papers.scan_snap.text.claims import TEXT_CLAIMS, TextEvidence, late_motion, rank_correlation
from stagescope.papers.scan_snap.text.observables import Motion, TextAttention, text_attention
from stagescope.readings.reading import check, reading, stages
from tests.planted import NEXTS, planted_text
from tests.readings.stand_in import StandIn
from tests.texts import needs
from validation.nulls import scan_snap_text as nulls


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


TYPES = "SnS:text-frequency"


def test_planted_topics_confirm_what_the_paper_says(planted):
    found = verdicts(planted)
    assert {tag for tag, row in found.items() if row.verdict == "confirmed"} == {TYPES}
    assert {row.verdict for tag, row in found.items() if tag in ("SnS:text-rate", "SnS:text-freezing")} == {"not applicable"}


def test_events_come_in_the_order_of_the_story(planted):
    events = stages(planted).events
    assert list(events) == ["prior", "onset", "doubled", "peak", "snap"]
    times = [events[name] for name in ("prior", "onset", "peak", "snap") if events[name] is not None]
    assert len(times) >= 3
    assert times == sorted(times, key=float)
    for name, event in stages(planted).estimates.items():
        assert event.time is None or event.interval[0] <= event.time <= event.interval[1], name  # pyright: ignore[reportOptionalSubscript]


@pytest.mark.long
@pytest.mark.parametrize("shuffle", [11, 12])
def test_words_in_random_order_confirm_nothing_about_types(tmp_path, shuffle):
    run = run_on(tmp_path, steps=1500, shuffle=shuffle)
    found = verdicts(run)
    assert found[TYPES].verdict in ("inconclusive", "violated")
    assert "of no use" in (reading(run).evidence.unlearned or "")


@pytest.mark.long
def test_a_text_without_topics_confirms_nothing_about_them(tmp_path):
    found = verdicts(run_on(tmp_path, topical=False, steps=1800))
    assert "confirmed" not in {row.verdict for tag, row in found.items() if "text" in tag}


def test_scores_of_other_types_rank_nothing(planted):
    """The same run with its scores in another order."""
    order = np.random.default_rng(0).permutation(planted.params["Z"].shape[2])
    other = replace(planted, params={**planted.params, "Z": np.asarray(planted.params["Z"])[:, :, order]})
    assert verdicts(other)[TYPES].verdict != "confirmed"


@pytest.mark.long
def test_adam_is_out_of_regime(tmp_path):
    run = run_on(tmp_path, optimizer="adam", lr=0.05, steps=300)
    assert verdicts(run)[TYPES].verdict == "inconclusive"
    assert reading(run).evidence.is_adam


@pytest.mark.long
def test_too_few_types_name_the_option_that_gives_more(tmp_path):
    row = verdicts(run_on(tmp_path, steps=100, least=250))[TYPES]
    assert row.verdict == "inconclusive"
    assert "lower --least" in row.reason


@pytest.mark.long
def test_a_run_that_is_too_short_decides_nothing(tmp_path):
    found = verdicts(run_on(tmp_path, steps=20))
    assert {row.verdict for tag, row in found.items() if "text" in tag} <= {"inconclusive", "not applicable"}


@pytest.mark.long
def test_what_has_not_come_yet_is_not_violated(planted):
    """The whole run confirms every claim, so no early part of it may violate one."""
    for last in (250, 600):
        cut = planted.only(np.flatnonzero(planted.step <= last))
        assert not [row.tag for row in check(cut) if row.verdict == "violated"], last


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


# the transformer: verdicts by what its curves would be


def seen(variation, entropy):
    time = np.arange(0, 50.0 * (len(variation) + 1), 50)
    variation = np.asarray(variation, dtype=float)
    left = np.cumsum(variation[::-1])[::-1] / np.sum(variation)
    loss = np.interp(time, [0, 100, time[-1]], [7, 4.9, 3])
    return TextAttention(
        time, time.astype(int), loss, 5.0, np.full(len(time), entropy), Motion(time[:-1], time[1:], variation, left), 3.0
    )


def judged(here, half, constant, half_life=None):
    spec = {"dynamics": {"lr": 4.0, "half_life": half_life, "optimizer": {"type": "GD"}}}
    run = ss.Run(params=None, series=None, spec=spec, clock="step", status="finished")  # pyright: ignore[reportArgumentType]
    reading = StandIn(with_steps=lambda changes: half if changes == {"lr": 2.0} else constant)
    evidence = TextEvidence(run, here, reading=reading)
    return {claim.tag: claim.judge(run, evidence).verdict for claim in TEXT_CLAIMS}


HOPS = np.where(np.arange(40) == 2, 0.7, 0.3)
RESTS = np.where(np.arange(40) < 8, 0.3, 0.001) * np.where(np.arange(40) == 3, 2, 1)


def test_a_constant_rate_that_hops_shows_that_freezing_needs_decay():
    found = judged(seen(HOPS, 1.0), seen(HOPS, 2.0), None)
    assert (found["SnS:text-rate"], found["SnS:text-freezing"]) == ("confirmed", "confirmed")
    assert found[TYPES] == "not applicable"


def test_a_constant_rate_that_freezes_speaks_against_it():
    found = judged(seen(RESTS, 2.0), seen(HOPS, 1.0), None)
    assert (found["SnS:text-rate"], found["SnS:text-freezing"]) == ("violated", "violated")


def test_decay_that_freezes_is_compared_with_a_constant_rate():
    found = judged(seen(RESTS, 2.0), None, seen(HOPS, 1.0), half_life=100.0)
    found = [found[f"SnS:text-{name}"] for name in ("rate", "freezing")]
    assert found == ["inconclusive", "confirmed"]
    assert judged(seen(RESTS, 2.0), None, seen(RESTS, 1.0), half_life=100.0)["SnS:text-freezing"] == "violated"


def test_rates_that_hardly_move_attention_decide_nothing_about_freezing():
    slow = seen(np.full(40, 0.02), 2.0)
    assert judged(slow, slow, None)["SnS:text-freezing"] == "inconclusive"
    assert judged(seen(RESTS, 2.0), None, slow, half_life=100.0)["SnS:text-freezing"] == "inconclusive"


def test_a_transformer_that_learned_nothing_decides_nothing():
    idle = replace(seen(HOPS, 1.0), held_loss=4.9)  # 2 % below the entropy of the words
    found = judged(idle, seen(HOPS, 2.0), None)
    assert (found["SnS:text-rate"], found["SnS:text-freezing"]) == ("inconclusive",) * 2


def test_late_motion_needs_enough_checkpoints():
    assert late_motion(seen(HOPS[:9], 1.0)) is None
    assert late_motion(seen(RESTS, 1.0)) == pytest.approx(0.001)


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


@pytest.mark.long
@needs("wikitext-2")
def test_shuffled_wikitext_confirms_nothing():
    """On the training windows scores rank types, because they were fitted to them; only held-out windows tell."""
    run = nulls.make(303, corpus="wikitext-2", shuffle=303)
    curves = text_attention(run)
    assert rank_correlation(curves.growth, curves.process.distinctness) > 0.5  # pyright: ignore[reportAttributeAccessIssue]
    assert "confirmed" not in {row.verdict for row in check(run)}


def test_log_laws_are_those_of_the_loss(planted):
    law = text_attention(planted).law  # pyright: ignore[reportAttributeAccessIssue]
    params, target = planted.at(-1), law._columns[3]
    logs = law.log_laws(params)[np.arange(len(law.windows)), target]
    assert -logs.mean() == pytest.approx(law.value(params), rel=1e-10)
