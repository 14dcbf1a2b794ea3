"""The transformer of scan and snap's figures on text: one layer, one head, LayerNorm after each part [SnS:text-transformer]."""

from functools import cached_property
from typing import Any, Literal, Self

import numpy as np
from pydantic import Field as Limits
from pydantic import model_validator

from stagescope.keys import key
from stagescope.memory import require_parameters
from stagescope.spec import Described


class TextTransformer(Described):
    """x = sqrt(d) E[token] (+ place); h = norm(x + A x V O); logits = norm(h + MLP(h)) U + u [SnS:text-transformer].

    A is causal attention, softmax(x Q (x K)^T/sqrt(d)) over the positions up to each one; the MLP is ReLU with biases. Places
    are fixed sines and cosines, or none.

    Args:
        vocab: number of tokens.
        length: positions.
        width: of the stream.
        hidden: width of the MLP.
        places: "sinusoidal" or "none".

    Examples:
        >>> text = ss.TextTransformer(vocab=20, length=8, width=4, hidden=8)
        >>> text.init(seed=0)["E"].shape
        (20, 4)
    """

    vocab: int = Limits(ge=2)
    length: int = Limits(default=35, ge=2)
    width: int = Limits(default=64, ge=1)
    hidden: int = Limits(default=128, ge=1)
    places: Literal["sinusoidal", "none"] = "none"

    @model_validator(mode="after")
    def _small(self) -> Self:
        sizes = {"vocab": self.vocab, "width": self.width, "hidden": self.hidden}
        require_parameters(self.shapes, "take a smaller --width, --hidden or --vocab", **sizes)
        return self

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        wide, mlp = self.width, self.hidden
        found: dict[str, tuple[int, ...]] = {"E": (self.vocab, wide), **dict.fromkeys("QKVO", (wide, wide))}
        found |= {"M": (wide, mlp), "m": (mlp,), "N": (mlp, wide), "n": (wide,)}
        found |= {f"{kind}_{part}": (wide,) for part in ("head", "mlp") for kind in ("gain", "shift")}
        return found | {"U": (wide, self.vocab), "u": (self.vocab,)}

    @property
    def axes(self) -> dict[str, tuple[str, ...]]:
        named = {"E": ("token", "stream"), "U": ("stream", "output"), "u": ("output",), "O": ("inner", "stream")}
        named |= dict.fromkeys("QKV", ("stream", "inner")) | {"M": ("stream", "unit"), "m": ("unit",), "N": ("unit", "stream")}
        return {name: named.get(name, ("stream",)) for name in self.shapes}

    def init(self, seed: int = 0) -> dict[str, np.ndarray]:
        """Embeddings and output uniform in +-0.1, as in the language-modelling example that the paper's code starts from; other
        matrices uniform in +-sqrt(6/(inputs + outputs)); biases 0, gains 1.
        """
        found = {}
        for name, shape in self.shapes.items():
            if len(shape) > 1:
                reach = 0.1 if name in "EU" else np.sqrt(6 / sum(shape))
                found[name] = reach * key(seed, "init", name).uniform(-1.0, 1.0, size=shape)
            else:
                found[name] = np.ones(shape) if name.startswith("gain") else np.zeros(shape)
        return found

    @cached_property
    def fixed_places(self) -> np.ndarray:
        """Sines and cosines of position/10000^(2i/d) (length, width)."""
        half = (self.width + 1) // 2
        angles = np.arange(self.length)[:, None] / 10000.0 ** (np.arange(half) / half)
        return np.concatenate([np.sin(angles), np.cos(angles)], axis=1)[:, : self.width]

    def forward(self, params: Any, tokens: Any) -> tuple[Any, Any]:
        """Logits (B, T, vocab) and attention (B, T, T) on tokens (B, T), traceable by JAX."""
        from stagescope.autodiff import jax, jnp

        x = np.sqrt(self.width).astype(params["E"].dtype) * params["E"][tokens]
        if self.places == "sinusoidal":
            x = x + jnp.asarray(self.fixed_places[: tokens.shape[1]], x.dtype)
        scores = jnp.einsum("bqi,bsi->bqs", x @ params["Q"], x @ params["K"]) / np.sqrt(self.width).astype(x.dtype)
        past = np.tri(tokens.shape[1], dtype=bool)
        attention = jax.nn.softmax(jnp.where(past, scores, -jnp.inf), axis=-1)
        h = _norm(params, "head", x + (attention @ (x @ params["V"])) @ params["O"])
        mlp = jax.nn.relu(h @ params["M"] + params["m"]) @ params["N"] + params["n"]
        return _norm(params, "mlp", h + mlp) @ params["U"] + params["u"], attention


def _norm(params: Any, part: str, x: Any) -> Any:
    from stagescope.autodiff import jax, jnp

    centred = x - jnp.mean(x, axis=-1, keepdims=True)
    size = jax.lax.rsqrt(jnp.mean(centred**2, axis=-1, keepdims=True) + 1e-5)  # added to the variance, as in PyTorch
    return centred * size * params[f"gain_{part}"] + params[f"shift_{part}"]
