"""Write a run that lives in memory to disk, and begin the manifest of any run."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stagescope.runs import manifest as manifests
from stagescope.runs.arrays import Column
from stagescope.runs.manifest import Manifest
from stagescope.runs.writer import Writer, chunk_frames

if TYPE_CHECKING:
    from stagescope.runs.run import Run


def save(run: "Run", folder: Path, overwrite: bool = False) -> Path:
    """Write a run that lives in memory, with the same guarantees as one recorded to disk."""
    recorded = {**run.series, **run.params}
    columns = {name: Column(value.shape[1:], run.axes[name], str(value.dtype)) for name, value in recorded.items()}

    def write(writer: Writer) -> None:
        for i in range(run.frames):
            writer.frame({name: value[i] for name, value in recorded.items()})
        writer.finish(run.status, run.reason, run.at(-1) if run.frames else {})

    facts = {name: getattr(run, name) for name in ("study", "config", "spec", "tags", "clock", "seed", "config_digest")}
    Writer.create(folder, header(facts, columns, run.frames), columns, write, overwrite)
    return folder


def header(facts: Mapping[str, Any], columns: Mapping[str, Any], planned: int | None) -> Manifest:
    """The manifest of a run that has just begun; `planned` is None where nobody knows how many frames it will have."""
    return Manifest(
        **facts,
        status="running",
        planned=planned,
        chunk=chunk_frames(planned, columns),
        arrays={name: column.axes for name, column in columns.items()},
        environment=manifests.environment(facts["spec"]),
    )
