"""`stagescope continue`: a critical point followed over an option. Heavy imports are inside, as in all commands."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import tyro
from pydantic import Field

from stagescope.cli.command import OUT, Arguments, Command, print_json
from stagescope.errors import InputError
from stagescope.papers.registry import study

if TYPE_CHECKING:
    from stagescope.landscape.branch import Branch


class ContinueFlags(Arguments):
    """What every branch understands besides the study's options. Options of starts, motion and records have no effect."""

    study_name: ClassVar[str] = ""
    unused: ClassVar[tuple[str, ...]] = (
        *("optimizer", "until", "method", "rtol", "steps", "lr", "momentum", "weight_decay", "clip", "batch"),
        *("frames", "record", "init_scale", "init_scale_w0", "init_scale_w1", "init_scale_wq", "init_scale_wk"),
    )

    rung: str = Field(description="which critical point: r,rq, such as 1,1 with one embedding and one attention direction")
    over: str = Field(
        description="option that is varied, from its own value: persistence, scale, pi.0; with --pi0 also pi0, delta"
    )
    preset: str | None = Field(None, description="named settings; options given here override them")
    from_: Annotated[float | None, tyro.conf.arg(name="from")] = Field(
        None, description="where the branch ends below; default: a quarter of the option's value, as far as it is allowed"
    )
    to: float | None = Field(None, description="where it ends above; default: four times the option's value")
    out: Annotated[Path | None, OUT] = Field(None, description="bifurcation diagram: a file .svg, .png, .pdf or .html")
    json_: Annotated[bool, tyro.conf.arg(name="json")] = Field(False, description="print as JSON")


class Continue(Command):
    """Follow a critical point over an option: where it is stable, where it folds back, where rates out of it cross."""

    study: Any

    def run(self) -> int:
        flags: ContinueFlags = self.study
        if flags.out is not None:
            from stagescope.diagrams.bifurcation import check_out

            check_out(flags.out)
        over, branch = _followed(flags)
        if flags.out is not None:
            from stagescope.diagrams.bifurcation import draw_branch

            draw_branch(branch, flags.out, title=f"{flags.study_name}: critical points ({flags.rung})", over=over)
        if flags.json_:
            print_json({"branches": [branch.json()]})
            return 0
        from stagescope.cli.render import print_branch

        print_branch(over, flags.rung, branch)
        if flags.out is not None:
            print(flags.out)
        return 0


def _followed(flags: ContinueFlags) -> "tuple[str, Branch]":
    from stagescope.papers.continuing import continue_point, option_family, with_rungs

    found, rung = study(flags.study_name), _label(flags.rung)
    if all(kind.rung is None for kind in found.kinds):
        have = ", ".join(with_rungs())
        raise InputError(f"{found.name} has no small models whose critical points could be followed; {have} has")
    given = {name: getattr(flags, name) for name in found.options.model_fields if name in type(flags).model_fields}
    preset = {name: value for name, value in found.presets.get(flags.preset or "", {}).items() if name not in flags.unused}
    fields = found.options.model_fields
    chosen = found.configured(**{**preset, **{name: value for name, value in given.items() if value != fields[name].default}})
    family = option_family(found, chosen, flags.over)
    return family.name, continue_point(family, family.value, rung=rung, low=flags.from_, high=flags.to)


def _label(text: str) -> tuple[int, ...]:
    parts = text.strip("() ").split(",")
    if len(parts) != 2 or not all(part.strip().isdigit() for part in parts):
        raise InputError(f"--rung is {text!r}; write it as r,rq, such as 1,1")
    return tuple(map(int, parts))
