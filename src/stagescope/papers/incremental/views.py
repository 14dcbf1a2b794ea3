"""Views of runs: attention over lags, group masses, levels of the restricted classes, heads of the regression flow."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from stagescope.papers.incremental.observables import GroupMass, head_curves, lag_curves
from stagescope.papers.incremental.students import PositionalHeads
from stagescope.readings.reading import Reading
from stagescope.views.any_run import excess_view, loss_view, matrix, norms_view, speed_view, values_view
from stagescope.views.curves import CELLS, MOST, MOST_POINTS, OBSERVED, curves, left_out, many_curves, plane, shown
from stagescope.views.view import Curve, Level, Maker, Marks, Matrices, Points, View


def numbered(noun: str, count: int) -> tuple[str, ...]:
    """Names that count from 1."""
    return tuple(f"{noun} {i + 1}" for i in range(count))


def labelled(curves: Sequence[Curve]) -> list[Curve]:
    """As many curves as are shown, of which nine have a label of their own: three heads on three groups, as in the paper."""
    return [replace(curve, faint=i >= 9) for i, curve in enumerate(curves[:MOST])]


def pairs(values: np.ndarray, groups: Sequence[str]) -> list[Curve]:
    """Curves of values (frames, H, k), one for every head and group; the colour is the group's."""
    heads = range(values.shape[1])
    return labelled([Curve(f"head {h + 1}, {group}", values[:, h, i], group) for i, group in enumerate(groups) for h in heads])


def mass_view(mass: GroupMass, groups: Sequence[str], places: str, frames: np.ndarray | None) -> View:
    mass_curves = pairs(mass.mass, groups)
    about = f"Attention of each head on {places}.{left_out(mass.mass.shape[1] * len(groups))}"
    return curves("mass", "Attention of each head on each group", about, "attention", mass_curves, frames=frames)


GROUPS = """Agreement: mean cosine between two heads. Specialisation: mass of the best matching of heads to groups. Contrast: \
the same after subtracting the mean over heads. Heads compete while they agree and cooperate once they divide the groups."""


def agreement_view(mass: GroupMass, agreement: np.ndarray, about: str = GROUPS, frames: np.ndarray | None = None) -> View:
    """Agreement of heads, that of their attention given, and how far they divide the groups."""
    agreement_curves = [Curve("agreement of attention", agreement)]
    if mass.value_agreement is not None:
        agreement_curves.append(Curve("agreement of values", mass.value_agreement))
    agreement_curves += [Curve("specialisation", mass.specialisation), Curve("contrast", mass.contrast)]
    return curves("heads", "Agreement and specialisation of heads", about, "", agreement_curves, frames=frames)


def learned_view(learned: np.ndarray, groups: Sequence[str], frames: np.ndarray | None) -> View:
    share_curves = labelled([Curve(group, learned[:, i]) for i, group in enumerate(groups)])
    about = "Component of the model's map of each group along the true map, as a share of the true one: 1 when it is learned."
    about += left_out(len(groups), what="groups")
    level = [Level("learned", 1.0)]
    return curves("learned", "Share of each feature learned", about, "share", share_curves, levels=level, frames=frames)


def heads_in_plane(values: np.ndarray, frames: np.ndarray | None) -> View:
    """Heads by their values (frames, H, ...), flattened."""
    places, shares = plane(values.reshape(*values.shape[:2], -1))
    about = (
        "Each head's values as one point, in the plane of largest variance over all frames. Heads part when the points separate."
    )
    labels = numbered("head", values.shape[1])
    return Points("embedding", "Heads by their values", about, places, labels, shares, frames=frames)


def lag_views(reading: Reading) -> list[Maker]:
    """Loss with the levels of the classes, attention, lags, masses, agreement, values."""
    run = reading.run
    law = lag_curves(run).law  # curves are computed only at the frames that are shown
    model, process = law.model, law.process
    matrices = ("a", "V", "W", "E", "Q1", "K1", "U")  # scores, values, queries, embedding, first layer, output
    some = shown(run, model.heads * max(model.targets * model.positions, process.vocab**2), CELLS)
    lag_mass, frames = lag_curves(some.run), some.frames
    groups = numbered("group", len(process.groups))
    listed = "; ".join(f"{group}: {_span(lags)}" for group, lags in zip(groups, process.groups, strict=True))

    def loss() -> View | None:
        """The training loss as recorded, and the held-out loss."""
        levels = _levels(lag_mass.levels.losses)
        data = "the true law" if lag_mass.law.labels == "soft" else "the tokens drawn"
        about = f"Cross-entropy to {data} on the training sequences, in nats. Levels: the best loss with the first groups alone."
        held_out = (Curve("held-out loss", lag_mass.excess + lag_mass.levels.bayes),) if frames is None else ()
        if not held_out:
            about += " The held-out loss is known at fewer frames: see the excess over the floor."
        return loss_view(run, levels, about, held_out)

    def excess() -> View:
        above = "the entropy of its targets, on held-out sequences with the true law as label"
        return excess_view(lag_mass.excess, above, _levels(lag_mass.steps), frames)

    def marked(lags: np.ndarray) -> Marks:
        """Cells whose lag belongs to a group; where groups share a lag, the most important one."""
        cells = np.zeros(lags.shape, dtype=np.uint8)
        for number, group in reversed(list(enumerate(process.groups))):
            cells[np.isin(lags, group)] = number + 1
        return Marks(tuple(f"{name}: {_span(group)}" for name, group in zip(groups, process.groups, strict=True)), cells)

    def attention() -> View:
        lags = model.context + np.arange(model.targets)[:, None] - np.arange(model.positions)
        depends = "" if isinstance(model, PositionalHeads) else ", mean over contexts"
        return Matrices(
            "attention",
            "Attention of each head",
            f"Row = predicted token, column = position before it{depends}; positions of the lag groups are marked.",
            lag_mass.attention,
            panels=numbered("head", model.heads),
            rows=tuple(f"target {t}" for t in range(model.targets)),
            columns=tuple(str(s) for s in range(model.positions)),
            row_axis="target",
            column_axis="position",
            marks=marked(np.where(lags > 0, lags, 0)),
            frames=frames,
        )

    def by_lag() -> View:
        """Attention on each lag that every target has before it, mean over targets."""
        lags = range(1, model.context + 1)
        return matrix(
            "lags",
            "Attention of each head by lag",
            "Row = head, column = lag, mean over targets; lags of the groups are marked.",
            np.stack([lag_mass.lag_attention(lag) for lag in lags], axis=2),
            rows=numbered("head", model.heads),
            columns=tuple(str(lag) for lag in lags),
            row_axis="head",
            column_axis="lag",
            marks=marked(np.tile(np.array(lags), (model.heads, 1))),
            frames=frames,
        )

    def entropy() -> View:
        entropy_curves = many_curves(lag_mass.entropy, numbered("head", model.heads))
        about = "Mean entropy of each head's attention, in nats: it falls when a head concentrates on few lags." + left_out(
            model.heads
        )
        return curves("entropy", "Entropy of attention", about, "nats", entropy_curves, frames=frames)

    def alignment() -> View | None:
        if lag_mass.alignment is None:
            return None
        about = "<V_h, A_i>/|A_i|: component of the values of each head along the feature of each group."
        about += left_out(lag_mass.alignment.shape[1] * len(groups))
        alignment_curves = pairs(lag_mass.alignment, groups)
        return curves("alignment", "Values of the heads along the features", about, "alignment", alignment_curves, frames=frames)

    def embedding() -> View | None:
        """The embedding, where the student has one."""
        if "E" not in run.params:
            return None
        some = shown(run, run.params["E"][0].size, OBSERVED)
        places, shares = plane(np.asarray(some.run.params["E"][:, :MOST_POINTS], dtype=float))
        about = "Rows of the embedding E in the plane of their largest variance, all frames together."
        about += left_out(run.params["E"].shape[1], MOST_POINTS, "tokens")
        labels = tuple(str(i) for i in range(places.shape[1]))
        return Points("embedding", "Embedding of the tokens", about, places, labels, shares, frames=some.frames)

    return [
        loss,
        attention,
        by_lag,
        partial(mass_view, lag_mass, groups, f"the lags of each group ({listed})", frames),
        partial(agreement_view, lag_mass, lag_mass.agreement, frames=frames),
        lambda: None if lag_mass.learned is None else learned_view(lag_mass.learned, groups, frames),
        entropy,
        alignment,
        lambda: None if lag_mass.values is None else heads_in_plane(lag_mass.values, frames),
        embedding,
        partial(values_view, run, tuple(name for name in matrices if name in run.params)),
        excess,
        partial(norms_view, run),
        partial(speed_view, run),
    ]


def _span(lags: tuple[int, ...]) -> str:
    word = "lag" if len(lags) == 1 else "lags"
    return f"{word} {', '.join(map(str, lags))}"


def _levels(losses: np.ndarray) -> tuple[Level, ...]:
    """Named levels of the classes F_0 .. F_k, which know the first j groups."""
    names = ("best with the first group" if j == 1 else f"best with the first {j} groups" for j in range(1, len(losses)))
    return tuple(Level(name, float(level)) for name, level in zip(("uniform prediction", *names), losses, strict=True))


def regression_views(reading: Reading) -> list[Maker]:
    """Loss with its plateaus, attention over positions, masses, agreement, values."""
    run = reading.run
    some = shown(run, sum(block[0].size for block in run.params.values()), OBSERVED)
    head_mass, frames = head_curves(some.run), some.frames
    model, groups = head_mass.model, numbered("feature", len(head_mass.model.gains))
    values = model.reduce(head_mass.params)["V"]

    def loss() -> View | None:
        about = (
            "Squared error of the map, |G - P|^2/2. On plateau j the first j features are fitted: the level is sum_{i>j} g_i^2/2."
        )
        levels = enumerate(head_mass.forms.levels)
        named = tuple(Level(f"{j} feature{'' if j == 1 else 's'} fitted", float(level)) for j, level in levels)
        if "loss" in run.series:
            return loss_view(run, named, about)
        about += " The mirror law is no gradient of a loss: this loss is computed along the run."
        return loss_view(run, named, about, (Curve("loss", head_curves(run).loss),))

    def attention() -> View:
        heads = head_mass.attention.shape[1]
        cells = np.zeros((heads, model.positions), dtype=np.uint8)
        cells[:, model.at] = 1 + np.arange(len(model.gains))
        return matrix(
            "attention",
            "Attention of the heads over positions",
            "Row = head, column = position; the positions of the features are marked.",
            head_mass.attention,
            rows=numbered("head", heads),
            columns=tuple(str(n) for n in range(model.positions)),
            row_axis="head",
            column_axis="position",
            marks=Marks(numbered("position of feature", len(model.gains)), cells),
            frames=frames,
        )

    def head_values() -> View:
        return matrix(
            "head-values",
            "Values of the heads",
            "V_h in the basis of the features: what each head adds for the positions it attends to.",
            values,
            rows=numbered("head", values.shape[1]),
            columns=groups,
            row_axis="head",
            column_axis="feature",
            signed=True,
            frames=frames,
        )

    return [
        loss,
        attention,
        partial(mass_view, head_mass, groups, "the positions of the features", frames),
        partial(agreement_view, head_mass, head_mass.agreement, frames=frames),
        lambda: None if head_mass.learned is None else learned_view(head_mass.learned, groups, frames),
        head_values,
        partial(heads_in_plane, values, frames),
        partial(norms_view, run),
        partial(speed_view, run),
    ]
