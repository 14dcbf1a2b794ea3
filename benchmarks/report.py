"""A report of 1,000 frames x 4 heads x 100 x 100 in headless Chromium (bars: 6 MB, usable in 2 s, 30 frames a second).

The same numbers as a Plotly heat map with frames and a slider, written as its documentation does it, stand beside it.
`python -m benchmarks.report` needs a Chromium and the extra `benchmarks`; --no-plotly leaves that half out.
Then a slider of the playground is moved 200 times (benchmarks/play.py).

Usable: from the start of navigation until the page says it is ready and the attention maps have moved for the first time.
A frame a second: an animation frame in which the slider was moved and after which the pixels of a head have changed.
"""

import json
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from playwright.sync_api import Browser, sync_playwright

import stagescope as ss
from benchmarks.play import played
from stagescope.runs.run import Arrays
from tests.browser.chromium import REMEDY, launch

FRAMES, HEADS, SIDE = 1000, 4, 100
TIMES, SECONDS = 5, 4
STRIDE = 3
"""Frames the slider moves at once: 8 bits do not change at every frame where little happens."""
WAIT = 300_000
"""Milliseconds; Plotly needs many seconds for its file."""


def trajectory(seed: int = 0) -> np.ndarray:
    """Softmax of scores in which every cell moves from noise to its own target, at its own time and pace."""
    rng = np.random.default_rng(seed)
    shape = (HEADS, SIDE, SIDE)
    start, target = 0.1 * rng.normal(size=shape), 1.5 * rng.normal(size=shape)
    when, width = rng.uniform(0.1, 0.9, size=shape), rng.uniform(0.03, 0.15, size=shape)
    values = np.empty((FRAMES, *shape), np.float32)
    for frame, t in enumerate(np.linspace(0.0, 1.0, FRAMES)):
        weights = np.exp(start + target / (1 + np.exp((when - t) / width)))
        values[frame] = weights / weights.sum(axis=-1, keepdims=True)
    return values


def run_of(values: np.ndarray) -> ss.Run:
    """What an own objective with a block `attention` would leave."""
    time = np.linspace(0.0, 1.0, len(values))
    return ss.Run(
        params=Arrays.of({"attention": values}),
        series=Arrays.of({"t": time, "loss": np.exp(-3 * time)}),
        spec={
            "field": {"type": "own", "name": "benchmark"},
            "blocks": {"attention": list(values.shape[1:])},
            "dynamics": {"type": "GradientFlow", "rates": {}},
        },
        clock="t",
        status="finished",
        axes={"t": ("t",), "loss": ("t",), "attention": ("t", "head", "query", "key")},
    )


def plotly_page(values: np.ndarray, path: Path) -> None:
    """Four heat maps with a frame for each frame and a slider over them; numbers in single precision."""
    import plotly.graph_objects as go
    from plotly.subplots import make_subplots

    figure = make_subplots(rows=1, cols=HEADS, subplot_titles=[f"head {head + 1}" for head in range(HEADS)])
    for head in range(HEADS):
        figure.add_trace(go.Heatmap(z=values[0, head], coloraxis="coloraxis"), row=1, col=head + 1)
    every = list(range(HEADS))
    figure.frames = [
        go.Frame(name=str(i), data=[go.Heatmap(z=head) for head in frame], traces=every) for i, frame in enumerate(values)
    ]
    move = {"mode": "immediate", "frame": {"duration": 0, "redraw": True}, "transition": {"duration": 0}}
    steps = [{"method": "animate", "label": str(i), "args": [[str(i)], move]} for i in range(len(values))]
    colours = {"colorscale": "Viridis", "cmin": 0.0, "cmax": float(values.max())}
    figure.update_layout(sliders=[{"steps": steps}], coloraxis=colours)
    ready = "window.plot = document.getElementById('{plot_id}'); document.documentElement.dataset.ready = 'true';"
    figure.write_html(path, include_plotlyjs=True, auto_play=False, post_script=ready)


OURS = {
    "move": """to => { const slider = document.querySelector('input[type=range]');
        const scene = window.stagescope.scene();
        slider.value = String(scene.scale.share(scene.times[to]));
        slider.dispatchEvent(new Event('input', {bubbles: true})); }""",
    "pixels": """() => { const map = document.querySelector('section[data-slot="block-attention"] canvas.tile-cells');
        if (!map || !map.width || !map.height) return '';
        const {data} = map.getContext('2d').getImageData(0, 0, map.width, map.height);
        let sum = 0; for (let i = 0; i < data.length; i += 4) sum = (31 * sum + data[i] + 7 * data[i + 1]) | 0;
        return String(sum); }""",
}
PLOTLY = {
    "move": """to => Plotly.animate(plot, [String(to)],
        {mode: 'immediate', frame: {duration: 0, redraw: true}, transition: {duration: 0}})""",
    "pixels": """() => { const map = window.plot && plot.querySelector('.heatmaplayer image');
        return map ? map.getAttribute('href') || map.getAttribute('xlink:href') || '' : ''; }""",
}
"""How each page is moved to a frame, and what its first head looks like now."""
USABLE = """async ([move, pixels, last]) => {
    const tick = () => new Promise(requestAnimationFrame);
    while (document.documentElement.dataset.ready !== 'true') await tick();
    const ready = performance.now();
    let before = pixels();
    while (!before) { await tick(); before = pixels(); }
    await move(last);
    while (pixels() === before) await tick();
    return [ready, performance.now()];
}"""
SCRUB = """async ([move, pixels, frames, stride, seconds]) => {
    const tick = () => new Promise(requestAnimationFrame);
    const began = performance.now();
    let drawn = 0, at = 0, before = pixels();
    while (performance.now() - began < 1000 * seconds) {
        at = (at + stride) % frames;
        await move(at);
        await tick();
        const now = pixels();
        if (now !== before) drawn++;
        before = now;
    }
    return 1000 * drawn / (performance.now() - began);
}"""


def script(body: str, how: dict[str, str]) -> str:
    """A measurement with the functions of a page put in: functions cannot be passed as arguments."""
    return f"numbers => ({body})([{how['move']}, {how['pixels']}, ...numbers])"


def measure(browser: Browser, path: Path, how: dict[str, str], times: int) -> dict[str, float]:
    """Size, the median time until usable over fresh pages, and frames a second on the last of them."""
    loads: list[list[float]] = []
    rate = 0.0
    for i in range(times):
        context = browser.new_context(viewport={"width": 1440, "height": 900})
        page = context.new_page()
        page.set_default_timeout(WAIT)
        page.goto(path.as_uri(), timeout=WAIT, wait_until="commit")
        loads.append(page.evaluate(script(USABLE, how), [FRAMES - 1]))
        if i == times - 1:
            rate = page.evaluate(script(SCRUB, how), [FRAMES, STRIDE, SECONDS])
        context.close()
    ready, usable = (statistics.median(column) / 1000 for column in zip(*loads, strict=True))
    size = path.stat().st_size / 1e6
    return {"megabytes": size, "seconds_to_ready": ready, "seconds_to_usable": usable, "frames_per_second": rate}


def table(name: str, found: dict[str, float]) -> str:
    numbers = (found["megabytes"], found["seconds_to_usable"], found["frames_per_second"])
    return "{:<8} {:8.1f} MB   usable after {:6.2f} s   {:6.1f} frames a second".format(name, *numbers)


def main() -> None:
    values = trajectory()
    answer: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = launch(playwright.chromium)
        if browser is None:
            sys.exit(REMEDY)
        page = ss.report(run_of(values), Path(folder) / "report.html")
        answer |= measure(browser, page, OURS, TIMES)
        print(table("report", answer), flush=True)
        answer |= played(browser, Path(folder))
        if "--no-plotly" not in sys.argv[1:]:
            plotly_page(values, Path(folder) / "plotly.html")
            beside = measure(browser, Path(folder) / "plotly.html", PLOTLY, 1)
            print(table("plotly", beside), flush=True)
            answer |= {f"plotly_{name}": value for name, value in beside.items() if name != "seconds_to_ready"}
        browser.close()
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
