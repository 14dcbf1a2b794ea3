"""Watching one's own loop: training is the same bit by bit, the run holds what it should, and nothing stops the training."""

import errno
import random
import warnings

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import stagescope as ss
from stagescope.runs import files
from stagescope.watching.observer import AXES, SCALARS
from stagescope.watching.watch import Idle, Schedule
from tests.watching.models import HEADS, VOCABULARY, Fused, Gpt, Head, Scripted, equal, made, tokens

STEPS = 12
PROBE = tokens(6, 24)


def batch(step: int) -> torch.Tensor:
    return tokens(4, 20, seed=100 + step)


def trained(model: nn.Module, steps: int = STEPS, watcher=None, start: int = 0, stop: int | None = None) -> list[float]:
    """A loop as people write it; with dropout and draws from every generator, so that one draw more would show."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    if watcher is not None:
        watcher.optimizer = optimizer
    losses = []
    for step in range(start, steps):
        ids = batch(step + random.randrange(3) + int(np.random.randint(3)))  # noqa: NPY002
        logits = model(ids)
        loss = F.cross_entropy(logits[:, :-1].reshape(-1, VOCABULARY), ids[:, 1:].reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        if watcher is not None:
            watcher.step(loss)
        if step == stop:
            raise RuntimeError("the program fails")
        optimizer.step()
        losses.append(loss.item())
    return losses


def seeded(dropout: float = 0.2) -> Gpt:
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002
    return made(dropout=dropout, scale=0.1)


def watching(model: nn.Module, steps: int = STEPS, stop: int | None = None, start: int = 0, **options):
    """A watched training: its watcher and losses."""
    with ss.watch(model, probe=PROBE, steps=steps, **options) as watcher:
        losses = trained(model, steps, watcher, start, stop)
    return watcher, losses


@pytest.fixture(scope="module")
def plain():
    model = seeded()
    return model, trained(model)


@pytest.fixture(scope="module")
def watched(tmp_path_factory):
    model = seeded()
    watcher, losses = watching(model, out=tmp_path_factory.mktemp("runs") / "run", record=ss.Every(n=3))
    return model, losses, watcher


def test_training_is_bitwise_the_same(plain, watched):
    assert watched[1] == plain[1]
    assert equal(plain[0], watched[0])


def test_a_frozen_block_stays_in_evaluation_mode():
    found = []
    for watch in (False, True):
        model = seeded(dropout=0.5)
        model.blocks[0].eval()
        losses = watching(model, 4, record=ss.Every(n=1))[1] if watch else trained(model, 4)
        found.append((losses, model))
    (expected, one), (losses, other) = found
    assert losses == expected
    assert equal(one, other)
    assert not other.blocks[0].training
    assert other.blocks[1].training


def test_training_is_the_same_after_an_error_in_the_probe(plain):
    model = seeded()
    calls = []

    def failing(model, ids):
        calls.append(1)
        if len(calls) > 8:
            _ = random.random(), torch.rand(2), np.random.rand()  # noqa: NPY002
            raise ValueError("the probe fails")
        return model(ids)

    said = r"recording stopped at step 6, training goes on: the probe fails \(records up to step 4 are kept\)"
    with pytest.warns(UserWarning, match=said) as warned:
        watcher, losses = watching(model, record=ss.Every(n=2), forward=failing)
    assert losses == plain[1]
    assert equal(model, plain[0])
    assert len(warned) == 1
    assert watcher.run.step.tolist() == [0, 2, 4]
    assert "the probe fails" in watcher.problem


def test_the_run_is_a_run(watched):
    _model, losses, watcher = watched
    run = watcher.run
    assert (run.status, run.clock, run.step.tolist()) == ("finished", "step", [0, 3, 6, 9, 12])
    for name, axes in AXES.items():
        assert run.axes[name] == ("step", *axes), name
        assert run.series[name].dtype == np.float32
    assert set(run.series) == {*AXES, *SCALARS, "step"}
    assert run.series["pattern"].shape == (5, 2, HEADS, 10, 10)
    np.testing.assert_allclose(run.series["train_loss"][:-1], [losses[i] for i in (0, 3, 6, 9)], rtol=1e-6)
    np.testing.assert_allclose(run.series["learning_rate"], 1e-2, rtol=1e-6)
    assert np.isnan(run.series["train_loss"][-1])
    assert np.isnan(run.series["gradient_norm"]).tolist() == [False] * 4 + [True]


def test_a_record_of_step_n_is_the_model_after_n_updates(watched):
    run = watched[2].run
    before, after = seeded(), watched[0]
    for place, model in ((0, before), (-1, after)):
        model.eval()
        with torch.no_grad():
            loss = F.cross_entropy(model(PROBE)[:, :-1].reshape(-1, VOCABULARY), PROBE[:, 1:].reshape(-1))
        assert run.series["loss"][place] == pytest.approx(float(loss), rel=1e-5)


def test_what_is_known_of_the_model_and_the_probe(watched):
    source = watched[2].run.spec["source"]
    assert (source["kind"], source["model"], source["causal"], source["steps"]) == ("watched", "Gpt", True, STEPS)
    assert source["layers"] == ["blocks.0.attn", "blocks.1.attn"]
    assert source["heads"] == [HEADS, HEADS]
    assert source["vocabulary"] == VOCABULARY
    assert source["probe"]["sequences"] == 6
    assert source["probe"]["shown"] == [str(one) for one in PROBE[0, :10].tolist()]
    assert len(source["types"]) == 32
    assert 3 < source["unigram_entropy"] < np.log(VOCABULARY) + 0.2
    assert source["parameters"] == sum(value.numel() for value in watched[0].parameters())


def test_two_runs_of_one_training_are_equal(watched):
    watcher, _ = watching(seeded(), record=ss.Every(n=3))
    for name, values in watched[2].run.series.items():
        np.testing.assert_array_equal(watcher.run.series[name], np.asarray(values), err_msg=name)


def test_the_default_schedule_is_dense_at_first_and_even_later():
    model = nn.Sequential(nn.Embedding(VOCABULARY, 16), Head())
    watcher = ss.watch(model, probe=PROBE, steps=3000)
    due = [step for step in range(3001) if watcher.schedule.due(step)]
    assert due[:9] == list(range(9))
    assert due[-1] == 3000
    assert 250 < len(due) <= 300
    watcher.close()


def test_without_the_number_of_steps_records_are_at_a_ratio():
    model = seeded()
    with ss.watch(model, probe=PROBE) as watcher:
        due = [step for step in range(1000) if watcher.schedule.due(step)]
    assert due[:30] == list(range(30))
    assert 100 < len(due) < 200
    assert watcher.run.status == "finished"


def test_refused_schedules():
    model = made()
    for steps, record, why in ((0, None, "steps is 0"), (None, ss.Every(n=2), "needs the number"), (5, 3, "record is 3")):
        with pytest.raises(ss.InputError, match=why):
            ss.watch(model, probe=PROBE, steps=steps, record=record)


def test_a_training_that_ends_early_is_stopped():
    with ss.watch(seeded(), probe=PROBE, steps=50) as watcher:
        trained(watcher.observer.model, 3, watcher)
        watcher.finish()
    assert watcher.run.status == "stopped"
    assert "after 3 of 50 steps" in watcher.run.reason
    assert watcher.run.step.tolist() == [0, 1, 2, 3]


def test_more_steps_than_were_said_are_warned_of_once():
    model, warned = seeded(), pytest.warns(UserWarning, match="goes on after steps=2: .* only the last is recorded")
    with warned as said, ss.watch(model, probe=PROBE, steps=2) as watcher:
        trained(model, 5, watcher)
    assert len(said) == 1
    assert watcher.run.step.tolist() == [0, 1, 2, 5]


def test_an_error_of_the_program_leaves_a_run_that_resumes(tmp_path):
    model, options = seeded(), {"out": tmp_path / "run", "record": ss.Every(n=1)}
    with pytest.raises(RuntimeError, match="the program fails"):
        watching(model, stop=5, **options)
    assert ss.load(tmp_path / "run").status == "interrupted"
    with pytest.warns(UserWarning, match="the run goes on after its record of step 5; give start=N"):
        watcher, losses = watching(model, resume=True, start=6, **options)
    assert len(losses) == STEPS - 6
    assert watcher.run.step.tolist() == list(range(STEPS + 1))
    assert watcher.run.status == "finished"


LOST = {
    9: "; steps 6 to 8 were not recorded$",
    3: "; records from step 3 to 5 are kept as they are$",
    None: "record of step 5; give start=N",
}


@pytest.mark.parametrize("start", LOST)
def test_resume_says_what_was_lost(tmp_path, start):
    model, options = made(), {"probe": PROBE, "out": tmp_path / "run", "steps": STEPS, "record": ss.Every(n=1)}
    watcher = ss.watch(model, **options)
    for _ in range(6):
        watcher.step()
    watcher.close()
    with pytest.warns(UserWarning, match=LOST[start]):
        watcher = ss.watch(model, **options, resume=True, start=start)
    begin = watcher.done
    assert begin == (6 if start is None else start)
    for _ in range(begin, STEPS):
        watcher.step()
    watcher.finish()
    assert watcher.run.step.tolist() == [*range(6), *range(max(begin, 6), STEPS + 1)]


def test_resume_with_another_probe_or_model_is_refused(tmp_path):
    ss.watch(made(), probe=PROBE, out=tmp_path / "run").close()  # nothing was recorded: the folder does not exist yet
    watcher = ss.watch(made(), probe=PROBE, out=tmp_path / "run", steps=5)
    watcher.step()
    watcher.close()
    with pytest.raises(ss.InputError, match="recorded with probe"):
        ss.watch(made(), probe=tokens(6, 24, seed=9), out=tmp_path / "run", resume=True)
    other = made()
    del other.blocks[1]
    with pytest.raises(ss.InputError, match="recorded with layers"):
        ss.watch(other, probe=PROBE, out=tmp_path / "run", resume=True)
    with pytest.raises(ss.InputError, match="overwrite=True"):
        ss.watch(made(), probe=PROBE, out=tmp_path / "run")
    with pytest.warns(UserWarning, match="goes on"):
        ss.watch(made(), probe=PROBE, out=tmp_path / "run", resume=True).close()
    with ss.watch(made(), probe=PROBE, out=tmp_path / "run", overwrite=True) as watcher:
        watcher.step()
    assert watcher.run.step.tolist() == [0, 1]


def test_two_watchers_of_one_model_are_refused():
    model = made()
    first = ss.watch(model, probe=PROBE)
    for same in (model, torch.compile(model, backend="eager"), nn.DataParallel(model)):
        with pytest.raises(ss.InputError, match="being watched already; end that watcher first"):
            ss.watch(same, probe=PROBE)
    first.finish()
    ss.watch(model, probe=PROBE).close()


def test_a_watcher_that_nobody_ends_keeps_its_records(tmp_path):
    """As at the end of a program that was interrupted outside of a `with`."""
    model = made()
    watcher = ss.watch(model, probe=PROBE, out=tmp_path / "run", steps=STEPS, record=ss.Every(n=1))
    for _ in range(4):
        watcher.step()
    assert len(ss.load(tmp_path / "run").step) == 1  # committed are the first record and then every tenth
    del watcher
    assert ss.load(tmp_path / "run").step.tolist() == [0, 1, 2, 3]
    ss.watch(model, probe=PROBE).close()


def test_losses_that_are_no_numbers_are_recorded():
    model = made()
    with ss.watch(model, probe=PROBE, steps=3, record=ss.Every(n=1)) as watcher:
        watcher.step(torch.tensor(1.0))
        model.head.weight.data[0] = torch.nan
        watcher.step(float("nan"))
        for value in model.parameters():
            value.data.fill_(torch.nan)
        watcher.step(torch.tensor(torch.inf))
    run = watcher.run
    assert watcher.problem == ""
    assert run.status == "finished"
    assert np.isfinite(run.series["loss"]).tolist() == [True, False, False, False]
    assert np.isfinite(run.series["entropy"]).all((1, 2)).tolist() == [True, True, False, False]
    assert run.series["train_loss"][2] == np.inf


def test_a_full_disk_stops_the_recording_and_not_the_training(tmp_path, monkeypatch, plain):
    full = []
    replace = files.replace

    def limited(path, data):
        if full:
            raise OSError(errno.ENOSPC, "No space left on device", str(path))
        replace(path, data)

    monkeypatch.setattr(files, "replace", limited)
    monkeypatch.setattr(Schedule, "due", lambda self, step: bool(full.append(step)) or True if step == 1 else True)
    model = seeded()
    with pytest.warns(UserWarning, match=r"recording stopped at step 10, .*No space left.*records up to step 0 are kept"):
        watcher, losses = watching(model, out=tmp_path / "run")
    assert losses == plain[1]
    assert equal(model, plain[0])
    full.clear()
    monkeypatch.undo()
    assert watcher.run.step.tolist() == [0]
    with pytest.warns(UserWarning, match="goes on after its record of step 0; steps 1 to 11 were not recorded"):
        ss.watch(model, probe=PROBE, out=tmp_path / "run", resume=True, start=12).finish()
    assert ss.load(tmp_path / "run").step.tolist() == [0, 12]


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.warns(UserWarning, match=r"\(nothing was recorded\)"):
        watcher, losses = watching(seeded(), 2, out=tmp_path / "file" / "run")
    assert len(losses) == 2
    with pytest.raises(ss.InputError, match="there is no run: recording stopped at step 0"):
        watcher.run  # noqa: B018


def changed(change, **options):
    """A training of two steps whose model is changed after the first."""
    model = made()
    with ss.watch(model, probe=PROBE, steps=3, **options) as watcher:
        watcher.step()
        change(model)
        watcher.step()
    return watcher


def test_a_model_that_changes_during_training_stops_the_recording():
    with pytest.warns(UserWarning, match=r"step 1, training goes on: 1 patterns .* the model was changed"):
        watcher = changed(lambda model: model.blocks.pop(1))
    assert watcher.run.step.tolist() == [0]
    wider = nn.Linear(16, VOCABULARY + 1, bias=False)
    with pytest.warns(UserWarning, match="head_weight has shape"):
        watcher = changed(lambda model: setattr(model, "head", wider), blocks=("head.weight",))
    assert watcher.run.step.tolist() == [0]


def test_refused_models():
    model = made()
    with pytest.raises(ss.InputError, match=r"expected a PyTorch module to watch, got dict; .*ss.Recorder"):
        ss.watch({}, probe=PROBE)
    with pytest.raises(ss.InputError, match="the model knows 0 to 39"):
        ss.watch(model, probe=PROBE + 40)
    with pytest.raises(ss.InputError, match="longer than the context"):
        ss.watch(made(context=16), probe=PROBE)
    model.head.to("meta")
    with pytest.raises(ss.InputError, match="several devices"):
        ss.watch(model, probe=PROBE)


def test_layers_heads_and_blocks_by_choice():
    model = made()
    with ss.watch(model, probe=PROBE, layers=["blocks.1"], heads=[0, 2], blocks=("wte.weight",), patterns=6) as watcher:
        watcher.step()
    run = watcher.run
    assert run.series["pattern"].shape == (2, 1, 2, 6, 6)
    assert run.spec["source"]["layers"] == ["blocks.1.attn"]
    np.testing.assert_array_equal(run.params["wte_weight"][0], model.wte.weight.detach().numpy())
    whole = ss.watch(made(), probe=PROBE)
    np.testing.assert_allclose(run.series["entropy"][0, 0], whole.observer.frame()["entropy"][1, [0, 2]], rtol=1e-5)
    for options, why in (
        ({"layers": [7]}, "no layer 7 is seen; choose numbers or names of: 0 blocks.0.attn"),
        ({"layers": "decoder"}, "no layer 'decoder'"),
        ({"heads": [4]}, r"heads is \[4\], expected numbers from 0 to 3"),
        ({"blocks": ["wte.wieght"]}, "did you mean 'wte.weight'"),
    ):
        with pytest.raises(ss.InputError, match=why):
            ss.watch(made(), probe=PROBE, **options)


def test_a_block_named_like_a_number_of_the_record():
    class Named(Gpt):
        def __init__(self):
            super().__init__()
            self.entropy = nn.Parameter(torch.ones(2))

    with ss.watch(Named(), probe=PROBE, blocks="entropy") as watcher:
        pass
    assert watcher.run.params["entropy_"].shape == (1, 2)
    assert watcher.run.series["entropy"].shape == (1, 2, HEADS)


def test_a_model_that_is_not_causal_and_one_without_logits():
    class Encoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.wte, self.attn = nn.Embedding(VOCABULARY, 16), nn.MultiheadAttention(16, 2, batch_first=True)

        def forward(self, ids):
            x = self.wte(ids)
            return self.attn(x, x, x)[0]

    with ss.watch(Encoder(), probe=PROBE) as watcher:
        watcher.step()
    assert not watcher.run.spec["source"]["causal"]
    assert not {"loss", "repeat_loss", "induction", "prefix_match"} & set(watcher.run.series)
    hidden = nn.Sequential(nn.Embedding(VOCABULARY, 16), Fused())  # its 16 outputs cannot be the logits of 40 tokens
    with ss.watch(hidden, probe=PROBE) as watcher:
        watcher.step()
    assert "loss" not in watcher.run.series
    assert watcher.run.spec["source"]["vocabulary"] == VOCABULARY


def test_a_batch_with_targets_has_the_loss_of_its_targets():
    model = made()
    targets = PROBE.roll(3, dims=1).clone()
    targets[:, :4] = -100
    frame = ss.watch(model, probe=(PROBE, targets)).observer.frame()
    with torch.no_grad():
        expected = F.cross_entropy(model(PROBE).reshape(-1, VOCABULARY), targets.reshape(-1))
    assert frame["loss"] == pytest.approx(float(expected), rel=1e-5)


def test_what_context_is_worth():
    """Nothing for a model whose attention is to itself alone; measured now and then, and at the end."""

    class Alone(nn.Module):
        def __init__(self):
            super().__init__()
            self.wte, self.head = nn.Embedding(VOCABULARY, 16), nn.Linear(16, VOCABULARY)

        def forward(self, ids):
            x = self.wte(ids)[:, None]
            x = F.scaled_dot_product_attention(x * 1e3, x * 1e3, x, torch.eye(ids.shape[1], dtype=torch.bool))
            return self.head(x[:, 0])

    with ss.watch(Alone(), probe=PROBE, steps=20, record=ss.Every(n=4)) as watcher:
        for _ in range(20):
            watcher.step()
    gain = watcher.run.series["context_gain"]
    assert np.isnan(gain).tolist() == [True, True, True, True, False, False]
    np.testing.assert_allclose(gain[-2:], 0, atol=1e-5)
    own = ss.watch(made(), probe=PROBE).observer.frame(8)
    assert own["context_gain_error"] > 0
    assert abs(own["context_gain"]) > 1e-3


def test_a_known_script_becomes_watched_by_three_lines(tmp_path):
    """The model returns logits and loss, and without targets only the logits of the last position."""
    torch.manual_seed(0)
    data = np.tile(np.arange(VOCABULARY, dtype=np.uint16), 40)
    model = Scripted()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    watcher = ss.watch(model, probe=data, out=tmp_path / "run", steps=30, optimizer=optimizer)
    for _ in range(30):
        starts = torch.randint(len(data) - 33, (8,)).tolist()
        x, y = (
            torch.stack([torch.from_numpy(data[i + shift : i + shift + 32].astype(np.int64)) for i in starts]) for shift in (0, 1)
        )
        _, loss = model(x, y)
        loss.backward()
        watcher.step(loss)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    watcher.finish()
    run = ss.load(tmp_path / "run")
    assert run.spec["source"]["embedding"] == "wte.weight"
    assert run.series["loss"][-1] < run.series["loss"][0] - 0.5
    assert len(run.step) == 31


def test_other_processes_of_a_training_are_idle(monkeypatch, tmp_path):
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.distributed, "get_rank", lambda *_: 1)
    with ss.watch(made(), probe=PROBE, out=tmp_path / "run") as watcher:
        for _ in range(3):
            watcher.step(torch.tensor(1.0))
        watcher.record(7)
    assert isinstance(watcher, Idle)
    assert watcher.done == 3
    assert not (tmp_path / "run").exists()
    with pytest.raises(ss.InputError, match="process 0 of this training records"):
        watcher.run  # noqa: B018


def test_a_frame_is_small():
    frame = ss.watch(made(), probe=tokens(6, 64)).observer.frame()
    assert frame["pattern"].shape[:2] == (2, 4)
    assert sum(np.asarray(value, np.float32).nbytes for value in frame.values()) < 10_000


def test_warnings_as_errors_do_not_stop_the_training(capsys):
    """What cannot be warned of is printed."""
    model = seeded()
    watcher = ss.watch(model, probe=PROBE, steps=9, record=ss.Every(n=1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        watcher.observer.forward = lambda model, ids: 1 / 0
        watcher.step()
    assert "training goes on" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"patterns": 0}, "patterns is 0"),
        ({"patterns": "a"}, "patterns is 'a'"),
        ({"layers": []}, r"layers is \[\]"),
        ({"layers": [1.5]}, r"layers is \[1.5\]"),
        ({"heads": ["a", 1]}, "heads is"),
        ({"start": "3"}, "start is '3'"),
    ],
)
def test_options_that_mean_nothing_are_refused_before_the_training(given, said):
    with pytest.raises(ss.InputError, match=said):
        ss.watch(seeded(), probe=PROBE, steps=9, **given)
