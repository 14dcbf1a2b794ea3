"""A stored run can be built again in a process that has not used its study."""

import subprocess
import sys

CODE = """
import sys
from stagescope.readings.rebuild import load_type
from stagescope.core.spec import Described
for name in sys.argv[1:]:
    load_type(name)
print(" ".join(name for name in sys.argv[1:] if name in Described.registry))
"""


def test_types_of_a_stored_run_are_found():
    fields = ["focus-dilution/TokenPopulation", "focus-dilution/LazyChain", "TextCorpus"]
    done = subprocess.run([sys.executable, "-c", CODE, *fields], capture_output=True, text=True, check=True)
    assert done.stdout.split() == fields
