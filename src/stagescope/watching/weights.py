"""Tensors of files: safetensors without torch, pickles through torch with `weights_only=True` and in no other way."""

import json
import pickle
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open

from stagescope.errors import InputError, printable


class DamagedCheckpoint(InputError):
    """A checkpoint is not whole: a file is cut, missing or no file of its kind."""


_NESTED = ("state_dict", "model_state_dict", "model", "module")
"""Where a training loop puts the weights in what it saves."""
_WIDER = {"F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2"}
_PLAIN = {"F64", "F32", "F16", "I64", "I32", "I16", "I8", "U64", "U32", "U16", "U8", "BOOL", "C64"}


def arrays(files: Iterable[Path], expected: Iterable[str] = ()) -> Iterator[tuple[str, np.ndarray]]:
    """Names and values of all files, one tensor at a time; at the end all expected names must have come."""
    seen: set[str] = set()
    for file in files:
        source = _safe_arrays(file) if file.suffix == ".safetensors" else _loaded_arrays(file)
        for raw, name, value in source:
            _note(seen, raw, file)
            yield name, value
    _complete(seen, expected)


def torch_tensors(files: Iterable[Path], expected: Iterable[str] = ()) -> dict[str, Any]:
    """Names and torch tensors of all files."""
    _torch()
    found: dict[str, Any] = {}
    seen: set[str] = set()
    for file in files:
        if file.suffix == ".safetensors":
            with _safe(file, "pt") as opened:
                raw = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118 (it is no dict)
        else:
            raw = _loaded(file)
        for name in raw:
            _note(seen, name, file)
        found |= {name: raw[old] for old, name in _names(raw).items()}
    _complete(seen, expected)
    return found


def _note(seen: set[str], name: str, file: Path) -> None:
    if name in seen:
        raise DamagedCheckpoint(f"{file}: the tensor {name!r:.120} is in two files of this checkpoint")
    seen.add(name)


def _complete(seen: set[str], expected: Iterable[str]) -> None:
    missing = sorted(set(expected) - seen)
    if missing:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise DamagedCheckpoint(f"the index lists the tensor {missing[0]!r:.120}{more}, which no file holds")


def _names(names: Iterable[str]) -> dict[str, str]:
    """Each name without what compiling and wrapping put before it."""
    found = {name: name.replace("_orig_mod.", "") for name in names}
    if found and all(name.startswith("module.") for name in found.values()):
        found = {old: name.removeprefix("module.") for old, name in found.items()}
    return found if len(set(found.values())) == len(found) else {name: name for name in found}


# safetensors


@contextmanager
def _safe(file: Path, framework: str) -> Iterator[Any]:
    try:
        with safe_open(file, framework) as opened:
            yield opened
    except (SafetensorError, OSError) as error:
        raise DamagedCheckpoint(f"{file} is no whole safetensors file: {printable(str(error))}") from error


def _safe_arrays(file: Path) -> Iterator[tuple[str, str, np.ndarray]]:
    with _safe(file, "np") as opened:
        names = list(opened.keys())
        kinds = {name: opened.get_slice(name).get_dtype() for name in names}
        places = _header(file) if set(kinds.values()) - _PLAIN else {}
        for raw, name in _names(names).items():
            value = opened.get_tensor(raw) if kinds[raw] in _PLAIN else _widened(file, raw, places)
            yield raw, name, value


def _header(file: Path) -> dict[str, Any]:
    """Where each tensor is; the library has checked it. Offsets are made to count from the start of the file."""
    with open(file, "rb") as opened:
        size = int.from_bytes(opened.read(8), "little")
        found = json.loads(opened.read(size))
    found.pop("__metadata__", None)
    return {name: {**each, "start": 8 + size + each["data_offsets"][0]} for name, each in found.items()}


def _widened(file: Path, name: str, places: Mapping[str, Any]) -> np.ndarray:
    """A tensor of a type that NumPy lacks, as float32. bfloat16 is the upper half of a float32."""
    place = places[name]
    kind, shape, (begin, end) = place["dtype"], tuple(place["shape"]), place["data_offsets"]
    data = np.fromfile(file, np.uint8, end - begin, offset=place["start"])
    if kind == "BF16":
        return (data.view("<u2").astype(np.uint32) << 16).view(np.float32).reshape(shape)
    if kind not in _WIDER:
        raise InputError(f"{file}: the tensor {name!r:.120} has the type {kind}, which is not read; convert it to float16")
    import ml_dtypes

    return data.view(getattr(ml_dtypes, _WIDER[kind])).astype(np.float32).reshape(shape)


# pickles


def _torch() -> Any:
    try:
        import torch
    except ImportError as error:
        raise InputError("torch is needed to read this; install it, or convert the checkpoints to safetensors") from error
    return torch


def _loaded_arrays(file: Path) -> Iterator[tuple[str, str, np.ndarray]]:
    torch = _torch()
    raw = _loaded(file)
    for old, name in _names(raw).items():
        value = raw[old].detach()
        try:
            narrow = value.is_floating_point() and value.dtype not in (torch.float64, torch.float32, torch.float16)
            yield old, name, (value.float() if narrow else value).cpu().numpy()
        except (TypeError, RuntimeError) as error:
            raise InputError(f"{file}: the tensor {old!r:.120} is {value.dtype}, {value.layout}, which is not read") from error


def _loaded(file: Path) -> dict[str, Any]:
    """The tensors of a pickle by name, as the module that was saved calls them."""
    torch = _torch()
    with open(file, "rb") as opened:
        archive = opened.read(2) == b"PK"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = torch.load(file, map_location="cpu", weights_only=True, mmap=archive)
    except Exception as error:  # a damaged file raises nearly anything
        raise _refused(file) if _is_refusal(error) else _damaged(file) from error
    tensors = _state(found, torch.Tensor)
    if not tensors:
        raise InputError(f"{file} holds no tensors by name; expected a state_dict, or one under {', '.join(map(repr, _NESTED))}")
    return tensors


def _is_refusal(error: Exception) -> bool:
    """Whether the file is whole and wants more than tensors, as opposed to damaged."""
    return (isinstance(error, pickle.UnpicklingError) and "unsupported" in str(error).lower()) or "TorchScript" in str(error)


def _state(found: Any, kind: type) -> dict[str, Any]:
    """The state_dict in what was saved: itself, or under one of the usual names; Lightning calls the module `model`."""
    lightning = isinstance(found, Mapping) and "pytorch-lightning_version" in found
    for _ in range(3):
        inner = next((found[key] for key in _NESTED if isinstance(found, Mapping) and isinstance(found.get(key), Mapping)), None)
        if inner is None:
            break
        found = inner
    tensors = {str(name): value for name, value in found.items() if isinstance(value, kind)} if isinstance(found, Mapping) else {}
    if lightning and all(name.startswith("model.") for name in tensors):
        return {name.removeprefix("model."): value for name, value in tensors.items()}
    return tensors


def _damaged(file: Path) -> DamagedCheckpoint:
    return DamagedCheckpoint(f"{file} is no whole file of tensors; it is cut or of another kind")


def _refused(file: Path) -> InputError:
    fresh = file.with_suffix(".safetensors").name
    return InputError(
        f"{file} is a pickle that holds more than tensors; opening it could run code, so it is not opened. If you trust "
        f"who made it, convert it to safetensors, in a process of its own:\n"
        f"    import torch, safetensors.torch; found = torch.load({file.name!r}, map_location='cpu', weights_only=False)\n"
        f"    safetensors.torch.save_file({{k: v.clone() for k, v in found['state_dict'].items()}}, {fresh!r})\n"
        f"where 'state_dict' is the name that the weights have in it, and {fresh!r} is read in place of the pickle"
    )
