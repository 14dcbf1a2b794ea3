"""Where the frames of a run go: into memory, or into a folder that can be resumed."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from stagescope.dynamics.dynamics import State
from stagescope.dynamics.journey import Frame, Journey
from stagescope.errors import InputError
from stagescope.own import fingerprint
from stagescope.params import Layout
from stagescope.runs.arrays import Column, crc32c
from stagescope.runs.run import Arrays, Run, how_to_resume
from stagescope.runs.saving import header
from stagescope.runs.store import load
from stagescope.runs.writer import Writer
from stagescope.spec import Spec, digest

TOGETHER = 64
"""Frames that are taken apart at a time."""


def advice(folder: Path, spec: Spec) -> str:
    """What to do after an interrupt."""
    return f"interrupted; {how_to_resume(folder, spec)}"


class Memory:
    """Keeps frames in memory."""

    advice = "interrupted; nothing was being saved (give out=FOLDER to keep a resumable run)"
    folder = None

    def __init__(self, first: Frame) -> None:
        self._frames = [first]

    def take(self, frames: list[Frame]) -> None:
        self._frames.extend(frames)

    def commit(self, state: State, event: str) -> None: ...

    def abandon(self) -> None: ...

    def finish(self, journey: Journey, status: str, reason: str, state: State) -> Run:
        return Run(
            params=Arrays.of(self._blocks(journey.layout)),
            series=Arrays.of({name: np.array([series[name] for series, _ in self._frames]) for name in journey.series}),
            spec=journey.spec,
            clock=journey.dynamics.clock,
            status=status,
            reason=reason,
            seed=journey.seed,
            study=journey.origin.study,
            config=journey.origin.config,
            tags=journey.origin.tags,
            axes=journey.axes(),
        )

    def _blocks(self, layout: Layout) -> dict[str, np.ndarray]:
        """Parameters by name; a few frames at a time, because fresh memory for all of them twice would take longer than this."""
        count = len(self._frames)
        found = {name: np.empty((count, *shape)) for name, shape in layout.shapes}
        for start in range(0, count, TOGETHER):
            part = np.array([vector for _, vector in self._frames[start : start + TOGETHER]])
            for name, block in layout.unpack(part).items():
                found[name][start : start + TOGETHER] = block
        return found


class Disk:
    """Writes frames through the run store."""

    def __init__(self, writer: Any, layout: Layout) -> None:
        self._writer, self._layout = writer, layout
        self.commit, self.abandon = writer.commit, writer.close
        self.folder = writer.folder
        self.advice = advice(writer.folder, writer.manifest.spec)

    def take(self, frames: list[Frame]) -> None:
        for series, vector in frames:
            self._writer.frame({**series, **self._layout.unpack(vector)})

    def finish(self, journey: Journey, status: str, reason: str, state: State) -> Run:
        self._writer.finish(status, reason, state)
        return load(self._writer.folder)


def check_checksum(folder: Path | None) -> None:
    """Before any work: there must be a folder for the checksums, and a package that computes them."""
    if folder is None:
        raise InputError("checksum is for chunks on disk, and this run stays in memory; give out=FOLDER")
    crc32c()


def sink_for(journey: Journey, folder: Path | None, overwrite: bool, checksum: bool, first: Frame, state: State) -> Memory | Disk:
    """Memory, or a folder that has the first frame and the first state from the start."""
    if folder is None:
        return Memory(first)
    axes = journey.axes()
    columns = {name: Column((), axes[name], "int64" if name == "step" else "float64") for name in journey.series}
    columns |= {name: Column(shape, axes[name]) for name, shape in journey.layout.shapes}
    columns = {name: replace(column, checksum=checksum) for name, column in columns.items()}
    origin, spec = journey.origin, journey.spec
    config = dict(origin.config) if origin.config is not None else None
    facts = {"study": origin.study, "config": config, "tags": origin.tags, "clock": journey.dynamics.clock}
    facts |= {"spec": spec, "seed": journey.seed, "config_digest": digest(config if config is not None else spec)}

    def begin(writer: Writer) -> None:
        writer.frame({**first.series, **journey.layout.unpack(first.vector)})
        writer.commit(state, "started")

    manifest = header(facts, columns, len(journey.positions))
    if spec["field"]["type"] == "own":
        manifest.environment["objective"] = fingerprint(journey.field.objective or journey.field)
    return Disk(Writer.create(folder, manifest, columns, begin, overwrite), journey.layout)
