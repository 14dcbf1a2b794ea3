"""What tests of commands share."""

import pytest

from stagescope.cli.main import run


@pytest.fixture
def ask(capsys):
    """Run a command: its exit code, and what it printed to both streams."""

    def ask(*words):
        code = run([str(word) for word in words])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return ask
