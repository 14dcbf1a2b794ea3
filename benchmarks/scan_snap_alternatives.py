"""What else a user could write for the steps of figure 6: counts on the supports of the classes, in float32, batches ready.

Three layouts of the same loss, each by `jax.lax.scan` over the steps and by `torch.compile`; the benchmark takes the fastest.
  samples   the rows of Y of every sample's class are gathered
  keys      counts are spread over all keys: one large product, mostly with zeros
  classes   samples are sorted by class and padded to the largest one: one small product a class, as the kernel does it
"""

from collections.abc import Callable
from typing import Any

import numpy as np

import stagescope as ss

LAYOUTS = ("samples", "keys", "classes")


def start_of(task: ss.PairwiseSampled) -> dict[str, np.ndarray]:
    """Where all sides begin, as in figure 6."""
    return task.model.init(0, task.process.vocab**-0.5)


def arranged(task: ss.PairwiseSampled, batches: list, layout: str) -> tuple[list[np.ndarray], dict[str, np.ndarray]]:
    """Batches (steps, ...) in a layout, and the tables by class."""
    start, keys = task.kernel_arguments[1], task.kernel_arguments[2]
    many, widest = len(start) - 1, int(np.diff(start).max())
    support = np.zeros((many, widest), dtype=np.int64)
    for n in range(many):
        support[n, : start[n + 1] - start[n]] = keys[start[n] : start[n + 1]]
    tables = {"support": support, "query": task.rows["query"], "target": task.rows["target"]}
    classes = np.stack([np.repeat(np.arange(many), sizes) for sizes, _ in batches])
    counts = np.stack([counts for _, counts in batches]).astype(np.float32)
    if layout == "samples":
        return [classes, counts], tables
    if layout == "keys":
        spread = np.zeros((*classes.shape, len(task.model.keys)), dtype=np.float32)
        np.put_along_axis(spread, support[classes], counts, axis=2)
        return [classes, spread], tables
    most = max(int(sizes.max()) for sizes, _ in batches)
    real = np.zeros((len(batches), many, most), dtype=np.float32)
    sorted_ = np.ones((*real.shape, widest), dtype=np.float32)
    for step, (sizes, own) in enumerate(batches):
        for n, (low, size) in enumerate(zip(np.cumsum(sizes) - sizes, sizes, strict=True)):
            real[step, n, :size], sorted_[step, n, :size] = 1, own[low : low + size]
    return [real, sorted_], tables


def loss(np_: Any, y: Any, z: Any, batch: Any, tables: Any, layout: str, size: int) -> Any:
    """The mean cross-entropy of a batch, in the functions that JAX and PyTorch share."""
    first, counts = batch
    support, query, target = tables["support"], tables["query"], tables["target"]
    if layout == "classes":
        scores, rows, target = z[query[:, None], support][:, None, :], y[support], target[:, None]
    elif layout == "samples":
        scores, rows, target = z[query[first][:, None], support[first]], y[support[first]], target[first]
    else:
        scores, rows, target = z[query[first]], y, target[first]
    shown = np_.where(counts > 0, scores, -1e30)
    v = counts * np_.exp(shown - np_.amax(shown, -1, keepdims=True))
    f = v / np_.sqrt((v * v).sum(-1, keepdims=True))
    logits = (f[:, None, :] @ rows)[:, 0] if layout == "samples" else f @ rows
    top = np_.amax(logits, -1, keepdims=True)
    whole = np_.log(np_.exp(logits - top).sum(-1)) + top[..., 0]
    lost = whole - np_.take_along_axis(logits, target[..., None], -1)[..., 0]
    return (first * lost).sum() / size if layout == "classes" else lost.mean()


def jax_steps(task: ss.PairwiseSampled, batches: list, layout: str, momentum: float) -> Callable[[], np.ndarray]:
    """Final Y, by one compiled scan."""
    import jax
    import jax.numpy as jnp

    given, tables = arranged(task, batches, layout)
    data = [jnp.asarray(each) for each in given]
    tables = {name: jnp.asarray(each) for name, each in tables.items()}

    def step(carry: Any, batch: Any) -> Any:
        params, memory = carry
        slope = jax.grad(lambda p: loss(jnp, p["Y"], p["Z"], batch, tables, layout, task.batch))(params)
        memory = jax.tree.map(lambda m, g: momentum * m + g, memory, slope)
        return (jax.tree.map(lambda p, m: p - m, params, memory), memory), None

    @jax.jit
    def run(params: Any, data: Any) -> Any:
        return jax.lax.scan(step, (params, jax.tree.map(jnp.zeros_like, params)), data)[0][0]

    start = {name: jnp.asarray(value, jnp.float32) for name, value in start_of(task).items()}
    ready = tuple(data)
    return lambda: np.asarray(run(start, ready)["Y"])


class _Torch:
    """The few names that differ."""

    def __init__(self) -> None:
        import torch

        self.exp, self.log, self.sqrt = torch.exp, torch.log, torch.sqrt
        self.where, self.amax = torch.where, lambda x, axis, keepdims: torch.amax(x, axis, keepdim=keepdims)
        self.take_along_axis = torch.take_along_dim


def torch_steps(task: ss.PairwiseSampled, batches: list, layout: str, momentum: float) -> Callable[[], np.ndarray]:
    """Final Y: forward and backward of a step compiled, heavy ball in place."""
    import torch

    torch.set_num_threads(1)
    torch._dynamo.reset()  # each problem is compiled for its own shapes
    given, tables = arranged(task, batches, layout)
    data = list(zip(*(torch.tensor(each) for each in given), strict=True))
    held = {name: torch.tensor(each) for name, each in tables.items()}

    @torch.compile
    def lost(y: Any, z: Any, first: Any, counts: Any) -> Any:
        return loss(_Torch(), y, z, (first, counts), held, layout, task.batch)

    start = start_of(task)

    def steps() -> np.ndarray:
        params = [torch.tensor(start[name], dtype=torch.float32, requires_grad=True) for name in ("Y", "Z")]
        memory = [torch.zeros_like(each) for each in params]
        for batch in data:
            slopes = torch.autograd.grad(lost(*params, *batch), params)
            with torch.no_grad():
                for block, pull, slope in zip(params, memory, slopes, strict=True):
                    block.sub_(pull.mul_(momentum).add_(slope))
        return params[0].detach().numpy()

    return steps
