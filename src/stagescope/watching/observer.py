"""One model on one probe: the numbers of a record (heads, losses, sizes of parameters), and what is known of both."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import nan
from typing import Any

import numpy as np

from stagescope.core.errors import InputError, unknown
from stagescope.core.spec import Json
from stagescope.watching.capture import Attention, Forward, attend, device_of, predict, tried, unwrapped
from stagescope.watching.heads import SEEN_FROM, prefix_keys
from stagescope.watching.probe import Probe, embedding_of, make_probe, vocabulary_of
from stagescope.watching.pytorch import Tensor, nn, torch
from stagescope.watching.pytorch import functional as F
from stagescope.watching.source import AXES, SCALARS


@dataclass(frozen=True)
class Sizes:
    """How much of each kind is recorded."""

    lags: int = 32
    types: int = 32
    signs: int = 64
    values: int = 8
    embedding: int = 64
    rows: int = 4096  # of the embedding, evenly spaced where it has more
    groups: int = 24
    after: int = SEEN_FROM
    settled: int = 8  # queries from which rows of sequences are compared


SIZES = Sizes()
_TINY = torch.finfo(torch.float32).tiny


class HeadNumbers:
    """Numbers of every head from the patterns of one pass; what depends on the probe alone is made once."""

    def __init__(self, probe: Probe, tokens: int, sizes: Sizes = SIZES) -> None:
        self.probe, self.sizes, self.pattern_tokens = probe, sizes, min(tokens, probe.ids.shape[1])
        self.types = probe.types(sizes.types)
        self.count, self.length = probe.ids.shape

    @cached_property
    def _kinds(self) -> Tensor:
        """Which type each key has (sequence, key, type), the last one being the rest."""
        places = torch.full((int(self.probe.ids.max()) + 1,), len(self.types), device=self.probe.ids.device)
        places[self.types] = torch.arange(len(self.types), device=places.device)
        return F.one_hot(places[self.probe.ids], len(self.types) + 1).float()

    @cached_property
    def _matches(self) -> Tensor:
        """Weights (sequence and query and key) of the mean attention to keys after an earlier occurrence of the query's token.

        The mean is over the queries that have such a key.
        """
        ids = self.probe.ids
        matches = torch.from_numpy(prefix_keys(ids.cpu().numpy())).to(ids.device)
        return (matches.float() / matches.any(-1).sum().clamp_min(1)).flatten()

    @cached_property
    def _lags(self) -> Tensor:
        """Weights (query and key, lag) of the mean over the queries that have a key at a lag."""
        place = torch.arange(self.length, device=self.probe.ids.device)
        lag = (place[:, None] - place[None, :]).flatten()
        lags = torch.arange(min(self.sizes.lags, self.length), device=lag.device)
        return (lag[:, None] == lags[None]).float() / (self.length - lags)

    @cached_property
    def _signs(self) -> Tensor:
        draw = torch.Generator().manual_seed(0)
        size = self.count * self.length**2
        signs = torch.randint(0, 2, (size, self.sizes.signs), generator=draw, dtype=torch.int8).float() * 2 - 1
        return (signs / (self.sizes.signs * self.count * self.length) ** 0.5).to(self.probe.ids.device)

    def of(self, layers: list[Attention]) -> dict[str, np.ndarray]:
        """The numbers of all layers, layer and head first; the heads of all layers are worked on together."""
        counts = [one.heads for one in layers]
        numbers = self._of_heads(torch.cat([one.weights for one in layers], dim=1))
        pairs = [(one.query, one.key) for one in layers if one.query is not None and one.key is not None]
        if len(pairs) == len(layers):
            numbers["score_values"] = torch.cat([self._scores(*pair) for pair in pairs])
        return {name: _by_layer(values.cpu().numpy(), counts, name == "agreement") for name, values in numbers.items()}

    def _of_heads(self, weights: Tensor) -> dict[str, Tensor]:
        text, twice = weights[: self.count], weights[self.count :]
        flat = text.transpose(0, 1).flatten(1)  # (head, sequence and query and key)
        mean = text.mean(0)
        inner = flat @ flat.T
        norms = inner.diagonal().sqrt().clamp_min(_TINY)
        received = text.mean(2).transpose(0, 1)  # (head, sequence, key)
        again = self.probe.period  # how far before each token of the second half stands the same one
        return {
            "lag_mass": mean.flatten(1) @ self._lags,
            "entropy": flat.clamp_min(_TINY).log_().mul_(flat).sum(1) / -(self.count * self.length),
            "sink": mean[:, self.sizes.after :, 0].mean(-1),
            "prefix_match": flat @ self._matches,
            "induction": twice.diagonal(1 - again, 2, 3)[..., 1:].mean((0, 2)),
            "duplicate": twice.diagonal(-again, 2, 3).mean((0, 2)),
            "content": self._content(text, mean),
            "type_mass": received.flatten(1) @ self._kinds.flatten(0, 1) / self.count,
            "type_mass_mean": mean.mean(1) @ self._kinds.mean(0),
            "agreement": inner / norms / norms[:, None],  # cosines
            "sketch": flat @ self._signs,
            "pattern": text[0, :, : self.pattern_tokens, : self.pattern_tokens],
        }

    def _content(self, text: Tensor, mean: Tensor) -> Tensor:
        """Mean distance in total variation between a row and the mean row of the other sequences.

        A row minus the mean of the others is count / (count - 1) times the row minus the mean of all.
        """
        if self.count < 2:
            return torch.full((text.shape[1],), torch.nan)
        distance = (text[:, :, self.sizes.settled :] - mean[:, self.sizes.settled :]).abs_().sum(-1).mean((0, 2))
        return 0.5 * self.count / (self.count - 1) * distance

    def _scores(self, query: Tensor, key: Tensor) -> Tensor:
        """Largest singular values of the scores of all pairs of probe tokens, centred over keys, for each head."""
        both = (one[: self.count].float().transpose(0, 1) for one in (query, key))
        queries, keys = (one.reshape(len(one), -1, one.shape[-1]) for one in both)
        keys = keys - keys.mean(1, keepdim=True)
        inner = torch.linalg.qr(queries, mode="r").R @ torch.linalg.qr(keys, mode="r").R.transpose(-2, -1)
        if not bool(torch.isfinite(inner).all()):  # a training that diverged
            return torch.full((len(inner), self.sizes.values), torch.nan, device=inner.device)
        values = torch.linalg.svdvals(inner)[:, : self.sizes.values] / (queries.shape[1] * query.shape[-1] ** 0.5)
        return F.pad(values, (0, self.sizes.values - values.shape[1]), value=torch.nan)


def _by_layer(values: np.ndarray, counts: list[int], square: bool) -> np.ndarray:
    """(layer, head, ...) of what has the heads of all layers in its first axis, padded with NaN to the most heads.

    Where it is `square`, the second axis has the heads of all layers too, and those of the own layer are kept.
    """
    largest, ends = max(counts), np.cumsum(counts)
    if not square and min(counts) == largest:
        return values.reshape(len(counts), largest, *values.shape[1:])
    shape = (largest,) if square else values.shape[1:]
    padded = np.full((len(counts), largest, *shape), np.nan, np.float32)
    for layer, (end, heads) in enumerate(zip(ends, counts, strict=True)):
        place = slice(end - heads, end)
        mine = values[place, place] if square else values[place]
        padded[layer][tuple(map(slice, mine.shape))] = mine
    return padded


class Parameters:
    """Sizes of a model's parameters: singular values and effective rank of the token embedding, and norms of groups.

    They are looked up by name each time: a program may exchange a module in the middle of a training.
    """

    def __init__(self, model: nn.Module, table: str | None = None, sizes: Sizes = SIZES) -> None:
        self.model, self.sizes = model, sizes
        guess = embedding_of(model) if table is None else (table,)
        self.embedding = None if guess is None else f"{guess[0]}.weight".lstrip(".")
        self._values = self._floating()
        self.groups = _grouped(list(self._values), sizes.groups)

    def _floating(self) -> dict[str, Tensor]:
        return {name: value for name, value in self.model.named_parameters() if value.is_floating_point()}

    def numbers(self) -> Json:
        numbers: Json = {}
        values = self._values = self._floating()
        if self.groups:
            norms = dict(zip(values, _norms([value.detach() for value in values.values()]), strict=True))
            group_values = [np.array([norms.get(name, np.nan) for name in names]) for names in self.groups.values()]
            numbers["group_norms"] = np.array([np.linalg.norm(one) for one in group_values], np.float32)
        if self.embedding is not None:
            numbers |= self._embedding(self.model.get_parameter(self.embedding).detach())
        return numbers

    def _embedding(self, table: Tensor) -> Json:
        rows = table[:: -(-len(table) // self.sizes.rows)].float()
        centred = rows - rows.mean(0)
        gram = centred.T @ centred if rows.shape[1] <= len(rows) else centred @ centred.T
        squares = np.full(len(gram), nan)
        if bool(torch.isfinite(gram).all()):
            squares = np.linalg.eigvalsh(gram.double().cpu().numpy())[::-1]
        values = np.sqrt(np.clip(squares, 0, None))
        rank = float((values**2).sum() ** 2 / max((values**4).sum(), 1e-300))  # how many equal values would spread as much
        return {"embedding_values": values[: self.sizes.embedding].astype(np.float32), "embedding_rank": np.float32(rank)}

    def gradient_norm(self) -> float:
        """Of the parameters as they were at the last `numbers`."""
        grads = [value.grad for value in self._values.values() if value.grad is not None]
        dense = [one.coalesce().values() if one.is_sparse else one for one in grads]
        return float(np.linalg.norm(_norms(dense))) if dense else float("nan")


def _norms(values: list[Tensor]) -> np.ndarray:
    return torch.stack([torch.linalg.vector_norm(value, dtype=torch.float32) for value in values]).cpu().numpy()


def _grouped(names: list[str], count: int) -> dict[str, list[str]]:
    """Parameters by the first parts of their names, as many parts as give at most `most` groups."""
    coarser: dict[str, list[str]] = {}
    for depth in range(1, 8):
        groups: dict[str, list[str]] = {}
        for name in names:
            groups.setdefault(".".join(name.split(".")[:depth]), []).append(name)
        if coarser and len(groups) > count:
            break
        coarser = groups
    return coarser


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
        self.probe = (probe if isinstance(probe, Probe) else make_probe(probe, self.model, tokenizer)).to(device)
        self._ids = self.probe.all
        self.forward, logits, self._plan = tried(self.model, self._ids, forward)
        attention = attend(self.model, self._ids, self.forward, self._plan)[1]
        self.layers = chosen_layers([one.path for one in attention], layers)
        self.heads = None if heads is None else chosen_heads(heads, max(one.heads for one in attention))
        self.causal = all(float(one.weights.triu(1).abs().max()) < 1e-6 for one in attention)
        self.blocks = chosen_blocks(self.model, blocks)
        self.numbers, self.parameters = HeadNumbers(self.probe, patterns), Parameters(self.model, self._plan.table)
        self._predicts = logits is not None and int(self.probe.ids.max()) < logits.shape[-1]  # else they are hidden states
        self.vocabulary = int(logits.shape[-1]) if logits is not None and self._predicts else vocabulary_of(self.model)
        self._kinds = [(one.path, one.heads) for one in self._recorded_heads(attention)]
        self.axes = {name: AXES[name] for name in self.frame() if name in AXES}

    def frame(self, gains: int = 0) -> Json:
        """The numbers of the model as it is now; with `gains`, also what context is worth at so many places."""
        logits, attention = attend(self.model, self._ids, self.forward, self._plan)
        numbers = self.numbers.of(self._recorded_heads(attention)) | self.parameters.numbers()
        if not self.causal:
            numbers = {name: value for name, value in numbers.items() if name not in ("prefix_match", "induction", "duplicate")}
        numbers |= self._losses(logits)
        if self.causal and "loss" in numbers:
            numbers["context_gain"], numbers["context_gain_error"] = self._context_gain(logits, gains)
        return numbers | {
            name: self.model.get_parameter(path).detach().float().cpu().numpy() for name, path in self.blocks.items()
        }

    def _recorded_heads(self, attention: list[Attention]) -> list[Attention]:
        recorded = [attention[i] for i in self.layers]
        if self.heads is None:
            return recorded
        selected = []
        for one in recorded:
            heads = [head for head in self.heads if head < one.heads]
            pair = (None if part is None else part[:, heads] for part in (one.query, one.key))
            selected.append(Attention(one.path, one.weights[:, heads], *pair))
        return selected

    def _losses(self, logits: Tensor | None) -> dict[str, float]:
        """Losses on the probe, nats a token: of its text, and of the second half of what is said twice."""
        probe, half, losses = self.probe, self.probe.period, {}
        if logits is None or not self._predicts:
            return losses
        text, twice = logits[: len(probe.ids)], logits[len(probe.ids) :]
        if probe.targets is not None:
            losses["loss"] = _cross(text, probe.targets)
        elif self.causal:
            losses["loss"] = _cross(text[:, :-1], probe.ids[:, 1:])
        if self.causal:
            losses["repeat_loss"] = _cross(twice[:, half:-1], probe.repeated[:, half + 1 :])
        return losses

    def _context_gain(self, logits: Tensor | None, places: int) -> tuple[float, float]:
        """How much the loss at some places rises if all tokens before the current one are those of another sequence.

        It is 0 but for chance where a model uses the current token and its place alone. Returns its mean and standard error.
        """
        ids = self.probe.ids
        count, length = ids.shape
        if count < 2 or not places or logits is None:
            return nan, nan
        queries = np.unique(np.linspace(length // 4, length - 2, places).astype(int))
        rows = ids.repeat(len(queries), 1)
        query = torch.as_tensor(np.repeat(queries, count), device=ids.device)
        earlier = torch.arange(length, device=ids.device)[None] < query[:, None]
        changed = torch.where(earlier, torch.roll(ids, 1, dims=0).repeat(len(queries), 1), rows)
        changed_logits = predict(self.model, changed, self.forward)
        if changed_logits is None:
            return nan, nan
        true_logits = logits[:count].repeat(len(queries), 1, 1)
        row = torch.arange(len(rows), device=ids.device)
        target = rows[row, query + 1]
        changed_loss, own_loss = (
            F.cross_entropy(one[row, query], target, reduction="none") for one in (changed_logits, true_logits)
        )
        extra = changed_loss - own_loss
        by_sequence = extra.reshape(len(queries), count).mean(0)
        return float(extra.mean()), float(by_sequence.std() / count**0.5)

    def source(self, steps: int | None, kind: str = "watched") -> Json:
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
                "shown": [words(int(one)) for one in probe.ids[0, : self.numbers.pattern_tokens]],
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
    """The mean over places that are to be predicted: no other has a token that the model can give."""
    valid = targets.masked_fill((targets < 0) | (targets >= logits.shape[-1]), -100)
    return float(F.cross_entropy(logits.reshape(-1, logits.shape[-1]), valid.reshape(-1), ignore_index=-100))


def unigram_entropy(probe: Probe) -> float:
    """Entropy of the probe's tokens, nats, with the correction of Miller and Madow: what a model without context can reach.

    A probe is short, so this lies below the entropy of the whole text: a model that beats it uses context.
    """
    tokens = probe.ids[:, 1:] if probe.targets is None else probe.targets[probe.targets >= 0]
    counts = np.unique(tokens.cpu().numpy(), return_counts=True)[1]
    shares = counts / max(counts.sum(), 1)
    return float(-(shares * np.log(shares)).sum() + (len(counts) - 1) / (2 * max(counts.sum(), 1)))


def chosen_layers(paths: list[str], selection: Collection[int | str] | None) -> list[int]:
    """Places of the layers to record: by number, or by a part of the module's name."""
    if selection is None:
        return list(range(len(paths)))
    indices: set[int] = set()
    listing = [selection] if isinstance(selection, str | int) else list(selection)
    if not listing or not all(isinstance(one, str | int) for one in listing):
        raise InputError(f"layers is {listing!r}, expected numbers or parts of names; leave it out for all")
    for one in listing:
        places = [i for i, path in enumerate(paths) if (i == one if isinstance(one, int) else one in path)]
        if not places:
            listed = ", ".join(f"{i} {path}" for i, path in enumerate(paths))
            raise InputError(f"no layer {one!r} is seen; choose numbers or names of: {listed}")
        indices.update(places)
    return sorted(indices)


def chosen_heads(numbers: Collection[int], count: int) -> list[int]:
    indices = [numbers] if isinstance(numbers, int) else list(numbers)
    if not indices or not all(isinstance(one, int) and 0 <= one < count for one in indices):
        raise InputError(f"heads is {indices}, expected numbers from 0 to {count - 1}")
    return sorted(set(indices))


def chosen_blocks(model: nn.Module, paths: Sequence[str]) -> dict[str, str]:
    """Parameters to record whole: their paths by a name that an array can have."""
    parameters = dict(model.named_parameters(remove_duplicate=False))
    names_of_blocks: dict[str, str] = {}
    for path in [paths] if isinstance(paths, str) else paths:
        if path not in parameters:
            raise unknown("parameter of the model", path, parameters)
        name = path.replace(".", "_")
        names_of_blocks[f"{name}_" if name in (*AXES, *SCALARS, "t", "step", "speed") else name] = path
    return names_of_blocks
