"""A run that is killed, interrupted or resumed twice ends bit for bit as the one that was left alone.

The long version, with 200 kills at random instants, is `python -m validation kill`.
"""

import os
import shutil
import signal
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import stagescope as ss
from stagescope.cli import main as cli
from stagescope.cli.main import run as command
from stagescope.core.errors import DamagedRun, InputError, StagescopeError
from stagescope.flow import evolve as evolving
from stagescope.flow import gradient_flow as flow
from stagescope.readings.rebuild import own_objective
from stagescope.runs import manifest as manifests
from validation import killing


@pytest.fixture
def restarts(monkeypatch):
    """Flows restart as often as in the processes that are killed."""
    for name in ("FEWEST", "MOST"):
        monkeypatch.setattr(flow, name, killing.RESTART)


KILLED = f"""
import os, signal, sys
from stagescope.cli.main import main
from stagescope.flow import evolve as evolving
from stagescope.flow import gradient_flow as flow

evolving.FIRST_COMMIT = evolving.NEXT_COMMIT = 0.0  # a commit at every point
flow.FEWEST = flow.MOST = {killing.RESTART}
rename, name, left = os.replace, sys.argv.pop(1), int(sys.argv.pop(1))

def killed(old, new):
    global left
    left -= name in str(new)
    if not left:
        os.kill(os.getpid(), signal.SIGKILL)
    return rename(old, new)

os.replace = killed
main()
"""
SHORT = {
    "flow": ("--until", "50", "--frames", "40"),
    "heavy-ball": ("--optimizer", "heavy-ball", "--length", "20", "--batch", "16", "--steps", "2000"),
    "adam": ("--optimizer", "adam", "--lr", "0.01", "--length", "20", "--batch", "16", "--steps", "2000"),
}


@pytest.mark.parametrize(
    ("kind", "instants"),
    [
        pytest.param(
            "flow", [("victim/manifest.json", 3), ("victim/data.zarr/loss", 1)], id="flow, twice", marks=pytest.mark.long
        ),
        pytest.param("adam", [("victim/checkpoint", 5)], id="adam", marks=pytest.mark.long),
    ],
)
def test_killed_runs_open_and_resume_bit_for_bit(tmp_path, kind, instants):
    """Killed in the middle of a commit, before a file gets its name for the n-th time, and resumed. The process kills itself,
    so that no machine is too fast or too slow for it; `python -m validation kill` kills at random."""
    words, folder = ("run", "scan-snap", *SHORT[kind], "--quiet", "--out"), tmp_path / "victim"

    def ended(name, time, *command):
        call = [sys.executable, "-c", KILLED, name, str(time), *command]
        return subprocess.run(call, capture_output=True, text=True, timeout=killing.PATIENCE)

    never = ("no file of this name", 1)
    assert ended(*never, *words, str(tmp_path / "reference")).returncode == 0
    start, frames = [*words, str(folder)], []
    for name, time in instants:
        killed = ended(name, time, *start)
        assert killed.returncode == -signal.SIGKILL, killed.stderr
        frames.append(ss.load(folder).frames)
        assert not ss.load(folder).done
        assert killing.position(folder) > 0, "a checkpoint after the start"
        start = ["resume", str(folder), "--quiet"]
    assert ended(*never, *start).returncode == 0
    assert frames == sorted(set(frames)), "the second kill came later than the first"
    assert [event["frames"] for event in killing.events(folder) if event["event"] == "resumed"] == frames
    assert killing.arrays(folder) == killing.arrays(tmp_path / "reference")


SIGNALLED = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a process in the background may have been started without one
from stagescope.cli.main import main
from stagescope.flow import evolve as evolving

walk, number = evolving.Journey.walk, int(sys.argv.pop(1))

def signalled(journey, state):
    for i, point in enumerate(walk(journey, state)):
        if i == 3:
            os.kill(os.getpid(), number)
        yield point

evolving.Journey.walk = signalled
main()
"""


@pytest.mark.parametrize(
    ("kind", "number", "code"),
    [("flow", signal.SIGINT, 130), pytest.param("heavy-ball", signal.SIGTERM, 143, marks=pytest.mark.long)],
)
def test_a_signal_leaves_a_resumable_run(tmp_path, kind, number, code):
    """Ctrl-C, and the signal of a batch system: what continues the run is printed. The process sends itself the signal at a
    point of its walk, so that no machine is too fast or too slow for it."""
    folder = tmp_path / "run"
    words = (str(int(number)), "run", "scan-snap", *SHORT[kind], "--quiet", "--out", str(folder))
    done = subprocess.run([sys.executable, "-c", SIGNALLED, *words], capture_output=True, text=True, timeout=killing.PATIENCE)
    assert done.returncode == code, done.stderr
    assert done.stderr == f"stagescope: interrupted; continue with `stagescope resume {folder}`\n"
    assert ss.verify(folder) == []
    assert ss.load(folder).status == "interrupted"
    assert command(["resume", str(folder), "--quiet"]) == 0
    assert ss.load(folder).status == "finished"


# the same in one process, where the instant can be chosen


def bowl(params):
    """Blocks out of alphabetical order, one of them a number: their order and shapes have to survive the disk."""
    return 0.5 * (params["b"] ** 2).sum() + ((params["a"] - 1) ** 4).sum() + (params["c"] - 2) ** 2


BOWL = ss.JaxObjective(bowl)
"""Compiled once for all tests."""
START = {"c": np.array(0.0), "b": np.array([1.0, 2.0]), "a": np.array([3.0, 4.0])}
DYNAMICS = {
    "flow": (ss.GradientFlow(restart_frames=7), 5.0),
    "lsoda": (ss.GradientFlow(method="lsoda", restart_frames=7), 5.0),
    "gd": (ss.Descent(lr=0.01, steps=60), None),
    "heavy-ball": (ss.Descent(optimizer=ss.HeavyBall(), lr=0.01, steps=60), None),
    "adam": (ss.Descent(optimizer=ss.Adam(), lr=0.01, steps=60), None),
}


@pytest.fixture
def stop_after(monkeypatch):
    """Commit as often as possible, and press Ctrl-C after so many points of the walk."""
    walk = evolving.Journey.walk

    def arm(points):
        def cut(journey, state):
            for i, point in enumerate(walk(journey, state)):
                if i == points:
                    raise KeyboardInterrupt
                yield point

        monkeypatch.setattr(evolving.Journey, "walk", walk if points is None else cut)

    monkeypatch.setattr(evolving, "FIRST_COMMIT", 0.0)
    monkeypatch.setattr(evolving, "NEXT_COMMIT", 0.0)
    return arm


@pytest.mark.long
@pytest.mark.parametrize("kind", DYNAMICS)
def test_own_objective_resumes_with_the_objective(tmp_path, stop_after, kind):
    (dynamics, until), loss = DYNAMICS[kind], BOWL
    whole = ss.evolve(loss, START, dynamics, until=until)
    for points in (3, 20):
        folder = tmp_path / str(points)
        stop_after(points)
        with pytest.raises(ss.Interrupted, match=rf"ss\.resume\('{folder}', objective\)"):
            ss.evolve(loss, START, dynamics, until=until, out=folder)
        early = ss.load(folder)
        assert early.status == "interrupted"
        assert 1 <= early.frames < whole.frames
        with pytest.raises(ss.Interrupted):
            ss.resume(folder, loss)
        stop_after(None)
        with pytest.raises(InputError, match=r"your own objective 'bowl'.*`ss.resume\(folder, objective\)`"):
            ss.resume(folder)
        found = ss.resume(folder, loss)
        assert found.status == "finished"
        for name, values in {**whole.series, **whole.params}.items():
            assert {**found.series, **found.params}[name].tobytes() == values.tobytes(), name


@pytest.mark.long
@pytest.mark.parametrize("optimizer", ["gd", "heavy-ball", "adam"])
def test_sampled_steps_draw_the_same_after_a_resume(tmp_path, stop_after, optimizer):
    """Draws depend on the seed and the step, not on what was drawn before."""
    options: dict[str, Any] = {"optimizer": optimizer, "length": 20, "batch": 16, "steps": 60, "lr": 0.1, "seed": 5}
    whole = ss.run_study("scan-snap", out=tmp_path / "whole", **options)
    assert whole.done
    stop_after(25)
    with pytest.raises(ss.Interrupted):
        ss.run_study("scan-snap", out=tmp_path / "run", **options)
    stop_after(None)
    assert 1 < ss.load(tmp_path / "run").frames < whole.frames
    assert ss.resume(tmp_path / "run").done
    assert killing.arrays(tmp_path / "run") == killing.arrays(tmp_path / "whole")


@pytest.mark.long
@pytest.mark.parametrize(
    "options",
    [
        {"form": "finite", "length": 4, "until": 60.0},
        {"form": "sampled", "optimizer": "sgd", "batch": 16, "steps": 60},
        {"form": "sampled", "optimizer": "adam", "batch": 16, "steps": 60, "lr": 0.01},
        {"form": "sampled", "optimizer": "gd", "steps": 60},
    ],
    ids=["finite flow", "sgd", "adam", "gd"],
)
def test_finite_contexts_go_on_the_same_after_a_resume(tmp_path, stop_after, options, restarts):
    """The law and the sample are made again from the spec; minibatches depend on the seed and the step alone."""
    more = {"seed": 5, "frames": 61} | ({"length": 20, "sequences": 64} if options["form"] == "sampled" else {})
    whole = ss.run_study("focus-dilution", out=tmp_path / "whole", **options, **more)
    assert whole.done
    stop_after(25)
    with pytest.raises(ss.Interrupted):
        ss.run_study("focus-dilution", out=tmp_path / "run", **options, **more)
    stop_after(None)
    assert 1 < ss.load(tmp_path / "run").frames < whole.frames
    assert ss.resume(tmp_path / "run").done
    assert killing.arrays(tmp_path / "run") == killing.arrays(tmp_path / "whole")


@pytest.mark.parametrize(
    "options",
    [
        {"batch": 16},
        {"model": "content", "optimizer": "adamw", "batch": 16, "clip": 1.0, "precision": "float32"},
        {"model": "content", "fresh": True, "optimizer": "heavy-ball"},
        {"model": "transformer", "optimizer": "adamw", "batch": 16, "clip": 1.0, "width": 6, "mlp": 4},
    ],
    ids=["heads", "content", "content, fresh", "transformer"],
)
def test_students_go_on_the_same_after_a_resume(tmp_path, stop_after, options):
    """Sequences, minibatches, fresh draws and dropout depend on the seed and the step; moments come from the checkpoint."""
    more = {"vocab": 5, "sequences": 40, "targets": 3, "steps": 20, "record": "every-step", "seed": 5, "progress": False}
    whole = ss.run_study("incremental", out=tmp_path / "whole", **options, **more)
    assert whole.done
    stop_after(9)
    with pytest.raises(ss.Interrupted):
        ss.run_study("incremental", out=tmp_path / "run", **options, **more)
    stop_after(None)
    assert 1 < ss.load(tmp_path / "run").frames < whole.frames
    assert ss.resume(tmp_path / "run").done
    assert killing.arrays(tmp_path / "run") == killing.arrays(tmp_path / "whole")


TRANSFORMER = {"model": "transformer", "vocab": 50, "width": 6, "window": 6}


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({}, id="topics", marks=pytest.mark.long),
        pytest.param({"decay": 0.1}, id="topics, decaying", marks=pytest.mark.long),
        pytest.param({"optimizer": "adam"}, id="topics, adam", marks=pytest.mark.long),
        pytest.param({**TRANSFORMER, "batch": 3, "decay": 0.1}, id="transformer", marks=pytest.mark.long),
        pytest.param({**TRANSFORMER, "streams": 3, "layers": 2, "dropout": 0.3}, id="transformer, streams, dropout"),
    ],
)
def test_text_snap_goes_on_the_same_after_a_resume(tmp_path, stop_after, options):
    """Windows are cut again from the corpus; batches, dropout and step sizes depend on the seed and the step alone."""
    more = {"steps": 100, "seed": 5, "progress": False}
    whole = ss.run_study("text-snap", out=tmp_path / "whole", **options, **more)
    assert whole.done
    stop_after(2)
    with pytest.raises(ss.Interrupted):
        ss.run_study("text-snap", out=tmp_path / "run", **options, **more)
    stop_after(None)
    assert ss.load(tmp_path / "run").frames < whole.frames
    assert ss.resume(tmp_path / "run").done
    assert killing.arrays(tmp_path / "run") == killing.arrays(tmp_path / "whole")


def test_the_command_line_says_how_to_give_an_own_objective(tmp_path, stop_after, capsys):
    stop_after(5)
    with pytest.raises(ss.Interrupted):
        ss.evolve(BOWL, START, ss.Descent(lr=0.01, steps=60), out=tmp_path / "run")
    assert command(["resume", str(tmp_path / "run")]) == 2
    assert "add --objective MODULE:NAME" in capsys.readouterr().err


def test_a_stop_condition_holds_after_a_resume(tmp_path, stop_after):
    dynamics, stop = ss.Descent(lr=0.01, steps=60), ss.LossBelow(value=10.0)
    loss = BOWL
    whole = ss.evolve(loss, START, dynamics, stop=stop)
    assert whole.status == "stopped"
    stop_after(2)
    with pytest.raises(ss.Interrupted):
        ss.evolve(loss, START, dynamics, stop=stop, out=tmp_path / "run")
    stop_after(None)
    found = ss.resume(tmp_path / "run", loss)
    assert (found.status, found.reason) == (whole.status, whole.reason)
    np.testing.assert_array_equal(found.params["b"], whole.params["b"])


def test_the_same_run_twice_is_the_same_bytes(tmp_path):
    """Same seed, same machine, same threads: every stored array, not only nearly so."""
    losses = {"1": BOWL, "2": ss.JaxObjective(bowl)}
    for kind, (dynamics, until) in DYNAMICS.items():
        for copy, loss in losses.items():
            ss.evolve(loss, START, dynamics, until=until, out=tmp_path / f"{kind}{copy}")
        assert killing.arrays(tmp_path / f"{kind}1") == killing.arrays(tmp_path / f"{kind}2")


def test_a_finished_run_is_not_resumed(tmp_path, capsys):
    folder = tmp_path / "run"
    assert command(["run", "scan-snap", "--until", "5", "--frames", "10", "--quiet", "--out", str(folder)]) == 0
    before = killing.arrays(folder)
    with pytest.raises(InputError, match="is finished already: nothing to resume"):
        ss.resume(folder)
    assert command(["resume", str(folder)]) == 2
    assert capsys.readouterr().err == f"stagescope: {folder} is finished already: nothing to resume\n"
    assert killing.arrays(folder) == before


@pytest.mark.long
def test_a_run_that_failed_says_so_and_is_not_resumed(tmp_path, capsys):
    loss, folder = BOWL, tmp_path / "run"
    run = ss.evolve(loss, START, ss.Descent(lr=1e10, steps=50), out=folder)
    assert run.status == "diverged"
    assert run.reason.startswith("diverged at step 2")
    assert ss.load(folder).frames == run.frames == 2
    assert ss.verify(folder) == []
    with pytest.raises(StagescopeError, match=r"diverged at step 2.*it would fail again; start it anew"):
        ss.resume(folder, loss)
    assert command(["resume", str(folder)]) == 1
    assert "diverged at step 2" in capsys.readouterr().err


def test_a_damaged_run_is_not_resumed(tmp_path, stop_after):
    stop_after(5)
    with pytest.raises(ss.Interrupted):
        ss.evolve(BOWL, START, ss.Descent(lr=0.01, steps=60), out=tmp_path / "run")
    stop_after(None)
    (checkpoint,) = (tmp_path / "run/checkpoint").iterdir()
    good = checkpoint.read_bytes()
    checkpoint.write_bytes(good[:-1] + bytes([good[-1] ^ 1]))
    with pytest.raises(DamagedRun, match=checkpoint.name):
        ss.resume(tmp_path / "run", BOWL)
    checkpoint.write_bytes(good)
    assert ss.resume(tmp_path / "run", ss.JaxObjective(bowl)).done, "an objective of its own, compiled anew"


# threads, signals and objectives

WIDE = """
import numpy as np
import stagescope as ss

class Wide(ss.Objective):
    def loss(self, params, data):
        return 0.5 * (params["x"] ** 2).sum()

    def describe(self):
        return {"type": "own", "name": "wide"}

    def step_gradient(self, layout):
        def gradient(theta, step, out):
            out[:] = theta * np.dot(theta, theta)  # in pieces, one for each thread of BLAS
        return gradient
"""
CUT = """
import os
os.environ["OPENBLAS_NUM_THREADS"] = "4"
import numpy as np
import stagescope as ss
from stagescope.core import threads
from stagescope.flow import evolve as evolving
from wide import Wide

x, walk, many = np.random.default_rng(1).normal(size=70_001) / 100, evolving.Journey.walk, threads.blas_threads()

def cut(journey, state):
    for i, point in enumerate(walk(journey, state)):
        if i == 3:
            raise KeyboardInterrupt
        yield point

evolving.Journey.walk = cut
try:
    ss.evolve(Wide(), {"x": x}, ss.Descent(lr=0.01, steps=6), out="run")
except ss.Interrupted:
    assert threads.blas_threads() == many, "as before"
"""


@pytest.mark.long
@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one core, one thread")
def test_threads_of_blas_decide_no_bit(tmp_path, monkeypatch):
    """Started in Python with several threads and cut, resumed by the command with one: as an uninterrupted run."""
    (tmp_path / "wide.py").write_text(WIDE)
    subprocess.run([sys.executable, "-c", CUT], cwd=tmp_path, check=True, timeout=killing.PATIENCE)
    cut = ss.load(tmp_path / "run")
    assert cut.frames == 4
    assert cut.provenance["environment"]["threads"]["blas"] == 1
    assert cut.provenance["environment"]["threads"]["OPENBLAS_NUM_THREADS"] == "4"
    monkeypatch.chdir(tmp_path)
    assert command(["resume", "run", "--objective", "wide:Wide", "--quiet"]) == 0
    ss.evolve(own_objective("wide:Wide"), cut.at(0), ss.Descent(lr=0.01, steps=6), out=tmp_path / "whole")
    assert killing.arrays(tmp_path / "run") == killing.arrays(tmp_path / "whole")


@pytest.fixture
def handlers():
    """Those of this process afterwards."""
    before = {kind: signal.getsignal(kind) for kind in (signal.SIGTERM, signal.SIGHUP)}
    yield
    for kind, handler in before.items():
        signal.signal(kind, handler)


def test_a_hangup_ends_a_command_unless_nohup_says_otherwise(handlers, monkeypatch):
    """The exit code is 128 plus the number of the signal; a second one does not disturb the last commit."""

    def hung_up(_):
        try:
            os.kill(os.getpid(), signal.SIGHUP)
        except KeyboardInterrupt:
            os.kill(os.getpid(), signal.SIGTERM)
            return 130
        return 0

    monkeypatch.setattr(cli, "run", hung_up)
    for handler, code in ((signal.SIG_DFL, 129), (signal.SIG_IGN, 0)):
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGHUP, handler)
        with pytest.raises(SystemExit) as ended:
            cli.main([])
        assert ended.value.code == code


@pytest.mark.long
@pytest.mark.skipif(shutil.which("nohup") is None, reason="there is no nohup")
def test_the_real_nohup(tmp_path, monkeypatch):
    """A hangup of the terminal does not end the run."""
    monkeypatch.setattr(killing, "_COMMAND", ["nohup", *killing._COMMAND])
    folder = tmp_path / "run"
    process = killing.spawn(*killing.run_arguments("heavy-ball", folder))
    killing.wait_for_commit(process, folder, None)
    process.send_signal(signal.SIGHUP)
    for _ in range(2):
        killing.wait_for_commit(process, folder, killing.last_commit(folder))
    assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    killing.finish(process, 143)


@pytest.mark.long
@pytest.mark.parametrize("kind", ["gd", "flow"])
def test_ctrl_c_commits_the_last_state(tmp_path, stop_after, monkeypatch, kind):
    """Also where no commit was due; frames after the last state are made again."""
    (dynamics, until), loss = DYNAMICS[kind], BOWL
    stop_after(40)
    monkeypatch.setattr(evolving, "FIRST_COMMIT", 1e9)
    with pytest.raises(ss.Interrupted):
        ss.evolve(loss, START, dynamics, until=until, out=tmp_path / "run")
    assert killing.position(tmp_path / "run") > 0
    stop_after(None)
    whole = ss.evolve(loss, START, dynamics, until=until, out=tmp_path / "whole")
    assert 1 < ss.load(tmp_path / "run").frames < whole.frames
    assert ss.resume(tmp_path / "run", loss).done
    assert killing.arrays(tmp_path / "run") == killing.arrays(tmp_path / "whole")


def test_resume_or_start(tmp_path, stop_after, capsys):
    """The same command starts, continues and leaves alone; another run in the folder is refused."""
    folder = tmp_path / "run"
    same = ["run", "scan-snap", "--until", "5", "--frames", "10", "--resume-or-start", "--out", str(folder)]
    stop_after(3)
    assert command(same) == 130
    assert ss.load(folder).status == "interrupted"
    stop_after(None)
    assert command(same) == 0
    assert ss.load(folder).status == "finished"
    assert [event["event"] for event in killing.events(folder)].count("resumed") == 1
    before = killing.last_commit(folder)
    capsys.readouterr()
    assert command(same) == 0
    assert capsys.readouterr().out == f"{folder} is finished already: nothing to do\n"
    assert command([*same, "--seed", "3"]) == 2
    assert "holds another run (seed is 0 there and 3 here)" in capsys.readouterr().err
    assert command([*same, "--overwrite"]) == 2
    assert killing.last_commit(folder) == before


def test_resume_or_start_knows_files_by_their_bytes(tmp_path, capsys):
    table, folder = tmp_path / "chain.csv", tmp_path / "run"
    table.write_text("0.5,0.5\n0.25,0.75\n")
    same = ["run", "focus-dilution", "--transition", str(table), "--until", "1", "--frames", "12", "--resume-or-start"]
    same += ["--out", str(folder)]
    assert command(same) == 0
    assert command(same) == 0
    assert "finished already" in capsys.readouterr().out
    table.write_text("0.5,0.5\n0.125,0.875\n")
    assert command(same) == 2
    assert "holds another run (transition_digest is " in capsys.readouterr().err


def test_resume_or_start_takes_the_default_of_an_option_that_an_older_run_lacks(tmp_path, capsys):
    folder = tmp_path / "run"
    same = ["run", "scan-snap", "--until", "5", "--frames", "10", "--resume-or-start", "--out", str(folder)]
    assert command(same) == 0
    found = manifests.read(folder)
    older = {name: value for name, value in found.config.items() if name != "rate_y"}
    found.model_copy(update={"config": older}).write(folder)
    capsys.readouterr()
    assert command(same) == 0
    assert "finished already" in capsys.readouterr().out
    assert command([*same, "--rate-y", "2"]) == 2
    assert "rate_y is 1.0 there and 2.0 here" in capsys.readouterr().err


@pytest.mark.parametrize("wrong", ["a damaged byte", "a link", "a link for its manifest"])
def test_resume_or_start_looks_before_it_says_that_a_run_is_done(tmp_path, capsys, wrong):
    folder = tmp_path / "run"
    same = ["run", "scan-snap", "--until", "5", "--frames", "10", "--resume-or-start", "--out", str(folder)]
    assert command(same) == 0
    if wrong == "a damaged byte":
        (folder / "data.zarr/loss/c/0").write_bytes(b"")
    elif wrong == "a link":
        (folder / "data.zarr/loss/c/1").symlink_to(tmp_path)
    else:
        (folder / "manifest.json").unlink()
        (folder / "manifest.json").symlink_to(tmp_path / "nowhere")
    capsys.readouterr()
    assert command(same) == 1
    said = capsys.readouterr()
    assert "already" not in said.out
    assert ("damaged" if wrong == "a damaged byte" else "it is a link") in said.err


@pytest.mark.long
def test_another_objective_or_other_threads_are_told(tmp_path, stop_after, recwarn):
    def scaled(factor):
        def bowl(params):
            return factor * (params["a"] ** 2).sum()

        return ss.JaxObjective(bowl)

    stop_after(3)
    for name in ("run", "other", "old"):
        with pytest.raises(ss.Interrupted):
            ss.evolve(scaled(1.0), {"a": START["a"]}, ss.Descent(lr=0.01, steps=9), out=tmp_path / name)
    stop_after(None)
    ss.resume(tmp_path / "run", scaled(1.0))
    assert not recwarn.list
    with pytest.warns(UserWarning, match="another objective than the one this run began with"):
        ss.resume(tmp_path / "other", scaled(2.0))
    manifest = manifests.read(tmp_path / "old")
    bare = {**manifest.environment, "threads": {}}
    manifest.model_copy(update={"environment": bare}).write(tmp_path / "old")
    with pytest.warns(UserWarning, match="no record of its BLAS threads"):
        ss.resume(tmp_path / "old", scaled(1.0))


@pytest.mark.long
@pytest.mark.parametrize("kind", DYNAMICS)
def test_a_gradient_that_is_not_finite_is_called_that(kind):
    def root(params):
        return (params["a"] ** 0.5).sum()

    dynamics, until = DYNAMICS[kind]
    run = ss.evolve(ss.JaxObjective(root), {"a": np.array([0.0, 1.0])}, dynamics, until=until)
    assert run.status == "diverged"
    assert ("the gradient is infinite" in run.reason) or ("the gradient is not finite" in run.reason)
