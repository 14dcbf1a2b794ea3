"""What watching a training costs: whole trainings with and without `ss.watch`, a record in ten steps, the store included.

Bars: 7 % of CPU time at width 64, 5 % at width 256, 10 KB a record of 2 layers of 4 heads. Beside it the same numbers of heads
through `output_attentions` of transformers, whose attention is then eager throughout, and through the hooks of TransformerLens,
whose own model is trained, where it is installed. `python -m benchmarks.watch`; `--steps 3000` is the full size.

All trainings go on side by side in one process on one thread, ten steps each in turn, so that what else the machine does falls on
all of them; the making of the watcher and the end of the run count. At width 64 a step of the plain training takes about 28 ms on
an idle core. The ratio of sums is what such a training pays. Start, end and the value of context, which is measured at doublings
of steps, weigh less in a longer one: the ratio in 3,000 steps stands below. Minima are those of a step, and of one with a record.
"""

import argparse
import json
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import stagescope as ss
from stagescope.runs.recorder import Recorder
from stagescope.watching.capture import Attention
from stagescope.watching.observer import AXES, SHOWN, HeadNumbers, Parameters
from stagescope.watching.probe import Probe, make_probe
from stagescope.watching.watch import frame_arrays

VOCABULARY, BLOCK, RATIO, FULL = 1000, 10, 10, 3000
"""Tokens, steps of one training before the next has its turn, steps from one record to the next, steps of full size."""


@dataclass(frozen=True)
class Size:
    width: int
    layers: int
    heads: int
    length: int
    batch: int
    steps: int
    bar: float


SIZES = (Size(64, 2, 4, 64, 16, 1000, 0.07), Size(256, 4, 4, 128, 12, 300, 0.05))
Look = Callable[[int, Tensor], None]
"""What a training does after the gradient of a step: nothing, or a record."""


@dataclass
class Training:
    """One training and the CPU time that it took: of its start and end, and of each step, with a record or without."""

    name: str
    start: Callable[[], tuple[nn.Module, Callable[[nn.Module, Tensor], Tensor], Look, Callable[[], None]]]
    due: frozenset[int]
    apart: float = 0.0
    plain: list[float] = field(default_factory=list)
    recorded: dict[int, float] = field(default_factory=dict)

    def begin(self) -> None:
        began = time.process_time()
        torch.manual_seed(0)
        self.model, self.forward, self.look, self.end = self.start()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3)
        self.apart += time.process_time() - began

    def steps(self, batches: list[tuple[int, Tensor]]) -> None:
        for step, ids in batches:
            began = time.process_time()
            logits = self.forward(self.model, ids)
            loss = F.cross_entropy(logits[:, :-1].reshape(-1, VOCABULARY), ids[:, 1:].reshape(-1))
            loss.backward()
            self.look(step, loss)
            self.optimizer.step()
            self.optimizer.zero_grad(set_to_none=True)
            taken = time.process_time() - began
            if step in self.due:
                self.recorded[step] = taken
            else:
                self.plain.append(taken)

    def finish(self) -> None:
        began = time.process_time()
        self.end()
        self.apart += time.process_time() - began

    @property
    def total(self) -> float:
        return self.apart + sum(self.plain) + sum(self.recorded.values())


def corpus(size: Size, count: int) -> Tensor:
    """Random text with few successors of each token, so that there is something to learn."""
    draw = np.random.default_rng(0)
    successors = draw.integers(0, VOCABULARY, (VOCABULARY, 8))
    rows = np.empty((count, size.length), np.int64)
    rows[:, 0] = draw.integers(0, VOCABULARY, count)
    for place in range(1, size.length):
        rows[:, place] = successors[rows[:, place - 1], draw.integers(0, 8, count)]
    return torch.from_numpy(rows)


def gpt2(size: Size, attention: str) -> nn.Module:
    from transformers import GPT2Config, GPT2LMHeadModel

    sizes: dict[str, Any] = {"n_embd": size.width, "n_layer": size.layers, "n_head": size.heads, "n_positions": size.length}
    rest: dict[str, Any] = {"vocab_size": VOCABULARY, "bos_token_id": 0, "eos_token_id": 0, "attn_implementation": attention}
    return GPT2LMHeadModel(GPT2Config(**sizes, **rest, attn_pdrop=0.0, resid_pdrop=0.0, embd_pdrop=0.0))


def logits(model: nn.Module, ids: Tensor) -> Tensor:
    return model(ids, use_cache=False).logits


def nothing(*_: Any) -> None: ...


def plain(size: Size) -> Any:
    return gpt2(size, "sdpa"), logits, nothing, nothing


def watched(size: Size, probe: Tensor, out: Path, record: Any) -> Any:
    model = gpt2(size, "sdpa")
    watcher = ss.watch(model, probe=probe, out=out, steps=size.steps, record=record)
    return model, logits, lambda step, loss: watcher.step(loss), watcher.finish


class ByHand:
    """The numbers of heads from patterns that somebody else got, recorded in the same store."""

    def __init__(self, model: nn.Module, probe: Tensor, out: Path, due: frozenset[int]) -> None:
        made: Probe = make_probe(probe, model)
        self.model, self.ids, self.due = model, made.all, due
        self.numbers, self.parameters, self.count = HeadNumbers(made, SHOWN), Parameters(model), len(made.ids)
        self.recorder = Recorder(out, axes={name: axes for name, axes in AXES.items() if name not in ("score_values",)})

    def patterns(self) -> tuple[Tensor, list[Tensor]]:
        raise NotImplementedError

    def __call__(self, step: int, loss: Tensor) -> None:
        if step not in self.due:
            return
        self.model.eval()
        with torch.no_grad():
            found, patterns = self.patterns()
            frame = self.numbers.of([Attention(str(i), one) for i, one in enumerate(patterns)]) | self.parameters.numbers()
            text = found[: self.count, :-1].reshape(-1, VOCABULARY)
            frame["loss"] = float(F.cross_entropy(text, self.ids[: self.count, 1:].reshape(-1)))
        self.model.train()
        self.recorder.record(step, **frame_arrays(frame | {"train_loss": float(loss.detach())}))


class OutputAttentions(ByHand):
    def patterns(self) -> tuple[Tensor, list[Tensor]]:
        found = self.model(self.ids, output_attentions=True, use_cache=False)
        return found.logits, list(found.attentions)


def output_attentions(size: Size, probe: Tensor, out: Path, due: frozenset[int]) -> Any:
    model = gpt2(size, "eager")
    look = OutputAttentions(model, probe, out, due)
    return model, logits, look, look.recorder.finish


class Hooks(ByHand):
    def patterns(self) -> tuple[Tensor, list[Tensor]]:
        model: Any = self.model
        found, cache = model.run_with_cache(self.ids, names_filter=lambda name: name.endswith("hook_pattern"))
        return found, [cache[name] for name in cache]


def hooks(size: Size, probe: Tensor, out: Path, due: frozenset[int]) -> Any:
    from transformer_lens.model_bridge import TransformerBridge

    sizes = {"n_layers": size.layers, "d_model": size.width, "n_ctx": size.length, "n_heads": size.heads}
    rest = {"d_head": size.width // size.heads, "d_vocab": VOCABULARY, "d_mlp": 4 * size.width}
    model = TransformerBridge.boot_native({**sizes, **rest, "act_fn": "gelu_new", "normalization_type": "LN"})
    look = Hooks(model, probe, out, due)
    return model, lambda model, ids: model(ids), look, look.recorder.finish


def trainings(size: Size, folder: Path) -> list[Training]:
    probe = corpus(size, 6 + size.batch)[:6]
    record = ss.Every(n=RATIO)
    due = frozenset(range(0, size.steps, RATIO))
    found = [
        Training("plain", lambda: plain(size), frozenset()),
        Training("ss.watch", lambda: watched(size, probe, folder / "watched", record), due),
        Training("output_attentions", lambda: output_attentions(size, probe, folder / "output", due), due),
    ]
    if find_spec("transformer_lens"):
        found.append(Training("TransformerLens", lambda: hooks(size, probe, folder / "hooks", due), due))
    return found


def warm_up(size: Size, ids: Tensor) -> None:
    """What the first of them would pay for all: imports, and the first use of the optimizer and of the store."""
    with tempfile.TemporaryDirectory() as folder:
        for each in trainings(replace(size, steps=12 * RATIO), Path(folder)):
            each.begin()
            each.steps([(step, ids) for step in range(3)])
            each.finish()


def compared(size: Size) -> dict[str, float]:
    rows = corpus(size, 6 + 64 * size.batch)[6:]
    warm_up(size, rows[: size.batch])
    draw = torch.Generator().manual_seed(1)
    with tempfile.TemporaryDirectory() as folder:
        found = trainings(size, Path(folder))
        for each in found:
            each.begin()
        for start in range(0, size.steps, BLOCK):
            batches = [
                (step, rows[torch.randint(len(rows), (size.batch,), generator=draw)])
                for step in range(start, min(start + BLOCK, size.steps))
            ]
            for each in found:
                each.steps(batches)
        for each in found:
            each.finish()
        return shown(size, found, Path(folder) / "watched")


def shown(size: Size, found: list[Training], out: Path) -> dict[str, float]:
    base, run = found[0], ss.load(out)
    step = min(base.plain)
    key = f"width_{size.width}"
    print(f"width {size.width}, {size.layers} layers of {size.heads} heads, {size.length} tokens, batch {size.batch}:", end=" ")
    print(f"{size.steps} steps, {len(found[1].due)} records; a step takes {1e3 * step:.1f} ms", flush=True)
    answer = {f"{key}_step_ms": 1e3 * step}
    for each in found[1:]:
        more, least = each.total / base.total - 1, minima(each, base, size)
        name = each.name.replace(".", "_")
        answer |= {f"{key}_{name}": more, f"{key}_{name}_minima": least}
        print(f"  {each.name:<20}{100 * more:6.1f} % more CPU time, by minima {100 * least:6.1f} %;", end=" ")
        print(f"a record {1e3 * (min(each.recorded.values()) - min(each.plain)):5.1f} ms", flush=True)
    full = extrapolated(found[1], base, run)
    frame = sum(values[0].nbytes for values in (*run.series.values(), *run.params.values()))
    stored = sum(path.stat().st_size for path in out.rglob("*") if path.is_file()) / len(run.step)
    print(f"  ss.watch in {FULL:,} steps: {100 * full:.1f} %; bar {100 * size.bar:.0f} %")
    print(f"  a record has {frame / 1000:.1f} KB, {stored / 1000:.1f} KB of the folder", flush=True)
    return answer | {f"{key}_in_{FULL}": full, f"{key}_bytes": frame, f"{key}_stored_bytes": stored}


def minima(each: Training, base: Training, size: Size) -> float:
    least = min(each.plain)
    return (least + (min(each.recorded.values()) - least) * len(each.due) / size.steps) / min(base.plain) - 1


def extrapolated(each: Training, base: Training, run: ss.Run) -> float:
    """What a training of full size would pay: start and end are paid once, and the value of context at each doubling of steps."""
    rare = set(run.step[np.isfinite(run.series["context_gain"])].tolist())
    usual = [taken for place, taken in each.recorded.items() if place not in rare]
    slow = [taken for place, taken in each.recorded.items() if place in rare] or usual
    step = float(np.mean(each.plain))
    doublings = int(np.log2(FULL / 16)) + 1
    extra = each.apart - base.apart + (np.mean(usual) - step) * FULL / RATIO + (np.mean(slow) - np.mean(usual)) * doublings
    return float(extra / (FULL * np.mean(base.plain)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--steps", type=int, help="steps of both sizes, by default 1,000 at width 64 and 200 at width 256")
    parser.add_argument("--width", type=int, choices=[size.width for size in SIZES], help="one size alone")
    given = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    if not find_spec("transformer_lens"):
        print("TransformerLens is not installed and left out; pip install transformer-lens brings 300 MB")
    answer: dict[str, Any] = {}
    for size in SIZES:
        if given.width in (None, size.width):
            answer |= compared(replace(size, steps=given.steps or size.steps)) | {f"width_{size.width}_bar": size.bar}
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
