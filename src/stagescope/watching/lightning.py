"""Watch a training by the Trainer of Lightning: one callback."""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from math import isfinite
from operator import attrgetter
from pathlib import Path
from typing import Any

from stagescope.core.errors import InputError, message
from stagescope.watching.pytorch import Tensor, nn
from stagescope.watching.watch import Callback

_PACKAGES = ("lightning.pytorch", "pytorch_lightning")
"""Two names of one framework; a Trainer takes only callbacks of its own."""


def _bases() -> tuple[type, ...]:
    """The callbacks of the packages that the program uses, else of one that is installed."""
    used = [name for name in _PACKAGES if sys.modules.get(name) is not None]
    for name in used or _PACKAGES:
        try:
            import_module(f"{name}.callbacks")
        except ImportError:
            continue
        used = used or [name]
    if not used:
        remedy = "pip install lightning; for your own loop use ss.watch"
        raise InputError(f"LightningWatch needs lightning or pytorch_lightning, which are not installed; {remedy}")
    return tuple(dict.fromkeys(sys.modules[f"{name}.callbacks"].Callback for name in used))


class LightningWatch(Callback, *_bases()):
    """Watches the model that a Trainer of Lightning trains; afterwards `run` is the run.

    A record of step n is the model after n updates, as with `ss.watch`: n is the Trainer's `global_step`. The training loss is
    that of the last batch of the step. Only the process of rank 0 records. A training that is resumed from a checkpoint goes on
    with the unfinished run in `out`.

    Args:
        probe: what the model is looked at on, as for `ss.watch`.
        out: folder of the run; without it the run is kept in memory.
        model: the model inside the LightningModule, by the name of its attribute or as a function of the module; by default the
            module itself is called.
        tokenizer, record, layers, heads, blocks, patterns, forward, overwrite: as for `ss.watch`.

    Then `Trainer(max_steps=3000, callbacks=[watch]).fit(module, data)` trains, and `ss.report(watch.run, "mine.html")` shows it.

    Examples:
        >>> watch = ss.LightningWatch(probe=probe, model="net")
        >>> type(watch).__name__
        'LightningWatch'
    """

    def __init__(
        self,
        *,
        probe: Any,
        out: str | Path | None = None,
        model: str | Callable[[Any], nn.Module] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(probe=probe, out=out, **options)
        self._model = model

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        if not trainer.is_global_zero:
            return
        planned = trainer.estimated_stepping_batches
        steps = int(planned) if isfinite(planned) and planned > 0 else None
        optimizer = next(iter(trainer.optimizers), None)
        self._begin(_inside(pl_module, self._model), trainer.global_step, steps, optimizer, {})

    def on_before_optimizer_step(self, trainer: Any, pl_module: Any, optimizer: Any) -> None:
        self._before_update(trainer.global_step)

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        loss, record = outputs.get("loss") if isinstance(outputs, Mapping) else outputs, self._awaited
        if record is not None and isinstance(loss, Tensor) and loss.numel() == 1:
            record["train_loss"] = float(loss.detach())

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        self._finish(trainer.global_step)

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        self._close()


def _inside(module: Any, model: str | Callable[[Any], nn.Module] | None) -> nn.Module:
    if model is None:
        return module
    try:
        inner = attrgetter(model)(module) if isinstance(model, str) else model(module)
    except Exception as error:
        raise InputError(f"model={model!r} finds nothing in {type(module).__name__}: {message(error)}") from None
    if not isinstance(inner, nn.Module):
        raise InputError(f"model={model!r} of {type(module).__name__} is of type {type(inner).__name__}, not a PyTorch module")
    return inner
