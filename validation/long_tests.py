"""The tests that are too long for `make test`."""

import subprocess
import sys

from tests.documents import ROOT


def main() -> bool:
    return subprocess.run([sys.executable, "-m", "pytest", "-q", "-m", "long"], cwd=ROOT, check=False).returncode == 0


if __name__ == "__main__":
    raise SystemExit(0 if main() else 1)
