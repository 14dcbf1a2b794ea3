"""200 moves of a slider in the playground of focus-dilution `ref`, in headless Chromium (bar: median of 100 ms a move).

`python -m benchmarks.play` needs a Chromium. A move is timed from the event of the slider until all plots are drawn. In turn
with the moves `ss.evolve` computes the same flow at its own tolerance of 1e-10, so that the ratio is fair on a machine that is
busy. At rest the page computes the flow again at its fine tolerance.
"""

import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

import stagescope as ss
from stagescope.show.play import write_play
from tests.browser.chromium import REMEDY, launch

MOVES, ROUNDS = 200, 20
MOVE = """async ([from, count]) => { const slider = document.querySelector('[data-option=persistence]'), spent = [];
    for (let i = from; i < from + count; i++) {
        slider.value = String(60 + (7 * i) % 55);
        const began = performance.now();
        slider.dispatchEvent(new Event('input', {bubbles: true}));
        spent.push(performance.now() - began);
        await new Promise(requestAnimationFrame);
    }
    return spent; }"""
REFINE = "() => { const began = performance.now(); stagescope.ground.refine(); return performance.now() - began; }"


def exact() -> float:
    """Milliseconds of the flow of `ref` by Python."""
    began = time.perf_counter()
    ss.run_study("focus-dilution", "ref", progress=False)
    return 1000 * (time.perf_counter() - began)


def measure(page: Page) -> dict[str, float]:
    """Moves, refinements and runs of Python in turn."""
    moves: list[float] = []
    refined: list[float] = []
    runs: list[float] = []
    for turn in range(ROUNDS):
        moves += page.evaluate(MOVE, [turn * MOVES // ROUNDS, MOVES // ROUNDS])
        refined.append(page.evaluate(REFINE))
        runs.append(exact())
    median, run = statistics.median(moves), statistics.median(runs)
    return {
        "moves": len(moves),
        "move_median_ms": median,
        "move_p95_ms": statistics.quantiles(moves, n=20)[-1],
        "move_least_ms": min(moves),
        "refined_median_ms": statistics.median(refined),
        "evolve_median_ms": run,
        "move_over_evolve": median / run,
    }


def played(browser: Browser, folder: Path) -> dict[str, float]:
    """The numbers of 200 moves, and two lines that say them."""
    exact()
    path = write_play(["focus-dilution"], folder / "play.html")
    page = browser.new_page(viewport={"width": 1400, "height": 900})
    page.goto(path.as_uri())
    page.evaluate(MOVE, [0, 10])  # the browser compiles what is used often
    found = measure(page)
    said = "{moves} moves: median {move_median_ms:.1f} ms, p95 {move_p95_ms:.1f} ms, least {move_least_ms:.1f} ms"
    print(said.format(**found))
    said = "at rest {refined_median_ms:.1f} ms; evolve {evolve_median_ms:.1f} ms; a move is {move_over_evolve:.2f} of it"
    print(said.format(**found), flush=True)
    return found


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = launch(playwright.chromium)
        if browser is None:
            sys.exit(REMEDY)
        print(json.dumps(played(browser, Path(folder))))
        browser.close()


if __name__ == "__main__":
    main()
