"""The Trainer of Lightning, as `lightning` and as `pytorch_lightning`: a callback that changes nothing."""

import sys
import warnings
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

import stagescope as ss
from tests.watching.models import VOCABULARY, Gpt, equal, tokens

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import lightning.pytorch as lightning

    from stagescope.watching.lightning import _bases

IDS = tokens(6, 24)
ROWS = tokens(32, 20)


class Module(lightning.LightningModule):
    """The usual module: the model is an attribute, and `forward` is not defined."""

    def __init__(self):
        super().__init__()
        self.net, self.losses = Gpt(dropout=0.1), []

    def training_step(self, batch, index):
        logits = self.net(batch[0])
        loss = F.cross_entropy(logits[:, :-1].reshape(-1, VOCABULARY), batch[0][:, 1:].reshape(-1))
        self.losses.append(float(loss.detach()))
        return loss

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-2)


class Whole(Module):
    def forward(self, ids):
        return self.net(ids)


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def trained(*callbacks, kind=Module, steps=6, path=None, **options):
    torch.manual_seed(0)
    module = kind()
    quiet = dict.fromkeys(("logger", "enable_progress_bar", "enable_model_summary", "enable_checkpointing"), False)
    settings = {"max_steps": steps, "accelerator": "cpu", **quiet, **options}
    trainer = lightning.Trainer(callbacks=list(callbacks), **settings)
    trainer.fit(module, DataLoader(TensorDataset(ROWS), batch_size=4, shuffle=True), ckpt_path=path)
    return module, trainer


@pytest.fixture(scope="module")
def plain():
    return trained()[0]


@pytest.fixture(scope="module")
def watched(tmp_path_factory):
    watch = ss.LightningWatch(probe=IDS, out=tmp_path_factory.mktemp("runs") / "run", record=ss.Every(n=2), model="net")
    return trained(watch)[0], watch


def test_training_is_bitwise_the_same(plain, watched):
    assert watched[0].losses == plain.losses
    assert equal(plain, watched[0])


def test_the_run_of_a_trainer(watched):
    module, watch = watched
    run = watch.run
    assert (run.status, run.step.tolist()) == ("finished", [0, 2, 4, 6])
    np.testing.assert_allclose(run.series["train_loss"][:-1], [module.losses[i] for i in (0, 2, 4)], rtol=1e-6)
    np.testing.assert_allclose(run.series["learning_rate"], 1e-2, rtol=1e-6)
    assert np.isfinite(run.series["gradient_norm"]).tolist() == [True, True, True, False]
    assert (run.spec["source"]["model"], run.spec["source"]["steps"]) == ("Gpt", 6)


def test_steps_mean_the_same_as_in_a_loop_of_ones_own(plain, watched):
    torch.manual_seed(0)
    for place, model in ((0, Module().net), (-1, plain.net)):
        frame = ss.watch(model, probe=IDS).observer.frame()
        np.testing.assert_array_equal(np.asarray(watched[1].run.series["sketch"][place]), frame["sketch"])


def test_accumulated_gradients_precision_and_an_early_stop():
    class Stop(lightning.Callback):
        def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
            trainer.should_stop = trainer.global_step >= 4

    watch = ss.LightningWatch(probe=IDS, record=ss.Every(n=2))
    options = {"accumulate_grad_batches": 2, "precision": "bf16-mixed", "min_steps": 1, "kind": Whole}
    module, _ = trained(watch, Stop(), **options)
    assert (watch.run.status, watch.run.step.tolist()) == ("stopped", [0, 2, 4])
    assert watch.run.spec["source"]["layers"] == ["net.blocks.0.attn", "net.blocks.1.attn"]
    assert equal(module, trained(Stop(), **options)[0])


def test_a_resumed_training_goes_on_with_its_run(tmp_path):
    class Die(lightning.Callback):
        def on_train_batch_start(self, trainer, pl_module, batch, batch_idx):
            if trainer.global_step == 4:
                raise RuntimeError("dies")

    options = {"probe": IDS, "out": tmp_path / "run", "record": ss.Every(n=1), "model": lambda module: module.net}
    keep = lightning.callbacks.ModelCheckpoint(dirpath=tmp_path, every_n_train_steps=3, save_top_k=-1, filename="{step}")
    with pytest.raises(RuntimeError, match="dies"):
        trained(ss.LightningWatch(**options), keep, Die(), enable_checkpointing=True)
    assert ss.load(tmp_path / "run").status == "interrupted"
    again = ss.LightningWatch(**options)
    with pytest.warns(UserWarning, match="goes on after its record of step 3"):
        trained(again, path=tmp_path / "step=3.ckpt", steps=6)
    assert (again.run.status, again.run.step.tolist()) == ("finished", list(range(7)))


def test_only_rank_zero_records(monkeypatch):
    monkeypatch.setattr(lightning.Trainer, "is_global_zero", False)
    watch = ss.LightningWatch(probe=IDS, model="net")
    trained(watch, steps=2)
    with pytest.raises(ss.InputError, match="nothing was watched in this process"):
        watch.run  # noqa: B018


def test_a_model_that_is_not_there():
    for model, why in (("body", "finds nothing in Module"), ("losses", "is of type list"), (lambda module: None, "NoneType")):
        with pytest.raises(ss.InputError, match=why):
            trained(ss.LightningWatch(probe=IDS, model=model), steps=1)
    with pytest.raises(ss.InputError, match="give forward="):
        trained(ss.LightningWatch(probe=IDS), steps=1)


def package(name: str):
    """What a program finds that imports this package."""
    kind = type("Callback", (), {"__module__": name})
    return {name: ModuleType(name), f"{name}.callbacks": SimpleNamespace(Callback=kind)}, kind


def test_the_callback_is_of_the_packages_that_are_used(monkeypatch):
    assert issubclass(ss.LightningWatch, lightning.Callback)
    modules, kind = package("pytorch_lightning")
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    assert _bases() == (lightning.Callback, kind)
    monkeypatch.delitem(sys.modules, "lightning.pytorch")
    assert _bases() == (kind,)


def test_without_lightning_the_error_says_what_to_install(monkeypatch):
    for name in ("lightning.pytorch", "lightning.pytorch.callbacks", "pytorch_lightning", "pytorch_lightning.callbacks"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ss.InputError, match=r"needs lightning or pytorch_lightning, which are not installed; pip install"):
        _bases()
