"""A playground: the flow of a study with sliders, integrated in the page. One offline file, or a widget in a notebook."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stagescope.errors import needed
from stagescope.reporting.blocks import Blocks
from stagescope.reporting.bundle import viewer_script, viewer_style
from stagescope.reporting.page import document
from stagescope.reporting.play_data import laws_script, play_data, play_of, playable
from stagescope.reporting.report import html_target
from stagescope.runs.files import publish

if TYPE_CHECKING:
    from stagescope.reporting.play_widget import PlayWidget


def play(
    study: str = "focus-dilution", path: str | Path | None = None, *, preset: str | None = None, seed: int = 0, **options: Any
) -> "Path | PlayWidget":
    """Play with the options of a study: each move of a slider integrates its flow again, in the page.

    In a notebook the playground is a widget. Its `options`, `events`, `command` and `arrays` are read from Python, and setting
    `options` moves the sliders. Elsewhere, or with a `path`, it is one offline HTML page, and its path is returned.

    Args:
        study: focus-dilution, scan-snap, linear-icl, or a study of another paper that declares how it is played.
        path: the page to write; default: a widget in a notebook, otherwise NAME-play.html.
        preset: settings to start with; default: the first preset of the study.
        seed: of the start, 0 to 9.
        options: further settings to start with.

    Returns:
        The page, or the widget.

    Examples:
        >>> ss.play("linear-icl", "play.html").name
        'play.html'
    """
    play_of(study)
    start = {study: {**options, "seed": seed, **({"preset": preset} if preset else {})}}
    if path is None and in_notebook():
        needed("anywidget", "widget", "a playground in a notebook (a page needs nothing: give a path)")
        from stagescope.reporting.play_widget import PlayWidget

        return PlayWidget.of(play_data([study], study, start), laws_script([study]))
    return write_play([study], Path(path or f"{study}-play.html"), start)


def write_play(names: Sequence[str], path: Path, start: dict[str, dict[str, Any]] | None = None) -> Path:
    """The page of some studies, all that can be played by default; an earlier page of Stagescope is replaced."""
    target = html_target(path)
    publish(target, play_page(names or list(playable()), start).encode())
    return target


def play_page(names: Sequence[str], start: dict[str, dict[str, Any]] | None = None) -> str:
    """The whole file."""
    title = f"Play: {names[0]}" if len(names) == 1 else "Play"
    styles = [viewer_style("style", "panels", "play")]
    return document(
        title, play_data(names, title, start), Blocks(), [laws_script(names)], viewer_script("play"), styles, "playground"
    )


def in_notebook() -> bool:
    """Whether this is a cell of a notebook; IPython is not imported for it."""
    shell = sys.modules.get("IPython")
    running = shell.get_ipython() if shell is not None else None
    return running is not None and type(running).__name__ == "ZMQInteractiveShell"
