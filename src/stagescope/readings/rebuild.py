"""Make a run's field and dynamics again from its spec: to resume it, or to replay it with more frames."""

import warnings
from dataclasses import replace
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np

from stagescope.core.errors import DamagedRun, InputError, StagescopeError, message
from stagescope.core.own import fingerprint, imported, member, parts
from stagescope.core.params import Layout, Params
from stagescope.core.spec import Spec, build, types_of
from stagescope.core.threads import one_blas_thread
from stagescope.flow.descent import Descent
from stagescope.flow.dynamics import Dynamics
from stagescope.flow.evolve import Journey, Origin, evolve, proceed
from stagescope.flow.field import Field, JaxObjective, Objective, as_field
from stagescope.flow.fork import Forked
from stagescope.flow.gradient_flow import GradientFlow
from stagescope.flow.kept import keeping
from stagescope.flow.record import Record
from stagescope.landscape.spectrum import Pushed
from stagescope.readings import registry
from stagescope.readings.registry import load_type, missing
from stagescope.readings.replay import Replay, ReplayTest, missed_start, motion, no_tiny_start, position_of, why_no_replay
from stagescope.runs import manifest as manifests
from stagescope.runs import store
from stagescope.runs.run import DONE, Run

DYNAMICS = (Descent, GradientFlow, Forked, Pushed)
"""Importing these registers the types that the dynamics of a spec may name."""


@one_blas_thread()
def resume(folder: str | Path, what: Objective | Field | None = None, progress: bool | None = None) -> Run:
    """Continue a run that was interrupted or killed. A run of your own objective needs it again as `what`.

    A warning says where the run may go on differently: other threads, or another objective of the same name.

    Args:
        folder: of the run.
        what: your own objective, where the run moves one.
        progress: show a bar.

    Examples:
        >>> _ = run.save("kept", overwrite=True)
        >>> try:
        ...     ss.resume("kept")
        ... except ss.InputError as error:
        ...     print(error)
        kept is finished already: nothing to resume
    """
    folder = Path(folder)
    manifest = manifests.read(folder)
    if manifest.status in DONE:
        raise InputError(f"{folder} is {manifest.status} already: nothing to resume")
    if manifest.status != "running":
        raise StagescopeError(f"{folder} {manifest.reason}: it would fail again; start it anew with other options")
    problems = store.damage(folder)
    if problems:
        raise DamagedRun(problems[0])
    spec = manifest.spec
    field = field_of(spec, what)
    for sentence in differences(manifest.environment, field):
        warnings.warn(sentence, stacklevel=3)
    dynamics, record, stop = build(spec["dynamics"]), build(spec["record"]), build(spec["stop"])
    journey = Journey(
        field=field,
        layout=Layout(tuple((name, tuple(shape)) for name, shape in spec["blocks"].items())),
        dynamics=dynamics,
        positions=dynamics.positions(record, spec["until"]),
        stop=stop,
        record=record,
        until=spec["until"],
        seed=manifest.seed or 0,
        origin=Origin(manifest.study, manifest.config, manifest.tags),
    )
    return proceed(journey, folder, progress)


def differences(before: dict[str, Any], field: Field) -> list[str]:
    """Why a run of this field may go on differently here."""
    sentences = manifests.other_bits(before)
    recorded = before.get("objective")
    if recorded is not None and recorded != fingerprint(field.objective or field):
        change = "its code, its data or a parameter has changed"
        sentences.append(
            f"this is another objective than the one this run began with ({change}): the run will be a mixture of both"
        )
    return sentences


def own_objective(target: str) -> Objective | Field:
    """The objective that "module:NAME" names: an Objective, a Field, or a function without arguments that returns one."""
    module, name = parts(target, "objective", "mymodel:loss")
    named_object = member(imported(module, "objective"), name, (Objective, Field, FunctionType))
    if isinstance(named_object, FunctionType | type):
        try:
            named_object = named_object()
        except (Exception, SystemExit) as error:  # the user's own code may raise anything
            failure = f"{type(error).__name__}: {message(error)}"
            raise InputError(f"{target} was called without arguments to make an objective, and raised {failure}") from None
    if not isinstance(named_object, Objective | Field):
        expected = "an Objective, or a function without arguments that returns one, such as ss.JaxObjective(loss)"
        raise InputError(f"{target} gives {type(named_object).__name__}; name {expected}")
    return named_object


def field_of(spec: Spec, what: Objective | Field | None = None) -> Field:
    """The field a spec describes, or the caller's own."""
    if spec["field"] is None:
        raise InputError(f"this run has no law of motion: it was recorded elsewhere (source: {spec['source']['kind']})")
    if spec["field"]["type"] == "own":
        if what is None:
            name = spec["field"]["name"]
            remedy = "`ss.resume(folder, objective)` or `ss.saddle_ladder(run, objective)` in Python"
            raise InputError(f"this run moves your own objective {name!r}: add --objective MODULE:NAME, or {remedy}")
        if isinstance(what, JaxObjective) and what.name != spec["field"]["name"]:
            raise InputError(
                f"this run moves the objective {spec['field']['name']!r}, not {what.name!r}: pass the one it was made with"
            )
        source = what
    elif what is not None:
        raise InputError("this run knows its own objective: leave yours out")
    else:
        source = rebuilt(spec["field"])
    return as_field(source)


def rebuilt(spec: Any) -> Any:
    """The object that a spec describes; the papers whose types it names are loaded first."""
    names = list(types_of(spec))
    for name in names:
        load_type(name)
    for name in names:
        if error := missing(name):
            raise error
    return build(spec)


def replay(run: Run, record: Record, what: Objective | Field | None = None, progress: bool | None = False) -> Run:
    """The same motion from the first recorded frame to the last, with other frames kept.

    Args:
        run: the run.
        record: the frames to keep.
        what: your own objective, where the run moves one.
        progress: show a bar.

    Examples:
        >>> ss.replay(run, ss.Uniform(frames=5)).frames
        5
    """
    with no_tiny_start(), keeping(run):
        again = evolve(field_of(run.spec, what), run.at(0), **motion(run), record=record, seed=run.seed or 0, progress=progress)
    return ended(again, "the replay of this run")


def verify_replay(run: Run | str | Path, what: Objective | Field | None = None) -> ReplayTest:
    """Whether the law of a run passes through every recorded frame: `stagescope verify --replay`.

    The law is followed from the first frame, which takes as long as the run did. Where the run was made by a study, its first
    frame must be the start that the study makes of its options and seed. What may differ is measured: see `ReplayTest`.

    Args:
        run: a run or its folder.
        what: your own objective, where the run moves one.

    Returns:
        Whether it passes, the first frame that is missed, and by how much.

    Examples:
        >>> ss.verify_replay(run).passes
        True
    """
    run = run if isinstance(run, Run) else store.load(run)
    law = replay_of(run, None if why_no_replay(run) else field_of(run.spec, what))  # its law is missing: an error, no finding
    return law if isinstance(law, ReplayTest) else law.tested()


def replay_of(run: Run, field: Field | None) -> Replay | ReplayTest:
    """The law of a run from its start on; where it cannot be followed, or begins elsewhere than the run, a test that says so.

    A run whose first frame was not recorded is followed from the start that its study makes of its options and seed.
    """
    if field is None:
        return ReplayTest(None, run.clock, run.frames, reason=why_no_replay(run))
    start, recorded = study_start(run), position_of(run)[0] == 0
    if (
        start is not None
        and recorded
        and (missed := missed_start(run, start, f"the start that {run.study} makes of seed {run.seed}"))
    ):
        return missed
    try:
        return Replay(run, field, None if recorded else start)
    except InputError as error:
        return ReplayTest(None, run.clock, run.frames, reason=message(error))


def study_start(run: Run) -> Params | None:
    """The start that the study of a run makes of its options and seed; None where the study, or its text, is not known here."""
    if run.study is None or run.config is None:
        return None
    try:
        study = registry.study(run.study)
        options = study.configured(None, **{name: run.config[name] for name in study.options.model_fields if name in run.config})
        return study.setup(options, run.seed or 0).params
    except Exception:  # code of the paper runs here
        return None


def forked(run: Run) -> str | None:
    """Why a fork is no run of a paper, whose claims are about one law of motion from the start on; None for other runs."""
    if last_motion(run.spec) is run.spec["dynamics"]:
        return None
    clock = "step" if "step" in run.series else "t"
    return f"this run is a fork: its motion was changed at {clock} = {run.spec['dynamics']['at']:.6g}"


def last_motion(spec: Spec) -> Spec:
    """The dynamics of a spec at its end: that of a fork after it was forked."""
    dynamics = spec["dynamics"] or {}
    return dynamics["after"] if dynamics.get("type") in ("Forked", "Pushed") else spec["dynamics"]


def after_fork(run: Run) -> Run:
    """The frames of a fork after it was forked, with the motion they have; any other run as it is."""
    if forked(run) is None:
        return run
    position = run.series["step" if "step" in run.series else "t"]
    later = np.flatnonzero(position > run.spec["dynamics"]["at"])
    return replace(run.only(later), spec={**run.spec, "dynamics": last_motion(run.spec)}) if len(later) else run


def companion_run(what: Objective | Field, start: Params, dynamics: Dynamics, **options: Any) -> Run:
    """A run beside another one, which must reach its end."""
    return ended(evolve(what, start, dynamics, progress=False, **options))


def ended(run: Run, name: str = "the companion run") -> Run:
    """A run that reached its end; an error that says how it ended otherwise."""
    if not run.done:
        raise StagescopeError(f"{name} ended {run.status}: {run.reason}")
    return run
