"""A playground: the flow of a study with sliders, integrated in the page. One offline file, also in a cell of a notebook."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from stagescope.show.bundle import Blocks, viewer_script, viewer_style
from stagescope.show.page import document
from stagescope.show.play_data import laws_script, play_data, play_of, playable
from stagescope.show.report import Page, html_target


def play(
    study: str = "focus-dilution", path: str | Path | None = None, *, preset: str | None = None, seed: int = 0, **options: Any
) -> Path | Page:
    """Play with the options of a study: each move of a slider integrates its flow again, in the page.

    It is one offline HTML page. In a notebook, without a `path`, the cell shows it and nothing is written.

    Args:
        study: focus-dilution, scan-snap, linear-icl, or a study of another paper that declares how it is played.
        path: the page to write; default: none in a notebook, otherwise NAME-play.html.
        preset: settings to start with; default: the first preset of the study.
        seed: of the start, 0 to 9.
        options: further settings to start with.

    Returns:
        The file, or in a notebook without a path the page.

    Examples:
        >>> ss.play("linear-icl", "play.html").name
        'play.html'
    """
    play_of(study)
    start = {study: {**options, "seed": seed, **({"preset": preset} if preset else {})}}
    if path is None and in_notebook():
        return play_page([study], start)
    return write_play([study], Path(path or f"{study}-play.html"), start)


def write_play(names: Sequence[str], path: Path, start: dict[str, dict[str, Any]] | None = None) -> Path:
    """The page of some studies, all that can be played by default; an earlier page of Stagescope is replaced."""
    target = html_target(path)
    return play_page(names or list(playable()), start).save(target)


def play_page(names: Sequence[str], start: dict[str, dict[str, Any]] | None = None) -> Page:
    """The page, not yet written."""
    title = f"Play: {names[0]}" if len(names) == 1 else "Play"
    data, scripts = play_data(names, title, start), [laws_script(names)]
    styles = [viewer_style("style", "panels", "play")]
    return Page(document(title, data, Blocks(), scripts, viewer_script("play"), styles, "playground"), title)


def in_notebook() -> bool:
    """Whether this is a cell of a notebook; IPython is not imported for it."""
    shell = sys.modules.get("IPython")
    running = shell.get_ipython() if shell is not None else None
    return running is not None and type(running).__name__ == "ZMQInteractiveShell"
