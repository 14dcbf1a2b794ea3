"""The reading of a run: its curves, stages, ladder, ledger and views, each computed when it is first used, and once."""

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from stagescope.claims.claim import Claim, Verdict
from stagescope.claims.ledger import Ledger
from stagescope.claims.own import Claims, own_claims, refuse_taken
from stagescope.core.errors import InputError, StagescopeError, message, needed
from stagescope.core.markup import block, note
from stagescope.core.progress import progress_for
from stagescope.core.spec import build, canonical
from stagescope.core.threads import one_blas_thread
from stagescope.detect.limits import LIMITS
from stagescope.detect.plateaus import curve_notes, loss_stages, read_curves
from stagescope.detect.stage import BROKEN, Stages, Transition
from stagescope.detect.transitions import curve_events
from stagescope.flow.evolve import just_evolved
from stagescope.flow.field import Field, Objective
from stagescope.flow.kept import keeping
from stagescope.landscape.ladder import Ladder, field_ladder, search_cost
from stagescope.landscape.saddle_path import SaddlePath
from stagescope.readings.answers import kept_answer
from stagescope.readings.paper import Cost, Kind
from stagescope.readings.predicting import predicted
from stagescope.readings.rebuild import after_fork, ended, field_of, forked, replay_of
from stagescope.readings.registry import claim_rates, kind_of, missing, study
from stagescope.readings.replay import Replay, ReplayTest
from stagescope.runs.run import Run
from stagescope.runs.store import load

if TYPE_CHECKING:
    import pandas

    from stagescope.runs.export import Derived
    from stagescope.views.view import Explained, Maker


Made = TypeVar("Made")
READINGS = 4
"""Readings that a run keeps: its own, and those of copies of it that `dataclasses.replace` made."""


class Reading:
    """Everything that can be said about one run. `ss.reading(run)` makes it; each part is computed once.

    `run` is the run, `field` its law of motion built again from the spec. A paper gives a subclass for each of its kinds of
    runs, with `curves` (observables at a resolution that does not depend on how densely the run was recorded), `stages`,
    `evidence` (what claims get) and, where the model has one, a ladder of its own. A run of no paper is read by this class.
    The reading is kept with the run and freed with it.

    Examples:
        >>> found = ss.reading(run)
        >>> found.run is run, found.stages.clock
        (True, 't')
    """

    progress: bool | None = False

    def __init__(self, run: Run, kind: Kind | None = None, what: Objective | Field | None = None) -> None:
        self.run, self.kind, self.what = run, kind, what
        self._companions: dict[bytes, Any] = {}
        self._verdicts: dict[int, tuple[Claim, Verdict]] = {}

    @cached_property
    def field(self) -> Field:
        return field_of(self.run.spec, self.what)

    @cached_property
    def law(self) -> Any:
        """The objective that the run descends, or the field where it is no gradient."""
        return self.field.objective or self.field

    @cached_property
    def dynamics(self) -> Any:
        """How the run moves, built again from the spec."""
        return build(self.run.spec["dynamics"])

    @property
    def replays(self) -> bool:
        """Whether a run is replayed even where its frames are near enough: not of no paper, nor where it takes too long."""
        return self.kind is not None and self.what is None

    @cached_property
    def _replay(self) -> Replay | ReplayTest:
        """The law from the run's first frame on, or why it is not followed."""
        run = self.run
        if run.status in BROKEN or run.spec["field"] is None or run.frames < 2:
            return ReplayTest(None, run.clock, run.frames)
        try:
            law = replay_of(run, self.field)
        except StagescopeError:  # without its objective or its package a run is read as it is, and what needs them says so
            return ReplayTest(None, run.clock, run.frames)
        if isinstance(law, Replay) or law.passes is False:
            return law
        reason = f"{law.reason}, so its frames are read as they are and confirm nothing" if self.kind is not None else ""
        return ReplayTest(None, run.clock, run.frames, reason=reason)

    def replay(self, positions: np.ndarray) -> Run | None:
        """The run with frames at `positions` too, by its law; None where the law does not pass through every recorded frame.

        Every refinement of a run goes this way. One integration makes the frames and compares.
        """
        return self.follow_law(lambda law: law.refined(positions))

    def follow_law(self, use: Callable[[Replay], Made]) -> Made | None:
        """What `use` makes of the replay of the run; None where the law does not pass through every recorded frame."""
        law = self._replay
        if isinstance(law, ReplayTest) or ("replay_test" in vars(self) and not self.replay_test.passes):
            return None
        result, vars(self)["replay_test"] = law.followed(use)
        return result

    @cached_property
    def replay_test(self) -> ReplayTest:
        """Whether the law of the run passes through every recorded frame; see `readings.replay`."""
        if isinstance(self._replay, ReplayTest):
            return self._replay
        with suppress(Exception):  # curves that cannot be made have a sentence where they are asked for
            _ = self.curves  # a reading that refines its curves compares on the way
        if "replay_test" not in vars(self) and just_evolved(self.run):
            return ReplayTest(True, self.run.clock, self.run.frames)
        if "replay_test" not in vars(self) and self.replays:
            return self._replay.tested()
        return vars(self).get("replay_test") or ReplayTest(None, self.run.clock, self.run.frames)

    @property
    def replay_note(self) -> str:
        """What must be known before the reading is believed; empty where the law makes the frames, or where there is none."""
        test = self.replay_test
        if test.passes or test.sentence or self.replays or self.kind is None or isinstance(self._replay, ReplayTest):
            return "" if test.passes else test.sentence
        remedy = "`stagescope verify --replay` compares them with its law, which takes as long as the run did"
        return f"the frames of this run are read as they are: {remedy}"

    @cached_property
    def curves(self) -> Any:
        raise self.not_available_error("observables")

    @cached_property
    def stages(self) -> Stages:
        """Events and stages: the paper's where it has some, otherwise those of the loss alone (`free_stages`)."""
        return self.free_stages

    @cached_property
    def transitions(self) -> tuple[tuple[str, Transition], ...]:
        """The fast changes of the loss and of every other recorded series of numbers, by the name of the curve.

        They need no paper. A run whose numbers broke down has none.
        """
        return tuple((name, event) for name, event in self.curve_events if event.kind != "spike")

    @cached_property
    def curve_events(self) -> tuple[tuple[str, Transition], ...]:
        """Transitions and spikes of the curves."""
        run, series = self.run, self.searched
        if run.status in BROKEN:
            return ()
        names = read_curves(run.clock, series)[: LIMITS.curves]
        return tuple((name, event) for name in names for event in curve_events(run.time, series[name]))

    @property
    def searched(self) -> Mapping[str, np.ndarray]:
        """The recorded series that are searched for transitions."""
        return self.run.series

    @cached_property
    def free_stages(self) -> Stages:
        """Stages of the loss alone: plateaus and transitions. Any run with a frame has them."""
        run, missing_type = self.run, missing(self.type)
        self.need_frames()
        notes = {} if missing_type is None else {"paper": f"stages by the loss alone: {missing_type}"}
        notes |= curve_notes(run.clock, run.time, self.searched)
        return loss_stages(run.status, run.clock, run.time, run.series.get("loss"), self.curve_events, notes)

    @cached_property
    @kept_answer("stages")
    def told_stages(self) -> Stages:
        """What `ss.stages` answers: the paper's stages with the transitions beside them.

        Where the paper's cannot be read, such as without its text, they are those of the loss alone, and a note says why.
        """
        self.need_frames()
        first = {"replay": self.replay_note} if self.replay_note else {}
        fork = {} if (reason := forked(self.run)) is None else {"fork": reason}
        try:
            stages = replace(self.stages, transitions=self.transitions, notes={**first, **self.stages.notes, **fork})
            return stages.read_at(self.run.time) if first else stages
        except Exception as error:  # numbers that are not finite break solvers in many ways
            free = self.free_stages
            return replace(free, notes={**first, "paper": f"stages by the loss alone: {message(error)}", **fork, **free.notes})

    @cached_property
    def evidence(self) -> Any:
        """What the functions of a claim get: the paper's evidence, or this reading for a run of no paper. It has a `run`."""
        return self

    @cached_property
    @kept_answer("check")
    def ledger(self) -> Ledger:
        """The verdicts of the paper's claims."""
        return self.judged()

    @cached_property
    @kept_answer("check --elsewhere")
    def decided_ledger(self) -> Ledger:
        """The same, with the verdicts of companion runs where this one cannot decide."""
        return self.decide_by_companion_runs(self.judged())

    def judged(self, tags: Collection[str] | None = None) -> Ledger:
        """The verdicts of the paper's claims, or of those with some tags alone, as `check` shows them."""
        self.need_frames()
        claims = () if self.kind is None else self.kind.claims()
        if tags is not None:
            claims = tuple(claim for claim in claims if claim.tag in tags)
        if not claims:
            advice = "put claims of your own to it: --claims module:NAME, in Python claims=[...]"
            raise missing(self.type) or InputError(f"{self.not_available_error('claims')}; {advice}")
        if (reason := forked(self.run)) is not None:
            return Ledger(self.run.status, self.run.clock, tuple(claim.out_of_regime(reason) for claim in claims))
        ledger, rates = self.judge_paper(claims), claim_rates(self.type)
        verdicts = (
            replace(row, calibrated=row_rates.nulls > 0, rates=row_rates)
            if (row_rates := rates.get((row.tag, row.rules)))
            else row
            for row in ledger
        )
        return replace(ledger, verdicts=tuple(map(self._unless_missed, verdicts)), notes=tuple(filter(None, [self.replay_note])))

    def _unless_missed(self, row: Verdict) -> Verdict:
        """A law that does not make the frames is not confirmed by them; what they contradict stays violated."""
        test = self.replay_test
        missed = not test.passes and test.sentence  # or it could not be followed, or decides nothing
        if not missed or row.verdict != "confirmed":
            return row
        return replace(
            row, verdict="inconclusive", reason=f"the law is not seen to make these frames, which confirm nothing; {row.reason}"
        )

    def judge_paper(self, claims: tuple[Claim, ...]) -> Ledger:
        """The verdicts of the paper's claims on a run that moves by one law from its start to its end."""
        return self.judge(claims)

    def check(self, claims: Claims = (), elsewhere: bool = False, control: Run | str | Path | None = None) -> Ledger:
        """The verdicts of the paper's claims, then those of your own `claims`; `elsewhere` makes the runs that decide more.

        `control` is a run to compare with; only runs of watched models take one.
        """
        if control is not None:
            raise InputError(
                f"a control is for runs of ss.watch and ss.read_checkpoints, this one is of {self.type!r}; leave it out"
            )
        extra_claims = own_claims(claims)
        refuse_taken(extra_claims, () if self.kind is None else self.kind.claims())
        self.need_frames()
        if not extra_claims:
            return self.decided_ledger if elsewhere else self.ledger
        if (error := missing(self.type)) is not None:
            raise error
        paper_ledger = (self.judged() if elsewhere else self.ledger) if self.kind is not None and self.kind.claims() else None
        verdicts, notes = ((), ()) if paper_ledger is None else (paper_ledger.verdicts, paper_ledger.notes)
        ledger = Ledger(self.run.status, self.run.clock, (*verdicts, *map(self._unless_missed, self.judge(extra_claims))), notes)
        with keeping(self.run):
            return self.decide_by_companion_runs(ledger) if elsewhere else ledger

    def decide_by_companion_runs(self, ledger: Ledger) -> Ledger:
        """A ledger in which claims that this run cannot decide have the verdict of a run with the options that they name."""
        with progress_for(self.progress) as bar:
            rows = bar.each(ledger.verdicts, "beside", "claims")
            return replace(ledger, verdicts=tuple(map(self._decided, rows)))

    def _decided(self, row: Verdict) -> Verdict:
        """A verdict with that of the companion run that decides it, where the claim names one."""
        claim = next((claim for claim, _ in self._verdicts.values() if claim.tag == row.tag), None)
        if row.elsewhere is None or claim is None:  # or another kind of evidence decided the row
            return row
        try:
            verdict = self.companion(self.rerun_with, dict(row.elsewhere.options)).judge([claim]).verdicts[0]
        except Exception as error:  # a run with other options may fail in any way; this one's ledger stands
            verdict = claim.without_evidence(error)
        return replace(row, elsewhere=replace(row.elsewhere, verdict=verdict))

    def rerun_with(self, changes: dict[str, Any]) -> "Reading":
        """The reading of a run of the same study and seed with some options changed."""
        run = self.run
        if run.study is None or run.config is None:
            raise InputError("this run was not made by a study, so it has no options to change")
        of_study = study(run.study)
        options = {name: run.config[name] for name in of_study.options.model_fields if name in run.config} | changes
        if options.get("record") == "by-change":  # of version 0.2.0
            del options["record"]
        return reading(ended(of_study.run(of_study.configured(None, **options), seed=run.seed or 0, progress=False)))

    def judge(self, claims: Iterable[Claim]) -> Ledger:
        """The verdicts of some claims; a claim that was judged before is not judged again.

        Where code that computes the evidence has a mistake, all of them are inconclusive, and their rows say why. An error of
        Stagescope's own, such as a text that cannot be found, names a remedy and is raised.
        """
        claims, verdicts = tuple(claims), self._verdicts
        new = [claim for claim in claims if id(claim) not in verdicts]
        with keeping(self.run):
            evidence = None
            try:
                evidence = self.evidence if new else None
            except StagescopeError:
                raise
            except (Exception, SystemExit) as error:
                verdicts |= {id(claim): (claim, claim.without_evidence(error)) for claim in new}
            with one_blas_thread(), progress_for(self.progress) as bar:  # matrices are small: more threads only cost
                for claim in bar.each(new, "claims", "claims"):
                    if id(claim) not in verdicts:
                        verdicts[id(claim)] = claim, claim.judge(self.run, evidence)
        return Ledger(self.run.status, self.run.clock, tuple(verdicts[id(claim)][1] for claim in claims))

    @property
    def prediction(self) -> SaddlePath | None:
        """The saddle path from the run's first frame, a second or more; None where there is none, and `unpredicted` says why."""
        return self._predicted[0]

    @property
    def unpredicted(self) -> str:
        """Why nothing is predicted for the run; empty where `prediction` is a path."""
        return self._predicted[1]

    @cached_property
    @kept_answer("predicted")
    def _predicted(self) -> tuple[SaddlePath | None, str]:
        try:
            return predicted(self.run, self.what), ""
        except StagescopeError as error:
            return None, message(error)

    @property
    def has_own_ladder(self) -> bool:
        """Whether the model has a ladder of its own; otherwise critical points are searched for."""
        return False

    def own_ladder(self) -> Ladder:
        """The ladder that only this kind of run has."""
        raise InputError(f"runs of {self.type!r} have no ladder of their own")

    @cached_property
    @kept_answer("ladder")
    def ladder(self) -> Ladder:
        """The critical points the run passed; those of a fork are of its frames after it was forked."""
        if self.has_own_ladder and self.what is None:
            return self.own_ladder()
        return field_ladder(after_fork(self.run), self.field, progress=self.progress)

    @property
    def ladder_cost(self) -> tuple[float, str]:
        """Seconds that the search for critical points may take, and the sentence that says what is searched."""
        return (0.0, "") if self.has_own_ladder else search_cost(after_fork(self.run), self.field)

    @cached_property
    def views(self) -> "list[Maker]":
        """What a page shows of the run, each made when called."""
        from stagescope.views.any_run import any_views  # claims need no views

        return any_views(self) if self.kind is None else self.kind.views(self)

    @cached_property
    def explained(self) -> "Explained":
        """Model, process and stages in words, as the paper has them; of any other run in general ones."""
        from stagescope.views.view import any_explained

        return any_explained(self) if self.kind is None else self.kind.explain(self)

    @cached_property
    def derived(self) -> "tuple[Derived, ...]":
        """What the views show, as named arrays: attention, singular values, entropies, whatever the paper derives from a run.

        What was recorded is not among them. A view that cannot be made is left out.
        """
        return self._derived[0]

    @property
    def failed_views(self) -> tuple[str, ...]:
        """A sentence on each view that could not be made."""
        return self._derived[1]

    @cached_property
    def _derived(self) -> "tuple[tuple[Derived, ...], tuple[str, ...]]":
        from stagescope.views.any_run import derived

        return derived(self.run, self.views if self.run.frames else ())

    def to_pandas(self) -> "pandas.DataFrame":
        """The recorded series and the derived curves, one row a frame, by the clock (needs the extra `stagescope[pandas]`)."""
        frame = needed("pandas", "pandas", "reading.to_pandas()").DataFrame
        from stagescope.runs.export import columns

        return frame(columns(self.run, self.derived)).set_index(self.run.clock)

    def _repr_html_(self) -> str:
        """What a notebook shows: the summary of the run, and the parts of its reading."""
        names = ["curves", "stages", "ladder", "ledger", "views", "derived", "prediction", "transitions", "evidence", "field"]
        parts = ", ".join(f"reading.{name}" for name in names)
        return block(self.run._repr_html_(), note(f"Parts, each computed when first used: {parts}"))

    @contextmanager
    def showing(self, progress: bool | None) -> Iterator[None]:
        """Progress bars while this lasts."""
        before, self.progress = self.progress, progress
        try:
            yield
        finally:
            self.progress = before

    def companion(self, make: Callable[..., Made], *arguments: Any) -> Made:
        """What `make(*arguments)` gives, such as a run from a smaller start; made once for the same function and arguments.

        `make` is a function or method with a name; the arguments are texts, finite numbers, or lists or dictionaries of them.
        A failure is remembered too, and raised again. A claim states the cost of its companions in `Claim.cost`.
        """
        results, key = self._companions, _companion_key(make, arguments)
        if key not in results:
            try:
                with keeping(self.run):
                    results[key] = make(*arguments)
            except StagescopeError as error:
                results[key] = error
        if isinstance(results[key], StagescopeError):
            raise results[key]
        return results[key]

    def companions(self, make: Callable[..., Made], values: Iterable[Any]) -> list[Made]:
        """The same for each value, for a claim over several runs; those that could not be made are left out."""
        results = []
        for value in values:
            with suppress(StagescopeError):
                results.append(self.companion(make, value))
        return results

    def need_frames(self) -> None:
        """Refuse a run without frames."""
        if self.run.frames == 0:
            raise InputError("the run has no frames")

    @property
    def type(self) -> str:
        """The id of the type of field."""
        return self.run.type

    def not_available_error(self, kind: str) -> InputError:
        """Why there are no observables or claims: the package of the paper is missing, or no paper has them for such runs."""
        return missing(self.type) or InputError(f"no {kind} are written for runs of {self.type!r}")

    @property
    def cost(self) -> Cost:
        return Cost() if self.kind is None else self.kind.cost


def reading(run: Run | str | Path, what: Objective | Field | None = None) -> Reading:
    """The reading of a run: curves, stages, ladder, ledger and views, each computed when first used, and once.

    `stages`, `check`, `saddle_ladder`, `report` and sweeps all use it. It is the same object each time, also for a copy of the
    run by `dataclasses.replace`. A copy with other arrays, or that ended otherwise, has a reading of its own. A stored run that
    is opened again has another reading, which takes its answers and integrations from the cache of the user.

    Args:
        run: any run, or the folder of one.
        what: your own objective or field, where the run moves one; needed for `field` and `ladder` only. It may be left out
            later, unless a second one was given for the same run.

    Returns:
        The reading, the same object each time.

    Examples:
        >>> ss.reading(run) is ss.reading(run)
        True
    """
    run = load(run) if isinstance(run, str | Path) else run
    if not isinstance(run, Run):
        raise InputError(f"expected a run or its folder, got {type(run).__name__}")
    objectives = run.memo.setdefault("objectives", [])
    objectives_of_run = [objective for spec, objective in objectives if spec is run.spec]
    if what is None and len(objectives_of_run) == 1:  # of two nobody knows which is meant
        what = objectives_of_run[0]
    readings: deque[Reading] = run.memo.setdefault("readings", deque(maxlen=READINGS))
    for earlier in readings:
        if earlier.what is what and _same_run(earlier.run, run):
            return earlier
    if what is not None:
        field_of(run.spec, what)  # refuses an objective that the run does not move
    kind = kind_of(run.type)
    run_reading = Reading(run, kind, what) if kind is None or what is not None else kind.read(run)
    run_reading.kind = kind
    if what is not None and len(objectives_of_run) < 2 and all(objective is not what for objective in objectives_of_run):
        objectives.append((run.spec, what))
    readings.appendleft(run_reading)
    return run_reading


def _companion_key(make: Callable[..., Any], arguments: tuple[Any, ...]) -> bytes:
    """The name and module of a function with its arguments."""
    name, module = getattr(make, "__qualname__", None), getattr(make, "__module__", None)
    if name is None or module is None or name.endswith("<lambda>"):
        raise InputError(f"a companion is made by a function or method with a name, not by {make!r}; define one with `def`")
    try:
        return canonical([module, name, *arguments])
    except (TypeError, ValueError) as error:
        expected = "texts, finite numbers, or lists or dictionaries of them"
        raise InputError(f"the arguments of the companion {name!r} must be {expected}: {message(error)}") from None


def _same_run(one: Run, copy: Run) -> bool:
    """Whether two copies of a run have the same arrays, were made in the same way, and ended so."""
    same_arrays = all(getattr(one, part) is getattr(copy, part) for part in ("params", "series", "spec"))
    facts = ("clock", "seed", "study", "config", "status", *(() if one.done else ("reason",)))
    return same_arrays and all(getattr(one, part) == getattr(copy, part) for part in facts)


def stages(run: Run | str | Path) -> Stages:
    """Events and stages of a run, and the transitions of its recorded curves; an event that was not reached is None.

    Every run with a frame has stages: those of its paper, otherwise plateaus and transitions of its loss.

    Args:
        run: a run or its folder.

    Examples:
        >>> for stage in ss.stages(snap):
        ...     print(stage.name, round(stage.start, 1))
        uniform 0.0
        scan 4.1
        snapped 188.9
    """
    return reading(run).told_stages


def check(
    run: Run | str | Path,
    claims: Claims = (),
    elsewhere: bool = False,
    *,
    control: Run | str | Path | None = None,
    progress: bool | None = False,
) -> Ledger:
    """The ledger: every claim of the run's paper with its verdict, then your own claims.

    Args:
        run: any run; one of no paper needs claims of your own.
        claims: a `Claim`, several, or "module:NAME" of some. Their functions get `ss.reading(run).evidence`: what the paper
            prepares for its claims, and the reading itself for a run of no paper. It always has the run as `run`.
        elsewhere: where this run is out of a claim's regime and the claim names options of the study with which it is not,
            make that run too and show its verdict. Each such run costs about as much as this one.
        control: of a watched model, another watched run in which there is nothing to learn, such as the same training on
            shuffled text. Claims find it as `evidence.control`, which is None without one.
        progress: a bar over the claims, since some make companion runs; None shows it on a terminal.

    A claim whose function raises an error is inconclusive, and its row says why.

    Returns:
        A verdict for each claim.

    Examples:
        >>> print(ss.check(snap).summary())
        4 confirmed, 2 inconclusive, 11 not applicable (17 groups of 24 claims)
    """
    run_reading = reading(run)
    with run_reading.showing(progress):
        return run_reading.check(claims, elsewhere, control)


def saddle_ladder(run: Run | str | Path, what: Objective | Field | None = None, progress: bool | None = False) -> Ladder:
    """The critical points a run passed, what opens at each, and when it was and should have been left.

    A model that is known to pass critical points of small models inside it has a ladder of its own. Any other run, also of
    your own objective, which then is given as `what`, is searched for critical points where it is slow: `progress` shows how
    far that is.

    Args:
        run: a run or its folder.
        what: your own objective, where the run moves one.
        progress: show how far the search is.

    Examples:
        >>> print(next(iter(ss.saddle_ladder(run))).label)
        (0,0)
    """
    run_reading = reading(run, what)
    run_reading.need_frames()
    with run_reading.showing(progress):
        return run_reading.ladder
