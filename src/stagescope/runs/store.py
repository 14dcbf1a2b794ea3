"""Save, load and verify runs. Nothing here executes stored data."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np

from stagescope.core.errors import DamagedRun, NotARun, StoreError
from stagescope.runs import arrays, files
from stagescope.runs import manifest as manifests
from stagescope.runs.manifest import DATA, EVENTS, NAME, OURS, Manifest
from stagescope.runs.run import Arrays, Run, how_to_resume


def load(folder: str | Path) -> Run:
    """Open a run. Every committed byte is checked first: a damaged file raises `DamagedRun`, naming it.

    Args:
        folder: of the run.

    Examples:
        >>> _ = run.save("kept", overwrite=True)
        >>> ss.load("kept").frames == run.frames
        True
    """
    folder = Path(folder)
    while True:
        manifest = manifests.read(folder)
        try:
            return _run_of(folder, manifest)
        except StoreError:
            if not _moved_on(folder, manifest):
                raise


def verify(folder: str | Path) -> list[str]:
    """One sentence for every damaged or missing file of a run, link, device or FIFO in its folder, and file that is not its own.

    An empty list means: every byte is as committed, and there is nothing else.

    Args:
        folder: of the run.

    Examples:
        >>> _ = run.save("kept", overwrite=True)
        >>> ss.verify("kept")
        []
    """
    folder, errors = Path(folder), damage(folder)
    with suppress(StoreError):
        listed = manifests.read(folder).files
        with files.store_errors(folder):
            entries = sorted(entry.path for entry in files.entries(folder) if entry.is_file(follow_symlinks=False))
        for path in entries:
            name = Path(path).relative_to(folder).as_posix()
            if name not in listed and not OURS.fullmatch(name):
                errors.append(f"{path}: not a file of this run; move it elsewhere")
    return errors


def damage(folder: str | Path) -> list[str]:
    """What `verify` finds, except for files that are not the run's own: they do no harm."""
    folder = Path(folder)
    while True:
        try:
            manifest = manifests.read(folder)
        except NotARun:
            raise
        except StoreError as error:
            return [str(error)]
        problems = list(dict.fromkeys([*map(str, _check_files(folder, manifest)), *files.foreign(folder)]))
        if not problems or not _moved_on(folder, manifest):
            return problems


def _check_files(folder: Path, manifest: Manifest) -> list[StoreError]:
    """An error for every file that is not as committed: `DamagedRun` where its bytes are not there or others, and no remedy."""
    problems: list[StoreError] = []
    for name, expected in sorted(manifest.files.items()):
        path = folder / name
        try:
            with files.opened(folder, name) as file:
                # a killed run may have logged more than it committed; the tail of a run that has ended counts as damage
                logged = manifest.events_bytes if manifest.status == "running" else -1
                digest = files.digest(file.read(logged)) if name == EVENTS else files.sha256(file)
        except StoreError as error:
            problems.append(error)
            continue
        except OSError as error:
            problems.append(DamagedRun(f"{path}: {error.strerror or error}"))
            continue
        if digest not in (expected, manifest.trimmed.get(name)):
            problems.append(DamagedRun(f"{path}: damaged, its bytes are not those that were committed"))
    return problems


def _moved_on(folder: Path, manifest: Manifest) -> bool:
    """Whether a writer committed since: a commit removes the checkpoint before it, which is no damage."""
    return manifests.read(folder) != manifest


def _run_of(folder: Path, manifest: Manifest) -> Run:
    problems = _check_files(folder, manifest)
    if problems:
        if not isinstance(problems[0], DamagedRun):
            raise DamagedRun(f"{problems[0]} (`stagescope verify {folder}` names all of them)")
        raise DamagedRun(f"{problems[0]}; restore the file from a copy, or `stagescope verify {folder}` for all of them")
    params = [name for name in manifest.arrays if name in manifest.spec["blocks"]]
    series = [name for name in manifest.arrays if name not in params]
    reader, origin = _reader(folder, manifest), files.digest(manifest.text())
    status, reason = manifest.status, manifest.reason
    if status == "running" and not files.locked(folder):
        status, reason = "interrupted", f"nothing is writing it; {how_to_resume(folder, manifest.spec)}"
    return Run(
        params=Arrays(tuple(params), reader, origin),
        series=Arrays(tuple(series), reader, origin),
        spec=manifest.spec,
        clock=manifest.clock,
        status=status,
        reason=reason,
        seed=manifest.seed,
        study=manifest.study,
        config=manifest.config,
        tags=manifest.tags,
        axes=manifest.arrays,
        provenance={"manifest": str(folder / NAME), "environment": manifest.environment},
        path=folder,
    )


def _reader(folder: Path, manifest: Manifest) -> Callable[[str], np.ndarray]:
    tail: dict[str, np.ndarray] = {}
    if manifest.status == "running" and manifest.checkpoint is not None:
        from stagescope.runs.writer import pending, tensors

        tail = pending(tensors(_fetch(folder, manifest, manifest.checkpoint), folder / manifest.checkpoint))

    def read(name: str) -> np.ndarray:
        place = f"{DATA}/{name}"
        fetch = lambda part: _fetch(folder, manifest, f"{place}/{part}")  # noqa: E731
        values = arrays.read(folder / place, fetch, manifest.committed, manifest.chunk)
        if name in tail and tail[name].shape[1:] != values.shape[1:]:
            raise DamagedRun(f"{folder / place}: its frames have another shape in the checkpoint; restore it from a copy")
        return np.concatenate([values, tail[name]]) if name in tail else values

    return read


def _fetch(folder: Path, manifest: Manifest, name: str) -> bytes:
    """The bytes of a file, checked again: arrays are read when asked for, which may be long after the run was opened."""
    data = files.read(folder, name)
    if files.digest(data) not in (manifest.files.get(name), manifest.trimmed.get(name)):
        raise DamagedRun(f"{folder / name}: damaged or replaced since the run was opened; open it again")
    return data
