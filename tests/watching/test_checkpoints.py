"""Checkpoints as a run: the same numbers as live, from folders of transformers and of own models, and what is refused."""

import json

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import nn

import stagescope as ss
from stagescope.cli.main import run as command

TOKENS, LENGTH, STEPS = 20, 16, (0, 3, 10)


class Tiny(nn.Module):
    """One head on tokens and places."""

    def __init__(self):
        super().__init__()
        self.tokens, self.places = nn.Embedding(TOKENS, 8), nn.Embedding(LENGTH, 8)
        self.attention, self.head = nn.MultiheadAttention(8, 2, batch_first=True), nn.Linear(8, TOKENS)

    def forward(self, ids):
        x = self.tokens(ids) + self.places(torch.arange(ids.shape[1]))
        mask = nn.Transformer.generate_square_subsequent_mask(ids.shape[1])
        return self.head(x + self.attention(x, x, x, attn_mask=mask, is_causal=True)[0])


def make_tiny():
    return Tiny()


def probe():
    return torch.from_numpy(np.random.default_rng(0).integers(0, TOKENS, (4, LENGTH)))


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A folder of checkpoints of a short training, and the run that was recorded live."""
    folder = tmp_path_factory.mktemp("training")
    torch.manual_seed(1)
    model, ids = Tiny(), probe()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    with ss.watch(model, probe=ids, steps=10, record=ss.AtTimes(at=STEPS), optimizer=optimizer) as watcher:
        for step in range(11):
            if step in STEPS:
                save_file(model.state_dict(), folder / f"step{step}.safetensors")
            if step == 10:
                break
            loss = nn.functional.cross_entropy(model(ids)[:, :-1].flatten(0, 1), ids[:, 1:].flatten())
            optimizer.zero_grad()
            loss.backward()
            watcher.step(loss)
            optimizer.step()
    return folder, watcher.run


def test_imported_numbers_are_those_of_the_live_run(trained):
    folder, live = trained
    found = ss.read_checkpoints(folder, probe=probe(), model=make_tiny)
    assert found.step.tolist() == live.step.tolist() == list(STEPS)
    for name in ("loss", "lag_mass", "entropy", "pattern", "embedding_values", "sketch", "repeat_loss"):
        np.testing.assert_array_equal(found.series[name], live.series[name], err_msg=name)
    assert found.spec["source"]["kind"] == "checkpoints"
    assert found.spec["source"]["checkpoints"] == ["step0.safetensors", "step3.safetensors", "step10.safetensors"]


def test_prefixes_of_wrappers_do_not_matter(trained, tmp_path):
    folder, live = trained
    for step in STEPS:
        model = Tiny()
        model.load_state_dict(torch.load(_as_pt(folder, tmp_path, step), weights_only=True))
        state = {f"_orig_mod.{name}": value for name, value in model.state_dict().items()}
        save_file(state, tmp_path / f"ckpt_{step}.safetensors")
        (tmp_path / f"plain_{step}.weights").unlink()
    found = ss.read_checkpoints(tmp_path, probe=probe(), model=Tiny())
    np.testing.assert_array_equal(found.series["loss"], live.series["loss"])


def _as_pt(folder, into, step):
    from safetensors.torch import load_file

    path = into / f"plain_{step}.weights"
    torch.save(load_file(folder / f"step{step}.safetensors"), path)
    return path


def test_the_command_makes_a_run_that_can_be_read(trained, tmp_path, monkeypatch, capsys):
    folder, live = trained
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own_models.py").write_text("from tests.watching.test_checkpoints import make_tiny\n")
    np.save("ids.npy", probe().numpy())
    given = ["--probe", "@ids.npy", "--model", "own_models:make_tiny", "--out", "run", "--quiet"]
    assert command(["import", str(folder), *given]) == 0
    assert "3 frames to step = 10" in capsys.readouterr().out
    assert ss.verify("run") == []
    np.testing.assert_array_equal(ss.load("run").series["loss"], live.series["loss"])


def test_a_folder_of_transformers_needs_no_model(tmp_path):
    transformers = pytest.importorskip("transformers")
    config = transformers.GPT2Config(
        n_layer=1, n_head=2, n_embd=8, vocab_size=TOKENS, n_positions=LENGTH, bos_token_id=0, eos_token_id=0
    )
    losses = []
    for step in (500, 1000):
        torch.manual_seed(step)
        model = transformers.GPT2LMHeadModel(config).eval()
        model.save_pretrained(tmp_path / f"checkpoint-{step}")
        log = [{"step": 500, "loss": 2.5, "learning_rate": 0.1, "grad_norm": 1.0}, {"step": 1000, "loss": 2.0}]
        (tmp_path / f"checkpoint-{step}" / "trainer_state.json").write_text(json.dumps({"global_step": step, "log_history": log}))
        with torch.no_grad():
            logits = model(probe()).logits
        losses.append(nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), probe()[:, 1:].flatten()).item())
    found = ss.read_checkpoints(tmp_path, probe=probe())
    np.testing.assert_allclose(found.series["loss"], losses, rtol=1e-5)
    assert found.series["train_loss"].tolist() == [2.5, 2.0]
    np.testing.assert_allclose(found.series["learning_rate"], [0.1, 0.1], rtol=1e-6)


def test_code_of_a_checkpoint_is_not_run(tmp_path):
    pytest.importorskip("transformers")
    body = {"model_type": "evil", "auto_map": {"AutoConfig": "evil.Config", "AutoModelForCausalLM": "evil.Model"}}
    for step in (1, 2):
        place = tmp_path / f"checkpoint-{step}"
        place.mkdir()
        (place / "config.json").write_text(json.dumps(body))
        (place / "evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
        save_file({"a": torch.zeros(2)}, place / "model.safetensors")
    with pytest.raises(ss.InputError, match="--model module:factory"):
        ss.read_checkpoints(tmp_path, probe=probe())
    assert not (tmp_path / "ran").exists()


def test_one_checkpoint_is_no_run(trained, tmp_path):
    (tmp_path / "step3.safetensors").write_bytes((trained[0] / "step3.safetensors").read_bytes())
    with pytest.raises(ss.InputError, match="two or more"):
        ss.read_checkpoints(tmp_path, probe=probe(), model=make_tiny)


def test_weights_of_another_model_are_refused(trained, tmp_path):
    for step in (1, 2):
        save_file({"tokens.weight": torch.zeros(TOKENS, 9)}, tmp_path / f"step{step}.safetensors")
    with pytest.raises(ss.InputError, match="another model"):
        ss.read_checkpoints(tmp_path, probe=probe(), model=make_tiny)
    for step in (1, 2):
        save_file({"tokens.weight": torch.zeros(TOKENS, 8)}, tmp_path / f"step{step}.safetensors")
    with pytest.raises(ss.InputError, match="are missing"):
        ss.read_checkpoints(tmp_path, probe=probe(), model=make_tiny)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([], "--probe"),
        (["--probe", "text", "--model", "nowhere:make"], "nowhere"),
        (["--probe", "@missing.txt"], "cannot be read"),
        (["--probe", "some text", "--model", "tests.watching.test_checkpoints:make_tiny"], "tokenizer"),
        (["--probe", "x"], "config.json"),
    ],
)
def test_bad_calls_of_the_command_are_sentences(trained, tmp_path, given, said, capsys):
    assert command(["import", str(trained[0]), *given, "--out", str(tmp_path / "run"), "--quiet"]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert "Traceback" not in error
    assert not (tmp_path / "run").exists()
