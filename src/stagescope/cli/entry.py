"""Where the command `stagescope` begins: what needs no parser is answered before one is loaded."""

import sys

from stagescope.cli.first_screen import at_once


def main() -> None:
    """Entry point of the command."""
    if not at_once(sys.argv[1:]):
        from stagescope.cli.main import main as parsed

        parsed()
