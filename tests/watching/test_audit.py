"""The audit: planted defects are named, clean trainings are clean, and bad folders are refused."""

import json

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file

import stagescope as ss
from stagescope.watching import lineage
from tests.watching import defects
from tests.watching.trainings import training, write

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


@pytest.fixture(scope="module")
def run():
    """A clean training, and its twin of another start."""
    torch.set_num_threads(1)
    return training("sgd", 2), training("sgd", 2, twin=1)


@pytest.fixture(scope="module")
def frozen():
    return training("frozen", 3)


def found(folder, steps):
    return ss.audit(write(folder, steps), progress=False)


# clean


def test_plain_steps_are_clean(run, tmp_path):
    for name, steps in zip(("one", "twin"), run, strict=True):
        audit = found(tmp_path / name, steps)
        assert audit.clean
        assert audit.notes == ()
        assert audit.checkpoints == tuple(f"step{step}" for step, _ in steps)


@pytest.mark.long
def test_frozen_layers_tied_weights_and_running_means_are_clean(frozen, tmp_path):
    assert found(tmp_path, frozen).clean


@pytest.mark.long
def test_warm_up_decay_and_infinite_masks_are_clean(tmp_path):
    steps = training("adam", 16)
    assert np.isinf(steps[0][1]["mask"]).any()
    np.testing.assert_array_equal(steps[-1][1]["head.weight"], steps[-1][1]["tokens.weight"])
    assert found(tmp_path, steps).clean


# planted


@pytest.mark.parametrize("defect", defects.DEFECTS, ids=lambda each: each.__name__)
def test_a_planted_defect_is_named(run, tmp_path, defect):
    planted = defect(np.random.default_rng(5), *run)
    audit = found(tmp_path, planted.steps)
    assert planted.named(audit.findings), audit.findings
    assert planted.alarms(audit.findings) == []


@pytest.mark.parametrize("seed", range(4))
def test_a_cut_file_and_a_missing_shard_are_named(run, tmp_path, seed):
    write(tmp_path, run[0], shards=2)
    name = defects.cut(np.random.default_rng(seed), tmp_path)
    (finding,) = ss.audit(tmp_path, progress=False).findings
    assert (finding.checkpoint, finding.kind) == (name, "truncated")
    assert str(tmp_path) not in finding.sentence


def test_a_shard_of_the_step_before_is_a_duplicate_of_single_tensors(run, tmp_path):
    steps = run[0]
    for place in (3, len(steps) - 1):
        weights = steps[place][1] | {"2.weight": steps[place - 1][1]["2.weight"]}
        (finding,) = found(tmp_path / str(place), defects._with(steps, place, weights)).findings
        assert (finding.checkpoint, finding.kind, finding.tensor) == (f"step{steps[place][0]}", "duplicate", "2.weight")
        assert finding.facts["same_as"] == f"step{steps[place - 1][0]}"


def test_a_layer_that_is_frozen_for_a_while_is_no_finding(run, tmp_path):
    """From the beginning, for several checkpoints in the middle, or twice."""
    steps = run[0]
    for rests in (range(3), range(4, 7), (3, 4, 7, 8)):
        held = {n: steps[min(rests) if n < min(rests) + 3 else 7][1]["2.weight"] for n in rests}
        made = [(step, weights | ({"2.weight": held[n]} if n in held else {})) for n, (step, weights) in enumerate(steps)]
        kinds = {each.kind for each in found(tmp_path / str(sorted(rests)), made).findings}
        assert "duplicate" not in kinds
        assert not [each for each in found(tmp_path / str(sorted(rests)), made).findings if each.facts.get("same_as")]


def test_all_the_same(run, tmp_path):
    weights = run[0][0][1]
    audit = found(tmp_path, [(n, weights) for n in range(3)])
    assert [(each.checkpoint, each.facts["same_as"]) for each in audit.of("duplicate")] == [
        ("step1", "step0"),
        ("step2", "step0"),
    ]


def test_other_names_and_shapes(run, tmp_path):
    steps = run[0]
    fewer = {name: value for name, value in steps[4][1].items() if name != "0.bias"}
    other = steps[6][1] | {"0.bias": np.zeros(3, np.float32)}
    more = steps[8][1] | {"new": np.zeros(3, np.float32)}
    made = defects._with(defects._with(defects._with(steps, 4, fewer), 6, other), 8, more)
    audit = found(tmp_path, made)
    expected = [(4, "truncated", "0.bias"), (6, "foreign tensor", "0.bias"), (8, "foreign tensor", "new")]
    assert [(each.checkpoint, each.kind, each.tensor) for each in audit.findings] == [
        (f"step{steps[n][0]}", kind, tensor) for n, kind, tensor in expected
    ]


def test_one_lasting_change_of_shape_is_a_note(run, tmp_path):
    steps = run[0]
    made = [
        (step, weights | {"head": np.full(40 + 8 * (n > 6), float(n), np.float32)}) for n, (step, weights) in enumerate(steps)
    ]
    audit = found(tmp_path, made)
    assert audit.clean
    assert f"step{steps[7][0]}" in audit.notes[0]


def test_parts_that_share_nothing_but_a_buffer_are_no_copies(tmp_path):
    rng = np.random.default_rng(0)
    steps = [(n, {"old" if n < 2 else "new": rng.normal(size=(8, 8)), "mask": np.ones(40, np.float32)}) for n in range(4)]
    audit = found(tmp_path, steps)
    assert audit.clean
    assert "step2" in audit.notes[0]


def test_a_model_that_starts_from_zero_has_a_note(tmp_path):
    steps = training("linear", 1)
    audit = found(tmp_path, steps)
    assert audit.clean
    assert "the lineage of step0" in audit.notes[0]


def test_states_of_trainers_that_contradict_the_names(run, tmp_path):
    write(tmp_path, run[0][:6], name="checkpoint-{}")
    stated = {run[0][1][0]: 8, run[0][2][0]: 1000}
    for step, said in stated.items():
        (tmp_path / f"checkpoint-{step}" / "trainer_state.json").write_text(json.dumps({"global_step": said}))
    (tmp_path / f"checkpoint-{run[0][5][0]}" / "trainer_state.json").write_text("{")
    audit = ss.audit(tmp_path, progress=False)
    assert {"checkpoint-8", "checkpoint-2"} <= {each.checkpoint for each in audit.of("out of order")}
    assert [each.checkpoint for each in audit.of("truncated")] == [f"checkpoint-{run[0][5][0]}"]


def test_fewer_entries_are_sampled_where_there_are_many(run, tmp_path, monkeypatch):
    monkeypatch.setattr(lineage, "MEMORY", 1)
    assert lineage.affordable_entries(100, 500) == 256
    planted = defects.stranger(np.random.default_rng(1), *run)
    assert planted.named(found(tmp_path, planted.steps).findings)


def test_what_cannot_be_audited(run, tmp_path):
    with pytest.raises(ss.InputError, match="one checkpoint"):
        found(tmp_path, run[0][:1])
    torch.save({"a": torch.ones(2), "b": object}, tmp_path / "step5.pt")
    with pytest.raises(ss.InputError, match="weights_only=False"):
        ss.audit(tmp_path, progress=False)


def test_names_of_tensors_cannot_steer_a_terminal(tmp_path):
    for step in range(2):
        save_file({"\x1b[2J": np.full(3, np.nan)}, tmp_path / f"step{step}.safetensors")
    audit = ss.audit(tmp_path, progress=False)
    assert "\x1b" not in json.dumps(audit.json(), ensure_ascii=True)
    from rich.console import Console

    console = Console(record=True, width=200)
    console.print(audit.text())
    assert "\x1b[2J" not in console.export_text()


# hashes


def test_three_identical_branches_are_seen_from_hashes(run):
    steps = run[0]
    table = defects.hashed([(step, steps[3][1] if n in (3, 5, 9) else weights) for n, (step, weights) in enumerate(steps)])
    table["main"] = table[f"step{steps[-1][0]}"]
    audit = ss.audit_hashes(table)
    assert [(each.checkpoint, each.facts["same_as"]) for each in audit.findings] == [
        (f"step{steps[n][0]}", f"step{steps[3][0]}") for n in (5, 9)
    ]
    assert ss.audit_hashes(defects.hashed(steps)).clean


def test_a_single_file_that_is_the_same(run, tmp_path):
    table = defects.hashed(run[0])
    names = list(table)
    table[names[4]]["2.weight.safetensors"] = table[names[2]]["2.weight.safetensors"].upper()
    for files in table.values():
        files["frozen.safetensors"] = "sha256:" + "a" * 64
    (tmp_path / "hashes.json").write_text(json.dumps(table))
    (finding,) = ss.audit_hashes(tmp_path / "hashes.json").findings
    assert (finding.checkpoint, finding.tensor, finding.facts["same_as"]) == (names[4], "2.weight.safetensors", names[2])


def test_branches_of_one_step_are_different_checkpoints():
    table = {f"stage2-ingredient{n}-step1000": {"model.safetensors": "a" * 64} for n in (1, 2, 3)}
    assert [each.checkpoint for each in ss.audit_hashes(table).findings] == [f"stage2-ingredient{n}-step1000" for n in (2, 3)]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({}, "of 0 checkpoints"),
        ({"step1": {"model.safetensors": "a" * 64}}, "of 1 checkpoint "),
        ({"step1": {"config.json": "a" * 64}, "step2": {"config.json": "a" * 64}}, "of 0 checkpoints"),
        ({"step1": {"model.safetensors": "abc"}}, "'abc'; expected a sha256"),
        ({"step1": {"model.safetensors": None}}, "None; expected a sha256"),
        ({"step1": "a" * 64}, "expected {file: sha256}"),
        ([1], "the hashes are a list"),
    ],
)
def test_hashes_that_are_none(table, message):
    with pytest.raises(ss.InputError, match=message):
        ss.audit_hashes(table)
