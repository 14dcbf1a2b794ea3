"""Defects planted into clean trainings, each with what an audit should name."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from stagescope.watching.audit import Finding
from tests.watching.trainings import Steps


@dataclass(frozen=True)
class Planted:
    """A training with a defect: the kinds that a finding may have, and sets of checkpoints, one of which should be named."""

    steps: Steps
    kinds: tuple[str, ...]
    names: tuple[frozenset[str], ...]

    def named(self, findings: tuple[Finding, ...]) -> bool:
        found = {
            name for each in findings if each.kind in self.kinds for name in each.facts.get("checkpoints", [each.checkpoint])
        }
        return any(names <= found for names in self.names)

    def alarms(self, findings: tuple[Finding, ...]) -> list[Finding]:
        """Findings on checkpoints that have no defect, or of another kind."""
        every = frozenset().union(*self.names)
        return [each for each in findings if each.checkpoint not in every or each.kind not in self.kinds]


def _names(steps: Steps, *places: int) -> frozenset[str]:
    return frozenset(f"step{steps[n][0]}" for n in places)


def _with(steps: Steps, place: int, weights: dict[str, np.ndarray]) -> Steps:
    return [(step, weights if n == place else old) for n, (step, old) in enumerate(steps)]


def _inner(rng: np.random.Generator, steps: Steps) -> int:
    return int(rng.integers(1, len(steps) - 1))


def first_twice(rng: np.random.Generator, steps: Steps, twin: Steps) -> Planted:
    """The first two checkpoints are the same."""
    place = int(rng.integers(2))
    return Planted(_with(steps, place, steps[1 - place][1]), ("duplicate",), (_names(steps, 0), _names(steps, 1)))


def early_same(rng: np.random.Generator, steps: Steps, twin: Steps) -> Planted:
    """The first three or four checkpoints are the same."""
    count = min(int(rng.integers(3, 5)), len(steps) - 1)
    made = [(step, steps[0][1] if n < count else old) for n, (step, old) in enumerate(steps)]
    return Planted(made, ("duplicate",), (_names(steps, *range(1, count)),))


def copied(rng: np.random.Generator, steps: Steps, twin: Steps) -> Planted:
    """A checkpoint is a copy of another one that is not its neighbour."""
    place, other = (int(n) for n in rng.choice(len(steps), 2, replace=False))
    return Planted(_with(steps, place, steps[other][1]), ("duplicate",), (_names(steps, place), _names(steps, other)))


def _half(steps: Steps, source: dict[str, np.ndarray], place: int) -> dict[str, np.ndarray]:
    """The second half of the tensors, in the order of names, from elsewhere."""
    mine = steps[place][1]
    moved = [name for name in sorted(mine) if (mine[name] != source[name]).any()]
    return mine | {name: source[name] for name in moved[len(moved) // 2 :]}


def shard_of_another_step(rng: np.random.Generator, steps: Steps, twin: Steps) -> Planted:
    """The final model has half of its tensors from another step."""
    other, last = int(rng.integers(len(steps) - 1)), len(steps) - 1
    return Planted(
        _with(steps, last, _half(steps, steps[other][1], last)), ("foreign tensor", "duplicate"), (_names(steps, last),)
    )


def shard_of_another_run(rng: np.random.Generator, steps: Steps, twin: Steps) -> Planted:
    """The final model has half of its tensors from the final model of another run."""
    last = len(steps) - 1
    return Planted(_with(steps, last, _half(steps, twin[last][1], last)), ("foreign tensor",), (_names(steps, last),))


def other_start(rng: np.random.Generator, steps: Steps, twin: Steps) -> Planted:
    """The later checkpoints do not descend from the first one."""
    return Planted(_with(steps, 0, twin[0][1]), ("other lineage",), (_names(steps, 0), _names(steps, *range(1, len(steps)))))


def other_rest(rng: np.random.Generator, steps: Steps, twin: Steps) -> Planted:
    """From some checkpoint on they are of another run."""
    since = _inner(rng, steps)
    made = steps[:since] + twin[since:]
    return Planted(made, ("other lineage",), (_names(steps, *range(since)), _names(steps, *range(since, len(steps)))))


def stranger(rng: np.random.Generator, steps: Steps, twin: Steps) -> Planted:
    """One checkpoint, at the end or not, is of another run."""
    place = int(rng.integers(1, len(steps)))
    return Planted(_with(steps, place, twin[place][1]), ("other lineage",), (_names(steps, place),))


def not_finite(rng: np.random.Generator, steps: Steps, twin: Steps) -> Planted:
    """A tensor of one checkpoint has a NaN or an infinite entry."""
    place = int(rng.integers(len(steps)))
    floats = [name for name, value in steps[place][1].items() if value.dtype.kind == "f" and np.isfinite(value).all()]
    name = str(rng.choice(floats))
    value = steps[place][1][name].copy()
    value.reshape(-1)[rng.integers(value.size)] = rng.choice([np.nan, np.inf, -np.inf])
    return Planted(_with(steps, place, steps[place][1] | {name: value}), ("NaN",), (_names(steps, place),))


def _exchanged(steps: Steps, first: int, second: int) -> Planted:
    made = _with(_with(steps, first, steps[second][1]), second, steps[first][1])
    return Planted(made, ("out of order",), (_names(steps, first, second),))


def exchanged(rng: np.random.Generator, steps: Steps, twin: Steps) -> Planted:
    """Two checkpoints, neither the first nor the last, are exchanged."""
    first, second = sorted(int(n) for n in rng.choice(range(1, len(steps) - 1), 2, replace=False))
    return _exchanged(steps, first, second)


def exchanged_end(rng: np.random.Generator, steps: Steps, twin: Steps) -> Planted:
    """The first or the last checkpoint is exchanged with another one."""
    end = int(rng.choice([0, len(steps) - 1]))
    other = int(rng.choice([n for n in range(len(steps)) if n != end]))
    return _exchanged(steps, *sorted((end, other)))


DEFECTS: tuple[Callable[[np.random.Generator, Steps, Steps], Planted], ...] = (
    first_twice,
    early_same,
    copied,
    shard_of_another_step,
    shard_of_another_run,
    other_start,
    other_rest,
    stranger,
    not_finite,
    exchanged,
    exchanged_end,
)


def cut(rng: np.random.Generator, folder: Path) -> str:
    """Cut the file of one checkpoint of a folder somewhere, or take a shard away; its name."""
    place = sorted(folder.iterdir())[int(rng.integers(len(list(folder.iterdir()))))]
    files = sorted(place.glob("*.safetensors"))
    file = files[int(rng.integers(len(files)))]
    data = file.read_bytes()
    if len(files) > 1 and rng.random() < 0.5:
        file.unlink()
    else:
        file.write_bytes(data[: int(rng.uniform(0, 1) * len(data))])
    return place.name


def hashed(steps: Steps) -> dict[str, dict[str, str]]:
    """What a hub would publish of a training: the hash of each tensor as that of a file, and of files that never change."""
    same = {"config.json": "0" * 64, "training_args.bin": "1" * 64}
    return {
        f"step{step}": same
        | {f"{name}.safetensors": hashlib.sha256(value.tobytes()).hexdigest() for name, value in weights.items()}
        for step, weights in steps
    }
