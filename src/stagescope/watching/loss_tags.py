"""Which of the curves of a log is the loss."""

import re
from collections.abc import Mapping

from stagescope.detect.transitions import RULES

HELD_OUT = frozenset(["eval", "evaluation", "val", "valid", "validation", "test", "dev", "heldout", "held", "out", "probe"])
TRAINING = frozenset(["train", "training", "batch", "minibatch"])
PLAIN = frozenset(["loss", "total", "mean", "avg", "average", "lm", "epoch", "step", "iteration", "iterations", "vs"])


def find_loss(records: Mapping[str, int]) -> tuple[str | None, str]:
    """The tag of the loss among tags with their numbers of records, None where none is called so; and a sentence why.

    A loss on held-out data is taken before one that does not say, and that before one on training batches, whose noise hides
    transitions. One with too few records to show a transition comes after all others.
    """
    ranked = {tag: rank for tag in records if (rank := _rank(tag)) is not None}
    if not ranked:
        return None, "no tag is called loss, so the run has no stages; choose one with --loss TAG (in Python loss=...)"
    best = min(ranked, key=lambda tag: (records[tag] < RULES.fewest, ranked[tag], -records[tag]))
    said = f"the loss is {best[:80]!r}, {records[best]:,} records"
    others = [repr(tag[:80]) for tag in ranked if tag != best]
    if others:
        said += f"; not taken: {', '.join(others[:4])}" + (f" and {len(others) - 4:,} more" if len(others) > 4 else "")
    if records[best] < RULES.fewest:
        said += f"; a transition needs {RULES.fewest} records"
    elif ranked[best] == 2:
        said += "; it is that of training batches, whose noise can hide transitions: log a loss on held-out data more often"
    return best, said


def _rank(tag: str) -> int | None:
    """0 for a loss on held-out data, 1 for one that does not say, 2 for one on training batches; None for what is no loss."""
    words = set(re.findall(r"[a-z]+", re.sub(r"([a-z])([A-Z])", r"\1 \2", tag).lower()))
    if "loss" not in words or words - HELD_OUT - TRAINING - PLAIN:
        return None
    return 0 if words & HELD_OUT else 2 if words & TRAINING else 1
