"""The study's options, presets and class tables."""

import json

import numpy as np
import pytest

import stagescope as ss

CLASSES = {
    "vocab": 50,
    "classes": [
        {"query": "the", "target": "game", "tokens": {"of": 0.5, "ball": 0.3, "team": 0.2}},
        {"query": "the", "target": "song", "tokens": {"of": 0.4, "guitar": 0.6}},
    ],
}


def write(tmp_path, body):
    path = tmp_path / "classes.json"
    path.write_text(json.dumps(body))
    return path


def test_every_preset_sets_up():
    study = ss.study("scan-snap")
    for preset in study.presets:
        plan = study.setup(study.configured(preset), 0)
        assert np.isfinite(sum(block.sum() for block in plan.params.values()))


def test_classes_from_json_and_csv_are_the_same(tmp_path):
    table = ss.read_classes(write(tmp_path, CLASSES))
    rows = ["query,target,token,probability"]
    rows += [f"{c['query']},{c['target']},{t},{p}" for c in CLASSES["classes"] for t, p in c["tokens"].items()]
    path = tmp_path / "classes.csv"
    path.write_text("\n".join(rows))
    assert ss.read_classes(path, vocab=50) == table
    assert [table.label(token) for token in sorted(table.common)] == ["of"]
    run = ss.run_study("scan-snap", classes=path, until=20.0)
    assert run.params["Y"].shape[1:] == (4, 3)
    assert run.config is not None
    assert run.config["classes_digest"]


def test_config_is_what_decides_the_run():
    one, two = (ss.run_study("scan-snap", until=5.0, seed=s, frames=10) for s in (0, 1))
    assert one.config_digest != two.config_digest
    assert one.config_digest == ss.run_study("scan-snap", until=5.0, frames=10).config_digest
    np.testing.assert_array_equal(one.params["Z"], two.params["Z"])  # zero init: the seed decides nothing


def test_unknown_names_have_a_suggestion():
    with pytest.raises(ss.InputError, match="did you mean 'rate_y'"):
        ss.run_study("scan-snap", ratey=1.0)
    with pytest.raises(ss.InputError, match="did you mean 'syn-small-flow'"):
        ss.run_study("scan-snap", "syn-small-flo")
    with pytest.raises(ss.InputError, match="did you mean 'scan-snap'"):
        ss.run_study("scansnap")
    with pytest.raises(ss.InputError, match=r"--rate-y: .*got -1"):
        ss.run_study("scan-snap", rate_y=-1.0)
    with pytest.raises(ss.InputError, match="seed"):
        ss.run_study("scan-snap", seed=-1)


@pytest.mark.parametrize(
    "options",
    [
        {"steps": 50},
        {"lr": 0.1},
        {"optimizer": "gd", "until": 50.0},
        {"optimizer": "gd", "momentum": 0.5},
        {"optimizer": "gd", "batch": 16},
        {"optimizer": "gd", "method": "lsoda"},
    ],
)
def test_options_without_effect_are_refused(options):
    with pytest.raises(ss.InputError, match="has no effect here"):
        ss.run_study("scan-snap", **options)


def test_tables_from_spreadsheets_and_with_repeats(tmp_path):
    table = tmp_path / "classes.csv"
    rows = "query, target, token, probability\na, t, x, 0.5\na, t, c, 0.5\nb, u, y, 0.5\nb, u, c, 0.5\n"
    table.write_text(rows, encoding="utf-8-sig")
    assert len(ss.read_classes(table).classes) == 2
    twice = tmp_path / "classes.json"
    twice.write_text('{"classes": [{"query": "a", "target": "t", "tokens": {"x": 0.5, "x": 0.5}}]}')
    with pytest.raises(ss.InputError, match="'x' is given twice"):
        ss.read_classes(twice)


def test_a_sampled_run_can_be_observed_in_a_fresh_process(tmp_path):
    import subprocess
    import sys

    ss.run_study("scan-snap", optimizer="gd", length=16, batch=4, steps=3, out=tmp_path / "run")
    code = f"import stagescope as ss; print(ss.class_attention(ss.load({str(tmp_path / 'run')!r})).entropy.shape)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "(4, 2)"


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"residual": True, "decoder": "pinv"}, "residual connection is trained by the gradient"),
        ({"residual": True, "heads": 2}, "leave out --residual or --heads"),
        ({"heads": 2, "length": 16, "optimizer": "gd"}, "several heads are trained by the gradient"),
        ({"heads": 2, "init_scale": 0.1, "columns": "all"}, "leave out --init-scale"),
        ({"start_scores": 0.1, "init_scale": 0.1, "columns": "all"}, "choose one"),
        ({"heads": 0}, "heads"),
    ],
)
def test_options_of_section_7_that_do_not_fit_are_refused(options, why):
    with pytest.raises(ss.InputError, match=why):
        ss.run_study("scan-snap", **options)


@pytest.mark.parametrize("options", [{"residual": True}, {"heads": 2, "start_scores": 0.1}])
def test_runs_of_section_7_are_opened_and_read_like_any_other(tmp_path, options):
    made = {"num_unique": 3, "num_common": 2, "num_common_per_last": 1, "num_next_per_last": 2, "until": 20.0, "frames": 20}
    ss.run_study("scan-snap", out=tmp_path / "run", **made, **options)
    run = ss.load(tmp_path / "run")
    assert ss.stages(run).status == "finished"
    assert [row.tag for row in ss.check(run)] == ["SnS:residual" if "residual" in options else "SnS:heads"]
    assert set(ss.study("scan-snap").numbers(run)) >= {"loss"}
    assert ss.reading(run).attention(0).shape == (2, 4, 16) if "heads" in options else ss.class_attention(run).c.shape[0] == 20
