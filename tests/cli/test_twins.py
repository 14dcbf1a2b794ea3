"""Every command has a Python twin, named in one table of the docs, and every twin is there."""

import re
from pathlib import Path

import stagescope as ss
from stagescope.cli.main import COMMANDS, VERBS

TABLE = (Path(__file__).parent.parent.parent / "docs" / "commands.md").read_text()
ROWS = dict(re.findall(r"^\| `([\w-]+)` \| (.+?) \|", TABLE, re.MULTILINE))


def test_the_table_has_every_command():
    assert sorted(ROWS) == sorted((*VERBS, *COMMANDS, "completion"))


def test_every_twin_is_public():
    for command, twin in ROWS.items():
        names = re.findall(r"\bss\.(\w+)", twin)
        assert names or command == "completion", command
        for name in names:
            assert name in ss.__all__, f"{command}: ss.{name}"
