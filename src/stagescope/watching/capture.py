"""Attention patterns of one forward pass on the probe, seen from outside the model, with no trace left in the training.

One `TorchFunctionMode` sees the four calls through which PyTorch models attend: `scaled_dot_product_attention`, a softmax over
the keys, `multi_head_attention_forward` and `flex_attention`. The path of the module comes from hooks that last for one pass.
Attention that goes through none of these calls is not seen.

Modes, random states, autocast and hooks are as before when a pass ends, also after an error, so that training goes on bit by
bit as if it had not been watched.
"""

import inspect
import random
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import chain
from typing import Any

import numpy as np

from stagescope.core.errors import InputError, message
from stagescope.watching.pytorch import Tensor, nn, torch
from stagescope.watching.pytorch import functional as F


@dataclass(frozen=True, eq=False)
class Attention:
    """The attention of one module in one pass: `weights` (batch, head, query, key); queries and keys where they were seen.

    `input` is the tensor that the module was called with.
    """

    path: str
    weights: Tensor
    query: Tensor | None = None
    key: Tensor | None = None
    input: Tensor | None = None

    @property
    def heads(self) -> int:
        return self.weights.shape[1]


class Capture(torch.overrides.TorchFunctionMode):
    """Collects the patterns of self-attention over `batch` sequences of `length` tokens."""

    def __init__(self, batch: int, length: int) -> None:
        super().__init__()
        self.batch, self.length = batch, length
        self.patterns: list[Attention] = []
        self.path: list[tuple[str, Tensor | None]] = []
        self.tables: dict[str, Tensor] = {}

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        handler = _HANDLERS.get(func)
        if handler is None:
            return func(*args, **(kwargs or {}))
        return handler(self, func, *args, **(kwargs or {}))

    def _add(self, weights: Tensor, query: Tensor | None = None, key: Tensor | None = None) -> None:
        """Keep a pattern of the probe; one of another shape, such as attention to another sequence, is passed over."""
        shaped = _by_head(weights.detach(), self.batch)
        if shaped is None or shaped.shape[-2:] != (self.length, self.length):
            return
        pair = (_by_head(query, self.batch), _by_head(key, self.batch)) if query is not None and key is not None else (None, None)
        path, tensor = self.path[-1] if self.path else ("", None)
        self.patterns.append(Attention(path, shaped.float(), *pair, tensor))

    def _fused(
        self,
        func: Callable[..., Any],
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attn_mask: Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        **grouped: bool,
    ) -> Tensor:
        """Weights in single precision; they give the result too, but for other types and for dropout."""
        fused = partial(func, query, key, value, attn_mask, dropout_p, is_causal, scale=scale, **grouped)
        if query.shape[-2] != self.length or key.shape[-2] != self.length:
            return fused()
        queries, keys = query.detach().float(), _as_many(key.detach().float(), query)
        scores = (queries * (query.shape[-1] ** -0.5 if scale is None else scale)) @ keys.transpose(-2, -1)
        mask = _causal(self.length, scores.device) if is_causal else None if attn_mask is None else _additive(attn_mask.detach())
        weights = torch.softmax(scores if mask is None else scores + mask, dim=-1)
        if mask is not None and not is_causal:  # a row that may look at nothing is zero, as in the fused call
            weights = weights.masked_fill((mask == -torch.inf).all(-1, keepdim=True), 0.0)
        self._add(weights, queries, keys)
        if dropout_p or value.dtype != torch.float32:
            return fused()
        return weights @ _as_many(value, query)

    def _softmax(self, func: Callable[..., Any], input: Tensor, dim: int | None = None, *rest: Any, **named: Any) -> Tensor:
        result = func(input, dim, *rest, **named)
        if dim is None or result.ndim < 2 or dim % result.ndim != result.ndim - 1:
            return result
        if result.shape[-2:] == (self.length, self.length):
            self._add(result)
        elif result.ndim == 4 and result.shape[-2:] == (self.length, self.length + 1):  # a learned sink stands behind the keys
            self._add(result[..., :-1])
        return result

    def _multi_head(self, func: Callable[..., Any], *args: Any, **named: Any) -> Any:
        _, weights = func(*args, **{**named, "need_weights": True, "average_attn_weights": False})
        if weights is not None:
            self._add(weights if weights.ndim == 4 else weights[None])
        return func(*args, **named)

    def _flex(self, func: Callable[..., Any], query: Tensor, key: Tensor, value: Tensor, *args: Any, **named: Any) -> Any:
        """The same call with the identity as values returns the pattern."""
        if query.shape[-2] == self.length and key.shape[-2] == self.length:
            eye = torch.eye(self.length, dtype=value.dtype, device=value.device).expand(*value.shape[:2], -1, -1).contiguous()
            weights = func(query, key, eye, *args, **named)
            weights = weights[0] if isinstance(weights, tuple) else weights
            self._add(weights, query.detach().float(), _as_many(key.detach().float(), query))
        return func(query, key, value, *args, **named)


_HANDLERS: dict[Any, Callable[..., Any]] = {
    F.scaled_dot_product_attention: Capture._fused,
    F.multi_head_attention_forward: Capture._multi_head,
    torch.ops.higher_order.flex_attention: Capture._flex,
    **dict.fromkeys((torch.softmax, torch.special.softmax, F.softmax, Tensor.softmax), Capture._softmax),
}


def _as_many(keys: Tensor, query: Tensor) -> Tensor:
    """Keys or values with one head for each of the query's, where several queries share one."""
    if query.ndim < 4 or keys.shape[-3] == query.shape[-3]:
        return keys
    return keys.repeat_interleave(query.shape[-3] // keys.shape[-3], dim=-3)


@lru_cache(maxsize=8)
def _causal(length: int, device: torch.device) -> Tensor:
    return torch.full((length, length), -torch.inf, device=device).triu(1)


def _additive(mask: Tensor) -> Tensor:
    """A mask as what is added to scores."""
    if mask.dtype != torch.bool:
        return mask.float()
    return torch.zeros(mask.shape, device=mask.device).masked_fill(~mask, -torch.inf)


def _by_head(values: Tensor | None, batch: int) -> Tensor | None:
    """(batch, head, ...) of what has both in one axis, in the other order, in groups of heads, or not at all.

    None for other shapes. Weights that are the same for each sequence have no axis of sequences, or one of length 1.
    """
    if values is None or not 2 <= values.ndim <= 5:
        return None
    first = values.shape[0]
    if values.ndim == 2:
        return values.expand(batch, 1, -1, -1)
    if values.ndim == 3:
        return values.reshape(batch, -1, *values.shape[1:]) if first % batch == 0 else None
    if values.ndim == 5:
        return values.flatten(1, 2) if first == batch else None
    if first == 1:
        return values.expand(batch, -1, -1, -1)
    return values if first == batch else values.transpose(0, 1) if values.shape[1] == batch else None


@contextmanager
def named_modules(model: nn.Module, capture: Capture) -> Iterator[None]:
    """Tell `capture` in which module each call happens, by hooks that last as long as this does."""
    handles = []
    try:
        for path, module in model.named_modules():
            if isinstance(module, nn.Softmax):  # it has no name of its own
                continue
            handles.append(module.register_forward_pre_hook(partial(_enter, capture, path)))
            handles.append(module.register_forward_hook(partial(_leave, capture), always_call=True))
        yield
    finally:
        for handle in handles:
            handle.remove()


def _enter(capture: Capture, path: str, module: nn.Module, args: tuple[Any, ...]) -> None:
    tensor = args[0] if args and isinstance(args[0], Tensor) else None
    capture.path.append((path, tensor))
    if isinstance(module, nn.Embedding) and tensor is not None:
        capture.tables[path] = tensor  # what each table of embeddings is asked for


def _leave(capture: Capture, *_: Any) -> None:
    if capture.path:
        capture.path.pop()


@dataclass(frozen=True)
class Plan:
    """The layers of a model: name of each, and the places of its patterns among those of a pass.

    `table` is the path of the embedding that was asked for the token ids, where one was.
    """

    names: tuple[str, ...]
    places: tuple[tuple[int, ...], ...]
    table: str | None = None

    @classmethod
    def of(cls, patterns: list[Attention]) -> "Plan":
        """Modules of one head each that stand in one list and get the same input are the heads of one layer.

        A module that is used again is a layer of its own each time.
        """
        groups: list[list[int]] = []
        for place, one in enumerate(patterns):
            if groups and _siblings(patterns[groups[-1][-1]], one):
                groups[-1].append(place)
            else:
                groups.append([place])
        paths = [patterns[group[0]].path.rpartition(".")[0] if len(group) > 1 else patterns[group[0]].path for group in groups]
        again = [paths[:i].count(path) for i, path in enumerate(paths)]
        names = [path if not count else f"{path} #{count + 1}" for path, count in zip(paths, again, strict=True)]
        return cls(tuple(names), tuple(map(tuple, groups)))

    def layers(self, patterns: list[Attention]) -> list[Attention]:
        """The patterns of a pass by layer."""
        if len(patterns) != sum(map(len, self.places)):
            raise InputError(
                f"{len(patterns)} patterns of attention are seen, {sum(map(len, self.places))} at first: the model was changed;"
                " end this watcher and begin another"
            )
        parts = ([patterns[place] for place in group] for group in self.places)
        return [_one_layer(name, members) for name, members in zip(self.names, parts, strict=True)]


def _siblings(before: Attention, one: Attention) -> bool:
    """Whether two patterns are heads of one layer, each a module of its own."""
    places = [head.path.rpartition(".") for head in (before, one)]
    same_list = places[0][0] == places[1][0] and places[0] != places[1] and all(last.isdigit() for _, _, last in places)
    return same_list and before.heads == one.heads == 1 and one.input is not None and one.input is before.input


def _one_layer(name: str, members: list[Attention]) -> Attention:
    if len(members) == 1:
        return replace(members[0], path=name)
    pairs = [[getattr(one, part) for one in members] for part in ("query", "key")]
    query_and_key = [None if any(one is None for one in part) else torch.cat(part, dim=1) for part in pairs]
    return Attention(name, torch.cat([one.weights for one in members], dim=1), *query_and_key)


Forward = Callable[[nn.Module, Tensor], Any]
"""Calls a model on token ids (sequence, position) and gives its logits, or what holds them."""
_TARGETS = ("targets", "labels", "target", "y")


def unwrapped(model: nn.Module) -> nn.Module:
    """The model inside torch.compile, DataParallel and DistributedDataParallel.

    One whose parameters lie in several processes is refused: a pass in one of them would wait for the others.
    """
    while True:
        inner = getattr(model, "_orig_mod", None)
        wraps = isinstance(model, nn.DataParallel | nn.parallel.DistributedDataParallel)
        inner = model.module if inner is None and wraps else inner
        if not isinstance(inner, nn.Module):
            break
        model = inner
    wrapped = any(type(module).__name__ == "FullyShardedDataParallel" for module in model.modules())
    if wrapped or any(type(value).__name__ == "DTensor" or hasattr(value, "ds_id") for value in model.parameters()):
        raise InputError(
            "a model that is sharded (FullyShardedDataParallel, tensor parallelism, ZeRO-3) cannot be watched: no process has all"
            " of it; watch one that is whole"
        )
    return model


def device_of(model: nn.Module) -> torch.device:
    """The one device of a model."""
    devices = sorted({str(tensor.device) for tensor in (*model.parameters(), *model.buffers())})
    if len(devices) > 1:
        raise InputError(f"the model is on several devices ({', '.join(devices)}); a watched model must be on one")
    if devices == ["meta"]:
        raise InputError("the model is on the device 'meta' and has no numbers; load its weights first")
    return torch.device(devices[0]) if devices else torch.device("cpu")


@contextmanager
def without_trace(model: nn.Module) -> Iterator[None]:
    """Evaluation mode without gradients, mixed precision, compilation or randomness; all is as before afterwards."""
    device = next((tensor.device for tensor in chain(model.parameters(), model.buffers())), torch.device("cpu"))
    trained = [vars(module) for module in model.modules() if module.training]
    states = random.getstate(), np.random.get_state()  # noqa: NPY002
    fast = torch.backends.mha.get_fastpath_enabled()
    fields = vars(model)
    wrapped_forward = (
        fields.get("forward") if "_original_forward" in fields else None
    )  # accelerate's, which switches bfloat16 on again
    with ExitStack() as stack:
        stack.enter_context(torch.random.fork_rng(devices=[device] if device.type == "cuda" else []))
        stack.enter_context(torch.no_grad())
        stack.enter_context(torch.autocast(device.type, enabled=False))
        stack.enter_context(torch.compiler.set_stance("force_eager"))
        try:
            for module_vars in trained:  # not by `setattr`, which costs as much as a small layer
                module_vars["training"] = False
            torch.backends.mha.set_fastpath_enabled(False)
            if wrapped_forward is not None:
                fields["forward"] = fields["_original_forward"]
            yield
        finally:
            for module_vars in trained:
                module_vars["training"] = True
            torch.backends.mha.set_fastpath_enabled(fast)
            if wrapped_forward is not None:
                fields["forward"] = wrapped_forward
            random.setstate(states[0])
            np.random.set_state(states[1])  # noqa: NPY002


def attend(model: nn.Module, ids: Tensor, forward: Forward, plan: Plan) -> tuple[Tensor | None, list[Attention]]:
    """Logits (sequence, position, token) of a pass, or None where it gives none, and the attention of each layer.

    The calls of a pass come in one order, so that no hook is needed after the first pass, which made the plan.
    """
    capture = Capture(*ids.shape)
    with without_trace(model), capture:
        logits = forward(model, ids)
    return logits_of(logits, ids), plan.layers(capture.patterns)


def predict(model: nn.Module, ids: Tensor, forward: Forward) -> Tensor | None:
    """Logits of a pass whose attention is not looked at."""
    with without_trace(model):
        return logits_of(forward(model, ids), ids)


def usual_forward(model: nn.Module, ids: Tensor) -> Forward:
    """How a language model is called; targets are given to one that needs them, or makes all logits only then."""
    parameters = inspect.signature(type(model).forward).parameters
    extra: dict[str, Any] = {"use_cache": False} if "use_cache" in parameters else {}

    def plain(model: nn.Module, ids: Tensor) -> Any:
        return model(ids, **extra)

    def with_targets(model: nn.Module, ids: Tensor) -> Any:
        return model(ids, **extra, **{str(target): torch.roll(ids, -1, dims=1)})

    target = next((name for name in _TARGETS if name in parameters), None)
    if target is None or parameters[target].default is inspect.Parameter.empty:
        return plain if target is None else with_targets
    with without_trace(model):
        output = plain(model, ids)
    # logits for the last position alone, as for generating text
    only_last = ids.shape[1] > 1 and any(one.ndim == 3 and one.shape[:2] == (len(ids), 1) for one in _floats(output))
    return with_targets if only_last else plain


def logits_of(output: Any, ids: Tensor) -> Tensor | None:
    """The tensor (sequence, position, token) in what a model returns; None for a model that ends before the tokens."""
    if hasattr(output, "last_hidden_state"):
        return None
    named = getattr(output, "logits", output)
    return next((one.detach().float() for one in _floats(named) if one.ndim == 3 and one.shape[:2] == ids.shape), None)


def _floats(output: Any) -> Iterator[Tensor]:
    if isinstance(output, Tensor) and output.is_floating_point():
        yield output
    elif isinstance(output, dict | tuple | list):
        for value in output.values() if isinstance(output, dict) else output:
            yield from _floats(value)


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
    if not capture.patterns:
        raise InputError(
            f"no attention is seen in {type(model).__name__}: it uses none of scaled_dot_product_attention, softmax over keys,"
            " nn.MultiheadAttention and flex_attention; compute its weights with torch.softmax, or record them with ss.Recorder"
        )
    _check_axes(model, ids, forward, capture)
    table = next(
        (path for path, looked_up in capture.tables.items() if looked_up.shape == ids.shape and torch.equal(looked_up, ids)), None
    )
    return forward, logits, replace(Plan.of(capture.patterns), table=table)


def _check_axes(model: nn.Module, ids: Tensor, forward: Forward, first: Capture) -> None:
    """Whether what is seen is attention: it follows the order of the sequences and the number of tokens."""
    turned, shorter = Capture(*ids.shape), Capture(len(ids), ids.shape[1] - 2)
    with without_trace(model), turned:
        forward(model, ids.flip(0))
    try:
        with without_trace(model), shorter:
            forward(model, ids[:, :-2])
        follow = len(shorter.patterns) == len(first.patterns)
    except Exception:  # a model of one length
        follow = True
    for one, flipped in zip(first.patterns, turned.patterns, strict=False):
        if one.weights.shape != flipped.weights.shape or not torch.allclose(one.weights.flip(0), flipped.weights, atol=1e-5):
            raise InputError(
                f"the attention of {one.path or type(model).__name__} does not have the sequences in its first axis, so its heads"
                " cannot be told apart; arrange its weights as (sequence, head, query, key), or record them with ss.Recorder"
            )
    if not follow:
        raise InputError(
            f"{len(first.patterns)} tables of {ids.shape[1]} tokens are seen in {type(model).__name__}, and"
            f" {len(shorter.patterns)} of {ids.shape[1] - 2}: a softmax over {ids.shape[1]} features is no attention;"
            " give a probe of another length"
        )
