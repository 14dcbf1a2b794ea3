"""Trainings in which attention has nothing to learn, or cannot: claims about attention must not be confirmed on them.

They are of a small transformer on characters. The text is the reference manual inside Python, which every machine has. A training
takes some seconds.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np

from stagescope.claims.inputs import Inputs
from stagescope.runs.run import Run
from stagescope.watching.pytorch import Tensor, functional, nn, torch
from stagescope.watching.watch import watch


@dataclass(frozen=True)
class Setting:
    """Sizes of the model and of its training."""

    width: int = 32
    heads: int = 4
    layers: int = 2
    length: int = 32
    batch: int = 16
    steps: int = 600
    rate: float = 3e-3
    characters: int = 200_000


class Small(nn.Module):
    """A causal transformer of PyTorch's own layers."""

    def __init__(self, tokens: int, setting: Setting) -> None:
        super().__init__()
        width, options = setting.width, {"batch_first": True, "norm_first": True, "dropout": 0.0}
        self.tokens, self.places = nn.Embedding(tokens, width), nn.Embedding(setting.length, width)
        layer = nn.TransformerEncoderLayer(width, setting.heads, 4 * width, **options)
        self.layers = nn.TransformerEncoder(layer, setting.layers, enable_nested_tensor=False)
        self.head = nn.Linear(width, tokens)
        for table in (self.tokens, self.places):
            nn.init.normal_(table.weight, std=0.02)

    def forward(self, ids: Tensor) -> Tensor:
        mask = nn.Transformer.generate_square_subsequent_mask(ids.shape[1])
        x = self.tokens(ids) + self.places(torch.arange(ids.shape[1]))
        return self.head(self.layers(x, mask=mask, is_causal=True))


@cache
def _text(characters: int) -> tuple[np.ndarray, list[str]]:
    from pydoc_data.topics import topics

    text = "\n".join(topics.values())[:characters]
    letters = sorted(set(text))
    places = {letter: place for place, letter in enumerate(letters)}
    return np.array([places[letter] for letter in text]), letters


def trained(ids: np.ndarray, letters: list[str], seed: int, setting: Setting, learn_scores: bool = True) -> Run:
    """Train on a stream of characters, watched on its last tenth."""
    torch.manual_seed(seed)
    draw = np.random.default_rng(seed)
    model = Small(len(letters), setting)
    if not learn_scores:
        for layer in model.layers.layers:
            weight: Tensor = layer.self_attn.in_proj_weight  # type: ignore[union-attr, assignment]
            weight.register_hook(lambda gradient: torch.cat([0 * gradient[: 2 * setting.width], gradient[2 * setting.width :]]))
    optimizer = torch.optim.Adam(model.parameters(), lr=setting.rate)
    stream = torch.from_numpy(ids.astype(np.int64))
    window, end = torch.arange(setting.length + 1), len(ids) * 9 // 10
    probe = stream[torch.from_numpy(draw.integers(end, len(ids) - setting.length, 6))[:, None] + window[:-1]]
    with watch(model, probe=probe, steps=setting.steps, tokenizer=letters, optimizer=optimizer) as watcher:
        for _ in range(setting.steps):
            starts = torch.from_numpy(draw.integers(0, end - setting.length - 1, setting.batch))
            batch = stream[starts[:, None] + window]
            loss = functional.cross_entropy(model(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten())
            optimizer.zero_grad()
            loss.backward()
            watcher.step(loss)
            optimizer.step()
    return watcher.run


def shuffled(seed: int, setting: Setting | None = None) -> Run:
    setting = setting or Setting()
    ids, letters = _text(setting.characters)
    return trained(np.random.default_rng(seed).permutation(ids), letters, seed, setting)


def bigram(seed: int, setting: Setting | None = None) -> Run:
    """A Markov chain with the pair counts of the text."""
    setting = setting or Setting()
    ids, letters = _text(setting.characters)
    after = [ids[1:][ids[:-1] == token] for token in range(len(letters))]
    draws = np.random.default_rng(seed).random(len(ids))
    found, token = np.empty_like(ids), int(ids[0])
    for place, share in enumerate(draws):
        found[place] = token
        choices = after[token]
        token = int(choices[int(share * len(choices))]) if len(choices) else int(ids[0])
    return trained(found, letters, seed, setting)


def frozen(seed: int, setting: Setting | None = None) -> Run:
    setting = setting or Setting()
    return trained(*_text(setting.characters), seed, setting, learn_scores=False)


SHUFFLED = Inputs("shuffled text", "characters of a text in random order: no token says anything of another", shuffled)
BIGRAM = Inputs(
    "bigram text",
    "text drawn from its own pairs of characters: the last token says all that can be known, so attention is not needed",
    bigram,
)
FROZEN = Inputs(
    "frozen attention",
    "real text, but the weights of queries and keys stay as they were drawn, so attention learns nothing of its own",
    frozen,
)
INPUTS: dict[str, tuple[Inputs, ...]] = {}
"""By study: a watched run has none."""
NULLS: dict[str, dict[str, tuple[Inputs, ...]]] = {
    "watched": {
        "FD:watched-rank": (SHUFFLED,),
        "FD:watched-order": (SHUFFLED, BIGRAM, FROZEN),
        "ISA:watched-together": (SHUFFLED, BIGRAM, FROZEN),
        "ISA:watched-part": (SHUFFLED, BIGRAM, FROZEN),
    }
}
"""By claim tag: inputs on which the claim is false."""
