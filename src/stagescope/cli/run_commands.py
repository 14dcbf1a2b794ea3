"""Commands that make a run, fork it, import one, continue it, and look after its files. Heavy imports are inside."""

import json
import os
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro
from pydantic import Field

from stagescope.cli.command import (
    AS_JSON,
    NO_SUMMARY,
    OUT,
    OVERWRITE,
    OWN_OBJECTIVE,
    PRESET,
    QUIET,
    Command,
    Json,
    OwnObjective,
    RunFolder,
    StudyFlags,
    answer,
    info,
    named_values,
    objective,
    outcome,
    print_json,
    print_notes,
)
from stagescope.core.caches import say
from stagescope.core.errors import InputError, NotARun, first_names, message, printable
from stagescope.readings.registry import study

if TYPE_CHECKING:
    from stagescope.core.options import Options
    from stagescope.readings.study import Study
    from stagescope.runs.manifest import Manifest
    from stagescope.runs.run import Run as StoredRun


class RunFlags(StudyFlags):
    """What every study's run understands besides its own options."""

    out: Annotated[Path, OUT]
    """folder of the new run"""
    preset: str | None = PRESET
    config: Path | None = None
    """a run configuration (JSON), such as the page of `stagescope play` saves; options given override it"""
    seed: int = 0
    """seed of the initial parameters and of all draws"""
    overwrite: bool = OVERWRITE
    resume_or_start: bool = False
    """continue the run of these settings in --out, start it where there is none, leave it if it is done"""
    checksum: bool = False
    """a CRC32C at the end of every chunk, so that other Zarr readers see damage too"""
    quiet: bool = NO_SUMMARY
    json_: Json = AS_JSON


class Run(Command):
    """Run a study (one question of a paper) and store the run in a folder. --preset chooses named options. Ctrl-C, SIGTERM and
    SIGHUP leave a run that `stagescope resume` continues."""

    study: Any

    def run(self) -> int:
        flags: RunFlags = self.study
        of_study = study(flags.study_name)
        options = of_study.configured(None, **flags.options_of(of_study))
        if flags.resume_or_start:
            if flags.overwrite:
                raise InputError("--overwrite replaces a run, --resume-or-start keeps it; give one of them")
            if flags.checksum and os.path.lexists(flags.out):
                print_notes(["--checksum is for a run that starts; one that is there keeps its chunks as they are"], sys.stderr)
            if (manifest := _same_run(flags.out, of_study, options, flags.seed)) is not None:
                return _go_on(manifest, flags.out, flags.quiet, flags.json_)
        run = of_study.run(
            options, seed=flags.seed, out=flags.out, overwrite=flags.overwrite, checksum=flags.checksum, progress=flags.progress
        )
        return report_run(run, flags.quiet, flags.json_)


class Resume(Command):
    """Continue a run that was interrupted or killed."""

    folder: RunFolder
    objective: OwnObjective = OWN_OBJECTIVE
    quiet: bool = NO_SUMMARY
    json_: Json = AS_JSON

    def run(self) -> int:
        from stagescope.readings.rebuild import resume

        with warnings.catch_warnings():  # those of a run that goes on elsewhere, as plain lines
            warnings.simplefilter("always", UserWarning)
            warnings.showwarning = lambda message, *_, **__: print_notes([str(message)], sys.stderr)
            run = resume(self.folder, objective(self.objective), progress=self.progress)
        return report_run(run, self.quiet, self.json_)


class Verify(Command):
    """Check every stored byte of runs, or every row of sweeps; with --replay, that the law of a run makes its frames."""

    folders: Annotated[tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="FOLDER...", help="runs or sweeps")]
    replay: bool = False
    """also follow the law of each run from its first frame; it must pass through all frames; takes as long as the run did"""
    objective: OwnObjective = OWN_OBJECTIVE
    json_: Json = AS_JSON

    def run(self) -> int:
        if not self.folders:
            raise InputError("no FOLDER is given; name a run or a sweep")
        verified = [_verified(folder, alone=len(self.folders) == 1) for folder in self.folders]
        law = objective(self.objective)
        for facts in verified if self.replay else ():
            if not facts["intact"]:
                continue
            problem = "--replay is for runs; leave it out for a sweep"
            if "run" in facts:  # whether its law passes through every frame
                from stagescope.readings.rebuild import verify_replay

                try:
                    test = verify_replay(facts["run"], law)
                    facts["replay"] = test.json()
                    problem = "" if test.passes else test.sentence
                except InputError as error:
                    problem = str(error)
            if problem:
                facts["problems"], facts["intact"] = [f"{facts.get('run') or facts['sweep']}: {problem}"], False
        if self.json_:
            print_json(verified[0] if len(verified) == 1 else verified)
        for facts in () if self.json_ else verified:
            if facts["problems"]:
                print("\n".join(map(printable, facts["problems"])), file=sys.stderr)
            else:
                folder, unit = ("sweep", "row") if "sweep" in facts else ("run", "byte")
                print(f"{facts[folder]}: every {unit} is as it was committed")
                if "replay" in facts:
                    print(printable(f"{facts[folder]}: {facts['replay']['sentence']}"))
        return 0 if all(facts["intact"] for facts in verified) else 1


def _verified(folder: Path, alone: bool) -> dict[str, Any]:
    """What `verify` finds in a folder; one that holds nothing is an error, or among others a finding."""
    from stagescope.sweeping.plan import FILE

    swept = os.path.lexists(folder / FILE)
    if swept:
        from stagescope.sweeping.table import verify_sweep as verify
    else:
        from stagescope.runs.store import verify
    try:
        problems = verify(folder)
    except NotARun as missing:
        if alone:
            raise
        problems = [str(missing)]
    return {"sweep" if swept else "run": str(folder), "intact": not problems, "problems": problems}


class Info(Command):
    """What a run is and how it ended."""

    folder: RunFolder
    json_: Json = AS_JSON

    def run(self) -> int:
        from stagescope.runs.store import load

        return answer(info(load(self.folder)), self.json_, "print_info")


class Export(Command):
    """Write a run for other tools: the recorded arrays, and with --derived what its views show (attention, singular values,
    entropies, masses)."""

    folder: RunFolder
    to: Literal["csv", "npz", "parquet", "netcdf", "jsonl", "tensorboard"] = Field(
        description="csv, parquet: one row a frame, series; npz: all arrays; netcdf: all, named axes; jsonl: scalars, one object"
        " a frame, as W&B has them; tensorboard: scalars, a log directory"
    )
    derived: bool = False
    """also what the views of the run show, as columns or arrays"""
    out: Annotated[Path | None, OUT] = None
    """file to write, for tensorboard a folder; default: the run's name with the format's suffix"""
    overwrite: bool = False
    """replace an existing file"""

    def run(self) -> int:
        from stagescope.runs.export import SUFFIX, export
        from stagescope.runs.store import load

        if self.to in SUFFIX and not self.derived:  # without a paper, and so without what is slow to import
            print(export(load(self.folder), self.to, self.out, self.overwrite))
            return 0
        from stagescope.show import exporting

        notes: list[str] = []
        print(exporting.export(self.folder, self.to, self.out, derived=self.derived, overwrite=self.overwrite, said=notes.append))
        print_notes(notes, sys.stderr)
        return 0


def _same_run(folder: Path, of_study: "Study", options: "Options", seed: int) -> "Manifest | None":
    """The manifest of the run of these settings in a folder, None where no run is there; another run is refused.

    An option that the run does not know is one of a later version: it had its default. Files have the same path and bytes.
    """
    from stagescope.runs import manifest as manifests

    if not os.path.lexists(folder / manifests.NAME):
        return None
    manifest = manifests.read(folder)
    stored = {
        **of_study.configured().model_dump(mode="json"),
        **(manifest.config or {}),
        "study": manifest.study,
        "seed": manifest.seed,
    }
    config = {"study": of_study.name, "seed": seed, **options.model_dump(mode="json")}
    if all(stored[name] == config[name] for name in config) and options.files():
        options.prepare(False)
        config |= of_study.setup(options, seed).facts
    differing = [name for name in config if stored.get(name) != config[name]]
    if differing:
        values = ", ".join(
            f"{name} is {str(stored.get(name))[:70]} there and {str(config[name])[:70]} here" for name in differing[:3]
        )
        raise InputError(f"{folder} holds another run ({values}); choose another --out")
    return manifest


def _go_on(manifest: "Manifest", folder: Path, quiet: bool, as_json: bool) -> int:
    """Continue a run, or say that it is done, after a look at every byte of it."""
    from stagescope.runs.files import refuse_foreign
    from stagescope.runs.run import DONE
    from stagescope.runs.store import load

    if manifest.status not in DONE:
        return Resume(folder=folder, quiet=quiet, json_=as_json).run()
    refuse_foreign(folder)
    run = load(folder)
    if not as_json and not quiet:
        print(f"{folder} is {manifest.status} already: nothing to do")
    return report_run(run, quiet or not as_json, as_json)


def report_run(run: Any, quiet: bool, as_json: bool) -> int:
    """Say how a run ended; the exit code of its command."""
    if as_json:
        print_json(info(run))
    elif not quiet:
        print(outcome(run))
    if not run.done:
        say(printable(f"{run.status}: {run.reason}"))
    return 0 if run.done else 1


class Fork(Command):
    """A new run, bitwise a stored one up to one of its frames; then with other options, frozen blocks, or a push."""

    folder: RunFolder
    at: str
    """where: t=120, step=4000 or frame=17; between two frames it is the first"""
    out: Annotated[Path, OUT]
    """folder of the new run"""
    until: float | None = None
    """end of a flow; default: that of the old run"""
    steps: int | None = None
    """number of all steps, those before the fork too; default: that of the old run"""
    set: tuple[str, ...] = ()
    """options of the motion after the fork: lr=.05 momentum=.5 clip=1 optimizer=adam rtol=1e-8 rates.WQ=2"""
    freeze: tuple[str, ...] = ()
    """blocks of parameters that stay as they are at the fork"""
    perturb: float | None = None
    """how far to push the parameters at the fork: a distance"""
    along: int = 1
    """direction of the push: 1 grows fastest there, 2 comes next"""
    objective: OwnObjective = OWN_OBJECTIVE
    overwrite: bool = OVERWRITE
    quiet: bool = NO_SUMMARY
    json_: Json = AS_JSON

    def run(self) -> int:
        from stagescope.readings.fork import fork
        from stagescope.readings.fork_difference import fork_difference
        from stagescope.runs.store import load

        parent, names = load(self.folder), ("at", "out", "until", "steps", "freeze", "perturb", "along", "overwrite")
        choices: Any = {name: getattr(self, name) for name in names}
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always", UserWarning)
            forked = fork(
                parent, objective(self.objective), changes=named_values(self.set, "lr=0.05"), progress=self.progress, **choices
            )
        notes = [str(warning.message) for warning in heard if issubclass(warning.category, UserWarning)]
        if self.json_:
            print_json({**info(forked), "notes": notes, "difference": fork_difference(parent, forked).json()})
        else:
            print_notes(notes, sys.stderr)
            if not self.quiet:
                print(printable(str(fork_difference(parent, forked))), outcome(forked), sep="\n")
        return report_run(forked, quiet=True, as_json=False)


class Import(Command):
    """Make a run of somebody else's training: of a folder of checkpoints, or of a TensorBoard log directory.

    Checkpoints are loaded one by one and looked at on --probe; --model and --tokenizer are needed where the folder has no
    config.json and tokenizer.json of transformers. Of a log directory the scalars are read, as curves with stages.
    """

    folder: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="FOLDER")]
    out: Annotated[Path, OUT]
    """folder of the new run"""
    probe: Annotated[str | None, tyro.conf.arg(metavar="TEXT")] = None
    """checkpoints: a text to look at the model on, or @FILE; a .npy or .json FILE holds token ids"""
    model: Annotated[str | None, tyro.conf.arg(metavar="MODULE:FACTORY")] = None
    """checkpoints: a function of a Python module that makes the model"""
    tokenizer: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None
    """checkpoints: a tokenizer.json"""
    run_: Annotated[str | None, tyro.conf.arg(name="run")] = None
    """logs: which run, where there are several below the folder: its path from there"""
    loss: str | None = None
    """logs: the tag that is the loss; default: the one called so, held-out first"""
    tags: str = "*"
    """logs: pattern of the tags to read, such as 'train/*'"""
    overwrite: bool = OVERWRITE
    quiet: bool = QUIET
    json_: Json = AS_JSON

    def run(self) -> int:
        from stagescope.watching.logs import event_files, from_tensorboard

        if not self.folder.is_dir():
            problem = "is a file" if self.folder.exists() else "does not exist"
            raise InputError(f"{self.folder} {problem}; give the folder that holds the event files or the checkpoints")
        if event_files(self.folder) and self.probe is None:
            run = from_tensorboard(self.folder, self.run_, self.loss, self.tags).save(self.out, self.overwrite)
        else:
            run = self._checkpoints()
        if self.json_:
            print_json(info(run))
        else:
            # What was read, what to know of it, and what to do next.
            source: dict[str, Any] = run.spec["source"]
            curves = [name for name in run.series if name != run.clock]
            frames = f"{run.frames:,} frame{'' if run.frames == 1 else 's'} to {run.clock} = {run.time[-1]:.6g}"
            print(printable(f"{frames}; {len(curves):,} curves: {first_names(curves, 8)}"))
            print_notes(source.get("notes", ()))
            print(f"next: stagescope stages {run.path}  |  stagescope report {run.path}")
        return 0

    def _checkpoints(self) -> "StoredRun":
        from stagescope.watching.folders import checkpoints

        try:
            checkpoints(self.folder)
        except InputError:
            if any(self.folder.iterdir()) and self.probe is not None:
                raise
            raise InputError(
                f"{self.folder} holds nothing that can be imported: no event files of TensorBoard (events.out.tfevents.*) and no"
                " checkpoints such as checkpoint-500, step1000 or ckpt_200.pt"
            ) from None
        if self.probe is None:
            raise InputError("checkpoints are looked at on a text; give it as --probe TEXT, or --probe @FILE")
        from stagescope.watching.checkpoints import read_checkpoints

        return read_checkpoints(
            self.folder,
            probe=_probe(self.probe),
            out=self.out,
            model=self.model,
            tokenizer=self.tokenizer,
            overwrite=self.overwrite,
            progress=self.progress,
        )


def _probe(option_text: str) -> Any:
    """A text, the text of a file, or token ids in a file."""
    if not option_text.startswith("@"):
        return option_text
    path = Path(option_text[1:])
    try:
        if path.suffix == ".npy":
            import numpy as np

            return np.load(path, allow_pickle=False)
        text = path.read_text(encoding="utf-8")
        return json.loads(text) if path.suffix == ".json" else text
    except (OSError, ValueError) as error:
        raise InputError(f"the probe {path} cannot be read: {message(error)}") from None
