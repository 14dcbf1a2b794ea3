"""TensorBoard event files: whole records, and the scalars in them.

A record is its length (8 bytes), a checksum of these bytes (4), as many bytes as it says, and a checksum of them (4). The bytes
are an `Event`, a protocol buffer whose type the package `tensorboard` brings. Its readers are not used: they take four times as
long, keep 10,000 records of a tag unless asked, load TensorFlow where it is installed, believe any size that a record claims,
and end at the first damage without a word.
"""

import struct
from array import array
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import IO, Any

from stagescope.errors import InputError, needed
from stagescope.memory import require_stored
from stagescope.runs.files import opened, store_errors

PREFIX = "events.out.tfevents."
"""How the name of an event file begins."""
LARGEST = 2**24
"""Bytes of a record that is read. A scalar takes about 50; larger ones hold pictures, sounds or graphs."""
MOST = 1000
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
_WIDE = (2, 3, 9)
"""Those whose numbers do not fit into a float of 4 bytes."""


_WANTED = ("tensorboard", "reading or writing event files of TensorBoard")
"""The extra, and the work that needs it."""


def event_type() -> Any:
    """The type of what a record holds."""
    needed("tensorboard", *_WANTED)
    return import_module("tensorboard.compat.proto.event_pb2").Event


def masked_sum() -> Callable[[bytes], int]:
    """The checksum of the format: CRC32C, turned by 15 bits, and a constant added."""
    value = needed("google_crc32c", *_WANTED).value

    def masked(data: bytes) -> int:
        found = value(data)
        return ((found >> 15 | found << 17) + 0xA282EAD8) & 0xFFFFFFFF

    return masked


@dataclass
class Points:
    """The points of one tag in the order read: steps, wall times and values; `wide` where a value has more than 4 bytes."""

    steps: array = field(default_factory=lambda: array("q"))
    walls: array = field(default_factory=lambda: array("d"))
    values: array = field(default_factory=lambda: array("d"))
    wide: bool = False


@dataclass
class Log:
    """All scalars of some event files: points by tag, and how much could not be read, by file and reason."""

    wanted: Callable[[str], bool] = lambda _: True
    points: dict[str, Points] = field(default_factory=dict)
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
            found = scalar(value)
            points = None if found is None else self.points.get(value.tag) or self._new(value.tag)
            if found is None or points is None:
                continue
            points.steps.append(event.step)
            points.walls.append(event.wall_time)
            points.values.append(found[0])
            points.wide |= found[1]
            self.total += 1
            if self.total % CHECKED == 0:
                require_stored("the scalars of this log", FEWER, (3, self.total))

    def _new(self, tag: str) -> Points | None:
        """The points of a tag that is met for the first time; None for one that is not wanted."""
        if not self.wanted(tag):
            return None
        if len(self.points) == MOST:
            raise InputError(f"this log has more than {MOST:,} tags of scalars; {FEWER}")
        self.points[tag] = Points()
        return self.points[tag]

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
            return float(listed[0]), kind in _WIDE
        data = (listed[0] & 0xFFFF).to_bytes(2, "little")
    data = b"\0\0" + data if kind == 14 else data
    return (float(struct.unpack(form, data)[0]), kind in _WIDE) if len(data) == struct.calcsize(form) else None


def record(event: Any) -> bytes:
    """An event as a record of a file."""
    data, masked = event.SerializeToString(), masked_sum()
    head = _HEAD.pack(len(data), masked(struct.pack("<Q", len(data))))
    return head + data + _SUM.pack(masked(data))
