"""The probe: the fixed token sequences on which a model is looked at, and how their tokens are written."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from stagescope.errors import InputError, message
from stagescope.watching.pytorch import Tensor, nn, torch

SEQUENCES, LENGTH, REPEATED = 6, 64, 2
"""Sequences of text and their length where a probe is longer, and sequences that are said twice."""
SHORTEST = 8
_LIMITS = ("n_positions", "max_position_embeddings", "block_size", "context_length", "max_seq_len", "seq_len", "n_ctx")
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

    def types(self, most: int) -> list[int]:
        """The most frequent token types of the text, most frequent first."""
        found, counts = np.unique(self.ids.cpu().numpy(), return_counts=True)
        return [int(found[i]) for i in np.lexsort((found, -counts))[:most]]

    def to(self, device: torch.device) -> "Probe":
        moved = {name: getattr(self, name).to(device) for name in ("ids", "repeated")}
        return replace(self, **moved, targets=None if self.targets is None else self.targets.to(device))


def make_probe(given: Any, model: nn.Module, tokenizer: Any = None, vocabulary: int | None = None) -> Probe:
    """A probe from text with a tokenizer, from token ids, or from a batch of a dataloader.

    Args:
        given: a text, several texts, ids (position) or (sequence, position), or a batch: a dictionary with "input_ids" or a
            pair of inputs and targets. The first 6 sequences and 64 tokens are used.
        model: the model that will be called.
        tokenizer: what turns text into ids and ids into text: a tokenizer of transformers or tokenizers, the path of a
            tokenizer.json, a list with the text of each id, or a function from text to ids.
        vocabulary: how many token ids the model knows; by default the rows of its token embedding.
    """
    coder = Coder.of(tokenizer)
    ids, targets = _ids(given, coder)
    size = vocabulary if vocabulary is not None else vocabulary_of(model)
    length = _length(ids.shape[1], model, size)
    ids, targets = (None if one is None else one[:SEQUENCES, :length].contiguous() for one in (ids, targets))
    assert ids is not None
    if int(ids.min()) < 0 or (size is not None and int(ids.max()) >= size):
        odd = int(ids.min()) if int(ids.min()) < 0 else int(ids.max())
        raise InputError(
            f"the probe has the token id {odd}, the model knows 0 to {(size or 1) - 1}: use the model's own tokenizer"
        )
    return Probe(ids, _said_twice(size or int(ids.max()) + 1, length), coder.word, targets)


def vocabulary_of(model: nn.Module) -> int | None:
    """Rows of the token embedding; None where a model has none."""
    found = embedding_of(model)
    return None if found is None else found[1].num_embeddings


def embedding_of(model: nn.Module) -> tuple[str, nn.Embedding] | None:
    """Name and module of the token embedding: the one that the model names, else the one with most rows."""
    try:
        own: Any = model.get_input_embeddings()  # type: ignore[operator]
    except Exception:  # no model of transformers, or one that has none
        own = None
    tables = [(name, module) for name, module in model.named_modules() if isinstance(module, nn.Embedding)]
    named = [(name, module) for name, module in tables if module is own]
    return named[0] if named else max(tables, key=lambda each: each[1].num_embeddings, default=None)


def _length(given: int, model: nn.Module, vocabulary: int | None) -> int:
    """An even length that fits the context and is no other size of the model, so that a table over it is attention."""
    config = getattr(model, "config", None)
    known = [getattr(config, name, None) for name in _LIMITS]
    limit = min((int(one) for one in known if isinstance(one, int) and one > 0), default=None)
    if limit is not None and given > limit and limit < LENGTH:
        raise InputError(f"the probe has {given} tokens a sequence, the model's context has {limit}; give a shorter probe")
    experts = [getattr(config, name, None) for name in _EXPERTS]
    length = min(given, LENGTH) // 2 * 2
    while length in (vocabulary, *experts):
        length -= 2
    if length < SHORTEST:
        raise InputError(f"the probe has {given} tokens a sequence; give at least {SHORTEST + 2}")
    return length


def _said_twice(vocabulary: int, length: int) -> Tensor:
    """Random halves, each said twice; tokens of a half differ where there are enough of them."""
    draw = np.random.default_rng(0)
    half = length // 2
    halves = np.stack([draw.choice(vocabulary, half, replace=vocabulary < half) for _ in range(REPEATED)])
    return torch.from_numpy(np.concatenate([halves, halves], axis=1).astype(np.int64))


def _ids(given: Any, coder: "Coder") -> tuple[Tensor, Tensor | None]:
    if isinstance(given, Path):
        raise InputError(f"a probe is text or token ids; read the file first: probe=Path({str(given)!r}).read_text()")
    if isinstance(given, str):
        return _cut(_tensor(coder.encode(given))), None
    if isinstance(given, Mapping):
        if "input_ids" not in given:
            raise InputError(f"the probe is a batch without 'input_ids' (it has {', '.join(map(str, given))}); give the ids")
        return _whole_rows(_tensor(given["input_ids"]), given.get("attention_mask")), None
    if isinstance(given, tuple) and len(given) == 2 and all(getattr(one, "ndim", 0) == 2 for one in given):
        ids, targets = (_tensor(one) for one in given)
        if ids.shape != targets.shape:
            raise InputError(f"inputs {tuple(ids.shape)} and targets {tuple(targets.shape)} of the probe differ in shape")
        return ids, targets
    if isinstance(given, Sequence) and given and all(isinstance(one, str) for one in given):
        rows = [coder.encode(one) for one in given]
        return _tensor([row[: min(map(len, rows))] for row in rows]), None
    return _cut(_tensor(given)), None


def _cut(ids: Tensor) -> Tensor:
    """One long sequence in pieces; what is shorter than a piece stays one sequence."""
    if ids.ndim == 2:
        return ids
    length = min(LENGTH, len(ids))
    pieces = max(1, len(ids) // length) if length else 0
    if not pieces:
        raise InputError("the probe is empty; give a text or token ids")
    return ids[: pieces * length].reshape(pieces, length)


def _whole_rows(ids: Tensor, mask: Any) -> Tensor:
    """The part of a padded batch in which no token is padding, with as many tokens as possible."""
    if mask is None:
        return ids
    first = _tensor(mask).bool().cumprod(dim=1).sum(dim=1)  # tokens before the first padding
    sizes = sorted({int(one) for one in first if one > 0}, key=lambda size: -size * min(SEQUENCES, int((first >= size).sum())))
    if not sizes:
        raise InputError("every sequence of the probe begins with padding; give a batch that is padded on the right")
    return ids[first >= sizes[0], : sizes[0]]


def _tensor(given: Any) -> Tensor:
    try:
        found = given.detach().cpu() if isinstance(given, Tensor) else torch.as_tensor(np.asarray(given))
    except Exception as error:
        raise InputError(f"the probe is no array of token ids: {message(error)}; give a text, ids or a batch") from None
    if found.dtype.is_floating_point or found.dtype.is_complex or found.ndim not in (1, 2):
        got = f"{found.dtype} of shape {tuple(found.shape)}"
        raise InputError(f"the probe is {got}, expected whole token ids (position) or (sequence, position)")
    return found.long()


@dataclass(frozen=True)
class Coder:
    """Text to ids and back."""

    tokenizer: Any = None

    @classmethod
    def of(cls, given: Any) -> "Coder":
        if isinstance(given, str | Path):
            from tokenizers import Tokenizer

            try:
                return cls(Tokenizer.from_file(str(given)))
            except Exception as error:
                raise InputError(f"{given} is no tokenizer.json: {message(error)}") from None
        return cls(given)

    def encode(self, text: str) -> list[int]:
        if self.tokenizer is None:
            raise InputError("a probe of text needs tokenizer=... (of the command: --tokenizer FILE); or give token ids")
        coder = self.tokenizer
        if isinstance(coder, list | tuple):
            places = {word: place for place, word in enumerate(coder)}
            if odd := sorted(set(text) - set(places)):
                raise InputError(f"the list of tokens has no {odd[0]!r}, which the probe has; give ids, or a tokenizer")
            return [places[word] for word in text]
        found = coder.encode(text) if hasattr(coder, "encode") else coder(text)
        found = getattr(found, "ids", found)
        return [int(one) for one in (found["input_ids"] if isinstance(found, Mapping) else found)]

    def word(self, token: int) -> str:
        """A token as text; its number where the tokenizer cannot say."""
        try:
            listed = isinstance(self.tokenizer, list | tuple)
            return str(self.tokenizer[token] if listed else self.tokenizer.decode([token]))
        except Exception:  # a function, or a tokenizer without such an id
            return str(token)
