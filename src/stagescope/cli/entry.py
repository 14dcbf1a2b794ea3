"""Where the command `stagescope` begins: what needs no parser is answered before one is loaded."""

import sys

from stagescope.cli.kept import kept


def main() -> None:
    """Entry point of the command."""
    if kept(sys.argv[1:]):
        return
    from stagescope.cli.first_screen import at_once

    if not at_once(sys.argv[1:]):
        from stagescope.cli.main import main as parsed

        parsed()
