"""The reproductions of the paper: numbers behind the panels, and the rules of the table of distances."""

import sys

import numpy as np
import pytest

import stagescope as ss
from stagescope.cli.main import run as command
from stagescope.core.errors import StagescopeError
from stagescope.papers.focus_dilution.published_measures import unseen_contexts
from stagescope.readings.published import Distance
from stagescope.readings.study import reproduction
from tests.readings.drawing import drawn

NAME = reproduction("focus_dilution").__name__
figures, distances, quantities, runs = (sys.modules[f"{NAME}.{part}"] for part in ("figures", "distances", "quantities", "runs"))


@pytest.fixture(scope="module")
def small():
    """The published setting with fewer sequences, until all rows have come back; it takes the place of the quick run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runs, "QUICK", {"sequences": 4000, "steps": 420, "frames": 141})
        runs.published.cache_clear()
        yield runs.published(True)
        runs.published.cache_clear()


def test_the_figures_of_the_study_are_those_of_the_scripts():
    found = ss.study("focus-dilution").figures()
    assert list(found)[:6] == ["1", "2", "3", "theorem-and-experiment", "blind", "frozen"]
    assert all(found[name].quick is not None for name in figures.FIGURES)


def test_scripts_that_are_not_there_are_named():
    with pytest.raises(StagescopeError, match="the scripts of no_such_paper are not in"):
        reproduction("no_such_paper")


def test_while_all_queries_focus_only_sequences_that_end_with_token_0_gain(small):
    numbers = drawn(figures.FIGURES["1"], figures.FIGURES["1"].quick)
    losses, stages = np.array(numbers["losses"]), numbers["stages"]
    assert losses[:, 0] == pytest.approx(np.log(4), abs=1e-3)
    peak = int(np.argmin(np.abs(np.array(numbers["step"]) - stages["III"])))
    assert losses[0, peak] < np.log(4) - 0.4
    assert np.all(losses[1:, peak] > np.log(4) + 0.05)
    assert np.all(losses >= np.array(numbers["floor"])[:, None] - 1e-4)
    assert list(stages) == ["I", "II", "III", "IV"]
    assert stages["II"] < stages["III"] < stages["IV"]
    assert numbers["quick"]


def test_panels_of_figure_2(small):
    numbers = drawn(figures.FIGURES["2"], figures.FIGURES["2"].quick)
    heat = numbers["heat"]
    assert list(heat) == ["W0", "WQ", "WK", "W1"]
    for name, at_steps in heat.items():
        size = small.params[name].shape[2]
        table = np.array([list(bytes.fromhex(line)) for line in at_steps["198"]["cosines"]]) / 127.5 - 1
        assert table.shape == (min(size, figures.SHOWN_NEURONS),) * 2
        np.testing.assert_allclose(np.diag(table), 1, atol=0.01)
        np.testing.assert_allclose(table, table.T)
        assert at_steps["198"]["mean_cosine"] > 0.9 > 0.5 > at_steps["0"]["mean_cosine"]  # condensed, from random directions
    for step, table in numbers["maps"].items():
        np.testing.assert_allclose(np.sum(table, axis=1), 1, atol=1e-3)
        np.testing.assert_allclose(table, small.attention[figures.at(small, float(step))], atol=1e-4)
    assert np.min(np.array(numbers["maps"]["198"])[:, 0]) > 0.95  # total focus
    assert np.array(numbers["perpendicular"]).shape[0] == 3
    assert np.all(np.array(numbers["perpendicular"]) <= np.array(numbers["norms"])[1:] + 1e-5)
    assert np.array(numbers["entropy"])[:, 0] == pytest.approx(numbers["flat"], abs=1e-3)
    assert numbers["paths"]["shares"][0] > 0.85


def test_the_first_focus_of_adam_is_blind_to_the_transition_matrix():
    """The drive of the first focus has no transition matrix in it: the same step within 3 %, also for independent tokens."""
    chains = figures.chains()
    times = {
        name: figures.focus_times(runs.descended(200, chains[name], every=1))
        for name in ("persistence 0.8", "persistence 0", "random B")
    }
    for row in range(3):
        first, *others = (found[row] for found in times.values())
        assert first is not None
        assert others == pytest.approx([first] * 2, rel=0.03)


def test_random_chains_have_the_published_law():
    for seed in (1, 2):
        chain = runs.chain_with_law(seed)
        np.testing.assert_allclose(chain.stationary, runs.PI, atol=1e-9)
        assert np.ptp(chain.transition, axis=0).max() > 0.1  # and rows of their own


def test_a_large_eps_of_adam_is_the_flow():
    """eps to infinity with lr / eps fixed is gradient descent: peaks on token 0 are those of the flow of the same start."""
    flow = runs.flow(True).on_frequent.max(axis=0)[1:]
    assert figures.by_eps(1.0)["peaks"] == pytest.approx(flow, abs=0.005)


def test_numbers_of_a_run_against_their_definitions(small):
    found = quantities.quantities(small)
    assert found["S0@0"] == pytest.approx(np.log(4), abs=1e-3)
    frame = figures.at(small, 198)
    row = small.attention[frame, 2]
    assert found["A20@198"] == row[0]
    assert found["A22@198"] == row[2]
    assert found["norm3@198"] == pytest.approx(np.linalg.norm(small.params["W0"][frame, 3]))
    weights = np.exp(small.scores[frame, 1] - small.scores[frame, 1].max())
    weights /= weights.sum()
    assert found["Hprobe1@198"] == pytest.approx(-weights @ np.log(weights + 1e-300), abs=1e-9)
    values = np.linalg.svd(small.params["WQ"][frame])[1]
    assert found["srWQ@198"] == pytest.approx(values[1] / values[0])
    passed = small.time[(small.attention[:, 1, 0] < 0.5) & (small.time > found["focus1_step"])]
    assert found["row1<.5 step"] == passed[0]
    assert "sv4W0 x3 step" not in found  # it has not come, and is not made up
    reference = distances.reference()["published"]["values"]
    assert {name for name in found if name in reference} >= {name for name in reference if name.endswith(("@0", "@198"))}


def test_tolerances_are_those_of_the_page_of_targets():
    rules = {
        "S2@198": 0.005,
        "S2@300": 0.15,
        "S0@300": 0.03,
        "loss@1000": 0.03,
        "norm1@300": 0.05,
        "perp3@2000": 0.12,
        "row1<.5 step": 12.0,
        "A10@198": 12.0,
    }
    assert {name: distances.tolerance(name, 12.0) for name in rules} == rules
    assert distances.tolerance("focus1_step", 0.0) == distances.SPACING
    assert distances.tolerance("A10@198", 0.0) == distances.FLOOR


def test_the_error_of_a_test_set_falls_with_its_root(small):
    some = runs.TokenCurves(small.time[:1], {name: block[-1:] for name, block in small.params.items()}, small.law)
    found = distances.sampling_errors(some, draws=12)
    exact = exact_errors(some)
    for token in range(4):
        assert found[f"S{token}@0"] == pytest.approx(exact[token], rel=0.6)  # the spread of a spread from twelve draws


def exact_errors(curves):
    """sd / sqrt(n) of the loss of a sequence that ends with each token, from the exact law of contexts."""
    contexts, scores = unseen_contexts(curves.law), curves.scores[0]
    weights = contexts.counts.T * np.exp(scores[contexts.query])
    logits = weights / weights.sum(axis=1, keepdims=True) @ (curves.params["W0"][0] @ curves.params["W1"][0])
    lost = np.log(np.exp(logits).sum(axis=1, keepdims=True)) - logits
    errors = []
    for token in range(4):
        share = contexts.weights.T[contexts.query == token]
        values = lost[contexts.query == token]
        mean = (share * values).sum() / share.sum()
        spread = (share * (values - mean) ** 2).sum() / share.sum()
        errors.append(np.sqrt(spread / (distances.TEST * share.sum())))
    return errors


def test_no_setting_near_the_published_one_gives_the_steps_of_the_caption(small, monkeypatch):
    monkeypatch.setattr(distances, "TRIED", {"as published": {"sequences": 4000}})
    distances.tried.cache_clear()
    rows = {row.quantity: row for row in distances.caption_rows(False)}
    found = distances.tried("as published")
    distances.tried.cache_clear()
    assert found["unscaled focus"] == found["focus"]  # its factor is 1
    assert rows["as published: focus"].ours < 200 < distances.CAPTION[0]
    assert {row.verdict for row in rows.values()} == {"outside"}
    assert "none of these 1 settings" in rows["as published: focus"].cause


def test_the_command_prints_the_table_and_writes_every_number(tmp_path, capsys, monkeypatch):
    row, other = (Distance("Section", "A10", "step 198", 0.999, 0.998, 0.01, figures=(name,)) for name in ("2", "3"))
    monkeypatch.setattr(sys.modules[NAME], "distances", lambda progress, quick: [row, other] if quick else [])

    assert (
        command(["reproduce", "focus-dilution", "--table", "--quick", "--figure", "3", "--out", str(tmp_path / "out"), "--quiet"])
        == 0
    )
    said = capsys.readouterr().out
    assert "1 of 1 numbers are within their tolerance" in said
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"distances.json", "distances.md"}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("linear-icl", "--table"), "linear-icl has no table of distances; those that have one: focus-dilution"),
        (("focus-dilution",), "name a folder for the figures: --out FOLDER"),
        (("linear-icl", "--quick", "--out", "figures"), "no quick version of any figure of linear-icl"),
        (("focus-dilution", "--table", "--figure", "99"), "figure '99'"),
    ],
)
def test_what_cannot_be_reproduced_is_said(words, expected, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert command(["reproduce", *words]) == 2
    assert expected in capsys.readouterr().err


@pytest.mark.long
@pytest.mark.parametrize("name", ["theorem-and-experiment", "blind", "frozen", "3"])
def test_quick_figures_are_drawn(name):
    figure = figures.FIGURES[name]
    assert drawn(figure, figure.quick)["quick"]
