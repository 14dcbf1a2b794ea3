"""Make a run's field and dynamics again from its spec: to resume it, or to replay it with more frames."""

from pathlib import Path

from stagescope.corpora import corpus as _text_corpus  # noqa: F401
from stagescope.dynamics import descent as _descent  # noqa: F401 (registers the types a spec may name)
from stagescope.dynamics.descent import Descent
from stagescope.dynamics.evolve import Journey, Origin, evolve, proceed
from stagescope.dynamics.flow import GradientFlow
from stagescope.dynamics.record import Record
from stagescope.errors import DamagedRun, InputError, StagescopeError
from stagescope.fields.field import Field
from stagescope.fields.objective import JaxObjective, Objective
from stagescope.papers.focus_dilution import finite as _token_finite  # noqa: F401
from stagescope.papers.focus_dilution import loss as _token  # noqa: F401
from stagescope.papers.focus_dilution import sampled as _token_sampled  # noqa: F401
from stagescope.papers.focus_dilution.text import loss as _text_counts  # noqa: F401
from stagescope.papers.focus_dilution.text import variant as _text_variant  # noqa: F401
from stagescope.papers.incremental.regression import loss as _regression  # noqa: F401
from stagescope.papers.incremental.regression import sampled as _regression_sampled  # noqa: F401
from stagescope.papers.incremental.students import content_loss as _content  # noqa: F401
from stagescope.papers.incremental.students import positional_loss as _heads  # noqa: F401
from stagescope.papers.incremental.students import transformer_loss as _transformer  # noqa: F401
from stagescope.papers.incremental.text import loss as _text_heads  # noqa: F401
from stagescope.papers.scan_snap import loss as _pairwise  # noqa: F401
from stagescope.papers.scan_snap import sampled as _pairwise_sampled  # noqa: F401
from stagescope.papers.scan_snap.text import loss as _pairwise_windows  # noqa: F401
from stagescope.papers.scan_snap.text import transformer as _text_transformer  # noqa: F401
from stagescope.params import Layout
from stagescope.runs import manifest as manifests
from stagescope.runs import store
from stagescope.runs.run import DONE, Run
from stagescope.spec import Spec, build


def resume(folder: str | Path, what: Objective | Field | None = None, progress: bool | None = None) -> Run:
    """Continue a run that was interrupted or killed. A run of your own objective needs it again as `what`."""
    folder = Path(folder)
    manifest = manifests.read(folder)
    if manifest.status in DONE:
        raise InputError(f"{folder} is {manifest.status} already: nothing to resume")
    if manifest.status != "running":
        raise StagescopeError(f"{folder} {manifest.reason}: it would fail again; start it anew with other options")
    problems = store.verify(folder)
    if problems:
        raise DamagedRun(problems[0])
    spec = manifest.spec
    dynamics, record, stop = build(spec["dynamics"]), build(spec["record"]), build(spec["stop"])
    journey = Journey(
        field=field_of(spec, what),
        layout=Layout(tuple((name, tuple(shape)) for name, shape in spec["blocks"].items())),
        dynamics=dynamics,
        positions=dynamics.positions(record, spec["until"]),
        stop=stop,
        record=record,
        until=spec["until"],
        seed=manifest.seed,
        origin=Origin(manifest.study, manifest.config, manifest.tags),
    )
    return proceed(journey, folder, progress)


def field_of(spec: Spec, what: Objective | Field | None = None) -> Field:
    """The field a spec describes, or the caller's own."""
    if spec["field"]["type"] == "own":
        if what is None:
            name = spec["field"]["name"]
            example = "`ss.resume(folder, objective)` or `ss.saddle_ladder(run, objective)`"
            raise InputError(f"this run moves your own objective {name!r}: pass it, as in {example}")
        if isinstance(what, JaxObjective) and what.name != spec["field"]["name"]:
            raise InputError(
                f"this run moves the objective {spec['field']['name']!r}, not {what.name!r}: pass the one it was made with"
            )
        found = what
    elif what is not None:
        raise InputError("this run knows its own objective: leave yours out")
    else:
        found = build(spec["field"])
    return found.field() if isinstance(found, Objective) else found


def replay(run: Run, record: Record, what: Objective | Field | None = None, progress: bool | None = False) -> Run:
    """The same motion from the first recorded frame to the last, with other frames kept."""
    dynamics = build(run.spec["dynamics"])
    until = None
    if isinstance(dynamics, Descent):
        dynamics = dynamics.model_copy(update={"steps": int(run.step[-1])})
    else:
        until = float(run.t[-1])
    law = field_of(run.spec, what)
    again = evolve(law, run.at(0), dynamics, until=until, record=record, seed=run.seed, progress=progress)
    if not again.done:
        raise StagescopeError(f"the replay of this run ended {again.status}: {again.reason}")
    return again


def variant(run: Run, rates: dict[str, float], until: float) -> Run:
    """A flow from the same start with other rates to another end."""
    dynamics = build(run.spec["dynamics"]).model_copy(update={"rates": rates})
    return evolve(field_of(run.spec), run.at(0), dynamics, until=until, progress=False)


def as_flow(run: Run, until: float) -> Run:
    """The gradient flow in place of a run's steps: same start, same rates, contexts in the long-sequence limit."""
    spec = run.spec["field"]
    limit = {**{name: spec[name] for name in ("model", "process")}, "type": "PairwisePopulation"}
    law = build(limit if spec["type"] == "PairwiseSampled" else spec)
    dynamics = GradientFlow(rates=run.spec["dynamics"]["rates"])
    return evolve(law, run.at(0), dynamics, until=until, progress=False)
