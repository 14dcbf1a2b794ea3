"""`python -m stagescope` is the command."""

import subprocess
import sys

import stagescope


def test_the_package_runs_as_a_module():
    done = subprocess.run([sys.executable, "-m", "stagescope", "--version"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, f"stagescope {stagescope.__version__}\n")
