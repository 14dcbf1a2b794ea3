"""`stagescope audit`: exit codes, the table, JSON, and sentences on what cannot be audited."""

import json
import os

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file


@pytest.fixture
def folder(tmp_path):
    """A random walk of two tensors as six checkpoints."""
    rng = np.random.default_rng(0)
    made = tmp_path / "checkpoints"
    made.mkdir()
    weights = {name: rng.normal(size=(32, 32)) for name in ("first", "second")}
    for step in range(0, 60, 10):
        save_file({name: value.astype(np.float32) for name, value in weights.items()}, made / f"step{step}.safetensors")
        weights = {name: value + 0.1 * rng.normal(size=value.shape) for name, value in weights.items()}
    return made


def copy(folder, source, target):
    (folder / f"step{target}.safetensors").write_bytes((folder / f"step{source}.safetensors").read_bytes())


def test_a_clean_folder(ask, folder):
    assert ask("audit", folder) == (0, "6 checkpoints: nothing found\n", "")
    code, out, _ = ask("audit", folder, "--json")
    assert code == 0
    assert json.loads(out) == {"checkpoints": [f"step{n}.safetensors" for n in range(0, 60, 10)], "findings": [], "notes": []}


def test_a_finding_is_exit_code_one(ask, folder):
    copy(folder, 20, 30)
    code, out, err = ask("audit", folder)
    assert (code, err) == (1, "")
    assert "duplicate" in out
    assert "6 checkpoints: 1 finding" in out
    code, out, _ = ask("audit", folder, "--json")
    (finding,) = json.loads(out)["findings"]
    assert code == 1
    assert finding["checkpoint"] == "step30.safetensors"
    assert finding["kind"] == "duplicate"
    assert finding["facts"]["same_as"] == "step20.safetensors"


def test_hashes_alone_and_besides(ask, folder, tmp_path):
    table = {f"step{n}": {"model.safetensors": f"{min(n, 2):064x}"} for n in range(4)}
    (tmp_path / "hashes.json").write_text(json.dumps(table))
    code, out, _ = ask("audit", "--hashes", tmp_path / "hashes.json", "--json")
    assert code == 1
    assert [each["checkpoint"] for each in json.loads(out)["findings"]] == ["step3"]
    code, out, _ = ask("audit", folder, "--hashes", tmp_path / "hashes.json", "--json")
    assert code == 1
    assert len(json.loads(out)["checkpoints"]) == 10


def test_a_cut_file_is_a_finding_and_no_traceback(ask, folder):
    for step, size in ((0, 0), (20, 100), (50, 5000)):
        path = folder / f"step{step}.safetensors"
        path.write_bytes(path.read_bytes()[:size])
    code, out, err = ask("audit", folder)
    assert (code, err) == (1, "")
    assert out.count("truncated") == 3


def test_every_file_cut(ask, folder):
    for path in folder.iterdir():
        path.write_bytes(b"")
    code, out, _ = ask("audit", folder)
    assert code == 1
    assert out.count("truncated") == 6
    assert "fewer than two checkpoints could be read" in out


def assert_refused(answer, *parts):
    code, out, err = answer
    assert (code, out) == (2, "")
    assert err.startswith("stagescope: ")
    assert "Traceback" not in err
    for part in parts:
        assert part in err


def test_what_cannot_be_audited(ask, folder, tmp_path):
    assert_refused(ask("audit"), "give the folder")
    assert_refused(ask("audit", tmp_path / "nowhere"), "nowhere is missing")
    assert_refused(ask("audit", folder / "step0.safetensors"), "is no folder")
    (tmp_path / "empty").mkdir()
    assert_refused(ask("audit", tmp_path / "empty"), "holds no checkpoints", "checkpoint-500")
    for path in sorted(folder.iterdir())[1:]:
        path.unlink()
    assert_refused(ask("audit", folder), "holds one checkpoint, 'step0.safetensors'", "at least two")


def test_one_checkpoint_itself(ask, folder):
    os.rename(folder / "step0.safetensors", folder / "model.safetensors")
    for path in folder.glob("step*"):
        path.unlink()
    assert_refused(ask("audit", folder), "is one checkpoint; give the folder that holds several")


class Trap:
    def __reduce__(self):
        return os.mkdir, ("opened",)


def test_a_pickle_of_objects_is_refused_with_the_safe_way(ask, folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    torch.save({"weights": torch.ones(3), "trap": Trap()}, folder / "step60.pt")
    assert_refused(ask("audit", folder), "step60.pt is a pickle", "safetensors.torch.save_file(", "weights_only=False")
    assert not (tmp_path / "opened").exists()


@pytest.mark.parametrize("text", ["", "{", "[1]", '{"step1": 3}', '{"step1": {"model.bin": "00"}}', "{}", '{"a": NaN}'])
def test_hashes_that_are_none(ask, tmp_path, text):
    (tmp_path / "hashes.json").write_text(text)
    assert_refused(ask("audit", "--hashes", tmp_path / "hashes.json"))
    assert_refused(ask("audit", "--hashes", tmp_path))


def test_names_cannot_steer_a_terminal(ask, tmp_path):
    for step in range(2):
        save_file({"\x1b]0;title\x07": np.full(3, np.nan)}, tmp_path / f"step{step}\x1b[2J.safetensors")
    code, out, _ = ask("audit", tmp_path)
    assert code == 1
    assert "\x1b" not in out
    assert "\\x1b]0;title" in out
