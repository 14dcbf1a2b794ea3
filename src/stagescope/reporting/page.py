"""The page: one HTML file with its data, its script and its styles inside, and a policy that lets nothing else run or load.

Names and tokens are untrusted. They travel as JSON in which no character can end the element, and the viewer puts them on
screen as text. The policy names the scripts and styles of the page by their hashes: nothing else runs, and nothing is
loaded from anywhere.
"""

import base64
import hashlib
import html
import json
from collections.abc import Callable, Sequence
from typing import Any

import stagescope
from stagescope.reporting.blocks import Blocks
from stagescope.reporting.bundle import uplot_file, viewer_script, viewer_style
from stagescope.reporting.page_data import page_data
from stagescope.reporting.play_data import laws_script, play_of_runs
from stagescope.reporting.words import clean
from stagescope.views.view import Portrait

GENERATOR = '<meta name="generator" content="Stagescope'
"""Near the start of every page, so that reports are recognised."""
_ESCAPES = {ord(sign): f"\\u{ord(sign):04x}" for sign in "<>&\u2028\u2029"}


def page(
    portraits: Sequence[Portrait], title: str | None = None, *, exact: bool = False, done: Callable[[], None] = lambda: None
) -> str:
    """The whole file. The same portraits give the same bytes; `done` is called after each run."""
    blocks = Blocks()
    named = title or default_title([portrait.name for portrait in portraits])
    data = page_data(portraits, named, blocks, exact=exact, done=done)
    styles = [uplot_file("uPlot.min.css"), viewer_style("style", "panels", "player", "guide", "play")]
    libraries = [uplot_file("uPlot.iife.js")]
    if played := play_of_runs([portrait.run for portrait in portraits]):
        data["play"] = played
        libraries.append(laws_script([study["name"] for study in played["studies"]]))
    return document(named, data, blocks, libraries, viewer_script("main"), styles)


def document(
    title: str, data: Any, blocks: Blocks, libraries: Sequence[str], viewer: str, styles: Sequence[str], what: str = "report"
) -> str:
    """The HTML file: its data, scripts that are no modules, the viewer, and its styles."""
    parts = [
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{policy([*libraries, viewer], styles)}">',
        f'{GENERATOR} {stagescope.__version__}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="color-scheme" content="light dark">',
        '<link rel="icon" href="data:,">',  # or a browser asks a server for one
        f"<title>{html.escape(clean(title)[:200])}</title>",
        *(f"<style>{style}</style>" for style in styles),
        "</head>\n<body>",
        f"<noscript>This {what} is drawn by a script inside this file. Please allow scripts for it.</noscript>",
        '<main id="page"></main>',
        f'<script type="application/json" id="data">{safe_json(data)}</script>',
        *(f'<script type="application/octet-stream" id="block-{i}">{text}</script>' for i, text in enumerate(blocks.payloads)),
        *(f"<script>{library}</script>" for library in libraries),
        f'<script type="module">{viewer}</script>',
        "</body>\n</html>\n",
    ]
    return "\n".join(parts)


def default_title(names: Sequence[str]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more


def policy(scripts: Sequence[str], styles: Sequence[str]) -> str:
    """Content Security Policy: these scripts, these styles, pictures the page itself makes, and nothing else."""
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src {' '.join(map(_hash, scripts))}",
            f"style-src {' '.join(map(_hash, styles))}",
            "img-src data: blob:",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def safe_json(value: Any) -> str:
    """JSON that may stand inside <script>: no sign in it can end the element or open another."""
    return json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":")).translate(_ESCAPES)
