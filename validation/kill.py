"""SIGKILL at 200 random instants: every run opens, goes on from its checkpoint, by the command or from Python, and ends bit for
bit as if never killed."""

import os
import random
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from validation import killing
from validation.killing import KINDS, Reference, Tally

KILLS = 67
"""Kills of each kind, at least."""
PER_RUN = 3
"""How often one run is killed before it may finish."""
WORKERS = min(2, os.cpu_count() or 1)


def main() -> bool:
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(WORKERS) as pool:
        folder = Path(scratch)
        references = [killing.reference(kind, folder / kind) for kind in KINDS]
        parts = [(made, folder / f"{made.kind}-{part}", part) for part in range(WORKERS) for made in references]
        tallies = list(pool.map(lambda part: _hunt(*part), parts))
    print("kind        kills  opened  from checkpoint  from zero (killed within 1 s)  already done  runs  bitwise equal")
    total = Tally()
    for number, made in enumerate(references):
        tally = sum((tallies[number + part * len(references)] for part in range(WORKERS)), Tally())
        _print_row(made.kind, tally)
        total += tally
    _print_row("all", total)
    print("\n".join(total.notes), end="\n" if total.notes else "")
    return total.holds and total.kills >= KILLS * len(KINDS)


def _hunt(reference: Reference, folder: Path, seed: int) -> Tally:
    """Kill runs of one kind until this worker's share of kills is reached."""
    rng = random.Random(f"{reference.kind} {seed}")
    tally = Tally()
    while tally.kills * WORKERS < KILLS:
        place = folder.with_name(f"{folder.name}-{tally.runs}")
        tally += killing.victim(reference, place, PER_RUN, rng)
    return tally


def _print_row(name: str, tally: Tally) -> None:
    restarts = f"{tally.from_zero} ({tally.in_grace})"
    left = f"{name:<10}  {tally.kills:>5}  {tally.opened:>6}  {tally.from_checkpoint:>15}  {restarts:>29}"
    print(f"{left}  {tally.too_late:>12}  {tally.runs:>4}  {tally.equal:>13}", flush=True)


if __name__ == "__main__":
    raise SystemExit(0 if main() else 1)
