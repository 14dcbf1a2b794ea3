"""A study is one question of a paper: options, presets and how to set up a run. This module imports nothing heavy."""

import importlib
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

import stagescope
from stagescope.core.errors import InputError, StagescopeError, unknown
from stagescope.core.options import Options, option
from stagescope.readings.paper import Kind
from stagescope.readings.playable import Playable

if TYPE_CHECKING:
    from stagescope.claims.claim import Claim
    from stagescope.claims.inputs import Inputs
    from stagescope.core.params import Params
    from stagescope.core.progress import Progress
    from stagescope.flow.dynamics import Dynamics
    from stagescope.flow.field import Field, Objective
    from stagescope.flow.record import Record
    from stagescope.readings.published import Distance
    from stagescope.runs.run import Run
    from stagescope.views.figure import Figure


@dataclass(frozen=True)
class Setup:
    """What `evolve` needs, made from options."""

    what: "Objective | Field"
    params: "Params"
    dynamics: "Dynamics"
    until: float | None = None
    record: "Record | None" = None
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class NamedSweep:
    """A sweep that answers a question: `preset` and `options` stay, grid or table are swept, `color` is the column to look at."""

    title: str
    preset: str | None
    options: Mapping[str, Any] = field(default_factory=dict)
    grid: Mapping[str, str] = field(default_factory=dict)
    table: Callable[[], list[dict[str, Any]]] | None = None
    seeds: int | None = None
    measures: tuple[str, ...] = ("events", "numbers")
    color: str | None = None


@dataclass(frozen=True)
class Boundary:
    """A line that theory draws in the plane of two options, to be seen over the phase diagram of a sweep.

    `line(options, values)` gives the second option at values of the first, None where there is no such place; `options` are
    the others that the sweep holds fixed.
    """

    title: str
    axes: tuple[str, str]
    line: "Callable[[Mapping[str, Any], Sequence[float]], list[float | None]]"


def final_loss(run: "Run") -> dict[str, float]:
    """The numbers of a run that every study has."""
    return {"loss": float(run.series["loss"][-1])} if "loss" in run.series and run.frames else {}


def accept_all(options: Options) -> None:
    """The default of `check_use`: every option has an effect."""


@dataclass(frozen=True)
class Study:
    """Name, options with presets, the function that sets up a run, how its runs are read, and what the paper shows.

    `preset_notes` say of a preset what its settings do not, such as what in it is not published. `setup(options, seed)`
    returns a `Setup`. `check_use` refuses options that would have no effect together, without any heavy import. `kinds` say
    how runs are read. `ledger` names the presets whose verdicts, side by side, say which claim holds where.
    `distances(progress, quick)` compares its numbers with the published ones. `numbers` are what a sweep keeps of a run
    besides its events; `many` gives them for several options and seeds at once where one kernel call can, and None for those
    it cannot. `measures` are further things that a sweep keeps of a run that reached its end, by name: numbers, words and
    None are columns NAME.KEY of the table, lists and mappings stay in the row. `tour` are presets that `stagescope demo`
    shows, each with a sentence. `inputs` are drawn by seed to calibrate the claims: settings the paper is about; the nulls
    are part of the claims. `boundaries` are lines of theory by name, which a phase diagram can show. `play` says how its flow
    is played in a page, if it can be. `types` are modules whose types a stored run may name besides its field, such as other
    processes.

    Examples:
        >>> study = ss.study("linear-icl")
        >>> study.title, sorted(study.presets)[:2]
        ('Linear attention in context: abrupt or in stages, by how keys and queries are parametrised', ['eight', 'flat'])
    """

    name: str
    title: str
    options: type[Options]
    presets: Mapping[str, Mapping[str, Any]]
    setup: Callable[[Any, int], Setup]
    check_use: Callable[[Any], None] = accept_all
    preset_notes: Mapping[str, str] = field(default_factory=dict)
    kinds: tuple[Kind, ...] = ()
    tags: tuple[str, ...] = ()
    figures: "Callable[[], Mapping[str, Figure]]" = dict
    distances: "Callable[[Progress, bool], list[Distance]] | None" = None
    ledger: tuple[str, ...] = ()
    numbers: Callable[["Run"], dict[str, float]] = final_loss
    many: "Callable[[Sequence[Any], Sequence[int]], list[dict[str, float] | None]] | None" = None
    measures: Mapping[str, Callable[["Run"], dict[str, Any]]] = field(default_factory=dict)
    sweeps: Mapping[str, NamedSweep] = field(default_factory=dict)
    tour: Mapping[str, str] = field(default_factory=dict)
    inputs: "Callable[[], tuple[Inputs, ...]]" = tuple
    boundaries: Mapping[str, Boundary] = field(default_factory=dict)
    play: Playable | None = None
    types: tuple[str, ...] = ()

    def claims(self) -> "tuple[Claim, ...]":
        """The claims on its runs, each once."""
        return tuple(dict.fromkeys(claim for kind in self.kinds for claim in kind.claims()))

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
            from stagescope.core.spec import explain

            raise InputError(explain(error, self.options, option)) from None

    def run(
        self,
        options: Options,
        *,
        seed: int = 0,
        out: str | Path | None = None,
        overwrite: bool = False,
        checksum: bool = False,
        progress: bool | None = None,
    ) -> "Run":
        """Set up and evolve; the manifest keeps the options as the run's config."""
        from stagescope.flow.evolve import Origin, evolve

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
            checksum=checksum,
            progress=progress,
            origin=Origin(self.name, config, self.tags),
        )


PACKAGE = "stagescope.reproductions"
"""The scripts that make what a paper shows: `reproductions/PAPER`, beside `src` in a checkout, inside an installed package."""
PLACES = (Path(stagescope.__file__).parent / "reproductions", Path(stagescope.__file__).parents[2] / "reproductions")


def reproduction(paper: str) -> ModuleType:
    """The package of scripts of a paper; it is loaded when it is first asked for."""
    if not any((place / paper / "__init__.py").is_file() for place in PLACES):
        folders = " or ".join(map(str, PLACES))
        raise StagescopeError(f"the scripts of {paper} are not in {folders}: install the package again, or run in a checkout")
    if PACKAGE not in sys.modules:
        package = ModuleType(PACKAGE)
        package.__path__ = [str(place) for place in PLACES if place.is_dir()]
        sys.modules[PACKAGE] = package
    return importlib.import_module(f"{PACKAGE}.{paper}")
