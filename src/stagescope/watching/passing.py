"""The probe pass: one forward that sees attention and leaves no trace in the training.

Modes, random states, autocast and hooks are as before when it ends, also after an error, so that training goes on bit by bit
as if it had not been watched.
"""

import inspect
import random
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np

from stagescope.errors import InputError, message
from stagescope.watching.capture import Capture, Plan, Seen, named_modules
from stagescope.watching.pytorch import Tensor, nn, torch

Forward = Callable[[nn.Module, Tensor], Any]
"""Calls a model on token ids (sequence, position) and gives its logits, or what holds them."""
_TARGETS = ("targets", "labels", "target", "y")


def unwrapped(model: nn.Module) -> nn.Module:
    """The model inside torch.compile, DataParallel and DistributedDataParallel."""
    while True:
        inner = getattr(model, "_orig_mod", None)
        wraps = isinstance(model, nn.DataParallel | nn.parallel.DistributedDataParallel)
        inner = model.module if inner is None and wraps else inner
        if not isinstance(inner, nn.Module):
            return _whole(model)
        model = inner


def _whole(model: nn.Module) -> nn.Module:
    """Refuse a model whose parameters lie in several processes: a pass in one of them would wait for the others."""
    wrapped = any(type(module).__name__ == "FullyShardedDataParallel" for module in model.modules())
    if wrapped or any(type(value).__name__ == "DTensor" or hasattr(value, "ds_id") for value in model.parameters()):
        raise InputError(
            "a model that is sharded (FullyShardedDataParallel, tensor parallelism, ZeRO-3) cannot be watched: no process has all"
            " of it; watch one that is whole"
        )
    return model


def device_of(model: nn.Module) -> torch.device:
    """The one device of a model."""
    found = sorted({str(each.device) for each in (*model.parameters(), *model.buffers())})
    if len(found) > 1:
        raise InputError(f"the model is on several devices ({', '.join(found)}); a watched model must be on one")
    if found == ["meta"]:
        raise InputError("the model is on the device 'meta' and has no numbers; load its weights first")
    return torch.device(found[0]) if found else torch.device("cpu")


@contextmanager
def without_trace(model: nn.Module) -> Iterator[None]:
    """Evaluation mode without gradients, mixed precision, compilation or randomness; all is as before afterwards."""
    device = next((each.device for each in chain(model.parameters(), model.buffers())), torch.device("cpu"))
    trained = [vars(module) for module in model.modules() if module.training]
    states = random.getstate(), np.random.get_state()  # noqa: NPY002
    fast = torch.backends.mha.get_fastpath_enabled()
    own = vars(model)
    held = own.get("forward") if "_original_forward" in own else None  # accelerate's, which switches bfloat16 on again
    with ExitStack() as stack:
        stack.enter_context(torch.random.fork_rng(devices=[device] if device.type == "cuda" else []))
        stack.enter_context(torch.no_grad())
        stack.enter_context(torch.autocast(device.type, enabled=False))
        stack.enter_context(torch.compiler.set_stance("force_eager"))
        try:
            for each in trained:  # not by `setattr`, which costs as much as a small layer
                each["training"] = False
            torch.backends.mha.set_fastpath_enabled(False)
            if held is not None:
                own["forward"] = own["_original_forward"]
            yield
        finally:
            for each in trained:
                each["training"] = True
            torch.backends.mha.set_fastpath_enabled(fast)
            if held is not None:
                own["forward"] = held
            random.setstate(states[0])
            np.random.set_state(states[1])  # noqa: NPY002


def attend(model: nn.Module, ids: Tensor, forward: Forward, plan: Plan) -> tuple[Tensor | None, list[Seen]]:
    """Logits (sequence, position, token) of a pass, or None where it gives none, and the attention of each layer.

    The calls of a pass come in one order, so that no hook is needed after the first pass, which made the plan.
    """
    capture = Capture(*ids.shape)
    with without_trace(model), capture:
        logits = forward(model, ids)
    return logits_of(logits, ids), plan.layers(capture.seen)


def predict(model: nn.Module, ids: Tensor, forward: Forward) -> Tensor | None:
    """Logits of a pass whose attention is not looked at."""
    with without_trace(model):
        return logits_of(forward(model, ids), ids)


def usual_forward(model: nn.Module, ids: Tensor) -> Forward:
    """How a language model is called; targets are given to one that needs them, or makes all logits only then."""
    known = inspect.signature(type(model).forward).parameters
    extra: dict[str, Any] = {"use_cache": False} if "use_cache" in known else {}

    def plain(model: nn.Module, ids: Tensor) -> Any:
        return model(ids, **extra)

    def with_targets(model: nn.Module, ids: Tensor) -> Any:
        return model(ids, **extra, **{str(target): torch.roll(ids, -1, dims=1)})

    target = next((name for name in _TARGETS if name in known), None)
    if target is None or known[target].default is inspect.Parameter.empty:
        return plain if target is None else with_targets
    with without_trace(model):
        found = plain(model, ids)
    return with_targets if _only_last(found, ids) else plain


def _only_last(found: Any, ids: Tensor) -> bool:
    """Whether a model made logits for the last position alone, as for generating text."""
    return ids.shape[1] > 1 and any(one.ndim == 3 and one.shape[:2] == (len(ids), 1) for one in _floats(found))


def logits_of(found: Any, ids: Tensor) -> Tensor | None:
    """The tensor (sequence, position, token) in what a model returns; None for a model that ends before the tokens."""
    if hasattr(found, "last_hidden_state"):
        return None
    named = getattr(found, "logits", found)
    return next((one.detach().float() for one in _floats(named) if one.ndim == 3 and one.shape[:2] == ids.shape), None)


def _floats(found: Any) -> Iterator[Tensor]:
    if isinstance(found, Tensor) and found.is_floating_point():
        yield found
    elif isinstance(found, dict):
        yield from (one for value in found.values() for one in _floats(value))
    elif isinstance(found, tuple | list):
        yield from (one for value in found for one in _floats(value))


def tried(model: nn.Module, ids: Tensor, forward: Forward | None) -> tuple[Forward, Tensor | None, Plan]:
    """The first pass: how the model is called, its logits and its layers; what goes wrong is said with the likely cause."""
    capture = Capture(*ids.shape)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="flex_attention called without")  # the training has it compiled
            forward = forward or usual_forward(model, ids)
            with without_trace(model), named_modules(model, capture), capture:
                logits = logits_of(forward(model, ids), ids)
    except InputError:
        raise
    except Exception as error:
        shape = f"{len(ids)} sequences of {ids.shape[1]} tokens"
        hint = "is the probe longer than the context, or does the model need other inputs (give forward=...)?"
        raise InputError(
            f"the model cannot be called on the probe of {shape}: {type(error).__name__}: {message(error)}; {hint}"
        ) from error
    if not capture.seen:
        raise InputError(
            f"no attention is seen in {type(model).__name__}: it uses none of scaled_dot_product_attention, softmax over keys,"
            " nn.MultiheadAttention and flex_attention; compute its weights with torch.softmax, or record them with ss.Recorder"
        )
    _check_axes(model, ids, forward, capture)
    table = next((path for path, given in capture.tables.items() if given.shape == ids.shape and torch.equal(given, ids)), None)
    return forward, logits, replace(Plan.of(capture.seen), table=table)


def _check_axes(model: nn.Module, ids: Tensor, forward: Forward, first: Capture) -> None:
    """Whether what is seen is attention: it follows the order of the sequences and the number of tokens."""
    turned, shorter = Capture(*ids.shape), Capture(len(ids), ids.shape[1] - 2)
    with without_trace(model), turned:
        forward(model, ids.flip(0))
    try:
        with without_trace(model), shorter:
            forward(model, ids[:, :-2])
        follow = len(shorter.seen) == len(first.seen)
    except Exception:  # a model of one length
        follow = True
    for one, other in zip(first.seen, turned.seen, strict=False):
        if one.weights.shape != other.weights.shape or not torch.allclose(one.weights.flip(0), other.weights, atol=1e-5):
            raise InputError(
                f"the attention of {one.path or type(model).__name__} does not have the sequences in its first axis, so its heads"
                " cannot be told apart; arrange its weights as (sequence, head, query, key), or record them with ss.Recorder"
            )
    if not follow:
        raise InputError(
            f"{len(first.seen)} tables of {ids.shape[1]} tokens are seen in {type(model).__name__}, and {len(shorter.seen)} of"
            f" {ids.shape[1] - 2}: a softmax over {ids.shape[1]} features is no attention; give a probe of another length"
        )
