"""Small runs made by hand, without a solver: in memory, finished on disk, and unfinished on disk."""

from pathlib import Path
from typing import Any

import numpy as np

from stagescope.core.spec import digest
from stagescope.runs.arrays import Column
from stagescope.runs.manifest import Manifest
from stagescope.runs.run import Arrays, Run
from stagescope.runs.writer import Writer, header

SPEC: dict[str, Any] = {
    "field": {"type": "own", "name": "sample"},
    "blocks": {"W": [2, 3], "A": []},
    "until": 1.0,
    "dynamics": {"type": "GradientFlow", "rates": {}, "rtol": 1e-10, "atol": 1e-13, "method": "auto", "segments": 16},
    "record": None,
    "stop": None,
}
"""What an own objective's flow would leave; its blocks are not in alphabetical order, and one is a number."""
COLUMNS = {
    "t": Column((), ("t",)),
    "loss": Column((), ("t",)),
    "W": Column((2, 3), ("t", "W_0", "W_1")),
    "A": Column((), ("t",)),
}


def frame(i: int) -> dict[str, Any]:
    """The i-th frame of the sample trajectory."""
    rng = np.random.default_rng(i)
    return {"t": 0.1 * i, "loss": float(rng.normal()), "W": rng.normal(size=(2, 3)), "A": np.array(rng.normal())}


def stacked(frames: int) -> dict[str, np.ndarray]:
    made = [frame(i) for i in range(frames)]
    return {name: np.array([np.asarray(one[name]) for one in made]).reshape(frames, *COLUMNS[name].shape) for name in COLUMNS}


def memory_run(frames: int = 5, **facts: Any) -> Run:
    arrays = stacked(frames)
    return Run(
        params=Arrays.of({name: arrays[name] for name in SPEC["blocks"]}),
        series=Arrays.of({name: arrays[name] for name in ("t", "loss")}),
        spec=SPEC,
        axes={name: column.axes for name, column in COLUMNS.items()},
        **{"clock": "t", "status": "finished", **facts},
    )


def manifest(planned: int | None = 10, chunk: int = 3) -> Manifest:
    facts = {"spec": SPEC, "clock": "t", "seed": 7, "tags": ("SnS:data",), "config_digest": digest(SPEC)}
    return header(facts, COLUMNS, planned).model_copy(update={"chunk": chunk})


def state(position: int) -> dict[str, Any]:
    """A checkpoint with what optimisers keep: vectors, numbers of several types."""
    theta = np.random.default_rng(position).normal(size=7)
    return {"theta": theta, "position": np.array(position), "count": np.array(position, np.int32)}


def begin(writer: Writer) -> None:
    writer.frame(frame(0))
    writer.commit(state(0), "started")


def started(folder: Path, planned: int | None = 10, chunk: int = 3, overwrite: bool = False) -> Writer:
    return Writer.create(folder, manifest(planned, chunk), COLUMNS, begin, overwrite)


def extend(writer: Writer, start: int, stop: int, commits: tuple[int, ...] = ()) -> None:
    """Frames start..stop-1, with a commit after each frame named in `commits`."""
    for i in range(start, stop):
        writer.frame(frame(i))
        if i in commits:
            writer.commit(state(i))


def finished(folder: Path, frames: int = 10, planned: int = 10) -> Path:
    """A finished run of several chunks; with fewer frames than planned, one that was stopped early."""
    writer = started(folder, planned)
    extend(writer, 1, frames, commits=(4,))
    writer.finish("finished" if frames == planned else "stopped", "" if frames == planned else "loss is low", state(frames))
    return folder


def unfinished(folder: Path, frames: int = 8) -> Path:
    """A run whose writer has gone: two whole chunks, two pending frames, and an event that was never committed."""
    writer = started(folder)
    extend(writer, 1, frames, commits=(4, frames - 1))
    writer._log("checkpoint", frames=frames)
    writer.close()
    return folder


def equal(run: Run, frames: int) -> bool:
    """Whether a run holds exactly the first frames of the sample trajectory."""
    arrays = {**run.series, **run.params}
    return all(arrays[name].tobytes() == values.tobytes() for name, values in stacked(frames).items()) and run.frames == frames
