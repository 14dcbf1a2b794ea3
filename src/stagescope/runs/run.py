"""A run: what a dynamics leaves behind, in memory or on disk."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from stagescope.core.errors import InputError, needed, printable
from stagescope.core.params import Params
from stagescope.core.spec import Spec, digest

if TYPE_CHECKING:
    import pandas
    import xarray

DONE = ("finished", "stopped")
"""Statuses of a run that reached its end: the horizon, or its stop condition."""
_RESUMED = {
    "recorded": ", with ss.Recorder({}, resume=True)",
    "watched": ", with resume=True and out={}",
    "checkpoints": ", with resume=True and out={}",
}
"""By kind of source: how a program that recorded a run goes on with it."""


def how_to_resume(folder: Path, spec: Spec) -> str:
    """What continues a run: the command, or for an objective that only the user has, the function."""
    if spec["field"] is None:
        remedy = _RESUMED.get(spec["source"]["kind"], "")
        return "only the program that recorded it can continue it" + remedy.format(repr(str(folder)))
    if spec["field"]["type"] == "own":
        return f"continue with `stagescope resume {folder} --objective MODULE:NAME`, or ss.resume({str(folder)!r}, objective)"
    return f"continue with `stagescope resume {folder}`"


class Arrays(Mapping[str, np.ndarray]):
    """Recorded arrays by name, time first, read when first used. `origin` is the digest of the manifest of a stored run."""

    def __init__(self, names: tuple[str, ...], read: Callable[[str], np.ndarray], origin: str | None = None) -> None:
        self._names, self._read, self.origin = names, read, origin
        self._read_arrays: dict[str, np.ndarray] = {}

    @classmethod
    def of(cls, arrays: Mapping[str, np.ndarray]) -> "Arrays":
        return cls(tuple(arrays), lambda name: arrays[name])

    def __getitem__(self, name: str) -> np.ndarray:
        if name not in self._names:
            raise KeyError(f"{name!r} was not recorded; recorded: {', '.join(self._names)}")
        if name not in self._read_arrays:
            array = self._read(name)
            array.setflags(write=False)
            self._read_arrays[name] = array
        return self._read_arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


@dataclass(frozen=True, eq=False)
class Run:
    """Frames of a trajectory with what is needed to know, check and repeat it.

    `t` is flow time (absent under Adam, whose clock is `step`), `params["W0"]` has time first, `series["loss"]` is one
    number a frame. `spec` describes process, model, form of the loss and dynamics; `status` and `reason` say how it ended.
    A run that was not made by `evolve` has `spec["field"]` None and `spec["source"]`, which says where it comes from.
    `memo` keeps what was computed from the arrays; copies by `dataclasses.replace` share it.

    Examples:
        >>> run
        <Run focus-dilution/TokenPopulation: 400 frames to t=200, finished>
        >>> run.t.shape, run.params["W0"].shape, f"{run.series['loss'][-1]:.3f}"
        ((400,), (400, 3, 4), '1.011')
    """

    params: Arrays
    series: Arrays
    spec: Spec
    clock: str
    status: str
    reason: str = ""
    seed: int | None = 0
    study: str | None = None
    config: Mapping[str, Any] | None = None
    tags: tuple[str, ...] = ()
    axes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    provenance: Mapping[str, Any] = field(default_factory=dict)
    path: Path | None = None
    memo: dict[str, Any] = field(default_factory=dict, repr=False)

    @property
    def t(self) -> np.ndarray:
        if self.clock != "t":
            raise InputError(f"this run's clock is {self.clock!r}: it has no flow time; use run.step")
        return self.series["t"]

    @property
    def step(self) -> np.ndarray:
        if "step" not in self.series:
            raise InputError("a flow has no steps; use run.t")
        return self.series["step"]

    @property
    def time(self) -> np.ndarray:
        """The run's own clock, whichever it is."""
        return self.series[self.clock].astype(float)

    @property
    def frames(self) -> int:
        return len(self.series[self.clock])

    @property
    def done(self) -> bool:
        return self.status in DONE

    @property
    def type(self) -> str:
        """The id of the type of its field; for a run without a field, the kind of its source."""
        return (self.spec["field"] or {}).get("type") or self.spec["source"]["kind"]

    @property
    def config_digest(self) -> str:
        return digest(self.config if self.config is not None else self.spec)

    def at(self, frame: int) -> Params:
        """The parameters of one frame."""
        return {name: self.params[name][frame] for name in self.params}

    def only(self, frames: np.ndarray) -> "Run":
        """The same run with some of its frames, which are read when used."""
        selected = {
            name: Arrays(tuple(arrays), lambda part, arrays=arrays: np.take(arrays[part], frames, axis=0))
            for name, arrays in (("params", self.params), ("series", self.series))
        }
        return replace(self, **selected, memo={})

    def save(self, folder: str | Path, overwrite: bool = False) -> "Run":
        from stagescope.runs.writer import save

        return replace(self, path=save(self, Path(folder), overwrite))

    def to_xarray(self) -> "xarray.Dataset":
        """The recorded arrays with named axes (needs the extra `stagescope[xarray]`).

        An axis has one size in a dataset and bears the name of no array: where a second array has an axis of the same name and
        another size, that axis is called ARRAY_AXIS.
        """
        xarray = needed("xarray", "xarray", "a dataset with named axes")
        arrays = {**self.series, **self.params}
        sizes: dict[str, int] = {}
        data: dict[str, tuple[list[str], np.ndarray]] = {}
        for name, values in arrays.items():
            dims = [self.clock]
            for axis, size in zip(self.axes[name][1:], values.shape[1:], strict=True):
                tried = chain((axis, f"{name}_{axis}"), (f"{name}_{axis}_{k}" for k in count(2)))
                free = next(dim for dim in tried if dim not in (*dims, *arrays) and sizes.get(dim, size) == size)
                sizes[free] = size
                dims.append(free)
            data[name] = dims, values
        facts = {"clock": self.clock, "status": self.status, "study": printable(self.study or "")}
        return xarray.Dataset(data, attrs=facts)

    def to_pandas(self) -> "pandas.DataFrame":
        """The recorded series of numbers, one row a frame, by the clock (needs the extra `stagescope[pandas]`).

        `ss.reading(run).to_pandas()` has the curves that were derived from it too.
        """
        pandas = needed("pandas", "pandas", "run.to_pandas()")
        series = {name: values for name, values in self.series.items() if values.ndim == 1}
        return pandas.DataFrame(series).set_index(self.clock)

    def _repr_html_(self) -> str:
        """What a notebook shows: figure, stages and ledger. The summary comes through the public names, and is made once."""
        return import_module("stagescope").summary(self).html

    def __repr__(self) -> str:
        kind = self.study or self.type
        last = self.time[-1] if self.frames else float("nan")
        note = f" ({self.reason})" if self.reason else ""
        frames = f"{self.frames} frame{'' if self.frames == 1 else 's'}"
        return f"<Run {kind}: {frames} to {self.clock}={last:g}, {self.status}{note}>"
