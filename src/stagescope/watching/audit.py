"""Audit of a folder of checkpoints: which are cut, not finite, the same, out of order, or of another training."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise
from pathlib import Path

import numpy as np

from stagescope.errors import InputError
from stagescope.progress import progress_for
from stagescope.watching import continuity
from stagescope.watching.findings import Audit, Finding, Kind, listed_tensors, some
from stagescope.watching.folders import Checkpoint, listed, number, trainer_step
from stagescope.watching.prints import ENTRIES, Print, affordable_entries, take
from stagescope.watching.series import Series
from stagescope.watching.weights import DamagedCheckpoint

ORDER: tuple[Kind, ...] = ("truncated", "NaN", "duplicate", "foreign tensor", "out of order", "other lineage")


def audit(folder: str | Path, *, progress: bool | None = None) -> Audit:
    """Look for defects in the checkpoints of a folder. Weights are read once, one tensor at a time; nothing stored is run.

    Args:
        folder: holds one folder or file for each checkpoint, with its step in its name.
        progress: True shows a bar, False none, None one on a terminal.

    Raises:
        InputError: the folder holds fewer than two checkpoints, or one that cannot be opened safely.

    Returns:
        The names of the checkpoints in order, and what was found.

    Examples:
        >>> from safetensors.numpy import save_file
        >>> for step in (0, 100, 200):
        ...     Path(f"training/step{step}").mkdir(parents=True)
        ...     save_file({"head": np.full((4, 4), step, np.float32)}, f"training/step{step}/model.safetensors")
        >>> ss.audit("training").checkpoints
        ('step0', 'step100', 'step200')
    """
    found = listed(folder)
    if len(found) < 2:
        raise InputError(f"{folder} holds one checkpoint, {found[0].name!r}; an audit compares at least two")
    findings = [*_states(found), *_numbers(found)]
    series, cut = _read(found, progress)
    findings += cut
    if len(series) > 1:
        odd, notes = _tensor_sets(series)
        findings += odd
        series = series.without({each.checkpoint for each in odd})
        findings += _not_finite(series)
        continuing, more = continuity.findings(series.without({each.checkpoint for each in findings if each.kind == "NaN"}))
        findings += continuing
        notes += more
    else:
        notes = ["fewer than two checkpoints could be read, so none was compared"]
    places = {each.name: place for place, each in enumerate(found)}
    findings.sort(key=lambda each: (places[each.checkpoint], ORDER.index(each.kind)))
    return Audit(tuple(each.name for each in found), tuple(findings), tuple(notes))


def _read(found: Sequence[Checkpoint], progress: bool | None) -> tuple[Series, list[Finding]]:
    """Fingerprints of the checkpoints that are whole, and a finding for each that is not."""
    names: list[str] = []
    prints: list[dict[str, Print]] = []
    cut: list[Finding] = []
    entries = ENTRIES
    with progress_for(progress) as bar:
        for each in bar.each(found, "reading checkpoints", "checkpoint"):
            try:
                made = take(each, entries)
            except DamagedCheckpoint as error:
                cut.append(Finding(each.name, "truncated", None, _about(each, str(error)), {"path": each.name}))
                continue
            if not made:
                cut.append(Finding(each.name, "truncated", None, "it holds no tensors", {"path": each.name}))
                continue
            if not prints and (fewer := affordable_entries(len(found), len(made))) < entries:
                entries = fewer
                made = take(each, entries)
            names.append(each.name)
            prints.append(made)
    return Series(tuple(names), tuple(prints)), cut


def _about(checkpoint: Checkpoint, text: str) -> str:
    """A sentence about a checkpoint with paths from its folder on."""
    return text.replace(f"{checkpoint.path.resolve().parent}/", "").replace(f"{checkpoint.path.parent}/", "")


def _states(found: Sequence[Checkpoint]) -> Iterator[Finding]:
    """States of trainers that cannot be read."""
    for each in found:
        try:
            trainer_step(each.path)
        except DamagedCheckpoint as error:
            yield Finding(each.name, "truncated", None, _about(each, str(error)), {"path": each.name})


def _numbers(found: Sequence[Checkpoint]) -> Iterator[Finding]:
    """Checkpoints whose names have another order than the steps that their trainers state."""
    for first, second in pairwise(found):
        before, after = number(first.name), number(second.name)
        if first.step == second.step:
            text = f"it states the step {second.step}, and so does {first.name}"
        elif before is not None and after is not None and before >= after:
            text = f"its name comes before {first.name}, but its trainer's state has step {second.step}, after {first.step}"
        else:
            continue
        yield Finding(
            second.name, "out of order", None, text, {"step": second.step, "other": first.name, "other_step": first.step}
        )


def _tensor_sets(series: Series) -> tuple[list[Finding], list[str]]:
    """Checkpoints with other names or shapes of tensors than the most have. One lasting change is a note, no finding."""
    forms = [frozenset((name, each.form) for name, each in prints.items()) for prints in series.prints]
    runs = [(form, len(list(group))) for form, group in groupby(forms)]
    if len(runs) == 1:
        return [], []
    if len(runs) == 2 and min(length for _, length in runs) > 1:
        since = series.names[runs[0][1]]
        return [], [f"from {since} on the names or shapes of tensors are others; only those that stay are compared"]
    usual = Counter(forms).most_common(1)[0][0]
    return [finding for n, form in enumerate(forms) if form != usual for finding in _other_set(series.names[n], form, usual)], []


def _other_set(name: str, form: frozenset, usual: frozenset) -> Iterator[Finding]:
    """What a checkpoint lacks, and what it has in place of it or more."""
    mine, theirs = dict(form), dict(usual)
    missing = sorted(set(theirs) - set(mine))
    if missing:
        facts = {"missing": listed_tensors(missing)}
        yield Finding(name, "truncated", missing[0], f"it lacks {some(missing)}, which other checkpoints have", facts)
    foreign = sorted(key for key, each in mine.items() if theirs.get(key) != each)
    if foreign:
        shape, other = mine[foreign[0]][0], theirs.get(foreign[0], (None,))[0]
        what = "a name" if other is None else f"the shape {shape} in place of {other}" if shape != other else "a type of numbers"
        text = f"{some(foreign)}: {what} that no other checkpoint has"
        yield Finding(name, "foreign tensor", foreign[0], text, listed_tensors(foreign))


def _not_finite(series: Series) -> Iterator[Finding]:
    """Tensors with NaN or infinite entries; infinities of a tensor that never moves, such as a mask, are no finding."""
    never = set(series.common) - set(series.moving)
    for name, prints in zip(series.names, series.prints, strict=True):
        bad = sorted(key for key, each in prints.items() if each.nan or (each.infinite and key not in never))
        if bad:
            nan, infinite = (sum(getattr(prints[key], what) for key in bad) for what in ("nan", "infinite"))
            total = sum(int(np.prod(prints[key].shape)) for key in bad)
            text = f"{some(bad)}: {nan:,} NaN and {infinite:,} infinite of {total:,} entries"
            yield Finding(name, "NaN", bad[0], text, {**listed_tensors(bad), "nan": nan, "infinite": infinite, "entries": total})
