"""The probe pass leaves no trace: modes, random states, hooks, autocast, also after an error; and how a model is called."""

import random
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from stagescope.core.errors import InputError
from stagescope.watching.capture import attend, device_of, logits_of, predict, tried, unwrapped, without_trace
from tests.watching.models import VOCABULARY, Fused, Gpt, Scripted, equal, made, tokens

IDS = tokens(3)
DROPPED = 0.5


def state(model: nn.Module):
    """All that a pass could leave behind."""
    hooks = ("_forward_hooks", "_forward_pre_hooks", "_forward_hooks_always_called", "_backward_hooks")
    return {
        "training": [module.training for module in model.modules()],
        "hooks": [len(getattr(module, name)) for module in model.modules() for name in hooks],
        "torch": torch.get_rng_state().tolist(),
        "numpy": str(np.random.get_state()),  # noqa: NPY002
        "python": random.getstate(),
        "autocast": torch.is_autocast_enabled("cpu"),
        "gradients": torch.is_grad_enabled(),
        "fast": torch.backends.mha.get_fastpath_enabled(),
        "attributes": [sorted(vars(module)) for module in model.modules()],
        "grads": [value.grad is None for value in model.parameters()],
        "modes": torch._C._len_torch_function_stack(),
    }


class Noisy(Gpt):
    """Draws from every generator and can fail, before or after attention was seen."""

    fails = ""

    def forward(self, ids):
        _ = random.random(), np.random.rand(), torch.rand(3)  # noqa: NPY002
        if self.fails == "early":
            raise RuntimeError("early")
        found = super().forward(ids)
        if self.fails == "late":
            raise KeyboardInterrupt
        return found


@pytest.fixture
def model():
    torch.manual_seed(0)
    found = Noisy(dropout=DROPPED)
    found.fails = ""
    found.blocks[0].eval()
    return found


def test_modes_random_states_and_hooks_are_as_before(model):
    before = state(model)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        inside = state(model)
        forward, _, plan = tried(model, IDS, None)
        assert state(model) == inside
        attend(model, IDS, forward, plan)
        predict(model, IDS, forward)
        assert state(model) == inside
    assert state(model) == before
    assert not model.blocks[0].training
    assert model.blocks[1].training


@pytest.mark.parametrize(("fails", "error"), [("early", RuntimeError), ("late", KeyboardInterrupt)])
def test_also_after_an_error_in_the_pass(model, fails, error):
    forward, _, plan = tried(model, IDS, None)
    before = state(model)
    model.fails = fails
    with pytest.raises(error):
        attend(model, IDS, forward, plan)
    with pytest.raises(InputError if error is RuntimeError else error):
        tried(model, IDS, forward)
    assert state(model) == before


def test_a_pass_has_no_dropout_no_gradient_and_full_precision(model):
    forward, _, plan = tried(model, IDS, None)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        first, layers = attend(model, IDS, forward, plan)
        second, _ = attend(model, IDS, forward, plan)
    assert torch.equal(first, second)
    assert not first.requires_grad
    assert first.dtype == torch.float32
    assert layers[0].query.dtype == torch.float32
    with without_trace(model):
        torch.testing.assert_close(first, Gpt.forward(model, IDS), atol=1e-5, rtol=0)


def test_the_cache_of_autocast_is_not_poisoned():
    """Weights that autocast has cast stay of the graph: a pass in between does not take their gradient away."""

    def gradient(watched: bool):
        model = made()
        forward, _, plan = tried(model, IDS, None)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = model(IDS).float().square().mean()
            if watched:
                attend(model, IDS, forward, plan)
            loss = loss + model(IDS).float().square().mean()
        loss.backward()
        return model.wte.weight.grad

    assert torch.equal(gradient(False), gradient(True))


def test_a_forward_that_accelerate_put_before_is_passed_by(model):
    """accelerate wraps `forward` of the instance so that it switches bfloat16 on again."""

    def wrapped(*args):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return Noisy.forward(model, *args).float()

    forward, plain, plan = tried(model, IDS, None)
    model._original_forward, model.forward = model.forward, wrapped
    before = state(model)
    logits, _ = attend(model, IDS, forward, plan)
    torch.testing.assert_close(logits, plain, atol=1e-6, rtol=0)
    assert model.forward is wrapped
    assert state(model) == before


def test_compiled_and_parallel_models_are_unwrapped():
    model = made()
    assert unwrapped(model) is model
    assert unwrapped(nn.DataParallel(model)) is model
    assert unwrapped(torch.compile(nn.DataParallel(model), backend="eager")) is model
    sharded = type("FullyShardedDataParallel", (nn.Module,), {})()
    with pytest.raises(InputError, match=r"sharded \(FullyShardedDataParallel.*cannot be watched"):
        unwrapped(sharded)


def test_a_model_on_several_devices_or_on_none():
    model = made()
    assert device_of(model) == torch.device("cpu") == device_of(nn.Identity())
    model.head.to("meta")
    with pytest.raises(InputError, match=r"several devices \(cpu, meta\)"):
        device_of(model)
    with pytest.raises(InputError, match="'meta' and has no numbers"):
        device_of(model.to("meta"))


def test_a_model_that_makes_all_logits_only_with_targets():
    torch.manual_seed(0)
    model = Scripted()
    forward, logits, _ = tried(model, IDS, None)
    with without_trace(model):
        assert torch.equal(logits, Gpt.forward(model, IDS)) or torch.allclose(logits, Gpt.forward(model, IDS), atol=1e-5)
    assert predict(model, IDS, forward).shape == (3, 24, VOCABULARY)


def test_a_model_that_needs_targets_gets_them():
    class Needs(nn.Module):
        gpt = made()

        def forward(self, ids, y):
            assert torch.equal(y[:, :-1], ids[:, 1:])
            return {"loss": torch.zeros(()), "predictions": self.gpt(ids)}

    assert tried(Needs(), IDS, None)[1].shape == (3, 24, VOCABULARY)


def test_what_a_model_returns():
    logits = torch.zeros(3, 24, 7)
    hidden = torch.zeros(3, 24, 5)
    for found in (
        logits,
        (logits, None),
        [torch.zeros(()), logits],
        {"loss": None, "out": logits},
        SimpleNamespace(logits=logits),
    ):
        assert logits_of(found, IDS).shape == (3, 24, 7)
    for found in (None, torch.zeros(3, 24), torch.zeros(3, 23, 7), SimpleNamespace(last_hidden_state=hidden), logits.long()):
        assert logits_of(found, IDS) is None


def test_a_model_that_cannot_be_called_is_refused_with_the_likely_cause():
    with pytest.raises(InputError, match=r"on the probe of 3 sequences of 24 tokens: IndexError: .*longer than the context"):
        tried(made(context=16), IDS, None)
    with pytest.raises(InputError, match=r"TypeError.*give forward="):
        tried(type("Two", (Gpt,), {"forward": lambda self, ids, image: None})(), IDS, None)


def test_a_forward_of_the_users_own():
    class Two(nn.Module):
        gpt = made()

        def forward(self, ids, image):
            return self.gpt(ids + image)

    model = Two()
    _forward, logits, plan = tried(model, IDS, lambda model, ids: model(ids, 0))
    assert logits.shape == (3, 24, VOCABULARY)
    assert len(plan.names) == 2


def test_parameters_are_untouched():
    model, before = made(Fused), made(Fused)
    forward, _, plan = tried(model, IDS, None)
    attend(model, IDS, forward, plan)
    assert equal(model, before)
