"""Models and the Trainer of transformers: patterns against `output_attentions`, and a callback that changes nothing.

All that imports transformers is here: each worker that runs one of these tests pays for the import.
"""

import sys

import numpy as np
import pytest
import torch
import transformers
from transformers import Trainer, TrainerCallback, TrainingArguments

import stagescope as ss
from stagescope.watching.capture import attend, tried
from tests.watching.models import equal, tokens

SIZES = {"vocab_size": 50, "max_position_embeddings": 32, "bos_token_id": 0, "eos_token_id": 0, "pad_token_id": 0}
WIDE = {**SIZES, "hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
SHARED = {**WIDE, "num_key_value_heads": 2}
GPT2 = {"vocab_size": 50, "n_positions": 32, "n_embd": 16, "n_layer": 2, "n_head": 2, "bos_token_id": 0, "eos_token_id": 0}
CONFIGS = {
    "GPT2": lambda: transformers.GPT2Config(**GPT2),
    "Llama": lambda: transformers.LlamaConfig(**SHARED),
    "GPTNeoX": lambda: transformers.GPTNeoXConfig(**WIDE),
    "Mistral": lambda: transformers.MistralConfig(**SHARED, sliding_window=8),
    "Qwen3": lambda: transformers.Qwen3Config(**SHARED, head_dim=8),
    "Bert": lambda: transformers.BertConfig(**WIDE),
}
IDS = tokens(3, 24, vocabulary=50)


def built(name: str, attention: str, weights=None):
    """A model with the weights of another, or with large ones; `from_config` changes the config that it gets."""
    auto = transformers.AutoModelForMaskedLM if name == "Bert" else transformers.AutoModelForCausalLM
    torch.manual_seed(0)
    model = auto.from_config(CONFIGS[name](), attn_implementation=attention)
    if weights is not None:
        model.load_state_dict(weights)
        return model
    for value in model.parameters():
        torch.nn.init.normal_(value, std=0.3)
    return model


@pytest.fixture(scope="module", params=list(CONFIGS))
def reference(request):
    model = built(request.param, "eager").eval()
    with torch.no_grad():
        found = model(IDS, output_attentions=True)
    return request.param, model.state_dict(), found.attentions, found.logits


@pytest.mark.long
@pytest.mark.parametrize("attention", ["eager", "sdpa", "flex_attention"])
def test_patterns_are_those_that_the_model_gives_itself(reference, attention):
    name, weights, expected, logits = reference
    if name == "GPT2" and attention == "flex_attention":
        with pytest.raises(ValueError, match="does not support"):
            built(name, attention, weights)
        return
    model = built(name, attention, weights)
    forward, _, plan = tried(model, IDS, None)
    found, layers = attend(model, IDS, forward, plan)
    for one, other in zip(layers, expected, strict=True):
        torch.testing.assert_close(one.weights, other, atol=1e-5, rtol=0)
    torch.testing.assert_close(found, logits, atol=1e-4, rtol=0)
    if name == "Mistral":
        assert layers[0].weights[:, :, 20, :12].max() == 0  # outside of the window


DATA = [{"input_ids": row, "labels": row} for row in tokens(32, 16, vocabulary=50)]


def trained(folder, *callbacks, steps=6, resume=None, dropout=0.1, **options):
    torch.manual_seed(0)
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config(**GPT2, attn_pdrop=dropout, resid_pdrop=dropout))
    fixed = {"report_to": [], "disable_tqdm": True, "use_cpu": True, "lr_scheduler_type": "constant", "learning_rate": 1e-2}
    usual = {"max_steps": steps, "per_device_train_batch_size": 4, "save_strategy": "no", "logging_steps": 2}
    args = TrainingArguments(str(folder), **{**fixed, **usual, **options})
    trainer = Trainer(model=model, args=args, train_dataset=DATA, callbacks=list(callbacks))
    trainer.train(resume_from_checkpoint=resume)
    return model, trainer


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    return trained(tmp_path_factory.mktemp("plain"))


@pytest.fixture(scope="module")
def watched(tmp_path_factory):
    folder = tmp_path_factory.mktemp("watched")
    watch = ss.TrainerWatch(probe=IDS, out=folder / "run", record=ss.Every(n=1))
    return *trained(folder, watch), watch


@pytest.mark.long
def test_training_is_bitwise_the_same(plain, watched):
    assert equal(plain[0], watched[0])
    assert [one.get("loss") for one in plain[1].state.log_history] == [one.get("loss") for one in watched[1].state.log_history]


def test_the_run_of_a_trainer(watched):
    run = watched[2].run
    assert (run.status, run.step.tolist()) == ("finished", list(range(7)))
    source = run.spec["source"]
    assert (source["model"], source["steps"]) == ("GPT2LMHeadModel", 6)
    assert source["layers"] == ["transformer.h.0.attn", "transformer.h.1.attn"]
    np.testing.assert_allclose(run.series["learning_rate"], 1e-2, rtol=1e-6)
    logged = [one["loss"] for one in watched[1].state.log_history if "loss" in one]
    expected = [np.nan, logged[0], np.nan, logged[1], np.nan, logged[2], np.nan]  # a log covers two steps; the second waits
    np.testing.assert_allclose(run.series["train_loss"], expected, rtol=1e-5)
    assert np.isfinite(run.series["gradient_norm"]).tolist() == [True] * 6 + [False]


def test_steps_mean_the_same_as_in_a_loop_of_ones_own(plain, watched):
    """A record of step n is the model after n updates: the last one is that of the trained model, the first of the untrained."""
    run = watched[2].run
    torch.manual_seed(0)
    untrained = transformers.GPT2LMHeadModel(transformers.GPT2Config(**GPT2, attn_pdrop=0.1, resid_pdrop=0.1))
    for place, model in ((0, untrained), (-1, plain[0])):
        frame = ss.watch(model, probe=IDS).observer.frame()
        np.testing.assert_array_equal(np.asarray(run.series["sketch"][place]), frame["sketch"])
        assert run.series["loss"][place] == np.float32(frame["loss"])


def test_accumulated_gradients_count_one_step_and_early_stops_are_said(tmp_path):
    class Stop(TrainerCallback):
        def on_step_end(self, args, state, control, **kwargs):
            control.should_training_stop = state.global_step >= 4

    watch = ss.TrainerWatch(probe=IDS, record=ss.Every(n=2))
    model, _ = trained(tmp_path, watch, Stop(), gradient_accumulation_steps=2)
    assert (watch.run.status, watch.run.step.tolist()) == ("stopped", [0, 2, 4])
    assert "after 4 of 6 steps" in watch.run.reason
    assert equal(model, trained(tmp_path, Stop(), gradient_accumulation_steps=2)[0])


@pytest.mark.long
def test_a_resumed_training_goes_on_with_its_run(tmp_path):
    """The program dies after step 4, its checkpoint is of step 3; records up to 4 are kept and the rest follows."""

    class Die(TrainerCallback):
        def on_step_begin(self, args, state, control, **kwargs):
            if state.global_step == 4:
                raise KeyboardInterrupt

    options = {"probe": IDS, "out": tmp_path / "run", "record": ss.Every(n=1)}
    watch = ss.TrainerWatch(**options)
    with pytest.raises(KeyboardInterrupt):
        trained(tmp_path, watch, Die(), save_strategy="steps", save_steps=3)
    watch.run  # noqa: B018  # commits what waits
    watch._close()
    again = ss.TrainerWatch(**options)
    with pytest.warns(UserWarning, match="goes on after its record of step 3; records from step 3 to 3 are kept"):
        trained(tmp_path, again, resume=str(tmp_path / "checkpoint-3"))
    assert again.run.step.tolist() == list(range(7))
    assert again.run.status == "finished"


def test_only_the_main_process_records(tmp_path):
    class Second(TrainerCallback):
        def on_train_begin(self, args, state, control, **kwargs):
            state.is_world_process_zero = False

    watch = ss.TrainerWatch(probe=IDS, out=tmp_path / "run")
    trained(tmp_path, Second(), watch, steps=2)
    assert not (tmp_path / "run").exists()
    with pytest.raises(ss.InputError, match="nothing was watched in this process"):
        watch.run  # noqa: B018


def test_bfloat16_is_switched_off_for_the_probe(tmp_path):
    """accelerate wraps the forward of the model; the patterns of the first record are those of single precision."""
    watch = ss.TrainerWatch(probe=IDS, record=ss.Every(n=1))
    model, _ = trained(tmp_path, watch, steps=2, bf16=True)
    assert equal(model, trained(tmp_path, steps=2, bf16=True)[0])
    torch.manual_seed(0)
    untrained = transformers.GPT2LMHeadModel(transformers.GPT2Config(**GPT2))
    np.testing.assert_array_equal(watch.run.series["pattern"][0], ss.watch(untrained, probe=IDS).observer.frame()["pattern"])


def test_text_is_read_by_the_tokenizer_of_the_trainer():
    class Coder:
        def encode(self, text):
            return [ord(one) - 97 for one in text]

        def decode(self, ids):
            return "".join(chr(97 + one) for one in ids)

    watch = ss.TrainerWatch(probe="abcdefghijklmnopqrst")
    state = transformers.TrainerState(max_steps=3)
    watch.on_train_begin(None, state, None, model=built("GPT2", "sdpa"), processing_class=Coder(), optimizer=None)
    watch.on_train_end(None, state, None)
    assert watch.run.spec["source"]["probe"]["shown"][:3] == ["a", "b", "c"]
    assert watch.run.status == "stopped"


def test_an_option_that_does_not_exist():
    with pytest.raises(ss.InputError, match="did you mean 'layers'"):
        ss.TrainerWatch(probe=IDS, layer=[0])


def test_a_run_that_is_there_is_not_written_over(tmp_path, watched):
    out = watched[2]._out
    with pytest.raises(ss.InputError, match="overwrite"):
        trained(tmp_path, ss.TrainerWatch(probe=IDS, out=out), steps=2)
    assert ss.load(out).step.tolist() == list(range(7))


def test_without_transformers_the_error_says_what_to_install(monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "transformers"]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, "stagescope.watching.hugging_face")
    with pytest.raises(ss.InputError, match=r"TrainerWatch needs transformers, which is not installed; pip install"):
        import stagescope.watching.hugging_face  # noqa: F401
