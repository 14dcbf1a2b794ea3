"""Checkpoints of a training as a run: each is loaded into the model and looked at on the probe, as a live training is."""

from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

from stagescope.core.errors import InputError, message, printable
from stagescope.core.own import imported, member, parts
from stagescope.core.progress import progress_for
from stagescope.runs.recorder import Recorder
from stagescope.runs.run import Run
from stagescope.watching.capture import Forward
from stagescope.watching.folders import Checkpoint, checkpoints, training_log
from stagescope.watching.observer import SHOWN, Observer
from stagescope.watching.pytorch import nn
from stagescope.watching.watch import GAINS, frame_arrays

_PREFIXES = ("module.", "_orig_mod.", "model.")


def read_checkpoints(
    folder: str | Path,
    *,
    probe: Any,
    out: str | Path | None = None,
    model: nn.Module | Callable[[], nn.Module] | str | None = None,
    tokenizer: Any = None,
    layers: Collection[int | str] | None = None,
    heads: Collection[int] | None = None,
    blocks: Sequence[str] = (),
    patterns: int = SHOWN,
    forward: Forward | None = None,
    overwrite: bool = False,
    progress: bool | None = False,
) -> Run:
    """A run from a folder of checkpoints: the same arrays as those of `ss.watch`, one frame a checkpoint.

    Args:
        folder: holds checkpoints such as checkpoint-500, step1000 or ckpt_200.pt. Nothing that is stored there is executed.
        probe: what the model is looked at on, as for `ss.watch`.
        out: folder of the run; without it the run is kept in memory.
        model: the model, a function that makes it, or "module:factory"; without it, the architecture of transformers that the
            config.json of the checkpoints names. Code that comes with a checkpoint is never run.
        tokenizer: as for `ss.watch`; without it, tokenizer.json of the checkpoints.
        layers, heads, blocks, patterns, forward, overwrite: as for `ss.watch`.
        progress: a bar over the checkpoints; None shows it on a terminal.

    Returns:
        The run.

    Examples:
        >>> Path("saved").mkdir()
        >>> for step in (0, 100):
        ...     torch.save(net.state_dict(), f"saved/step{step}.pt")
        >>> ss.read_checkpoints("saved", probe=probe, model=net).step.tolist()
        [0, 100]
    """
    saved = checkpoints(folder)
    if len(saved) < 2:
        raise InputError(f"{folder} has one checkpoint, {printable(saved[0].name)}: a run needs two or more of different steps")
    network = _model(model, saved)
    _load(network, saved[0])
    coder = tokenizer if tokenizer is not None else _file_of(saved, "tokenizer.json")
    observer = Observer(
        network, probe, tokenizer=coder, layers=layers, heads=heads, blocks=blocks, patterns=patterns, forward=forward
    )
    source = observer.source(None, "checkpoints") | {"checkpoints": [printable(checkpoint.name) for checkpoint in saved]}
    log = training_log(saved[-1])
    recorder = Recorder(out, axes=observer.axes, source=source, blocks=tuple(observer.blocks), overwrite=overwrite)
    with recorder, progress_for(progress) as bar:
        for checkpoint in bar.each(saved, "checkpoints", "checkpoints"):
            _load(network, checkpoint)
            logged = log(checkpoint.step)
            training = {name: logged.get(name, float("nan")) for name in ("train_loss", "learning_rate", "gradient_norm")}
            recorder.record(checkpoint.step, **frame_arrays(observer.frame(GAINS) | training))
    return recorder.run


def _file_of(saved: list[Checkpoint], name: str) -> Path | None:
    """A file of the checkpoints: in the last one, or beside them."""
    places = (saved[-1].path / name, saved[-1].path.parent / name)
    return next((place for place in places if place.is_file()), None)


def _model(model: Any, saved: list[Checkpoint]) -> nn.Module:
    if isinstance(model, str):
        module, name = parts(model, "model", "models:make_gpt")
        model = member(imported(module, "model"), name, (type, type(_model)))
    try:
        network = _from_config(saved) if model is None else model if isinstance(model, nn.Module) else model()
    except InputError:
        raise
    except Exception as error:
        raise InputError(f"the model cannot be made: {type(error).__name__}: {message(error)}") from error
    if not isinstance(network, nn.Module):
        raise InputError(f"the model is of type {type(network).__name__}, not a PyTorch module; give a function that returns one")
    return network


def _from_config(saved: list[Checkpoint]) -> nn.Module:
    """The architecture of transformers that config.json names; its own code, never code of the folder, and no network."""
    place = _file_of(saved, "config.json")
    advice = "give the model: model=..., of the command --model module:factory"
    if place is None:
        raise InputError(f"{saved[-1].path.parent} has no config.json of transformers; {advice}")
    try:
        import transformers
    except ImportError:
        raise InputError(
            f"{place.name} is of transformers, which is not installed; pip install transformers, or {advice}"
        ) from None
    try:
        config = transformers.AutoConfig.from_pretrained(place.parent, local_files_only=True, trust_remote_code=False)
    except Exception as error:
        raise InputError(f"{place} names no model that transformers knows: {message(error).splitlines()[0]}; {advice}") from None
    config._attn_implementation = "eager"  # others may fetch a kernel
    named = (getattr(config, "architectures", None) or ["AutoModelForCausalLM"])[0]
    kind = getattr(transformers, named, None)
    if not (isinstance(kind, type) and issubclass(kind, transformers.PreTrainedModel)):
        kind = transformers.AutoModelForCausalLM
    return kind(config) if issubclass(kind, transformers.PreTrainedModel) else kind.from_config(config, trust_remote_code=False)


def _load(model: nn.Module, checkpoint: Checkpoint) -> None:
    """Put the weights of a checkpoint into a model; each parameter must be there with its shape, or be tied to one that is."""
    tensors = model.state_dict(keep_vars=True)
    weights = stored = checkpoint.state_dict()
    for prefix in _PREFIXES:  # a wrapper's prefix is taken off, or one that the model has is put before
        stripped = {key.removeprefix(prefix): value for key, value in stored.items()}
        prefixed = {f"{prefix}{key}": value for key, value in stored.items()}
        weights = max((weights, stripped, prefixed), key=lambda tried: len(tried.keys() & tensors.keys()))
    name = printable(checkpoint.name)
    for key, value in weights.items():
        if key in tensors and tensors[key].shape != value.shape:
            got, expected = tuple(value.shape), tuple(tensors[key].shape)
            raise InputError(f"{name}: {printable(key)} has shape {got}, the model's has {expected}: it is of another model")
    loaded = {tensors[key].data_ptr() for key in weights if key in tensors}
    parameters = dict(model.named_parameters(remove_duplicate=False))  # buffers such as masks are made by the model itself
    absent = [key for key in tensors if key in parameters and key not in weights and tensors[key].data_ptr() not in loaded]
    if absent:
        raise InputError(
            f"{name} has no {absent[0]} ({len(absent)} of {len(tensors)} tensors are missing): it is of another model"
        )
    model.load_state_dict(weights, strict=False)
