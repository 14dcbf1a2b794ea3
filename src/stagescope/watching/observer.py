"""One model on one probe: the numbers of a record, and what is known of both."""

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from stagescope.errors import InputError, unknown
from stagescope.watching.capture import Seen
from stagescope.watching.observables import AXES, SCALARS, HeadNumbers, Parameters
from stagescope.watching.passing import Forward, attend, device_of, predict, tried, unwrapped
from stagescope.watching.probe import Probe, make_probe, vocabulary_of
from stagescope.watching.pytorch import Tensor, nn, torch
from stagescope.watching.pytorch import functional as F

SHOWN = 10
"""Tokens of the pattern that is recorded whole."""


class Observer:
    """One model on one probe: makes the numbers of a record."""

    def __init__(
        self,
        model: nn.Module,
        probe: Any,
        *,
        tokenizer: Any = None,
        layers: Collection[int | str] | None = None,
        heads: Collection[int] | None = None,
        blocks: Sequence[str] = (),
        patterns: int = SHOWN,
        forward: Forward | None = None,
    ) -> None:
        if isinstance(patterns, bool) or not isinstance(patterns, int) or patterns < 1:
            raise InputError(f"patterns is {patterns!r}, expected how many tokens of a pattern are recorded, 1 or more")
        self.model = unwrapped(model)
        device = device_of(self.model)
        made = probe if isinstance(probe, Probe) else make_probe(probe, self.model, tokenizer)
        self.probe = made.to(device)
        self._ids = self.probe.all
        self.forward, logits, self._plan = tried(self.model, self._ids, forward)
        seen = attend(self.model, self._ids, self.forward, self._plan)[1]
        self.layers = chosen_layers([one.path for one in seen], layers)
        self.heads = None if heads is None else chosen_heads(heads, max(one.heads for one in seen))
        self.causal = all(float(one.weights.triu(1).abs().max()) < 1e-6 for one in seen)
        self.blocks = chosen_blocks(self.model, blocks)
        self.numbers, self.parameters = HeadNumbers(self.probe, patterns), Parameters(self.model, self._plan.table)
        self._predicts = logits is not None and int(self.probe.ids.max()) < logits.shape[-1]  # else they are hidden states
        self.vocabulary = int(logits.shape[-1]) if logits is not None and self._predicts else vocabulary_of(self.model)
        self._kinds = [(one.path, one.heads) for one in self._kept(seen)]
        self.axes = {name: AXES[name] for name in self.frame() if name in AXES}

    def frame(self, gains: int = 0) -> dict[str, Any]:
        """The numbers of the model as it is now; with `gains`, also what context is worth at so many places."""
        logits, seen = attend(self.model, self._ids, self.forward, self._plan)
        found = self.numbers.of(self._kept(seen)) | self.parameters.numbers()
        if not self.causal:
            found = {name: value for name, value in found.items() if name not in ("prefix_match", "induction", "duplicate")}
        found |= self._losses(logits)
        if self.causal and "loss" in found:
            none = float("nan"), float("nan")
            found["context_gain"], found["context_gain_error"] = (
                self._context_gain(logits, gains) if gains and logits is not None else none
            )
        return found | {name: _parameter(self.model, path) for name, path in self.blocks.items()}

    def _kept(self, seen: list[Seen]) -> list[Seen]:
        kept = [seen[i] for i in self.layers]
        if self.heads is None:
            return kept
        cut = [[h for h in self.heads if h < one.heads] for one in kept]
        return [Seen(one.path, one.weights[:, places], *_cut(one, places)) for one, places in zip(kept, cut, strict=True)]

    def _losses(self, logits: Tensor | None) -> dict[str, float]:
        """Losses on the probe, nats a token: of its text, and of the second half of what is said twice."""
        probe = self.probe
        if logits is None or not self._predicts:
            return {}
        text, twice = logits[: len(probe.ids)], logits[len(probe.ids) :]
        if probe.targets is not None:
            odd = (probe.targets < 0) | (probe.targets >= logits.shape[-1])  # places that are not to be predicted
            return {"loss": _cross(text, probe.targets.masked_fill(odd, -100))} | self._repeat(twice)
        return {"loss": _cross(text[:, :-1], probe.ids[:, 1:])} | self._repeat(twice) if self.causal else {}

    def _repeat(self, twice: Tensor) -> dict[str, float]:
        half = self.probe.period
        targets = self.probe.repeated[:, half + 1 :]
        targets = targets.masked_fill(targets >= twice.shape[-1], -100)  # tokens that are read and never predicted
        return {"repeat_loss": _cross(twice[:, half:-1], targets)} if self.causal else {}

    def _context_gain(self, logits: Tensor, places: int) -> tuple[float, float]:
        """How much the loss at some places rises if all tokens before the current one are those of another sequence.

        It is 0 but for chance where a model uses the current token and its place alone. Returns its mean and standard error.
        """
        ids = self.probe.ids
        count, length = ids.shape
        if count < 2:
            return float("nan"), float("nan")
        at = np.unique(np.linspace(length // 4, length - 2, places).astype(int))
        rows = ids.repeat(len(at), 1)
        where = torch.as_tensor(np.repeat(at, count), device=ids.device)
        earlier = torch.arange(length, device=ids.device)[None] < where[:, None]
        changed = torch.where(earlier, torch.roll(ids, 1, dims=0).repeat(len(at), 1), rows)
        given = predict(self.model, changed, self.forward)
        if given is None:
            return float("nan"), float("nan")
        own = logits[:count].repeat(len(at), 1, 1)
        row = torch.arange(len(rows), device=ids.device)
        target = rows[row, where + 1]
        extra = F.cross_entropy(given[row, where], target, reduction="none") - F.cross_entropy(
            own[row, where], target, reduction="none"
        )
        by_sequence = extra.reshape(len(at), count).mean(0)
        return float(extra.mean()), float(by_sequence.std() / count**0.5)

    def source(self, steps: int | None, kind: str = "watched") -> dict[str, Any]:
        """What is known of the model and the probe, for the spec of the run."""
        probe, words = self.probe, self.probe.words
        return {
            "kind": kind,
            "model": type(self.model).__name__,
            "parameters": sum(value.numel() for value in self.model.parameters()),
            "vocabulary": self.vocabulary,
            "causal": self.causal,
            "layers": [path for path, _ in self._kinds],
            "heads": [heads for _, heads in self._kinds],
            "probe": {
                "sequences": len(probe.ids),
                "length": probe.ids.shape[1],
                "shown": [words(int(one)) for one in probe.ids[0, : self.numbers.shown]],
                "repeated": len(probe.repeated),
                "period": probe.period,
                "sha256": probe.sha256,
            },
            "types": [words(one) for one in self.numbers.types],
            "unigram_entropy": unigram_entropy(probe),
            "embedding": self.parameters.embedding,
            "groups": list(self.parameters.groups),
            "steps": steps,
        }


def _cross(logits: Tensor, targets: Tensor) -> float:
    return float(F.cross_entropy(logits.reshape(-1, logits.shape[-1]), targets.reshape(-1), ignore_index=-100))


def unigram_entropy(probe: Probe) -> float:
    """Entropy of the probe's tokens, nats, with the correction of Miller and Madow: what a model without context can reach.

    A probe is short, so this lies below the entropy of the whole text: a model that beats it uses context.
    """
    tokens = probe.ids[:, 1:] if probe.targets is None else probe.targets[probe.targets >= 0]
    counts = np.unique(tokens.cpu().numpy(), return_counts=True)[1]
    shares = counts / max(counts.sum(), 1)
    return float(-(shares * np.log(shares)).sum() + (len(counts) - 1) / (2 * max(counts.sum(), 1)))


def _cut(one: Seen, places: list[int]) -> list[Tensor | None]:
    return [None if each is None else each[:, places] for each in (one.query, one.key)]


def chosen_layers(paths: list[str], wanted: Collection[int | str] | None) -> list[int]:
    """Places of the layers to record: by number, or by a part of the module's name."""
    if wanted is None:
        return list(range(len(paths)))
    found: set[int] = set()
    listing = [wanted] if isinstance(wanted, str | int) else list(wanted)
    if not listing or not all(isinstance(one, str | int) for one in listing):
        raise InputError(f"layers is {listing!r}, expected numbers or parts of names; leave it out for all")
    for one in listing:
        places = [i for i, path in enumerate(paths) if (i == one if isinstance(one, int) else one in path)]
        if not places:
            listed = ", ".join(f"{i} {path}" for i, path in enumerate(paths))
            raise InputError(f"no layer {one!r} is seen; choose numbers or names of: {listed}")
        found.update(places)
    return sorted(found)


def chosen_heads(wanted: Collection[int], most: int) -> list[int]:
    found = [wanted] if isinstance(wanted, int) else list(wanted)
    if not found or not all(isinstance(one, int) and 0 <= one < most for one in found):
        raise InputError(f"heads is {found}, expected numbers from 0 to {most - 1}")
    return sorted(set(found))


def chosen_blocks(model: nn.Module, wanted: Sequence[str]) -> dict[str, str]:
    """Parameters to record whole: their paths by a name that an array can have."""
    known = dict(model.named_parameters(remove_duplicate=False))
    for name in [wanted] if isinstance(wanted, str) else wanted:
        if name not in known:
            raise unknown("parameter of the model", name, known)
    return {_array_name(name): name for name in ([wanted] if isinstance(wanted, str) else wanted)}


def _array_name(path: str) -> str:
    name = path.replace(".", "_")
    return f"{name}_" if name in AXES or name in SCALARS or name in ("t", "step", "speed") else name


def _parameter(model: nn.Module, path: str) -> np.ndarray:
    return model.get_parameter(path).detach().float().cpu().numpy()
