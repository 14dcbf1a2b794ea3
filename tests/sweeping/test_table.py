"""A sweep as a table."""

import csv
import io

import numpy as np
import pytest

import stagescope as ss
from stagescope.errors import InputError, NotARun
from stagescope.sweeping.points import points
from stagescope.sweeping.rows import RowWriter
from tests.sweeping.small import CHEAP, cheap_plan


@pytest.fixture
def sweep(tmp_path):
    """Rows with numbers that are known, three seeds a cell."""
    plan = cheap_plan(tmp_path, grid={"rate_y": "1,2", "optimizer": "flow,gd"}, seeds=3, umin=0.2)
    rows = []
    for point in points(plan):
        fields = {"digest": point.digest, "study": "scan-snap", "seed": point.seed, "at": dict(point.at), "retry": 0}
        fields |= {"config": dict(point.config), "status": "finished", "reason": "", "seconds": 0.5}
        if point.at["optimizer"] == "gd":
            fields |= {"status": "diverged", "reason": "too fast"}
        else:
            snap = None if point.seed == 2 else 10.0 * point.at["rate_y"] + point.seed
            fields |= {
                "events": {"snap": snap},
                "stages": ["uniform", "scan"],
                "starts": {"scan": 3.0},
                "durations": {"scan": None},
            }
            fields |= {"verdicts": {"SnS:x": "confirmed" if point.seed else "violated"}, "numbers": {"loss": 0.1}}
        rows.append(fields)
    RowWriter(tmp_path).commit(rows)
    return ss.load_sweep(tmp_path)


def test_columns(sweep):
    assert sweep.columns[:5] == ("rate_y", "optimizer", "seed", "status", "reason")
    assert {"snap", "stages", "stage scan", "duration scan", "SnS:x", "loss", "seconds", "digest"} <= set(sweep.columns)
    assert sweep.column("snap") == [10.0, 11.0, None, None, None, None, 20.0, 21.0, None, None, None, None]
    assert set(sweep.column("stages")) == {"uniform > scan", None}
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
    first = sweep.statistics("snap")[0]
    assert first["at"] == {"rate_y": 1.0, "optimizer": "flow"}
    assert (first["rows"], first["known"], first["mean"], first["median"]) == (3, 2, 10.5, 10.5)
    assert first["mean_interval"] == (10.0, 11.0)
    both = sweep.statistics("snap", by=["optimizer"])
    assert [entry["known"] for entry in both] == [4, 0]
    verdicts = sweep.statistics("SnS:x")[0]["shares"]
    assert verdicts["confirmed"]["share"] == pytest.approx(2 / 3)
    assert sweep.statistics("loss")[0]["mean_interval"] == pytest.approx((0.1, 0.1))
    assert sweep.statistics("snap") == sweep.statistics("snap")


def test_intervals_cover_the_mean_as_often_as_they_say():
    """Percentile intervals over 20 normal draws: a little less than 95 %, as is known of them."""
    from stagescope.sweeping.table import _interval

    rng = np.random.default_rng(1)
    hits = 0
    for _ in range(100):
        found = _interval(rng.normal(size=20), np.mean, 0.95)
        assert found is not None
        hits += found[0] <= 0 <= found[1]
    assert 85 <= hits <= 99


@pytest.mark.parametrize("n", [2, 5, 12])
@pytest.mark.parametrize("statistic", [np.mean, np.median])
def test_intervals_are_those_of_scipy(n, statistic):
    from scipy.stats import bootstrap

    from stagescope.sweeping.table import RESAMPLES, _interval

    values, rng = np.random.default_rng(n).normal(size=n), np.random.default_rng(0)
    how = {"n_resamples": RESAMPLES, "confidence_level": 0.9, "method": "percentile", "rng": rng}
    assert _interval(values, statistic, 0.9) == pytest.approx(bootstrap((values,), statistic, **how).confidence_interval)


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
    (tmp_path / "sweep.json").write_text('{"schema_version": 99}')
    with pytest.raises(InputError, match="schema 99"):
        ss.load_sweep(tmp_path)


def test_cheap_options_are_those_of_the_study():
    assert set(CHEAP) <= set(ss.study("scan-snap").options.model_fields)
