"""A made-up text with known topics: common words everywhere, some words of a topic before the word that follows "the"."""

import numpy as np

NEXTS = ("storm", "album", "church", "game")
COMMON = tuple(f"c{chr(97 + i)}" for i in range(12))
PURE = 6
"""Of the words of a topic, the first ones are only ever used for it; the later ones are used elsewhere too, more and more."""


def own_words(topic: str, count: int = 12) -> tuple[str, ...]:
    return tuple(f"{topic}{chr(97 + i)}" for i in range(count))


def planted_text(sentences: int = 3000, length: int = 24, topical: bool = True, seed: int = 0) -> str:
    """Sentences of `length` words, "the" and a next word; a sixth of the words are of its topic, or of any if not `topical`."""
    draw = np.random.default_rng(seed)
    lines = []
    for _ in range(sentences):
        topic = NEXTS[draw.integers(len(NEXTS))]
        words = []
        for _ in range(length):
            if draw.random() > 1 / 6:
                words.append(COMMON[draw.integers(len(COMMON))])
                continue
            rank = int(draw.integers(12))
            strays = not topical or draw.random() < (rank - PURE + 1) / 8
            words.append(own_words(NEXTS[draw.integers(len(NEXTS))] if strays else topic)[rank])
        lines.append(" ".join([*words, "the", topic]))
    return "\n".join(lines) + "\n"
