"""The audit of checkpoint folders on fresh trainings: planted defects that are named or missed, and false alarms on clean ones.

    python -m validation audit

The rules of `watching/lineage.py` and `watching/audit.py` were frozen on seeds 0 to 19 of ten kinds of training before the
seeds used here were drawn. Three kinds are new here. Two kinds are counted apart: of trainings from zero no twin can be told
(linear), and checkpoints of a training that has settled have no order (settled).
"""

import shutil
import tempfile
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import torch
from torch import nn

import stagescope as ss
from tests.watching.defects import DEFECTS, cut, hashed
from tests.watching.trainings import KINDS, Steps, _points, _steps, _text, kept, training, write

FIRST, EACH = 70_000, 6
"""First seed, and trainings of each kind."""
APART = ("linear", "settled")
LEAST = {"exchanged_end": 0.75}
"""Share of defects that must be named, of the kinds that are not counted apart; 0.95 where nothing else is said."""
ALARMS = 0.02
"""Share of clean trainings with a finding, and of planted ones with a finding elsewhere, at most."""


class Mixer(nn.Module):
    """Tokens and features are mixed in turn."""

    def __init__(self, vocab: int, width: int, length: int) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocab, width)
        self.along, self.across = nn.Linear(length, length), nn.Linear(width, width)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.head = nn.Linear(width, vocab)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.tokens(x)
        h = h + self.along(self.norms[0](h).transpose(1, 2)).transpose(1, 2)
        return self.head(h + torch.relu(self.across(self.norms[1](h))))


def mixer(rng: np.random.Generator) -> Steps:
    """A mixer under NAdam with exponential decay."""
    vocab = int(rng.integers(20, 60))
    model = Mixer(vocab, 32, 12)
    optimiser = torch.optim.NAdam(model.parameters(), float(10 ** rng.uniform(-3, -2.3)))
    return _steps(model, _text(rng, vocab, 12), optimiser, kept(rng, 300), lambda n: 0.99**n)


def adagrad(rng: np.random.Generator) -> Steps:
    """A convolutional network with group norm under Adagrad."""
    width = int(rng.choice([8, 16]))
    layers = [nn.Conv2d(3, width, 3), nn.GroupNorm(2, width), nn.GELU(), nn.Conv2d(width, width, 3), nn.Flatten()]
    model = nn.Sequential(*layers, nn.Linear(width * 4, 6))
    return _steps(model, _points(rng, (3, 6, 6), 6), torch.optim.Adagrad(model.parameters(), 0.02), kept(rng, 400))


def finetuned(rng: np.random.Generator) -> Steps:
    """A perceptron that was trained on other data before the first checkpoint."""
    model = nn.Sequential(nn.Linear(24, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 6))
    _steps(model, _points(rng, (24,), 6), torch.optim.Adam(model.parameters(), 3e-3), [300])
    optimiser = torch.optim.AdamW(model.parameters(), float(10 ** rng.uniform(-4, -3)), weight_decay=0.1)
    return _steps(model, _points(rng, (24,), 6), optimiser, kept(rng, 400))


def main() -> bool:
    torch.set_num_threads(1)
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    said: list[str] = []
    for kind in (*KINDS, mixer, adagrad, finetuned):
        for seed in range(FIRST, FIRST + EACH):
            with tempfile.TemporaryDirectory() as scratch:
                said += _one(kind.__name__, seed, training(kind, seed), training(kind, seed, 1), Path(scratch), counts)
    return _table(counts, said)


def _one(kind: str, seed: int, steps: Steps, twin: Steps, folder: Path, counts: dict[str, Counter[str]]) -> list[str]:
    """Audit a training clean and with each defect; lines about what was missed or a false alarm."""
    rng = np.random.default_rng(seed)
    apart = " apart" if kind in APART else ""
    said = []

    def note(what: str, named: bool, alarms: int) -> None:
        counts[what].update({f"all{apart}": 1, f"named{apart}": int(named), f"alarms{apart}": int(alarms > 0)})
        if not named or alarms:
            said.append(f"{what}: {kind}, seed {seed}: {'' if named else 'missed '}{'alarm' if alarms else ''}")

    note("clean", True, len(ss.audit(write(folder / "clean", steps), progress=False)))
    for defect in DEFECTS:
        planted = defect(rng, steps, twin)
        found = ss.audit(write(folder / defect.__name__, planted.steps, shards=2), progress=False).findings
        note(defect.__name__, planted.named(found), len(planted.alarms(found)))
        shutil.rmtree(folder / defect.__name__)
    name = cut(rng, write(folder / "cut", steps, shards=2))
    found = ss.audit(folder / "cut", progress=False).findings
    note("truncated", [each.checkpoint for each in found if each.kind == "truncated"] == [name], len(found) - 1)
    note("identical_branches", *_branches(rng, steps))
    return said


def _branches(rng: np.random.Generator, steps: Steps) -> tuple[bool, int]:
    """Three checkpoints with the same files, seen from hashes."""
    same = sorted(int(n) for n in rng.choice(len(steps), 3, replace=False))
    made = [(step, steps[same[0]][1] if n in same else weights) for n, (step, weights) in enumerate(steps)]
    found = ss.audit_hashes(hashed(made)).of("duplicate")
    named = {f"step{steps[n][0]}" for n in same[1:]}
    whole = {each.checkpoint for each in found if each.tensor is None}
    return whole == named, len(whole - named)


def _table(counts: dict[str, Counter[str]], said: list[str]) -> bool:
    print(f"{'':<24}{'trainings':>10}{'named':>7}{'missed':>7}{'alarms':>7}   {'apart':>6}{'named':>7}{'alarms':>7}")
    holds = True
    for what, found in counts.items():
        missed = found["all"] - found["named"]
        ok = found["alarms"] <= ALARMS * found["all"] and found["named"] >= LEAST.get(what, 0.95) * found["all"]
        row = f"{what:<24}{found['all']:>10}{found['named']:>7}{missed:>7}{found['alarms']:>7}   "
        print(
            f"{row}{found['all apart']:>6}{found['named apart']:>7}{found['alarms apart']:>7}{'' if ok else '   DOES NOT HOLD'}"
        )
        holds = holds and ok
    print("\n".join(said))
    return holds


if __name__ == "__main__":
    raise SystemExit(0 if main() else 1)
