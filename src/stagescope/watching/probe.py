"""The probe: the fixed token sequences on which a model is looked at, and how their tokens are written."""

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from stagescope.core.errors import InputError, message, needed
from stagescope.watching.pytorch import Tensor, nn, torch

SEQUENCES, LENGTH = 6, 64
"""Sequences of text and their length where a probe is longer."""
SHORTEST = 8
_LIMITS = ("n_positions", "max_position_embeddings", "block_size", "context_length", "max_seq_len", "seq_len", "n_ctx")
_POSITION = re.compile("pos|wpe", re.IGNORECASE)
_EXPERTS = ("num_experts", "num_local_experts", "n_routed_experts")


@dataclass(frozen=True, eq=False)
class Probe:
    """`ids` (sequence, position) of text, and `targets` of the same shape where they were given with it.

    `repeated` are sequences of random tokens, each said twice, with period half the length. `words` writes a token.
    """

    ids: Tensor
    repeated: Tensor
    words: Callable[[int], str]
    targets: Tensor | None = None

    @property
    def all(self) -> Tensor:
        return torch.cat([self.ids, self.repeated])

    @property
    def period(self) -> int:
        return self.ids.shape[1] // 2

    @property
    def sha256(self) -> str:
        return hashlib.sha256(np.ascontiguousarray(self.all.cpu().numpy()).tobytes()).hexdigest()

    def types(self, count: int) -> list[int]:
        """The most frequent token types of the text, most frequent first."""
        types, counts = np.unique(self.ids.cpu().numpy(), return_counts=True)
        return [int(types[i]) for i in np.lexsort((types, -counts))[:count]]

    def to(self, device: torch.device) -> "Probe":
        tensors = {name: getattr(self, name).to(device) for name in ("ids", "repeated")}
        return replace(self, **tensors, targets=None if self.targets is None else self.targets.to(device))


def make_probe(given: Any, model: nn.Module, tokenizer: Any = None) -> Probe:
    """A probe from text with a tokenizer, from token ids, or from a batch of a dataloader.

    Args:
        given: a text, several texts, ids (position) or (sequence, position), or a batch: a dictionary with "input_ids" or a
            pair of inputs and targets. The first 6 sequences and 64 tokens are used.
        model: the model that will be called.
        tokenizer: what turns text into ids and ids into text: a tokenizer of transformers or tokenizers, the path of a
            tokenizer.json, a list with the text of each id, or a function from text to ids.
    """
    coder = Coder.of(tokenizer)
    # rows of tables that are named after positions are likely limits of a model without a config
    tables = [module.num_embeddings for name, module in embeddings(model) if _POSITION.search(name)]
    ids, targets = _ids(given, coder, min([LENGTH, *_config(model, _LIMITS), *(rows for rows in tables if rows >= SHORTEST)]))
    size = vocabulary_of(model)
    length = _length(ids.shape[1], model, size)
    ids, targets = (None if one is None else one[:SEQUENCES, :length].contiguous() for one in (ids, targets))
    assert ids is not None
    if int(ids.min()) < 0 or (size is not None and int(ids.max()) >= size):
        odd = int(ids.min()) if int(ids.min()) < 0 else int(ids.max())
        raise InputError(
            f"the probe has the token id {odd}, the model knows 0 to {(size or 1) - 1}: use the model's own tokenizer"
        )
    return Probe(ids, _repeated_halves(size or int(ids.max()) + 1, length), coder.word, targets)


def vocabulary_of(model: nn.Module) -> int | None:
    """Rows of the token embedding; None where a model has none."""
    embedding = embedding_of(model)
    return None if embedding is None else embedding[1].num_embeddings


def embeddings(model: nn.Module) -> list[tuple[str, nn.Embedding]]:
    return [(name, module) for name, module in model.named_modules() if isinstance(module, nn.Embedding)]


def embedding_of(model: nn.Module) -> tuple[str, nn.Embedding] | None:
    """Name and module of the token embedding: the one that the model names.

    Else one that is not named after positions, has as many rows as the last linear map has outputs, and has most rows.
    """
    try:
        token_table: Any = model.get_input_embeddings()  # type: ignore[operator]
    except Exception:  # no model of transformers, or one that has none
        token_table = None
    tables = embeddings(model)
    named = [(name, module) for name, module in tables if module is token_table]
    ends = [module.out_features for module in model.modules() if isinstance(module, nn.Linear)]

    def likely(table: tuple[str, nn.Embedding]) -> tuple[bool, bool, int]:
        rows = table[1].num_embeddings
        return not _POSITION.search(table[0]), rows in ends[-1:], rows

    return named[0] if named else max(tables, key=likely, default=None)


def _config(model: nn.Module, names: tuple[str, ...]) -> list[int]:
    """The sizes that the model's config has under these names."""
    sizes = (getattr(getattr(model, "config", None), name, None) for name in names)
    return [one for one in sizes if isinstance(one, int) and one > 0]


def _length(tokens: int, model: nn.Module, vocabulary: int | None) -> int:
    """An even length that fits the context and is no other size of the model, so that a table over it is attention."""
    limit = min(_config(model, _LIMITS), default=LENGTH)
    if tokens > limit and limit < LENGTH:
        raise InputError(f"the probe has {tokens} tokens a sequence, the model's context has {limit}; give a shorter probe")
    experts = _config(model, _EXPERTS)
    length = min(tokens, LENGTH) // 2 * 2
    while length in (vocabulary, *experts):
        length -= 2
    if length < SHORTEST:
        raise InputError(f"the probe has {tokens} tokens a sequence; give at least {SHORTEST + 2}")
    return length


def _repeated_halves(vocabulary: int, length: int) -> Tensor:
    """Two random halves, each said twice; tokens of a half differ where there are enough of them."""
    draw = np.random.default_rng(0)
    half = length // 2
    halves = np.stack([draw.choice(vocabulary, half, replace=vocabulary < half) for _ in range(2)])
    return torch.from_numpy(np.concatenate([halves, halves], axis=1).astype(np.int64))


def _ids(probe: Any, coder: "Coder", length: int) -> tuple[Tensor, Tensor | None]:
    """Token ids (sequence, position) and targets, where they were given; one long sequence is cut at `length`."""
    if isinstance(probe, Path):
        raise InputError(f"a probe is text or token ids; read the file first: probe=Path({str(probe)!r}).read_text()")
    if isinstance(probe, str):
        return _cut(_tensor(coder.encode(probe)), length), None
    if isinstance(probe, Mapping):
        if "input_ids" not in probe:
            raise InputError(f"the probe is a batch without 'input_ids' (it has {', '.join(map(str, probe))}); give the ids")
        return _whole_rows(_cut(_tensor(probe["input_ids"]), length), probe.get("attention_mask")), None
    if isinstance(probe, tuple | list) and probe and all(getattr(one, "ndim", 0) == 2 for one in probe):
        return _batch(*probe)
    if isinstance(probe, Sequence) and probe and all(isinstance(one, str) for one in probe):
        rows = [coder.encode(one) for one in probe]
        return _tensor([row[: min(map(len, rows))] for row in rows]), None
    return _cut(_tensor(probe), length), None


def _batch(inputs: Any, labels: Any = None, *extra: Any) -> tuple[Tensor, Tensor | None]:
    """A batch of a dataloader: inputs, or inputs and targets."""
    ids, targets = _tensor(inputs), None if labels is None else _tensor(labels)
    if extra:
        raise InputError(f"the probe is a batch of {2 + len(extra)} tensors; give its inputs, or a pair of inputs and targets")
    if targets is not None and ids.shape != targets.shape:
        raise InputError(f"inputs {tuple(ids.shape)} and targets {tuple(targets.shape)} of the probe differ in shape")
    if targets is not None and int(targets.max()) <= 1 < int(ids.max()):
        raise InputError("the second tensor of the probe is a mask of 0 and 1; give {'input_ids': ..., 'attention_mask': ...}")
    unshifted = targets is not None and bool(((targets == ids) | (targets < 0)).all())  # labels that the model shifts by itself
    return ids, None if unshifted else targets


def _cut(ids: Tensor, length: int) -> Tensor:
    """One long sequence in pieces; what is shorter than a piece stays one sequence."""
    if not ids.numel():
        raise InputError("the probe is empty; give a text or token ids")
    if ids.ndim == 2:
        return ids
    length = min(length, len(ids))
    pieces = len(ids) // length
    return ids[: pieces * length].reshape(pieces, length)


def _whole_rows(ids: Tensor, mask: Any) -> Tensor:
    """The part of a padded batch in which no token is padding, with as many tokens as possible."""
    if mask is None:
        return ids
    first = torch.as_tensor(mask).bool().cpu().cumprod(dim=1).sum(dim=1)  # tokens before the first padding
    sizes = sorted(
        {int(one) for one in first if one > 0},
        key=lambda size: (-min(size, LENGTH) * min(SEQUENCES, int((first >= size).sum())), -size),
    )
    if not sizes:
        raise InputError("every sequence of the probe begins with padding; give a batch that is padded on the right")
    return ids[first >= sizes[0], : sizes[0]]


def _tensor(ids: Any) -> Tensor:
    """Whole numbers; of one long sequence, such as a file of tokens that is mapped into memory, only as many as are used."""
    try:
        values = ids.detach().cpu() if isinstance(ids, Tensor) else np.asarray(ids)
        values = values[: SEQUENCES * LENGTH] if values.ndim == 1 else values
        values = values if isinstance(values, Tensor) else torch.from_numpy(np.array(values))
    except Exception as error:
        raise InputError(f"the probe is no array of token ids: {message(error)}; give a text, ids or a batch") from None
    integers = not (values.dtype.is_floating_point or values.dtype.is_complex or values.dtype == torch.bool)
    if values.ndim not in (1, 2) or (not integers and values.numel()):
        got = f"{values.dtype} of shape {tuple(values.shape)}"
        raise InputError(f"the probe is {got}, expected whole token ids (position) or (sequence, position)")
    return values.long()


@dataclass(frozen=True)
class Coder:
    """Text to ids and back."""

    tokenizer: Any = None

    @classmethod
    def of(cls, tokenizer: Any) -> "Coder":
        if isinstance(tokenizer, str | Path):
            tokenizers = needed("tokenizers", "text", "a tokenizer.json")
            try:
                return cls(tokenizers.Tokenizer.from_file(str(tokenizer)))
            except Exception as error:
                raise InputError(f"{tokenizer} is no tokenizer.json: {message(error)}") from None
        return cls(tokenizer)

    def encode(self, text: str) -> list[int]:
        if self.tokenizer is None:
            raise InputError("a probe of text needs tokenizer=... (of the command: --tokenizer FILE); or give token ids")
        coder = self.tokenizer
        if isinstance(coder, list | tuple):
            places = {word: place for place, word in enumerate(coder)}
            if odd := sorted(set(text) - set(places)):
                raise InputError(f"the list of tokens has no {odd[0]!r}, which the probe has; give ids, or a tokenizer")
            return [places[word] for word in text]
        ids = coder.encode(text) if hasattr(coder, "encode") else coder(text)
        ids = getattr(ids, "ids", ids)
        return [int(one) for one in (ids["input_ids"] if isinstance(ids, Mapping) else ids)]

    def word(self, token: int) -> str:
        """A token as text; its number where the tokenizer cannot say."""
        try:
            listed = isinstance(self.tokenizer, list | tuple)
            word = str(self.tokenizer[token] if listed else self.tokenizer.decode([token]))
            return word.encode("utf-8", "replace").decode()  # half of a character cannot be stored
        except Exception:  # a function, or a tokenizer without such an id
            return str(token)
