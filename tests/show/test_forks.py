"""A fork on a page beside its parent."""

import warnings

import numpy as np

import stagescope as ss
from stagescope.show.report import report
from tests.show.decode import Parts


def bowl(params):
    return 0.5 * (params["x"] ** 2).sum()


def test_a_fork_beside_its_parent_shows_how_far_apart_they_are(tmp_path):
    loss = ss.JaxObjective(bowl)
    run = ss.evolve(loss, {"x": np.array([3.0, 4.0])}, ss.Descent(lr=0.1, steps=20), out=tmp_path / "run")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = ss.fork(run, loss, at="step=10", perturb=0.01, out=tmp_path / "fork", progress=False)
    both = report([run, made], skip=("ladder",), progress=False)
    path, notes = both.save(tmp_path / "both.html"), both.notes
    assert "fork: fork: this run is a fork: its motion was changed at step = 10" in notes
    parent, fork = Parts(path.read_text()).data()["scenes"][0]["runs"]
    assert "fork" not in [view["slot"] for view in parent["views"]]
    (view,) = [view for view in fork["views"] if view["slot"] == "fork"]
    assert view["title"] == "Distance from the parent"
    alone = report([made], skip=("ladder",), progress=False).save(tmp_path / "alone.html")
    assert "Distance from the parent" not in alone.read_text()
