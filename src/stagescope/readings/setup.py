"""Dynamics and records made from the options of `stagescope.readings.motion`.

An option that has the name of a field sets that field: `rtol` of a flow, `lr` and `clip` of a descent, `momentum` of
heavy-ball, `eps` of Adam, whose b1 and b2 are `beta1` and `beta2`. What a study computes itself is given by keyword and comes
first.
"""

from typing import Any

from stagescope.core.spec import Described
from stagescope.flow.descent import GD, Adam, AdamW, Descent, HeavyBall, Optimizer
from stagescope.flow.dynamics import Dynamics
from stagescope.flow.gradient_flow import GradientFlow
from stagescope.flow.record import Every, LogSpaced, Record, Uniform

OPTIMIZERS: dict[str, type[Optimizer]] = {"gd": GD, "sgd": GD, "heavy-ball": HeavyBall, "adam": Adam, "adamw": AdamW}
ADAMS: dict[str, dict[str, float]] = {"rmsprop": {"b1": 0.0}, "sign": {"b1": 0.0, "b2": 0.0, "eps": 1e-30}}
"""Optimisers that are Adam with some numbers fixed: its bias correction stays. An eps of 1e-30 is 0 beside every gradient."""
SPELLED = {"b1": "beta1", "b2": "beta2"}
"""Options whose name says more than that of the field."""


def make_dynamics(options: Any, **fields: Any) -> Dynamics:
    """The flow or the descent that `--optimizer` names."""
    return make_flow(options, **fields) if options.optimizer == "flow" else make_descent(options, **fields)


def make_flow(options: Any, **fields: Any) -> GradientFlow:
    """A flow with the options that are fields of `GradientFlow`."""
    return GradientFlow(**{**_shared(options, GradientFlow), **fields})


def make_descent(options: Any, optimizer: str | None = None, **fields: Any) -> Descent:
    """Steps by the optimizer named, by default that of the options."""
    name = optimizer or options.optimizer
    kind = Adam if name in ADAMS else OPTIMIZERS[name]
    return Descent(**{**_shared(options, Descent), "optimizer": kind(**_shared(options, kind) | ADAMS.get(name, {})), **fields})


def make_record(options: Any) -> Record | None:
    """Frames as `--record` and `--frames` say: "auto" is log-spaced in a flow, and left to `evolve` in a descent."""
    if options.record == "every-step":
        return Every()
    if options.record == "uniform":
        return Uniform(frames=options.frames)
    auto_in_descent = options.record == "auto" and options.optimizer != "flow"
    return None if auto_in_descent else LogSpaced(frames=options.frames)


def _shared(options: Any, kind: type[Described]) -> dict[str, Any]:
    """Values of the options that have the names of fields."""
    options_of = {name: SPELLED.get(name, name) for name in kind.model_fields}
    return {name: getattr(options, spelled) for name, spelled in options_of.items() if spelled in type(options).model_fields}
