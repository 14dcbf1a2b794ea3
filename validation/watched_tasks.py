"""Watched trainings: three tasks, each with controls on which claims about attention must not hold.

Tasks: `a` a GPT on characters of Tiny Shakespeare, `b` GPT-2 of transformers on a BPE of TinyStories, `c` an attention-only model
on periodic random tokens. Controls: `none`; `shuffled` tokens; text resampled from its own `bigram`s; weights of queries and keys
`frozen` as drawn, where attention is nearly even and stays so; the same with larger weights, where it is `sharp` and moves with
what it reads; attention `fixed` to the mean of all earlier tokens (those weights are zero and stay so); the run is `cut` before
step 30; the parameters `walk` at random, as fast as the optimiser would move them there.

    python -m validation.watched_tasks --task a --control none --seed 3 --out FOLDER

leaves the run FOLDER/a-none-3 and the numbers FOLDER/a-none-3.json. validation.watched_runs makes many.
"""

import argparse
import json
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn

import stagescope as ss
from validation import watched_data, watched_models

TASKS = ("a", "b", "c")
CONTROLS = ("none", "shuffled", "bigram", "frozen", "sharp", "fixed", "cut", "walk")
SHARP = 8.0
"""Weights of queries and keys are this much larger in `sharp`: at width 64, scores on normalised tokens then spread by 1.6."""
PROBES, HELD_OUT = 6, 64
"""Sequences of the probe, and those on which the last loss is measured."""
Model = Callable[[int, int, int, int, int], nn.Module]


@dataclass(frozen=True)
class Setting:
    """One training: `lr` is reached after `warmup` steps, and falls to a tenth along a cosine where `decay` is true."""

    task: str
    control: str = "none"
    seed: int = 0
    layers: int = 2
    heads: int = 4
    width: int = 64
    lr: float = 1e-3
    warmup: int = 0
    steps: int = 2500
    batch: int = 16
    length: int = 64
    optimizer: str = "adamw"
    decay: bool = False

    @property
    def name(self) -> str:
        """Task, control, seed, and what is not as usual: `b-none-3-width96`."""
        plain = usual(self.task, control=self.control, seed=self.seed)
        told = [f"{f.name}{getattr(self, f.name)}" for f in fields(self) if getattr(self, f.name) != getattr(plain, f.name)]
        return "-".join([self.task, self.control, str(self.seed), *told])

    @property
    def last(self) -> int:
        """Steps that are made: fewer than planned where the run is cut, and then 20 to 29."""
        return min(self.steps, 20 + self.seed % 10) if self.control == "cut" else self.steps


USUAL = {"a": Setting("a"), "b": Setting("b", warmup=100), "c": Setting("c")}


def usual(task: str, **changes: Any) -> Setting:
    """The usual setting of a task, with some fields changed."""
    return replace(USUAL[task], **changes)


@dataclass(frozen=True)
class Outcome:
    """Losses at the end in nats a token: mean of the last 50 steps, of the probe, of more held-out sequences, of their targets.

    `unigram` and `bigram` are entropies of the data; time is by the clock for the whole and of the CPU for a step.
    """

    train_loss: float
    probe_loss: float
    held_out_loss: float
    target_loss: float
    unigram: float
    bigram: float
    seconds: float
    ms_a_step: float


class Watcher(Protocol):
    def step(self, loss: Tensor) -> Any: ...


Watch = Callable[[nn.Module, Tensor, torch.optim.Optimizer, int, Callable[[int], str]], AbstractContextManager[Watcher]]
"""From model, probe, optimiser, planned steps and the strings of tokens to what is called as `.step(loss)` before each step."""


class Unwatched:
    """A watcher that does nothing."""

    def __init__(self, *given: object) -> None:
        pass

    def __enter__(self) -> "Unwatched":
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def step(self, loss: Tensor) -> None:
        pass


def train(setting: Setting, watch: Watch = Unwatched, cache: Path | None = None) -> float:
    """Train under a watcher and return the training loss at the end, nats a token."""
    return outcome(setting, watch, cache).train_loss


def outcome(setting: Setting, watch: Watch = Unwatched, cache: Path | None = None) -> Outcome:
    """Train under a watcher; what was reached, and how long it took."""
    torch.set_num_threads(1)
    began = time.perf_counter()
    data = watched_data.data(setting.task, setting.control, setting.seed, cache)
    torch.manual_seed(setting.seed)
    model = _model(setting, data.vocabulary)
    optimizer = _optimizer(model, setting)
    probe = data.batch(np.random.default_rng([setting.seed, 1]), PROBES, setting.length, held_out=True)
    with watch(model, probe[0], optimizer, setting.steps, data.token) as watcher:
        started = time.process_time()
        losses = _loop(model, optimizer, watcher, data, setting)
        ms = 1000 * (time.process_time() - started) / setting.last
    more = data.batch(np.random.default_rng([setting.seed, 2]), HELD_OUT, setting.length, held_out=True)
    reached = (float(np.mean(losses[-50:])), _next(model, probe[0]), _next(model, more[0]), _on_targets(model, more))
    return Outcome(*reached, data.unigram, data.bigram, time.perf_counter() - began, ms)


def _model(setting: Setting, vocabulary: int) -> nn.Module:
    makers: dict[str, Model] = {"a": watched_models.GPT, "b": watched_models.gpt2, "c": watched_models.AttentionOnly}
    model = makers[setting.task](vocabulary, setting.layers, setting.heads, setting.width, setting.length)
    scale = {"fixed": 0.0, "sharp": SHARP}.get(setting.control, 1.0)
    with torch.no_grad():
        for parameter, mask in watched_models.score_weights(model).items():
            parameter.copy_(torch.where(mask, scale * parameter, parameter))
    return model.train()


def _optimizer(model: nn.Module, setting: Setting) -> torch.optim.Optimizer:
    if setting.optimizer == "sgd":
        return torch.optim.SGD(model.parameters(), lr=setting.lr, momentum=0.9)
    return torch.optim.AdamW(model.parameters(), lr=setting.lr, weight_decay=0.01, fused=True)


def _loop(
    model: nn.Module, optimizer: torch.optim.Optimizer, watcher: Watcher, data: watched_data.Data, setting: Setting
) -> list[float]:
    """The loop of a user, with the watcher between backward() and the step."""
    rng = np.random.default_rng([setting.seed, 0])
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: _rate(step, setting))
    move, losses = _mover(model, optimizer, setting), []
    for _ in range(setting.last):
        idx, targets = data.batch(rng, setting.batch, setting.length)
        loss = watched_models.cross_entropy(watched_models.logits_of(model, idx), targets)
        optimizer.zero_grad()
        loss.backward()
        watcher.step(loss)
        move()
        schedule.step()
        losses.append(loss.item())
    return losses


def _rate(step: int, setting: Setting) -> float:
    """The learning rate of a step as a share of the full one."""
    if step < setting.warmup:
        return (step + 1) / setting.warmup
    done = (step - setting.warmup) / max(1, setting.steps - setting.warmup)
    return 0.55 + 0.45 * float(np.cos(np.pi * min(done, 1.0))) if setting.decay else 1.0


def _mover(model: nn.Module, optimizer: torch.optim.Optimizer, setting: Setting) -> Callable[[], Any]:
    """What changes the parameters after backward()."""
    if setting.control == "walk":
        return lambda: _wander(model, optimizer)
    if setting.control in ("frozen", "sharp", "fixed"):
        kept = {parameter: (mask, parameter.detach().clone()) for parameter, mask in watched_models.score_weights(model).items()}
        for parameter, (mask, _) in kept.items():
            parameter.register_hook(lambda gradient, mask=mask: gradient.masked_fill(mask, 0.0))
        return lambda: _step_but(optimizer, kept)
    return optimizer.step


@torch.no_grad()
def _step_but(optimizer: torch.optim.Optimizer, kept: dict[nn.Parameter, tuple[Tensor, Tensor]]) -> None:
    """A step that leaves the masked entries bitwise as they were, whatever weight decay does."""
    optimizer.step()
    for parameter, (mask, before) in kept.items():
        parameter.copy_(torch.where(mask, before, parameter))


@torch.no_grad()
def _wander(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """A step in a random direction, for each tensor as long as the optimiser's step there."""
    before = [parameter.detach().clone() for parameter in model.parameters()]
    optimizer.step()
    for parameter, old in zip(model.parameters(), before, strict=True):
        direction = torch.randn_like(old)
        parameter.copy_(old + direction * ((parameter - old).norm() / direction.norm()))


@torch.no_grad()
def _next(model: nn.Module, idx: Tensor) -> float:
    """Mean loss of the next token at every place."""
    return watched_models.cross_entropy(watched_models.logits_of(model, idx)[:, :-1], idx[:, 1:]).item()


@torch.no_grad()
def _on_targets(model: nn.Module, batch: tuple[Tensor, Tensor]) -> float:
    """Mean loss of what the training asks for: in task c the tokens that can be known."""
    return watched_models.cross_entropy(watched_models.logits_of(model, batch[0]), batch[1]).item()


def save(setting: Setting, out: Path, cache: Path | None = None, watched: bool = True) -> Outcome:
    """Train under `ss.watch` into out/NAME; the numbers go to out/NAME.json, which is written last."""
    out.mkdir(parents=True, exist_ok=True)

    def watch(model: nn.Module, probe: Tensor, optimizer: torch.optim.Optimizer, steps: int, token: Callable[[int], str]) -> Any:
        into = {"out": out / setting.name, "overwrite": True, "steps": steps}
        vocabulary = next(module.num_embeddings for module in model.modules() if isinstance(module, nn.Embedding))
        words = [token(i) for i in range(vocabulary)]
        return ss.watch(model, probe=probe, optimizer=optimizer, tokenizer=words, **into)

    reached = outcome(setting, watch if watched else Unwatched, cache)
    numbers = {"setting": asdict(setting), "outcome": asdict(reached)}
    (out / f"{setting.name}.json").write_text(json.dumps(numbers, indent=1) + "\n", encoding="utf-8")
    return reached


def line(setting: Setting, reached: Outcome) -> str:
    """One line about a run."""
    losses = f"train {reached.train_loss:.3f}  probe {reached.probe_loss:.3f}  held out {reached.held_out_loss:.3f}"
    floors = f"targets {reached.target_loss:.3f}  unigram {reached.unigram:.3f}  bigram {reached.bigram:.3f}"
    return f"{setting.name:<28}{reached.seconds:6.1f} s {reached.ms_a_step:6.1f} ms CPU a step  {losses}  {floors}"


def main() -> None:
    parser = argparse.ArgumentParser(description="Train one watched model.")
    parser.add_argument("--task", choices=TASKS, required=True)
    parser.add_argument("--control", choices=CONTROLS)
    parser.add_argument("--optimizer", choices=("adamw", "sgd"))
    parser.add_argument("--decay", action="store_true", default=None)
    for name in ("seed", "layers", "heads", "width", "warmup", "steps", "batch", "length"):
        parser.add_argument(f"--{name}", type=int)
    parser.add_argument("--lr", type=float)
    parser.add_argument("--out", type=Path, required=True, help="folder of runs; the run gets a folder of its own there")
    parser.add_argument("--cache", type=Path, help="folder where the tokens of task b are kept between processes")
    parser.add_argument("--unwatched", action="store_true", help="train without recording; only the numbers are written")
    given = vars(parser.parse_args())
    out, cache, unwatched = given.pop("out"), given.pop("cache"), given.pop("unwatched")
    setting = usual(given.pop("task"), **{name: value for name, value in given.items() if value is not None})
    print(line(setting, save(setting, out, cache, not unwatched)), flush=True)


if __name__ == "__main__":
    main()
