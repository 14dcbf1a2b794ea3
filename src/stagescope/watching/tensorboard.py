"""The curves of a TensorBoard log directory as a run, and the scalars of a run for TensorBoard."""

import hashlib
import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from difflib import get_close_matches
from fnmatch import fnmatchcase
from pathlib import Path

import numpy as np

from stagescope.errors import InputError, unknown
from stagescope.memory import require_stored
from stagescope.runs.export import outside
from stagescope.runs.files import check_target, entries, publish, store_errors
from stagescope.runs.from_arrays import TAKEN, from_arrays
from stagescope.runs.run import Run
from stagescope.watching.event_files import FEWER, PREFIX, Log, Points, event_type, record
from stagescope.watching.loss_tags import find_loss
from stagescope.watching.scalars import scalars, steps, unique

Curve = tuple[np.ndarray, np.ndarray]
"""Steps that rise, and a value at each."""
FILE = f"{PREFIX}0.stagescope"
"""The one file of a log directory that is written here."""
LISTED = 12
"""Names and notes that are listed; of more, their number."""
LONGEST = 60
"""Characters of the name of an array; a tag is kept up to three times as many."""


def from_tensorboard(folder: str | Path, run: str | None = None, loss: str | None = None, tags: str = "*") -> Run:
    """The scalars of a TensorBoard log directory as a run: curves only, which `stages`, `report` and all else take.

    Each tag becomes an array, aligned on the steps of all tags; where a tag has no record, it is NaN. `spec["source"]` has the
    tags with the names of their arrays, and `notes`: which tag is the loss, records that were left out or repeated.

    Args:
        folder: the log directory, with files events.out.tfevents.*, also below it.
        run: which run, where there are several below the folder: its path from there, "." for the folder itself.
        loss: the tag that is the loss, whose stages are the run's. Default: the one that is called so, on held-out data rather
            than on training batches.
        tags: a pattern of the tags to read, such as "train/*".

    Returns:
        A run whose frames are the steps of the log.

    Examples:
        >>> ss.to_tensorboard(run, "log", overwrite=True).name
        'log'
        >>> ss.from_tensorboard("log").frames
        400
    """
    folder = Path(folder)
    found = event_files(folder)
    if not found:
        raise InputError(f"{folder} holds no event files ({PREFIX}*); give the log directory of a training")
    place = _chosen(folder, found, run)
    log = Log(lambda tag: fnmatchcase(tag, tags))
    for name in found[place]:
        log.read(folder / place, name)
    curves, notes = _curves(log)
    if not curves:
        why = f" whose tags match {tags!r}" if tags != "*" else ""
        raise InputError("; ".join((f"{folder / place} holds no scalars{why}; nothing can be read from it", *notes)))
    if loss is not None and loss not in curves:
        raise unknown("tag", loss, _nearest(loss, curves))
    chosen, why = (loss, "") if loss is not None else find_loss({tag: len(each[0]) for tag, each in curves.items()})
    names, arrays = _arrays(curves, chosen)
    made = from_arrays(**arrays)
    source = {
        "kind": "tensorboard",
        "run": place,
        "files": len(found[place]),
        "loss": chosen and _kept(chosen),
        "tags": {_kept(tag): name for tag, name in names.items()},
        "sha256": made.spec["source"]["sha256"],
        "notes": [*([why] if why else []), *notes],
    }
    return replace(made, spec={**made.spec, "source": source})


def event_files(folder: Path) -> dict[str, list[str]]:
    """Names of the event files by the folder that they are in, from `folder` on. Links are not followed."""
    if not folder.is_dir():
        what = "is a file" if folder.exists() else "does not exist"
        raise InputError(f"{folder} {what}; give the folder that holds the event files ({PREFIX}*)")
    found: dict[str, list[str]] = {}
    with store_errors(folder):
        for entry in entries(folder):
            if entry.name.startswith(PREFIX) and entry.is_file(follow_symlinks=False):
                found.setdefault(Path(entry.path).parent.relative_to(folder).as_posix(), []).append(entry.name)
    return {place: sorted(names) for place, names in sorted(found.items())}


def _chosen(folder: Path, found: Mapping[str, list[str]], run: str | None) -> str:
    """The run that is meant: the one that is named, or the only one that has scalars."""
    if run is not None:
        if run not in found:
            raise unknown("run", run, _nearest(run, found))
        return run
    if len(found) == 1:
        return next(iter(found))
    full = [place for place, names in found.items() if _has_scalars(folder / place, names)]
    if len(full) > 1:
        names = ", ".join(_brief(full))
        raise InputError(f"{folder} holds {len(full)} runs ({names}); choose one with --run NAME (in Python run=...)")
    return full[0] if full else next(iter(found))


def _has_scalars(folder: Path, names: list[str]) -> bool:
    log = Log()
    for name in names:
        log.read(folder, name, only_first=True)
        if log.total:
            return True
    return False


def _curves(log: Log) -> tuple[dict[str, Curve], list[str]]:
    """The curve of each tag, and what was left out on the way."""
    curves, repeated, negative, older = {}, 0, 0, 0
    for tag, points in log.points.items():
        steps, values, last = _settled(points)
        good = steps >= 0
        negative += int((~good).sum())
        repeated += len(points.steps) - len(steps)
        older += int((steps > last).sum()) if len(points.steps) > len(steps) else 0
        if good.any():
            curves[tag] = steps[good], values[good]
    lost = [f"{name[:80]}: left out {what}: {number:,}" for (name, what), number in log.lost.items()]
    notes = _brief(lost, " notes of this kind")
    if negative:
        notes.append(f"left out {negative:,} of {log.total:,} points, whose step is negative")
    if repeated:
        again = f"{repeated:,} of {log.total:,} points repeat a step of their tag, as after a restart"
        notes.append(f"{again}: the one with the later wall time was kept")
    if older:
        notes.append(f"{older:,} points are of an earlier start: their steps lie beyond the point that was written last")
    return curves, notes


def _settled(points: Points) -> tuple[np.ndarray, np.ndarray, int]:
    """The points of a tag by step, of those at one step the last by wall time; and the step that was written last."""
    steps, walls = np.frombuffer(points.steps, np.int64), np.frombuffer(points.walls)
    values = np.frombuffer(points.values).astype(np.float64 if points.wide else np.float32)
    order = np.lexsort((walls, steps))
    final = np.append(np.diff(steps[order]) != 0, True)
    return steps[order][final], values[order][final], int(steps[np.lexsort((walls,))[-1]])


def _arrays(curves: Mapping[str, Curve], loss: str | None) -> tuple[dict[str, str], dict[str, np.ndarray]]:
    """Names of the tags, and arrays by name on the steps of all tags, the loss first."""
    clock = np.unique(np.concatenate([steps for steps, _ in curves.values()]))
    require_stored("the curves of this log", FEWER, (len(curves), len(clock)))
    names: dict[str, str] = {}
    arrays = {"step": clock}
    taken: set[str] = set()
    for tag in sorted(curves, key=lambda tag: tag != loss):
        names[tag] = "loss" if tag == loss else unique(_name(tag), taken)
        taken.add(names[tag])
        steps, values = curves[tag]
        arrays[names[tag]] = np.full(len(clock), np.nan, values.dtype)
        arrays[names[tag]][np.searchsorted(clock, steps)] = values
    return names, arrays


def _name(tag: str) -> str:
    """A tag as the name of an array, lower case: on some disks upper case makes no difference."""
    name = re.sub(r"\W+", "_", tag.lower(), flags=re.ASCII).strip("_")[:LONGEST]
    return name if name and not name[0].isdigit() and name not in TAKEN else f"tag_{name}".rstrip("_")


def _kept(tag: str) -> str:
    """A tag as the run keeps it: a very long one shortened, with a digest of all of it."""
    return tag if len(tag) <= 3 * LONGEST else f"{tag[: 3 * LONGEST]}... {hashlib.sha256(tag.encode()).hexdigest()[:12]}"


def _brief(names: Iterable[str], what: str = "") -> list[str]:
    """The first of some names, each in one line, and how many more there are."""
    first = [_kept(name).replace("\n", "\\n") for name in names]
    return [*first[:LISTED], *([f"and {len(first) - LISTED:,} more{what}"] if len(first) > LISTED else [])]


def _nearest(name: str, known: Iterable[str]) -> list[str]:
    """The names that are most like one that is not known."""
    return [each.replace("\n", "\\n") for each in get_close_matches(name, map(_kept, known), n=LISTED, cutoff=0.0)]


def to_tensorboard(run: Run, out: str | Path | None = None, overwrite: bool = False) -> Path:
    """Write the scalars of a run as a log directory of TensorBoard; returns the folder.

    Tags are such as "loss" and "entropy/layer 0/head 1". TensorBoard wants whole numbers as steps: of a flow, which has none,
    they are the numbers of the frames, and the time is the scalar "t". Values are float32; NaN is left out.

    Args:
        run: any run.
        out: the folder, new or empty; default: the run's name with .tensorboard.
        overwrite: replace the file that an earlier call wrote there.

    Returns:
        The folder.

    Examples:
        >>> ss.to_tensorboard(run, "log", overwrite=True).name
        'log'
    """
    path = outside(run, out, ".tensorboard")
    check_target(path)
    if path.exists() and not path.is_dir():
        raise InputError(f"{path} is a file; choose a folder")
    inside = set(os.listdir(path)) if path.is_dir() else set()
    if inside - {FILE}:
        raise InputError(f"{path} is not empty; choose another folder, as TensorBoard takes the files of a folder for one run")
    if inside and not overwrite:
        raise InputError(f"{path} holds an exported run; choose another folder, or --overwrite (in Python overwrite=True)")
    data = b"".join(_records(run))
    with store_errors(path):
        path.mkdir(exist_ok=True)
    publish(path / FILE, data)
    return path


def _records(run: Run) -> Iterator[bytes]:
    """The version of the format, then one event a frame. When a frame was made is not known: all have the time of now."""
    event, now = event_type(), time.time()
    with np.errstate(over="ignore"):
        curves = {tag: values.astype(np.float32) for tag, values in scalars(run).items()}
    yield record(event(wall_time=now, file_version="brain.Event:2"))
    for i, step in enumerate(steps(run).tolist()):
        made = event(wall_time=now, step=step)
        for tag, values in curves.items():
            if not np.isnan(values[i]):
                made.summary.value.add(tag=tag, simple_value=values[i])
        yield record(made)
