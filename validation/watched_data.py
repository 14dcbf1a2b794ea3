"""What watched models are trained on: characters, BPE, periodic random tokens; shuffled, or resampled from their own bigrams.

Texts are read from the folder STAGESCOPE_DATA. A tenth of every text is held out: probes come from there.
"""

import math
import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from torch import Tensor

from stagescope.core.errors import InputError
from stagescope.corpora import known
from validation.watched_models import IGNORED

PIECES = 1000
"""Types of the BPE of task b."""
SYMBOLS, SHORTEST, LONGEST = 64, 8, 32
"""Task c: types, and the range of periods."""
END = "<|endoftext|>"
HELD_OUT = 0.1


class Data(Protocol):
    """Sequences of one kind, with the entropy of a token (nats) and of a token given the one before it (NaN where unknown)."""

    vocabulary: int
    token: Callable[[int], str]
    unigram: float
    bigram: float

    def batch(self, rng: np.random.Generator, size: int, length: int, held_out: bool = False) -> tuple[Tensor, Tensor]:
        """Token ids and targets, both (size, length)."""
        ...


class Text:
    """Windows at random places of a stream of tokens, cut once into training and held-out part."""

    def __init__(self, stream: np.ndarray, vocabulary: int, token: Callable[[int], str], bigram: float) -> None:
        self.vocabulary, self.token, self.bigram = vocabulary, token, bigram
        cut = int(len(stream) * (1 - HELD_OUT))
        self.parts = {False: stream[:cut], True: stream[cut:]}
        self.unigram = _entropy(np.bincount(stream[:cut]))

    def batch(self, rng: np.random.Generator, size: int, length: int, held_out: bool = False) -> tuple[Tensor, Tensor]:
        stream = self.parts[held_out]
        starts = rng.integers(0, len(stream) - length, size)
        windows = torch.from_numpy(stream[starts[:, None] + np.arange(length + 1)].astype(np.int64))
        return windows[:, :-1].contiguous(), windows[:, 1:].contiguous()


@dataclass
class Periodic:
    """Sequences that repeat a block of different tokens, of a random length for each; targets are those that can be known.

    The first token of the second block is no target: nothing says yet that the block is over. Where `shuffled`, all tokens are
    drawn one by one and all are targets.
    """

    shuffled: bool
    vocabulary: int = SYMBOLS
    token: Callable[[int], str] = str
    unigram: float = math.log(SYMBOLS)
    bigram: float = math.nan

    def batch(self, rng: np.random.Generator, size: int, length: int, held_out: bool = False) -> tuple[Tensor, Tensor]:
        if self.shuffled:
            ids = torch.from_numpy(rng.integers(0, self.vocabulary, (size, length + 1)))
            return ids[:, :-1].contiguous(), ids[:, 1:].contiguous()
        periods = rng.integers(SHORTEST, LONGEST + 1, size)[:, None]
        blocks = rng.random((size, self.vocabulary)).argsort(axis=1)
        places = np.arange(length + 1)
        ids = np.take_along_axis(blocks, places % periods, axis=1)
        targets = np.where(places > periods, ids, IGNORED)
        return torch.from_numpy(ids[:, :-1].copy()), torch.from_numpy(targets[:, 1:].copy())


def data(task: str, control: str, seed: int, cache: Path | None = None) -> Data:
    """The data of a task under a control; `cache` is a folder where the stream of BPE is kept between processes."""
    if task == "c":
        if control == "bigram":
            raise InputError("task c has no control 'bigram': pairs of random tokens are random tokens; choose 'shuffled'")
        return Periodic(control == "shuffled")
    stream, names = _characters() if task == "a" else _pieces(cache)
    rng = np.random.default_rng([seed, 3])
    bigram = bigram_entropy(stream)
    if control == "shuffled":
        stream = rng.permutation(stream)
        bigram = _entropy(np.bincount(stream))
    elif control == "bigram":
        stream = resampled(stream, rng)
    return Text(stream, len(names), names.__getitem__, bigram)


def resampled(stream: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A Markov chain as long as the stream: each next token follows, at a random place of the stream, the present one."""
    followed = np.argsort(stream[:-1], kind="stable")
    counts = np.bincount(stream[:-1], minlength=int(stream.max()) + 1)
    starts, sizes = (np.cumsum(counts) - counts).tolist(), counts.tolist()
    successors, draws = stream[followed + 1].tolist(), rng.random(len(stream)).tolist()
    token, made = int(stream[0]), []
    for draw in draws:
        made.append(token)  # the last token of a text can lack a successor: begin again with the first
        token = successors[starts[token] + int(draw * sizes[token])] if sizes[token] else int(stream[0])
    return np.array(made, dtype=stream.dtype)


def bigram_entropy(stream: np.ndarray) -> float:
    """Entropy of a token given the one before it, in the pairs of the stream, nats."""
    size = int(stream.max()) + 1
    pairs = np.bincount(stream[:-1].astype(np.int64) * size + stream[1:], minlength=size * size)
    return _entropy(pairs) - _entropy(pairs.reshape(size, size).sum(axis=1))


def _entropy(counts: np.ndarray) -> float:
    shares = counts[counts > 0] / counts.sum()
    return float(-(shares * np.log(shares)).sum())


def _characters() -> tuple[np.ndarray, list[str]]:
    """Tiny Shakespeare by character."""
    text = known.locate("tiny-shakespeare")["train"].read_text(encoding="utf-8")
    names, stream = np.unique(np.array(list(text)), return_inverse=True)
    return stream.astype(np.int32), names.tolist()


def _pieces(cache: Path | None) -> tuple[np.ndarray, list[str]]:
    """TinyStories by BPE; it is learned and applied once for each folder `cache`."""
    if cache is None:
        with tempfile.TemporaryDirectory(prefix="stagescope-bpe-") as folder:
            return _pieces(Path(folder))
    learned, kept = cache / "bpe.json", cache / "tinystories.npy"
    if not kept.exists():  # written last
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
        text = known.locate("tinystories")["train"].read_text(encoding="utf-8")
        tokenizer = _learned(text[: text.rindex(END, 0, int(len(text) * (1 - HELD_OUT)))])
        tokenizer.save(str(learned))
        stories = (f"{story.strip()}{END}" for story in text.split(END) if story.strip())
        np.save(kept, np.concatenate([np.array(tokenizer.encode(story).ids, np.int32) for story in stories]))
    tokenizer = Tokenizer.from_file(str(learned))
    return np.load(kept), [tokenizer.decode([i], skip_special_tokens=False) for i in range(tokenizer.get_vocab_size())]


def _learned(text: str) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=PIECES, special_tokens=[END], show_progress=False)
    tokenizer.train_from_iterator(text.split(END), trainer)
    return tokenizer
