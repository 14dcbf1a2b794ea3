"""Draw a figure once, in memory: how its files are written is tested with the figures of the papers."""

import io
import json

from matplotlib import pyplot

from stagescope.progress import Progress


def drawn(figure, compute=None):
    """A figure's numbers as they are stored, after they were drawn; `compute` in place of its own."""
    numbers = json.loads(json.dumps((compute or figure.compute)(Progress()), allow_nan=False))
    drawing = figure.draw(numbers)
    with io.BytesIO() as picture:
        drawing.savefig(picture, format="png", dpi=40)
        assert len(picture.getvalue()) > 5000
    pyplot.close(drawing)
    return numbers
