"""`stagescope`: parse, dispatch, and turn errors into a sentence and an exit code. Imports nothing heavy."""

import re
import signal
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from typing import Annotated, Any, Literal, Union

import tyro
from pydantic import BaseModel, Field, create_model

from stagescope.cli import paper_commands, reading_commands, run_commands, sweep_commands, theory_commands
from stagescope.cli.arguments import expanded, refuse_unknown
from stagescope.cli.command import Command, StudyFlags
from stagescope.cli.first_screen import Wrapped, at_once
from stagescope.cli.kept import unwritten
from stagescope.core.caches import say
from stagescope.core.errors import InputError, StagescopeError, sentence, unknown
from stagescope.readings.registry import package_of, studies, study
from stagescope.readings.study import NamedSweep, Study

VERBS: dict[str, tuple[type[Command], type[StudyFlags]]] = {
    "run": (run_commands.Run, run_commands.RunFlags),
    "sweep": (sweep_commands.Sweep, sweep_commands.SweepFlags),
    "predict": (theory_commands.Predict, theory_commands.PredictFlags),
    "continue": (theory_commands.Continue, theory_commands.ContinueFlags),
}
"""Commands that take a study and its options."""
COMMANDS: dict[str, type[Command]] = {
    "diagram": sweep_commands.Diagram,
    "list": paper_commands.List,
    "resume": run_commands.Resume,
    "fork": run_commands.Fork,
    "verify": run_commands.Verify,
    "info": run_commands.Info,
    "stages": reading_commands.Stages,
    "check": reading_commands.Check,
    "heads": reading_commands.Heads,
    "ladder": reading_commands.Ladder,
    "import": run_commands.Import,
    "export": run_commands.Export,
    "report": reading_commands.Report,
    "play": reading_commands.Play,
    "figures": reading_commands.Figures,
    "reproduce": paper_commands.Reproduce,
    "corpus": paper_commands.Corpus,
    "audit": reading_commands.Audit,
    "calibrate": paper_commands.Calibrate,
    "cite": paper_commands.Cite,
    "demo": paper_commands.Demo,
}
"""The others. Each is a typed set of arguments with a `run` that returns an exit code."""
CONFIG = (tyro.conf.FlagCreatePairsOff, tyro.conf.DisallowNone, tyro.conf.OmitArgPrefixes, tyro.conf.OmitSubcommandPrefixes)


def main(arguments: list[str] | None = None) -> None:
    """Entry point of the command."""
    # SIGTERM and SIGHUP end a command as Ctrl-C does; the one that came is put into the list. nohup stays in force.
    came: list[int] = []
    kinds = [kind for kind in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(kind) is not signal.SIG_IGN]

    def end(number: int, _: Any) -> None:
        came.append(number)
        for kind in kinds:
            signal.signal(kind, signal.SIG_IGN)  # what is under way is committed in peace
        raise KeyboardInterrupt

    for kind in kinds:
        signal.signal(kind, end)
    code = run(list(sys.argv[1:] if arguments is None else arguments))
    sys.exit(128 + came[0] if came and code == 130 else code)


def run(arguments: list[str]) -> int:
    """Run one command and return its exit code: 0 done, 1 failed, 2 bad usage, 130 interrupted (SIGTERM: 143, SIGHUP: 129)."""
    if at_once(arguments):
        return 0
    try:
        # -o, -oPATH and -o=PATH as --out: an option has one name, so that it is seen when it is given twice.
        arguments = expanded(["--out" if word == "-o" else re.sub("^-o=?", "--out=", word) for word in arguments])
        # An option given twice: the parser would silently keep one of the two values.
        options = [word.partition("=")[0].replace("_", "-") for word in arguments if word.startswith("--")]
        for name in options:
            if options.count(name) > 1 and name != "--grid":
                raise InputError(f"{name} is given {options.count(name)} times; give it once, with all its values after it")
        _early_names(arguments)
        return _parsed(arguments).run()
    except StagescopeError as error:
        say(str(error))
        return error.exit_code
    except KeyboardInterrupt as interrupt:
        lost = getattr(interrupt, "folder", ...) is None  # a run in memory: how Python would keep it helps nobody here
        text = "" if lost else str(interrupt)
        say(text or "interrupted; nothing was kept")
        return 130
    except OSError as error:
        return unwritten(error)
    except MemoryError:
        say("out of memory; record fewer frames or use a smaller model")
        return 1
    except Exception as error:
        package = package_of(error)
        if package is None:
            raise
        say(f"the package {package!r} has a mistake: {sentence(error)}")
        return 1


_COMPLETION = "--tyro-print-completion"


class Completion(Command):
    """Print a completion script: `stagescope completion bash > FILE`, then source it."""

    shell: Annotated[Literal["bash", "zsh"], tyro.conf.Positional, tyro.conf.arg(metavar="SHELL")]

    def run(self) -> int:
        try:
            return run([_COMPLETION, self.shell])
        except SystemExit as end:
            return int(end.code or 0)


def _parsed(arguments: list[str]) -> Command:
    """The command that is called, with its arguments. Parsers of others are not made: they would slow every command."""
    name = arguments[0]
    if name == _COMPLETION:
        return tyro.cli(_tree(arguments), prog="stagescope", args=arguments, config=CONFIG)
    kinds = {**COMMANDS, "completion": Completion}
    if name not in VERBS and name not in kinds:
        raise InputError(f"{name} comes before a command; `stagescope --help` names the commands")
    kind = _of_studies(name, arguments) if name in VERBS else kinds[name]
    with redirect_stdout(Wrapped(sys.stdout)):  # type: ignore[type-var]
        return tyro.cli(kind, prog=f"stagescope {name}", args=arguments[1:], config=CONFIG)


def _tree(arguments: list[str]) -> Callable[[Command], Command]:
    """A choice of all commands with all their options, for a completion script; a function, as tyro takes it."""
    kinds = {**{verb: _of_studies(verb, arguments) for verb in VERBS}, **COMMANDS, "completion": Completion}

    def identity(command: Command) -> Command:
        return command

    identity.__annotations__["command"] = _union([_command(kind, name) for name, kind in kinds.items()])
    return identity


def _of_studies(verb: str, arguments: list[str]) -> type[Command]:
    """A verb with a subcommand for each study; a study that is named has options, their defaults those of the chosen preset."""
    (kind, flags), preset, completion = VERBS[verb], _preset(arguments), _COMPLETION in arguments
    named = [name for name in arguments[1:2] if not completion and not name.startswith("-")]
    listed = {name: study(name) for name in named} or studies()
    leaves = [
        _command(_study_options(of_study, flags, preset, completion or name in arguments), name)
        for name, of_study in listed.items()
    ]
    described = Field(description="" if named else None)  # without one tyro would search the sources for what is not shown here
    return create_model(kind.__name__, __base__=kind, __doc__=kind.__doc__, study=(_union(leaves), described))


def _union(kinds: list[Any]) -> Any:
    """A choice of subcommands; a single one is padded with a suppressed None, or tyro would not make it a subcommand."""
    padding = (Annotated[None, tyro.conf.Suppress],) if len(kinds) == 1 else ()
    return Union[(*kinds, *padding)]


def _command(kind: type, name: str) -> Any:
    return Annotated[kind, tyro.conf.subcommand(name, prefix_name=False)]


def _fields(study: Study, preset: str | None, sweep: NamedSweep | None = None) -> dict[str, Any]:
    """The options of a study with their defaults, those of a preset first; what a sweep preset sweeps is open unless given.

    Limits are left out: `Study.configured` checks them, and its sentence names the option; tyro would print pydantic's report.
    """
    base = preset if sweep is None else sweep.preset
    defaults, fields = {**study.presets.get(base or "", {}), **(sweep.options if sweep is not None else {})}, {}
    for name, info in study.options.model_fields.items():
        swept = sweep is not None and name in sweep.grid
        kind, default = (info.annotation | None, None) if swept else (info.annotation, defaults.get(name, info.default))  # type: ignore[operator]
        fields[name] = (kind, Field(default, description=info.description))
    return fields


def _study_options(study: Study, flags: Any, preset: str | None, named: bool) -> type[BaseModel]:
    """The flags of a verb with the options of a study that it uses; a sweep has presets of its own besides."""
    sweeps = study.sweeps if flags is sweep_commands.SweepFlags else {}
    fields = _fields(study, preset, sweeps.get(preset or "")) if named else {}
    unused = {*flags.model_fields, *flags.unused_of(study)}
    fields = {name: field for name, field in fields.items() if name not in unused}
    about = f"{study.title} (presets: {', '.join({**sweeps, **study.presets})})"
    kind = create_model(study.options.__name__, __base__=flags, __doc__=about, **fields)
    kind.study_name = study.name
    return kind


def _preset(arguments: list[str]) -> str | None:
    """The value of --preset, needed before parsing because it sets the defaults."""
    for place, word in enumerate(arguments):
        if word == "--preset" and place + 1 < len(arguments):
            return arguments[place + 1]
        if word.startswith("--preset="):
            return word.removeprefix("--preset=")
    return None


REMOVED = {
    "graph": "`stagescope ladder RUN` has the critical points",
    "recreate": "a diagram's page has the command of every row",
}
"""Commands of version 0.2.0 that are gone, and what serves instead."""


def _early_names(arguments: list[str]) -> None:
    """Unknown commands, studies, presets and options of studies, with the nearest known name."""
    if not arguments or arguments[0].startswith("-"):
        return
    verb, name = arguments[0], next(iter(arguments[1:]), "-")
    commands = (*VERBS, *COMMANDS, "completion")
    if verb in REMOVED:
        raise InputError(f"the command {verb!r} was removed; {REMOVED[verb]}")
    if verb not in commands:
        raise unknown("command", verb, commands)
    if verb not in VERBS or name.startswith("-"):
        return
    of_study, preset = study(name), _preset(arguments)
    presets = {**of_study.presets, **(of_study.sweeps if verb == "sweep" else {})}
    if preset is not None and preset not in presets:
        raise unknown(f"preset of {name}", preset, presets)
    if arguments[2:] and not arguments[2].startswith("-"):
        asks = f"--preset {arguments[2]}" if arguments[2] in presets else "an option, --NAME VALUE"
        raise InputError(f"{arguments[2]!r} after `{verb} {name}` is not understood; give {asks}")
    flags = VERBS[verb][1]
    options = set(of_study.options.model_fields) - set(flags.unused_of(of_study))
    refuse_unknown(verb, name, {*flags.model_fields, *options}, arguments[2:])
