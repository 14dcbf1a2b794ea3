"""A law speaks for a run only where it passes through every recorded frame."""

import json
import tracemalloc
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import stagescope as ss
from stagescope.cli.main import main
from stagescope.readings import replay as replaying
from stagescope.readings.rebuild import field_of, replay_of
from stagescope.readings.replay import ReplayTest, position_of
from stagescope.runs.run import Arrays, Run

RUNS = {
    "focus-dilution": {"until": 120.0, "frames": 60},
    "linear-icl": {"until": 60.0},
    "scan-snap": {"until": 60.0, "frames": 40},
    "markov-icl": {"preset": "doubly-stochastic", "frames": 40},
    "incremental": {"preset": "published-flow", "frames": 40},
}
FLOWS = list(RUNS)
ONE_START = ("scan-snap", "markov-icl")
"""Here every seed begins with the same parameters."""


@cache
def made(study: str, seed: int = 0) -> Run:
    return ss.run_study(study, seed=seed, progress=False, **RUNS[study])


def blocks(run: Run) -> dict[str, np.ndarray]:
    return {name: np.array(run.params[name], dtype=float) for name in run.params}


def with_blocks(run: Run, params: dict[str, np.ndarray]) -> Run:
    """The run with other frames; their loss is that of the objective."""
    objective = field_of(run.spec).objective
    loss = [objective.value({name: block[i] for name, block in params.items()}) for i in range(run.frames)] if objective else None
    series = {**run.series, **({} if loss is None else {"loss": np.array(loss)})}
    return replace(run, params=Arrays.of(params), series=Arrays.of(series), memo={}, path=None)


def straight(run: Run) -> Run:
    share = position_of(run) / position_of(run)[-1]
    ends = {name: (block[0], block[-1] - block[0]) for name, block in blocks(run).items()}
    return with_blocks(run, {name: first + np.multiply.outer(share, moved) for name, (first, moved) in ends.items()})


def warped(run: Run) -> Run:
    end = run.t[-1]
    return replace(run, series=Arrays.of({**run.series, "t": end * (run.t / end) ** 1.35}), memo={}, path=None)


def jittered(run: Run) -> Run:
    """By 1 %, but for the first frame."""
    noise = np.random.default_rng(1)
    factors = {name: 1 + 0.01 * noise.standard_normal(block.shape) for name, block in blocks(run).items()}
    return with_blocks(
        run, {name: np.concatenate([block[:1], (block * factors[name])[1:]]) for name, block in blocks(run).items()}
    )


def swapped(run: Run) -> Run:
    """The middle third is that of another seed."""
    other, middle = made(run.study or "", 1), slice(run.frames // 3, 2 * run.frames // 3)
    params = blocks(run)
    for name, block in blocks(ss.replay(other, ss.AtTimes(at=tuple(run.t.tolist())))).items():
        params[name][middle] = block[middle]
    return with_blocks(run, params)


@pytest.mark.parametrize("study", FLOWS)
def test_a_run_is_passed_through(study, tmp_path):
    assert ss.verify_replay(made(study)).passes is True
    stored = ss.load(made(study).save(tmp_path / "run").path)
    assert ss.reading(stored).replay_test.passes is True
    assert (ss.reading(stored).replay_test.largest or 0) <= 1


@pytest.mark.parametrize("false", [straight, warped, jittered, swapped], ids=lambda each: each.__name__)
@pytest.mark.parametrize("study", FLOWS)
def test_false_frames_are_missed(study, false):
    run = made(study)
    test = ss.verify_replay(false(run))
    if false is swapped and study in ONE_START:
        assert test.passes is True, "frames of another seed are those of this run"
        return
    assert test.passes is False
    assert test.first is not None
    assert 0 < test.first.frame <= (run.frames // 3 if false is swapped else 2)
    assert test.first.units > 1


@pytest.mark.parametrize("study", ["focus-dilution", "scan-snap", "linear-icl"])
def test_false_frames_confirm_nothing_and_say_so_first(study):
    shown = straight(made(study))
    always, holds = ss.Regime(True, "always"), ss.Comparison(0, 0, 0, True, "")
    own = ss.Claim(tag="own:any", statement="Anything", regime=lambda _: always, compare=lambda _: holds)
    stages, ledger = ss.stages(shown), ss.check(shown, claims=own)
    assert next(iter(stages.notes)) == "replay"
    assert ledger.notes == (ss.reading(shown).replay_note,)
    assert "confirmed" not in {row.verdict for row in ledger}
    assert ss.report(shown, skip=("ladder", "prediction"), progress=False).notes[0] == ledger.notes[0]
    gaps = np.diff(shown.time)
    for low, high in filter(None, stages.intervals.values()):
        assert high - low >= gaps.min()
    curves = ss.reading(shown).curves
    assert len(curves.time) == shown.frames, "the frames are read as they are"


def test_frames_of_another_seed_are_not_those_of_the_run():
    run, other = (made("focus-dilution", seed) for seed in (0, 1))
    stolen = replace(run, params=other.params, series=other.series, memo={})
    assert ss.verify_replay(other).passes
    assert ss.verify_replay(stolen).first.frame == 0
    assert "confirmed" not in {row.verdict for row in ss.check(stolen)}


@pytest.mark.parametrize("study", ["focus-dilution", "scan-snap"])
def test_single_precision_is_an_error_of_storage(study):
    run = made(study)
    stored = with_blocks(run, {name: block.astype(np.float32).astype(float) for name, block in blocks(run).items()})
    stored = replace(
        stored, series=Arrays.of({**stored.series, "loss": run.series["loss"].astype(np.float32).astype(float)}), memo={}
    )
    assert ss.verify_replay(stored).passes
    assert ss.verify_replay(jittered(stored)).passes is False


@pytest.mark.parametrize(("optimizer", "least"), [("gd", 1e-11), ("heavy-ball", 1e-11), ("adam", 1e-4)])
def test_steps_on_known_batches_agree_to_rounding(optimizer, least):
    """From zeros, Adam's first step is g/(|g| + 1e-8): a gradient that is off by rounding is seen as one part in a million."""
    options = {"optimizer": optimizer, "steps": 60, "frames": 20}
    run = ss.run_study("scan-snap", num_common=2, num_unique=3, length=16, batch=8, progress=False, **options)
    assert ss.verify_replay(run).largest == 0

    def last_frame_moved(factor):
        params = blocks(run)
        params["Z"][-1] *= 1 + factor
        return ss.verify_replay(with_blocks(run, params))

    assert last_frame_moved(least).first.frame == run.frames - 1
    assert last_frame_moved(1e-15).passes


@pytest.mark.parametrize("optimizer", ["gd", "heavy-ball", "adam"])
def test_steps_of_another_processor_pass(optimizer):
    """Its sums are rounded otherwise: each frame is off by a few roundings."""
    options = {"optimizer": optimizer, "steps": 60, "frames": 20}
    run = ss.run_study("scan-snap", num_common=2, num_unique=3, length=16, batch=8, progress=False, **options)
    rounded = np.random.default_rng(0)
    params = {name: block * (1 + 4e-16 * rounded.standard_normal(block.shape)) for name, block in blocks(run).items()}
    assert ss.verify_replay(with_blocks(run, params)).passes


def test_growth_of_errors_is_measured():
    """x' = x (1 - x^2) grows e^10 times: an error of the start by one unit is passed at the end, one of 100,000 is not."""
    well = ss.JaxObjective(lambda p: ((p["x"] ** 2 - 1) ** 2).sum() / 4, name="well")
    flow = {"dynamics": ss.GradientFlow(rtol=1e-8), "until": 12.0, "record": ss.Uniform(frames=30), "progress": False}
    run = ss.evolve(well, {"x": np.full(2, 1e-4)}, **flow)
    for factor, passes in ((1 + 1e-8, True), (1 + 1e-3, False)):
        other = ss.evolve(well, {"x": factor * np.full(2, 1e-4)}, **flow)
        mixed = {"x": np.concatenate([run.params["x"][:1], other.params["x"][1:]])}
        shown = replace(run, params=Arrays.of(mixed), series=other.series, memo={})
        assert ss.verify_replay(shown, well).passes is passes, factor


def test_where_errors_decide_nothing_is_decided():
    """Steps of length 1 on this loss are the logistic map: an error of rounding is doubled by each, and is all after 50."""
    chaos = ss.JaxObjective(lambda p: (-3 * p["x"] ** 2 / 2 + 4 * p["x"] ** 3 / 3).sum(), name="logistic")
    steps = {"dynamics": ss.Descent(optimizer=ss.GD(), lr=1.0, steps=90), "record": ss.Every(), "progress": False}
    run, near, far = (ss.evolve(chaos, {"x": np.full(1, x)}, **steps) for x in (0.3, np.nextafter(0.3, 1), 0.3001))
    for other, passes in ((run, True), (near, None), (far, False)):
        mixed = {"x": np.concatenate([run.params["x"][:1], other.params["x"][1:]])}
        loss = np.concatenate([run.series["loss"][:1], other.series["loss"][1:]])
        shown = replace(run, params=Arrays.of(mixed), series=Arrays.of({**run.series, "loss": loss}), memo={})
        assert ss.verify_replay(shown, chaos).passes is passes


@pytest.mark.parametrize("study", FLOWS)
def test_a_replay_with_more_frames_takes_the_steps_of_the_run(study):
    """So that it passes through each recorded frame bit by bit, and needs no looser replay."""
    run = made(study)
    law = replay_of(run, field_of(run.spec))
    middles = (position_of(run)[1:] + position_of(run)[:-1]) / 2
    assert law.refined(middles).frames == 2 * run.frames - 1
    assert law.test.largest == 0


@pytest.mark.parametrize("study", FLOWS)
def test_other_steps_of_the_solver_pass(study):
    """Those of another processor, say, or of a run whose first record was left out: errors differ, and are explained."""
    run = made(study)
    law = replay_of(run.only(np.array([0, *range(2, run.frames)])), field_of(run.spec))
    assert law.refined(run.t[1:2] * 1e-3) is not None
    assert 0 < law.test.largest < 0.1
    assert ss.verify_replay(jittered(law.run)).passes is False


def test_where_a_replay_decides_nothing_nothing_is_confirmed(tmp_path):
    """From where rounding decides, a run is not told from another one."""
    run = made("scan-snap")
    run.save(tmp_path / "run")
    reading = ss.reading(tmp_path / "run")
    row = next(row for row in reading.ledger if row.verdict == "confirmed")
    lost = ReplayTest(None, "t", run.frames, 0.5, reason="a replay decides nothing from t = 5 on")
    vars(reading)["replay_test"] = lost
    assert reading._unless_missed(row).verdict == "inconclusive"
    assert reading.replay_note == lost.reason


def test_runs_without_a_law_are_not_replayed():
    curve = ss.from_arrays(step=range(20), loss=[1 / (k + 1) for k in range(20)])
    assert ss.verify_replay(curve).passes is None
    run = made("scan-snap")
    assert ss.verify_replay(run.only(np.arange(1))).passes is None
    assert ss.verify_replay(run.only(np.arange(5, 20))).passes is True, "its study makes the start again"


def test_a_law_that_breaks_down_misses_the_frames():
    steep = ss.JaxObjective(lambda p: -(p["x"] ** 4).sum(), name="steep")
    run = ss.evolve(steep, {"x": np.full(1, 0.5)}, ss.GradientFlow(), until=0.2, record=ss.Uniform(frames=5), progress=False)
    shown = replace(run, series=Arrays.of({**run.series, "t": 100 * run.t}), memo={})
    test = ss.verify_replay(shown, steep)
    assert test.passes is False


def test_the_command_says_which_frame(tmp_path, capsys):
    run = made("scan-snap")
    run.save(tmp_path / "true")
    straight(run).save(tmp_path / "false")
    ss.from_arrays(step=range(20), loss=[1 / (k + 1) for k in range(20)]).save(tmp_path / "curve")
    for name, code in (("true", 0), ("false", 1), ("curve", 1)):
        with pytest.raises(SystemExit) as ended:
            main(["verify", "--replay", str(tmp_path / name), "--json"])
        assert ended.value.code == code
        answer = json.loads(capsys.readouterr().out)
        assert answer["intact"] is (code == 0)
        assert answer["replay"]["passes"] is {"true": True, "false": False, "curve": None}[name]


def test_a_start_that_was_not_recorded_is_made_again(tmp_path):
    """The study makes it of options and seed: a true run passes without its first frame, a straight line is missed."""
    run = made("focus-dilution")
    for name, late in (("true", run), ("false", straight(run))):
        late.only(np.arange(1, late.frames)).save(tmp_path / name)
    true, false = ss.check(tmp_path / "true"), ss.check(tmp_path / "false")
    moved = {row.tag for row, other in zip(true, ss.check(run), strict=True) if row.verdict != other.verdict}
    assert moved <= {"FD:predicted-times", "FD:critical-scale"}, "a saddle path begins at the first frame"
    assert not true.notes
    assert "does not make its frames" in false.notes[0]
    assert not [row.tag for row in false if row.verdict == "confirmed"]


def test_frames_whose_start_nobody_knows_confirm_nothing(tmp_path):
    run = made("focus-dilution")
    late = replace(run, study=None, config=None, memo={}).only(np.arange(1, run.frames))
    late.save(tmp_path / "late")
    ledger = ss.check(tmp_path / "late")
    assert "the start before it is not known" in ledger.notes[0]
    assert not [row.tag for row in ledger if row.verdict == "confirmed"]


@pytest.fixture(scope="module")
def wide():
    """25 MB of frames."""
    steps = {"optimizer": "gd", "lr": 0.5, "steps": 350, "frames": 351}
    return ss.run_study("focus-dilution", width=64, progress=False, **steps)


def largest_memory(use) -> int:
    """Bytes beyond those at the beginning."""
    tracemalloc.start()
    try:
        use()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_replay_does_not_keep_the_frames_of_the_run_again(wide, monkeypatch):
    monkeypatch.setattr(replaying, "PIECE", 2**16)
    size = sum(block.nbytes for block in blocks(wide).values())
    assert largest_memory(lambda: ss.verify_replay(wide)) < size / 4
    one_off = with_blocks(wide, {name: np.concatenate([block[:-1], block[-1:] * 1.01]) for name, block in blocks(wide).items()})
    assert largest_memory(lambda: ss.verify_replay(one_off)) < size / 4, "nor those of a looser replay"
    assert ss.verify_replay(one_off).first.frame == wide.frames - 1


def test_a_run_in_memory_is_kept_once(wide):
    size = sum(block.nbytes for block in blocks(wide).values())
    start = {name: block[0] for name, block in blocks(wide).items()}
    steps = {"dynamics": ss.Descent(lr=0.5, steps=350), "record": ss.Every(), "progress": False}
    runs = []
    most = largest_memory(lambda: runs.append(ss.evolve(field_of(wide.spec), start, **steps)))
    assert most < 1.5 * size, "64 of the frames wait, and are copied together"
    for name, block in blocks(wide).items():
        np.testing.assert_array_equal(runs[0].params[name], block)
