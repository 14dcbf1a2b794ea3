"""`stagescope predict` and `stagescope continue`: what theory says without a run. Heavy imports are inside."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import tyro

from stagescope.cli.command import AS_JSON, OUT, PRESET, Command, Json, StudyFlags, print_json
from stagescope.core.errors import InputError, message
from stagescope.readings.registry import studies, study

if TYPE_CHECKING:
    from stagescope.landscape.saddle_path import SaddlePath
    from stagescope.readings.study import Setup, Study


STEPS = ("optimizer", "steps", "lr", "momentum", "weight_decay", "clip", "eps", "beta1", "beta2", "lr_per_eps", "batch")
MOTION = (*STEPS, "until", "method", "rtol", "frames", "record")
"""Options of a study that say how a run moves and is recorded; those of steps."""


class PredictFlags(StudyFlags):
    """What every prediction understands besides the study's options. Of the motion and of records only --until has an effect,
    and the options of steps where the paper has a theory of steps."""

    preset: str | None = PRESET
    init_scale: Annotated[tuple[float, ...], tyro.conf.arg(metavar="SCALE...")] = ()
    """standard deviations of the initial parameters, one prediction each; default: that of the preset"""
    seed: int = 0
    """seed of the start, as of `stagescope run`"""
    seeds: int = 1
    """how many starts are drawn, with this seed and the next ones"""
    path: bool = False
    """the saddle path to its end, in place of the flow up to --until: why events come, and tiny starts"""
    critical_scale: str | None = None
    """an event: also the start scale below which it does not come, by bisection; takes a minute"""
    json_: Json = AS_JSON

    @classmethod
    def unused_of(cls, of_study: "Study") -> tuple[str, ...]:
        used = ("until", *STEPS) if _predicts_steps(of_study) else ("until",)
        return tuple(name for name in MOTION if name not in used)

    @property
    def seed_range(self) -> range:
        return range(self.seed, self.seed + self.seeds)


class Predict(Command):
    """Predict the stages of a training and their times from the start, before it: by the flow to --until, or with --path by
    the saddle path. E_k and Q_k: the k-th singular value of the embedding or of the attention scores passes .1. A leg
    (r,rq): r embedding and rq attention directions are open.
    Steps (--optimizer) are predicted by a small model of the paper, where it has one.
    t_j of the regression flows: the loss passes halfway between two plateaus; --init-scale is the
    initial noise of the logits or, with --noise weights, of the attention weights; "heads part": they begin to differ.
    d_m of linear attention: the loss passes halfway between its levels m-1 and m."""

    study: Any

    def run(self) -> int:
        flags: PredictFlags = self.study
        if flags.seeds < 1:
            raise InputError(f"--seeds is {flags.seeds}, but at least one start must be drawn")
        event = flags.critical_scale
        plans = [] if event is None else [(seed, _plan(flags, None, seed)[1]) for seed in flags.seed_range]
        if any(_by_steps(flags, plan) for _, plan in plans):
            raise InputError("a critical scale is one of gradient flow; leave out --critical-scale, or choose --optimizer flow")
        predictions, critical = _predictions(flags), []
        if event is not None:
            from stagescope.readings.predicting import critical_scale

            critical = [(seed, critical_scale(plan.what, event, seed=seed)) for seed, plan in plans]
        if flags.json_:
            answers = [{"init_scale": scale, "seed": seed, "by": path.by, **path.json()} for scale, seed, path in predictions]
            extra = {"critical_scales": [{"seed": seed, **scale.json()} for seed, scale in critical]} if event else {}
            print_json({"predictions": answers, **extra})
            return 0
        from stagescope.cli.render import print_path

        for scale, seed, path in predictions:
            print_path(scale, seed, path)
        for seed, threshold in critical:
            print(f"seed {seed}: {threshold}")
        return 0


def _predictions(flags: PredictFlags) -> "list[tuple[float, int, SaddlePath]]":
    """Scale, seed and path of each start. Of several, one without a path has only a note; an error where none has a path."""
    import numpy as np

    from stagescope.landscape.saddle_path import SaddlePath

    predictions, refused = [], []
    for scale in flags.init_scale or (None,):
        for seed in flags.seed_range:
            used, plan = _plan(flags, scale, seed)
            try:
                path = _path(flags, plan)
            except InputError as error:
                refused.append(f"start scale {used:g}, seed {seed}: {message(error)}")
                path = SaddlePath((), {}, (message(error),), 0.0, np.zeros(0), {})
            predictions.append((used, seed, path))
    if len(refused) == len(predictions):
        raise InputError(refused[0])
    return predictions


def _path(flags: PredictFlags, plan: "Setup") -> "SaddlePath":
    """By the flow where the study is one; a saddle path goes on to its end unless --until is given."""
    from stagescope.flow.descent import Descent
    from stagescope.flow.gradient_flow import GradientFlow
    from stagescope.readings.predicting import UNTIL, flow_events, predict, saddle_path

    flow, until = plan.dynamics, plan.until
    if isinstance(flow, Descent) and _by_steps(flags, plan):
        if flags.path:
            raise InputError("a saddle path is one of gradient flow; leave out --path, or choose --optimizer flow")
        return predict(plan.what, plan.params, descent=flow)
    if not flags.path and until is not None and isinstance(flow, GradientFlow) and flow_events(plan.what) is not None:
        return predict(plan.what, plan.params, until=until, flow=flow)
    usual = getattr(study(flags.study_name).configured(flags.preset), "until", None)
    end = getattr(flags, "until", usual)
    return saddle_path(plan.what, plan.params, until=UNTIL if end is None or end == usual else end)


def _plan(flags: PredictFlags, scale: float | None, seed: int) -> "tuple[float, Setup]":
    """The start scale, and what a run from it would be made of."""
    from stagescope.flow.descent import GD, Descent
    from stagescope.flow.field import as_field

    of_study = study(flags.study_name)
    settings = flags.options_of(of_study)
    settings.pop("init_scale", None)
    if scale is not None:
        settings["init_scale"] = scale
    options = of_study.configured(flags.preset, **settings)
    plan = of_study.setup(options, seed)
    if _predicts_steps(of_study) and isinstance(plan.dynamics, Descent):
        return getattr(options, "init_scale", 0.0), plan
    if isinstance(plan.dynamics, Descent) and not isinstance(plan.dynamics.optimizer, GD):
        raise InputError(f"these settings move by {type(plan.dynamics.optimizer).__name__}; {_remedy(of_study)}")
    if as_field(plan.what).draw(0) is not None:
        raise InputError(f"these settings draw a batch for every step; {_remedy(of_study)}")
    return getattr(options, "init_scale", 0.0), plan


def _by_steps(flags: PredictFlags, plan: "Setup") -> bool:
    """Whether a start moves by steps that a paper predicts as such."""
    from stagescope.flow.descent import Descent

    return isinstance(plan.dynamics, Descent) and _predicts_steps(study(flags.study_name))


def _predicts_steps(of_study: "Study") -> bool:
    return any(kind.descent is not None for kind in of_study.kinds)


def _remedy(refused: "Study") -> str:
    """What to choose where the motion of a study is no flow: its presets that are, else the studies with paths of their own."""
    if flows := [name for name in refused.presets if _is_flow(refused, name)]:
        return f"a saddle path is one of gradient flow, as of --preset {', '.join(flows)}"
    alternatives = [name for name, of_study in studies().items() if any(kind.path is not None for kind in of_study.kinds)]
    return f"a saddle path is one of gradient flow, and no preset of {refused.name} is; predict {' or '.join(alternatives)}"


def _is_flow(of_study: "Study", preset: str) -> bool:
    """Whether a preset is a flow: an end time has an effect on it."""
    if "until" not in of_study.options.model_fields:
        return False
    try:
        of_study.check_use(of_study.configured(preset, until=(of_study.options.model_fields["until"].default or 0.0) + 1))
    except InputError:
        return False
    return True


class ContinueFlags(StudyFlags):
    """What every branch understands besides the study's options. Options of starts, motion and records have no effect."""

    unused: ClassVar[tuple[str, ...]] = (*MOTION, "init_scale", *(f"init_scale_{block}" for block in ("w0", "w1", "wq", "wk")))

    @classmethod
    def unused_of(cls, of_study: "Study") -> tuple[str, ...]:
        return cls.unused

    rung: str
    """which critical point: r,rq, such as 1,1 with one embedding and one attention direction"""
    over: str
    """option that is varied, from its own value: persistence, scale, pi.0; with --pi0 also pi0, delta"""
    preset: str | None = PRESET
    from_: Annotated[float | None, tyro.conf.arg(name="from")] = None
    """where the branch ends below; default: a quarter of the option's value, as far as it is allowed"""
    to: float | None = None
    """where it ends above; default: four times the option's value"""
    out: Annotated[Path | None, OUT] = None
    """bifurcation diagram: a file .svg, .png, .pdf or .html"""
    json_: Json = AS_JSON


class Continue(Command):
    """Follow a critical point over an option: where it is stable, where it folds back, where rates out of it cross."""

    study: Any

    def run(self) -> int:
        flags: ContinueFlags = self.study
        if flags.out is not None:
            from stagescope.show.bifurcation import check_out

            check_out(flags.out)
        from stagescope.readings.continuing import continue_point, option_family

        parts = flags.rung.strip("() ").split(",")
        if len(parts) != 2 or not all(part.strip().isdigit() for part in parts):
            raise InputError(f"--rung is {flags.rung!r}; write it as r,rq, such as 1,1")
        of_study, rung = study(flags.study_name), tuple(map(int, parts))
        if all(kind.rung is None for kind in of_study.kinds):
            have = ", ".join(
                name for name, candidate in studies().items() if any(kind.rung is not None for kind in candidate.kinds)
            )
            raise InputError(f"{of_study.name} has no small models whose critical points could be followed; {have} has")
        preset = {name: value for name, value in of_study.presets.get(flags.preset or "", {}).items() if name not in flags.unused}
        fields, settings = of_study.options.model_fields, flags.options_of(of_study)
        options = of_study.configured(
            **{**preset, **{name: value for name, value in settings.items() if value != fields[name].default}}
        )
        family = option_family(of_study, options, flags.over)
        over, branch = family.name, continue_point(family, family.value, rung=rung, low=flags.from_, high=flags.to)
        if flags.out is not None:
            from stagescope.show.bifurcation import draw_branch

            draw_branch(branch, flags.out, title=f"{flags.study_name}: critical points ({flags.rung})", over=over)
        if flags.json_:
            print_json({"branches": [branch.json()]})
            return 0
        from stagescope.cli.render import print_branch

        print_branch(over, flags.rung, branch)
        if flags.out is not None:
            print(flags.out)
        return 0
