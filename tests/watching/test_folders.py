"""Checkpoints of a folder: names, numbers, weights of every form, and what is never opened."""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file
from safetensors.torch import save_file as save_torch

from stagescope.core.errors import InputError
from stagescope.watching.folders import DamagedCheckpoint, checkpoints, listed, number

WEIGHTS = {"a.weight": np.arange(6, dtype=np.float32).reshape(2, 3), "b": np.array(7, dtype=np.int64)}
TENSORS = {name: torch.from_numpy(value.copy()) for name, value in WEIGHTS.items()}


class Trap:
    """A pickle that would make a file if it were opened."""

    def __reduce__(self):
        return Path.touch, (Path("opened"),)


def put(path: Path, weights=WEIGHTS) -> Path:
    path.mkdir(parents=True)
    save_file(weights, path / "model.safetensors")
    return path


def assert_same(found, expected=WEIGHTS):
    found = dict(found)
    assert sorted(found) == sorted(expected)
    for name, value in expected.items():
        np.testing.assert_array_equal(np.asarray(found[name]), value, strict=True)


# names


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("checkpoint-500", 500),
        ("step1000", 1000),
        ("global_step1000", 1000),
        ("stage1-step101000-tokens424B", 101000),
        ("epoch=3-step=1500.ckpt", 1500),
        ("iter_0001000", 1000),
        ("ckpt_200.pt", 200),
        ("model_iter100.pth", 100),
        ("step_0.safetensors", 0),
        ("00750.pt", 750),
        ("epoch-12", 12),
        ("last.ckpt", None),
        ("stepping", None),
        ("misstep7", None),
        ("model.safetensors", None),
        ("v2", None),
    ],
)
def test_the_number_of_a_name(name, expected):
    assert number(name) == expected


def test_they_are_sorted_by_number(tmp_path):
    for step in (1000, 9, 200, 10):
        put(tmp_path / f"step{step}")
    for other in (
        "optimizer-5.pt",
        "rng_state_3.pth",
        "scheduler_2.pt",
        "step7.json",
        ".step3",
        "model-00001-of-00002.safetensors",
    ):
        (tmp_path / other).write_text("never opened")
    assert [each.step for each in checkpoints(tmp_path)] == [9, 10, 200, 1000]
    assert [each.name for each in checkpoints(tmp_path)] == ["step9", "step10", "step200", "step1000"]


def test_the_state_of_a_trainer_wins(tmp_path):
    for name, step in (("checkpoint-1", 5000), ("checkpoint-2", 100)):
        (put(tmp_path / name) / "trainer_state.json").write_text(json.dumps({"global_step": step}))
    put(tmp_path / "checkpoint-300")
    (put(tmp_path / "checkpoint-400") / "trainer_state.json").write_text('{"global_st')
    assert [(each.step, each.name[11:]) for each in checkpoints(tmp_path)] == [
        (100, "2"),
        (300, "300"),
        (400, "400"),
        (5000, "1"),
    ]


def test_two_of_one_step(tmp_path):
    put(tmp_path / "step5")
    put(tmp_path / "checkpoint-5")
    with pytest.raises(InputError, match="'checkpoint-5' and 'step5' are both of step 5"):
        checkpoints(tmp_path)
    assert len(listed(tmp_path)) == 2


def test_a_folder_without_checkpoints(tmp_path):
    with pytest.raises(InputError, match="holds no checkpoints"):
        checkpoints(tmp_path)
    with pytest.raises(InputError, match="is one checkpoint"):
        checkpoints(put(tmp_path / "step1"))
    with pytest.raises(InputError, match="missing"):
        checkpoints(tmp_path / "nowhere")
    with pytest.raises(InputError, match="no folder"):
        checkpoints(tmp_path / "step1" / "model.safetensors")


# weights


def saved(folder: Path, form: str) -> None:
    """The weights as one checkpoint of step 3 in some form."""
    prefixed = {f"model.{name}": value for name, value in TENSORS.items()}
    compiled = {f"module._orig_mod.{name}": value for name, value in TENSORS.items()}
    lightning = {"pytorch-lightning_version": "2.6", "state_dict": prefixed, "epoch": 1, "optimizer_states": []}
    files = {
        "step3.pt": TENSORS,
        "ckpt_3.pth": {"model": TENSORS, "iter_num": 3},
        "checkpoint-3.bin": {"model_state_dict": TENSORS, "optimizer": {"state": {0: torch.ones(2)}}},
        "epoch=1-step=3.ckpt": lightning,
        "iter_3.pt": {"state": 1, "state_dict": {"model": TENSORS}},
        "model_3.pt": compiled,
    }
    if form in files:
        torch.save(files[form], folder / form)
    elif form == "step3.safetensors":
        save_file(WEIGHTS, folder / form)
    elif form == "old.pt":
        torch.save(TENSORS, folder / "step3.pt", _use_new_zipfile_serialization=False)
    else:
        shards(folder / "step3", "index" in form, "pytorch_model" if "bin" in form else "model")


def shards(folder: Path, index: bool, stem: str = "model") -> Path:
    folder.mkdir()
    places = {}
    suffix = "bin" if stem == "pytorch_model" else "safetensors"
    for n, (name, value) in enumerate(TENSORS.items(), 1):
        places[name] = f"{stem}-{n:05d}-of-00002.{suffix}"
        (torch.save if suffix == "bin" else save_torch)({name: value}, folder / places[name])
    if index:
        (folder / f"{stem}.{suffix}.index.json").write_text(json.dumps({"metadata": {}, "weight_map": places}))
    return folder


FORMS = (
    "step3.pt",
    "ckpt_3.pth",
    "checkpoint-3.bin",
    "epoch=1-step=3.ckpt",
    "iter_3.pt",
    "model_3.pt",
    "step3.safetensors",
    "old.pt",
    "shards with index",
    "shards alone",
    "shards with index, bin",
)


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_weights(tmp_path, form):
    saved(tmp_path, form)
    (found,) = checkpoints(tmp_path)
    assert found.step == 3
    assert_same(found.tensors())
    assert_same(found.state_dict())
    assert all(isinstance(value, torch.Tensor) for value in found.state_dict().values())


def test_a_folder_of_hugging_face_never_opens_what_is_no_weights(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "checkpoint-3"
    folder.mkdir()
    for name in ("training_args.bin", "optimizer.pt", "scheduler.pt", "rng_state.pth", "rng_state_0.pth", "scaler.pt"):
        torch.save(Trap(), folder / name)
    torch.save(TENSORS, folder / "pytorch_model.bin")
    (found,) = checkpoints(tmp_path)
    assert_same(found.tensors())
    (folder / "pytorch_model.bin").unlink()
    with pytest.raises(DamagedCheckpoint, match="no weights"):
        list(found.tensors())
    assert not Path("opened").exists()


def test_narrow_types_are_widened(tmp_path):
    values = torch.tensor([[1.5, -2.0, float("nan")], [2.0**100, float("-inf"), 0.0]])
    narrow = {kind: values.to(getattr(torch, kind)) for kind in ("bfloat16", "float16", "float8_e4m3fn", "float8_e5m2")}
    save_torch(narrow | {"empty": torch.zeros(0, 3)}, tmp_path / "step1.safetensors")
    torch.save(narrow, tmp_path / "step2.pt")
    safe, pickled = (dict(each.tensors()) for each in checkpoints(tmp_path))
    for kind, value in narrow.items():
        for found in (safe[kind], pickled[kind]):
            np.testing.assert_array_equal(found.astype(np.float32), value.float().numpy())
    assert safe["empty"].shape == (0, 3)
    assert checkpoints(tmp_path)[0].state_dict()["bfloat16"].dtype == torch.bfloat16


def test_a_converted_file_stands_for_its_pickle(tmp_path):
    torch.save(Trap(), tmp_path / "step3.pt")
    save_file(WEIGHTS, tmp_path / "step3.safetensors")
    (found,) = checkpoints(tmp_path)
    assert_same(found.tensors())


# refusals


@pytest.mark.parametrize(
    "value", [Trap(), {"state_dict": TENSORS, "arguments": argparse.Namespace(lr=1)}], ids=["trap", "objects"]
)
@pytest.mark.parametrize("old", [False, True])
def test_a_pickle_of_objects_is_refused_with_the_safe_way(tmp_path, monkeypatch, value, old):
    monkeypatch.chdir(tmp_path)
    torch.save(value, tmp_path / "step3.pt", _use_new_zipfile_serialization=not old)
    (found,) = checkpoints(tmp_path)
    for read in (lambda: list(found.tensors()), found.state_dict):
        with pytest.raises(InputError, match="convert it to safetensors") as refusal:
            read()
        assert not isinstance(refusal.value, DamagedCheckpoint)
    assert not Path("opened").exists()
    if isinstance(value, dict):  # the two lines of the sentence do what they should
        lines = [line.strip() for line in str(refusal.value).splitlines() if line.startswith("    ")]
        assert len(lines) == 2
        exec("\n".join(lines), {})
        assert_same(checkpoints(tmp_path)[0].tensors())


@pytest.mark.parametrize("name", ["step3.safetensors", "step3.pt", "old.pt"])
@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.99])
def test_a_cut_file_is_damaged(tmp_path, name, share):
    saved(tmp_path, name)
    (found,) = checkpoints(tmp_path)
    data = found.path.read_bytes()
    found.path.write_bytes(data[: int(share * len(data))])
    for read in (lambda: list(found.tensors()), found.state_dict):
        with pytest.raises(DamagedCheckpoint, match=r"step3.* whole"):
            read()


def test_missing_shards_and_tensors_are_damage(tmp_path):
    indexed, alone = shards(tmp_path / "step1", True), shards(tmp_path / "step2", False)
    for folder in (indexed, alone):
        (folder / "model-00001-of-00002.safetensors").unlink()
    first, second = checkpoints(tmp_path)
    with pytest.raises(DamagedCheckpoint, match=r"00001-of-00002\.safetensors is missing"):
        list(first.tensors())
    with pytest.raises(DamagedCheckpoint, match="shard 1 of 2 is missing"):
        list(second.tensors())
    save_file({"other": np.zeros(2)}, indexed / "model-00001-of-00002.safetensors")
    with pytest.raises(DamagedCheckpoint, match=r"lists the tensor 'a.weight'"):
        list(first.tensors())
    save_file(WEIGHTS, indexed / "model-00001-of-00002.safetensors")
    with pytest.raises(DamagedCheckpoint, match="in two files"):
        list(first.tensors())


@pytest.mark.parametrize(
    "place", ["../secret.safetensors", "/etc/passwd", "deeper/x.safetensors", "..", "training_args.bin", "x.json"]
)
def test_an_index_names_files_of_its_folder_alone(tmp_path, place):
    save_file({"secret": np.ones(3)}, tmp_path / "secret.safetensors")
    (tmp_path / "runs").mkdir()
    folder = shards(tmp_path / "runs" / "step1", True)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"secret": place}}))
    (found,) = checkpoints(tmp_path / "runs")
    with pytest.raises(InputError, match="not opened"):
        list(found.tensors())


def test_a_link_that_leaves_the_folder_is_refused(tmp_path):
    outside, runs = put(tmp_path / "outside"), tmp_path / "runs"
    put(runs / "step1")
    (runs / "step2").mkdir()
    (runs / "step2" / "model.safetensors").symlink_to(outside / "model.safetensors")
    found = checkpoints(runs)
    with pytest.raises(InputError, match="leaves"):
        list(found[1].tensors())
    (runs / "step3").symlink_to(outside)
    with pytest.raises(InputError, match="leaves"):
        checkpoints(runs)
    (runs / "step3").unlink()
    (runs / "step3").symlink_to(runs / "step1")
    assert_same(checkpoints(runs)[2].tensors())
    (runs / "step4").symlink_to(runs / "gone")
    with pytest.raises(DamagedCheckpoint, match="missing"):
        list(checkpoints(runs)[3].tensors())


def test_nothing_but_regular_files_is_opened(tmp_path):
    os.mkfifo(tmp_path / "step1.pt")
    with pytest.raises(InputError, match="no regular file"):
        checkpoints(tmp_path)


def test_several_files_that_could_be_the_weights(tmp_path):
    (tmp_path / "step1").mkdir()
    for name in ("generator.pt", "critic.pt"):
        torch.save(TENSORS, tmp_path / "step1" / name)
    with pytest.raises(InputError, match=r"critic.pt, generator.pt"):
        list(checkpoints(tmp_path)[0].tensors())


@pytest.mark.parametrize("value", [torch.ones(3), [1, 2], {"epoch": 3}, {"model": {"layers": 3}}], ids=str)
def test_a_file_without_named_tensors(tmp_path, value):
    torch.save(value, tmp_path / "step1.pt")
    with pytest.raises(InputError, match="no tensors by name"):
        list(checkpoints(tmp_path)[0].tensors())


def test_names_of_tensors_cannot_steer_a_terminal(tmp_path):
    folder = tmp_path / "step1"
    folder.mkdir()
    for n in (1, 2):
        save_file({"\x1b[2Jgone": np.ones(2)}, folder / f"model-{n:05d}-of-00002.safetensors")
    with pytest.raises(DamagedCheckpoint) as error:
        list(checkpoints(tmp_path)[0].tensors())
    assert "\x1b" not in str(error.value)


def test_safetensors_need_no_torch(tmp_path):
    put(tmp_path / "step1")
    code = (
        "import sys; sys.modules['torch'] = None; from stagescope.watching.folders import checkpoints\n"
        f"print(sorted(dict(checkpoints({str(tmp_path)!r})[0].tensors())))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['a.weight', 'b']"
