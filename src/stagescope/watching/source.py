"""What a watched run says of its model and its probe, and whether the model learned anything for which attention is needed.

A stored run may come from anybody: what is not as expected is refused, and tokens, which are texts of strangers, are spelled
out.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from stagescope.core.errors import InputError, printable
from stagescope.runs.run import Run

KINDS = ("watched", "checkpoints")
"""Kinds of sources whose runs are of watched models."""
AXES = {
    "lag_mass": ("layer", "head", "lag"),
    **dict.fromkeys(("entropy", "sink", "prefix_match", "induction", "duplicate", "content"), ("layer", "head")),
    **dict.fromkeys(("type_mass", "type_mass_mean"), ("layer", "head", "type")),
    "agreement": ("layer", "head", "other"),
    "sketch": ("layer", "head", "sketch"),
    "score_values": ("layer", "head", "score_value"),
    "embedding_values": ("value",),
    "group_norms": ("group",),
    "pattern": ("layer", "head", "query", "key"),
}
"""Names of the axes of recorded arrays, after time."""
SCALARS = (
    *("loss", "repeat_loss", "context_gain", "context_gain_error", "embedding_rank"),
    *("train_loss", "learning_rate", "gradient_norm"),
)
"""Names of what is one number a record."""
RECORDED = (*SCALARS, *AXES)
"""Arrays that `ss.watch` makes itself."""


@dataclass(frozen=True)
class Model:
    """A watched model and its probe: `length` tokens a sequence; random sequences are said twice, `period` tokens apart.

    `layers` are names of modules and `heads` how many heads each has. `tokens` are those of the recorded pattern, `types`
    the frequent ones of the probe. All texts are those of strangers.
    """

    name: str = ""
    layers: tuple[str, ...] = ()
    heads: tuple[int, ...] = ()
    causal: bool = True
    length: int = 64
    period: int = 32
    tokens: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    vocabulary: int | None = None
    unigram_entropy: float | None = None
    steps: int | None = None

    def head_places(self) -> Iterator[tuple[int, int]]:
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
    probe = source.get("probe") or {}
    if not isinstance(probe, Mapping):
        raise _wrong_source("probe", probe)
    length = _integer(probe, "length", 64)
    return Model(
        name=str(source.get("model") or "a model"),
        layers=_texts(source, "layers"),
        heads=_heads(run, source),
        causal=bool(source.get("causal", True)),
        length=length,
        period=_integer(probe, "period", length // 2),
        tokens=_texts(probe, "shown"),
        types=_texts(source, "types"),
        groups=_texts(source, "groups"),
        vocabulary=None if source.get("vocabulary") is None else _integer(source, "vocabulary", 1),
        unigram_entropy=_number(source, "unigram_entropy"),
        steps=None if source.get("steps") is None else _integer(source, "steps", 1),
    )


def head_name(layer: int, head: int) -> str:
    return f"layer {layer} head {head}"


def _wrong_source(name: str, value: Any) -> InputError:
    return InputError(f"the source of this run has {name} {value!r:.60}, which ss.watch does not write; record the run again")


def _integer(source: Mapping[str, Any], name: str, default: int) -> int:
    value = source.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value < 2**31:
        raise _wrong_source(name, value)
    return value


def _number(source: Mapping[str, Any], name: str) -> float | None:
    value = source.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _wrong_source(name, value)
    return float(value) if math.isfinite(value) else None


def _texts(source: Mapping[str, Any], name: str) -> tuple[str, ...]:
    value = source.get(name) or []
    if not isinstance(value, list | tuple):
        raise _wrong_source(name, value)
    return tuple(map(str, value))


def _heads(run: Run, source: Mapping[str, Any]) -> tuple[int, ...]:
    """Heads of each layer, as many as the arrays have room for."""
    shapes = (run.series[name].shape for name, axes in AXES.items() if "head" in axes and name in run.series)
    shape = next((shape for shape in shapes if len(shape) >= 3), (0, 0, 0))
    counts = source.get("heads") or [shape[2]] * shape[1]
    valid = isinstance(counts, list | tuple) and all(isinstance(one, int) and 0 <= one <= shape[2] for one in counts)
    if not valid or len(counts) != shape[1]:
        raise _wrong_source("heads", counts)
    return tuple(counts)


_VISIBLE = str.maketrans({" ": "␣", "\n": "↵", "\t": "⇥", "\r": "␍"})


def token_label(token: str, longest: int = 40) -> str:
    """A token on one line in which blanks and line ends are seen."""
    label = printable(token[: longest + 1].translate(_VISIBLE)) or "(empty)"
    return label if len(token) <= longest and len(label) <= 2 * longest else f"{label[: longest - 1]}…"


def token_labels(tokens: Iterable[str], count: int) -> tuple[str, ...]:
    """Labels of the first `count` tokens; numbers where a run does not say what they are."""
    labels = [token_label(token) for _, token in zip(range(count), tokens, strict=False)]
    return (*labels, *(str(place) for place in range(len(labels), count)))


@dataclass(frozen=True)
class Limits:
    """When the gate is open.

    below: how far the lowest probe loss must be below the unigram entropy, of that entropy. Models on shuffled text
        stay at it. It is not the last one: a model that overfits has learned something before.
    records: over which the loss is a running median before its lowest is taken.
    errors: standard errors by which what context is worth must be above 0; a model that uses the current token alone, as a
        bigram table does, has 0 but for chance. 2.57 is the end of the 95 % interval of a mean of six sequences.
    worth: what context must be worth, of the probe loss: a training of 20 steps has .002 of it.
    """

    below: float = 0.05
    records: int = 5
    errors: float = 2.57
    worth: float = 0.02


LIMITS = Limits()


@dataclass(frozen=True)
class Gate:
    """Whether events of attention count, and why.

    `loss` is that on the probe at the last record, `lowest` its lowest, `unigram_entropy` that of the probe's tokens, all in
    nats a token.
    `context_gain` is by how much the loss rises if the tokens before the current one are those of another sequence, at the last
    record where that was measured (`measured_at`), with its standard error. None where something was not recorded.
    """

    open: bool
    loss: float | None
    lowest: float | None
    unigram_entropy: float | None
    context_gain: float | None
    context_gain_error: float | None
    measured_at: float | None
    sentence: str

    def json(self) -> dict[str, Any]:
        return asdict(self)


def gate_of(run: Run) -> Gate:
    """The gate of a watched run."""
    entropy, limits = model_of(run).unigram_entropy, LIMITS
    loss, lowest = _last(run, "loss")[0], _lowest(run)
    gain, record = _last(run, "context_gain")
    errors = curve_of(run, "context_gain_error")
    error = None if record is None or not np.isfinite(errors[record : record + 1]).any() else float(errors[record])
    learned = used = False
    if lowest is None:
        first = "no loss on the probe was recorded"
    elif not entropy:
        first = "the unigram entropy of the probe is not known"
    else:
        below = 1 - lowest / entropy
        learned = below >= limits.below
        first = f"the lowest probe loss is {lowest:.3f}, {abs(below):.1%} {'below' if below >= 0 else 'above'}"
        first += f" the unigram entropy, {entropy:.3f}" + ("" if learned else f" (at least {limits.below:.0%} below)")
    second = "what context is worth was not measured (that takes a causal model and two sequences or more)"
    if gain is not None and error is not None and record is not None:
        second = f"exchanging the context costs {gain:.3f} ± {error:.3f} nats at {run.clock} {run.time[record]:.5g}"
        if gain <= limits.errors * error:
            second += f", less than {limits.errors:g} standard errors"
        elif gain < limits.worth * (lowest or 0.0):
            second += f", less than {limits.worth:.0%} of the loss"
        else:
            used = True
    verdict = "events of attention count" if learned and used else "no event of attention counts"
    step = None if record is None else float(run.time[record])
    return Gate(learned and used, loss, lowest, entropy, gain, error, step, f"{first}; {second}: {verdict}")


def _last(run: Run, name: str) -> tuple[float | None, int | None]:
    """The last number of a series, and its record."""
    values = curve_of(run, name)
    good = np.flatnonzero(np.isfinite(values))
    return (float(values[good[-1]]), int(good[-1])) if len(good) else (None, None)


def curve_of(run: Run, name: str) -> np.ndarray:
    """A series with one number a record; empty where the run has none of this name."""
    values = np.asarray(run.series[name], dtype=float) if name in run.series else np.empty(0)
    return values if values.ndim == 1 else np.empty(0)


def _lowest(run: Run) -> float | None:
    values, records = curve_of(run, "loss"), LIMITS.records
    good = values[np.isfinite(values)]
    if not len(good):
        return None
    if len(good) < 10 * records:  # few records, as of checkpoints, are far apart
        return float(good.min())
    return float(np.median(np.lib.stride_tricks.sliding_window_view(good, records), axis=-1).min())
