"""Shared options of studies: limits, what has no effect, and the dynamics and records made from them."""

from typing import Literal

import pytest
from pydantic import Field

from stagescope.core.errors import InputError
from stagescope.core.options import Options, Unused
from stagescope.flow.descent import Adam, AdamW, HeavyBall
from stagescope.flow.gradient_flow import GradientFlow
from stagescope.flow.record import Every, LogSpaced, Uniform
from stagescope.readings import motion
from stagescope.readings.registry import studies
from stagescope.readings.setup import make_descent, make_dynamics, make_record
from stagescope.readings.study import Study


class Own(Options):
    """Options of somebody else's study."""

    optimizer: Literal["flow", "gd", "heavy-ball", "adam", "adamw"] = Field("flow", description="how it moves")
    until: motion.Until = 5.0
    rtol: motion.Tolerance = 1e-8
    steps: motion.Steps = Field(50, description="steps of ours")
    lr: motion.StepSize = 0.2
    momentum: motion.Momentum = 0.5
    weight_decay: motion.WeightDecay = 0.1
    clip: motion.Clip = None
    record: Literal["auto", "log", "uniform", "every-step"] = "auto"
    frames: motion.Frames = 40


STUDY = Study("own", "own", Own, {}, setup=lambda options, seed: None)  # type: ignore[arg-type, return-value]


def test_limits_and_descriptions_come_from_the_type():
    fields = Own.model_fields
    assert fields["until"].description == "end time of the flow"
    assert fields["steps"].description == "steps of ours"
    for name, value in {"until": 0.0, "steps": 0, "momentum": 1.0, "frames": 2, "clip": 0.0}.items():
        with pytest.raises(InputError, match=f"--{name}"):
            STUDY.configured(None, **{name: value})


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"steps": 7}, "steps"),
        ({"clip": 1.0}, "clip"),
        ({"optimizer": "gd", "until": 7.0}, "until"),
        ({"optimizer": "adam", "rtol": 1e-3}, "rtol"),
        ({"optimizer": "adam", "momentum": 0.7}, "momentum"),
        ({"optimizer": "heavy-ball", "weight_decay": 0.2}, "weight_decay"),
    ],
)
def test_what_has_no_effect_is_refused(changes, name):
    options = Own(**changes)
    with pytest.raises(Unused) as caught:
        motion.refuse_unused_motion(options, options.optimizer)
    assert caught.value.name == name


@pytest.mark.parametrize(
    "changes",
    [
        {"until": 9.0, "rtol": 1e-4},
        {"optimizer": "heavy-ball", "momentum": 0.7, "steps": 3, "clip": 2.0},
        {"optimizer": "adamw", "weight_decay": 0.3, "lr": 0.01},
    ],
)
def test_what_has_an_effect_is_taken(changes):
    options = Own(**changes)
    motion.refuse_unused_motion(options, options.optimizer)


def test_dynamics():
    assert make_dynamics(Own(), rates={"a": 2.0}) == GradientFlow(rates={"a": 2.0}, rtol=1e-8)
    made = make_descent(Own(optimizer="heavy-ball", clip=3.0), steps=9)
    assert (made.optimizer, made.lr, made.steps, made.clip) == (HeavyBall(momentum=0.5), 0.2, 9, 3.0)
    assert make_descent(Own(optimizer="gd"), "adam").optimizer == Adam()
    assert make_descent(Own(optimizer="adamw")).optimizer == AdamW(weight_decay=0.1)


def test_records():
    assert make_record(Own()) == LogSpaced(frames=40)
    assert make_record(Own(optimizer="gd")) is None
    assert make_record(Own(optimizer="gd", record="log")) == LogSpaced(frames=40)
    assert make_record(Own(record="uniform")) == Uniform(frames=40)
    assert make_record(Own(optimizer="gd", record="every-step")) == Every()


@pytest.mark.parametrize("name", list(studies()))
def test_every_shared_option_of_a_study_has_a_description(name):
    assert all(info.description for info in studies()[name].options.model_fields.values())
