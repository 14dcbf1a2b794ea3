"""Options that many studies share: how parameters move, and which frames are kept. Imports nothing heavy.

Each type carries its limits and its description, so that a study adds only a default: `until: Until = 800.0`. Where the words
of a study differ, it gives its own: `steps: Steps = Field(3000, description="steps")`. `stagescope.readings.setup` makes dynamics
and records from options of these names.
"""

from typing import Annotated, Literal

from pydantic import Field

from stagescope.core.options import Options, refuse_unused

Optimizer = Annotated[Literal["flow", "gd", "heavy-ball", "adam"], Field(description="gradient flow, or steps")]
BatchOptimizer = Annotated[
    Literal["sgd", "heavy-ball", "adam"], Field(description="how steps are made from gradients of batches")
]
Until = Annotated[float, Field(gt=0, description="end time of the flow")]
Method = Annotated[Literal["auto", "cvode", "lsoda", "dop853", "radau"], Field(description="integrator of the flow")]
Tolerance = Annotated[float, Field(gt=0, lt=1, description="relative tolerance of the flow")]
Steps = Annotated[int, Field(ge=1, description="steps of a descent")]
StepSize = Annotated[float, Field(gt=0, description="step size of a descent")]
Rate = Annotated[float, Field(ge=0, description="rate of a block of parameters, relative to the step size")]
Momentum = Annotated[float, Field(ge=0, lt=1, description="momentum of heavy-ball")]
Eps = Annotated[float, Field(gt=0, description="eps of adam and rmsprop, added to the root of the mean squared gradient")]
Beta1 = Annotated[float, Field(ge=0, lt=1, description="share of the mean gradient that adam keeps each step")]
Beta2 = Annotated[float, Field(ge=0, lt=1, description="share of the mean squared gradient that adam and rmsprop keep each step")]
WeightDecay = Annotated[float, Field(ge=0, description="weight decay of adamw")]
Clip = Annotated[float | None, Field(gt=0, description="longest gradient; default: any")]
InitScale = Annotated[float, Field(ge=0, description="standard deviation of the initial parameters")]
_SPACING = Field(description="spacing of the recorded frames")
Spacing = Annotated[Literal["log", "uniform", "every-step"], _SPACING]
AutoSpacing = Annotated[Literal["auto", "log", "uniform", "every-step"], _SPACING]
Frames = Annotated[int, Field(ge=3, description="number of recorded frames (not of every-step)")]

OF_FLOWS = ("until", "method", "rtol")
OF_STEPS = ("steps", "lr", "momentum", "weight_decay", "clip", "eps", "beta1", "beta2")


def refuse_unused_motion(options: Options, optimizer: str) -> None:
    """Refuse options of the motion that have no effect with an optimizer; those that the study does not have are passed over."""
    if optimizer == "flow":
        return _refuse(options, OF_STEPS, "a flow ends at --until and has no steps; choose an --optimizer")
    _refuse(options, OF_FLOWS, f"{optimizer} takes --steps; they are for the flow")
    if optimizer != "heavy-ball":
        _refuse(options, ("momentum",), f"{optimizer} has none; choose --optimizer heavy-ball")
    if optimizer not in ("adam", "adamw"):
        _refuse(options, ("beta1",), f"{optimizer} has none; choose --optimizer adam")
    if optimizer not in ("adam", "adamw", "rmsprop"):
        _refuse(options, ("eps", "beta2"), f"{optimizer} has none; choose --optimizer adam")
    if optimizer != "adamw":
        _refuse(options, ("weight_decay",), f"{optimizer} has none; choose --optimizer adamw")
    return None


def _refuse(options: Options, names: tuple[str, ...], reason: str) -> None:
    refuse_unused(options, tuple(name for name in names if name in type(options).model_fields), reason)
