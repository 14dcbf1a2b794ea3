"""What is known of a text before anything is trained on it."""

from dataclasses import dataclass
from typing import Any

from stagescope.corpora.corpus import TextCorpus


@dataclass(frozen=True)
class AboutText:
    """What a paper predicts for a text before training: `facts` as JSON, and the same for the terminal."""

    facts: dict[str, Any]
    shown: tuple[Any, ...]


def corpus_facts(corpus: TextCorpus) -> dict[str, Any]:
    """Counts, vocabulary and entropies."""
    raw = corpus.raw
    return {
        "corpus": {name: value for name, value in corpus.describe().items() if name != "type"},
        "parts": {name: {"tokens": len(part.ids), "documents": len(part.ends)} for name, part in raw.parts.items()},
        "types": len(raw.types),
        "vocabulary": len(corpus.words),
        "train_tokens": len(corpus.train),
        "held_out_tokens": len(corpus.held_out),
        "frequent": {corpus.label(token): float(corpus.stationary[token]) for token in range(min(20, corpus.vocab))},
        "entropy": {"of types": corpus.unigram_loss(), "given the last token": corpus.floor()},
    }
