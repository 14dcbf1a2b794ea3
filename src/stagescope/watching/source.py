"""What a watched run says of its model and its probe. A stored run may come from anybody: what is not as expected is refused."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from stagescope.errors import InputError
from stagescope.runs.run import Run

KINDS = ("watched", "checkpoints")
"""Kinds of sources whose runs are of watched models."""
PER_HEAD = ("lag_mass", "entropy", "sink", "induction", "duplicate", "content", "agreement", "sketch", "pattern", "type_mass")
"""Arrays (record, layer, head, ...) from which the number of layers and heads is read where nothing states it."""

RECORDED = (
    *("loss", "train_loss", "repeat_loss", "context_gain", "context_gain_error", "learning_rate", "gradient_norm"),
    *("lag_mass", "entropy", "sink", "prefix_match", "induction", "duplicate", "content", "type_mass", "type_mass_mean"),
    *("agreement", "sketch", "score_values", "embedding_values", "embedding_rank", "group_norms", "pattern"),
)
"""Arrays that `ss.watch` makes itself."""


@dataclass(frozen=True)
class Model:
    """A watched model and its probe: `length` tokens a sequence; random sequences are said twice, `period` tokens apart.

    `layers` are names of modules and `heads` how many heads each has. `shown` are the tokens of the recorded pattern, `types`
    the frequent ones of the probe. All texts are those of strangers.
    """

    name: str = ""
    layers: tuple[str, ...] = ()
    heads: tuple[int, ...] = ()
    causal: bool = True
    length: int = 64
    period: int = 32
    shown: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    vocabulary: int | None = None
    unigram_entropy: float | None = None
    steps: int | None = None

    def each(self) -> Iterator[tuple[int, int]]:
        """Layer and head of each head."""
        return ((layer, head) for layer, count in enumerate(self.heads) for head in range(count))


def is_watched(run: Run) -> bool:
    """Whether a run is of a watched model: training that was watched, or checkpoints that were read."""
    return run.spec["field"] is None and run.type in KINDS


def model_of(run: Run) -> Model:
    """What a watched run says of its model; refuses any other run."""
    if not is_watched(run):
        raise InputError(
            f"heads are those of a watched model, and this run is of {run.type!r};"
            " record one with ss.watch, or read checkpoints with ss.read_checkpoints"
        )
    source = run.spec["source"]
    probe = _mapping(source.get("probe") or {})
    length = _whole(probe, "length", 64)
    return Model(
        name=str(source.get("model") or "a model"),
        layers=_texts(source, "layers"),
        heads=_heads(run, source),
        causal=bool(source.get("causal", True)),
        length=length,
        period=_whole(probe, "period", length // 2),
        shown=_texts(probe, "shown"),
        types=_texts(source, "types"),
        groups=_texts(source, "groups"),
        vocabulary=None if source.get("vocabulary") is None else _whole(source, "vocabulary", 1),
        unigram_entropy=_number(source, "unigram_entropy"),
        steps=None if source.get("steps") is None else _whole(source, "steps", 1),
    )


def head_name(layer: int, head: int) -> str:
    return f"layer {layer} head {head}"


def _odd(name: str, value: Any) -> InputError:
    return InputError(f"the source of this run has {name} {value!r:.60}, which ss.watch does not write; record the run again")


def _mapping(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise _odd("probe", value)
    return value


def _whole(source: Mapping[str, Any], name: str, default: int) -> int:
    value = source.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value < 2**31:
        raise _odd(name, value)
    return value


def _number(source: Mapping[str, Any], name: str) -> float | None:
    value = source.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _odd(name, value)
    return float(value) if math.isfinite(value) else None


def _texts(source: Mapping[str, Any], name: str) -> tuple[str, ...]:
    value = source.get(name) or []
    if not isinstance(value, list | tuple):
        raise _odd(name, value)
    return tuple(map(str, value))


def _heads(run: Run, source: Mapping[str, Any]) -> tuple[int, ...]:
    """Heads of each layer, as many as the arrays have room for."""
    shape = next((run.series[name].shape for name in PER_HEAD if name in run.series and run.series[name].ndim >= 3), (0, 0, 0))
    given = source.get("heads") or [shape[2]] * shape[1]
    whole = isinstance(given, list | tuple) and all(isinstance(one, int) and 0 <= one <= shape[2] for one in given)
    if not whole or len(given) != shape[1]:
        raise _odd("heads", given)
    return tuple(given)
