"""A study is one paper: options, presets and how to set up a run. This module imports nothing heavy."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from stagescope.errors import InputError, unknown

if TYPE_CHECKING:
    from stagescope.claims.claim import Claim
    from stagescope.dynamics.dynamics import Dynamics
    from stagescope.dynamics.record import Record
    from stagescope.fields.field import Field
    from stagescope.fields.objective import Objective
    from stagescope.params import Params
    from stagescope.runs.run import Run
    from stagescope.views.figure import Figure


class Options(BaseModel):
    """Flat, typed options of a study; every field has a default and a description."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _one_word(cls, given: Any) -> Any:
        """A single word where several may be given."""
        several = {name for name, info in cls.model_fields.items() if info.annotation == tuple[str, ...]}
        if not isinstance(given, dict):
            return given
        return {name: (value,) if name in several and isinstance(value, str) else value for name, value in given.items()}

    def prepare(self, progress: bool | None) -> None:
        """Read what takes long before the run is set up, with a bar; nothing by default."""

    @classmethod
    def anchored(cls, name: str, value: Any) -> Any:
        """The value of an option such that it means the same in every folder: absolute, where it is a path."""
        return value.resolve() if isinstance(value, Path) else value

    def files(self) -> dict[str, dict[str, Path]]:
        """Files that are read, by option and what each is: the config is known by their bytes, not by where they lie."""
        values = {name: getattr(self, name) for name in type(self).model_fields}
        return {name: {"": value} for name, value in values.items() if isinstance(value, Path)}

    def with_elements(self, name: str, elements: Mapping[int, Any]) -> tuple[Any, ...]:
        """The list of that name with some elements changed, as a sweep over `name.0` asks for."""
        listed = list(getattr(self, name))
        for place, value in elements.items():
            if place >= len(listed):
                raise InputError(f"{name}.{place}: {name} has {len(listed)} elements, numbered from 0")
            listed[place] = value
        return tuple(listed)


def option(name: str) -> str:
    """The name of an option as the command line spells it; a message in Python says the same."""
    return f"--{name.replace('_', '-')}"


class Unused(InputError):
    """An option was given that would have no effect; `name` is that option."""

    def __init__(self, name: str, said: str) -> None:
        super().__init__(said)
        self.name = name


def refuse_unused(options: Options, names: tuple[str, ...], why: str) -> None:
    """An option that would be ignored is an error: a changed value without effect is worse than a refusal."""
    for name in names:
        if getattr(options, name) != type(options).model_fields[name].default:
            value = getattr(options, name)
            raise Unused(name, f"{option(name)} {value} (given, or set by the preset) has no effect here: {why}")


@dataclass(frozen=True)
class Setup:
    """What `evolve` needs, made from options."""

    what: "Objective | Field"
    params: "Params"
    dynamics: "Dynamics"
    until: float | None = None
    record: "Record | None" = None
    facts: Mapping[str, Any] = field(default_factory=dict)


def final_loss(run: "Run") -> dict[str, float]:
    """The numbers of a run that every study has."""
    return {"loss": float(run.series["loss"][-1])} if "loss" in run.series and run.frames else {}


@dataclass(frozen=True)
class Study:
    """Name, paper, options with presets, the function that sets up a run, and what the paper claims and shows.

    `ledger` names the presets whose verdicts, side by side, say which claim holds where. Claims and figures are functions
    because their modules are heavy: `stagescope --help` never calls them. `check_use` refuses options that would have no
    effect together, without any heavy import. `numbers` are what a sweep keeps of a run besides its events; `many` gives
    them for several options and seeds at once where one kernel call can, and None for those it cannot.
    """

    name: str
    paper: str
    title: str
    options: type[Options]
    presets: Mapping[str, Mapping[str, Any]]
    setup: Callable[[Any, int], Setup]
    check_use: Callable[[Any], None]
    tags: tuple[str, ...]
    claims: Callable[[], "tuple[Claim, ...]"]
    figures: Callable[[], "Mapping[str, Figure]"]
    ledger: tuple[str, ...]
    numbers: Callable[["Run"], dict[str, float]] = final_loss
    many: "Callable[[Sequence[Any], Sequence[int]], list[dict[str, float] | None]] | None" = None

    def configured(self, preset: str | None = None, **changes: Any) -> Options:
        """Options from a preset with changes on top."""
        if preset is not None and preset not in self.presets:
            raise unknown(f"preset of {self.name}", preset, self.presets)
        for name in changes:
            if name not in self.options.model_fields:
                raise unknown(f"option of {self.name}", name, self.options.model_fields)
        try:
            return self.options(**{**(self.presets[preset] if preset else {}), **changes})
        except ValidationError as error:
            from stagescope.spec import explain

            raise InputError(explain(error, self.options, option)) from None

    def run(
        self,
        options: Options,
        *,
        seed: int = 0,
        out: str | Path | None = None,
        overwrite: bool = False,
        progress: bool | None = None,
    ) -> "Run":
        """Set up and evolve; the manifest keeps the options as the run's config."""
        from stagescope.dynamics.evolve import Origin, evolve

        if not 0 <= seed < 2**63:
            raise InputError(f"seed is {seed}, but must be >= 0 and below 2^63")
        options.prepare(progress)
        plan = self.setup(options, seed)
        config = {"study": self.name, "seed": seed, **options.model_dump(mode="json"), **plan.facts}
        return evolve(
            plan.what,
            plan.params,
            plan.dynamics,
            until=plan.until,
            record=plan.record,
            seed=seed,
            out=out,
            overwrite=overwrite,
            progress=progress,
            origin=Origin(self.name, config, self.tags),
        )
