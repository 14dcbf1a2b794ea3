"""Draw a figure once, without a picture: how its files are written is tested with the figures of the papers."""

import json

from matplotlib import pyplot

from stagescope.core.progress import Progress


def drawn(figure, compute=None):
    """A figure's numbers as they are stored, after they were drawn; `compute` in place of its own."""
    numbers = json.loads(json.dumps((compute or figure.compute)(Progress()), allow_nan=False))
    drawing = figure.draw(numbers)
    drawing.draw_without_rendering()
    assert any(axes.has_data() for axes in drawing.axes)
    pyplot.close(drawing)
    return numbers
