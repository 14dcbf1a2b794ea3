"""Static figures: the files, what is in them, and text that is anybody's."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from matplotlib import pyplot

from stagescope.cli.main import run as command
from stagescope.core.errors import InputError
from stagescope.detect.stage import Event, Stage, Stages
from stagescope.landscape.ladder import Ladder, Rung
from stagescope.runs.from_arrays import from_arrays
from stagescope.show.portrait import portrait
from stagescope.show.static import drawings, text, write_figures
from stagescope.show.static_draw import moments, plain
from tests.runs.samples import memory_run
from tests.show.runs import broken, small

HOSTILE = ("$\\frac{", "</script><img onerror=alert(1)>", "\ud800 half", "\u202eright to left", "x" * 10_000, "a|b\nc", "_hidden")


@pytest.fixture(scope="module")
def found():
    return portrait(small("pairwise"), skip=("ladder",))


@pytest.fixture(autouse=True)
def no_warnings():
    """A layout that collapses is a warning."""
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*constrained_layout.*")
        yield


@pytest.mark.long
def test_figures_of_a_run(found, tmp_path):
    few = replace(found, views=found.views[1:2])
    made = write_figures(few, tmp_path / "new" / "folder")
    assert [path.name for path in made] == ["attention.pdf", "attention.svg", "attention.png", "ledger.md"]
    assert {path.suffix for path in made[0].parent.glob("attention.*")} == {".png", ".pdf", ".svg"}
    assert b"Class attention" in (made[0].parent / "attention.svg").read_bytes()
    first = {path: path.read_bytes() for path in made[0].parent.iterdir()}
    write_figures(few, tmp_path / "new" / "folder")
    assert first == {path: path.read_bytes() for path in made[0].parent.iterdir()}, "the same bytes"


@pytest.mark.parametrize("name", ["attention.png", "attention.pdf", "attention.svg", "ledger.md"])
def test_a_file_that_is_no_figure_of_ours_is_never_replaced(found, name, tmp_path):
    (tmp_path / name).write_bytes(b"my thesis")
    with pytest.raises(InputError, match=f"{name} exists and was not made with Stagescope"):
        write_figures(replace(found, views=found.views[1:2]), tmp_path)
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [(name, b"my thesis")]


def test_the_loss_that_is_drawn_is_the_recorded_one(found):
    drawing = drawings(found)["loss"]()
    lines = [line for line in drawing.axes[0].get_lines() if line.get_label() == "loss"]
    np.testing.assert_array_equal(lines[0].get_ydata(), found.run.series["loss"])
    pyplot.close(drawing)


def test_the_text_says_whose_a_stage_is_and_no_distance_of_a_point_that_was_not_found(found):
    stages = Stages.of("finished", "t", {}, (Stage("focus", 0.0, None, "it turns", "row 1"),), {})
    rungs = (Rung("(1,1)", 3.0, 1e-12, 0.25, 1.4, None, ()), Rung("(2,1)", 9.0, 1.0, 0.89452, 1.4, None, ()))
    said = text(replace(found, stages=stages, ladder=Ladder("finished", "t", rungs)))
    assert said.splitlines()[2].startswith("Run scan-snap: 40 frames to t=50")
    assert "| focus, row 1 |" in said
    assert "| (1,1) | 3 | 0.25 |" in said
    assert "| (2,1) | 9 | - |" in said


def test_records_between_gaps_are_dots():
    """A curve that was recorded at every third frame has no two neighbours that a line could join."""
    loss = np.where(np.arange(30) % 3, np.nan, 2.0)
    loss[12:15] = 1.0
    drawing = drawings(portrait(from_arrays(step=np.arange(30), loss=loss)))["loss"]()
    [line] = [line for line in drawing.axes[0].get_lines() if line.get_label() == "loss"]
    assert line.get_marker() == "o"
    np.testing.assert_array_equal(np.flatnonzero(line.get_markevery()), [0, 3, 6, 9, 18, 21, 24, 27])
    pyplot.close(drawing)


def test_intervals_of_events_are_bands(found):
    """Those that overlap are one band with the names of its events; that of a flow is narrower than a line and not drawn."""
    end = float(found.run.time[-1])
    ends = {"a": (0.4, 0.5), "b": (0.48, 0.6), "thin": (0.8, 0.8 + 1e-9)}
    events = {name: Event(low * end, low * end, high * end) for name, (low, high) in ends.items()}
    drawing = drawings(replace(found, stages=Stages.of("finished", "t", events, (), {})))["loss"]()
    axes = drawing.axes[0]
    spans = [patch.get_extents().transformed(axes.transData.inverted()) for patch in axes.patches]
    np.testing.assert_allclose([(span.x0 / end, span.x1 / end) for span in spans], [(0.4, 0.6)])
    assert "a, b" in [words.get_text() for words in axes.texts]
    assert [words.get_text() for words in axes.get_legend().get_texts()] == ["95 % intervals,\noverlapping ones joined"]
    pyplot.close(drawing)


def test_matrices_at_the_moments(found):
    """The pictures are the frames nearest to the events, the first and the last among them."""
    view = found.views[1]
    shown = moments(found, view)
    assert (shown[0], shown[-1]) == ((0, "start"), (found.run.frames - 1, "end"))
    drawing = drawings(found)["attention"]()
    images = [axes.get_images()[0].get_array() for axes in drawing.axes if axes.get_images()]
    for (place, name), image in zip(shown, images, strict=True):
        np.testing.assert_array_equal(image, view.values[place, 0])
        if name in found.stages.events:
            assert place == np.abs(found.run.t - found.stages.events[name]).argmin()
    pyplot.close(drawing)


def test_the_text_has_every_verdict(found):
    written = text(found)
    for row in found.ledger:
        assert f"{row.statement} [{row.tag}]".replace("|", "\\|").replace("<", "&lt;") in written
    assert found.ledger.summary() in written
    assert all(stage.name in written for stage in found.stages)


@pytest.mark.parametrize("name", [*HOSTILE[:3], *(pytest.param(name, marks=pytest.mark.long) for name in HOSTILE[3:])])
def test_anybodys_text(found, name, tmp_path):
    views = [view for view in found.views if view.slot in ("attention", "tokens", "embedding")]
    attention, tokens, embedding = views
    views = (
        replace(attention, title=name, columns=(name, *attention.columns[1:]), row_axis=name),
        replace(tokens, axis=name, curves=tuple(replace(curve, name=name, family=name) for curve in tokens.curves)),
        replace(embedding, slot=name, labels=(name,) * len(embedding.labels)),
    )
    stages = replace(found.stages, events={name: 1.0}, stages=(replace(found.stages.stages[0], name=name, stop=None),))
    odd = replace(found, name=name, views=views, stages=stages, notes=(name,))
    for draw in drawings(odd).values():
        drawing = draw()
        drawing.canvas.draw()
        pyplot.close(drawing)
    assert "<img" not in text(odd)
    assert all("/" not in slot and len(slot) <= 100 for slot in drawings(odd))
    assert len(plain(name)) <= 60


@pytest.mark.long
@pytest.mark.parametrize("frames", [1, 3])
def test_odd_runs_are_drawn(frames):
    for run in (memory_run(frames=frames), broken(memory_run(frames=frames), first=0)):
        for draw in drawings(portrait(run)).values():
            drawing = draw()
            drawing.canvas.draw()
            pyplot.close(drawing)


@pytest.mark.long
def test_the_command(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("stagescope.views.figure.FORMATS", ("png",))
    run = memory_run(frames=4).save(tmp_path / "run")
    assert command(["figures", str(run.path), "--out", str(tmp_path / "figures"), "--quiet"]) == 0
    printed = capsys.readouterr().out.split()
    assert all(line.startswith(str(tmp_path / "figures")) for line in printed)
    assert {"loss.png", "block-W.png", "ledger.md"} <= {path.name for path in (tmp_path / "figures").iterdir()}
    assert run.path is not None
    assert command(["figures", str(run.path), "--out", str(run.path / "manifest.json")]) == 2
    assert "is a file" in capsys.readouterr().err


def test_a_ladder_is_drawn():
    from stagescope.landscape.ladder import Ladder, Rung

    rungs = (
        Rung("(0,0)", 0.0, 1e-12, 0.01, 1.4, "embedding", (0.3, 0.1), measured_rate=0.29, measured_escape=11.0),
        Rung("(1,0)", 20.0, 1e-12, 0.02, 1.2, None, (), note="nothing grows"),
    )
    found = replace(portrait(memory_run()), ladder=Ladder("finished", "t", rungs))
    drawing = drawings(found)["ladder"]()
    predicted, measured = drawing.axes[0].get_lines()
    assert (list(predicted.get_xdata()), list(measured.get_xdata())) == ([0.3], [0.29])
    assert "nothing grows" in text(found)
    pyplot.close(drawing)


def test_a_rung_without_a_rate_shows_its_law():
    from stagescope.landscape.ladder import Ladder, Rung

    facts = {"predicted_escape": 9.0, "measured_escape": 9.1, "law": "order 2", "order": 2, "coefficient": 0.0924}
    rung = Rung("1 saddle", 0.0, 1e-12, 0.01, 1.4, "v+k", (), **facts)
    found = replace(portrait(memory_run()), ladder=Ladder("finished", "t", (rung,)))
    assert "| order 2, c = 0.0924 |" in text(found)
    drawing = drawings(found)["ladder"]()
    assert [label.get_text() for label in drawing.axes[0].get_yticklabels()] == ["1 saddle: v+k: order 2, c = 0.0924"]
    assert list(drawing.axes[1].get_lines()[0].get_xdata()) == [9.0]
    pyplot.close(drawing)
