"""Training is bitwise the same with and without watching: own loops, torch.compile, Hugging Face, Lightning, two processes.

Each mode is trained four times: twice as it is (else equality would say nothing), watched, and watched with an error in the
middle of a probe pass that has drawn random numbers. All parameters, buffers and training losses are compared bit by bit, and the
graphs that torch.compile made are counted. `python -m validation watched_training`, some minutes.
"""

import logging
import os
import random
import sys
import tempfile
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.multiprocessing.spawn import spawn

import stagescope as ss
from tests.watching.models import VOCABULARY, Gpt, tokens

STEPS, EVERY = 12, 2
PROBE = tokens(6, 24)
ROWS = tokens(64, 20, seed=7)
Options = dict[str, Any] | None
"""What the watcher gets; None is a training that is not watched."""


@dataclass
class Trained:
    """What a training leaves: tensors by name, losses, records made, and graphs compiled."""

    tensors: dict[str, Tensor]
    losses: list[float]
    records: int = 0
    graphs: int = 0

    @classmethod
    def of(cls, model: nn.Module, losses: list[float], watch: Any = None) -> "Trained":
        graphs = torch._dynamo.utils.counters["stats"]["unique_graphs"]
        state = {name: value.detach().clone() for name, value in model.state_dict().items()}
        return cls(state, losses, 0 if watch is None else len(watch.run.step), graphs)

    def same(self, other: "Trained") -> bool:
        named = self.tensors.keys() == other.tensors.keys() and self.losses == other.losses
        return named and all(torch.equal(value, other.tensors[name]) for name, value in self.tensors.items())


class Failing:
    """Calls the model; from its eighth call on it fails in the middle, after it has drawn random numbers."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, model: nn.Module, ids: Tensor) -> Any:
        self.calls += 1
        if self.calls < 8:
            return model(ids)
        _ = torch.rand(3), random.random(), np.random.rand()  # noqa: NPY002
        block = next(module for name, module in model.named_modules() if name.endswith(("blocks.1", "h.1", "layers.1")))
        block.register_forward_pre_hook(_fail)
        try:
            return model(ids)
        finally:
            block._forward_pre_hooks.popitem()


def _fail(*_: Any) -> None:
    raise RuntimeError("the probe fails")


def seeded(make: Callable[[], nn.Module]) -> nn.Module:
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002
    torch.manual_seed(0)
    return make()


def loop(model: nn.Module, called: Any, watcher: Any, precision: torch.dtype | None = None) -> list[float]:
    """A loop with dropout and draws from every generator, so that one draw more or less would show."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(STEPS):
        ids = ROWS[torch.randint(len(ROWS), (4,)) + 0 * random.randrange(9) + 0 * int(np.random.randint(9))]  # noqa: NPY002
        with torch.autocast("cpu", dtype=precision) if precision else nullcontext():
            logits = called(ids)
        loss = F.cross_entropy(logits[:, :-1].float().reshape(-1, VOCABULARY), ids[:, 1:].reshape(-1))
        loss.backward()
        if watcher is not None:
            watcher.step(loss)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        losses.append(loss.item() + random.random() + float(np.random.rand()))  # noqa: NPY002
    return losses


def own(options: Options, *, compiled: str = "", precision: torch.dtype | None = None, frozen: bool = False) -> Trained:
    """A loop of one's own."""
    model = seeded(partial(Gpt, dropout=0.2))
    called: Any = model
    if frozen:
        model.blocks[0].eval()  # type: ignore[index]
    if compiled == "torch.compile":
        called = torch.compile(model)
    elif compiled:
        model.compile()
    watcher = None if options is None else ss.watch(called, probe=PROBE, steps=STEPS, record=ss.Every(n=EVERY), **options)
    with watcher or nullcontext():
        losses = loop(model, called, watcher, precision)
    return Trained.of(model, losses, watcher)


GPT2: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "n_positions": 32,
    "n_embd": 16,
    "n_layer": 2,
    "n_head": 2,
    "bos_token_id": 0,
    "eos_token_id": 0,
}
LLAMA: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "max_position_embeddings": 32,
    "hidden_size": 32,
    "intermediate_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "attention_dropout": 0.1,
}


def trainer(options: Options, *, llama: bool = False, **settings: Any) -> Trained:
    """The Trainer of Hugging Face."""
    import transformers

    def make() -> nn.Module:
        if llama:
            return transformers.LlamaForCausalLM(transformers.LlamaConfig(**LLAMA))
        return transformers.GPT2LMHeadModel(transformers.GPT2Config(**GPT2))

    model = seeded(make)
    watch = None if options is None else ss.TrainerWatch(probe=PROBE, record=ss.Every(n=EVERY), **options)
    with tempfile.TemporaryDirectory() as folder:
        fixed: dict[str, Any] = {
            "report_to": [],
            "disable_tqdm": True,
            "use_cpu": True,
            "save_strategy": "no",
            "logging_steps": 1,
        }
        args = transformers.TrainingArguments(folder, max_steps=STEPS, per_device_train_batch_size=4, **fixed, **settings)
        data = [{"input_ids": row, "labels": row} for row in ROWS]
        made = transformers.Trainer(model=model, args=args, train_dataset=data, callbacks=[] if watch is None else [watch])
        made.remove_callback(transformers.PrinterCallback)
        made.train()
    return Trained.of(model, [one["loss"] for one in made.state.log_history if "loss" in one], watch)


def lightning(options: Options) -> Trained:
    """The Trainer of Lightning."""
    import lightning.pytorch as package
    from torch.utils.data import DataLoader, TensorDataset

    class Module(package.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.net, self.losses = Gpt(dropout=0.2), []

        def training_step(self, batch: Any, index: int) -> Tensor:
            logits = self.net(batch[0])
            loss = F.cross_entropy(logits[:, :-1].reshape(-1, VOCABULARY), batch[0][:, 1:].reshape(-1))
            self.losses.append(loss.item())
            return loss

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.AdamW(self.parameters(), lr=1e-2)

    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    module: Any = seeded(Module)
    watch = None if options is None else ss.LightningWatch(probe=PROBE, record=ss.Every(n=EVERY), model="net", **options)
    silent: dict[str, Any] = dict.fromkeys(
        ("logger", "enable_progress_bar", "enable_model_summary", "enable_checkpointing"), False
    )
    made = package.Trainer(max_steps=STEPS, accelerator="cpu", callbacks=[] if watch is None else [watch], **silent)
    made.fit(module, DataLoader(TensorDataset(ROWS), batch_size=4, shuffle=True))
    return Trained.of(module, module.losses, watch)


def parallel(options: Options) -> Trained:
    """DistributedDataParallel with gloo on two processes, of which the first records."""
    with tempfile.TemporaryDirectory() as folder:
        spawn(_process, (folder, options), nprocs=2)
        first, second = (torch.load(Path(folder) / f"{rank}.pt", weights_only=False) for rank in (0, 1))
    if first.tensors.keys() != second.tensors.keys() or second.records:
        raise AssertionError("the second process records, or has another model")
    return first


def _process(rank: int, folder: str, options: Options) -> None:
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2)
    model = seeded(partial(Gpt, dropout=0.2))
    torch.manual_seed(rank)
    wrapped = nn.parallel.DistributedDataParallel(model)
    watcher = None if options is None else ss.watch(wrapped, probe=PROBE, steps=STEPS, record=ss.Every(n=EVERY), **options)
    with watcher or nullcontext():
        losses = loop(model, wrapped, watcher)
    torch.save(Trained.of(model, losses, watcher if rank == 0 else None), Path(folder) / f"{rank}.pt")
    torch.distributed.destroy_process_group()


MODES: dict[str, Callable[[Options], Trained]] = {
    "own loop": own,
    "own loop, bfloat16 autocast": partial(own, precision=torch.bfloat16),
    "own loop, a block frozen in eval": partial(own, frozen=True),
    "own loop, torch.compile": partial(own, compiled="torch.compile"),
    "own loop, model.compile()": partial(own, compiled="model.compile()"),
    "Hugging Face": trainer,
    "Hugging Face, bfloat16": partial(trainer, bf16=True),
    "Hugging Face, gradient checkpointing": partial(trainer, gradient_checkpointing=True),
    "Hugging Face, accumulation": partial(trainer, gradient_accumulation_steps=2),
    "Hugging Face, Llama with shared keys": partial(trainer, llama=True),
    "Hugging Face, torch_compile": partial(trainer, torch_compile=True),
    "Lightning": lightning,
    "DistributedDataParallel, 2 processes": parallel,
}


def judged(name: str, train: Callable[[Options], Trained]) -> bool:
    """Train four times, print a row, and say whether all are the same."""
    plain, again, watched, failed = train(None), train(None), train({}), train({"forward": Failing()})
    same = [plain.same(other) for other in (again, watched, failed)]
    complete = watched.records == STEPS // EVERY + 1 and 0 < failed.records < watched.records
    graphs = plain.graphs == watched.graphs == failed.graphs
    words = ["same" if each else "DIFFERS" for each in same]
    counted = f"{watched.records}, {failed.records}"
    print(
        f"{name:<38}{words[0]:<9}{words[1]:<9}{words[2]:<13}{counted:<9}{plain.graphs}, {watched.graphs}, {failed.graphs}",
        flush=True,
    )
    return all(same) and complete and graphs


def main() -> bool:
    torch.set_num_threads(1)
    print(f"{'':<38}{'again':<9}{'watched':<9}{'with error':<13}{'records':<9}graphs: plain, watched, with error")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return all(judged(name, train) for name, train in MODES.items())


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
