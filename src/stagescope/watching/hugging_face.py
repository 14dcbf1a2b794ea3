"""Watch a training by the Trainer of Hugging Face: one callback."""

from typing import Any

from stagescope.core.errors import InputError
from stagescope.watching.watch import Callback

try:
    from transformers.trainer_callback import TrainerCallback, TrainerState
except ImportError:
    remedy = "pip install 'transformers[torch]'; for your own loop use ss.watch"
    raise InputError(f"TrainerWatch needs transformers, which is not installed; {remedy}") from None


class TrainerWatch(Callback, TrainerCallback):
    """Watches the model that a Trainer of transformers trains; afterwards `run` is the run.

    A record of step n is the model after n updates, as with `ss.watch`; steps that accumulate gradients count once. The training
    loss is what the Trainer logs next, a mean over its logging steps, and NaN where no log comes before the next record. The
    gradient is measured as the optimizer gets it, so after clipping. Only the main process records. A training that is resumed
    from a checkpoint goes on with the unfinished run in `out`.

    Args:
        probe: what the model is looked at on, as for `ss.watch`; text is read by the Trainer's own tokenizer.
        out: folder of the run; without it the run is kept in memory.
        tokenizer, record, layers, heads, blocks, patterns, forward, overwrite: as for `ss.watch`.

    Then `Trainer(model=model, args=args, train_dataset=data, callbacks=[watch]).train()` trains, and
    `ss.report(watch.run, "mine.html")` shows it.

    Examples:
        >>> watch = ss.TrainerWatch(probe=probe)
        >>> type(watch).__name__
        'TrainerWatch'
    """

    def on_train_begin(self, args: Any, state: TrainerState, control: Any, **kwargs: Any) -> None:
        if not state.is_world_process_zero:
            return
        coder = kwargs.get("processing_class")
        options = {"tokenizer": coder} if hasattr(coder, "decode") else {}
        steps = state.max_steps if state.max_steps > 0 else None
        self._begin(kwargs["model"], state.global_step, steps, kwargs.get("optimizer"), options)

    def on_pre_optimizer_step(self, args: Any, state: TrainerState, control: Any, **kwargs: Any) -> None:
        self._before_update(state.global_step)

    def on_log(self, args: Any, state: TrainerState, control: Any, **kwargs: Any) -> None:
        logs, record = kwargs.get("logs") or {}, self._awaited
        if record is not None and "loss" in logs:
            record["train_loss"] = float(logs["loss"])

    def on_train_end(self, args: Any, state: TrainerState, control: Any, **kwargs: Any) -> None:
        self._finish(state.global_step)
