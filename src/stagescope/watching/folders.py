"""The checkpoints of a folder: found by their names, sorted by their numbers, read without running anything that is stored.

A folder may come from somebody else. No link out of it is followed, nothing but regular files is opened, and of pickles only
tensors are read. Optimiser states, random states and training arguments are never opened. Safetensors are read without torch,
pickles through torch with `weights_only=True` and in no other way.
"""

import json
import os
import pickle
import re
import stat
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open

from stagescope.core.errors import InputError, printable
from stagescope.core.spec import Json


class DamagedCheckpoint(InputError):
    """A checkpoint is not whole: a file is cut, missing or no file of its kind."""


_NESTED = ("state_dict", "model_state_dict", "model", "module")
"""Where a training loop puts the weights in what it saves."""
_WIDER = {"F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2"}
_PLAIN = {"F64", "F32", "F16", "I64", "I32", "I16", "I8", "U64", "U32", "U16", "U8", "BOOL", "C64"}


def arrays(files: Iterable[Path], expected: Iterable[str] = ()) -> Iterator[tuple[str, np.ndarray]]:
    """Names and values of all files, one tensor at a time; at the end all expected names must have come."""
    names: set[str] = set()
    for file in files:
        source = _safe_arrays(file) if file.suffix == ".safetensors" else _loaded_arrays(file)
        for raw, name, value in source:
            _note(names, raw, file)
            yield name, value
    _complete(names, expected)


def torch_tensors(files: Iterable[Path], expected: Iterable[str] = ()) -> Json:
    """Names and torch tensors of all files."""
    _torch()
    tensors: Json = {}
    names: set[str] = set()
    for file in files:
        if file.suffix == ".safetensors":
            with _safe(file, "pt") as reader:
                raw = {name: reader.get_tensor(name) for name in reader.keys()}  # noqa: SIM118 (it is no dict)
        else:
            raw = _loaded(file)
        for name in raw:
            _note(names, name, file)
        tensors |= {name: raw[old] for old, name in _names(raw).items()}
    _complete(names, expected)
    return tensors


def _note(names: set[str], name: str, file: Path) -> None:
    if name in names:
        raise DamagedCheckpoint(f"{file}: the tensor {name!r:.120} is in two files of this checkpoint")
    names.add(name)


def _complete(names: set[str], expected: Iterable[str]) -> None:
    absent = sorted(set(expected) - names)
    if absent:
        suffix = f" and {len(absent) - 1} more" if len(absent) > 1 else ""
        raise DamagedCheckpoint(f"the index lists the tensor {absent[0]!r:.120}{suffix}, which no file holds")


def _names(names: Iterable[str]) -> dict[str, str]:
    """Each name without what compiling and wrapping put before it."""
    short_names = {name: name.replace("_orig_mod.", "") for name in names}
    if short_names and all(name.startswith("module.") for name in short_names.values()):
        short_names = {old: name.removeprefix("module.") for old, name in short_names.items()}
    return short_names if len(set(short_names.values())) == len(short_names) else {name: name for name in short_names}


# safetensors


@contextmanager
def _safe(file: Path, framework: str) -> Iterator[Any]:
    try:
        with safe_open(file, framework) as reader:
            yield reader
    except (SafetensorError, OSError) as error:
        raise DamagedCheckpoint(f"{file} is no whole safetensors file: {printable(str(error))}") from error


def _safe_arrays(file: Path) -> Iterator[tuple[str, str, np.ndarray]]:
    with _safe(file, "np") as reader:
        names = list(reader.keys())
        kinds = {name: reader.get_slice(name).get_dtype() for name in names}
        places = _header(file) if set(kinds.values()) - _PLAIN else {}
        for raw, name in _names(names).items():
            value = reader.get_tensor(raw) if kinds[raw] in _PLAIN else _widened(file, raw, places)
            yield raw, name, value


def _header(file: Path) -> Json:
    """Where each tensor is; the library has checked it. Offsets are made to count from the start of the file."""
    with open(file, "rb") as stream:
        size = int.from_bytes(stream.read(8), "little")
        header = json.loads(stream.read(size))
    header.pop("__metadata__", None)
    return {name: {**entry, "start": 8 + size + entry["data_offsets"][0]} for name, entry in header.items()}


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


def _loaded(file: Path) -> Json:
    """The tensors of a pickle by name, as the module that was saved calls them."""
    torch = _torch()
    with open(file, "rb") as stream:
        archive = stream.read(2) == b"PK"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            loaded = torch.load(file, map_location="cpu", weights_only=True, mmap=archive)
    except Exception as error:  # a damaged file raises nearly anything
        # the file is whole and wants more than tensors, as opposed to damaged
        refusal = isinstance(error, pickle.UnpicklingError) and "unsupported" in str(error).lower()
        if refusal or "TorchScript" in str(error):
            fresh = file.with_suffix(".safetensors").name
            raise InputError(
                f"{file} is a pickle that holds more than tensors; opening it could run code, so it is not opened. If you trust "
                f"who made it, convert it to safetensors, in a process of its own:\n"
                f"    import torch, safetensors.torch; found = torch.load({file.name!r}, map_location='cpu',"
                " weights_only=False)\n"
                f"    safetensors.torch.save_file({{k: v.clone() for k, v in found['state_dict'].items()}}, {fresh!r})\n"
                f"where 'state_dict' is the name that the weights have in it, and {fresh!r} is read in place of the pickle"
            ) from error
        raise DamagedCheckpoint(f"{file} is no whole file of tensors; it is cut or of another kind") from error
    tensors = _state(loaded, torch.Tensor)
    if not tensors:
        raise InputError(f"{file} holds no tensors by name; expected a state_dict, or one under {', '.join(map(repr, _NESTED))}")
    return tensors


def _state(state: Any, kind: type) -> Json:
    """The state_dict in what was saved: itself, or under one of the usual names; Lightning calls the module `model`."""
    lightning = isinstance(state, Mapping) and "pytorch-lightning_version" in state
    for _ in range(3):
        inner = next((state[key] for key in _NESTED if isinstance(state, Mapping) and isinstance(state.get(key), Mapping)), None)
        if inner is None:
            break
        state = inner
    tensors = {str(name): value for name, value in state.items() if isinstance(value, kind)} if isinstance(state, Mapping) else {}
    if lightning and all(name.startswith("model.") for name in tensors):
        return {name.removeprefix("model."): value for name, value in tensors.items()}
    return tensors


SUFFIXES = (".safetensors", ".pt", ".pth", ".ckpt", ".bin")
"""Files that can hold weights, the safe kind first: of files with one stem the first kind is read."""
TRAINER = "trainer_state.json"
_NUMBERS = [
    re.compile(rf"(?:^|[^a-z])(?:{words})[-_=]?(\d{{1,18}})(?!\d)", re.IGNORECASE)
    for words in ("global_?step|steps?", "checkpoint|ckpt|iter|iteration", "epoch", "model")
]
"""How names give the number, the surest first: `epoch=3-step=1500` is step 1500."""
_NEVER = re.compile(r"(?:^|[^a-z])(?:training_args|optim|rng|random_states?|scheduler|scaler|trainer_state)", re.IGNORECASE)
"""Files that hold no weights, and that are often pickles of objects."""
_SHARD = re.compile(r"(.*?)-?(\d{5,6})-of-(\d{5,6})")
_LIMIT = 2**28
"""Bytes of a JSON file that are read: a trainer's state of a long run has some tens of megabytes."""


@dataclass(frozen=True)
class Checkpoint:
    """One checkpoint of a folder: its step, the file or folder that holds it, and the name of that."""

    step: int
    path: Path
    name: str

    def tensors(self) -> Iterator[tuple[str, np.ndarray]]:
        """Names and values, one tensor at a time; bfloat16 and float8 are widened to float32."""
        return arrays(*self._files())

    def state_dict(self) -> Json:
        """Names and torch tensors as they are stored, for `model.load_state_dict`."""
        return torch_tensors(*self._files())

    def _files(self) -> tuple[list[Path], set[str]]:
        """The files that hold the weights, each a regular file inside the folder, and the tensors that an index lists."""
        root = self.path.parent
        if not self.path.is_dir():
            return [_inside(self.path, root)], set()
        names, tensors = _weights(self.path, root)
        return [_inside(self.path / name, root) for name in names], tensors


def checkpoints(folder: str | Path) -> list[Checkpoint]:
    """The checkpoints of a folder in the order of their steps. No two may have the same step."""
    checkpoint_list = listed(folder)
    for first, second in pairwise(checkpoint_list):
        if first.step == second.step:
            raise InputError(
                f"{folder}: {first.name!r} and {second.name!r} are both of step {first.step}; move one of them elsewhere, "
                "so that the folder holds one checkpoint for each step"
            )
    return checkpoint_list


def listed(folder: str | Path) -> list[Checkpoint]:
    """The checkpoints of a folder in the order of their steps, also where two have the same."""
    root = Path(folder)
    if not root.is_dir():
        raise InputError(f"{folder} is {'no folder' if root.exists() else 'missing'}; give the folder that holds the checkpoints")
    named: dict[str, Path] = {}
    candidates = filter(_is_candidate, (root / name for name in _entries(root)))
    for path in sorted(candidates, key=lambda path: (_kind(path), path.name)):
        with suppress(DamagedCheckpoint):  # a link to nothing is found when the checkpoint is read
            _inside(path, root, folder=True)
        named.setdefault(path.name if path.is_dir() else f"{_stem(path.name)}.*", path)  # 5.safetensors stands for 5.pt
    if not named:
        examples = "checkpoint-500, step1000, global_step1000, epoch=3-step=1500.ckpt, iter_0001000, ckpt_200.pt"
        if any((root / name).is_file() for name in ("model.safetensors", "model.safetensors.index.json", "pytorch_model.bin")):
            raise InputError(f"{root} is one checkpoint; give the folder that holds several, named such as {examples}")
        raise InputError(f"{root} holds no checkpoints; expected folders or files with names such as {examples}")
    checkpoint_list = []
    for path in named.values():
        # what a trainer's state says; the number of the name where there is none, or none that can be read
        step = None
        with suppress(DamagedCheckpoint):
            step = trainer_step(path)
        checkpoint_list.append(Checkpoint(step if step is not None else number(path.name) or 0, path, path.name))
    return sorted(checkpoint_list, key=lambda checkpoint: (checkpoint.step, number(checkpoint.name) or 0, checkpoint.name))


def number(name: str) -> int | None:
    """The number that the name of a checkpoint gives; None where it gives none."""
    stem = _stem(name)
    if re.fullmatch(r"\d{1,18}", stem):
        return int(stem)
    digits = next((match for pattern in _NUMBERS if (match := pattern.search(stem))), None)
    return int(digits[1]) if digits else None


def is_weights(name: str) -> bool:
    """Whether a file holds weights by its name."""
    return name.endswith(SUFFIXES) and not _NEVER.search(name.rsplit("/", 1)[-1])


def trainer_step(path: Path) -> int | None:
    """`global_step` of a trainer's state in a checkpoint; None where there is no such file."""
    state = _trainer_state(path)
    if state is None:
        return None
    step = state.get("global_step")
    if not isinstance(step, int) or isinstance(step, bool) or not 0 <= step < 2**63:
        raise DamagedCheckpoint(f"{path / TRAINER} has no global_step; the file is cut or comes from elsewhere")
    return step


def _trainer_state(path: Path) -> Json | None:
    if path.is_dir() and os.path.lexists(path / TRAINER):
        return _json(_inside(path / TRAINER, path.parent))
    return None


def training_log(checkpoint: Checkpoint) -> Callable[[int], dict[str, float]]:
    """What a trainer logged: from a step to training loss, learning rate and gradient norm, the last ones up to it."""
    names = {"loss": "train_loss", "learning_rate": "learning_rate", "grad_norm": "gradient_norm"}
    rows = []
    with suppress(DamagedCheckpoint):
        rows = (_trainer_state(checkpoint.path) or {}).get("log_history", [])
    good = [row for row in rows if isinstance(row, dict) and isinstance(row.get("step"), int)]

    def logged(step: int) -> dict[str, float]:
        values: dict[str, float] = {}
        for row in sorted((row for row in good if row["step"] <= step), key=lambda row: row["step"]):
            values |= {names[key]: float(value) for key, value in row.items() if key in names and isinstance(value, int | float)}
        return values

    return logged


def _is_candidate(path: Path) -> bool:
    """Whether a path is a checkpoint by its name and kind: folders, files that can hold weights, and links to nothing."""
    kind = path.is_dir() or path.name.endswith(SUFFIXES) or not path.exists()
    return kind and not _SHARD.match(path.name) and number(path.name) is not None


def _entries(folder: Path) -> list[str]:
    """Names in a folder, but for hidden ones and those that hold no weights."""
    try:
        return [name for name in os.listdir(folder) if not name.startswith(".") and not _NEVER.search(name)]
    except OSError as error:
        raise InputError(f"{folder} cannot be read: {error.strerror or error}") from error


def _kind(path: Path) -> int:
    """Folders, then files in the order of `SUFFIXES`."""
    return -1 if path.is_dir() else next((n for n, suffix in enumerate(SUFFIXES) if path.name.endswith(suffix)), -1)


def _stem(name: str) -> str:
    return next((name.removesuffix(suffix) for suffix in SUFFIXES if name.endswith(suffix)), name)


def _inside(path: Path, root: Path, folder: bool = False) -> Path:
    """The path, if it is a regular file, or a folder where this is asked for, and no link leads out of the root."""
    try:
        real = path.resolve(strict=True)
        status = real.stat()
    except (OSError, RuntimeError) as error:
        raise DamagedCheckpoint(f"{path} is missing: {getattr(error, 'strerror', None) or error}") from error
    if not real.is_relative_to(root.resolve()):
        raise InputError(
            f"{path} is a link that leaves {root}, which is not followed; put a copy of what it points to in its place"
        )
    if not (stat.S_ISREG(status.st_mode) or (folder and stat.S_ISDIR(status.st_mode))):
        raise InputError(f"{path} is no regular file, and nothing else is opened; remove it")
    if not os.access(real, os.R_OK):
        raise InputError(f"{path} cannot be read: no permission")
    return real


def _weights(path: Path, root: Path) -> tuple[list[str], set[str]]:
    """Names of the files that hold the weights of a folder, safetensors before pickles, and what their index lists."""
    names = sorted(_entries(path))
    for suffix in SUFFIXES:
        main = {".bin": "pytorch_model.bin"}.get(suffix, f"model{suffix}")
        if main in names:
            return [main], set()
        if f"{main}.index.json" in names:
            places = _index(_inside(path / f"{main}.index.json", root))
            return sorted(set(places.values())), set(places)
        if weight_files := [name for name in names if name.endswith(suffix)]:
            return _weight_files(path, weight_files), set()
    raise DamagedCheckpoint(f"{path} holds no weights; expected model.safetensors, its shards, or pytorch_model.bin")


def _weight_files(path: Path, names: list[str]) -> list[str]:
    """All shards of a checkpoint without an index, or its only file."""
    shards = [match for name in names if (match := _SHARD.match(name))]
    if len(names) == 1 and not shards:
        return names
    total = {int(match[3]) for match in shards}
    if len(shards) != len(names) or len(total) != 1 or len({match[1] for match in shards}) != 1:
        raise InputError(f"{path} holds several files that could be the weights: {', '.join(names)}; leave one of them there")
    absent = set(range(1, total.pop() + 1)) - {int(match[2]) for match in shards}
    if absent:
        raise DamagedCheckpoint(f"{path}: shard {min(absent)} of {int(shards[0][3])} is missing")
    return names


def _index(path: Path) -> dict[str, str]:
    """Which file holds which tensor. A file of another folder is refused."""
    places = _json(path).get("weight_map")
    if not isinstance(places, dict) or not places or not all(isinstance(place, str) for place in places.values()):
        raise DamagedCheckpoint(f"{path} has no weight_map; the file is cut or comes from elsewhere")
    for place in set(places.values()):
        if Path(place).name != place or not is_weights(place):
            raise InputError(f"{path} names {place!r:.80}, which is no file of weights in its folder; it is not opened")
    return places


def _json(path: Path) -> Json:
    """The object in a file; an empty one in place of anything else."""
    if path.stat().st_size > _LIMIT:
        raise InputError(f"{path} has {path.stat().st_size:,} bytes, more than a file of its kind; it is not read")
    try:
        content = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise DamagedCheckpoint(f"{path} is no JSON; the file is cut or comes from elsewhere") from error
    return content if isinstance(content, dict) else {}
