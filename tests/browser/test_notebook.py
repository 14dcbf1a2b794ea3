"""A real notebook: its cells show what they should, and the page in a cell is alive and silent in a browser."""

import nbformat
import pytest
from nbclient import NotebookClient

CELLS = (
    "import stagescope as ss\n"
    "run = ss.run_study('scan-snap', until=20.0, frames=30, num_common=3, num_unique=4, progress=False)\nrun",
    "ss.stages(run)",
    "ss.check(run)",
    "ss.reading(run)",
    "ss.report(run, skip=('ladder', 'ledger', 'prediction'), progress=False)",
    "ss.play('focus-dilution', persistence=0.5)",
)


@pytest.fixture(scope="module")
def book() -> nbformat.NotebookNode:
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code) for code in CELLS])
    NotebookClient(book, timeout=300, kernel_name="python3").execute()
    return book


@pytest.mark.long
def test_a_playground_in_a_cell_is_alive(book, browser):
    window, errors = _shown(browser, book.cells[-1].outputs[-1]["data"]["text/html"])
    page = window.frame_locator("iframe")
    slider = page.locator("[data-option=persistence]")
    slider.focus()
    slider.press("ArrowLeft")
    page.locator(".play-command", has_text="--persistence 0.49").wait_for()
    window.wait_for_timeout(600)
    assert errors == []
    window.close()


def _shown(browser, html):
    """The output of a cell in a window, and the errors it will make."""
    window = browser.new_page()
    errors: list[str] = []
    window.on("pageerror", lambda error: errors.append(str(error)))
    window.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    window.set_content(html)
    return window, errors


@pytest.mark.long
def test_cells_show_tables_and_the_page_in_a_cell_is_alive(book, browser):
    run, stages, ledger, reading, report = (cell.outputs[-1]["data"]["text/html"] for cell in book.cells[:-1])
    assert all("<table" in each and "<script" not in each for each in (run, stages, ledger, reading))
    window, errors = _shown(browser, report)
    page = window.frame_locator("iframe")
    slider = page.get_by_role("slider").first
    slider.focus()
    before = slider.get_attribute("aria-valuetext")
    slider.press("End")
    page.locator(f'input[type=range]:not([aria-valuetext="{before}"])').first.wait_for()
    window.wait_for_timeout(600)  # the page writes its state into its address a moment later, where it has one
    assert errors == []
    window.close()
