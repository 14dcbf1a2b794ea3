"""Every block of the documents, the long ones too, through a real shell."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.documents import DOCUMENTS, ROOT, is_run, parse
from tests.third_party.installing import environment, installed


def main() -> bool:
    """Each document in a process of its own, with the example package of docs/extending.md installed."""
    failed = []
    with tempfile.TemporaryDirectory() as scratch:
        env = environment(ROOT, installed(Path(scratch)))
        for path in DOCUMENTS:
            if not any(is_run(block, long=True) for block in parse(path.read_text())):
                continue
            command = [sys.executable, "-m", "tests.documents", str(path), "--long"]
            if subprocess.run(command, env=env, cwd=ROOT, check=False).returncode:
                failed.append(os.path.relpath(path, ROOT))
    print("differ: " + ", ".join(failed) if failed else "all documents are true")
    return not failed


if __name__ == "__main__":
    raise SystemExit(0 if main() else 1)
