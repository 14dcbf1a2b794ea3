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


def test_a_playground_is_a_widget(book):
    """What a notebook needs to show it: a view, its module, and the options. `test_play` runs the module in Chromium."""
    shown = book.cells[-1].outputs[-1]["data"]["application/vnd.jupyter.widget-view+json"]
    states = book.metadata["widgets"]["application/vnd.jupyter.widget-state+json"]["state"]
    state = states[shown["model_id"]]["state"]
    assert "export default" in state["_esm"]
    assert state["options"]["persistence"] == 0.5


def test_cells_show_tables_and_the_page_in_a_cell_is_alive(book, browser):
    run, stages, ledger, reading, report = (cell.outputs[-1]["data"]["text/html"] for cell in book.cells[:-1])
    assert all("<table" in each and "<script" not in each for each in (run, stages, ledger, reading))
    window = browser.new_page()
    errors: list[str] = []
    window.on("pageerror", lambda error: errors.append(str(error)))
    window.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    window.set_content(report)
    page = window.frame_locator("iframe")
    slider = page.get_by_role("slider").first
    slider.focus()
    before = slider.get_attribute("aria-valuetext")
    slider.press("End")
    page.locator(f'input[type=range]:not([aria-valuetext="{before}"])').first.wait_for()
    window.wait_for_timeout(600)  # the page writes its state into its address a moment later, where it has one
    assert errors == []
    window.close()
