"""Views of heads on a text: attention on the words before, and values of words."""

from functools import partial

import numpy as np

from stagescope.core.errors import InputError
from stagescope.corpora.corpus import written
from stagescope.papers.incremental.text.stages import text_lag_curves
from stagescope.papers.incremental.views import agreement_view, heads_in_plane, numbered, pairs
from stagescope.readings.reading import Reading
from stagescope.views.any_run import largest, loss_view, matrix, norms_view, values_view
from stagescope.views.curves import CELLS, curves, left_out, shown
from stagescope.views.view import Curve, Level, Maker, Marks, Matrices, View

LAGS = """Agreement: mean cosine between two heads. Specialisation: mass of the best matching of heads to lags; contrast: the \
same after subtracting the mean over heads. Heads compete while they agree, and part when one leaves the first lag."""


def text_lag_views(reading: Reading) -> list[Maker]:
    """Loss with what lags alone can give, attention by lag, agreement of heads, values by words.

    Without its text a run is shown by what it stores, which includes its words; levels and held-out loss are left out.
    """
    run = reading.run
    lags_of_run = text_lag_curves(run)
    heads, lags = lags_of_run.mass.shape[1:]
    try:
        information = lags_of_run.information
    except InputError:  # the text is not at hand
        information = None

    def loss() -> View | None:
        uniform = Level("uniform prediction, ln M", float(np.log(lags_of_run.law.process.vocab)))
        about = "Cross-entropy of the next word in nats."
        if information is None:
            return loss_view(run, (uniform,), f"{about} Its levels and the held-out loss need the text, which is not at hand.")
        unigram, first = lags_of_run.levels
        levels = (
            uniform,
            Level("entropy of the words", float(unigram)),
            Level(f"best with lag {information.first} alone", float(first)),
        )
        about += f" The best with lag {information.first} alone is computed from the counts of the text."
        return loss_view(run, levels, about, (Curve("held-out loss", lags_of_run.held_out),))

    def by_lag() -> View:
        cells, about = np.zeros((heads, lags), dtype=np.uint8), "Row = head, column = lag."
        if information is not None:
            for place, lag in enumerate(information.order[:2]):
                cells[:, lag - 1] = place + 1
            added = ", ".join(f"{value:.3f}" for value in information.added)
            about += f" Information on the next word, in nats, lag by lag: {added} "
            about += f"(lag {information.first} alone, the others what they add to it)."
        return matrix(
            "attention",
            "Attention of each head by lag",
            about,
            lags_of_run.mass,
            rows=numbered("head", heads),
            columns=tuple(str(lag + 1) for lag in range(lags)),
            row_axis="head",
            column_axis="lag",
            marks=None if information is None else Marks(("most informative lag", "second"), cells),
        )

    def masses() -> View:
        mass_curves = pairs(lags_of_run.mass, numbered("lag", lags))
        about = "Lag 1 is the word before, lag 2 the one before that; one colour per lag." + left_out(heads * lags)
        return curves("mass", "Attention of each head on each lag", about, "attention", mass_curves)

    def value_maps() -> View:
        """The values of the 40 most frequent words: tokens are ordered by frequency, and more labels would not be legible."""
        size = min(40, lags_of_run.law.process.vocab)
        some = shown(run, heads * size**2, CELLS)
        values = np.swapaxes(np.asarray(some.run.params["V"])[:, :, :size, :size], 2, 3)  # stored (head, output, token)
        vocabulary = (run.config or {}).get("words") or lags_of_run.law.process.words
        words = tuple(map(written, vocabulary[:size]))
        high = largest(values)
        return Matrices(
            "value-maps",
            "Values of each head",
            "Row = word that a head attends to, column = next word whose logit it changes."
            + left_out(lags_of_run.law.process.vocab, size, "words"),
            values,
            panels=numbered("head", heads),
            rows=words,
            columns=words,
            row_axis="word",
            column_axis="next word",
            low=-high,
            high=high,
            frames=some.frames,
        )

    def in_plane() -> View | None:
        if heads == 1:
            return None
        some = shown(run, run.params["V"][0].size, CELLS)
        return heads_in_plane(np.asarray(some.run.params["V"]), some.frames)

    several = (
        [partial(agreement_view, lags_of_run, lags_of_run.mass_agreement, LAGS)] if heads > 1 else []
    )  # one head agrees with itself
    return [loss, by_lag, masses, *several, value_maps, in_plane, partial(values_view, run, ("V",)), partial(norms_view, run)]
