"""A sweep as a table."""

import csv
import io
import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import stagescope as ss
from stagescope.core.errors import InputError, NotARun
from stagescope.sweeping import columns as statistics
from stagescope.sweeping.columns import interval, median
from stagescope.sweeping.plan import points
from stagescope.sweeping.rows import RowWriter
from tests.sweeping.small import CHEAP, cheap_plan


@pytest.fixture
def sweep(tmp_path):
    """Rows with numbers that are known, three seeds a cell."""
    plan = cheap_plan(tmp_path, grid={"rate_y": "1,2", "optimizer": "flow,gd"}, seeds=3, umin=0.2)
    rows = []
    for point in points(plan):
        fields = {"digest": point.digest, "study": "scan-snap", "seed": point.seed, "at": dict(point.values), "retry": 0}
        fields |= {"config": dict(point.config), "status": "finished", "reason": "", "seconds": 0.5}
        if point.values["optimizer"] == "gd":
            fields |= {"status": "diverged", "reason": "too fast", "events": {"snap": 1.0}, "numbers": {"loss": 1e30}}
        else:
            snap = None if point.seed == 2 else 10.0 * point.values["rate_y"] + point.seed
            fields |= {
                "events": {"snap": snap},
                "stages": ["uniform", "scan"],
                "starts": {"scan": 3.0},
                "durations": {"scan": None},
            }
            fields |= {
                "verdicts": {"SnS:x": "confirmed" if point.seed else "violated"},
                "numbers": {"loss": 0.1},
                "clock": "t",
                "end": 50.0,
            }
        rows.append(fields)
    RowWriter(tmp_path).commit(rows)
    return ss.load_sweep(tmp_path)


def test_measures_of_the_study_are_columns(sweep):
    own = [{"gain": 0.5, "class": None, "why": "none", "fits": [1.0]}, {"gain": 1.5, "class": 2, "why": None, "fits": [2.0]}]
    rows = [{**row, "measures": {"own": own[place % 2]}} for place, row in enumerate(sweep.rows)]
    found = replace(sweep, rows=(*rows, {**sweep.rows[0]}))
    assert found.column("own.gain")[:2] == [0.5, 1.5]
    assert found.column("own.gain")[-1] is None
    kinds = {name: found.column_of(f"own.{name}").kind for name in ("gain", "class", "why")}
    assert kinds == {"gain": "number", "class": "number", "why": "word"}
    assert "own.fits" not in found.columns
    assert found.statistics("own.class", by=["optimizer"])[0]["mean"] == 2.0


def test_columns(sweep):
    assert sweep.columns[:5] == ("rate_y", "optimizer", "seed", "status", "reason")
    assert {"snap", "last stage", "stages", "stage scan", "duration scan", "SnS:x", "loss", "end", "digest"} <= set(sweep.columns)
    assert sweep.column("snap") == [10.0, 11.0, None, 1.0, 1.0, 1.0, 20.0, 21.0, None, 1.0, 1.0, 1.0]
    assert set(sweep.column("stages")) == {"uniform > scan", None}
    assert set(sweep.column("last stage")) == {"scan", None}
    with pytest.raises(InputError, match="did you mean 'snap'"):
        sweep.column("snp")


def test_failed_rows_and_cells(sweep):
    assert len(sweep) == 12
    assert len(sweep.cells) == 4
    assert len(sweep.failed) == 6
    assert repr(sweep) == "<Sweep scan-snap over rate_y x optimizer: 12 rows in 4 cells, 6 failed>"


def test_csv_is_the_table(sweep):
    path = sweep.write_csv()
    lines = list(csv.DictReader(io.StringIO(path.read_text())))
    assert [float(line["rate_y"]) for line in lines] == sweep.column("rate_y")
    assert [line["snap"] for line in lines[:3]] == ["10.0", "11.0", ""]


def test_statistics_over_seeds(sweep):
    first = sweep.statistics("loss")[0]
    assert first["at"] == {"rate_y": 1.0, "optimizer": "flow"}
    assert (first["rows"], first["known"], first["failed"], first["beyond"]) == (3, 3, 0, 0)
    assert [first["mean"], first["median"]] == pytest.approx([0.1, 0.1])
    assert first["mean_interval"] == pytest.approx((0.1, 0.1))
    verdicts = sweep.statistics("SnS:x")[0]["shares"]
    assert verdicts["confirmed"]["share"] == pytest.approx(2 / 3)
    assert sweep.statistics("snap") == sweep.statistics("snap")


def test_what_did_not_come_by_the_end_is_later_than_what_did(sweep):
    """Two of three seeds snap at 10 and 11: the median is 11, not 10.5, and a mean does not exist."""
    first = sweep.statistics("snap")[0]
    assert (first["known"], first["beyond"], first["mean"], first["median"]) == (2, 1, None, 11.0)
    assert first["median_interval"] == (10.0, None)
    both = sweep.statistics("snap", by=["optimizer"])
    assert [(entry["known"], entry["beyond"], entry["failed"]) for entry in both] == [(4, 2, 0), (0, 0, 6)]
    stays = sweep.statistics("duration scan")[0]
    assert (stays["known"], stays["beyond"], stays["median"], stays["median_interval"]) == (0, 3, None, None)


def test_failed_runs_count_in_no_statistic(sweep):
    diverged = sweep.statistics("loss")[1]
    assert diverged["at"]["optimizer"] == "gd"
    assert (diverged["rows"], diverged["known"], diverged["failed"], diverged["median"]) == (3, 0, 3, None)
    assert sweep.statistics("status")[1]["shares"]["diverged"]["share"] == 1


@pytest.mark.parametrize("name", ["snap", "loss", "SnS:x", "stage scan", "duration scan", "seconds", "rate_y"])
def test_every_cell_has_the_same_keys(sweep, name):
    assert len({tuple(entry) for entry in sweep.statistics(name)}) == 1


def test_why_a_row_has_no_value(sweep):
    flow, gd = sweep.find({"rate_y": 1, "optimizer": "flow"}, 2), sweep.find({"rate_y": 1, "optimizer": "gd"})
    lacks = {name: sweep.column_of(name).reading(flow).lack for name in ("snap", "duration scan", "loss", "status")}
    assert lacks == {"snap": "not reached", "duration scan": "in progress", "loss": None, "status": None}
    assert [sweep.column_of(name).reading(gd).lack for name in ("snap", "stages", "status")] == ["failed", "failed", None]


def test_points_without_a_row_are_counted(sweep):
    assert sweep.missing == 0
    assert replace(sweep, rows=sweep.rows[:-2]).missing == 2


def test_a_claim_that_was_not_measured_says_how(tmp_path):
    cheap_plan(tmp_path, grid={"rate_y": "1,2"})
    with pytest.raises(InputError, match="claims need --measure verdicts"):
        ss.load_sweep(tmp_path).column_of("SnS:x")


@given(st.lists(st.floats(0, 100), min_size=1, max_size=9), st.integers(0, 4))
def test_the_median_is_that_of_the_sorted_rows(known, beyond):
    """The middle one of all, by counting; of an even number the mean of the middle two."""
    found = float(median(np.array([*known, *[np.inf] * beyond])))
    ranked = sorted(known) + [np.inf] * beyond
    lower, upper = ranked[(len(ranked) - 1) // 2], ranked[len(ranked) // 2]
    assert found == (lower + upper) / 2
    if not beyond:
        assert found == np.median(known)


def test_intervals_cover_the_mean_as_often_as_they_say():
    """Percentile intervals over 20 normal draws: a little less than 95 %, as is known of them."""
    rng = np.random.default_rng(1)
    hits = 0
    for _ in range(100):
        found = interval(rng.normal(size=20), np.mean, 0.95)
        assert found is not None
        hits += found[0] <= 0 <= found[1]
    assert 85 <= hits <= 99


@pytest.mark.parametrize("n", [2, 5, 12])
@pytest.mark.parametrize("statistic", [np.mean, np.median])
def test_intervals_are_those_of_scipy(n, statistic):
    from scipy.stats import bootstrap

    from stagescope.sweeping.columns import RESAMPLES

    values, rng = np.random.default_rng(n).normal(size=n), np.random.default_rng(0)
    how = {"n_resamples": RESAMPLES, "confidence_level": 0.9, "method": "percentile", "rng": rng}
    assert interval(values, statistic, 0.9) == pytest.approx(bootstrap((values,), statistic, **how).confidence_interval)


def test_a_row_is_found_and_recreated(sweep):
    row = sweep.find({"rate_y": 2.0000001, "optimizer": "flow"}, seed=1)
    assert row["seed"] == 1
    run = sweep.recreate(row, progress=False)
    expected = ss.run_study("scan-snap", rate_y=2.0, umin=0.2, seed=1, progress=False)
    np.testing.assert_array_equal(run.params["Z"], expected.params["Z"])
    assert run.config == expected.config


@pytest.mark.parametrize(
    ("at", "seed", "words"),
    [
        ({"rate_y": 3}, None, r"no row at rate_y=3; rate_y has 1, 2"),
        ({"rate_y": 1}, None, "say also optimizer"),
        ({"nope": 1}, None, "unknown axis"),
        ({"rate_y": 1, "optimizer": "flow"}, 9, "no row with seed 9.*seeds 0, 1, 2"),
    ],
)
def test_a_row_that_is_not_there(sweep, at, seed, words):
    with pytest.raises(InputError, match=words):
        sweep.find(at, seed)


def test_a_folder_without_a_sweep(tmp_path):
    with pytest.raises(NotARun, match="holds no sweep"):
        ss.load_sweep(tmp_path)
    (tmp_path / "sweep.json").write_text("{")
    with pytest.raises(NotARun, match="damaged"):
        ss.load_sweep(tmp_path)
    for version, words in ((99, "newer than 3; update"), (2, "older than 3; Stagescope 0.2 reads")):
        (tmp_path / "sweep.json").write_text(json.dumps({"schema_version": version}))
        with pytest.raises(InputError, match=words):
            ss.load_sweep(tmp_path)
    for text in ("{}", "[]", '{"schema_version": "3"}', '{"schema_version": 3}'):
        (tmp_path / "sweep.json").write_text(text)
        with pytest.raises(NotARun, match="damaged"):
            ss.load_sweep(tmp_path)


def test_cheap_options_are_those_of_the_study():
    assert set(CHEAP) <= set(ss.study("scan-snap").options.model_fields)


def test_the_table_holds_every_option(sweep):
    line = next(csv.DictReader(io.StringIO(sweep.csv())))
    assert json.loads(line["config"])["umin"] == 0.2


def test_a_value_typed_exactly_is_that_one(tmp_path):
    """Values that are as near to each other as a person's typing may be to one of them."""
    plan = cheap_plan(tmp_path, grid={"rate_y": [1.0, 1.000001]})
    fields = {"study": "scan-snap", "retry": 0, "status": "finished", "reason": "", "config": {}}
    RowWriter(tmp_path).commit([{**fields, "digest": p.digest, "seed": p.seed, "at": dict(p.values)} for p in points(plan)])
    assert ss.load_sweep(tmp_path).find({"rate_y": 1.000001})["at"] == {"rate_y": 1.000001}


def test_intervals_of_many_rows_do_not_hold_all_draws(monkeypatch):
    values = np.random.default_rng(2).normal(size=40)
    whole = interval(values, np.mean, 0.95)
    monkeypatch.setattr(statistics, "MOST_AT_ONCE", 10)
    assert interval(values, np.mean, 0.95) == whole


def test_an_event_that_a_model_does_not_have_is_not_merely_late(tmp_path):
    """A narrow model has no E4; of a wide one it had not come, nor a second cycle of what came once."""
    plan = cheap_plan(tmp_path, study_name="focus-dilution", grid={"width": "2,4"}, until=1.0)
    fields = {"study": "focus-dilution", "retry": 0, "status": "finished", "reason": "", "config": {}, "end": 1.0}
    events = [{"E2": None, "focus0": 1.0, "focus0.2": 3.0}, {"E2": None, "E4": None, "focus0": 1.0}]
    rows = [
        {**fields, "digest": p.digest, "seed": 0, "at": dict(p.values), "events": e}
        for p, e in zip(points(plan), events, strict=True)
    ]
    RowWriter(tmp_path).commit(rows)
    sweep = ss.load_sweep(tmp_path)
    assert [sweep.column_of("E4").reading(row).lack for row in sweep.rows] == ["none", "not reached"]
    assert [sweep.column_of("focus0.2").reading(row).lack for row in sweep.rows] == [None, "not reached"]
    assert [entry["beyond"] for entry in sweep.statistics("E4")] == [0, 1]


def test_a_tag_that_another_column_has_keeps_both(sweep):
    """A claim of one's own may be called like an event, a number, an axis or a column that every table has."""
    tags = ("snap", "loss", "rate_y", "status", "own:x")
    rows = tuple({**row, "verdicts": dict.fromkeys(tags, "confirmed")} for row in sweep.rows)
    made = replace(sweep, rows=rows)
    assert made.column("loss") == sweep.column("loss")
    assert made.column("snap") == sweep.column("snap")
    assert made.column("rate_y") == sweep.column("rate_y")
    for name in ("claim snap", "claim loss", "claim rate_y", "claim status", "own:x"):
        assert set(made.column(name)) == {"confirmed"}


def test_a_text_of_the_table_is_never_a_formula(tmp_path):
    plan = cheap_plan(tmp_path, grid={"rate_y": "1"})
    place = {"digest": "a", "study": plan.study, "seed": 0, "at": {"rate_y": -1.0}, "config": {}, "retry": 0}
    RowWriter(tmp_path).commit([{**place, "status": "failed", "reason": "=cmd|' /C calc'!A0", "numbers": {"@loss": -2.5}}])
    header, line = csv.reader(io.StringIO(ss.load_sweep(tmp_path).csv()))
    found = dict(zip(header, line, strict=True))
    assert (found["reason"], found["'@loss"], found["rate_y"]) == ("'=cmd|' /C calc'!A0", "-2.5", "-1.0")
