"""The commands by name. Each is a typed set of arguments with a `run` that returns an exit code."""

from stagescope.cli import paper_commands, reading_commands, run_commands, sweep_commands
from stagescope.cli.command import Command
from stagescope.cli.paper_commands import Corpus
from stagescope.cli.reading_commands import Audit, Play
from stagescope.cli.run_commands import Fork, Import

COMMANDS: dict[str, type[Command]] = {
    "diagram": sweep_commands.Diagram,
    "list": paper_commands.List,
    "resume": run_commands.Resume,
    "fork": Fork,
    "verify": run_commands.Verify,
    "info": run_commands.Info,
    "stages": reading_commands.Stages,
    "check": reading_commands.Check,
    "heads": reading_commands.Heads,
    "ladder": reading_commands.Ladder,
    "import": Import,
    "export": run_commands.Export,
    "report": reading_commands.Report,
    "play": Play,
    "figures": reading_commands.Figures,
    "reproduce": paper_commands.Reproduce,
    "corpus": Corpus,
    "audit": Audit,
    "calibrate": paper_commands.Calibrate,
    "cite": paper_commands.Cite,
    "demo": paper_commands.Demo,
}
