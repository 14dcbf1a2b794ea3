"""What a record of a watched model holds: numbers of each head on the probe, losses, and sizes of parameters."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from stagescope.watching.capture import Seen
from stagescope.watching.probe import Probe, embedding_of
from stagescope.watching.pytorch import Tensor, nn, torch
from stagescope.watching.pytorch import functional as F

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
    after: int = 4  # queries before this place see too few keys to tell a sink from chance
    settled: int = 8  # queries from which rows of sequences are compared


SIZES = Sizes()


class HeadNumbers:
    """Numbers of every head from the patterns of one pass; what depends on the probe alone is made once."""

    def __init__(self, probe: Probe, shown: int, sizes: Sizes = SIZES) -> None:
        self.probe, self.sizes, self.shown = probe, sizes, min(shown, probe.ids.shape[1])
        self.types = probe.types(sizes.types)
        self.count, self.length = probe.ids.shape

    @cached_property
    def _kinds(self) -> Tensor:
        """Which type each key has (sequence, key, type), the last one being the rest."""
        places = torch.full((int(self.probe.ids.max()) + 1,), len(self.types), device=self.probe.ids.device)
        places[self.types] = torch.arange(len(self.types), device=places.device)
        return F.one_hot(places[self.probe.ids], len(self.types) + 1).float()

    @cached_property
    def _matches(self) -> tuple[Tensor, Tensor]:
        """Keys after an earlier occurrence of the query's token (sequence, query, key), and queries that have one."""
        ids = self.probe.ids
        before = torch.roll(ids, 1, dims=1)
        same = (ids[:, :, None] == before[:, None, :]) & torch.ones(self.length, self.length, device=ids.device).tril().bool()
        same[:, :, 0] = False
        return same.float(), same.any(-1).float()

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

    def of(self, layers: list[Seen]) -> dict[str, np.ndarray]:
        """The numbers of all layers, layer and head first; the heads of all layers are worked on together."""
        counts = [one.heads for one in layers]
        found = self._of_heads(torch.cat([one.weights for one in layers], dim=1))
        if all(one.query is not None and one.key is not None for one in layers):
            found["score_values"] = torch.cat([self._scores(one.query, one.key) for one in layers if one.query is not None])
        return {name: _by_layer(values.cpu().numpy(), counts, name == "agreement") for name, values in found.items()}

    def _of_heads(self, weights: Tensor) -> dict[str, Tensor]:
        text, twice = weights[: self.count], weights[self.count :]
        flat = text.transpose(0, 1).flatten(1)
        mean = text.mean(0)
        later = torch.arange(self.probe.period, self.length)
        received = text.mean(2)  # (sequence, head, key)
        same, some = self._matches
        return {
            "lag_mass": mean.flatten(1) @ self._lags,
            "entropy": -torch.xlogy(text, text).sum(-1).mean((0, 2)),
            "sink": mean[:, self.sizes.after :, 0].mean(-1),
            "prefix_match": torch.einsum("bhqk,bqk->h", text, same) / some.sum().clamp_min(1.0),
            "induction": twice[:, :, later, later - self.probe.period + 1].mean((0, 2)),
            "duplicate": twice[:, :, later, later - self.probe.period].mean((0, 2)),
            "content": self._content(text, mean),
            "type_mass": torch.einsum("bhk,bkt->ht", received, self._kinds) / self.count,
            "type_mass_mean": torch.einsum("hk,kt->ht", mean.mean(1), self._kinds.mean(0)),
            "agreement": _cosines(flat),
            "sketch": flat @ self._signs,
            "pattern": text[0, :, : self.shown, : self.shown],
        }

    def _content(self, text: Tensor, mean: Tensor) -> Tensor:
        """Mean distance in total variation between a row and the mean row of the other sequences."""
        if self.count < 2:
            return torch.full((text.shape[1],), torch.nan)
        others = (mean * self.count - text) / (self.count - 1)
        return 0.5 * (text - others)[:, :, self.sizes.settled :].abs().sum(-1).mean((0, 2))

    def _scores(self, query: Tensor, key: Tensor | None) -> Tensor:
        """Largest singular values of the scores of all pairs of probe tokens, centred over keys, for each head."""
        assert key is not None
        query, key = query[: self.count], key[: self.count]
        flat = [one.transpose(0, 1).reshape(one.shape[1], -1, one.shape[-1]) for one in (query.float(), key.float())]
        left, right = flat[0], flat[1] - flat[1].mean(1, keepdim=True)
        inner = torch.linalg.qr(left, mode="r").R @ torch.linalg.qr(right, mode="r").R.transpose(-2, -1)
        values = torch.linalg.svdvals(inner)[:, : self.sizes.values] / (left.shape[1] * query.shape[-1] ** 0.5)
        return F.pad(values, (0, self.sizes.values - values.shape[1]), value=torch.nan)


def _cosines(flat: Tensor) -> Tensor:
    unit = flat / flat.norm(dim=1, keepdim=True).clamp_min(1e-30)
    return unit @ unit.T


def _by_layer(values: np.ndarray, counts: list[int], square: bool) -> np.ndarray:
    """(layer, head, ...) of what has the heads of all layers in its first axis, padded with NaN to the most heads.

    Where it is `square`, the second axis has the heads of all layers too, and those of the own layer are kept.
    """
    most, ends = max(counts), np.cumsum(counts)
    shape = (most,) if square else values.shape[1:]
    found = np.full((len(counts), most, *shape), np.nan, np.float32)
    for layer, (end, heads) in enumerate(zip(ends, counts, strict=True)):
        own = slice(end - heads, end)
        mine = values[own, own] if square else values[own]
        found[layer][tuple(map(slice, mine.shape))] = mine
    return found


class Parameters:
    """Sizes of a model's parameters: singular values and effective rank of the token embedding, and norms of groups."""

    def __init__(self, model: nn.Module, sizes: Sizes = SIZES) -> None:
        self.sizes = sizes
        found = embedding_of(model)
        self.embedding = None if found is None else f"{found[0]}.weight"
        self._table = None if found is None else found[1]
        self._named = [(name, value) for name, value in model.named_parameters() if value.is_floating_point()]
        self.groups = _grouped([name for name, _ in self._named], sizes.groups)

    def numbers(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        if self._named:
            norms = _norms([value.detach() for _, value in self._named])
            found["group_norms"] = np.array([np.linalg.norm(norms[places]) for places in self.groups.values()], np.float32)
        if self._table is not None:
            found |= self._embedding(self._table.weight.detach())
        return found

    def _embedding(self, table: Tensor) -> dict[str, Any]:
        rows = table[:: -(-len(table) // self.sizes.rows)].float()
        centred = rows - rows.mean(0)
        gram = centred.T @ centred if rows.shape[1] <= len(rows) else centred @ centred.T
        if not bool(torch.isfinite(gram).all()):
            none = np.full(min(self.sizes.embedding, len(gram)), np.nan, np.float32)
            return {"embedding_values": none, "embedding_rank": np.float32(np.nan)}
        values = np.sqrt(np.clip(np.linalg.eigvalsh(gram.double().cpu().numpy())[::-1], 0, None))
        shares = values / max(values.sum(), 1e-300)
        rank = float(np.exp(-np.sum(shares * np.log(np.maximum(shares, 1e-300)))))
        return {"embedding_values": values[: self.sizes.embedding].astype(np.float32), "embedding_rank": np.float32(rank)}

    def gradient_norm(self) -> float:
        grads = [value.grad for _, value in self._named if value.grad is not None]
        return float(np.linalg.norm(_norms(grads))) if grads else float("nan")


def _norms(values: list[Tensor]) -> np.ndarray:
    return torch.stack([torch.linalg.vector_norm(value, dtype=torch.float32) for value in values]).cpu().numpy()


def _grouped(names: list[str], most: int) -> dict[str, list[int]]:
    """Parameters by the first parts of the names of their modules, as many parts as give at most `most` groups."""
    chosen: dict[str, list[int]] = {}
    for depth in range(1, 8):
        groups: dict[str, list[int]] = {}
        for place, name in enumerate(names):
            parts = name.split(".")
            groups.setdefault(".".join(parts[: min(depth, max(1, len(parts) - 1))]), []).append(place)
        if chosen and len(groups) > most:
            break
        chosen = groups
    return chosen
