"""Claims and events of watched trainings on three tasks, and on controls where attention learns nothing or cannot.

Runs are made once into validation/draws/watched (about a minute each on one core) and kept. Of all verdicts of claims about
attention on controls at most 5 % may be confirmed. The table also has what would be said without the gate.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import stagescope as ss
from stagescope.claims.claim import Claim
from stagescope.readings.registry import watched_claims
from stagescope.readings.watched import WatchedReading
from validation.watched_runs import make
from validation.watched_tasks import Setting, usual

DRAWS = Path(__file__).parent / "draws" / "watched"
SEEDS = {"none": (7101, 7102, 7103), "shuffled": (7201, 7202, 7203, 7204), "few": (7301, 7302)}
EMBEDDING = ("FD:watched-rank",)
"""Claims that are not about attention: the embedding has something to learn on every control but shuffled text."""
MOST = 0.05
CONTROL = 1200
"""Steps of a control: what it can learn it has learned by then."""
Counts = dict[tuple[str, str, str], Counter[str]]
"""By task and control, by claim, with or without the gate: how often each verdict came."""


def settings() -> list[Setting]:
    """Three seeds of each task, ten shuffled controls or more, and controls that pass a gate on the loss."""
    found = [usual(task, seed=seed) for seed in SEEDS["none"] for task in "abc"]
    cases = [(task, "shuffled", seed) for seed in SEEDS["shuffled"] for task in "abc"]
    cases += [(task, control, seed) for seed in SEEDS["few"] for control in ("bigram", "frozen", "sharp") for task in "ab"]
    cases += [("c", "sharp", SEEDS["few"][0]), ("a", "fixed", SEEDS["few"][0])]
    return [*found, *(usual(task, control=control, seed=seed, steps=CONTROL) for task, control, seed in cases)]


def main(chosen: Iterable[Setting] | None = None, out: Path = DRAWS) -> bool:
    counts: Counts = defaultdict(Counter)
    made = [setting for setting, _ in make(settings() if chosen is None else chosen, out)]
    for setting in made:
        _count(counts, setting, _reading(out / setting.name))
    _table(counts)
    shares = {tag: _confirmed(counts, tag) for tag in (claim.tag for claim in watched_claims()) if tag not in EMBEDDING}
    for tag, (confirmed, runs) in shares.items():
        print(f"{tag} is confirmed on {confirmed} of {runs} controls")
    return all(confirmed <= MOST * runs for confirmed, runs in shares.values())


def _confirmed(counts: Counts, tag: str) -> tuple[int, int]:
    """Controls on which a claim is confirmed, and all controls."""
    found = [count for (where, name, gate), count in counts.items() if (name, gate) == (tag, "gated") and "none" not in where]
    total = sum(found, Counter())
    return total["confirmed"], total.total()


def _reading(folder: Path) -> WatchedReading:
    found = ss.reading(folder)
    assert isinstance(found, WatchedReading)
    return found


def _count(counts: Counts, setting: Setting, found: WatchedReading) -> None:
    """Verdicts and events with the gate, and as they would be without."""
    where = f"{setting.task}-{setting.control}"
    for row in found.check():
        counts[where, row.tag, "gated"][row.verdict] += 1
    shut = found.gate
    vars(found)["gate"] = replace(shut, open=True)  # a cached property: what claims see
    for claim in watched_claims():
        counts[where, claim.tag, "ungated"][_judged(claim, found)] += 1
    vars(found)["gate"] = shut
    events = len(found.head_events)
    counts[where, "events", "gated"][str(events if shut.open else 0)] += 1
    counts[where, "events", "ungated"][str(events)] += 1
    losses = sum(name == "loss" for name, _ in found.transitions)
    counts[where, "transitions of the loss", "gated"][str(losses)] += 1
    print(f"{setting.name:<18} gate {'open' if shut.open else 'closed'}: {shut.sentence}", flush=True)


def _judged(claim: Claim, found: WatchedReading) -> str:
    return claim.judge(found.run, found).verdict


def _table(counts: Counts) -> None:
    for where in dict.fromkeys(key[0] for key in counts):
        print(where)
        for (place, tag, gate), count in counts.items():
            if place == where:
                said = ", ".join(f"{name} {number}" for name, number in sorted(count.items()))
                print(f"    {tag:<24}{gate:<9}{said}")
