"""`stagescope predict`: the stages of a training before it. Heavy imports are inside, as in all commands."""

from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import tyro
from pydantic import BaseModel, Field

from stagescope.cli.command import Command, print_json
from stagescope.errors import InputError
from stagescope.papers.registry import study

if TYPE_CHECKING:
    from stagescope.landscape.saddle_path import SaddlePath
    from stagescope.papers.predicting import CriticalScale
    from stagescope.papers.study import Setup


class PredictFlags(BaseModel):
    """What every prediction understands besides the study's options. Options of the motion and of records have no effect."""

    study_name: ClassVar[str] = ""
    unused: ClassVar[tuple[str, ...]] = (
        *("optimizer", "until", "method", "rtol", "steps", "lr", "momentum", "weight_decay", "clip", "batch"),
        *("frames", "record"),
    )

    preset: str | None = Field(None, description="named settings; options given here override them")
    init_scale: Annotated[tuple[float, ...], tyro.conf.arg(metavar="SCALE...")] = Field(
        (), description="standard deviations of the initial parameters, one prediction each; default: that of the preset"
    )
    seeds: int = Field(1, description="how many starts are drawn, with seeds 0, 1, ...")
    critical_scale: str | None = Field(
        None, description="an event: also the start scale below which it does not come, by bisection; takes a minute"
    )
    json_: Annotated[bool, tyro.conf.arg(name="json")] = Field(False, description="print as JSON")


class Predict(Command):
    """Predict the stages of a training and their times from the start, without a run. E_k and Q_k: the k-th singular value
    of the embedding or of the attention scores passes .1. A leg (r,rq): r embedding and rq attention directions are open.
    t_j of the regression flows: the loss passes halfway between two plateaus; --init-scale is the noise of the logits."""

    study: Any

    def run(self) -> int:
        flags: PredictFlags = self.study
        if flags.seeds < 1:
            raise InputError(f"--seeds is {flags.seeds}, but at least one start must be drawn")
        scales = flags.init_scale or (None,)
        found = [_predicted(flags, scale, seed) for scale in scales for seed in range(flags.seeds)]
        asked = flags.critical_scale
        critical = [] if asked is None else [(seed, _critical(flags, asked, seed)) for seed in range(flags.seeds)]
        if flags.json_:
            answers = [{"init_scale": scale, "seed": seed, **path.json()} for scale, seed, path in found]
            extra = {"critical_scales": [{"seed": seed, **each.json()} for seed, each in critical]} if asked else {}
            print_json({"predictions": answers, **extra})
            return 0
        from stagescope.cli.render import print_path

        for scale, seed, path in found:
            print_path(scale, seed, path)
        for seed, each in critical:
            said = each.note or f"{each.event} does not come below the start scale {each.scale:.3g}"
            print(f"seed {seed}: {said}")
        return 0


def _plan(flags: PredictFlags, scale: float | None, seed: int) -> "tuple[float, Setup]":
    """The start scale, and what a run from it would be made of."""
    from stagescope.dynamics.descent import GD, Descent

    found = study(flags.study_name)
    options = {name: getattr(flags, name) for name in found.options.model_fields if name in type(flags).model_fields}
    given = options | ({} if scale is None else {"init_scale": scale})
    if scale is None:
        given.pop("init_scale", None)
    chosen = found.configured(flags.preset, **given)
    plan = found.setup(chosen, seed)
    if isinstance(plan.dynamics, Descent) and not isinstance(plan.dynamics.optimizer, GD):
        raise InputError(
            "a saddle path is one of gradient flow, and these settings move by another optimizer; choose another preset"
        )
    return getattr(chosen, "init_scale", 0.0), plan


def _predicted(flags: PredictFlags, scale: float | None, seed: int) -> "tuple[float, int, SaddlePath]":
    from stagescope.papers.predicting import saddle_path

    used, plan = _plan(flags, scale, seed)
    return used, seed, saddle_path(plan.what, plan.params)


def _critical(flags: PredictFlags, event: str, seed: int) -> "CriticalScale":
    from stagescope.papers.predicting import critical_scale

    return critical_scale(_plan(flags, None, seed)[1].what, event, seed=seed)
