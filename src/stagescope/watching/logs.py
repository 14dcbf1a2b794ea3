"""The curves of a TensorBoard log directory as a run, and the scalars of a run for TensorBoard and as JSON lines.

A record of an event file is its length (8 bytes), a checksum of these bytes (4), as many bytes as it says, and a checksum of
them (4). The bytes are an `Event`, a protocol buffer whose type the package `tensorboard` brings. Its readers are not used:
they take four times as long, keep 10,000 records of a tag unless asked, load TensorFlow where it is installed, believe any size
that a record claims, and end at the first damage without a word.
"""

import hashlib
import json
import os
import re
import struct
import time
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from fnmatch import fnmatchcase
from importlib import import_module
from pathlib import Path
from typing import IO, Any

import numpy as np

from stagescope.core.errors import InputError, first_names, needed, unknown
from stagescope.core.memory import require_stored
from stagescope.detect.limits import LIMITS
from stagescope.runs.export import outside, target, unique
from stagescope.runs.files import check_target, entries, opened, publish, store_errors
from stagescope.runs.from_arrays import TAKEN, from_arrays
from stagescope.runs.run import Run

PREFIX = "events.out.tfevents."
"""How the name of an event file begins."""
LARGEST = 2**24
"""Bytes of a record that is read. A scalar takes about 50; larger ones hold pictures, sounds or graphs."""
MOST_TAGS = 1000
"""Tags that are read; each becomes an array of the run, with a folder of its own on disk."""
CHECKED = 2**16
"""Points after which the memory that they take is looked at again."""
FEWER = "choose some of them with --tags 'train/*' (in Python tags='train/*')"
_HEAD, _SUM = struct.Struct("<QI"), struct.Struct("<I")
_FORMS = {
    1: ("float_val", "<f"),
    2: ("double_val", "<d"),
    3: ("int_val", "<i"),
    9: ("int64_val", "<q"),
    14: ("half_val", "<f"),  # bfloat16: the upper two bytes of a float
    19: ("half_val", "<e"),
}
"""Types of tensors with real numbers: where they are listed, and how they are read from bytes."""
_WIDE = ("<d", "<i", "<q")
"""How those are read whose numbers do not fit into a float of 4 bytes."""


_EXTRA = ("tensorboard", "reading or writing event files of TensorBoard")
"""The extra, and the work that needs it."""


def event_type() -> Any:
    """The type of what a record holds."""
    needed("tensorboard", *_EXTRA)
    return import_module("tensorboard.compat.proto.event_pb2").Event


def masked_sum() -> Callable[[bytes], int]:
    """The checksum of the format: CRC32C, turned by 15 bits, and a constant added."""
    value = needed("google_crc32c", *_EXTRA).value

    def masked(data: bytes) -> int:
        checksum = value(data)
        return ((checksum >> 15 | checksum << 17) + 0xA282EAD8) & 0xFFFFFFFF

    return masked


class Points:
    """The points of one tag in the order read: steps, wall times and values; `wide` where a value has more than 4 bytes."""

    def __init__(self) -> None:
        self.steps, self.walls, self.values, self.wide = array("q"), array("d"), array("d"), False


@dataclass
class Log:
    """All scalars of some event files: points by tag, and how much could not be read, by file and reason."""

    accepts: Callable[[str], bool] = lambda _: True
    points: dict[str, Points] = field(default_factory=lambda: defaultdict(Points))
    total: int = 0
    lost: Counter[tuple[str, str]] = field(default_factory=Counter)

    def read(self, folder: Path, name: str, only_first: bool = False) -> None:
        """Add the scalars of a file; with `only_first` just the first record that has some."""
        parse, broken = event_type().FromString, import_module("google.protobuf.message").DecodeError
        with store_errors(folder / name), opened(folder, name) as file:
            for data in self._records(file, name):
                try:
                    self._add(parse(data))
                except broken:
                    self.lost[name, "records that are no events"] += 1
                if only_first and self.total:
                    return

    def _add(self, event: Any) -> None:
        for value in event.summary.value:
            number = scalar(value)
            fresh = value.tag not in self.points
            if number is None or (fresh and not self.accepts(value.tag)):
                continue
            if fresh and len(self.points) == MOST_TAGS:
                raise InputError(f"this log has more than {MOST_TAGS:,} tags of scalars; {FEWER}")
            points = self.points[value.tag]
            points.steps.append(event.step)
            points.walls.append(event.wall_time)
            points.values.append(number[0])
            points.wide |= number[1]
            self.total += 1
            if self.total % CHECKED == 0:
                require_stored("the scalars of this log", FEWER, (3, self.total))

    def _records(self, file: IO[bytes], name: str) -> Iterator[bytes]:
        """The records of a file whose checksums are right. One that is cut off, as by a crash, is the last."""
        masked, size = masked_sum(), file.seek(0, 2)
        place = file.seek(0)
        while place < size:
            head = file.read(_HEAD.size)
            length, seal = _HEAD.unpack(head) if len(head) == _HEAD.size else (size, None)
            if seal is not None and masked(head[:8]) != seal:
                self.lost[name, "bytes behind a damaged size"] += size - place
                return
            end = place + _HEAD.size + length + _SUM.size
            if end > size:
                self.lost[name, "records cut off at the end"] += 1
                return
            if length > LARGEST:
                self.lost[name, f"records above {LARGEST // 2**20} MiB, which hold no scalars"] += 1
                file.seek(end)
            else:
                data = file.read(length)
                if masked(data).to_bytes(4, "little") == file.read(_SUM.size):
                    yield data
                else:
                    self.lost[name, "records with a wrong checksum"] += 1
            place = end


def scalar(value: Any) -> tuple[float, bool] | None:
    """The number in a value of a summary, and whether it needs more than 4 bytes; None where it is no scalar."""
    if value.WhichOneof("value") == "simple_value":
        return value.simple_value, False
    tensor, kind = value.tensor, value.tensor.dtype
    scalars = value.metadata.plugin_data.plugin_name in ("", "scalars")
    if not scalars or kind not in _FORMS or any(axis.size != 1 for axis in tensor.tensor_shape.dim):
        return None
    name, form = _FORMS[kind]
    data, listed = tensor.tensor_content, getattr(tensor, name)
    if not data and len(listed) == 1:
        if name != "half_val":
            return float(listed[0]), form in _WIDE
        data = (listed[0] & 0xFFFF).to_bytes(2, "little")
    data = b"\0\0" + data if kind == 14 else data
    return (float(struct.unpack(form, data)[0]), form in _WIDE) if len(data) == struct.calcsize(form) else None


def record(event: Any) -> bytes:
    """An event as a record of a file."""
    data, masked = event.SerializeToString(), masked_sum()
    head = _HEAD.pack(len(data), masked(struct.pack("<Q", len(data))))
    return head + data + _SUM.pack(masked(data))


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
    best = min(ranked, key=lambda tag: (records[tag] < LIMITS.fewest, ranked[tag], -records[tag]))
    sentence = f"the loss is {best[:80]!r}, {records[best]:,} records"
    unused = [repr(tag[:80]) for tag in ranked if tag != best]
    if unused:
        sentence += f"; not taken: {first_names(unused, 4)}"
    if records[best] < LIMITS.fewest:
        sentence += f"; a transition needs {LIMITS.fewest} records"
    elif ranked[best] == 2:
        sentence += "; it is that of training batches, whose noise can hide transitions: log a loss on held-out data more often"
    return best, sentence


def _rank(tag: str) -> int | None:
    """0 for a loss on held-out data, 1 for one that does not say, 2 for one on training batches; None for what is no loss."""
    words = set(re.findall(r"[a-z]+", re.sub(r"([a-z])([A-Z])", r"\1 \2", tag).lower()))
    if "loss" not in words or words - HELD_OUT - TRAINING - PLAIN:
        return None
    return 0 if words & HELD_OUT else 2 if words & TRAINING else 1


VECTOR = 64
"""Most entries of a vector that are scalars of their own; a longer one is no list of curves that anybody reads."""
HEADS = ("layer", "head")
"""Axes of arrays whose entries are scalars whatever their number: one curve a head."""


def scalars(run: Run) -> dict[str, np.ndarray]:
    """Every curve of a run by name, one number a frame; its place among the records (`steps`) is not one of them.

    These are the arrays with one number a frame, the entries of vectors of up to 64, and the entries of arrays with the axes
    layer and head: "entropy/layer 0/head 1". Parameters count too. A curve that has no number at all is left out.
    """
    curves: dict[str, np.ndarray] = {}
    for name, values in _scalar_arrays(run):
        # an axis that bears the array's own name adds nothing but the number
        words = ["" if axis.startswith(f"{name}_") else _clean(axis) for axis in run.axes[name][1:]]
        for place in np.ndindex(values.shape[1:]):
            curve = values[(slice(None), *place)]
            if not len(curve) or not np.isnan(curve).all():
                parts = (f"{word} {i}".strip() for word, i in zip(words, place, strict=True))
                curves[unique("/".join((_clean(name), *parts)), curves)] = curve
    return curves


def notes(run: Run) -> list[str]:
    """What a reader of the scalars should know: where the steps come from, and which arrays are not among them."""
    scalar_names = {*(name for name, _ in _scalar_arrays(run)), "step"}
    unwritten = [_clean(name) for name in (*run.series, *run.params) if name not in scalar_names]
    flow = [] if "step" in run.series else ["a flow has no steps: the step is the number of the frame, the time is the scalar t"]
    return [*flow, *([f"no scalars, so not written: {', '.join(unwritten)}"] if unwritten else [])]


def steps(run: Run) -> np.ndarray:
    """Whole numbers that order the frames: the steps, or in a flow, which has none, the number of the frame."""
    return run.series["step"] if "step" in run.series else np.arange(run.frames)


def to_json_lines(run: Run, out: str | Path | None = None, overwrite: bool = False) -> Path:
    """Write the scalars of a run as JSON lines, one object a frame, as W&B logs them; returns the file.

    `_step` is the step; for a flow it is the number of the frame, and the time is under `t`. What is no finite number at a
    frame has no key there.

    Args:
        run: any run.
        out: the file; default: the run's name with .jsonl.
        overwrite: replace an existing file.

    Returns:
        The file.

    Examples:
        >>> ss.to_json_lines(run, "run.jsonl").name
        'run.jsonl'
    """
    path, curves, lines = target(run, out, ".jsonl", overwrite), {}, []
    for name, values in scalars(run).items():
        # numbers of 4 bytes with the fewest digits that give them back, not the digits of 8 bytes
        short = list(map(float, values.astype(str))) if values.dtype == np.float32 else values.tolist()
        curves[unique(name, ("_step",))] = short, np.isfinite(values)
    for i, step in enumerate(steps(run).tolist()):
        row = {name: values[i] for name, (values, finite) in curves.items() if finite[i]}
        lines.append(json.dumps({"_step": step, **row}, allow_nan=False) + "\n")
    publish(path, "".join(lines).encode())
    return path


def _scalar_arrays(run: Run) -> Iterator[tuple[str, np.ndarray]]:
    """The arrays that hold scalars, in the order recorded. The clock is one, unless it is the step."""
    for name, values in {**run.series, **run.params}.items():
        small = values.ndim == 1 or (values.ndim == 2 and values.shape[1] <= VECTOR)
        if name != "step" and (small or run.axes[name][1:] == HEADS):
            yield name, values


def _clean(text: str) -> str:
    """Names come from whoever made the run: of 100 characters at most, what is no letter, digit, blank, dot or dash becomes _."""
    return re.sub(r"[^\w .-]", "_", text)[:100] or "_"


Curve = tuple[np.ndarray, np.ndarray]
"""Steps that rise, and a value at each."""
FILE = f"{PREFIX}0.stagescope"
"""The one file of a log directory that is written here."""
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
    files_of_runs = event_files(folder)
    if not files_of_runs:
        raise InputError(f"{folder} holds no event files ({PREFIX}*); give the log directory of a training")
    place = _chosen_run(folder, files_of_runs, run)
    log = Log(lambda tag: fnmatchcase(tag, tags))
    for name in files_of_runs[place]:
        log.read(folder / place, name)
    curves, notes = _curves(log)
    if not curves:
        condition = f" whose tags match {tags!r}" if tags != "*" else ""
        raise InputError("; ".join((f"{folder / place} holds no scalars{condition}; nothing can be read from it", *notes)))
    if loss is not None and loss not in curves:
        raise unknown("tag", loss, _nearest(loss, curves))
    loss_tag, sentence = (loss, "") if loss is not None else find_loss({tag: len(curve[0]) for tag, curve in curves.items()})
    names, arrays = _arrays(curves, loss_tag)
    read_run = from_arrays(**arrays)
    source = {
        "kind": "tensorboard",
        "run": place,
        "files": len(files_of_runs[place]),
        "loss": loss_tag and _stored_tag(loss_tag),
        "tags": {_stored_tag(tag): name for tag, name in names.items()},
        "sha256": read_run.spec["source"]["sha256"],
        "notes": [*([sentence] if sentence else []), *notes],
    }
    return replace(read_run, spec={**read_run.spec, "source": source})


def event_files(folder: Path) -> dict[str, list[str]]:
    """Names of the event files by the folder that they are in, from `folder` on. Links are not followed."""
    if not folder.is_dir():
        problem = "is a file" if folder.exists() else "does not exist"
        raise InputError(f"{folder} {problem}; give the folder that holds the event files ({PREFIX}*)")
    files_of_runs: dict[str, list[str]] = {}
    with store_errors(folder):
        for entry in entries(folder):
            if entry.name.startswith(PREFIX) and entry.is_file(follow_symlinks=False):
                files_of_runs.setdefault(Path(entry.path).parent.relative_to(folder).as_posix(), []).append(entry.name)
    return {place: sorted(names) for place, names in sorted(files_of_runs.items())}


def _chosen_run(folder: Path, files_of_runs: Mapping[str, list[str]], run: str | None) -> str:
    """The run that is meant: the one that is named, or the only one that has scalars."""
    if run is not None:
        if run not in files_of_runs:
            raise unknown("run", run, _nearest(run, files_of_runs))
        return run
    if len(files_of_runs) == 1:
        return next(iter(files_of_runs))
    full = []
    for place, names in files_of_runs.items():
        log = Log()
        for name in names:
            if not log.total:
                log.read(folder / place, name, only_first=True)
        if log.total:
            full.append(place)
    if len(full) > 1:
        names = ", ".join(_brief(full))
        raise InputError(f"{folder} holds {len(full)} runs ({names}); choose one with --run NAME (in Python run=...)")
    return full[0] if full else next(iter(files_of_runs))


def _curves(log: Log) -> tuple[dict[str, Curve], list[str]]:
    """The curve of each tag, and what was left out on the way."""
    curves, repeated, negative, older = {}, 0, 0, 0
    for tag, points in log.points.items():
        # by step, of the points at one step the last by wall time
        point_steps, walls = np.frombuffer(points.steps, np.int64), np.frombuffer(points.walls)
        order = np.lexsort((walls, point_steps))
        order = order[np.append(np.diff(point_steps[order]) != 0, True)]
        steps, values = point_steps[order], np.frombuffer(points.values).astype(np.float64 if points.wide else np.float32)[order]
        last = point_steps[np.lexsort((walls,))[-1]]
        good = steps >= 0
        negative += int((~good).sum())
        repeated += len(points.steps) - len(steps)
        older += int((steps > last).sum()) if len(points.steps) > len(steps) else 0
        if good.any():
            curves[tag] = steps[good], values[good]
    lost = [f"{name[:80]}: left out {reason}: {number:,}" for (name, reason), number in log.lost.items()]
    notes = _brief(lost, " notes of this kind")
    if negative:
        notes.append(f"left out {negative:,} of {log.total:,} points, whose step is negative")
    if repeated:
        again = f"{repeated:,} of {log.total:,} points repeat a step of their tag, as after a restart"
        notes.append(f"{again}: the one with the later wall time was kept")
    if older:
        notes.append(f"{older:,} points are of an earlier start: their steps lie beyond the point that was written last")
    return curves, notes


def _arrays(curves: Mapping[str, Curve], loss: str | None) -> tuple[dict[str, str], dict[str, np.ndarray]]:
    """Names of the tags, and arrays by name on the steps of all tags, the loss first."""
    clock = np.unique(np.concatenate([steps for steps, _ in curves.values()]))
    require_stored("the curves of this log", FEWER, (len(curves), len(clock)))
    names: dict[str, str] = {}
    arrays = {"step": clock}
    for tag in sorted(curves, key=lambda tag: tag != loss):
        names[tag] = "loss" if tag == loss else unique(_name(tag), names.values())
        steps, values = curves[tag]
        aligned = arrays[names[tag]] = np.full(len(clock), np.nan, values.dtype)
        aligned[np.searchsorted(clock, steps)] = values
    return names, arrays


def _name(tag: str) -> str:
    """A tag as the name of an array, lower case: on some disks upper case makes no difference."""
    name = re.sub(r"\W+", "_", tag.lower(), flags=re.ASCII).strip("_")[:LONGEST]
    return name if name and not name[0].isdigit() and name not in TAKEN else f"tag_{name}".rstrip("_")


def _stored_tag(tag: str) -> str:
    """A tag as the run keeps it: a very long one shortened, with a digest of all of it."""
    return tag if len(tag) <= 3 * LONGEST else f"{tag[: 3 * LONGEST]}... {hashlib.sha256(tag.encode()).hexdigest()[:12]}"


def _brief(names: Iterable[str], kind: str = "") -> list[str]:
    """The first of some names, each in one line, and how many more there are."""
    first = [_stored_tag(name).replace("\n", "\\n") for name in names]
    return first[:12] + ([f"and {len(first) - 12:,} more{kind}"] if len(first) > 12 else [])


def _nearest(name: str, names: Iterable[str]) -> list[str]:
    """The names that are most like one that is not known."""
    return [match.replace("\n", "\\n") for match in get_close_matches(name, map(_stored_tag, names), n=12, cutoff=0.0)]


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
        frame_event = event(wall_time=now, step=step)
        for tag, values in curves.items():
            if not np.isnan(values[i]):
                frame_event.summary.value.add(tag=tag, simple_value=values[i])
        yield record(frame_event)
