"""Dynamics and records made from the options of `stagescope.papers.motion`.

An option that has the name of a field sets that field: `rtol` of a flow, `lr` and `clip` of a descent, `momentum` of
heavy-ball. What a study computes itself is given by keyword and comes first.
"""

from typing import TYPE_CHECKING, Any

from stagescope.dynamics.descent import GD, Adam, AdamW, Descent, HeavyBall, Optimizer
from stagescope.dynamics.dynamics import Dynamics
from stagescope.dynamics.flow import GradientFlow
from stagescope.dynamics.record import AtTimes, Every, LogSpaced, Record, Uniform
from stagescope.memory import numbers, require_memory
from stagescope.spec import Described

if TYPE_CHECKING:
    from stagescope.papers.study import Setup

OPTIMIZERS: dict[str, type[Optimizer]] = {"gd": GD, "sgd": GD, "heavy-ball": HeavyBall, "adam": Adam, "adamw": AdamW}


def make_dynamics(options: Any, **given: Any) -> Dynamics:
    """The flow or the descent that `--optimizer` names."""
    return make_flow(options, **given) if options.optimizer == "flow" else make_descent(options, **given)


def make_flow(options: Any, **given: Any) -> GradientFlow:
    """A flow with the options that are fields of `GradientFlow`."""
    return GradientFlow(**{**_shared(options, GradientFlow), **given})


def make_descent(options: Any, optimizer: str | None = None, **given: Any) -> Descent:
    """Steps by the optimizer named, by default that of the options."""
    kind = OPTIMIZERS[optimizer or options.optimizer]
    return Descent(**{**_shared(options, Descent), "optimizer": kind(**_shared(options, kind)), **given})


def make_record(options: Any) -> Record | None:
    """Frames as `--record` and `--frames` say: "auto" is log-spaced in a flow, and left to `evolve` in a descent."""
    if options.record == "every-step":
        return Every()
    if options.record == "uniform":
        return Uniform(frames=options.frames)
    auto_in_descent = options.record == "auto" and options.optimizer != "flow"
    return None if auto_in_descent else LogSpaced(frames=options.frames)


PER_FRAME = 100
"""Numbers that a frame takes besides its parameters: names, clocks, loss and the objects that hold them."""


def check_frames(plan: "Setup") -> None:
    """Refuse more frames, or more numbers in them, than fit in memory."""
    steps = plan.dynamics.steps if isinstance(plan.dynamics, Descent) else None
    asked = _frames(plan.record, steps or 0)
    kept = asked if steps is None else min(asked, steps + 1)
    shapes = {name: block.shape for name, block in plan.params.items()}
    remedy = "record fewer --frames"
    if isinstance(plan.record, Every):
        remedy = f"take fewer --steps than {steps:,}, or choose --record log where there is such an option"
    require_memory(f"the times of {asked:,} frames", remedy, asked)
    require_memory(f"the {kept:,} recorded frames", remedy, kept, PER_FRAME + numbers(shapes))


def _frames(record: Record | None, steps: int) -> int:
    """How many frames are asked for; 0 where nobody can say, and where `evolve` chooses."""
    if isinstance(record, Every):
        return steps // record.n + 2
    return len(record.at) if isinstance(record, AtTimes) else getattr(record, "frames", 0) + getattr(record, "early", 0)


def _shared(options: Any, kind: type[Described]) -> dict[str, Any]:
    """Values of the options that have the names of fields."""
    return {name: getattr(options, name) for name in kind.model_fields if name in type(options).model_fields}
