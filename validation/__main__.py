"""`python -m validation`: every long check, its table, and exit code 1 if one of them does not hold."""

import sys
import time
from importlib import import_module

MODULES = (
    "golden",
    "long_tests",
    "transitions",
    "scan_snap",
    "focus_dilution",
    "focus_dilution_published",
    "focus_dilution_chains",
    "focus_dilution_forms",
    "focus_dilution_events",
    "incremental_flow",
    "incremental",
    "incremental_stopping",
    "linear_icl",
    "markov_icl",
    "text_focus",
    "text_snap",
    "text_incremental",
    "text_nulls",
    "calibration",
    "replay_nulls",
    "how_sure",
    "elsewhere",
    "sizes",
    "tiny_starts",
    "saddle_path",
    "degenerate",
    "general_path",
    "audit",
    "fuzz",
    "kill",
    "sweep_killing",
    "watched_training",
    "watched_kill",
    "watched_claims",
    "documents",
    "package",
)
"""Modules of this package with a `main() -> bool`, in the order they run; name some as arguments to run only those."""


def main(names: list[str]) -> int:
    unknown = [name for name in names if name not in MODULES]
    if unknown:
        print(f"unknown check {unknown[0]!r}; known: {', '.join(MODULES)}", file=sys.stderr)
        return 2
    failed = []
    for name in names or MODULES:
        began = time.monotonic()
        print(f"== {name}", flush=True)
        if not import_module(f"validation.{name}").main():
            failed.append(name)
        print(f"   {time.monotonic() - began:.0f} s\n", flush=True)
    print(f"does not hold: {', '.join(failed)}" if failed else "all hold")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
